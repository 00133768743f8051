"""Decompositions of the pointwise operators: PIL's arithmetic on uint8, real numbers on floats."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops.decomposition._precision import (
    LEVELS,
    SIGNED,
    bits_of,
    divide,
    finish,
    parameter,
    to_levels,
    white_of,
    working_dtype,
)


def lut(image: Tensor, table: Tensor) -> Tensor:
    entries = LEVELS[image.dtype] + 1
    bits = table.view(SIGNED[table.dtype]) if table.dtype in SIGNED else table
    rows = bits.to(image.device).expand(*image.shape[:-2], entries).reshape(-1, entries)
    planes = image.reshape(rows.shape[0], image.shape[-2] * image.shape[-1])
    found = rows.gather(1, planes.to(torch.int64)).reshape(image.shape)
    return finish(found.view(table.dtype) if table.dtype in SIGNED else found, image, table.dtype)


def adjust_gamma(image: Tensor, gamma: Tensor, gain: Tensor) -> Tensor:
    if image.dtype == torch.uint8:
        level = divide(torch.arange(256, dtype=torch.float64, device=image.device), 255)
        gamma, gain = (p.to(image.device, torch.float64).unsqueeze(-1) for p in (gamma, gain))
        table = (255.999 * gain * level.pow(gamma)).clamp(0, 255)
        return lut(image, table.to(torch.uint8).unsqueeze(-2))
    x = image.to(working_dtype(image))
    if image.dtype == torch.uint16:
        made = parameter(gain, image) * divide(x, LEVELS[image.dtype]).pow(parameter(gamma, image))
        return finish(to_levels(made, image), image)
    exponent = parameter(gamma, image)
    # At 0 most derivatives of a power are infinite or not numbers; there it is a constant.
    constant = (x == 0) & (exponent != 1)
    at_zero = torch.zeros_like(exponent).pow(exponent.detach())
    power = torch.where(constant, at_zero, torch.where(constant, 1, x).pow(exponent))
    return finish((parameter(gain, image) * power).clamp(0, 1), image)


def posterize(image: Tensor, bits: Tensor) -> Tensor:
    most = bits_of(image)
    levels = torch.pow(2, bits.to(image.device).clamp(0, most).to(torch.int64))[..., None, None, None]
    if image.dtype in LEVELS:
        step = torch.div(1 << most, levels, rounding_mode="floor")
        return finish(image.to(torch.int64) - torch.remainder(image.to(torch.int64), step), image)
    x = image.to(working_dtype(image))
    levels = levels.to(x.dtype)
    return finish((x * levels).floor().clamp(min=0).minimum(levels - 1) / levels, image)


def solarize(image: Tensor, threshold: Tensor) -> Tensor:
    x = image.to(working_dtype(image))
    bright = x >= parameter(threshold, image)
    return finish(torch.where(bright, white_of(image) - x, x), image)


def invert(image: Tensor) -> Tensor:
    if image.dtype == torch.uint16:  # ATen inverts the bits of signed dtypes
        return image.view(torch.int16).bitwise_not().view(torch.uint16)
    return image.bitwise_not() if image.dtype == torch.uint8 else 1 - image
