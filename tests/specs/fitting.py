"""downscale, and contain, cover and fit, which resize to sizes that PIL computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
from PIL import ImageOps

import imgops
from tests.specs import _benchmarks as bench
from tests.specs._libraries import (
    FILTERS,
    FLAGS,
    Array,
    by_opencv,
    by_pil_planes,
    chw,
    photo_frame,
    photo_pil,
)
from tests.specs._maker import LEVELS_AND_FLOATS
from tests.specs._spec import CLOSE, LEVEL, Benchmark, ErrorInput, OpSpec, Refused, Sample, Tolerance, merged


def downscale_reference(image: Array, factor: float, down: str, up: str) -> Array:
    if image.size == 0:
        return image
    height, width = image.shape[-2:]
    small = max(round(factor * width), 1), max(round(factor * height), 1)
    return by_opencv(
        image,
        lambda a: cv2.resize(
            cv2.resize(a, small, interpolation=FLAGS[down]), (width, height), interpolation=FLAGS[up]
        ),
    )


DOWNSCALE = OpSpec(
    "downscale",
    samples=(
        Sample("area", lambda m: (m.image(3, 8, 7), 0.5)),
        Sample("nearest", lambda m: (m.image(5, 6, 9), 0.4, "nearest", "nearest")),
        Sample("bilinear", lambda m: (m.image(3, 7, 9), 0.62, "bilinear", "bicubic")),
        Sample("each", lambda m: (m.image(1, 8, 9), m.per_sample(0.3, 0.8).detach(), "area", "bicubic")),
        Sample("one-pixel", lambda m: (m.image(3, 5, 4), 0.01), edge=True),
        Sample("no-rows", lambda m: (m.image(3, 0, 4), 0.5), edge=True, differentiable=False),
    ),
    refused={
        ValueError: {
            "factor must be in (0, 1], got 1.5": ErrorInput(
                lambda x: imgops.downscale(x, 1.5), reads_values=True
            ),
            "down must be one of 'area', 'nearest', 'bilinear', got 'bicubic'": lambda x: imgops.downscale(
                x, 0.5, "bicubic"
            ),
            "up must be one of 'bilinear', 'nearest', 'bicubic', got 'area'": lambda x: imgops.downscale(
                x, 0.5, "area", "area"
            ),
        }
    },
    of_number=lambda x, v: imgops.downscale(x, 0.1 + v / 10),
    draw=lambda d: (
        d.image(),
        d.number(0.02, 1),
        d.choice("area", "nearest", "bilinear"),
        d.choice("bilinear", "nearest", "bicubic"),
    ),
    reference=downscale_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    decomposed={**CLOSE, **dict.fromkeys((torch.uint8, torch.uint16), Tolerance(levels=2))},
    reference_name="`cv2.resize`, twice",
    decomposed_difference="2 levels; floats 1e-5",
    section="Resizing",
    words="``down``, ``up``: the interpolation of each step",
    formula=r"y = R_{H \times W}(R_{fH \times fW}(x))",
    border="edge, as in cv2.resize",
    transforms=("RandomDownscale",),
    photo=(lambda x: imgops.downscale(x, 0.25), lambda x: chw(by_frame(photo_frame(x), 0.25))),
    picture=lambda x: imgops.downscale(x, 0.08, up="nearest"),
    benchmarks=(
        Benchmark(
            "downscale",
            "cv2.resize to a quarter (area) and back (bilinear)",
            bench.filters(lambda x: imgops.downscale(x, 0.25), lambda a: by_frame(a, 0.25)),
        ),
    ),
)


def by_frame(frame: Array, factor: float) -> Array:
    height, width = frame.shape[:2]
    small = cv2.resize(frame, (round(width * factor), round(height * factor)), interpolation=cv2.INTER_AREA)
    return cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR)


def _by_pil(name: str) -> Callable[..., Array]:
    def reference(image: Array, size: tuple[int, int], filter: str = "bilinear", *rest: Any) -> Array:
        call = getattr(ImageOps, name)
        single = image if image.dtype in (np.uint8, np.uint16) else image.astype(np.float32)
        return by_pil_planes(single, lambda p: call(p, (size[1], size[0]), FILTERS[filter], *rest))

    return reference


def _calls(name: str) -> Callable[[Any], bench.Calls]:
    def calls(case: Any) -> bench.Calls:
        x, size = case.image(), (case.size // 2, case.size // 3)
        call = getattr(ImageOps, name)
        ours = getattr(imgops, name)
        pictures = case.pictures(x)
        return lambda: ours(x, size), lambda: [call(p, (size[1], size[0])) for p in pictures], None, None

    return calls


def _spec(
    name: str, samples: tuple[Sample, ...], formula: str, refused: Refused | None = None, **facts: Any
) -> OpSpec:
    call = getattr(imgops, name)
    return OpSpec(
        name,
        samples=samples,
        refused=merged(
            refused or {},
            {
                ValueError: {
                    "size must be positive, got (0, 3)": lambda x: call(x, (0, 3)),
                    "interpolation must be one of 'nearest', 'box', 'bilinear', 'hamming', 'bicubic', 'lanczos' with "
                    "antialias=True, got 'area'": lambda x: call(x, (2, 2), "area"),
                },
                TypeError: {
                    "size must have 2 integers (height, width), got int": lambda x: call(x, 4),
                    "image must be uint8, uint16 or floating point for interpolation 'bilinear', got torch.int16": lambda x: (
                        call(x.short(), (2, 2))
                    ),
                },
            },
        ),
        reference=_by_pil(name),
        tolerance={**LEVEL, torch.uint8: Tolerance(), torch.uint16: Tolerance()},
        dtypes=LEVELS_AND_FLOATS,
        dtype_names="uint8, uint16, floats",
        reference_name=f"`PIL.ImageOps.{name}`",
        difference="uint8, uint16 0; floats 1e-5",
        section="Resizing",
        formula=formula,
        border="as for resize",
        photo=(lambda x: call(x, (90, 160)), lambda x: chw(getattr(ImageOps, name)(photo_pil(x), (160, 90)))),
        benchmarks=(Benchmark(name, f"PIL.ImageOps.{name}", _calls(name)),),
        **facts,
    )


CONTAIN = _spec(
    "contain",
    (
        Sample("wide", lambda m: (m.image(3, 9, 14), (6, 7))),
        Sample("tall", lambda m: (m.image(1, 14, 9), (6, 20), "bilinear")),
        Sample("same", lambda m: (m.image(3, 6, 8), (3, 4), "box")),
    ),
    r"\text{size} = s\,(H, W),\quad s = \min(h/H,\, w/W)",
    picture=lambda x: imgops.contain(x, (x.shape[-2] // 2, x.shape[-2] // 2)),
)
COVER = _spec(
    "cover",
    (
        Sample("wide", lambda m: (m.image(3, 9, 14), (6, 7))),
        Sample("tall", lambda m: (m.image(1, 14, 9), (6, 20), "bilinear")),
    ),
    r"\text{size} = s\,(H, W),\quad s = \max(h/H,\, w/W)",
    picture=lambda x: imgops.cover(x, (x.shape[-2] * 2 // 3, x.shape[-2] * 2 // 3)),
)
FIT = _spec(
    "fit",
    (
        Sample("wide", lambda m: (m.image(3, 9, 14), (6, 7))),
        Sample("bled", lambda m: (m.image(1, 14, 9), (6, 20), "bilinear", 0.1, (0.0, 0.8))),
        Sample("same", lambda m: (m.image(3, 6, 8), (3, 4), "lanczos")),
    ),
    r"\text{size} = (h, w)\ \text{of the largest box with these proportions}",
    refused={
        TypeError: {
            "image must be a Tensor, got list": lambda x: imgops.fit([], (3, 3))  # type: ignore[arg-type]
        },
        ValueError: {
            "bleed must be in [0, 0.5), got 0.5": lambda x: imgops.fit(x, (2, 2), bleed=0.5),
            "centering must be 2 numbers in [0, 1], got (0.5, 2)": lambda x: imgops.fit(
                x, (2, 2), centering=(0.5, 2)
            ),
        },
    },
    words="``bleed``, ``centering`` (PIL)",
    picture=lambda x: imgops.fit(x, (x.shape[-2], x.shape[-2] // 2)),
)

SPECS = (DOWNSCALE, CONTAIN, COVER, FIT)
