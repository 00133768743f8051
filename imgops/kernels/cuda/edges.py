"""CUDA kernels of the derivatives: sums along x of each row of an image, and sums of those along y."""

# ruff: noqa: RUF005 - Triton does not unpack within a tuple

from __future__ import annotations

from typing import Any

import triton.language as tl
from torch import Tensor

from imgops.decomposition import edges as formula
from imgops.kernels.cuda._launch import inline, kernel, launch
from imgops.kernels.cuda._tiles import PIXELS, batch, output_batch
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
    store_values,
    window_at,
)

#: The rows of the result that a thread has.
_ROWS = 4
#: Kernels along x and along y.
Term = tuple[tuple[float, ...], tuple[float, ...]]


def sobel(out: Tensor, image: Tensor, dx: int, dy: int, kernel_size: int, padding_mode: str) -> Any:
    return _differentiate(out, image, [_sobel(dx, dy, kernel_size)], padding_mode)


def _sobel(dx: int, dy: int, kernel_size: int) -> Term:
    return formula.taps(dx, kernel_size), formula.taps(dy, kernel_size)


def scharr(out: Tensor, image: Tensor, dx: int, dy: int, padding_mode: str) -> Any:
    return _differentiate(out, image, [(formula.SCHARR[dx], formula.SCHARR[dy])], padding_mode)


def laplacian(out: Tensor, image: Tensor, kernel_size: int, padding_mode: str) -> Any:
    terms = [_sobel(2, 0, kernel_size), _sobel(0, 2, kernel_size)]
    return _differentiate(out, image, terms, padding_mode)


def _differentiate(
    out: Tensor, image: Tensor, terms: list[Term], padding_mode: str, sixteenths: bool = False
) -> Any:
    """Write the sum of one or two derivatives; ``sixteenths`` divides it by 16, rounded half to even."""
    if image.dtype not in PIXELS:
        return NotImplemented
    target = output_batch(out)
    interleaved = format_of(target)
    source, lines = lines_in(batch(image), interleaved), lines_in(target, interleaved)
    taps = max(len(one) for term in terms for one in term)
    reach = taps // 2 * source.pixel
    tail, inner, parts = parts_of(source, reach, reach, _ROWS)
    numbers = *source.shape, *source.steps, *lines.steps, tail, inner, parts
    codes = [_code(one, taps) for term in terms for one in term]
    launch(
        _derivative_kernel,
        source.images * source.planes * parts,
        *(lines.tensor, source.tensor, *numbers),
        PIXEL=source.pixel,
        TAPS=taps,
        ACROSS=codes[0],
        DOWN=codes[1],
        ACROSS_TOO=codes[2] if len(terms) > 1 else 0,
        DOWN_TOO=codes[3] if len(terms) > 1 else 0,
        SIXTEENTHS=sixteenths,
        BORDER=padding_mode,
        ROWS=_ROWS,
        BLOCK=THREADS,
    )
    return None


def _code(weights: tuple[float, ...], taps: int) -> int:
    """Return the weights along an axis in one integer: those in the middle of some taps, 6 bits each, plus 32."""
    missing = (taps - len(weights)) // 2
    every = (*[0.0] * missing, *weights, *[0.0] * missing)
    return sum(int(weight) + 32 << 6 * i for i, weight in enumerate(every))


@kernel(tensors=2)
def _derivative_kernel(
    out, image, sizes, starts, planes, height, width, pixel, step_x, step_n, step_c, step_y, out_n, out_c, out_y,
    tail, inner, parts, PACKED: tl.constexpr, PIXEL: tl.constexpr, TAPS: tl.constexpr, ACROSS: tl.constexpr,
    DOWN: tl.constexpr, ACROSS_TOO: tl.constexpr, DOWN_TOO: tl.constexpr, SIXTEENTHS: tl.constexpr,
    BORDER: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    UNIT: tl.constexpr = 16 if image.dtype.element_ty == tl.uint8 else 4
    REACH: tl.constexpr = TAPS // 2 * PIXEL
    plane, part = tl.program_id(0) // parts, tl.program_id(0) % parts
    start, line, rows, length = plane_at(
        plane, planes, height, width, pixel, step_x, step_n, step_c, step_y, sizes, starts, PACKED
    )
    to, to_line, _, _ = plane_at(
        plane, planes, height, width, pixel, step_x, out_n, out_c, out_y, sizes, starts, PACKED
    )
    y, column, exists = piece_of(part, inner, rows, length, tail, REACH, REACH, ROWS, UNIT, BLOCK)
    if exists:
        if part < inner:
            _differentiate_rows(
                out + to, image + start, to_line, line, y, column, step_x, rows, length, True, PIXEL, TAPS,
                ACROSS, DOWN, ACROSS_TOO, DOWN_TOO, SIXTEENTHS, BORDER, ROWS, BLOCK,
            )  # fmt: skip
        else:
            _differentiate_rows(
                out + to, image + start, to_line, line, y, column, step_x, rows, length, False, PIXEL, TAPS,
                ACROSS, DOWN, ACROSS_TOO, DOWN_TOO, SIXTEENTHS, BORDER, ROWS, BLOCK,
            )  # fmt: skip


@inline
def _differentiate_rows(
    out, image, to_line, line, y, column, step_x, height, length, INNER: tl.constexpr, PIXEL: tl.constexpr,
    TAPS: tl.constexpr, ACROSS: tl.constexpr, DOWN: tl.constexpr, ACROSS_TOO: tl.constexpr, DOWN_TOO: tl.constexpr,
    SIXTEENTHS: tl.constexpr, BORDER: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    KIND: tl.constexpr = tl.int32 if LEVELS else tl.float32
    COUNT: tl.constexpr = 16 if LEVELS and INNER else 4
    SPAN: tl.constexpr = COUNT + (TAPS - 1) * PIXEL
    whole = is_whole(image, line, length)
    sums = no_values()
    for _ in tl.static_range(ROWS * COUNT):
        sums = sums + (tl.zeros((BLOCK,), KIND),)
    for s in range(TAPS + ROWS - 1):
        row, has_row = border_at(y + (s - TAPS // 2), height, BORDER)
        values = window_at(
            image + row.to(tl.int64) * line, column, 0, whole, has_row, 0, SPAN, TAPS // 2 * PIXEL, length, step_x,
            PIXEL, INNER, BORDER, KIND,
        )  # fmt: skip
        sums = _add_row(sums, _sum_along(values, COUNT, PIXEL, TAPS, ACROSS), s, TAPS, DOWN, ROWS)
        if DOWN_TOO > 0:
            sums = _add_row(sums, _sum_along(values, COUNT, PIXEL, TAPS, ACROSS_TOO), s, TAPS, DOWN_TOO, ROWS)
    to_whole = is_whole(out, to_line, length) if INNER else False
    for i in tl.static_range(ROWS):
        values = no_values()
        for j in tl.static_range(COUNT):
            value = sums[i * COUNT + j]
            if SIXTEENTHS:
                # A sum of levels has less than 22 bits, so this rounds it to a whole number.
                value = (value.to(tl.float32) * 0.0625 + 12582912.0 - 12582912.0).to(tl.int32)
            elif LEVELS and TAPS == 7:
                value = tl.minimum(tl.maximum(value, -32768), 32767)
            values = values + (value,)
        stop = tl.where(y + i < height, length, 0)
        store_values(out + (y + i).to(tl.int64) * to_line, values, column, step_x, stop, to_whole)


@inline
def _sum_along(values, COUNT: tl.constexpr, PIXEL: tl.constexpr, TAPS: tl.constexpr, WEIGHTS: tl.constexpr):
    """Return the weighted sums of pixels along x."""
    sums = no_values()
    for _ in tl.static_range(COUNT):
        sums = sums + (tl.zeros_like(values[0]),)
    for t in tl.static_range(TAPS):
        sums = _add_tap(sums, values, t * PIXEL, (WEIGHTS >> (6 * t)) % 64 - 32)
    return sums


@inline
def _add_tap(sums, values, FIRST: tl.constexpr, WEIGHT: tl.constexpr):
    added = no_values()
    for i in tl.static_range(len(sums)):
        if WEIGHT == 0:
            added = added + (sums[i],)
        elif WEIGHT == 1:
            added = added + (sums[i] + values[FIRST + i],)
        elif WEIGHT == -1:
            added = added + (sums[i] - values[FIRST + i],)
        else:
            added = added + (sums[i] + values[FIRST + i] * WEIGHT,)
    return added


@inline
def _add_row(sums, along, s, TAPS: tl.constexpr, WEIGHTS: tl.constexpr, ROWS: tl.constexpr):
    """Add row ``s`` of the window of a piece to the sums of each row of the result that it belongs to."""
    COUNT: tl.constexpr = len(along)
    every = tl.full((), WEIGHTS, tl.int64)
    added = no_values()
    for i in tl.static_range(ROWS):
        row = sums[i * COUNT : i * COUNT + COUNT]
        if (s >= i) & (s - i < TAPS):
            weight = (((every >> (6 * (s - i))) & 63) - 32).to(along[0].dtype)
            more = no_values()
            for j in tl.static_range(COUNT):
                more = more + (row[j] + along[j] * weight,)
            row = more
        added = added + row
    return added
