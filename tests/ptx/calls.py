"""Calls of functions of a kernel that an older Triton mistakes for each other.

Triton names each version of a function by the types of its arguments. Triton 3.6 writes tuples in a row, so two calls
have the same name if their tuples have the same total length, and the second one runs the code of the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from triton.compiler.code_generator import CodeGenerator
from triton.language import core


def _types(value: Any) -> Any:
    """Return an argument's type: that of each element of a tuple, and the value of a constant."""
    if isinstance(value, (tuple, list, core.tuple)):
        return tuple(_types(each) for each in value)
    constant = value.value if isinstance(value, core.constexpr) else value
    return str(value.type) if isinstance(value, core.base_value) and constant is value else [repr(constant)]


def _in_a_row(types: Any) -> Iterator[Any]:
    """Yield types as Triton 3.6 sees them."""
    for each in types:
        if isinstance(each, tuple):
            yield from _in_a_row(each)
        else:
            yield str(each)


@contextmanager
def no_mistaken_calls() -> Iterator[None]:
    """Raise an error if a kernel that is compiled meanwhile has two such calls."""
    known: dict[Any, Any] = {}
    call = CodeGenerator.call_JitFunction

    def watched(self: Any, function: Any, args: Any, kwargs: Any, *rest: Any, **more: Any) -> Any:
        bound = function.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        types = tuple(_types(bound.arguments[name]) for name in function.arg_names)
        key = id(self.module), function.__module__, function.__name__, tuple(_in_a_row(types))
        before = known.setdefault(key, types)
        if before != types:
            lengths = [[len(t) for t in each if isinstance(t, tuple)] for each in (before, types)]
            raise AssertionError(
                f"{function.__name__}: Triton 3.6 mistakes tuples of {lengths} for each other"
            )
        return call(self, function, args, kwargs, *rest, **more)

    CodeGenerator.call_JitFunction = watched
    try:
        yield
    finally:
        CodeGenerator.call_JitFunction = call
