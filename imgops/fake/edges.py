"""Fakes of the derivatives and of canny."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops._common import check, layout
from imgops._common.check import fail, violates

SIZES = (1, 3, 5, 7)
#: The dtypes of the derivatives of levels, which can be negative.
_SIGNED = {torch.uint8: torch.int16, torch.uint16: torch.float32}


def sobel(image: Tensor, dx: int, dy: int, kernel_size: int, padding_mode: str) -> Tensor:
    out = _derivative("sobel", image, padding_mode)
    _kernel_size("sobel", kernel_size, SIZES)
    most = 2 if kernel_size == 1 else kernel_size - 1
    if any(violates(order >= 0, order <= most) for order in (dx, dy)) or violates(dx + dy > 0):
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
    _kernel_size("laplacian", kernel_size, SIZES)
    return out


def _derivative(op: str, image: Tensor, padding_mode: str) -> Tensor:
    check.computed_image(op, image, takes_uint16=True)
    check.border(op, padding_mode)
    return layout.empty(image, *image.shape[-2:], dtype=_SIGNED.get(image.dtype, image.dtype))


def _kernel_size(op: str, value: int, values: tuple[int, ...]) -> None:
    if value not in values:
        must = f"kernel_size must be one of {', '.join(map(str, values))}"
        fail(ValueError, op, must, check.number(value))


def canny(image: Tensor, low: Tensor, high: Tensor, kernel_size: int, l2_gradient: bool) -> Tensor:
    check.image("canny", "image", image)
    check.dtype("canny", "image", image, torch.uint8)
    check.computed_image("canny", image)
    if violates(image.shape[-3] >= 1):
        fail(ValueError, "canny", "image must have at least 1 channel", check.number(image.shape[-3]))
    check.per_sample_parameter("canny", "low", low, image)
    check.per_sample_parameter("canny", "high", high, image)
    _kernel_size("canny", kernel_size, SIZES[1:])
    return layout.empty(image, *image.shape[-2:], channels=1)
