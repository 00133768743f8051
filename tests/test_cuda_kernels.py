"""The Triton kernels, run on the CPU by Triton's interpreter, and compared with the real PIL and OpenCV."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import imgops
from imgops._common import compare as libraries
from imgops._operator.record import Contract, operators
from imgops.extend.testing import cuda_kernel
from imgops.kernels import cuda, devices
from tests.checks import bits_equal, check_raises
from tests.kernel_calls import COMPILED, KERNELS, ROWS, arguments, by_host, check_kernel
from tests.specs import OPERATORS, SAMPLES, SPECS, Sample
from tests.specs._maker import DEVICES, Maker
from tests.specs._spec import EXACT
from tests.tiers import every_night, nightly, nightly_unless

FOLDER = Path(cuda.__file__).parent
interpreted = pytest.mark.skipif(
    not cuda.runs_on(torch.device("cpu")), reason="Triton was imported without its interpreter"
)
#: The operators whose kernels leave some calls to ATen on the device, and which calls.
LEFT = {
    "pad_adjoint": "borders that repeat pixels add them up",
    "pad_each": "borders that repeat pixels",
    "resize": "a scale that is given",
    "resize_adjoint": "a scale that is given",
    "color_matrix": "more than 4 channels",
    "autocontrast": "no pixels",
    "equalize": "no pixels",
    "adjust_brightness": "no pixels",
    "adjust_contrast": "no pixels",
    "adjust_saturation": "no pixels",
    "adjust_hue": "no pixels",
    "color_sequence": "no pixels, or a step of channels that it mixes beside ones that it does not",
}


#: A quick operator of each family of kernels, of which the first sample is run before a commit. A GPU runs all that
#: test_reference.py does not run there.
QUICK = {o.cuda.__module__: n for n, o in reversed(operators().items()) if o.cuda and n != "pyr_down"}
FIRST = [
    OPERATORS[name].samples[name == "jpeg"] for name in QUICK.values()
]  # the first one of jpeg takes a second
DEVICE = DEVICES[-1]
RUN = (*ROWS, *COMPILED) if DEVICE == "cuda" else nightly_unless(FIRST.__contains__, (*KERNELS, *ROWS))


def makers(sample: Sample, whole: bool) -> list[Maker]:
    """Return makers of each dtype and both layouts, with parameters for each image; dtypes that only move, once.

    A GPU has run all of them: the interpreter takes all for the first sample of an operator, and a third for the others.
    """
    each = [Maker(torch.uint8, "interleaved", (2,), DEVICE)]
    if whole:
        each += [Maker(torch.uint8, "planar", (2,), DEVICE), Maker(torch.bfloat16, "planar", (2, 1), DEVICE)]
        each += [Maker(torch.float32, f, (2,), DEVICE) for f in ("interleaved", "planar", "sliced")]
        each += [
            Maker(torch.float16, "interleaved", (), DEVICE),
            Maker(torch.int64, "interleaved", (2,), DEVICE),
        ]
        if DEVICE == "cpu" and sample.op in OPERATORS and sample != OPERATORS[sample.op].samples[0]:
            each = each[len(sample.id) % 3 :: 3]
    if sample in ROWS:
        each.append(Maker(torch.uint16, "interleaved", (2,), DEVICE))
    return [m for m in each if m.dtype in sample.dtypes]


@pytest.mark.skipif(
    DEVICE == "cpu" and not cuda.runs_on(torch.device("cpu")),
    reason="Triton was imported without its interpreter",
)
@pytest.mark.parametrize("sample", RUN, ids=str)
def test_kernel(sample: Sample, whole: bool) -> None:
    """The result is the real library's if it has a function of arrays, else the CPU kernel's, in its memory format."""
    left, each = 0, makers(sample, whole or DEVICE == "cuda")
    for maker in each:
        try:
            check_kernel(sample, maker)
        except NotImplementedError:
            left += 1
        except AssertionError as error:
            raise AssertionError(f"{sample}, {maker}: {error}") from error
    assert not left or (sample.op in LEFT and left == len(each))


def noise(*shape: int, interleaved: bool = False) -> Tensor:
    values = torch.from_numpy(np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8))
    return values.movedim(-3, -1).contiguous().movedim(-1, -3) if interleaved else values


@interpreted
def test_nothing_else_is_computed() -> None:
    """Double precision is left to ATen, and no pixels are no launch."""
    kernel = cuda_kernel("imgops::cvt_color")
    assert kernel(torch.zeros(3, 0, 4), "rgb2gray").shape == (1, 0, 4)
    with pytest.raises(NotImplementedError, match="cvt_color leaves these arguments to its decomposition"):
        kernel(torch.zeros(3, 2, 4, dtype=torch.float64), "rgb2gray")


# -- parameters --------------------------------------------------------------------------------------


@interpreted
def test_values_on_the_cpu_are_refused_in_the_same_words() -> None:
    """The checks of values are those of the CPU's kernel, which test_errors.py makes fail."""
    message = "jpeg: quality must be a whole number from 1 to 100, or 0 for none, got 101.0"
    call = lambda: cuda_kernel("imgops::jpeg")(noise(1, 3, 8, 8), torch.tensor(101.0))
    check_raises(call, ValueError, message)


@interpreted
@nightly
@pytest.mark.parametrize(
    "box", [[float("nan")] * 4, [1e30, 0, 1e30, 5], [-3.0, -2, 400, 300], [9.0, 9, 1, 1]], ids=str
)
def test_a_wrong_box_on_the_device_stays_within_memory(box: list[float]) -> None:
    """The box is not read, so it is not refused: the result is some part of the image."""
    image = noise(1, 3, 20, 30)
    region = torch.tensor(box, dtype=torch.float64)
    for name in ("nearest", "bilinear", "lanczos"):
        out = torch.empty(1, 3, 7, 9, dtype=torch.uint8)
        assert operators()["resize"].cuda(out, image, region, 7, 9, name, True) is None
    whole = torch.tensor([-5, 400, 7, -90]) if box[0] != box[0] else region.clamp(-1e9, 1e9).long()
    for antialias in (True, False):
        for name in ("nearest", "bilinear"):
            out = torch.empty(1, 3, 7, 9, dtype=torch.uint8)
            assert operators()["resized_crop"].cuda(out, image, whole, 7, 9, name, antialias) is None
    out = torch.empty_like(image)
    assert operators()["erase"].cuda(out, image, noise(1, 3, 1, 1), whole) is None


@interpreted
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_thresholds_on_the_device_may_be_any_numbers(dtype: torch.dtype) -> None:
    image, kernel = torch.tensor([0, 7, 255]).to(dtype).reshape(1, 1, 3), operators()["threshold"].cuda
    for limit, above in ((float("inf"), 0), (float("-inf"), 3), (float("nan"), 0)):
        out = torch.empty_like(image)
        assert kernel(out, image, torch.tensor(limit), torch.tensor(1.0), "binary") is None
        assert int(out.sum()) == above


@interpreted
@nightly
def test_qualities_on_the_device_are_not_refused() -> None:
    """They cannot be read, so that the kernel takes the nearest quality, or leaves the image as it is."""
    image, by_pillow = noise(6, 3, 9, 12), SPECS["jpeg"].reference
    qualities = torch.tensor([float("nan"), -5.0, float("inf"), 70.9, 1e30, 0.5], dtype=torch.float64)
    out = torch.empty_like(image)
    assert operators()["jpeg"].cuda(out, image, qualities) is None
    for found, given, quality in zip(out, image, (0, 0, 100, 70, 100, 0), strict=True):
        assert np.array_equal(found, by_pillow(given.numpy(), quality) if quality else given)  # type: ignore[operator]


@interpreted
def test_another_jpeg_library_of_pillow_is_called_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from imgops.kernels.cuda import codec

    monkeypatch.setenv("IMGOPS_QUIET", "1")
    image, quality = noise(2, 3, 9, 12), torch.tensor(70)
    for features in ({"libjpeg_turbo": False}, {"libjpeg_turbo": True, "mozjpeg": True}):
        libraries.results.clear()
        monkeypatch.setattr(codec.features, "check_feature", lambda name, f=features: f.get(name, False))
        assert codec.jpeg(torch.empty_like(image), image, quality) is NotImplemented
    libraries.results.clear()


# -- other devices, and a device without Triton ------------------------------------------------------


@pytest.mark.parametrize(
    "sample",
    nightly_unless(
        lambda s: s is OPERATORS[s.op].samples[0],
        [s for s in SAMPLES if not s.edge and OPERATORS[s.op].operator.contract is not Contract.DYNAMIC],
    ),
    ids=str,
)
def test_without_a_kernel_aten_computes_on_the_device(sample: Sample) -> None:
    """This is the kernel that the dispatcher calls for a tensor of any device; here the CPU stands for it."""
    operator, args = OPERATORS[sample.op].operator, arguments(sample)
    found, wanted = by_host(operator, args, devices.kernel_of(operator)), by_host(operator, args)
    tolerance = OPERATORS[sample.op].decomposed if sample.decomposed is None else sample.decomposed
    tolerance.get(found.dtype, EXACT).check(found, wanted)


def test_a_device_without_doubles_uses_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """mps refuses float64 with a TypeError; the operator then goes through the host, and does not try again."""
    calls = []

    def refuses(image: Tensor) -> Tensor:
        calls.append("aten")
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype")

    def kernel(out: Tensor, image: Tensor) -> None:
        calls.append("host")
        out.copy_(image)

    def fake(image: Tensor) -> Tensor:
        return torch.empty_like(image)

    @imgops.extend.operator("route_test::doubles", kernel=kernel, fake=fake, decomposition=refuses)
    def doubles(image: Tensor) -> Tensor: ...

    run = devices.kernel_of(doubles.operator)
    with pytest.raises(TypeError):  # on the CPU and on CUDA such an error is a bug
        run(torch.empty(2), torch.ones(2))
    monkeypatch.setattr(devices, "has_every_dtype", lambda device: False)
    calls.clear()
    out = torch.empty(2)
    run(out, torch.ones(2))
    run(out, torch.ones(2))
    assert calls == ["aten", "host", "host"]
    assert bits_equal(out, torch.ones(2))


def test_without_triton_the_decomposition_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    for name in [n for n in sys.modules if n.startswith("imgops.kernels.cuda._launch")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(cuda, "_launch", raising=False)
    monkeypatch.setattr(cuda, "_found", {})
    assert not cuda.runs_on(torch.device("cpu"))
    out, image = torch.empty(1, 2, 2), torch.rand(1, 4, 4)
    assert operators()["crop"].cuda(out, image, 0, 0, 2, 2) is NotImplemented
    must = "cuda_kernel: Triton must be imported with TRITON_INTERPRET=1, got Triton without it, or none"
    check_raises(lambda: cuda_kernel("imgops::crop")(image, 0, 0, 2, 2), RuntimeError, must)


def test_names_without_a_kernel_are_refused() -> None:
    for name, got in (("imgops::webp", "none"), ("imgops::nothing", "an unknown operator")):
        message = f"cuda_kernel: {name} must have a CUDA kernel, got {got}"
        check_raises(lambda name=name: cuda_kernel(name), NotImplementedError, message)


# -- how kernels are written -------------------------------------------------------------------------


def test_no_kernel_waits_for_the_device() -> None:
    """No code reads a value from the device or copies one to the host; tables are computed from sizes only."""
    for path in FOLDER.glob("*.py"):
        if path.name == "nvjpeg.py":  # its data are on the host
            continue
        text = path.read_text()
        for call in (".item(", ".cpu(", ".tolist(", ".numpy(", ".nonzero(", "synchronize("):
            found = [line for line in text.splitlines() if call in line]
            assert not found, (path.name, found)


def test_launches_have_one_place() -> None:
    """That function disables fusion; a launch elsewhere would not."""
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            called = node.func if isinstance(node, ast.Call) else None
            if isinstance(called, ast.Subscript) and isinstance(called.slice, ast.Tuple):
                assert path.name == "_launch.py", (path.name, ast.unparse(node)[:80])
    assert "enable_fp_fusion=False" in (FOLDER / "_launch.py").read_text()


# -- transforms ----------------------------------------------------------------------------------------


@interpreted
@pytest.mark.parametrize("interleaved", [False, *every_night(True)])
@pytest.mark.parametrize("dtype", [torch.uint8, *every_night(torch.float32, torch.float16)])
def test_the_chosen_samples_of_a_transform(dtype: torch.dtype, interleaved: bool, whole: bool) -> None:
    from imgops.transforms._core import operators

    images = noise(3, 3, 2, 17, interleaved=interleaved)
    images = images if dtype == torch.uint8 else (images / 255).to(dtype)
    for each in ([True, False, True], True, False)[: 3 if whole else 1]:
        chosen = torch.tensor(each)
        for dim in (-1, -2):
            found = cuda_kernel("imgops_transforms::flip_chosen")(images, chosen, dim)
            assert bits_equal(found, operators.flip_chosen(images, chosen, dim))
            assert found.stride() == images.stride()
        found = cuda_kernel("imgops_transforms::gray_chosen")(images, chosen)
        torch.testing.assert_close(found, operators.gray_chosen(images, chosen), rtol=0, atol=1e-3)


@pytest.mark.parametrize("inside", ["per_sample", "plain"])
def test_a_pipeline_sends_its_parameters_once(inside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parameters of all samples are copied together, and equal those on the CPU."""
    import imgops.transforms as T
    from imgops.transforms._core import parameters

    steps = [
        T.RandomResizedCrop(24),
        T.RandomHorizontalFlip(),
        T.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 5),
        T.RandomPerspective(),
        T.RandomRotation(30),
        T.RandomCrop(20, padding=2),
        T.RandomApply([T.ColorJitter(0.4, 0.4, 0.4, 0.1)], 0.8),
        T.RandomGrayscale(0.3),
        T.GaussianBlur(5),
        T.RandomErasing(),
    ]
    for step in steps:
        step.per_sample = True
    pipeline = T.Compose(steps, per_sample=True) if inside == "per_sample" else T.Compose(steps)
    images = noise(4, 3, 31, 37)
    torch.manual_seed(3)
    wanted = pipeline(images)
    sent: list[int] = []

    def copy_to(device: torch.device, tensors: list[Tensor]) -> list[Tensor]:
        sent.append(len(tensors))
        return [x.clone() for x in tensors]

    monkeypatch.setattr(parameters, "is_on_host", lambda image: False)
    monkeypatch.setattr(parameters.transfer, "copy_to", copy_to)
    torch.manual_seed(3)
    assert bits_equal(pipeline(images), wanted)
    assert sent == [1]


@interpreted
def test_what_is_not_finite_is_as_on_the_cpu() -> None:
    """A hunt found other pixels for infinite positions, and NaN from products with 0, or none from NaN."""
    inf, nan, unit = float("inf"), float("nan"), torch.tensor(1.0, dtype=torch.float64)
    ops, half = torch.ops.imgops, torch.tensor(0.5, dtype=torch.float64)
    x = torch.tensor([[[inf, 1.0, -inf, 0.2]]])
    for operation in ("binary", "binary_inv", "trunc", "tozero", "tozero_inv"):
        wanted = ops.threshold(x, half, unit, operation)
        assert torch.equal(cuda_kernel("imgops::threshold")(x, half, unit, operation), wanted)
    x[0, 0, 1] = nan
    found = cuda_kernel("imgops::posterize")(x, torch.tensor(3.0, dtype=torch.float64))
    wanted = ops.posterize(x, torch.tensor(3.0, dtype=torch.float64))
    assert torch.equal(found.nan_to_num(nan=7), wanted.nan_to_num(nan=7)) and bool(found[0, 0, 1].isnan())
    image, positions = torch.arange(1.0, 16).reshape(1, 3, 5), torch.tensor([[[inf, -inf]], [[1.0, 1.0]]])
    for border in ("wrap", "symmetric", "reflect"):
        call = image, positions, None, "bilinear", border
        assert torch.equal(cuda_kernel("imgops::remap")(*call), ops.remap(*call))
    image = torch.rand(1, 24, 24)
    image[0, 11, 11] = inf
    for name, how in (("scharr", (0, 1, "reflect")), ("laplacian", (1, "reflect"))):
        found = cuda_kernel(f"imgops::{name}")(image, *how).isfinite()
        assert torch.equal(found, getattr(ops, name)(image, *how).isfinite())
