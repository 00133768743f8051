"""Gradient of threshold: pixels that stay pass it on, and the color of the others gets it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.autograd._sums import number, product, where_positive
from imgops.decomposition._precision import working_dtype


def threshold_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.operation = inputs
    ctx.save_for_backward(*tensors)


def threshold_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    image, threshold, top = ctx.saved_tensors
    over = image.to(working_dtype(image)) - number(threshold, image)
    operation = ctx.operation
    of_image, of_threshold, of_top = ctx.needs_input_grad[:3]
    of_value = color = None
    if of_threshold:
        of_value = product(grad, over > 0 if operation == "trunc" else torch.zeros_like(over), threshold)
    if of_top:
        shown = {"binary": over > 0, "binary_inv": ~(over > 0)}.get(operation, torch.zeros_like(over))
        color = product(grad, shown, top)
    return _of_image(grad, over, operation) if of_image else None, of_value, color, None


def _of_image(grad: Tensor, over: Tensor, operation: str) -> Tensor:
    if operation == "tozero":
        return where_positive(grad.to(over.dtype), over, into=over).to(grad.dtype)
    return torch.where((over > 0) | operation.startswith("binary"), 0, grad)
