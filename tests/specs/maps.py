"""The functions that make maps for remap, and the positions that OpenCV, SciPy and NumPy compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

import imgops
from tests.specs import _benchmarks as bench
from tests.specs._libraries import Array, chw, photo_frame
from tests.specs._maker import Maker, parameter
from tests.specs._spec import Benchmark, OpSpec, Refused, Sample, Tolerance

ones = torch.ones
_POINTS = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.8, 0.9], [0.4, 0.5]])
_MOVED = _POINTS + torch.tensor([[0.0, 0.0], [0.1, 0.0], [0.0, -0.1], [0.1, 0.1], [-0.1, 0.05]])


def _by_remap(make: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: imgops.remap(x, make(x))


def _by_opencv(make: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Run cv2.remap with the same map."""

    def call(x: Tensor) -> Tensor:
        across, down = (m.numpy() for m in make(x))
        return chw(cv2.remap(photo_frame(x), across, down, cv2.INTER_LINEAR))

    return call


def _size(x: Tensor) -> tuple[int, int]:
    return x.shape[-2], x.shape[-1]


def _scale(x: Tensor) -> Tensor:
    return torch.tensor([x.shape[-1], x.shape[-2]], dtype=torch.float32)


def _elastic(x: Tensor, alpha: float = 120.0, sigma: float = 8.0, seed: int = 0) -> Tensor:
    noise = torch.rand(2, *_size(x), generator=torch.Generator().manual_seed(seed)) * 2 - 1
    return imgops.elastic_map(noise, alpha, sigma)


def _moved_middle(x: Tensor) -> Tensor:
    at = torch.tensor([[0.0, 0], [1, 0], [0, 1], [1, 1], [0.5, 0.5]]) * _scale(x)
    moved = at + torch.tensor([[0.0, 0]] * 4 + [[0.2, -0.25]]) * x.shape[-1]
    return imgops.thin_plate_spline_map(at, moved, _size(x))


def _each(m: Maker, values: Any) -> Tensor:
    """Return a parameter that differs a little from one sample, and one seed, to the next."""
    batch = torch.Size(m.batch)
    base = torch.tensor(values, dtype=torch.float64).to(m.dtype)
    scales = 1 + (torch.arange(batch.numel()) + m.seed).reshape((*batch, *[1] * base.ndim)) / 20
    return parameter(m, base * scales.to(m.dtype))


def _of_dtype(m: Maker, *arguments: Any) -> tuple[Any, ...]:
    """Return the arguments of a map that is not made of an image's dtype."""
    return *arguments, {"dtype": m.dtype}


def _pixels(height: int, width: int) -> tuple[Array, Array]:
    y, x = np.mgrid[:height, :width]
    return x.astype(np.float64), y.astype(np.float64)


def flow_reference(flow: Array) -> Array:
    return (np.stack(_pixels(*flow.shape[1:])) + flow).astype(flow.dtype)


def elastic_reference(noise: Array, alpha: float, sigma: float, kernel_size: int | None = None) -> Array:
    """Smooth with OpenCV, with torchvision's size of the kernel by default."""
    side = kernel_size or int(8 * sigma + 1) | 1
    smooth = [cv2.GaussianBlur(n, (side, side), sigma, borderType=cv2.BORDER_REFLECT_101) for n in noise]
    return np.stack(_pixels(*noise.shape[1:])) + alpha * np.stack(smooth)


def grid_reference(steps_x: Array, steps_y: Array, size: tuple[int, int]) -> Array:
    axes = [stretched(s, n, len(s) - 1, True) for s, n in zip((steps_x, steps_y), size[::-1], strict=True)]
    return np.stack(np.meshgrid(*axes))


def stretched(steps: Array, extent: int, count: int, normalize: bool) -> Array:
    """Return the positions along an axis whose cells are as many times as wide as the steps say."""
    cell = extent // count
    if normalize:
        last = min(extent, (count + 1) * cell) - count * cell
        steps = np.append(steps[:-1], steps[-1] * last / cell)
        steps = steps * (extent / cell / steps.sum())
    out, before = np.zeros(extent), 0.0
    for i, step in enumerate(steps):
        start, end = i * cell, min((i + 1) * cell, extent)
        out[start:end] = np.linspace(before, before + cell * step, end - start)
        before += cell * step
    return out


def optical_reference(coefficients: Array, size: tuple[int, int], method: str = "camera") -> Array:
    """Run OpenCV for a camera; for a fisheye, stretch the distances from the middle."""
    height, width = size
    middle = (width - 1) / 2, (height - 1) / 2
    if method == "camera":
        camera = np.array([[width, 0, middle[0]], [0, height, middle[1]], [0, 0, 1]])
        five = coefficients if len(coefficients) == 5 else np.array([*coefficients, *coefficients, 0, 0, 0])
        return np.stack(cv2.initUndistortRectifyMap(camera, five, None, None, (width, height), cv2.CV_32FC1))
    x, y = (p - m for p, m in zip(_pixels(*size), middle, strict=True))
    factor = 1 + coefficients[0] * (x * x + y * y) / (width**2 / 4 + height**2 / 4)
    return np.stack([x * factor + middle[0], y * factor + middle[1]])


def thin_plate_reference(points: Array, targets: Array, size: tuple[int, int]) -> Array:
    from scipy.interpolate import RBFInterpolator

    spline = RBFInterpolator(targets.astype(float), points.astype(float), kernel="thin_plate_spline")
    at = np.stack([p.ravel() for p in _pixels(*size)], -1)
    return spline(at).T.reshape(2, *size)


def _calls(make: Callable[[Tensor], Tensor], raw: Callable[[int], Any]) -> Callable[[Any], bench.Calls]:
    """Time the computation of the map alone; the raw call gets the size."""

    def calls(case: Any) -> bench.Calls:
        x = case.image()
        return lambda: make(x), lambda: raw(case.size), None, None

    return calls


def _spec(
    name: str,
    make: Callable[[Tensor], Tensor],
    named: str,
    formula: str,
    samples: tuple[Sample, ...],
    reference: Callable[..., Array] | str,
    cores: tuple[int, ...],
    refused: Refused,
    *,
    difference: str = "1e-4 pixels",
    raw: tuple[str, Callable[[int], Any]] | None = None,
    picture: Callable[[Tensor], Tensor],
    **facts: Any,
) -> OpSpec:
    benchmarks = (Benchmark(name, raw[0], _calls(make, raw[1])),) if raw else ()
    if difference != "0":
        facts["tolerance"] = dict.fromkeys((torch.float32, torch.float64), Tolerance(1e-4))
    return OpSpec(
        name,
        samples=samples,
        refused=refused,
        reference=reference,
        reference_name=named,
        dtypes=(torch.float32, torch.float64),
        cores=cores,
        difference=difference,
        dtype_names="float32, float64",
        section="Maps",
        formula=formula,
        border="that of remap",
        photo=(_by_remap(make), _by_opencv(make)),
        picture=_by_remap(picture),
        benchmarks=benchmarks,
        **facts,
    )


def _camera(n: int) -> Any:
    camera = np.array([[n, 0, (n - 1) / 2], [0, n, (n - 1) / 2], [0, 0, 1]], np.float32)
    k = np.array([-0.3, -0.3, 0, 0, 0], np.float32)
    return cv2.initUndistortRectifyMap(camera, k, None, None, (n, n), cv2.CV_32FC1)


FLOW_MAP = _spec(
    "flow_map",
    lambda x: imgops.flow_map(10 * torch.sin(torch.arange(x.shape[-1]) / 20).expand(2, *_size(x))),
    "`numpy.mgrid`",
    r"m_p = p + f_p",
    (Sample("flow", lambda m: (m.image(2, 4, 5),)),),
    flow_reference,
    (3,),
    refused={
        TypeError: {
            "flow must be float32 or float64, got torch.int64": lambda x: imgops.flow_map(x[:, :2].long()),
        },
        ValueError: {
            "flow must have 2 channels (x, y), got 3": lambda x: imgops.flow_map(x),
        },
    },
    difference="0",
    words="``flow``",
    picture=lambda x: imgops.flow_map(torch.full((2, *_size(x)), 45.0)),
)
ELASTIC_MAP = _spec(
    "elastic_map",
    _elastic,
    "`cv2.GaussianBlur`",
    r"m_p = p + \alpha\,(g_\sigma * n)_p",
    (
        Sample("numbers", lambda m: (m.image(2, 9, 12), 30.0, 1.2)),
        Sample("each", lambda m: (m.image(2, 7, 6), _each(m, 3.0), _each(m, 1.2), 5)),
    ),
    elastic_reference,
    (3, 0, 0, 0),
    refused={
        ValueError: {
            "noise must have 2 channels (x, y), got 3": lambda x: imgops.elastic_map(x, 1, 1),
            "kernel_size must be given for a tensor sigma, got None": lambda x: imgops.elastic_map(
                x[:, :2], 1, ones(())
            ),
            "kernel_size must be odd and positive, got 4": lambda x: imgops.elastic_map(x[:, :2], 1, 1, 4),
            "sigma must not be negative, got nan": lambda x: imgops.elastic_map(x[:, :2], 1, float("nan"), 5),
        },
        TypeError: {
            "kernel_size must be an integer, got tuple (3, 5)": lambda x: imgops.elastic_map(
                x[:, :2], 1, 1, (3, 5)
            ),  # type: ignore[arg-type]
        },
    },
    difference="1e-4 pixels",
    transforms=("RandomElastic",),
    picture=lambda x: _elastic(x, 220.0, 7.0, seed=1),
)
GRID_DISTORTION_MAP = _spec(
    "grid_distortion_map",
    lambda x: imgops.grid_distortion_map(
        [0.7, 1.3, 0.8, 1.2, 1.0, 1.0], [1.2, 0.8, 1.1, 0.7, 1.2, 1.0], _size(x)
    ),
    "albumentations' `generate_grid`",
    r"m\ \text{piecewise linear, with slopes}\ s_1, \dots, s_n",
    (
        Sample(
            "steps",
            lambda m: _of_dtype(m, _each(m, [0.8, 1.1, 1.2]), _each(m, [1.2, 0.9, 1.0, 1.1]), (7, 9)),
        ),
    ),
    grid_reference,
    (1, 1),
    refused={
        ValueError: {
            "steps_x must have from 2 to 4 values, got 1": lambda x: imgops.grid_distortion_map(
                [1.0], [1.0, 1.0], (4, 3)
            ),
            "size must be positive, got (0, 3)": lambda x: imgops.grid_distortion_map(
                [1.0, 1.0], [1.0, 1.0], (0, 3)
            ),
        },
        TypeError: {
            "normalize must be a bool, got 'False'": lambda x: imgops.grid_distortion_map(
                [1.0, 1.0], [1.0, 1.0], (4, 3), normalize="False"
            ),  # type: ignore[arg-type]
        },
    },
    words="``steps_x``, ``steps_y``, ``normalize``, ``distort`` (albumentations)",
    transforms=("RandomGridDistortion",),
    picture=lambda x: imgops.grid_distortion_map(
        [0.5, 1.6, 0.5, 1.6, 0.8, 1], [1.6, 0.5, 1.4, 0.5, 1], _size(x)
    ),
)
OPTICAL_DISTORTION_MAP = _spec(
    "optical_distortion_map",
    lambda x: imgops.optical_distortion_map(-0.6, _size(x)),
    "`cv2.initUndistortRectifyMap`",
    r"x' = x\,(1 + k_1 r^2 + k_2 r^4 + k_3 r^6) + 2 p_1 x y + p_2 (r^2 + 2 x^2)",
    (
        Sample("camera", lambda m: _of_dtype(m, _each(m, [0.1, -0.05, 0.01, 0.02, 0.03]), (7, 8))),
        Sample("one", lambda m: _of_dtype(m, _each(m, [-0.2]), (7, 8))),
        Sample("fisheye", lambda m: _of_dtype(m, _each(m, [0.3]), (7, 8), "fisheye")),
    ),
    optical_reference,
    (1,),
    refused={
        ValueError: {
            "method must be one of 'camera', 'fisheye', got 'lens'": lambda x: imgops.optical_distortion_map(
                0.1, (4, 3), "lens"
            ),
            "coefficients must have 1 or 5 values for 'camera', got 4": lambda x: (
                imgops.optical_distortion_map([0.1] * 4, (4, 3))
            ),
        },
    },
    raw=("cv2.initUndistortRectifyMap", _camera),
    words="``coefficients``, ``distort``",
    transforms=("RandomOpticalDistortion",),
    picture=lambda x: imgops.optical_distortion_map(0.9, _size(x)),
)
THIN_PLATE_SPLINE_MAP = _spec(
    "thin_plate_spline_map",
    lambda x: imgops.thin_plate_spline_map(_POINTS * _scale(x), _MOVED * _scale(x), _size(x)),
    "`scipy.interpolate.RBFInterpolator`",
    r"m_p = A p + \sum_i w_i\, |p - t_i|^2 \log |p - t_i|,\quad m_{t_i} = s_i",
    (
        Sample(
            "four",
            lambda m: _of_dtype(
                m,
                _each(m, [[0.0, 0.0], [4.0, 0.0], [0.0, 3.0], [2.5, 1.5]]),
                _each(m, [[0.3, 0.0], [4.0, 0.2], [0.0, 3.1], [2.1, 1.2]]),
                (6, 7),
            ),
        ),
    ),
    thin_plate_reference,
    (2, 2),
    refused={
        ValueError: {
            "points must be (..., n, 2) with n of at least 3, got shape (2, 2)": lambda x: (
                imgops.thin_plate_spline_map(ones(2, 2), ones(2, 2), (4, 3))
            ),
        },
    },
    words="``points``, ``targets``",
    transforms=("RandomThinPlateSpline",),
    picture=_moved_middle,
)
POLAR_MAP = _spec(
    "polar_map",
    lambda x: imgops.polar_map((x.shape[-1] / 2, x.shape[-2] / 2), x.shape[-2] / 2, _size(x)),
    "`cv2.warpPolar`",
    r"m = c + \rho\,(\cos\varphi, \sin\varphi),\quad \rho = x\,r/w,\ \varphi = 2\pi y/h",
    (
        Sample("polar", lambda m: _of_dtype(m, _each(m, [2.2, 1.7]), _each(m, 2.5), (4, 5))),
        Sample(
            "back",
            lambda m: (
                _each(m, [2.2, 1.7]),
                _each(m, 2.5),
                (4, 5),
                {"dtype": m.dtype, "log": True, "inverse": True},
            ),
        ),
    ),
    "tests/test_maps.py::test_polar",
    (1, 0),
    refused={
        ValueError: {
            "center must have 2 values (x, y), got shape (3,)": lambda x: imgops.polar_map(
                (1.0, 2.0, 3.0), 4.0, (4, 3)
            ),
            "size must span fewer than 2**31 pixels, got 1099511627776 x 3": lambda x: imgops.polar_map(
                (1.0, 2.0), 4.0, (2**40, 3)
            ),
        },
        TypeError: {
            "log must be a bool, got 'no'": lambda x: imgops.polar_map((1.0, 2.0), 4.0, (4, 3), log="no"),  # type: ignore[arg-type]
        },
    },
    words="``center``, ``log``, ``inverse``",
    picture=lambda x: imgops.polar_map((x.shape[-1] / 2, x.shape[-2] / 2), x.shape[-2], _size(x)),
)

SPECS = (FLOW_MAP, ELASTIC_MAP, GRID_DISTORTION_MAP, OPTICAL_DISTORTION_MAP, THIN_PLATE_SPLINE_MAP, POLAR_MAP)
