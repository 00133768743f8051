"""Gradients: what a backward needs saved, and the backward itself, written with registered operators only."""
