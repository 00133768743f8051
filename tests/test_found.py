"""The faults that random calls found (:mod:`tests.fuzz_calls`), each with the call that showed it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

import imgops
from imgops import transforms as v2
from imgops.decomposition import blur

ROOT = Path(__file__).parent.parent
IMAGE = torch.arange(3 * 6 * 7).reshape(3, 6, 7).to(torch.uint8)


def test_a_parameter_without_values() -> None:
    """The result was uninitialized memory."""
    for call in (
        lambda: imgops.threshold(IMAGE, torch.empty((), device="meta")),
        lambda: imgops.color_matrix(IMAGE, torch.empty(3, 3, device="meta")),
        lambda: imgops.crop(IMAGE, torch.empty(4, dtype=torch.int64, device="meta")),
    ):
        with pytest.raises(ValueError, match=r"^\w+: \w+ must .*, got .*meta"):
            call()


@pytest.mark.parametrize("dispatched", [False, True])
def test_objects_that_are_no_strings_or_switches(dispatched: bool) -> None:
    """The dispatcher raised errors of its own, or took bytes for a string."""
    image = torch.rand(3, 6, 7, requires_grad=dispatched)
    for wrong in (b"bytes", [None], {}, None, 3, object()):
        with pytest.raises(ValueError, match=r"^pad: padding_mode must be one of 'constant', .*, got "):
            imgops.pad(image, 1, padding_mode=wrong)  # type: ignore[arg-type]
        with pytest.raises((TypeError, ValueError), match=r"^cvt_color: code must be "):
            imgops.cvt_color(image, wrong)  # type: ignore[arg-type]
    for wrong in (b"bytes", np.arange(4), None, "text"):
        with pytest.raises(TypeError, match=r"^resize: antialias must be a bool, got "):
            imgops.resize(image, (3, 3), antialias=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^encode_image: quality must be an int, got 1.0"):
        imgops.encode_image(IMAGE, "png", 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["fit", "cover", "contain"])
def test_sizes_of_pil(name: str) -> None:
    function = getattr(imgops, name)
    with pytest.raises(TypeError, match=rf"^{name}: image must be a Tensor, got list"):
        function([], (3, 3))
    with pytest.raises(ValueError, match=rf"^{name}: size must be 32-bit, got "):
        function(IMAGE, (2**62, 3))
    with pytest.raises(TypeError, match=r"^fit: centering must be 2 numbers"):
        imgops.fit(IMAGE, (3, 3), centering=([], 1))  # type: ignore[arg-type]


def test_sizes_without_sense() -> None:
    """They raised OpenCV's errors, or took minutes and gigabytes."""
    for call in (
        lambda n: imgops.gaussian_blur(IMAGE, n),
        lambda n: imgops.median_blur(IMAGE, n),
        lambda n: imgops.box_blur(IMAGE, n),
        lambda n: imgops.motion_blur(IMAGE, n),
        lambda n: imgops.bilateral_filter(IMAGE, n, 9.0, 2.0),
        lambda n: imgops.clahe(IMAGE, 2.0, n),
        lambda n: imgops.adaptive_threshold(IMAGE, kernel_size=n),
        lambda n: imgops.erode(IMAGE, n),
        lambda n: imgops.morphology(IMAGE, "open", (1, n)),
        lambda n: imgops.unsharp_mask(IMAGE, float(n)),
        lambda n: imgops.unsharp_mask(IMAGE, 2.0, float(n)),
        lambda n: imgops.unsharp_mask(IMAGE, 2.0, 100.0, float(n)),
    ):
        for n in (2**31 - 1, 2**62 + 1):
            with pytest.raises(ValueError, match=r"^\w+: \w+ must be at most \d+.*, got "):
                call(n)


def test_differences_of_bytes_end_at_0() -> None:
    """If an element leaves out its anchor, an opened image is not below the image, and bytes wrapped around."""
    image = np.random.default_rng(0).integers(0, 256, (8, 7), dtype=np.uint8)
    element = np.ones((3, 6), np.uint8)
    for name in ("tophat", "blackhat", "gradient"):
        found = imgops.morphology(torch.from_numpy(image)[None], name, torch.from_numpy(element))
        flag = getattr(cv2, f"MORPH_{name.upper()}")
        np.testing.assert_array_equal(found[0].numpy(), cv2.morphologyEx(image, flag, element))


def test_images_of_any_strides_in_transforms() -> None:
    """OpenCV cannot write to a transposed image."""
    image = torch.rand(3, 19, 7).transpose(-1, -2)
    for made in (v2.RandomCLAHE(p=1.0), v2.RandomGrayscale(1.0), v2.RandomHorizontalFlip(1.0)):
        torch.testing.assert_close(made(image), made(image.contiguous()), rtol=0, atol=1e-6)


def test_half_precision_of_parameters() -> None:
    image, factor = torch.rand(3, 8, 9), torch.tensor(0.5)
    found = imgops.downscale(image, factor.bfloat16())
    assert torch.equal(found, imgops.downscale(image, factor))
    noise = torch.rand(1, 6, 7)
    found = imgops.salt_and_pepper(IMAGE, noise, factor.bfloat16())
    assert torch.equal(found, imgops.salt_and_pepper(IMAGE, noise, factor))
    percent, real = torch.tensor(80.0), torch.rand(3, 8, 9, dtype=torch.float64)
    found = imgops.unsharp_mask(real, 0.4, percent.half(), 0.0)
    assert torch.equal(found, imgops.unsharp_mask(real, 0.4, percent, 0.0))
    element = torch.ones(3, 3)
    assert torch.equal(imgops.dilate(image, element.bfloat16()), imgops.dilate(image, element))


@pytest.mark.parametrize("name", ["RandomFog", "RandomSunFlare", "RandomISONoise"])
def test_images_without_pixels_in_transforms(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: image must have at least one pixel, got shape"):
        getattr(v2, name)(p=1.0)(torch.zeros(3, 0, 5))


@pytest.mark.parametrize("big", [2**63, -(2**64)])
@pytest.mark.parametrize("dispatched", [False, True])
def test_integers_of_more_than_64_bits(big: int, dispatched: bool) -> None:
    """PyTorch raised "Expected a value of type 'int' but instead found type 'int'", or "Overflow when unpacking long long"."""
    image = torch.rand(3, 6, 7, requires_grad=dispatched)
    unsigned = torch.tensor([-4, 0, 3, 3]).view(torch.uint64)
    for call in (
        lambda: imgops.crop(image, (big, 0, 3, 3)),
        lambda: imgops.crop(image, unsigned),
        lambda: imgops.resize(image, (big, 3)),
        lambda: imgops.erase(image, (big, 0, 3, 3)),
        lambda: imgops.erase(image, (1, 0, 3, 3), big),
        lambda: imgops.pad(image, 1, fill=(big, 0, 0)),
        lambda: imgops.canny(IMAGE[:1], 10.0, 200.0, big),
        lambda: imgops.encode_image(IMAGE, "jpeg", big),
        lambda: imgops.decode_image(imgops.encode_image(IMAGE, "png"), max_pixels=big),
    ):
        with pytest.raises(ValueError, match=r"^\w+: \w+ must .*, got "):
            call()
    assert torch.equal(imgops.rotate90(image, big + 1), imgops.rotate90(image, 1))


BORDERS = ("constant", "edge", "reflect", "symmetric", "wrap")


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 3e38])
def test_pixels_that_are_no_numbers(value: float, channels: int) -> None:
    """OpenCV's bilateral filter read 8 GiB before its table, and the process crashed."""
    image = torch.rand(2, channels, 7, 6)
    image[1, 0, 3, 3], image[1, 0, 0, 5] = value, -value
    for border in BORDERS:
        found = imgops.bilateral_filter(image, 5, 0.8, 2.0, border)
        formula = blur.bilateral_filter(image[1], torch.tensor(0.8), torch.tensor(2.0), 5, border)
        torch.testing.assert_close(found[1], formula, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(found[0], imgops.bilateral_filter(image[0], 5, 0.8, 2.0, border))


@pytest.mark.parametrize("ipp", ["enabled", "disabled"])
def test_a_border_unlike_the_image(ipp: str) -> None:
    """Without Intel's filter, OpenCV reads beyond its table for such a border, or from 4.13 on gives it a wrong weight."""
    program = """
import torch, imgops
from imgops.decomposition import blur
for image in (torch.rand(1, 17, 15) + 0.01, torch.rand(3, 9, 8) / 100 - 7, torch.rand(1, 5, 33) - 0.5):
    found = imgops.bilateral_filter(image, 5, 3.0, 2.0, "constant")
    wanted = blur.bilateral_filter(image.double(), torch.tensor(3.0), torch.tensor(2.0), 5, "constant")
    torch.testing.assert_close(found.double(), wanted, rtol=0, atol=1e-4)
print("near")
"""
    environment = {**os.environ, "OPENCV_IPP": ipp}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout == "near\n", done.stderr[-2000:]


def test_switches_of_canny() -> None:
    """``bool(array)`` raised NumPy's error; "no" was taken for true."""
    for wrong in (np.arange(4), "no", None):
        with pytest.raises(TypeError, match=r"^canny: l2_gradient must be a bool, got "):
            imgops.canny(IMAGE[:1], 10.0, 200.0, 3, wrong)  # type: ignore[arg-type]


def test_steps_that_are_not_finite() -> None:
    amounts = torch.tensor([float("nan")])
    with pytest.raises(ValueError, match=r"^color_sequence: parameters must be finite, got nan"):
        imgops.color_sequence(IMAGE, torch.tensor([0]), amounts, ["posterize"])
