"""``python -m tests.ptx``: compare the compiled kernels, run on the CPU, with the CPU's own kernels.

``--capability 80`` compiles for another device, ``--part 0/2`` takes every second case, ``--only noise`` operators whose
names contain it, ``--sizes`` calls of several sizes alone, ``--all`` every sample of every operator in four layouts and
dtypes. Each case that differs, or that accesses memory which is not its own, is printed; the last
line counts all. Tensors without values are poisoned, so that what a kernel leaves out differs.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "0"

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from imgops._operator import record
from imgops._operator.record import Contract
from imgops.extend.testing import cuda_kernel
from tests.ptx.machine import on_ptx
from tests.specs import OPERATORS, SAMPLES, SPECS
from tests.specs._maker import Maker
from tests.specs._spec import EXACT

#: Operators whose kernels take long to compile: they are tried with ``--all``.
SLOW = ("jpeg",)
Case = tuple[str, str, tuple[Any, ...], Any]


def of_samples(every: bool) -> Iterator[Case]:
    """Yield name, text, arguments and tolerance of the samples of the operators that have a kernel for CUDA."""
    formats = [(torch.uint8, "interleaved"), (torch.uint8, "planar"), (torch.float32, "planar")]
    formats += [(torch.float32, "sliced")]
    for sample in SAMPLES:
        operator = OPERATORS[sample.op].operator
        first = sample == OPERATORS[sample.op].samples[0]
        if operator.cuda is None or not (every or (first and sample.op not in SLOW)):
            continue
        for dtype, layout in formats if every else formats[:1]:
            if dtype not in sample.dtypes:
                continue
            call = sample.checked(Maker(dtype, layout, (2,)))
            arguments = (*call.op_args, *call.op_keywords.values())
            tolerances = SPECS[sample.op].decomposed if sample.decomposed is None else sample.decomposed
            tolerance = tolerances.get(dtype, EXACT)
            yield operator.qualified, f"{sample} {dtype} {layout}", arguments, tolerance


def of_sizes(every: bool) -> Iterator[Case]:
    """Yield calls on images whose rows are divisible by 16, and not, which compile to other widths of access."""
    per = torch.tensor([0.7, 1.3], dtype=torch.float64)
    turn = torch.tensor([[[0.9, -0.3, 20], [0.3, 0.9, -10]]] * 2, dtype=torch.float64)
    for width, height in ((160, 48), (151, 37)):
        for interleaved in (False, True):
            layout = torch.channels_last if interleaved else torch.contiguous_format
            noise = torch.Generator().manual_seed(width)
            x = torch.randint(0, 256, (2, 3, height, width), dtype=torch.uint8, generator=noise)
            x = x.contiguous(memory_format=layout)
            boxes = torch.tensor([[3, 2, width - 40, height - 5], [20, 9, width, height]])
            patch = x[..., :24, :64].contiguous(memory_format=layout)
            calls: list[tuple[str, tuple[Any, ...]]] = [
                ("crop", (16, 4, width - 5, height)),
                ("crop", (5, 7, width - 3, height - 2)),
                ("pad", (None, 16, 3, 16, 5, "reflect")),
                ("paste", (patch, None, 9, -4)),
                ("erase", (x[..., :1, :1].contiguous(), boxes)),
                ("solarize", (per * 100,)),
                ("equalize", ()),
                ("resize", (None, height // 2, 80, "bilinear", True)),
                ("resize", (None, 20, 72, "bicubic", False)),
                ("resized_crop", (boxes, 32, 64, "bicubic", True)),
                ("warp_affine", (turn, None, height, width, "bilinear", "constant")),
                ("gaussian_blur", (torch.tensor([[1.1, 0.6], [2.0, 1.5]], dtype=torch.float64), 9, 7)),
            ]
            for name, rest in calls if every else calls[:: 2 if interleaved else 3]:
                shown = [a for a in rest if isinstance(a, (str, int, bool))]
                text = f"{name} {width} x {height} {'interleaved' if interleaved else 'planar'} {shown}"
                yield f"imgops::{name}", text, (x, *rest), EXACT


def difference(name: str, arguments: tuple[Any, ...], tolerance: Any) -> str:
    """Return how a kernel's result differs from the CPU's, or an empty text; "left" if it leaves the call to ATen."""
    operator = record.table[name]
    mine, theirs = (
        [a.clone() if i in operator.mutated_indices else a for i, a in enumerate(arguments)] for _ in range(2)
    )
    try:
        found: Tensor = cuda_kernel(name)(*mine)
    except NotImplementedError:
        return "left"
    except RuntimeError as error:
        return str(error)
    if operator.contract is Contract.FUNCTIONAL:
        wanted = operator.fake(*arguments)
        operator.kernel(wanted, *arguments)
    else:
        operator.kernel(*theirs)
        wanted = theirs[operator.mutated_indices[0]]
    try:
        tolerance.check(found, wanted)
    except AssertionError as error:
        return str(error).splitlines()[0]
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--capability", type=int, default=90)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    torch.use_deterministic_algorithms(True)  # fills empty tensors with NaN and the largest integers
    counts = {"": 0, "left": 0, "differ": 0}
    with on_ptx(options.capability) as machine:
        cases = [*(() if options.sizes else of_samples(options.all)), *of_sizes(options.all)]
        for name, text, arguments, tolerance in cases[part::parts]:
            if options.only not in name:
                continue
            found = difference(name, arguments, tolerance)
            counts[found if found in counts else "differ"] += 1
            if found not in counts:
                print(f"{text}: {found}", flush=True)
    launches = machine.totals.launches
    print(
        f"{counts['']} equal, {counts['left']} left to ATen, {counts['differ']} differ, {launches} launches"
    )
    return counts["differ"] > 0


if __name__ == "__main__":
    sys.exit(main())
