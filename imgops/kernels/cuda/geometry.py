"""CUDA kernels of the warps: a position is computed once for all channels, and only the result is stored."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from imgops.decomposition._saturate import saturate
from imgops.kernels.cuda._interpolation import (
    around_position,
    bound_positions,
    offsets,
    pick,
    pixel,
    slopes,
    weights,
)
from imgops.kernels.cuda._launch import launch
from imgops.kernels.cuda._tiles import (
    FLOATS,
    PIXELS,
    batch,
    carrier,
    grid_of,
    grid_of_pixels,
    has_carrier,
    offset,
    output_batch,
    per_image,
    tile_of,
)
from imgops.kernels.cuda._warp import warp_kernel

_TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4}


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
    where, step = per_image(matrix, image, 2, torch.float64)
    return _sample("affine", out, image, where, (step, 0, 0, 0), fill, interpolation, padding_mode)


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
    where, step = per_image(matrix, image, 2, torch.float64)
    return _sample("perspective", out, image, where, (step, 0, 0, 0), fill, interpolation, padding_mode)


def remap(
    out: Tensor, image: Tensor, map: Tensor, fill: Tensor | None, interpolation: str, padding_mode: str
) -> Any:
    where = batch(map)
    return _sample("map", out, image, where, where.stride(), fill, interpolation, padding_mode)


def _sample(
    kind: str,
    out: Tensor,
    image: Tensor,
    where: Tensor,
    steps: Any,
    fill: Tensor | None,
    interpolation: str,
    padding_mode: str,
) -> Any:
    moves = interpolation == "nearest"
    if (not has_carrier(image) or image.dtype.is_complex) if moves else image.dtype not in PIXELS:
        return NotImplemented
    target, source = output_batch(out), batch(image)
    color, color_steps = _color(fill, image, padding_mode)
    if moves:
        target, source, color = carrier(target), carrier(source), carrier(color)
    constants, programs = grid_of_pixels(target, 1024, 256)
    launch(
        warp_kernel,
        programs,
        target,
        source,
        where,
        color,
        *steps,
        *color_steps,
        *target.shape,
        *source.shape[-2:],
        *target.stride(),
        *source.stride(),
        KIND=kind,
        TAPS=_TAPS[interpolation],
        BORDER=padding_mode,
        FILLS=fill is not None and padding_mode == "constant",
        **constants,
    )
    return None


def _color(fill: Tensor | None, image: Tensor, padding_mode: str) -> tuple[Tensor, tuple[int, ...]]:
    """Return the fill of each image and channel, in the image's dtype, and the steps between them."""
    if fill is None or padding_mode != "constant":
        return torch.empty((1,), dtype=image.dtype, device=image.device), (0, 0)
    values = saturate(fill.detach(), image.dtype).expand(*image.shape[:-2])
    values = values.reshape(batch(image).shape[:2]).contiguous()
    return values, values.stride()


def remap_adjoint(
    out: Tensor, grad: Tensor, map: Tensor, height: int, width: int, interpolation: str, padding_mode: str
) -> Any:
    """Add gradients atomically, in an order that varies; with deterministic algorithms ATen adds instead."""
    if grad.dtype not in FLOATS or torch.are_deterministic_algorithms_enabled():
        return NotImplemented
    target = output_batch(out)
    total = target if out.dtype == torch.float32 else torch.empty_like(target, dtype=torch.float32)
    total.zero_()
    values, where = batch(grad), batch(map)
    constants, programs = grid_of_pixels(values, 1024, 256)
    launch(
        _adjoint_kernel,
        programs,
        total,
        values,
        where,
        *where.stride(),
        *values.shape,
        *total.shape[-2:],
        *total.stride(),
        *values.stride(),
        TAPS=_TAPS[interpolation],
        BORDER=padding_mode,
        **constants,
    )
    if total is not target:
        target.copy_(total)
    return None


@triton.jit
def _adjoint_kernel(
    out, grad, where, where_n, where_c, where_y, where_x, images, channels, height, width, out_height, out_width,
    out_n, out_c, out_y, out_x, grad_n, grad_c, grad_y, grad_x,
    TAPS: tl.constexpr, BORDER: tl.constexpr, INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, zero, y, x, inside = tile_of(tl.program_id(0), 1, height, width, images, INTERLEAVED, ROWS, COLUMNS)
    at = where + offset(n, zero, y, x, where_n, where_c, where_y, where_x, INTERLEAVED)
    u, v = tl.load(at, mask=inside, other=0), tl.load(at + where_c, mask=inside, other=0)
    u, v = bound_positions(u, out_width, BORDER), bound_positions(v, out_height, BORDER)
    left, top, fx, fy = around_position(u, v, TAPS)
    x0, x1, x2, x3 = weights(fx, TAPS)
    y0, y1, y2, y3 = weights(fy, TAPS)
    values = grad + offset(n, zero, y, x, grad_n, grad_c, grad_y, grad_x, INTERLEAVED)
    row0, row1, row2, row3, in_y0, in_y1, in_y2, in_y3 = offsets(top, out_height, out_y, BORDER)
    col0, col1, col2, col3, in_x0, in_x1, in_x2, in_x3 = offsets(left, out_width, out_x, BORDER)
    for j in tl.static_range(TAPS):
        line = out + (n * out_n + pick(j, row0, row1, row2, row3))
        has_row = inside & pick(j, in_y0, in_y1, in_y2, in_y3)
        for i in tl.static_range(TAPS):
            has = has_row & pick(i, in_x0, in_x1, in_x2, in_x3)
            share = pick(j, y0, y1, y2, y3) * pick(i, x0, x1, x2, x3)
            to = line + pick(i, col0, col1, col2, col3)
            for c in range(channels):
                value = tl.load(values + c * grad_c, mask=has, other=0).to(tl.float32)
                tl.atomic_add(to + c * out_c, value * share, mask=has, sem="relaxed")


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
    target, values, source, where = output_batch(out), batch(grad), batch(image), batch(map)
    color, color_steps = _color(fill, image, padding_mode)
    constants, programs = grid_of(target[:, :1], 1024, 256)
    launch(
        _slope_kernel,
        programs,
        *(target, values, source, where, color),
        *color_steps,
        values.shape[0],
        *values.shape[1:],
        *source.shape[-2:],
        *target.stride(),
        *values.stride(),
        *source.stride(),
        *where.stride(),
        TAPS=_TAPS[interpolation],
        BORDER=padding_mode,
        FILLS=fill is not None and padding_mode == "constant",
        **constants,
    )
    return None


@triton.jit
def _slope_kernel(
    out, grad, image, where, color, color_n, color_c, images, channels, height, width, image_height, image_width,
    out_n, out_c, out_y, out_x, grad_n, grad_c, grad_y, grad_x,
    image_n, image_c, image_y, image_x, where_n, where_c, where_y, where_x,
    TAPS: tl.constexpr, BORDER: tl.constexpr, FILLS: tl.constexpr,
    INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, zero, y, x, inside = tile_of(tl.program_id(0), 1, height, width, images, INTERLEAVED, ROWS, COLUMNS)
    at = where + offset(n, zero, y, x, where_n, where_c, where_y, where_x, INTERLEAVED)
    u, v = tl.load(at, mask=inside, other=0), tl.load(at + where_c, mask=inside, other=0)
    u, v = bound_positions(u, image_width, BORDER), bound_positions(v, image_height, BORDER)
    left, top, fx, fy = around_position(u, v, TAPS)
    x0, x1, x2, x3 = weights(fx, TAPS)
    y0, y1, y2, y3 = weights(fy, TAPS)
    dx0, dx1, dx2, dx3 = slopes(fx, TAPS)
    dy0, dy1, dy2, dy3 = slopes(fy, TAPS)
    row0, row1, row2, row3, in_y0, in_y1, in_y2, in_y3 = offsets(top, image_height, image_y, BORDER)
    col0, col1, col2, col3, in_x0, in_x1, in_x2, in_x3 = offsets(left, image_width, image_x, BORDER)
    towards_x, towards_y = fx * 0, fx * 0
    values = grad + offset(n, zero, y, x, grad_n, grad_c, grad_y, grad_x, INTERLEAVED)
    for c in range(channels):
        pulled = tl.load(values + c * grad_c, mask=inside, other=0).to(tl.float32)
        around = tl.full((1, 1), 0, tl.float32)
        if FILLS:
            around = tl.load(color + n * color_n + c * color_c, mask=n < images, other=0).to(tl.float32)
        along_x, along_y = fx * 0, fx * 0
        for j in tl.static_range(TAPS):
            wy, sy = pick(j, y0, y1, y2, y3), pick(j, dy0, dy1, dy2, dy3)
            line = image + (n * image_n + c * image_c + pick(j, row0, row1, row2, row3))
            has_row = inside & pick(j, in_y0, in_y1, in_y2, in_y3)
            for i in tl.static_range(TAPS):
                has = has_row & pick(i, in_x0, in_x1, in_x2, in_x3)
                value = pixel(line + pick(i, col0, col1, col2, col3), has, around, BORDER)
                along_x += value * (pick(i, dx0, dx1, dx2, dx3) * wy)
                along_y += value * (pick(i, x0, x1, x2, x3) * sy)
        towards_x += pulled * along_x
        towards_y += pulled * along_y
    to = out + offset(n, zero, y, x, out_n, out_c, out_y, out_x, INTERLEAVED)
    tl.store(to, towards_x.to(out.dtype.element_ty), mask=inside)
    tl.store(to + out_c, towards_y.to(out.dtype.element_ty), mask=inside)
