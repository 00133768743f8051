"""Color spaces of floating-point pixels in registers: ``decomposition/color_space.py``, operation by operation.

Each function takes three channels and returns three.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl

from imgops.decomposition import color_space as formula
from imgops.kernels.cuda._arithmetic import unit
from imgops.kernels.cuda._launch import inline


def _numbers(rows: tuple[tuple[float, ...], ...]) -> Any:
    return tl.constexpr(tuple(v for row in rows for v in row))


_TO_XYZ, _FROM_XYZ = _numbers(formula._TO_XYZ), _numbers(formula._FROM_XYZ)
_X_WHITE, _Z_WHITE = tl.constexpr(formula._WHITE[0]), tl.constexpr(formula._WHITE[2])
_U_WHITE, _V_WHITE = tl.constexpr(formula._U_WHITE), tl.constexpr(formula._V_WHITE)


@inline
def _at_least(x, LEAST: tl.constexpr):
    """Clamp from below; NaN stays."""
    return tl.where(x < LEAST, LEAST, x)


@inline
def _power(x, EXPONENT: tl.constexpr):
    """Compute a power of a positive number."""
    return tl.exp2(tl.log2(x) * EXPONENT)


# -- linear spaces -----------------------------------------------------------------------------------


@inline
def to_gray(r, g, b):
    return r * 0.299 + g * 0.587 + b * 0.114


@inline
def _matrix(a, b, c, M: tl.constexpr):
    return a * M[0] + b * M[1] + c * M[2], a * M[3] + b * M[4] + c * M[5], a * M[6] + b * M[7] + c * M[8]


@inline
def to_xyz(r, g, b):
    return _matrix(r, g, b, _TO_XYZ)


@inline
def from_xyz(x, y, z):
    return _matrix(x, y, z, _FROM_XYZ)


@inline
def to_chroma(r, g, b, first, second, SCALE: tl.constexpr, OTHER: tl.constexpr):
    """Return luma, and the scaled differences of two channels from it, centered at 0.5."""
    luma = to_gray(r, g, b)
    return luma, (first - luma) * SCALE + 0.5, (second - luma) * OTHER + 0.5


@inline
def from_chroma(
    luma, blue, red, RED: tl.constexpr, BLUE_G: tl.constexpr, RED_G: tl.constexpr, BLUE: tl.constexpr
):
    blue, red = blue - 0.5, red - 0.5
    return luma + red * RED, luma + blue * BLUE_G + red * RED_G, luma + blue * BLUE


# -- hue ---------------------------------------------------------------------------------------------


@inline
def _hue(r, g, b, high, apart):
    real = apart > 0
    safe = tl.where(real, apart, 1.0)
    turn = tl.where(high == r, g - b, tl.where(high == g, b - r, r - g))
    start = tl.where(high == r, 0.0, tl.where(high == g, 2.0, 4.0))
    hue = tl.where(real, (tl.div_rn(turn, safe) + start) * 60, 0.0)
    return tl.where(hue < 0, hue + 360, hue)


@inline
def to_hsv(r, g, b):
    high, low = tl.maximum(tl.maximum(r, g), b), tl.minimum(tl.minimum(r, g), b)
    apart, bright = high - low, high > 0
    share = tl.where(bright, tl.div_rn(apart, tl.where(bright, high, 1.0)), 0.0)
    return _hue(r, g, b, high, apart), share, high


@inline
def _remainder(x, PERIOD: tl.constexpr):
    return x - PERIOD * tl.floor(tl.div_rn(x, PERIOD))


@inline
def from_hsv(h, s, v):
    turn = tl.div_rn(h, 60.0)
    return _hsv_channel(turn + 5, s, v), _hsv_channel(turn + 3, s, v), _hsv_channel(turn + 1, s, v)


@inline
def _hsv_channel(turn, s, v):
    at = _remainder(turn, 6.0)
    return v - v * s * unit(tl.minimum(at, 4 - at))


@inline
def to_hls(r, g, b):
    high, low = tl.maximum(tl.maximum(r, g), b), tl.minimum(tl.minimum(r, g), b)
    apart, total = high - low, high + low
    base = tl.where(total >= 1, 2 - total, total)
    real = apart > 1.1920928955078125e-07
    share = tl.where(real, tl.div_rn(apart, tl.where(base > 0, base, 1.0)), 0.0)
    return _hue(r, g, b, high, tl.where(real, apart, 0.0)), total * 0.5, share


@inline
def from_hls(hue, light, share):
    turn, width = tl.div_rn(hue, 30.0), share * tl.minimum(light, 1 - light)
    r, g = _hls_channel(turn, light, width), _hls_channel(turn + 8, light, width)
    return r, g, _hls_channel(turn + 4, light, width)


@inline
def _hls_channel(turn, light, width):
    at = _remainder(turn, 12.0)
    return light - width * tl.minimum(tl.maximum(tl.minimum(at - 3, 9 - at), -1.0), 1.0)


# -- LAB and LUV -------------------------------------------------------------------------------------


@inline
def _linear(value):
    """Remove sRGB's gamma."""
    x = unit(value)
    power = _power(tl.div_rn(_at_least(x, 0.04) + 0.055, 1.055), 2.4)
    return tl.where(x <= 0.04045, tl.div_rn(x, 12.92), power)


@inline
def _gamma(value):
    x = unit(value)
    power = 1.055 * _power(_at_least(x, 0.003), 0.4166666666666667) - 0.055
    return tl.where(x <= 0.0031308, x * 12.92, power)


@inline
def _cube_root(value):
    """Return the cube root of a positive number, with one step of Newton's method after the approximation."""
    x = _power(value, 0.3333333333333333)
    return x - tl.div_rn(x - tl.div_rn(value, x * x), 3.0)


@inline
def _root(value):
    """Return the cube root, or near 0 a linear function instead."""
    return tl.where(
        value > 0.008856, _cube_root(_at_least(value, 0.008)), 7.787 * value + 0.13793103448275862
    )


@inline
def _lightness(y):
    return tl.where(y > 0.008856, 116 * _cube_root(_at_least(y, 0.008)) - 16, 903.3 * y)


@inline
def to_lab(r, g, b):
    x, y, z = _matrix(_linear(r), _linear(g), _linear(b), _TO_XYZ)
    p, q, s = _root(tl.div_rn(x, _X_WHITE)), _root(y), _root(tl.div_rn(z, _Z_WHITE))
    return _lightness(y), 500 * (p - q), 200 * (q - s)


@inline
def from_lab(light, a, b):
    bright = tl.div_rn(light + 16, 116.0)
    y = tl.where(light <= 8, tl.div_rn(light, 903.3), bright * bright * bright)
    root = tl.where(light <= 8, 7.787 * y + 0.13793103448275862, bright)
    x, z = _cube(root + tl.div_rn(a, 500.0)) * _X_WHITE, _cube(root - tl.div_rn(b, 200.0)) * _Z_WHITE
    return _from_light(x, y, z)


@inline
def _cube(root):
    line = tl.div_rn(root - 0.13793103448275862, 7.787)
    return tl.where(root <= 0.20689270648275862, line, root * root * root)


@inline
def _from_light(x, y, z):
    r, g, b = _matrix(x, y, z, _FROM_XYZ)
    return _gamma(r), _gamma(g), _gamma(b)


@inline
def to_luv(r, g, b):
    x, y, z = _matrix(_linear(r), _linear(g), _linear(b), _TO_XYZ)
    light, total = _lightness(y), _at_least(x + 15 * y + 3 * z, 1.1920928955078125e-07)
    u, v = tl.div_rn(4 * x, total) - _U_WHITE, tl.div_rn(9 * y, total) - _V_WHITE
    return light, 13 * light * u, 13 * light * v


@inline
def from_luv(light, u, v):
    bright = tl.div_rn(light + 16, 116.0)
    y = tl.where(light > 8, bright * bright * bright, tl.div_rn(light, 903.3))
    up, below = 3 * (u + 13 * light * _U_WHITE), v + 13 * light * _V_WHITE
    vp = tl.div_rn(tl.where(below == 0, 0.25, 0.25), tl.where(below == 0, 1.0, below))
    vp = tl.minimum(tl.maximum(vp, -0.25), 0.25)
    return _from_light(3 * y * up * vp, y, y * ((156 * light - up) * vp - 5))
