"""CPU kernels of the filters: OpenCV's correlation, and PIL's sharpness and unsharp mask."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageFilter
from torch import Tensor

from imgops.decomposition import filter as formula
from imgops.decomposition._borders import margins
from imgops.decomposition._precision import LEVELS
from imgops.kernels.cpu import _opencv, _pil, native
from imgops.kernels.cpu._arguments import in_format_of, number_per_image
from imgops.kernels.decompositions import run_decomposition

#: The kernel of PIL's SMOOTH filter, without its divisor.
_SMOOTH = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], dtype=np.float32)


def filter2d(out: Tensor, image: Tensor, kernel: Tensor, padding_mode: str) -> None:
    def correlate(a: np.ndarray, b: np.ndarray | None, flag: int, weights: np.ndarray) -> np.ndarray:
        if a.dtype == np.float64 and weights.size > _MOST_WEIGHTS:
            return _correlate_in_parts(a, b, flag, weights)
        return cv2.filter2D(a, -1, weights, dst=b, borderType=flag)

    work = _opencv.with_border(correlate, padding_mode, margins(*kernel.shape[-2:]))
    _opencv.on_planes_with(out, image, _opencv.TYPES, work, (kernel, 2))


#: With more weights OpenCV correlates float64 by a Fourier transform, which spreads the rounding error of the
#: largest pixel everywhere.
_MOST_WEIGHTS = 49


def _correlate_in_parts(
    image: np.ndarray, target: np.ndarray | None, border: int, weights: np.ndarray
) -> np.ndarray:
    """Add up the correlations with parts of a kernel, each of which OpenCV computes as a sum."""
    (height, width), (rows, columns) = image.shape[:2], weights.shape
    wide = cv2.copyMakeBorder(image, *margins(rows, columns), border)
    total = np.empty_like(image) if target is None else target
    total[...] = 0
    across = min(columns, _MOST_WEIGHTS)
    down = _MOST_WEIGHTS // across
    for top in range(0, rows, down):
        for left in range(0, columns, across):
            part = np.ascontiguousarray(weights[top : top + down, left : left + across])
            if part.any():
                seen = wide[top : top + height + len(part) - 1, left : left + width + part.shape[1] - 1]
                found = cv2.filter2D(seen, -1, part, anchor=(0, 0), borderType=cv2.BORDER_REPLICATE)
                total += found[:height, :width].reshape(total.shape)
    return total


#: The outermost pixels, which PIL leaves alone.
_RIMS: tuple[Any, ...] = ((..., 0), (..., -1), (..., 0, slice(None)), (..., -1, slice(None)))


@_pil.compared(lambda image, factor: ImageEnhance.Sharpness(image).enhance(factor))
def adjust_sharpness(out: Tensor, image: Tensor, factor: Tensor) -> None:
    if not native.has_passes(image) or min(image.shape[-2:]) < 3 or image.numel() == 0:
        run_decomposition(out, formula.adjust_sharpness, image, factor)
        return
    image = in_format_of(image, out)
    if image.dtype == torch.uint8:
        native.sharpen(out, image, number_per_image(factor, image))
        return
    smooth = torch.empty_like(out)
    weights = torch.from_numpy(_SMOOTH / 13)
    filter2d(smooth, image, weights, "edge")
    native.point("images", out, image, number_per_image(factor, image), other=smooth)
    for rim in _RIMS:
        out[rim] = image[rim]
    out.clamp_(0, 1)


def unsharp_mask(out: Tensor, image: Tensor, radius: Tensor, percent: Tensor, threshold: Tensor) -> None:
    if image.dtype == torch.uint8:
        _pil.run(_sharpen, out, image, radius, percent, threshold)
        return
    if image.dtype == torch.uint16:
        real = torch.empty_like(out, dtype=torch.float64)
        unsharp_mask(real, image.detach().double().div_(LEVELS[image.dtype]), radius, percent, threshold)
        out.copy_(real.mul_(LEVELS[image.dtype]).round_())
        return

    def work(source: np.ndarray, target: np.ndarray, radius: float, percent: float, threshold: float) -> None:
        taps, blurred = box_taps(float(radius)), source
        for _ in range(formula.PASSES):
            blurred = cv2.sepFilter2D(blurred, -1, taps, taps, borderType=cv2.BORDER_REPLICATE)
        np.subtract(source, blurred.reshape(source.shape), out=target)
        low = np.abs(target) * 255 <= threshold
        target *= percent / 100
        np.copyto(target, 0, where=low)
        target += source
        np.clip(target, 0, 1, out=target)

    parameters = (radius, 0), (percent, 0), (threshold, 0)
    _opencv.on_planes_with(out, image, (torch.float32, torch.float64), work, *parameters)


@lru_cache(maxsize=256)
def box_taps(radius: float) -> np.ndarray:
    """Return the weights of a box of fractional width; three such boxes have the deviation ``radius``."""
    size = torch.tensor(radius, dtype=torch.float64, device="cpu")
    whole, part = (v.item() for v in formula.box(size, False))
    taps = np.array([part, *[1.0] * (2 * int(whole) + 1), part])
    return taps / taps.sum()


def _sharpen(image: Image.Image, radius: float, percent: float, threshold: float) -> Image.Image:
    return image.filter(ImageFilter.UnsharpMask(radius, int(percent), int(threshold)))
