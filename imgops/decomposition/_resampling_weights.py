"""Resampling weights as dense matrices, computed in the graph: sizes may be symbolic, a box is a tensor.

Each row of a matrix has a weight for every pixel; ``kernels/cpu/_resampling_tables.py`` keeps only those that
are not 0.
"""

from __future__ import annotations

from typing import Any

import PIL
import torch
from torch import Tensor

from imgops.decomposition._precision import divide
from imgops.decomposition._resampling_filters import (
    FILTERS,
    OPENCV_TAPS,
    area_cells,
    count,
    opencv_position,
    scalar,
)

#: The number of fraction bits in PIL's integer weights.
BITS = 22


def pil(
    name: str, size: int, low: Any, high: Any, out: int, device: torch.device, cut: bool = False
) -> Tensor:
    """Compute PIL's weights ``(..., out, size)`` for ``out`` outputs that cover ``[low, high)``.

    If ``low`` is None, they cover the whole extent. With ``cut``, the filter sees no pixel outside of
    ``[low, high)``.
    """
    column = count(size, device)
    last = scalar(size, device)
    if cut:
        column = column - low
        low, high = torch.zeros_like(low), high - low
        last = high
    if low is None and type(size) is int and size == out:
        return (column[:, None] == column).double()
    function, support = FILTERS[name]
    if low is None:
        low, extent = torch.zeros((), dtype=torch.float64, device=device), scalar(size, device)
    else:
        low, extent = low.double(), (high - low).double()
    scale = divide(extent, out)
    stretch = scale.clamp(min=1.0)
    reach = support * stretch
    center = low + (count(out, device)[:, None] + 0.5) * scale
    start = torch.trunc(center - reach + 0.5).clamp(min=0)
    end = torch.minimum(torch.trunc(center + reach + 0.5), last)
    weight = function((column - center + 0.5) * (1 / stretch))
    weight = torch.where((column >= start) & (column < end), weight, torch.zeros_like(weight))
    total = weight.sum(-1, keepdim=True)
    return weight / torch.where(total != 0, total, torch.ones_like(total))


def to_fixed_point(weight: Tensor) -> Tensor:
    """Return PIL's integer weights, in doubles, rounded half away from zero."""
    scaled = weight * 2.0**BITS
    return torch.trunc(torch.where(scaled < 0, scaled - 0.5, scaled + 0.5))


def rows_first(height: int, width: int, out_height: int, out_width: int, device: torch.device) -> Any:
    """Return whether PIL's vertical pass comes first: a bool, or a boolean tensor for symbolic sizes.

    From Pillow 13 on, the vertical pass comes first if the height shrinks much more than the width.
    """
    if int(PIL.__version__.partition(".")[0]) < 13:
        return False
    sizes: tuple[Any, ...] = height, width, out_height, out_width
    h, w, oh, ow = sizes
    if not all(type(size) is int for size in sizes):
        h, w, oh, ow = (scalar(size, device) for size in sizes)
    return (oh < h) & (h - oh > 2 * (w - ow))


def pil_nearest(size: int, low: Any, high: Any, out: int, device: torch.device, has_16_bits: bool) -> Tensor:
    """Return the pixel that PIL's nearest filter takes for each of ``out`` outputs, or -1 for none.

    PIL adds step to step, with rounding, and so does the cumulative sum here. In mode I;16 it multiplies.
    """
    if low is None:
        low, extent = torch.zeros((), dtype=torch.float64, device=device), scalar(size, device)
    else:
        low, extent = low[..., 0, 0].double(), (high - low)[..., 0, 0].double()
    step = divide(extent, out)
    position = low + step * (count(out, device) + 0.5)
    if not has_16_bits:
        position = torch.where(count(out, device) == 0, position, step).cumsum(-1)
    position = torch.trunc(position)
    outside = (position < 0) | (position >= size)
    return torch.where(outside, torch.full_like(position, -1), position).long()


def opencv_nearest(size: int, out: int, factor: Tensor) -> Tensor:
    return torch.floor(count(out, factor.device) * (1 / factor)).clamp(max=size - 1).long()


def torch_nearest(size: int, out: int, device: torch.device) -> Tensor:
    """Return the pixel that PyTorch's nearest filter takes for each output, in single precision as there."""
    scale = (scalar(size, device) / scalar(out, device)).float()
    return torch.floor(count(out, device).float() * scale).clamp(max=size - 1).long()


def opencv(name: str, size: int, out: int, factor: Tensor, shrinks: bool) -> Tensor:
    """Compute OpenCV's weights ``(out, size)``.

    ``shrinks`` is whether both axes shrink, which decides what "area" means.
    """
    if name == "area" and shrinks:
        return opencv_area(size, 1 / factor, count(out, factor.device))
    left, fraction = opencv_position(name, factor, out)
    return dense(left, OPENCV_TAPS[name](fraction), size)


def opencv_levels(name: str, out: int, factor: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return the pixel to the left of each output, and OpenCV's weights for uint8.

    These are integers with 11 fraction bits, in doubles.
    """
    left, fraction = opencv_position(name, factor, out)
    single = (left + fraction).float()
    if name != "area":
        left = torch.floor(single).double()
        fraction = single - left.float()
    taps = OPENCV_TAPS[name](fraction.float().double())
    return left, [torch.round(tap.float() * 2048).double() for tap in taps]


def dense(left: Tensor, taps: list[Tensor], size: int) -> Tensor:
    column = count(size, left.device)
    weight = torch.zeros((), dtype=torch.float64, device=left.device)
    for k, tap in enumerate(taps):
        at = neighbor(left, k, len(taps), size)
        weight = weight + torch.where(at[:, None] == column, tap[:, None], 0.0)
    return weight


def neighbor(left: Tensor, k: int, taps: int, size: int) -> Tensor:
    """Return the pixel of the ``k``-th tap, where pixels beyond the border repeat the outermost one."""
    return (left + (k + 1 - taps // 2)).clamp(min=0).clamp(max=size - 1)


def opencv_cut(
    name: str, size: int, low: Tensor, high: Tensor, out: int, outputs: Tensor | None = None
) -> Tensor:
    """Compute OpenCV's weights ``(..., out, size)`` of a crop ``[low, high)``; it sees no pixel outside.

    ``outputs`` is the number of rows that are used, if it is given by a tensor instead of ``out``.
    """
    device = low.device
    column, extent = count(size, device) - low, high - low
    scale = 1 / ((scalar(out, device) if outputs is None else outputs) / extent)
    x = count(out, device)[:, None]
    if name.endswith("nearest"):
        place = x * scale
        if name == "torch_nearest":
            place = x.float() * (extent / (scalar(out, device) if outputs is None else outputs)).float()
        return (torch.minimum(torch.floor(place).double(), extent - 1) == column).double()
    position = (x + 0.5) * scale - 0.5
    left = torch.floor(position)
    taps = OPENCV_TAPS[name](position - left)
    weight = torch.zeros((), dtype=torch.float64, device=device)
    for k, tap in enumerate(taps):
        at = torch.minimum((left + (k + 1 - len(taps) // 2)).clamp(min=0), extent - 1)
        weight = weight + torch.where(at == column, tap, 0.0)
    return weight


def opencv_area(size: int, scale: Tensor, x: Tensor) -> Tensor:
    first, last, head, tail, cell = (v[..., None] for v in area_cells(size, scale, x))
    column = count(size, x.device)
    inside = (column >= first) & (column < last)
    weight = inside.double()
    weight = weight + torch.where(column == first - 1, head, 0.0)
    weight = weight + torch.where(column == last, tail, 0.0)
    return weight / cell
