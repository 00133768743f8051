"""Decompositions of erase and blend."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops.decomposition._real import finished, parameter, working


def erase(image: Tensor, value: Tensor, boxes: Tensor) -> Tensor:
    left, top, right, bottom = (side[..., None, None, None] for side in boxes.to(image.device).unbind(-1))
    x = torch.arange(image.shape[-1], device=image.device)
    y = torch.arange(image.shape[-2], device=image.device)[:, None]
    inside = (x >= left) & (x < right) & (y >= top) & (y < bottom)
    return finished(torch.where(inside, value, image), image)


def blend(image: Tensor, other: Tensor, weight: Tensor) -> Tensor:
    start, end = image.to(working(image)), other.to(working(image))
    factor = parameter(weight, image)
    if image.dtype == torch.uint8:
        return finished((start + factor * (end - start)).clamp(0, 255).trunc(), image)
    return finished(end * factor + start * (1 - factor), image)
