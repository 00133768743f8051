"""sobel, scharr, laplacian and canny."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

import imgops
from tests.specs import _benchmarks as bench
from tests.specs._libraries import Array, by_opencv, chw, photo_frame, with_border
from tests.specs._maker import LEVELS_AND_FLOATS, Maker
from tests.specs._spec import CLOSE, Benchmark, ErrorInput, OpSpec, Refused, Sample, Tolerance, merged

_DEPTHS = {
    np.dtype(np.uint8): cv2.CV_16S,
    np.dtype(np.uint16): cv2.CV_32F,
    np.dtype(np.float32): cv2.CV_32F,
    np.dtype(np.float64): cv2.CV_64F,
}
_BORDER = "``padding_mode``: constant, edge, reflect, symmetric or wrap"
#: A kernel of 7 sums values of some thousands that nearly cancel.
_LARGE = {**CLOSE, torch.float32: Tolerance(1e-4)}
_CANCELING = {torch.float32: Tolerance(1e-3)}
_DTYPES = "uint8 → int16, uint16 → float32, floats"


def _derivative(image: Array, padding_mode: str, reach: int, call: Callable[..., Array]) -> Array:
    depth = _DEPTHS[image.dtype]
    how = lambda a, **border: call(a, depth, **border)
    return by_opencv(image, lambda a: with_border(a, padding_mode, (reach,) * 4, how))


def sobel_reference(image: Array, dx: int, dy: int, size: int, padding_mode: str) -> Array:
    reach = max(size, 3) // 2
    return _derivative(
        image, padding_mode, reach, lambda a, d, **how: cv2.Sobel(a, d, dx, dy, ksize=size, **how)
    )


def scharr_reference(image: Array, dx: int, dy: int, padding_mode: str) -> Array:
    return _derivative(image, padding_mode, 1, lambda a, d, **how: cv2.Scharr(a, d, dx, dy, **how))


def laplacian_reference(image: Array, size: int, padding_mode: str) -> Array:
    def call(a: Array, depth: int, **how: int) -> Array:
        # Without AVX-512, OpenCV's 5 x 5 on float32 rounds by the address of its result: it has to be given one.
        made = _at_a_multiple_of_64(a.shape, a.dtype) if a.dtype == np.float32 else None
        return cv2.Laplacian(a, depth, made, ksize=size, **how)

    return _derivative(image, padding_mode, max(size, 3) // 2, call)


def _at_a_multiple_of_64(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return memory for an array, aligned as PyTorch's and OpenCV's own is, which NumPy's need not be."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def _benchmark(
    name: str,
    library: str,
    ours: Callable[[Tensor], Tensor],
    raw: Callable[..., Any],
    theirs: str,
    scikit: str,
    **options: Any,
) -> tuple[Benchmark]:
    calls = bench.filters(
        ours,
        lambda a: raw(a, _DEPTHS[a.dtype]),
        lambda kornia, y: getattr(kornia.filters, theirs)(y, **options).flatten(1, -3)[:, :3],
        bench.planes(bench.scikit(f"filters.{scikit}")),
    )
    return (Benchmark(name, library, calls),)


def _refused(call: Callable[..., Tensor]) -> Refused:
    """Return the errors that every derivative raises."""
    return {
        TypeError: {
            "image must be uint8, uint16 or floating point, got torch.int16": lambda x: call(x.short())
        },
        ValueError: {
            "padding_mode must be one of 'constant', 'edge', 'reflect', 'symmetric', 'wrap', got 'none'": lambda x: (
                call(x, padding_mode="none")
            )
        },
    }


SOBEL = OpSpec(
    "sobel",
    samples=(
        Sample("x", lambda m: (m.image(3, 7, 6), 1, 0), linear=True),
        Sample("y", lambda m: (m.image(3, 7, 6), 0, 1, 1, "edge"), linear=True),
        Sample("both", lambda m: (m.image(5, 7, 6), 1, 2, 5, "symmetric"), linear=True),
        Sample("seven", lambda m: (m.image(1, 8, 9), 1, 0, 7, "constant"), linear=True, decomposed=_LARGE),
        Sample("wrap", lambda m: (m.image(3, 7, 6), 0, 2, 3, "wrap"), linear=True),
        Sample("one-row", lambda m: (m.image(3, 1, 4), 0, 1), edge=True, linear=True),
    ),
    refused=merged(
        _refused(lambda x, padding_mode="edge": imgops.sobel(x, 1, 0, 3, padding_mode)),
        {
            ValueError: {
                "kernel_size must be one of 1, 3, 5, 7, got 4": lambda x: imgops.sobel(x, 1, 0, 4),
                "dx and dy must be from 0 to 2, and not both 0, got (0, 0)": lambda x: imgops.sobel(x, 0, 0),
                "dx and dy must be from 0 to 4, and not both 0, got (5, 0)": lambda x: imgops.sobel(
                    x, 5, 0, 5
                ),
            },
            TypeError: {
                "dx must be an integer, got float 1.5": lambda x: imgops.sobel(x, 1.5, 0)  # type: ignore[arg-type]
            },
        },
    ),
    draw=lambda d: (
        d.image(),
        *d.choice((1, 0), (0, 1), (1, 1), (2, 0)),
        d.choice(3, 5, 7),
        d.padding_mode(),
    ),
    drawn=_CANCELING,
    reference=sobel_reference,
    dtypes=LEVELS_AND_FLOATS,
    reference_name="`cv2.Sobel`",
    dtype_names=_DTYPES,
    decomposed_difference="uint8 0; uint16, floats 1e-5",
    section="Edges",
    words="``dx``, ``dy`` (OpenCV)",
    formula=r"y = S_{d_y} *_y (S_{d_x} *_x x)",
    border=_BORDER,
    photo=(lambda x: imgops.sobel(x, 1, 0), lambda x: chw(cv2.Sobel(photo_frame(x), cv2.CV_16S, 1, 0))),
    picture=lambda x: imgops.sobel(x, 0, 1),
    benchmarks=_benchmark(
        "sobel",
        "cv2.Sobel, 3 x 3",
        lambda x: imgops.sobel(x, 1, 0),
        lambda a, d: cv2.Sobel(a, d, 1, 0),
        "spatial_gradient",
        "sobel_v",
    ),
)

SCHARR = OpSpec(
    "scharr",
    samples=(
        Sample("x", lambda m: (m.image(3, 7, 6), 1, 0), linear=True),
        Sample("y", lambda m: (m.image(3, 7, 6), 0, 1, "edge"), linear=True),
        Sample("wrap", lambda m: (m.image(5, 5, 6), 0, 1, "wrap"), linear=True),
    ),
    refused=merged(
        _refused(lambda x, padding_mode="edge": imgops.scharr(x, 1, 0, padding_mode)),
        {ValueError: {"dx and dy must be 1 and 0, or 0 and 1, got (1, 1)": lambda x: imgops.scharr(x, 1, 1)}},
    ),
    draw=lambda d: (d.image(), *d.choice((1, 0), (0, 1)), d.padding_mode()),
    reference=scharr_reference,
    dtypes=LEVELS_AND_FLOATS,
    reference_name="`cv2.Scharr`",
    dtype_names=_DTYPES,
    decomposed_difference="uint8 0; uint16, floats 1e-5",
    section="Edges",
    words="``dx``, ``dy`` (OpenCV)",
    formula=r"y = \begin{bmatrix}-3&0&3\\-10&0&10\\-3&0&3\end{bmatrix} * x\ \text{along x}",
    border=_BORDER,
    photo=(lambda x: imgops.scharr(x, 0, 1), lambda x: chw(cv2.Scharr(photo_frame(x), cv2.CV_16S, 0, 1))),
    picture=lambda x: imgops.scharr(x, 1, 0),
    benchmarks=_benchmark(
        "scharr",
        "cv2.Scharr",
        lambda x: imgops.scharr(x, 1, 0),
        lambda a, d: cv2.Scharr(a, d, 1, 0),
        "spatial_gradient",
        "scharr_v",
    ),
)

LAPLACIAN = OpSpec(
    "laplacian",
    samples=(
        Sample("cross", lambda m: (m.image(3, 7, 6),), linear=True),
        Sample("three", lambda m: (m.image(3, 7, 6), 3, "edge"), linear=True),
        Sample("five", lambda m: (m.image(5, 7, 6), 5, "constant"), linear=True),
        Sample("seven", lambda m: (m.image(2, 8, 9), 7, "wrap"), linear=True, decomposed=_LARGE),
    ),
    refused=merged(
        _refused(lambda x, padding_mode="edge": imgops.laplacian(x, 1, padding_mode)),
        {ValueError: {"kernel_size must be one of 1, 3, 5, 7, got 9": lambda x: imgops.laplacian(x, 9)}},
    ),
    draw=lambda d: (d.image(), d.choice(1, 3, 5, 7), d.padding_mode()),
    drawn=_CANCELING,
    reference=laplacian_reference,
    dtypes=LEVELS_AND_FLOATS,
    reference_name="`cv2.Laplacian`",
    dtype_names=_DTYPES,
    decomposed_difference="uint8 0; uint16, floats 1e-5",
    section="Edges",
    formula=r"y = \frac{\partial^2 x}{\partial u^2} + \frac{\partial^2 x}{\partial v^2}",
    border=_BORDER,
    photo=(
        lambda x: imgops.laplacian(x, 3),
        lambda x: chw(cv2.Laplacian(photo_frame(x), cv2.CV_16S, ksize=3)),
    ),
    picture=lambda x: imgops.laplacian(x, 3),
    benchmarks=_benchmark(
        "laplacian",
        "cv2.Laplacian, 3 x 3",
        lambda x: imgops.laplacian(x, 3),
        lambda a, d: cv2.Laplacian(a, d, ksize=3),
        "laplacian",
        "laplace",
        kernel_size=3,
    ),
)


_LEARNED = torch.ones((), requires_grad=True)


def canny_reference(image: Array, low: float, high: float, kernel_size: int, l2: bool) -> Array:
    frame = image[0] if len(image) == 1 else np.ascontiguousarray(image.transpose(1, 2, 0))
    return cv2.Canny(frame, low, high, apertureSize=kernel_size, L2gradient=l2)[None]


def _shapes(m: Maker, channels: int = 3) -> Tensor:
    """Make shapes that are large enough for edges to continue for some pixels."""
    small = replace(m, dtype=torch.uint8).image(channels, 6, 5)
    return small.repeat_interleave(3, -2).repeat_interleave(4, -1)


CANNY = OpSpec(
    "canny",
    samples=(
        Sample("rgb", lambda m: (_shapes(m), 100, 400)),
        Sample("gray", lambda m: (replace(m, dtype=torch.uint8).image(1, 9, 8), 900, 300, 3, True)),
        Sample("five", lambda m: (_shapes(m, 1), 1000, 4000, 5)),
        Sample("seven", lambda m: (_shapes(m, 5), 3000.5, 40000, 7, True)),
        Sample("each", lambda m: (_shapes(m), m.per_sample(90, 200).detach(), 500)),
        Sample("one-row", lambda m: (replace(m, dtype=torch.uint8).image(1, 1, 7), 10, 20), edge=True),
    ),
    refused={
        TypeError: {
            "image must be uint8, got torch.float32": lambda x: imgops.canny(x, 1, 2),
            "l2_gradient must be a bool, got 7": ErrorInput(
                lambda x: imgops.canny(x, 1, 2, 3, 7), dtype=torch.uint8
            ),  # type: ignore[arg-type]
            "l2_gradient must be a bool, got Tensor": ErrorInput(
                lambda x: imgops.canny(x, 1, 2, 3, _LEARNED > 0), dtype=torch.uint8
            ),  # type: ignore[arg-type]
        },
        ValueError: {
            "image must have at least 1 channel, got 0": ErrorInput(
                lambda x: imgops.canny(x[:, :0], 1, 2), dtype=torch.uint8
            ),
            "high must be a number, got nan": ErrorInput(
                lambda x: imgops.canny(x, 1, float("nan")), dtype=torch.uint8, reads_values=True
            ),
            "kernel_size must be one of 3, 5, 7, got 4": ErrorInput(
                lambda x: imgops.canny(x, 1, 2, 4), dtype=torch.uint8
            ),
        },
        NotImplementedError: {
            "no argument may require a gradient, because there is none (a pixel is 255 on an edge, else 0), "
            "got one that does": ErrorInput(lambda x: imgops.canny(x, _LEARNED, 2), dtype=torch.uint8)
        },
    },
    draw=lambda d: (
        d.levels(d.choice(1, 3, 4)),
        d.number(0, 400),
        d.number(0, 900),
        d.choice(3, 5, 7),
        d.choice(True, False),
    ),
    reference=canny_reference,
    dtypes=(torch.uint8,),
    decomposed={},
    reference_name="`cv2.Canny`",
    dtype_names="uint8",
    decomposed_difference="0",
    section="Edges",
    words="``low``, ``high``, ``l2_gradient`` (OpenCV)",
    formula=r"y = 255\ \text{on the ridges of}\ |\nabla x|\ \text{that lead to}\ t_{high}",
    border="edge (BORDER_REPLICATE)",
    transforms=("Corruption",),
    photo=(lambda x: imgops.canny(x, 60, 120), lambda x: chw(cv2.Canny(photo_frame(x), 60, 120))),
    picture=lambda x: imgops.canny(x, 60, 140),
    benchmarks=(
        Benchmark(
            "canny",
            "cv2.Canny (uint8)",
            bench.filters(
                lambda x: imgops.canny(x, 60, 120),
                lambda a: cv2.Canny(a, 60, 120),
                lambda kornia, y: kornia.filters.canny(y)[1],
                lambda a: bench.scikit("feature.canny")(a[..., 0]),
                frames=True,
                levels=True,
            ),
        ),
    ),
)

SPECS = (SOBEL, SCHARR, LAPLACIAN, CANNY)
