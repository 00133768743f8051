"""Fakes of alpha_composite, add_weighted and blend."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check
from imgops._common.check import fail, violates
from imgops.fake._images import check_twin, image_like


def alpha_composite(image: Tensor, other: Tensor) -> Tensor:
    op = "alpha_composite"
    out = image_like(op, image)
    if violates(image.shape[-3] == 4):
        fail(ValueError, op, "image must have 4 channels (RGBA)", check.number(image.shape[-3]))
    check_twin(op, "other", other, image)
    return out


def add_weighted(image: Tensor, other: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor) -> Tensor:
    op = "add_weighted"
    out = image_like(op, image)
    check_twin(op, "other", other, image)
    for name, value in (("alpha", alpha), ("beta", beta), ("gamma", gamma)):
        check.per_sample_parameter(op, name, value, image)
    return out


def blend(image: Tensor, other: Tensor, alpha: Tensor) -> Tensor:
    out = image_like("blend", image)
    check_twin("blend", "other", other, image)
    check.per_sample_parameter("blend", "alpha", alpha, image)
    return out
