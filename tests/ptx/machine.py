"""A machine for Triton's launches: each is compiled for a compute capability, and its PTX runs on the CPU.

``on_ptx(capability)`` puts it in the place of Triton's own launch. Every access is checked against the memory of
the tensors of the launch: reads within their storage, writes within the extent of the tensor itself.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
import struct
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.code_generator import CodeGenerator
from triton.language import core
from triton.runtime.jit import JITFunction

from tests import budget
from tests.ptx.translator import Kernel

HERE = Path(__file__).parent
#: Triton's names of dtypes.
TYPES = {torch.bool: "i1", torch.bfloat16: "bf16"}
TYPES |= {getattr(torch, f"float{n}"): f"fp{n}" for n in (16, 32, 64)}
TYPES |= {getattr(torch, f"{sign}int{n}"): f"{sign or 'i'}{n}" for sign in ("", "u") for n in (8, 16, 32, 64)}
FAULTS = (
    "",
    "a read outside of its tensors",
    "a write outside of its tensors",
    "a misaligned access",
    "an access outside of shared memory",
    "a call of a function",
    "threads of a warp that diverge at a meeting",
    "threads of a block that wait at no barrier",
    "an access outside of local memory",
)
#: Kernels that ask for fused products, as in OpenCV, or use a sine, an exponential or a logarithm.
FUSED = {
    *("_pil_kernel", "_opencv_kernel", "_gaussian_kernel", "_filter_kernel", "_gamma_kernel"),
    *("_steps_kernel", "_pointwise_kernel", "_adjoint_kernel", "_slope_kernel", "_down_kernel"),
    *("_across_kernel", "warp_kernel"),
}
COMPILER = ["-O1", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-mfma", "-msse4.2", "-mf16c"]


class Count(ctypes.Structure):
    """What the threads of a launch executed."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("instructions", "read", "written", "sectors")]
    _fields_ += [("widths", ctypes.c_uint64 * 5)]


class _Range(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("start", "stop", "writable")]


@dataclass(frozen=True, eq=False)
class Program:
    """A compiled kernel: ``run`` is its translation, ``shared`` the bytes of shared memory of a block."""

    name: str
    run: Any
    shared: int
    ptx: str
    #: Triton's time to compile it, ptxas included.
    seconds: float


@dataclass
class Totals:
    """The counts of all launches."""

    launches: int = 0
    instructions: Counter[str] = field(default_factory=Counter)
    read: int = 0
    written: int = 0
    #: The sectors of 32 bytes that the accesses of warps take.
    sectors: int = 0
    #: Accesses of 1, 2, 4, 8 and 16 bytes.
    widths: list[int] = field(default_factory=lambda: [0] * 5)
    #: What was launched, each once.
    programs: dict[Program, None] = field(default_factory=dict)

    def add(self, program: Program, count: Count) -> None:
        self.launches += 1
        self.programs[program] = None
        self.instructions[program.name] += count.instructions
        self.sectors += count.sectors
        self.read += count.read
        self.written += count.written
        self.widths = [a + b for a, b in zip(self.widths, count.widths, strict=True)]


def specialized(kernel: JITFunction[Any], values: dict[str, Any]) -> tuple[dict, dict, dict, list[bytes]]:
    """Return the signature, constants and attributes with which Triton compiles, and the parameters as bytes."""
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    attributes: dict[tuple[int], Any] = {}
    packed = []
    divisible = [["tt.divisibility", 16]]
    for i, parameter in enumerate(kernel.params):
        name, value = parameter.name, values[parameter.name]
        free = parameter.do_not_specialize
        if isinstance(value, Tensor):
            signature[name] = "*" + TYPES[value.dtype]
            packed.append(struct.pack("Q", value.data_ptr()))
            if value.data_ptr() % 16 == 0:
                attributes[(i,)] = divisible
        elif parameter.is_constexpr or (value == 1 and not free and not isinstance(value, float)):
            signature[name], constants[name] = "constexpr", value
        elif isinstance(value, float):
            signature[name] = "fp32"
            packed.append(struct.pack("fI", value, 0))
        else:
            small = -(2**31) <= int(value) < 2**31
            signature[name] = "i32" if small else "i64"
            packed.append(struct.pack("q", int(value)))
            if int(value) % 16 == 0 and not free:
                attributes[(i,)] = divisible
    return signature, constants, attributes, packed


def ranges_of(tensors: Sequence[Tensor]) -> Any:
    """Return what may be read and written: the storages, and the extents of the tensors."""
    found = []
    for x in tensors:
        storage = x.untyped_storage()
        found.append((storage.data_ptr(), storage.data_ptr() + storage.nbytes(), 0))
        if x.numel():
            last = sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
            found.append((x.data_ptr(), x.data_ptr() + (last + 1) * x.element_size(), 1))
    return (_Range * len(found))(*(_Range(*each) for each in found))


class Machine:
    """The kernels that were compiled for one capability, and what their launches executed.

    Of each launch only the last ``most`` programs run.
    """

    def __init__(self, capability: int, most: int = 2**32) -> None:
        self.target, self.most = GPUTarget("cuda", capability, 32), most
        self.folder = Path(tempfile.gettempdir(), "imgops-ptx")
        self.folder.mkdir(exist_ok=True)
        self.compiled: dict[Any, Program] = {}
        self.totals = Totals()

    def launch(self, kernel: Any, programs: int, arguments: Sequence[Any], keywords: dict[str, Any]) -> None:
        options = {n: keywords.pop(n) for n in ("num_warps", "enable_fp_fusion")}
        values = dict(zip(kernel.arg_names, arguments, strict=False)) | keywords
        signature, constants, attributes, packed = specialized(kernel, values)
        known = sorted((name, str(value)) for name, value in constants.items())
        key = (kernel.__module__, kernel.__name__, *signature.items(), *known, *attributes, *options.items())
        if key not in self.compiled:
            source = ASTSource(kernel, signature, constants, attributes)
            self.compiled[key] = self._compiled(source, kernel.__name__, options)
        program = self.compiled[key]
        parameters = ctypes.create_string_buffer(b"".join(packed) + bytes(64))
        ranges = ranges_of([x for x in values.values() if isinstance(x, Tensor)])
        count, where = Count(), ctypes.c_uint64()
        shared = max(program.shared, 16)
        first = max(programs - self.most, 0)
        last = shared, ranges, len(ranges), ctypes.byref(count), ctypes.byref(where)
        fault = program.run(first, programs, ctypes.c_uint64(ctypes.addressof(parameters)), *last)
        if fault:
            raise RuntimeError(f"{kernel.__name__}: {FAULTS[fault]}, at {where.value:#x}")
        self.totals.add(program, count)
        budget.counts["launches of compiled kernels"] += 1

    def _compiled(self, source: Any, name: str, options: dict[str, Any]) -> Program:
        start = time.perf_counter()
        with no_mistaken_calls():
            made = triton.compile(source, target=self.target, options=options)
        seconds, ptx = time.perf_counter() - start, made.asm["ptx"]
        assert not re.search(r"div\.(full|approx)", ptx), f"{name}: an approximate quotient"
        assert "fma.rn" not in ptx or name in FUSED or not name.endswith("_kernel"), (
            f"{name}: a fused product"
        )
        budget.counts["kernels that are compiled to PTX"] += 1
        run = self._built(Kernel(ptx, made.metadata.name).source, name)
        # Later, Triton takes a kernel from its cache: the longest time is what it took to compile it.
        longest = self._kept(name, ptx, "seconds", lambda: seconds)
        return Program(name, run, made.metadata.shared, ptx, max(longest, seconds))

    def _kept(self, name: str, text: str, kind: str, make: Callable[[], Any]) -> Any:
        """Return what is known of a kernel, from a file that is kept for the next process."""
        path = self.folder / f"{name}_{hashlib.sha256(text.encode()).hexdigest()[:20]}.{kind}"
        if not path.exists():
            path.write_text(json.dumps(make()))
        return json.loads(path.read_text())

    def _built(self, source: str, name: str) -> Any:
        """Return a kernel as a function of this process; its code is kept for the next."""
        text = source + (HERE / "machine.c").read_text()
        path = self.folder / f"{name}_{hashlib.sha256(text.encode()).hexdigest()[:20]}.so"
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                code, library = Path(folder, "kernel.c"), Path(folder, "kernel.so")
                code.write_text(source)
                command = [
                    "gcc",
                    *COMPILER,
                    f"-I{HERE}",
                    "-shared",
                    "-fPIC",
                    "-o",
                    str(library),
                    str(code),
                    "-lm",
                ]
                subprocess.run(command, check=True, capture_output=True)
                library.rename(path)
        return ctypes.CDLL(str(path)).run

    def resources(self, program: Program) -> dict[str, int]:
        """Return ptxas' registers of a thread, and its bytes of stack and of stores of spilled registers."""

        def measured() -> dict[str, int]:
            architecture = re.findall(r"^\.target (\w+)", program.ptx, re.M)[0]
            with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
                file.write(program.ptx)
                file.flush()
                # Triton's own options, which bear on the registers.
                command = [ptxas(), "-v", "--fmad=false", f"--gpu-name={architecture}", file.name]
                said = subprocess.run(
                    [*command, "-o", "/dev/null"], capture_output=True, text=True, check=True
                ).stderr
            entry = rf"entry function '{program.name}'.*?(\d+) bytes stack frame, (\d+) bytes spill stores"
            ((stack, spills, registers),) = re.findall(rf"{entry}.*?Used (\d+) registers", said, re.S)
            return {"registers": int(registers), "stack": int(stack), "spills": int(spills)}

        known: dict[str, int] = self._kept(program.name, program.ptx, "json", measured)
        return known


def ptxas() -> str:
    """Return the path of Triton's ptxas."""
    return str(Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas")


def _types(value: Any) -> Any:
    """Return an argument's type: that of each element of a tuple, and the value of a constant."""
    if isinstance(value, (tuple, list, core.tuple)):
        return tuple(_types(each) for each in value)
    constant = value.value if isinstance(value, core.constexpr) else value
    return str(value.type) if isinstance(value, core.base_value) and constant is value else [repr(constant)]


def _in_a_row(types: Any) -> Iterator[str]:
    """Yield types as Triton 3.6 sees them."""
    for each in types:
        yield from _in_a_row(each) if isinstance(each, tuple) else [str(each)]


@contextmanager
def no_mistaken_calls() -> Iterator[None]:
    """Raise an error if a kernel that is compiled meanwhile has two calls that an older Triton mistakes for each other.

    Triton names each version of a function by the types of its arguments. Triton 3.6 writes tuples in a row, so two
    calls have the same name if their tuples have the same total length, and the second one runs the code of the first.
    """
    known: dict[Any, Any] = {}
    call = CodeGenerator.call_JitFunction

    def watched(self: Any, function: Any, args: Any, kwargs: Any, *rest: Any, **more: Any) -> Any:
        bound = function.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        types = tuple(_types(bound.arguments[name]) for name in function.arg_names)
        key = id(self.module), function.__module__, function.__name__, tuple(_in_a_row(types))
        before = known.setdefault(key, types)
        lengths = [[len(t) for t in each if isinstance(t, tuple)] for each in (before, types)]
        assert before == types, f"{function.__name__}: Triton 3.6 mistakes tuples of {lengths} for each other"
        return call(self, function, args, kwargs, *rest, **more)

    CodeGenerator.call_JitFunction = watched
    try:
        yield
    finally:
        CodeGenerator.call_JitFunction = call


@contextmanager
def on_ptx(capability: int, most: int = 2**32) -> Iterator[Machine]:
    """Run the launches of Triton's kernels on a machine; CPU tensors take the place of those on a device."""
    from imgops.kernels import cuda

    machine = Machine(capability, most)

    def run(self: Any, *arguments: Any, grid: Any, warmup: bool = False, **keywords: Any) -> None:
        machine.launch(self, grid[0], arguments, keywords)

    before = JITFunction.run, cuda.runs_on
    JITFunction.run, cuda.runs_on = run, lambda device: True  # type: ignore[method-assign,assignment]
    try:
        yield machine
    finally:
        budget.keep()
        JITFunction.run, cuda.runs_on = before  # type: ignore[method-assign,assignment]
