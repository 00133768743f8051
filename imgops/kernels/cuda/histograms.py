"""CUDA kernels of equalize, autocontrast and clahe, which need histograms or extremes first."""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops.decomposition import histograms as formula
from imgops.kernels.cuda._arithmetic import convert, fold_positions, round_half_even, unit
from imgops.kernels.cuda._launch import blocks, inline, kernel, launch
from imgops.kernels.cuda._pixels import cover, parameter
from imgops.kernels.cuda._statistics import SPAN, statistics
from imgops.kernels.cuda._tiles import PIXELS, batch, output_batch
from imgops.kernels.cuda.color_space import cvt_color
from imgops.kernels.cuda.levels import look_up, map_values


def equalize(out: Tensor, image: Tensor) -> Any:
    if image.dtype not in PIXELS or image.numel() == 0:
        return NotImplemented
    over, channels = cover(out, image, "planes", SPAN), image.shape[-3]
    tables, _ = statistics(over, channels, "e", None, 0, 0)
    look_up(out, over.image, tables, channels * 256, True)
    return None


def autocontrast(out: Tensor, image: Tensor) -> Any:
    if image.dtype not in PIXELS or image.numel() == 0:
        return NotImplemented
    over, channels = cover(out, image, "planes", SPAN), image.shape[-3]
    tables, numbers = statistics(over, channels, "a", None, 0, 0)
    if image.dtype == torch.uint8:
        look_up(out, over.image, tables, channels * 256, True)
    else:
        map_values("stretch", out, over.image, numbers, numbers, (channels * 2, channels * 2, 2))
    return None


# -- clahe -------------------------------------------------------------------------------------------

#: The pixels of a program.
_LANES = 1024


def clahe(out: Tensor, image: Tensor, clip_limit: Tensor, tiles_x: int, tiles_y: int) -> Any:
    if image.dtype not in PIXELS or (image.shape[-3] == 3 and image.dtype != torch.uint8):
        return NotImplemented  # float colors need double precision, see the decomposition
    if out.numel() == 0:
        return None
    limits, limit_n = parameter(clip_limit, image, 0)
    if image.shape[-3] == 1:
        _equalize_tiles(output_batch(out), batch(image), limits, limit_n, tiles_x, tiles_y)
        return None
    lab = torch.empty_like(out)
    cvt_color(lab, image, "rgb2lab")
    light = output_batch(lab)[:, :1]
    _equalize_tiles(light, light, limits, limit_n, tiles_x, tiles_y, is_light=True)
    cvt_color(out, lab, "lab2rgb")
    return None


def _equalize_tiles(
    out: Tensor,
    image: Tensor,
    limits: Tensor,
    limit_n: int,
    tiles_x: int,
    tiles_y: int,
    is_light: bool = False,
) -> None:
    """Write CLAHE of images of one channel, possibly in place; floats of LAB's lightness range up to 100."""
    images, _, height, width = image.shape
    wide, high = formula._extend_size(width, height, tiles_x, tiles_y)
    rows, columns = high // tiles_y, wide // tiles_x
    levels, steps = image.dtype == torch.uint8, image.stride()[::2] + image.stride()[3:]
    tables = torch.empty(
        (images, tiles_y, tiles_x, 256),
        dtype=torch.uint8 if levels else torch.float32,
        device=image.device,
    )
    most = 100 if is_light and not levels else 1
    launch(
        _tile_kernel,
        images * tiles_y * tiles_x,
        *(tables, image, limits),
        *(height, width, rows, columns, rows * columns, tiles_y, tiles_x, limit_n, *steps),
        MOST=most,
        BLOCK=_LANES,
    )
    parts = blocks((height * width, _LANES))
    launch(
        _between_tiles_kernel,
        images * parts,
        *(out, image, tables),
        *(height * width, width, rows, columns, tiles_y, tiles_x, parts),
        *(*steps, *out.stride()[::2], *out.stride()[3:]),
        MOST=most,
        BLOCK=_LANES,
    )


@kernel(tensors=3)
def _tile_kernel(
    tables, image, limits, height, width, rows, columns, area, tiles_y, tiles_x, limit_n, step_n, step_y, step_x,
    MOST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the table of a tile; counts above the limit in its histogram are distributed to all levels."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    tile = tl.program_id(0) % (tiles_y * tiles_x)
    n, top, left = (
        (tl.program_id(0) // (tiles_y * tiles_x)).to(tl.int64),
        tile // tiles_x * rows,
        tile % tiles_x * columns,
    )
    counts = tl.zeros((256,), tl.int32)
    for first in range(0, area, BLOCK):
        i = first + tl.arange(0, BLOCK)
        y = fold_positions(top + i // columns, height, "reflect").to(tl.int64)
        x = fold_positions(left + i % columns, width, "reflect").to(tl.int64)
        value = tl.load(image + n * step_n + y * step_y + x * step_x, mask=i < area, other=0)
        if not LEVELS:
            value = round_half_even(_scaled(value, MOST))
        counts += tl.histogram(value.to(tl.int32), 256, mask=i < area)
    limit = tl.load(limits + n * limit_n).to(tl.float64)
    # A limit above the size of the tile has no effect, and a product beyond the range of integers must not be
    # converted.
    most = tl.maximum(tl.minimum(limit * area * (1 / 256), area.to(tl.float64)).to(tl.int64), 1)
    kept = tl.minimum(counts.to(tl.int64), tl.where(limit > 0, most, area))
    clipped = tl.sum(counts.to(tl.int64) - kept, 0)
    rest = clipped % 256
    step = tl.maximum(256 // tl.maximum(rest, 1), 1)
    level = tl.arange(0, 256)
    more = (level % step == 0) & (level // step < rest)
    below = tl.cumsum(kept + clipped // 256 + more.to(tl.int64), 0)
    to = tables + (n * (tiles_y * tiles_x) + tile) * 256 + level
    if LEVELS:
        scale = tl.div_rn(tl.full((256,), 255.0, tl.float32), area.to(tl.float32))
        value = round_half_even(below.to(tl.float32) * scale)
        tl.store(to, tl.minimum(value, 255.0).to(tl.int32).to(tl.uint8))
    else:
        tl.store(to, (below.to(tl.float64) * 255 / area.to(tl.float64)).to(tl.float32))


@inline
def _scaled(value, MOST: tl.constexpr):
    """Return a float as a level with a fraction; NaN becomes 0."""
    value = value.to(tl.float32)
    if MOST != 1:
        value = tl.div_rn(value, tl.full((), MOST, tl.float32))
    return unit(tl.where(value == value, value, 0.0)) * 255


@kernel(tensors=3)
def _between_tiles_kernel(
    out, image, tables, pixels, width, rows, columns, tiles_y, tiles_x, parts,
    step_n, step_y, step_x, out_n, out_y, out_x, MOST: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Look up each pixel in the tables of the four tiles around it, and interpolate."""
    n, part = (tl.program_id(0) // parts).to(tl.int64), tl.program_id(0) % parts
    p = part.to(pixels.dtype) * BLOCK + tl.arange(0, BLOCK)
    inside = p < pixels
    y, x = (p // width).to(tl.int32), (p % width).to(tl.int32)
    value = tl.load(
        image + n * step_n + y.to(tl.int64) * step_y + x.to(tl.int64) * step_x, mask=inside, other=0
    )
    left, right, across = _neighbors(x, columns, tiles_x)
    above, below, down = _neighbors(y, rows, tiles_y)
    tables += n * (tiles_y * tiles_x) * 256
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    if LEVELS:
        low, share = value.to(tl.int32), value
    else:
        value = _scaled(value, MOST)
        low = tl.minimum(tl.floor(value), 254.0).to(tl.int32)
        share = value - low.to(tl.float32)
    upper = _found(tables, above * tiles_x + left, low, share, inside, LEVELS) * (1 - across)
    upper += _found(tables, above * tiles_x + right, low, share, inside, LEVELS) * across
    under = _found(tables, below * tiles_x + left, low, share, inside, LEVELS) * (1 - across)
    under += _found(tables, below * tiles_x + right, low, share, inside, LEVELS) * across
    made = upper * (1 - down) + under * down
    to = out + n * out_n + y.to(tl.int64) * out_y + x.to(tl.int64) * out_x
    if LEVELS:
        held = tl.minimum(tl.maximum(round_half_even(made), 0.0), 255.0).to(tl.int32).to(tl.uint8)
    else:
        made = tl.div_rn(made, tl.full((), 255.0, tl.float32))
        held = convert(made * MOST if MOST != 1 else made, out.dtype.element_ty)
    tl.store(to, held, mask=inside)


@inline
def _neighbors(i, size, count):
    """Return the tiles before and after pixels, and the pixels' fractional positions between the tiles' centers."""
    at = i.to(tl.float32) * tl.div_rn(tl.full((), 1.0, tl.float32), size.to(tl.float32)) - 0.5
    before = tl.floor(at)
    first = before.to(tl.int32)
    return tl.maximum(first, 0), tl.minimum(first + 1, count - 1), at - before


@inline
def _found(tables, tile, low, share, inside, LEVELS: tl.constexpr):
    at = tables + tile * 256 + low
    value = tl.load(at, mask=inside, other=0).to(tl.float32)
    if not LEVELS:
        value += (tl.load(at + 1, mask=inside, other=0) - value) * share
    return value
