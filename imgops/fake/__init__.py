"""What comes out of each operator (shape, strides, dtype, device), and what is refused.

A fake validates its arguments and returns an uninitialized output. It is the registered fake of the
operator, and it is also how every kernel gets the tensor that it fills, so eager, compiled and meta
calls refuse the same input with the same message.
"""
