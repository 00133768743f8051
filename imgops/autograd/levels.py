"""Gradients of the operators on single values; nothing passes where a value is clamped, nor at the ends."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.autograd._sums import number, product, unclamped, zeros
from imgops.decomposition._precision import working_dtype


def adjust_gamma_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    image, gamma, gain = ctx.saved_tensors
    x = image.to(working_dtype(image))
    exponent, scale = number(gamma, image), number(gain, image)
    # At 0 the power is a constant, unless its exponent is 1.
    constant = (x == 0) & (exponent != 1)
    safe = torch.where(constant, 1, x)
    power = torch.where(constant, torch.zeros_like(exponent).pow(exponent.detach()), safe.pow(exponent))
    own = unclamped(grad, scale * power)
    of_power = torch.where(constant, 0, own * scale)
    of_image = of_gamma = None
    if ctx.needs_input_grad[0]:
        of_image = (of_power * exponent * safe.pow(exponent - 1)).to(image.dtype)
    if ctx.needs_input_grad[1]:
        logarithm = torch.where(safe == 0, 0, torch.where(safe == 0, 1, safe).log())
        of_gamma = product(of_power * power, logarithm, gamma)
    return of_image, of_gamma, product(own, power, gain) if ctx.needs_input_grad[2] else None


def posterize_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return zeros(ctx, grad)


def solarize_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    image, threshold = ctx.saved_tensors
    bright = image.to(working_dtype(image)) >= number(threshold, image)
    of_threshold = torch.zeros_like(threshold) if ctx.needs_input_grad[1] else None
    return torch.where(bright, -grad, grad), of_threshold
