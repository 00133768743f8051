"""The same operators in core ATen: what an exported program becomes that must run without imgops.

Sizes may be symbolic, so an exported batch or image size may stay dynamic. Nothing is validated: the
program that is decomposed has been.
"""
