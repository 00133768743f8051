"""CUDA kernels of erosion and dilation: one pass over the members of each image's structuring element."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda._interpolation import pixel_at
from imgops.kernels.cuda._launch import launch
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


def erode(out: Tensor, image: Tensor, kernel: Tensor, padding_mode: str) -> Any:
    return _extreme(out, image, kernel, padding_mode, largest=False)


def dilate(out: Tensor, image: Tensor, kernel: Tensor, padding_mode: str) -> Any:
    return _extreme(out, image, kernel, padding_mode, largest=True)


def _extreme(out: Tensor, image: Tensor, kernel: Tensor, padding_mode: str, largest: bool) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    source, target = batch(image), output_batch(out)
    members, step = per_image(kernel, image, 2, torch.float32)
    constants, programs = grid_of(target, 2048)
    sizes = *target.shape, *target.stride(), *source.stride()
    where = target, source, members, step, *kernel.shape[-2:]
    launch(_extreme_kernel, programs, *where, *sizes, BORDER=padding_mode, LARGEST=largest, **constants)
    return None


@triton.jit
def _extreme_kernel(
    out, image, members, member_n, tall, wide, images, channels, height, width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x, sizes, starts,
    PACKED: tl.constexpr, BORDER: tl.constexpr, LARGEST: tl.constexpr,
    INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Compute the extreme value of the pixels under the members of an element.

    With a constant border, as in OpenCV, pixels outside have a value that is never the extreme one.
    """
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
    if LEVELS:
        found = tl.full((ROWS, COLUMNS), 0 if LARGEST else 255, tl.int32)
        beyond = found
    else:
        found = tl.full((ROWS, COLUMNS), float("-inf") if LARGEST else float("inf"), tl.float32)
        beyond = tl.full(
            (ROWS, COLUMNS), -3.4028234663852886e38 if LARGEST else 3.4028234663852886e38, tl.float32
        )
    own = members + n * member_n
    for i in range(tall):
        at_y, has_row = pixel_at(y + (i - tall // 2), height, BORDER)
        for j in range(wide):
            at_x, has_column = pixel_at(x + (j - wide // 2), width, BORDER)
            there = inside & has_row & has_column
            member = tl.load(own + (i * wide + j), mask=n < images, other=0) != 0
            at = image + offset(place, c, at_y, at_x, image_n, image_c, image_y, image_x, INTERLEAVED)
            pixel = tl.load(at, mask=there & member, other=0).to(found.dtype)
            pixel = tl.where(there, pixel, beyond)
            if LARGEST:
                found = tl.where(member, tl.maximum(found, pixel), found)
            else:
                found = tl.where(member, tl.minimum(found, pixel), found)
    at = out + offset(place, c, y, x, out_n, out_c, out_y, out_x, INTERLEAVED)
    tl.store(at, found.to(out.dtype.element_ty), mask=inside)
