"""CUDA kernels of the derivatives, and of canny.

A derivative sums pixels of each row of an image along x, and these sums along y.
"""

# ruff: noqa: RUF005 - Triton does not unpack within a tuple

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops._common import layout
from imgops.decomposition import edges as formula
from imgops.kernels.cuda._components import component_of, join_components
from imgops.kernels.cuda._launch import inline, kernel, launch
from imgops.kernels.cuda._packed import Packed
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

#: The number of rows of a derivative per thread, the number of pixels per program of canny, and the largest number of
#: pixels of an image: an index and two more bits fit into 32 bits.
_ROWS, _BLOCK, _MOST_PIXELS = 4, 512, 2**31 - 1024
#: The largest number of channels, which a kernel has a constant for.
_MOST_CHANNELS = 16
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
    """Return the weights along an axis, centered among some taps, packed into one integer: 6 bits each, plus 32."""
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
    rest = rest_of(out, to_line, length, step_x)
    for i in tl.static_range(ROWS):
        values = no_values()
        for j in tl.static_range(COUNT):
            value = sums[i * COUNT + j]
            if SIXTEENTHS:
                # A sum of levels has less than 22 bits, so this rounds it to an integer.
                value = (value.to(tl.float32) * 0.0625 + 12582912.0 - 12582912.0).to(tl.int32)
            elif LEVELS and TAPS == 7:
                value = tl.minimum(tl.maximum(value, -32768), 32767)
            values = values + (value,)
        stop = tl.where(y + i < height, length, 0)
        store_values(out + (y + i).to(tl.int64) * to_line, values, column, step_x, stop, rest)


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
    """Add row ``s`` of the window of a piece to the sums of each row of the result whose window contains it."""
    COUNT: tl.constexpr = len(along)
    every = tl.full((), WEIGHTS, tl.int64)
    added = no_values()
    for i in tl.static_range(ROWS):
        row = sums[i * COUNT : i * COUNT + COUNT]
        if (s >= i) & (s - i < TAPS):
            share = ((every >> (6 * (s - i))) & 63) - 32
            if share != 0:  # otherwise infinities would become NaN
                more = no_values()
                for j in tl.static_range(COUNT):
                    more = more + (row[j] + along[j] * share.to(along[0].dtype),)
                row = more
        added = added + row
    return added


def canny(out: Tensor, image: Tensor, low: Tensor, high: Tensor, kernel_size: int, l2_gradient: bool) -> Any:
    """Find edges: compute gradients, keep the largest ones across each edge, and find connected pixels."""
    too_large = image.shape[-3] > _MOST_CHANNELS or out.shape[-2] * out.shape[-1] > _MOST_PIXELS
    if isinstance(out, Packed) or too_large:
        return NotImplemented
    source, (height, width) = batch(image), out.shape[-2:]
    images, pixels = source.shape[0], height * width
    slopes = [layout.empty(source, height, width, dtype=torch.int16) for _ in range(2)]
    for slope, order in zip(slopes, ((1, 0), (0, 1)), strict=True):
        _differentiate(slope, source, [_sobel(*order, kernel_size)], "edge", sixteenths=kernel_size == 7)
    interleaved, channels = not slopes[0].is_contiguous(), source.shape[1]
    steps = (1, channels) if interleaved else (pixels, 1)
    gradient = torch.empty((images, pixels), dtype=torch.int32, device=image.device)
    parents = torch.empty_like(gradient)
    strong = torch.empty((images, pixels), dtype=torch.uint8, device=image.device)
    (lows, low_n), (highs, high_n) = (per_image(v, image, 0, torch.float64) for v in (low, high))
    programs = -(-pixels // _BLOCK)
    launch(
        _gradient_kernel,
        images * programs,
        *(gradient, *slopes, pixels, *steps, programs),
        CHANNELS=channels,
        SQUARED=l2_gradient,
        BLOCK=_BLOCK,
    )
    launch(
        _thin_kernel,
        images * programs,
        *(parents, strong, gradient, lows, highs, low_n, high_n, height, width, programs),
        SIXTEENTHS=kernel_size == 7,
        SQUARED=l2_gradient,
        BLOCK=_BLOCK,
    )
    join_components(parents, height, width, 8)
    launch(_mark_kernel, images * programs, strong, parents, pixels, programs, BLOCK=_BLOCK)
    launch(_edge_kernel, images * programs, out, strong, parents, pixels, programs, BLOCK=_BLOCK)
    return None


@inline
def _pixels_of(programs, pixels, BLOCK: tl.constexpr):
    """Return the image of a program, its pixels, and a mask of those that exist."""
    p = tl.program_id(0) % programs * BLOCK + tl.arange(0, BLOCK)
    return (tl.program_id(0) // programs).to(tl.int64), p, p < pixels


@kernel(tensors=3)
def _gradient_kernel(
    gradient, across, down, pixels, step_c, step_x, programs,
    CHANNELS: tl.constexpr, SQUARED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the largest gradient's magnitude, and in its last two bits the neighbor to which it points."""
    n, p, inside = _pixels_of(programs, pixels, BLOCK)
    size, dx, dy = (
        tl.full((BLOCK,), -1, tl.int32),
        tl.zeros((BLOCK,), tl.int32),
        tl.full((BLOCK,), 0, tl.int32),
    )
    for c in tl.static_range(CHANNELS):
        at = n * pixels * CHANNELS + c * step_c + p * step_x
        x = tl.load(across + at, mask=inside, other=0).to(tl.int32)
        y = tl.load(down + at, mask=inside, other=0).to(tl.int32)
        own = x * x + y * y if SQUARED else tl.abs(x) + tl.abs(y)
        larger = own > size
        size, dx, dy = tl.where(larger, own, size), tl.where(larger, x, dx), tl.where(larger, y, dy)
    x, y = tl.abs(dx), tl.abs(dy) * 32768
    flat = x * 13573  # the tangent of 22.5 degrees, with 15 fraction bits
    steep = flat + x * 65536
    diagonal = 2 + ((dx < 0) ^ (dy < 0)).to(tl.int32)
    way = tl.where(y < flat, 0, tl.where(y > steep, 1, diagonal))
    tl.store(gradient + n * pixels + p, size * 4 + way, mask=inside)


@kernel(tensors=5)
def _thin_kernel(
    parents, strong, gradient, lows, highs, low_n, high_n, height, width, programs,
    SIXTEENTHS: tl.constexpr, SQUARED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Make pixels point to themselves if their gradient is above the low limit and the largest across an edge."""
    pixels = height * width
    n, p, inside = _pixels_of(programs, pixels, BLOCK)
    own, x, y = gradient + n * pixels, p % width, p // width
    one, other = (
        _limit(tl.load(lows + n * low_n), SIXTEENTHS, SQUARED),
        _limit(tl.load(highs + n * high_n), SIXTEENTHS, SQUARED),
    )
    here = tl.load(own + p, mask=inside, other=0)
    size, way = here >> 2, here & 3
    right, below = tl.where(way == 1, 0, tl.where(way == 3, -1, 1)), tl.where(way == 0, 0, 1)
    step = below * width + right
    first, last = tl.where(right < 0, width - 1, 0), tl.where(right < 0, 0, width - 1)
    has_before = inside & (y >= below) & ((x != first) | (right == 0))
    has_after = inside & (y + below < height) & ((x != last) | (right == 0))
    before = tl.load(own + (p - step), mask=has_before, other=0) >> 2
    after = tl.load(own + (p + step), mask=has_after, other=0) >> 2
    is_weak = (
        (size > before) & ((size > after) | ((size == after) & (way < 2))) & (size > tl.minimum(one, other))
    )
    to = n * pixels + p
    tl.store(parents + to, tl.where(is_weak, p, -1), mask=inside)
    tl.store(strong + to, (is_weak & (size > tl.maximum(one, other))).to(tl.uint8), mask=inside)


@inline
def _limit(value, SIXTEENTHS: tl.constexpr, SQUARED: tl.constexpr):
    """Return the integer that a gradient above a threshold exceeds."""
    if SIXTEENTHS:
        value = value * 0.0625
    if SQUARED:
        value = tl.minimum(value, 32767.0)
        value = tl.where(value > 0, value * value, value)
    return tl.floor(tl.minimum(tl.maximum(value, -1.0), 2147483647.0)).to(tl.int32)


@kernel(tensors=2)
def _mark_kernel(strong, parents, pixels, programs, BLOCK: tl.constexpr):
    """Mark the components of strong pixels, at their last pixel."""
    n, p, inside = _pixels_of(programs, pixels, BLOCK)
    own = strong + n * pixels
    is_strong = tl.load(own + p, mask=inside, other=0) > 0
    pixel = component_of(parents + n * pixels, p, is_strong)
    tl.store(own + pixel, tl.full((BLOCK,), 1, tl.uint8), mask=is_strong)


@kernel(tensors=3)
def _edge_kernel(out, strong, parents, pixels, programs, BLOCK: tl.constexpr):
    """Write the pixels of marked components."""
    n, p, inside = _pixels_of(programs, pixels, BLOCK)
    is_weak = inside & (tl.load(parents + n * pixels + p, mask=inside, other=-1) >= 0)
    pixel = component_of(parents + n * pixels, p, is_weak)
    is_edge = tl.load(strong + n * pixels + pixel, mask=is_weak, other=0) > 0
    tl.store(out + n * pixels + p, tl.where(is_edge, 255, 0).to(tl.uint8), mask=inside)
