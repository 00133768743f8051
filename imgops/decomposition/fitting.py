"""Decomposition of downscale: two matrices for each axis, whose smaller size is a value in a tensor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.decomposition import _resampling_weights
from imgops.decomposition._precision import LEVELS, finish, finish_rounded, of_sums, working_dtype
from imgops.decomposition._resampling_filters import count, scalar


def downscale(image: Tensor, factor: Tensor, down: str, up: str) -> Tensor:
    x = image.to(of_sums(working_dtype(image), image.device))
    small = []
    for size in image.shape[-2:]:
        share = factor.detach().to(image.device, torch.float64)
        small.append((share * size).round().clamp(min=1, max=size))
    shrink, grow = [], []
    for size, less in zip(image.shape[-2:], small, strict=True):
        whole = scalar(size, image.device)
        shrink.append(_matrix(down, whole, less, size).to(x.dtype))
        grow.append(_matrix(up, less, whole, size).to(x.dtype))
    smaller = shrink[0] @ x @ shrink[1].mT
    if image.dtype in LEVELS:
        smaller = smaller.round().clamp(0, LEVELS[image.dtype])
    return finish(finish_rounded(grow[0] @ smaller @ grow[1].mT, image), image)


def _matrix(name: str, source: Tensor, target: Tensor, size: Any) -> Tensor:
    """Compute OpenCV's weights of ``target`` outputs for ``source`` pixels: ``(size, size)`` matrices."""
    source, target = (v[..., None, None, None] for v in (source, target))
    if name == "area":
        weight = _resampling_weights.opencv_area(
            size, (1 / (target / source))[..., 0], count(size, source.device)
        )
        return torch.where(count(size, source.device)[:, None] < target, weight, 0.0)
    return _resampling_weights.opencv_cut(name, size, torch.zeros_like(source), source, size, target)
