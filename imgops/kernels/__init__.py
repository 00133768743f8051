"""Kernels: ``kernel(out, *args)`` fills the tensor that the operator's fake allocated."""
