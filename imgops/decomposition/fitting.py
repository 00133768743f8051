"""Decomposition of downscale: two matrices for each axis, of sizes that a tensor says."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.decomposition._filters import OPENCV_TAPS, area_cells, count, scalar
from imgops.decomposition._real import finished, of_sums, working
from imgops.decomposition.filter import rounded


def downscale(image: Tensor, factor: Tensor, down: str, up: str) -> Tensor:
    x = image.to(of_sums(working(image), image.device))
    small = []
    for size in image.shape[-2:]:
        share = factor.detach().to(image.device, torch.float64)
        small.append((share * size).round().clamp(min=1, max=size))
    shrink, grow = [], []
    for size, less in zip(image.shape[-2:], small, strict=True):
        whole = scalar(size, image.device)
        shrink.append(_matrix(down, whole, less, size).to(x.dtype)[..., None, :, :])
        grow.append(_matrix(up, less, whole, size).to(x.dtype)[..., None, :, :])
    smaller = shrink[0] @ x @ shrink[1].mT
    if image.dtype == torch.uint8:
        smaller = smaller.round().clamp(0, 255)
    return finished(rounded(grow[0] @ smaller @ grow[1].mT, image), image)


def _matrix(name: str, source: Tensor, target: Tensor, size: Any) -> Tensor:
    """OpenCV's weights of ``target`` outputs for ``source`` pixels, in a matrix of ``size`` by ``size``."""
    device = source.device
    source, target, column = source[..., None], target[..., None], count(size, device)
    x = count(size, device)
    scale = 1 / (target / source)
    if name == "area":
        first, last, head, tail, cell = (v[..., None] for v in area_cells(size, scale, x))
        weight = ((column >= first) & (column < last)).double()
        weight = weight + torch.where(column == first - 1, head, 0.0) + torch.where(column == last, tail, 0.0)
        there = x[:, None] < target[..., None]
        return torch.where(there, weight / torch.where(there, cell, 1), 0.0)
    if name == "nearest":
        at = torch.minimum(torch.floor(x * scale), source - 1)
        return (at[..., None] == column).double()
    position = (x + 0.5) * scale - 0.5
    left = torch.floor(position)
    taps = OPENCV_TAPS[name](position - left)
    weight = torch.zeros((), dtype=torch.float64, device=device)
    for k, tap in enumerate(taps):
        at = torch.minimum((left + (k + 1 - len(taps) // 2)).clamp(min=0), source - 1)
        weight = weight + torch.where(at[..., None] == column, tap[..., None], 0.0)
    return weight
