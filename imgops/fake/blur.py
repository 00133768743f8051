"""Fakes of the smoothing filters."""

from __future__ import annotations

from torch import Tensor

from imgops import _check
from imgops._check import fail, violates
from imgops.fake._common import BORDERS, image_like


def box_blur(image: Tensor, kernel_width: int, kernel_height: int, border: str) -> Tensor:
    out = image_like("box_blur", image)
    _check.choice("box_blur", "border", border, BORDERS)
    if violates(kernel_width >= 1) or violates(kernel_height >= 1):
        got = _check.numbers(kernel_width, kernel_height)
        fail(ValueError, "box_blur", "kernel_size must be positive", got)
    _check.side("box_blur", "kernel_size", kernel_width, kernel_height)
    return out


def bilateral_filter(
    image: Tensor, sigma_color: Tensor, sigma_space: Tensor, diameter: int, border: str
) -> Tensor:
    op = "bilateral_filter"
    out = image_like(op, image, gray_or_rgb=True)
    _check.choice(op, "border", border, BORDERS)
    _check.per_sample_parameter(op, "sigma_color", sigma_color, image)
    _check.per_sample_parameter(op, "sigma_space", sigma_space, image)
    if violates(diameter >= 1):
        fail(ValueError, op, "diameter must be positive", _check.number(diameter))
    _check.side(op, "diameter", diameter, most=511)  # OpenCV lists all pixels of the square
    return out


def unsharp_mask(image: Tensor, radius: Tensor, percent: Tensor, threshold: Tensor) -> Tensor:
    out = image_like("unsharp_mask", image)
    _check.per_sample_parameter("unsharp_mask", "radius", radius, image)
    _check.per_sample_parameter("unsharp_mask", "percent", percent, image)
    _check.per_sample_parameter("unsharp_mask", "threshold", threshold, image)
    return out
