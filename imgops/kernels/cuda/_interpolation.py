"""Positions of a warp and the weights around them, in OpenCV 5's arithmetic.

The arithmetic is in single precision, with multiplications and additions fused where OpenCV fuses them.
"""

from __future__ import annotations

import triton.language as tl

from imgops.kernels.cuda._arithmetic import fold_positions, modulo, round_half_even
from imgops.kernels.cuda._launch import inline


@inline
def along(a, b, c, x, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr, FUSED: tl.constexpr):
    """Multiply a row of a matrix, rounded to single precision first, by ``(x, y, 1)``."""
    a, b, c = a.to(tl.float32), b.to(tl.float32), c.to(tl.float32)
    start = tl.broadcast_to(b * y + c, (ROWS, COLUMNS))
    if FUSED:
        value = tl.fma(tl.broadcast_to(a, (ROWS, COLUMNS)), tl.broadcast_to(x, (ROWS, COLUMNS)), start)
    else:
        value = a * x + start
    return value


@inline
def affine_positions(matrix, real, x, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr, FUSED: tl.constexpr):
    """Return the source positions by the inverse of a ``(2, 3)`` matrix; a singular one maps all to 0."""
    a, b = tl.load(matrix, mask=real, other=0), tl.load(matrix + 1, mask=real, other=0)
    c, d = tl.load(matrix + 3, mask=real, other=0), tl.load(matrix + 4, mask=real, other=0)
    move_x, move_y = tl.load(matrix + 2, mask=real, other=0), tl.load(matrix + 5, mask=real, other=0)
    determinant = a * d - b * c
    scale = tl.where(determinant == 0, 0.0, 1.0 / tl.where(determinant == 0, 1.0, determinant))
    a, b, c, d = d * scale, -b * scale, -c * scale, a * scale
    u = along(a, b, -(a * move_x + b * move_y), x, y, ROWS, COLUMNS, FUSED)
    v = along(c, d, -(c * move_x + d * move_y), x, y, ROWS, COLUMNS, FUSED)
    return u, v


@inline
def perspective_positions(matrix, real, x, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr, FUSED: tl.constexpr):
    """Return the source positions by the inverse of a ``(3, 3)`` matrix: adjugate over determinant."""
    a, b, c = (
        tl.load(matrix, mask=real, other=0),
        tl.load(matrix + 1, mask=real, other=0),
        tl.load(matrix + 2, mask=real, other=0),
    )
    d, e, f = (
        tl.load(matrix + 3, mask=real, other=0),
        tl.load(matrix + 4, mask=real, other=0),
        tl.load(matrix + 5, mask=real, other=0),
    )
    g, h, i = (
        tl.load(matrix + 6, mask=real, other=0),
        tl.load(matrix + 7, mask=real, other=0),
        tl.load(matrix + 8, mask=real, other=0),
    )
    determinant = a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g)
    scale = tl.where(determinant == 0, 0.0, 1.0 / tl.where(determinant == 0, 1.0, determinant))
    u = along(
        (e * i - f * h) * scale, (h * c - i * b) * scale, (b * f - c * e) * scale, x, y, ROWS, COLUMNS, FUSED
    )
    v = along(
        (f * g - d * i) * scale, (i * a - g * c) * scale, (c * d - a * f) * scale, x, y, ROWS, COLUMNS, FUSED
    )
    w = along(
        (d * h - e * g) * scale, (g * b - h * a) * scale, (a * e - b * d) * scale, x, y, ROWS, COLUMNS, FUSED
    )
    divisor = tl.where(w == 0, 1.0, w)
    u = tl.where(w == 0, -1073741824.0, tl.div_rn(u, divisor))
    v = tl.where(w == 0, -1073741824.0, tl.div_rn(v, divisor))
    return u, v


@inline
def bound_positions(position, size, BORDER: tl.constexpr):
    """Return positions that fit into integers and show the same pixels; a NaN lies far to the left."""
    position = tl.where(position == position, position, -1073741824.0)
    if BORDER == "wrap" or BORDER == "symmetric" or BORDER == "reflect":
        far = tl.abs(position) > 1073741824.0
        if tl.max(tl.max(far.to(tl.int32), 1), 0) > 0:
            held = tl.minimum(tl.maximum(position, -4e18), 4e18).to(tl.int64)
            period = size
            if BORDER == "symmetric":
                period = 2 * size
            if BORDER == "reflect":
                period = tl.maximum(2 * size - 2, 1)
            position = tl.where(far, modulo(held, period).to(position.dtype), position)
    return tl.minimum(tl.maximum(position, -1073741824.0), 1073741824.0)


@inline
def pixel_at(i, size, BORDER: tl.constexpr):
    """Return the pixel that is read for a position, and whether it belongs to the image."""
    if BORDER == "constant":
        inside = (i >= 0) & (i < size)
        at = i
    else:
        at = fold_positions(i, size, BORDER)
        inside = at >= 0
    return at, inside


@inline
def cubic(t):
    """Return the bicubic weights of OpenCV 5's warps, in single precision."""
    g = 1.0 - t
    far, near = t * t, g * g
    w0, w3 = -0.75 * (near * t), -0.75 * (far * g)
    w1 = tl.fma(tl.fma(t * 0 + 1.25, t, t * 0 - 2.25), far, t * 0 + 1.0)
    return w0, w1, 1.0 - w0 - w1 - w3, w3


@inline
def cubic_slopes(t):
    """Return the derivatives of the bicubic weights with respect to the position."""
    g = 1.0 - t
    s0 = (-2.25 * (t + 1) + 7.5) * (t + 1) - 6.0
    s1 = (3.75 * t - 4.5) * t
    s2 = -(3.75 * g - 4.5) * g
    return s0, s1, s2, -s0 - s1 - s2


@inline
def offsets(first, size, step, BORDER: tl.constexpr):
    """Return the memory offsets of four pixels from ``first`` on, and whether each belongs to the image."""
    a, has_a = pixel_at(first, size, BORDER)
    b, has_b = pixel_at(first + 1, size, BORDER)
    c, has_c = pixel_at(first + 2, size, BORDER)
    d, has_d = pixel_at(first + 3, size, BORDER)
    a, b, c, d = a.to(tl.int64) * step, b.to(tl.int64) * step, c.to(tl.int64) * step, d.to(tl.int64) * step
    return a, b, c, d, has_a, has_b, has_c, has_d


@inline
def pixel(at, has, around, BORDER: tl.constexpr):
    """Load a pixel in single precision; with a constant border, it is ``around`` outside of the image."""
    value = tl.load(at, mask=has, other=0).to(tl.float32)
    if BORDER == "constant":
        value = tl.where(has, value, around)
    return value


@inline
def weights(f, TAPS: tl.constexpr):
    """Return four weights; those that a filter does not have are 0."""
    if TAPS == 1:
        w0, w1, w2, w3 = f * 0 + 1, f * 0, f * 0, f * 0
    elif TAPS == 2:
        w0, w1, w2, w3 = 1 - f, f, f * 0, f * 0
    else:
        w0, w1, w2, w3 = cubic(f)
    return w0, w1, w2, w3


@inline
def slopes(f, TAPS: tl.constexpr):
    if TAPS == 2:
        s0, s1, s2, s3 = f * 0 - 1, f * 0 + 1, f * 0, f * 0
    else:
        s0, s1, s2, s3 = cubic_slopes(f)
    return s0, s1, s2, s3


@inline
def pick(i: tl.constexpr, w0, w1, w2, w3):
    return w0 if i == 0 else (w1 if i == 1 else (w2 if i == 2 else w3))


@inline
def around_position(u, v, TAPS: tl.constexpr):
    """Return the first pixel that a position is interpolated from, and the fractions of the position."""
    if TAPS == 1:
        left, top = round_half_even(u), round_half_even(v)
    else:
        left, top = tl.floor(u), tl.floor(v)
    fx, fy = (u - left).to(tl.float32), (v - top).to(tl.float32)
    before = 1 if TAPS == 4 else 0
    return left.to(tl.int32) - before, top.to(tl.int32) - before, fx, fy
