"""distance_transform, and connected_components, which is made of two operators."""

from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import torch
from torch import Tensor

import imgops
from tests.specs import _benchmarks as bench
from tests.specs._libraries import Array, chw
from tests.specs._maker import Maker
from tests.specs._spec import Benchmark, ErrorInput, OpSpec, Sample, Tolerance

_DISTANCES = {"l1": cv2.DIST_L1, "l2": cv2.DIST_L2, "c": cv2.DIST_C}


def _mask(m: Maker, channels: int = 1, dtype: torch.dtype = torch.uint8) -> Tensor:
    """Make a mask that is mostly nonzero, with 0 at random and in the first pixel."""
    image = replace(m, dtype=torch.uint8).image(channels, 9, 12).clone()
    image[image < 60] = 0
    image[..., 0, 0] = 0
    return image if dtype == torch.uint8 else image > 0


def _spots(m: Maker, channels: int = 1) -> Tensor:
    image = replace(m, dtype=torch.uint8).image(channels, 9, 12)
    return image.where(image > 140, torch.zeros_like(image))


def distance_reference(image: Array, kernel_size: int, distance: str) -> Array:
    if image.size == 0:
        return image.astype(np.float32)
    planes = np.ascontiguousarray(image).view(np.uint8)
    return np.stack([cv2.distanceTransform(p, _DISTANCES[distance], kernel_size) for p in planes])


def _light_pixels(x: Tensor) -> Tensor:
    """Return a mask that is 255 where a picture is lighter than its mean, and 0 elsewhere."""
    gray = x.float().mean(-3, keepdim=True)
    return ((gray > gray.mean()) * 255).byte()


DISTANCE_TRANSFORM = OpSpec(
    "distance_transform",
    samples=(
        Sample("five", lambda m: (_mask(m),)),
        Sample("three", lambda m: (_mask(m, 3), "l2", 3)),
        Sample("exact", lambda m: (_mask(m, 2), "l2", 0)),
        Sample("l1", lambda m: (_mask(m, dtype=torch.bool), "l1")),
        Sample("c", lambda m: (_mask(m), "c", 3)),
        Sample("no-zero", lambda m: (_mask(m).clamp(min=1),)),
        Sample("one-row", lambda m: (_mask(m)[..., :1, :].contiguous(),), edge=True),
        Sample("no-rows", lambda m: (_mask(m)[..., :0, :].contiguous(),), edge=True),
    ),
    refused={
        TypeError: {"image must be uint8 or bool, got torch.float32": lambda x: imgops.distance_transform(x)},
        ValueError: {
            "distance must be one of 'l2', 'l1', 'c', got 'l3'": ErrorInput(
                lambda x: imgops.distance_transform(x, "l3"), dtype=torch.uint8
            ),
            "kernel_size must be one of 5, 3, 0, got 4": ErrorInput(
                lambda x: imgops.distance_transform(x, kernel_size=4), dtype=torch.uint8
            ),
        },
    },
    draw=lambda d: (d.levels() // d.choice(1, 100, 200), d.choice(0, 3, 5), d.choice("l1", "l2", "c")),
    reference=distance_reference,
    # OpenCV's own exact distances differ in a bit from call to call.
    tolerance={torch.float32: Tolerance(1e-6)},
    dtypes=(torch.uint8,),
    decomposed={torch.float32: Tolerance(1e-5)},
    reference_name="`cv2.distanceTransform`",
    difference="0; exact distances 1e-6",
    dtype_names="uint8, bool → float32",
    decomposed_difference="1e-5",
    section="Regions",
    words="``distance`` (OpenCV)",
    formula=r"y_p = \min \{ d(p, q) : x_q = 0 \}",
    border="none: what is outside is not 0",
    transforms=("Corruption",),
    photo=(
        lambda x: imgops.distance_transform(imgops.threshold(x[:1], 100)),
        lambda x: chw(cv2.distanceTransform(np.uint8(x[0].numpy() > 100), cv2.DIST_L2, 5)),
    ),
    picture=lambda x: imgops.distance_transform(_light_pixels(x)),
    benchmarks=(
        Benchmark(
            "distance",
            "cv2.distanceTransform, L2 5 x 5 (gray uint8)",
            bench.gray(
                lambda x: imgops.distance_transform(x), lambda a: cv2.distanceTransform(a, cv2.DIST_L2, 5)
            ),
        ),
    ),
)


def labels_reference(image: Array, connectivity: int) -> Array:
    if image.size == 0:
        return image.astype(np.int32)
    planes = np.ascontiguousarray(image).view(np.uint8)
    return np.stack([cv2.connectedComponents(p, connectivity=connectivity)[1] for p in planes])


_ops = torch.ops.imgops
COMPONENT_LABELS = OpSpec(
    "component_labels",
    samples=(
        Sample("eight", lambda m: (_spots(m), 8)),
        Sample("four", lambda m: (_spots(m, 3), 4)),
        Sample("full", lambda m: (_mask(m, dtype=torch.bool), 8)),
        Sample("one-row", lambda m: (_spots(m)[..., :1, :].contiguous(), 4), edge=True),
        Sample("no-rows", lambda m: (_spots(m)[..., :0, :].contiguous(), 8), edge=True),
    ),
    refused={
        TypeError: {
            "connected_components: image must be uint8 or bool, got torch.float32": lambda x: (
                imgops.connected_components(x)
            ),
            "connected_components: connectivity must be an integer, got Tensor": ErrorInput(
                lambda x: imgops.connected_components(x, x), dtype=torch.uint8
            ),  # type: ignore[arg-type]
            "connected_components: statistics must be a bool, got 'no'": ErrorInput(
                lambda x: imgops.connected_components(x, 4, "no"), dtype=torch.uint8
            ),  # type: ignore[arg-type]
        },
        ValueError: {
            "connected_components: connectivity must be 4 or 8, got 6": ErrorInput(
                lambda x: imgops.connected_components(x, 6), dtype=torch.uint8
            )
        },
    },
    draw=lambda d: (d.levels() // d.choice(1, 100, 130, 200), d.choice(4, 8)),
    reference=labels_reference,
    dtypes=(torch.uint8,),
    decomposed={},
    reference_name="`cv2.connectedComponents`",
    dtype_names="uint8, bool → int32",
    decomposed_difference="0",
)
COMPONENT_STATISTICS = OpSpec(
    "component_statistics",
    samples=(
        Sample(
            "two", lambda m: (_ops.component_labels(_spots(replace(m, batch=())), 8),), differentiable=False
        ),
    ),
    refused={
        TypeError: {
            "labels must be int32, got torch.float32": lambda x: _ops.component_statistics(
                torch.ones(1, 2, 2)
            )
        }
    },
    reference="tests/test_regions.py::test_statistics",
    dtypes=(torch.uint8,),
    reference_name="`cv2.connectedComponentsWithStats`",
    dtype_names="int32",
)
CONNECTED_COMPONENTS = OpSpec(
    "connected_components",
    reference="tests/test_regions.py::test_statistics",
    reference_name="`cv2.connectedComponentsWithStats`",
    dtype_names="uint8, bool → int32",
    section="Regions",
    gradient="none: labels have no derivative",
    words="``connectivity``, ``statistics`` (OpenCV)",
    formula=r"y_p = y_q\ \text{for neighbors}\ p, q\ \text{with}\ x_p, x_q \ne 0",
    border="none: what is outside is 0",
    photo=(
        lambda x: imgops.connected_components(imgops.threshold(x[:1], 100))[0],
        lambda x: chw(cv2.connectedComponents(np.uint8(x[0].numpy() > 100))[1]),
    ),
    picture=lambda x: imgops.connected_components(_light_pixels(x))[0],
    benchmarks=(
        Benchmark(
            "components",
            "cv2.connectedComponents (gray uint8)",
            bench.gray(
                lambda x: imgops.connected_components(x),
                lambda a: cv2.connectedComponents(a),
                bench.scikit("measure.label"),
            ),
        ),
    ),
)

SPECS = (DISTANCE_TRANSFORM, COMPONENT_LABELS, COMPONENT_STATISTICS, CONNECTED_COMPONENTS)
