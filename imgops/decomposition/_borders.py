"""Border rules: which pixel of the image replaces a pixel outside of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from imgops._common.torch_private import sym_max


def fold_positions(mode: str, i: Tensor, size: int) -> Tensor:
    """Return the index of the pixel that a border rule shows at each of the positions ``i``."""
    if mode == "edge":
        return i.clamp(0, size - 1)
    if mode == "wrap":
        return torch.remainder(i, size)
    if mode == "symmetric":
        i = torch.remainder(i, 2 * size)
        return torch.minimum(i, 2 * size - 1 - i)
    period: Any = sym_max(2 * size - 2, 1)
    i = torch.remainder(i, period)
    return torch.minimum(i, period - i)


def widen(image: Tensor, around: tuple[int, int, int, int], padding_mode: str, outside: float = 0) -> Tensor:
    """Extend an image by its border; ``around`` is (top, bottom, left, right)."""
    top, bottom, left, right = around
    if padding_mode == "constant":
        return torch.nn.functional.pad(image, (left, right, top, bottom), value=outside)
    height, width = image.shape[-2:]
    y = torch.arange(-top, height + bottom, device=image.device, dtype=torch.int64)
    x = torch.arange(-left, width + right, device=image.device, dtype=torch.int64)
    return image.index_select(-2, fold_positions(padding_mode, y, height)).index_select(
        -1, fold_positions(padding_mode, x, width)
    )


def margins(rows: int, columns: int) -> tuple[int, int, int, int]:
    """Return how far a window reaches beyond an image: (top, bottom, left, right).

    The anchor of the window is at ``rows // 2, columns // 2``.
    """
    return rows // 2, rows - 1 - rows // 2, columns // 2, columns - 1 - columns // 2


def correlate_along(image: Tensor, taps: Sequence[float], dim: int, padding_mode: str) -> Tensor:
    """Correlate an image along one axis with a few taps, whose anchor is at ``len(taps) // 2``."""
    if len(taps) == 1:
        return image * taps[0]
    before, after = len(taps) // 2, len(taps) - 1 - len(taps) // 2
    around = (before, after, 0, 0) if dim == -2 else (0, 0, before, after)
    wide, size = widen(image, around, padding_mode), image.shape[dim]
    total, *rest = (tap * wide.narrow(dim, i, size) for i, tap in enumerate(taps) if tap)
    for term in rest:
        total = total + term
    return total
