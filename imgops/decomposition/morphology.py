"""Decompositions of the morphological operators: a running minimum or maximum over the window."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops.decomposition._borders import margins, widen
from imgops.decomposition._precision import LEVELS, finish


def erode(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    return finish(_smallest(_computed(image), kernel != 0, padding_mode), image)


def dilate(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    return finish(_largest(_computed(image), kernel != 0, padding_mode), image)


def hit_or_miss(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    hit, miss = _smallest(image, kernel > 0, padding_mode), _smallest(255 - image, kernel < 0, padding_mode)
    return finish(torch.bitwise_and(hit, miss), image)


def _computed(image: Tensor) -> Tensor:
    """Return an image in a dtype that ATen compares; int32 has the levels of uint16."""
    return image.to(torch.int32) if image.dtype == torch.uint16 else image


def _smallest(image: Tensor, member: Tensor, padding_mode: str) -> Tensor:
    if not image.dtype.is_floating_point:
        most = LEVELS.get(image.dtype, LEVELS[torch.uint16])  # those of uint16 are in int32
        return most - _largest(most - image, member, padding_mode)
    return -_largest(-image, member, padding_mode)


def _largest(image: Tensor, member: Tensor, padding_mode: str) -> Tensor:
    """Return the maximum over the members of a window ``(..., h, w)``; without members, the least value."""
    rows, columns = member.shape[-2:]
    height, width = image.shape[-2:]
    least = -torch.inf if image.dtype.is_floating_point else 0
    # OpenCV's constant border is the least finite value, which half precision cannot represent.
    finite = image.dtype in (torch.float32, torch.float64)
    outside = torch.finfo(image.dtype).min if finite else least
    wide = widen(image, margins(rows, columns), padding_mode, outside)
    member = member.to(image.device)[..., None, None, None]
    found = torch.full_like(image, least)
    for y in range(rows):
        for x in range(columns):
            value = wide[..., y : y + height, x : x + width]
            inside = member[..., y, x, :, :, :]
            found = torch.maximum(found, torch.where(inside, value, least))
    return found
