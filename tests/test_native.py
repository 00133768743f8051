"""The native module: wrong calls raise, every SIMD level gives the same bits, and PIL is called where it differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import imgops
from imgops._common import compare
from imgops.decomposition import _resampling_filters
from imgops.kernels.cpu import _pil, _resample, _resampling_tables, native
from tests import native_program
from tests.checks import bits_equal
from tests.specs import OPERATORS
from tests.specs._maker import Maker

built = pytest.mark.needs("native")


def picture(*shape: int, dtype: torch.dtype = torch.uint8) -> Tensor:
    noise = np.random.default_rng(3).integers(0, 256, shape, dtype=np.uint8)
    image = torch.from_numpy(noise)
    return image if dtype == torch.uint8 else image.to(dtype) / 255


@built
@pytest.mark.parametrize("function", native_program.right_calls())
def test_wrong_calls_raise(function: str) -> None:
    assert native_program.check_wrong_calls(native.module, function) > 20


@built
def test_every_function_is_called() -> None:
    functions = {name for name in dir(native.module) if not name.startswith("_")}
    assert {*native_program.right_calls(), "simd_level"} == functions


@built
def test_random_calls_give_the_same_bits_at_every_simd_level() -> None:
    assert native_program.check_random_calls(native.module, 1500, seed=1) >= 1500


@built
def test_steps_have_the_numbers_of_the_module() -> None:
    image = picture(1, 3, 5, 6, dtype=torch.float32)
    for name in native.STEPS:
        out = torch.empty_like(image)
        native.sequence(out, image, np.array([[native.STEPS.index(name)]], np.int32), np.array([[0.3]]))
        assert bits_equal(out, getattr(imgops, f"adjust_{name}")(image, 0.3)), name


# -- resampling ------------------------------------------------------------------------------------


@pytest.fixture
def forget() -> Iterator[Callable[[], None]]:
    """Clear the caches of what is known of the installed PIL, before and after the test."""

    def clear() -> None:
        _resampling_tables._pil_cached.cache_clear()
        compare.results.clear()

    clear()
    yield clear
    clear()


@built
def test_tables_of_the_native_module_are_those_of_atens_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    for i in range(400):
        name, size, out = (
            list(_resampling_filters.FILTERS)[i % 5],
            int(rng.integers(1, 300)),
            int(rng.integers(1, 200)),
        )
        low = rng.uniform(0, size) if i % 3 else 0.0
        high = rng.uniform(low, size) if i % 2 else float(size)
        found = _resampling_tables._pil(name, size, low, high, out, bool(i % 4))
        with monkeypatch.context() as patch:
            patch.setattr(native, "module", None)
            wanted = _resampling_tables._pil(name, size, low, high, out, bool(i % 4))
        assert np.array_equal(found.start, wanted.start) and np.array_equal(found.length, wanted.length)
        near = 0 if name in ("box", "bilinear", "bicubic") else 1e-14  # the two libraries' sines differ
        np.testing.assert_allclose(found.weight, wanted.weight, rtol=0, atol=near)


@built
def test_the_installed_pil_resamples_in_a_known_way(forget: Callable[[], None]) -> None:
    assert _resample.pil_order() is not None, "this PIL resamples otherwise: it is called itself"


@pytest.mark.parametrize(("name", "change"), [("hamming", 3e-8), ("box", 0.1)])
def test_a_pil_that_resamples_otherwise_is_noticed(
    name: str, change: float, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    """Even weights that differ by less than the noise of 8 bits are noticed."""
    function, support = _resampling_filters.FILTERS[name]
    changed = lambda x: function(x) * (1 + change * x.abs())
    fill = native.fill_table
    monkeypatch.setitem(_resampling_filters.FILTERS, name, (changed, support))
    monkeypatch.setattr(native, "fill_table", lambda which, *rest: which != name and fill(which, *rest))
    forget()
    assert _resample.pil_order() is None
    image = picture(3, 33, 41)
    theirs = [np.array(Image.fromarray(p.numpy()).resize((50, 20), Image.Resampling.HAMMING)) for p in image]
    assert bits_equal(imgops.resize(image, (20, 50), "hamming"), torch.from_numpy(np.stack(theirs)))


# -- color and levels ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(_pil.by_pil))
def test_the_installed_pil_agrees(name: str, forget: Callable[[], None]) -> None:
    assert compare.agrees(name), "this PIL computes otherwise: it is called itself"


@pytest.mark.parametrize("name", list(_pil.by_pil))
def test_pil_itself_stands_in(name: str, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]) -> None:
    """Its pixels are the native ones, in both formats and in batches: test_pure.py compares all samples."""
    sample = OPERATORS[name].samples[0]
    for format, batch in (("planar", ()), ("interleaved", (2,)), ("planar", (2, 3))):
        function, args, keywords = sample.call(Maker(torch.uint8, format, batch))
        compare.results[name] = True
        wanted = function(*args, **keywords)
        compare.results[name] = False
        found = function(*args, **keywords)
        assert bits_equal(found, wanted) and found.stride() == wanted.stride()


def test_a_pil_with_other_levels_is_noticed(
    monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    inverted: Any = lambda image, factor: Image.eval(image, lambda v: 255 - v)
    monkeypatch.setitem(_pil.by_pil, "adjust_brightness", inverted)
    image = picture(3, 9, 8)
    assert bits_equal(imgops.adjust_brightness(image, 0.5), 255 - image)
    steps = imgops.color_sequence(image, torch.tensor([0]), torch.tensor([0.5]), ["brightness"])
    assert bits_equal(steps, 255 - image)


@pytest.mark.parametrize("simd", [2, 0, None])
def test_a_cut_window_has_opencvs_bits(simd: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """On uint8 most weights of a wide window are 0 in OpenCV's 8 bits, so a shorter window gives the same pixels."""
    import cv2

    from imgops.kernels.cpu import blur

    if simd is None:  # without the native module OpenCV blurs
        monkeypatch.setattr(blur, "native_agrees", lambda: False)
    else:
        monkeypatch.setattr(native, "SIMD_LEVEL", simd)
        assert native.module is None or blur.native_agrees()
    rng = np.random.default_rng(0)
    plane = rng.integers(0, 256, (40, 37), dtype=np.uint8)
    assert blur._cuts_windows()
    shorter = 0
    for _ in range(300):
        size, sigma = int(rng.integers(0, 20)) * 2 + 1, float(rng.uniform(0.05, 4))
        short = blur._short_window(size, sigma)
        shorter += short < size
        whole = cv2.GaussianBlur(plane, (size, size), sigma, borderType=cv2.BORDER_REFLECT_101)
        found = imgops.gaussian_blur(torch.from_numpy(plane)[None], size, sigma)
        assert np.array_equal(found[0].numpy(), whole), (size, sigma, short)
    assert shorter > 100
