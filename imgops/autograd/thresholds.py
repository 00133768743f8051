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
    above = over > 0
    nowhere = torch.zeros_like(above)
    # Where the result shows the threshold and the color.
    shown = {
        "binary": (nowhere, above),
        "binary_inv": (nowhere, ~above),
        "trunc": (above, nowhere),
        "tozero": (nowhere, nowhere),
        "tozero_inv": (nowhere, nowhere),
    }[ctx.operation]
    of_image, of_threshold, of_top = ctx.needs_input_grad[:3]
    return (
        _of_image(grad, over, ctx.operation) if of_image else None,
        product(grad, shown[0], threshold) if of_threshold else None,
        product(grad, shown[1], top) if of_top else None,
        None,
    )


def _of_image(grad: Tensor, over: Tensor, operation: str) -> Tensor:
    if operation == "tozero":
        return where_positive(grad.to(over.dtype), over).to(grad.dtype)
    return torch.where((over > 0) | operation.startswith("binary"), 0, grad)
