"""threshold and adaptive_threshold."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import torch
from torch import Tensor

import imgops
from tests.specs import _benchmarks as bench
from tests.specs._libraries import Array, chw, photo_frame
from tests.specs._maker import LEVELS_AND_FLOATS, Maker, of_levels, parameter
from tests.specs._spec import Benchmark, ErrorInput, OpSpec, Sample, Tolerance

_OPERATIONS = ("binary", "binary_inv", "trunc", "tozero", "tozero_inv")
_FLAGS = {
    **{operation: getattr(cv2, f"THRESH_{operation.upper()}") for operation in _OPERATIONS},
    "otsu": cv2.THRESH_BINARY | cv2.THRESH_OTSU,
    "triangle": cv2.THRESH_BINARY | cv2.THRESH_TRIANGLE,
}


def threshold_reference(image: Array, value: float, max_value: float, operation: str) -> Array:
    planes = np.ascontiguousarray(image)
    if planes.size == 0:
        return planes
    return np.stack([cv2.threshold(p, value, max_value, _FLAGS[operation])[1] for p in planes])


def _value(m: Maker, value: float) -> Tensor:
    """Return a parameter in units of the image: of [-2, 2], or of its levels."""
    middle, scale = {torch.uint8: (128, 60), torch.uint16: (32768, 15000)}.get(m.dtype, (0, 1))
    own = middle + scale * value
    return parameter(m, torch.tensor(own, dtype=torch.float64))


def _levels(m: Maker, channels: int = 3) -> Tensor:
    return of_levels(m).image(channels, 9, 11)


def _gray(x: Tensor) -> Tensor:
    return x.float().mean(-3, keepdim=True).byte()


THRESHOLD = OpSpec(
    "threshold",
    samples=(
        *(
            Sample(operation, lambda m, k=operation: (m.image(3, 6, 7), _value(m, 0.43), _value(m, 1.1), k))
            for operation in _OPERATIONS
        ),
        Sample("below", lambda m: (m.image(1, 4, 5), -300.5, 300.0, "trunc")),
        Sample("above", lambda m: (m.image(1, 4, 5), 300, -3.0, "tozero_inv")),
        Sample(
            "otsu",
            lambda m: (_levels(m), 0, 200.5, "otsu"),
            dtypes=(torch.uint8, torch.uint16),
            differentiable=False,
        ),
        Sample(
            "triangle",
            lambda m: (replace(m, dtype=torch.uint8).image(3, 9, 11), 0, 255, "triangle"),
            dtypes=(torch.uint8,),
            differentiable=False,
        ),
        Sample(
            "each",
            lambda m: (
                m.image(3, 6, 7),
                (m.per_sample(0.3, -0.4).detach() * (60 if m.dtype == torch.uint8 else 1)).requires_grad_(
                    m.grad
                ),
                1.0,
                "trunc",
            ),
        ),
        Sample("no-rows", lambda m: (m.image(3, 0, 4), 0.5), edge=True, differentiable=False),
    ),
    refused={
        ValueError: {
            "operation must be one of 'binary', 'binary_inv', 'trunc', 'tozero', 'tozero_inv', 'otsu', "
            "'triangle', got 'mean'": lambda x: imgops.threshold(x, 0.5, operation="mean"),
            "threshold must be a number, got nan": ErrorInput(
                lambda x: imgops.threshold(x, float("nan")), reads_values=True
            ),
            "threshold must have one value, or 2 values, one for each image, got shape (3,)": lambda x: (
                imgops.threshold(x, torch.ones(3))
            ),
        },
        TypeError: {
            "image must be uint8 or uint16 for 'otsu', got torch.float32": lambda x: imgops.threshold(
                x, operation="otsu"
            ),
            "image must be uint8 for 'triangle', got torch.uint16": ErrorInput(
                lambda x: imgops.threshold(x, operation="triangle"), dtype=torch.uint16
            ),
        },
    },
    of_number=lambda x, v: imgops.threshold(x, v, operation="trunc"),
    draw=lambda d: (
        d.image(),
        d.number(0, d.white),
        d.number(0, d.white),
        d.choice(*_OPERATIONS, *(("otsu", "triangle") if d.dtype == torch.uint8 else ())),
    ),
    reference=threshold_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    decomposed={},
    reference_name="`cv2.threshold`",
    decomposed_difference="0",
    section="Thresholds",
    formula=r"y = m\,[x > t]\ \text{(binary)},\quad \min(x, t)\ \text{(trunc)},\quad x\,[x > t]\ \text{(tozero)}",
    border="none",
    photo=(
        lambda x: imgops.threshold(x, 100, 220),
        lambda x: chw(cv2.threshold(photo_frame(x), 100, 220, cv2.THRESH_BINARY)[1]),
    ),
    picture=lambda x: imgops.threshold(_gray(x), operation="otsu"),
    benchmarks=(
        Benchmark(
            "threshold",
            "cv2.threshold",
            bench.filters(
                lambda x: imgops.threshold(x, 0.5, 1),
                lambda a: cv2.threshold(a, 0.5, 1, cv2.THRESH_BINARY)[1],
            ),
        ),
        Benchmark(
            "otsu",
            "cv2.threshold, THRESH_OTSU (gray uint8)",
            bench.gray(
                lambda x: imgops.threshold(x, operation="otsu"),
                lambda a: cv2.threshold(a, 0, 255, cv2.THRESH_OTSU)[1],
                lambda a: a > bench.scikit("filters.threshold_otsu")(a),
            ),
        ),
    ),
)

_METHODS = {"mean": cv2.ADAPTIVE_THRESH_MEAN_C, "gaussian": cv2.ADAPTIVE_THRESH_GAUSSIAN_C}


def adaptive_reference(
    image: Array, max_value: float, c: float, size: int, method: str, operation: str
) -> Array:
    call = lambda p: cv2.adaptiveThreshold(p, max_value, _METHODS[method], _FLAGS[operation], size, c)
    return np.stack([call(np.ascontiguousarray(plane)) for plane in image])


ADAPTIVE_THRESHOLD = OpSpec(
    "adaptive_threshold",
    samples=(
        Sample("mean", lambda m: (_levels(m), 255, "mean", "binary", 3, 2.5)),
        Sample("inverse", lambda m: (_levels(m, 5), 200.4, "mean", "binary_inv", 5, -1.5)),
        Sample("gaussian", lambda m: (_levels(m, 1), 300, "gaussian", "binary", 9, 2)),
        Sample("wide", lambda m: (_levels(m, 1), 255, "gaussian", "binary_inv", 13, 0.5)),
        Sample("each", lambda m: (_levels(m), m.per_sample(255, 100).detach(), "mean", "binary", 3, 1.0)),
    ),
    refused={
        TypeError: {
            "image must be uint8, got torch.float32": lambda x: imgops.adaptive_threshold(x),
        },
        ValueError: {
            "method must be one of 'mean', 'gaussian', got 'median'": ErrorInput(
                lambda x: imgops.adaptive_threshold(x, method="median"), dtype=torch.uint8
            ),
            "operation must be one of 'binary', 'binary_inv', got 'trunc'": ErrorInput(
                lambda x: imgops.adaptive_threshold(x, operation="trunc"), dtype=torch.uint8
            ),
            "kernel_size must be odd and at least 3, got 4": ErrorInput(
                lambda x: imgops.adaptive_threshold(x, kernel_size=4), dtype=torch.uint8
            ),
            "c must be a number, got nan": ErrorInput(
                lambda x: imgops.adaptive_threshold(x, c=float("nan")), dtype=torch.uint8, reads_values=True
            ),
        },
    },
    draw=lambda d: (
        d.levels(),
        d.number(0, 300),
        d.number(-5, 5),
        d.choice(3, 5, 7, 9, 13),
        d.choice("mean", "gaussian"),
        d.choice("binary", "binary_inv"),
    ),
    drawn={torch.uint8: Tolerance(levels=255, share=0.05)},
    reference=adaptive_reference,
    dtypes=(torch.uint8,),
    # A mean at a half may round to the other level.
    decomposed={torch.uint8: Tolerance(levels=255, share=0.01)},
    reference_name="`cv2.adaptiveThreshold`",
    dtype_names="uint8",
    decomposed_difference="mean 0; gaussian 1 % of the pixels",
    section="Thresholds",
    words="``c`` (OpenCV)",
    formula=r"y = m\,[x > \bar{x} - c],\quad \bar{x} = g * x",
    border="edge (BORDER_REPLICATE)",
    photo=(
        lambda x: imgops.adaptive_threshold(x[:1], kernel_size=21, c=4),
        lambda x: chw(cv2.adaptiveThreshold(x[0].numpy().copy(), 255, 0, 0, 21, 4)),
    ),
    picture=lambda x: imgops.adaptive_threshold(_gray(x), method="gaussian", kernel_size=15, c=4.0),
    benchmarks=(
        Benchmark(
            "adaptive",
            "cv2.adaptiveThreshold, mean 11 x 11 (gray uint8)",
            bench.gray(
                lambda x: imgops.adaptive_threshold(x),
                lambda a: cv2.adaptiveThreshold(a, 255, cv2.ADAPTIVE_THRESH_MEAN_C, cv2.THRESH_BINARY, 11, 2),
                lambda a: a > bench.scikit("filters.threshold_local", 11, "mean", 2)(a),
            ),
        ),
    ),
)

SPECS = (THRESHOLD, ADAPTIVE_THRESHOLD)
