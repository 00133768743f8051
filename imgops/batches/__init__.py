"""Batches of images of different sizes, in one buffer or still files."""
