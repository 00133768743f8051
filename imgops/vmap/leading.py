"""The rule for operators over ``(..., C, H, W)``: a batch is one more leading dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from imgops import _check


def leading(*core: int, mutates: int = 0) -> Callable[..., tuple[Any, Any]]:
    """Return the batching rule of an operator whose tensors have ``core`` trailing dimensions each.

    In ``core``, 3 stands for an image, which must have all leading dimensions, and a smaller number for a
    parameter, which broadcasts against them. The first ``mutates`` tensors are written to. ``rule.core``
    holds ``core``.
    """
    _check.cores("vmap.leading", core)

    def rule(op: Any, info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        tensors = list(args[: len(core)])
        # The number of leading dimensions of one sample, read off the first image.
        ndim = tensors[0].ndim - core[0] - (in_dims[0] is not None)
        for i, (x, dim) in enumerate(zip(tensors, in_dims, strict=False)):
            if x is not None:
                tensors[i] = _with_batch_first(op, x, dim, info.batch_size, core[i], ndim, i < mutates)
        out = op(*tensors, *args[len(core) :])
        if mutates:
            return (None, None) if out is None else (args[0], in_dims[0])
        return out, 0

    rule.core = core  # type: ignore[attr-defined]
    return rule


def _with_batch_first(
    op: Any, x: Tensor, dim: int | None, size: int, core: int, ndim: int, written: bool
) -> Tensor:
    """Return ``x`` with the batch as its first dimension.

    A parameter without a batch is returned as it is, because it broadcasts.
    """
    if dim is None:
        if written:
            name = op.__name__.split(".")[0]
            must = "a tensor that is written to must have the batch that the others have under vmap"
            raise ValueError(f"{name}: {must}, got one without")
        return x.expand(size, *x.shape) if core == 3 else x
    x = x.movedim(dim, 0)
    if core < 3:  # a parameter of one sample may have fewer leading dimensions than an image
        missing = ndim + core - (x.ndim - 1)
        x = x.reshape(x.shape[0], *(1,) * missing, *x.shape[1:])
    return x
