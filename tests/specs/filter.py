"""filter2d, adjust_sharpness and unsharp_mask."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch
from PIL import ImageEnhance, ImageFilter
from torch import Tensor

import imgops
from tests.specs import _benchmarks as bench
from tests.specs._libraries import (
    Array,
    by_opencv,
    by_pil_planes,
    chw,
    mixed,
    photo_frame,
    photo_pil,
    with_border,
)
from tests.specs._maker import LEVELS_AND_FLOATS, Maker, parameter
from tests.specs._spec import LEVEL, REAL, ROUNDED, Benchmark, ErrorInput, OpSpec, Sample, Tolerance

ones = torch.ones
_EDGES = torch.tensor([[0.5, -1.0], [0.25, 0.75], [-0.3, 0.2]], dtype=torch.float64)
_PHOTO_KERNEL = np.array([[0.1, -0.2, 0.1], [0.3, 0.9, -0.4], [0.0, 0.1, 0.1]], np.float32)


# -- filter2d ----------------------------------------------------------------------------------------


def filter2d_reference(image: Array, kernel: Array, padding_mode: str) -> Array:
    rows, columns = kernel.shape
    around = rows // 2, rows - 1 - rows // 2, columns // 2, columns - 1 - columns // 2
    how = lambda a, **border: cv2.filter2D(a, -1, kernel, **border)
    return by_opencv(image, lambda a: with_border(a, padding_mode, around, how))


def _filter2d_calls(case: Any) -> bench.Calls:
    from kornia import filters

    x, arrays = case.image(), case.arrays(case.image())
    weights = np.random.default_rng(0).normal(0, 0.2, (5, 5)).astype(np.float32)
    own = torch.from_numpy(weights)
    return (
        lambda: imgops.filter2d(x, own),
        lambda: [cv2.filter2D(a, -1, weights) for a in arrays],
        None,
        bench.of_floats(x, lambda y: filters.filter2d(y, own[None])),
    )


FILTER2D = OpSpec(
    "filter2d",
    samples=(
        *(
            Sample(padding_mode, lambda m, b=padding_mode: (m.image(3, 7, 6), parameter(m, _EDGES), b))
            for padding_mode in ("constant", "edge", "reflect", "symmetric", "wrap")
        ),
        Sample(
            "each",
            lambda m: (
                m.image(3, 7, 6),
                (_EDGES * m.per_sample(1, 0.4).detach()[..., None, None]).requires_grad_(m.grad),
            ),
        ),
    ),
    refused={
        ValueError: {
            "kernel must be (h, w) or (..., h, w), got shape (3,)": lambda x: imgops.filter2d(x, ones(3)),
            "image must span fewer than 2**31 pixels, got 65536 x 32768": lambda x: imgops.filter2d(
                x[..., :1, :1].expand(2, 3, 2**16, 2**15), ones(3, 3)
            ),
        },
    },
    reference=filter2d_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    tolerance={torch.float64: Tolerance(1e-6)},
    decomposed=LEVEL,
    reference_name="`cv2.filter2D`",
    decomposed_difference="1 level; floats 1e-5",
    section="Filters",
    formula=r"y_{i,j} = \sum_{u,v} k_{u,v}\, x_{i+u-\lfloor h/2\rfloor,\, j+v-\lfloor w/2\rfloor}",
    border="``padding_mode``: constant, edge, reflect, symmetric or wrap",
    transforms=("Corruption", "RandomEmboss", "RandomMotionBlur", "RandomSharpen"),
    photo=(
        lambda x: imgops.filter2d(x, torch.from_numpy(_PHOTO_KERNEL)),
        lambda x: chw(cv2.filter2D(photo_frame(x), -1, _PHOTO_KERNEL)),
    ),
    picture=lambda x: imgops.filter2d(x, torch.tensor([[-2.0, -1, 0], [-1, 1, 1], [0, 1, 2]])),
    benchmarks=(Benchmark("filter2d", "cv2.filter2D, 5 x 5", _filter2d_calls),),
)


# -- adjust_sharpness --------------------------------------------------------------------------------

_SMOOTH = torch.tensor([[1.0, 1, 1], [1, 5, 1], [1, 1, 1]], dtype=torch.float64) / 13


_RIMS: tuple[Any, ...] = ((..., 0), (..., -1), (..., 0, slice(None)), (..., -1, slice(None)))


def sharpness_reference(image: Array, factor: float) -> Array:
    if image.dtype == np.uint8:
        return by_pil_planes(image, lambda p: ImageEnhance.Sharpness(p).enhance(factor))
    if image.dtype == np.uint16:
        if min(image.shape[1:]) < 3:
            return image
        sums = [cv2.filter2D(p.astype(np.float64), -1, 13 * _SMOOTH.numpy()) for p in image]
        out = mixed(np.floor(np.rint(np.stack(sums)) / 13 + 0.5), image, factor)
        for rim in _RIMS:
            out[rim] = image[rim]
        return out
    x = image.astype(np.float64)
    if min(x.shape[1:]) < 3:
        return x
    smooth = np.stack([cv2.filter2D(p, -1, _SMOOTH.numpy()) for p in np.ascontiguousarray(x)])
    for rim in _RIMS:
        smooth[rim] = x[rim]
    return np.clip(smooth + factor * (x - smooth), 0, 1)


def _sharpness_calls(case: Any) -> bench.Calls:
    from kornia import enhance

    x, v2 = case.image(), bench.functional()
    return (
        lambda: imgops.adjust_sharpness(x, 1.3),
        case.by_pil(x, lambda p: ImageEnhance.Sharpness(p).enhance(1.3)),
        lambda: v2.adjust_sharpness(x, 1.3),
        bench.of_floats(x, lambda y: enhance.sharpness(y, 1.3)),
    )


def _unit(m: Maker, *shape: int) -> Tensor:
    return m.image(*shape, 0.05, 0.95)


ADJUST_SHARPNESS = OpSpec(
    "adjust_sharpness",
    samples=(
        *(
            Sample(id, lambda m, f=f: (_unit(m, 3, 6, 7), f))
            for id, f in (("less", 0.3), ("more", 1.7), ("same", 1.0))
        ),
        Sample("each", lambda m: (_unit(m, 5, 6, 7), m.per_sample(0.4, 1.3, 0.9))),
        Sample("one-row", lambda m: (_unit(m, 3, 1, 4), 0.4), edge=True),
    ),
    of_number=imgops.adjust_sharpness,
    neutral=1,
    reference=sharpness_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    tolerance={**ROUNDED, torch.float32: Tolerance(1e-6), torch.float64: Tolerance(1e-6)},
    reference_name="`PIL.ImageEnhance.Sharpness`",
    difference="uint8, uint16 0; floats 1e-6",
    decomposed_difference="uint8, uint16 0; floats 1e-5",
    section="Filters",
    formula=(
        r"y = b + \alpha\,(x - b),\quad b = \tfrac{1}{13}"
        r"\begin{bmatrix}1&1&1\\1&5&1\\1&1&1\end{bmatrix} * x"
    ),
    border="the outermost pixels are not smoothed, as in PIL",
    transforms=("RandomAdjustSharpness", "PixMix"),
    photo=(
        lambda x: imgops.adjust_sharpness(x, 1.4),
        lambda x: chw(ImageEnhance.Sharpness(photo_pil(x)).enhance(1.4)),
    ),
    picture=lambda x: imgops.adjust_sharpness(x, 8.0),
    benchmarks=(Benchmark("sharpness", "PIL.ImageEnhance.Sharpness (uint8)", _sharpness_calls),),
)


# -- unsharp_mask ------------------------------------------------------------------------------------


def unsharp_reference(image: Array, radius: float, percent: float, threshold: float) -> Array:
    """Run PIL on uint8; on others, three box blurs of fractional width along each axis, in double precision."""
    if image.dtype == np.uint16:
        made = unsharp_reference(image / 65535, radius, percent, threshold)
        return np.rint(made * 65535).astype(np.uint16)
    if image.dtype == np.uint8:
        mask = ImageFilter.UnsharpMask(radius, int(percent), int(threshold))
        return by_pil_planes(image, lambda p: p.filter(mask))
    x = image.astype(np.float64)
    blurred = _boxed(_boxed(x, radius).transpose(0, 2, 1), radius).transpose(0, 2, 1)
    apart = x - blurred
    return np.clip(np.where(np.abs(apart) * 255 > threshold, x + apart * percent / 100, x), 0, 1)


UNSHARP_MASK = OpSpec(
    "unsharp_mask",
    samples=(
        Sample("two", lambda m: (_unit(m, 3, 8, 7), parameter(m, torch.tensor(2.0).double()), 150, 3)),
        Sample("small", lambda m: (_unit(m, 1, 6, 7), 0.4, parameter(m, torch.tensor(80.0).double()), 0.0)),
        Sample("wide", lambda m: (_unit(m, 5, 4, 5), 9.3, 250.9, 20.5)),
        Sample("none", lambda m: (_unit(m, 3, 4, 5), 0, 150, 0)),
        Sample("each", lambda m: (_unit(m, 3, 6, 7), m.per_sample(1.2, 3.1), m.per_sample(50, 120), 2.0)),
        Sample("one-pixel", lambda m: (_unit(m, 3, 1, 1), 2.0), edge=True),
    ),
    refused={
        ValueError: {
            "radius must not be negative, got -1.0": ErrorInput(
                lambda x: imgops.unsharp_mask(x, -1.0), reads_values=True
            ),
            "percent must be a number, got nan": ErrorInput(
                lambda x: imgops.unsharp_mask(x, 1.0, float("nan")), reads_values=True
            ),
        },
        TypeError: {
            "threshold must be a number, a sequence of numbers or a Tensor, got str": lambda x: (
                imgops.unsharp_mask(x, 1.0, 50, "low")
            ),  # type: ignore[arg-type]
        },
    },
    of_number=lambda x, v: imgops.unsharp_mask(x, 1 + v),
    draw=lambda d: (d.image(), d.number(0, 9), d.number(0, 300), d.number(0, 20)),
    reference=unsharp_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    tolerance=REAL,
    reference_name="`PIL.ImageFilter.UnsharpMask`",
    difference="uint8, uint16 0; floats 1e-5",
    decomposed_difference="uint8 0; uint16 1 level; floats 1e-5",
    section="Filters",
    words="``percent`` (PIL)",
    formula=r"y = x + \tfrac{p}{100}\,(x - g_r * x)\ \text{where}\ |x - g_r * x| > t",
    border="edge, as in PIL",
    transforms=("RandomUnsharpMask",),
    photo=(
        lambda x: imgops.unsharp_mask(x, 3.0, 120, 2),
        lambda x: chw(photo_pil(x).filter(ImageFilter.UnsharpMask(3, 120, 2))),
    ),
    picture=lambda x: imgops.unsharp_mask(x, 4.0, 400.0),
    benchmarks=(
        Benchmark("unsharp", "PIL.ImageFilter.UnsharpMask (uint8)", lambda case: _unsharp_calls(case)),
    ),
)


def _unsharp_calls(case: Any) -> bench.Calls:
    from kornia import filters

    x, mask = case.image(), ImageFilter.UnsharpMask(2, 150, 3)
    arrays, scikit = case.arrays(x), bench.scikit("filters.unsharp_mask", 2, 1.5)
    return (
        lambda: imgops.unsharp_mask(x),
        case.by_pil(x, lambda p: p.filter(mask)),
        None,
        bench.of_floats(x, lambda y: filters.unsharp_mask(y, (13, 13), (2.0, 2.0))),
        lambda: [scikit(a) for a in arrays],
    )


def _boxed(x: Array, radius: float) -> Array:
    variance = radius**2 / 3
    whole = int((np.sqrt(12 * variance + 1) - 1) / 2)
    extent = whole + (2 * whole + 1) * (whole * (whole + 1) - 3 * variance) / (
        6 * (variance - (whole + 1) ** 2)
    )
    taps = np.full(2 * whole + 3, 1.0)
    taps[[0, -1]] = extent - whole
    for _ in range(3):
        wide = np.pad(x, [(0, 0), (0, 0), (whole + 1, whole + 1)], mode="edge")
        x = np.lib.stride_tricks.sliding_window_view(wide, len(taps), -1) @ (taps / taps.sum())
    return x


SPECS = (FILTER2D, ADJUST_SHARPNESS, UNSHARP_MASK)
