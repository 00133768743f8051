"""Positions of a warp and the weights around them, in OpenCV 5's arithmetic.

The arithmetic is in single precision, with multiplications and additions fused where OpenCV fuses them. Positions are
clamped between -2**30 and 2**30, which fit into integers. A NaN becomes a position far to the left, because the
maximum of a NaN and a number is the number.
"""

# Tuples have lengths that depend on constants, which Triton's types support, but mypy's do not.
# mypy: disable-error-code="assignment,misc"

from __future__ import annotations

import triton.language as tl

from imgops.kernels.cuda._arithmetic import fold_positions, modulo, round_half_even
from imgops.kernels.cuda._launch import inline


@inline
def tile_of_pixels(program, groups, height, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Return the image, the group of channels, the first row and the first column of a tile; all are scalars."""
    across, down = (width - 1) // COLUMNS + 1, (height - 1) // ROWS + 1
    column, rest = program % across, program // across
    row, plane = rest % down, rest // down
    return (plane // groups).to(tl.int64), plane % groups, row * ROWS, column * COLUMNS


@inline
def are_far(u, v):
    """Return whether any position of a tile is beyond 2**30."""
    far = tl.maximum(tl.abs(u), tl.abs(v)) > 1073741824.0
    return tl.max(tl.max(far.to(tl.int32), 1), 0) > 0


@inline
def bound_positions(u, v, width, height, far, BORDER: tl.constexpr):
    """Return positions that fit into integers and show the same pixels.

    ``far`` says whether any position may be beyond 2**30, where a border that repeats the image still selects pixels
    that depend on the position.
    """
    if BORDER == "wrap" or BORDER == "symmetric" or BORDER == "reflect":
        if far:
            u, v = _fold_far(u, width, BORDER), _fold_far(v, height, BORDER)
    u = tl.minimum(tl.maximum(u, -1073741824.0), 1073741824.0)
    v = tl.minimum(tl.maximum(v, -1073741824.0), 1073741824.0)
    return u, v


@inline
def _fold_far(position, size, BORDER: tl.constexpr):
    # Infinite positions become 2**30, as in the decomposition.
    far = tl.where(
        tl.abs(position) < float("inf"), position, tl.where(position > 0, 1073741824.0, -1073741824.0)
    )
    held = tl.minimum(tl.maximum(far, -4e18), 4e18).to(tl.int64)
    near = modulo(held, period_of(size, BORDER)).to(position.dtype)
    return tl.where(tl.abs(position) > 1073741824.0, near, position)


@inline
def period_of(size, BORDER: tl.constexpr):
    """Return the number of pixels after which a border repeats."""
    period = size
    if BORDER == "symmetric":
        period = 2 * size
    if BORDER == "reflect":
        period = tl.maximum(2 * size - 2, 1)
    return period


@inline
def pixel_at(i, size, BORDER: tl.constexpr):
    """Return the pixel to read for a position, and whether it belongs to the image."""
    if BORDER == "constant":
        inside = (i >= 0) & (i < size)
        at = i
    else:
        at = fold_positions(i, size, BORDER)
        inside = at >= 0
    return at, inside


@inline
def around_position(u, v, TAPS: tl.constexpr):
    """Return the first pixel from which a position is interpolated, and the fractions of the position."""
    if TAPS == 1:
        left, top = round_half_even(u), round_half_even(v)
    else:
        left, top = tl.floor(u), tl.floor(v)
    fx, fy = (u - left).to(tl.float32), (v - top).to(tl.float32)
    before = 1 if TAPS == 4 else 0
    return left.to(tl.int32) - before, top.to(tl.int32) - before, fx, fy


@inline
def taps(first, size, step, TAPS: tl.constexpr, BORDER: tl.constexpr):
    """Return the memory offsets of the pixels from ``first`` on, and whether each belongs to the image.

    With a constant border, or no border, the offsets are relative to the first pixel.
    """
    at, has = (), ()
    if BORDER == "wrap" or BORDER == "symmetric" or BORDER == "reflect":
        # One division finds the first pixel within a period; the others follow it.
        period = period_of(size, BORDER)
        turn = 2 * size - 1 if BORDER == "symmetric" else period
        i = modulo(first, period)
        for k in tl.static_range(TAPS):
            if k > 0:
                i = tl.where(i + 1 == period, 0, i + 1)
            at += ((i if BORDER == "wrap" else tl.minimum(i, turn - i)) * step,)
            has += (True,)
    else:
        for k in tl.static_range(TAPS):
            if BORDER == "edge":
                at += (tl.minimum(tl.maximum(first + k, 0), size - 1) * step,)
            else:
                at += (k * step,)
            if BORDER == "constant":
                has += ((first + k).to(tl.uint32) < size.to(tl.uint32),)
            else:
                has += (True,)
    return at, has


@inline
def weights(f, TAPS: tl.constexpr):
    """Return the weights of the pixels around a position, as OpenCV 5's warps compute them in single precision."""
    if TAPS == 1:
        made = (tl.full(f.shape, 1.0, tl.float32),)
    elif TAPS == 2:
        made = (1 - f, f)
    else:
        g = 1.0 - f
        far, near = f * f, g * g
        w0, w3 = -0.75 * (near * f), -0.75 * (far * g)
        slope = tl.fma(tl.full(f.shape, 1.25, tl.float32), f, tl.full(f.shape, -2.25, tl.float32))
        w1 = tl.fma(slope, far, tl.full(f.shape, 1.0, tl.float32))
        made = (w0, w1, 1.0 - w0 - w1 - w3, w3)
    return made


@inline
def slopes(f, TAPS: tl.constexpr):
    """Return the derivatives of the weights with respect to the position."""
    if TAPS == 2:
        made = (tl.full(f.shape, -1.0, tl.float32), tl.full(f.shape, 1.0, tl.float32))
    else:
        g = 1.0 - f
        s0 = (-2.25 * (f + 1) + 7.5) * (f + 1) - 6.0
        s1 = (3.75 * f - 4.5) * f
        s2 = -(3.75 * g - 4.5) * g
        made = (s0, s1, s2, -s0 - s1 - s2)
    return made
