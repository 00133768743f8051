"""The host fallback, for CUDA and every other device without kernels of its own."""
