"""cvt_color: every conversion against OpenCV; double precision, which it does not support, against the formulas."""

from __future__ import annotations

import colorsys
from collections.abc import Callable

import cv2
import numpy as np
import torch
from torch import Tensor

import imgops
from imgops.fake.color_space import CHANNELS, CODES
from tests.specs import _benchmarks as bench
from tests.specs._libraries import Array, chw, photo_frame
from tests.specs._maker import FLOATS, LEVELS_AND_FLOATS, Maker
from tests.specs._spec import LEVEL, Benchmark, ErrorInput, OpSpec, Sample, Tolerance, Tolerances

_XYZ = np.array(
    [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]]
)
_RGB = np.array(
    [[3.240479, -1.53715, -0.498535], [-0.969256, 1.875991, 0.041556], [0.055648, -0.204043, 1.057311]]
)
_WHITE = np.array([0.950456, 1, 1.088754])
_DENSITY = _WHITE @ [1, 15, 3]


def _each(function: Callable[..., tuple[float, ...]]) -> Callable[[Array], Array]:
    """Apply a function of Python's own colorsys pixel by pixel."""
    return lambda x: np.array([function(*p) for p in x.reshape(-1, 3)]).reshape(x.shape)


def _decoded(x: Array) -> Array:
    return np.where(x <= 0.04045, x / 12.92, ((np.maximum(x, 0) + 0.055) / 1.055) ** 2.4)


def _encoded(x: Array) -> Array:
    x = np.clip(x, 0, 1)
    return np.where(x <= 0.0031308, x * 12.92, 1.055 * x ** (1 / 2.4) - 0.055)


def _light(y: Array) -> Array:
    return np.where(y > 0.008856, 116 * np.cbrt(y) - 16, 903.3 * y)


def _unlight(light: Array) -> Array:
    return np.where(light > 8, ((light + 16) / 116) ** 3, light / 903.3)


def _lab(x: Array) -> Array:
    xyz = _decoded(x) @ _XYZ.T
    part = xyz / _WHITE
    f = np.where(part > 0.008856, np.cbrt(part), 7.787 * part + 16 / 116)
    return np.stack([_light(xyz[..., 1]), 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], -1)


def _unlab(x: Array) -> Array:
    light, a, b = x[..., 0], x[..., 1], x[..., 2]
    y = _unlight(light)
    f = np.where(light > 8, (light + 16) / 116, 7.787 * y + 16 / 116)
    cube = lambda t: np.where(t > 7.787 * 0.008856 + 16 / 116, t**3, (t - 16 / 116) / 7.787)
    return _encoded(np.stack([cube(f + a / 500), y, cube(f - b / 200)], -1) * _WHITE @ _RGB.T)


def _luv(x: Array) -> Array:
    xyz = _decoded(x) @ _XYZ.T
    total, light = np.maximum(xyz @ [1, 15, 3], 1e-30), _light(xyz[..., 1])  # not 0, for black
    u = 4 * xyz[..., 0] / total - 4 * _WHITE[0] / _DENSITY
    v = 9 * xyz[..., 1] / total - 9 / _DENSITY
    return np.stack([light, 13 * light * u, 13 * light * v], -1)


def _unluv(x: Array) -> Array:
    """Convert LUV with OpenCV's limit of 0.25 on 1 / (4 v')."""
    light, y = x[..., 0], _unlight(x[..., 0])
    up = 3 * (x[..., 1] + 13 * light * 4 * _WHITE[0] / _DENSITY)
    vp = np.clip(0.25 / (x[..., 2] + 13 * light * 9 / _DENSITY), -0.25, 0.25)
    return _encoded(np.stack([3 * y * up * vp, y, y * ((156 * light - up) * vp - 5)], -1) @ _RGB.T)


def _luma(x: Array) -> Array:
    return x @ [0.299, 0.587, 0.114]


def _hls(r: float, g: float, b: float) -> tuple[float, ...]:
    h, light, s = colorsys.rgb_to_hls(r, g, b)
    return h * 360, light, s


def _hsv(r: float, g: float, b: float) -> tuple[float, ...]:
    h, s, v = colorsys.rgb_to_hsv(r, g, b)
    return h * 360, s, v


_TO = {
    "gray": lambda x: _luma(x)[..., None],
    "hsv": _each(_hsv),
    "hls": _each(_hls),
    "lab": _lab,
    "luv": _luv,
    "xyz": lambda x: x @ _XYZ.T,
    "ycrcb": lambda x: np.stack(
        [_luma(x), (x[..., 0] - _luma(x)) * 0.713 + 0.5, (x[..., 2] - _luma(x)) * 0.564 + 0.5], -1
    ),
    "yuv": lambda x: np.stack(
        [_luma(x), (x[..., 2] - _luma(x)) * 0.492 + 0.5, (x[..., 0] - _luma(x)) * 0.877 + 0.5], -1
    ),
}
_FROM = {
    "gray": lambda x: np.repeat(x, 3, -1),
    "hsv": _each(lambda h, s, v: colorsys.hsv_to_rgb(h / 360 % 1, s, v)),
    "hls": _each(lambda h, light, s: colorsys.hls_to_rgb(h / 360 % 1, light, s)),
    "lab": _unlab,
    "luv": _unluv,
    "xyz": lambda x: x @ _RGB.T,
    "ycrcb": lambda x: x[..., :1] + (x[..., 1:] - 0.5) @ np.array([[1.403, -0.714, 0], [0, -0.344, 1.773]]),
    "yuv": lambda x: x[..., :1] + (x[..., 1:] - 0.5) @ np.array([[0, -0.395, 2.032], [1.14, -0.581, 0]]),
}


def cvt_reference(image: Array, code: str) -> Array:
    frame = np.ascontiguousarray(image.transpose(1, 2, 0))
    if image.dtype != np.float64:
        out = cv2.cvtColor(frame, getattr(cv2, CODES[code]))
        return out.reshape(*out.shape[:2], -1).transpose(2, 0, 1)
    source, target = (n.removesuffix("_full") for n in code.split("2"))
    alpha = frame[..., 3:] if source.endswith("a") else np.ones_like(frame[..., :1])
    rgb = _FROM[source](frame) if source in _FROM else frame[..., :3]
    rgb = rgb[..., ::-1] if source.startswith("bgr") != target.startswith("bgr") else rgb
    out = _TO[target](rgb) if target in _TO else rgb
    out = np.concatenate([out, alpha], -1) if target.endswith("a") else out
    return out.transpose(2, 0, 1)


#: The ranges of the values of each space.
_RANGES = {"hsv": (0.0, 1.0), "lab": (5, 60), "luv": (15, 60)}


def space_image(m: Maker, source: str) -> Tensor:
    low, high = _RANGES.get(source, (0.05, 0.95))
    return m.image(CHANNELS[source], 5, 6, low, high)


def tolerances(code: str) -> Tolerances:
    """Return the tolerances of ATen: OpenCV interpolates LAB and LUV from coarse tables, with its own rounding."""
    if code.endswith("2lab"):
        apart: float = 0.5
    elif code.endswith("2luv"):
        apart = 0.03
    else:
        apart = 1e-3 if code.startswith(("lab", "luv")) else 3e-5
    floats = {
        d: Tolerance(max(apart, e))
        for d, e in ((torch.float16, 2e-3), (torch.bfloat16, 2e-2), (torch.float32, 0))
    }
    levels = LEVEL[torch.uint8]
    if code.startswith("lab"):
        levels = Tolerance(levels=2)
    if code.startswith("luv"):  # colors that RGB cannot represent
        levels = Tolerance(levels=255, share=0.4)
    return {**floats, torch.float64: Tolerance(1e-12), torch.uint8: levels}


#: One conversion of each kind; tests/test_color.py has every code.
_KINDS = (
    *(
        "rgb2gray",
        "rgb2hsv",
        "bgr2hsv_full",
        "rgb2hls",
        "rgb2lab",
        "bgr2luv",
        "rgb2ycrcb",
        "rgb2yuv",
        "rgb2xyz",
    ),
    *(
        "hsv2rgb",
        "hls2bgr",
        "lab2rgb",
        "luv2rgb",
        "ycrcb2rgb",
        "xyz2rgb",
        "rgb2bgr",
        "gray2bgra",
        "bgra2rgba",
    ),
)


#: The spaces that OpenCV does not compute for uint16.
CURVED = {"hsv", "hsv_full", "hls", "lab", "luv"}
_FROM_RGB = [code for code in CODES if code.startswith(("rgb2", "bgr2"))]


def _samples() -> tuple[Sample, ...]:
    return tuple(
        Sample(
            code,
            lambda m, c=code: (space_image(m, c.partition("2")[0]), c),
            dtypes=FLOATS if set(code.split("2")) & CURVED else LEVELS_AND_FLOATS,
            decomposed=tolerances(code),
        )
        for code in _KINDS
    )


CVT_COLOR = OpSpec(
    "cvt_color",
    samples=(
        *_samples(),
        Sample("no-rows", lambda m: (m.image(3, 0, 4), "rgb2hsv"), edge=True, differentiable=False),
    ),
    refused={
        ValueError: {
            "code must be a conversion such as 'rgb2hsv', 'rgb2hls', 'rgb2yuv', got 'rgb2hvs'": lambda x: (
                imgops.cvt_color(x, "rgb2hvs")
            ),
            "code must be a conversion such as 'rgb2hsv', 'hsv2rgb', got '?'": lambda x: imgops.cvt_color(
                x, "?"
            ),
            "image must have 4 channels for 'rgba2rgb', got 3": lambda x: imgops.cvt_color(x, "rgba2rgb"),
        },
        TypeError: {
            "image must be uint8, uint16 or floating point, got torch.bool": lambda x: imgops.cvt_color(
                x.bool(), "rgb2hsv"
            ),
            "image must be uint8 or floating point for 'luv2rgb', got torch.uint16": ErrorInput(
                lambda x: imgops.cvt_color(x, "luv2rgb"), dtype=torch.uint16
            ),
        },
    },
    draw=lambda d: (d.image(3), d.choice(*_FROM_RGB)),
    drawn={torch.float32: Tolerance(0.5), torch.uint8: Tolerance(levels=2), torch.float64: Tolerance(1e-12)},
    reference=lambda image, code: image if image.size == 0 else cvt_reference(image, code),
    tolerance={torch.float64: Tolerance(1e-9)},
    smooth_on_gray=False,
    reference_name="`cv2.cvtColor`",
    dtype_names="uint8, floats; gray, RGB, YCrCb, YUV, XYZ: uint16",
    decomposed_difference="most 0; HLS, LAB, LUV 1–2 levels; floats 1e-5, to LAB 0.5",
    section="Color",
    formula=r"y = M x\ \text{(XYZ, YCrCb, YUV)};\quad \text{CIE's (LAB, LUV)};\quad \text{a hexagon (HSV, HLS)}",
    border="none",
    transforms=("Corruption", "RandomHSV", "RandomSnow"),
    photo=(
        lambda x: imgops.cvt_color(x, "rgb2lab"),
        lambda x: chw(cv2.cvtColor(photo_frame(x), cv2.COLOR_RGB2Lab)),
    ),
    picture=lambda x: imgops.cvt_color(x, "rgb2hsv"),
    benchmarks=tuple(
        Benchmark(
            code,
            f"cv2.cvtColor, {CODES[code].removeprefix('COLOR_')}",
            bench.filters(
                lambda x, c=code: imgops.cvt_color(x, c),
                lambda a, c=code: cv2.cvtColor(a, getattr(cv2, CODES[c])),
                lambda kornia, y, t=theirs: getattr(kornia.color, t)(y),
                None if code == "hls2rgb" else bench.scikit(f"color.{code}"),
                frames=True,
            ),
        )
        for code, theirs in (("rgb2hsv", "rgb_to_hsv"), ("rgb2lab", "rgb_to_lab"), ("hls2rgb", "hls_to_rgb"))
    ),
)

SPECS = (CVT_COLOR,)
