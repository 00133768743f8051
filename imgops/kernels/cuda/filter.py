"""CUDA kernels of the filters: on uint8 in OpenCV's and PIL's integers."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda import _color_steps
from imgops.kernels.cuda._arithmetic import convert, round_half_even, unit
from imgops.kernels.cuda._interpolation import pixel_at
from imgops.kernels.cuda._launch import launch
from imgops.kernels.cuda._statistics import Gate
from imgops.kernels.cuda._tiles import (
    PIXELS,
    batch,
    grid_of,
    offset,
    output_batch,
    per_image,
    place_of,
    tile_of,
)


def filter2d(out: Tensor, image: Tensor, kernel: Tensor, padding_mode: str) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    source, target = batch(image), output_batch(out)
    weights, step = per_image(kernel, image, 2, torch.float32)
    constants, programs = grid_of(target, 2048)
    sizes = *target.shape, *target.stride(), *source.stride()
    shape = kernel.shape[-2:]
    launch(
        _filter_kernel,
        programs,
        target,
        source,
        weights,
        step,
        *shape,
        *sizes,
        BORDER=padding_mode,
        **constants,
    )
    return None


@triton.jit
def _filter_kernel(
    out, image, weights, weight_n, tall, wide, images, channels, height, width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x, sizes, starts,
    PACKED: tl.constexpr, BORDER: tl.constexpr, INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
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
    total = tl.full((ROWS, COLUMNS), 0, tl.float32)
    own = weights + n * weight_n
    for i in range(tall):
        at_y, has_row = pixel_at(y + (i - tall // 2), height, BORDER)
        for j in range(wide):
            at_x, has_column = pixel_at(x + (j - wide // 2), width, BORDER)
            use = inside & has_row & has_column
            at = image + offset(place, c, at_y, at_x, image_n, image_c, image_y, image_x, INTERLEAVED)
            pixel = tl.load(at, mask=use, other=0).to(tl.float32)
            share = tl.load(own + (i * wide + j), mask=n < images, other=0)
            total = tl.fma(pixel, tl.broadcast_to(share, (ROWS, COLUMNS)), total)  # fused, as in OpenCV
    if out.dtype.element_ty == tl.uint8:
        value = tl.minimum(tl.maximum(round_half_even(total), 0.0), 255.0).to(tl.uint8)
    else:
        value = convert(total, out.dtype.element_ty)
    tl.store(out + offset(place, c, y, x, out_n, out_c, out_y, out_x, INTERLEAVED), value, mask=inside)


def adjust_sharpness(out: Tensor, image: Tensor, factor: Tensor) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    factors, step = per_image(factor, image, 0, torch.float64)
    sharpen(output_batch(out), batch(image), factors, step, None)
    return None


def sharpen(out: Tensor, image: Tensor, factors: Tensor, factor_n: int, gate: Gate | None) -> None:
    """Sharpen a batch; with a gate, only the images that have the step, by one of their several amounts."""
    constants, programs = grid_of(out, 2048)
    gating = (factors, 0, 0, 0) if gate is None else gate.arguments
    launch(
        _sharpen_kernel,
        programs,
        *(out, image, factors, factor_n, *gating),
        *out.shape,
        *out.stride(),
        *image.stride(),
        GATED=gate is not None,
        **constants,
    )


@triton.jit(do_not_specialize=["turn", "which"])
def _sharpen_kernel(
    out, image, factors, factor_n, order, order_n, turn, which, images, channels, height, width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x, sizes, starts,
    PACKED: tl.constexpr, GATED: tl.constexpr, INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Compute ``ImageEnhance.Sharpness``, which does not smooth the outermost pixels."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
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
    own = factors + n * factor_n
    if GATED:
        inside &= tl.load(order + n * order_n + turn, mask=n < images, other=-1) == which
        own += which
    factor = tl.load(own, mask=n < images, other=0).to(tl.float32)
    inner = inside & (y > 0) & (y < height - 1) & (x > 0) & (x < width - 1)
    at = image + offset(place, c, y, x, image_n, image_c, image_y, image_x, INTERLEAVED)
    middle = tl.load(at, mask=inside, other=0).to(tl.float32)
    total = middle * 4
    for i in tl.static_range(3):
        for j in tl.static_range(3):
            around = (at + (i - 1) * image_y) + (j - 1) * image_x
            total += tl.load(around, mask=inner, other=0).to(tl.float32)
    smooth = tl.div_rn(total, 13.0)
    if LEVELS:
        smooth = tl.floor(smooth + 0.5)
        value = tl.where(inner, _color_steps.mix(smooth, middle, factor, LEVELS), middle).to(tl.uint8)
    else:
        value = tl.where(inner, _color_steps.mix(smooth, middle, factor, LEVELS), unit(middle))
        if PACKED != "":
            value = tl.where((height < 3) | (width < 3), middle, value)
        elif height < 3 or width < 3:
            value = middle
        value = convert(value, out.dtype.element_ty)
    tl.store(out + offset(place, c, y, x, out_n, out_c, out_y, out_x, INTERLEAVED), value, mask=inside)
