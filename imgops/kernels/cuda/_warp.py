"""The kernel of all warps: a position is computed once for all channels of a pixel."""

from __future__ import annotations

import triton
import triton.language as tl

from imgops.kernels.cuda._arithmetic import convert, round_half_even
from imgops.kernels.cuda._interpolation import (
    affine_positions,
    around_position,
    bound_positions,
    offsets,
    perspective_positions,
    pick,
    pixel,
    pixel_at,
    weights,
)
from imgops.kernels.cuda._launch import inline
from imgops.kernels.cuda._tiles import offset, place_of, tile_of


@inline
def _positions(
    where, where_n, where_c, where_y, where_x, n, y, x, real, inside,
    KIND: tl.constexpr, FUSED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    if KIND == "map":
        at = where + offset(n, 0 * y, y, x, where_n, where_c, where_y, where_x, False)
        u, v = tl.load(at, mask=inside, other=0), tl.load(at + where_c, mask=inside, other=0)
    elif KIND == "affine":
        u, v = affine_positions(
            where + n * where_n, real, x.to(tl.float32), y.to(tl.float32), ROWS, COLUMNS, FUSED
        )
    else:
        u, v = perspective_positions(
            where + n * where_n, real, x.to(tl.float32), y.to(tl.float32), ROWS, COLUMNS, FUSED
        )
    return u, v


@triton.jit
def warp_kernel(
    out, image, where, color, where_n, where_c, where_y, where_x, color_n, color_c,
    images, channels, height, width, image_height, image_width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x, sizes, starts,
    PACKED: tl.constexpr, KIND: tl.constexpr, TAPS: tl.constexpr, BORDER: tl.constexpr, FILLS: tl.constexpr,
    INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, zero, y, x, inside = tile_of(tl.program_id(0), 1, height, width, images, INTERLEAVED, ROWS, COLUMNS)
    place = n
    if PACKED != "":
        place, image_c, image_y, image_x, image_height, image_width = place_of(
            sizes, starts, n, n < images, channels, PACKED
        )
        image_n = 1
    real = n < images
    # OpenCV's own code for "nearest" and "bilinear" fuses; its bicubic filter has positions from older code.
    u, v = _positions(
        where, where_n, where_c, where_y, where_x, n, y, x, real, inside, KIND, TAPS < 4, ROWS, COLUMNS
    )
    u, v = bound_positions(u, image_width, BORDER), bound_positions(v, image_height, BORDER)
    to = out + offset(n, zero, y, x, out_n, out_c, out_y, out_x, INTERLEAVED)
    source = image + place * image_n
    if TAPS == 1:
        at_x, has_x = pixel_at(round_half_even(u).to(tl.int32), image_width, BORDER)
        at_y, has_y = pixel_at(round_half_even(v).to(tl.int32), image_height, BORDER)
        has = inside & has_x & has_y
        at = source + at_y.to(tl.int64) * image_y + at_x.to(tl.int64) * image_x
        for c in range(channels):
            value = tl.load(at + c * image_c, mask=has, other=0)
            if FILLS:
                value = tl.where(has, value, tl.load(color + n * color_n + c * color_c, mask=real, other=0))
            tl.store(to + c * out_c, value, mask=inside)
    else:
        left, top, fx, fy = around_position(u, v, TAPS)
        y0, y1, y2, y3, in_y0, in_y1, in_y2, in_y3 = offsets(top, image_height, image_y, BORDER)
        x0, x1, x2, x3, in_x0, in_x1, in_x2, in_x3 = offsets(left, image_width, image_x, BORDER)
        in_x0, in_x1, in_x2, in_x3 = inside & in_x0, inside & in_x1, inside & in_x2, inside & in_x3
        wx0, wx1, wx2, wx3 = weights(fx, TAPS)
        wy0, wy1, wy2, wy3 = weights(fy, TAPS)
        for c in range(channels):
            around = tl.full((1, 1), 0, tl.float32)
            if FILLS:
                around = tl.load(color + n * color_n + c * color_c, mask=real, other=0).to(tl.float32)
            above, below = source + (c * image_c + y0), source + (c * image_c + y1)
            if TAPS == 2:
                p00, p01 = (
                    pixel(above + x0, in_y0 & in_x0, around, BORDER),
                    pixel(above + x1, in_y0 & in_x1, around, BORDER),
                )
                p10, p11 = (
                    pixel(below + x0, in_y1 & in_x0, around, BORDER),
                    pixel(below + x1, in_y1 & in_x1, around, BORDER),
                )
                upper, lower = tl.fma(fx, p01 - p00, p00), tl.fma(fx, p11 - p10, p10)
                value = tl.fma(fy, lower - upper, upper)
            else:
                value = fx * 0
                for j in tl.static_range(4):
                    line, has = (
                        source + (c * image_c + pick(j, y0, y1, y2, y3)),
                        pick(j, in_y0, in_y1, in_y2, in_y3),
                    )
                    row = pixel(line + x0, has & in_x0, around, BORDER) * wx0
                    row = tl.fma(pixel(line + x1, has & in_x1, around, BORDER), wx1, row)
                    row = tl.fma(pixel(line + x2, has & in_x2, around, BORDER), wx2, row)
                    row = tl.fma(pixel(line + x3, has & in_x3, around, BORDER), wx3, row)
                    value = tl.fma(row, pick(j, wy0, wy1, wy2, wy3), value)
            if out.dtype.element_ty == tl.uint8:
                found = tl.minimum(tl.maximum(round_half_even(value), 0.0), 255.0).to(tl.uint8)
            else:
                found = convert(value, out.dtype.element_ty)
            tl.store(to + c * out_c, found, mask=inside)
