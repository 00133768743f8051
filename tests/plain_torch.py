"""The operators written in plain PyTorch, for comparison: slow, obvious, and sharing no code with imgops."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

_PADS = {"constant": "constant", "edge": "replicate", "reflect": "reflect", "wrap": "circular"}


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
    flat = image.reshape(-1, *image.shape[-3:])
    out = F.pad(flat, (padding,) * 4, mode=_PADS[mode])
    return out.reshape(*image.shape[:-2], *out.shape[-2:])


def resize(image: Tensor, size: tuple[int, int], interpolation: str = "bilinear") -> Tensor:
    flat = image.reshape(-1, *image.shape[-3:])
    out = F.interpolate(flat, size=size, mode=interpolation, antialias=True, align_corners=False)
    return out.reshape(*image.shape[:-2], *size)


def pad_adjoint(grad: Tensor, left: int, top: int, right: int, bottom: int, mode: str) -> Tensor:
    height, width = grad.shape[-2] - top - bottom, grad.shape[-1] - left - right
    flat = grad.reshape(-1, *grad.shape[-3:])
    zero = torch.zeros_like(flat[..., :height, :width])
    _, pull = torch.func.vjp(lambda x: F.pad(x, (left, right, top, bottom), mode=_PADS[mode]), zero)
    return pull(flat)[0].reshape(*grad.shape[:-2], height, width)


def resize_adjoint(
    grad: Tensor, box: None, height: int, width: int, interpolation: str, antialias: bool
) -> Tensor:
    zero = grad.new_zeros((*grad.shape[:-2], height, width))
    _, pull = torch.func.vjp(lambda x: resize(x, tuple(grad.shape[-2:]), interpolation), zero)
    return pull(grad)[0]


def accumulate(
    total: Tensor, count: Tensor, source: Tensor, position: tuple[int, int], weight: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    left, top = position
    height, width = total.shape[-2:]
    around = (left, width - left - source.shape[-1], top, height - top - source.shape[-2])
    weight = torch.ones_like(source[..., :1, :, :]) if weight is None else weight
    return total + F.pad(source * weight, around), count + F.pad(weight, around)
