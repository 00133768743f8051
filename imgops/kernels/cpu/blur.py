"""CPU kernels of the blurs: by OpenCV, plane by plane or frame by frame, and by ATen in double precision."""

from __future__ import annotations

from functools import lru_cache
from math import exp
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops._common import compare, layout
from imgops.decomposition import blur as formula
from imgops.decomposition._borders import margins
from imgops.kernels.cpu import _opencv, native
from imgops.kernels.cpu._arguments import HALF, array_per_image, in_format_of, number_per_image
from imgops.kernels.decompositions import run_decomposition


def box_blur(out: Tensor, image: Tensor, kernel_width: int, kernel_height: int, padding_mode: str) -> None:
    def blur(a: np.ndarray, b: np.ndarray | None, flag: int) -> np.ndarray:
        if a.dtype == np.uint8 and kernel_width * kernel_height == 2:
            # OpenCV 5 adds 2 to the sum of two levels before it halves it: 255 becomes 256, which is stored
            # as 0. This is the mean of each level and the one above or left of it, with halves rounded up.
            is_vertical = kernel_height == 2
            wide = cv2.copyMakeBorder(a, int(is_vertical), 0, int(not is_vertical), 0, flag)
            one, other = (wide[:-1], wide[1:]) if is_vertical else (wide[:, :-1], wide[:, 1:])
            half_apart = np.bitwise_xor(one, other)
            half_apart >>= 1
            mean = np.bitwise_or(one, other, out=b)
            mean -= half_apart
            return mean
        return cv2.blur(a, (kernel_width, kernel_height), b, borderType=flag)

    work = _opencv.with_border(blur, padding_mode, margins(kernel_height, kernel_width))
    _opencv.on_planes_with(out, image, _opencv.TYPES, work)


#: OpenCV indexes a table of weights by differences of pixels. For a NaN or infinite pixel it reads far
#: outside of the table, and the process crashes.
_MOST = 1e37


def bilateral_filter(
    out: Tensor, image: Tensor, sigma_color: Tensor, sigma_space: Tensor, kernel_size: int, padding_mode: str
) -> None:
    colors, spaces = number_per_image(sigma_color, image), number_per_image(sigma_space, image)
    reach = formula.reach(kernel_size)

    def work(frame: np.ndarray, i: int, target: np.ndarray | None) -> np.ndarray:
        made = np.empty_like(frame) if target is None else target
        if frame.dtype == np.float32 and not cv2.checkRange(frame, True, -_MOST, _MOST)[0]:
            sigmas = (
                torch.tensor(colors[i], dtype=torch.float64, device="cpu"),
                torch.tensor(spaces[i], dtype=torch.float64, device="cpu"),
            )
            planes, smooth = (torch.from_numpy(np.atleast_3d(a)).permute(2, 0, 1) for a in (frame, made))
            run_decomposition(smooth, formula.bilateral_filter, planes, *sigmas, kernel_size, padding_mode)
            return made
        # OpenCV's table of weights would be too short for a border of 0 that differs more from a pixel than
        # two pixels do; Intel's filter does not use a table.
        _opencv.filter_with_border(
            lambda a, b, flag: cv2.bilateralFilter(a, kernel_size, colors[i], spaces[i], b, flag),
            frame,
            made,
            padding_mode,
            (reach, reach, reach, reach),
            written=padding_mode == "constant"
            and (frame.dtype == np.float32 and not cv2.ipp.useIPP() and not frame.min() <= 0 <= frame.max()),
            wraps=True,
        )
        return made

    if not _opencv.on_frames(out, image, (torch.uint8, torch.float32), work):
        run_decomposition(
            out, formula.bilateral_filter, image, sigma_color, sigma_space, kernel_size, padding_mode
        )


def gaussian_blur(out: Tensor, image: Tensor, sigma: Tensor, kernel_width: int, kernel_height: int) -> None:
    levels, size = image.dtype == torch.uint8, (kernel_width, kernel_height)
    if levels and out.numel() and _by_native(out, image, array_per_image(sigma, image, 1).tolist(), size):
        return

    def blur(source: np.ndarray, target: np.ndarray, number: Any) -> None:
        across, down = both(*number)
        own = _window(kernel_width, across, levels), _window(kernel_height, down, levels)
        if own == (1, 1):
            np.copyto(target, source)
        else:
            cv2.GaussianBlur(source, own, across, target, down, cv2.BORDER_REFLECT_101)

    _opencv.on_planes_with(out, image, _opencv.TYPES, blur, (sigma, 1))


def _by_native(out: Tensor, image: Tensor, sigmas: list[list[float]], size: tuple[int, int]) -> bool:
    """Blur all images in one native call by ``(across, down)``; return False if nothing was done."""
    if not native_agrees():
        return False
    view = layout.frames if layout.writes_interleaved(out) else layout.planes
    pairs = [both(*own) for own in sigmas]
    tables = [_same_length([_weights(n, own[axis]) for own in pairs]) for axis, n in enumerate(size)]
    return native.blur(view(out), view(in_format_of(image, out)), *tables)


def both(across: float, down: float) -> tuple[float, float]:
    """Return both sigmas, 0 if a sigma follows from the size; the default of y is the sigma of x."""
    return max(float(across), 0.0), max(float(down if down > 0 else across), 0.0)


def _weights(size: int, sigma: float) -> tuple[int, ...]:
    return _weights_of_levels(size, sigma) if size > 1 and not 0 < sigma <= formula.NO_BLUR else (256,)


def _same_length(rows: list[tuple[int, ...]]) -> np.ndarray:
    """Return weights as an array, with zeros at the end of those that reach less far."""
    made = np.zeros((len(rows), max(map(len, rows))), np.int32)
    for row, weights in zip(made, rows, strict=True):
        row[: len(weights)] = weights
    return made


def _window(size: int, sigma: float, levels: bool) -> int:
    """Return the size of the window that the blur needs.

    With a small sigma only one pixel counts; on uint8 most of a wide window has weights of 0.
    """
    if sigma <= 0:  # it follows from the size
        return size
    if sigma <= formula.NO_BLUR:
        return 1
    return _short_window(size, sigma) if levels and size > 3 and _cuts_windows() else size


@lru_cache(maxsize=1024)
def _short_window(size: int, sigma: float) -> int:
    """Return the size of the smallest window with the same weights in OpenCV's 8 bits."""
    weights = _weights_of_levels(size, sigma)
    for short in range(2 * len(weights) - 1, size, 2):
        if _weights_of_levels(short, sigma) == weights:
            return short
    return size


@lru_cache(maxsize=1024)
def _weights_of_levels(size: int, sigma: float) -> tuple[int, ...]:
    """Return OpenCV's weights for uint8, in 256ths, from the middle outwards, without the zeros at the end.

    From the outside in, each weight is rounded with the error of the weights before it; the middle weight
    takes what is missing.
    """
    if sigma <= 0 and size in formula.SHORT_KERNELS:
        return formula.SHORT_KERNELS[size][size // 2 :]
    sigma = sigma if sigma > 0 else formula.sigma_of(size)
    scale = -0.5 / (sigma * sigma)
    values = [exp(scale * x * x) for x in range(size // 2, 0, -1)]
    total = 2 * sum(values) + 1
    found, error = [], 0.0
    for value in values:
        exact = value / total * 256 + error
        found.append(round(exact))
        error = exact - found[-1]
    outwards = [256 - 2 * sum(found), *reversed(found)]
    while len(outwards) > 1 and outwards[-1] == 0:
        outwards.pop()
    return tuple(outwards)


#: The noise on which our weights are compared with OpenCV, in the windows and with the sigmas below.
_NOISE = np.random.default_rng(0).integers(0, 256, (37, 83), dtype=np.uint8)


_PROBES = (
    *((3, 0.8), (5, 1.1), (9, 1.5), (23, 0.2), (23, 0.6), (23, 1.1), (31, 1.9), (15, 1.3)),
    *((3, 0.0), (5, 0.0), (7, 0.0), (9, 0.0), (11, 0.0)),
)


@native.comparison("gaussian_blur", "OpenCV")
def native_agrees() -> bool:
    """Compare the native blur with the installed OpenCV, once; return whether all bits are the same."""
    for size, sigma in _PROBES:
        found = np.empty_like(_NOISE)
        side = _same_length([_weights(size, sigma)])
        if not native.blur(found[None], _NOISE[None], side, side):
            return False
        if not np.array_equal(found, cv2.GaussianBlur(_NOISE, (size, size), sigma, None, sigma, 4)):
            return False
    return True


@compare.comparison("gaussian_blur in a shorter window", "OpenCV")
def _cuts_windows() -> bool:
    """Return whether the installed OpenCV gives the same bits with a shorter window, compared once."""
    for size, sigma in _PROBES:
        short = _short_window(size, sigma)
        whole, cut = (cv2.GaussianBlur(_NOISE, (n, n), sigma, None, sigma, 4) for n in (size, short))
        if not np.array_equal(whole, cut):
            return False
    return True


def median_blur(out: Tensor, image: Tensor, kernel_size: int) -> None:
    types = (torch.uint8, torch.uint16, torch.float32) if kernel_size <= 5 else (torch.uint8,)

    def blur(source: np.ndarray, target: np.ndarray) -> None:
        cv2.medianBlur(source, kernel_size, target)

    # OpenCV takes 1, 3 or 4 channels.
    work = _opencv.each_channel(blur) if image.shape[-3] == 2 else blur
    if _opencv.on_planes_with(out, image, types, work):
        return
    single = image.detach().float() if image.dtype in HALF else image.detach()
    found = torch.empty(image.shape, dtype=single.dtype, device="cpu")
    for plane, target in zip(single.flatten(0, -3).numpy(), found.flatten(0, -3).numpy(), strict=True):
        # Row by row, because all windows at once would need much memory.
        middle = kernel_size * kernel_size // 2
        wide = np.pad(plane, kernel_size // 2, mode="edge")
        for row, windows in zip(
            target, np.lib.stride_tricks.sliding_window_view(wide, (kernel_size, kernel_size)), strict=True
        ):
            row[:] = np.partition(windows.reshape(len(row), -1), middle)[:, middle]
    out.copy_(found)
