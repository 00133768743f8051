"""The table of operators: for each a typed signature, a docstring and the facets it has."""
