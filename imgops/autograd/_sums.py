"""Arithmetic of the gradients: parameters as factors of images, and sums over what a parameter was broadcast to."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops.decomposition._precision import parameter, working_dtype


def scaled(grad: Tensor, factor: Tensor) -> Tensor:
    """Multiply each image by its number; half precision is computed in float32 and rounded once."""
    return (grad.to(working_dtype(grad)) * parameter(factor, grad)).to(grad.dtype)


def summed(values: Tensor, like: Tensor) -> Tensor:
    """Sum values over the dimensions that a parameter was broadcast to, in the dtype and on the device of it."""
    lead = values.ndim - like.ndim
    total = values.sum_to_size((1,) * lead + tuple(like.shape)).reshape(like.shape)
    return total.to(device=like.device, dtype=like.dtype)


def product(grad: Tensor, other: Tensor, like: Tensor) -> Tensor:
    """Return the gradient of a number that multiplies ``other``: the sum of the products of each image."""
    dtype = working_dtype(grad)
    return summed((grad.to(dtype) * other.to(dtype)).sum((-3, -2, -1)), like)


def saved(*tensors: Tensor, needed: bool) -> tuple[Tensor | None, ...]:
    """Return tensors that a backward reads only for some gradients, or None for each if none of these is wanted."""
    return tensors if needed else (None,) * len(tensors)
