"""Faults that only a GPU would show: reciprocals, failed launches, captures, second copies and hidden synchronizations."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from added_cases import ROWS
from checks import bits_equal, check_raises
from torch import Tensor

import imgops.transforms  # noqa: F401  (registers its operators)
from imgops._common import check, compare
from imgops._common.torch_private import TorchDispatchMode, fake_tensors
from imgops._operator import record
from imgops._operator.record import Contract, Gradient
from imgops.autograd.derived import DerivedGradient
from imgops.fake.color_space import CODES
from imgops.kernels import cuda, devices, transfer
from tests.specs import OPERATORS, SAMPLES, Sample
from tests.specs._maker import Maker
from tests.tiers import nightly, nightly_unless

DECOMPOSED = [
    s
    for s in SAMPLES
    if OPERATORS[s.op].operator.decomposition and OPERATORS[s.op].operator.contract is Contract.FUNCTIONAL
]

DIFFERENTIABLE = [s for s in DECOMPOSED if s.differentiable]
FIRST = [spec.samples[0] for spec in OPERATORS.values()]


def arguments(sample: Sample, dtype: torch.dtype) -> list[Any]:
    call = sample.checked(Maker(dtype, "interleaved", (2,)))
    return [*call.op_args, *call.op_keywords.values()]


# -- division by a number ----------------------------------------------------------------------------


class Reciprocals(TorchDispatchMode):
    """Divide by a number as ATen does on CUDA: multiply by its reciprocal. ``inexact`` has the numbers whose is rounded."""

    def __init__(self) -> None:
        super().__init__()
        self.inexact: set[float] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        divides = func.name().split(".")[0] in ("aten::div", "aten::div_") and not kwargs
        if not divides or isinstance(args[1], Tensor):
            return out
        number = torch.tensor(float(args[1]), dtype=torch.promote_types(out.dtype, torch.float32))
        if number.frexp().mantissa.abs() != 0.5:
            self.inexact.add(number.item())
        return out.copy_(args[0].to(number.dtype) * (1 / number))


@pytest.mark.parametrize("sample", DECOMPOSED, ids=str)
def test_no_formula_divides_by_a_number(sample: Sample) -> None:
    """On CUDA that rounds twice, and levels differ from the CPU's; a power of two has an exact reciprocal."""
    for dtype in (torch.uint8, torch.float32, torch.float64):
        if dtype in sample.dtypes:
            with Reciprocals() as mode:
                OPERATORS[sample.op].operator.decomposition(*arguments(sample, dtype))
            assert not mode.inexact


def test_reciprocals_are_seen() -> None:
    levels = torch.arange(256.0)
    with Reciprocals() as mode:
        assert not bits_equal(levels / 255, levels / torch.full((), 255.0))
        assert bits_equal(levels / 8, levels / torch.full((), 8.0))
        levels.clone().div_(3)
    assert mode.inexact == {255, 3}


@pytest.mark.parametrize("code", CODES)
def test_colors_of_noise_do_not_depend_on_reciprocals(code: str) -> None:
    noise = torch.Generator().manual_seed(0)
    source, _, _ = code.partition("2")
    channels = 1 if source == "gray" else 4 if source.endswith("a") else 3
    image = torch.randint(0, 256, (channels, 150, 150), dtype=torch.uint8, generator=noise)
    formula = OPERATORS["cvt_color"].operator.decomposition
    for x in (image, image.double() / 255):
        wanted = formula(x, code)
        with Reciprocals():
            assert bits_equal(formula(x, code), wanted)


@pytest.mark.parametrize("how", ["nearest", "opencv"])
def test_labels_do_not_depend_on_reciprocals(how: str) -> None:
    formula = record.table["imgops_transforms::nearest"].decomposition
    assert formula is not None
    mask = torch.arange(90 * 110).reshape(1, 90, 110)
    boxes = torch.tensor([3, 5, 101, 87])
    for size in range(1, 60):
        wanted = formula(mask, boxes, (size, size + 3), how)
        with Reciprocals():
            assert bits_equal(formula(mask, boxes, (size, size + 3), how), wanted)


# -- failures of Triton ------------------------------------------------------------------------------


class Driver:
    """Two GPUs that are not there: which one is current, and whose current stream is captured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.current, self.capturing = 0, set[int]()
        monkeypatch.setattr(torch.cuda, "device", self.device)
        monkeypatch.setattr(torch.cuda, "current_device", lambda: self.current)
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: self.current in self.capturing)

    @contextmanager
    def device(self, device: torch.device) -> Iterator[None]:
        before, self.current = self.current, device.index or 0
        try:
            yield
        finally:
            self.current = before


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    monkeypatch.setattr(cuda, "_found", {})
    monkeypatch.setattr(compare, "_warned", False)
    monkeypatch.delitem(sys.modules, "torch._inductor.cudagraph_trees", raising=False)
    return Driver(monkeypatch)


def probe(monkeypatch: pytest.MonkeyPatch, *outcomes: Any) -> list[Any]:
    """Let the smallest kernel end in these ways, one after the other; return those that are left."""
    launch = pytest.importorskip("imgops.kernels.cuda._launch")
    left = list(outcomes)

    def run(device: torch.device) -> bool:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return bool(outcome)

    monkeypatch.setattr(launch, "probe", run)
    return left


GPU = torch.device("cuda", 0)
SHORT = RuntimeError("Triton Error [CUDA]: out of memory")
CAPTURED = RuntimeError("Triton Error [CUDA]: operation not permitted when stream is capturing")
BROKEN = RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered")
OLD = RuntimeError("Triton Error [CUDA]: device kernel image is invalid")


@pytest.mark.parametrize("error", [SHORT, CAPTURED, torch.OutOfMemoryError("CUDA out of memory.")], ids=str)
def test_a_failure_that_passes_is_not_remembered(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    left = probe(monkeypatch, error, True)
    with pytest.warns(compare.SlowPathWarning, match="Triton does not run on cuda:0"):
        assert not cuda.runs_on(GPU)
    assert cuda.runs_on(GPU) and cuda.runs_on(GPU) and not left


def test_a_failure_that_stays_is_remembered(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    left = probe(monkeypatch, OLD)
    with pytest.warns(compare.SlowPathWarning):
        assert not cuda.runs_on(GPU)
    assert not cuda.runs_on(GPU) and not left


def test_a_broken_device_is_an_error(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    probe(monkeypatch, BROKEN, True)
    check_raises(lambda: cuda.runs_on(GPU), RuntimeError, str(BROKEN))
    assert cuda.runs_on(GPU)


def test_nothing_is_tried_during_a_capture(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph would keep the smallest kernel."""
    left = probe(monkeypatch, OLD)
    driver.capturing = {1}
    assert cuda.runs_on(torch.device("cuda", 1)) and len(left) == 1
    driver.capturing = set()
    with pytest.warns(compare.SlowPathWarning):
        assert not cuda.runs_on(torch.device("cuda", 1))


def kernel_that(*outcomes: Any) -> tuple[cuda.Kernel, list[int]]:
    """Return a kernel that ends in these ways, one after the other, and the current device of each call."""
    kernel, left, seen = cuda.Kernel("movement.crop"), list(outcomes), []

    def function(*args: Any) -> Any:
        seen.append(torch.cuda.current_device())
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    kernel.__dict__["function"] = function
    return kernel, seen


def on_gpu(index: int = 0, dtype: torch.dtype = torch.uint8) -> Any:
    return SimpleNamespace(device=torch.device("cuda", index), dtype=dtype)


def test_a_kernel_that_does_not_run_is_left_to_aten(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """This holds for its device, dtype and options; other kernels, and other variants of this one, still run."""
    errors = pytest.importorskip("triton.runtime.errors")
    probe(monkeypatch, True, True)
    kernel, seen = kernel_that(errors.OutOfResources(300_000, 100_000, "shared memory"), None, None, None)
    with pytest.warns(compare.SlowPathWarning, match=r"the kernel movement.crop .* cuda:0.*shared memory"):
        assert kernel(on_gpu(), "lanczos", True, 7) is NotImplemented
    assert kernel(on_gpu(), "lanczos", True, 9) is NotImplemented
    assert kernel(on_gpu(), "bilinear", True, 7) is None
    assert kernel(on_gpu(dtype=torch.float32), "lanczos", True, 7) is None
    assert kernel(on_gpu(1), "lanczos", True, 7) is None
    assert seen == [0, 0, 0, 1] and driver.current == 0


def test_a_kernel_that_lacked_memory_is_tried_again(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    probe(monkeypatch, True)
    kernel, _ = kernel_that(SHORT, None)
    with pytest.warns(compare.SlowPathWarning):
        assert kernel(on_gpu()) is NotImplemented
    assert kernel(on_gpu()) is None


@pytest.mark.parametrize(
    "error",
    [
        BROKEN,
        CAPTURED,
        RuntimeError("Triton Error [CUDA]: misaligned address"),
        torch.AcceleratorError("CUDA error: an illegal memory access was encountered"),
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"),
        TypeError("dynamic_func() missing 1 required positional argument: 'out'"),
    ],
    ids=lambda error: str(error)[:40],
)
def test_faults_are_raised(driver: Driver, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    probe(monkeypatch, True)
    kernel, _ = kernel_that(error, None)
    with pytest.raises(type(error)) as caught:
        kernel(on_gpu())
    assert caught.value is error
    assert kernel(on_gpu()) is None


def test_a_compiler_that_is_missing_is_left_to_aten(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is one of Python, but raised below Triton."""
    probe(monkeypatch, True)
    kernel, _ = kernel_that()
    scope: dict[str, Any] = {"__name__": "triton.runtime.build", "PermissionError": PermissionError}
    exec("def function(*args): raise PermissionError('the cache cannot be written')", scope)
    kernel.__dict__["function"] = scope["function"]
    with pytest.warns(compare.SlowPathWarning):
        assert kernel(on_gpu()) is NotImplemented


# -- copies to the device ----------------------------------------------------------------------------


def test_the_device_of_the_image_is_asked_whether_it_is_captured(driver: Driver) -> None:
    driver.capturing = {1}
    must = "parameters must be on the device of the image while a CUDA graph is captured"
    message = f"imgops: {must}, got parameters on the CPU"
    with fake_tensors():
        factor = torch.tensor([0.5])
        check_raises(lambda: transfer.move_together(torch.device("cuda:1"), [factor]), RuntimeError, message)
        (moved,) = transfer.move_together(torch.device("cuda:0"), [factor])
        assert moved.device == torch.device("cuda:0")


def test_numbers_may_be_constants_of_a_captured_graph() -> None:
    """A tensor that is made of the caller's numbers is marked; one of the caller's own is not."""
    for sample in SAMPLES:
        if not devices.stays_on_device(OPERATORS[sample.op].operator):
            continue
        dtype = torch.float32 if torch.float32 in sample.dtypes else sample.dtypes[0]
        call = sample.checked(Maker(dtype, "interleaved", (2,)))
        given = {value.untyped_storage().data_ptr() for value in call.tensors}
        for value in (*call.op_args, *call.op_keywords.values()):
            if isinstance(value, Tensor) and value.ndim < 4:  # erase's values are on the image's device
                assert check.is_constant(value) == (value.untyped_storage().data_ptr() not in given), sample


def test_numbers_are_copied_during_a_capture(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.capturing = {1}
    monkeypatch.setattr(transfer, "_read_by_graphs", [])
    with fake_tensors():
        numbers = check.constant(torch.tensor([0.5, 2.0]))
        (moved,) = transfer.move_together(torch.device("cuda:1"), [numbers])
        assert moved.device == torch.device("cuda:1") and len(transfer._read_by_graphs) == 1
        with pytest.raises(RuntimeError, match="got parameters on the CPU"):
            transfer.move_together(torch.device("cuda:1"), [numbers, torch.tensor([0.5])])


def test_constants_may_be_copied_during_a_capture(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph copies them at each replay, from pinned memory that nothing changes or frees: PyTorch refuses other."""
    pins: list[bool] = []
    pack = transfer._packed

    def packed(tensors: Any, pinned: bool) -> Any:
        pins.append(pinned)
        return pack(tensors, pinned)

    monkeypatch.setattr(transfer, "_packed", packed)
    monkeypatch.setattr(transfer, "_read_by_graphs", [])
    with fake_tensors():
        tables = [torch.arange(5, dtype=torch.int32), torch.ones(3, 2)]
        copies, lasting = transfer.move_constant(torch.device("cuda:1"), tables)
        assert lasting and pins == [True] and not transfer._read_by_graphs
        driver.capturing = {1}
        copies, lasting = transfer.move_constant(torch.device("cuda:1"), tables)
        assert not lasting and pins == [True, True]
        (host,) = transfer._read_by_graphs
        assert host.device.type == "cpu" and host.nbytes == 32 + 32
    assert [(c.device, c.dtype, c.shape) for c in copies] == [
        (torch.device("cuda:1"), t.dtype, t.shape) for t in tables
    ]


def test_what_is_kept_is_not_of_the_memory_of_graphs_that_warm_up(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTorch takes memory for such graphs by thread, and refuses to find any of it in use afterwards."""
    tables = pytest.importorskip("imgops.kernels.cuda._resampling_tables")
    here, where = threading.get_ident(), []
    streams: list[Any] = []

    @contextmanager
    def stream(stream: Any) -> Iterator[None]:
        streams.append(stream)
        yield

    monkeypatch.setattr(torch.cuda, "stream", stream)
    current = SimpleNamespace(cuda_stream=7)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: current)
    monkeypatch.setattr(tables, "_kept", {})

    def make() -> str:
        where.append(threading.get_ident())
        return "tables"

    assert transfer.make_lasting(GPU, make) == "tables"
    monkeypatch.setitem(sys.modules, "torch._inductor.cudagraph_trees", SimpleNamespace())
    assert transfer.make_lasting(GPU, make) == "tables"
    assert tables.cached(("key",), GPU, make) == "tables"
    assert transfer.make_lasting(torch.device("cpu"), make) == "tables"
    assert [at == here for at in where] == [True, False, False, True]
    assert streams == [current, current]

    def fails() -> None:
        raise ValueError("no tables")

    check_raises(lambda: transfer.make_lasting(GPU, fails), ValueError, "no tables")


def test_constants_keep_their_values() -> None:
    tables = [torch.arange(5, dtype=torch.int32), torch.rand(3, 2), torch.zeros(0)]
    copies, lasting = transfer.move_constant(torch.device("cpu"), tables)
    assert lasting
    for copy, table in zip(copies, tables, strict=True):
        assert bits_equal(copy, table)
        assert copy.data_ptr() != table.data_ptr() or not table.numel()


def test_what_a_kernel_declines_is_moved_once(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "runs_on", lambda device: True)
    kernel, _ = kernel_that(NotImplemented)
    moves: list[int] = []
    move = transfer.move_together

    def counted(device: torch.device, tensors: Any) -> Any:
        moves.append(len(tensors))
        return move(device, tensors)

    monkeypatch.setattr(transfer, "move_together", counted)
    operator = SimpleNamespace(**{**vars(OPERATORS["adjust_gamma"].operator), "cuda": kernel})
    with fake_tensors():
        image = torch.empty(2, 3, 8, 8, device="cuda:0")
        gamma, gain = torch.ones(2, dtype=torch.float64), torch.ones((), dtype=torch.float64)
        devices.kernel_of(operator)(torch.empty_like(image), image, gamma, gain)  # type: ignore[arg-type]
    assert moves == [2]


# -- synchronization ---------------------------------------------------------------------------------
#
# Tensors without data stand in for those of a device: nothing can read them, and PyTorch differentiates on them.


class NoWaiting(TorchDispatchMode):
    """Refuse copies between the host and the device that block."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, options = func.name().split(".")[0], kwargs or {}
        if name == "aten::copy_":
            target, source, *rest = args
            asynchronous = any(rest) or options.get("non_blocking")
            assert target.device == source.device or asynchronous, f"a blocking copy from {source.device}"
        elif name == "aten::_to_copy":
            device = options.get("device") or args[0].device
            assert device == args[0].device or options.get("non_blocking"), f"a blocking copy to {device}"
        return func(*args, **options)


def without_data(sample: Sample, parameters: str) -> list[Any]:
    """Return arguments whose images have no data, and parameters neither, or on the CPU."""
    operator = OPERATORS[sample.op].operator
    cores = getattr(operator.vmap, "core", ())

    def moved(i: int, value: Any) -> Any:
        is_parameter = i < len(cores) and cores[i] != 3
        if not isinstance(value, Tensor) or (is_parameter and parameters == "cpu"):
            return value
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")

    dtype = torch.float32 if torch.float32 in sample.dtypes else sample.dtypes[0]
    return [moved(i, a) for i, a in enumerate(arguments(sample, dtype))]


@pytest.mark.parametrize("sample", DECOMPOSED, ids=str)
def test_no_formula_waits_for_the_device(sample: Sample) -> None:
    with NoWaiting():
        OPERATORS[sample.op].operator.decomposition(*without_data(sample, "meta"))


@pytest.mark.parametrize("sample", nightly_unless(FIRST.__contains__, DIFFERENTIABLE), ids=str)
def test_no_gradient_waits_for_the_device(sample: Sample) -> None:
    """Of a parameter on the CPU only the gradient itself has to come back, after these kernels."""
    operator = OPERATORS[sample.op].operator
    for parameters in ("meta", "cpu"):
        args = without_data(sample, parameters)
        tensors = enumerate(args[: operator.tensors])
        wanted = [i for i, a in tensors if isinstance(a, Tensor) and a.is_floating_point()]
        if not wanted or operator.no_gradient:
            return
        rule = DerivedGradient(operator.decomposition, operator.fake, operator.tensors)
        out = operator.fake(*args)
        grad, tangent = torch.empty_like(out), rule.backward_fake(out, *args, wanted)
        with NoWaiting():
            rule.backward_kernel(grad, *args, wanted)
            rule.forward_kernel(tangent, *args, wanted)


@pytest.mark.parametrize("sample", DIFFERENTIABLE, ids=str)
def test_no_written_backward_waits_for_the_device(sample: Sample) -> None:
    operator, args = OPERATORS[sample.op].operator, without_data(sample, "meta")
    needed = [isinstance(a, Tensor) and a.is_floating_point() for a in args]
    if not isinstance(operator.autograd, Gradient) or not any(needed):
        return
    context = SimpleNamespace(needs_input_grad=needed, save_for_forward=lambda *tensors: None)
    context.save_for_backward = lambda *tensors: setattr(context, "saved_tensors", tensors)
    with NoWaiting(), torch.no_grad():
        out = operator.fake(*args)
        operator.autograd.setup_context(context, tuple(args), out)
        operator.autograd.backward(context, torch.empty_like(out))


#: Transforms that read images: Poisson noise is drawn on the CPU, and the image decides its rates.
READ = ("RandomISONoise",)


@pytest.mark.parametrize("row", [r for r in ROWS if r.name not in READ], ids=str)
def test_no_transform_of_chosen_samples_waits(row: Any) -> None:
    """One sample alone, several at once, and all samples; their parameters are on the CPU."""
    transform = row.make()
    if not getattr(transform, "_description", "") or not hasattr(transform, "each"):
        return
    operator = record.table["imgops_transforms::apply_transform"]
    assert operator.decomposition is not None
    rule = DerivedGradient(operator.decomposition, operator.fake, operator.tensors)
    shape = (1, 3, *row.size)
    torch.manual_seed(0)
    drawn = transform._draw_row(shape)
    while drawn is None:
        drawn = transform._draw_row(shape)
    numbers = torch.as_tensor(drawn, dtype=torch.float64)
    image = torch.empty((3, *shape[1:]), device="meta")
    extra = transform._extra(image)
    for chosen in (None, [1, 0, 0], [1, 0, 1], [1, 1, 1]):
        rows = numbers if chosen is None else numbers.repeat(3, 1)
        if chosen is not None:
            rows[:, 0] = torch.tensor(chosen)
        args = image, rows, extra, transform._description, "image"
        with NoWaiting():
            operator.kernel(torch.empty_like(image), *args)
            rule.backward_kernel(torch.empty_like(image), *args, [0])


def test_tensors_of_lists_are_made_on_the_cpu() -> None:
    """``torch.tensor(numbers, device="cuda")`` waits for its copy; the gradient of chosen samples had one."""
    made = re.compile(r"torch\.(tensor|as_tensor)\([^()]*(\([^()]*\)[^()]*)*device=(?!\"cpu\")")
    folder = Path(record.__file__).parent
    found = {
        f"{path.relative_to(folder)}: {line.strip()}"
        for part in ("decomposition", "autograd", "kernels/cuda", "transforms/_core")
        for path in sorted((folder / part).glob("*.py"))
        for line in path.read_text().splitlines()
        if made.search(line)
    }
    assert not found


# -- more than 2**31 values --------------------------------------------------------------------------

LARGE = [
    pytest.param("planes", "uint8", "--quick", id="planes-uint8-quick"),
    *(
        pytest.param(far, dtype, "", id=f"{far}-{dtype}", marks=nightly)
        for far in ("planes", "rows", "columns", "packed", "dense")
        for dtype in ("uint8", "float32")
    ),
]


@pytest.mark.skipif(
    find_spec("triton") is None or shutil.which("gcc") is None or sys.platform != "linux",
    reason="Triton compiles the kernels, and gcc what their PTX becomes",
)
@pytest.mark.parametrize(("far", "dtype", "more"), LARGE)
def test_offsets_beyond_32_bits(far: str, dtype: str, more: str) -> None:
    """The compiled kernels, in a process of their own, on images of which only a few pages take memory."""
    out = subprocess.run(
        [sys.executable, "-m", "tests.ptx.large", "--far", far, "--dtype", dtype, *more.split()],
        cwd=Path(__file__).parents[1],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ).stdout
    if "can't allocate memory" in out:
        pytest.skip("the system reserves no memory for images of this size")
    assert re.search(r"^[1-9]\d+ equal, 0 left to ATen, 0 differ$", out, re.M), out[-4000:]
