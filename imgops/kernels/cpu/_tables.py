"""Resampling along one axis as a banded matrix: PIL's filters and OpenCV's, and their transposes.

Row ``o`` of a table says that output ``o`` is ``sum(weight[o, k] * input[start[o] + k])`` over
``k < length[o]``. PIL's tables are computed in double precision as PIL computes them, so that uint8
results keep PIL's bits; OpenCV's serve float64 images and every adjoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil

import cv2
import numpy as np
from PIL import Image

try:
    from imgops.kernels.cpu._native import table as native
except ImportError:  # built without a C compiler
    native = None

#: Tables above this size are made anew for each call, so the cache stays below 16 MB.
_CACHED_VALUES = 1 << 15


@dataclass(frozen=True, eq=False)
class Table:
    start: np.ndarray  # int32 (out,)
    length: np.ndarray  # int32 (out,)
    weight: np.ndarray  # float64 (out, taps), zero from length on

    @cached_property
    def pointers(self) -> tuple[int, ...]:
        """Addresses of the three arrays, rows and taps: the native kernel's view of the table."""
        arrays = (self.start, self.length, self.weight)
        return (*(a.ctypes.data for a in arrays), *self.weight.shape)

    def transpose(self, size: int) -> Table:
        """The table of the transposed matrix; ``size`` is the length of this one's input."""
        i = np.arange(size)
        first = np.searchsorted(self.start + self.length, i, side="right")
        last = np.searchsorted(self.start, i, side="right")
        count = np.maximum(last - first, 0)
        rows = first[:, None] + np.arange(max(int(count.max(initial=0)), 1))
        inside = rows < last[:, None]
        rows = np.minimum(rows, len(self.start) - 1)
        taps = np.where(inside, i[:, None] - self.start[rows], 0)
        weight = np.where(inside, self.weight[rows, taps], 0.0)
        return Table(first.astype(np.int32), count.astype(np.int32), weight)

    def matrix(self, size: int) -> np.ndarray:
        """The dense ``(out, size)`` matrix."""
        dense = np.zeros((len(self.start), size))
        taps = np.arange(self.weight.shape[1])
        inside = taps < self.length[:, None]
        rows, tap = np.nonzero(inside)
        dense[rows, self.start[rows] + tap] = self.weight[rows, tap]
        return dense


def _box(x: np.ndarray) -> np.ndarray:
    return ((x > -0.5) & (x <= 0.5)).astype(np.float64)


def _bilinear(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0)


def _sinc(x: np.ndarray) -> np.ndarray:
    x = np.where(x == 0, 1e-300, x) * np.pi
    return np.sin(x) / x


def _hamming(x: np.ndarray) -> np.ndarray:
    x = np.abs(x)
    return np.where(x < 1, _sinc(x) * (0.54 + 0.46 * np.cos(x * np.pi)), 0)


def _bicubic(x: np.ndarray) -> np.ndarray:
    a = -0.5
    x = np.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0))


def _lanczos(x: np.ndarray) -> np.ndarray:
    return np.where((x >= -3) & (x < 3), _sinc(x) * _sinc(x / 3), 0)


_FILTERS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "box": (_box, 0.5),
    "bilinear": (_bilinear, 1.0),
    "hamming": (_hamming, 1.0),
    "bicubic": (_bicubic, 2.0),
    "lanczos": (_lanczos, 3.0),
}


def pil(name: str, size: int, low: float, high: float, out: int, *, single: bool) -> Table | None:
    """PIL's table for ``out`` samples of ``[low, high)`` of ``size`` pixels; None is the identity.

    PIL keeps a box in single precision; ``single=False`` keeps doubles, for float64 images.
    """
    if size == out and low == 0 and high == size:
        return None
    _, support = _FILTERS[name]
    taps = 2 * support * max(size / out, 1)
    make = _pil_cached if taps * out < _CACHED_VALUES else _pil
    return make(name, size, low, high, out, single)


def _empty(out: int, taps: int) -> Table:
    """For the native kernel to fill: three arrays in one piece of memory, whose address is asked once."""
    memory = np.empty(out * (taps + 1))
    whole = memory[:out].view(np.int32)
    table = Table(whole[:out], whole[out:], memory[out:].reshape(out, taps))
    at = memory.ctypes.data
    table.__dict__["pointers"] = (at, at + 4 * out, at + 8 * out, out, taps)
    return table


def _pil(name: str, size: int, low: float, high: float, out: int, single: bool) -> Table:
    function, support = _FILTERS[name]
    if single:
        low_32, high_32 = np.float32(low), np.float32(high)
        low, extent = float(low_32), float(high_32 - low_32)
    else:
        extent = high - low
    taps = ceil(support * max(extent / out, 1.0)) * 2 + 1
    if native is not None:
        table = _empty(out, taps)
        native(name, size, low, extent, *table.pointers)
        return table
    scale = extent / out
    stretch = max(scale, 1.0)
    support *= stretch
    center = low + (np.arange(out) + 0.5) * scale
    start = np.maximum((center - support + 0.5).astype(np.int64), 0)
    count = np.minimum((center + support + 0.5).astype(np.int64), size) - start
    tap = np.arange(taps)
    weight = function((tap + start[:, None] - center[:, None] + 0.5) * (1 / stretch))
    weight[tap >= count[:, None]] = 0
    total = np.add.accumulate(weight, axis=1)[:, -1:]  # PIL adds in this order
    weight /= np.where(total != 0, total, 1)
    return Table(start.astype(np.int32), count.astype(np.int32), weight)


_pil_cached = lru_cache(maxsize=64)(_pil)


@lru_cache(maxsize=64)
def pil_nearest(size: int, low: float, high: float, out: int) -> np.ndarray:
    """Which pixel PIL's nearest filter takes, asked of PIL: it adds up positions with rounding.

    -1 stands for none: at the end of an image a box without extent takes nothing, and PIL writes 0.
    """
    ramp = Image.fromarray(np.arange(1, size + 1, dtype=np.int32)[None])
    taken = ramp.resize((out, 1), Image.Resampling.NEAREST, box=(low, 0, high, 1))
    return np.array(taken)[0] - 1


@lru_cache(maxsize=64)
def opencv_nearest(size: int, out: int) -> np.ndarray:
    """Which pixel OpenCV's nearest filter takes, asked of OpenCV."""
    ramp = np.arange(size, dtype=np.float64)[None]
    return cv2.resize(ramp, (out, 1), interpolation=cv2.INTER_NEAREST)[0].astype(np.int32)


def opencv(name: str, size: int, out: int, shrinks: bool) -> Table:
    """OpenCV's table; ``shrinks``: both axes shrink, which decides what "area" means."""
    make = _opencv_cached if size + 8 * out < _CACHED_VALUES else _opencv
    return make(name, size, out, shrinks)


def _opencv(name: str, size: int, out: int, shrinks: bool) -> Table:
    if name == "area" and shrinks:
        return _opencv_area(size, out)
    scale = 1 / (out / size)  # as OpenCV has it, down to the rounding
    x = np.arange(out)
    if name == "area":  # enlarged: bilinear between the cells that a pixel touches
        left = np.floor(x * scale)
        fraction = (x + 1) - (left + 1) * (out / size)
        single = fraction.astype(np.float32)  # OpenCV rounds it before it looks
        nothing = (single <= 0) | (single == np.floor(single))
        fraction = np.where(nothing, 0, fraction - np.floor(fraction))
    else:
        position = (x + 0.5) * scale - 0.5
        left = np.floor(position)
        fraction = position - left
    kernel = _OPENCV_TAPS["bilinear" if name == "area" else name](fraction)
    reach = kernel.shape[1] // 2
    # Pixels beyond the border repeat the outermost one: fold their weights onto it.
    columns = (left[:, None] + np.arange(1 - reach, reach + 1)).clip(0, size - 1).astype(np.int64)
    start = columns[:, 0]
    weight = np.zeros_like(kernel)
    np.add.at(weight, (x[:, None], columns - start[:, None]), kernel)
    count = columns[:, -1] - start + 1
    return Table(start.astype(np.int32), count.astype(np.int32), weight)


_opencv_cached = lru_cache(maxsize=64)(_opencv)


def _opencv_area(size: int, out: int) -> Table:
    scale = size / out
    low = np.arange(out) * scale
    high = low + scale
    cell = np.minimum(scale, size - low)
    last = np.minimum(np.floor(high), size - 1)
    first = np.minimum(np.ceil(low), last)
    # OpenCV leaves out a fraction of a pixel below a thousandth.
    head = np.where(first - low > 1e-3, first - low, 0)
    tail = np.where(high - last > 1e-3, np.minimum(np.minimum(high - last, 1), cell), 0)
    start = first - (head > 0)
    count = (last - start + (tail > 0)).astype(np.int64)
    taps = np.arange(max(int(count.max()), 1))
    position = start[:, None] + taps
    weight = np.where((position >= first[:, None]) & (position < last[:, None]), 1.0, 0.0)
    weight += np.where(position == first[:, None] - 1, head[:, None], 0)
    weight += np.where(position == last[:, None], tail[:, None], 0)
    weight[taps >= count[:, None]] = 0
    return Table(start.astype(np.int32), count.astype(np.int32), weight / cell[:, None])


def _opencv_bilinear(f: np.ndarray) -> np.ndarray:
    return np.stack([1 - f, f], axis=1)


def _opencv_bicubic(f: np.ndarray) -> np.ndarray:
    a = -0.75
    g = 1 - f
    first = ((a * (f + 1) - 5 * a) * (f + 1) + 8 * a) * (f + 1) - 4 * a
    second = ((a + 2) * f - (a + 3)) * f * f + 1
    third = ((a + 2) * g - (a + 3)) * g * g + 1
    return np.stack([first, second, third, 1 - first - second - third], axis=1)


def _opencv_lanczos(f: np.ndarray) -> np.ndarray:
    x = f[:, None] - np.arange(-3, 5)
    weight = np.sinc(x) * np.sinc(x / 4)
    return weight / weight.sum(axis=1, keepdims=True)


_OPENCV_TAPS = {
    "bilinear": _opencv_bilinear,
    "bicubic": _opencv_bicubic,
    "lanczos": _opencv_lanczos,
}
