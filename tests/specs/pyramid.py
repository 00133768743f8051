"""pyr_down, pyr_up and their adjoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

import imgops
from tests.specs import _benchmarks as bench
from tests.specs._draw import Draw
from tests.specs._libraries import Array, by_opencv, chw, photo_frame
from tests.specs._maker import LEVELS_AND_FLOATS
from tests.specs._spec import ROUNDED, Benchmark, OpSpec, Refused, Sample, Tolerance

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def _matrix(call: Callable[[Array], Array], size: int) -> Array:
    """Return the matrix of OpenCV's call along one axis: its result for each unit vector."""
    tall = np.zeros((size, 2, size))
    tall[np.arange(size), :, np.arange(size)] = 1
    return np.stack([call(np.ascontiguousarray(t))[0] for t in tall], -1)


def _adjoint(call: Callable[[Array], Array]) -> Callable[..., Array]:
    """Return the transpose of OpenCV's call, in double precision."""

    def reference(grad: Array, height: int | None = None, width: int | None = None) -> Array:
        height, width = height or grad.shape[-2] // 2, width or grad.shape[-1] // 2
        down, across = _matrix(call, height), _matrix(call, width)
        return down.T @ grad.astype(np.float64) @ across

    return reference


def _public(name: str, raw: Callable[[Array], Array], **facts: Any) -> OpSpec:
    call = getattr(imgops, name)
    return OpSpec(
        name,
        samples=(
            Sample("even", lambda m: (m.image(3, 8, 6),), linear=True),
            Sample("odd", lambda m: (m.image(5, 7, 9),), linear=True),
            Sample("one-column", lambda m: (m.image(3, 4, 1),), linear=True, edge=True),
            Sample("two", lambda m: (m.image(1, 2, 2),), linear=True),
        ),
        refused={
            TypeError: {
                "image must be uint8, uint16 or floating point, got torch.int32": lambda x: call(x.int()),
            },
            ValueError: {
                "image must have at least 3 dimensions (..., C, H, W), got shape (6,)": lambda x: call(
                    x[0, 0, 0]
                ),
            },
        },
        draw=lambda d: (d.image(),),
        reference=lambda image: by_opencv(image, raw),
        dtypes=LEVELS_AND_FLOATS,
        dtype_names="uint8, uint16, floats",
        # On a device ATen sums in a different order.
        decomposed={**{d: Tolerance(1e-5) for d in _FLOATS}, **ROUNDED},
        reference_name=f"`cv2.{raw.__name__}`",
        decomposed_difference="uint8, uint16 0; floats 1e-5",
        section="Resizing",
        photo=(call, lambda x: chw(raw(photo_frame(x)))),
        benchmarks=(
            Benchmark(
                name,
                f"cv2.{raw.__name__}",
                bench.filters(
                    call,
                    raw,
                    lambda kornia, y: getattr(kornia.geometry.transform, name.replace("_", ""))(y),
                    bench.planes(
                        bench.scikit(f"transform.pyramid_{'reduce' if name == 'pyr_down' else 'expand'}")
                    ),
                ),
            ),
        ),
        **facts,
    )


def _gradient(d: Draw, height: int, width: int) -> Tensor:
    return d.image(dtype=d.choice(torch.float32, torch.float64), size=(height, width))


def _of_adjoint(
    name: str,
    raw: Callable[[Array], Array],
    draw: Callable[[Draw], tuple[Any, ...]],
    samples: tuple[Sample, ...],
    refused: Refused,
) -> OpSpec:
    return OpSpec(
        f"{name}_adjoint",
        samples=samples,
        draw=draw,
        refused=refused,
        reference=_adjoint(raw),
        dtypes=_FLOATS,
        tolerance={
            torch.float16: Tolerance(2e-3),
            torch.bfloat16: Tolerance(2e-2),
            torch.float32: Tolerance(1e-5),
            torch.float64: Tolerance(1e-12),
        },
        decomposed={
            torch.float16: Tolerance(2e-3),
            torch.bfloat16: Tolerance(2e-2),
            torch.float32: Tolerance(1e-5),
        },
        reference_name=f"the transpose of `cv2.{raw.__name__}`",
        difference="1e-5",
        dtype_names="floats",
        decomposed_difference="0",
    )


PYR_DOWN = _public(
    "pyr_down",
    cv2.pyrDown,
    formula=r"y_{i,j} = (g * x)_{2i,\,2j},\quad g = \tfrac{1}{16}(1, 4, 6, 4, 1)\ \text{along each axis}",
    border="reflect without the border pixel (BORDER_REFLECT_101)",
    picture=lambda x: imgops.pyr_down(imgops.pyr_down(x)),
)
PYR_UP = _public(
    "pyr_up",
    cv2.pyrUp,
    formula=r"y = g * u,\quad u_{2i,\,2j} = 4\, x_{i,j}\ \text{and 0 elsewhere}",
    border="reflect at the top and left, edge at the bottom and right, as in OpenCV",
    picture=lambda x: imgops.pyr_up(
        imgops.pyr_up(imgops.pyr_up(imgops.pyr_down(imgops.pyr_down(imgops.pyr_down(x)))))
    ),
)
_ops = torch.ops.imgops
PYR_DOWN_ADJOINT = _of_adjoint(
    "pyr_down",
    cv2.pyrDown,
    lambda d: (_gradient(d, (d.size[0] + 1) // 2, (d.size[1] + 1) // 2), *d.size),
    (
        Sample("even", lambda m: (m.image(3, 4, 3), 8, 6), linear=True),
        Sample("odd", lambda m: (m.image(5, 4, 5), 7, 9), linear=True),
    ),
    refused={
        ValueError: {
            "height and width must be those of an image whose half is as large as this one, got (5, 6)": lambda x: (
                _ops.pyr_down_adjoint(x, 5, 6)
            ),
        },
    },
)
PYR_UP_ADJOINT = _of_adjoint(
    "pyr_up",
    cv2.pyrUp,
    lambda d: (_gradient(d, 2 * d.whole(1, 20), 2 * d.whole(1, 20)),),
    (
        Sample("even", lambda m: (m.image(3, 8, 6),), linear=True),
        Sample("two", lambda m: (m.image(2, 2, 4),), linear=True),
    ),
    refused={
        ValueError: {
            "height and width must be even, got (5, 6)": lambda x: _ops.pyr_up_adjoint(x),
        },
    },
)

SPECS = (PYR_DOWN, PYR_DOWN_ADJOINT, PYR_UP, PYR_UP_ADJOINT)
