"""CUDA kernels of the filters: on uint8 in OpenCV's and PIL's integers.

A thread computes a piece of several rows of the result, so that it unpacks each row of the image only once for all of
them.
"""

# ruff: noqa: RUF005 - Triton does not unpack within a tuple

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda._arithmetic import fused, unit
from imgops.kernels.cuda._launch import inline, kernel, launch
from imgops.kernels.cuda._statistics import Gate
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
    places_at,
    plane_at,
    rest_of,
    store_values,
    values_at,
    window_at,
    words_at,
)

#: The number of rows of the result per thread, for sharpness and for a correlation, and the largest number of kernel
#: columns that are processed at once.
_ROWS, _ROWS_OF_KERNEL, _MOST = 8, 4, 8


def filter2d(out: Tensor, image: Tensor, kernel: Tensor, padding_mode: str) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    target = output_batch(out)
    interleaved = format_of(target)
    source, lines = lines_in(batch(image), interleaved), lines_in(target, interleaved)
    weights, step = per_image(kernel, image, 2, torch.float32)
    tall, wide = kernel.shape[-2:]
    taps = min(wide, _MOST)
    columns = -(-wide // taps) * taps  # the last group of taps may be incomplete
    left, right = wide // 2 * source.pixel, (columns - 1 - wide // 2) * source.pixel
    tail, inner, parts = parts_of(source, left, right, _ROWS_OF_KERNEL)
    numbers = *source.shape, *source.steps, *lines.steps, tail, inner, parts, left, right, step, tall, wide
    launch(
        _filter_kernel,
        source.images * source.planes * parts,
        *(lines.tensor, source.tensor, weights, *numbers),
        PIXEL=source.pixel,
        TAPS=taps,
        BORDER=padding_mode,
        ROWS=_ROWS_OF_KERNEL,
        BLOCK=THREADS,
    )
    return None


@kernel(tensors=3)
def _filter_kernel(
    out, image, weights, sizes, starts, planes, height, width, pixel, step_x, step_n, step_c, step_y,
    out_n, out_c, out_y, tail, inner, parts, left, right, weight_n, tall, wide, PACKED: tl.constexpr,
    PIXEL: tl.constexpr, TAPS: tl.constexpr, BORDER: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    UNIT: tl.constexpr = 16 if image.dtype.element_ty == tl.uint8 else 4
    plane, part = tl.program_id(0) // parts, tl.program_id(0) % parts
    start, line, rows, length = plane_at(
        plane, planes, height, width, pixel, step_x, step_n, step_c, step_y, sizes, starts, PACKED
    )
    to, to_line, _, _ = plane_at(
        plane, planes, height, width, pixel, step_x, out_n, out_c, out_y, sizes, starts, PACKED
    )
    y, column, exists = piece_of(part, inner, rows, length, tail, left, right, ROWS, UNIT, BLOCK)
    own = weights + (plane // planes).to(tl.int64) * weight_n
    if exists:
        if part < inner:
            _filter_rows(
                out + to, image + start, own, to_line, line, y, column, step_x, rows, length, tall, wide,
                True, PIXEL, TAPS, BORDER, ROWS,
            )  # fmt: skip
        else:
            _filter_rows(
                out + to, image + start, own, to_line, line, y, column, step_x, rows, length, tall, wide,
                False, PIXEL, TAPS, BORDER, ROWS,
            )  # fmt: skip


@inline
def _filter_rows(
    out, image, weights, to_line, line, y, column, step_x, height, length, tall, wide, INNER: tl.constexpr,
    PIXEL: tl.constexpr, TAPS: tl.constexpr, BORDER: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Correlate a piece of some rows, tap by tap in OpenCV's order and with its fused products."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    COUNT: tl.constexpr = 16 if LEVELS and INNER else 4
    SPAN: tl.constexpr = COUNT + (TAPS - 1) * PIXEL
    LEFT: tl.constexpr = TAPS // 2 * PIXEL
    whole = is_whole(image, line, length)
    sums = no_values()
    for _ in tl.static_range(ROWS * COUNT):
        sums = sums + (tl.zeros_like(y).to(tl.float32),)
    for s in range(tall + ROWS - 1):
        row, has_row = border_at(y + (s - tall // 2), height, BORDER)
        at = image + row.to(tl.int64) * line
        if TAPS < 8:
            values = window_at(
                at, column, 0, whole, has_row, 0, SPAN, LEFT, length, step_x, PIXEL, INNER, BORDER, tl.float32
            )  # fmt: skip
            sums = _add_rows(sums, values, weights, s, 0, tall, wide, PIXEL, TAPS, ROWS)
        else:
            for first in range(0, wide, TAPS):
                shift = first - wide // 2 + TAPS // 2
                values = window_at(
                    at, column, shift, False, has_row, 0, SPAN, LEFT, length, step_x, PIXEL, INNER, BORDER, tl.float32
                )  # fmt: skip
                sums = _add_rows(sums, values, weights, s, first, tall, wide, PIXEL, TAPS, ROWS)
    rest = rest_of(out, to_line, length, step_x)
    for i in tl.static_range(ROWS):
        values = no_values()
        for j in tl.static_range(COUNT):
            values = values + (_rounded(sums[i * COUNT + j], out.dtype.element_ty),)
        stop = tl.where(y + i < height, length, 0)
        store_values(out + (y + i).to(tl.int64) * to_line, values, column, step_x, stop, rest)


@inline
def _rounded(value, to: tl.constexpr):
    """Round levels, half to even; return other values unchanged."""
    if to == tl.uint8:
        value = (tl.minimum(tl.maximum(value, 0.0), 255.0) + 8388608.0 - 8388608.0).to(tl.uint32)
    return value


@inline
def _add_rows(
    sums, values, weights, s, first, tall, wide, PIXEL: tl.constexpr, TAPS: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """Add the products of row ``s`` of the window of a piece to each row of the result."""
    COUNT: tl.constexpr = len(sums) // ROWS
    added = no_values()
    for i in tl.static_range(ROWS):
        row = sums[i * COUNT : i * COUNT + COUNT]
        added = added + _add_taps(row, values, weights, s - i, first, tall, wide, COUNT, PIXEL, TAPS)
    return added


@inline
def _add_taps(
    sums, values, weights, i, first, tall, wide, COUNT: tl.constexpr, PIXEL: tl.constexpr, TAPS: tl.constexpr
):  # fmt: skip
    """Add the products of a row of the image and a row of the kernel, if there is one, to a row of the result."""
    if (i >= 0) & (i < tall):
        for t in tl.static_range(TAPS):
            if TAPS < 8:
                sums = _add_tap(sums, values, tl.load(weights + (i * wide + t)), t * PIXEL, COUNT)
            elif first + t < wide:
                sums = _add_tap(sums, values, tl.load(weights + (i * wide + first + t)), t * PIXEL, COUNT)
    return sums


@inline
def _add_tap(sums, values, weight, FIRST: tl.constexpr, COUNT: tl.constexpr):
    added = no_values()
    for j in tl.static_range(COUNT):
        added = added + (fused(values[FIRST + j], weight, sums[j]),)
    return added


def adjust_sharpness(out: Tensor, image: Tensor, factor: Tensor) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    factors, step = per_image(factor, image, 0, torch.float64)
    sharpen(output_batch(out), batch(image), factors, step, None)
    return None


def sharpen(out: Tensor, image: Tensor, factors: Tensor, factor_n: int, gate: Gate | None) -> None:
    """Sharpen a batch; with a gate, only the images that have the step, by one of their amounts."""
    interleaved = format_of(out)
    source, target = lines_in(image, interleaved), lines_in(out, interleaved)
    tail, inner, parts = parts_of(source, source.pixel, source.pixel, _ROWS)
    order, *gating = (factors, 0, 0, 0) if gate is None else gate.arguments
    numbers = *source.shape, *source.steps, *target.steps, tail, inner, parts, factor_n, *gating
    launch(
        _sharpen_kernel,
        source.images * source.planes * parts,
        *(target.tensor, source.tensor, factors, order, *numbers),
        GATED=gate is not None,
        PIXEL=source.pixel,
        ROWS=_ROWS,
        BLOCK=THREADS,
    )


@kernel(tensors=4)
def _sharpen_kernel(
    out, image, factors, order, sizes, starts, planes, height, width, pixel, step_x, step_n, step_c, step_y,
    out_n, out_c, out_y, tail, inner, parts, factor_n, order_n, turn, which,
    PACKED: tl.constexpr, GATED: tl.constexpr, PIXEL: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute ``ImageEnhance.Sharpness``, which does not smooth the outermost pixels."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    UNIT: tl.constexpr = 16 if LEVELS else 4
    plane, part = tl.program_id(0) // parts, tl.program_id(0) % parts
    n = (plane // planes).to(tl.int64)
    start, line, tall, length = plane_at(
        plane, planes, height, width, pixel, step_x, step_n, step_c, step_y, sizes, starts, PACKED
    )
    to, to_line, _, _ = plane_at(
        plane, planes, height, width, pixel, step_x, out_n, out_c, out_y, sizes, starts, PACKED
    )
    y, column, exists = piece_of(part, inner, tall, length, tail, PIXEL, PIXEL, ROWS, UNIT, BLOCK)
    own = factors + n * factor_n
    if GATED:
        exists &= tl.load(order + n * order_n + turn) == which
        own += which
    if exists:
        factor = tl.load(own).to(tl.float32)
        if part < inner:
            _sharpen_rows(
                out + to, image + start, to_line, line, y, column, step_x, tall, length, factor, True, PIXEL, ROWS
            )  # fmt: skip
        else:
            _sharpen_rows(
                out + to, image + start, to_line, line, y, column, step_x, tall, length, factor, False, PIXEL, ROWS
            )  # fmt: skip


@inline
def _sharpen_rows(
    out, image, to_line, line, y, column, step_x, tall, length, factor,
    INNER: tl.constexpr, PIXEL: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Sharpen a piece of some rows, with sums of three pixels along x of each row around them."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    PAIRED: tl.constexpr = LEVELS and INNER
    whole, rest, places = True, rest_of(out, to_line, length, step_x), no_values()
    if INNER:
        places = places + (image + column,)
        whole = is_whole(image, line, length)
    else:
        places, _ = places_at(image, column, 0, -PIXEL, 4 + 2 * PIXEL, length // PIXEL, PIXEL, step_x, "edge")
    # Each variable needs separate zeros: if two were the same value, the loop below would not carry one of them.
    KIND: tl.constexpr = tl.uint32 if PAIRED else tl.float32
    above, here, middle = no_values(), no_values(), no_values()
    for _ in tl.static_range(8 if PAIRED else 4):
        above = above + (tl.zeros_like(y).to(KIND),)
        here = here + (tl.zeros_like(y).to(KIND),)
        middle = middle + (tl.zeros_like(y).to(KIND),)
    for i in range(-1, ROWS + 1):
        row = tl.minimum(tl.maximum(y + i, 0), tall - 1).to(tl.int64) * line
        if PAIRED:
            new, below = _pairs(words_at((places[0] + row).to(tl.int64), whole, -1, 6), PIXEL)
        else:
            if INNER:
                values = values_at(places[0] + row, whole, -PIXEL, 4 + 2 * PIXEL)
            else:
                values = no_values()
                for j in tl.static_range(4 + 2 * PIXEL):
                    values = values + (tl.load(places[j] + row).to(tl.float32),)
            new, below = values[PIXEL : PIXEL + 4], no_values()
            for j in tl.static_range(4):
                below = below + (values[j] + values[j + PIXEL] + values[j + 2 * PIXEL],)
        if i > 0:
            inner = (y + (i - 1) > 0) & (y + i < tall)
            results = no_values()
            for j in tl.static_range(len(below)):
                total = above[j] + here[j] + below[j] + 4 * middle[j]
                if PAIRED:
                    low, high = _mixed_pair(total, middle[j], factor, inner)
                    results = results + (low,) + (high,)
                else:
                    x = column + j
                    inner_x = inner & (x >= PIXEL) & (x < length - PIXEL)
                    results = results + (
                        _mixed(total, middle[j], factor, inner_x, tall, length // PIXEL, LEVELS),
                    )
            if PAIRED:
                results = _in_order(results)
            stop = tl.where(y + (i - 1) < tall, length, 0)
            store_values(out + (y + (i - 1)).to(tl.int64) * to_line, results, column, step_x, stop, rest)
        above, here, middle = here, below, new


@inline
def _pairs(words, PIXEL: tl.constexpr):
    """Return the bytes of four words, two per word, even bytes first, and sums of three pixels along x."""
    middle, sums = no_values(), no_values()
    for i in tl.static_range(4):
        for j in tl.static_range(2):
            middle = middle + (_pair(words, 4 * i + j),)
            sums = sums + (
                _pair(words, 4 * i + j - PIXEL) + middle[2 * i + j] + _pair(words, 4 * i + j + PIXEL),
            )
    return middle, sums


@inline
def _pair(words, AT: tl.constexpr):
    """Return the bytes ``AT`` and ``AT + 2`` in a word, counted from the second word."""
    word = words[AT // 4 + 1]
    if AT % 4 == 0:
        pair = word & 0x00FF00FF
    elif AT % 4 == 1:
        pair = (word >> 8) & 0x00FF00FF
    elif AT % 4 == 2:
        pair = ((word & 0x00FF00FF) >> 16) | ((words[AT // 4 + 2] & 0x00FF00FF) << 16)
    else:
        pair = (((word >> 8) & 0x00FF00FF) >> 16) | (((words[AT // 4 + 2] >> 8) & 0x00FF00FF) << 16)
    return pair


@inline
def _mixed_pair(total, middle, factor, inner):
    """Sharpen two levels in a word; the division by 13 is a multiplication by 5042 / 65536."""
    low, high = (total & 0xFFFF) * 5042 + 6 * 5042, (total >> 16) * 5042 + 6 * 5042
    first = _mixed_level((low >> 16).to(tl.float32), (middle & 0xFFFF).to(tl.float32), factor, inner)
    second = _mixed_level((high >> 16).to(tl.float32), (middle >> 16).to(tl.float32), factor, inner)
    return first, second


@inline
def _mixed_level(smooth, middle, factor, inner):
    """Interpolate between two levels, or extrapolate, as ``Image.blend`` does; NaN becomes 0."""
    value = smooth + factor * (middle - smooth)
    value = tl.where(value > 0, tl.minimum(value, 255.0), 0.0)
    return tl.where(inner, value, middle).to(tl.uint32)


@inline
def _mixed(total, middle, factor, inner, height, width, LEVELS: tl.constexpr):
    smooth = tl.div_rn(total, 13.0)
    if LEVELS:
        value = _mixed_level(tl.floor(smooth + 0.5), middle, factor, inner)
    else:
        outside = unit(middle)
        if (height < 3) | (width < 3):
            outside = middle
        value = tl.where(inner, unit(middle * factor + smooth * (1 - factor)), outside)
    return value


@inline
def _in_order(pairs):
    """Return levels in memory order, from the pairs of bytes in words."""
    values = no_values()
    for i in tl.static_range(4):
        for j in tl.static_range(4):
            values = values + (pairs[4 * i + j % 2 * 2 + j // 2],)
    return values
