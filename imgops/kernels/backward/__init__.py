"""CPU kernels of the gradients that are derived from decompositions."""
