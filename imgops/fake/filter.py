"""Fakes of the filters."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check
from imgops.fake._output import output


def filter2d(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    out = output("filter2d", image, takes_uint16=True)
    check.border("filter2d", padding_mode)
    check.window("filter2d", kernel, image)
    return out


def adjust_sharpness(image: Tensor, factor: Tensor) -> Tensor:
    return output("adjust_sharpness", image, takes_uint16=True, factor=factor)


def unsharp_mask(image: Tensor, radius: Tensor, percent: Tensor, threshold: Tensor) -> Tensor:
    return output(
        "unsharp_mask", image, takes_uint16=True, radius=radius, percent=percent, threshold=threshold
    )
