"""The origin of a transform: the class of a library that it is of, or a user's own code."""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Container, Iterator
from typing import Any

from torch import nn

#: Attributes that a subclass may define without changing its results.
_WITHOUT_EFFECT = frozenset(
    (
        *("__init__", "__repr__", "extra_repr", "__module__", "__qualname__", "__doc__", "__dict__"),
        *("__weakref__", "__annotations__", "__annotations_cache__", "__annotate_func__", "__parameters__"),
        *("__static_attributes__", "__firstlineno__"),
    )
)
#: The packages that the classes of all libraries are made with.
_SHARED = frozenset(("abc", "contextlib", "dataclasses", "functools", "torch", "torchvision", "typing"))
#: The classes of methods that are written in C.
_BUILTIN = (
    *(types.BuiltinFunctionType, types.ClassMethodDescriptorType, types.GetSetDescriptorType),
    *(types.MemberDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType),
)


class UsersCode(Exception):
    """A transform runs code of a user, so that it stays as it is."""


def _kind_of(given: Any) -> Any:
    return given if isinstance(given, types.FunctionType | type) else type(given)


def package_of(given: Any) -> str:
    """Return the package of a function, or of the class of an object."""
    return str(_kind_of(given).__module__).partition(".")[0]


def name_of(given: Any) -> str:
    """Return the module and name of a function, or of the class of an object."""
    kind = _kind_of(given)
    return f"{kind.__module__}.{kind.__qualname__}"


def known_name(given: Any, known: Container[str]) -> str:
    """Return the known name of the library's class or function that is given.

    A name alone decides nothing: the class or function must be the one that the library's module holds. A
    subclass that adds nothing but a constructor counts as its base.

    Raises
    ------
    UsersCode
        If the class or the function is a user's, or has a method of a user, or the object has one.
    """
    if isinstance(given, types.FunctionType):
        if name_of(given) in known and is_in_its_module(given):
            return name_of(given)
        raise UsersCode
    classes = type(given).__mro__
    for place, cls in enumerate(classes):
        if name_of(cls) in known and is_in_its_module(cls):
            is_sole_base = classes[place:] == cls.__mro__
            # The object may have an attribute in the place of a method of its class.
            methods = types.FunctionType, staticmethod, classmethod, property
            kept = (inspect.getattr_static(type(given), n, None) for n in vars(given))
            if is_sole_base and has_own_methods(cls) and not any(isinstance(x, methods) for x in kept):
                return name_of(cls)
            raise UsersCode
        base = classes[place + 1] if cls is not object else object
        for name in vars(cls):
            is_inherited = hasattr(base, name) and getattr(cls, name) is getattr(base, name)
            if name not in _WITHOUT_EFFECT and not (is_inherited and callable(getattr(base, name))):
                raise UsersCode
    raise UsersCode


def has_hooks(module: Any) -> bool:
    """Return whether code of a user runs before or after a module or its backward."""
    if not isinstance(module, nn.Module):
        return False
    forward = module._forward_hooks or module._forward_pre_hooks
    return bool(forward or module._backward_hooks or module._backward_pre_hooks)


def is_in_its_module(kind: Any) -> bool:
    """Return whether a class or function is the one that its module holds under its name."""
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = inspect.getattr_static(found, part, None)
    return found is kind


def has_own_methods(cls: type) -> bool:
    """Return whether all methods of a class and of its bases are those that their libraries define."""
    for base in cls.__mro__[:-1]:
        packages = {*_SHARED, package_of(base)}
        for value in vars(base).values():
            if not all(is_code_of(packages, code) for code in code_of(value)):
                return False
    return True


def code_of(value: Any) -> Iterator[Any]:
    """Yield the functions, classes and callable objects that a value in the body of a class consists of."""
    if isinstance(value, (staticmethod, classmethod)):
        yield value.__func__
    elif isinstance(value, property):
        yield from (f for f in (value.fget, value.fset, value.fdel) if f is not None)
    elif isinstance(value, functools.cached_property | functools.partialmethod):
        yield value.func
    elif callable(value) or hasattr(type(value), "__get__"):
        yield value


def is_code_of(packages: Container[str], code: Any) -> bool:
    """Return whether a function, a class or a callable object is code of one of some packages."""
    if isinstance(code, types.FunctionType):  # its global names are those of the module that defines it
        name = str(code.__globals__.get("__name__"))
        module = sys.modules.get(name)
        is_there = module is not None and vars(module) is code.__globals__
        return is_there and name.partition(".")[0] in packages
    if isinstance(code, types.MethodType):
        return is_code_of(packages, code.__func__)
    if isinstance(code, _BUILTIN):
        return True
    inner = code.func if isinstance(code, functools.partial) else getattr(code, "__wrapped__", None)
    if inner is not None:
        return is_code_of(packages, inner)
    return package_of(code) == "builtins" or package_of(code) in packages
