"""CPU kernels of the smoothing filters: OpenCV's, and PIL's unsharp mask."""

from __future__ import annotations

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
    def blur(a: np.ndarray, b: np.ndarray | None, flag: int) -> np.ndarray:
        return cv2.blur(a, (kernel_width, kernel_height), b, borderType=flag)

    work = _opencv.with_border(blur, border, margins(kernel_height, kernel_width))
    _opencv.on_planes_with(out, image, _opencv.TYPES, work)


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
        taps, blurred = _box(radius), source
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


def _box(radius: float) -> np.ndarray:
    """The weights of a box of fractional width: three of them have the deviation ``radius``."""
    whole, part = (v.item() for v in formula.box(torch.tensor(radius, dtype=torch.float64), False))
    taps = np.array([part, *[1.0] * (2 * int(whole) + 1), part])
    return taps / taps.sum()


def _sharpened(image: Image.Image, radius: float, percent: float, threshold: float) -> Image.Image:
    return image.filter(ImageFilter.UnsharpMask(radius, int(percent), int(threshold)))
