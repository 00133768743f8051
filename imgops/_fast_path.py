"""The function of an operator: straight to the CPU kernel where the dispatcher would do nothing else.

A call through the dispatcher costs several times what the kernel of a small image does: see
``benchmarks/calls.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from imgops import _run, _subclass, _torch_private
from imgops._operators import Contract, Function, Operator

_autocasts = torch.is_autocast_enabled
_exporting = torch.compiler.is_exporting
_increment_version = torch.autograd.graph.increment_version

#: What a fast path returns where the dispatcher must be asked.
DISPATCH = object()


def build(row: Operator, run: Callable[[Sequence[Any]], Any]) -> Callable[[Sequence[Any]], Any] | None:
    """``row.fast_path``: ``run`` where every tensor is an ordinary CPU tensor without a gradient.

    The caller checks that no mode, transform or tracer is active.
    """
    if row.contract is Contract.DYNAMIC:
        return None  # the kernel costs far more than the dispatcher
    return _mutating(row, run) if row.contract.mutates else _functional(row, run)


def _functional(row: Operator, run: Callable[[Sequence[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
    is_plain, tensors = _torch_private.is_plain, row.tensors

    def fast_path(args: Sequence[Any]) -> Any:
        for x in args[:tensors]:
            if not is_plain(x):
                return DISPATCH
        return run(args)

    return fast_path


def _mutating(row: Operator, run: Callable[[Sequence[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
    is_plain, mutated = _torch_private.is_plain, row.mutated_indices
    inputs = [*range(row.tensors), *(mutated if row.contract is Contract.OUT else ())]

    def fast_path(args: Sequence[Any]) -> Any:
        for i in inputs:
            if not is_plain(args[i]):
                return DISPATCH
        for i in mutated:
            if args[i].is_inference():
                return DISPATCH
        run(args)
        for i in mutated:
            _increment_version(args[i])
        return None

    return fast_path


def function(row: Operator) -> Function:
    """The operator as a function of Python."""
    call = _mutating_call(row) if row.contract.mutates else _functional_call(row)
    signature, arity = row.signature, len(row.signature.parameters)

    def bound(*args: Any, **keywords: Any) -> Any:
        if keywords or len(args) != arity:
            whole = signature.bind(*args, **keywords)
            whole.apply_defaults()
            args = tuple(whole.arguments.values())
        return call(args)

    return bound


def _functional_call(row: Operator) -> Callable[[tuple[Any, ...]], Any]:
    can_bypass_dispatcher, fast_path = _torch_private.can_bypass_dispatcher, row.fast_path
    dispatch = _through_dispatcher(row)
    if fast_path is None:
        return dispatch
    casts = row.autocast is not None

    def call(args: tuple[Any, ...]) -> Any:
        if not can_bypass_dispatcher() or (casts and _autocasts("cpu")):
            return dispatch(args)
        out = fast_path(args)
        return dispatch(args) if out is DISPATCH else out

    return call


def _mutating_call(row: Operator) -> Callable[[tuple[Any, ...]], Any]:
    can_bypass_dispatcher = _torch_private.can_bypass_dispatcher
    fast_path = cast("Callable[[Any], Any]", row.fast_path)
    dispatch, fake = _through_dispatcher(row), row.fake
    first, returns_nothing = row.mutated_indices[0], row.contract is Contract.BUFFERS
    # An exported program holds functional operators, which have decompositions. (Before torch 2.13 every
    # compiler says that it exports, and there the mutating operator is the better one.)
    functional = cast("Function | None", row.autograd) if _run.TAGGED else None

    def call(args: tuple[Any, ...]) -> Any:
        if not can_bypass_dispatcher() or fast_path(args) is DISPATCH:
            if functional is not None and _exporting():
                fake(*args)
                functional(*args)
            else:
                dispatch(args)
        return None if returns_nothing else args[first]

    return call


def _through_dispatcher(row: Operator) -> Callable[[tuple[Any, ...]], Any]:
    overload, prepare = row.overload, _run.preparation(row)
    out_is_keyword = row.contract is Contract.OUT and _run.TAGGED
    parameters = row.signature.parameters.values()
    known = [(i, _run.KINDS[p.annotation][0]) for i, p in enumerate(parameters) if p.annotation in _run.KINDS]

    def call(args: tuple[Any, ...]) -> Any:
        for i, kind in known:
            if not _run.fits(args[i], kind):
                prepare(args)  # the dispatcher has errors of its own, and takes bytes for a string
                break
        return overload(*args[:-1], out=args[-1]) if out_is_keyword else overload(*args)

    def dispatch(args: tuple[Any, ...]) -> Any:
        tensors = [a for a in args if isinstance(a, Tensor)]
        if _subclass.is_ordinary(tensors):
            return call(args)
        _torch_private.run_deferred()
        plain = tuple(_subclass.placed([_subclass.plain(a) for a in args]))
        return _subclass.like(call(plain), args[0])

    return dispatch
