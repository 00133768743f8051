"""Resampling tables made on the device: each output's first pixel, number of pixels, and their weights.

Everything is computed in double precision as PIL and OpenCV compute it, so integer weights equal theirs bit for bit.
(The sine in "lanczos" and "hamming" is the device's, which may differ from the host's in the last of 53 bits; 22 bits
are kept.) If each image has a box, each image has a table. A box on the device is clamped to the image, and the host
never reads it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops.decomposition._resampling_filters import FILTERS
from imgops.kernels import transfer
from imgops.kernels.cuda._arithmetic import round_half_even
from imgops.kernels.cuda._launch import inline, kernel, launch

_BLOCK = 128
#: The tables that ``cached`` keeps, and their largest number; a table takes about 100 kB.
_kept: dict[tuple[Any, ...], Any] = {}
_MOST_KEPT = 128
#: Kernels unroll tables with at most this number of taps.
_MOST_UNROLLED = 8


@dataclass(frozen=True)
class Table:
    """Table of one axis: ``weight[b, k, o]`` belongs to pixel ``first[b, o] + k``, of ``count[b, o]``.

    In an indexed table it belongs to pixel ``first[b, k, o]``, and ``count`` is unused.
    """

    first: Tensor
    count: Tensor
    weight: Tensor
    #: The step from image to image; 0 if all images share the table.
    step: int
    weight_step: int
    #: The most taps of an output.
    taps: int
    is_indexed: bool = False
    #: In a transposed table, the first pixels of the original table.
    original: Tensor | None = None

    @property
    def starts(self) -> Tensor:
        return self.first if self.original is None else self.original

    @property
    def numbers(self) -> tuple[int, ...]:
        """The steps from image to image of ``first``, ``weight`` and ``starts``, the tap length, the taps."""
        step = self.starts.shape[-1] if self.step else 0
        return self.step, self.weight_step, step, self.weight.shape[-1], self.taps

    @property
    def last(self) -> int:
        """The index in ``first`` of the last pixel's window."""
        return self.first[0].numel() - 1

    @property
    def constants(self) -> dict[str, Any]:
        taps = self.taps if self.taps <= _MOST_UNROLLED else 0
        return {"TAPS": taps, "IS_INDEXED": self.is_indexed, "IS_TRANSPOSED": self.original is not None}

    def transposed(self, size: int) -> Table:
        """Return the transposed table; ``size`` is the length of the axis that this table reads.

        The starts and the ends of the bands only increase, so the transposed matrix is also banded.
        """
        pixels = torch.arange(size, device=self.first.device, dtype=torch.int32).repeat(len(self.first), 1)
        first = torch.searchsorted(self.first + self.count, pixels, right=True, out_int32=True)
        last = torch.searchsorted(self.first, pixels, right=True, out_int32=True)
        step, out = size if self.step else 0, self.first.shape[-1]
        count = (last - first).clamp(min=0)
        return Table(first, count, self.weight, step, self.weight_step, out, original=self.first)


@dataclass(frozen=True)
class Region:
    """The part that is read along an axis: all ``size`` pixels, or the pixels between two coordinates of each box."""

    size: int
    boxes: Tensor | None = None  # (B, 4), float64 or int64
    axis: int = 0  # 0 for x, 1 for y
    #: The height and width of each image, (B, 2), if they differ; then ``size`` is the greatest.
    sizes: Tensor | None = None

    @property
    def count(self) -> int:
        return 1 if self.boxes is None else len(self.boxes)

    @property
    def is_cut(self) -> bool:
        """Whether filters ignore the pixels outside of a box."""
        return self.boxes is not None and self.boxes.dtype == torch.int64


def empty(
    region: Region,
    out: int,
    taps: int,
    dtype: torch.dtype,
    device: torch.device,
    most: int,
    is_indexed: bool = False,
) -> Table:
    """Return a table without values, with memory for ``taps`` weights per output, of which ``most`` are used."""
    count = region.count
    shape = (count, taps, out) if is_indexed else (count, out)
    first = torch.empty(shape, dtype=torch.int32, device=device)
    length = first if is_indexed else torch.empty_like(first)
    weight = torch.empty((count, taps, out), dtype=dtype, device=device)
    steps = (first[0].numel(), taps * out) if count > 1 else (0, 0)
    return Table(first, length, weight, *steps, most, is_indexed)


def cached(key: tuple[Any, ...], device: torch.device, make: Callable[[], Any]) -> Any:
    """Return a table that depends only on sizes; the latest tables are cached for each stream.

    During the capture of a CUDA graph, no table is cached or taken from the cache: an older table could be dropped
    from the cache while the graph still reads its memory, and a recorded table has no values before a replay.
    """
    if device.type == "cuda":
        if torch.cuda.is_current_stream_capturing():
            return make()
        key = (*key, device.index, torch.cuda.current_stream(device).cuda_stream)
    found = _kept.get(key)
    if found is None:
        found = _kept[key] = transfer.make_lasting(device, make)
        if len(_kept) > _MOST_KEPT:
            _kept.pop(next(iter(_kept)), None)
    return found


def pil_taps(support: float, size: int, out: int) -> int:
    """Return the largest number of pixels in a window of PIL's filter."""
    return math.ceil(support * max(size / out, 1.0)) * 2 + 1


def pil(name: str, region: Region, out: int, device: torch.device) -> Table:
    """Return PIL's table, in single precision."""
    _, support = FILTERS[name]
    taps = pil_taps(support, region.size, out)

    def make() -> Table:
        most = math.ceil(2 * support * max(region.size / out, 1.0) + 1e-6)
        made = empty(region, out, taps, torch.float32, device, most)
        arguments = _arguments(made, region, out, taps)
        launch(_pil_kernel, *arguments, FILTER=name, SUPPORT=support, **_kind(region))
        return made

    return make() if region.boxes is not None else cached(("pil", name, region.size, out), device, make)


def opencv(name: str, region: Region, out: int, device: torch.device, *, kind: str) -> Table:
    """Return OpenCV's table of any filter, except for a shrinking "area".

    ``kind`` is "bands" for weights of pixels in the image, with the border's weights added to the outermost pixel; or
    "levels" or "real" for an indexed table of all taps, as integers with 11 fraction bits or as floats.
    """
    taps = {"bilinear": 2, "area": 2, "bicubic": 4, "lanczos": 8}[name]
    dtype = torch.int32 if kind == "levels" else torch.float32

    def make() -> Table:
        made = empty(region, out, taps, dtype, device, taps, kind != "bands")
        arguments = _arguments(made, region, out, taps)
        launch(_opencv_kernel, *arguments, NAME=name, KIND=kind, TAPS=taps, **_kind(region))
        return made

    key = "opencv", name, kind, region.size, out
    return make() if region.boxes is not None else cached(key, device, make)


def area(size: int, out: int, device: torch.device, *, levels: bool) -> Table:
    """Return OpenCV's table of "area" for a shrinking axis; with ``levels``, the weights are integers of 1."""
    taps = size // out if size % out == 0 else math.ceil(size / out) + 1

    def make() -> Table:
        dtype = torch.int32 if levels else torch.float32
        made = empty(Region(size), out, taps, dtype, device, taps)
        tensors = made.first, made.count, made.weight
        launch(_area_kernel, -(-out // _BLOCK), *tensors, size, out, taps, BLOCK=_BLOCK)
        return made

    found: Table = cached(("area", levels, size, out), device, make)
    return found


@kernel(tensors=3)
def _area_kernel(first, count, weight, size, out_size, taps, BLOCK: tl.constexpr):
    """Write the cells of OpenCV's "area": whole pixels, and fractions of the pixels at both ends."""
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = o < out_size
    zero = tl.full((BLOCK,), 0, tl.float64)
    scale = (zero + size) / out_size
    low = o * scale
    high = low + scale
    cell = tl.minimum(scale, size - low)
    last = tl.minimum(tl.floor(high), zero + (size - 1))
    begin = tl.minimum(tl.ceil(low), last)
    # OpenCV ignores fractions of a pixel below a thousandth.
    head = tl.where(begin - low > 1e-3, begin - low, 0.0)
    tail = tl.where(high - last > 1e-3, tl.minimum(tl.minimum(high - last, 1.0), cell), 0.0)
    start = tl.where(head > 0, begin - 1, begin)
    tl.store(first + o, start.to(tl.int32), mask=inside)
    tl.store(count + o, (last - start + tl.where(tail > 0, 1.0, 0.0)).to(tl.int32), mask=inside)
    for k in range(taps):
        position = start + k
        share = tl.where((position >= begin) & (position < last), 1.0, 0.0)
        share = tl.where(position == begin - 1, head, share)
        share = tl.where(position == last, tail, share)
        if weight.dtype.element_ty == tl.int32:
            tl.store(weight + k * out_size + o, tl.full((BLOCK,), 1, tl.int32), mask=inside)
        else:
            tl.store(weight + k * out_size + o, (share / cell).to(tl.float32), mask=inside)


def _arguments(made: Table, region: Region, out: int, taps: int) -> tuple[Any, ...]:
    programs = region.count * -(-out // _BLOCK)
    boxes = made.first if region.boxes is None else region.boxes
    sizes = made.first if region.sizes is None else region.sizes
    return programs, made.first, made.count, made.weight, boxes, sizes, region.axis, region.size, out, taps


def _kind(region: Region) -> dict[str, Any]:
    sized = region.sizes is not None
    return {"WHOLE": region.boxes is None, "CUT": region.is_cut, "SIZED": sized, "BLOCK": _BLOCK}


@inline
def _edges(boxes, table, axis, size, WHOLE: tl.constexpr, CUT: tl.constexpr):
    """Return the start and the extent of a region, as doubles, and the first and number of its visible pixels."""
    if WHOLE:
        low = tl.full((1,), 0, tl.float64)
        extent = low + size
        origin, limit = 0, size
    elif CUT:
        origin = tl.load(boxes + table * 4 + axis).to(tl.int32)
        origin = tl.minimum(tl.maximum(origin, 0), size - 1)
        end = tl.load(boxes + table * 4 + axis + 2).to(tl.int32)
        limit = tl.minimum(tl.maximum(end, origin + 1), size) - origin
        low = tl.full((1,), 0, tl.float64)
        extent = low + limit
    else:  # PIL keeps a box in single precision
        from_low = tl.load(boxes + table * 4 + axis).to(tl.float32)
        from_high = tl.load(boxes + table * 4 + axis + 2).to(tl.float32)
        most = size.to(tl.float32)
        from_low = tl.where(from_low >= 0, tl.minimum(from_low, most), 0.0)
        from_high = tl.where(from_high >= from_low, tl.minimum(from_high, most), from_low)
        low = tl.full((1,), 0, tl.float64) + from_low
        extent = tl.full((1,), 0, tl.float64) + (from_high - from_low)
        origin, limit = 0, size
    return low, extent, origin, limit


@inline
def _sinc(x):
    x = tl.where(x == 0, 1e-300, x) * 3.141592653589793
    return tl.sin(x) / x


@inline
def _filter(x, FILTER: tl.constexpr):
    if FILTER == "box":
        value = tl.where((x > -0.5) & (x <= 0.5), 1.0, 0.0).to(tl.float64)
    elif FILTER == "lanczos":
        value = tl.where((x >= -3) & (x < 3), _sinc(x) * _sinc(x / 3), 0.0)
    else:
        x = tl.abs(x)
        if FILTER == "bilinear":
            value = tl.where(x < 1, 1 - x, 0.0)
        elif FILTER == "hamming":  # PIL writes the two numbers in single precision
            window = 0.540000021457672119140625 + 0.4600000083446502685546875 * tl.cos(x * 3.141592653589793)
            window = tl.where(x == 0, 1.0, window)  # their sum is not 1, which PIL returns
            value = tl.where(x < 1, _sinc(x) * window, 0.0)
        else:
            near = (1.5 * x - 2.5) * x * x + 1
            far = (((x - 5) * x + 8) * x - 4) * -0.5
            value = tl.where(x < 1, near, tl.where(x < 2, far, 0.0))
    return value


@inline
def pil_window(
    boxes, table, axis, size, out_size, o, taps, SUPPORT: tl.constexpr, WHOLE: tl.constexpr, CUT: tl.constexpr
):  # fmt: skip
    """Return the windows of the outputs ``o``: first pixel, number of pixels, center, reciprocal of the stretch.

    Also return whether the axis keeps its size, because PIL then does not resample it, and the beginning of the
    region.
    """
    low, extent, origin, limit = _edges(boxes, table, axis, size, WHOLE, CUT)
    scale = extent / out_size
    stretch = tl.maximum(scale, 1.0)
    reach = stretch * SUPPORT
    center = low + (o + 0.5) * scale
    start = tl.maximum((center - reach + 0.5).to(tl.int32), 0)
    length = tl.minimum((center + reach + 0.5).to(tl.int32), limit) - start
    length = tl.minimum(tl.maximum(length, 0), taps)
    is_same = (low == 0) & (extent == out_size) & (limit == out_size)
    return tl.where(is_same, o, start), tl.where(is_same, 1, length), center, 1.0 / stretch, is_same, origin


@kernel(tensors=5)
def _pil_kernel(
    first, count, weight, boxes, sizes, axis, size, out_size, taps,
    FILTER: tl.constexpr, SUPPORT: tl.constexpr,
    WHOLE: tl.constexpr, CUT: tl.constexpr, SIZED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    across = (out_size + BLOCK - 1) // BLOCK
    table = tl.program_id(0) // across
    if SIZED:
        size = tl.load(sizes + table * 2 + 1 - axis).to(tl.int32)
    o = (tl.program_id(0) % across) * BLOCK + tl.arange(0, BLOCK)
    start, length, center, inverse, is_same, origin = pil_window(
        boxes, table, axis, size, out_size, o, taps, SUPPORT, WHOLE, CUT
    )
    total = tl.full((BLOCK,), 0, tl.float64)
    for k in range(taps):
        value = _filter((start + k - center + 0.5) * inverse, FILTER)
        total += tl.where(k < length, value, 0.0)
    inside = o < out_size
    for k in range(taps):
        value = _filter((start + k - center + 0.5) * inverse, FILTER)
        value = tl.where(total != 0, value / tl.where(total != 0, total, 1.0), value)
        value = tl.where(is_same, 1.0, value)
        value = tl.where(k < length, value, 0.0)
        at = weight + (table * taps + k).to(tl.int64) * out_size + o
        tl.store(at, value.to(tl.float32), mask=inside)
    tl.store(first + table * out_size + o, start + origin, mask=inside)
    tl.store(count + table * out_size + o, length, mask=inside)


@inline
def _opencv_tap(f, k, NAME: tl.constexpr):
    """Return the weight of the ``k``-th pixel around a position that is ``f`` to the right of a pixel."""
    if NAME == "bicubic":
        g = 1 - f
        w0 = ((-0.75 * (f + 1) + 3.75) * (f + 1) - 6.0) * (f + 1) + 3.0
        w1 = (1.25 * f - 2.25) * f * f + 1
        w2 = (1.25 * g - 2.25) * g * g + 1
        value = tl.where(k == 0, w0, tl.where(k == 1, w1, tl.where(k == 2, w2, 1 - w0 - w1 - w2)))
    elif NAME == "lanczos":
        x = f + 3 - k
        total = f * 0
        for tap in tl.static_range(8):
            total += _sinc(f + 3 - tap) * _sinc((f + 3 - tap) / 4)
        value = _sinc(x) * _sinc(x / 4) / total
    else:
        value = tl.where(k == 0, 1 - f, f)
    return value


@kernel(tensors=5)
def _opencv_kernel(
    first, count, weight, boxes, sizes, axis, size, out_size, taps,
    NAME: tl.constexpr, KIND: tl.constexpr, TAPS: tl.constexpr,
    WHOLE: tl.constexpr, CUT: tl.constexpr, SIZED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    across = (out_size + BLOCK - 1) // BLOCK
    table = tl.program_id(0) // across
    if SIZED:
        size = tl.load(sizes + table * 2 + 1 - axis).to(tl.int32)
    o = (tl.program_id(0) % across) * BLOCK + tl.arange(0, BLOCK)
    low, extent, origin, limit = _edges(boxes, table, axis, size, WHOLE, CUT)
    inverse = (low + out_size) / extent
    scale = 1.0 / inverse  # as OpenCV computes it, including the rounding
    if NAME == "area":  # enlarged: bilinear between the cells that a pixel touches
        left = tl.floor(o * scale)
        f = (o + 1) - (left + 1) * inverse
        single = f.to(tl.float32)
        f = tl.where((single <= 0) | (single == tl.floor(single)), 0.0, f - tl.floor(f))
    else:
        position = (o + 0.5) * scale - 0.5
        left = tl.floor(position)
        f = position - left
    if KIND == "levels":  # the position in single precision
        single = (left + f).to(tl.float32)
        if NAME != "area":
            left = tl.floor(single).to(tl.float64)
        f = (single - left.to(tl.float32)).to(tl.float64)
    start = left.to(tl.int32) + (1 - TAPS // 2)
    inside = o < out_size
    begin = tl.minimum(tl.maximum(start, 0), limit - 1)
    end = tl.minimum(tl.maximum(start + (TAPS - 1), 0), limit - 1)
    for k in tl.static_range(TAPS):
        at = weight + (table * TAPS + k).to(tl.int64) * out_size + o
        if KIND == "bands":
            folded = tl.full((BLOCK,), 0, tl.float64)
            for tap in tl.static_range(TAPS):
                shown = tl.minimum(tl.maximum(start + tap, 0), limit - 1)
                folded += tl.where(shown == begin + k, _opencv_tap(f, tap, NAME), 0.0)
            tl.store(at, folded.to(tl.float32), mask=inside)
        elif KIND == "levels":
            value = _opencv_tap(f, k, NAME).to(tl.float32) * 2048
            tl.store(at, round_half_even(value).to(tl.int32), mask=inside)
        else:
            tl.store(at, _opencv_tap(f, k, NAME).to(tl.float32), mask=inside)
        if KIND != "bands":
            shown = tl.minimum(tl.maximum(start + k, 0), limit - 1) + origin
            tl.store(first + (table * TAPS + k) * out_size + o, shown, mask=inside)
    if KIND == "bands":
        tl.store(first + table * out_size + o, begin + origin, mask=inside)
        tl.store(count + table * out_size + o, end - begin + 1, mask=inside)


def nearest(region: Region, out: int, device: torch.device, rule: str) -> tuple[Tensor, int]:
    """Return the pixel that each output takes (-1 for no pixel), and the step from image to image.

    ``rule`` is "pil", "pil_16_bits", "opencv" or "torch".
    """

    def make() -> Tensor:
        found = torch.empty((region.count, out), dtype=torch.int32, device=device)
        boxes = found if region.boxes is None else region.boxes
        sizes = found if region.sizes is None else region.sizes
        launch(
            _nearest_kernel,
            -(-region.count // 32),
            *(found, boxes, sizes, region.axis, region.size, out, region.count),
            RULE=rule,
            WHOLE=region.boxes is None,
            CUT=region.is_cut,
            SIZED=region.sizes is not None,
            BLOCK=32,
            warps=1,
        )
        return found

    if region.boxes is not None:
        return make(), out if region.count > 1 else 0
    return cached(("nearest", rule, region.size, out), device, make), 0


@kernel(tensors=3)
def _nearest_kernel(
    index, boxes, image_sizes, axis, size, out_size, tables,
    RULE: tl.constexpr, WHOLE: tl.constexpr, CUT: tl.constexpr, SIZED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the nearest pixels of a box in each lane.

    PIL adds the steps up, with rounding, so the outputs of a box are computed one after another. In mode I;16
    it multiplies.
    """
    table = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    table = tl.minimum(table, tables - 1)
    if SIZED:
        size = tl.load(image_sizes + table * 2 + 1 - axis).to(tl.int32)
    low, extent, origin, limit = _edges(boxes, table, axis, size, WHOLE, CUT)
    step = extent / out_size
    x = low + step * 0.5 + table.to(tl.float64) * 0
    if RULE == "opencv":
        scale = 1.0 / ((low * 0 + out_size) / extent)
    elif RULE == "torch":  # in single precision
        scale = (extent / out_size).to(tl.float32)
    for o in range(out_size):
        if RULE == "pil" or RULE == "pil_16_bits":
            if RULE == "pil_16_bits":
                x = low + step * (o + 0.5) + table.to(tl.float64) * 0  # of the shape that it has before
            at = x.to(tl.int32)
            at = tl.where((x < 0) | (at >= limit), -1, at + origin)
            x += step
        else:
            at = tl.minimum(tl.floor(o * scale).to(tl.int32), limit - 1) + origin
        tl.store(index + table * out_size + o, at + table * 0)
