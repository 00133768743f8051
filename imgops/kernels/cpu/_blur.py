"""OpenCV's Gaussian on uint8, in its own integers, by the native kernel.

``cv2.GaussianBlur`` promises the same bits on every machine: weights of 8 fraction bits that sum to 1, one
rounding at the end. The weights are made here as it makes them. As long as the installed OpenCV agrees, which
is asked once, the native kernel stands in for it; without the module, or agreement, OpenCV itself works.
"""

from __future__ import annotations

from functools import cache
from math import exp

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops import _layout
from imgops.kernels.cpu import _threads

try:
    from imgops.kernels.cpu._native import blur as native
except ImportError:  # built without a C compiler
    native = None

_LEVEL = 2


@cache
def agrees() -> bool:
    if native is None:
        return False
    noise = np.random.default_rng(0).integers(0, 256, (37, 83), dtype=np.uint8)
    image, out = torch.from_numpy(noise)[None], torch.empty((1, 37, 83), dtype=torch.uint8)
    for size, sigma in (((3, 3), 0.3), ((5, 9), 1.1), ((23, 23), 1.7), ((23, 23), 0.2), ((31, 3), 6.0)):
        wanted = cv2.GaussianBlur(noise, size, sigma, sigmaY=sigma, borderType=cv2.BORDER_REFLECT_101)
        if not blur(out, image, sigma, sigma, *size) or not np.array_equal(out[0].numpy(), wanted):
            return False
    return True


def weights(size: int, sigma: float) -> np.ndarray:
    """From the middle outwards, in 256ths; what is 0 at the end is left out.

    Each is rounded with the error of those before it, from the outside in; the middle takes what is missing.
    """
    half = size // 2
    scale = -0.5 / (sigma * sigma)
    values = [exp(scale * x * x) for x in range(half, 0, -1)]
    total = 2 * sum(values) + 1
    found, error = [], 0.0
    for value in values:
        exact = value / total * 256 + error
        found.append(round(exact))
        error = exact - found[-1]
    outwards = [256 - 2 * sum(found), *reversed(found)]
    while len(outwards) > 1 and outwards[-1] == 0:
        outwards.pop()
    return np.array(outwards, dtype=np.uint16)


def blur(out: Tensor, image: Tensor, sigma_x: float, sigma_y: float, width: int, height: int) -> bool:
    """One frame or a stack of planes, both in the memory format of ``out``; False where it was not done."""
    interleaved = _layout.writes_interleaved(out)
    channels = image.shape[-3] if interleaved else 1
    across = weights(width, sigma_x)
    down = across if (width, sigma_x) == (height, sigma_y) else weights(height, sigma_y)
    high, wide = image.shape[-2:]
    size = high * wide * channels
    done = True

    def work(start: int, stop: int) -> None:
        nonlocal done
        at = start * size
        found = native(
            out.data_ptr() + at,
            image.data_ptr() + at,
            stop - start,
            high,
            wide,
            channels,
            across.ctypes.data,
            len(across) - 1,
            down.ctypes.data,
            len(down) - 1,
            _LEVEL,
        )
        done = done and found

    _threads.split(image.numel() // size, image.numel(), work)
    return done
