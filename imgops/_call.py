"""What the decorated name of an operator becomes: its kernel where nothing watches, else the dispatcher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from imgops import _check, _subclass, _torch_private
from imgops._rows import Contract, Function, Operator

_autocasts = torch.is_autocast_enabled
_exporting = torch.compiler.is_exporting
_wrote_to = torch.autograd.graph.increment_version


#: How many calls of one operator are remembered; then all are forgotten at once.
_REMEMBERED = 512


def function(row: Operator, tagged: bool) -> Function:
    """The operator as a function of Python; ``tagged``: whether it returns what it wrote to."""
    through = _through_dispatcher(row, tagged)
    if row.contract.mutates:
        return _mutating(row, through, tagged)
    if row.contract is Contract.DYNAMIC:
        return _dispatched(row, through)
    return _functional(row, through)


def _functional(row: Operator, through: Function) -> Function:
    """Around the dispatcher a call costs little more than its kernel: see ``benchmarks/calls.py``."""
    nothing_watches, run = _torch_private.nothing_watches, direct(row)
    casts, arity = row.autocast is not None, len(row.signature.parameters)

    def functional(*args: Any, **keywords: Any) -> Any:
        if keywords or len(args) != arity:
            args = _bound(row, args, keywords)
        if not nothing_watches() or (casts and _autocasts("cpu")):
            return through(args)
        out = run(args)
        return through(args) if out is None else out

    return functional


def direct(row: Operator) -> Callable[[Sequence[Any]], Any]:
    """A functional operator on the CPU, where nothing watches; None if its tensors are not ordinary ones.

    What a fake says depends on the sizes, strides and dtypes of tensors and on the other arguments, so it is
    remembered what came out for them: an output to allocate. A refusal is not remembered.
    """
    is_plain, kernel, fake, tensors = _torch_private.is_plain, row.kernel, row.fake, row.tensors
    empty = torch.empty_strided
    known: dict[Any, Any] = {}

    def run(args: Sequence[Any]) -> Any:
        x = args[0]
        if not is_plain(x):
            return None
        key: tuple[Any, ...] = (x.shape, x.stride(), x.dtype, args[tensors:])
        for x in args[1:tensors]:
            if x is not None:
                if not is_plain(x):
                    return None
                key = (*key, x.shape, x.stride(), x.dtype)
            else:
                key = (*key, None)
        try:
            found = known.get(key)
        except TypeError:  # a list among the arguments
            out = fake(*args)
        else:
            if found is not None:
                size, stride, dtype = found
                out = empty(size, stride, dtype=dtype)
            else:
                out = fake(*args)
                _remember(known, key, (out.shape, out.stride(), out.dtype))
        kernel(out, *args)
        return out

    return run


def _remember(known: dict[Any, Any], key: Any, value: Any) -> None:
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = value


def _dispatched(row: Operator, through: Function) -> Function:
    """The kernel of a dynamic operator costs far more than the dispatcher."""
    arity = len(row.signature.parameters)

    def dispatched(*args: Any, **keywords: Any) -> Any:
        if keywords or len(args) != arity:
            args = _bound(row, args, keywords)
        return through(args)

    return dispatched


def _mutating(row: Operator, through: Function, tagged: bool) -> Function:
    nothing_watches, is_plain = _torch_private.nothing_watches, _torch_private.is_plain
    kernel, fake, tensors, arity = row.kernel, row.fake, row.tensors, len(row.signature.parameters)
    at = row.written
    inputs = [*range(tensors), *(at if row.contract is Contract.OUT else ())]
    silent = row.contract is Contract.BUFFERS
    apart = _apart(row)
    # What is exported holds functional operators, which have decompositions. (Before torch 2.13 every
    # compiler says that it exports, and there the mutating operator is the better one.)
    recorded = cast("Function | None", row.autograd) if tagged else None
    known: dict[Any, bool] = {}

    def is_watched(args: tuple[Any, ...]) -> bool:
        if not nothing_watches():
            return True
        for i in inputs:
            if not is_plain(args[i]):
                return True
        return any(args[i].is_inference() for i in at)

    def validate(args: tuple[Any, ...]) -> None:
        key = tuple([(x.shape, x.stride(), x.dtype) if isinstance(x, Tensor) else x for x in args])
        try:
            found = key in known
        except TypeError:  # a list among the arguments
            fake(*args)
        else:
            if not found:
                fake(*args)
                _remember(known, key, True)
        apart(args)

    def mutating(*args: Any, **keywords: Any) -> Any:
        if keywords or len(args) != arity:
            args = _bound(row, args, keywords)
        if is_watched(args):
            if recorded is not None and _exporting():
                fake(*args)
                recorded(*args)
            else:
                through(args)
        else:
            validate(args)
            kernel(*args)
            for i in at:
                _wrote_to(args[i])
        return None if silent else args[at[0]]

    return mutating


def validation(row: Operator) -> Function:
    """The fake of a mutating operator, and that what it writes to shares no memory with anything."""
    apart = _apart(row)

    def validate(*args: Any) -> None:
        row.fake(*args)
        apart(args)

    return validate


def _apart(row: Operator) -> Callable[[tuple[Any, ...]], None]:
    names = list(row.signature.parameters)
    written = list(zip(row.written, row.mutates, strict=True))

    def apart(args: tuple[Any, ...]) -> None:
        for i, name in written:
            others = [(n, x) for n, x in zip(names, args, strict=True) if n != name and isinstance(x, Tensor)]
            _check.written(row.name, name, args[i], others)

    return apart


def _bound(row: Operator, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
    bound = row.signature.bind(*args, **keywords)
    bound.apply_defaults()
    return tuple(bound.arguments.values())


def _through_dispatcher(row: Operator, tagged: bool) -> Function:
    overload = row.overload
    keyword = row.contract is Contract.OUT and tagged

    def call(args: tuple[Any, ...]) -> Any:
        return overload(*args[:-1], out=args[-1]) if keyword else overload(*args)

    def through(args: tuple[Any, ...]) -> Any:
        tensors = [a for a in args if isinstance(a, Tensor)]
        if _subclass.is_ordinary(tensors):
            return call(args)
        _torch_private.run_deferred()
        plain = tuple(_subclass.placed([_subclass.plain(a) for a in args]))
        return _subclass.like(call(plain), args[0])

    return through
