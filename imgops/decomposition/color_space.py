"""Decomposition of cvt_color, by way of RGB; for levels, most spaces use OpenCV's integer arithmetic.

A conversion takes the greatest level, or 0 for floats; curved spaces have levels of uint8 only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from imgops.decomposition._precision import LEVELS, divide, finish, working_dtype

#: The channels of an image, each ``(..., H, W)``.
Color = list[Tensor]

LUMA = (0.299, 0.587, 0.114)
_TO_XYZ = ((0.412453, 0.357580, 0.180423), (0.212671, 0.715160, 0.072169), (0.019334, 0.119193, 0.950227))
_FROM_XYZ = (
    (3.240479, -1.53715, -0.498535),
    (-0.969256, 1.875991, 0.041556),
    (0.055648, -0.204043, 1.057311),
)
#: The white point D65 in XYZ, and its coordinates u' and v' in LUV.
_WHITE = (0.950456, 1.0, 1.088754)
_U_WHITE, _V_WHITE = (
    w / (_WHITE[0] + 15 * _WHITE[1] + 3 * _WHITE[2]) for w in (4 * _WHITE[0], 9 * _WHITE[1])
)
#: Chroma is a channel minus luma, times a scale. Each entry has the index of that channel, the scale, and
#: OpenCV's own integer for the scale, with 14 fraction bits.
_YCRCB = ((0, 0.713, 11682), (2, 0.564, 9241))
_YUV = ((2, 0.492, 8061), (0, 0.877, 14369))
#: For each of red, green and blue: the weight of the blue difference and that of the red difference.
_FROM_YCRCB = ((0.0, 1.403), (-0.344, -0.714), (1.773, 0.0))
_FROM_YCRCB_LEVELS = ((0, 22987), (-5636, -11698), (29049, 0))
_FROM_YUV = ((0.0, 1.14), (-0.395, -0.581), (2.032, 0.0))
_FROM_YUV_LEVELS = ((0, 18678), (-6472, -9519), (33292, 0))


def cvt_color(image: Tensor, code: str) -> Tensor:
    levels = LEVELS.get(image.dtype, 0)
    source, _, target = code.partition("2")
    x = image.to(torch.int32 if levels else working_dtype(image))
    color = list(x.unbind(-3))
    if source in _FROM:
        color = _FROM[source](color, levels)
    elif source == "gray":
        color = color * 3
    alpha = color[3] if len(color) == 4 else torch.full_like(color[0], levels or 1)
    swapped = source.startswith("bgr") != target.startswith("bgr")
    color = color[2::-1] if swapped else color[:3]
    if target in _TO:
        color = _TO[target](color, levels)
    elif target.endswith("a"):
        color = [*color, alpha]
    return finish(torch.stack(color, -3), image)


def _unit(levels: Tensor) -> Tensor:
    return divide(levels.float(), 255)


def _shift(value: Tensor, bits: int) -> Tensor:
    return (value + (1 << (bits - 1))) >> bits


def _combine(color: Color, weights: Sequence[float]) -> Tensor:
    return color[0] * weights[0] + color[1] * weights[1] + color[2] * weights[2]


def _clamp(color: Color, levels: int) -> Color:
    return [c.clamp(0, levels) for c in color]


def _half(levels: int) -> int:
    return (levels + 1) // 2


def _round(color: Color) -> Color:
    return [c.round().clamp(0, 255).int() for c in color]


# -- linear spaces -----------------------------------------------------------------------------------


def _to_chroma(parts: Sequence[tuple[int, float, int]]) -> Callable[[Color, int], Color]:
    def to(rgb: Color, levels: int) -> Color:
        if levels:
            luma = _shift(_combine(rgb, (4899, 9617, 1868)), 14)
            chroma = [_shift((rgb[i] - luma) * whole + (_half(levels) << 14), 14) for i, _, whole in parts]
            return _clamp([luma, *chroma], levels)
        luma = _combine(rgb, LUMA)
        return [luma, *[(rgb[i] - luma) * scale + 0.5 for i, scale, _ in parts]]

    return to


def _from_chroma(
    parts: Sequence[tuple[float, float]], whole: Sequence[tuple[int, int]], blue: int
) -> Callable[[Color, int], Color]:
    """Return the conversion to RGB; channel ``blue`` holds the blue difference, the other one the red."""

    def back(color: Color, levels: int) -> Color:
        luma, of_blue, of_red = color[0], color[blue], color[3 - blue]
        if levels:
            half = _half(levels)
            sums = [(of_blue - half) * b + (of_red - half) * r for b, r in whole]
            return _clamp([luma + _shift(s, 14) for s in sums], levels)
        return [luma + (of_blue - 0.5) * b + (of_red - 0.5) * r for b, r in parts]

    return back


def _by_matrix(rows: Sequence[Sequence[float]]) -> Callable[[Color, int], Color]:
    def apply(color: Color, levels: int) -> Color:
        if levels:
            whole = [[round(v * 4096) for v in row] for row in rows]
            return _clamp([_shift(_combine(color, row), 12) for row in whole], levels)
        return [_combine(color, row) for row in rows]

    return apply


# -- hue ---------------------------------------------------------------------------------------------


def _extremes(rgb: Color) -> tuple[Tensor, Tensor]:
    r, g, b = rgb
    return torch.maximum(torch.maximum(r, g), b), torch.minimum(torch.minimum(r, g), b)


def _hue(rgb: Color, high: Tensor, apart: Tensor) -> Tensor:
    r, g, b = rgb
    safe = torch.where(apart > 0, apart, 1)
    hue = torch.where(
        high == r, (g - b) / safe, torch.where(high == g, (b - r) / safe + 2, (r - g) / safe + 4)
    )
    hue = torch.where(apart > 0, hue * 60, 0)
    return torch.where(hue < 0, hue + 360, hue)


def _to_hsv(degrees: int) -> Callable[[Color, int], Color]:
    """Return the conversion from RGB to HSV; on uint8 a full circle has ``degrees`` steps."""

    def to(rgb: Color, levels: int) -> Color:
        high, low = _extremes(rgb)
        apart = high - low
        if not levels:
            share = torch.where(high > 0, apart / torch.where(high > 0, high, 1), 0)
            return [_hue(rgb, high, apart), share, high]
        r, g, b = rgb
        share = _shift(apart * _reciprocal(high, 255 << 12), 12)
        hue = torch.where(high == r, g - b, torch.where(high == g, b - r + 2 * apart, r - g + 4 * apart))
        hue = _shift(hue * _reciprocal(apart, (degrees << 12) / 6), 12)
        return _clamp([torch.where(hue < 0, hue + degrees, hue), share, high], levels)

    return to


def _reciprocal(value: Tensor, scale: float) -> Tensor:
    """Return the entries of OpenCV's table of quotients, ``scale / value`` rounded; 0 for 0."""
    return torch.where(value > 0, (scale / value.clamp(min=1).double()).round(), 0).int()


def _from_hsv(degrees: int) -> Callable[[Color, int], Color]:
    def back(color: Color, levels: int) -> Color:
        hue, share, high = color
        if levels:
            hue, share, high = hue.float() * (360 / degrees), _unit(share), _unit(high)
        rgb = []
        for start in (5, 3, 1):
            at = torch.remainder(divide(hue, 60) + start, 6)
            rgb.append(high - high * share * torch.minimum(at, 4 - at).clamp(0, 1))
        return _round([c * 255 for c in rgb]) if levels else rgb

    return back


def to_hls(rgb: Color, levels: int) -> Color:
    if levels:
        hue, light, share = to_hls([_unit(c) for c in rgb], 0)
        return _round([hue / 2, light * 255, share * 255])
    high, low = _extremes(rgb)
    apart, total = high - low, high + low
    bright = total >= 1
    base = torch.where(bright, 2 - total, total)
    share = torch.where(apart > 2.0**-23, apart / torch.where(base > 0, base, 1), 0)
    return [_hue(rgb, high, torch.where(apart > 2.0**-23, apart, 0)), total / 2, share]


def from_hls(color: Color, levels: int) -> Color:
    hue, light, share = color
    if levels:
        hue, light, share = hue.float() * 2, _unit(light), _unit(share)
    width = share * torch.minimum(light, 1 - light)
    rgb = []
    for start in (0, 8, 4):
        at = torch.remainder(divide(hue, 30) + start, 12)
        rgb.append(light - width * torch.minimum(at - 3, 9 - at).clamp(-1, 1))
    return _round([c * 255 for c in rgb]) if levels else rgb


# -- LAB and LUV -------------------------------------------------------------------------------------


def _linear(value: Tensor) -> Tensor:
    """Remove sRGB's gamma."""
    power = divide(value.clamp(min=0.04) + 0.055, 1.055) ** 2.4
    return torch.where(value <= 0.04045, divide(value, 12.92), power)


def _gamma(value: Tensor) -> Tensor:
    power = 1.055 * value.clamp(min=0.003) ** (1 / 2.4) - 0.055
    return torch.where(value <= 0.0031308, value * 12.92, power)


def _root(value: Tensor) -> Tensor:
    """Return the cube root, and near 0 a line instead."""
    return torch.where(value > 0.008856, value.clamp(min=0.008) ** (1 / 3), 7.787 * value + 16 / 116)


def _lightness(y: Tensor) -> Tensor:
    return torch.where(y > 0.008856, 116 * y.clamp(min=0.008) ** (1 / 3) - 16, 903.3 * y)


def _to_lab(rgb: Color, levels: int) -> Color:
    if levels:
        return _to_lab_levels(rgb)
    xyz = _by_matrix(_TO_XYZ)([_linear(c.clamp(0, 1)) for c in rgb], 0)
    x, y, z = (_root(divide(c, w)) for c, w in zip(xyz, _WHITE, strict=True))
    return [_lightness(xyz[1]), 500 * (x - y), 200 * (y - z)]


def _to_lab_levels(rgb: Color) -> Color:
    """Convert RGB to LAB in OpenCV's integers: 3 additional bits for linear light, 15 for cube roots."""
    light = [(2040 * _linear(divide(c.double(), 255))).round().int() for c in rgb]
    roots = []
    for row, white in zip(_TO_XYZ, _WHITE, strict=True):
        levels = _shift(_combine(light, [round(v * 4096 / white) for v in row]), 12)
        value = divide(levels.double(), 2040)
        curve = torch.where(value < 0.008856, value * 7.787 + 16 / 116, value.clamp(min=0.008) ** (1 / 3))
        roots.append((curve * 2**15).round().int())
    x, y, z = roots
    middle = 128 << 15
    shift = (16 * 255 * 2**15 + 50) // 100
    return _clamp(
        [
            _shift((116 * 255 + 50) // 100 * y - shift, 15),
            _shift(500 * (x - y) + middle, 15),
            _shift(200 * (y - z) + middle, 15),
        ],
        255,
    )


def _from_lab(color: Color, levels: int) -> Color:
    light, a, b = color
    if levels:
        light, a, b = light.float() * (100 / 255), (a - 128).float(), (b - 128).float()
    bright = divide(light + 16, 116)
    y = torch.where(light <= 8, divide(light, 903.3), bright**3)
    root = torch.where(light <= 8, 7.787 * y + 16 / 116, bright)
    x, z = _cube(root + divide(a, 500)) * _WHITE[0], _cube(root - divide(b, 200)) * _WHITE[2]
    return _from_xyz_light([x, y, z], levels)


def _cube(root: Tensor) -> Tensor:
    return torch.where(root <= 7.787 * 0.008856 + 16 / 116, divide(root - 16 / 116, 7.787), root**3)


def _from_xyz_light(xyz: Color, levels: int) -> Color:
    rgb = [_gamma(c.clamp(0, 1)) for c in _by_matrix(_FROM_XYZ)(xyz, 0)]
    return _round([c * 255 for c in rgb]) if levels else rgb


def _to_luv(rgb: Color, levels: int) -> Color:
    if levels:
        light, u, v = _to_luv([_unit(c) for c in rgb], 0)
        return _round([light * 2.55, (u + 134) * (255 / 354), (v + 140) * (255 / 262)])
    x, y, z = _by_matrix(_TO_XYZ)([_linear(c.clamp(0, 1)) for c in rgb], 0)
    light, total = _lightness(y), (x + 15 * y + 3 * z).clamp(min=2.0**-23)
    return [light, 13 * light * (4 * x / total - _U_WHITE), 13 * light * (9 * y / total - _V_WHITE)]


def _from_luv(color: Color, levels: int) -> Color:
    light, u, v = color
    if levels:
        light = divide(light.float(), 2.55)
        u, v = u.float() * (354 / 255) - 134, v.float() * (262 / 255) - 140
    y = torch.where(light > 8, divide(light + 16, 116) ** 3, divide(light, 903.3))
    up = 3 * (u + 13 * light * _U_WHITE)
    below = v + 13 * light * _V_WHITE
    vp = (0.25 / torch.where(below == 0, 1, below)).clamp(-0.25, 0.25)
    return _from_xyz_light([3 * y * up * vp, y, y * ((156 * light - up) * vp - 5)], levels)


_TO: dict[str, Callable[[Color, int], Color]] = {
    "gray": lambda rgb, levels: [
        _shift(_combine(rgb, (9798, 19235, 3735)), 15) if levels else _combine(rgb, LUMA)
    ],
    "hsv": _to_hsv(180),
    "hsv_full": _to_hsv(256),
    "hls": to_hls,
    "lab": _to_lab,
    "luv": _to_luv,
    "ycrcb": _to_chroma(_YCRCB),
    "yuv": _to_chroma(_YUV),
    "xyz": _by_matrix(_TO_XYZ),
}
_FROM: dict[str, Callable[[Color, int], Color]] = {
    "hsv": _from_hsv(180),
    "hsv_full": _from_hsv(255),
    "hls": from_hls,
    "lab": _from_lab,
    "luv": _from_luv,
    "ycrcb": _from_chroma(_FROM_YCRCB, _FROM_YCRCB_LEVELS, 2),
    "yuv": _from_chroma(_FROM_YUV, _FROM_YUV_LEVELS, 1),
    "xyz": _by_matrix(_FROM_XYZ),
}
