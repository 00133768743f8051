"""Fakes of erase and blend."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops import _check, _layout
from imgops._check import fail
from imgops.fake._common import check_twin, image_like, same_channels


def erase(image: Tensor, value: Tensor, boxes: Tensor) -> Tensor:
    _check.image("erase", "image", image)
    _check.image("erase", "value", value)
    _check.like("erase", "value", value, "image", image)
    _check.batch("erase", "value", value, "image", image)
    same_channels("erase", "value", value, "image", image)
    if tuple(value.shape[-2:]) != (1, 1) and value.shape[-2:] != image.shape[-2:]:
        height, width = _check.numbers(*image.shape[-2:])
        must = f"value must be one color, or an image of {height} x {width}"
        fail(ValueError, "erase", must, f"shape {_check.shape(value)}")
    if boxes.dtype != torch.int64:
        fail(TypeError, "erase", "boxes must be int64", boxes.dtype)
    _check.per_sample_parameter("erase", "boxes", boxes, image, 4)
    return _layout.empty(image, *image.shape[-2:])


def blend(image: Tensor, other: Tensor, weight: Tensor) -> Tensor:
    out = image_like("blend", image)
    check_twin("blend", "other", other, image)
    _check.per_sample_parameter("blend", "weight", weight, image)
    return out
