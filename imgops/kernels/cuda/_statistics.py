"""Statistics that some color steps need: histograms, extremes and means, and the tables made of them.

Each program counts a part of an image and writes its own result; a second launch adds the parts in order. So the
result does not depend on the order of the programs, and no memory must be zeroed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda import _color_steps
from imgops.kernels.cuda._arithmetic import level
from imgops.kernels.cuda._launch import inline, kernel, launch
from imgops.kernels.cuda._pixels import Cover, is_whole, load_pixels, place_of, positions, vector_of

#: The number of blocks of pixels that a program counts.
SPAN = 4


@dataclass(frozen=True)
class Gate:
    """The condition that an image has a step at a turn: its entry of ``order`` at this turn is ``which``."""

    order: Tensor
    step: int
    turn: int
    which: int

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.order, self.step, self.turn, self.which


class Statistics(NamedTuple):
    """The tables and numbers that one step needs for each image."""

    #: A table of levels for each plane, for equalize, and for autocontrast on levels.
    tables: Tensor
    #: Two numbers for each plane: for autocontrast on floats, the lowest value and the scale; for contrast, the first
    #: number is the mean of the image.
    numbers: Tensor


def statistics(
    over: Cover, channels: int, letters: str, order: Tensor | None, order_n: int, turn: int
) -> Statistics:
    """Return the statistics of the step of each image at a turn; without an order, all images have the first step.

    ``letters`` has one letter for each step: "c" for contrast, "a" for autocontrast, "e" for equalize.
    """
    image, (parts, _, planes, *_, pixels) = over.image, over.numbers
    count, width = over.programs // (parts * planes) * channels, 256 if "e" in letters else 2
    counts = torch.empty(count * parts * width, dtype=torch.int32, device=image.device)
    tables = torch.empty((count, 256), dtype=torch.uint8, device=image.device)
    numbers = torch.empty((count, 2), dtype=torch.float32, device=image.device)
    steps: dict[str, Any] = {"ORDERED": order is not None, "CONTRAST": letters.find("c")}
    steps |= {"AUTOCONTRAST": letters.find("a"), "EQUALIZE": letters.find("e")}
    turns, gate = counts if order is None else order, (width, order_n, turn)
    launch(
        _parts_kernel, over.programs, counts, image, turns, *over.numbers, *gate, **steps, **over.constants
    )
    where = counts, image, turns, tables, numbers, parts, planes, channels, pixels, *gate
    launch(_tables_kernel, count, *where, **steps)
    return Statistics(tables, numbers)


@kernel(tensors=3)
def _parts_kernel(
    counts, image, order, sizes, starts, parts, span, planes, channels, factor, pixels, width, order_n, turn,
    PACKED: tl.constexpr, ORDERED: tl.constexpr, CONTRAST: tl.constexpr, AUTOCONTRAST: tl.constexpr,
    EQUALIZE: tl.constexpr, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr, FORM: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Count a part of an image; the results of each channel are ``width`` integers, or the bits of floats."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    plane, n, start, within, pixels, step, blocks, begin, end = place_of(
        tl.program_id(0),
        image,
        parts,
        span,
        planes,
        channels,
        factor,
        pixels,
        sizes,
        starts,
        PACKED,
        INTERLEAVED,
        FORM,
        BLOCK,
    )
    which = tl.load(order + n * order_n + turn) if ORDERED else 0
    at = start + within
    to = counts + (plane * CHANNELS * parts + tl.program_id(0) % parts) * width
    next = parts.to(tl.int64) * width
    if CONTRAST >= 0:
        if which == CONTRAST:
            _sum_luma(
                to, image, at, pixels, step, begin, end, blocks, CHANNELS, INTERLEAVED, FORM, BLOCK, LEVELS
            )
    if AUTOCONTRAST >= 0:
        if which == AUTOCONTRAST:
            _find_extremes(
                to, next, image, at, pixels, step, begin, end, blocks, CHANNELS, INTERLEAVED, FORM, BLOCK
            )
    if EQUALIZE >= 0:
        if which == EQUALIZE:
            _count_levels(
                to,
                next,
                image,
                at,
                pixels,
                step,
                begin,
                end,
                blocks,
                CHANNELS,
                INTERLEAVED,
                FORM,
                BLOCK,
                LEVELS,
            )


@inline
def _load(
    image, at, pixels, step, begin, end, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr,
    FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    if is_whole(image, begin, end, FORM, BLOCK):
        r, g, b, _ = load_pixels(
            image, at, pixels, step, begin, end, True, CHANNELS, INTERLEAVED, FORM, BLOCK
        )
    else:
        r, g, b, _ = load_pixels(
            image, at, pixels, step, begin, end, False, CHANNELS, INTERLEAVED, FORM, BLOCK
        )
    return r, g, b


@inline
def _sum_luma(
    to, image, at, pixels, step, begin, end, blocks, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr, FORM: tl.constexpr,
    BLOCK: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    VECTOR: tl.constexpr = vector_of(image.dtype.element_ty, FORM)
    total = tl.full((BLOCK // VECTOR, VECTOR), 0, tl.float32)
    for i in range(blocks):
        here, first, last = at + i * BLOCK * step, begin - i * BLOCK, end - i * BLOCK
        r, g, b = _load(image, here, pixels, step, first, last, CHANNELS, INTERLEAVED, FORM, BLOCK)
        r, g, b = r.to(tl.float32), g.to(tl.float32), b.to(tl.float32)
        total += _color_steps.luma(r, g, b, CHANNELS == 3, LEVELS)  # 0 where there is no pixel
    tl.store(to, tl.sum(total).to(tl.int32, bitcast=True))


@inline
def _find_extremes(
    to, next, image, at, pixels, step, begin, end, blocks, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr,
    FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    VECTOR: tl.constexpr = vector_of(image.dtype.element_ty, FORM)
    low = tl.full((BLOCK // VECTOR, VECTOR), float("inf"), tl.float32)
    low_g, low_b, high, high_g, high_b = low, low, -low, -low, -low
    for i in range(blocks):
        here, first, last = at + i * BLOCK * step, begin - i * BLOCK, end - i * BLOCK
        r, g, b = _load(image, here, pixels, step, first, last, CHANNELS, INTERLEAVED, FORM, BLOCK)
        _, inside = positions(first, last, VECTOR, BLOCK)
        low, high = _extend(low, high, r, inside)
        if CHANNELS == 3:
            low_g, high_g = _extend(low_g, high_g, g, inside)
            low_b, high_b = _extend(low_b, high_b, b, inside)
    _store_extremes(to, low, high)
    if CHANNELS == 3:
        _store_extremes(to + next, low_g, high_g)
        _store_extremes(to + 2 * next, low_b, high_b)


@inline
def _extend(low, high, x, inside):
    x = x.to(tl.float32)
    low = tl.where(inside, tl.minimum(low, x), low)
    return low, tl.where(inside, tl.maximum(high, x), high)


@inline
def _store_extremes(to, low, high):
    tl.store(to, tl.min(low).to(tl.int32, bitcast=True))
    tl.store(to + 1, tl.max(high).to(tl.int32, bitcast=True))


@inline
def _count_levels(
    to, next, image, at, pixels, step, begin, end, blocks, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr,
    FORM: tl.constexpr, BLOCK: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    count = tl.full((256,), 0, tl.int32)
    count_g, count_b = count, count
    for i in range(blocks):
        here, first, last = at + i * BLOCK * step, begin - i * BLOCK, end - i * BLOCK
        r, g, b = _load(image, here, pixels, step, first, last, CHANNELS, INTERLEAVED, FORM, BLOCK)
        count += tl.histogram(_levels(r, BLOCK, LEVELS), 256)
        if CHANNELS == 3:
            count_g += tl.histogram(_levels(g, BLOCK, LEVELS), 256)
            count_b += tl.histogram(_levels(b, BLOCK, LEVELS), 256)
    value = tl.arange(0, 256)
    none = blocks * BLOCK - (tl.minimum(tl.maximum(end, 0), blocks * BLOCK) - begin)
    none = tl.where(value == 0, none, 0)  # missing pixels were read as 0
    tl.store(to + value, count - none)
    if CHANNELS == 3:
        tl.store(to + next + value, count_g - none)
        tl.store(to + 2 * next + value, count_b - none)


@inline
def _levels(x, BLOCK: tl.constexpr, LEVELS: tl.constexpr):
    if not LEVELS:
        x = level(x * 255.999).to(tl.int32)
    return tl.reshape(x, [BLOCK])


@kernel(tensors=5)
def _tables_kernel(
    counts, image, order, tables, numbers, sizes, starts, parts, planes, channels, pixels, width, order_n, turn,
    PACKED: tl.constexpr, ORDERED: tl.constexpr, CONTRAST: tl.constexpr, AUTOCONTRAST: tl.constexpr,
    EQUALIZE: tl.constexpr,
):  # fmt: skip
    """Add the parts of a plane, and make its table or numbers."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    plane = tl.program_id(0).to(tl.int64)
    n = plane // channels
    which = tl.load(order + n * order_n + turn) if ORDERED else 0
    sums = (counts + n * channels * parts * width).to(tl.pointer_type(tl.float32))
    counts += plane * parts * width
    tables, numbers = tables + plane * 256, numbers + plane * 2
    if PACKED != "":
        pixels = tl.load(sizes + n * 2) * tl.load(sizes + n * 2 + 1)
    if CONTRAST >= 0:
        if which == CONTRAST:
            tl.store(numbers, mean_of(sums, parts * planes, width, pixels * planes, LEVELS))
    if AUTOCONTRAST >= 0:
        if which == AUTOCONTRAST:
            _stretch(tables, numbers, counts, parts, width, LEVELS)
    if EQUALIZE >= 0:
        if which == EQUALIZE:
            _equalize(tables, counts, parts)


@inline
def mean_of(sums, parts, width, pixels, LEVELS: tl.constexpr):
    """Return the mean from the sums of parts, which are ``width`` apart; PIL rounds the mean of levels to a level."""
    total = tl.full((128,), 0, tl.float64)
    for first in range(0, parts, 128):
        i = first + tl.arange(0, 128)
        total += tl.load(sums + i.to(tl.int64) * width, mask=i < parts, other=0).to(tl.float64)
    return rounded_mean(tl.sum(total, 0), pixels, LEVELS)


@inline
def rounded_mean(total, pixels, LEVELS: tl.constexpr):
    value = total / pixels
    if LEVELS:
        value = tl.floor(value + 0.5)
    return value.to(tl.float32)


@inline
def _equalize(table, counts, parts):
    """Write the table of ``ImageOps.equalize``."""
    value = tl.arange(0, 256)
    count = tl.full((256,), 0, tl.int32)
    for part in range(parts):
        count += tl.load(counts + (part * 256 + value))
    # As in PIL, the last level that occurs does not count, and a plane with only one level is not changed.
    last = tl.max(tl.where(count > 0, value, 0), 0)
    step = (tl.sum(count, 0) - tl.sum(tl.where(value == last, count, 0), 0)) // 255
    safe = tl.maximum(step, 1)
    before = tl.cumsum(count, 0) - count
    equal = tl.minimum((before + safe // 2) // safe, 255)
    tl.store(table + value, tl.where(step == 0, value, equal).to(tl.uint8))


@inline
def _stretch(table, numbers, counts, parts, width, LEVELS: tl.constexpr):
    """Write the table of ``ImageOps.autocontrast``, or, for floats, the lowest value and the scale."""
    low, high = tl.full((128,), float("inf"), tl.float32), tl.full((128,), float("-inf"), tl.float32)
    for first in range(0, parts, 128):
        i = first + tl.arange(0, 128)
        at, inside = counts + i.to(tl.int64) * width, i < parts
        low = tl.where(inside, tl.minimum(low, _bits(tl.load(at, mask=inside, other=0))), low)
        high = tl.where(inside, tl.maximum(high, _bits(tl.load(at + 1, mask=inside, other=0))), high)
    least, most = tl.min(low, 0), tl.max(high, 0)
    flat = most <= least
    if LEVELS:
        value = tl.arange(0, 256)
        first = value.to(tl.float64) * 0 + least
        scale = (first * 0 + 255.0) / tl.where(flat, first * 0 + 1.0, most - first)
        found = value.to(tl.float64) * scale + -first * scale
        found = tl.minimum(tl.maximum(found, 0.0), 255.0).to(tl.int32)
        tl.store(table + value, tl.where(flat, value, found).to(tl.uint8))
    else:  # a scale of 0 means that the plane is not changed
        tl.store(numbers, least)
        scale = tl.div_rn(least * 0 + 1.0, tl.where(flat, 1.0, most - least))
        tl.store(numbers + 1, tl.where(flat, 0.0, scale))


@inline
def _bits(x):
    """Return the float that has the bits of an integer."""
    return x.to(tl.float32, bitcast=True)
