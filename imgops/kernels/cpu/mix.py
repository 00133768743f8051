"""CPU kernels of erase and blend."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from imgops.decomposition import mix as formula
from imgops.kernels.cpu import _color
from imgops.kernels.cpu.compose import clip


def erase(out: Tensor, image: Tensor, value: Tensor, boxes: Tensor) -> None:
    out.copy_(image.detach())
    value = value.detach().expand(out.shape)
    batch = image.shape[:-3]
    every = (
        boxes.reshape(-1, 4).tolist()
        if boxes.numel() == 4
        else boxes.expand(*batch, 4).reshape(-1, 4).tolist()
    )
    places = [()] if len(every) == 1 else list(np.ndindex(*batch))
    for place, (left, top, right, bottom) in zip(places, every, strict=True):
        x0, x1 = clip(left, right, image.shape[-1])
        y0, y1 = clip(top, bottom, image.shape[-2])
        if x0 < x1 and y0 < y1:
            window = (*place, ..., slice(y0, y1), slice(x0, x1))
            out[window] = value[window]


def blend(out: Tensor, image: Tensor, other: Tensor, weight: Tensor) -> None:
    if not _color.knows(image) or image.numel() == 0:
        _color.computed(out, formula.blend, image, other.detach(), weight)
        return
    start, end = _color.readable(image, out), _color.readable(other, out)
    _color.images(out, end, start, _color.each(weight, image))
