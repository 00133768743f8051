"""The CUDA kernel of an operator, run on the CPU by Triton's interpreter: ``cuda_kernel``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from imgops._operator import record
from imgops._operator.record import Contract


def cuda_kernel(name: str) -> Callable[..., Tensor]:
    """Return the CUDA kernel of an operator as a function of CPU tensors.

    Triton's interpreter runs the kernel's own code, one program after another, with the device's arithmetic;
    it reveals neither races nor speed. Set ``TRITON_INTERPRET=1`` before Triton is imported.

    Parameters
    ----------
    name : str
        ``"namespace::name"`` of an operator with a CUDA kernel.

    Returns
    -------
    callable
        ``f(*args) -> Tensor`` with the arguments of ``torch.ops.namespace.name``, positional, on the CPU.
        The function of a mutating operator writes to its argument and returns it.

    Raises
    ------
    NotImplementedError
        If there is no such operator or it has no CUDA kernel; the message names it. ``f`` raises it if
        the kernel leaves the arguments to the decomposition, because of their dtype, for example.
    RuntimeError
        If ``f`` is called and Triton is missing or was imported without ``TRITON_INTERPRET=1``.

    Examples
    --------
    >>> import torch, imgops
    >>> kernel = imgops.extend.testing.cuda_kernel("imgops::crop")
    >>> image = torch.arange(12, dtype=torch.uint8).reshape(1, 3, 4)
    >>> kernel(image, 1, 0, 3, 2)  # doctest: +SKIP
    tensor([[[1, 2],
             [5, 6]]], dtype=torch.uint8)
    """
    operator = record.table.get(name)
    if operator is None or operator.cuda is None:
        got = "none" if operator is not None else "an unknown operator"
        raise NotImplementedError(f"cuda_kernel: {name} must have a CUDA kernel, got {got}")
    kernel, fake = operator.cuda, operator.fake

    def run(*args: Any) -> Tensor:
        from imgops.kernels import cuda

        if not cuda.runs_on(torch.device("cpu")):
            must = "Triton must be imported with TRITON_INTERPRET=1"
            raise RuntimeError(f"cuda_kernel: {must}, got Triton without it, or none")
        made = fake(*args)
        if operator.values is not None:
            operator.values(*args)
        done = kernel(made, *args) if operator.contract is Contract.FUNCTIONAL else kernel(*args)
        if done is NotImplemented:
            raise NotImplementedError(f"cuda_kernel: {name} leaves these arguments to its decomposition")
        if operator.contract is Contract.FUNCTIONAL:
            return made
        return args[operator.mutated_indices[0]]

    return run
