"""Gradient of threshold: pixels that stay pass it on, and the color of the others gets it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.autograd._sums import number, product
from imgops.decomposition._precision import working_dtype


def threshold_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.operation = inputs
    ctx.save_for_backward(*tensors)


def threshold_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    image, threshold, top = ctx.saved_tensors
    above = image.to(working_dtype(image)) > number(threshold, image)
    nowhere = torch.zeros_like(above)
    # Where the result shows the pixel, the threshold and the color.
    shown = {
        "binary": (nowhere, nowhere, above),
        "binary_inv": (nowhere, nowhere, ~above),
        "trunc": (~above, above, nowhere),
        "tozero": (above, nowhere, nowhere),
        "tozero_inv": (~above, nowhere, nowhere),
    }[ctx.operation]
    of_image, of_threshold, of_top = ctx.needs_input_grad[:3]
    return (
        torch.where(shown[0], grad, 0) if of_image else None,
        product(grad, shown[1], threshold) if of_threshold else None,
        product(grad, shown[2], top) if of_top else None,
        None,
    )
