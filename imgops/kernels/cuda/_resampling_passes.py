"""Resampling with a table for each axis, in two passes.

The passes compute PIL's and OpenCV's filters on floats, and OpenCV's filters on uint8 except for "bilinear", which is
one pass. The image between the passes has 32-bit integers or floats, and is not rounded. If the order does not
matter, columns are resampled first: this pass loads vectors of a row, and leaves fewer single values for the pass
along rows to gather.
"""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl

from imgops.kernels.cuda._arithmetic import convert, round_half_even
from imgops.kernels.cuda._launch import Prepared, inline, kernel, launch, prepared
from imgops.kernels.cuda._packed import Packed
from imgops.kernels.cuda._resampling_tables import Table
from imgops.kernels.cuda._tiles import Rows, alignment, place_of, plane_tile, tiles_of


def resample(
    out: Rows,
    image: Rows,
    rows: Table,
    columns: Table,
    finish: str,
    scale: float = 1.0,
    *,
    down_first: bool = True,
) -> None:
    """Apply two tables. ``finish`` says how to convert sums to output values; ``scale`` is its factor."""
    kind = torch.int32 if columns.weight.dtype == torch.int32 else torch.float32
    height, length = (out.height, image.length) if down_first else (image.height, out.length)
    pitch = -(-length // 16) * 16
    device = image.tensor.device
    memory = torch.empty((image.images * image.planes, height, pitch), dtype=kind, device=device)
    steps = image.planes * height * pitch, height * pitch, pitch
    between = Rows(memory, image.images, image.planes, height, length, image.pixel, steps)
    first, second = (_down_kernel, rows, columns), (_across_kernel, columns, rows)
    if not down_first:
        first, second = second, first
    _launch_pass(*first, between, image, "none", 0.0)
    _launch_pass(*second, out, between, finish, scale)


def _launch_pass(
    pass_kernel: Any, table: Table, other: Table, out: Rows, image: Rows, finish: str, scale: float
) -> None:
    """Apply a table. If it is the first pass, the ``other`` table says which lines of the image are read."""
    tensors = (
        *(out.tensor, image.tensor, table.first, table.count, table.weight, table.starts),
        *(other.first, other.count),
    )

    def make() -> tuple[int, tuple[Any, ...], dict[str, Any]]:
        constants, programs = tiles_of(out, _tile(pass_kernel, table, image))
        if constants["COLUMNS"] == 512:
            constants["warps"] = 1
        numbers = (
            *(*table.numbers, other.step if finish == "none" else 0, other.last),
            *(
                out.planes,
                out.height,
                out.length,
                image.height,
                image.length,
                *out.steps,
                *image.steps,
                scale,
            ),
        )
        more = {
            "PIXEL": out.pixel,
            "FINISH": finish,
            "ALIGNED": _stored_at_once(pass_kernel, table, out, image),
            "LOADS": alignment(image),
        }
        return programs, numbers, {**constants, **table.constants, **more}

    if isinstance(image.tensor, Packed):
        programs, numbers, constants = make()
        launch(pass_kernel, programs, *tensors, *numbers, **constants)
        return

    def prepare() -> Prepared:
        programs, numbers, constants = make()
        return Prepared(pass_kernel, programs, *numbers, **constants)

    shapes = *out[1:], *image[1:], table.numbers, table.is_indexed, other.step, other.last
    kinds = *(x.dtype for x in tensors[:5]), *(x.data_ptr() % 16 for x in tensors[:2])
    key = pass_kernel.__name__, finish, scale, table.original is None, *shapes, *kinds
    prepared(key, image.tensor.device, prepare)(*tensors)


def _tile(pass_kernel: Any, table: Table, image: Rows) -> tuple[int, int]:
    """Return the number of rows and columns of a tile, for which a thread has enough registers.

    A thread reuses the table entries of a row for all its columns, and those of a column for all its rows.
    """
    unrolled = table.constants["TAPS"] > 6
    if pass_kernel is _across_kernel:
        return (16 if unrolled else 32), 128
    return (4 if not isinstance(image.tensor, Packed) else 1 if unrolled else 2), 512


def _stored_at_once(pass_kernel: Any, table: Table, out: Rows, image: Rows) -> int:
    """Return the number of adjacent pixels of a row that a thread computes.

    Along rows, a smaller number brings the pixels that neighboring threads gather closer together.
    """
    most = alignment(out)
    if pass_kernel is _down_kernel:
        return most
    few = 0 < table.constants["TAPS"] <= 6
    return min(most, 4) if few or image.tensor.element_size() == 1 else 1


@inline
def _tap(first, weight, starts, at, has, k, o, width, IS_INDEXED: tl.constexpr, IS_TRANSPOSED: tl.constexpr):
    """Return the position of a tap, and its weight."""
    if IS_INDEXED:
        position = tl.load(first + k * width + o, mask=has, other=0)
        share = tl.load(weight + k * width + o, mask=has, other=0)
    else:
        position = at + k
        if IS_TRANSPOSED:  # the weight of this pixel in the output at this position
            tap = o - tl.load(starts + position, mask=has, other=0)
            share = tl.load(weight + tap * width + position, mask=has, other=0)
        else:
            share = tl.load(weight + k * width + o, mask=has, other=0)
    return position, share


@inline
def _finished(total, to: tl.constexpr, scale, FINISH: tl.constexpr):
    """Convert sums to output values."""
    if FINISH == "none":
        value = total
    elif FINISH == "float":
        value = convert(total, to)
    else:
        if FINISH == "halves":  # the mean of 2 x 2
            found = (total + 2) >> 2
        elif FINISH == "cells":  # the mean of a cell of whole pixels
            found = round_half_even(total.to(tl.float32) * scale).to(tl.int32)
        elif FINISH == "fixed":  # products of two weights of 11 bits
            found = (total + (1 << 21)) >> 22
        else:
            # Between these limits the sum with 1.5 * 2**23 rounds half to even.
            found = ((tl.minimum(tl.maximum(total, 0.0), 255.0) + 12582912.0) - 12582912.0).to(tl.int32)
        if FINISH != "levels":
            found = tl.minimum(tl.maximum(found, 0), 255)
        value = found.to(tl.uint8)
    return value


@inline
def _reach(other_first, other_count, n, other_n, other_last, IS_INDEXED: tl.constexpr):
    """Return the first line that the other pass reads, and the end of the lines."""
    low, high = tl.load(other_first + n * other_n), tl.load(other_first + n * other_n + other_last)
    if IS_INDEXED:
        high += 1
    else:
        high += tl.load(other_count + n * other_n + other_last)
    return low, high


@kernel(tensors=8)
def _across_kernel(
    out, image, first, count, weight, origin, other_first, other_count, sizes, starts,
    first_n, weight_n, origin_n, width, taps, other_n, other_last, planes, height, length, image_height, image_length,
    out_n, out_p, out_y, image_n, image_p, image_y, scale,
    PACKED: tl.constexpr, PIXEL: tl.constexpr, FINISH: tl.constexpr, ALIGNED: tl.constexpr, LOADS: tl.constexpr,
    TAPS: tl.constexpr, IS_INDEXED: tl.constexpr, IS_TRANSPOSED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Sum pixels along rows."""
    n, p, rows, column = plane_tile(tl.program_id(0), planes, height, length, ROWS, COLUMNS)
    source = image + (n * image_n + p.to(tl.int64) * image_p)
    if PACKED != "":
        start, plane, image_y, _, image_height, _ = place_of(sizes, starts, n, n >= 0, planes * PIXEL, PACKED)
        source = image + start + p * plane
    first, count, weight, origin = (
        first + n * first_n,
        count + n * first_n,
        weight + n * weight_n,
        origin + n * origin_n,
    )
    low, high = 0, height
    if FINISH == "none":
        low, high = _reach(other_first, other_count, n, other_n, other_last, IS_INDEXED)
    if (tl.min(rows, 0) < high) & (tl.max(rows, 0) >= low):
        y, offset = rows[:, None], tl.arange(0, COLUMNS)[None, :]
        j = column + offset
        x, c = j // PIXEL, j % PIXEL
        inside = j < length
        line = source + tl.minimum(y, image_height - 1).to(tl.int64) * image_y
        SUM: tl.constexpr = tl.int32 if weight.dtype.element_ty == tl.int32 else tl.float32
        total = tl.zeros((ROWS, COLUMNS), SUM)
        at, many = 0 * x, 0 * x + taps
        if not IS_INDEXED:
            at, many = tl.load(first + x, mask=inside, other=0), tl.load(count + x, mask=inside, other=0)
        if TAPS > 0:
            for k in tl.static_range(TAPS):
                has = inside & (k < many)
                position, share = _tap(first, weight, origin, at, has, k, x, width, IS_INDEXED, IS_TRANSPOSED)
                value = tl.load(line + (position * PIXEL + c), mask=has, other=0)
                total += value.to(SUM) * share
        else:
            for begin in range(0, tl.max(tl.max(many, 1), 0), 4):
                for each in tl.static_range(4):
                    k = begin + each
                    has = inside & (k < many)
                    position, share = _tap(
                        first, weight, origin, at, has, k, x, width, IS_INDEXED, IS_TRANSPOSED
                    )
                    value = tl.load(line + (position * PIXEL + c), mask=has, other=0)
                    total += value.to(SUM) * share
        to = out + (n * out_n + p.to(tl.int64) * out_p + column)
        BYTES: tl.constexpr = ALIGNED * (out.dtype.element_ty.primitive_bitwidth // 8)
        target = tl.multiple_of((to + y.to(tl.int64) * out_y) + offset, [1, BYTES])
        value = _finished(total, out.dtype.element_ty, scale, FINISH)
        tl.store(target, value, mask=(y < height) & (j // ALIGNED * ALIGNED < length))


@kernel(tensors=8)
def _down_kernel(
    out, image, first, count, weight, origin, other_first, other_count, sizes, starts,
    first_n, weight_n, origin_n, width, taps, other_n, other_last, planes, height, length, image_height, image_length,
    out_n, out_p, out_y, image_n, image_p, image_y, scale,
    PACKED: tl.constexpr, PIXEL: tl.constexpr, FINISH: tl.constexpr, ALIGNED: tl.constexpr, LOADS: tl.constexpr,
    TAPS: tl.constexpr, IS_INDEXED: tl.constexpr, IS_TRANSPOSED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Sum pixels along columns."""
    n, p, rows, column = plane_tile(tl.program_id(0), planes, height, length, ROWS, COLUMNS)
    source = image + (n * image_n + p.to(tl.int64) * image_p + column)
    if PACKED != "":
        start, plane, image_y, _, _, wide = place_of(sizes, starts, n, n >= 0, planes * PIXEL, PACKED)
        source, image_length = image + start + p * plane + column, wide * PIXEL
    first, count, weight, origin = (
        first + n * first_n,
        count + n * first_n,
        weight + n * weight_n,
        origin + n * origin_n,
    )
    low, high = 0, image_length
    if FINISH == "none":
        low, high = _reach(other_first, other_count, n, other_n, other_last, IS_INDEXED)
        low, high = low * PIXEL, high * PIXEL
    if (column < high) & (column + COLUMNS > low):
        # Load the data of rows as a vector of rows; in a tile, each thread would load it for each value.
        offset = tl.arange(0, COLUMNS)[None, :]
        j = column + offset
        inside, across = rows < height, j // LOADS * LOADS < image_length
        WORD: tl.constexpr = LOADS * (image.dtype.element_ty.primitive_bitwidth // 8)
        SUM: tl.constexpr = tl.int32 if weight.dtype.element_ty == tl.int32 else tl.float32
        total = tl.zeros((ROWS, COLUMNS), SUM)
        at, many = 0 * rows, 0 * rows + taps
        if not IS_INDEXED:
            at, many = (
                tl.load(first + rows, mask=inside, other=0),
                tl.load(count + rows, mask=inside, other=0),
            )
        if TAPS > 0:
            for k in tl.static_range(TAPS):
                has = inside & (k < many)
                position, share = _tap(
                    first, weight, origin, at, has, k, rows, width, IS_INDEXED, IS_TRANSPOSED
                )
                line = tl.multiple_of((source + position.to(tl.int64) * image_y)[:, None] + offset, [1, WORD])
                total += share[:, None] * tl.load(line, mask=has[:, None] & across, other=0).to(SUM)
        else:
            for begin in range(0, tl.max(many, 0), 4):
                for each in tl.static_range(4):
                    k = begin + each
                    has = inside & (k < many)
                    position, share = _tap(
                        first, weight, origin, at, has, k, rows, width, IS_INDEXED, IS_TRANSPOSED
                    )
                    line = tl.multiple_of(
                        (source + position.to(tl.int64) * image_y)[:, None] + offset, [1, WORD]
                    )
                    total += share[:, None] * tl.load(line, mask=has[:, None] & across, other=0).to(SUM)
        BYTES: tl.constexpr = ALIGNED * (out.dtype.element_ty.primitive_bitwidth // 8)
        to = out + (n * out_n + p.to(tl.int64) * out_p + column)
        target = tl.multiple_of((to + rows.to(tl.int64) * out_y)[:, None] + offset, [1, BYTES])
        value = _finished(total, out.dtype.element_ty, scale, FINISH)
        tl.store(target, value, mask=inside[:, None] & (j // ALIGNED * ALIGNED < length))


# -- OpenCV's "bilinear" on uint8 ------------------------------------------------------------------


def bilinear(out: Rows, image: Rows, rows: Table, columns: Table) -> None:
    """Interpolate between 2 x 2 pixels, in 16 bits along columns, as OpenCV does."""
    constants, programs = tiles_of(out)
    launch(
        _bilinear_kernel,
        programs,
        *(out.tensor, image.tensor, rows.first, rows.weight, columns.first, columns.weight),
        *(rows.step, rows.weight_step, columns.step, columns.weight_step),
        *(out.planes, out.height, out.length, out.length // out.pixel, *out.steps, *image.steps),
        PIXEL=out.pixel,
        ALIGNED=min(alignment(out), 4),
        **constants,
    )


@kernel(tensors=6)
def _bilinear_kernel(
    out, image, row_first, row_weight, first, weight, sizes, starts,
    row_n, row_weight_n, first_n, weight_n, planes, height, length, width, out_n, out_p, out_y, image_n, image_p, image_y,
    PACKED: tl.constexpr, PIXEL: tl.constexpr, ALIGNED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, p, rows, column = plane_tile(tl.program_id(0), planes, height, length, ROWS, COLUMNS)
    source = image + (n * image_n + p.to(tl.int64) * image_p)
    if PACKED != "":
        start, plane, image_y, _, _, _ = place_of(sizes, starts, n, n >= 0, planes * PIXEL, PACKED)
        source = image + start + p * plane
    offset = tl.arange(0, COLUMNS)[None, :]
    j = column + offset
    # Rows and columns beyond the end are computed like the last one, and not stored.
    row, x = tl.minimum(rows, height - 1), tl.minimum(j // PIXEL, width - 1)
    c = j % PIXEL
    row_first, row_weight = row_first + n * row_n, row_weight + n * row_weight_n
    first, weight = first + n * first_n, weight + n * weight_n
    above = (source + tl.load(row_first + row).to(tl.int64) * image_y)[:, None]
    below = (source + tl.load(row_first + height + row).to(tl.int64) * image_y)[:, None]
    left, right = tl.load(first + x) * PIXEL + c, tl.load(first + width + x) * PIXEL + c
    near, far = tl.load(weight + x), tl.load(weight + width + x)
    upper = near * tl.load(above + left).to(tl.int32) + far * tl.load(above + right).to(tl.int32)
    lower = near * tl.load(below + left).to(tl.int32) + far * tl.load(below + right).to(tl.int32)
    # The weights of an axis add up to 2048 or, because of rounding, 2049: results do not exceed 255.
    total = _product(tl.load(row_weight + row)[:, None], upper) + 2
    total += _product(tl.load(row_weight + height + row)[:, None], lower)
    value = (total >> 2).to(tl.uint8)
    to = out + (n * out_n + p.to(tl.int64) * out_p + column)
    to = tl.multiple_of((to + rows.to(tl.int64) * out_y)[:, None] + offset, [1, ALIGNED])
    tl.store(to, value, mask=(rows < height)[:, None] & (j // ALIGNED * ALIGNED < length))


@inline
def _product(share, value):
    """Return ``(share * (value >> 4)) >> 16``; both are nonnegative, and the share is at most 2049."""
    return tl.umulhi((share << 16).to(tl.uint32), (value >> 4).to(tl.uint32)).to(tl.int32)
