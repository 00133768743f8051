"""CPU kernels of the filters: OpenCV's, plane by plane or frame by frame; ATen in double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops.decomposition import filter as formula
from imgops.kernels.cpu import _blur, _border, _color, _opencv

#: PIL's SMOOTH, without its divisor.
_SMOOTH = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], dtype=np.float32)


def gaussian_blur(out: Tensor, image: Tensor, sigma: Tensor, kernel_width: int, kernel_height: int) -> None:
    def blur(source: np.ndarray, target: np.ndarray, number: Any) -> None:
        across, down = (float(v) for v in number)
        size = _window(across, down, kernel_width, kernel_height)
        if size == (1, 1):
            np.copyto(target, source)
        else:  # a kernel of one pixel takes any sigma
            cv2.GaussianBlur(source, size, across or 1.0, target, down or 1.0, cv2.BORDER_REFLECT_101)

    known = image.dtype == torch.uint8 and out.numel() > 0 and _blur.agrees()
    if known and _native_blur(out, image, sigma, kernel_width, kernel_height):
        return
    if not _each(out, image, sigma, 1, blur):
        _color.computed(out, formula.gaussian_blur, image, sigma.detach(), kernel_width, kernel_height)


def _window(across: float, down: float, width: int, height: int) -> tuple[int, int]:
    """A deviation of 0 looks at one pixel only."""
    return width if across > 0 else 1, height if down > 0 else 1


def _native_blur(out: Tensor, image: Tensor, sigma: Tensor, width: int, height: int) -> bool:
    image = _color.readable(image, out)
    pairs = _color.samples(sigma, image, 1).tolist()
    each = [(out, image)] if len(pairs) == 1 else [(out[i], image[i]) for i in np.ndindex(*image.shape[:-3])]
    for (target, source), (across, down) in zip(each, pairs, strict=True):
        size = _window(across, down, width, height)
        if size == (1, 1):
            target.copy_(source)
        elif not _blur.blur(target, source, across or 1.0, down or 1.0, *size):
            return False
    return True


def filter2d(out: Tensor, image: Tensor, kernel: Tensor, border: str) -> None:
    rows, columns = kernel.shape[-2:]
    around = rows // 2, rows - 1 - rows // 2, columns // 2, columns - 1 - columns // 2

    def correlate(source: np.ndarray, target: np.ndarray, weights: np.ndarray) -> None:
        if border == "wrap":  # which filter2D does not know
            wide = cv2.copyMakeBorder(source, *around, cv2.BORDER_WRAP)
            whole = cv2.filter2D(wide, -1, weights, borderType=cv2.BORDER_CONSTANT)
            height, width = source.shape[:2]
            np.copyto(target, whole[around[0] : around[0] + height, around[2] : around[2] + width])
        else:
            cv2.filter2D(source, -1, weights, dst=target, borderType=_border.OPENCV[border])

    if not _each(out, image, kernel, 2, correlate):
        _color.computed(out, formula.filter2d, image, kernel.detach(), border)


def _each(
    out: Tensor,
    image: Tensor,
    parameter: Tensor,
    core: int,
    work: Callable[[np.ndarray, np.ndarray, Any], None],
) -> bool:
    """``work(source, target, parameter)`` of every plane or frame; False where OpenCV cannot."""

    def in_turn(sources: np.ndarray, targets: np.ndarray, image: Tensor, repeat: int) -> None:
        numbers = _color.samples(parameter, image, core)
        for i, (source, target) in enumerate(zip(sources, targets, strict=True)):
            work(source, target, numbers[i // repeat % len(numbers)])

    return _opencv.each(out, image, (torch.uint8, torch.float32), in_turn)


def adjust_sharpness(out: Tensor, image: Tensor, factor: Tensor) -> None:
    if not _color.knows(image) or min(image.shape[-2:]) < 3 or image.numel() == 0:
        _color.computed(out, formula.adjust_sharpness, image, factor)
        return
    image = _color.readable(image, out)
    smooth = torch.empty_like(out)
    weights = torch.from_numpy(_SMOOTH / 13)
    filter2d(smooth, image, weights, "edge")
    for edge in ((..., 0), (..., -1), (..., 0, slice(None)), (..., -1, slice(None))):
        smooth[edge] = image[edge]  # PIL leaves the outermost pixels alone
    factors = _color.each(factor, image)
    _color.images(out, image, smooth, factors)
    if image.dtype == torch.float32:
        out.clamp_(0, 1)
