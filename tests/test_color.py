"""Color and levels beyond the samples: a photograph with many factors, values out of range, every code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import imgops
from imgops._operator.record import Contract
from imgops.fake.color_space import CODES
from imgops.kernels.cpu import native
from tests.checks import bits_equal, check_format
from tests.specs import OPERATORS, OpSpec, Sample, color, filter
from tests.specs._maker import Maker
from tests.specs._spec import EXACT, Tolerance
from tests.specs.color_space import cvt_reference, space_image, tolerances
from tests.specs.histograms import clahe_of_color
from tests.tiers import nightly

#: The operators of PIL's ImageEnhance.
ENHANCED = (color.ADJUST_BRIGHTNESS, color.ADJUST_CONTRAST, color.ADJUST_SATURATION, filter.ADJUST_SHARPNESS)
FACTORS = (0.0, 0.1, 0.37, 0.999, 1.0, 1.4, 2.5, -0.5)


@pytest.fixture
def photo() -> Tensor:
    rng = np.random.default_rng(3)
    smooth = np.kron(rng.integers(0, 256, (3, 9, 12)), np.ones((1, 30, 30)))
    noisy = np.clip(smooth + rng.normal(0, 12, smooth.shape), 0, 255)
    return torch.from_numpy(noisy.astype(np.uint8))


def interleaved(image: Tensor) -> Tensor:
    return image.movedim(-3, -1).contiguous().movedim(-1, -3)


def reference(spec: OpSpec, image: Tensor, *args: Any) -> Tensor:
    wanted = torch.from_numpy(np.ascontiguousarray(spec.reference(image.numpy(), *args)))  # type: ignore[operator]
    return wanted.to(image.dtype) if image.dtype.is_floating_point else wanted


@pytest.mark.parametrize("format", ["planar", "interleaved"])
@pytest.mark.parametrize("built", [pytest.param(True, marks=pytest.mark.needs("native")), False])
@pytest.mark.parametrize("spec", ENHANCED, ids=lambda s: s.name)
def test_a_photograph_to_the_bit(
    spec: OpSpec, photo: Tensor, built: bool, format: str, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The native pass is PIL's, for many factors; so is what replaces it, PIL or the decomposition of a small image."""
    if not built:
        monkeypatch.setattr(native, "module", None)
    for image in (photo, photo[..., :80, :90]):
        given = interleaved(image) if format == "interleaved" else image
        for factor in FACTORS[:: 1 if whole else 3]:
            found = getattr(imgops, spec.name)(given, factor)
            assert bits_equal(found, reference(spec, image.contiguous(), factor)), factor


#: Operators that map each value on its own, and the samples that have one parameter for all images.
LEVELS = [s for spec in OPERATORS.values() for s in spec.samples if spec.section == "Levels" and not s.edge]
LEVELS = [s for s in LEVELS if s.op != "lut" and s.id != "each" and torch.uint8 in s.dtypes]


def numbers_of(sample: Sample, dtype: torch.dtype) -> list[Tensor]:
    return list(sample.checked(Maker(dtype)).op_args[1:])


@pytest.mark.parametrize("sample", LEVELS, ids=str)
def test_values_out_of_range_and_no_numbers(sample: Sample) -> None:
    """NaN and values beyond [0, 1] give the same as in the decomposition, also in flat planes."""
    plane = torch.tensor([-0.5, 0.0, 0.25, 0.999, 1.0, 1.5, float("nan"), float("inf")])
    image = torch.stack([plane, torch.full((8,), 2.5), plane.nan_to_num(0.3, 2.0)]).reshape(3, 2, 4)
    numbers = numbers_of(sample, torch.float32)
    wanted = OPERATORS[sample.op].operator.decomposition(image, *numbers)  # type: ignore[misc]
    for y in (image, interleaved(image)):
        found = getattr(imgops, sample.op)(y, *numbers)
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6, equal_nan=True)


@nightly
def test_hue_of_every_color_is_pils(monkeypatch: pytest.MonkeyPatch) -> None:
    """PIL rounds hues as floats, so all colors are tried, with shifts around the end of the circle, too."""
    from torchvision.transforms.v2 import functional as F

    levels = torch.arange(256, dtype=torch.uint8)
    red, green, blue = torch.meshgrid(levels, levels, levels, indexing="ij")
    colors = torch.stack([red, green, blue]).reshape(3, 4096, 4096)
    picture = Image.fromarray(colors.permute(1, 2, 0).contiguous().numpy())
    for factor, simd in ((0.5, 0), (-0.003, 2)):
        monkeypatch.setattr(native, "SIMD_LEVEL", simd)
        wanted = torch.from_numpy(np.array(F.adjust_hue(picture, factor))).permute(2, 0, 1)
        assert bits_equal(imgops.adjust_hue(colors, factor), wanted.contiguous()), factor
    # The decomposition on the colors of which 0 is the least channel.
    some = torch.cat([colors.reshape(3, -1)[:, (colors == 0).any(0).flatten()]], 1)[:, None]
    formula = OPERATORS["adjust_hue"].operator.decomposition
    assert bits_equal(formula(some, torch.tensor(0.3)), imgops.adjust_hue(some, torch.tensor(0.3)))  # type: ignore[misc]


# -- spaces ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", CODES)
def test_every_code(code: str) -> None:
    """It has OpenCV's values; float64 those of the formulas, and the decomposition is close."""
    formula = OPERATORS["cvt_color"].operator.decomposition
    for dtype in (torch.uint8, torch.float32, torch.float64):
        for format in ("planar", "interleaved"):
            image = space_image(Maker(dtype, format), code.partition("2")[0])
            found = imgops.cvt_color(image, code)
            check_format(found, image)
            wanted = torch.from_numpy(np.ascontiguousarray(cvt_reference(image.numpy(), code)))
            (Tolerance(1e-9) if dtype == torch.float64 else EXACT).check(found, wanted.to(dtype))
            tolerances(code).get(dtype, EXACT).check(formula(image, code), found)  # type: ignore[misc]
    assert bits_equal(imgops.cvt_color(image, code.upper()), found)  # the case of a code is free


def test_hue_of_a_gray_pixel_has_no_gradient() -> None:
    gray = torch.full((3, 1, 1), 0.5, dtype=torch.float64, requires_grad=True)
    hue, _, value = imgops.cvt_color(gray, "rgb2hsv")
    (grad,) = torch.autograd.grad(hue.sum(), gray, retain_graph=True)
    assert not grad.any()
    (grad,) = torch.autograd.grad(value.sum(), gray)
    assert grad.sum() == 1


COLOR = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (3, 20, 24), dtype=np.uint8))


@pytest.mark.parametrize("format", ["planar", "interleaved"])
def test_clahe_of_color(format: str) -> None:
    image = COLOR if format == "planar" else COLOR.movedim(0, -1).contiguous().movedim(-1, 0)
    frame = np.ascontiguousarray(COLOR.permute(1, 2, 0).numpy())
    found = imgops.clahe(image, 2.5, (3, 2))
    assert np.array_equal(found.permute(1, 2, 0).numpy(), clahe_of_color(frame, 2.5, (3, 2)))
    check_format(found, image)
    real = imgops.clahe(image / 255, 2.5, (3, 2))
    # The colors of levels are rounded to 8 bits on their way, those of floats are not.
    assert real.dtype == torch.float32 and (real * 255 - found).abs().mean() < 2.5
    assert torch.allclose(imgops.clahe(image.double() / 255, 2.5, (3, 2)).float(), real, atol=1e-5)
    each = imgops.clahe(torch.stack([image, image]), torch.tensor([2.5, 9.0]), (3, 2))
    assert bits_equal(each[0], found) and not bits_equal(each[1], found)


def test_clahe_of_color_is_differentiable_and_one_graph() -> None:
    x = (COLOR[:, :6, :7].double() / 255 * 0.8 + 0.1).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: imgops.clahe(x, 3.0, 2), x, fast_mode=True, atol=1e-4)
    graph = torch.compile(lambda x: imgops.clahe(x, 3.0, 2), fullgraph=True, backend="aot_eager")
    assert bits_equal(graph(COLOR), imgops.clahe(COLOR, 3.0, 2))


def test_the_identity_parameters_change_nothing(photo: Tensor) -> None:
    neutral = {spec.name: spec.neutral for spec in OPERATORS.values() if spec.neutral is not None}
    assert len(neutral) >= 7
    for name, number in neutral.items():
        assert bits_equal(getattr(imgops, name)(photo, number), photo), name


def test_a_sharpened_rim_stays_at_any_factor() -> None:
    image = torch.rand(3, 9, 11)
    for factor in (1000.0, -1000.0, 1e6):
        out = imgops.adjust_sharpness(image, factor)
        for rim in ((..., 0), (..., -1), (..., 0, slice(None)), (..., -1, slice(None))):
            assert bits_equal(out[rim], image[rim])


def test_a_chosen_step_costs_nothing_else(photo: Tensor) -> None:
    nothing = imgops.color_sequence(photo, torch.full((4,), -1), torch.zeros(1), ["hue"])
    assert bits_equal(nothing, photo) and nothing.data_ptr() != photo.data_ptr()
    batch = torch.stack([photo, photo])
    order = torch.tensor([[0], [-1]])
    factor = torch.tensor([[0.5], [0.5]], requires_grad=True)
    some = imgops.color_sequence(batch / 255, order, factor, ["brightness"])
    assert bits_equal(some[1], photo / 255)
    (grad,) = torch.autograd.grad(some.sum(), factor)
    assert grad[0] > 0 and grad[1] == 0


def test_sharpness_may_come_after_other_steps(photo: Tensor) -> None:
    """Sharpness reads the pixels around the one that it writes, so it cannot work in place."""
    found = imgops.color_sequence(
        photo, torch.tensor([1, 0]), torch.tensor([1.7, 0.6]), ["sharpness", "brightness"]
    )
    assert bits_equal(found, imgops.adjust_sharpness(imgops.adjust_brightness(photo, 0.6), 1.7))


def test_zero_tensors_have_no_memory() -> None:
    """PyTorch creates such tensors in forward mode; a kernel that reads their memory crashes."""
    for spec in OPERATORS.values():
        sample = spec.samples[0]
        if spec.operator.contract is not Contract.FUNCTIONAL or not sample.differentiable:
            continue
        call = sample.checked(Maker())
        function, (image, *others) = call.of(call.names), call.tensors
        if image.is_floating_point():
            empty = torch._efficientzerotensor(image.shape, dtype=image.dtype)
            wanted = function(torch.zeros_like(image), *others)
            assert bits_equal(function(empty, *others), wanted), spec.name
    zero = torch._efficientzerotensor(3, 6, 7)
    assert not imgops.resize(zero, (3, 3)).any() and imgops.blend(zero, zero + 1, 0.5).eq(0.5).all()
