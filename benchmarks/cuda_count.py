"""``python -m benchmarks.cuda --count``: the instructions of the compiled CUDA kernels, counted without a GPU.

The kernels are compiled to PTX for sm_90 and run on the CPU (``tests/ptx``). Each row shows the instructions
that the threads execute for each value of the result, per kernel and in total; the share of a
copy's speed that they allow on an H200 that issues 60 % of the instructions it could issue; the bytes read
and written for each value; the width of the accesses; and the registers, spilled bytes and shared memory of
the largest kernel. The numbers are exact counts, not timings. ``--write`` stores them in
tests/ptx/budgets.json; a test fails if kernels exceed them, and the page of benchmarks shows them.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "0"

import torch

from tests.ptx import budgets
from tests.ptx.budgets import WIDTHS, Measured, measure
from tests.ptx.machine import on_ptx
from tests.ptx.rows import DTYPES, LAYOUTS, PACKED, calls, packed_calls

HEAD = (
    f"{'row':36}{'dtype':8}{'layout':12}{'total':>8}{'of copy':>9} {'read':>6}{'written':>8}{'moved':>8}  "
    "registers/spilled bytes/shared bytes  share of accesses by bytes; kernels"
)


def shown(name: str, dtype: str, layout: str, found: Measured) -> str:
    """Return a row as a line of text."""
    shares = zip(WIDTHS, found["widths"], strict=True)
    widths = " ".join(f"{width}:{share:.0%}" for width, share in shares if share >= 0.005)
    marks = dict.fromkeys(found["spilling"], " spills")
    kernels = ", ".join(f"{kernel} {n:.1f}{marks.get(kernel, '')}" for kernel, n in found["kernels"].items())
    start = f"{name:36}{dtype:8}{layout:12}{found['instructions']:8.1f}{budgets.share(found):>9.0%}"
    size = f"{found['registers']}/{found['spills']}/{found['shared']}"
    bytes_of = f"{found['read']:6.2f}{found['written']:8.2f}{found['moved']:8.2f}"
    return f"{start} {bytes_of}  {size:12}  {widths}; {kernels}"


def main(only: str = "", dtype: str = "", layout: str = "", write: bool = False) -> None:
    if write and not (only or dtype or layout):
        budgets.clear()
    torch.set_num_threads(1)
    print(HEAD)
    with on_ptx(90) as machine:
        for each in DTYPES if not dtype else (dtype,):
            for order in LAYOUTS if not layout else (layout,):
                for call in (*calls(each, order), *packed_calls(each, order)):
                    if only not in call.name:
                        continue
                    try:
                        found = measure(machine, call)
                    except NotImplementedError as error:
                        if not call.name.startswith(PACKED):  # most of these have no separate kernel
                            print(f"{call.name:36}{each:8}{order:12}  {error}", flush=True)
                        continue
                    except Exception as error:  # the other rows can still be counted
                        what = f"{type(error).__name__}: {str(error)[:150]}"
                        print(f"{call.name:36}{each:8}{order:12}  {what}", flush=True)
                        continue
                    print(shown(call.name, each, order, found), flush=True)
                    if write:
                        budgets.write(call.name, each, order, found)
