"""CPU kernel of the gradient of unsharp_mask: three box blurs, and their transposes."""

from __future__ import annotations

from typing import Any, cast

import cv2
import numpy as np
from torch import Tensor

from imgops._common import layout
from imgops.decomposition import filter as formula
from imgops.kernels.backward._arguments import Grads, add_per_image, in_real
from imgops.kernels.cpu import _threads
from imgops.kernels.cpu._arguments import number_per_image, real
from imgops.kernels.cpu.filter import box_taps


def unsharp_mask(
    grads: Grads, grad: Tensor, image: Tensor, radius: Tensor, percent: Tensor, threshold: Tensor
) -> Any:
    if grads[1] is not None or image.numel() == 0:
        return NotImplemented
    if grads[3] is not None:  # a pixel is changed or not
        grads[3].zero_()
    numbers = [number_per_image(v, image) for v in (radius, percent, threshold)]
    with in_real(grads[0], grad) as (out, given):
        targets = None if out is None else layout.planes(out)
        gradients, images = layout.planes(given), layout.planes(real(image))
        sums = np.zeros(given.shape[:-2].numel())

        def work(start: int, stop: int) -> None:
            for i in range(start, stop):
                own = [values[i // image.shape[-3]] for values in numbers]
                target = None if targets is None else targets[i]
                sums[i] = _one(target, gradients[i], images[i], *own)

        with _threads.opencv:
            _threads.split(len(sums), given.numel(), work)
    add_per_image(grads[2], sums.reshape(-1, image.shape[-3]).sum(1), image)
    return None


def _one(
    out: np.ndarray | None, grad: np.ndarray, image: np.ndarray, radius: float, percent: float, least: float
) -> float:
    """Write the gradient of a plane; return that of the percentage."""
    taps, blurred = box_taps(radius), cast("Any", image)
    for _ in range(formula.PASSES):
        blurred = cv2.sepFilter2D(blurred, -1, taps, taps, borderType=cv2.BORDER_REPLICATE)
    apart = image - blurred
    apart[np.abs(apart) * 255 <= least] = 0
    value = image + apart * (percent / 100)
    own = np.where((value > 0) & (value < 1), grad, 0)
    if out is not None:
        through: Any = own * (percent / 100) * (apart != 0)
        np.add(own, through, out=out)
        reach = len(taps) // 2
        for _ in range(formula.PASSES):
            through = np.pad(through, reach)
            through = cv2.sepFilter2D(through, -1, taps, taps, borderType=cv2.BORDER_CONSTANT)
            through[reach] += through[:reach].sum(0)
            through[-reach - 1] += through[-reach:].sum(0)
            through[:, reach] += through[:, :reach].sum(1)
            through[:, -reach - 1] += through[:, -reach:].sum(1)
            through = through[reach:-reach, reach:-reach]
        out -= through
    return float((own * apart).sum(dtype=np.float64) / 100)
