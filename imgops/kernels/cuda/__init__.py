"""CUDA kernels, and the round trip through the host that every other device takes."""
