"""CPU kernels of the thresholds, by OpenCV."""

from __future__ import annotations

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops.kernels.cpu import _opencv, _threads

_OPERATIONS = {
    "binary": cv2.THRESH_BINARY,
    "binary_inv": cv2.THRESH_BINARY_INV,
    "trunc": cv2.THRESH_TRUNC,
    "tozero": cv2.THRESH_TOZERO,
    "tozero_inv": cv2.THRESH_TOZERO_INV,
    "otsu": cv2.THRESH_OTSU,
    "triangle": cv2.THRESH_TRIANGLE,
}
#: One more than the greatest level.
_LEVELS = {np.dtype(np.uint8): 256.0, np.dtype(np.uint16): 65536.0}
_METHODS = {"mean": cv2.ADAPTIVE_THRESH_MEAN_C, "gaussian": cv2.ADAPTIVE_THRESH_GAUSSIAN_C}


@_threads.waits_for_memory
def threshold(out: Tensor, image: Tensor, threshold: Tensor, max_value: Tensor, operation: str) -> None:
    flag, by_histogram = _OPERATIONS[operation], operation in ("otsu", "triangle")

    def work(source: np.ndarray, target: np.ndarray, limit: float, top: float) -> None:
        if source.dtype in _LEVELS:  # OpenCV makes an integer of the threshold, which may overflow
            limit = min(max(limit, -1.0), _LEVELS[source.dtype])
        cv2.threshold(source, limit, top, flag, dst=target)

    apart = _opencv.each_channel(work) if by_histogram else work
    _opencv.on_planes_with(out, image, _opencv.TYPES, apart, (threshold, 0), (max_value, 0))


def adaptive_threshold(
    out: Tensor, image: Tensor, max_value: Tensor, c: Tensor, kernel_size: int, method: str, operation: str
) -> None:
    flags = _METHODS[method], _OPERATIONS[operation]

    def work(source: np.ndarray, target: np.ndarray, top: float, less: float) -> None:
        cv2.adaptiveThreshold(source, top, *flags, kernel_size, less, dst=target)

    _opencv.on_planes_with(out, image, (torch.uint8,), _opencv.each_channel(work), (max_value, 0), (c, 0))
