"""The arithmetic of libjpeg-turbo, bit for bit: its quantization, its two transforms and its colors.

All arithmetic uses 32-bit integers. One thread keeps a block of 8 x 8 samples in its registers, as a tuple of columns
or rows. The sums of a transform are those of libjpeg's "islow" in another order, which does not change integer
results.
"""

from __future__ import annotations

import triton.language as tl

from imgops.kernels.cuda._launch import inline

#: The rows of the JPEG standard's tables of quantization for luma and chroma, with a number in each byte.
_LUMA_ROWS = tl.constexpr(
    (
        *(0x3D332818100A0B10, 0x373C3A1A130E0C0C, 0x3845392818100D0E, 0x3E5057331D16110E),
        *(0x4D676D4438251612, 0x5C71685140372318, 0x65787967574E4031, 0x63676470625F5C48),
    )
)
_CHROMA_ROWS = tl.constexpr(
    (
        *(0x636363632F181211, 0x63636363421A1512, 0x6363636363381A18, 0x636363636363422F),
        *(0x6363636363636363, 0x6363636363636363, 0x6363636363636363, 0x6363636363636363),
    )
)


@inline
def quantization_table(quality, k, ROWS: tl.constexpr):
    """Return the divisors of a quality from 1 to 100 at the positions ``k``, each above its reciprocal.

    The upper 32 bits are the divisor, and the lower 32 bits are 2**32 over 8 times the divisor, rounded up.
    """
    bits = tl.zeros_like(k).to(tl.int64)
    for row in tl.static_range(8):
        bits = tl.where(k // 8 == row, ROWS[row], bits)
    base = ((bits >> (k % 8 * 8)) & 255).to(tl.int32)
    scale = tl.where(quality < 50, 5000 // quality, 200 - 2 * quality)
    divisor = tl.minimum(tl.maximum((base * scale + 50) // 100, 1), 255).to(tl.int64)
    return (divisor << 32) | (0xFFFFFFFF // (8 * divisor) + 1)


@inline
def pack(a, b, c, d):
    """Return four bytes as a word, the first one in its lowest bits."""
    return a | (b << 8) | (c << 16) | (d << 24)


@inline
def clamp(value):
    return tl.minimum(tl.maximum(value, 0), 255)


@inline
def _descale(value, BITS: tl.constexpr):
    return (value + (1 << (BITS - 1))) >> BITS


@inline
def _odd_part(a, b, c, d):
    """Return the products with a symmetric matrix, which both transforms use, in units of 1/8192."""
    return (
        a * -11363 + b * 9633 + c * -6436 + d * 2260,
        a * 9633 + b * 2261 + c * -11362 + d * 6437,
        a * -6436 + b * -11362 + c * -2259 + d * 9633,
        a * 2260 + b * 6437 + c * 9633 + d * 11363,
    )


@inline
def transform_row(v):
    """Return the forward transform of a row of samples, in quarters."""
    a, b, c, d = v[0] + v[7], v[1] + v[6], v[2] + v[5], v[3] + v[4]
    p, q, r, s = a + d, b + c, b - c, a - d
    f7, f5, f3, f1 = _odd_part(v[3] - v[4], v[2] - v[5], v[1] - v[6], v[0] - v[7])
    f2, f6 = _descale(r * 4433 + s * 10703, 11), _descale(s * 4433 - r * 10704, 11)
    f1, f3, f5, f7 = _descale(f1, 11), _descale(f3, 11), _descale(f5, 11), _descale(f7, 11)
    return ((p + q) << 2, f1, f2, f3, (p - q) << 2, f5, f6, f7)


@inline
def transform_column(v):
    """Return the forward transform of a column of transformed rows: 8 times the coefficients."""
    a, b, c, d = v[0] + v[7], v[1] + v[6], v[2] + v[5], v[3] + v[4]
    p, q, r, s = a + d, b + c, b - c, a - d
    f7, f5, f3, f1 = _odd_part(v[3] - v[4], v[2] - v[5], v[1] - v[6], v[0] - v[7])
    f2, f6 = _descale(r * 4433 + s * 10703, 15), _descale(s * 4433 - r * 10704, 15)
    f1, f3, f5, f7 = _descale(f1, 15), _descale(f3, 15), _descale(f5, 15), _descale(f7, 15)
    return (_descale(p + q, 2), f1, f2, f3, _descale(p - q, 2), f5, f6, f7)


@inline
def quantize(value, entry):
    """Round 8 times a coefficient to a multiple of its divisor, a half away from 0, and return the multiple.

    The product with the reciprocal is exact, because the sum is below 2**15 and 8 times a divisor below 2**11.
    """
    divisor = (entry >> 32).to(tl.int32)
    half_up = (tl.abs(value) + 4 * divisor).to(tl.uint32)
    count = tl.umulhi(half_up, entry.to(tl.uint32)).to(tl.int32)
    return count * tl.where(value < 0, -divisor, divisor)


@inline
def invert(v, CENTER: tl.constexpr, BITS: tl.constexpr):
    """Return the inverse transform of 8 values, plus ``CENTER``, with ``BITS`` bits fewer."""
    # Add ``CENTER``, and half a unit for rounding, to the terms that all results share.
    shared: tl.constexpr = (CENTER << BITS) + (1 << (BITS - 1))
    even, odd = v[2] * 10703 + v[6] * 4433, v[2] * 4433 - v[6] * 10704
    first, second = ((v[0] + v[4]) << 13) + shared, ((v[0] - v[4]) << 13) + shared
    a, b, c, d = first + even, second + odd, second - odd, first - even
    e, f, g, h = _odd_part(v[7], v[5], v[3], v[1])
    p, q, r, s = (a + h) >> BITS, (b + g) >> BITS, (c + f) >> BITS, (d + e) >> BITS
    return p, q, r, s, (d - e) >> BITS, (c - f) >> BITS, (b - g) >> BITS, (a - h) >> BITS


@inline
def across(v, i: tl.constexpr):
    """Return the ``i``-th values of 8 tuples: a column of rows, or a row of columns."""
    return v[0][i], v[1][i], v[2][i], v[3][i], v[4][i], v[5][i], v[6][i], v[7][i]


@inline
def restored_row(columns, y: tl.constexpr):
    """Return the samples of a row of transformed columns, as two words."""
    v = invert(across(columns, y), 128, 18)
    low = pack(clamp(v[0]), clamp(v[1]), clamp(v[2]), clamp(v[3]))
    return low, pack(clamp(v[4]), clamp(v[5]), clamp(v[6]), clamp(v[7]))


@inline
def luma_of(r, g, b):
    return (r * 19595 + g * 38470 + b * 7471 + 32768) >> 16


@inline
def chroma_of(r, g, b):
    """Return the blue and the red difference, centered at 128."""
    center: tl.constexpr = (128 << 16) + 32767
    blue = (b * 32768 - r * 11059 - g * 21709 + center) >> 16
    return blue, (r * 32768 - g * 27439 - b * 5329 + center) >> 16


@inline
def color_of(luma, blue, red):
    blue, red = blue - 128, red - 128
    r = luma + ((red * 91881 + 32768) >> 16)
    g = luma + ((32768 - blue * 22554 - red * 46802) >> 16)
    b = luma + ((blue * 116130 + 32768) >> 16)
    return clamp(r), clamp(g), clamp(b)
