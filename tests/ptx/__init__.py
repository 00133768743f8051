"""Triton's kernels for CUDA, compiled to PTX and run on the CPU: what a GPU would execute, with checked addresses."""
