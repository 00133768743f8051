"""The steps of color_sequence on pixels in registers: floats in [0, 1], or levels held as whole floats.

They give the bits of PIL's arithmetic on levels, as ``decomposition/color.py`` does. Operations are fused, omitted or
reordered only if the result is the same number, because it is exact or is clamped anyway.
"""

from __future__ import annotations

import triton.language as tl

from imgops.kernels.cuda._launch import inline


@inline
def whole_level(x):
    """Truncate to one of 256 levels, held as a float; NaN becomes 0."""
    return tl.floor(tl.minimum(tl.maximum(x, 0.0), 255.0))


@inline
def unit(x):
    """Clamp to [0, 1]; NaN stays."""
    return tl.clamp(x, 0.0, 1.0, propagate_nan=tl.PropagateNan.ALL)


@inline
def mix(start, end, factor, LEVELS: tl.constexpr):
    """Interpolate from one image to another, or extrapolate beyond it, as ``Image.blend`` does."""
    if LEVELS:
        value = whole_level(start + factor * (end - start))
    else:
        value = unit(end * factor + start * (1 - factor))
    return value


@inline
def mix_all(start, r, g, b, factor, RGB: tl.constexpr, LEVELS: tl.constexpr):
    """Blend each channel with the same start value; ``factor`` is a scalar."""
    if LEVELS:
        if (factor >= 0) & (factor <= 1):  # an interpolation between two levels needs no clamp
            r = tl.floor(start + factor * (r - start))
            if RGB:
                g, b = tl.floor(start + factor * (g - start)), tl.floor(start + factor * (b - start))
        else:
            r = mix(start, r, factor, LEVELS)
            if RGB:
                g, b = mix(start, g, factor, LEVELS), mix(start, b, factor, LEVELS)
    else:
        rest = start * (1 - factor)
        r = unit(r * factor + rest)
        if RGB:
            g, b = unit(g * factor + rest), unit(b * factor + rest)
    return r, g, b


@inline
def scale_all(r, g, b, factor, RGB: tl.constexpr, LEVELS: tl.constexpr):
    """Blend each channel with black; ``factor`` is a scalar."""
    if LEVELS:
        factor = tl.maximum(factor, 0.0)
        r = tl.floor(tl.minimum(r * factor, 255.0))
        if RGB:
            g, b = tl.floor(tl.minimum(g * factor, 255.0)), tl.floor(tl.minimum(b * factor, 255.0))
    else:
        r, g, b = unit(r * factor), unit(g * factor), unit(b * factor)
    return r, g, b


@inline
def fma(x, factor, y):
    """Multiply by a scalar and add, rounded once."""
    return tl.fma(x, tl.full(x.shape, factor, tl.float32), y)


@inline
def luma(r, g, b, RGB: tl.constexpr, LEVELS: tl.constexpr):
    """Compute PIL's mode L, as a float."""
    if not RGB:
        value = r
    elif LEVELS:  # PIL's integers are exact here: multiples of 1/65536 below 256
        total = fma(b, 7471 / 65536, tl.full(b.shape, 0.5, tl.float32))
        value = tl.floor(fma(r, 19595 / 65536, fma(g, 38470 / 65536, total)))
    else:
        value = fma(r, 0.299, fma(g, 0.587, 0.114 * b))
    return value


@inline
def turn_hue(r, g, b, factor, LEVELS: tl.constexpr):
    """Return the three channels with their hue turned by ``factor`` of a full circle."""
    if LEVELS:
        r, g, b = _turn_levels(r, g, b, _hue_shift(factor.to(tl.float64)))
    else:
        r, g, b = _turn_reals(r, g, b, factor.to(tl.float32))
    return r, g, b


@inline
def _hue_shift(factor):
    """Return the integer number of PIL's 256 hues for a factor, or 0 for a factor that is not finite."""
    shift = factor * 255
    shift = tl.where(shift < 0, -tl.floor(-shift), tl.floor(shift))
    shift = shift - tl.floor(shift * 0.00390625) * 256
    return tl.where(shift == shift, shift, 0.0).to(tl.float32)


@inline
def _turn_levels(r, g, b, shift):
    """Convert to PIL's mode HSV, add to the hue, and convert back.

    PIL rounds a hue in the same way as these floats. The other results are exact integers, because all sums and
    products are below 2^24.
    """
    most, least = tl.maximum(tl.maximum(r, g), b), tl.minimum(tl.minimum(r, g), b)
    chroma = most - least
    low_blue, low_red = least == b, least == r
    apart = tl.where(low_blue, r - g, tl.where(low_red, g - b, b - r))
    base = tl.where(low_blue, 1.0, tl.where(low_red, 3.0, tl.where(apart < 0, -1.0, 5.0)))
    hue = base - tl.div_rn(apart, tl.maximum(chroma, 1.0))
    hue = tl.div_rn(hue, tl.full(r.shape, 6.0, tl.float32))
    hue = tl.floor(tl.where(hue < 0, hue + 1, hue) * 255) + shift
    hue = 2 * tl.where(hue < 256, hue, hue - 256)
    color = most * tl.floor(tl.div_rn(255 * chroma, tl.maximum(most, 1.0)))
    r = most - tl.floor((color * _fall(hue + 425) + 10837.5) * 4.6136101499423299e-05)
    g = most - tl.floor((color * _fall(hue + 255) + 10837.5) * 4.6136101499423299e-05)
    b = most - tl.floor((color * _fall(hue + 85) + 10837.5) * 4.6136101499423299e-05)
    return r, g, b


@inline
def _fall(place):
    """Return how far a channel is below the greatest, in 85ths, at one of 510 positions on the color circle."""
    place = tl.where(place < 510, place, place - 510)
    return tl.minimum(tl.maximum(tl.minimum(place, 340 - place), 0.0), 85.0)


@inline
def _turn_reals(r, g, b, factor):
    """Rotate the hue, without rounding to PIL's 256 hues.

    Along the color circle, which has a length of 6, each channel rises, stays, falls and stays again, a third of the
    circle after the previous channel. Red is below the greatest channel by ``2 - |turn + 5 - 8|`` of the chroma,
    green by ``|turn + 3 - 5| - 1`` and blue by ``|turn + 1 - 5| - 1``, clamped to [0, 1]. The differences are exact,
    and so is the sum for blue if its result is not clamped; the two other sums must be rounded first.
    """
    most, least = tl.maximum(tl.maximum(r, g), b), tl.minimum(tl.minimum(r, g), b)
    chroma = most - least
    scale = tl.div_rn(tl.full(r.shape, 1.0, tl.float32), tl.where(chroma == 0, 1.0, chroma))
    is_red, is_green = most == r, most == g
    difference = tl.where(is_red, g - b, tl.where(is_green, b - r, r - g))
    turn = difference * scale + tl.where(is_red, 0.0, tl.where(is_green, 2.0, 4.0))
    turn = turn + factor * 6
    turn = fma(tl.floor(turn * 0.16666666666666666), -6.0, turn)
    less = least - most
    r = _below(chroma * (2 - tl.abs(turn + 5 - 8)), most, chroma)
    g = _below(tl.fma(chroma, tl.abs(turn + 3 - 5), less), most, chroma)
    b = _below(tl.fma(chroma, tl.abs(turn - 4), less), most, chroma)
    return r, g, b


@inline
def _below(fall, most, chroma):
    """Return a channel that is ``fall`` below the greatest; ``fall`` is clamped to the chroma."""
    fall = tl.minimum(
        tl.maximum(fall, 0.0, propagate_nan=tl.PropagateNan.ALL),
        chroma,
        propagate_nan=tl.PropagateNan.ALL,
    )
    return unit(most - fall)


@inline
def posterize(x, bits, LEVELS: tl.constexpr):
    """Keep the highest ``bits`` bits, a scalar; it may be a real number, which is truncated."""
    kept = tl.where(bits > 0, tl.minimum(bits, 8), 0).to(tl.int32)
    count = (1 << kept).to(tl.float32)  # its reciprocal is exact
    share = (1 << (8 - kept)).to(tl.float32) * 0.00390625
    if LEVELS:
        value = tl.floor(x * (count * 0.00390625)) * (share * 256)
    else:
        value = tl.minimum(tl.maximum(tl.floor(x * count), 0.0), count - 1) * share
        value = tl.where(x == x, value, x)  # NaN stays
    return value


@inline
def solarize(x, threshold, LEVELS: tl.constexpr):
    if LEVELS:  # compare levels as integers
        bright = x >= tl.ceil(threshold).to(tl.float32)
        value = tl.where(bright, 255 - x, x)
    else:
        bright = x >= threshold.to(tl.float32)
        value = tl.where(bright, 1 - x, x)
    return value
