"""Parts of the versions in plain PyTorch: slow and obvious, without any code of imgops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

_generator = torch.Generator().manual_seed(11)
_PADS = {"constant": "constant", "edge": "replicate", "reflect": "reflect", "wrap": "circular"}


def rand(*shape: int, low: float = 0.1, high: float = 0.9) -> Tensor:
    return torch.rand(*shape, generator=_generator, dtype=torch.float64) * (high - low) + low


def zeros(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.float64)


def flat(image: Tensor) -> Tensor:
    return image.reshape(-1, *image.shape[-3:])


def pulled(function: Callable[..., Tensor], at: Tensor, grad: Tensor) -> Tensor:
    """Apply the transpose of a linear function, or of a derivative; also for batches."""
    at = at.expand(*grad.shape[: grad.ndim - at.ndim], *at.shape) if at.ndim < grad.ndim else at
    return torch.func.vjp(function, at)[1](grad)[0]


# -- movement and resizing -------------------------------------------------------------------------


def crop(image: Tensor, box: tuple[int, int, int, int]) -> Tensor:
    left, top, right, bottom = box
    height, width = image.shape[-2:]
    return F.pad(image, (-left, right - width, -top, bottom - height))


def paste(image: Tensor, source: Tensor, position: tuple[int, int], mask: Tensor | None = None) -> Tensor:
    left, top = position
    height, width = image.shape[-2:]
    right, bottom = left + source.shape[-1], top + source.shape[-2]
    around = (left, width - right, top, height - bottom)
    weight = torch.ones_like(source[..., :1, :, :]) if mask is None else mask
    weight = F.pad(weight, around)
    return image * (1 - weight) + F.pad(source, around) * weight


def pad(image: Tensor, padding: int, mode: str = "constant") -> Tensor:
    out = F.pad(flat(image), (padding,) * 4, mode=_PADS[mode])
    return out.reshape(*image.shape[:-2], *out.shape[-2:])


def resize(image: Tensor, size: tuple[int, int], interpolation: str = "bilinear") -> Tensor:
    out = F.interpolate(flat(image), size=size, mode=interpolation, antialias=True, align_corners=False)
    return out.reshape(*image.shape[:-2], *size)


def accumulate(
    total: Tensor, count: Tensor, source: Tensor, position: tuple[int, int], weight: Tensor
) -> tuple[Tensor, Tensor]:
    left, top = position
    height, width = total.shape[-2:]
    around = (left, width - left - source.shape[-1], top, height - top - source.shape[-2])
    return total + F.pad(source * weight, around), count + F.pad(weight, around)


# -- color -----------------------------------------------------------------------------------------


def luma(x: Tensor) -> Tensor:
    weights = torch.tensor([0.299, 0.587, 0.114], dtype=x.dtype)
    return torch.einsum("c,...chw->...hw", weights, x)[..., None, :, :]


def blend(start: Any, end: Tensor, factor: Tensor) -> Tensor:
    return (start + factor * (end - start)).clamp(0, 1)


def hue(x: Tensor, turn: Tensor) -> Tensor:
    """Turn the hue by the six sectors of the color circle."""
    r, g, b = x.unbind(-3)
    high, low = x.max(-3).values, x.min(-3).values
    span = high - low
    third = torch.where(high == g, (b - r) / span + 2, (r - g) / span + 4)
    at = torch.where(high == r, ((g - b) / span) % 6, third)
    at = (at + 6 * turn) % 6
    rising, falling = low + span * (at % 1), high - span * (at % 1)
    parts = [
        (high, rising, low),
        (falling, high, low),
        (low, high, rising),
        (low, falling, high),
        (rising, low, high),
        (high, low, falling),
    ]
    out = torch.zeros_like(x)
    for i, colors in enumerate(parts):
        out = torch.where((at.floor() == i)[..., None, :, :], torch.stack(colors, -3), out)
    return out


# -- warps and filters -----------------------------------------------------------------------------


def hats(position: Tensor, size: int) -> Tensor:
    """Return the bilinear weights of all pixels of an axis."""
    return (1 - (position[..., None] - torch.arange(size, dtype=position.dtype)).abs()).clamp(min=0)


def remap(x: Tensor, map: Tensor) -> Tensor:
    across, down = hats(map[..., 0, :, :], x.shape[-1]), hats(map[..., 1, :, :], x.shape[-2])
    return torch.einsum("...cij,...hwi,...hwj->...chw", x, down, across)


def warp(x: Tensor, matrix: Tensor) -> Tensor:
    if matrix.shape[-2] == 2:
        last = torch.tensor([[0.0, 0, 1]], dtype=matrix.dtype).expand(*matrix.shape[:-2], 1, 3)
        matrix = torch.cat([matrix, last], -2)
    height, width = x.shape[-2:]
    y, z = torch.meshgrid(torch.arange(height).double(), torch.arange(width).double(), indexing="ij")
    grid = torch.stack([z, y, torch.ones_like(y)])
    u, v, w = torch.einsum("...ij,jhw->...ihw", torch.linalg.inv(matrix), grid).unbind(-3)
    return remap(x, torch.stack([u / w, v / w], -3))


def correlated(x: Tensor, kernel: Tensor) -> Tensor:
    rows, columns = kernel.shape
    planes = x.reshape(-1, 1, *x.shape[-2:])
    wide = F.pad(planes, (columns // 2, columns // 2, rows // 2, rows // 2), mode="reflect")
    return F.conv2d(wide, kernel[None, None]).reshape(x.shape)


def gaussian(x: Tensor, sigma: Tensor) -> Tensor:
    at = torch.arange(-1, 2, dtype=x.dtype)
    weight = torch.exp(-((at / sigma) ** 2) / 2)
    weight = weight / weight.sum()
    return correlated(x, weight[:, None] * weight)
