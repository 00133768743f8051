"""Which pixel a padded pixel repeats: OpenCV's border rules as tables."""

from __future__ import annotations

import cv2
import numpy as np

#: torchvision's names for OpenCV's borders.
OPENCV = {
    "constant": cv2.BORDER_CONSTANT,
    "edge": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT_101,
    "symmetric": cv2.BORDER_REFLECT,
    "wrap": cv2.BORDER_WRAP,
}


def indices(mode: str, size: int, before: int, after: int) -> np.ndarray:
    """``cv2.borderInterpolate(i, size, mode)`` for each ``i`` from ``-before`` to ``size + after``."""
    i = np.arange(-before, size + after, dtype=np.int64)
    if mode == "edge":
        return i.clip(0, size - 1)
    if mode == "wrap":
        return i % size
    if mode == "symmetric":
        i %= 2 * size
        return np.minimum(i, 2 * size - 1 - i)
    if size == 1:
        return np.zeros_like(i)
    i %= 2 * size - 2
    return np.minimum(i, 2 * size - 2 - i)
