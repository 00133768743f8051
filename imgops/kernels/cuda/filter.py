"""CUDA kernels of the filters: on uint8 in OpenCV's and PIL's integers, both passes of a Gaussian in one kernel."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from imgops import _layout
from imgops.kernels.cuda import _steps
from imgops.kernels.cuda._common import (
    PIXELS,
    batch,
    converted,
    folded,
    grid_of,
    offset,
    per_image,
    rounded,
    tile_of,
    unit,
    written,
)
from imgops.kernels.cuda._launch import blocks, launch, tile
from imgops.kernels.cuda._sampling import shown
from imgops.kernels.cuda._statistics import Gate

_ROWS = 16


def gaussian_blur(out: Tensor, image: Tensor, sigma: Tensor, kernel_width: int, kernel_height: int) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    source, target = batch(image), written(out)
    pairs, _ = per_image(sigma, image, 1, torch.float64)
    pairs = pairs.reshape(-1, 2)
    reach_x, reach_y = kernel_width // 2, kernel_height // 2
    made = torch.empty((len(pairs), reach_x + reach_y + 2), dtype=torch.float32, device=image.device)
    reaches = torch.empty((len(pairs), 2), dtype=torch.int32, device=image.device)
    levels = image.dtype == torch.uint8
    for axis, reach in ((0, reach_x), (1, reach_y)):
        where = made, reaches, pairs, axis, axis * (reach_x + 1), reach, made.shape[1], len(pairs)
        launch(_gaussian_kernel, -(-len(pairs) // 32), *where, LEVELS=levels, BLOCK=32, warps=1)
    images, channels, height, width = target.shape
    _, across = tile(width * channels, 1, 128)
    each = len(pairs) > 1
    launch(
        _blur_kernel,
        images * blocks((height, _ROWS), (width * channels, across)),
        target,
        source,
        made,
        reaches,
        made.shape[1] if each else 0,
        2 if each else 0,
        reach_x + 1,
        *(channels, height, width),
        *target.stride(),
        *source.stride(),
        INTERLEAVED=_layout.is_interleaved(target),
        ROWS=_ROWS,
        COLUMNS=across,
    )
    return None


@triton.jit(do_not_specialize=["start", "reach", "step", "count"])
def _gaussian_kernel(
    weights, reaches, sigmas, axis, start, reach, step, count, LEVELS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """``cv2.getGaussianKernel`` from the middle outwards, an image for each lane; how far it is above 0.

    OpenCV's weights for uint8 are 256ths: each is rounded with the error of those before it, from the outside in,
    and the middle takes what is missing.
    """
    n = tl.minimum(tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), count - 1)
    sigma = tl.load(sigmas + n * 2 + axis)
    blurs = sigma > 0.02
    scale = -0.5 / tl.where(blurs, sigma * sigma, 1.0)
    row = weights + n * step + start
    total = tl.full((BLOCK,), 0, tl.float64)
    for i in range(reach):
        x = reach - i
        total += tl.exp(scale * x * x)
    total = 2 * total + 1
    error, found = tl.full((BLOCK,), 0, tl.float64), tl.full((BLOCK,), 0, tl.float64)
    far = tl.full((BLOCK,), 0, tl.int32)
    for i in range(reach):
        x = reach - i
        value = tl.where(blurs, tl.exp(scale * x * x) / total, 0.0)
        if LEVELS:
            exact = value * 256 + error
            value = rounded(exact)
            error = exact - value
            found += value
        far = tl.where((value != 0) & (far == 0), reach - i, far)
        tl.store(row + (reach - i), value.to(tl.float32))
    middle = tl.where(blurs, 1 / total, 1.0)
    if LEVELS:
        middle = 256 - 2 * found
    tl.store(row, middle.to(tl.float32))
    tl.store(reaches + n * 2 + axis, far)


@triton.jit
def _blur_kernel(
    out, image, weights, reaches, weight_n, reach_n, y_start, channels, height, width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x,
    INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A row at a time is blurred along x and added to the rows of the tile that it belongs to."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    length = width * channels
    across, down = (length + COLUMNS - 1) // COLUMNS, (height + ROWS - 1) // ROWS
    program = tl.program_id(0)
    n = (program // (across * down)).to(tl.int64)
    first = ((program // across) % down) * ROWS
    y = first + tl.arange(0, ROWS)
    j = (program % across) * COLUMNS + tl.arange(0, COLUMNS)
    if INTERLEAVED:
        x, c = j // channels, j % channels
    else:
        x, c = j % width, j // width
    inside = j < length
    reach_x, reach_y = tl.load(reaches + n * reach_n), tl.load(reaches + n * reach_n + 1)
    across_weights = weights + n * weight_n
    down_weights = across_weights + y_start
    source = image + n * image_n + c.to(tl.int64) * image_c
    line_step = n * 0 + image_y
    if LEVELS:
        acc = tl.full((ROWS, COLUMNS), 0x8000, tl.int32)
    else:
        acc = tl.full((ROWS, COLUMNS), 0, tl.float32)
    last = tl.minimum(first + ROWS, height)
    for r in range(first - reach_y, last + reach_y):
        line = source + folded(n * 0 + r, height, "reflect") * line_step
        if LEVELS:
            middle = tl.full((COLUMNS,), 0, tl.int32)
        else:
            middle = tl.full((COLUMNS,), 0, tl.float32)
        for k in range(-reach_x, reach_x + 1):
            at = folded(x + k, width, "reflect").to(tl.int64) * image_x
            pixel = tl.load(line + at, mask=inside, other=0).to(middle.dtype)
            far = tl.maximum(k, -k)
            middle += pixel * tl.load(across_weights + far).to(middle.dtype)
        far = tl.abs(y - r)
        has = far <= reach_y
        share = tl.load(down_weights + far, mask=has, other=0).to(acc.dtype)
        acc += tl.where(has[:, None], share[:, None] * middle[None, :], 0)
    if LEVELS:
        value = (acc >> 16).to(tl.uint8)
    else:
        value = converted(acc, out.dtype.element_ty)
    to = out + n * out_n + c.to(tl.int64) * out_c + x.to(tl.int64) * out_x
    tl.store(
        to[None, :] + y[:, None].to(tl.int64) * out_y, value, mask=(y < height)[:, None] & inside[None, :]
    )


def filter2d(out: Tensor, image: Tensor, kernel: Tensor, border: str) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    source, target = batch(image), written(out)
    weights, step = per_image(kernel, image, 2, torch.float32)
    constants, programs = grid_of(target, 2048)
    sizes = *target.shape, *target.stride(), *source.stride()
    shape = kernel.shape[-2:]
    launch(
        _filter_kernel, programs, target, source, weights, step, *shape, *sizes, BORDER=border, **constants
    )
    return None


@triton.jit
def _filter_kernel(
    out, image, weights, weight_n, tall, wide, images, channels, height, width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x,
    BORDER: tl.constexpr, INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, c, y, x, inside = tile_of(
        tl.program_id(0), channels, height, width, images, INTERLEAVED, ROWS, COLUMNS
    )
    total = tl.full((ROWS, COLUMNS), 0, tl.float32)
    own = weights + n * weight_n
    for i in range(tall):
        at_y, has_row = shown(y + (i - tall // 2), height, BORDER)
        for j in range(wide):
            at_x, has_column = shown(x + (j - wide // 2), width, BORDER)
            use = inside & has_row & has_column
            at = image + offset(n, c, at_y, at_x, image_n, image_c, image_y, image_x, INTERLEAVED)
            pixel = tl.load(at, mask=use, other=0).to(tl.float32)
            share = tl.load(own + (i * wide + j), mask=n < images, other=0)
            total = tl.fma(pixel, tl.broadcast_to(share, (ROWS, COLUMNS)), total)  # as OpenCV has it
    if out.dtype.element_ty == tl.uint8:
        value = tl.minimum(tl.maximum(rounded(total), 0.0), 255.0).to(tl.uint8)
    else:
        value = converted(total, out.dtype.element_ty)
    tl.store(out + offset(n, c, y, x, out_n, out_c, out_y, out_x, INTERLEAVED), value, mask=inside)


def adjust_sharpness(out: Tensor, image: Tensor, factor: Tensor) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    factors, step = per_image(factor, image, 0, torch.float64)
    sharpen(written(out), batch(image), factors, step, None)
    return None


def sharpen(out: Tensor, image: Tensor, factors: Tensor, factor_n: int, gate: Gate | None) -> None:
    """With a gate: only the images that have it, whose factor is one of several amounts."""
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
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x,
    GATED: tl.constexpr, INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """``ImageEnhance.Sharpness``: the outermost pixels are not smoothed."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    n, c, y, x, inside = tile_of(
        tl.program_id(0), channels, height, width, images, INTERLEAVED, ROWS, COLUMNS
    )
    own = factors + n * factor_n
    if GATED:
        inside &= tl.load(order + n * order_n + turn, mask=n < images, other=-1) == which
        own += which
    factor = tl.load(own, mask=n < images, other=0).to(tl.float32)
    inner = inside & (y > 0) & (y < height - 1) & (x > 0) & (x < width - 1)
    at = image + offset(n, c, y, x, image_n, image_c, image_y, image_x, INTERLEAVED)
    middle = tl.load(at, mask=inside, other=0).to(tl.float32)
    total = middle * 4
    for i in tl.static_range(3):
        for j in tl.static_range(3):
            around = (at + (i - 1) * image_y) + (j - 1) * image_x
            total += tl.load(around, mask=inner, other=0).to(tl.float32)
    smooth = tl.div_rn(total, 13.0)
    if LEVELS:
        smooth = tl.floor(smooth + 0.5)
        value = tl.where(inner, _steps.mixed(smooth, middle, factor, LEVELS), middle).to(tl.uint8)
    else:
        value = tl.where(inner, _steps.mixed(smooth, middle, factor, LEVELS), unit(middle))
        if height < 3 or width < 3:
            value = middle
        value = converted(value, out.dtype.element_ty)
    tl.store(out + offset(n, c, y, x, out_n, out_c, out_y, out_x, INTERLEAVED), value, mask=inside)
