"""Gradients of the noise operators, for the image, the noise and its strength."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.autograd._sums import number, product, unclamped, where_positive
from imgops.decomposition._precision import working_dtype


def salt_and_pepper_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    image, noise, *shares = ctx.saved_tensors
    amount, salt = (number(v, image) for v in shares)
    values = noise.to(working_dtype(image))
    changed = (values >= 1 - amount * salt) | (values < amount * (1 - salt))
    needs = ctx.needs_input_grad[1:4]
    others = (torch.zeros_like(v) if n else None for v, n in zip((noise, *shares), needs, strict=True))
    return torch.where(changed, 0, grad), *others


def shot_noise_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    image, noise, scale = ctx.saved_tensors
    dtype = working_dtype(image)
    x, values, strength = image.to(dtype), noise.to(dtype), number(scale, image)
    # The square root has no derivative at a variance of 0, where there is no noise.
    variance = strength * x
    root = torch.ops.aten.threshold(variance, 0, 1).sqrt()
    deviation = where_positive(root, variance)
    own = unclamped(grad, x + deviation * values)
    slope = where_positive(values / (2 * root), variance)
    of_image, of_noise, of_scale = ctx.needs_input_grad[:3]
    return (
        (own * (1 + slope * strength)).to(image.dtype) if of_image else None,
        (own * deviation).sum_to_size(noise.shape).to(noise.dtype) if of_noise else None,
        product(own * slope, x, scale) if of_scale else None,
    )


def speckle_noise_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    image, noise, sigma = ctx.saved_tensors
    dtype = working_dtype(image)
    x, values, strength = image.to(dtype), noise.to(dtype), number(sigma, image)
    gain = 1 + strength * values
    own = unclamped(grad, x * gain)
    of_image, of_noise, of_sigma = ctx.needs_input_grad[:3]
    return (
        (own * gain).to(image.dtype) if of_image else None,
        (own * x * strength).sum_to_size(noise.shape).to(noise.dtype) if of_noise else None,
        product(own * x, values, sigma) if of_sigma else None,
    )
