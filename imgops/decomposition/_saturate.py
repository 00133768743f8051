"""Conversion of numbers to another dtype, as OpenCV's ``saturate_cast`` does it."""

from __future__ import annotations

from math import nextafter

import torch
from torch import Tensor


def saturate(fill: Tensor, dtype: torch.dtype) -> Tensor:
    """Cast as OpenCV does: round half to even, and clamp to the range."""
    if dtype == torch.bool:
        return fill != 0
    if dtype.is_floating_point or dtype.is_complex or fill.dtype in (dtype, torch.bool):
        return fill.to(dtype)
    info = torch.iinfo(dtype)
    if not fill.dtype.is_floating_point:
        low, high = torch.iinfo(fill.dtype).min, torch.iinfo(fill.dtype).max
        return fill.clamp(max(info.min, low), min(info.max, high)).to(dtype)
    value = fill.double().round()
    if info.max < 2**53:
        return value.clamp(info.min, info.max).to(dtype)
    # No double equals the largest integer: values from the next double on become that integer. In an int64,
    # -1 has the bits of uint64's largest value.
    most = torch.full_like(value, -1 if dtype == torch.uint64 else info.max, dtype=torch.int64).to(dtype)
    below = value.clamp(info.min, nextafter(float(info.max), 0)).to(dtype)
    if dtype == torch.uint64:  # torch.where of PyTorch 2.11 does not support it
        return torch.where(value >= float(info.max), most.view(torch.int64), below.view(torch.int64)).view(
            dtype
        )
    return torch.where(value >= float(info.max), most, below)
