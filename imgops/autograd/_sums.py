"""Arithmetic of the gradients: numbers as factors of images, and the sums of what they were broadcast to."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops.decomposition._precision import parameter, working_dtype


def number(value: Tensor, image: Tensor) -> Tensor:
    """Return a parameter that broadcasts over images; one on the CPU is copied asynchronously."""
    return parameter(value.to(image.device, non_blocking=value.is_cpu), image)


def scaled(grad: Tensor, factor: Tensor) -> Tensor:
    """Multiply each image by its number; half precision is computed in float32 and rounded once."""
    return (grad.to(working_dtype(grad)) * number(factor, grad)).to(grad.dtype)


def summed(values: Tensor, like: Tensor) -> Tensor:
    """Sum values over the dimensions that a parameter was broadcast to, in its dtype and on its device."""
    lead = values.ndim - like.ndim
    total = values.sum_to_size((1,) * lead + tuple(like.shape)).reshape(like.shape)
    return total.to(device=like.device, dtype=like.dtype)


def product(grad: Tensor, other: Tensor, like: Tensor) -> Tensor:
    """Return the gradient of a number that multiplies ``other``: the sum of the products of each image."""
    dtype = working_dtype(grad)
    return summed((grad.to(dtype) * other.to(dtype)).sum((-3, -2, -1)), like)


def saved(*tensors: Tensor, needed: bool) -> tuple[Tensor | None, ...]:
    """Return tensors that a backward reads, or None for each if no gradient needs them."""
    return tensors if needed else (None,) * len(tensors)


def unclamped(grad: Tensor, value: Tensor, least: float = 0.0, most: float = 1.0) -> Tensor:
    """Return the gradient of a value that was clamped, in the dtype of the value."""
    return torch.ops.aten.hardtanh_backward(grad.to(value.dtype), value, least, most)
