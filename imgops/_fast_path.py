"""The Python functions of operators, which call the CPU kernel directly where the dispatcher adds nothing.

A call through the dispatcher costs several times as much as the kernel of a small image: see
``benchmarks/calls.py``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from imgops import _packed, _run, _subclass, _torch_private
from imgops._operators import Contract, Function, Operator

_autocasts = torch.is_autocast_enabled
_increment_version = torch.autograd.graph.increment_version


def function(operator: Operator, run: Callable[[Sequence[Any]], Any]) -> Function:
    """Make the Python function of an operator.

    It calls ``run`` on the CPU where the dispatcher would do nothing else, and the dispatcher otherwise.
    """
    if not operator.contract.mutates:
        return _functional(operator, run)
    call = _mutating_call(operator, run)
    signature, arity = operator.signature, len(operator.signature.parameters)

    def bound(*args: Any, **keywords: Any) -> Any:
        if keywords or len(args) != arity:
            args = _all_arguments(signature, args, keywords)
        return call(args)

    return bound


def _all_arguments(signature: inspect.Signature, args: tuple[Any, ...], keywords: Any) -> tuple[Any, ...]:
    whole = signature.bind(*args, **keywords)
    whole.apply_defaults()
    return tuple(whole.arguments.values())


def _functional(operator: Operator, run: Callable[[Sequence[Any]], Any]) -> Function:
    can_bypass_dispatcher, is_plain = _torch_private.can_bypass_dispatcher, _torch_private.is_plain
    dispatch, casts = _through_dispatcher(operator), operator.autocast is not None
    signature, arity, tensors = operator.signature, len(operator.signature.parameters), operator.tensors

    def bound(*args: Any, **keywords: Any) -> Any:
        if keywords or len(args) != arity:
            args = _all_arguments(signature, args, keywords)
        if not can_bypass_dispatcher() or (casts and _autocasts("cpu")) or not is_plain(args[0]):
            return dispatch(args)
        if tensors > 1:
            for x in args[1:tensors]:
                if not is_plain(x):
                    return dispatch(args)
        return run(args)

    return bound


def _mutating_call(
    operator: Operator, run: Callable[[Sequence[Any]], Any]
) -> Callable[[tuple[Any, ...]], Any]:
    can_bypass_dispatcher, is_plain = _torch_private.can_bypass_dispatcher, _torch_private.is_plain
    dispatch, fake = _through_dispatcher(operator), operator.fake
    mutated, returns_nothing = operator.mutated_indices, operator.contract is Contract.BUFFERS
    inputs = [*range(operator.tensors), *(mutated if operator.contract is Contract.OUT else ())]
    # An exported program holds functional operators, which have decompositions.
    exporting, functional = _torch_private.is_exporting, cast("Function | None", operator.autograd)

    def is_direct(args: tuple[Any, ...]) -> bool:
        return (
            can_bypass_dispatcher()
            and all(is_plain(args[i]) for i in inputs)
            and not any(args[i].is_inference() for i in mutated)
        )

    def call(args: tuple[Any, ...]) -> Any:
        if is_direct(args):
            run(args)
            for i in mutated:
                _increment_version(args[i])
        elif functional is not None and exporting():
            fake(*args)
            functional(*args)
        else:
            dispatch(args)
        return None if returns_nothing else args[mutated[0]]

    return call


def _through_dispatcher(operator: Operator) -> Callable[[tuple[Any, ...]], Any]:
    overload, prepare = operator.overload, _run.prepare_always(operator)
    parameters = operator.signature.parameters.values()
    known = [(i, _run.KINDS[p.annotation][0]) for i, p in enumerate(parameters) if p.annotation in _run.KINDS]

    def call(args: tuple[Any, ...]) -> Any:
        for i, kind in known:
            if not _run.fits(args[i], kind):
                prepare(args)  # the dispatcher would raise its own errors, and would accept bytes as a string
                break
        return overload(*args)

    def dispatch(args: tuple[Any, ...]) -> Any:
        if type(args[0]) is _packed.PackedImages:
            return _packed.call(operator.qualified, args)
        tensors = [a for a in args if isinstance(a, Tensor)]
        if _subclass.is_ordinary(tensors):
            return call(args)
        _torch_private.run_deferred()
        plain = tuple(_subclass.replicate_beside_dtensors([_subclass.plain(a) for a in args]))
        return _subclass.like(call(plain), args[0])

    return dispatch
