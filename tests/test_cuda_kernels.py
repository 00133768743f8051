"""The Triton kernels, run on the CPU by Triton's interpreter, and compared with the real PIL and OpenCV."""

from __future__ import annotations

import ast
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from checks import bits_equal, check_raises
from PIL import Image
from torch import Tensor

import imgops
from imgops._common.torch_private import TorchDispatchMode
from imgops._operator.record import Contract, operators
from imgops.extend.testing import cuda_kernel
from imgops.kernels import cuda, devices, transfer
from tests.specs import OPERATORS, SAMPLES, SPECS, Sample
from tests.specs._maker import Maker
from tests.specs._spec import EXACT
from tests.test_reference import compare
from tests.tiers import every_night, nightly, nightly_unless

FOLDER = Path(cuda.__file__).parent
KERNELS = [s for s in SAMPLES if OPERATORS[s.op].operator.cuda is not None]
FIRST_OF_KERNELS = [spec.samples[0] for spec in OPERATORS.values()]
interpreted = pytest.mark.skipif(
    not cuda.runs_on(torch.device("cpu")), reason="Triton was imported without its interpreter"
)
#: The operators whose kernels leave some calls to ATen on the device, and which calls.
LEFT = {
    "pad_adjoint": "borders that repeat pixels add them up",
    "color_matrix": "more than 4 channels",
    "autocontrast": "no pixels",
    "equalize": "no pixels",
    "adjust_brightness": "no pixels",
    "adjust_contrast": "no pixels",
    "adjust_saturation": "no pixels",
    "adjust_hue": "no pixels",
    "color_sequence": "no pixels, or a step of channels that it mixes beside ones that it does not",
}


#: Operators whose launches take seconds in the interpreter: one sample in two dtypes is enough before a commit, because
#: tests/test_ptx.py runs the compiled kernels.
SLOW = ("canny", "clahe", "jpeg", "laplacian", "pyr_down", "pyr_up", "scharr", "sobel")
OF_SLOW = [s for op in SLOW for s in OPERATORS[op].samples[1:]]


def makers(sample: Sample, whole: bool) -> list[Maker]:
    """Return makers of each dtype and both layouts, with parameters for each image; dtypes that only move, once."""
    each = [Maker(torch.uint8, "planar", (2,)), Maker(torch.float32, "interleaved", (2,))]
    if sample.op not in SLOW or whole:
        each += [Maker(torch.bfloat16, "planar", (2, 1)), Maker(torch.int64, "interleaved", (2,))]
    if whole:  # interleaved bytes are the next test's
        each += [Maker(torch.uint8, "interleaved", (2,)), Maker(torch.float16, "interleaved")]
        each += [Maker(torch.float32, f, (2,)) for f in ("planar", "sliced")]
    return [m for m in each if m.dtype in sample.dtypes]


@interpreted
@pytest.mark.parametrize("sample", nightly_unless(FIRST_OF_KERNELS.__contains__, KERNELS), ids=str)
def test_kernel(sample: Sample, whole: bool) -> None:
    """The result is the real library's if it has a function of arrays, else the CPU kernel's, in its memory format."""
    spec, kernel = SPECS[sample.op], cuda_kernel(f"imgops::{sample.op}")
    left, each = 0, makers(sample, whole)
    for maker in each:
        try:
            if callable(spec.reference):
                compare(spec, sample, maker, kernel)
            else:
                _beside_cpu(sample, maker, kernel)
        except NotImplementedError:
            left += 1
        except AssertionError as error:
            raise AssertionError(f"{sample}, {maker}: {error}") from error
    assert not left or (sample.op in LEFT and left == len(each))


def _beside_cpu(sample: Sample, maker: Maker, kernel: Any) -> None:
    call = sample.checked(maker)
    operator, args = call.operator, (*call.op_args, *call.op_keywords.values())
    mine, theirs = (
        [a.clone() if i in operator.mutated_indices else a for i, a in enumerate(args)] for _ in range(2)
    )
    found = kernel(*mine)
    if operator.contract is Contract.FUNCTIONAL:
        wanted = operator.fake(*args)
        operator.kernel(wanted, *args)
        assert found.stride() == wanted.stride()
    else:
        operator.kernel(*theirs)
        wanted = theirs[operator.mutated_indices[0]]
    SPECS[sample.op].decomposed.get(found.dtype, EXACT).check(found, wanted)


@interpreted
@pytest.mark.parametrize("sample", nightly_unless(lambda s: s not in OF_SLOW, KERNELS), ids=str)
def test_uint8_is_the_cpu_kernel_to_the_bit(sample: Sample) -> None:
    """This excludes color_matrix, because OpenCV's own vector code rounds differently from machine to machine."""
    if torch.uint8 not in sample.dtypes or sample.op == "color_matrix":
        return
    call = sample.checked(Maker(torch.uint8, "interleaved", (2,)))
    args = (*call.op_args, *call.op_keywords.values())
    mine, theirs = (
        [a.clone() if i in call.operator.mutated_indices else a for i, a in enumerate(args)] for _ in range(2)
    )
    try:
        found = cuda_kernel(call.operator.qualified)(*mine)
    except NotImplementedError:
        return
    if call.operator.contract is Contract.FUNCTIONAL:
        wanted = call.operator.fake(*args)
        call.operator.kernel(wanted, *args)
    else:
        call.operator.kernel(*theirs)
        wanted = theirs[call.operator.mutated_indices[0]]
    assert bits_equal(found, wanted)


def noise(*shape: int, seed: int = 0, interleaved: bool = False) -> Tensor:
    values = torch.from_numpy(np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8))
    return values.movedim(-3, -1).contiguous().movedim(-1, -3) if interleaved else values


# -- larger than a tile ------------------------------------------------------------------------------


@interpreted
@pytest.mark.parametrize("interleaved", [False, pytest.param(True, marks=nightly)])
@pytest.mark.parametrize("name", ["bilinear", "lanczos", *every_night("box", "hamming", "bicubic")])
def test_resize_with_a_box_for_each_image_is_pil(name: str, interleaved: bool) -> None:
    images = noise(2, 3, 61, 90, interleaved=interleaved)
    boxes = torch.tensor([[3.25, 2.0, 80.5, 60.75], [40.0, 5.5, 52.0, 33.0]], dtype=torch.float64)
    found = cuda_kernel("imgops::resize")(images, boxes, 19, 47, name, True, None)
    for one, box, out in zip(images, boxes.tolist(), found, strict=True):
        for plane, got in zip(one, out, strict=True):
            wanted = Image.fromarray(plane.contiguous().numpy()).resize(
                (47, 19), getattr(Image.Resampling, name.upper()), box=box
            )
            assert bits_equal(got, torch.from_numpy(np.array(wanted)))


@interpreted
@pytest.mark.parametrize("size", [(8, 40), (31, 33)])
def test_crops_keep_the_order_of_pils_passes(size: tuple[int, int]) -> None:
    """Pillow 13 resizes the height first where a crop loses many more rows than columns."""
    images = noise(3, 1, 70, 60)
    boxes = torch.tensor([[5, 3, 55, 69], [0, 0, 60, 20], [10, 10, 10 + size[1], 10 + size[0]]])
    found = cuda_kernel("imgops::resized_crop")(images, boxes, *size, "bicubic", True)
    for one, box, out in zip(images, boxes.tolist(), found, strict=True):
        crop = Image.fromarray(one[0].numpy()).crop(box)
        wanted = crop.resize(size[::-1], Image.Resampling.BICUBIC)
        assert bits_equal(out[0], torch.from_numpy(np.array(wanted)))


@interpreted
@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "lanczos", "area"])
@pytest.mark.parametrize("size", [(17, 31), (60, 131), (30, 35), (20, 14)])
def test_plain_resize_is_opencv(size: tuple[int, int], interpolation: str) -> None:
    flag = {"nearest": 0, "bilinear": 1, "area": 3, "lanczos": 4}[interpolation]
    image = noise(3, 60, 70)
    found = cuda_kernel("imgops::resize")(image, None, *size, interpolation, False, None)
    for plane, got in zip(image.numpy(), found, strict=True):
        wanted = cv2.resize(plane, size[::-1], interpolation=flag)
        assert bits_equal(got, torch.from_numpy(wanted))


@interpreted
@pytest.mark.parametrize(
    ("interpolation", "padding_mode"),
    nightly_unless(
        [("nearest", "symmetric"), ("bilinear", "constant"), ("bicubic", "reflect")].__contains__,
        itertools.product(
            ("nearest", "bilinear", "bicubic"), ("constant", "edge", "reflect", "symmetric", "wrap")
        ),
    ),
)
def test_warps_are_opencv(interpolation: str, padding_mode: str) -> None:
    """They are within a level in few pixels: the interpreter fuses no product and sum. tests/ptx/warps.py has the bits.

    The width fills OpenCV's vectors; for the remainder, OpenCV's compiler decides which products are fused.
    """
    # OpenCV computes the positions of "bicubic" in a perspective in a different order.
    most = {"nearest": 0.0, "bilinear": 0.0005, "bicubic": 0.005}[interpolation]

    def check(found: Tensor, wanted: np.ndarray) -> None:
        apart = (found[0].int() - torch.from_numpy(wanted).int()).abs()
        assert apart.max() <= (most > 0)
        assert (apart > 0).double().mean() <= most

    flags = {"nearest": 0, "bilinear": 1, "bicubic": 2}[interpolation]
    mode = {"constant": 0, "edge": 1, "symmetric": 2, "wrap": 3, "reflect": 4}[padding_mode]
    how = {"borderMode": mode, "borderValue": (9.0,) * 4}
    image, fill = noise(1, 90, 110), torch.tensor(9.0)
    turn = np.array([[0.83, -0.41, 21.7], [0.37, 0.91, -13.3]])
    found = cuda_kernel("imgops::warp_affine")(
        image, torch.from_numpy(turn), fill, 97, 128, interpolation, padding_mode
    )
    check(found, cv2.warpAffine(image[0].numpy(), turn, (128, 97), flags=flags, **how))
    y, x = torch.meshgrid(torch.arange(97.0), torch.arange(128.0), indexing="ij")
    map = torch.stack([x * 0.9 + y * 0.2 - 11.3, y * 0.87 - x * 0.11 + 7.9])
    found = cuda_kernel("imgops::remap")(image, map, fill, interpolation, padding_mode)
    check(found, cv2.remap(image[0].numpy(), *map.numpy(), flags, **how))
    tilt = np.array([[0.83, -0.41, 21.7], [0.37, 0.91, -13.3], [6e-4, -4e-4, 1.1]])
    found = cuda_kernel("imgops::warp_perspective")(
        image, torch.from_numpy(tilt), fill, 97, 128, interpolation, padding_mode
    )
    check(found, cv2.warpPerspective(image[0].numpy(), tilt, (128, 97), flags=flags, **how))


@interpreted
def test_blur_and_filter_are_opencv() -> None:
    image = noise(1, 45, 150)
    sigma = torch.tensor([1.3, 0.7], dtype=torch.float64)
    found = cuda_kernel("imgops::gaussian_blur")(image, sigma, 23, 9)
    wanted = cv2.GaussianBlur(image[0].numpy(), (23, 9), 1.3, None, 0.7, cv2.BORDER_REFLECT_101)
    assert bits_equal(found[0], torch.from_numpy(wanted))
    kernel = np.random.default_rng(1).normal(0, 0.3, (3, 5)).astype(np.float32)
    found = cuda_kernel("imgops::filter2d")(image, torch.from_numpy(kernel), "symmetric")
    wanted = cv2.filter2D(image[0].numpy(), -1, kernel, borderType=cv2.BORDER_REFLECT)
    assert bits_equal(found[0], torch.from_numpy(wanted))


@interpreted
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_a_sequence_of_several_parts_and_turns(dtype: torch.dtype) -> None:
    """There are more pixels than a program handles, an order for each image, skipped steps, and one used twice."""
    names = "brightness,contrast,saturation,hue,sharpness,posterize,solarize,invert,autocontrast,equalize"
    images = noise(2, 3, 70, 75)
    images = images if dtype == torch.uint8 else images.float() / 255
    order = torch.tensor([[1, 3, 1, 9], [8, 4, -1, 5]])
    limit = 90.0 if dtype == torch.uint8 else 0.4
    amounts = torch.tensor([0.7, 1.6, 0.4, 0.13, 1.8, 5.0, limit, 1.0, 1.0, 1.0], dtype=torch.float64)
    for text, chosen in ((names, order), (names[: names.index(",sharpness")], order.clamp(max=3))):
        count = text.count(",") + 1
        args = images, chosen, amounts[:count], text
        wanted = imgops.color_sequence(args[0], chosen, amounts[:count], text.split(","))
        found = cuda_kernel("imgops::color_sequence")(*args)
        if dtype == torch.uint8:
            assert bits_equal(found, wanted)
        else:  # equalize quantizes floats to 256 levels, where the last bit may decide
            assert ((found - wanted).abs() > 1e-5).double().mean() < 1e-3


# -- parameters --------------------------------------------------------------------------------------

READ = [(n, e) for n, spec in OPERATORS.items() if spec.operator.cuda for e in spec.errors if e.reads_values]


class _Reached(Exception):
    pass


class _Stop(TorchDispatchMode):
    """A mode that interrupts a call at the operator, and reports its arguments."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "imgops":
            raise _Reached(func.name(), (*args, *(kwargs or {}).values()))
        return func(*args, **(kwargs or {}))


@interpreted
@pytest.mark.parametrize(("name", "error"), READ, ids=lambda v: str(v)[:50])
def test_values_on_the_cpu_are_refused_in_the_same_words(name: str, error: Any) -> None:
    with pytest.raises(_Reached) as reached, _Stop():
        error.call(torch.ones(2, 3, 5, 6).to(error.dtype))
    operator, args = reached.value.args
    check_raises(lambda: cuda_kernel(operator)(*args), error.error, error.message)


@interpreted
@pytest.mark.parametrize(
    "box",
    [
        [float("nan")] * 4,
        [1e30, 0.0, 1e30, 5.0],
        *every_night([-3.0, -2.0, 400.0, 300.0], [9.0, 9.0, 1.0, 1.0]),
    ],
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


def test_parameters_travel_together() -> None:
    tensors = [
        torch.rand(2, 3, dtype=torch.float64).T,
        torch.tensor(7),
        torch.rand(5).expand(4, 5),
        torch.empty(0),
        torch.tensor([True, False, True]),
    ]
    for found, wanted in zip(transfer.move_together(torch.device("cpu"), tensors), tensors, strict=True):
        assert bits_equal(found, wanted.contiguous())
        assert found.is_contiguous()


# -- other devices, and a device without Triton ------------------------------------------------------


@pytest.mark.parametrize("sample", [s for s in SAMPLES if not s.edge], ids=str)
def test_without_a_kernel_aten_computes_on_the_device(sample: Sample) -> None:
    """This is the kernel that the dispatcher calls for a tensor of any device; here the CPU stands for it."""
    call = sample.checked(Maker(torch.float32, "interleaved", (2,)))
    operator, args = call.operator, (*call.op_args, *call.op_keywords.values())
    if operator.contract is Contract.DYNAMIC:
        return
    mine = [a.clone() if i in operator.mutated_indices else a for i, a in enumerate(args)]
    run, wanted = devices.kernel_of(operator), call.outputs()[0]
    if operator.contract is Contract.FUNCTIONAL:
        found = operator.fake(*args)
        run(found, *args)
    else:
        run(*mine)
        found = mine[operator.mutated_indices[0]]
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


def test_tuples_that_triton_3_6_mistakes_for_each_other_are_found(tmp_path: Path) -> None:
    path = tmp_path / "mistaken.py"
    path.write_text(
        """
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from tests.ptx.calls import no_mistaken_calls

@triton.jit
def first(a, b):
    return a[0] + b[0]

@triton.jit
def kernel(out):
    x = tl.program_id(0)
    tl.store(out, first((x,), (x, x, x)) + first((x, x), (x, OTHER)))

with no_mistaken_calls():
    triton.compile(ASTSource(kernel, {"out": "*i32"}, {}), target=GPUTarget("cuda", 90, 32))
"""
    )
    environment = {**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    environment["PYTHONPATH"] = str(Path(__file__).parents[1])

    def compiled(other: str) -> str:
        path.write_text(path.read_text().replace("OTHER", other))
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, env=environment)
        return "" if done.returncode == 0 else done.stderr

    assert "Triton 3.6 mistakes tuples of [[1, 3], [2, 2]] for each other" in compiled("x")
    path.write_text(path.read_text().replace("(x, x), (x, x)", "(x, x), (x, x, x)"))
    assert compiled("x") == ""


@nightly
def test_kernels_compile_for_a_gpu() -> None:
    """They compile to PTX without a GPU; nothing is fused without being asked for, and no quotient is approximate."""
    pytest.importorskip("triton")
    program = Path(__file__).parent / "cuda_program.py"
    done = subprocess.run(
        [sys.executable, str(program), "90"],
        capture_output=True,
        text=True,
        env={**os.environ, "TRITON_INTERPRET": "0"},
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert re.search(r"^\d{2,} kernels", done.stdout, re.M), done.stdout


# -- transforms ----------------------------------------------------------------------------------------


@interpreted
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.float16])
def test_the_chosen_samples_of_a_transform(dtype: torch.dtype, interleaved: bool) -> None:
    from imgops.transforms._core import operators

    images = noise(3, 3, 20, 33, interleaved=interleaved)
    images = images if dtype == torch.uint8 else (images / 255).to(dtype)
    for chosen in (torch.tensor([True, False, True]), torch.tensor(True), torch.tensor(False)):
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
@nightly
def test_the_page_of_benchmarks_has_the_traffic_of_the_kernels() -> None:
    """It is counted again, except for where memory happens to begin; ``python -m tests.cuda_traffic`` writes the page."""
    from tests import cuda_traffic

    shown = [float(n) for n in re.findall(r"     - (\d+\.\d\d)$", cuda_traffic.current(), re.M)]
    found = [value for _, values in cuda_traffic.measured() for value in values]
    assert len(shown) == len(found) == 60
    for one, other in zip(shown, found, strict=True):
        assert abs(one - other) < 0.15


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


@interpreted
def test_gamma_for_each_of_no_images() -> None:
    """It read a number that there is not."""
    none = torch.zeros(0, 1, 3, 2, dtype=torch.uint8)
    each, all_images = torch.zeros(0, dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64)
    assert cuda_kernel("imgops::adjust_gamma")(none, each, all_images).shape == none.shape
