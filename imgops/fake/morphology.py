"""Fakes of the morphological operators."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops._common import check
from imgops.fake._output import output


def erode(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    return _validate("erode", image, kernel, padding_mode)


def dilate(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    return _validate("dilate", image, kernel, padding_mode)


def hit_or_miss(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    if image.dtype != torch.uint8:
        check.fail(TypeError, "morphology", "image must be uint8 for 'hitmiss'", image.dtype)
    return _validate("morphology", image, kernel, padding_mode)


def _validate(op: str, image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    out = output(op, image, takes_uint16=True)
    check.border(op, padding_mode)
    check.window(op, kernel, image)
    return out
