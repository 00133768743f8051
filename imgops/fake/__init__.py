"""Fakes: the output of each operator (shape, strides, dtype, device), and the errors for wrong arguments.

A fake validates its arguments and returns an uninitialized output. It is the registered fake of the operator,
and it allocates the tensor that a kernel fills, so eager, compiled and meta calls raise the same errors.
"""
