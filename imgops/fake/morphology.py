"""Fakes of the morphological operators."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops._common import check
from imgops._common.check import fail
from imgops.fake._images import BORDERS, check_window, image_like


def erode(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    return _validate("erode", image, kernel, padding_mode)


def dilate(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    return _validate("dilate", image, kernel, padding_mode)


def hit_or_miss(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    if image.dtype != torch.uint8:
        fail(TypeError, "morphology", "image must be uint8 for 'hitmiss'", image.dtype)
    return _validate("morphology", image, kernel, padding_mode)


def _validate(op: str, image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    out = image_like(op, image)
    check.choice(op, "padding_mode", padding_mode, BORDERS)
    check_window(op, kernel, image)
    return out
