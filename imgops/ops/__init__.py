"""The operators, one family in each module: the ``__all__`` of a module is public in ``imgops``."""
