"""Fakes of the filters."""

from __future__ import annotations

from torch import Tensor

from imgops import _check
from imgops._check import fail, violates
from imgops.fake._common import BORDERS, check_window, image_like


def gaussian_blur(image: Tensor, sigma: Tensor, kernel_width: int, kernel_height: int) -> Tensor:
    out = image_like("gaussian_blur", image)
    _check.per_sample_parameter("gaussian_blur", "sigma", sigma, image, 2)
    for size in (kernel_width, kernel_height):
        if violates(size >= 1) or violates(size % 2 == 1):
            got = _check.numbers(kernel_width, kernel_height)
            fail(ValueError, "gaussian_blur", "kernel_size must be odd and positive", got)
    _check.side("gaussian_blur", "kernel_size", kernel_width, kernel_height)
    return out


def median_blur(image: Tensor, kernel_size: int) -> Tensor:
    out = image_like("median_blur", image)
    if violates(kernel_size >= 1) or violates(kernel_size % 2 == 1):
        got = _check.number(kernel_size)
        fail(ValueError, "median_blur", "kernel_size must be odd and positive", got)
    _check.side("median_blur", "kernel_size", kernel_size)
    return out


def filter2d(image: Tensor, kernel: Tensor, border: str) -> Tensor:
    out = image_like("filter2d", image)
    _check.choice("filter2d", "border", border, BORDERS)
    check_window("filter2d", kernel, image)
    return out


def adjust_sharpness(image: Tensor, factor: Tensor) -> Tensor:
    out = image_like("adjust_sharpness", image)
    _check.per_sample_parameter("adjust_sharpness", "factor", factor, image)
    return out
