"""CPU kernel of the gradient of unsharp_mask: three box blurs, and their transposes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import cv2
import numpy as np
from torch import Tensor

from imgops._common import layout
from imgops.decomposition import filter as formula
from imgops.kernels.backward._arguments import Grads, add_per_image, in_real, sum_of_products
from imgops.kernels.cpu import _threads
from imgops.kernels.cpu._arguments import number_per_image, real
from imgops.kernels.cpu.filter import box_taps


def unsharp_mask(
    grads: Grads, grad: Tensor, image: Tensor, radius: Tensor, percent: Tensor, threshold: Tensor
) -> Any:
    if image.numel() == 0:
        return NotImplemented
    if grads[3] is not None:  # a pixel is changed or not
        grads[3].zero_()
    numbers = [number_per_image(v, image) for v in (radius, percent, threshold)]
    with in_real(grads[0], grad) as (out, given):
        targets = None if out is None else layout.planes(out)
        gradients, images = layout.planes(given), layout.planes(real(image))
        sums = np.zeros((given.shape[:-2].numel(), 2))

        def work(start: int, stop: int) -> None:
            for i in range(start, stop):
                own = [values[i // image.shape[-3]] for values in numbers]
                target = None if targets is None else targets[i]
                sums[i] = _one(target, gradients[i], images[i], grads[1] is not None, *own)

        with _threads.opencv:
            _threads.split(len(sums), given.numel(), work)
    each = sums.reshape(-1, image.shape[-3], 2).sum(1)
    for at in (0, 1):
        add_per_image(grads[1 + at], each[:, at], image)
    return None


def _one(
    out: np.ndarray | None,
    grad: np.ndarray,
    image: np.ndarray,
    of_radius: bool,
    radius: float,
    percent: float,
    least: float,
) -> tuple[float, float]:
    """Write the gradient of a plane; return those of the radius, if it is wanted, and of the percentage."""
    taps, blurred = box_taps(radius), cast("Any", image)
    change: Any = np.zeros_like(image) if of_radius else None
    for _ in range(formula.PASSES):
        if of_radius:
            slopes = _box_slopes(radius)
            change = _pass(change, taps, taps) + _pass(blurred, slopes, taps) + _pass(blurred, taps, slopes)
        blurred = _pass(blurred, taps, taps)
    apart = image - blurred
    apart[np.abs(apart) * 255 <= least] = 0
    value = image + apart * (percent / 100)
    own = grad.copy()  # np.where takes five times as long
    np.copyto(own, 0, where=~((value > 0) & (value < 1)))
    through: Any = own * (percent / 100) * (apart != 0)
    to_radius = -sum_of_products(through, change) if of_radius else 0.0
    if out is not None:
        np.add(own, through, out=out)
        reach = len(taps) // 2
        for _ in range(formula.PASSES):
            through = cv2.copyMakeBorder(through, *(reach,) * 4, cv2.BORDER_CONSTANT, value=0)
            through = cv2.sepFilter2D(through, -1, taps, taps, borderType=cv2.BORDER_CONSTANT)
            through[reach] += through[:reach].sum(0)
            through[-reach - 1] += through[-reach:].sum(0)
            through[:, reach] += through[:, :reach].sum(1)
            through[:, -reach - 1] += through[:, -reach:].sum(1)
            through = through[reach:-reach, reach:-reach]
        out -= through
    return to_radius, sum_of_products(own, apart) / 100


def _pass(image: np.ndarray, across: np.ndarray, down: np.ndarray) -> Any:
    return cv2.sepFilter2D(image, -1, across, down, borderType=cv2.BORDER_REPLICATE)


@lru_cache(maxsize=256)
def _box_slopes(radius: float) -> np.ndarray:
    """Return the derivatives of the weights of a box in the radius: only its two ends grow."""
    taps, variance = box_taps(radius), radius * radius / formula.PASSES
    whole = len(taps) // 2 - 1
    size, rest = 2 * whole + 1, variance - (whole + 1) ** 2
    # An end weighs size * (whole * (whole + 1) - 3 * variance) / (6 * rest) times as much as another pixel.
    of_end = (
        -size * (3 * rest + whole * (whole + 1) - 3 * variance) / (6 * rest**2) * 2 * radius / formula.PASSES
    )
    total = 1 / taps[len(taps) // 2]
    ends = np.zeros_like(taps)
    ends[[0, -1]] = 1
    return of_end * (ends - 2 * taps) / total
