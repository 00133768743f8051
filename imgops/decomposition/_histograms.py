"""Histograms computed in the graph."""

from __future__ import annotations

import torch
from torch import Tensor


def histogram(image: Tensor) -> Tensor:
    """Count how often each of 256 levels occurs: ``(..., 256)`` int64 for planes ``(..., H, W)``."""
    return counts_of(image.flatten(-2).long(), 256)


def counts_of(values: Tensor, levels: int) -> Tensor:
    """Count how often each level occurs among int64 values ``(..., n)``: ``(..., levels)`` int64."""
    counts = torch.zeros((*values.shape[:-1], levels), dtype=torch.int64, device=values.device)
    return counts.scatter_add(-1, values, torch.ones_like(values))
