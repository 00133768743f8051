"""CUDA kernels of equalize and autocontrast, which need the histogram or the extremes of an image first."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.kernels.cuda._pixels import cover
from imgops.kernels.cuda._statistics import SPAN, statistics
from imgops.kernels.cuda._tiles import PIXELS
from imgops.kernels.cuda.levels import look_up, map_values


def equalize(out: Tensor, image: Tensor) -> Any:
    if image.dtype not in PIXELS or image.numel() == 0:
        return NotImplemented
    over, channels = cover(out, image, "planes", SPAN), image.shape[-3]
    tables, _ = statistics(over, channels, "e", None, 0, 0)
    look_up(out, over.image, tables, channels * 256, True)
    return None


def autocontrast(out: Tensor, image: Tensor) -> Any:
    if image.dtype not in PIXELS or image.numel() == 0:
        return NotImplemented
    over, channels = cover(out, image, "planes", SPAN), image.shape[-3]
    tables, numbers = statistics(over, channels, "a", None, 0, 0)
    if image.dtype == torch.uint8:
        look_up(out, over.image, tables, channels * 256, True)
    else:
        map_values("stretch", out, over.image, numbers, numbers, (channels * 2, channels * 2, 2))
    return None
