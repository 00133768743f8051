"""Color and levels against PIL and OpenCV, image by image, in every dtype, memory format and batch shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import references_color
import torch
from checks import bits_equal, check_format
from samples import BATCHES, COLORS, DEVICES, FORMATS, Maker, Sample, dtypes_of
from torch import Tensor

import imgops
from imgops.kernels.cpu import native

CORE = {"color_matrix": (2,), "color_sequence": (1, 1), "lut": (2,)}


def each(sample: Sample, args: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The call's arguments for each image of its batch."""
    image, *rest = args
    lead = image.shape[:-3]
    cores = iter(CORE.get(sample.op, (0, 0)))
    split = []
    for value in rest:
        if isinstance(value, Tensor):
            core = next(cores)
            if sample.op == "lut" and value.ndim == 1:
                value = value[None]
            value = (
                value.detach().expand(*lead, *value.shape[value.ndim - core :]).flatten(0, len(lead) - 1)
                if lead
                else value.detach()
            )
            split.append(
                [v if core else v.item() for v in value] if lead else [value if core else value.item()]
            )
        else:
            split.append([value] * lead.numel())
    images = image.detach().cpu().reshape(lead.numel(), *image.shape[-3:])
    return [(images[i], *(s[i] for s in split)) for i in range(lead.numel())]


def expected(sample: Sample, args: tuple[Any, ...]) -> Tensor:
    results = []
    for one in each(sample, args):
        if one[0].dtype == torch.uint8:
            results.append(getattr(references_color, sample.op)(*one))
        else:
            results.append(references_color.real(sample.op, *one))
    return torch.stack(results).reshape(*args[0].shape[:-3], *results[0].shape)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "sample", [s for s in COLORS if "of-nothing" not in s.id and "no-rows" not in s.id], ids=str
)
def test_reference(sample: Sample, device: str) -> None:
    for dtype in dtypes_of(sample):
        for format in FORMATS:
            for batch in BATCHES if format in ("planar", "interleaved") else ((), (2,)):
                maker = Maker(dtype, format, batch, device)
                function, args, keywords = sample.call(maker)
                out = function(*args, **keywords)
                assert out.device.type == device
                check_format(out, args[0])
                if 0 in batch:
                    assert out.shape[: len(batch)] == batch
                    continue
                close(sample, out.cpu(), expected(sample, args))


def close(sample: Sample, out: Tensor, wanted: Tensor) -> None:
    if out.dtype == torch.uint8 and sample.op in ("color_matrix", "adjust_hue"):
        assert wanted.dtype == torch.uint8
        difference = (out.int() - wanted.int()).abs()
        assert difference.max() <= 1 and (difference > 0).double().mean() <= 0.05
    elif out.dtype == torch.uint8 or sample.op == "lut":
        assert bits_equal(out, wanted), f"{int((out != wanted).sum())} of {out.numel()} values differ"
    else:
        # A tie at a level's border, or a half-precision value, may round either way.
        step = {torch.float16: 1e-3, torch.bfloat16: 8e-3, torch.float32: 1e-5, torch.float64: 1e-12}[
            out.dtype
        ]
        tolerance = {"rtol": step, "atol": step}
        torch.testing.assert_close(out.double(), wanted.double(), **tolerance)


@pytest.fixture
def photo() -> Tensor:
    rng = np.random.default_rng(3)
    smooth = np.kron(rng.integers(0, 256, (3, 9, 12)), np.ones((1, 30, 30)))
    noisy = np.clip(smooth + rng.normal(0, 12, smooth.shape), 0, 255)
    return torch.from_numpy(noisy.astype(np.uint8))


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("built", [True, False])
def test_a_photograph_to_the_bit(photo: Tensor, built: bool, interleaved: bool, monkeypatch: Any) -> None:
    """The native pass and the decomposition that stands in for it, at many factors."""
    if not built:
        monkeypatch.setattr(native, "module", None)
    elif native.module is None:
        pytest.skip("built without the native module")
    image = photo.permute(1, 2, 0).contiguous().permute(2, 0, 1) if interleaved else photo
    for factor in (0.0, 0.1, 0.37, 0.999, 1.0, 1.4, 2.5, -0.5):
        for op in ("adjust_brightness", "adjust_contrast", "adjust_saturation"):
            assert bits_equal(
                getattr(imgops, op)(image, factor), getattr(references_color, op)(photo, factor)
            )
    assert bits_equal(imgops.grayscale(image), references_color.grayscale(photo))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_the_native_pass_is_the_decomposition(photo: Tensor, dtype: torch.dtype, monkeypatch: Any) -> None:
    """At every level of vector instructions, to the bit but for the order of a float mean."""
    if native.module is None:
        pytest.skip("built without the native module")
    image = photo if dtype == torch.uint8 else photo / 255
    image = image[..., :37, :41]  # no multiple of a vector
    from imgops.decomposition import color

    for level in (0, 1, 2):
        monkeypatch.setattr(native, "SIMD_LEVEL", level)
        for op in ("adjust_brightness", "adjust_contrast", "adjust_saturation", "adjust_hue"):
            for factor in (0.3, 1.0, 1.7, -0.2):
                for x in (image, image.permute(1, 2, 0).contiguous().permute(2, 0, 1)):
                    found = getattr(imgops, op)(x, factor)
                    wanted = getattr(color, op)(x, torch.tensor(factor, dtype=torch.float64))
                    if dtype == torch.uint8:
                        assert bits_equal(found, wanted), (op, factor, level)
                    else:
                        torch.testing.assert_close(found, wanted, rtol=0, atol=2e-7)


_LEVEL_CALLS: dict[str, tuple[Any, ...]] = {
    "adjust_gamma": ((2.2, 1), (0.45, 0.8)),
    "posterize": ((1,), (4,), (8,)),
    "solarize": ((0,), (0.5,), (128,)),
    "autocontrast": ((),),
    "equalize": ((),),
}


@pytest.mark.parametrize("op", _LEVEL_CALLS)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_levels_by_every_kind_of_machine(
    photo: Tensor, op: str, dtype: torch.dtype, monkeypatch: Any
) -> None:
    """The native passes at every level of vector instructions, and what stands in for them."""
    image = torch.cat([photo, photo[:2].flip(-1)])[:, :61, :67]  # five channels; no multiple of a vector
    image[1, 3] = 7  # a level that occurs often, in a row
    image = image if dtype == torch.uint8 else image / 255 * 0.7 + 0.1
    for channels in (1, 3, 5):
        x = torch.stack([image[:channels], image[:channels].flip(-2)])
        for amounts in _LEVEL_CALLS[op]:
            one = [references_color.real(op, y, *amounts) for y in x]
            if dtype == torch.uint8:
                one = [getattr(references_color, op)(y, *amounts) for y in x]
            wanted = torch.stack(one)
            for level in (0, 1, 2, None):
                monkeypatch.setattr(native, "SIMD_LEVEL", level or 0)
                if level is None:
                    monkeypatch.setattr(native, "module", None)
                for y in (x, x.movedim(-3, -1).contiguous().movedim(-1, -3)):
                    found = getattr(imgops, op)(y, *amounts)
                    if dtype == torch.uint8:
                        assert bits_equal(found, wanted), (channels, amounts, level)
                    else:
                        torch.testing.assert_close(found.double(), wanted, rtol=0, atol=2e-6)
                monkeypatch.undo()


def test_values_beyond_the_range_and_no_values_at_all() -> None:
    """What NaN and values beyond [0, 1] become is the decomposition's word, flat planes too."""
    from imgops.decomposition import levels

    plane = torch.tensor([-0.5, 0.0, 0.25, 0.999, 1.0, 1.5, float("nan"), float("inf")])
    image = torch.stack([plane, torch.full((8,), 2.5), plane.nan_to_num(0.3, 2.0)]).reshape(3, 2, 4)
    half = torch.tensor(0.5)
    for y in (image, image.movedim(-3, -1).contiguous().movedim(-1, -3)):
        for found, wanted in (
            (imgops.autocontrast(y), levels.autocontrast(image)),
            (imgops.solarize(y, 0.5), levels.solarize(image, half)),
            (imgops.posterize(y, 3), levels.posterize(image, torch.tensor(3))),
            (imgops.adjust_gamma(y, 2.0), levels.adjust_gamma(image, half * 4, half * 2)),
            (imgops.equalize(y), levels.equalize(image)),
        ):
            torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6, equal_nan=True)


def test_hue_against_torchvision(photo: Tensor) -> None:
    from torchvision.transforms.v2 import functional as F

    for factor in (-0.5, -0.1, 0.07, 0.33, 0.5):
        difference = (imgops.adjust_hue(photo, factor).int() - F.adjust_hue(photo, factor).int()).abs()
        assert difference.max() <= 1 and (difference > 0).double().mean() < 1e-3


def test_the_identity_parameters_change_nothing(photo: Tensor) -> None:
    for op, value in (("brightness", 1), ("contrast", 1), ("saturation", 1), ("hue", 0), ("gamma", 1)):
        assert bits_equal(getattr(imgops, f"adjust_{op}")(photo, value), photo)
    assert bits_equal(imgops.posterize(photo, 8), photo)
    assert bits_equal(imgops.solarize(photo, 256), photo)
    assert bits_equal(imgops.solarize(photo, 0), imgops.invert(photo))


def test_a_chosen_step_costs_nothing_else(photo: Tensor) -> None:
    nothing = imgops.color_sequence(photo, torch.full((4,), -1), torch.zeros(1), "hue")
    assert bits_equal(nothing, photo) and nothing.data_ptr() != photo.data_ptr()
    batch = torch.stack([photo, photo])
    order = torch.tensor([[0], [-1]])
    factor = torch.tensor([[0.5], [0.5]], requires_grad=True)
    some = imgops.color_sequence(batch / 255, order, factor, "brightness")
    assert bits_equal(some[1], photo / 255)
    (grad,) = torch.autograd.grad(some.sum(), factor)
    assert grad[0] > 0 and grad[1] == 0
