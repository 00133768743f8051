"""Arithmetic of the gradients: numbers as factors of images, and the sums of what they were broadcast to."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops._common import torch_private
from imgops.decomposition._precision import parameter, summed, working_dtype


def number(value: Tensor, image: Tensor) -> Tensor:
    """Return a parameter that broadcasts over images; one on the CPU is copied asynchronously."""
    return parameter(value.to(image.device, non_blocking=value.is_cpu), image)


def scaled(grad: Tensor, factor: Tensor) -> Tensor:
    """Multiply each image by its number; half precision is computed in float32 and rounded once."""
    return (grad.to(working_dtype(grad)) * number(factor, grad)).to(grad.dtype)


def product(grad: Tensor, other: Tensor, like: Tensor) -> Tensor:
    """Return the gradient of a number that multiplies ``other``: the sum of the products of each image."""
    dtype = working_dtype(grad)
    return summed((grad.to(dtype) * other.to(dtype)).sum((-3, -2, -1)), like)


def save_inputs(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Save all inputs, which are tensors, for the backward."""
    ctx.save_for_backward(*inputs)


def save_nothing(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.inputs = len(inputs)


def zeros(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """Return the gradients of an operator whose values are steps of the image's."""
    return torch.zeros_like(grad), *(None,) * (ctx.inputs - 1)


def saved(*tensors: Tensor, needed: bool) -> tuple[Tensor | None, ...]:
    """Return tensors that a backward reads, or None for each if no gradient needs them."""
    return tensors if needed else (None,) * len(tensors)


def unclamped(grad: Tensor, value: Tensor) -> Tensor:
    """Return the gradient of a value that was clamped to [0, 1], in the dtype of the value."""
    if torch_private.is_distributed(value):  # which has no rule for the next operator
        return torch.where((value > 0) & (value < 1), grad.to(value.dtype), 0)
    return torch.ops.aten.hardtanh_backward(grad.to(value.dtype), value, 0, 1)


def where_positive(value: Tensor, condition: Tensor, into: Tensor | None = None) -> Tensor:
    """Return a value, of the dtype of the condition, where the condition is above 0; else 0.

    This is one vectorized pass of ATen on the CPU; ``torch.where`` takes ten times as long. ``into`` is a
    tensor that is not needed any more; if no gradient is recorded, its memory may become that of the result.
    """
    if into is None or torch.is_grad_enabled() or not all(map(torch_private.is_plain, (value, into))):
        return torch.ops.aten.threshold_backward(value, condition, 0)
    return torch.ops.aten.threshold_backward.grad_input(value, condition, 0, grad_input=into)
