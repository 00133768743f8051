"""Operators: how they are declared, recorded and called."""
