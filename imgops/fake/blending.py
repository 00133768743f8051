"""Fakes of alpha_composite, add_weighted and blend."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check
from imgops.fake._output import output


def alpha_composite(image: Tensor, other: Tensor) -> Tensor:
    out = output("alpha_composite", image, takes_uint16=True)
    check.channels("alpha_composite", image, (4,), " (RGBA)")
    check.same_image("alpha_composite", "other", other, image)
    return out


def add_weighted(image: Tensor, other: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor) -> Tensor:
    out = output("add_weighted", image, takes_uint16=True, alpha=alpha, beta=beta, gamma=gamma)
    check.same_image("add_weighted", "other", other, image)
    return out


def blend(image: Tensor, other: Tensor, alpha: Tensor) -> Tensor:
    out = output("blend", image, takes_uint16=True, alpha=alpha)
    check.same_image("blend", "other", other, image)
    return out
