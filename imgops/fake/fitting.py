"""The fake of downscale."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check
from imgops.fake._output import output

DOWN, UP = ("area", "nearest", "bilinear"), ("bilinear", "nearest", "bicubic")


def downscale(image: Tensor, factor: Tensor, down: str, up: str) -> Tensor:
    out = output("downscale", image, takes_uint16=True, factor=factor)
    check.choice("downscale", "down", down, DOWN)
    check.choice("downscale", "up", up, UP)
    return out
