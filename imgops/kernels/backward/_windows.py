"""The gradient of an operator that chooses a pixel of a window, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops._common import layout
from imgops.decomposition._borders import margins
from imgops.kernels.backward._arguments import Grads, in_real
from imgops.kernels.cpu import _threads, native
from imgops.kernels.cpu._arguments import real
from imgops.kernels.cpu._opencv import BORDERS


def choice(
    grads: Grads,
    grad: Tensor,
    image: Tensor,
    members: np.ndarray,
    padding_mode: str,
    choose: Callable[[Tensor, Tensor], None],
    first: bool = False,
) -> Any:
    """Give each gradient to the equal pixels of its window; ``members``: (1 or images, h, w)."""
    height, width = image.shape[-2:]
    top, bottom, left, right = margins(*members.shape[-2:])
    folds = padding_mode != "constant" and (max(top, bottom) >= height or max(left, right) >= width)
    if image.numel() == 0 or folds or not native.is_built():
        return NotImplemented
    places = [np.argwhere(m).astype(np.int32, order="C") for m in members]
    source = real(image)
    with in_real(grads[0], grad) as (out, given):
        chosen = torch.empty_like(source)
        choose(chosen, source)
        planes = [layout.planes(x) for x in (cast("Tensor", out), given, source, chosen)]
        channels = image.shape[-3] if len(places) > 1 else len(planes[0])
        rows, columns = _shown(height, top, bottom, padding_mode), _shown(width, left, right, padding_mode)

        def work(start: int, stop: int) -> None:
            for i in range(start, stop):
                target, g, x, y = (p[i] for p in planes)
                around = top, bottom, left, right, BORDERS[padding_mode]
                wide = cv2.copyMakeBorder(x, *around, value=np.nan)  # nothing equals a constant border
                back = np.zeros_like(wide)
                native.select_back(back, wide, y, g, places[i // channels], first)
                inner = slice(top, top + height), slice(left, left + width)
                target[:] = back[inner]
                if padding_mode != "constant":
                    back[inner] = 0
                    at = np.nonzero(back)
                    np.add.at(target, (rows[at[0]], columns[at[1]]), back[at])

        _threads.split(len(planes[0]), given.numel(), work)
    return None


def _shown(size: int, before: int, after: int, padding_mode: str) -> np.ndarray:
    """Return the pixel that each place of an axis with its border shows."""
    row = np.arange(size, dtype=np.float32)[None]
    return cv2.copyMakeBorder(row, 0, 0, before, after, BORDERS[padding_mode])[0].astype(np.intp)
