"""remap, its adjoint and its derivative in the map."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

import imgops
from imgops import remap
from tests.specs import _benchmarks as bench
from tests.specs import _plain as plain
from tests.specs._libraries import (
    BORDERS,
    Array,
    chw,
    photo_frame,
)
from tests.specs._maker import FLOATS, Maker
from tests.specs._spec import CLOSE, REAL, Benchmark, ErrorInput, OpSpec, Plain, Sample, Tolerance
from tests.specs.geometry import _SHARED, _UNIT, OPENCV_IS_EXACT, _nearest, _sampled

ones, ops = torch.ones, torch.ops.imgops


def _positions(m: Maker, height: int, width: int) -> Tensor:
    """Positions on both sides of the border, none of them near a whole number."""
    made = replace(m, dtype=torch.float64, format="planar", grad=False).image(2, height, width, -3, 11)
    held = made.floor() + 0.1 + 0.8 * (made - made.floor())
    return held.to(torch.float64 if m.dtype == torch.float64 else torch.float32).requires_grad_(m.grad)


def remap_reference(image: Array, map: Array, fill: Any, interpolation: str, border: str) -> Array:
    x, y = map.astype(np.float32)

    def call(array: Array, flags: int, value: Any) -> Array:
        return cv2.remap(array, x, y, flags, borderMode=BORDERS[border], borderValue=value)

    return _sampled(image, fill, interpolation, call)


def _fills(m: Maker, *values: float) -> dict[str, Any]:
    return {"fill": torch.tensor(values, dtype=torch.float64).requires_grad_(m.grad)}


def _photo_map() -> tuple[Array, Array]:
    y, x = np.mgrid[0:300, 0:400].astype(np.float32)
    return x * 1.1 + 8 * np.sin(y / 20), y * 1.05 + 8 * np.cos(x / 25)


def _remap_calls(case: Any) -> bench.Calls:
    import kornia.geometry.transform as kornia

    x, arrays, size = case.image(), case.arrays(case.image()), case.size
    grid = np.stack(np.meshgrid(np.arange(size), np.arange(size))).astype(np.float32)
    at = grid + np.float32(2) * np.sin(grid[::-1] / 20)
    own = torch.from_numpy(at)
    return (
        lambda: remap(x, own),
        lambda: [cv2.remap(a, at[0], at[1], cv2.INTER_LINEAR) for a in arrays],
        None,
        bench.of_floats(x, lambda y: kornia.remap(y, own[:1], own[1:], align_corners=True)),
    )


_MAP = torch.stack([plain.rand(4, 4, low=-1.7, high=6.2), plain.rand(4, 4, low=-1.6, high=5.3)])
_SMALL = plain.rand(3, 4, 4)

REMAP = OpSpec(
    "remap",
    samples=(
        *(
            Sample(
                f"{name}-{border}",
                lambda m, n=name, b=border: (m.image(3, 7, 9), _positions(m, 4, 5), n, b),
                **_nearest(name),
            )
            for name, border in (
                ("nearest", "reflect"),
                ("bilinear", "constant"),
                ("bicubic", "constant"),
                ("bilinear", "wrap"),
            )
        ),
        Sample(
            "fills",
            lambda m: (m.image(3, 7, 9), _positions(m, 4, 5), "bicubic", "constant", _fills(m, 1, 0, 2)),
        ),
    ),
    errors=(
        ErrorInput(
            ValueError,
            "remap: map must be (..., 2, H, W): x and y, got shape (2, 3, 5, 6)",
            lambda x: remap(x, x.float()),
        ),
        ErrorInput(
            TypeError,
            "remap: map must be float32 or float64, got torch.int64",
            lambda x: remap(x, x[:, :2].long()),
        ),
    ),
    of_number=lambda x, v: imgops.remap(x, torch.ones(2, 4, 5), fill=v),
    reference=remap_reference,
    plain=Plain(remap, plain.remap, (_UNIT, _MAP)),
    reference_name="`cv2.remap`",
    formula=r"y(p) = \sum_q k\big(\mathrm{map}(p) - q\big)\, x_q",
    transforms=("ElasticTransform", "elastic"),
    photo=(
        lambda x: remap(x, torch.from_numpy(np.stack(_photo_map())), "bilinear"),
        lambda x: chw(cv2.remap(photo_frame(x), *_photo_map(), cv2.INTER_LINEAR)),
    ),
    benchmarks=(Benchmark("remap", "cv2.remap", _remap_calls),),
    **_SHARED,
)


def remap_adjoint_reference(
    grad: Array, map: Array, height: int, width: int, interpolation: str, border: str
) -> Array:
    """What ``cv2.remap`` makes of every unit image, transposed."""
    basis = np.eye(height * width, dtype=np.float32).reshape(-1, 1, height, width)
    rows = np.stack([remap_reference(b, map, None, interpolation, border)[0].ravel() for b in basis])
    return (rows @ grad.reshape(len(grad), -1).T).T.reshape(len(grad), height, width)


_NEAR_OPENCV = {d: Tolerance(2e-3 if OPENCV_IS_EXACT else 0.5) for d in (torch.float32, torch.float64)} | {
    torch.float16: Tolerance(4e-3 if OPENCV_IS_EXACT else 0.5),
    torch.bfloat16: Tolerance(2e-2 if OPENCV_IS_EXACT else 0.5),
}

REMAP_ADJOINT = OpSpec(
    "remap_adjoint",
    samples=tuple(
        Sample(f"{n}-{b}", lambda m, n=n, b=b: (m.image(3, 4, 5), _positions(m, 4, 5), 7, 9, n, b))
        for n, b in (("bilinear", "constant"), ("bicubic", "reflect"), ("nearest", "wrap"))
    ),
    errors=(
        ErrorInput(
            ValueError,
            "remap_adjoint: grad must have the size of map (4, 6), got (5, 6)",
            lambda x: ops.remap_adjoint(x, x[:, :2, :4], 4, 4, "nearest", "edge"),
        ),
    ),
    reference=remap_adjoint_reference,
    tolerance=_NEAR_OPENCV,
    decomposed=CLOSE,
    dtypes=FLOATS[1:],
    plain=Plain(
        lambda g, m: ops.remap_adjoint(g, m, 5, 6, "bilinear", "constant"),
        lambda g, m: torch.einsum(
            "...chw,...hwi,...hwj->...cij",
            g,
            plain.hats(m[..., 1, :, :], 5),
            plain.hats(m[..., 0, :, :], 6),
        ),
        (_SMALL, _MAP),
    ),
    reference_name="transpose of remap",
    difference="1e-12",
    dtype_names="floats",
    decomposed_difference="1e-5",
)

REMAP_GRAD_MAP = OpSpec(
    "remap_grad_map",
    samples=tuple(
        Sample(
            f"{n}-{b}",
            lambda m, n=n, b=b: (m.image(3, 4, 5), m.image(3, 7, 9), _positions(m, 4, 5), None, n, b),
        )
        for n, b in (("bilinear", "constant"), ("bicubic", "edge"))
    ),
    reference="tests/test_geometry.py::test_the_derivative_of_a_map_is_that_of_opencv",
    tolerance=REAL,
    dtypes=FLOATS[1:],
    plain=Plain(
        lambda g, x, m: ops.remap_grad_map(g, x, m, None, "bilinear", "constant"),
        lambda g, x, m: torch.func.vjp(lambda at: plain.remap(x, at), m)[1](g)[0],
        (_SMALL, _UNIT, _MAP),
    ),
    reference_name="derivative of remap in its map",
    difference="1e-12",
    dtype_names="floats",
    decomposed_difference="1e-5",
)


SPECS = (REMAP, REMAP_ADJOINT, REMAP_GRAD_MAP)
