"""Arithmetic for kernels: borders, rounding and conversions, the same on the device and the interpreter."""

from __future__ import annotations

import triton.language as tl

from imgops.kernels.cuda import _launch
from imgops.kernels.cuda._launch import inline


@inline
def fold_positions(i, size, MODE: tl.constexpr):
    """Return the pixel that a border mode selects for each of the positions ``i``."""
    if MODE == "edge":
        at = tl.minimum(tl.maximum(i, 0), size - 1)
    elif MODE == "wrap":
        at = modulo(i, size)
    elif MODE == "symmetric":
        at = modulo(i, 2 * size)
        at = tl.minimum(at, 2 * size - 1 - at)
    else:
        period = tl.maximum(2 * size - 2, 1)
        at = modulo(i, period)
        at = tl.minimum(at, period - at)
    return at


@inline
def modulo(i, size):
    """Return the nonnegative remainder; Triton's division rounds toward 0."""
    rest = i % size
    return tl.where(rest < 0, rest + size, rest)


@inline
def round_half_even(x):
    """Round half to even, with operations that are the same on the device and in the interpreter."""
    low = tl.floor(x)
    above = x - low
    odd = low * 0.5 != tl.floor(low * 0.5)
    return tl.where((above > 0.5) | ((above == 0.5) & odd), low + 1, low)


@inline
def level(x):
    """Truncate a float to one of 256 levels; NaN becomes 0."""
    held = tl.where(x > 0, tl.minimum(x, 255.0), 0.0)
    return held.to(tl.int32).to(tl.uint8)


@inline
def nearest_level(x):
    """Round a float to one of 256 levels, half to even; NaN becomes 0."""
    # At this magnitude the spacing of floats is 1, and the last bits of a float are the integer.
    held = tl.where(x > 0, tl.minimum(x, 255.0), 0.0) + 12582912.0
    return held.to(tl.int32, bitcast=True).to(tl.uint8)


@inline
def unit(x):
    """Clamp to [0, 1]; NaN stays."""
    return tl.where(x < 0, 0.0, tl.where(x > 1, 1.0, x))


def _convert(value, to: tl.constexpr):
    """Convert a float to another floating-point dtype, rounded once, half to even."""
    return value.to(to)


def _convert_by_bits(value, to):
    """Convert a float in the interpreter, which truncates to bfloat16 instead of rounding."""
    if to != tl.bfloat16:
        return value.to(to)
    bits = value.to(tl.int32, bitcast=True)
    bits = tl.where(value == value, bits + 0x7FFF + ((bits >> 16) & 1), bits | 0x400000)
    return (bits >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True)


convert = _convert_by_bits if _launch.INTERPRETED else inline(_convert)


def _fused(x, y, z):
    """Return ``x * y + z``, rounded once; ``y`` may be a scalar."""
    return tl.fma(x, tl.broadcast_to(y, x.shape), z)


def _fused_in_double(x, y, z):
    """Return the same in the interpreter, whose own ``fma`` rounds twice; a product is exact in double precision."""
    return (x.to(tl.float64) * y.to(tl.float64) + z.to(tl.float64)).to(tl.float32)


fused = _fused_in_double if _launch.INTERPRETED else inline(_fused)
