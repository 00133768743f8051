"""CPU kernels over PIL, OpenCV and NumPy."""
