"""Fakes of the thresholds."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops._common import check
from imgops._common.check import fail, violates
from imgops.fake._output import output

OPERATIONS = ("binary", "binary_inv", "trunc", "tozero", "tozero_inv", "otsu", "triangle")
METHODS = ("mean", "gaussian")
#: The dtypes that OpenCV supports where it finds the threshold in a histogram.
_FROM_HISTOGRAMS = {"otsu": (torch.uint8, torch.uint16), "triangle": (torch.uint8,)}


def threshold(image: Tensor, threshold: Tensor, max_value: Tensor, operation: str) -> Tensor:
    out = output("threshold", image, takes_uint16=True, threshold=threshold, max_value=max_value)
    check.choice("threshold", "operation", operation, OPERATIONS)
    if operation in _FROM_HISTOGRAMS and image.dtype not in _FROM_HISTOGRAMS[operation]:
        levels = " or ".join([f"{d}".removeprefix("torch.") for d in _FROM_HISTOGRAMS[operation]])
        fail(TypeError, "threshold", f"image must be {levels} for {operation!r}", image.dtype)
    return out


def adaptive_threshold(
    image: Tensor, max_value: Tensor, c: Tensor, kernel_size: int, method: str, operation: str
) -> Tensor:
    op = "adaptive_threshold"
    out = output(op, image, max_value=max_value, c=c)
    check.dtype(op, "image", image, torch.uint8)
    check.choice(op, "method", method, METHODS)
    check.choice(op, "operation", operation, OPERATIONS[:2])
    if violates(kernel_size >= 3, kernel_size % 2 == 1):
        fail(ValueError, op, "kernel_size must be odd and at least 3", check.number(kernel_size))
    check.side(op, "kernel_size", kernel_size)
    return out
