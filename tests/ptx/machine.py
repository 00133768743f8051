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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from tests import budget
from tests.ptx.calls import no_mistaken_calls
from tests.ptx.translator import Kernel

TYPES = {
    torch.uint8: "u8",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
    torch.float64: "fp64",
    torch.bool: "i1",
}
FAULTS = ("", "a read outside of its tensors", "a write outside of its tensors", "a misaligned access")
FAULTS += (
    "an access outside of shared memory",
    "a call of a function",
    "threads of a warp that diverge at a meeting",
)
FAULTS += ("threads of a block that wait at no barrier", "an access outside of local memory")
COMPILER = ["-O1", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-mfma", "-msse4.2", "-mf16c"]


class Count(ctypes.Structure):
    """What the threads of a launch executed."""

    _fields_ = [
        *(
            (name, ctypes.c_uint64)
            for name in ("instructions", "approximate", "loads", "stores", "read", "written", "sectors")
        ),
        ("widths", ctypes.c_uint64 * 5),
    ]


class _Range(ctypes.Structure):
    _fields_ = [("start", ctypes.c_uint64), ("stop", ctypes.c_uint64), ("writable", ctypes.c_uint64)]


@dataclass(frozen=True)
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
    """The counts of all launches, by kernel."""

    launches: int = 0
    instructions: dict[str, int] = field(default_factory=dict)
    read: int = 0
    written: int = 0
    #: The sectors of 32 bytes that the accesses of warps take, by kernel.
    sectors: dict[str, int] = field(default_factory=dict)
    #: Accesses of 1, 2, 4, 8 and 16 bytes.
    widths: list[int] = field(default_factory=lambda: [0] * 5)
    #: What was launched, each once.
    programs: list[Program] = field(default_factory=list)

    def add(self, program: Program, count: Count) -> None:
        name = program.name
        self.launches += 1
        if program not in self.programs:
            self.programs.append(program)
        self.instructions[name] = self.instructions.get(name, 0) + count.instructions
        self.sectors[name] = self.sectors.get(name, 0) + count.sectors
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
    """The kernels that were compiled for one capability, and what their launches executed."""

    def __init__(self, capability: int) -> None:
        self.target = GPUTarget("cuda", capability, 32)
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
            start = time.perf_counter()
            with no_mistaken_calls():
                made = triton.compile(source, target=self.target, options=options)
            seconds, ptx = time.perf_counter() - start, made.asm["ptx"]
            run = self.built(ptx, made.metadata.name)
            seconds = self._longest(kernel.__name__, ptx, seconds)
            budget.counts["kernels that are compiled to PTX"] += 1
            self.compiled[key] = Program(kernel.__name__, run, made.metadata.shared, ptx, seconds)
        program = self.compiled[key]
        parameters = ctypes.create_string_buffer(b"".join(packed) + bytes(64))
        ranges = ranges_of([x for x in values.values() if isinstance(x, Tensor)])
        count, where = Count(), ctypes.c_uint64()
        shared = max(program.shared, 16)
        last = shared, ranges, len(ranges), ctypes.byref(count), ctypes.byref(where)
        fault = program.run(programs, ctypes.c_uint64(ctypes.addressof(parameters)), *last)
        if fault:
            raise RuntimeError(f"{kernel.__name__}: {FAULTS[fault]}, at {where.value:#x}")
        self.totals.add(program, count)
        budget.counts["launches of compiled kernels"] += 1

    def built(self, ptx: str, name: str) -> Any:
        """Return a kernel as a function of this process; its code is kept for the next."""
        source = Kernel(ptx, name).source
        path = self.folder / f"{name}_{hashlib.sha256(source.encode()).hexdigest()[:20]}.so"
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                code, library = Path(folder, "kernel.c"), Path(folder, "kernel.so")
                code.write_text(source)
                command = ["gcc", *COMPILER, "-shared", "-fPIC", "-o", str(library), str(code), "-lm"]
                subprocess.run(command, check=True, capture_output=True)
                library.rename(path)
        return ctypes.CDLL(str(path)).run

    def _longest(self, name: str, ptx: str, seconds: float) -> float:
        """Return the longest time that it took to compile a kernel: later, Triton takes it from its cache."""
        path = self.folder / f"{name}_{hashlib.sha256(ptx.encode()).hexdigest()[:20]}.seconds"
        longest = max(seconds, float(path.read_text()) if path.exists() else 0)
        if longest == seconds:
            path.write_text(f"{seconds:.3f}")
        return longest

    def resources(self, program: Program) -> dict[str, int]:
        """Return ptxas' registers of a thread, and its bytes of stack and of stores of spilled registers."""
        path = self.folder / f"{program.name}_{hashlib.sha256(program.ptx.encode()).hexdigest()[:20]}.json"
        if not path.exists():
            architecture = re.findall(r"^\.target (\w+)", program.ptx, re.M)[0]
            with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
                file.write(program.ptx)
                file.flush()
                # Triton's own options, which bear on the registers.
                command = [ptxas(), "-v", "--fmad=false", f"--gpu-name={architecture}", file.name]
                done = subprocess.run(
                    [*command, "-o", "/dev/null"], capture_output=True, text=True, check=True
                )
            entry = rf"entry function '{program.name}'.*?(\d+) bytes stack frame, (\d+) bytes spill stores"
            ((stack, spills, registers),) = re.findall(rf"{entry}.*?Used (\d+) registers", done.stderr, re.S)
            found = {"registers": int(registers), "stack": int(stack), "spills": int(spills)}
            path.write_text(json.dumps(found))
        known: dict[str, int] = json.loads(path.read_text())
        return known


def ptxas() -> str:
    """Return the path of Triton's ptxas."""
    return str(Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas")


@contextmanager
def on_ptx(capability: int) -> Iterator[Machine]:
    """Run the launches of Triton's kernels on a machine; CPU tensors take the place of those on a device."""
    from imgops.kernels import cuda

    machine = Machine(capability)

    def run(self: Any, *arguments: Any, grid: Any, warmup: bool = False, **keywords: Any) -> None:
        machine.launch(self, grid[0], arguments, keywords)

    before = JITFunction.run, cuda.runs_on
    JITFunction.run, cuda.runs_on = run, lambda device: True  # type: ignore[method-assign,assignment]
    try:
        yield machine
    finally:
        budget.keep()
        JITFunction.run, cuda.runs_on = before  # type: ignore[method-assign,assignment]
