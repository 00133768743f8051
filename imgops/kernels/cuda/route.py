"""Which kernel a tensor that is not on the CPU gets.

On CUDA the Triton kernel, and where it declines the decomposition, on the device; on every other device the
decomposition, as far as the device has its types; else the host fallback.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

from imgops import _torch_private
from imgops._rows import Contract, Function, Operator
from imgops.kernels.cpu._common import detached, run_decomposition
from imgops.kernels.cuda import _parameters, host


def stays_on_device(row: Operator) -> bool:
    """Whether the operator runs where its image is: it has a kernel there, or ATen computes it."""
    return row.cuda is not None or _by_aten(row) is not None


#: For comparisons alone: "ATen" or "host" where nothing faster is to be used.
_only: ContextVar[str] = ContextVar("only", default="")


@contextmanager
def only(kind: str) -> Iterator[None]:
    """Use no Triton kernel ("ATen"), or nothing on the device ("host"): for benchmarks and tests."""
    before = _only.set(kind)
    try:
        yield
    finally:
        _only.reset(before)


def kernel_of(row: Operator) -> Function:
    """``kernel(out, *args)`` of any device, or ``kernel(*args)``, as the operator's contract has it."""
    own, aten, through_host = row.cuda, _by_aten(row), _through_host(row)
    lacking: set[tuple[str, torch.dtype]] = set()  # devices without a type that ATen's way needs

    def run(*args: Any) -> Any:
        first = args[0]
        inputs = args[1:] if row.contract is Contract.FUNCTIONAL else args
        restricted = _only.get()
        if own is not None and first.is_cuda and not restricted:
            made = own(*args)
            if made is not NotImplemented:
                return made
        kind = first.device.type, _image(inputs).dtype
        if aten is not None and kind not in lacking and restricted != "host":
            try:
                return aten(*_parameters.on_device(first.device, args))
            except TypeError:  # how mps refuses float64
                if has_every_dtype(first.device):
                    raise
                lacking.add(kind)
        return through_host(*args)

    return run


def has_every_dtype(device: torch.device) -> bool:
    return device.type in ("cpu", "cuda")


def _image(inputs: Any) -> Tensor:
    return next(a for a in inputs if isinstance(a, Tensor))


def _by_aten(row: Operator) -> Function | None:
    """The operator as ATen computes it; of one that mutates, the functional operators that its gradient has."""
    if row.contract is Contract.FUNCTIONAL and row.decomposition is not None:
        decomposition = row.decomposition
        return lambda out, *args: run_decomposition(out, decomposition, *args)
    if row.contract.mutates and row.autograd is not None:
        recorded: Any = row.autograd

        def change(*args: Any) -> None:
            with _torch_private.default_dispatch_state(), torch.no_grad():
                recorded(*detached(args))

        return change
    return None


def _through_host(row: Operator) -> Function:
    if row.contract.mutates:
        return host.round_trip_writing(row.kernel, row.mutated_indices)
    if row.contract is Contract.DYNAMIC:
        return host.round_trip_returning(row.kernel)
    return host.round_trip(row.kernel)
