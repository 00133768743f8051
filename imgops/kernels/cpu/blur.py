"""CPU kernels of the smoothing filters: OpenCV's, and PIL's unsharp mask."""

from __future__ import annotations

import cv2
import numpy as np
import torch
from PIL import Image, ImageFilter
from torch import Tensor

from imgops.decomposition import blur as formula
from imgops.decomposition._borders import margins
from imgops.kernels.cpu import _opencv, _pil
from imgops.kernels.cpu._common import number_per_image, run_decomposition


def box_blur(out: Tensor, image: Tensor, kernel_width: int, kernel_height: int, border: str) -> None:
    def blur(a: np.ndarray, b: np.ndarray | None, flag: int) -> np.ndarray:
        return cv2.blur(a, (kernel_width, kernel_height), b, borderType=flag)

    work = _opencv.with_border(blur, border, margins(kernel_height, kernel_width))
    _opencv.on_planes_with(out, image, _opencv.TYPES, work)


#: OpenCV reads a table of weights by the differences of pixels. Where one is NaN or infinite it reads far
#: outside of the table: a process that filters such an image ends.
_MOST = 1e37


def _is_beyond_the_table(frame: np.ndarray) -> bool:
    """Whether a border of 0 differs more from a pixel than two pixels do; Intel's own filter has no table."""
    return frame.dtype == np.float32 and not cv2.ipp.useIPP() and not frame.min() <= 0 <= frame.max()


def bilateral_filter(
    out: Tensor, image: Tensor, sigma_color: Tensor, sigma_space: Tensor, diameter: int, border: str
) -> None:
    colors, spaces = number_per_image(sigma_color, image), number_per_image(sigma_space, image)
    reach = formula.reach(diameter)

    def work(frame: np.ndarray, i: int, target: np.ndarray | None) -> np.ndarray:
        made = np.empty_like(frame) if target is None else target
        if frame.dtype == np.float32 and not cv2.checkRange(frame, True, -_MOST, _MOST)[0]:
            sigmas = torch.tensor(colors[i]), torch.tensor(spaces[i])
            planes, smooth = (torch.from_numpy(np.atleast_3d(a)).permute(2, 0, 1) for a in (frame, made))
            run_decomposition(smooth, formula.bilateral_filter, planes, *sigmas, diameter, border)
            return made
        _opencv.filtered(
            lambda a, b, flag: cv2.bilateralFilter(a, diameter, colors[i], spaces[i], b, flag),
            frame,
            made,
            border,
            (reach, reach, reach, reach),
            written=border == "constant" and _is_beyond_the_table(frame),
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
