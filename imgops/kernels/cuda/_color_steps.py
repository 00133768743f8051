"""The steps of color_sequence on pixels in registers: floats in [0, 1], or levels held as whole floats.

They repeat PIL's arithmetic operation by operation, as ``decomposition/color.py`` does.
"""

from __future__ import annotations

import triton.language as tl

from imgops.kernels.cuda._arithmetic import unit
from imgops.kernels.cuda._launch import inline


@inline
def whole_level(x):
    """Truncate to one of 256 levels, held as a float; NaN becomes 0."""
    return tl.floor(tl.where(x > 0, tl.minimum(x, 255.0), 0.0))


@inline
def mix(start, end, factor, LEVELS: tl.constexpr):
    """Interpolate from one image to another, or extrapolate beyond it, as ``Image.blend``."""
    if LEVELS:
        value = whole_level(start + factor * (end - start))
    else:
        value = unit(end * factor + start * (1 - factor))
    return value


@inline
def luma(r, g, b, RGB: tl.constexpr, LEVELS: tl.constexpr):
    """Compute PIL's mode L, as a float."""
    if not RGB:
        value = r
    elif LEVELS:
        total = r.to(tl.int32) * 19595 + g.to(tl.int32) * 38470 + b.to(tl.int32) * 7471 + 0x8000
        value = (total >> 16).to(tl.float32)
    else:
        value = 0.299 * r + 0.587 * g + 0.114 * b
    return value


@inline
def turn_hue(r, g, b, factor, LEVELS: tl.constexpr):
    """Return the three channels with their hue turned by ``factor`` of a full circle."""
    most, least = tl.maximum(tl.maximum(r, g), b), tl.minimum(tl.minimum(r, g), b)
    chroma = most - least
    scale = tl.div_rn(tl.where(chroma == 0, 1.0, 1.0), tl.where(chroma == 0, 1.0, chroma))
    turn = tl.where(most == r, (g - b) * scale, tl.where(most == g, (b - r) * scale + 2, (r - g) * scale + 4))
    turn = turn + factor * 6
    turn = turn - 6 * tl.floor(turn * 0.16666666666666666)
    r = _hue_channel(5 + turn, most, chroma, LEVELS)
    g = _hue_channel(3 + turn, most, chroma, LEVELS)
    b = _hue_channel(1 + turn, most, chroma, LEVELS)
    return r, g, b


@inline
def _hue_channel(k, most, chroma, LEVELS: tl.constexpr):
    """Return a channel at the position ``k`` of the color circle, which has a length of 6.

    Each channel rises, stays, falls and stays again, a third of the circle after the one before.
    """
    k = tl.where(k < 6, k, k - 6)
    out = most - chroma * unit(tl.minimum(k, 4 - k))
    if LEVELS:
        value = whole_level(out * 1.003917647)
    else:
        value = unit(out)
    return value


@inline
def posterize(x, bits, LEVELS: tl.constexpr):
    """Keep the highest ``bits`` bits; ``bits`` may be a real number, which is truncated."""
    kept = tl.where(bits > 0, tl.minimum(bits, 8), 0).to(tl.int32)
    count = (1 << kept).to(tl.float32)  # its reciprocal is exact
    share = (1 << (8 - kept)).to(tl.float32) * 0.00390625
    if LEVELS:
        value = tl.floor(x * (count * 0.00390625)) * (share * 256)
    else:
        value = tl.minimum(tl.maximum(tl.floor(x * count), 0.0), count - 1) * share
    return value


@inline
def solarize(x, threshold, LEVELS: tl.constexpr):
    if LEVELS:  # compared as whole numbers
        bright = x >= tl.ceil(threshold).to(tl.float32)
        value = tl.where(bright, 255 - x, x)
    else:
        bright = x >= threshold.to(tl.float32)
        value = tl.where(bright, 1 - x, x)
    return value
