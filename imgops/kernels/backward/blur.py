"""CPU kernels of the gradients of the blurs: a Gaussian over a border of zeros, which is folded back."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cv2
import numpy as np
from torch import Tensor

from imgops._common import layout
from imgops.decomposition import blur as formula
from imgops.kernels.backward._arguments import Grads, add_per_image, in_real, sum_of_products
from imgops.kernels.backward._windows import choice
from imgops.kernels.cpu import _threads, blur
from imgops.kernels.cpu._arguments import array_per_image, real


def gaussian_blur(
    grads: Grads, grad: Tensor, image: Tensor, sigma: Tensor, kernel_width: int, kernel_height: int
) -> Any:
    sizes = kernel_width, kernel_height
    if image.numel() == 0 or kernel_width // 2 >= image.shape[-1] or kernel_height // 2 >= image.shape[-2]:
        return NotImplemented  # some pixels are reflected more than once
    rows = array_per_image(sigma, image, 1).tolist()
    source = None if grads[1] is None else real(image)
    with in_real(grads[0], grad) as (out, given):
        sums = np.zeros((given.shape[:-2].numel(), 2))
        channels = image.shape[-3] if len(rows) > 1 else len(sums)
        targets, images = (None if x is None else layout.planes(x) for x in (out, source))
        gradients = layout.planes(given)

        def work(start: int, stop: int) -> None:
            for i in range(start, stop):
                across, down = rows[i // channels]
                pair = list(zip(sizes, blur.both(across, down), strict=True))
                if targets is not None:
                    _add_blurred(targets[i], gradients[i], *(_weights(*of) for of in pair))
                if images is not None:
                    sums[i] = _of_sigma(gradients[i], images[i], down, pair)

        with _threads.opencv:
            _threads.split(len(sums), given.numel(), work)
    if grads[1] is not None:
        each = sums.reshape(-1, image.shape[-3], 2).sum(1)
        add_per_image(grads[1], each, image)
    return None


def _add_blurred(out: np.ndarray, grad: np.ndarray, across: np.ndarray, down: np.ndarray) -> None:
    """Write the transpose of a blur, whose weights are symmetric."""
    (height, width), x, y = grad.shape, len(across) // 2, len(down) // 2
    wide: Any = cv2.copyMakeBorder(grad, y, y, x, x, cv2.BORDER_CONSTANT, value=0)
    wide = cv2.sepFilter2D(wide, -1, across, down, borderType=cv2.BORDER_CONSTANT)
    if y:
        wide[y + 1 : 2 * y + 1] += wide[y - 1 :: -1]
        wide[height - 1 : height + y - 1] += wide[: height + y - 1 : -1]
    if x:
        wide[:, x + 1 : 2 * x + 1] += wide[:, x - 1 :: -1]
        wide[:, width - 1 : width + x - 1] += wide[:, : width + x - 1 : -1]
    out[:] = wide[y : height + y, x : width + x]


def _of_sigma(
    grad: np.ndarray, image: np.ndarray, down: float, pair: list[tuple[int, float]]
) -> tuple[float, float]:
    """Return the gradients of both sigmas: the products with the blur by the slopes of the weights."""
    found = []
    for axis in (0, 1):
        weights = [_weights(*of, slope=axis == i) for i, of in enumerate(pair)]
        blurred = cv2.sepFilter2D(image, -1, weights[0], weights[1], borderType=cv2.BORDER_REFLECT_101)
        found.append(sum_of_products(blurred, grad))
    return (found[0], found[1]) if down > 0 else (sum(found), 0.0)


@lru_cache(maxsize=256)
def _weights(size: int, sigma: float, slope: bool = False) -> np.ndarray:
    """Return the weights of a Gaussian, or their derivatives in sigma."""
    x = np.arange(size) - size // 2
    if sigma <= 0 and size in formula.SHORT_KERNELS:
        return np.array(formula.SHORT_KERNELS[size]) / 256 * (not slope)
    if 0 < sigma <= formula.NO_BLUR:
        return (x == 0) * (1.0 - slope)
    known = sigma if sigma > 0 else formula.sigma_of(size)
    weights = np.exp(-0.5 * (x / known) ** 2)
    if not slope:
        return weights / weights.sum()
    change = weights * x * x / known**3 * (sigma > 0)
    return change / weights.sum() - weights * change.sum() / weights.sum() ** 2


def median_blur(grads: Grads, grad: Tensor, image: Tensor, kernel_size: int) -> Any:
    members = np.ones((1, kernel_size, kernel_size), bool)

    def forward(out: Tensor, source: Tensor) -> None:
        blur.median_blur(out, source, kernel_size)

    return choice(grads, grad, image, members, "edge", forward, first=True)
