"""The faults that random and hostile calls found (:mod:`tests.fuzz_calls`), each with the call that showed it."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from added_cases import REQUIRED
from checks import check_compiled_raises, check_raises

import imgops
from imgops import transforms as v2
from imgops.decomposition import blur
from imgops.transforms._core.probabilistic import ADDED

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
from imgops.transforms._core.probabilistic import ADDED
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


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["erase", "pad"])
def test_a_fill_that_no_integer_holds_in_a_graph(name: str, value: float) -> None:
    """Only eager mode refused it in erase; a graph wrote 0 or 255."""
    call = {
        "erase": lambda x, v: imgops.erase(x, (0, 0, 2, 2), v),
        "pad": lambda x, v: imgops.pad(x, 1, fill=v),
    }[name]
    message = f"{name}: fill must be finite for torch.uint8, got {value}"
    check_raises(lambda: call(IMAGE, value), ValueError, message)
    check_compiled_raises(call, message, IMAGE, value, backend="eager")


#: Calls with a switch, and their names.
SWITCHES: dict[str, Callable[[Any], Any]] = {
    "resize: antialias": lambda v: imgops.resize(IMAGE, (3, 3), antialias=v),
    "resized_crop: antialias": lambda v: imgops.resized_crop(IMAGE, (0, 0, 3, 3), (2, 2), antialias=v),
    "resize_out: antialias": lambda v: imgops.resize_out(
        IMAGE, (3, 3), antialias=v, out=torch.zeros(3, 3, 3, dtype=torch.uint8)
    ),
    "canny: l2_gradient": lambda v: imgops.canny(IMAGE, 1.0, 2.0, 3, v),
    "connected_components: statistics": lambda v: imgops.connected_components(IMAGE, 8, v),
    "grid_distortion_map: normalize": lambda v: imgops.grid_distortion_map(
        [1.0, 1], [1.0, 1], (4, 4), normalize=v
    ),
    "polar_map: log": lambda v: imgops.polar_map((1.0, 1.0), 2.0, (4, 4), log=v),
    "polar_map: inverse": lambda v: imgops.polar_map((1.0, 1.0), 2.0, (4, 4), inverse=v),
    "GridDropout: random_offset": lambda v: v2.GridDropout(random_offset=v),
    "RandomToneCurve: per_channel": lambda v: v2.RandomToneCurve(per_channel=v),
    "RandomGaussianNoise: per_channel": lambda v: v2.RandomGaussianNoise(per_channel=v),
    "PixelDropout: per_channel": lambda v: v2.PixelDropout(per_channel=v),
    "RandomMotionBlur: shift": lambda v: v2.RandomMotionBlur(shift=v),
    "RandomGridDistortion: normalize": lambda v: v2.RandomGridDistortion(normalize=v),
    "RandomCLAHE: per_sample": lambda v: v2.RandomCLAHE(per_sample=v),
    "RandomAffine: per_sample": lambda v: v2.RandomAffine(10, per_sample=v),
    "LetterBox: antialias": lambda v: v2.LetterBox(antialias=v),
    "LetterBox: scale_up": lambda v: v2.LetterBox(scale_up=v),
    "Mosaic: antialias": lambda v: v2.Mosaic(antialias=v),
}


@pytest.mark.parametrize("name", SWITCHES)
def test_switches(name: str) -> None:
    """Anything else was taken for true, or raised an error of PyTorch's or OpenCV's."""
    call = SWITCHES[name]
    for right in (True, False, np.bool_(True)):
        call(right)
    for wrong in (1, -1, 10**30, 1.0, "no", None, np.int64(1), np.ones(2, bool)):
        with pytest.raises(TypeError, match=f"^{name} must be a bool, got "):
            call(wrong)
    for tensor in (torch.tensor(True), torch.ones(2, 2)):
        with pytest.raises(TypeError, match=f"^{name} must be a bool, got Tensor$"):
            call(tensor)


def test_numbers_of_numpy() -> None:
    """They were refused, with texts like "must be an odd integer from 3, got 5"."""
    three, real = np.int64(3), np.float32(1.5)
    for found, wanted in (
        (imgops.gaussian_blur(IMAGE, three, real), imgops.gaussian_blur(IMAGE, 3, 1.5)),
        (imgops.box_blur(IMAGE, three), imgops.box_blur(IMAGE, 3)),
        (imgops.erode(IMAGE, three), imgops.erode(IMAGE, 3)),
        (imgops.clahe(IMAGE, real, three), imgops.clahe(IMAGE, 1.5, 3)),
        (imgops.pad(IMAGE, np.uint8(3)), imgops.pad(IMAGE, 3)),
        (imgops.pad(IMAGE, 1, fill=real), imgops.pad(IMAGE, 1, fill=1.5)),
        (imgops.pad(IMAGE, 1, fill=np.array([1, 2, 3])), imgops.pad(IMAGE, 1, fill=(1, 2, 3))),
        (
            imgops.erase(IMAGE, (0, 0, 2, 2), np.array([1, 2, 3], np.float32)),
            imgops.erase(IMAGE, (0, 0, 2, 2), (1, 2, 3)),
        ),
        (
            imgops.resize(IMAGE, (3, 3), box=np.array([0, 0, 2.5, 3], np.float32)),
            imgops.resize(IMAGE, (3, 3), box=(0, 0, 2.5, 3)),
        ),
        (
            imgops.fit(IMAGE, (3, 3), bleed=np.float32(0.25), centering=(three - 3, 0.5)),
            imgops.fit(IMAGE, (3, 3), bleed=0.25, centering=(0, 0.5)),
        ),
    ):
        assert torch.equal(found, wanted)
    for ours, wanted in (
        (v2.RandomMotionBlur(three, p=real - real), v2.RandomMotionBlur(3, p=0.0)),
        (v2.RandomHSV((real, three)), v2.RandomHSV((1.5, 3))),
        (v2.PadIfNeeded(three, fill=real), v2.PadIfNeeded(3, fill=1.5)),
        (v2.LongestMaxSize(three), v2.LongestMaxSize(3)),
        (v2.CoarseDropout(three, fill=(real, three)), v2.CoarseDropout(3, fill=(1.5, 3))),
        (v2.RandomShadow((real - real, 0.0, 1.0, 1.0)), v2.RandomShadow((0.0, 0.0, 1.0, 1.0))),
        (v2.RandomRain(color=(three, 3, 3)), v2.RandomRain(color=(3, 3, 3))),
        (v2.Mosaic(three, three, fill=real), v2.Mosaic(3, 3, fill=1.5)),
    ):
        assert repr(ours) == repr(wanted)


@pytest.mark.parametrize("wrong", [np.array(3), {1, 2}, frozenset({1, 2}), {1: 2}, b"ab"], ids=repr)
def test_what_has_no_items_in_an_order(wrong: Any) -> None:
    """An array of 0 dimensions raised "iteration over a 0-d array"; a set was taken for a pair."""
    for call in (
        lambda: imgops.box_blur(IMAGE, wrong),
        lambda: imgops.resize(IMAGE, wrong),
        lambda: imgops.resize(IMAGE, (3, 3), box=wrong),
        lambda: imgops.resized_crop(IMAGE, wrong, (2, 2)),
        lambda: imgops.clahe(IMAGE, 2.0, wrong),
        lambda: imgops.pad(IMAGE, wrong),
        lambda: imgops.pad(IMAGE, 1, fill=wrong),
        lambda: imgops.erase(IMAGE, (0, 0, 2, 2), wrong),
        lambda: imgops.warp_affine(IMAGE, torch.eye(2, 3), wrong),
        lambda: imgops.warp_affine(IMAGE, torch.eye(2, 3), fill=wrong),
        lambda: imgops.paste(IMAGE, IMAGE, wrong),
        lambda: imgops.color_sequence(IMAGE, torch.tensor([0]), torch.ones(1), wrong),
    ):
        with pytest.raises(TypeError, match=rf"^\w+: \w+ must .*, got {type(wrong).__name__}$"):
            call()


def test_large_integers_by_the_name_of_the_argument() -> None:
    """The errors named kernel_width, tiles_x and component_labels, or were Python's and the allocator's."""
    big = 10**30
    for call, text in (
        (lambda: imgops.box_blur(IMAGE, big), "box_blur: kernel_size must have signed 64-bit integers"),
        (lambda: imgops.clahe(IMAGE, 2.0, big), "clahe: tiles must have signed 64-bit integers"),
        (
            lambda: imgops.connected_components(IMAGE, big),
            "connected_components: connectivity must be 4 or 8",
        ),
        (
            lambda: imgops.polar_map((1.0, 1.0), 2.0, (big, 3)),
            "polar_map: size must span fewer than 2**31 pixels",
        ),
        (
            lambda: imgops.optical_distortion_map(0.1, (2**40, 3)),
            "optical_distortion_map: size must span fewer than 2**31 pixels",
        ),
        (
            lambda: imgops.thin_plate_spline_map(torch.rand(4, 2), torch.rand(4, 2), (2**40, 3)),
            "thin_plate_spline_map: size must span fewer than 2**31 pixels",
        ),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(text)}, got "):
            call()


def test_values_that_are_read_before_the_operators() -> None:
    message = "morphology: kernel must have a value that is not 0, got zeros"
    check_raises(lambda: imgops.morphology(IMAGE, "close", torch.zeros(3, 3)), ValueError, message)
    message = "motion_blur: balance must be a number, got nan"
    check_raises(lambda: imgops.motion_blur(IMAGE, 5, 0.0, torch.tensor(float("nan"))), ValueError, message)


def test_a_large_parameter_in_a_graph() -> None:
    """It was refused there as "must be a number, ..., got int"."""

    def call(x: torch.Tensor, limit: int) -> torch.Tensor:
        return imgops.clahe(x, limit)

    compiled = torch.compile(call, fullgraph=True, backend="eager")
    assert torch.equal(compiled(IMAGE, 10**30), call(IMAGE, 10**30))


@pytest.mark.parametrize("name", sorted(ADDED))
def test_repr_has_the_arguments(name: str) -> None:
    """It also showed what a class computes from them: _random_parameters, or PadIfNeeded's interpolation."""
    shown = set(re.findall(r"(\w+)=", repr(ADDED[name](**REQUIRED.get(name, {})))))
    assert shown <= set(inspect.signature(ADDED[name]).parameters)


def test_text_in_errors_of_transforms() -> None:
    message = "RandomCLAHE: p must be a probability in [0, 1], got '1'"
    check_raises(lambda: v2.RandomCLAHE(p="1"), ValueError, message)  # type: ignore[arg-type]
    message = "RandomGridDistortion: image must have at least num_steps (5) rows and columns, got 1 x 1"
    check_raises(lambda: v2.RandomGridDistortion(p=1.0)(torch.zeros(3, 1, 1)), ValueError, message)
    names = "'constant', 'edge', 'reflect', 'symmetric'"
    message = f"PadIfNeeded: padding_mode must be one of {names}, got 'circular'"
    check_raises(lambda: v2.PadIfNeeded(4, padding_mode="circular"), ValueError, message)


def test_noise_of_an_image_with_a_nan() -> None:
    """PyTorch raised "invalid Poisson rate"."""
    image = torch.rand(3, 8, 9)
    image[1, 2, 3] = float("nan")
    found = v2.RandomISONoise(p=1.0)(image)
    found[:, 2, 3] = 0  # what becomes of the pixel itself is not specified
    assert found.isfinite().all()


def test_a_negative_gamma() -> None:
    """NumPy warned of a division by zero."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = imgops.adjust_gamma(torch.arange(256, dtype=torch.uint8).reshape(1, 16, 16), -1.0)
    assert (found == 255).all()


def test_an_author_who_passes_something_else() -> None:
    """Wrong facets were accepted at the declaration, and failed later or never."""
    facets: dict[str, Any] = {"kernel": print, "fake": print}
    for name in ("kernel", "fake", "cuda", "vmap", "sharding", "autocast", "decomposition", "values"):
        with pytest.raises(TypeError, match=f"^operator: found::wrong: {name} must be a function, got 'x'$"):
            imgops.extend.operator("found::wrong", **{**facets, name: "x"})
    with pytest.raises(TypeError, match="mutates must be a list of names, got 'image'"):
        imgops.extend.operator("found::wrong", **facets, mutates="image")
    for wrong in ("3", -1, 1.0, True):
        for rule in ("vmap", "sharding"):
            with pytest.raises(TypeError, match=rf"^{rule}.leading: core must be integers from 0 on, got "):
                getattr(imgops.extend, rule).leading(wrong)


def test_the_operator_on_the_page_about_pytorch() -> None:
    """Its decomposition, and so its gradient, failed on an image without a batch dimension."""
    page = (ROOT / "docs" / "pytorch.rst").read_text()
    code = page.split("   import cv2, torch, imgops\n")[1].split("   imgops.extend.testing.check_operator")[0]
    names: dict[str, Any] = {"cv2": cv2, "torch": torch, "imgops": imgops}
    exec(re.sub("(?m)^   ", "", code).replace("mine::median", "found::median"), names)
    for shape in ((3, 8, 9), (2, 3, 8, 9)):
        image = torch.rand(shape, requires_grad=True)
        names["median"](image, 3).sum().backward()
        torch.testing.assert_close(image.grad.sum().item(), float(image.numel()))  # type: ignore[union-attr]


def test_thresholds_beyond_integers() -> None:
    """OpenCV's integers overflowed: nothing was above 2**31, and everything was zeroed or kept."""
    levels = torch.arange(256, dtype=torch.uint8).reshape(1, 16, 16)
    assert imgops.threshold(levels, 2.0**31, 255.0, "tozero").max() == 0
    assert imgops.threshold(levels, -(2.0**40), 255.0, "binary").min() == 255
    assert imgops.canny(levels, 10.0, 1e30).max() == 0 and imgops.canny(levels, 2793.5, 1e30, 5).max() == 0


def test_a_horizon_that_meets_a_pixel() -> None:
    """OpenCV interpolated NaN where a finite image of floats shows what is infinitely far."""
    x = torch.tensor([[[1.0, 1, 0], [1, 1, 0]]])
    matrix = torch.tensor([[1.0, 0, -1.5], [0, 1, 1.25], [0.1, -0.1, 0]], dtype=torch.float64)
    for interpolation in ("bilinear", "bicubic"):
        assert bool(imgops.warp_perspective(x, matrix, (37, 23), interpolation).isfinite().all())
