"""A machine for Triton's launches: each is compiled for a compute capability, and its PTX runs on the CPU.

``on_ptx(capability)`` puts it in the place of Triton's own launch. Every access is checked against the memory of
the tensors of the launch: reads within their storage, writes within the extent of the tensor itself.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import struct
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.code_generator import CodeGenerator
from triton.language import core
from triton.runtime.jit import JITFunction

from tests.ptx.translator import Kernel

HERE = Path(__file__).parent
#: Triton's names of dtypes.
TYPES = {torch.bool: "i1", torch.bfloat16: "bf16"}
TYPES |= {getattr(torch, f"float{n}"): f"fp{n}" for n in (16, 32, 64)}
TYPES |= {getattr(torch, f"{sign}int{n}"): f"{sign or 'i'}{n}" for sign in ("", "u") for n in (8, 16, 32, 64)}
PTXAS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
COMPILER = [
    "-O1",
    "-w",
    "-shared",
    "-fPIC",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-mfma",
    "-msse4.2",
    "-mf16c",
]


class Count(ctypes.Structure):
    """What the threads of all launches executed: the bytes of accesses, their sectors of 32 bytes, and their widths.

    ``widths`` are the numbers of accesses of 1, 2, 4, 8 and 16 bytes.
    """

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
    """The counts of all launches, and what was launched, each once."""

    launches: int = 0
    count: Count = field(default_factory=Count)
    #: The instructions of each kernel.
    instructions: Counter[str] = field(default_factory=Counter)
    programs: dict[Program, None] = field(default_factory=dict)


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
        totals, before = self.totals, self.totals.count.instructions
        last = max(program.shared, 16), ranges, len(ranges), ctypes.byref(totals.count)
        values_at = ctypes.c_uint64(ctypes.addressof(parameters))
        fault = program.run(max(programs - self.most, 0), programs, values_at, *last)
        if fault:
            raise RuntimeError(f"{kernel.__name__}: {fault.decode()}")
        totals.launches += 1
        totals.instructions[program.name] += totals.count.instructions - before
        totals.programs[program] = None

    def _compiled(self, source: Any, name: str, options: dict[str, Any]) -> Program:
        start = time.perf_counter()
        with no_mistaken_calls():
            made = triton.compile(source, target=self.target, options=options)
        seconds, ptx = time.perf_counter() - start, made.asm["ptx"]
        assert not re.search(r"div\.(full|approx)", ptx), f"{name}: an approximate quotient"
        run = self._built(Kernel(ptx, made.metadata.name).source, name)
        # Later, Triton takes a kernel from its cache: the longest time is what it took to compile it.
        kept = self._path(name, ptx, "seconds")
        seconds = max(seconds, float(kept.read_text()) if kept.exists() else 0)
        kept.write_text(f"{seconds:.3f}")
        return Program(name, run, made.metadata.shared, ptx, seconds)

    def _path(self, name: str, text: str, kind: str) -> Path:
        """Return a file that keeps something about a kernel for the next process."""
        return self.folder / f"{name}_{hashlib.sha256(text.encode()).hexdigest()[:20]}.{kind}"

    def _built(self, source: str, name: str) -> Any:
        """Return a kernel as a function of this process; its code is kept."""
        path = self._path(name, source + (HERE / "machine.c").read_text(), "so")
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                code, library = Path(folder, "kernel.c"), Path(folder, "kernel.so")
                code.write_text(source)
                command = ["gcc", *COMPILER, f"-I{HERE}", "-o", str(library), str(code), "-lm"]
                subprocess.run(command, check=True, capture_output=True)
                library.rename(path)
        run = ctypes.CDLL(str(path)).run
        run.restype = ctypes.c_char_p
        return run

    def resources(self, program: Program) -> dict[str, int]:
        """Return ptxas' registers of a thread, and its bytes of stores of spilled registers."""
        path = self._path(program.name, program.ptx, "txt")
        if not path.exists():
            source = path.with_suffix(".ptx")
            source.write_text(program.ptx)
            architecture = re.findall(r"^\.target (\w+)", program.ptx, re.M)[0]
            # Triton's own options, which bear on the registers.
            command = [str(PTXAS), "-v", "--fmad=false", f"--gpu-name={architecture}", str(source)]
            done = subprocess.run([*command, "-o", "/dev/null"], capture_output=True, text=True, check=True)
            path.write_text(done.stderr)
        entry = rf"entry function '{program.name}'.*?(\d+) bytes spill stores.*?Used (\d+) registers"
        ((spills, registers),) = re.findall(entry, path.read_text(), re.S)
        return {"registers": int(registers), "spills": int(spills)}


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

    with patch.object(CodeGenerator, "call_JitFunction", watched):
        yield


@contextmanager
def on_ptx(capability: int, most: int = 2**32) -> Iterator[Machine]:
    """Run the launches of Triton's kernels on a machine; CPU tensors take the place of those on a device."""
    from imgops.kernels import cuda

    machine = Machine(capability, most)

    def run(self: Any, *arguments: Any, grid: Any, warmup: bool = False, **keywords: Any) -> None:
        machine.launch(self, grid[0], arguments, keywords)

    with patch.object(JITFunction, "run", run), patch.object(cuda, "runs_on", lambda device: True):
        yield machine
