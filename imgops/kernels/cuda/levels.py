"""CUDA kernels of the elementwise operators, in one pass."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from imgops.decomposition import levels as formula
from imgops.kernels.cuda import _color_steps
from imgops.kernels.cuda._arithmetic import convert, level, unit
from imgops.kernels.cuda._launch import inline, launch
from imgops.kernels.cuda._tiles import (
    FLOATS,
    PIXELS,
    batch,
    carrier,
    grid_of,
    has_carrier,
    offset,
    output_batch,
    per_image,
    place_of,
    tile_of,
)

_TILE = 4096


def lut(out: Tensor, image: Tensor, table: Tensor) -> Any:
    if not has_carrier(out):
        return NotImplemented
    target, values = carrier(output_batch(out)), table.detach()
    rows = values.expand(*image.shape[:-3], *values.shape[-2:])  # all channels may share a table
    rows = rows.reshape(target.shape[0], *values.shape[-2:]) if values.ndim > 2 else values.reshape(-1, 256)
    rows = carrier(rows.contiguous())
    steps = rows.shape[-2] * 256 if rows.ndim > 2 else 0, 256 if rows.shape[-2] > 1 else 0
    look_up(target, batch(image), rows, steps)
    return None


def look_up(out: Tensor, image: Tensor, table: Tensor, steps: tuple[int, int], scaled: bool = False) -> None:
    constants, programs = grid_of(out, _TILE)
    sizes = *out.shape, *out.stride(), *image.stride()
    launch(_lut_kernel, programs, out, image, table, *steps, *sizes, SCALED=scaled, **constants)


@triton.jit
def _lut_kernel(
    out, image, table, table_n, table_c, images, channels, height, width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x, sizes, starts,
    PACKED: tl.constexpr, SCALED: tl.constexpr, INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, c, y, x, inside = tile_of(
        tl.program_id(0), channels, height, width, images, INTERLEAVED, ROWS, COLUMNS
    )
    place = n
    if PACKED != "":
        place, image_c, image_y, image_x, height, width = place_of(
            sizes, starts, n, n < images, channels, PACKED
        )
        image_n, inside = 1, inside & (y < height) & (x < width)
        out_n, out_c, out_y, out_x = image_n, image_c, image_y, image_x
    at = image + offset(place, c, y, x, image_n, image_c, image_y, image_x, INTERLEAVED)
    value = tl.load(at, mask=inside, other=0)
    if SCALED:  # a float image, which the table maps by its levels
        value = level(value.to(tl.float32) * 255.999)
    value = tl.load(table + (n * table_n + c * table_c) + value.to(tl.int32), mask=inside, other=0)
    if SCALED:
        value = convert(tl.div_rn(value.to(tl.float32), 255.0), out.dtype.element_ty)
    tl.store(out + offset(place, c, y, x, out_n, out_c, out_y, out_x, INTERLEAVED), value, mask=inside)


def posterize(out: Tensor, image: Tensor, bits: Tensor) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    numbers, step = per_image(bits, image, 0, torch.float64)
    pointwise("posterize", output_batch(out), batch(image), numbers, step)
    return None


def solarize(out: Tensor, image: Tensor, threshold: Tensor) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    numbers, step = per_image(threshold, image, 0, torch.float64)
    pointwise("solarize", output_batch(out), batch(image), numbers, step)
    return None


def adjust_gamma(out: Tensor, image: Tensor, gamma: Tensor, gain: Tensor) -> Any:
    if image.dtype == torch.uint8:  # evaluated for each of the 256 levels only
        lead = torch.broadcast_shapes(gamma.shape, gain.shape)
        every = torch.arange(256, dtype=torch.uint8, device=image.device).expand(*lead, 1, 1, 256)
        return lut(out, image, formula.adjust_gamma(every, gamma.detach(), gain.detach()).squeeze(-2))
    if image.dtype not in FLOATS:
        return NotImplemented
    lead = torch.broadcast_shapes(gamma.shape, gain.shape)
    pairs = torch.stack([gamma.detach().double().expand(lead), gain.detach().double().expand(lead)], -1)
    numbers, step = per_image(pairs, image, 1, torch.float64)
    pointwise("gamma", output_batch(out), batch(image), numbers, step)
    return None


def pointwise(
    kind: str, out: Tensor, image: Tensor, numbers: Tensor, number_n: int, number_c: int = 0
) -> None:
    constants, programs = grid_of(out, _TILE)
    sizes = *out.shape, *out.stride(), *image.stride()
    launch(
        _pointwise_kernel, programs, out, image, numbers, number_n, number_c, *sizes, KIND=kind, **constants
    )


@triton.jit
def _pointwise_kernel(
    out, image, numbers, number_n, number_c, images, channels, height, width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x, sizes, starts,
    PACKED: tl.constexpr, KIND: tl.constexpr, INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, c, y, x, inside = tile_of(
        tl.program_id(0), channels, height, width, images, INTERLEAVED, ROWS, COLUMNS
    )
    place = n
    if PACKED != "":
        place, image_c, image_y, image_x, height, width = place_of(
            sizes, starts, n, n < images, channels, PACKED
        )
        image_n, inside = 1, inside & (y < height) & (x < width)
        out_n, out_c, out_y, out_x = image_n, image_c, image_y, image_x
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    at = image + offset(place, c, y, x, image_n, image_c, image_y, image_x, INTERLEAVED)
    value = tl.load(at, mask=inside, other=0).to(tl.float32)
    own = numbers + n * number_n + c * number_c
    real = (n < images) & (c < channels)
    number = tl.load(own, mask=real, other=0)
    if KIND == "posterize":
        value = _color_steps.posterize(value, number, LEVELS)
    elif KIND == "solarize":
        value = _color_steps.solarize(value, number, LEVELS)
    elif KIND == "stretch":
        scale = tl.load(own + 1, mask=real, other=0)
        value = tl.where(scale == 0, value, unit((value - number) * scale))
    else:
        gain = tl.load(own + 1, mask=real, other=0).to(tl.float32)
        value = unit(gain * _power(value, number.to(tl.float32)))
    if LEVELS:
        value = value.to(tl.uint8)
    else:
        value = convert(value, out.dtype.element_ty)
    tl.store(out + offset(place, c, y, x, out_n, out_c, out_y, out_x, INTERLEAVED), value, mask=inside)


@inline
def _power(x, exponent):
    """Compute ``pow``, also for bases of 0 and below."""
    size = tl.exp2(exponent * tl.log2(tl.abs(tl.where(x == 0, 1.0, x))))
    at_zero = tl.where(exponent > 0, 0.0, tl.where(exponent == 0, 1.0, float("inf")))
    is_whole, half = exponent == tl.floor(exponent), exponent * 0.5
    negative = tl.where(is_whole, tl.where(half == tl.floor(half), size, -size), float("nan"))
    return tl.where(x == 0, at_zero, tl.where(x < 0, negative, size))
