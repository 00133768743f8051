"""CUDA kernels of the operators that map each value independently."""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda import _color_steps
from imgops.kernels.cuda._arithmetic import level
from imgops.kernels.cuda._launch import inline, kernel, launch
from imgops.kernels.cuda._pixels import cover, is_whole, load_pixels, parameter, place_of, store_pixels
from imgops.kernels.cuda._tiles import PIXELS, carrier, has_carrier

#: The number of blocks of values that a program processes.
_SPAN = 4


def lut(out: Tensor, image: Tensor, table: Tensor) -> Any:
    if image.dtype != torch.uint8 or not has_carrier(out):
        return NotImplemented
    rows, step = parameter(table if table.ndim > 1 else table[None], image, 2)
    look_up(carrier(out), image, carrier(rows), step, rows.shape[-2] > 1)
    return None


def look_up(out: Tensor, image: Tensor, tables: Tensor, table_n: int, by_channel: bool) -> None:
    """Replace each value with an entry of a table, for all channels or its channel; floats use their levels."""
    over = cover(out, image, "planes" if by_channel else "values", _SPAN)
    launch(
        _lut_kernel,
        over.programs,
        *(out, over.image, tables, *over.numbers, table_n, 256 * by_channel),
        **over.constants,
    )


@kernel(tensors=3)
def _lut_kernel(
    out, image, tables, sizes, starts, parts, span, planes, channels, factor, pixels, table_n, table_c,
    PACKED: tl.constexpr, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr, FORM: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
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
    table = tables + (n * table_n + plane % planes * table_c)
    for i in range(blocks):
        at, first, last = start + within + i * BLOCK * step, begin - i * BLOCK, end - i * BLOCK
        if is_whole(image, first, last, FORM, BLOCK):
            _look_up_block(
                out,
                image,
                table,
                table_c,
                at,
                pixels,
                step,
                first,
                last,
                True,
                CHANNELS,
                INTERLEAVED,
                FORM,
                BLOCK,
            )
        else:
            _look_up_block(
                out,
                image,
                table,
                table_c,
                at,
                pixels,
                step,
                first,
                last,
                False,
                CHANNELS,
                INTERLEAVED,
                FORM,
                BLOCK,
            )


@inline
def _look_up_block(
    out, image, table, table_c, at, pixels, step, begin, end, WHOLE: tl.constexpr, CHANNELS: tl.constexpr,
    INTERLEAVED: tl.constexpr, FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    r, g, b, _ = load_pixels(image, at, pixels, step, begin, end, WHOLE, CHANNELS, INTERLEAVED, FORM, BLOCK)
    r = _find(table, r)
    if CHANNELS == 3:
        g, b = _find(table + table_c, g), _find(table + 2 * table_c, b)
    store_pixels(out, at, pixels, step, begin, end, r, g, b, r, WHOLE, CHANNELS, INTERLEAVED, FORM, BLOCK)


@inline
def _find(table, x):
    if x.dtype.is_floating():
        value = tl.load(table + level(x * 255.999).to(tl.int32)).to(tl.float32)
        value = tl.div_rn(value, 255.0)
    else:
        value = tl.load(table + x)
    return value


def posterize(out: Tensor, image: Tensor, bits: Tensor) -> Any:
    return _map("posterize", out, image, bits, bits)


def solarize(out: Tensor, image: Tensor, threshold: Tensor) -> Any:
    return _map("solarize", out, image, threshold, threshold)


def adjust_gamma(out: Tensor, image: Tensor, gamma: Tensor, gain: Tensor) -> Any:
    if image.dtype != torch.uint8:
        return _map("gamma", out, image, gamma, gain)
    if out.numel() == 0:  # with no images, a parameter per image has no memory
        return None
    exponents, gamma_n = parameter(gamma, image, 0)
    gains, gain_n = parameter(gain, image, 0)
    count = max(exponents.numel(), gains.numel())
    tables = torch.empty((count, 256), dtype=torch.uint8, device=image.device)
    launch(_gamma_kernel, count, tables, exponents, gains, gamma_n, gain_n)
    look_up(out, image, tables, 256 if count > 1 else 0, False)
    return None


@kernel(tensors=3)
def _gamma_kernel(tables, gammas, gains, gamma_n, gain_n):
    """Write the table of a gamma correction of levels, in double precision as Python computes it."""
    n, value = tl.program_id(0).to(tl.int64), tl.arange(0, 256)
    gamma = tl.load(gammas + n * gamma_n).to(tl.float64)
    factor = tl.load(gains + n * gain_n).to(tl.float64) * 255.999
    x = value.to(tl.float64) / tl.full((256,), 255, tl.float64)
    power = tl.exp2(gamma * tl.log2(tl.where(value == 0, 1.0, x)))
    at_zero = tl.where(gamma > 0, 0.0, tl.where(gamma == 0, 1.0, float("inf")))
    power = tl.where(value == 0, at_zero, tl.where(gamma == 1, x, power))
    tl.store(
        tables + n * 256 + value, tl.minimum(tl.maximum(factor * power, 0), 255).to(tl.int32).to(tl.uint8)
    )


def _map(kind: str, out: Tensor, image: Tensor, first: Tensor, second: Tensor) -> Any:
    """Map each value by a formula with one or two numbers for each image."""
    if image.dtype not in PIXELS:
        return NotImplemented
    numbers, number_n = parameter(first, image, 0)
    others, other_n = parameter(second, image, 0)
    map_values(kind, out, image, numbers, others, (number_n, other_n, 0))
    return None


def map_values(
    kind: str, out: Tensor, image: Tensor, numbers: Tensor, others: Tensor, steps: tuple[int, int, int]
) -> None:
    """Map each value by a formula; its numbers have steps from image to image and from channel to channel."""
    over = cover(out, image, "planes" if steps[2] else "values", _SPAN)
    launch(
        _map_kernel,
        over.programs,
        *(out, over.image, numbers, others, *over.numbers, *steps),
        KIND=kind,
        **over.constants,
    )


@kernel(tensors=4)
def _map_kernel(
    out, image, numbers, others, sizes, starts, parts, span, planes, channels, factor, pixels, number_n, other_n, number_c,
    PACKED: tl.constexpr, KIND: tl.constexpr, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr, FORM: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
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
    c = plane % planes * number_c
    r_first, r_second = _numbers(numbers + (n * number_n + c), others + (n * other_n + c), KIND)
    g_first, g_second, b_first, b_second = r_first, r_second, r_first, r_second
    if CHANNELS == 3:
        g_first, g_second = _numbers(numbers + (n * number_n + 1 * number_c), others, KIND)
        b_first, b_second = _numbers(numbers + (n * number_n + 2 * number_c), others, KIND)
    for i in range(blocks):
        at, first, last = start + within + i * BLOCK * step, begin - i * BLOCK, end - i * BLOCK
        if is_whole(image, first, last, FORM, BLOCK):
            _map_block(
                out, image, r_first, r_second, g_first, g_second, b_first, b_second, at, pixels, step,
                first, last, KIND, True, CHANNELS, INTERLEAVED, FORM, BLOCK,
            )  # fmt: skip
        else:
            _map_block(
                out, image, r_first, r_second, g_first, g_second, b_first, b_second, at, pixels, step,
                first, last, KIND, False, CHANNELS, INTERLEAVED, FORM, BLOCK,
            )  # fmt: skip


@inline
def _map_block(
    out, image, r_first, r_second, g_first, g_second, b_first, b_second, at, pixels, step, begin, end,
    KIND: tl.constexpr, WHOLE: tl.constexpr, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr,
    FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    r, g, b, _ = load_pixels(image, at, pixels, step, begin, end, WHOLE, CHANNELS, INTERLEAVED, FORM, BLOCK)
    r = _mapped(KIND, r, r_first, r_second)
    if CHANNELS == 3:
        g, b = _mapped(KIND, g, g_first, g_second), _mapped(KIND, b, b_first, b_second)
    store_pixels(out, at, pixels, step, begin, end, r, g, b, r, WHOLE, CHANNELS, INTERLEAVED, FORM, BLOCK)


@inline
def _numbers(number, other, KIND: tl.constexpr):
    """Return the two numbers of a formula; those of "stretch" are adjacent."""
    if KIND == "stretch":
        first, second = tl.load(number), tl.load(number + 1)
    else:
        first, second = tl.load(number).to(tl.float64), tl.load(other).to(tl.float32)
    return first, second


@inline
def _mapped(KIND: tl.constexpr, x, first, second):
    """Apply a formula with two scalar numbers to values in [0, 1] or levels."""
    if x.dtype.is_floating():
        if KIND == "posterize":
            value = _color_steps.posterize(x, first, False)
        elif KIND == "solarize":
            value = _color_steps.solarize(x, first, False)
        elif KIND == "stretch":
            value = tl.where(second == 0, x, _color_steps.unit((x - first) * second))
        else:
            value = _color_steps.unit(second * _power(x, first.to(tl.float32)))
    else:
        if KIND == "posterize":
            kept = tl.where(first > 0, tl.minimum(first, 8), 0).to(tl.int32)
            value = x & (0xFF00 >> kept)
        else:
            bright = tl.where(first <= 255, tl.maximum(tl.ceil(first), 0), 256).to(tl.int32)
            value = tl.where(x >= bright, 255 - x, x)
    return value


@inline
def _power(x, exponent):
    """Compute ``pow`` with one exponent, also for zero and negative bases."""
    if exponent == tl.floor(exponent):
        half = exponent * 0.5
        power = tl.exp2(exponent * tl.log2(tl.abs(x)))
        power = tl.where(half != tl.floor(half), tl.where(x < 0, -power, power), power)
        power = tl.where(exponent == 0, 1.0, power)
    else:  # the logarithm is infinite at 0, and NaN for negative numbers
        power = tl.exp2(exponent * tl.log2(x))
    return power
