"""Fakes of the pyramids and their adjoints."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check, layout
from imgops._common.check import fail, violates


def pyr_down(image: Tensor) -> Tensor:
    check.computed_image("pyr_down", image, takes_uint16=True)
    height, width = image.shape[-2:]
    return layout.empty(image, (height + 1) // 2, (width + 1) // 2)


def pyr_down_adjoint(image: Tensor, height: int, width: int) -> Tensor:
    check.computed_image("pyr_down_adjoint", image)
    if violates(image.shape[-2] == (height + 1) // 2, image.shape[-1] == (width + 1) // 2):
        must = "height and width must be those of an image whose half is as large as this one"
        fail(ValueError, "pyr_down_adjoint", must, check.numbers(height, width))
    return layout.empty(image, height, width)


def pyr_up(image: Tensor) -> Tensor:
    check.computed_image("pyr_up", image, takes_uint16=True)
    height, width = image.shape[-2:]
    check.pixels("pyr_up", "image, doubled,", 2 * height, 2 * width)
    return layout.empty(image, 2 * height, 2 * width)


def pyr_up_adjoint(image: Tensor) -> Tensor:
    check.computed_image("pyr_up_adjoint", image)
    height, width = image.shape[-2:]
    if violates(height % 2 == 0, width % 2 == 0):
        fail(ValueError, "pyr_up_adjoint", "height and width must be even", check.numbers(height, width))
    return layout.empty(image, height // 2, width // 2)
