"""Fakes of alpha_composite and add_weighted."""

from __future__ import annotations

from torch import Tensor

from imgops import _check
from imgops._check import fail, violates
from imgops.fake._common import image_like


def alpha_composite(image: Tensor, over: Tensor) -> Tensor:
    op = "alpha_composite"
    out = image_like(op, image)
    if violates(image.shape[-3] == 4):
        fail(ValueError, op, "image must have 4 channels (RGBA)", _check.number(image.shape[-3]))
    _same(op, image, "over", over)
    return out


def add_weighted(image: Tensor, other: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor) -> Tensor:
    op = "add_weighted"
    out = image_like(op, image)
    _same(op, image, "other", other)
    for name, value in (("alpha", alpha), ("beta", beta), ("gamma", gamma)):
        _check.per_sample_parameter(op, name, value, image)
    return out


def _same(op: str, image: Tensor, name: str, other: Tensor) -> None:
    _check.image(op, name, other)
    _check.like(op, name, other, "image", image)
    if other.shape != image.shape:
        must = f"{name} must have the shape of image {_check.shape(image)}"
        fail(ValueError, op, must, _check.shape(other))
