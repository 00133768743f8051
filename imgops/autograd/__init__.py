"""Gradients: what a backward keeps, and the backward itself, written with registered operators only."""
