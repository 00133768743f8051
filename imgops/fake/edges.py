"""Fakes of the derivatives and of canny."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops._common import check, layout
from imgops._common.check import fail, violates
from imgops.fake._images import BORDERS, image_like

SIZES = (1, 3, 5, 7)


def sobel(image: Tensor, dx: int, dy: int, kernel_size: int, padding_mode: str) -> Tensor:
    out = _derivative("sobel", image, padding_mode)
    _one_of("sobel", "kernel_size", kernel_size, SIZES)
    most = 2 if kernel_size == 1 else kernel_size - 1
    inside = not any(violates(order >= 0) or violates(order <= most) for order in (dx, dy))
    if not inside or violates(dx + dy > 0):
        must = f"dx and dy must be from 0 to {most}, and not both 0"
        fail(ValueError, "sobel", must, check.numbers(dx, dy))
    return out


def scharr(image: Tensor, dx: int, dy: int, padding_mode: str) -> Tensor:
    out = _derivative("scharr", image, padding_mode)
    if (dx, dy) not in ((1, 0), (0, 1)):
        fail(ValueError, "scharr", "dx and dy must be 1 and 0, or 0 and 1", check.numbers(dx, dy))
    return out


def laplacian(image: Tensor, kernel_size: int, padding_mode: str) -> Tensor:
    out = _derivative("laplacian", image, padding_mode)
    _one_of("laplacian", "kernel_size", kernel_size, SIZES)
    return out


def _derivative(op: str, image: Tensor, padding_mode: str) -> Tensor:
    out = image_like(op, image)
    check.choice(op, "padding_mode", padding_mode, BORDERS)
    if image.dtype == torch.uint8:  # its derivatives can be negative
        return layout.empty(image, *image.shape[-2:], dtype=torch.int16)
    return out


def _one_of(op: str, name: str, value: int, values: tuple[int, ...]) -> None:
    if value not in values:
        must = f"{name} must be one of {', '.join(map(str, values))}"
        fail(ValueError, op, must, check.number(value))


def canny(image: Tensor, low: Tensor, high: Tensor, kernel_size: int, l2_gradient: bool) -> Tensor:
    check.image("canny", "image", image)
    if image.dtype != torch.uint8:
        fail(TypeError, "canny", "image must be uint8", image.dtype)
    check.pixels("canny", "image", *image.shape[-2:])
    if image.shape[-3] not in (1, 3):
        fail(ValueError, "canny", "image must have 1 or 3 channels", check.number(image.shape[-3]))
    check.per_sample_parameter("canny", "low", low, image)
    check.per_sample_parameter("canny", "high", high, image)
    _one_of("canny", "kernel_size", kernel_size, SIZES[1:])
    return layout.empty(image, *image.shape[-2:], channels=1)
