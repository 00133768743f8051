"""Color spaces of uint8 pixels in registers, held as integers, with the bits of ``cv2.cvtColor``.

Each function takes three channels and returns three. If OpenCV computes in single precision, the functions repeat its
fused operations; if it uses lookup tables, they use the tables of ``_color_tables.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import triton.language as tl

from imgops.decomposition import color_space as formula
from imgops.kernels.cuda import _color_tables
from imgops.kernels.cuda._arithmetic import round_half_even
from imgops.kernels.cuda._launch import inline


def _in_4096ths(rows: Iterable[Iterable[float]]) -> Any:
    return tl.constexpr(tuple(round(v * 4096) for row in rows for v in row))


_TO_XYZ, _FROM_XYZ = _in_4096ths(formula._TO_XYZ), _in_4096ths(formula._FROM_XYZ)
#: The same for XYZ in units of the white point.
_TO_WHITE = _in_4096ths(
    [v / white for v in row] for row, white in zip(formula._TO_XYZ, formula._WHITE, strict=True)
)
_FROM_WHITE = _in_4096ths(
    [v * white for v, white in zip(row, formula._WHITE, strict=True)] for row in formula._FROM_XYZ
)
_U_WHITE, _V_WHITE = tl.constexpr(_color_tables.U_WHITE), tl.constexpr(_color_tables.V_WHITE)


@inline
def _clamp(value):
    return tl.minimum(tl.maximum(value, 0), 255)


@inline
def _round(value):
    """Round a float to the nearest integer, half to even."""
    return round_half_even(value).to(tl.int32)


@inline
def _toward_zero(value, divisor: tl.constexpr):
    """Divide as C does, toward 0, while shifts round down; the divisor is positive."""
    return tl.where(value < 0, -(-value // divisor), value // divisor)


# -- linear spaces -----------------------------------------------------------------------------------


@inline
def to_gray(r, g, b):
    return (r * 9798 + g * 19235 + b * 3735 + (1 << 14)) >> 15


@inline
def _matrix(a, b, c, M: tl.constexpr):
    x = (a * M[0] + b * M[1] + c * M[2] + 2048) >> 12
    y = (a * M[3] + b * M[4] + c * M[5] + 2048) >> 12
    z = (a * M[6] + b * M[7] + c * M[8] + 2048) >> 12
    return x, y, z


@inline
def to_xyz(r, g, b):
    x, y, z = _matrix(r, g, b, _TO_XYZ)
    return _clamp(x), _clamp(y), _clamp(z)


@inline
def from_xyz(x, y, z):
    r, g, b = _matrix(x, y, z, _FROM_XYZ)
    return _clamp(r), _clamp(g), _clamp(b)


@inline
def to_chroma(r, g, b, first, second, SCALE: tl.constexpr, OTHER: tl.constexpr):
    """Return luma, and the differences of two channels from it, scaled by 14-bit factors and centered at 128."""
    luma = (r * 4899 + g * 9617 + b * 1868 + (1 << 13)) >> 14
    center: tl.constexpr = (128 << 14) + (1 << 13)
    x, y = ((first - luma) * SCALE + center) >> 14, ((second - luma) * OTHER + center) >> 14
    return luma, _clamp(x), _clamp(y)


@inline
def from_chroma(
    luma, blue, red, RED: tl.constexpr, BLUE_G: tl.constexpr, RED_G: tl.constexpr, BLUE: tl.constexpr
):
    blue, red = blue - 128, red - 128
    r = luma + ((red * RED + (1 << 13)) >> 14)
    g = luma + ((blue * BLUE_G + red * RED_G + (1 << 13)) >> 14)
    b = luma + ((blue * BLUE + (1 << 13)) >> 14)
    return _clamp(r), _clamp(g), _clamp(b)


# -- hue ---------------------------------------------------------------------------------------------


@inline
def to_hsv(r, g, b, DEGREES: tl.constexpr, SCALE: tl.constexpr, PART: tl.constexpr):
    """Convert to HSV with a circle of ``DEGREES``; ``SCALE / PART`` is a sixth of it, with 12 fraction bits."""
    high, low = tl.maximum(tl.maximum(r, g), b), tl.minimum(tl.minimum(r, g), b)
    apart = high - low
    # No quotient is halfway between two integers, so it may be rounded twice.
    share = _round(tl.div_rn(tl.where(high > 0, 1044480.0, 0.0), tl.maximum(high, 1).to(tl.float32)))
    turn = _round(tl.div_rn(tl.where(apart > 0, SCALE, 0.0), tl.maximum(apart, 1).to(tl.float32) * PART))
    hue = tl.where(high == r, g - b, tl.where(high == g, b - r + 2 * apart, r - g + 4 * apart))
    hue = (hue * turn + 2048) >> 12
    return _clamp(tl.where(hue < 0, hue + DEGREES, hue)), (apart * share + 2048) >> 12, high


@inline
def from_hsv(h, s, v, in_vector, DEGREES: tl.constexpr):
    """Convert from HSV; OpenCV's vector code does not round."""
    hue = h.to(tl.float32) * (6 / DEGREES)
    share, high = s.to(tl.float32) * 0.003921568859368563, v.to(tl.float32) * 0.003921568859368563
    whole = tl.floor(hue)
    part, one = hue - whole, tl.full(hue.shape, 1.0, tl.float32)
    sector = whole - 6 * tl.floor(whole * 0.1666666716337204)
    low = high * (1 - share)
    falling, rising = high * tl.fma(-share, part, one), high * tl.fma(-share, 1 - part, one)
    r = tl.where(
        (sector == 0) | (sector == 5),
        high,
        tl.where(sector == 1, falling, tl.where(sector == 4, rising, low)),
    )
    g = tl.where(
        (sector == 1) | (sector == 2),
        high,
        tl.where(sector == 3, falling, tl.where(sector == 0, rising, low)),
    )
    b = tl.where(
        (sector == 3) | (sector == 4),
        high,
        tl.where(sector == 5, falling, tl.where(sector == 2, rising, low)),
    )
    return _of_unit(r, in_vector), _of_unit(g, in_vector), _of_unit(b, in_vector)


@inline
def _of_unit(value, in_vector):
    scaled = value * 255
    return _clamp(tl.where(in_vector, scaled.to(tl.int32), _round(scaled)))


@inline
def to_hls(r, g, b, in_vector):
    """Convert to HLS; OpenCV's scalar code, for pixels at the end of a row, adds in another order."""
    r, g, b = r.to(tl.float32), g.to(tl.float32), b.to(tl.float32)
    r, g, b = r * 0.003921568859368563, g * 0.003921568859368563, b * 0.003921568859368563
    high, low = tl.maximum(tl.maximum(r, g), b), tl.minimum(tl.minimum(r, g), b)
    apart, total = high - low, high + low
    light, real = total * 0.5, apart > 0
    base = tl.where(light < 0.5, total, tl.where(in_vector, 2 - total, 2 - high - low))
    share = tl.div_rn(apart, tl.where(real, base, 1.0))
    turn = tl.where(high == r, g - b, tl.where(high == g, b - r, r - g))
    first = tl.where((g < b) & in_vector, 360.0, 0.0)
    start = tl.where(high == r, first, tl.where(high == g, 120.0, 240.0))
    sixty = tl.where(real, 60.0, 0.0)
    hue = tl.fma(turn, tl.div_rn(sixty, tl.where(real, apart, 1.0)), tl.where(real, start, 0.0))
    hue = tl.where(hue < 0, hue + 360, hue) * 0.5
    return _clamp(_round(hue)), _clamp(_round(light * 255)), _clamp(_round(share * 255))


@inline
def from_hls(hue, light, share):
    turn = tl.div_rn(hue.to(tl.float32) * 2, 30.0)
    light, share = tl.div_rn(light.to(tl.float32), 255.0), tl.div_rn(share.to(tl.float32), 255.0)
    width = share * tl.minimum(light, 1 - light)
    r, g = _hls_channel(turn, light, width), _hls_channel(turn + 8, light, width)
    return r, g, _hls_channel(turn + 4, light, width)


@inline
def _hls_channel(turn, light, width):
    at = turn - 12 * tl.floor(tl.div_rn(turn, 12.0))
    away = tl.minimum(tl.maximum(tl.minimum(at - 3, 9 - at), -1.0), 1.0)
    return _clamp(_round((light - width * away) * 255))


# -- LAB and LUV -------------------------------------------------------------------------------------


@inline
def to_lab(r, g, b, tables):
    r, g, b = tl.load(tables + r), tl.load(tables + g), tl.load(tables + b)
    x, y, z = _matrix(r, g, b, _TO_WHITE)
    x, y, z = tl.load(tables + 256 + x), tl.load(tables + 256 + y), tl.load(tables + 256 + z)
    light = (296 * y - 1336934 + (1 << 14)) >> 15
    center: tl.constexpr = (128 << 15) + (1 << 14)
    return _clamp(light), _clamp((500 * (x - y) + center) >> 15), _clamp((200 * (y - z) + center) >> 15)


@inline
def from_lab(light, a, b, tables):
    both = tl.load(tables + light)
    y, root = both & 0xFFFF, both >> 16
    x = _cube(root + ((5 * a * 53687 + 128) >> 13) - 4194)
    z = _cube(root - ((b * 41943 + 16) >> 9) + 10484)
    return _from_light(x, y, z, tables, _FROM_WHITE)


@inline
def _cube(root):
    """Return the cube of a root, or near 0, where the root may be negative, a linear function, with 14 bits."""
    square = root * root // 16384
    return tl.where(root <= 3390, _toward_zero(root * 108, 841) - 290, square * root // 16384)


@inline
def _from_light(x, y, z, tables, M: tl.constexpr):
    """Convert XYZ with 14 bits to levels."""
    r = (x * M[0] + y * M[1] + z * M[2] + (1 << 13)) >> 14
    g = (x * M[3] + y * M[4] + z * M[5] + (1 << 13)) >> 14
    b = (x * M[6] + y * M[7] + z * M[8] + (1 << 13)) >> 14
    return _level(r, tables), _level(g, tables), _level(b, tables)


@inline
def _level(light, tables):
    return tl.load(tables + 256 + tl.minimum(tl.maximum(light, 0), 4095))


@inline
def to_luv(r, g, b, tables):
    """Interpolate in a table of 33 shades per channel; a level is 1/16 or 2/16 of the way between two shades."""
    light, u, v = r * 0, r * 0, r * 0
    for i in tl.static_range(8):
        x, p = _shade(r, i // 4)
        y, q = _shade(g, i // 2 % 2)
        z, s = _shade(b, i % 2)
        entry, weight = tl.load(tables + (x * 1089 + y * 33 + z)), p * q * s
        light += (entry & 0xFFFF).to(tl.int32) * weight
        u += ((entry >> 16) & 0xFFFF).to(tl.int32) * weight
        v += (entry >> 32).to(tl.int32) * weight
    return _clamp((light + 2048) >> 18), _clamp((u + 2048) >> 18), _clamp((v + 2048) >> 18)


@inline
def _shade(level, NEXT: tl.constexpr):
    """Return the shade below a level or the next one, and its weight in 16ths."""
    part = (level & 7) * 2
    return (level >> 3) + NEXT, part if NEXT else 16 - part


@inline
def from_luv(light, u, v, tables):
    whole = light.to(tl.float32)
    scaled = tl.div_rn(whole * 100, 255.0)
    p = tl.div_rn(u.to(tl.float32) * 354, 255.0) - 134
    p = _round(9 * (p + scaled * _U_WHITE) * 16).to(tl.int64)
    below = tl.div_rn(v.to(tl.float32) * 262, 255.0) - 140 + scaled * _V_WHITE
    q = tl.div_rn(tl.where(below == 0, 1.0, 0.25), tl.where(below == 0, 1.0, below))
    q = _round(tl.minimum(tl.maximum(q, -0.25), 0.25) * 16777216).to(tl.int64)
    y, product = (tl.load(tables + light) & 0xFFFF).to(tl.int64), p * q
    x = _toward_zero(y * _toward_zero(product, 16384), 16384)
    z = _toward_zero(q * light * (12 * 13 * 100 * 16) - product * 85, 16384) - 5 * 255 * 16384
    z = _toward_zero(y * z, 16384)
    z = _toward_zero(z, 256) + _toward_zero(z, 65536)
    x, z = tl.minimum(tl.maximum(x, 0), 32768).to(tl.int32), tl.minimum(tl.maximum(z, 0), 32768).to(tl.int32)
    return _from_light(x, y.to(tl.int32), z, tables, _FROM_XYZ)
