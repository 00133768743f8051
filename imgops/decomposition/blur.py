"""Decompositions of the smoothing filters: sums of shifted images, and PIL's box blur as a matrix."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.decomposition._borders import correlated_along, widened
from imgops.decomposition._real import finished, of_sums, parameter, working
from imgops.decomposition.filter import rounded


def box_blur(image: Tensor, kernel_width: int, kernel_height: int, border: str) -> Tensor:
    across = correlated_along(image.to(working(image)), (1.0,) * kernel_width, -1, border)
    total, area = correlated_along(across, (1.0,) * kernel_height, -2, border), kernel_width * kernel_height
    if image.dtype == torch.uint8:
        return finished((total.double() / area + 0.5).floor(), image)
    return finished(total / area, image)


def reach(diameter: int) -> int:
    """How far OpenCV's window of a diameter reaches."""
    return max(diameter // 2, 1)


def bilateral_filter(
    image: Tensor, sigma_color: Tensor, sigma_space: Tensor, diameter: int, border: str
) -> Tensor:
    x, radius = image.to(working(image)), reach(diameter)
    color, space = (_exponent(parameter(sigma, image)) for sigma in (sigma_color, sigma_space))
    wide, (height, width) = widened(x, (radius,) * 4, border), x.shape[-2:]
    total, weights = torch.zeros_like(x), torch.zeros_like(x[..., :1, :, :])
    for down in range(-radius, radius + 1):
        for right in range(-radius, radius + 1):
            distance = down * down + right * right
            if distance > radius * radius:
                continue
            top, left = radius + down, radius + right
            other = wide[..., top : top + height, left : left + width]
            apart = (other - x).abs().sum(-3, keepdim=True)
            weight = torch.exp(apart * apart * color + distance * space)
            total, weights = total + weight * other, weights + weight
    return rounded(total / weights, image)


def _exponent(sigma: Tensor) -> Tensor:
    """A deviation on a device is not read: next to none is the least."""
    sigma = sigma.clamp(min=1e-6)
    return -0.5 / (sigma * sigma)


#: The fraction bits of PIL's weights of a box, and how many boxes make its Gaussian.
_BITS, PASSES = 24, 3


def unsharp_mask(image: Tensor, radius: Tensor, percent: Tensor, threshold: Tensor) -> Tensor:
    levels = image.dtype == torch.uint8
    x = image.to(torch.float64 if levels else of_sums(working(image), image.device))
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
        more = (apart * percent.trunc() / 100).trunc()
        out = torch.where(apart.abs() > threshold.trunc(), x + more, x)
        return finished(out.clamp(0, 255), image)
    out = torch.where(apart.abs() * 255 > threshold, x + apart * percent / 100, x)
    return finished(out.clamp(0, 1), image)


def _pass(sums: Tensor, levels: bool) -> Tensor:
    return ((sums + 2.0 ** (_BITS - 1)) / 2.0**_BITS).floor() if levels else sums


def box(radius: Tensor, levels: bool) -> tuple[Tensor, Tensor]:
    """How far a box reaches, three of which have the deviation ``radius``: pixels, and a part of the next.

    PIL computes it in float32.
    """
    if levels:
        single = radius.float()
        variance = single * single / PASSES
        length = torch.sqrt(12.0 * variance.double() + 1.0).float()
        whole = ((length.double() - 1.0) / 2.0).floor().float()
    else:
        variance = radius * radius / PASSES
        length = torch.sqrt(12.0 * variance + 1.0)
        whole = ((length - 1.0) / 2.0).floor()
    part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance)
    return whole, part / (6 * (variance - (whole + 1) * (whole + 1)))


def _box_matrix(extent: Tensor, size: Any, levels: bool) -> Tensor:
    """One pass along an axis as a matrix ``(..., size, size)``; the border is replicated."""
    at = torch.arange(size, device=extent.device, dtype=torch.float64)
    whole = extent.floor()
    if levels:
        inner = (2.0**_BITS / (extent * 2 + 1)).floor().double()
        whole = whole.double()
        outer = ((2.0**_BITS - (whole * 2 + 1) * inner) / 2).floor()
    else:
        inner = 1 / (extent * 2 + 1)
        outer = (extent - whole) * inner

    def weight(distance: Tensor) -> Tensor:
        return torch.where(distance <= whole, inner, torch.where(distance == whole + 1, outer, 0.0))

    def beyond(pixels: Tensor) -> Tensor:
        """The weights of all that is farther than ``pixels`` on one side."""
        return (whole - pixels).clamp(min=0) * inner + torch.where(whole + 1 > pixels, outer, 0.0)

    row, column = at[:, None], at[None, :]
    first, last = (column == 0).double(), (column == size - 1).double()
    return weight((row - column).abs()) + first * beyond(row) + last * beyond(size - 1 - row)
