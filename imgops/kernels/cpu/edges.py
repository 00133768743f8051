"""CPU kernels of the derivatives and of canny, by OpenCV."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops._common import layout
from imgops.decomposition import edges as formula
from imgops.kernels.cpu import _opencv
from imgops.kernels.cpu._arguments import number_per_image
from imgops.kernels.decompositions import run_decomposition

#: More than any gradient of levels.
_MOST = 2.0**30
#: OpenCV's depth of a derivative, by the dtype of its image.
_DEPTHS = {
    np.dtype(np.uint8): cv2.CV_16S,
    np.dtype(np.uint16): cv2.CV_32F,
    np.dtype(np.float32): cv2.CV_32F,
    np.dtype(np.float64): cv2.CV_64F,
}


def sobel(out: Tensor, image: Tensor, dx: int, dy: int, kernel_size: int, padding_mode: str) -> None:
    _differentiate(
        out,
        image,
        padding_mode,
        max(kernel_size, 3) // 2,
        lambda a, depth, b, flag: cv2.Sobel(a, depth, dx, dy, b, kernel_size, borderType=flag),
    )


def scharr(out: Tensor, image: Tensor, dx: int, dy: int, padding_mode: str) -> None:
    _differentiate(
        out,
        image,
        padding_mode,
        1,
        lambda a, depth, b, flag: cv2.Scharr(a, depth, dx, dy, b, borderType=flag),
    )


def laplacian(out: Tensor, image: Tensor, kernel_size: int, padding_mode: str) -> None:
    def derive(a: np.ndarray, depth: int, b: np.ndarray | None, flag: int) -> np.ndarray:
        if kernel_size != 5 or a.ndim != 2 or a.dtype != np.float32:
            return cv2.Laplacian(a, depth, b, kernel_size, borderType=flag)
        # OpenCV leaves these planes to Intel's library, whose code for AVX2 rounds by the address of the
        # result (docs/reports/opencv-laplacian.md). PyTorch's memory always begins at a multiple of 64, so
        # that a plane has the same bits alone and anywhere in a batch.
        made = torch.empty(a.shape, dtype=torch.float32, device="cpu").numpy()
        cv2.Laplacian(a, depth, made, kernel_size, borderType=flag)
        if b is not None:
            np.copyto(b, made)
        return made

    _differentiate(out, image, padding_mode, max(kernel_size, 3) // 2, derive)


def _differentiate(
    out: Tensor, image: Tensor, padding_mode: str, reach: int, call: Callable[..., np.ndarray]
) -> None:
    def derive(a: np.ndarray, b: np.ndarray | None, flag: int) -> np.ndarray:
        return call(a, _DEPTHS[a.dtype], b, flag)

    work = _opencv.with_border(derive, padding_mode, (reach, reach, reach, reach))
    _opencv.on_planes_with(out, image, _opencv.TYPES, work)


def canny(out: Tensor, image: Tensor, low: Tensor, high: Tensor, kernel_size: int, l2_gradient: bool) -> None:
    if image.shape[-3] > layout.MAX_CHANNELS:
        run_decomposition(out, formula.canny, image, low, high, kernel_size, l2_gradient)
        return
    lows, highs = number_per_image(low, image), number_per_image(high, image)

    def work(frame: np.ndarray, i: int, target: np.ndarray | None) -> np.ndarray:
        # OpenCV makes integers of the thresholds, which may overflow; no gradient is as large.
        low, high = (min(max(float(t), -_MOST), _MOST) for t in (lows[i], highs[i]))
        return cv2.Canny(frame, low, high, target, kernel_size, l2_gradient)

    _opencv.on_frames(out, image, (torch.uint8,), work)
