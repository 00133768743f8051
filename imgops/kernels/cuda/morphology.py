"""CUDA kernels of the morphological operators: the extreme value of the pixels under each image's structuring element.

If an element is a whole rectangle, which the kernel detects, a thread takes extremes along x once for all its rows of
the result, and then along y.
"""

# ruff: noqa: RUF005 - Triton does not unpack within a tuple

from __future__ import annotations

from typing import Any

import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda._launch import inline, kernel, launch
from imgops.kernels.cuda._tiles import PIXELS, batch, output_batch, per_image
from imgops.kernels.cuda._windows import (
    THREADS,
    border_at,
    format_of,
    is_whole,
    lines_in,
    no_values,
    parts_of,
    piece_of,
    plane_at,
    rest_of,
    store_values,
    window_at,
)

#: The number of rows of the result per thread, and the largest number of columns of an element that are processed at
#: once.
_ROWS, _MOST = 4, 8


def erode(out: Tensor, image: Tensor, kernel: Tensor, padding_mode: str) -> Any:
    return _find_extremes(out, image, kernel, padding_mode, largest=False, sign=0)


def dilate(out: Tensor, image: Tensor, kernel: Tensor, padding_mode: str) -> Any:
    return _find_extremes(out, image, kernel, padding_mode, largest=True, sign=0)


def hit_or_miss(out: Tensor, image: Tensor, kernel: Tensor, padding_mode: str) -> Any:
    _find_extremes(out, image, kernel, padding_mode, largest=False, sign=1)
    return _find_extremes(out, image, kernel, padding_mode, largest=True, sign=-1)


def _find_extremes(
    out: Tensor, image: Tensor, kernel: Tensor, padding_mode: str, largest: bool, sign: int
) -> Any:
    """Write the extreme values; with a ``sign`` of -1, invert them and intersect them with the old result."""
    if image.dtype not in PIXELS:
        return NotImplemented
    target = output_batch(out)
    interleaved = format_of(target)
    source, lines = lines_in(batch(image), interleaved), lines_in(target, interleaved)
    members, step = per_image(kernel, image, 2, kernel.dtype)
    tall, wide = kernel.shape[-2:]
    left, right = wide // 2 * source.pixel, (wide - 1 - wide // 2) * source.pixel
    tail, inner, parts = parts_of(source, left, right, _ROWS)
    numbers = *source.shape, *source.steps, *lines.steps, tail, inner, parts, left, right, step, tall, wide
    launch(
        _extreme_kernel,
        source.images * source.planes * parts,
        *(lines.tensor, source.tensor, members, *numbers),
        PIXEL=source.pixel,
        TAPS=min(wide, _MOST),
        BORDER=padding_mode,
        LARGEST=largest,
        SIGN=sign,
        ROWS=_ROWS,
        BLOCK=THREADS,
    )
    return None


@kernel(tensors=3)
def _extreme_kernel(
    out, image, members, sizes, starts, planes, height, width, pixel, step_x, step_n, step_c, step_y,
    out_n, out_c, out_y, tail, inner, parts, left, right, member_n, tall, wide, PACKED: tl.constexpr,
    PIXEL: tl.constexpr, TAPS: tl.constexpr, BORDER: tl.constexpr, LARGEST: tl.constexpr, SIGN: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the extreme values of the pixels under an element.

    With a constant border, as in OpenCV, pixels outside never have the extreme value.
    """
    UNIT: tl.constexpr = 16 if image.dtype.element_ty == tl.uint8 else 4
    plane, part = tl.program_id(0) // parts, tl.program_id(0) % parts
    start, line, rows, length = plane_at(
        plane, planes, height, width, pixel, step_x, step_n, step_c, step_y, sizes, starts, PACKED
    )
    to, to_line, _, _ = plane_at(
        plane, planes, height, width, pixel, step_x, out_n, out_c, out_y, sizes, starts, PACKED
    )
    y, column, exists = piece_of(part, inner, rows, length, tail, left, right, ROWS, UNIT, BLOCK)
    own = members + (plane // planes).to(tl.int64) * member_n
    if exists:
        if part < inner:
            _extreme_rows(
                out + to, image + start, own, to_line, line, y, column, step_x, rows, length, tall, wide,
                True, PIXEL, TAPS, BORDER, LARGEST, SIGN, ROWS, BLOCK,
            )  # fmt: skip
        else:
            _extreme_rows(
                out + to, image + start, own, to_line, line, y, column, step_x, rows, length, tall, wide,
                False, PIXEL, TAPS, BORDER, LARGEST, SIGN, ROWS, BLOCK,
            )  # fmt: skip


@inline
def _extreme_rows(
    out, image, members, to_line, line, y, column, step_x, height, length, tall, wide, INNER: tl.constexpr,
    PIXEL: tl.constexpr, TAPS: tl.constexpr, BORDER: tl.constexpr, LARGEST: tl.constexpr, SIGN: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    KIND: tl.constexpr = tl.uint32 if LEVELS else tl.float32
    # OpenCV's value outside is the greatest finite float32, which half precision cannot represent.
    GREATEST: tl.constexpr = 3.4028234663852886e38 if image.dtype.element_ty == tl.float32 else float("inf")
    OUTSIDE: tl.constexpr = (0 if LARGEST else 255) if LEVELS else (-GREATEST if LARGEST else GREATEST)
    LEAST: tl.constexpr = OUTSIDE if LEVELS else (float("-inf") if LARGEST else float("inf"))
    COUNT: tl.constexpr = 16 if LEVELS and INNER else 4
    SPAN: tl.constexpr = COUNT + (TAPS - 1) * PIXEL
    LEFT: tl.constexpr = TAPS // 2 * PIXEL
    is_full = _is_full(members, tall * wide, SIGN, BLOCK)
    whole = is_whole(image, line, length) & (wide == TAPS)
    found = no_values()
    for _ in tl.static_range(ROWS * COUNT):
        found = found + (tl.full((BLOCK,), LEAST, KIND),)
    for s in range(tall + ROWS - 1):
        row, has_row = border_at(y + (s - tall // 2), height, BORDER)
        at = image + row.to(tl.int64) * line
        if TAPS < 8:
            values = window_at(
                at, column, 0, whole, has_row, OUTSIDE, SPAN, LEFT, length, step_x, PIXEL, INNER, BORDER, KIND
            )  # fmt: skip
            found = _add_row(
                found, values, members, is_full, s, 0, tall, wide, PIXEL, TAPS, LARGEST, SIGN, ROWS
            )
        else:
            for chunk in range(0, wide, TAPS):
                first = tl.minimum(chunk, wide - TAPS)  # a column may be processed twice
                shift = first - wide // 2 + TAPS // 2
                values = window_at(
                    at, column, shift, whole, has_row, OUTSIDE, SPAN, LEFT, length, step_x, PIXEL, INNER, BORDER, KIND
                )  # fmt: skip
                found = _add_row(
                    found, values, members, is_full, s, first, tall, wide, PIXEL, TAPS, LARGEST, SIGN, ROWS
                )  # fmt: skip
    rest = rest_of(out, to_line, length, step_x)
    for i in tl.static_range(ROWS):
        stop, to = tl.where(y + i < height, length, 0), out + (y + i).to(tl.int64) * to_line
        values = no_values()
        for j in tl.static_range(COUNT):
            value = found[i * COUNT + j]
            if SIGN < 0:
                before = tl.load(to + (column + j).to(tl.int64) * step_x, mask=column + j < stop, other=0)
                value = before.to(KIND) & (255 - value)
            values = values + (value,)
        store_values(to, values, column, step_x, stop, rest)


@inline
def _is_full(members, count, SIGN: tl.constexpr, BLOCK: tl.constexpr):
    """Return whether all positions of an element are members."""
    missing = tl.zeros((BLOCK,), tl.int32)
    for first in range(0, count, BLOCK):
        i = first + tl.arange(0, BLOCK)
        member = tl.load(members + i, mask=i < count, other=0)
        missing += ((i < count) & (_is_member(member, SIGN) == 0)).to(tl.int32)
    return tl.max(missing, 0) == 0


@inline
def _is_member(value, SIGN: tl.constexpr):
    if SIGN == 0:
        is_member = value != 0
    elif SIGN > 0:
        is_member = value > 0
    else:
        is_member = value < 0
    return is_member


@inline
def _add_row(
    found, values, members, is_full, s, first, tall, wide, PIXEL: tl.constexpr, TAPS: tl.constexpr,
    LARGEST: tl.constexpr, SIGN: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Add row ``s`` of the window of a piece to the extremes of each row of the result whose window contains it."""
    COUNT: tl.constexpr = len(found) // ROWS
    if is_full:
        along = _extremes_along(values, COUNT, PIXEL, TAPS, LARGEST)
        added = no_values()
        for i in tl.static_range(ROWS):
            row = found[i * COUNT : i * COUNT + COUNT]
            if (s >= i) & (s - i < tall):
                row = _extremes(row, along, LARGEST)
            added = added + row
    else:
        added = no_values()
        for i in tl.static_range(ROWS):
            row = found[i * COUNT : i * COUNT + COUNT]
            if (s >= i) & (s - i < tall):
                for t in tl.static_range(TAPS):
                    if _is_member(tl.load(members + ((s - i) * wide + first + t)), SIGN):
                        row = _extremes(row, values[t * PIXEL : t * PIXEL + COUNT], LARGEST)
            added = added + row
    return added


@inline
def _extremes(a, b, LARGEST: tl.constexpr):
    """Return the extremes of the pairs of two tuples of equal length.

    Triton 3.6 treats two calls as the same if their tuples have the same total number of values and their constants
    are equal, so that tuples of different lengths could be mistaken for each other.
    """
    extremes = no_values()
    for i in tl.static_range(len(a)):
        if LARGEST:
            extremes = extremes + (tl.maximum(a[i], b[i]),)
        else:
            extremes = extremes + (tl.minimum(a[i], b[i]),)
    return extremes


@inline
def _extremes_along(
    values, COUNT: tl.constexpr, PIXEL: tl.constexpr, TAPS: tl.constexpr, LARGEST: tl.constexpr
):
    """Return the extremes of ``TAPS`` pixels along x: of pairs, then of fours, then of two overlapping fours."""
    PAIRS: tl.constexpr = COUNT + (TAPS - 2) * PIXEL
    FOURS: tl.constexpr = COUNT + (TAPS - 4) * PIXEL
    LAST: tl.constexpr = (TAPS - 4) * PIXEL
    if TAPS >= 2:
        values = _extremes(values[:PAIRS], values[PIXEL : PIXEL + PAIRS], LARGEST)
    if TAPS >= 4:
        values = _extremes(values[:FOURS], values[2 * PIXEL : 2 * PIXEL + FOURS], LARGEST)
    if TAPS > 4:
        values = _extremes(values[:COUNT], values[LAST : LAST + COUNT], LARGEST)
    if TAPS == 3:
        values = _extremes(values[:COUNT], values[PIXEL : PIXEL + COUNT], LARGEST)
    return values
