"""Decompositions of the filters: a convolution, and sharpening by a convolution or by PIL's box blurs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from imgops.decomposition._borders import margins, widen
from imgops.decomposition._precision import (
    LEVELS,
    divide,
    finish,
    finish_rounded,
    mix,
    of_sums,
    parameter,
    working_dtype,
)


def filter2d(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    x = image.to(working_dtype(image))
    return finish_rounded(correlate(x, kernel.to(image.device, x.dtype), padding_mode), image)


def correlate(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    """Correlate every channel of an image with a kernel ``(..., h, w)``, anchored at ``h // 2, w // 2``."""
    dtype = of_sums(image.dtype, image.device)
    if dtype != image.dtype:
        return correlate(image.to(dtype), kernel.to(dtype), padding_mode).to(image.dtype)
    rows, columns = kernel.shape[-2:]
    wide = widen(image, margins(rows, columns), padding_mode)
    planes = image.shape[:-2].numel()
    if kernel.ndim == 2:
        flat = wide.reshape(planes, 1, wide.shape[-2], wide.shape[-1])
        return conv2d(flat, kernel[None, None]).reshape(image.shape)
    if planes == 0:  # conv2d takes no 0 groups
        return image + 0 * kernel.sum()
    each = kernel[..., None, :, :].expand(*image.shape[:-2], rows, columns).reshape(planes, 1, rows, columns)
    flat = wide.reshape(1, planes, wide.shape[-2], wide.shape[-1])
    return conv2d(flat, each, groups=planes).reshape(image.shape)


def adjust_sharpness(image: Tensor, factor: Tensor) -> Tensor:
    height, width = image.shape[-2:]
    x = image.to(working_dtype(image))
    if height < 3 or width < 3:
        return finish(x, image)
    total = x[..., 1:-1, 1:-1] * 4
    for i in range(3):
        for j in range(3):
            total = total + x[..., i : i + height - 2, j : j + width - 2]
    smooth = divide(total, 13)
    if image.dtype in LEVELS:
        smooth = (smooth + 0.5).floor()
    inner = mix(smooth, x[..., 1:-1, 1:-1], parameter(factor, image), image).to(x.dtype)
    if image.dtype not in LEVELS:
        x = x.clamp(0, 1)
    rows = torch.slice_scatter(x[..., 1:-1, :], inner, -1, 1, width - 1)
    return finish(torch.slice_scatter(x, rows, -2, 1, height - 1), image)


def unsharp_mask(image: Tensor, radius: Tensor, percent: Tensor, threshold: Tensor) -> Tensor:
    if image.dtype == torch.uint16:  # Pillow does not filter mode I;16
        white = LEVELS[image.dtype]
        real = unsharp_mask(divide(image.double(), white), radius, percent, threshold)
        return finish_rounded(real * white, image)
    levels = image.dtype == torch.uint8
    x = image.to(torch.float64 if levels else of_sums(working_dtype(image), image.device))
    whole, part = box(radius.to(image.device, torch.float64), levels)
    extent = (whole + part)[..., None, None]
    percent, threshold = (v.to(x)[..., None, None, None] for v in (percent, threshold))
    across = _box_matrix(extent, image.shape[-1], levels).to(x.dtype)[..., None, :, :]
    down = _box_matrix(extent, image.shape[-2], levels).to(x.dtype)[..., None, :, :]
    blurred = x
    for _ in range(PASSES):
        blurred = _pass(blurred @ across.mT, levels)
    for _ in range(PASSES):
        blurred = _pass(down @ blurred, levels)
    apart = x - blurred
    if levels:
        more = divide(apart * percent.trunc(), 100).trunc()
        out = torch.where(apart.abs() > threshold.trunc(), x + more, x)
        return finish(out.clamp(0, 255), image)
    out = torch.where(apart.abs() * 255 > threshold, x + divide(apart * percent, 100), x)
    return finish(out.clamp(0, 1), image)


#: The number of fraction bits in PIL's box weights, and of box blurs in its approximation of a Gaussian.
_BITS, PASSES = 24, 3


def _pass(sums: Tensor, levels: bool) -> Tensor:
    return ((sums + 2.0 ** (_BITS - 1)) / 2.0**_BITS).floor() if levels else sums


def box(radius: Tensor, levels: bool) -> tuple[Tensor, Tensor]:
    """Return how far a box reaches, so that three box blurs have the standard deviation ``radius``.

    The reach is a number of whole pixels, and a fraction of the next one. PIL computes it in float32.
    """
    if levels:
        single = radius.float()
        variance = divide(single * single, PASSES)
        length = torch.sqrt(12.0 * variance.double() + 1.0).float()
        whole = ((length.double() - 1.0) / 2.0).floor().float()
    else:
        variance = divide(radius * radius, PASSES)
        length = torch.sqrt(12.0 * variance + 1.0)
        whole = ((length - 1.0) / 2.0).floor()
    part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance)
    return whole, part / (6 * (variance - (whole + 1) * (whole + 1)))


def _box_matrix(extent: Tensor, size: Any, levels: bool) -> Tensor:
    """Return one pass along an axis as a matrix ``(..., size, size)``; the border is replicated."""
    at = torch.arange(size, device=extent.device, dtype=torch.float64)
    whole = extent.floor()
    if levels:
        inner = (2.0**_BITS / (extent * 2 + 1)).floor().double()
        whole = whole.double()
        outer = ((2.0**_BITS - (whole * 2 + 1) * inner) / 2).floor()
    else:
        inner = 1 / (extent * 2 + 1)
        outer = (extent - whole) * inner

    def beyond(pixels: Tensor) -> Tensor:
        """Return the total weight of all pixels farther away than ``pixels`` on one side."""
        return (whole - pixels).clamp(min=0) * inner + torch.where(whole + 1 > pixels, outer, 0.0)

    row, column = at[:, None], at[None, :]
    first, last = (column == 0).double(), (column == size - 1).double()
    distance = (row - column).abs()
    near = torch.where(distance <= whole, inner, torch.where(distance == whole + 1, outer, 0.0))
    return near + first * beyond(row) + last * beyond(size - 1 - row)
