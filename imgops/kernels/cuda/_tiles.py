"""Images as ``(N, C, H, W)`` with any strides, and the tiles that kernels process.

A kernel processes its output in memory order. A tile consists of some columns of some rows, of planes or of
interleaved frames. Divisions compute the image, channel and pixel indices once for each row and once for each column.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
import triton.language as tl
from torch import Tensor

from imgops._common import layout
from imgops.kernels.cuda import _launch
from imgops.kernels.cuda._launch import inline
from imgops.kernels.cuda._packed import Packed

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
#: The dtypes that kernels compute with: float64 is left to ATen.
PIXELS = (torch.uint8, *FLOATS)


def batch(image: Tensor) -> Tensor:
    """Return an image as ``(N, C, H, W)``, as a view if the strides allow one; return packed images unchanged."""
    image = image.detach()
    if image.ndim == 4:
        return image
    return image.reshape(math.prod(image.shape[:-3]), *image.shape[-3:])


def output_batch(out: Tensor) -> Tensor:
    """Return an output as a view ``(N, C, H, W)``; raise RuntimeError if the strides do not allow one."""
    if isinstance(out, Packed):
        return out
    return out.detach().view(math.prod(out.shape[:-3]), *out.shape[-3:])


def per_image(value: Tensor, image: Tensor, core: int, dtype: torch.dtype) -> tuple[Tensor, int]:
    """Return a contiguous parameter of ``core`` dimensions, and its step from image to image."""
    value = value.detach().to(dtype)
    own = value.shape[value.ndim - core :]
    lead = value.shape[: value.ndim - core]
    if lead.numel() == 1:
        return value.reshape(own).contiguous(), 0
    every = value.expand(*image.shape[:-3], *own)
    return every.reshape(-1, *own).contiguous(), math.prod(own)


def has_carrier(image: Tensor) -> bool:
    """Return whether there is an integer dtype with as many bits as a value of an image."""
    return image.element_size() <= 8


def carrier(image: Tensor) -> Tensor:
    """Return the bits of an image as integers."""
    if isinstance(image, Packed):
        return image.with_values(layout.bits(image.data))
    return layout.bits(image)


def is_interleaved(image: Tensor) -> bool:
    return image.interleaved if isinstance(image, Packed) else layout.is_interleaved(image)


def rows_of(out: Tensor) -> tuple[bool, int, int]:
    """Return whether ``(N, C, H, W)`` is interleaved, and the number and length of its rows in memory."""
    n, c, h, w = out.shape
    interleaved = is_interleaved(out)
    return (True, n * h, w * c) if interleaved else (False, n * c * h, w)


def grid_of(out: Tensor, values: int, widest: int = 1024) -> tuple[dict[str, Any], int]:
    """Return the constants of a kernel that processes ``out`` tile by tile, and its number of programs."""
    interleaved, rows, length = rows_of(out)
    height, width = _launch.tile(length, values, widest)
    constants = {"INTERLEAVED": interleaved, "ROWS": height, "COLUMNS": width}
    return constants, _launch.blocks((rows, height), (length, width))


def grid_of_pixels(out: Tensor, values: int, widest: int = 1024) -> tuple[dict[str, Any], int]:
    """Return those of a kernel that processes the pixels of ``out``, with all their channels, row by row."""
    n, _, h, w = out.shape
    height, width = _launch.tile(w, values, widest)
    constants = {"INTERLEAVED": False, "ROWS": height, "COLUMNS": width}
    return constants, _launch.blocks((n * h, height), (w, width))


class Rows(NamedTuple):
    """A batch as rows in memory: values of a row are adjacent, and rows are a constant step apart.

    A planar image has a plane for each channel; an interleaved image is one plane, whose rows have ``pixel`` values
    for each pixel.
    """

    tensor: Tensor
    images: int
    planes: int
    height: int
    length: int
    pixel: int
    #: The steps from image to image, from plane to plane and from row to row.
    steps: tuple[int, int, int]


def rows_in(image: Tensor, interleaved: bool) -> Rows:
    """Return a batch ``(N, C, H, W)`` as rows of a format; copy it if its rows are not dense."""
    n, c, h, w = image.shape
    if isinstance(image, Packed):
        return Rows(
            image,
            n,
            1 if interleaved else c,
            h,
            w * c if interleaved else w,
            c if interleaved else 1,
            (0, 0, 0),
        )  # type: ignore[arg-type]
    step_n, step_c, step_y, step_x = image.stride()
    if interleaved:
        if (step_c != 1 and c > 1) or (step_x != c and w > 1):
            image = layout.in_usual_strides(image, True)
            step_n, step_c, step_y, step_x = image.stride()
        return Rows(image, n, 1, h, w * c, c, (step_n, 0, step_y))
    if step_x != 1 and w > 1:
        image = layout.in_usual_strides(image, False)
        step_n, step_c, step_y, step_x = image.stride()
    return Rows(image, n, c, h, w, 1, (step_n, step_c, step_y))


def alignment(rows: Rows) -> int:
    """Return the length of the vectors with which every row begins: 16 bytes, 4 values, or 1 value."""
    if isinstance(rows.tensor, Packed):
        return 1
    size, base = rows.tensor.element_size(), rows.tensor.data_ptr()
    whole = max(16 // size, 1)
    for most in (whole, 4):
        if (
            most <= whole
            and base % (most * size) == 0
            and not any(x % most for x in (rows.length, *rows.steps))
        ):
            return most
    return 1


def tiles_of(rows: Rows, first: tuple[int, int] = (32, 128)) -> tuple[dict[str, int], int]:
    """Return the constants of a kernel that processes rows tile by tile, and its number of programs.

    A tile is part of one plane. There are three shapes of tiles, so that few kernels are compiled: the ``first``; a
    tall one, if much of the first would be outside of the image; and one for small images.
    """
    shapes = (first, (128, 32)) if rows.length > 64 else ((32, 32),)
    counts = [_launch.blocks((rows.height, height), (rows.length, width)) for height, width in shapes]
    covered = [count * height * width for count, (height, width) in zip(counts, shapes, strict=True)]
    best = 1 if len(shapes) > 1 and covered[1] * 1.08 < covered[0] else 0
    height, width = shapes[best]
    return {
        "ROWS": height,
        "COLUMNS": width,
        "warps": 4 if rows.length > 64 else 1,
    }, rows.images * rows.planes * counts[best]


@inline
def plane_tile(program, planes, height, length, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return the image and the plane of a tile, its rows ``(ROWS,)``, and its first column; all but rows are scalars."""
    across, down = (length + COLUMNS - 1) // COLUMNS, (height + ROWS - 1) // ROWS
    column, rest = program % across, program // across
    y, plane = (rest % down) * ROWS + tl.arange(0, ROWS), rest // down
    return (plane // planes).to(tl.int64), plane % planes, y, column * COLUMNS


@inline
def tile_of(
    program,
    channels,
    height,
    width,
    images,
    INTERLEAVED: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Return the image, channel, row and column of a tile's pixels, and a mask of the pixels inside.

    The indices are ``(ROWS, 1)`` or ``(1, COLUMNS)``.
    """
    length = width * channels if INTERLEAVED else width
    across = (length + COLUMNS - 1) // COLUMNS
    row = (program // across) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (program % across) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    if INTERLEAVED:
        y, n = row % height, row // height
        x, c = column // channels, column % channels
        rows = images * height
    else:
        y, plane = row % height, row // height
        c, n = plane % channels, plane // channels
        x = column
        rows = images * channels * height
    return n.to(tl.int64), c, y, x, (row < rows) & (column < length)


@inline
def offset(n, c, y, x, step_n, step_c, step_y, step_x, INTERLEAVED: tl.constexpr):
    """Return the offset of a pixel; terms that a row or a column shares are added once for it."""
    c, y, x = c.to(tl.int64), y.to(tl.int64), x.to(tl.int64)
    if INTERLEAVED:
        at = (n * step_n + y * step_y) + (c * step_c + x * step_x)
    else:
        at = (n * step_n + c * step_c + y * step_y) + x * step_x
    return at


@inline
def place_of(sizes, starts, n, real, channels, PACKED: tl.constexpr):
    """Return the offsets of packed images, their steps to a channel, row and pixel, and their heights and widths.

    Images that are not ``real`` have one pixel.
    """
    height, width = tl.load(sizes + n * 2, mask=real, other=1), tl.load(sizes + n * 2 + 1, mask=real, other=1)
    start = tl.load(starts + n, mask=real, other=0)
    if PACKED == "interleaved":
        plane, line, pixel = n * 0 + 1, width * channels, n * 0 + channels
    else:
        plane, line, pixel = height * width, width, n * 0 + 1
    return start, plane, line, pixel, height.to(tl.int32), width.to(tl.int32)
