"""threshold's CUDA kernel beside OpenCV, run by Triton's interpreter: what the samples of its spec do not reach."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor

from imgops._operator.record import operators
from imgops.extend.testing import cuda_kernel
from imgops.kernels import cuda

pytestmark = pytest.mark.skipif(
    not cuda.runs_on(torch.device("cpu")), reason="Triton was imported without its interpreter"
)
FLAGS = {
    **{
        n: getattr(cv2, f"THRESH_{n.upper()}")
        for n in ("binary", "binary_inv", "trunc", "tozero", "tozero_inv")
    },
    "otsu": cv2.THRESH_OTSU,
    "triangle": cv2.THRESH_TRIANGLE,
}


def photo_like(height: int, width: int, interleaved: bool) -> Tensor:
    """Return two images with other levels in each channel."""
    rng = np.random.default_rng(3)
    middle = np.array([60, 120, 190]) + rng.choice([-30, 30], (2, height, width, 1))
    values = torch.from_numpy(rng.normal(middle, 12).clip(0, 255).astype(np.uint8)).permute(0, 3, 1, 2)
    return values if interleaved else values.contiguous()


@pytest.mark.parametrize("operation", FLAGS)
@pytest.mark.parametrize(("size", "interleaved"), [((70, 64), False), ((70, 64), True), ((5, 7), True)])
def test_channels_and_images_have_their_own_thresholds(
    operation: str, size: tuple[int, int], interleaved: bool
) -> None:
    """The larger images are whole words, and more pixels than a program counts."""
    image = photo_like(*size, interleaved)
    limits, tops = torch.tensor([100.9, -3.5]), torch.tensor([200.5, 300.0])
    found = cuda_kernel("imgops::threshold")(image, limits, tops, operation)
    for one, limit, top, out in zip(image, limits.tolist(), tops.tolist(), found, strict=True):
        for plane, got in zip(one, out, strict=True):
            frame = np.ascontiguousarray(plane.numpy())
            assert np.array_equal(cv2.threshold(frame, limit, top, FLAGS[operation])[1], got.numpy())


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_thresholds_on_the_device_may_be_any_numbers(dtype: torch.dtype) -> None:
    image, kernel = torch.tensor([0, 7, 255]).to(dtype).reshape(1, 1, 3), operators()["threshold"].cuda
    for limit, above in ((float("inf"), 0), (float("-inf"), 3), (float("nan"), 0)):
        out = torch.empty_like(image)
        assert kernel(out, image, torch.tensor(limit), torch.tensor(1.0), "binary") is None
        assert int(out.sum()) == above


def test_the_first_of_equal_splits() -> None:
    """Levels without pixels between two groups split them equally well, and so do mirrored histograms."""
    image = torch.tensor([10, 10, 200, 200], dtype=torch.uint8).reshape(1, 2, 2)
    for values in (image, torch.tensor([0, 100, 155, 255], dtype=torch.uint8).reshape(1, 2, 2)):
        found = cuda_kernel("imgops::threshold")(values, torch.tensor(0), torch.tensor(255), "otsu")
        assert found.tolist() == [[[0, 0], [255, 255]]]


def test_one_level() -> None:
    image = torch.full((3, 4, 4), 9, dtype=torch.uint8)
    for operation in ("otsu", "triangle"):
        found = cuda_kernel("imgops::threshold")(image, torch.tensor(0), torch.tensor(255), operation)
        wanted = cv2.threshold(image[0].numpy(), 0, 255, FLAGS[operation])[1]
        assert np.array_equal(found[1].numpy(), wanted)
