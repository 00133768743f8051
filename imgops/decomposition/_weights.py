"""Resampling weights as dense matrices, computed in the graph: sizes may be symbolic, a box is a tensor.

The formulas are those of ``kernels/cpu/_tables.py``; here each row has a weight for every pixel.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import PIL
import torch
from torch import Tensor

#: The fraction bits of PIL's integer weights.
BITS = 22


def _box(x: Tensor) -> Tensor:
    return ((x > -0.5) & (x <= 0.5)).double()


def _bilinear(x: Tensor) -> Tensor:
    return (1 - x.abs()).clamp(min=0)


def _sinc(x: Tensor) -> Tensor:
    x = torch.where(x == 0, torch.full_like(x, 1e-300), x) * pi
    return x.sin() / x


def _hamming(x: Tensor) -> Tensor:
    x = x.abs()
    return torch.where(x < 1, _sinc(x) * (0.54 + 0.46 * (x * pi).cos()), torch.zeros_like(x))


def _bicubic(x: Tensor) -> Tensor:
    a = -0.5
    x = x.abs()
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return torch.where(x < 1, near, torch.where(x < 2, far, torch.zeros_like(x)))


def _lanczos(x: Tensor) -> Tensor:
    return torch.where((x >= -3) & (x < 3), _sinc(x) * _sinc(x / 3), torch.zeros_like(x))


_FILTERS: dict[str, tuple[Callable[[Tensor], Tensor], float]] = {
    "box": (_box, 0.5),
    "bilinear": (_bilinear, 1.0),
    "hamming": (_hamming, 1.0),
    "bicubic": (_bicubic, 2.0),
    "lanczos": (_lanczos, 3.0),
}


def _count(size: int, device: torch.device) -> Tensor:
    return torch.arange(size, dtype=torch.float64, device=device)


def _whole(size: int, device: torch.device) -> Tensor:
    """A size as a number of the graph."""
    return torch.full((), size, dtype=torch.float64, device=device)


def pil(
    name: str, size: int, low: Any, high: Any, out: int, device: torch.device, cut: bool = False
) -> Tensor:
    """PIL's weights ``(..., out, size)`` for ``out`` samples of ``[low, high)``; None is the whole extent.

    ``cut``: the filter sees nothing outside of ``[low, high)``.
    """
    column = _count(size, device)
    last = _whole(size, device)
    if cut:
        column = column - low
        low, high = torch.zeros_like(low), high - low
        last = high
    if low is None and type(size) is int and size == out:
        return (column[:, None] == column).double()
    function, support = _FILTERS[name]
    if low is None:
        low, extent = torch.zeros((), dtype=torch.float64, device=device), _whole(size, device)
    else:
        low, extent = low.double(), (high - low).double()
    scale = extent / out
    stretch = scale.clamp(min=1.0)
    reach = support * stretch
    center = low + (_count(out, device)[:, None] + 0.5) * scale
    start = torch.trunc(center - reach + 0.5).clamp(min=0)
    end = torch.minimum(torch.trunc(center + reach + 0.5), last)
    weight = function((column - center + 0.5) * (1 / stretch))
    weight = torch.where((column >= start) & (column < end), weight, torch.zeros_like(weight))
    total = weight.sum(-1, keepdim=True)
    return weight / torch.where(total != 0, total, torch.ones_like(total))


def fixed(weight: Tensor) -> Tensor:
    """PIL's integer weights, in doubles: rounded half away from zero."""
    scaled = weight * 2.0**BITS
    return torch.trunc(torch.where(scaled < 0, scaled - 0.5, scaled + 0.5))


def rows_first(height: int, width: int, out_height: int, out_width: int, device: torch.device) -> Any:
    """Whether PIL's vertical pass comes first: from version 13 on it does where it shrinks much more.

    A bool; a boolean tensor where the sizes are symbolic.
    """
    if int(PIL.__version__.partition(".")[0]) < 13:
        return False
    sizes: tuple[Any, ...] = height, width, out_height, out_width
    h, w, oh, ow = sizes
    if not all(type(size) is int for size in sizes):
        h, w, oh, ow = (_whole(size, device) for size in sizes)
    return (oh < h) & (h - oh > 2 * (w - ow))


def pil_nearest(size: int, low: Any, high: Any, out: int, device: torch.device) -> Tensor:
    """The pixel that PIL's nearest filter takes for each of ``out``: it adds step to step, with rounding."""
    if low is None:
        low, extent = torch.zeros((), dtype=torch.float64, device=device), _whole(size, device)
    else:
        low, extent = low[..., 0, 0].double(), (high - low)[..., 0, 0].double()
    step = extent / out
    first = low + step * 0.5
    shape = (*step.shape[:-1], out) if step.ndim else (out,)
    steps = torch.where(_count(out, device) == 0, first, step).expand(shape)
    position = torch.trunc(steps.cumsum(-1))
    outside = (position < 0) | (position >= size)
    return torch.where(outside, torch.full_like(position, -1), position).long()


def opencv_nearest(size: int, out: int, device: torch.device) -> Tensor:
    scale = 1 / (_whole(out, device) / _whole(size, device))
    return torch.floor(_count(out, device) * scale).clamp(max=size - 1).long()


def opencv(name: str, size: int, out: int, shrinks: bool, device: torch.device) -> Tensor:
    """OpenCV's weights ``(out, size)``; ``shrinks``: both axes do, which decides what "area" means."""
    if name == "area" and shrinks:
        return _opencv_area(size, _whole(size, device) / _whole(out, device), _count(out, device))
    left, fraction = _opencv_position(name, size, out, device)
    return dense(left, _OPENCV_TAPS[name](fraction), size)


def opencv_levels(name: str, size: int, out: int, device: torch.device) -> tuple[Tensor, list[Tensor]]:
    """For uint8: the pixel left of each output, and OpenCV's integer weights of 11 bits, in doubles."""
    left, fraction = _opencv_position(name, size, out, device)
    single = (left + fraction).float()
    if name != "area":
        left = torch.floor(single).double()
        fraction = single - left.float()
    taps = _OPENCV_TAPS[name](fraction.float().double())
    return left, [torch.round(tap.float() * 2048).double() for tap in taps]


def dense(left: Tensor, taps: list[Tensor], size: int) -> Tensor:
    column = _count(size, left.device)
    weight = torch.zeros((), dtype=torch.float64, device=left.device)
    for k, tap in enumerate(taps):
        at = neighbour(left, k, len(taps), size)
        weight = weight + torch.where(at[:, None] == column, tap[:, None], 0.0)
    return weight


def neighbour(left: Tensor, k: int, taps: int, size: int) -> Tensor:
    """The pixel of the ``k``-th tap: pixels beyond the border repeat the outermost one."""
    return (left + (k + 1 - taps // 2)).clamp(min=0).clamp(max=size - 1)


def _opencv_position(name: str, size: int, out: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The pixel left of each output, and how far to the right of it the output lies."""
    inverse = _whole(out, device) / _whole(size, device)
    scale = 1 / inverse  # as OpenCV has it, down to the rounding
    x = _count(out, device)
    if name == "area":  # enlarged: bilinear between the cells that a pixel touches
        left = torch.floor(x * scale)
        fraction = (x + 1) - (left + 1) * inverse
        single = fraction.float().double()  # OpenCV rounds it before it looks
        nothing = (single <= 0) | (single == torch.floor(single))
        return left, torch.where(nothing, torch.zeros_like(x), fraction - torch.floor(fraction))
    position = (x + 0.5) * scale - 0.5
    left = torch.floor(position)
    return left, position - left


def opencv_cut(name: str, size: int, low: Tensor, high: Tensor, out: int) -> Tensor:
    """OpenCV's weights ``(..., out, size)`` of a crop ``[low, high)``; nothing outside of it is seen."""
    device = low.device
    column, extent = _count(size, device) - low, high - low
    scale = 1 / (_whole(out, device) / extent)
    x = _count(out, device)[:, None]
    if name == "nearest":
        return (torch.minimum(torch.floor(x * scale), extent - 1) == column).double()
    position = (x + 0.5) * scale - 0.5
    left = torch.floor(position)
    taps = _OPENCV_TAPS[name](position - left)
    weight = torch.zeros((), dtype=torch.float64, device=device)
    for k, tap in enumerate(taps):
        at = torch.minimum((left + (k + 1 - len(taps) // 2)).clamp(min=0), extent - 1)
        weight = weight + torch.where(at == column, tap, 0.0)
    return weight


def _opencv_area(size: int, scale: Tensor, x: Tensor) -> Tensor:
    low = x * scale
    high = low + scale
    column = _count(size, x.device)
    cell = torch.minimum(scale, _whole(size, x.device) - low)
    last = torch.floor(high).clamp(max=size - 1)
    first = torch.minimum(torch.ceil(low), last)
    # OpenCV leaves out a fraction of a pixel below a thousandth.
    head = torch.where(first - low > 1e-3, first - low, 0.0)
    tail = torch.where(high - last > 1e-3, torch.minimum((high - last).clamp(max=1), cell), 0.0)
    inside = (column >= first[:, None]) & (column < last[:, None])
    weight = inside.double()
    weight = weight + torch.where(column == first[:, None] - 1, head[:, None], 0.0)
    weight = weight + torch.where(column == last[:, None], tail[:, None], 0.0)
    return weight / cell[:, None]


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


_OPENCV_TAPS = {
    "area": _opencv_bilinear,
    "bilinear": _opencv_bilinear,
    "bicubic": _opencv_bicubic,
    "lanczos": _opencv_lanczos,
}
