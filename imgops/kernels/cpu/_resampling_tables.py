"""Resampling along one axis as a banded matrix: PIL's filters and OpenCV's, and their transposes.

Row ``o`` of a table says that output ``o`` is ``sum(weight[o, k] * input[start[o] + k])`` over
``k < length[o]``. PIL's tables are computed in double precision as PIL computes them, so that uint8
results equal PIL's bit for bit; OpenCV's tables serve float64 images and every adjoint.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil

import cv2
import numpy as np
import torch
from PIL import Image

from imgops.decomposition import _resampling_filters, _resampling_weights
from imgops.kernels.cpu import native

#: Tables of more values are made anew for each call, so that the cache stays below 16 MB.
_CACHED_VALUES = 1 << 15


@dataclass(frozen=True, eq=False)
class Table:
    start: np.ndarray  # int32 (out,)
    length: np.ndarray  # int32 (out,)
    weight: np.ndarray  # float64 (out, taps), zero from length on

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The arrays that the native module takes."""
        return self.start, self.length, self.weight

    def transpose(self, size: int) -> Table:
        """Return the table of the transposed matrix; ``size`` is the input length of this table."""
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
        """Return the dense ``(out, size)`` matrix."""
        dense = np.zeros((len(self.start), size))
        taps = np.arange(self.weight.shape[1])
        inside = taps < self.length[:, None]
        rows, tap = np.nonzero(inside)
        dense[rows, self.start[rows] + tap] = self.weight[rows, tap]
        return dense


def pil(name: str, size: int, low: float, high: float, out: int, *, single: bool) -> Table | None:
    """Return PIL's table for ``out`` samples of ``[low, high)`` of ``size`` pixels; None is the identity.

    PIL keeps a box in single precision; ``single=False`` keeps doubles, for float64 images.
    """
    if size == out and low == 0 and high == size:
        return None
    _, support = _resampling_filters.FILTERS[name]
    taps = 2 * support * max(size / out, 1)
    make = _pil_cached if taps * out < _CACHED_VALUES else _pil
    return make(name, size, low, high, out, single)


def _pil(name: str, size: int, low: float, high: float, out: int, single: bool) -> Table:
    function, support = _resampling_filters.FILTERS[name]
    if single:
        low_32, high_32 = np.float32(low), np.float32(high)
        low, extent = float(low_32), float(high_32 - low_32)
    else:
        extent = high - low
    taps = ceil(support * max(extent / out, 1.0)) * 2 + 1
    table = Table(np.empty(out, np.int32), np.empty(out, np.int32), np.empty((out, taps)))
    if native.fill_table(name, size, low, extent, table.arrays):
        return table
    scale = extent / out
    stretch = max(scale, 1.0)
    support *= stretch
    center = low + (np.arange(out) + 0.5) * scale
    start = np.maximum((center - support + 0.5).astype(np.int64), 0)
    count = np.minimum((center + support + 0.5).astype(np.int64), size) - start
    tap = np.arange(taps)
    at = (tap + start[:, None] - center[:, None] + 0.5) * (1 / stretch)
    weight = function(torch.from_numpy(at)).numpy()
    weight[tap >= count[:, None]] = 0
    total = np.add.accumulate(weight, axis=1)[:, -1:]  # PIL adds in this order
    weight /= np.where(total != 0, total, 1)
    return Table(start.astype(np.int32), count.astype(np.int32), weight)


_pil_cached = lru_cache(maxsize=64)(_pil)


@lru_cache(maxsize=64)
def pil_nearest(size: int, low: float, high: float, out: int, has_16_bits: bool) -> np.ndarray:
    """Return the pixel that PIL's nearest filter takes for each output.

    PIL resizes a ramp to find out, because it adds up positions with rounding; not in mode I;16, which cannot
    hold the ramp. -1 means no pixel: at the end of an image a box without extent takes nothing, and PIL
    writes 0.
    """
    if has_16_bits:
        start, end = torch.tensor([[[low]], [[high]]], dtype=torch.float32, device="cpu")
        return _resampling_weights.pil_nearest(size, start, end, out, start.device, True).numpy()
    ramp = Image.fromarray(np.arange(1, size + 1, dtype=np.int32)[None])
    taken = ramp.resize((out, 1), Image.Resampling.NEAREST, box=(low, 0, high, 1))
    return np.array(taken)[0] - 1


@lru_cache(maxsize=64)
def opencv_nearest(size: int, factor: float) -> np.ndarray:
    """Return the pixel that OpenCV's nearest filter takes for each output: OpenCV resizes a ramp.

    The ramp gets a second row, because OpenCV copies an image that keeps its size.
    """
    ramp = np.arange(size, dtype=np.float64)[None]
    return cv2.resize(ramp, None, None, factor, 2, cv2.INTER_NEAREST)[0].astype(np.int32)


@lru_cache(maxsize=64)
def torch_nearest(size: int, out: int) -> np.ndarray:
    """Return the pixel that PyTorch's nearest filter takes for each output."""
    return _resampling_weights.torch_nearest(size, out, torch.device("cpu")).numpy()


def opencv(name: str, size: int, out: int, factor: float, shrinks: bool) -> Table:
    """Return OpenCV's table; ``shrinks``, whether both axes shrink, decides what "area" means."""
    make = _opencv_cached if size + 8 * out < _CACHED_VALUES else _opencv
    return make(name, size, out, factor, shrinks)


def _opencv(name: str, size: int, out: int, factor: float, shrinks: bool) -> Table:
    if name == "area" and shrinks:
        return _opencv_area(size, out, factor)
    inverse = torch.tensor(factor, dtype=torch.float64, device="cpu")
    position, fraction = _resampling_filters.opencv_position(name, inverse, out)
    kernel = torch.stack(_resampling_filters.OPENCV_TAPS[name](fraction), 1).numpy()
    left, x = position.numpy(), np.arange(out)
    reach = kernel.shape[1] // 2
    # Pixels beyond the border repeat the outermost one: fold their weights onto it.
    columns = (left[:, None] + np.arange(1 - reach, reach + 1)).clip(0, size - 1).astype(np.int64)
    start = columns[:, 0]
    weight = np.zeros_like(kernel)
    np.add.at(weight, (x[:, None], columns - start[:, None]), kernel)
    count = columns[:, -1] - start + 1
    return Table(start.astype(np.int32), count.astype(np.int32), weight)


_opencv_cached = lru_cache(maxsize=64)(_opencv)


def _opencv_area(size: int, out: int, factor: float) -> Table:
    x = torch.arange(out, dtype=torch.float64, device="cpu")
    scale = torch.tensor(1 / factor, dtype=torch.float64, device="cpu")
    first, last, head, tail, cell = (v.numpy() for v in _resampling_filters.area_cells(size, scale, x))
    start = first - (head > 0)
    count = (last - start + (tail > 0)).astype(np.int64)
    taps = np.arange(max(int(count.max()), 1))
    position = start[:, None] + taps
    weight = np.where((position >= first[:, None]) & (position < last[:, None]), 1.0, 0.0)
    weight += np.where(position == first[:, None] - 1, head[:, None], 0)
    weight += np.where(position == last[:, None], tail[:, None], 0)
    weight[taps >= count[:, None]] = 0
    return Table(start.astype(np.int32), count.astype(np.int32), weight / cell[:, None])
