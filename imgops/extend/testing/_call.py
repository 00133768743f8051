"""A call of an operator as a function of its tensors, which all checks use."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from imgops._common import layout
from imgops._common.torch_private import TorchDispatchMode, tree_leaves
from imgops._operator import record


class Call:
    """A call that an operator is checked with.

    Parameters
    ----------
    function : callable
        A function that ``imgops.extend.operator`` returned, or a public function that calls one operator.
    args, keywords
        The arguments of the call. Tensors that an operator writes to are copied before each use.
    """

    def __init__(
        self, function: Callable[..., Any], args: Sequence[Any], keywords: dict[str, Any] | None = None
    ):
        self.function = function
        calls = capture(function, *args, **(keywords or {}))
        operators = [record.table.get(op.name()) for op, _, _ in calls]
        if len(operators) != 1 or operators[0] is None:
            names = [op.name() for op, _, _ in calls]
            raise ValueError(
                f"check_operator: op must call one operator of imgops.extend.operator, got {names}"
            )
        self.operator: record.Operator = operators[0]
        self.overload, self.op_args, self.op_keywords = calls[0]
        signature = inspect.signature(function)
        if any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()):
            signature = self.operator.signature  # an operator of torch.ops shows no signature
        self.bound = signature.bind(*args, **(keywords or {}))
        self.names = [n for n, v in self.bound.arguments.items() if isinstance(v, Tensor)]

    def __str__(self) -> str:
        shapes = {
            n: f"{str(t.dtype)[6:]}{list(t.shape)}" for n, t in zip(self.names, self.tensors, strict=True)
        }
        return f"{self.operator.qualified}({', '.join(f'{n}: {s}' for n, s in shapes.items())})"

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return tuple(self.bound.arguments[name] for name in self.names)

    @property
    def mutated(self) -> list[str]:
        """The names of the tensors that the call writes to."""
        return [n for n in self.names if n in self.operator.mutates]

    @cached_property
    def differentiable(self) -> list[str]:
        """The names of the floating point tensors that can require a gradient, if the operator has one."""
        if self.operator.autograd is None:
            return []
        return [n for n in self.names if self.bound.arguments[n].is_floating_point() and not self._refused(n)]

    def _refused(self, name: str) -> bool:
        try:
            self.outputs(**{name: self.bound.arguments[name].detach().clone().requires_grad_()})
        except NotImplementedError:
            return True
        except RuntimeError:  # an out= call, which is never differentiable
            return False
        return False

    def raw(self, **tensors: Tensor) -> Any:
        """Run the call itself with other tensors."""
        changed = inspect.BoundArguments(self.bound.signature, {**self.bound.arguments, **tensors})  # type: ignore[arg-type]
        return self.function(*changed.args, **changed.kwargs)

    def outputs(self, **tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the call's outputs for other tensors; tensors that it writes to are copied and returned."""
        copies = {n: tensors.get(n, self.bound.arguments[n]).clone() for n in self.mutated}
        result = self.raw(**{**tensors, **copies})
        return tuple(copies.values()) if copies else (result,)

    def of(self, names: Sequence[str]) -> Callable[..., Any]:
        """Return the call as a function of some of its tensors, which returns one output or a tuple."""

        def function(*tensors: Tensor) -> Any:
            out = self.outputs(**dict(zip(names, tensors, strict=True)))
            return out if len(out) > 1 else out[0]

        return function

    @cached_property
    def program(self) -> tuple[Any, tuple[Tensor, ...]]:
        """The exported program of the call, and its tensors."""
        module, tensors = _Module(self.of(self.names)), tuple(t.detach() for t in self.tensors)
        return torch.export.export(module, tensors), tensors

    def double(self) -> Call | None:
        """Return the call in double precision, or None without a gradient or without support of float64."""
        if not self.differentiable:
            return None
        arguments = {
            n: v.double() if isinstance(v, Tensor) and v.is_floating_point() else v
            for n, v in self.bound.arguments.items()
        }
        changed = inspect.BoundArguments(self.bound.signature, arguments)  # type: ignore[arg-type]
        try:
            return Call(self.function, changed.args, changed.kwargs)
        except TypeError:
            return None


class _Module(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: Tensor) -> Any:
        return self.function(*tensors)


class _Capture(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.name() in record.table:
            self.calls.append((func, args, kwargs or {}))
        return func(*args, **(kwargs or {}))


def capture(
    function: Callable[..., Any], *args: Any, **keywords: Any
) -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    """Return the operator calls that a function makes, and restore the tensors that it writes to."""
    tensors = [t for t in tree_leaves((args, keywords)) if isinstance(t, Tensor)]
    before = [t.detach().clone() for t in tensors]
    with _Capture() as mode, torch.no_grad():
        function(*args, **keywords)
        for tensor, copy in zip(tensors, before, strict=True):
            if not bits_equal(tensor, copy):
                tensor.copy_(copy)
    return mode.calls


def bits_equal(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors are equal; NaN equals itself, and -0.0 equals 0.0."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    a, b = a.detach().cpu().contiguous(), b.detach().cpu().contiguous()
    if a.element_size() > 8:
        return bool((a == b).all())
    same = layout.bits(a) == layout.bits(b)
    if a.dtype.is_floating_point:
        same |= (a == b) | (a.isnan() & b.isnan())
    return bool(same.all())


def through_dispatcher(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Call a public function without its fast path."""
    with _Capture():
        return function(*args, **keywords)


def leaves(call: Call, names: Sequence[str]) -> tuple[Callable[..., Any], tuple[Tensor, ...]]:
    tensors = tuple(call.bound.arguments[n].detach().clone().requires_grad_() for n in names)
    return call.of(names), tensors


def several(out: Any) -> tuple[Tensor, ...]:
    return out if isinstance(out, tuple) else (out,)
