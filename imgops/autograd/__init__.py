"""Gradients: what a forward saves for its backward, and the backward, made of registered operators only."""
