"""Histograms of 256 levels in the graph."""

from __future__ import annotations

import torch
from torch import Tensor


def histogram(image: Tensor) -> Tensor:
    """How often each of 256 levels is there: ``(..., 256)`` int64 for planes ``(..., H, W)`` of them."""
    flat = image.flatten(-2).long()
    counts = torch.zeros((*flat.shape[:-1], 256), dtype=torch.int64, device=image.device)
    return counts.scatter_add(-1, flat, torch.ones_like(flat))
