"""The maps against OpenCV, SciPy, NumPy and albumentations; their gradients, batches and graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend

import imgops

SIZE = H, W = 37, 50
RNG = np.random.default_rng(0)


def close(found: Tensor, *wanted: np.ndarray, tolerance: float = 1e-4) -> None:
    assert np.abs(found.double().numpy() - np.stack(wanted)).max() <= tolerance


def test_flow() -> None:
    flow = torch.randn(2, H, W)
    y, x = np.mgrid[:H, :W].astype(np.float32)
    assert np.array_equal(imgops.flow_map(flow).numpy(), np.stack([x, y]) + flow.numpy())


@pytest.mark.parametrize("kernel_size", [None, 17])
def test_elastic(kernel_size: int | None) -> None:
    noise = RNG.uniform(-1, 1, (2, H, W)).astype(np.float32)
    found = imgops.elastic_map(torch.from_numpy(noise), 30.0, 4.0, kernel_size)
    size = kernel_size or 33
    y, x = np.mgrid[:H, :W]
    smooth = [cv2.GaussianBlur(n, (size, size), 4.0, borderType=cv2.BORDER_REFLECT_101) for n in noise]
    close(found, x + 30 * smooth[0], y + 30 * smooth[1])


@pytest.mark.parametrize("count", [4, 5, 7])
@pytest.mark.parametrize("normalize", [False, True])
def test_grid_distortion(count: int, normalize: bool) -> None:
    """The definition, and albumentations where it is installed."""
    steps = [1 + RNG.uniform(-0.3, 0.3, count + 1) for _ in range(2)]
    found = imgops.grid_distortion_map(*(s.tolist() for s in steps), SIZE, normalize=normalize)
    axes = [_stretched(s, n, count, normalize) for s, n in zip(steps, (W, H), strict=True)]
    close(found, *np.meshgrid(*axes))
    functional = pytest.importorskip("albumentations.augmentations.geometric.functional")
    x, y = (s.tolist() for s in steps)
    if normalize:
        made = functional.normalize_grid_distortion_steps(SIZE, count, x, y)
        x, y = made["steps_x"], made["steps_y"]
    close(found, *functional.generate_grid(SIZE, x, y, count))


def _stretched(steps: np.ndarray, extent: int, count: int, normalize: bool) -> np.ndarray:
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


@pytest.mark.parametrize("k", [0.3, -0.2])
def test_optical_distortion(k: float) -> None:
    camera = np.array([[W, 0, W / 2], [0, H, H / 2], [0, 0, 1]], np.float32)
    for coefficients in ([k, k, 0, 0, 0], [k, -0.05, 0.01, 0.02, 0.03]):
        own = np.array(coefficients, np.float32)
        wanted = cv2.initUndistortRectifyMap(camera, own, None, None, (W, H), cv2.CV_32FC1)
        close(imgops.optical_distortion_map(coefficients, SIZE), *wanted)
    one = imgops.optical_distortion_map(k, SIZE)
    both = imgops.optical_distortion_map([k, k, 0.0, 0.0, 0.0], SIZE)
    torch.testing.assert_close(one, both, rtol=0, atol=1e-5)
    y, x = np.mgrid[:H, :W]
    x, y = x - W / 2, y - H / 2
    factor = 1 + k * (x * x + y * y) / (W * W / 4 + H * H / 4)
    close(imgops.optical_distortion_map(k, SIZE, "fisheye"), x * factor + W / 2, y * factor + H / 2)
    functional = pytest.importorskip("albumentations.augmentations.geometric.functional")
    close(one, *functional.get_camera_matrix_distortion_maps(SIZE, k))
    close(imgops.optical_distortion_map(k, SIZE, "fisheye"), *functional.get_fisheye_distortion_maps(SIZE, k))


def test_thin_plate_spline() -> None:
    interpolate = pytest.importorskip("scipy.interpolate")
    points = RNG.uniform(0, 40, (9, 2))
    targets = points + RNG.normal(0, 3, (9, 2))
    found = imgops.thin_plate_spline_map(
        torch.from_numpy(points), torch.from_numpy(targets), SIZE, dtype=torch.float64
    )
    y, x = np.mgrid[:H, :W]
    spline = interpolate.RBFInterpolator(targets, points, kernel="thin_plate_spline")
    wanted = spline(np.stack([x.ravel(), y.ravel()], -1)).reshape(H, W, 2)
    close(found, wanted[..., 0], wanted[..., 1], tolerance=1e-9)
    corners = np.array([[0.0, 0], [W - 1, 0], [0, H - 1], [20, 11]])
    moved = imgops.thin_plate_spline_map(
        torch.from_numpy(corners[::-1].copy()), torch.from_numpy(corners), SIZE
    )
    at = corners.astype(int)
    assert np.abs(moved[:, at[:, 1], at[:, 0]].T.numpy() - corners[::-1]).max() < 1e-4


@pytest.mark.parametrize("log", [False, True])
def test_polar(log: bool) -> None:
    """The pixels of cv2.warpPolar there and back; a position next to a step of 1/32 may round to another level."""
    image = cv2.GaussianBlur(RNG.integers(0, 256, SIZE, dtype=np.uint8), (9, 9), 3)
    flags = cv2.INTER_LINEAR | cv2.WARP_FILL_OUTLIERS | (cv2.WARP_POLAR_LOG if log else 0)
    center, radius = (20.3, 15.7), 18.0
    wanted = cv2.warpPolar(image, (60, 80), center, radius, flags)
    found = imgops.remap(torch.from_numpy(image)[None], imgops.polar_map((80, 60), center, radius, log=log))
    apart = np.abs(found[0].numpy().astype(int) - wanted)
    assert apart.max() <= 1 and (apart > 0).mean() < 0.01
    back = cv2.warpPolar(wanted, (W, H), center, radius, flags | cv2.WARP_INVERSE_MAP)
    map = imgops.polar_map(SIZE, center, radius, log=log, inverse=True, source_size=(80, 60))
    found = imgops.remap(torch.from_numpy(wanted)[None], map, border="wrap")
    inside = map[0].numpy() < 58
    apart = np.abs(found[0].numpy().astype(int) - back)[inside]
    assert inside.mean() > 0.3 and apart.max() <= 1 and (apart > 0).mean() < 0.1


D = torch.float64
CALLS: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "flow": (imgops.flow_map, (torch.randn(2, 4, 5, dtype=D),)),
    "elastic": (
        lambda n, a, s: imgops.elastic_map(n, a, s, 5),
        (torch.randn(2, 4, 5, dtype=D), torch.tensor(3.0, dtype=D), torch.tensor(1.2, dtype=D)),
    ),
    "grid": (
        lambda x, y: imgops.grid_distortion_map(x, y, (6, 7), dtype=D),
        (torch.tensor([0.8, 1.1, 1.2], dtype=D), torch.tensor([1.2, 0.9, 1.0, 1.1], dtype=D)),
    ),
    "camera": (
        lambda k: imgops.optical_distortion_map(k, (4, 5), dtype=D),
        (torch.tensor([0.1, -0.05, 0.01, 0.02, 0.03], dtype=D),),
    ),
    "fisheye": (
        lambda k: imgops.optical_distortion_map(k, (4, 5), "fisheye", dtype=D),
        (torch.tensor([0.3], dtype=D),),
    ),
    "spline": (
        lambda p, t: imgops.thin_plate_spline_map(p, t, (4, 5), dtype=D),
        (
            torch.tensor([[0.0, 0], [4, 0], [0, 3], [2.5, 1.5]], dtype=D),
            torch.tensor([[0.3, 0], [4, 0.2], [0, 3.1], [2.1, 1.2]], dtype=D),
        ),
    ),
    "polar": (
        lambda c, r: imgops.polar_map((4, 5), c, r, dtype=D),
        (torch.tensor([2.2, 1.7], dtype=D), torch.tensor(2.5, dtype=D)),
    ),
    "log-polar back": (
        lambda c, r: imgops.polar_map((4, 5), c, r, log=True, inverse=True, dtype=D),
        (torch.tensor([2.2, 1.7], dtype=D), torch.tensor(2.5, dtype=D)),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_gradients(name: str) -> None:
    function, tensors = CALLS[name]
    leaves = tuple(t.clone().requires_grad_() for t in tensors)
    assert torch.autograd.gradcheck(function, leaves, check_forward_ad=name != "elastic")
    assert torch.autograd.gradgradcheck(function, leaves, fast_mode=True)


@pytest.mark.parametrize("name", CALLS)
def test_a_batch_is_a_loop(name: str) -> None:
    """Parameters of each sample, and vmap."""
    function, tensors = CALLS[name]
    both = [torch.stack([t, t * 1.1]) for t in tensors]
    wanted = torch.stack([function(*tensors), function(*(t[1] for t in both))])
    torch.testing.assert_close(function(*both), wanted, rtol=0, atol=1e-9)
    torch.testing.assert_close(torch.vmap(function)(*both), wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", CALLS)
def test_one_graph_without_recompiles(name: str) -> None:
    function, tensors = CALLS[name]
    torch.compiler.reset()
    counter = CompileCounterWithBackend("aot_eager")
    graph = torch.compile(function, fullgraph=True, backend=counter)
    counts = []
    for scale in (1.0, 1.1, 0.9):
        scaled = [t * scale for t in tensors]
        torch.testing.assert_close(graph(*scaled), function(*scaled), rtol=0, atol=1e-9)
        counts.append(counter.frame_count)
    assert counts[0] == counts[-1], "another value was compiled again"


def test_numbers_and_devices() -> None:
    found: Any = imgops.optical_distortion_map(0.1, (4, 5), device="meta")
    assert found.device.type == "meta" and found.shape == (2, 4, 5) and found.dtype == torch.float32
    assert imgops.polar_map((4, 5), (2.0, 2.0), 3.0, device="meta").device.type == "meta"
