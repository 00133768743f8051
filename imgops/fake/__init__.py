"""Fakes: the output of each operator (shape, strides, dtype, device), and the errors for wrong arguments.

A fake validates its arguments and returns an uninitialized output. PyTorch calls it as the registered fake of
the operator, and every kernel gets the tensor that it fills from it, so eager, compiled and meta calls raise
the same errors with the same messages.
"""
