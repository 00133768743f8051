"""Benchmarks of imgops, the raw libraries and its peers, on the same work and in one run."""
