"""Decompositions of the operators into core ATen, for exported programs that must run without imgops.

Sizes may be symbolic, so an exported batch or image size may stay dynamic. The decompositions validate
nothing, because a program is validated before it is decomposed.
"""
