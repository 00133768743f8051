"""Gradients of the operators on single values; nothing passes where a value is clamped, nor at the ends."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.autograd._sums import number, product, unclamped, where_positive, zeros
from imgops.decomposition._precision import working_dtype


def adjust_gamma_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    image, gamma, gain = ctx.saved_tensors
    x = image.to(working_dtype(image))
    exponent, scale = number(gamma, image), number(gain, image)
    if not (any(ctx.needs_input_grad[1:]) or torch.is_grad_enabled()):
        # In place, and without the finite powers that only a second gradient needs.
        power = x.pow(exponent)
        through = unclamped(grad, scale * power).mul_(power).mul_(scale * exponent).div_(x)
        return where_positive(through, x.abs(), into=through).to(image.dtype), None, None
    # A black pixel stays black, or is clamped: nothing passes through it. Its power must be finite.
    black = x == 0
    safe = x + black
    power = safe.pow(exponent)
    of_image, of_gamma, of_gain = ctx.needs_input_grad[:3]
    if of_gain:  # only the power of 0 shows black pixels
        of_black = torch.zeros_like(exponent).pow(exponent.detach()).clamp(max=1e30)
        value = scale * torch.where(black, of_black, power)
    else:
        value = scale * power
    through = where_positive(unclamped(grad, value), (~black).to(x.dtype)) * scale * power
    return (
        (through * exponent / safe).to(image.dtype) if of_image else None,
        product(through, safe.log(), gamma) if of_gamma else None,
        product(unclamped(grad, value), torch.where(black & (exponent != 0), 0, power), gain)
        if of_gain
        else None,
    )


def posterize_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return zeros(ctx, grad)


def solarize_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    image, threshold = ctx.saved_tensors
    bright = image.to(working_dtype(image)) >= number(threshold, image)
    of_threshold = torch.zeros_like(threshold) if ctx.needs_input_grad[1] else None
    return torch.where(bright, -grad, grad), of_threshold
