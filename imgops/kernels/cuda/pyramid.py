"""CUDA kernels of the image pyramids: sums along x of each row of an image, and sums of these sums along y."""

# ruff: noqa: RUF005 - Triton does not unpack within a tuple

from __future__ import annotations

from typing import Any

import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda._launch import inline, kernel, launch
from imgops.kernels.cuda._tiles import PIXELS, batch, output_batch
from imgops.kernels.cuda._windows import (
    THREADS,
    border_at,
    format_of,
    lines_in,
    no_values,
    plane_at,
    rest_of,
    store_values,
    tail_of,
    window_at,
)

#: The number of rows of the result per thread, or of the image, if the result has twice as many.
_ROWS = 4


def pyr_down(out: Tensor, image: Tensor) -> Any:
    return _scale(_down_kernel, out, image, 2, 1)


def pyr_up(out: Tensor, image: Tensor) -> Any:
    return _scale(_up_kernel, out, image, 1, 1)


def _scale(run: Any, out: Tensor, image: Tensor, step: int, right: int) -> Any:
    """Launch a kernel whose threads process cells: 4 or 8 pixels of some rows of the smaller image.

    A cell reads the pixels of the image that it covers, ``step`` for each of its pixels, and some before and after
    them: ``right`` after.
    """
    if image.dtype not in PIXELS:
        return NotImplemented
    target = output_batch(out)
    interleaved = format_of(target)
    source, lines = lines_in(batch(image), interleaved), lines_in(target, interleaved)
    pixels = 8 if source.pixel <= 2 else 4
    small = lines if step == 2 else source
    groups, cells = -(-small.height // _ROWS), -(-small.width // pixels)
    # The number of cells, from the second of a row on, whose words are entirely in the row.
    beyond = right - (-3 - tail_of(source)) // source.pixel
    count = max((source.width - beyond) // (step * pixels) - 1, 0)
    inner, edge = -(-groups * count // THREADS), -(-groups * (cells - count) // THREADS)
    launch(
        run,
        source.images * source.planes * (inner + edge),
        *(lines.tensor, source.tensor, *source.shape, *source.steps, *lines.shape[1:3], *lines.steps),
        *(cells, count, inner, inner + edge),
        PIXEL=source.pixel,
        PIXELS=pixels,
        ROWS=_ROWS,
        BLOCK=THREADS,
    )
    return None


@inline
def _cell_of(part, inner, cells, count, ROWS: tl.constexpr, PIXELS: tl.constexpr, BLOCK: tl.constexpr):
    """Return the first row and pixel of each thread's cell; cells that do not exist are below the image.

    The first ``inner`` parts are ``count`` cells, from the second of a row on; the other parts are the remaining
    cells.
    """
    is_inner = part < inner
    each = tl.where(is_inner, count, cells - count)
    element = tl.where(is_inner, part, part - inner) * BLOCK + tl.arange(0, BLOCK)
    row, k = element // tl.maximum(each, 1), element % tl.maximum(each, 1)
    cell = tl.where(is_inner, k + 1, tl.where(k < 1, k, k + count))
    return row * ROWS, cell * PIXELS


@kernel(tensors=2)
def _down_kernel(
    out, image, planes, height, width, pixel, step_x, step_n, step_c, step_y, out_height, out_width, out_n, out_c, out_y,
    cells, count, inner, parts, PIXEL: tl.constexpr, PIXELS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    plane, part = tl.program_id(0) // parts, tl.program_id(0) % parts
    start, line, _, length = plane_at(
        plane, planes, height, width, pixel, step_x, step_n, step_c, step_y, image, image, ""
    )
    to, _, _, _ = plane_at(
        plane, planes, out_height, out_width, pixel, step_x, out_n, out_c, out_y, image, image, ""
    )
    y, x = _cell_of(part, inner, cells, count, ROWS, PIXELS, BLOCK)
    if part < inner:
        _down_rows(
            out + to, image + start, out_y, line, y, x, step_x, out_height, out_width, height, length,
            True, PIXEL, PIXELS, ROWS, BLOCK,
        )  # fmt: skip
    else:
        _down_rows(
            out + to, image + start, out_y, line, y, x, step_x, out_height, out_width, height, length,
            False, PIXEL, PIXELS, ROWS, BLOCK,
        )  # fmt: skip


@inline
def _down_rows(
    out, image, to_line, line, y, x, step_x, out_height, out_width, height, length,
    INNER: tl.constexpr, PIXEL: tl.constexpr, PIXELS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Smooth with the weights 1, 4, 6, 4 and 1 along both axes, at every second pixel."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    KIND: tl.constexpr = tl.int32 if LEVELS else tl.float32
    COUNT: tl.constexpr = PIXELS * PIXEL
    SPAN: tl.constexpr = (2 * PIXELS + 3) * PIXEL
    binomial = tl.full((), 0x14641, tl.int32)  # the weights, 4 bits each
    sums = no_values()
    for _ in tl.static_range(ROWS * COUNT):
        sums = sums + (tl.zeros((BLOCK,), KIND),)
    for s in range(2 * ROWS + 3):
        row, has_row = border_at(2 * y + (s - 2), height, "reflect")
        values = window_at(
            image + row.to(tl.int64) * line, 2 * x * PIXEL, 0, False, has_row, 0, SPAN, 2 * PIXEL, length, step_x,
            PIXEL, INNER, "reflect", KIND,
        )  # fmt: skip
        along, added = no_values(), no_values()
        for i in tl.static_range(COUNT):
            first = values[i // PIXEL * PIXEL + i] + values[i // PIXEL * PIXEL + i + 4 * PIXEL]
            second = values[i // PIXEL * PIXEL + i + PIXEL] + values[i // PIXEL * PIXEL + i + 3 * PIXEL]
            along = along + (first + 4 * second + 6 * values[i // PIXEL * PIXEL + i + 2 * PIXEL],)
        for i in tl.static_range(ROWS):
            row = sums[i * COUNT : i * COUNT + COUNT]
            if (s >= 2 * i) & (s < 2 * i + 5):
                row = _add_row(row, along, ((binomial >> (4 * (s - 2 * i))) & 15).to(KIND))
            added = added + row
        sums = added
    rest = rest_of(out, to_line, out_width * PIXEL, step_x)
    for i in tl.static_range(ROWS):
        values = no_values()
        for j in tl.static_range(COUNT):
            total = sums[i * COUNT + j]
            values = values + ((total + 128) >> 8 if LEVELS else total * 0.00390625,)
        stop = tl.where(y + i < out_height, out_width * PIXEL, 0)
        store_values(out + (y + i).to(tl.int64) * to_line, values, x * PIXEL, step_x, stop, rest)


@inline
def _add_row(sums, along, weight):
    added = no_values()
    for i in tl.static_range(len(sums)):
        added = added + (sums[i] + along[i] * weight,)
    return added


@kernel(tensors=2)
def _up_kernel(
    out, image, planes, height, width, pixel, step_x, step_n, step_c, step_y, out_height, out_width, out_n, out_c, out_y,
    cells, count, inner, parts, PIXEL: tl.constexpr, PIXELS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    plane, part = tl.program_id(0) // parts, tl.program_id(0) % parts
    start, line, _, length = plane_at(
        plane, planes, height, width, pixel, step_x, step_n, step_c, step_y, image, image, ""
    )
    to, _, _, _ = plane_at(
        plane, planes, out_height, out_width, pixel, step_x, out_n, out_c, out_y, image, image, ""
    )
    y, x = _cell_of(part, inner, cells, count, ROWS, PIXELS, BLOCK)
    if part < inner:
        _up_rows(
            out + to, image + start, out_y, line, y, x, step_x, height, length, True, PIXEL, PIXELS, ROWS, BLOCK
        )  # fmt: skip
    else:
        _up_rows(
            out + to, image + start, out_y, line, y, x, step_x, height, length, False, PIXEL, PIXELS, ROWS, BLOCK
        )  # fmt: skip


@inline
def _up_rows(
    out, image, to_line, line, y, x, step_x, height, length,
    INNER: tl.constexpr, PIXEL: tl.constexpr, PIXELS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Smooth with the weights 1, 6 and 1 at pixels, and 4 and 4 between them, along both axes."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    KIND: tl.constexpr = tl.int32 if LEVELS else tl.float32
    SPAN: tl.constexpr = (PIXELS + 2) * PIXEL
    COUNT: tl.constexpr = 2 * PIXELS * PIXEL
    # Each variable needs separate zeros: if two were the same value, the loop below would not carry one of them.
    above, here, rest = no_values(), no_values(), rest_of(out, to_line, 2 * length, step_x)
    for _ in tl.static_range(COUNT):
        above = above + (tl.zeros((BLOCK,), KIND),)
        here = here + (tl.zeros((BLOCK,), KIND),)
    for i in range(-1, ROWS + 1):
        row, has_row = border_at(y + i, height, "doubled")
        values = window_at(
            image + row.to(tl.int64) * line, x * PIXEL, 0, False, has_row, 0, SPAN, PIXEL, length, step_x,
            PIXEL, INNER, "doubled", KIND,
        )  # fmt: skip
        below = no_values()
        for j in tl.static_range(COUNT):
            below = below + (_along(values, j // (2 * PIXEL) * PIXEL + j % PIXEL, PIXEL, j // PIXEL % 2),)
        if i > 0:
            stop = tl.where(y + (i - 1) < height, 2 * length, 0)
            for j in tl.static_range(2):
                results = no_values()
                for k in tl.static_range(COUNT):
                    total = _between(above[k], here[k], below[k], j)
                    results = results + ((total + 32) >> 6 if LEVELS else total * 0.015625,)
                to = out + (2 * (y + (i - 1)) + j).to(tl.int64) * to_line
                store_values(to, results, 2 * x * PIXEL, step_x, stop, rest)
        above, here = here, below


@inline
def _along(values, AT: tl.constexpr, PIXEL: tl.constexpr, ODD: tl.constexpr):
    return _between(values[AT], values[AT + PIXEL], values[AT + 2 * PIXEL], ODD)


@inline
def _between(before, here, after, ODD: tl.constexpr):
    """Return the sum at a pixel, or the sum between it and the next pixel."""
    if ODD:
        value = 4 * (here + after)
    else:
        value = before + 6 * here + after
    return value
