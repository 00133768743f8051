"""CUDA kernels of the warps: a position is computed once for all channels, and only the result is stored."""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops.decomposition._saturate import saturate
from imgops.kernels.cuda._interpolation import (
    are_far,
    around_position,
    bound_positions,
    slopes,
    taps,
    tile_of_pixels,
    weights,
)
from imgops.kernels.cuda._launch import inline, kernel, launch
from imgops.kernels.cuda._packed import Packed
from imgops.kernels.cuda._tiles import (
    FLOATS,
    PIXELS,
    Rows,
    batch,
    carrier,
    has_carrier,
    is_interleaved,
    output_batch,
    per_image,
    rows_in,
)
from imgops.kernels.cuda._warp import invert_kernel, warp_kernel

#: The number of pixels that each interpolation reads along an axis.
_TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4}
#: In images with shorter sides, sums in single precision round positions.
_WIDE = 1 << 22


def warp_affine(
    out: Tensor,
    image: Tensor,
    matrix: Tensor,
    fill: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    padding_mode: str,
) -> Any:
    return _warp("affine", out, image, matrix, fill, interpolation, padding_mode)


def warp_perspective(
    out: Tensor,
    image: Tensor,
    matrix: Tensor,
    fill: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    padding_mode: str,
) -> Any:
    return _warp("perspective", out, image, matrix, fill, interpolation, padding_mode)


def remap(
    out: Tensor, image: Tensor, map: Tensor, fill: Tensor | None, interpolation: str, padding_mode: str
) -> Any:
    return _warp("map", out, image, map, fill, interpolation, padding_mode)


def _warp(
    kind: str,
    out: Tensor,
    image: Tensor,
    where: Tensor,
    fill: Tensor | None,
    interpolation: str,
    padding_mode: str,
) -> Any:
    side = _TAPS[interpolation]
    if (not has_carrier(image) or image.dtype.is_complex) if side == 1 else image.dtype not in PIXELS:
        return NotImplemented
    where, step = _dense_map(where) if kind == "map" else _inverse(where, image, kind)
    target, source = output_batch(out), batch(image)
    color, *color_steps = _color(fill, image, padding_mode)
    if side == 1:
        target, source = carrier(target), carrier(source)
        color = None if color is None else carrier(color)
    images, channels, height, width = target.shape
    interleaved = is_interleaved(target)
    rows = rows_in(source, interleaved)
    each, pixel = _split(channels, interleaved)
    # Decisions for a whole tile favor square tiles; without them, threads share more data in long rows.
    by_tiles = side > 1 or padding_mode not in ("constant", "edge")
    tile_rows, columns, tall = (16, 32, 64) if by_tiles else (8, 64, 64)
    launch(
        warp_kernel,
        images * (channels // each) * -(-width // columns) * -(-height // tall),
        target,
        rows.tensor,
        where,
        target if color is None else color,
        channels,
        height,
        width,
        *source.shape[-2:],
        *rows.steps,
        step,
        *color_steps,
        KIND=kind,
        TAPS=side,
        BORDER=padding_mode,
        FILLS=color is not None,
        CHANNELS=each,
        PIXEL=pixel,
        ALIGNED=pixel == 1 and width % 4 == 0 and (target.data_ptr() | where.data_ptr()) % 16 == 0,
        WIDE=_is_wide(rows, source) or height * width * rows.pixel >= 1 << 31,
        WORDS=_words(rows, each) if side == 4 else "",
        ROWS=tile_rows,
        COLUMNS=columns,
        TALL=tall,
    )
    return None


def _inverse(matrix: Tensor, image: Tensor, kind: str) -> tuple[Tensor, int]:
    """Return the inverse matrices, 9 floats each, and the step from image to image."""
    own = 6 if kind == "affine" else 9
    count = matrix.numel() // own
    is_real = matrix.dtype in (torch.float64, torch.float32)
    if not (is_real and matrix.is_contiguous() and (count == 1 or matrix.shape[:-2] == image.shape[:-3])):
        matrix, _ = per_image(matrix, image, 2, matrix.dtype if is_real else torch.float64)
        count = matrix.numel() // own
    inverse = torch.empty((count, 9), dtype=torch.float32, device=matrix.device)
    launch(invert_kernel, -(-count // 32), inverse, matrix, count, KIND=kind, BLOCK=32, warps=1)
    return inverse, 9 if count > 1 else 0


def _dense_map(map: Tensor) -> tuple[Tensor, int]:
    """Return a map with dense planes and rows, and its step from image to image."""
    where = batch(map)
    if not (where.is_contiguous() or where[:1].is_contiguous()):
        where = where.contiguous()
    return where, where.stride(0)


def _color(fill: Tensor | None, image: Tensor, padding_mode: str) -> tuple[Tensor | None, int, int]:
    """Return the fill in the image's dtype, and the steps from image to image and from channel to channel."""
    if fill is None or padding_mode != "constant":
        return None, 0, 0
    values = saturate(fill.detach(), image.dtype)
    if values.numel() == 1:
        return values, 0, 0
    values = values.expand(*image.shape[:-2])
    return values.reshape(batch(image).shape[:2]).contiguous(), image.shape[-3], 1


def _split(channels: int, interleaved: bool) -> tuple[int, int]:
    """Return how many channels share a position in a program, and the constant number of values of a pixel."""
    each = channels if 1 <= channels <= 4 else 1 if channels % 4 else 4
    return each, (channels if channels <= 4 else 0) if interleaved else 1


def _is_wide(rows: Rows, image: Tensor) -> bool:
    """Return whether offsets in a plane and some rows beyond need 64 bits, or positions more than 22 bits."""
    height, width = image.shape[-2:]
    step = width * rows.pixel if isinstance(image, Packed) else rows.steps[2]
    return max(height, width) >= _WIDE or (height + 4) * step + 4 * rows.pixel >= 1 << 31


def _words(rows: Rows, channels: int) -> str:
    """Return which rows of a uint8 image may be read as 32-bit words: "aligned" rows, "any" row, or none."""
    image = rows.tensor
    if image.dtype != torch.uint8 or channels % rows.pixel:
        return ""
    if not isinstance(image, Packed) and image.data_ptr() % 4 == 0:
        if not any(n % 4 for n in (rows.length, *rows.steps)):
            return "aligned"
    return "any" if rows.pixel > 1 else ""


def remap_adjoint(
    out: Tensor, grad: Tensor, map: Tensor, height: int, width: int, interpolation: str, padding_mode: str
) -> Any:
    """Add gradients atomically, in a varying order; with deterministic algorithms ATen computes the sums instead."""
    if grad.dtype not in FLOATS or torch.are_deterministic_algorithms_enabled():
        return NotImplemented
    target = output_batch(out)
    total = target if out.dtype == torch.float32 else torch.empty_like(target, dtype=torch.float32)
    total.zero_()
    rows = rows_in(batch(grad), is_interleaved(target))
    where, step = _dense_map(map)
    images, channels, own_height, own_width = target.shape
    height, width = map.shape[-2:]
    tile_rows = 32 // _TAPS[interpolation]
    launch(
        _adjoint_kernel,
        images * -(-width // 32) * -(-height // tile_rows),
        total,
        rows.tensor,
        where,
        channels,
        height,
        width,
        own_height,
        own_width,
        *rows.steps,
        step,
        TAPS=_TAPS[interpolation],
        BORDER=padding_mode,
        PIXEL=_split(channels, rows.pixel > 1)[1],
        WIDE=_is_wide(rows, rows.tensor) or own_height * own_width * rows.pixel >= 1 << 31,
        ROWS=tile_rows,
        COLUMNS=32,
    )
    if total is not target:
        target.copy_(total)
    return None


@kernel(tensors=3)
def _adjoint_kernel(
    out, grad, where, channels, height, width, out_height, out_width, grad_n, grad_c, grad_y, where_n,
    TAPS: tl.constexpr, BORDER: tl.constexpr, PIXEL: tl.constexpr, WIDE: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, y, x, inside = _pixels(height, width, WIDE, ROWS, COLUMNS)
    u, v = _load_map(where + n * where_n, y, x, height, width, inside)
    pixel = channels if PIXEL == 0 else PIXEL
    out_y, out_c = out_width * pixel, out_height.to(tl.int64) * out_width
    to = out + n * (out_c * channels)
    values = grad + n * grad_n + (y * grad_y + x * pixel)
    grad_c = grad_c.to(tl.int64)
    if PIXEL != 1:
        grad_c, out_c = 1, 1
    left, top, fx, fy = _around(u, v, out_width, out_height, TAPS, BORDER, WIDE)
    wx, wy = weights(fx, TAPS), weights(fy, TAPS)
    rows, has_y = taps(top, out_height, out_y, TAPS, BORDER)
    columns, has_x = taps(left, out_width, pixel, TAPS, BORDER)
    if BORDER == "constant":
        to += top * out_y + left * pixel
    for c in range(channels):
        value = tl.load(values + c * grad_c, mask=inside, other=0).to(tl.float32)
        for j in tl.static_range(TAPS):
            share = value * wy[j]
            for i in tl.static_range(TAPS):
                has = inside & has_y[j] & has_x[i]
                tl.atomic_add(to + rows[j] + columns[i], share * wx[i], mask=has, sem="relaxed")
        to += out_c


@inline
def _pixels(height, width, WIDE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return the image, the rows and the columns of a program's pixels, and a mask of those that exist."""
    n, _, first_y, first_x = tile_of_pixels(tl.program_id(0), 1, height, width, ROWS, COLUMNS)
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    inside = (row < height - first_y) & (column < width - first_x)
    y = first_y + row
    if WIDE:
        y = y.to(tl.int64)
    return n, y, first_x + column, inside


@inline
def _load_map(where, y, x, height, width, inside):
    at = where + (y * width + x)
    return tl.load(at, mask=inside, other=0), tl.load(at + height.to(tl.int64) * width, mask=inside, other=0)


@inline
def _around(u, v, width, height, TAPS: tl.constexpr, BORDER: tl.constexpr, WIDE: tl.constexpr):
    """Return the first pixel from which each position is interpolated, and the fractions."""
    far = are_far(u, v) if BORDER != "constant" and BORDER != "edge" else False
    u, v = bound_positions(u, v, width, height, far, BORDER)
    left, top, fx, fy = around_position(u, v, TAPS)
    if WIDE:
        left, top = left.to(tl.int64), top.to(tl.int64)
    return left, top, fx, fy


def remap_grad_map(
    out: Tensor,
    grad: Tensor,
    image: Tensor,
    map: Tensor,
    fill: Tensor | None,
    interpolation: str,
    padding_mode: str,
) -> Any:
    if image.dtype not in PIXELS or grad.dtype not in PIXELS:
        return NotImplemented
    if interpolation == "nearest":
        out.zero_()
        return None
    target, source = output_batch(out), batch(image)
    interleaved = is_interleaved(source)
    values, pixels = rows_in(batch(grad), interleaved), rows_in(source, interleaved)
    where, step = _dense_map(map)
    color, *color_steps = _color(fill, image, padding_mode)
    images, _, height, width = target.shape
    channels = source.shape[1]
    tile_rows = 32 // _TAPS[interpolation]
    launch(
        _slope_kernel,
        images * -(-width // 32) * -(-height // tile_rows),
        target,
        values.tensor,
        pixels.tensor,
        where,
        target if color is None else color,
        channels,
        height,
        width,
        *source.shape[-2:],
        *values.steps,
        *pixels.steps,
        step,
        *color_steps,
        TAPS=_TAPS[interpolation],
        BORDER=padding_mode,
        FILLS=color is not None,
        PIXEL=_split(channels, interleaved)[1],
        WIDE=_is_wide(pixels, source) or _is_wide(values, values.tensor),
        ROWS=tile_rows,
        COLUMNS=32,
    )
    return None


@kernel(tensors=5)
def _slope_kernel(
    out, grad, image, where, color, channels, height, width, image_height, image_width,
    grad_n, grad_c, grad_y, image_n, image_c, image_y, where_n, color_n, color_c,
    TAPS: tl.constexpr, BORDER: tl.constexpr, FILLS: tl.constexpr, PIXEL: tl.constexpr, WIDE: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, y, x, inside = _pixels(height, width, WIDE, ROWS, COLUMNS)
    u, v = _load_map(where + n * where_n, y, x, height, width, inside)
    pixel = channels if PIXEL == 0 else PIXEL
    values = grad + n * grad_n + (y * grad_y + x * pixel)
    source = image + n * image_n
    grad_c, image_c = grad_c.to(tl.int64), image_c.to(tl.int64)
    if PIXEL != 1:
        grad_c, image_c = 1, 1
    left, top, fx, fy = _around(u, v, image_width, image_height, TAPS, BORDER, WIDE)
    wx, wy = weights(fx, TAPS), weights(fy, TAPS)
    sx, sy = slopes(fx, TAPS), slopes(fy, TAPS)
    rows, has_y = taps(top, image_height, image_y, TAPS, BORDER)
    columns, has_x = taps(left, image_width, pixel, TAPS, BORDER)
    if BORDER == "constant":
        source += top * image_y + left * pixel
    towards_x, towards_y = fx * 0, fx * 0
    for c in range(channels):
        pulled = tl.load(values + c * grad_c, mask=inside, other=0).to(tl.float32)
        around = tl.load(color + n * color_n + c * color_c) if FILLS else tl.zeros((), image.dtype.element_ty)
        along_x, along_y, slope, value = fx, fx, fx, fx
        for j in tl.static_range(TAPS):
            for i in tl.static_range(TAPS):
                has = inside & has_y[j] & has_x[i]
                tap = tl.load(source + rows[j] + columns[i], mask=has, other=around).to(tl.float32)
                slope = tap * sx[i] if i == 0 else slope + tap * sx[i]
                value = tap * wx[i] if i == 0 else value + tap * wx[i]
            along_x = slope * wy[j] if j == 0 else along_x + slope * wy[j]
            along_y = value * sy[j] if j == 0 else along_y + value * sy[j]
        towards_x += pulled * along_x
        towards_y += pulled * along_y
        source += image_c
    plane = height.to(tl.int64) * width
    to = out + n * (2 * plane) + (y * width + x)
    tl.store(to, towards_x.to(out.dtype.element_ty), mask=inside)
    tl.store(to + plane, towards_y.to(out.dtype.element_ty), mask=inside)
