"""gaussian_blur, median_blur, filter2d and adjust_sharpness."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from PIL import ImageEnhance
from torch import Tensor

import imgops
from tests.specs import _benchmarks as bench
from tests.specs import _plain as plain
from tests.specs._libraries import Array, by_opencv, by_pil_planes, chw, photo_frame, photo_pil, with_border
from tests.specs._maker import Maker, parameter
from tests.specs._spec import LEVEL, Benchmark, ErrorInput, OpSpec, Plain, Sample, Tolerance, number

ones = torch.ones
_UNIT = plain.rand(3, 5, 6)
#: OpenCV itself on float32; in double precision the formula.
_LIKE_OPENCV = {torch.float64: Tolerance(1e-6)}


# -- gaussian_blur -----------------------------------------------------------------------------------


def blur_reference(image: Array, sigma: Array, width: int, height: int) -> Array:
    if sigma.max() < 1e-9:
        return image
    x, y = sigma.tolist()
    # For OpenCV a 0 is the other one of both, or made of the size; a line of 1 pixel is not blurred.
    (width, x), (height, y) = ((n, s) if s >= 1e-9 else (1, 1.0) for n, s in ((width, x), (height, y)))
    how = {"sigmaY": y, "borderType": cv2.BORDER_REFLECT_101}
    return by_opencv(image, lambda a: cv2.GaussianBlur(a, (width, height), x, **how))


def _two_sigmas(m: Maker) -> Tensor:
    pairs = torch.stack([m.per_sample(0.8, 1.5), m.per_sample(1.1, 0.4)], -1)
    return pairs.detach().requires_grad_(m.grad)


def _blur_calls(case: Any) -> bench.Calls:
    from kornia import filters

    x, v2, arrays = case.image(), bench.functional(), case.arrays(case.image())
    how = {"borderType": cv2.BORDER_REFLECT_101}
    return (
        lambda: imgops.gaussian_blur(x, 9, 1.5),
        lambda: [cv2.GaussianBlur(a, (9, 9), 1.5, **how) for a in arrays],
        lambda: v2.gaussian_blur(x, [9, 9], [1.5, 1.5]),
        bench.of_floats(x, lambda y: filters.gaussian_blur2d(y, (9, 9), (1.5, 1.5))),
    )


GAUSSIAN_BLUR = OpSpec(
    "gaussian_blur",
    samples=(
        Sample("five", lambda m: (m.image(3, 7, 6), 5)),
        Sample("wide", lambda m: (m.image(3, 4, 5), (9, 3), (2.0, 0.7))),
        Sample("sigma", lambda m: (m.image(3, 7, 6), (3, 5), parameter(m, torch.tensor(0.9).double()))),
        Sample("each", lambda m: (m.image(3, 7, 6), (3, 5), _two_sigmas(m))),
        Sample("none", lambda m: (m.image(3, 4, 5), 3, 0)),
        Sample("tiny", lambda m: (m.image(3, 4, 5), 3, 1e-200), edge=True),
        Sample("one-pixel", lambda m: (m.image(5, 1, 1), 3, 1.0), edge=True),
    ),
    errors=(
        ErrorInput(
            ValueError,
            "gaussian_blur: kernel_size must be odd and positive, got (4, 3)",
            lambda x: imgops.gaussian_blur(x, (4, 3), 1.0),
        ),
        ErrorInput(
            TypeError,
            "gaussian_blur: kernel_size must have 2 integers (width, height), got str x",
            lambda x: imgops.gaussian_blur(x, ("x", 3)),
        ),
        ErrorInput(
            TypeError,
            "gaussian_blur: sigma must be a number, a sequence of numbers or a Tensor, got tuple",
            lambda x: imgops.gaussian_blur(x, 3, ("x", 3)),
        ),
        ErrorInput(
            ValueError,
            "gaussian_blur: sigma must not be negative, got (-1.0, -1.0)",
            lambda x: imgops.gaussian_blur(x, 3, -1.0),
            reads_values=True,
        ),
        ErrorInput(
            ValueError,
            "gaussian_blur: sigma must not be negative, got (nan, nan)",
            lambda x: imgops.gaussian_blur(x, 3, torch.tensor(float("nan"))),
            reads_values=True,
        ),
        ErrorInput(
            ValueError,
            "gaussian_blur: image must span fewer than 2**31 pixels, got 65536 x 32768",
            lambda x: imgops.gaussian_blur(x[..., :1, :1].expand(2, 3, 2**16, 2**15), 3),
        ),
    ),
    of_number=lambda x, v: imgops.gaussian_blur(x, 5, v),
    reference=blur_reference,
    tolerance=_LIKE_OPENCV,
    decomposed=LEVEL,
    plain=Plain(lambda x, s: imgops.gaussian_blur(x, 3, s), plain.gaussian, (_UNIT, number(0.8))),
    reference_name="`cv2.GaussianBlur`",
    decomposed_difference="1 level; floats 1e-5",
    section="Filters",
    formula=r"y = g_{\sigma_y} *_y (g_{\sigma_x} *_x x),\quad g_\sigma(t) \propto e^{-t^2/2\sigma^2}",
    border="reflect without the border pixel (BORDER_REFLECT_101)",
    transforms=("GaussianBlur",),
    photo=(
        lambda x: imgops.gaussian_blur(x, 9, 1.5),
        lambda x: chw(cv2.GaussianBlur(photo_frame(x), (9, 9), 1.5)),
    ),
    benchmarks=(Benchmark("blur", "cv2.GaussianBlur, 9 x 9", _blur_calls),),
)


# -- median_blur -------------------------------------------------------------------------------------


def median_reference(image: Array, size: int) -> Array:
    """OpenCV for its types and sizes; else NumPy's median of each window."""
    if image.dtype == np.uint8 or (image.dtype == np.float32 and size <= 5):
        return np.concatenate([by_opencv(plane[None], lambda a: cv2.medianBlur(a, size)) for plane in image])
    around = [(0, 0), (size // 2, size // 2), (size // 2, size // 2)]
    wide = np.pad(image, around, mode="edge")
    return np.median(np.lib.stride_tricks.sliding_window_view(wide, (size, size), (1, 2)), (-2, -1))


def _median_calls(case: Any) -> bench.Calls:
    from kornia import filters

    x, arrays = case.image(), case.arrays(case.image())
    return (
        lambda: imgops.median_blur(x, 5),
        lambda: [cv2.medianBlur(a, 5) for a in arrays],
        None,
        bench.of_floats(x, lambda y: filters.median_blur(y, (5, 5))),
    )


def _median_of_windows(x: Tensor) -> Tensor:
    wide = F.pad(x.reshape(-1, 1, *x.shape[-2:]), (1, 1, 1, 1), mode="replicate")
    windows = F.unfold(wide, 3).reshape(-1, 9, *x.shape[-2:])
    return windows.median(1).values.reshape(x.shape)


MEDIAN_BLUR = OpSpec(
    "median_blur",
    samples=(
        Sample("three", lambda m: (m.image(3, 7, 6), 3)),
        Sample("five", lambda m: (m.image(5, 6, 8), 5)),
        Sample("seven", lambda m: (m.image(2, 8, 5), 7)),
        Sample("one", lambda m: (m.image(3, 4, 5), 1)),
        Sample("one-row", lambda m: (m.image(3, 1, 5), 3), edge=True),
    ),
    errors=(
        ErrorInput(
            ValueError,
            "median_blur: kernel_size must be odd and positive, got 4",
            lambda x: imgops.median_blur(x, 4),
        ),
        ErrorInput(
            TypeError,
            "median_blur: kernel_size must be an integer, got tuple (3, 3)",
            lambda x: imgops.median_blur(x, (3, 3)),
        ),
    ),
    reference=median_reference,
    decomposed={},
    plain=Plain(lambda x: imgops.median_blur(x, 3), _median_of_windows, (_UNIT,)),
    reference_name="`cv2.medianBlur`",
    decomposed_difference="0",
    section="Filters",
    formula=r"y_{i,j} = \operatorname{median}\{x_{i+u,\,j+v} : |u|, |v| \le \lfloor k/2 \rfloor\}",
    border="edge (BORDER_REPLICATE)",
    photo=(
        lambda x: imgops.median_blur(x, 5),
        lambda x: chw(cv2.medianBlur(photo_frame(x), 5)),
    ),
    benchmarks=(Benchmark("median", "cv2.medianBlur, 5 x 5", _median_calls),),
)


# -- filter2d ----------------------------------------------------------------------------------------

_EDGES = torch.tensor([[0.5, -1.0], [0.25, 0.75], [-0.3, 0.2]], dtype=torch.float64)
_PHOTO_KERNEL = np.array([[0.1, -0.2, 0.1], [0.3, 0.9, -0.4], [0.0, 0.1, 0.1]], np.float32)


def filter2d_reference(image: Array, kernel: Array, border: str) -> Array:
    rows, columns = kernel.shape
    around = rows // 2, rows - 1 - rows // 2, columns // 2, columns - 1 - columns // 2
    how = lambda a, **border: cv2.filter2D(a, -1, kernel, **border)
    return by_opencv(image, lambda a: with_border(a, border, around, how))


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
            Sample(border, lambda m, b=border: (m.image(3, 7, 6), parameter(m, _EDGES), b))
            for border in ("constant", "edge", "reflect", "symmetric", "wrap")
        ),
        Sample(
            "each",
            lambda m: (
                m.image(3, 7, 6),
                (_EDGES * m.per_sample(1, 0.4).detach()[..., None, None]).requires_grad_(m.grad),
            ),
        ),
    ),
    errors=(
        ErrorInput(
            ValueError,
            "filter2d: kernel must be (h, w) or (..., h, w), got shape (3,)",
            lambda x: imgops.filter2d(x, ones(3)),
        ),
        ErrorInput(
            ValueError,
            "filter2d: image must span fewer than 2**31 pixels, got 65536 x 32768",
            lambda x: imgops.filter2d(x[..., :1, :1].expand(2, 3, 2**16, 2**15), ones(3, 3)),
        ),
    ),
    reference=filter2d_reference,
    tolerance=_LIKE_OPENCV,
    decomposed=LEVEL,
    plain=Plain(imgops.filter2d, plain.correlated, (_UNIT, plain.rand(3, 3, low=-1, high=1))),
    reference_name="`cv2.filter2D`",
    decomposed_difference="1 level; floats 1e-5",
    section="Filters",
    formula=r"y_{i,j} = \sum_{u,v} k_{u,v}\, x_{i+u-\lfloor h/2\rfloor,\, j+v-\lfloor w/2\rfloor}",
    border="``border``: constant, edge, reflect, symmetric or wrap",
    photo=(
        lambda x: imgops.filter2d(x, torch.from_numpy(_PHOTO_KERNEL)),
        lambda x: chw(cv2.filter2D(photo_frame(x), -1, _PHOTO_KERNEL)),
    ),
    benchmarks=(Benchmark("filter2d", "cv2.filter2D, 5 x 5", _filter2d_calls),),
)


# -- adjust_sharpness --------------------------------------------------------------------------------

_SMOOTH = torch.tensor([[1.0, 1, 1], [1, 5, 1], [1, 1, 1]], dtype=torch.float64) / 13


def sharpness_reference(image: Array, factor: float) -> Array:
    if image.dtype == np.uint8:
        return by_pil_planes(image, lambda p: ImageEnhance.Sharpness(p).enhance(factor))
    x = image.astype(np.float64)
    if min(x.shape[1:]) < 3:
        return x
    smooth = np.stack([cv2.filter2D(p, -1, _SMOOTH.numpy()) for p in np.ascontiguousarray(x)])
    for rim in ((..., 0), (..., -1), (..., 0, slice(None)), (..., -1, slice(None))):
        smooth[rim] = x[rim]
    return np.clip(smooth + factor * (x - smooth), 0, 1)


def _sharpened(x: Tensor, factor: Tensor) -> Tensor:
    smooth = F.conv2d(x.reshape(-1, 1, *x.shape[-2:]), _SMOOTH[None, None])
    smooth = smooth.reshape(*x.shape[:-2], x.shape[-2] - 2, -1)
    inner = plain.blend(smooth, x[..., 1:-1, 1:-1], factor)
    rim = torch.ones(x.shape[-2:], dtype=torch.bool)
    rim[1:-1, 1:-1] = False
    return torch.where(rim, x, F.pad(inner, (1, 1, 1, 1)))


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
    tolerance={
        torch.float16: Tolerance(1e-3),
        torch.bfloat16: Tolerance(8e-3),
        torch.float32: Tolerance(1e-6),
        torch.float64: Tolerance(1e-6),
    },
    plain=Plain(imgops.adjust_sharpness, _sharpened, (_UNIT, number(1.4))),
    reference_name="`PIL.ImageEnhance.Sharpness`",
    difference="uint8 0; floats 1e-6",
    decomposed_difference="uint8 0; floats 1e-5",
    section="Filters",
    formula=(
        r"y = b + \alpha\,(x - b),\quad b = \tfrac{1}{13}"
        r"\begin{bmatrix}1&1&1\\1&5&1\\1&1&1\end{bmatrix} * x"
    ),
    border="the outermost pixels are not smoothed, as in PIL",
    transforms=("RandomAdjustSharpness",),
    photo=(
        lambda x: imgops.adjust_sharpness(x, 1.4),
        lambda x: chw(ImageEnhance.Sharpness(photo_pil(x)).enhance(1.4)),
    ),
    benchmarks=(Benchmark("sharpness", "PIL.ImageEnhance.Sharpness (uint8)", _sharpness_calls),),
)

SPECS = (GAUSSIAN_BLUR, MEDIAN_BLUR, FILTER2D, ADJUST_SHARPNESS)
