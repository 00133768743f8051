"""Fakes of the thresholds."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops import _check
from imgops._check import fail, violates
from imgops.fake._images import image_like

KINDS = ("binary", "binary_inv", "trunc", "tozero", "tozero_inv", "otsu", "triangle")
METHODS = ("mean", "gaussian")


def threshold(image: Tensor, value: Tensor, maximum: Tensor, kind: str) -> Tensor:
    out = image_like("threshold", image)
    _check.choice("threshold", "kind", kind, KINDS)
    if kind in KINDS[5:] and image.dtype != torch.uint8:
        fail(TypeError, "threshold", f"image must be uint8 for {kind!r}", image.dtype)
    _check.per_sample_parameter("threshold", "value", value, image)
    _check.per_sample_parameter("threshold", "maximum", maximum, image)
    return out


def adaptive_threshold(
    image: Tensor, maximum: Tensor, c: Tensor, block_size: int, method: str, kind: str
) -> Tensor:
    op = "adaptive_threshold"
    out = image_like(op, image)
    if image.dtype != torch.uint8:
        fail(TypeError, op, "image must be uint8", image.dtype)
    _check.choice(op, "method", method, METHODS)
    _check.choice(op, "kind", kind, KINDS[:2])
    _check.per_sample_parameter(op, "maximum", maximum, image)
    _check.per_sample_parameter(op, "c", c, image)
    if violates(block_size >= 3) or violates(block_size % 2 == 1):
        fail(ValueError, op, "block_size must be odd and at least 3", _check.number(block_size))
    _check.side(op, "block_size", block_size)
    return out
