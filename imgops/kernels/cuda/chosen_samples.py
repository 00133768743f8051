"""CUDA kernels of transforms of the chosen samples; the other samples are copied in the same pass."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda import _color_steps
from imgops.kernels.cuda._arithmetic import convert
from imgops.kernels.cuda._launch import launch
from imgops.kernels.cuda._tiles import (
    PIXELS,
    batch,
    carrier,
    grid_of,
    has_carrier,
    offset,
    output_batch,
    per_image,
    tile_of,
)


def flip(out: Tensor, image: Tensor, chosen: Tensor, dim: int) -> Any:
    if not has_carrier(image):
        return NotImplemented
    target, source = carrier(output_batch(out)), carrier(batch(image))
    flags, step = per_image(chosen, image, 0, torch.uint8)
    constants, programs = grid_of(target, 4096)
    sizes = *target.shape, *target.stride(), *source.stride()
    launch(_flip_kernel, programs, target, source, flags, step, *sizes, ACROSS=dim == -1, **constants)
    return None


@triton.jit
def _flip_kernel(
    out, image, chosen, chosen_n, images, channels, height, width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x,
    ACROSS: tl.constexpr, INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, c, y, x, inside = tile_of(
        tl.program_id(0), channels, height, width, images, INTERLEAVED, ROWS, COLUMNS
    )
    flips = tl.load(chosen + n * chosen_n, mask=n < images, other=0) != 0
    from_y, from_x = y, x
    if ACROSS:
        from_x = tl.where(flips, width - 1 - x, x)
    else:
        from_y = tl.where(flips, height - 1 - y, y)
    at = image + offset(n, c, from_y, from_x, image_n, image_c, image_y, image_x, INTERLEAVED)
    value = tl.load(at, mask=inside, other=0)
    tl.store(out + offset(n, c, y, x, out_n, out_c, out_y, out_x, INTERLEAVED), value, mask=inside)


def grayscale(out: Tensor, image: Tensor, chosen: Tensor) -> Any:
    if image.dtype not in PIXELS or image.shape[-3] != 3:
        return NotImplemented
    target, source = output_batch(out), batch(image)
    flags, step = per_image(chosen, image, 0, torch.uint8)
    constants, programs = grid_of(target[:, :1], 2048)
    constants["INTERLEAVED"] = False
    sizes = target.shape[0], *target.shape[-2:], *target.stride(), *source.stride()
    launch(_gray_kernel, programs, target, source, flags, step, *sizes, **constants)
    return None


@triton.jit
def _gray_kernel(
    out, image, chosen, chosen_n, images, height, width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x,
    INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    n, c, y, x, inside = tile_of(tl.program_id(0), 1, height, width, images, INTERLEAVED, ROWS, COLUMNS)
    grays = tl.load(chosen + n * chosen_n, mask=n < images, other=0) != 0
    at = image + offset(n, c, y, x, image_n, 0, image_y, image_x, INTERLEAVED)
    r, g = tl.load(at, mask=inside, other=0), tl.load(at + image_c, mask=inside, other=0)
    b = tl.load(at + 2 * image_c, mask=inside, other=0)
    gray = _color_steps.luma(r.to(tl.float32), g.to(tl.float32), b.to(tl.float32), True, LEVELS)
    if LEVELS:
        value = gray.to(tl.uint8)
    else:
        value = convert(gray, out.dtype.element_ty)
    to = out + offset(n, c, y, x, out_n, 0, out_y, out_x, INTERLEAVED)
    tl.store(to, tl.where(grays, value, r), mask=inside)
    tl.store(to + out_c, tl.where(grays, value, g), mask=inside)
    tl.store(to + 2 * out_c, tl.where(grays, value, b), mask=inside)
