"""CPU kernel of the gradient of cvt_color for spaces that are linear in RGB: the transposed matrix."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import torch
from torch import Tensor

from imgops.decomposition import color_space as formula
from imgops.kernels.backward._arguments import Grads, in_real
from imgops.kernels.cpu.color import color_matrix

_CURVED = ("hsv", "hls", "lab", "luv")


def cvt_color(grads: Grads, grad: Tensor, image: Tensor, code: str) -> Any:
    if image.numel() == 0 or any(space in code for space in _CURVED):
        return NotImplemented
    with in_real(grads[0], grad) as (out, given):
        color_matrix(cast("Tensor", out), given, _matrix(code, image.shape[-3]).mT)
    return None


@cache
def _matrix(code: str, channels: int) -> Tensor:
    """Return the matrix of a conversion, from the colors that it gives one channel alone and none."""
    unit = torch.eye(channels, channels + 1, dtype=torch.float64, device="cpu")
    colors = formula.cvt_color(unit[:, None, :], code)[:, 0]
    return colors[:, :-1] - colors[:, -1:]
