"""Fakes of the operators that map each value by itself."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops._common import check, layout
from imgops._common.check import fail
from imgops.fake._images import image_like


def lut(image: Tensor, table: Tensor) -> Tensor:
    check.image("lut", "image", image)
    if image.dtype != torch.uint8:
        fail(TypeError, "lut", "image must be uint8", image.dtype)
    check.pixels("lut", "image", *image.shape[-2:])
    check.parameter("lut", "table", table, image)
    whole = table.ndim >= 2 and table.shape[-1] == 256
    if not whole or not check.broadcasts(table.shape[:-1], image.shape[:-2]):
        must = "table must have 256 values, or (..., 1 or C, 256)"
        fail(ValueError, "lut", must, f"shape {check.shape(table)}")
    return layout.empty(image, *image.shape[-2:], dtype=table.dtype)


def adjust_gamma(image: Tensor, gamma: Tensor, gain: Tensor) -> Tensor:
    out = image_like("adjust_gamma", image)
    check.per_sample_parameter("adjust_gamma", "gamma", gamma, image)
    check.per_sample_parameter("adjust_gamma", "gain", gain, image)
    return out


def posterize(image: Tensor, bits: Tensor) -> Tensor:
    out = image_like("posterize", image)
    check.per_sample_parameter("posterize", "bits", bits, image)
    return out


def solarize(image: Tensor, threshold: Tensor) -> Tensor:
    out = image_like("solarize", image)
    check.per_sample_parameter("solarize", "threshold", threshold, image)
    return out
