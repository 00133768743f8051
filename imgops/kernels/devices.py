"""The choice of a kernel for tensors that are not on the CPU.

On CUDA the Triton kernel runs, and where it declines, the decomposition runs on the device. On every other
device the decomposition runs if the device has its dtypes. Otherwise the host fallback runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

from imgops._common import torch_private
from imgops._operator.record import Contract, Function, Operator
from imgops.kernels import host, transfer
from imgops.kernels.cuda import Kernel
from imgops.kernels.decompositions import detach_all, run_decomposition


def stays_on_device(operator: Operator) -> bool:
    """Return whether the operator runs on the device of its image, by a CUDA kernel or by ATen."""
    return operator.cuda is not None or _by_aten(operator) is not None


#: For comparisons: "ATen" or "host" if nothing faster may be used, else "".
_only: ContextVar[str] = ContextVar("only", default="")


@contextmanager
def only(kind: str) -> Iterator[None]:
    """Use no Triton kernel ("ATen"), or nothing on the device ("host"): for benchmarks and tests."""
    before = _only.set(kind)
    try:
        yield
    finally:
        _only.reset(before)


def kernel_of(operator: Operator) -> Function:
    """Return a kernel for any device: ``kernel(out, *args)`` or ``kernel(*args)``, by the contract."""
    own, aten = operator.cuda, _by_aten(operator)
    through_host: Function
    if operator.contract.mutates:
        through_host = host.round_trip_writing(operator.kernel, operator.mutated_indices)
    elif operator.contract is Contract.DYNAMIC:
        through_host = host.round_trip_returning(operator.kernel)
    else:
        through_host = host.round_trip(operator.kernel)
    lacking: set[tuple[str, torch.dtype]] = set()  # devices and image dtypes for which ATen lacks a dtype

    def run(*args: Any) -> Any:
        first = args[0]
        inputs = args[1:] if operator.contract is Contract.FUNCTIONAL else args
        restricted = _only.get()
        if own is not None and first.is_cuda and not restricted:
            if isinstance(own, Kernel):  # moved here, so that what it declines is not moved a second time
                args = transfer.move_arguments(first.device, args)
            made = own(*args)
            if made is not NotImplemented:
                return made
        kind = first.device.type, next(a for a in inputs if isinstance(a, Tensor)).dtype
        if aten is not None and kind not in lacking and restricted != "host":
            try:
                return aten(*transfer.move_arguments(first.device, args))
            except TypeError:  # mps refuses float64 with a TypeError
                if has_every_dtype(first.device):
                    raise
                lacking.add(kind)
        return through_host(*args)

    return run


def has_every_dtype(device: torch.device) -> bool:
    return device.type in ("cpu", "cuda")


def _by_aten(operator: Operator) -> Function | None:
    """Return a kernel that computes the operator by ATen, or None.

    For a mutating operator it uses the functional operators of the gradient.
    """
    if operator.contract is Contract.FUNCTIONAL and operator.decomposition is not None:
        decomposition = operator.decomposition
        return lambda out, *args: run_decomposition(out, decomposition, *args)
    if operator.contract.mutates and operator.autograd is not None:
        recorded: Any = operator.autograd

        def change(*args: Any) -> None:
            with torch_private.default_dispatch_state(), torch.no_grad():
                recorded(*detach_all(args))

        return change
    return None
