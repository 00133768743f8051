"""Images as ``(N, C, H, W)`` with any strides, and the tiles that kernels go over.

A kernel goes over its output in memory order. A tile is some rows, of planes or of interleaved frames, by
some columns; divisions find the image, channel and pixel indices once for a row and once for a column.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops import _layout
from imgops.kernels.cuda import _launch
from imgops.kernels.cuda._launch import inline
from imgops.kernels.cuda._packed import Packed

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
#: The dtypes that kernels compute with: float64 is left to ATen.
PIXELS = (torch.uint8, *FLOATS)


def batch(image: Tensor) -> Tensor:
    """Return an image as ``(N, C, H, W)``, a view where the strides allow one; packed images as they are."""
    image = image.detach()
    if image.ndim == 4:
        return image
    return image.reshape(math.prod(image.shape[:-3]), *image.shape[-3:])


def output_batch(out: Tensor) -> Tensor:
    """Return an output as ``(N, C, H, W)``, a view; raise RuntimeError where the strides allow none."""
    if isinstance(out, Packed):
        return out
    return out.detach().view(math.prod(out.shape[:-3]), *out.shape[-3:])


def per_image(value: Tensor, image: Tensor, core: int, dtype: torch.dtype) -> tuple[Tensor, int]:
    """Return a parameter of ``core`` dimensions, contiguous, and its step from image to image."""
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
        return image.with_values(_layout.bits(image.data))
    return _layout.bits(image)


def is_interleaved(image: Tensor) -> bool:
    return image.interleaved if isinstance(image, Packed) else _layout.is_interleaved(image)


def rows_of(out: Tensor) -> tuple[bool, int, int]:
    """Return whether ``(N, C, H, W)`` is interleaved, and the number and length of its rows in memory."""
    n, c, h, w = out.shape
    interleaved = is_interleaved(out)
    return (True, n * h, w * c) if interleaved else (False, n * c * h, w)


def grid_of(out: Tensor, values: int, widest: int = 1024) -> tuple[dict[str, Any], int]:
    """Return the constants of a kernel that goes over ``out`` tile by tile, and its number of programs."""
    interleaved, rows, length = rows_of(out)
    height, width = _launch.tile(length, values, widest)
    constants = {"INTERLEAVED": interleaved, "ROWS": height, "COLUMNS": width}
    return constants, _launch.blocks((rows, height), (length, width))


def grid_of_pixels(out: Tensor, values: int, widest: int = 1024) -> tuple[dict[str, Any], int]:
    """Return those of a kernel that goes over the pixels of ``out``, with all their channels, row by row."""
    n, _, h, w = out.shape
    height, width = _launch.tile(w, values, widest)
    constants = {"INTERLEAVED": False, "ROWS": height, "COLUMNS": width}
    return constants, _launch.blocks((n * h, height), (w, width))


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
    """Return the image, channel, row and column of a tile's pixels, and which pixels lie inside.

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
    """Return the offset of a pixel; terms that a row shares are added once for it, likewise for columns."""
    c, y, x = c.to(tl.int64), y.to(tl.int64), x.to(tl.int64)
    if INTERLEAVED:
        at = (n * step_n + y * step_y) + (c * step_c + x * step_x)
    else:
        at = (n * step_n + c * step_c + y * step_y) + x * step_x
    return at


@inline
def place_of(sizes, starts, n, real, channels, PACKED: tl.constexpr):
    """Return where packed images begin, the steps to a channel, row and pixel, and their heights and widths.

    Images that are not ``real`` have one pixel.
    """
    height, width = tl.load(sizes + n * 2, mask=real, other=1), tl.load(sizes + n * 2 + 1, mask=real, other=1)
    start = tl.load(starts + n, mask=real, other=0)
    if PACKED == "interleaved":
        plane, line, pixel = n * 0 + 1, width * channels, n * 0 + channels
    else:
        plane, line, pixel = height * width, width, n * 0 + 1
    return start, plane, line, pixel, height.to(tl.int32), width.to(tl.int32)
