"""Maps beyond the samples: the pixels of cv2.warpPolar, albumentations' grids, points that stay, and refusals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

import imgops
from tests.specs.maps import stretched
from tests.transform_cases import check_refusals

SIZE = H, W = 37, 50
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("count", [4, 5, 7])
@pytest.mark.parametrize("normalize", [False, True])
def test_grids_are_albumentations(count: int, normalize: bool) -> None:
    """They agree with the definition, too, without steps that are adjusted to the size."""
    steps = [1 + RNG.uniform(-0.3, 0.3, count + 1) for _ in range(2)]
    x, y = (s.tolist() for s in steps)
    found = imgops.grid_distortion_map(x, y, SIZE, normalize=normalize).double().numpy()
    axes = [stretched(s, n, count, normalize) for s, n in zip(steps, (W, H), strict=True)]
    np.testing.assert_allclose(found, np.stack(np.meshgrid(*axes)), rtol=0, atol=1e-4)
    functional = pytest.importorskip("albumentations.augmentations.geometric.functional")
    if normalize:
        made = functional.normalize_grid_distortion_steps(SIZE, count, x, y)
        x, y = made["steps_x"], made["steps_y"]
    wanted = np.stack(functional.generate_grid(SIZE, x, y, count))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4)


def test_a_plate_moves_its_points() -> None:
    corners = np.array([[0.0, 0], [W - 1, 0], [0, H - 1], [20, 11]])
    moved = imgops.thin_plate_spline_map(
        torch.from_numpy(corners[::-1].copy()), torch.from_numpy(corners), SIZE
    )
    at = corners.astype(int)
    assert np.abs(moved[:, at[:, 1], at[:, 0]].T.numpy() - corners[::-1]).max() < 1e-4


@pytest.mark.parametrize("log", [False, True])
def test_polar(log: bool) -> None:
    """It gives the pixels of cv2.warpPolar there and back; a position next to a step of 1/32 may round differently."""
    image = cv2.GaussianBlur(RNG.integers(0, 256, SIZE, dtype=np.uint8), (9, 9), 3)
    flags = cv2.INTER_LINEAR | cv2.WARP_FILL_OUTLIERS | (cv2.WARP_POLAR_LOG if log else 0)
    center, radius = (20.3, 15.7), 18.0
    wanted = cv2.warpPolar(image, (60, 80), center, radius, flags)
    found = imgops.remap(torch.from_numpy(image)[None], imgops.polar_map(center, radius, (80, 60), log=log))
    apart = np.abs(found[0].numpy().astype(int) - wanted)
    assert apart.max() <= 1 and (apart > 0).mean() < 0.01
    back = cv2.warpPolar(wanted, (W, H), center, radius, flags | cv2.WARP_INVERSE_MAP)
    map = imgops.polar_map(center, radius, SIZE, log=log, inverse=True, source_size=(80, 60))
    one_row_down = torch.tensor([0.0, 1.0]).reshape(2, 1, 1)  # as the docstring says
    padded = imgops.pad(torch.from_numpy(wanted)[None], (0, 1), "wrap")
    found = imgops.remap(padded, map + one_row_down)
    outside = map[0].numpy() > 60
    assert 0.1 < outside.mean() < 0.7 and not back[outside].any()
    apart = np.abs(found[0].numpy().astype(int) - back)
    assert apart.max() <= 1 and (apart > 0).mean() < 0.1


def test_numbers_and_devices() -> None:
    found: Any = imgops.optical_distortion_map(0.1, (4, 5), device="meta")
    assert found.device.type == "meta" and found.shape == (2, 4, 5) and found.dtype == torch.float32
    assert imgops.polar_map((2.0, 2.0), 3.0, (4, 5), device="meta").device.type == "meta"


CORNERS = torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [3.0, 3.0]])
_LINE = torch.tensor([[0, 0], [1, 3], [2, 6], [3, 9]]) * torch.tensor(0.1, dtype=torch.float64)
_MAPS: dict[str, Callable[..., Tensor]] = {
    "polar_map": partial(imgops.polar_map, (2.0, 2.0), 4.0, (4, 5)),
    "grid_distortion_map": partial(imgops.grid_distortion_map, [1.0, 2], [1.0, 2], (4, 5)),
    "optical_distortion_map": partial(imgops.optical_distortion_map, 0.1, (4, 5)),
    "thin_plate_spline_map": partial(imgops.thin_plate_spline_map, CORNERS, CORNERS, (4, 5)),
}


@pytest.mark.parametrize("name", _MAPS)
def test_other_dtypes_are_refused(name: str) -> None:
    for dtype in (torch.float16, torch.uint8, torch.int64, torch.complex64, "float32", None):
        with pytest.raises(TypeError, match=f"^{name}: dtype must be torch.float32 or torch.float64, got "):
            _MAPS[name](dtype=dtype)


def _noise() -> Tensor:
    return torch.rand(2, 4, 5)


#: Calls with a parameter, whose error begins with the function and this name.
_PARAMETERS: dict[str, Callable[[Any], object]] = {
    "elastic_map: alpha": lambda v: imgops.elastic_map(_noise(), v, 2.0),
    "elastic_map: sigma": lambda v: (
        imgops.elastic_map(_noise(), 1.0, v, 5),
        imgops.elastic_map(_noise(), 1.0, v),
    ),
    "polar_map: max_radius": lambda v: [
        imgops.polar_map((2.0, 2.0), v, (4, 5), log=log) for log in (True, False)
    ],
    "polar_map: center": lambda v: imgops.polar_map((v, 2.0), 4.0, (4, 5)),
    "grid_distortion_map: steps_x": lambda v: imgops.grid_distortion_map([v, 1], [1, 1], (4, 5)),
    "grid_distortion_map: steps_y": lambda v: imgops.grid_distortion_map([1, 1], [v, 1], (4, 5)),
    "optical_distortion_map: coefficients": lambda v: imgops.optical_distortion_map(v, (4, 5)),
    "thin_plate_spline_map: targets": lambda v: imgops.thin_plate_spline_map(CORNERS, CORNERS * v, (4, 5)),
    "shot_noise: scale": lambda v: imgops.shot_noise(_noise(), _noise(), v),
    "speckle_noise: sigma": lambda v: imgops.speckle_noise(_noise(), _noise(), v),
    "iso_noise: intensity": lambda v: imgops.iso_noise(torch.rand(3, 4, 5), _noise(), 36.0, v),
}
_OF_NUMBERS = (
    *("elastic_map: alpha", "elastic_map: sigma", "polar_map: max_radius"),
    "optical_distortion_map: coefficients",
)


@pytest.mark.parametrize(
    ("error", "values", "names"),
    [
        (ValueError, (math.nan, math.inf, -math.inf), _PARAMETERS),
        (TypeError, ("x", None, 1j, torch.tensor(1j), torch.tensor(True)), _OF_NUMBERS),
        (ValueError, (0, -1.0, 10**400), ("polar_map: max_radius",)),
    ],
    ids=["not finite", "no numbers", "no radius"],
)
def test_parameters_that_are_refused(error: type[Exception], values: Any, names: Any) -> None:
    for start, value in itertools.product(names, values):
        with pytest.raises(error, match=f"^{start} must (be|not be|fit into) .*, got "):
            _PARAMETERS[start](value)


#: The beginning of an error -> calls with tensors (3, 4, 2), or with others, that raise it.
_REFUSED: dict[str, list[Callable[[Tensor], object]]] = {
    "polar_map: max_radius must have": [lambda x: imgops.polar_map(x[:2, 0], x[:3, 0, 0] + 1, (4, 5))],
    "grid_distortion_map: steps_y must have": [
        lambda x: imgops.grid_distortion_map(x[:2, 0], x[:3, 0], (4, 5))
    ],
    "grid_distortion_map: steps_y must not add up to 0 with normalize": [
        lambda x: imgops.grid_distortion_map([1.0, 1], [0.0, 0], (4, 5))
    ],
    "thin_plate_spline_map: targets must": [
        lambda x: imgops.thin_plate_spline_map(x[:2], x[:3], (4, 5)),
        lambda x: imgops.thin_plate_spline_map(x[0], x[0, :3], (4, 5)),
    ],
    "elastic_map: alpha must have": [
        lambda x: imgops.elastic_map(torch.rand(2, 2, 4, 5), x[:3, 0, 0], 2.0),
        lambda x: imgops.elastic_map(_noise(), x[:3, 0, 0], 2.0),
    ],
    "elastic_map: sigma must have": [lambda x: imgops.elastic_map(_noise(), 1.0, [1.0, 2.0])],
}


def test_values_that_do_not_fit_are_refused() -> None:
    check_refusals(
        {start: [partial(call, torch.rand(3, 4, 2)) for call in calls] for start, calls in _REFUSED.items()},
        ValueError,
    )
    lists = {
        "flow_map: flow must be a Tensor, got list": [partial(imgops.flow_map, [[1.0]])],
        "elastic_map: noise must be a Tensor, got list": [partial(imgops.elastic_map, [[1.0]], 1.0, 2.0)],
    }
    check_refusals(lists, TypeError)
    assert imgops.grid_distortion_map([1.0, 1], [0.0, 0], (4, 5), normalize=False).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_plate_needs_targets_that_are_apart_and_not_in_line(dtype: torch.dtype) -> None:
    twice = CORNERS.double()
    twice[1] = twice[0]
    wrong = {"be different points": twice, "not lie in one line": _LINE}
    for must, targets in wrong.items():
        for values in (targets, torch.stack([CORNERS.double(), targets])):
            with pytest.raises(ValueError, match=f"^thin_plate_spline_map: targets must {must}, got some"):
                imgops.thin_plate_spline_map(CORNERS.to(dtype), values.to(dtype), (4, 5))
    for points in wrong.values():  # the values in the image may be anything there
        assert imgops.thin_plate_spline_map(points.to(dtype), CORNERS.to(dtype), (4, 5)).isfinite().all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_noise_that_is_not_finite_is_no_warning(value: float) -> None:
    image, noise = torch.full((3, 4, 5), 9, dtype=torch.uint8), torch.full((3, 4, 5), value)
    for call in (imgops.shot_noise, imgops.speckle_noise):
        assert call(image, noise, 0.5).shape == image.shape
    assert imgops.iso_noise(image, noise[:2], 36.0, 0.5).shape == image.shape
