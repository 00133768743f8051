"""A machine for Triton's launches: each is compiled for a compute capability, and its PTX runs on the CPU.

``on_ptx(capability)`` puts it in the place of Triton's own launch. Every access is checked against the memory of
the tensors of the launch: reads within their storage, writes within the extent of the tensor itself.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
import subprocess
import tempfile
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
            for name in ("instructions", "approximate", "loads", "stores", "read", "written")
        ),
        ("widths", ctypes.c_uint64 * 5),
    ]


class _Range(ctypes.Structure):
    _fields_ = [("start", ctypes.c_uint64), ("stop", ctypes.c_uint64), ("writable", ctypes.c_uint64)]


@dataclass
class Totals:
    """The counts of all launches, by kernel."""

    launches: int = 0
    instructions: dict[str, int] = field(default_factory=dict)
    read: int = 0
    written: int = 0
    #: Accesses of 1, 2, 4, 8 and 16 bytes.
    widths: list[int] = field(default_factory=lambda: [0] * 5)

    def add(self, name: str, count: Count) -> None:
        self.launches += 1
        self.instructions[name] = self.instructions.get(name, 0) + count.instructions
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
        self.compiled: dict[Any, Any] = {}
        self.totals = Totals()

    def launch(self, kernel: Any, programs: int, arguments: Sequence[Any], keywords: dict[str, Any]) -> None:
        options = {n: keywords.pop(n) for n in ("num_warps", "enable_fp_fusion")}
        values = dict(zip(kernel.arg_names, arguments, strict=False)) | keywords
        signature, constants, attributes, packed = specialized(kernel, values)
        known = sorted((name, str(value)) for name, value in constants.items())
        key = (kernel.__module__, kernel.__name__, *signature.items(), *known, *attributes, *options.items())
        if key not in self.compiled:
            source = ASTSource(kernel, signature, constants, attributes)
            made = triton.compile(source, target=self.target, options=options)
            run = self.built(made.asm["ptx"], made.metadata.name)
            self.compiled[key] = run, made.metadata.shared, made
        run, shared, _ = self.compiled[key]
        parameters = ctypes.create_string_buffer(b"".join(packed) + bytes(64))
        ranges = ranges_of([x for x in values.values() if isinstance(x, Tensor)])
        count, where = Count(), ctypes.c_uint64()
        start = ctypes.c_uint64(ctypes.addressof(parameters))
        last = len(ranges), ctypes.byref(count), ctypes.byref(where)
        fault = run(programs, start, max(shared, 16), ranges, *last)
        if fault:
            raise RuntimeError(f"{kernel.__name__}: {FAULTS[fault]}, at {where.value:#x}")
        self.totals.add(kernel.__name__, count)

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
        JITFunction.run, cuda.runs_on = before  # type: ignore[method-assign,assignment]
