"""Internals that the transforms share; nothing here is public."""
