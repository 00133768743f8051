"""Faults that only a GPU would show: failed launches, captures and second copies. A mocked driver stands in for it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from imgops._common import check, compare
from imgops._common.torch_private import fake_tensors
from imgops.kernels import cuda, devices, transfer
from tests.checks import bits_equal, check_raises
from tests.specs import OPERATORS, SAMPLES
from tests.specs._maker import Maker

GPU, SECOND = torch.device("cuda", 0), torch.device("cuda", 1)
TRITON = "Triton Error [CUDA]: "
SHORT = RuntimeError(TRITON + "out of memory")
CAPTURED = RuntimeError(TRITON + "operation not permitted when stream is capturing")
BROKEN = RuntimeError(TRITON + "an illegal memory access was encountered")
OLD = RuntimeError(TRITON + "device kernel image is invalid")


class Driver:
    """Two GPUs that are not there: which one is current, and whose current stream is captured."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.current, self.capturing, self.patch = 0, set[int](), monkeypatch
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

    def probe(self, *outcomes: Any) -> list[Any]:
        """Let the smallest kernel end in these ways, one after the other; return those that are left."""
        launch, left = pytest.importorskip("imgops.kernels.cuda._launch"), list(outcomes)
        self.patch.setattr(launch, "probe", lambda device: bool(_ended(left.pop(0))))
        return left


def _ended(outcome: Any) -> Any:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    monkeypatch.setattr(cuda, "_found", {})
    monkeypatch.setattr(compare, "_warned", False)
    monkeypatch.setattr(transfer, "_read_by_graphs", [])
    monkeypatch.delitem(sys.modules, "torch._inductor.cudagraph_trees", raising=False)
    return Driver(monkeypatch)


def warns(text: str = "") -> Any:
    return pytest.warns(compare.SlowPathWarning, match=text)


# -- failures of Triton ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [SHORT, CAPTURED, OLD, torch.OutOfMemoryError("CUDA out of memory.")], ids=str
)
def test_a_failure_is_remembered_if_it_stays(driver: Driver, error: Exception) -> None:
    left = driver.probe(error, True)
    with warns("Triton does not run on cuda:0"):
        assert not cuda.runs_on(GPU)
    assert cuda.runs_on(GPU) == (error is not OLD) == cuda.runs_on(GPU)
    assert len(left) == (error is OLD)


def test_a_broken_device_is_an_error(driver: Driver) -> None:
    driver.probe(BROKEN, True)
    check_raises(lambda: cuda.runs_on(GPU), RuntimeError, str(BROKEN))
    assert cuda.runs_on(GPU)


def test_nothing_is_tried_during_a_capture(driver: Driver) -> None:
    """A graph would keep the smallest kernel."""
    left = driver.probe(OLD)
    driver.capturing = {1}
    assert cuda.runs_on(SECOND) and len(left) == 1
    driver.capturing = set()
    with warns():
        assert not cuda.runs_on(SECOND)


def kernel_that(*outcomes: Any) -> tuple[cuda.Kernel, list[int]]:
    """Return a kernel that ends in these ways, one after the other, and the current device of each call."""
    kernel, left, seen = cuda.Kernel("movement.crop"), list(outcomes), []

    def function(*args: Any) -> Any:
        seen.append(torch.cuda.current_device())
        return _ended(left.pop(0))

    kernel.__dict__["function"] = function
    return kernel, seen


def on_gpu(index: int = 0, dtype: torch.dtype = torch.uint8) -> Any:
    return SimpleNamespace(device=torch.device("cuda", index), dtype=dtype)


def test_a_kernel_that_does_not_run_is_left_to_aten(driver: Driver) -> None:
    """This holds for its device, dtype and options; other kernels, and other variants of this one, still run."""
    errors = pytest.importorskip("triton.runtime.errors")
    driver.probe(True, True)
    kernel, seen = kernel_that(errors.OutOfResources(300_000, 100_000, "shared memory"), None, None, None)
    with warns(r"the kernel movement.crop .* cuda:0.*shared memory"):
        assert kernel(on_gpu(), "lanczos", True, 7) is NotImplemented
    assert kernel(on_gpu(), "lanczos", True, 9) is NotImplemented
    assert kernel(on_gpu(), "bilinear", True, 7) is None
    assert kernel(on_gpu(dtype=torch.float32), "lanczos", True, 7) is None
    assert kernel(on_gpu(1), "lanczos", True, 7) is None
    assert seen == [0, 0, 0, 1] and driver.current == 0


@pytest.mark.parametrize(
    "error",
    [
        *(BROKEN, CAPTURED, SHORT),
        RuntimeError(TRITON + "misaligned address"),
        torch.AcceleratorError("CUDA error: an illegal memory access was encountered"),
        torch.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("The size of tensor a (3) must match the size of tensor b (4)"),
        TypeError("dynamic_func() missing 1 required positional argument: 'out'"),
    ],
    ids=lambda error: str(error)[:40],
)
def test_faults_are_raised(driver: Driver, error: Exception) -> None:
    """What lacked memory is left to ATen, and tried again."""
    driver.probe(True)
    kernel, _ = kernel_that(error, None)
    if error is SHORT:
        with warns():
            assert kernel(on_gpu()) is NotImplemented
    else:
        with pytest.raises(type(error)) as caught:
            kernel(on_gpu())
        assert caught.value is error
    assert kernel(on_gpu()) is None


def test_a_compiler_that_is_missing_is_left_to_aten(driver: Driver) -> None:
    """The error is one of Python, but raised below Triton."""
    driver.probe(True)
    kernel, _ = kernel_that()
    scope: dict[str, Any] = {"__name__": "triton.runtime.build", "PermissionError": PermissionError}
    exec("def function(*args): raise PermissionError('the cache cannot be written')", scope)
    kernel.__dict__["function"] = scope["function"]
    with warns():
        assert kernel(on_gpu()) is NotImplemented


# -- copies to the device ----------------------------------------------------------------------------


def test_numbers_may_be_constants_of_a_captured_graph(whole: bool) -> None:
    """A tensor that is made of the caller's numbers is marked; one of the caller's own is not."""
    for sample in SAMPLES if whole else [spec.samples[-1] for spec in OPERATORS.values()]:
        if not devices.stays_on_device(OPERATORS[sample.op].operator):
            continue
        dtype = torch.float32 if torch.float32 in sample.dtypes else sample.dtypes[0]
        call = sample.checked(Maker(dtype, "interleaved", (2,)))
        given = {value.untyped_storage().data_ptr() for value in call.tensors}
        for value in (*call.op_args, *call.op_keywords.values()):
            if isinstance(value, Tensor) and value.ndim < 4:  # erase's values are on the image's device
                assert check.is_constant(value) == (value.untyped_storage().data_ptr() not in given), sample


def test_parameters_during_a_capture(driver: Driver) -> None:
    """The device of the image is asked: the graph would read the caller's tensors, but numbers are copied."""
    driver.capturing = {1}
    must = "parameters must be on the device of the image while a CUDA graph is captured"
    message = f"imgops: {must}, got parameters on the CPU"
    with fake_tensors():
        own, numbers = torch.tensor([0.5]), check.constant(torch.tensor([0.5, 2.0]))
        for given in ([own], [numbers, own]):
            check_raises(lambda g=given: transfer.move_together(SECOND, g), RuntimeError, message)
        for device, given, kept in ((GPU, own, 0), (SECOND, numbers, 1)):
            (moved,) = transfer.move_together(device, [given])
            assert moved.device == device and len(transfer._read_by_graphs) == kept


def test_constants_may_be_copied_during_a_capture(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph copies them at each replay, from pinned memory that nothing changes or frees: PyTorch refuses other."""
    pins: list[bool] = []
    pack = transfer._packed
    monkeypatch.setattr(transfer, "_packed", lambda x, pinned: (pins.append(pinned), pack(x, pinned))[1])
    with fake_tensors():
        tables = [torch.arange(5, dtype=torch.int32), torch.ones(3, 2)]
        copies, lasting = transfer.move_constant(SECOND, tables)
        assert lasting and pins == [True] and not transfer._read_by_graphs
        driver.capturing = {1}
        copies, lasting = transfer.move_constant(SECOND, tables)
        assert not lasting and pins == [True, True]
        (host,) = transfer._read_by_graphs
        assert host.device.type == "cpu" and host.nbytes == 32 + 32
    wanted = [(SECOND, t.dtype, t.shape) for t in tables]
    assert [(c.device, c.dtype, c.shape) for c in copies] == wanted


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
    error = ValueError("no tables")
    check_raises(lambda: transfer.make_lasting(GPU, lambda: _ended(error)), ValueError, "no tables")


def test_copies_keep_their_values() -> None:
    cpu = torch.device("cpu")
    tables = [torch.arange(5, dtype=torch.int32), torch.rand(3, 2), torch.zeros(0)]
    copies, lasting = transfer.move_constant(cpu, tables)
    assert lasting
    for copy, table in zip(copies, tables, strict=True):
        assert bits_equal(copy, table)
        assert copy.data_ptr() != table.data_ptr() or not table.numel()
    tables += [torch.rand(2, 3, dtype=torch.float64).T, torch.tensor(7), torch.rand(5).expand(4, 5)]
    tables.append(torch.tensor([True, False, True]))
    for copy, table in zip(transfer.move_together(cpu, tables), tables, strict=True):
        assert bits_equal(copy, table.contiguous())
        assert copy.is_contiguous()


def test_what_a_kernel_declines_is_moved_once(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "runs_on", lambda device: True)
    moves: list[int] = []
    move = transfer.move_together
    monkeypatch.setattr(
        transfer, "move_together", lambda device, x: (moves.append(len(x)), move(device, x))[1]
    )
    operator = OPERATORS["adjust_gamma"].operator
    declining = SimpleNamespace(**{**vars(operator), "cuda": kernel_that(NotImplemented)[0]})
    with fake_tensors():
        image = torch.empty(2, 3, 8, 8, device="cuda:0")
        gamma, gain = torch.ones(2, dtype=torch.float64), torch.ones((), dtype=torch.float64)
        devices.kernel_of(declining)(torch.empty_like(image), image, gamma, gain)  # type: ignore[arg-type]
    assert moves == [2]
