"""PIL's and OpenCV's resampling filters: one set of formulas, for graphs and for banded tables."""

from __future__ import annotations

from collections.abc import Callable
from math import pi

import torch
from torch import Tensor

from imgops.decomposition._precision import divide


def _sinc(x: Tensor) -> Tensor:
    x = torch.where(x == 0, torch.full_like(x, 1e-300), x) * pi
    return x.sin() / x


#: PIL writes these two numbers in single precision. Their sum is not 1, which PIL returns for x = 0.
_0_54, _0_46 = 0.540000021457672119140625, 0.4600000083446502685546875


def _hamming(x: Tensor) -> Tensor:
    x = x.abs()
    inside = torch.where(x == 0, torch.ones_like(x), _sinc(x) * (_0_54 + _0_46 * (x * pi).cos()))
    return torch.where(x < 1, inside, torch.zeros_like(x))


def _bicubic(x: Tensor) -> Tensor:
    a = -0.5
    x = x.abs()
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return torch.where(x < 1, near, torch.where(x < 2, far, torch.zeros_like(x)))


def _lanczos(x: Tensor) -> Tensor:
    return torch.where((x >= -3) & (x < 3), _sinc(x) * _sinc(divide(x, 3)), torch.zeros_like(x))


#: PIL's filters: the function, and its support (how far it reaches from its center).
FILTERS: dict[str, tuple[Callable[[Tensor], Tensor], float]] = {
    "box": (lambda x: ((x > -0.5) & (x <= 0.5)).double(), 0.5),
    "bilinear": (lambda x: (1 - x.abs()).clamp(min=0), 1.0),
    "hamming": (_hamming, 1.0),
    "bicubic": (_bicubic, 2.0),
    "lanczos": (_lanczos, 3.0),
}


def count(size: int, device: torch.device) -> Tensor:
    return torch.arange(size, dtype=torch.float64, device=device)


def scalar(size: float, device: torch.device) -> Tensor:
    """Return a size as a scalar tensor of the graph."""
    return torch.full((), size, dtype=torch.float64, device=device)


def area_cells(size: int, scale: Tensor, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the pixels that each cell of OpenCV's "area" covers when it shrinks.

    These are the whole pixels ``[first, last)`` of each cell, the fractions of the pixels before and after
    them, and the extent of the cell.
    """
    low = x * scale
    high = low + scale
    cell = torch.minimum(scale, scalar(size, x.device) - low)
    last = torch.floor(high).clamp(max=size - 1)
    first = torch.minimum(torch.ceil(low), last)
    # OpenCV ignores a fraction of a pixel below a thousandth.
    head = torch.where(first - low > 1e-3, first - low, 0.0)
    tail = torch.where(high - last > 1e-3, torch.minimum((high - last).clamp(max=1), cell), 0.0)
    return first, last, head, tail, cell


def opencv_position(name: str, factor: Tensor, out: int) -> tuple[Tensor, Tensor]:
    """Return the pixel to the left of each output, and the distance from that pixel to the output."""
    scale = 1 / factor  # as OpenCV computes it, with the same rounding
    x = count(out, factor.device)
    if name == "area":  # enlarging is bilinear between the cells that an output touches
        left = torch.floor(x * scale)
        fraction = (x + 1) - (left + 1) * factor
        single = fraction.float().double()  # OpenCV rounds it before the comparison
        nothing = (single <= 0) | (single == torch.floor(single))
        return left, torch.where(nothing, torch.zeros_like(x), fraction - torch.floor(fraction))
    position = (x + 0.5) * scale - 0.5
    left = torch.floor(position)
    return left, position - left


def _opencv_bilinear(f: Tensor) -> list[Tensor]:
    return [1 - f, f]


def _opencv_bicubic(f: Tensor) -> list[Tensor]:
    a = -0.75
    g = 1 - f
    first = ((a * (f + 1) - 5 * a) * (f + 1) + 8 * a) * (f + 1) - 4 * a
    second = ((a + 2) * f - (a + 3)) * f * f + 1
    third = ((a + 2) * g - (a + 3)) * g * g + 1
    return [first, second, third, 1 - first - second - third]


def _opencv_lanczos(f: Tensor) -> list[Tensor]:
    taps = []
    for k in range(-3, 5):
        x = f - k
        taps.append(_sinc(x) * _sinc(x / 4))
    total = sum(taps[1:], taps[0])
    return [tap / total for tap in taps]


#: Functions that turn the distance from the pixel on the left into the weights of the pixels around it.
OPENCV_TAPS = {
    "area": _opencv_bilinear,
    "bilinear": _opencv_bilinear,
    "bicubic": _opencv_bicubic,
    "lanczos": _opencv_lanczos,
}
