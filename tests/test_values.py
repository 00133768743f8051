"""Values that the samples cannot list one by one: random sizes, exact gradients, double precision."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import imgops
from imgops._common.torch_private import tree_leaves
from tests.checks import bits_equal
from tests.specs import SPECS
from tests.specs._libraries import BORDERS, FILTERS, of_pil, to_pil
from tests.specs._maker import Maker, formatted
from tests.specs.movement import paste_reference
from tests.tiers import nightly_unless


def picture(channels: int, height: int, width: int, dtype: torch.dtype, format: str) -> torch.Tensor:
    generator = torch.Generator().manual_seed(height * 1000 + width)
    if dtype == torch.uint8:
        values = torch.randint(0, 256, (channels, height, width), generator=generator).to(dtype)
    else:
        values = torch.randn(channels, height, width, generator=generator).to(dtype)
    return formatted(values, format)


def _cubic(x: np.ndarray, a: float = -0.5) -> np.ndarray:
    x = abs(x)
    far = np.where(x < 2, a * (x**3 - 5 * x**2 + 8 * x - 4), 0)
    return np.where(x < 1, (a + 2) * x**3 - (a + 3) * x**2 + 1, far)


#: PIL's filters by their definitions, and how far they reach. Hamming's two numbers are of single precision, and do not add to 1.
DEFINITIONS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "box": (lambda x: (x > -0.5) & (x <= 0.5), 0.5),
    "bilinear": (lambda x: np.maximum(1 - abs(x), 0), 1.0),
    "hamming": (
        lambda x: (
            np.where(x == 0, 1, (HAMMING[0] + HAMMING[1] * np.cos(np.pi * x)) * np.sinc(x)) * (abs(x) < 1)
        ),
        1.0,
    ),
    "bicubic": (_cubic, 2.0),
    "lanczos": (lambda x: np.sinc(x) * np.sinc(x / 3) * ((x >= -3) & (x < 3)), 3.0),
}
HAMMING = np.array([0.54, 0.46], np.float32).astype(np.float64)


def weights_pil(name: str, size: int, low: float, high: float, out: int) -> np.ndarray:
    """Compute the matrix of a PIL filter by its definition, in double precision."""
    (kernel, support), scale = DEFINITIONS[name], (high - low) / out
    stretch, matrix = max(scale, 1.0), np.zeros((out, size))
    for row, o in zip(matrix, range(out), strict=True):
        center = low + (o + 0.5) * scale
        first = max(int(center - support * stretch + 0.5), 0)
        last = min(int(center + support * stretch + 0.5), size)
        row[first:last] = kernel((np.arange(first, last) - center + 0.5) / stretch)
        row /= row.sum()
    return matrix


def by_pil(image: torch.Tensor, call: Callable[[Image.Image], Image.Image]) -> torch.Tensor:
    """Run PIL on an image with all of its channels together."""
    return torch.from_numpy(np.ascontiguousarray(of_pil(call(to_pil(image.numpy())))))


def test_a_gradient_is_the_weight_to_the_bit() -> None:
    """Inside of the box the gradient is w, of any sign and size, never squeezed into 8 bits; outside of it, 0."""
    for dtype in (torch.float64, torch.float32):
        for scale in (1e-30, 1e-3, 1.0, -1.0, 1e4, 1e30):
            x = torch.rand(2, 3, 9, 11, dtype=dtype, requires_grad=True)
            w = torch.randn(2, 3, 5, 6, dtype=dtype) * scale
            (grad,) = torch.autograd.grad(imgops.crop(x, (3, 2, 9, 7)), x, w)
            assert bits_equal(grad, torch.nn.functional.pad(w, (3, 2, 2, 2)))
    (grad,) = torch.autograd.grad(imgops.crop(x, (2, 2, 5, 6)).sum(), x)  # whose weight has strides of 0
    assert grad.sum() == 2 * 3 * 3 * 4 and grad[..., 2:6, 2:5].min() == 1


def test_gradients_that_sum_or_do_not_exist() -> None:
    patch = torch.rand(3, 2, 2, requires_grad=True)
    imgops.paste(torch.zeros(4, 3, 8, 8), patch, (1, 1)).sum().backward()
    assert (patch.grad == 4).all()
    levels = torch.zeros(3, 4, 4, dtype=torch.uint8)
    assert not imgops.paste(levels, levels, (0, 0), torch.rand(1, 4, 4, requires_grad=True)).requires_grad


def test_interleaved_gradients_stay_interleaved() -> None:
    x = formatted(torch.rand(2, 3, 8, 8), "interleaved")
    grad = formatted(torch.rand(2, 3, 4, 4), "interleaved")
    assert torch.ops.imgops.paste(x.new_zeros(()).expand(x.shape), grad, None, 1, 1).stride() == x.stride()


@pytest.mark.parametrize("fill", [-5, 300, 0.5, 1.5, 2.5, 254.5, 255.4, 1e30])
def test_fills_saturate_as_opencvs(fill: float) -> None:
    x = torch.full((1, 1, 1), 9, dtype=torch.uint8)
    wanted = cv2.copyMakeBorder(x[0].numpy(), 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=fill)
    found = imgops.pad(x, 1, fill=fill)
    if fill < 1e9:  # OpenCV's own conversion overflows
        assert bits_equal(found[0], torch.from_numpy(wanted))
    assert imgops.erase(x, (0, 0, 1, 1), fill).item() == found[0, 0, 0] == min(max(round(fill), 0), 255)


def test_big_integers_are_exact() -> None:
    x, big = torch.full((1, 1, 1), 2**62 + 1), 2**60 + 3
    assert imgops.pad(x, 1, fill=big).flatten()[0] == big
    assert imgops.pad(x, 1, "edge").unique().item() == 2**62 + 1
    assert imgops.erase(x, (0, 0, 1, 1), big).item() == big
    assert imgops.erase(x, (0, 0, 1, 1), torch.full_like(x, big)).item() == big


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_images_move(dtype: torch.dtype) -> None:
    image = torch.randn(2, 5, 6, dtype=dtype)
    array = image.numpy()
    mask = torch.zeros(1, 2, 3, dtype=torch.bool)
    mask[0, 1, 1:] = True
    pasted, erased = array.copy(), array.copy()
    pasted[:, 3:5, 2:5] = np.where(mask.numpy(), array[:, :2, :3], pasted[:, 3:5, 2:5])
    erased[:, 1:3, 1:4] = 2
    for found, wanted in (
        (imgops.pad(image, 2, "reflect"), np.pad(array, [(0, 0), (2, 2), (2, 2)], "reflect")),
        (imgops.crop(image, (1, 1, 4, 4)), array[:, 1:4, 1:4]),
        (imgops.paste(image, image[:, :2, :3], (2, 3), mask), pasted),
        (imgops.erase(image, (1, 1, 4, 3), 2), erased),
    ):
        assert np.array_equal(found.numpy(), wanted)


def test_positions_outside_fold_as_opencvs() -> None:
    from imgops.decomposition._borders import fold_positions

    for mode in ("edge", "reflect", "symmetric", "wrap"):
        for size in (1, 2, 3, 7):
            wanted = [cv2.borderInterpolate(i, size, BORDERS[mode]) for i in range(-19, size + 23)]
            assert fold_positions(mode, torch.arange(-19, size + 23), size).tolist() == wanted


# -- resize: random sizes are in tests/test_random_calls.py ------------------------------------------


@pytest.mark.parametrize("name", DEFINITIONS)
@pytest.mark.parametrize(
    ("size", "box"), [((5, 4), None), ((23, 31), None), ((5, 31), (1.37, 0.21, 17.9, 12.4))]
)
def test_float64_is_the_definition(name: str, size: tuple[int, int], box: tuple[float, ...] | None) -> None:
    x = torch.randn(2, 13, 19, dtype=torch.float64)
    left, top, right, bottom = box or (0, 0, 19, 13)
    rows = weights_pil(name, 13, top, bottom, size[0])
    columns = weights_pil(name, 19, left, right, size[1])
    wanted = torch.from_numpy(np.einsum("oh,chw,pw->cop", rows, x.numpy(), columns))
    out = imgops.resize(x, size, name, box=box)
    assert (out - wanted).abs().max() <= 1e-12 * x.abs().max()


@pytest.mark.parametrize("size", [(5, 4), (23, 31), (5, 31), (13, 19)])
def test_float64_without_antialias_is_atens(size: tuple[int, int]) -> None:
    """ATen has the same definitions in double precision."""
    x = torch.randn(1, 2, 13, 19, dtype=torch.float64)
    for name in ("bilinear", "bicubic"):
        wanted = torch.nn.functional.interpolate(x, size, mode=name, align_corners=False)
        out = imgops.resize(x, size, name, antialias=False)
        assert (out - wanted).abs().max() <= 1e-12 * x.abs().max()
    cells = torch.nn.functional.avg_pool2d(x[..., :12, :18], (3, 3))
    out = imgops.resize(x[..., :12, :18], (4, 6), "area", antialias=False)
    assert (out - cells).abs().max() <= 1e-12


@pytest.mark.parametrize("name", nightly_unless(lambda name: name == "bicubic", DEFINITIONS))
def test_large_images(name: str) -> None:
    """Beyond a million pixels other branches run: ATen's copies, and more threads."""
    x = picture(3, 2100, 1700, torch.uint8, "interleaved")
    wanted = by_pil(x, lambda whole: whole.crop((-5, 3, 1600, 2100)))
    assert bits_equal(imgops.crop(x, (-5, 3, 1600, 2100)), wanted)
    wanted = by_pil(x, lambda whole: whole.resize((900, 1100), FILTERS[name]))
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        for format in ("planar", "interleaved"):
            assert bits_equal(imgops.resize(formatted(x, format), (1100, 900), name), wanted)
    torch.set_num_threads(2)
    pasted = paste_reference(x.numpy(), x[:, :700, :900].numpy(), None, 1000, 1800)
    assert bits_equal(imgops.paste(x, x[:, :700, :900], (1000, 1800)), torch.from_numpy(pasted))


@pytest.mark.parametrize(
    "sizes", [(51, 87, 74, 42), (23, 39, 56, 69), (38, 87, 84, 18), (63, 5, 81, 38), (12, 66, 39, 27)]
)
def test_float64_area_takes_opencvs_pixels_where_it_grows(sizes: tuple[int, ...]) -> None:
    """At the border of a cell, the rounding of a scale decides which pixel is taken; it must be OpenCV's rounding."""
    height, width, out_height, out_width = sizes
    image = torch.rand(1, height, width, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    single = image[0].float().numpy()
    expected = torch.from_numpy(cv2.resize(single, (out_width, out_height), interpolation=cv2.INTER_AREA))
    out = imgops.resize(image, (out_height, out_width), "area", antialias=False)
    torch.testing.assert_close(out[0].float(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("format", ["planar", "interleaved"])
def test_a_mean_of_very_many_pixels_is_exact(format: str) -> None:
    """A sum of 20,000 float32 values is off by 1e-4 if it is accumulated in float32."""
    image = formatted(torch.rand(3, 2, 20000) + 1000, format)
    exact = image.double().reshape(3, 2, 1, -1).mean(-1)
    difference = (imgops.resize(image, (2, 1), "box").double() - exact).abs().max()
    assert difference < 1e-3 * 0.2, difference  # an ulp of 1,000 is 6e-5


#: The widths and heights of windows of every area up to 64, in landscape and portrait.
_WINDOWS = sorted(
    {(w, h) for w in range(1, 65) for h in (1, 2, 3, 8) if w * h <= 64} | {(1, h) for h in range(1, 65)}
)


@pytest.mark.parametrize("format", ["planar", "interleaved"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float64])
def test_box_blur_of_every_window(dtype: torch.dtype, format: str, whole: bool) -> None:
    """A constant image stays as it is, and levels are within one of the mean."""
    levels = torch.arange(256).to(dtype)[:, None, None, None].expand(256, 3, 3, 5)
    constant, image = formatted(levels.contiguous(), format), picture(3, 9, 40, torch.uint8, format)
    for size in _WINDOWS[:: 1 if whole else 7]:
        for padding_mode in ("edge", "wrap") if whole else ("wrap",):
            found = imgops.box_blur(constant, size, padding_mode)
            assert torch.allclose(found.double(), constant.double(), rtol=1e-6), size
        if dtype == torch.uint8:
            found, mean = (imgops.box_blur(x, size).double() for x in (image, image.double()))
            assert (found - mean).abs().max() < 1, size


def correlated(image: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Compute the correlation by its definition, in extended precision."""
    (height, width), (rows, columns) = image.shape, kernel.shape
    around = [(n // 2, n - 1 - n // 2) for n in kernel.shape]
    wide = np.pad(image.astype(np.longdouble), around, mode="reflect")
    terms = (wide[i : i + height, j : j + width] * kernel[i, j] for i, j in np.ndindex(rows, columns))
    return sum(terms, np.zeros(image.shape, np.longdouble))


@pytest.mark.parametrize("format", ["planar", "interleaved"])
@pytest.mark.parametrize("size", [(3, 3), (7, 7), (5, 10), (9, 9), (1, 60), (60, 1), (10, 13)])
def test_float64_filters_are_the_definition(size: tuple[int, int], format: str) -> None:
    """It holds also next to pixels that are larger by many powers of ten; a Gaussian has sides of odd numbers."""
    generator = np.random.default_rng(0)
    array = generator.standard_normal((2, 70, 64)) * 10 ** generator.uniform(-8, 8, (2, 70, 64))
    image, kernel = formatted(torch.from_numpy(array), format), generator.standard_normal(size)
    found = [(imgops.filter2d(image, torch.from_numpy(kernel)), kernel)]
    if all(n % 2 for n in size):
        down, across = (
            np.exp(-0.5 * ((np.arange(n, dtype=np.longdouble) - n // 2) / s) ** 2)
            for n, s in zip(size, (1.3, 2.1), strict=True)
        )
        window = np.outer(down / down.sum(), across / across.sum())
        found.append((imgops.gaussian_blur(image, size, (2.1, 1.3)), window))
    for out, weights in found:
        for plane, source in zip(out.numpy(), array, strict=True):
            extent = correlated(abs(source), abs(weights))
            assert (abs(plane - correlated(source, weights)) <= 1e-14 * extent).all()


_SIGMAS = (None, 0, -1.0, (0, 1.3), (1.3, 0), (-2.0, 0.7), (0.0, 0.0), 1.5)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_a_sigma_that_follows_from_the_size_is_opencvs(dtype: Any) -> None:
    """OpenCV has tables for some sizes, and takes the other sigma before it computes one."""
    plane = np.random.default_rng(2).integers(0, 256, (23, 29)).astype(dtype)
    image = torch.from_numpy(plane)[None]
    for width in range(1, 12, 2):
        for height in (width, 3, 9):
            for sigma in _SIGMAS:
                x, y = sigma if isinstance(sigma, tuple) else (sigma or 0, 0)
                wanted = cv2.GaussianBlur(plane, (width, height), x, sigmaY=y)
                found = imgops.gaussian_blur(image, (width, height), sigma)[0].numpy()
                apart = np.abs(found.astype(np.float64) - wanted).max()
                assert apart <= (1e-4 if dtype == np.float64 else 0), (width, height, sigma, apart)
    pairs = torch.tensor([[0.0, 1.2], [0.9, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    each = imgops.gaussian_blur(image.expand(3, 1, 23, 29), (5, 7), pairs)
    for row, pair in zip(each, pairs, strict=True):
        assert torch.equal(row, imgops.gaussian_blur(image, (5, 7), pair))


def test_float64_filter2d_keeps_what_is_not_finite_where_it_is() -> None:
    image = torch.rand(1, 40, 40, dtype=torch.float64)
    image[0, 20, 20] = torch.nan
    found = imgops.filter2d(image, torch.rand(9, 9, dtype=torch.float64))
    assert found.isnan().sum() == 81
    assert imgops.filter2d(image, torch.zeros(9, 9)).isfinite().all()


def test_gradients_of_filter2d_with_a_large_kernel() -> None:
    generator = torch.Generator().manual_seed(0)
    image, kernel = (
        torch.rand(*shape, dtype=torch.float64, generator=generator, requires_grad=True)
        for shape in ((1, 5, 6), (8, 9))
    )
    assert torch.autograd.gradcheck(imgops.filter2d, (image, kernel))


def test_floats_of_8_bits_are_moved_or_refused() -> None:
    """Kernels compute with none of them: a call moves their pixels as it moves floats, or raises."""
    small = torch.float8_e4m3fn
    every = [s for spec in SPECS.values() for s in spec.samples if torch.float32 in s.dtypes]
    for sample in every:
        function, args, keywords = sample.call(Maker())
        images = [isinstance(x, Tensor) and x.ndim >= 3 and x.dtype == torch.float32 for x in args]
        eight = [x.to(small) if is_image else x for x, is_image in zip(args, images, strict=True)]
        wide = [x.float() if is_image else x for x, is_image in zip(eight, images, strict=True)]
        eight = [x.clone() if isinstance(x, Tensor) else x for x in eight]
        found: Any
        try:
            found = function(*eight, **keywords)
        except (TypeError, ValueError, NotImplementedError) as error:
            found = str(error)
        if isinstance(found, str):
            assert re.match(r'\w+: .* must .*, got |"\w+" not implemented for', found), sample
            continue
        for a, b in zip(tree_leaves(found), tree_leaves(function(*wide, **keywords)), strict=True):
            assert bits_equal(a, b.to(a.dtype)), sample


def test_a_batch_of_no_images_has_gradients() -> None:
    """Of images and of the kernels, sigmas and angles of each of them."""
    x = torch.zeros(0, 3, 4, 4, requires_grad=True)
    for call, value in (
        (lambda v: imgops.filter2d(x, v), torch.zeros(0, 3, 3)),
        (lambda v: imgops.gaussian_blur(x, 3, v), torch.ones(0, 2)),
        (lambda v: imgops.motion_blur(x, 3, v), torch.zeros(0)),
    ):
        value.requires_grad_()
        call(value).sum().backward()
        assert x.grad is not None and value.grad is not None and value.grad.shape == value.shape


def test_parameters_on_different_devices() -> None:
    """One on the device of the image, another one a number."""
    image, angle = torch.zeros(2, 3, 8, 8, device="meta"), torch.zeros(2, device="meta")
    assert imgops.motion_blur(image, 5, angle).shape == image.shape
    assert imgops.motion_blur(image, 5, 0.0, angle).shape == image.shape


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic", "area", "lanczos"])
def test_a_pixel_of_an_interleaved_image_is_written(interpolation: str) -> None:
    """Into a window of one pixel, whose strides PyTorch takes for those of a contiguous image."""
    image, canvas = torch.rand(8, 9, 3).permute(2, 0, 1), torch.zeros(7, 7, 3).permute(2, 0, 1)
    window = canvas[:, 1:2, 2:3]
    imgops.resize_out(image, (1, 1), interpolation, antialias=False, out=window)
    assert bits_equal(window, imgops.resize(image, (1, 1), interpolation, antialias=False))
    assert (canvas != 0).sum() == 3
