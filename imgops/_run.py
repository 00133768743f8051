"""What runs when an operator is called: its fake validates and allocates, then a kernel computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from imgops import _check
from imgops._operators import Contract, Function, Operator

#: From torch 2.13 on an operator can say that it is in place, or that it writes to ``out``.
TAGGED = hasattr(torch.Tag, "inplace") and hasattr(torch.Tag, "out")

#: How many distinct calls of one operator are remembered; then all are forgotten at once.
_REMEMBERED = 512

#: By annotation: what the dispatcher takes as it is, and what an error calls it.
KINDS: dict[Any, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(("int", int), ((int, torch.SymInt), "an int")),
    **dict.fromkeys(("bool", bool), ((bool, torch.SymBool), "a bool")),
    **dict.fromkeys(("str", str), ((str,), "a str")),
}


def fits(value: Any, types: tuple[type, ...]) -> bool:
    """Whether the dispatcher takes a value for one of these types."""
    return isinstance(value, types) and _check.is_64_bit(value)


#: ``prepare(args)``: validates; returns the output where the operator returns new memory of a known size.
Prepare = Callable[[Sequence[Any]], Any]


def runner(row: Operator, kernel: Function, prepare: Prepare) -> Callable[[Sequence[Any]], Any]:
    """The fake, then the kernel: the same on every device, around the dispatcher and behind it."""
    values = row.values
    if row.contract is Contract.FUNCTIONAL:

        def fill(args: Sequence[Any]) -> Any:
            out = prepare(args)
            if values is not None:
                values(*args)
            kernel(out, *args)
            return out

        return fill

    def compute(args: Sequence[Any]) -> Any:
        prepare(args)
        if values is not None:
            values(*args)
        made = kernel(*args)
        return returned(row, args) if row.contract.mutates else made

    return compute


def returned(row: Operator, args: Sequence[Any]) -> Any:
    """What a mutating operator returns; before torch 2.13 nothing."""
    if row.contract is Contract.BUFFERS or not TAGGED:
        return None
    return args[0] if row.contract is Contract.INPLACE else args[-1]


def _typed(row: Operator) -> Function:
    """The fake, behind the types of whole numbers and of switches, for which the dispatcher has other errors.

    What a string must be the fake says.
    """
    fake, op, parameters = row.fake, row.name, row.signature.parameters.values()
    kinds = [(i, p.name, KINDS[p.annotation]) for i, p in enumerate(parameters) if p.annotation in KINDS]
    typed = [(i, name, *kind) for i, name, kind in kinds if kind[0] != (str,)]
    before = 1 if row.contract is Contract.DYNAMIC else 0  # what makes a size that depends on data

    def checked(*args: Any, **keywords: Any) -> Any:
        for i, name, types, what in typed:
            value = args[before + i]
            number = hasattr(value, "__index__") and getattr(value, "shape", ()) == ()
            if not isinstance(value, types) and not number:
                _check.fail(TypeError, op, f"{name} must be {what}", repr(value))
            if not _check.is_64_bit(value):
                _check.fail(ValueError, op, f"{name} must be a signed 64-bit integer", value)
        return fake(*args, **keywords)

    return checked if typed else fake


def preparation(row: Operator) -> Prepare:
    """The fake, run for every call."""
    fake = _typed(row)
    if row.contract is Contract.FUNCTIONAL:
        return lambda args: fake(*args)
    if row.contract is Contract.DYNAMIC:
        return lambda args: fake(_placeholder_size, *args)
    no_overlap = _no_overlap(row)

    def validate(args: Sequence[Any]) -> None:
        fake(*args)
        no_overlap(args)

    return validate


def key_of(args: Sequence[Any], tensors: int) -> tuple[Any, ...]:
    """Return what a fake depends on: sizes, strides and dtypes of tensors, and the other arguments."""
    x = args[0]
    if tensors == 1:
        return x.shape, x.stride(), x.dtype, args[1:]
    if tensors == 2 and args[1] is not None:
        y = args[1]
        return x.shape, x.stride(), x.dtype, args[2:], y.shape, y.stride(), y.dtype
    key: tuple[Any, ...] = (x.shape, x.stride(), x.dtype, args[tensors:])
    for x in args[1:tensors]:
        key = (*key, None) if x is None else (*key, x.shape, x.stride(), x.dtype)
    return key


def remembered(row: Operator) -> Prepare:
    """The fake, run once for each distinct call on the CPU.

    An output can be allocated, or a call known to be valid, without asking again. Errors are not remembered.
    """
    if row.contract is Contract.DYNAMIC:
        return preparation(row)
    fake, tensors, empty, decisive = _typed(row), row.tensors, torch.empty_strided, row.decisive
    known: dict[Any, Any] = {}
    names = list(row.signature.parameters)[:tensors]

    def remember(key: Any, value: Any) -> None:
        if len(known) >= _REMEMBERED:
            known.clear()
        known[key] = value

    def made_anew(args: Sequence[Any]) -> Any:
        # No kernel may write into what the caller gave: PyTorch's own look at this comes after the kernel.
        out = fake(*args)
        for name, x in zip(names, args, strict=False):
            if x is not None and _check.overlap(x, out):
                _check.fail(RuntimeError, row.name, "fake must return a tensor of its own", name)
        return out

    def allocate(args: Sequence[Any]) -> Any:
        if tensors == 1:
            x = args[0]
            key: Any = x.shape, x.stride(), x.dtype, args[1:] if decisive is None else decisive(*args)
        else:
            key = key_of(args, tensors)
        try:
            found = known.get(key)
        except TypeError:  # a list among the arguments
            return made_anew(args)
        if found is None:
            out = made_anew(args)
            remember(key, (out.shape, out.stride(), out.dtype))
            return out
        size, stride, dtype = found
        return empty(size, stride, dtype=dtype)

    if row.contract is Contract.FUNCTIONAL:
        return allocate
    no_overlap, is_out = _no_overlap(row), row.contract is Contract.OUT

    def validate(args: Sequence[Any]) -> None:
        key = key_of(args[:-1] if is_out else args, tensors)
        if is_out:
            out = args[-1]
            key = (*key, out.shape, out.stride(), out.dtype)
        try:
            is_known: bool | None = key in known
        except TypeError:  # a list among the arguments
            is_known = None
        if not is_known:
            fake(*args)
            if is_known is not None:
                remember(key, True)
        no_overlap(args)

    return validate


def _placeholder_size(*, min: int = 0, max: int | None = None) -> int:
    """A placeholder for a size that only the kernel knows, for fakes that merely validate."""
    return min


def _no_overlap(row: Operator) -> Callable[[Sequence[Any]], None]:
    """What a mutating operator writes to must share no memory with any other argument."""
    names = list(row.signature.parameters)
    mutated = list(zip(row.mutated_indices, row.mutates, strict=True))

    def check(args: Sequence[Any]) -> None:
        for i, name in mutated:
            others = [(n, x) for n, x in zip(names, args, strict=True) if n != name and isinstance(x, Tensor)]
            _check.no_overlap(row.name, name, args[i], others)

    return check
