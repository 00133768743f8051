"""gaussian_blur, box_blur, median_blur, bilateral_filter, and motion_blur, which is made of other operators."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

import imgops
from tests.specs import _benchmarks as bench
from tests.specs._libraries import BORDERS, Array, by_opencv, chw, photo_frame, with_border
from tests.specs._maker import LEVELS_AND_FLOATS, Maker, parameter
from tests.specs._spec import LEVEL, REAL, Benchmark, ErrorInput, OpSpec, Sample, Tolerance
from tests.specs.geometry import OPENCV_IS_EXACT

_BORDER = "``padding_mode``: constant, edge, reflect, symmetric or wrap"


# -- box_blur ----------------------------------------------------------------------------------------


def box_reference(image: Array, width: int, height: int, padding_mode: str) -> Array:
    """Run OpenCV, and for a uint8 window of 2 pixels, which OpenCV 5 makes too light, its float64 filter."""
    around = height // 2, height - 1 - height // 2, width // 2, width - 1 - width // 2
    if image.dtype == np.uint8 and width * height == 2:
        mean = box_reference(image.astype(np.float64), width, height, padding_mode)
        return np.floor(mean + 0.5).astype(np.uint8)
    how = lambda a, **border: cv2.blur(a, (width, height), **border)
    return by_opencv(image, lambda a: with_border(a, padding_mode, around, how))


BOX_BLUR = OpSpec(
    "box_blur",
    samples=(
        Sample("three", lambda m: (m.image(3, 7, 6), 3), linear=True),
        Sample("wide", lambda m: (m.image(5, 6, 8), (7, 1), "edge"), linear=True),
        Sample("even", lambda m: (m.image(3, 6, 8), (4, 2), "symmetric"), linear=True),
        Sample("constant", lambda m: (m.image(1, 6, 8), 5, "constant"), linear=True),
        Sample("wrap", lambda m: (m.image(3, 6, 8), (3, 5), "wrap"), linear=True),
        Sample("two-across", lambda m: (m.image(3, 6, 8), (2, 1)), linear=True),
        Sample("two-down", lambda m: (m.image(3, 6, 8), (1, 2), "wrap"), linear=True),
        Sample("one-row", lambda m: (m.image(3, 1, 5), 3), linear=True, edge=True),
    ),
    refused={
        ValueError: {
            "kernel_size must be positive, got (3, 0)": lambda x: imgops.box_blur(x, (3, 0)),
            "padding_mode must be one of 'constant', 'edge', 'reflect', 'symmetric', 'wrap', got 'zero'": lambda x: (
                imgops.box_blur(x, 3, "zero")
            ),
        },
        TypeError: {
            "kernel_size must have 2 integers (width, height), got float": lambda x: imgops.box_blur(x, 3.0),  # type: ignore[arg-type]
            "kernel_size must have 2 integers (width, height), got ndarray": lambda x: imgops.box_blur(
                x, np.array(3)
            ),  # type: ignore[arg-type]
            "kernel_size must have 2 integers (width, height), got set": lambda x: imgops.box_blur(x, {3, 5}),  # type: ignore[arg-type]
        },
    },
    draw=lambda d: (d.image(), d.whole(1, 9), d.whole(1, 9), d.padding_mode()),
    reference=box_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    decomposed=LEVEL,
    reference_name="`cv2.blur`",
    decomposed_difference="uint8: odd areas 0, even ones 1 level; uint16 1 level; floats 1e-5",
    section="Blur",
    formula=r"y_{i,j} = \tfrac{1}{wh} \sum_{u,v} x_{i+u-\lfloor h/2\rfloor,\, j+v-\lfloor w/2\rfloor}",
    border=_BORDER,
    transforms=("RandomBoxBlur",),
    photo=(lambda x: imgops.box_blur(x, 9), lambda x: chw(cv2.blur(photo_frame(x), (9, 9)))),
    picture=lambda x: imgops.box_blur(x, 17),
    benchmarks=(
        Benchmark(
            "box blur",
            "cv2.blur, 9 x 9",
            bench.filters(
                lambda x: imgops.box_blur(x, 9),
                lambda a: cv2.blur(a, (9, 9)),
                lambda kornia, y: kornia.filters.box_blur(y, (9, 9), separable=True),
            ),
        ),
    ),
)


# -- bilateral_filter --------------------------------------------------------------------------------


def bilateral_reference(
    image: Array, color: float, space: float, kernel_size: int, padding_mode: str
) -> Array:
    """Run OpenCV, and for float64, which OpenCV does not support, NumPy."""
    if image.dtype == np.float64:
        return _bilateral(image, color, space, kernel_size, padding_mode)
    frame = np.ascontiguousarray(image.transpose(1, 2, 0)) if len(image) == 3 else image[0]
    how = lambda a, borderType: cv2.bilateralFilter(a, kernel_size, color, space, borderType=borderType)
    reach = (max(kernel_size // 2, 1),) * 4
    if padding_mode == "constant" and not cv2.ipp.useIPP():  # its table of weights ignores the border's 0
        frame, padding_mode = cv2.copyMakeBorder(frame, *reach, cv2.BORDER_CONSTANT), "edge"
        out = how(frame, cv2.BORDER_REPLICATE)[reach[0] : -reach[0], reach[0] : -reach[0]]
    elif padding_mode == "wrap":  # unlike OpenCV's other filters, it supports this border
        out = how(frame, cv2.BORDER_WRAP)
    else:
        out = with_border(frame, padding_mode, reach, how)
    return out.reshape(*out.shape[:2], -1).transpose(2, 0, 1)


def _bilateral(image: Array, color: float, space: float, kernel_size: int, padding_mode: str) -> Array:
    radius = max(kernel_size // 2, 1)
    modes = {
        "reflect": "reflect",
        "edge": "edge",
        "wrap": "wrap",
        "symmetric": "symmetric",
        "constant": "constant",
    }
    wide = np.pad(image, [(0, 0), (radius, radius), (radius, radius)], mode=modes[padding_mode])
    out = np.empty_like(image)
    y, x = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    near = np.where(x * x + y * y <= radius * radius, np.exp(-0.5 * (x * x + y * y) / space**2), 0)
    for i, j in np.ndindex(*image.shape[1:]):
        window = wide[:, i : i + 2 * radius + 1, j : j + 2 * radius + 1]
        apart = np.abs(window - image[:, i : i + 1, j : j + 1]).sum(0)
        weight = near * np.exp(-0.5 * (apart / color) ** 2)
        out[:, i, j] = (window * weight).sum((1, 2)) / weight.sum()
    return out


def _of_color(m: Maker, value: float) -> Tensor:
    return parameter(m, torch.tensor(value if m.dtype.is_floating_point else 40 * value, dtype=torch.float64))


BILATERAL_FILTER = OpSpec(
    "bilateral_filter",
    samples=(
        Sample(
            "rgb",
            lambda m: (m.image(3, 7, 6), 5, _of_color(m, 1.3), parameter(m, torch.tensor(1.7).double())),
        ),
        Sample("gray", lambda m: (m.image(1, 7, 6), 7, _of_color(m, 0.8), 2.0, "edge")),
        Sample("small", lambda m: (m.image(1, 7, 6), 3, _of_color(m, 0.8), 2.0, "symmetric")),
        Sample("wrap", lambda m: (m.image(3, 6, 7), 4, _of_color(m, 2.0), 1.0, "wrap")),
        Sample("each", lambda m: (m.image(3, 7, 6), 5, 0.9, m.per_sample(1.3, 0.6), "constant")),
    ),
    refused={
        ValueError: {
            "image must have 1 or 3 channels, because cv2.bilateralFilter takes no others, got 2": lambda x: (
                imgops.bilateral_filter(x[:, :2], 3, 1, 1)
            ),
            "kernel_size must be positive, got 0": lambda x: imgops.bilateral_filter(x, 0, 1, 1),
            "sigma_color must be positive, got nan": ErrorInput(
                lambda x: imgops.bilateral_filter(x, 3, float("nan"), 1), reads_values=True
            ),
        }
    },
    of_number=lambda x, v: imgops.bilateral_filter(x, 3, v, 1.0),
    draw=lambda d: (
        d.image(d.choice(1, 3)),
        d.number(0.1 * d.white, d.white),
        d.number(0.5, 4),
        d.whole(1, 9),
        d.padding_mode(),
    ),
    reference=bilateral_reference,
    tolerance={torch.float64: Tolerance(1e-12)},
    decomposed={**LEVEL, torch.float32: Tolerance(1e-4), torch.float64: Tolerance(1e-12)},
    smooth_on_gray=False,
    reference_name="`cv2.bilateralFilter`",
    decomposed_difference="1 level; float32 1e-4",
    section="Blur",
    formula=(
        r"y_p = \frac{\sum_q w_{pq}\, x_q}{\sum_q w_{pq}},\quad "
        r"w_{pq} = e^{-|p-q|^2/2\sigma_s^2}\, e^{-\|x_p-x_q\|_1^2/2\sigma_c^2}"
    ),
    border=_BORDER,
    transforms=("RandomBilateral",),
    photo=(
        lambda x: imgops.bilateral_filter(x, 9, 60, 3),
        lambda x: chw(cv2.bilateralFilter(photo_frame(x), 9, 60, 3)),
    ),
    picture=lambda x: imgops.bilateral_filter(x, 11, 90.0, 6.0),
    benchmarks=(
        Benchmark(
            "bilateral",
            "cv2.bilateralFilter, kernel size 7",
            bench.filters(
                lambda x: imgops.bilateral_filter(x, 7, 30.0, 2.0),
                lambda a: cv2.bilateralFilter(a, 7, 30.0, 2.0),
                lambda kornia, y: kornia.filters.bilateral_blur(y, (7, 7), 0.12, (2.0, 2.0)),
                frames=True,
            ),
        ),
    ),
)


# -- motion_blur -------------------------------------------------------------------------------------


def motion_reference(image: Array, size: int, angle: float, balance: float, padding_mode: str) -> Array:
    """Draw the line and turn it with OpenCV, then run cv2.filter2D."""
    row, balance = np.zeros((size, size)), np.clip(balance, -1, 1)
    row[size // 2] = np.linspace(0.5 + 0.5 * balance, 0.5 - 0.5 * balance, size)
    turn = cv2.getRotationMatrix2D((size // 2, size // 2), angle, 1)
    kernel = cv2.warpAffine(row.astype(np.float32), turn, (size, size), flags=cv2.INTER_LINEAR)
    kernel = kernel.astype(np.float64) / kernel.sum()
    return by_opencv(image, lambda a: cv2.filter2D(a, -1, kernel, borderType=BORDERS[padding_mode]))


MOTION_BLUR = OpSpec(
    "motion_blur",
    samples=(
        Sample("across", lambda m: (m.image(3, 9, 8), 5, 0.0, 0.0, "edge")),
        Sample(
            "turned",
            lambda m: (
                m.image(3, 9, 8),
                5,
                parameter(m, torch.tensor(31.0).double()),
                parameter(m, torch.tensor(0.4).double()),
                "reflect",
            ),
        ),
        Sample(
            "each",
            lambda m: (m.image(1, 9, 8), 7, m.per_sample(20, -75), m.per_sample(-0.5, 0.3), "constant"),
        ),
    ),
    refused={
        ValueError: {
            "kernel_size must be odd and at least 3, got 4": lambda x: imgops.motion_blur(x, 4),
            "angle must have one value, or 2 values, one for each image, got shape (3,)": lambda x: (
                imgops.motion_blur(x, 5, torch.ones(3))
            ),
            "angle must be finite, got inf": lambda x: imgops.motion_blur(x, 5, float("inf")),
            "balance must be a number, got nan": lambda x: imgops.motion_blur(x, 5, 0.0, float("nan")),
            "padding_mode must be one of 'constant', 'edge', 'reflect', 'symmetric', 'wrap', got 'zero'": lambda x: (
                imgops.motion_blur(x, 5, padding_mode="zero")
            ),
        },
        TypeError: {
            "balance must be a number, a sequence of numbers or a Tensor, got str": lambda x: (
                imgops.motion_blur(x, 5, 0.0, "left")
            ),  # type: ignore[arg-type]
            "image must be uint8, uint16 or floating point, got torch.int16": lambda x: imgops.motion_blur(
                x.short(), 5
            ),
        },
    },
    of_number=lambda x, v: imgops.motion_blur(x, 3, 10 * v),
    reference=motion_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    cores=(3, 0, 0, 0),
    # OpenCV draws the line in float32, and before OpenCV 5 at positions rounded to 1/32 pixel.
    tolerance={**LEVEL, torch.float64: Tolerance(2e-5), torch.float32: Tolerance(2e-5)}
    if OPENCV_IS_EXACT
    else {d: Tolerance(0.05, levels=6) for d in (torch.uint8, *REAL)}
    | {torch.uint16: Tolerance(levels=1500)},
    reference_name="`cv2.filter2D`",
    difference="1 level; floats 2e-5",
    section="Blur",
    words="``balance``: a ramp of weights along the line (albumentations)",
    formula=r"y = k_{\theta,d} * x,\quad k\ \text{a line through the middle, turned by}\ \theta",
    border=_BORDER,
    photo=(
        lambda x: imgops.motion_blur(x, 15, 30.0),
        lambda x: torch.from_numpy(np.ascontiguousarray(motion_reference(x.numpy(), 15, 30.0, 0.0, "edge"))),
    ),
    picture=lambda x: imgops.motion_blur(x, 31, 25.0),
    benchmarks=(
        Benchmark(
            "motion blur",
            "cv2.filter2D, 9 x 9",
            bench.filters(
                lambda x: imgops.motion_blur(x, 9, 30.0),
                lambda a: cv2.filter2D(a, -1, np.full((9, 9), 1 / 81, np.float32)),
                lambda kornia, y: kornia.filters.motion_blur(y, 9, 30.0, 0.0),
            ),
        ),
    ),
)


# -- gaussian_blur -----------------------------------------------------------------------------------

#: float32 is OpenCV itself; double precision is the formula.


def blur_reference(image: Array, sigma: Array, width: int, height: int) -> Array:
    x, y = sigma.tolist()
    if 0 < x < 1e-9:  # OpenCV divides by its square
        return image
    how = {"sigmaY": y, "borderType": cv2.BORDER_REFLECT_101}
    return by_opencv(image, lambda a: cv2.GaussianBlur(a, (width, height), x, **how))


def _sigmas_of_sizes(m: Maker) -> Tensor:
    return torch.stack([m.per_sample(0.0, 0.9, -1.0), m.per_sample(1.2, 0.0, 0.0)], -1).detach()


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
        Sample("zero", lambda m: (m.image(3, 9, 8), (7, 9), 0)),
        # At 0 the size of the kernel takes over, so that finite differences see a jump.
        Sample("zeros", lambda m: (m.image(3, 7, 6), (3, 11), _sigmas_of_sizes(m)), gradcheck=False),
        Sample("tiny", lambda m: (m.image(3, 4, 5), 3, 1e-200), edge=True),
        Sample("one-pixel", lambda m: (m.image(5, 1, 1), 3, 1.0), edge=True),
    ),
    refused={
        ValueError: {
            "kernel_size must be odd and positive, got (4, 3)": lambda x: imgops.gaussian_blur(
                x, (4, 3), 1.0
            ),
            "sigma must not be NaN, got (nan, nan)": ErrorInput(
                lambda x: imgops.gaussian_blur(x, 3, torch.tensor(float("nan"))), reads_values=True
            ),
            "image must span fewer than 2**31 pixels, got 65536 x 32768": lambda x: imgops.gaussian_blur(
                x[..., :1, :1].expand(2, 3, 2**16, 2**15), 3
            ),
        },
        TypeError: {
            "kernel_size must have 2 integers (width, height), got str x": lambda x: imgops.gaussian_blur(
                x, ("x", 3)
            ),
            "sigma must be a number, a sequence of numbers or a Tensor, got tuple": lambda x: (
                imgops.gaussian_blur(x, 3, ("x", 3))
            ),
        },
    },
    of_number=lambda x, v: imgops.gaussian_blur(x, 5, v),
    reference=blur_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    tolerance={torch.float64: Tolerance(1e-6)},
    decomposed=LEVEL,
    reference_name="`cv2.GaussianBlur`",
    decomposed_difference="1 level; floats 1e-5",
    section="Blur",
    formula=r"y = g_{\sigma_y} *_y (g_{\sigma_x} *_x x),\quad g_\sigma(t) \propto e^{-t^2/2\sigma^2}",
    border="reflect without the border pixel (BORDER_REFLECT_101)",
    transforms=("GaussianBlur", "CopyPaste", "RandomFog"),
    photo=(
        lambda x: imgops.gaussian_blur(x, 9, 1.5),
        lambda x: chw(cv2.GaussianBlur(photo_frame(x), (9, 9), 1.5)),
    ),
    picture=lambda x: imgops.gaussian_blur(x, 25, 6.0),
    benchmarks=(Benchmark("blur", "cv2.GaussianBlur, 9 x 9", _blur_calls),),
)


# -- median_blur -------------------------------------------------------------------------------------


def median_reference(image: Array, size: int) -> Array:
    """Run OpenCV for its dtypes and sizes; otherwise take NumPy's median of each window."""
    if image.dtype == np.uint8 or (image.dtype in (np.uint16, np.float32) and size <= 5):
        return np.concatenate([by_opencv(plane[None], lambda a: cv2.medianBlur(a, size)) for plane in image])
    around = [(0, 0), (size // 2, size // 2), (size // 2, size // 2)]
    wide = np.pad(image, around, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(wide, (size, size), (1, 2))
    return np.median(windows, (-2, -1)).astype(image.dtype)


def _median_calls(case: Any) -> bench.Calls:
    from kornia import filters

    x, arrays = case.image(), case.arrays(case.image())
    return (
        lambda: imgops.median_blur(x, 5),
        lambda: [cv2.medianBlur(a, 5) for a in arrays],
        None,
        bench.of_floats(x, lambda y: filters.median_blur(y, (5, 5))),
    )


MEDIAN_BLUR = OpSpec(
    "median_blur",
    samples=(
        Sample("three", lambda m: (m.image(3, 7, 6), 3)),
        Sample("five", lambda m: (m.image(5, 6, 8), 5)),
        Sample("seven", lambda m: (m.image(2, 8, 5), 7)),
        Sample("one", lambda m: (m.image(3, 4, 5), 1)),
        Sample("one-row", lambda m: (m.image(3, 1, 5), 3), edge=True),
    ),
    refused={
        ValueError: {"kernel_size must be odd and positive, got 4": lambda x: imgops.median_blur(x, 4)},
        TypeError: {
            "kernel_size must be an integer, got tuple (3, 3)": lambda x: imgops.median_blur(x, (3, 3))
        },
    },
    reference=median_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    decomposed={},
    reference_name="`cv2.medianBlur`",
    decomposed_difference="0",
    section="Blur",
    formula=r"y_{i,j} = \operatorname{median}\{x_{i+u,\,j+v} : |u|, |v| \le \lfloor k/2 \rfloor\}",
    border="edge (BORDER_REPLICATE)",
    transforms=("RandomMedianBlur",),
    photo=(lambda x: imgops.median_blur(x, 5), lambda x: chw(cv2.medianBlur(photo_frame(x), 5))),
    picture=lambda x: imgops.median_blur(x, 13),
    benchmarks=(Benchmark("median", "cv2.medianBlur, 5 x 5", _median_calls),),
)


SPECS = (GAUSSIAN_BLUR, BOX_BLUR, MEDIAN_BLUR, BILATERAL_FILTER, MOTION_BLUR)
