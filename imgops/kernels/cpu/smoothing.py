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
    else:
        run_decomposition(out, formula.unsharp_mask, image, radius, percent, threshold)


def _sharpened(image: Image.Image, radius: float, percent: float, threshold: float) -> Image.Image:
    return image.filter(ImageFilter.UnsharpMask(radius, int(percent), int(threshold)))
