"""erode, dilate, the hit-or-miss transform, and morphology, which is made of them."""

from __future__ import annotations

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
from tests.specs._spec import Benchmark, ErrorInput, OpSpec, Refused, Sample

_CORNER = torch.tensor([[0, 2, 2], [0, 0, 2]])
_CROSS = torch.tensor([[0, 2, 0], [2, 2, 2], [0, 2, 0]], dtype=torch.uint8)
_PATTERN = torch.tensor([[0, 2, 0], [-2, 2, 2], [-2, -2, 0]])


def _each(m: Maker) -> Tensor:
    """Return a structuring element for each sample."""
    return torch.stack([_CROSS, 2 - _CROSS])[torch.arange(torch.Size(m.batch).numel()) % 2].reshape(
        *m.batch, 3, 3
    )


def _reference(call: Callable[..., Array]) -> Callable[..., Array]:
    """Return a reference for OpenCV's call; "wrap", which its filters do not support, is padded first."""

    def reference(image: Array, kernel: Array, padding_mode: str) -> Array:
        if image.size == 0:
            return image
        element = np.sign(kernel).astype(np.int32 if kernel.min() < 0 else np.uint8)
        rows, columns = kernel.shape
        around = rows // 2, rows - 1 - rows // 2, columns // 2, columns - 1 - columns // 2
        how = lambda a, **border: call(a, element, **border)
        return by_opencv(image, lambda a: with_border(a, padding_mode, around, how))

    return reference


def _samples() -> tuple[Sample, ...]:
    return (
        Sample("square", lambda m: (m.image(3, 7, 6), 3)),
        Sample("rectangle", lambda m: (m.image(3, 7, 6), (1, 5), "edge")),
        Sample("element", lambda m: (m.image(5, 6, 8), _CORNER, "reflect")),
        Sample("symmetric", lambda m: (m.image(1, 4, 5), _CROSS, "symmetric")),
        Sample("wrap", lambda m: (m.image(3, 5, 4), _CORNER, "wrap")),
        Sample("each", lambda m: (m.image(3, 6, 5), _each(m))),
        Sample("one-row", lambda m: (m.image(3, 1, 4), 5), edge=True),
        Sample("no-rows", lambda m: (m.image(3, 0, 4), 3), edge=True, differentiable=False),
    )


def _refused(name: str) -> Refused:
    call = getattr(imgops, name)
    return {
        ValueError: {
            "kernel must be odd and positive, or a Tensor, got (4, 4)": lambda x: call(x, 4),
            "kernel must be (h, w) or (..., h, w), got shape (3,)": lambda x: call(x, torch.ones(3)),
            "kernel must have a value that is not 0, got zeros": ErrorInput(
                lambda x: call(x, torch.zeros(3, 3)), reads_values=True
            ),
            "padding_mode must be one of 'constant', 'edge', 'reflect', 'symmetric', 'wrap', got 'mirror'": lambda x: (
                call(x, 3, "mirror")
            ),
        },
        TypeError: {
            "kernel must have 2 integers (width, height), got str abc": lambda x: call(x, ("abc", 3)),
            "image must be uint8, uint16 or floating point, got torch.int64": lambda x: call(x.long(), 3),
        },
    }


def _calls(name: str, raw: Callable[..., Any]) -> Callable[[Any], bench.Calls]:
    theirs = {"erode": "erosion", "dilate": "dilation", "morphology": "opening"}[name]
    opens = lambda x: imgops.morphology(x, "open", 5)
    return bench.filters(
        opens if name == "morphology" else lambda x: getattr(imgops, name)(x, 5),
        lambda a: raw(a, np.ones((5, 5), np.uint8)),
        lambda kornia, y: getattr(kornia.morphology, theirs)(y, torch.ones(5, 5), engine="convolution"),
        bench.planes(bench.scikit(f"morphology.{theirs}", np.ones((5, 5), np.uint8))),
    )


def _spec(name: str, raw: Callable[..., Any], letter: str) -> OpSpec:
    call = getattr(imgops, name)
    return OpSpec(
        name,
        samples=_samples(),
        refused=_refused(name),
        draw=lambda d: (d.image(), d.element(), d.padding_mode()),
        reference=_reference(raw),
        dtypes=LEVELS_AND_FLOATS,
        dtype_names="uint8, uint16, floats",
        decomposed={},
        reference_name=f"`cv2.{name}`",
        decomposed_difference="0",
        section="Morphology",
        formula=rf"y_{{i,j}} = \{letter}\{{x_{{i+u,\,j+v}} : (u, v) \in K\}}",
        border="``padding_mode``: constant (what is outside does not count), edge, reflect, symmetric or wrap",
        photo=(
            lambda x: call(x, 7),
            lambda x: chw(raw(photo_frame(x), np.ones((7, 7), np.uint8))),
        ),
        picture=lambda x: call(x, 9),
        benchmarks=(Benchmark(name, f"cv2.{name}, 5 x 5", _calls(name, raw)),),
    )


ERODE = _spec("erode", cv2.erode, "min")
DILATE = _spec("dilate", cv2.dilate, "max")


def _by_morphology(image: Array, op: str, kernel: Array, padding_mode: str) -> Array:
    flag = getattr(cv2, f"MORPH_{op.upper()}")
    call = _reference(lambda a, k, **how: cv2.morphologyEx(a, flag, k, **how))
    if op == "hitmiss":  # which OpenCV computes of one plane
        return np.concatenate([call(plane[None], kernel, padding_mode) for plane in image])
    return call(image, kernel, padding_mode)


def _blobs(m: Maker, channels: int = 1) -> Tensor:
    """Make a black and white image in which the patterns occur."""
    image = replace(m, dtype=torch.uint8).image(channels, 7, 9)
    return torch.where(image > 90, 255, 0).to(torch.uint8)


HIT_OR_MISS = OpSpec(
    "hit_or_miss",
    samples=(
        Sample("pattern", lambda m: (_blobs(m), _PATTERN, "constant")),
        Sample("edge", lambda m: (replace(m, dtype=torch.uint8).image(3, 6, 5), _PATTERN, "edge")),
        Sample("hit", lambda m: (_blobs(m), _PATTERN.abs(), "constant")),
        Sample("miss", lambda m: (_blobs(m), -_PATTERN.abs(), "reflect")),
    ),
    refused={
        TypeError: {
            "morphology: image must be uint8 for 'hitmiss', got torch.float32": lambda x: imgops.morphology(
                x, "hitmiss", _PATTERN
            ),
        },
    },
    draw=lambda d: (d.levels(), d.element() - d.choice(0, 2) * d.element()[:1, :1], d.padding_mode()),
    reference=lambda image, kernel, mode: _by_morphology(image, "hitmiss", kernel, mode),
    dtypes=(torch.uint8,),
    decomposed={},
    reference_name="`cv2.morphologyEx`, MORPH_HITMISS",
    dtype_names="uint8",
    decomposed_difference="0",
)

MORPHOLOGY = OpSpec(
    "morphology",
    samples=(
        *(
            Sample(op, lambda m, op=op: (m.image(3, 8, 7), op, torch.ones(3, 3), "constant"))
            for op in ("erode", "dilate", "open", "close", "gradient", "tophat", "blackhat")
        ),
        Sample(
            "hitmiss",
            lambda m: (_blobs(m, 3), "hitmiss", _PATTERN, "constant"),
            dtypes=(torch.uint8,),
            differentiable=False,
        ),
    ),
    refused={
        ValueError: {
            "operation must be one of 'erode', 'dilate', 'open', 'close', 'gradient', 'tophat', 'blackhat', "
            "'hitmiss', got 'opening'": lambda x: imgops.morphology(x, "opening", 3),
            "kernel must be odd and positive, or a Tensor, got (2, 3)": lambda x: imgops.morphology(
                x, "open", (2, 3)
            ),
            "kernel must be (h, w) or (..., h, w), got shape (3,)": lambda x: imgops.morphology(
                x, "open", torch.ones(3)
            ),
            "padding_mode must be one of 'constant', 'edge', 'reflect', 'symmetric', 'wrap', got Tensor": lambda x: (
                imgops.morphology(x, "open", 3, x)
            ),  # type: ignore[arg-type]
        },
    },
    reference=_by_morphology,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats; hitmiss: uint8",
    cores=(3, 0, 2),
    reference_name="`cv2.morphologyEx`",
    section="Morphology",
    formula=r"\text{open} = \delta(\varepsilon(x)),\quad \text{close} = \varepsilon(\delta(x))",
    border="as for erode",
    transforms=("RandomMorphology",),
    photo=(
        lambda x: imgops.morphology(x, "open", 7),
        lambda x: chw(cv2.morphologyEx(photo_frame(x), cv2.MORPH_OPEN, np.ones((7, 7), np.uint8))),
    ),
    picture=lambda x: imgops.morphology(x, "gradient", 5),
    benchmarks=(
        Benchmark(
            "morphology",
            "cv2.morphologyEx, open 5 x 5",
            _calls("morphology", lambda a, k: cv2.morphologyEx(a, cv2.MORPH_OPEN, k)),
        ),
    ),
)

SPECS = (ERODE, DILATE, HIT_OR_MISS, MORPHOLOGY)
