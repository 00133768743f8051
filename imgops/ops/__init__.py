"""The table of operators, a family in each module: ``__all__`` of a module is public in ``imgops``."""
