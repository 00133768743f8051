"""Compile the Triton kernels for a GPU that need not be there: ``python cuda_program.py 90``.

Every kernel that the samples launch is compiled to PTX. It must have no approximate quotient, and no fused product unless
the kernel asks for one or calls a function of the mathematical library.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from imgops._operator.record import Contract, operators
from imgops.kernels import cuda
from tests.packed_calls import DTYPES, OF_KERNELS, packed_arguments
from tests.specs import SAMPLES
from tests.specs._maker import Maker

TYPES = {
    torch.uint8: "u8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
    torch.float64: "fp64",
}
#: Kernels that ask for fused products, as in OpenCV, or use a sine, an exponential or a logarithm.
FUSED = {
    *("_pil_kernel", "_opencv_kernel", "_gaussian_kernel", "_filter_kernel", "_pointwise_kernel"),
    *("warp_kernel", "_adjoint_kernel", "_slope_kernel", "_down_kernel", "_across_kernel"),
}
#: The number of samples of an operator that are compiled in each dtype; each makes its own variants.
MOST = 2

target = GPUTarget("cuda", int(sys.argv[1]), 32)
compiled: set[Any] = set()
faults: list[str] = []


def compile_instead(self: Any, *args: Any, grid: Any, warmup: bool, **keywords: Any) -> None:
    """Compile a kernel for the specialization of its arguments, in place of its launch."""
    options = {name: keywords.pop(name) for name in ("num_warps", "enable_fp_fusion")}
    values = dict(zip(self.arg_names, args)) | keywords
    signature, constants, attributes = {}, {}, {}
    for i, parameter in enumerate(self.params):
        name, value = parameter.name, values[parameter.name]
        if isinstance(value, torch.Tensor):
            signature[name] = "*" + TYPES[value.dtype]
            attributes[(i,)] = [["tt.divisibility", 16]]
        elif parameter.is_constexpr or (value == 1 and not parameter.do_not_specialize):
            signature[name], constants[name] = "constexpr", value
        else:
            signature[name] = "fp32" if isinstance(value, float) else "i32"
    key = self.__name__, *signature.items(), *sorted((k, str(v)) for k, v in constants.items())
    if key in compiled:
        return
    compiled.add(key)
    ptx = triton.compile(
        ASTSource(self, signature, constants, attributes), target=target, options=options
    ).asm["ptx"]
    if re.search(r"div\.(full|approx)", ptx):
        faults.append(f"{self.__name__}: an approximate quotient")
    if "fma.rn" in ptx and self.__name__ not in FUSED:
        faults.append(f"{self.__name__}: a fused product")


JITFunction.run = compile_instead
cuda.runs_on = lambda device: True
counts: dict[Any, int] = {}
for sample in SAMPLES:
    for dtype, format in ((torch.uint8, "planar"), (torch.float32, "interleaved"), (torch.float16, "planar")):
        counts[sample.op, dtype] = counts.get((sample.op, dtype), 0) + 1
        if dtype not in sample.dtypes or counts[sample.op, dtype] > MOST:
            continue
        call = sample.checked(Maker(dtype, format, (2,)))
        if call.operator.cuda is not None:
            args = (*call.op_args, *call.op_keywords.values())
            out = [call.operator.fake(*args)] if call.operator.contract is Contract.FUNCTIONAL else []
            call.operator.cuda(*out, *args)

for sample in OF_KERNELS:
    for dtype in DTYPES:
        if dtype in sample.dtypes:
            _, _, args = packed_arguments(sample, dtype, interleaved=dtype != torch.uint8)
            operator = operators("imgops_packed")[sample.op]
            operator.cuda(operator.fake(*args), *args)

print(f"{len(compiled)} kernels")
print(*faults, sep="\n")
sys.exit(bool(faults))
