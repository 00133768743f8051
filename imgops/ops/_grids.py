"""What the functions that make maps share: the positions of pixels, and checks of their arguments."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops import _check


def displacement(op: str, name: str, value: Tensor) -> None:
    _check.image(op, name, value)
    if value.dtype not in (torch.float32, torch.float64):
        _check.fail(TypeError, op, f"{name} must be float32 or float64", value.dtype)
    if _check.violates(value.shape[-3] == 2):
        _check.fail(ValueError, op, f"{name} must have 2 channels (x, y)", _check.number(value.shape[-3]))


def pixel_grid(height: int, width: int, like: Tensor) -> Tensor:
    """The position of each pixel, (2, height, width)."""
    y, x = (torch.arange(n, dtype=like.dtype, device=like.device) for n in (height, width))
    return torch.stack([x.expand(height, width), y[:, None].expand(height, width)])


def meshed(x: Tensor, y: Tensor, height: int, width: int, dtype: torch.dtype) -> Tensor:
    x, y = torch.broadcast_tensors(x.to(dtype), y.to(dtype))
    return torch.stack([x, y], -3).expand(*x.shape[:-2], 2, height, width)
