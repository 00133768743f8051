"""The faults that random and hostile calls found (:mod:`tests.fuzz`), each with the call that showed it."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
import torch

import imgops
from imgops import transforms as v2
from imgops.decomposition import blur
from imgops.transforms._core.probabilistic import ADDED
from tests.added_cases import REQUIRED
from tests.checks import ROOT, bits_equal, check_compiled_raises, check_raises, run_python, through_dispatcher
from tests.tiers import nightly

IMAGE = torch.arange(3 * 6 * 7).reshape(3, 6, 7).to(torch.uint8)
REAL, ONE, EYE = IMAGE / 255, torch.ones(1), torch.eye(2, 3)
PNG = imgops.encode_image(IMAGE, "png")

# -- arguments of the wrong kind ---------------------------------------------------------------------------

NO_BOOLS = np.ones(2, bool), np.arange(4), torch.tensor(True), EYE
BIG, META, POINTS = (2**63, -(2**64), 10**30), torch.empty(3, 3, device="meta"), torch.rand(4, 2)
BOXES = torch.tensor([-4, 0, 3, 3]).view(torch.uint64), META[:1].expand(4, 3)[:, 0].long()
#: Wrong values of each kind of argument, and their error, in which {} is the type of the value; above it, the fault.
KINDS: dict[str, tuple[tuple[Any, ...], Any, str]] = {
    # OpenCV's errors, the allocator's, or minutes and gigabytes
    "size": ((2**31 - 1, 2**62 + 1), ValueError, r"must be at most \d+.*, got "),
    "radius": ((2.0**31, 2.0**62), ValueError, r"must be at most \d+.*, got "),
    "PIL's size": (((2**62, 3),), ValueError, "must be 32-bit, got "),
    "map": (((2**40, 3), (10**30, 3)), ValueError, r"must span fewer than 2\*\*31 pixels, got "),
    # "Expected a value of type 'int' but instead found type 'int'", "Overflow when unpacking long long"
    "integer": (BIG, ValueError, "must .*, got "),
    "pair": (tuple((big, 3) for big in BIG), ValueError, "must .*, got "),
    "color": (tuple((big, 0, 0) for big in BIG), ValueError, "must .*, got "),
    "box": (tuple((big, 0, 3, 3) for big in BIG), ValueError, "must .*, got "),
    "box of a tensor": (BOXES, ValueError, "must .*, got "),
    # uninitialized memory
    "number": ((META[0, 0],), ValueError, "must .*, got .*meta"),
    "matrix": ((META,), ValueError, "must .*, got .*meta"),
    # an array of 0 dimensions raised "iteration over a 0-d array"; a set was taken for a pair
    "items": ((np.array(3), {1, 2}, frozenset({1, 2}), {1: 2}, b"ab"), TypeError, "must .*, got {}$"),
    # the dispatcher's errors; bytes were taken for a string
    "word": ((b"bytes", [None], {}, None, 3, object()), (TypeError, ValueError), "must be "),
    # anything else was taken for true, or raised NumPy's, PyTorch's and OpenCV's errors
    "switch": (
        (1, -1, 10**30, 1.0, "no", None, b"bytes", np.int64(1), *NO_BOOLS),
        TypeError,
        "must be a bool, got ",
    ),
}
#: "function: argument", its kinds, and the other arguments; a dict at the end holds those after it.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "adaptive_threshold: kernel_size": ("size", IMAGE),
    "bilateral_filter: kernel_size": ("size", IMAGE, {"sigma_color": 9.0, "sigma_space": 2.0}),
    "box_blur: kernel_size": ("size, integer, items", IMAGE),
    "canny: kernel_size": ("integer", IMAGE[:1], 10.0, 200.0),
    "canny: l2_gradient": ("switch", IMAGE, 1.0, 2.0, 3),
    "clahe: tiles": ("size, integer, items", IMAGE, 2.0),
    "color_matrix: matrix": ("matrix", IMAGE),
    "color_sequence: names": ("items", IMAGE, torch.tensor([0]), ONE),
    "connected_components: connectivity": ("integer", IMAGE),
    "connected_components: statistics": ("switch", IMAGE, 8),
    "contain: size": ("PIL's size", IMAGE),
    "cover: size": ("PIL's size", IMAGE),
    "crop: box": ("box, box of a tensor", REAL),
    "cvt_color: code": ("word", IMAGE),
    "decode_image: max_pixels": ("integer", PNG),
    "encode_image: quality": ("integer", IMAGE, "jpeg"),
    "erase: box": ("box", REAL),
    "erase: fill": ("integer, items", REAL, (1, 0, 3, 3)),
    "erode: kernel": ("size", IMAGE),
    "fit: size": ("PIL's size", IMAGE),
    "gaussian_blur: kernel_size": ("size", IMAGE),
    "grid_distortion_map: normalize": ("switch", [1.0, 1], [1.0, 1], (4, 4)),
    "median_blur: kernel_size": ("size", IMAGE),
    "morphology: kernel": ("size", IMAGE, "open"),
    "motion_blur: kernel_size": ("size", IMAGE),
    "optical_distortion_map: size": ("map", 0.1),
    "pad: fill": ("color, items", REAL, 1),
    "pad: padding": ("items", IMAGE),
    "pad: padding_mode": ("word", IMAGE, 1),
    "paste: position": ("items", IMAGE, IMAGE),
    "polar_map: inverse": ("switch", (1.0, 1.0), 2.0, (4, 4)),
    "polar_map: log": ("switch", (1.0, 1.0), 2.0, (4, 4)),
    "polar_map: size": ("map", (1.0, 1.0), 2.0),
    "resize: antialias": ("switch", IMAGE, (3, 3)),
    "resize: box": ("items", IMAGE, (3, 3)),
    "resize: size": ("pair, items", REAL),
    "resized_crop: antialias": ("switch", IMAGE, (0, 0, 3, 3), (2, 2)),
    "resized_crop: box": ("items", IMAGE, {"size": (2, 2)}),
    "thin_plate_spline_map: size": ("map", POINTS, POINTS),
    "threshold: threshold": ("number", IMAGE),
    "unsharp_mask: percent": ("radius", IMAGE),
    "unsharp_mask: radius": ("radius", IMAGE),
    "unsharp_mask: threshold": ("radius", IMAGE),
    "warp_affine: fill": ("items", IMAGE, EYE),
    "warp_affine: size": ("items", IMAGE, EYE),
    "GridDropout: random_offset": ("switch",),
    "LetterBox: antialias": ("switch",),
    "LetterBox: scale_up": ("switch",),
    "Mosaic: antialias": ("switch",),
    "PixelDropout: per_channel": ("switch",),
    "RandomAffine: per_sample": ("switch", 10),
    "RandomCLAHE: per_sample": ("switch",),
    "RandomGaussianNoise: per_channel": ("switch",),
    "RandomGridDistortion: normalize": ("switch",),
    "RandomMotionBlur: shift": ("switch",),
    "RandomToneCurve: per_channel": ("switch",),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_of_the_wrong_kind(name: str) -> None:
    """By the public function, and through the dispatcher; the error names the argument, or a part of it such as its height."""
    kinds, *before = ARGUMENTS[name]
    function, _, argument = name.partition(": ")
    called = getattr(imgops if hasattr(imgops, function) else v2, function)
    after = before.pop() if before and isinstance(before[-1], dict) else {}
    for kind in kinds.split(", "):
        values, error, must = KINDS[kind]
        for wrong in values:
            message = rf"^{function}: \w+ {must.replace('{}', type(wrong).__name__)}"
            for how in (called, lambda *args, **keywords: through_dispatcher(called, *args, **keywords)):
                with pytest.raises(error, match=message):
                    how(*before, **{argument: wrong}, **after)
    if kinds == "switch":
        for right in (True, False, np.bool_(True)):
            called(*before, **{argument: right})


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


def test_functions_of_several_operators_read_values() -> None:
    must = "morphology: kernel must have a value that is not 0, got zeros"
    check_raises(lambda: imgops.morphology(IMAGE, "close", torch.zeros(3, 3)), ValueError, must)
    must = "motion_blur: balance must be a number, got nan"
    check_raises(lambda: imgops.motion_blur(IMAGE, 5, 0.0, torch.tensor(torch.nan)), ValueError, must)


# -- equal results -----------------------------------------------------------------------------------------

THREE, FLOAT = np.int64(3), np.float32(1.5)
HALF, NOISE, SQUARE = torch.tensor(0.5), torch.rand(1, 6, 7), torch.ones(3, 3)
#: Numbers of NumPy were refused, with texts like "must be an odd integer from 3, got 5".
NUMBERS: tuple[tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]], ...] = (
    (imgops.gaussian_blur, (IMAGE, THREE, FLOAT), (IMAGE, 3, 1.5)),
    (imgops.box_blur, (IMAGE, THREE), (IMAGE, 3)),
    (imgops.erode, (IMAGE, THREE), (IMAGE, 3)),
    (imgops.clahe, (IMAGE, FLOAT, THREE), (IMAGE, 1.5, 3)),
    (imgops.pad, (IMAGE, np.uint8(3)), (IMAGE, 3)),
    (imgops.pad, (IMAGE, 1, "constant", FLOAT), (IMAGE, 1, "constant", 1.5)),
    (imgops.pad, (IMAGE, 1, "constant", np.arange(3)), (IMAGE, 1, "constant", (0, 1, 2))),
    (imgops.erase, (IMAGE, (0, 0, 2, 2), np.arange(3.0)), (IMAGE, (0, 0, 2, 2), (0, 1, 2))),
    (
        lambda box: imgops.resize(IMAGE, (3, 3), box=box),
        (np.array([0, 0, 2.5, 3], np.float32),),
        ((0, 0, 2.5, 3),),
    ),
    (
        lambda bleed, x: imgops.fit(IMAGE, (3, 3), bleed=bleed, centering=(x, 0.5)),
        (np.float32(0.25), THREE - 3),
        (0.25, 0),
    ),
    (imgops.rotate90, (IMAGE, 2**63 + 1), (IMAGE, 1)),  # an integer of more than 64 bits
    # parameters of half precision
    (imgops.downscale, (REAL, HALF.bfloat16()), (REAL, HALF)),
    (imgops.salt_and_pepper, (IMAGE, NOISE, HALF.bfloat16()), (IMAGE, NOISE, HALF)),
    (imgops.unsharp_mask, (REAL.double(), 0.4, HALF.half(), 0.0), (REAL.double(), 0.4, HALF, 0.0)),
    (imgops.dilate, (REAL, SQUARE.bfloat16()), (REAL, SQUARE)),
    # transforms, by their text
    (lambda n, p: repr(v2.RandomMotionBlur(n, p=p)), (THREE, FLOAT - FLOAT), (3, 0.0)),
    (lambda *hue: repr(v2.RandomHSV(hue)), (FLOAT, THREE), (1.5, 3)),
    (lambda n, fill: repr(v2.PadIfNeeded(n, fill=fill)), (THREE, FLOAT), (3, 1.5)),
    (lambda n: repr(v2.LongestMaxSize(n)), (THREE,), (3,)),
    (lambda n, *fill: repr(v2.CoarseDropout(n, fill=fill)), (THREE, FLOAT, THREE), (3, 1.5, 3)),
    (lambda x: repr(v2.RandomShadow((x, 0.0, 1.0, 1.0))), (FLOAT - FLOAT,), (0.0,)),
    (lambda n: repr(v2.RandomRain(color=(n, 3, 3))), (THREE,), (3,)),
    (lambda n, fill: repr(v2.Mosaic(n, n, fill=fill)), (THREE, FLOAT), (3, 1.5)),
)


@pytest.mark.parametrize(("call", "args", "plain"), NUMBERS)
def test_numbers_of_other_types(
    call: Callable[..., Any], args: tuple[Any, ...], plain: tuple[Any, ...]
) -> None:
    found, wanted = call(*args), call(*plain)
    assert found == wanted if isinstance(found, str) else bits_equal(found, wanted)


def test_a_large_parameter_in_a_graph() -> None:
    """It was refused there as "must be a number, ..., got int"."""

    def call(x: torch.Tensor, limit: int) -> torch.Tensor:
        return imgops.clahe(x, limit)

    compiled = torch.compile(call, fullgraph=True, backend="eager")
    assert torch.equal(compiled(IMAGE, 10**30), call(IMAGE, 10**30))


# -- pixels ------------------------------------------------------------------------------------------------


def test_differences_of_bytes_end_at_0() -> None:
    """If an element leaves out its anchor, an opened image is not below the image, and bytes wrapped around."""
    image = np.random.default_rng(0).integers(0, 256, (8, 7), dtype=np.uint8)
    element = np.ones((3, 6), np.uint8)
    for name in ("tophat", "blackhat", "gradient"):
        found = imgops.morphology(torch.from_numpy(image)[None], name, torch.from_numpy(element))
        flag = getattr(cv2, f"MORPH_{name.upper()}")
        np.testing.assert_array_equal(found[0].numpy(), cv2.morphologyEx(image, flag, element))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 3e38])
def test_pixels_that_are_no_numbers(value: float, channels: int) -> None:
    """OpenCV's bilateral filter read 8 GiB before its table, and the process crashed."""
    image = torch.rand(2, channels, 7, 6)
    image[1, 0, 3, 3], image[1, 0, 0, 5] = value, -value
    for border in ("constant", "edge", "reflect", "symmetric", "wrap"):
        found = imgops.bilateral_filter(image, 5, 0.8, 2.0, border)
        formula = blur.bilateral_filter(image[1], torch.tensor(0.8), torch.tensor(2.0), 5, border)
        torch.testing.assert_close(found[1], formula, rtol=0, atol=0, equal_nan=True)
        assert torch.equal(found[0], imgops.bilateral_filter(image[0], 5, 0.8, 2.0, border))


@nightly
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
"""
    run_python("-c", program, OPENCV_IPP=ipp)


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


# -- texts -------------------------------------------------------------------------------------------------


def test_repr_has_the_arguments() -> None:
    """It also showed what a class computes from them: _random_parameters, or PadIfNeeded's interpolation."""
    for name in ADDED:
        shown = set(re.findall(r"(\w+)=", repr(ADDED[name](**REQUIRED.get(name, {})))))
        assert shown <= set(inspect.signature(ADDED[name]).parameters), name


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
