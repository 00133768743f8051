"""The work of ``python -m benchmarks.first_hour``, in a separate process: ``python -m benchmarks.first_hour_work``.

It takes a slice, a device and the slice's items, and prints a line of JSON for each. Before each call that may end the
process, it writes the name of the call to stderr. On the CPU, Triton's interpreter runs the kernels of tiny samples,
and there are no graphs or streams: this shows that the program works.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor

import imgops.transforms  # noqa: F401  (registers its operators)
from imgops._operator import record
from imgops._operator.record import Contract, Operator
from imgops.extend.testing import cuda_kernel
from imgops.kernels import devices
from tests.ptx import rows
from tests.specs import OPERATORS, SPECS
from tests.specs._maker import Maker
from tests.specs._spec import EXACT, REAL, Sample, Tolerance

DEVICE = sys.argv[2] if len(sys.argv) > 2 else "cpu"
ON_CPU = DEVICE == "cpu"
Result = dict[str, Any]


class Case:
    """A call of an operator: its arguments on the CPU and on the device, and the tolerance of its result."""

    def __init__(self, text: str, operator: Operator, arguments: tuple[Any, ...], tolerance: Any) -> None:
        self.text, self.operator, self.arguments, self.tolerance = text, operator, arguments, tolerance

    def moved(self, arguments: tuple[Any, ...] | None = None) -> list[Any]:
        """Return the arguments on the device."""
        given = self.arguments if arguments is None else arguments
        moved = [a.detach().clone() if isinstance(a, Tensor) else a for a in given]
        return [a.to(DEVICE) if isinstance(a, Tensor) else a for a in moved]

    def run(self, arguments: list[Any]) -> Any:
        """Run the operator on the device; on the CPU its CUDA kernel, in Triton's interpreter."""
        operator, last = self.operator, len(arguments) - 1
        if ON_CPU and isinstance(operator.cuda, devices.Kernel):
            return cuda_kernel(operator.qualified)(*arguments)
        if operator.contract is Contract.OUT and hasattr(torch.Tag, "out"):
            return operator.overload(*arguments[:last], out=arguments[last])
        made = operator.overload(*arguments)
        return made if operator.contract is Contract.FUNCTIONAL else arguments[operator.mutated_indices[0]]

    def expected(self) -> Tensor:
        """Return the result of the CPU's kernel."""
        arguments = [a.detach().clone() if isinstance(a, Tensor) else a for a in self.arguments]
        operator = self.operator
        if operator.contract is Contract.FUNCTIONAL:
            out: Tensor = operator.fake(*arguments)
            operator.kernel(out, *arguments)
            return out
        operator.kernel(*arguments)
        changed: Tensor = arguments[operator.mutated_indices[0]]
        return changed


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def short(error: BaseException) -> str:
    """Return the lines of an error, without empty ones, up to a number of characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines)[:300]}"


# -- the calls of an operator ---------------------------------------------------------------------------------


def samples(name: str) -> list[Sample]:
    found = OPERATORS.get(name.partition("::")[2]) if name.startswith("imgops::") else None
    return list(found.samples) if found is not None else []


def case(sample: Sample, dtype: torch.dtype, layout: str, seed: int = 0) -> Case:
    call = sample.checked(Maker(dtype, layout, (2,), seed=seed))
    arguments = (*call.op_args, *call.op_keywords.values())
    tolerance = SPECS[sample.op].decomposed if sample.decomposed is None else sample.decomposed
    operator = OPERATORS[sample.op].operator
    return Case(f"{sample} {dtype} {layout}", operator, arguments, tolerance.get(dtype, EXACT))


def cases(name: str, few: bool = False) -> Iterator[Case]:
    """Yield an operator's samples in several dtypes and layouts, and smaller versions of the benchmark's rows."""
    formats = [(torch.uint8, "interleaved"), (torch.uint8, "planar"), (torch.float32, "planar")]
    formats += [(torch.float32, "sliced")]
    few = few or ON_CPU
    for sample in samples(name)[: 1 if few else None]:
        able = [(dtype, layout) for dtype, layout in formats if dtype in sample.dtypes]
        for dtype, layout in able[:1] if few else able:
            yield case(sample, dtype, layout)
    variants = [(d, f) for d in rows.DTYPES for f in rows.LAYOUTS]
    for side in (24,) if ON_CPU else (160,) if few else (160, 151):
        for dtype, layout in variants[:2] if few else variants:
            for row in rows.calls(dtype, layout, side):
                full = row.operator if "::" in row.operator else f"imgops::{row.operator}"
                if full == name:
                    text = f"{row.name} {dtype} {layout} {side}"
                    yield Case(text, record.table[name], row.arguments, _tolerance(row, rows.DTYPES[dtype]))


def _tolerance(row: rows.Call, dtype: torch.dtype) -> Tolerance:
    """Return the allowed difference of a row of the benchmark: its sample's, if there is one with its name.

    These images are larger than those of the samples, so their float32 coordinates round more.
    """
    if row.operator not in SPECS:
        return REAL.get(dtype, EXACT)
    spec = SPECS[row.operator]
    same = next((s for s in samples(f"imgops::{row.operator}") if s.id == row.name), None)
    found = spec.decomposed if same is None or same.decomposed is None else same.decomposed
    if row.operator.startswith("warp_") and dtype.is_floating_point:
        return Tolerance(max(found[dtype].real, 1e-4))
    return found.get(dtype, EXACT)


def one(name: str, dtypes: tuple[torch.dtype, ...] = (torch.uint8, torch.float32)) -> Case | None:
    """Return the first case of an operator whose image has one of these dtypes."""
    for sample in samples(name):
        for dtype in dtypes:
            if dtype in sample.dtypes and not sample.edge:
                return case(sample, dtype, "interleaved")
    side, names = 24 if ON_CPU else 160, [n for n, d in rows.DTYPES.items() if d in dtypes]
    for row in rows.calls(names[0], "interleaved", side):
        if row.operator == name:
            return Case(row.name, record.table[name], row.arguments, EXACT)
    return None


# -- the slices ------------------------------------------------------------------------------------------------


def check(name: str, few: bool = False) -> Result:
    """Compare an operator on the device with the CPU's kernel."""
    equal, left, wrong = 0, 0, []
    for each in cases(name, few):
        say(each.text)
        try:
            found = each.run(each.moved())
            synchronize()
            each.tolerance.check(found.cpu(), each.expected())
            equal += 1
        except NotImplementedError:
            left += 1
        except (AssertionError, RuntimeError, TypeError, ValueError) as error:
            if is_fatal(error):
                raise
            wrong.append(f"{each.text}: {short(error)}")
    said = f"{equal} equal, {len(wrong)} differ, {left} left to ATen"
    return {"ok": not wrong, "said": said, "wrong": wrong[:8]}


def is_fatal(error: BaseException) -> bool:
    """Return whether this process can no longer use the device."""
    return "illegal" in str(error) or "device-side assert" in str(error) or "misaligned" in str(error)


def sanitize(name: str) -> Result:
    """Run fewer of these cases under compute-sanitizer."""
    return check(name, few=True)


def synchronize() -> None:
    if not ON_CPU:
        torch.cuda.synchronize()


def captured(call: Callable[[], Any]) -> tuple[Any, Callable[[], None]]:
    """Return the result of a captured call, and a function that replays it or, on the CPU, calls it again."""
    if ON_CPU:
        out = call()
        return out, lambda: out.copy_(call())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = call()
    return out, graph.replay


def graphs(name: str) -> Result:
    """Capture calls, change the inputs, replay, and compare with an eager call on the new inputs."""
    compared, skipped, wrong = 0, [], []
    for sample in samples(name)[: 1 if ON_CPU else None]:
        for dtype in (torch.uint8, torch.float32):
            if dtype not in sample.dtypes or sample.edge:
                continue
            first, other = (case(sample, dtype, "interleaved", seed) for seed in (0, 1))
            say(first.text)
            if first.operator.contract is not Contract.FUNCTIONAL:
                skipped.append("it writes to its arguments")
                continue
            try:
                static, new = first.moved(), other.moved()
                first.run(static)  # the first call compiles
                out, replay = captured(lambda first=first, static=static: first.run(static))
                for a, b in zip(static, new, strict=True):
                    if isinstance(a, Tensor):
                        a.copy_(b)
                out.zero_()
                replay()
                synchronize()
                EXACT.check(out.cpu(), other.run(new).cpu())
                compared += 1
            except NotImplementedError as error:
                skipped.append(short(error))
            except (AssertionError, RuntimeError) as error:
                if is_fatal(error):
                    raise
                wrong.append(f"{first.text}: {short(error)}")
    said = f"{compared} replayed, {len(wrong)} differ, {len(skipped)} not captured"
    return {"ok": not wrong, "said": said, "wrong": wrong[:8], "skipped": sorted(set(skipped))}


@contextmanager
def no_synchronization() -> Iterator[None]:
    if ON_CPU:
        yield
        return
    synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def calls(name: str) -> Result:
    """Call an operator 1,000 times without a synchronization, and compare the last result with the first."""
    found = one(name)
    if found is None or found.operator.contract is not Contract.FUNCTIONAL:
        return {"ok": True, "said": "not called: it writes to its arguments, or has no sample"}
    arguments, count = found.moved(), 3 if ON_CPU else 1000
    say(found.text)
    try:
        first = found.run(arguments).clone()
        with no_synchronization():
            start = time.perf_counter()
            for _ in range(count):
                last = found.run(arguments)
            queued = (time.perf_counter() - start) / count * 1e6
        synchronize()
        EXACT.check(last, first)
    except NotImplementedError as error:
        return {"ok": True, "said": short(error)}
    return {"ok": True, "said": f"{count} calls, {queued:.0f} µs to queue one", "queued_us": round(queued, 1)}


def streams(name: str) -> Result:
    """Run backward while another stream is the current one, and compare the gradients with the CPU's."""
    found = one(name, (torch.float32,))
    if found is None or found.operator.contract is not Contract.FUNCTIONAL:
        return {"ok": True, "said": "no gradient to compare"}
    say(found.text)
    wanted = gradients(found, [a.clone() if isinstance(a, Tensor) else a for a in found.arguments], None)
    stream = None if ON_CPU else torch.cuda.Stream()
    got = gradients(found, found.moved(), stream)
    if wanted is None or got is None:
        return {"ok": True, "said": "not differentiable"}
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a.cpu().double(), b.double(), rtol=1e-3, atol=1e-3, equal_nan=True)
    return {"ok": True, "said": f"{len(got)} gradients equal"}


def gradients(found: Case, arguments: list[Any], stream: Any) -> list[Tensor] | None:
    leaves = []
    for i, a in enumerate(arguments):
        if isinstance(a, Tensor) and a.is_floating_point():
            arguments[i] = a.detach().requires_grad_()
            leaves.append(arguments[i])
    if stream is not None:
        torch.cuda._sleep(1_000_000)  # so that a missing wait becomes visible
    out = found.operator.overload(*arguments)
    if not isinstance(out, Tensor) or not out.requires_grad:
        return None
    grad = torch.ones_like(out)
    if stream is not None:
        stream.wait_stream(torch.cuda.current_stream())
    with nullcontext() if stream is None else torch.cuda.stream(stream):
        made = torch.autograd.grad(out, leaves, grad, allow_unused=True)
    synchronize()
    return [g for g in made if g is not None]


def captures(name: str) -> Result:
    """Use an operator for the first time inside a capture, in a new process and with an empty Triton cache."""
    found = one(name)
    if found is None or found.operator.contract is not Contract.FUNCTIONAL:
        return {"ok": True, "said": "not captured: it writes to its arguments, or has no sample"}
    arguments, wanted = found.moved(), found.expected()
    one_pixel = torch.ones(1, 1, 1, 1, dtype=torch.float64, device=DEVICE)
    torch.conv2d(one_pixel, one_pixel @ one_pixel)  # a capture cannot create cuBLAS and cuDNN
    synchronize()
    say(found.text)
    try:
        out, replay = captured(lambda: found.run(arguments))
    except NotImplementedError as error:
        return {"ok": True, "said": short(error)}
    out.zero_()
    replay()
    synchronize()
    found.tolerance.check(out.cpu(), wanted)
    return {"ok": True, "said": "equal"}


def timings(item: str) -> Result:
    """Measure a row of ``python -m benchmarks.cuda``."""
    from benchmarks import cuda

    index, shape = item.split(" @ ")
    device = torch.device(DEVICE)
    each = next(w for w in cuda.work() if timing_name(w) == index)
    size = tuple(map(int, shape.split(" x ")))
    found = cuda.timing(*each, size, device, 1 if ON_CPU else 15)
    times = found["times"]
    return {"ok": "imgops" in times, "said": f"{times.get('imgops', 0):.0f} µs", "timing": found}


def timing_name(each: tuple[Any, ...]) -> str:
    row, dtype, layout, backward = each
    return f"{row.name}, {str(dtype)[6:]}, {layout}, {'forward and backward' if backward else 'forward'}"


def pipelines(item: str) -> Result:
    """Measure a pipeline, or compare nvJPEG's pixels with Pillow's."""
    from benchmarks import cuda

    device = torch.device(DEVICE)
    if item == "nvJPEG":
        return {"ok": True, "said": " ".join(cuda.jpeg(device))}
    found = cuda.pipeline(item, cuda.shapes(device)[0], device, 1 if ON_CPU else 15)
    times = found["times"]
    return {
        "ok": "imgops" in times,
        "said": f"{times.get('imgops', 0) / 1e3:.2f} ms",
        "pipeline": found,
    }


SLICES = {
    "operators": check,
    "sanitizer": sanitize,
    "graphs": graphs,
    "calls": calls,
    "streams": streams,
    "captures": captures,
    "timings": timings,
    "pipelines": pipelines,
}


def items(name: str) -> list[str]:
    """Return the items of a slice: operators that run on the device, rows of the benchmark, or pipelines."""
    from benchmarks import cuda

    if name == "timings":
        device = torch.device(DEVICE)
        found = [(timing_name(w), " x ".join(map(str, s))) for s in cuda.shapes(device) for w in cuda.work()]
        return [f"{index} @ {shape}" for index, shape in found]
    if name == "pipelines":
        return [*cuda.PIPELINES, *(() if ON_CPU else ("nvJPEG",))]
    known = {f"imgops::{n}": spec.operator for n, spec in OPERATORS.items()}
    known |= {call.operator: record.table[call.operator] for call in _chosen()}
    return [n for n, operator in known.items() if devices.stays_on_device(operator)]


def _chosen() -> list[rows.Call]:
    return [call for call in rows.calls("uint8", "planar", 24) if "::" in call.operator]


def about() -> Result:
    """Describe the device and the software of the measurements."""
    from importlib.metadata import PackageNotFoundError, version

    def of(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "none"

    device = "the CPU, in Triton's interpreter" if ON_CPU else torch.cuda.get_device_name()
    known = {"device": device, "torch": torch.__version__, "triton": of("triton")}
    if not ON_CPU:
        facts = torch.cuda.get_device_properties(0)
        known |= {"capability": f"{facts.major}.{facts.minor}", "processors": facts.multi_processor_count}
        known |= {"cache_bytes": facts.L2_cache_size, "memory_bytes": facts.total_memory}
    return known | {name: of(name) for name in ("cvcuda-cu12", "cvcuda-cu13", "nvidia-dali-cuda130")}


def main() -> None:
    name, given = sys.argv[1], sys.argv[3:]
    if name == "plan":
        print(json.dumps({"about": about(), "items": {each: items(each) for each in SLICES}}), flush=True)
        return
    torch.manual_seed(0)
    for item in given:
        start = time.perf_counter()
        try:
            found = SLICES[name](item)
        except Exception as error:
            found = {"ok": False, "said": short(error)}
            if is_fatal(error):  # this process can do no more; the next one continues
                print(json.dumps({"item": item} | found), flush=True)
                sys.exit(3)
        seconds = round(time.perf_counter() - start, 1)
        print(json.dumps({"item": item, "seconds": seconds} | found), flush=True)


if __name__ == "__main__":
    main()
