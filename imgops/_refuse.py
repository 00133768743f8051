"""What happens where a facet is missing: one line that names it and says how to add it."""

from __future__ import annotations

from typing import Any, NoReturn

from imgops._rows import Function, Operator

_HOW = {
    "kernel": "kernel=f, where f(out, *args) fills out",
    "fake": "fake=f, where f(*args) validates and returns an empty output",
    "autograd": "autograd=imgops.Gradient(...), or decomposition=f to derive it from",
    "vmap": "vmap=f; imgops.vmap.leading serves operators over (..., C, H, W)",
    "sharding": "sharding=f; imgops.sharding.leading serves operators over (..., C, H, W)",
    "adjoint": "adjoint=name, for a linear operator",
}


def incomplete(name: str, facet: str) -> NoReturn:
    raise TypeError(f"operator: {name} must have a {facet}, got None: pass {_HOW[facet]}")


def wrong_gradient(name: str, mutates: bool, got: object) -> NoReturn:
    wanted = "a function, for an operator that mutates" if mutates else "an imgops.Gradient"
    raise TypeError(f"operator: {name}: autograd must be {wanted}, got {type(got).__name__}")


def missing(row: Operator, facet: str) -> NoReturn:
    must = f"{row.name}: {facet} must be a facet of {row.qualified}, got none"
    raise NotImplementedError(f"{must}: register the operator with {_HOW[facet]}")


def refusal(row: Operator, facet: str) -> Function:
    """What stands where the facet would."""

    def refuse(*args: Any, **keywords: Any) -> NoReturn:
        missing(row, facet)

    return refuse


def nothing_kept(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    pass
