"""Decompositions of alpha_composite (in PIL's integer arithmetic), add_weighted and blend."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops.decomposition._precision import (
    LEVELS,
    divide,
    finish,
    finish_rounded,
    mix,
    parameter,
    working_dtype,
)

#: The number of fraction bits in PIL's fixed-point arithmetic.
_BITS = 7


def alpha_composite(image: Tensor, other: Tensor) -> Tensor:
    is_levels = image.dtype == torch.uint8
    below, above = (x.to(torch.int32 if is_levels else working_dtype(image)) for x in (image, other))
    (under, a), (upper, b) = ((x[..., :3, :, :], x[..., 3:, :, :]) for x in (below, above))
    if is_levels:
        alpha = b * 255 + a * (255 - b)
        share = torch.div(b * (255 * 255 << _BITS), alpha.clamp(min=1), rounding_mode="floor")
        color = upper * share + under * ((255 << _BITS) - share)
        color = _by_255(color + (128 << _BITS)) >> _BITS
        return finish(torch.where(b == 0, below, torch.cat([color, _by_255(alpha + 128)], -3)), image)
    deep = image.dtype == torch.uint16
    if deep:  # the shares are those of floats, and colors stay levels
        a, b = divide(a, LEVELS[image.dtype]), divide(b, LEVELS[image.dtype])
    rest = a * (1 - b)
    alpha = b + rest
    there = alpha > 0
    color = torch.where(there, (upper * b + under * rest) / torch.where(there, alpha, 1), under)
    alpha = alpha * LEVELS[image.dtype] if deep else alpha
    return finish_rounded(torch.cat([color, alpha], -3), image)


def _by_255(value: Tensor) -> Tensor:
    return ((value >> 8) + value) >> 8


def add_weighted(image: Tensor, other: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor) -> Tensor:
    x, y = image.to(working_dtype(image)), other.to(working_dtype(image))
    a, b, c = (parameter(v, image) for v in (alpha, beta, gamma))
    return finish_rounded(x * a + y * b + c, image)


def blend(image: Tensor, other: Tensor, alpha: Tensor) -> Tensor:
    start, end = image.to(working_dtype(image)), other.to(working_dtype(image))
    factor = parameter(alpha, image)
    if image.dtype in LEVELS:
        return finish(mix(start, end, factor, image), image)
    return finish(end * factor + start * (1 - factor), image)
