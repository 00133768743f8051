"""The kernel of all warps: a position is found once for all channels of a pixel."""

from __future__ import annotations

import triton
import triton.language as tl

from imgops.kernels.cuda._common import converted, offset, rounded, tile_of
from imgops.kernels.cuda._launch import inlined
from imgops.kernels.cuda._sampling import (
    affine_positions,
    bounded,
    cubic,
    perspective_positions,
    pixel_at,
    shown,
)


@inlined
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
def sample_kernel(
    out, image, where, color, where_n, where_c, where_y, where_x, color_n, color_c,
    images, channels, height, width, image_height, image_width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x,
    KIND: tl.constexpr, TAPS: tl.constexpr, BORDER: tl.constexpr, FILLS: tl.constexpr,
    INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, zero, y, x, inside = tile_of(tl.program_id(0), 1, height, width, images, INTERLEAVED, ROWS, COLUMNS)
    real = n < images
    # OpenCV fuses in its own code for "nearest" and "bilinear"; its bicubic filter has the older one's positions.
    u, v = _positions(
        where, where_n, where_c, where_y, where_x, n, y, x, real, inside, KIND, TAPS < 4, ROWS, COLUMNS
    )
    u, v = bounded(u, image_width, BORDER), bounded(v, image_height, BORDER)
    to = out + offset(n, zero, y, x, out_n, out_c, out_y, out_x, INTERLEAVED)
    source = image + n * image_n
    if TAPS == 1:
        at_x, has_x = shown(rounded(u).to(tl.int32), image_width, BORDER)
        at_y, has_y = shown(rounded(v).to(tl.int32), image_height, BORDER)
        has = inside & has_x & has_y
        at = source + at_y.to(tl.int64) * image_y + at_x.to(tl.int64) * image_x
        for c in range(channels):
            value = tl.load(at + c * image_c, mask=has, other=0)
            if FILLS:
                value = tl.where(has, value, tl.load(color + n * color_n + c * color_c, mask=real, other=0))
            tl.store(to + c * out_c, value, mask=inside)
    else:
        left, top = tl.floor(u), tl.floor(v)
        fx, fy = (u - left).to(tl.float32), (v - top).to(tl.float32)
        left, top = left.to(tl.int32) - (TAPS // 2 - 1), top.to(tl.int32) - (TAPS // 2 - 1)
        for c in range(channels):
            around = tl.full((1, 1), 0, tl.float32)
            if FILLS:
                around = tl.load(color + n * color_n + c * color_c, mask=real, other=0).to(tl.float32)
            plane = source + c * image_c
            if TAPS == 2:
                p00 = pixel_at(
                    plane, top, left, image_height, image_width, image_y, image_x, inside, around, BORDER
                )
                p01 = pixel_at(
                    plane, top, left + 1, image_height, image_width, image_y, image_x, inside, around, BORDER
                )
                p10 = pixel_at(
                    plane, top + 1, left, image_height, image_width, image_y, image_x, inside, around, BORDER
                )
                p11 = pixel_at(
                    plane,
                    top + 1,
                    left + 1,
                    image_height,
                    image_width,
                    image_y,
                    image_x,
                    inside,
                    around,
                    BORDER,
                )
                above, below = tl.fma(fx, p01 - p00, p00), tl.fma(fx, p11 - p10, p10)
                value = tl.fma(fy, below - above, above)
            else:
                x0, x1, x2, x3 = cubic(fx)
                y0, y1, y2, y3 = cubic(fy)
                value = fx * 0
                for j in tl.static_range(4):
                    p0 = pixel_at(
                        plane,
                        top + j,
                        left,
                        image_height,
                        image_width,
                        image_y,
                        image_x,
                        inside,
                        around,
                        BORDER,
                    )
                    p1 = pixel_at(
                        plane,
                        top + j,
                        left + 1,
                        image_height,
                        image_width,
                        image_y,
                        image_x,
                        inside,
                        around,
                        BORDER,
                    )
                    p2 = pixel_at(
                        plane,
                        top + j,
                        left + 2,
                        image_height,
                        image_width,
                        image_y,
                        image_x,
                        inside,
                        around,
                        BORDER,
                    )
                    p3 = pixel_at(
                        plane,
                        top + j,
                        left + 3,
                        image_height,
                        image_width,
                        image_y,
                        image_x,
                        inside,
                        around,
                        BORDER,
                    )
                    row = tl.fma(p3, x3, tl.fma(p2, x2, tl.fma(p1, x1, p0 * x0)))
                    share = y0 if j == 0 else (y1 if j == 1 else (y2 if j == 2 else y3))
                    value = tl.fma(row, share, value)
            if out.dtype.element_ty == tl.uint8:
                found = tl.minimum(tl.maximum(rounded(value), 0.0), 255.0).to(tl.uint8)
            else:
                found = converted(value, out.dtype.element_ty)
            tl.store(to + c * out_c, found, mask=inside)
