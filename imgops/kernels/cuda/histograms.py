"""CUDA kernels of equalize and autocontrast, which need the histogram or the extremes of an image first."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.kernels.cuda import _statistics
from imgops.kernels.cuda._pixels import dense
from imgops.kernels.cuda._tiles import PIXELS, output_batch
from imgops.kernels.cuda.levels import look_up, pointwise


def equalize(out: Tensor, image: Tensor) -> Any:
    if image.dtype not in PIXELS or image.numel() == 0:
        return NotImplemented
    source = dense(image, out)
    tables = _statistics.equalization_tables(source)
    look_up(output_batch(out), source, tables, (tables.shape[1] * 256, 256), image.dtype != torch.uint8)
    return None


def autocontrast(out: Tensor, image: Tensor) -> Any:
    if image.dtype not in PIXELS or image.numel() == 0:
        return NotImplemented
    source, target = dense(image, out), output_batch(out)
    tables, scales = _statistics.stretch_tables(source)
    if image.dtype == torch.uint8:
        look_up(target, source, tables, (tables.shape[1] * 256, 256))
    else:
        pointwise("stretch", target, source, scales, target.shape[1] * 2, 2)
    return None
