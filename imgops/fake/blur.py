"""Fakes of the blurs."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check
from imgops._common.check import fail, violates
from imgops.fake._output import output


def box_blur(image: Tensor, kernel_width: int, kernel_height: int, padding_mode: str) -> Tensor:
    out = output("box_blur", image, takes_uint16=True)
    check.border("box_blur", padding_mode)
    if violates(kernel_width >= 1, kernel_height >= 1):
        got = check.numbers(kernel_width, kernel_height)
        fail(ValueError, "box_blur", "kernel_size must be positive", got)
    check.side("box_blur", "kernel_size", kernel_width, kernel_height)
    return out


def bilateral_filter(
    image: Tensor, sigma_color: Tensor, sigma_space: Tensor, kernel_size: int, padding_mode: str
) -> Tensor:
    op = "bilateral_filter"
    out = output(op, image, check.BILATERAL, sigma_color=sigma_color, sigma_space=sigma_space)
    check.border(op, padding_mode)
    if violates(kernel_size >= 1):
        fail(ValueError, op, "kernel_size must be positive", check.number(kernel_size))
    check.side(op, "kernel_size", kernel_size, most=511)  # OpenCV makes a list of all pixels in the square
    return out


def gaussian_blur(image: Tensor, sigma: Tensor, kernel_width: int, kernel_height: int) -> Tensor:
    out, size = output("gaussian_blur", image, takes_uint16=True), (kernel_width, kernel_height)
    check.per_sample_parameter("gaussian_blur", "sigma", sigma, image, 2)
    if any(violates(side >= 1, side % 2 == 1) for side in size):
        fail(ValueError, "gaussian_blur", "kernel_size must be odd and positive", check.numbers(*size))
    check.side("gaussian_blur", "kernel_size", *size)
    return out


def median_blur(image: Tensor, kernel_size: int) -> Tensor:
    out = output("median_blur", image, takes_uint16=True)
    if violates(kernel_size >= 1, kernel_size % 2 == 1):
        got = check.number(kernel_size)
        fail(ValueError, "median_blur", "kernel_size must be odd and positive", got)
    check.side("median_blur", "kernel_size", kernel_size)
    return out
