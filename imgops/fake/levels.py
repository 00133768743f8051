"""Fakes of the pointwise operators."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops._common import check, layout
from imgops.fake._output import output


def lut(image: Tensor, table: Tensor) -> Tensor:
    check.image("lut", "image", image)
    check.dtype("lut", "image", image, torch.uint8, torch.uint16)
    check.pixels("lut", "image", *image.shape[-2:])
    check.parameter("lut", "table", table, image)
    entries = 256 if image.dtype == torch.uint8 else 65536
    whole = table.ndim >= 2 and table.shape[-1] == entries
    if not whole or not check.broadcasts(table.shape[:-1], image.shape[:-2]):
        check.fail_shape("lut", f"table must have {entries} values, or (..., 1 or C, {entries})", table)
    return layout.empty(image, *image.shape[-2:], dtype=table.dtype)


def adjust_gamma(image: Tensor, gamma: Tensor, gain: Tensor) -> Tensor:
    return output("adjust_gamma", image, takes_uint16=True, gamma=gamma, gain=gain)


def posterize(image: Tensor, bits: Tensor) -> Tensor:
    return output("posterize", image, takes_uint16=True, bits=bits)


def solarize(image: Tensor, threshold: Tensor) -> Tensor:
    return output("solarize", image, takes_uint16=True, threshold=threshold)
