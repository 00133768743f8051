"""CPU kernels of the smoothing filters: OpenCV's, and PIL's unsharp mask."""

from __future__ import annotations

from math import sqrt

import cv2
import numpy as np
import torch
from PIL import Image, ImageFilter
from torch import Tensor

from imgops.decomposition import smoothing as formula
from imgops.decomposition._borders import margins
from imgops.kernels.cpu import _opencv, _pil
from imgops.kernels.cpu._common import number_per_image, run_decomposition


def box_blur(out: Tensor, image: Tensor, kernel_width: int, kernel_height: int, border: str) -> None:
    size, around = (kernel_width, kernel_height), margins(kernel_height, kernel_width)

    def work(source: np.ndarray, target: np.ndarray) -> None:
        _opencv.filtered(
            lambda a, b, flag: cv2.blur(a, size, b, borderType=flag), source, target, border, around
        )

    _opencv.on_planes_with(out, image, (torch.uint8, torch.float32, torch.float64), work)


def bilateral_filter(
    out: Tensor, image: Tensor, sigma_color: Tensor, sigma_space: Tensor, diameter: int, border: str
) -> None:
    colors, spaces = number_per_image(sigma_color, image), number_per_image(sigma_space, image)
    reach = formula.reach(diameter)

    def work(frame: np.ndarray, i: int, target: np.ndarray | None) -> np.ndarray:
        made = np.empty_like(frame) if target is None else target
        _opencv.filtered(
            lambda a, b, flag: cv2.bilateralFilter(a, diameter, colors[i], spaces[i], b, flag),
            frame,
            made,
            border,
            (reach, reach, reach, reach),
        )
        return made

    if not _opencv.on_frames(out, image, (torch.uint8, torch.float32), work):
        run_decomposition(out, formula.bilateral_filter, image, sigma_color, sigma_space, diameter, border)


def unsharp_mask(out: Tensor, image: Tensor, radius: Tensor, percent: Tensor, threshold: Tensor) -> None:
    if image.dtype == torch.uint8:
        _pil.run(_sharpened, out, image, radius, percent, threshold)
        return

    def work(source: np.ndarray, target: np.ndarray, radius: float, percent: float, threshold: float) -> None:
        taps, blurred = _box(float(radius)), source
        for _ in range(_PASSES):
            blurred = cv2.sepFilter2D(blurred, -1, taps, taps, borderType=cv2.BORDER_REPLICATE)
        np.subtract(source, blurred.reshape(source.shape), out=target)
        low = np.abs(target) * 255 <= threshold
        target *= percent / 100
        np.copyto(target, 0, where=low)
        target += source
        np.clip(target, 0, 1, out=target)

    parameters = (radius, 0), (percent, 0), (threshold, 0)
    _opencv.on_planes_with(out, image, (torch.float32, torch.float64), work, *parameters)


#: How many boxes PIL's Gaussian is made of.
_PASSES = 3


def _box(radius: float) -> np.ndarray:
    """The weights of a box of fractional width: three of them have the deviation ``radius``."""
    variance = radius * radius / _PASSES
    whole = int((sqrt(12 * variance + 1) - 1) / 2)
    part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance) / (6 * (variance - (whole + 1) ** 2))
    taps = np.array([part, *[1.0] * (2 * whole + 1), part])
    return taps / taps.sum()


def _sharpened(image: Image.Image, radius: float, percent: float, threshold: float) -> Image.Image:
    return image.filter(ImageFilter.UnsharpMask(radius, int(percent), int(threshold)))
