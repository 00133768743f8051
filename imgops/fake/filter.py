"""Fakes of the filters."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check
from imgops.fake._images import BORDERS, check_window, image_like


def filter2d(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    out = image_like("filter2d", image)
    check.choice("filter2d", "padding_mode", padding_mode, BORDERS)
    check_window("filter2d", kernel, image)
    return out


def adjust_sharpness(image: Tensor, factor: Tensor) -> Tensor:
    out = image_like("adjust_sharpness", image)
    check.per_sample_parameter("adjust_sharpness", "factor", factor, image)
    return out


def unsharp_mask(image: Tensor, radius: Tensor, percent: Tensor, threshold: Tensor) -> Tensor:
    out = image_like("unsharp_mask", image)
    check.per_sample_parameter("unsharp_mask", "radius", radius, image)
    check.per_sample_parameter("unsharp_mask", "percent", percent, image)
    check.per_sample_parameter("unsharp_mask", "threshold", threshold, image)
    return out
