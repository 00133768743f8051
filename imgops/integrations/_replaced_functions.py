"""Functions of torchvision's first version in whose place a user's program has put its own."""

from __future__ import annotations

import sys
from collections.abc import Set
from types import CodeType, FunctionType
from typing import Any

from imgops.transforms._core import torchvision_private
from imgops.transforms._core.origin import is_code_of, package_of


def replaced_functions() -> frozenset[str]:
    """Return the names that hold a user's code in the modules of the first version's functions."""
    return frozenset(
        name
        for module in torchvision_private.FIRST_FUNCTIONS
        for name, value in vars(module).items()
        if callable(value) and not isinstance(value, type)
        if not is_code_of(("torchvision", "torch", "typing"), value)
    )


def may_call(given: Any, functions: Set[str]) -> bool:
    """Return whether a transform may call one of some functions of torchvision's first version.

    The names in its code tell, and those in the code of the functions that they are names of. The second
    version has functions of its own.
    """
    kind = given if isinstance(given, FunctionType | type) else type(given)
    if not functions or kind.__module__.startswith("torchvision.transforms.v2."):
        return False
    places = [vars(m) for m in (*torchvision_private.FIRST_FUNCTIONS, sys.modules[kind.__module__])]
    found: set[str] = set()
    unread = [kind] if isinstance(kind, FunctionType) else _methods(kind)
    while unread:
        new = _names_in(unread.pop().__code__) - found
        found |= new
        values = (place.get(name) for place in places for name in new)
        unread += [value for value in values if isinstance(value, FunctionType)]
    return not found.isdisjoint(functions)


def _methods(cls: type) -> list[FunctionType]:
    """Return the methods of a class and of its bases that are not PyTorch's."""
    bodies = (vars(base) for base in cls.__mro__[:-1] if package_of(base) != "torch")
    values = (getattr(value, "__func__", value) for body in bodies for value in body.values())
    return [value for value in values if isinstance(value, FunctionType)]


def _names_in(code: CodeType) -> set[str]:
    """Return the global names and attributes in a function's code, and in that of the functions in it."""
    inner = (_names_in(value) for value in code.co_consts if isinstance(value, CodeType))
    return set(code.co_names).union(*inner)
