"""``python -m benchmarks.cuda --count``: what the compiled CUDA kernels execute, counted without a GPU.

The kernels are compiled to PTX for sm_90 and run on the CPU (``tests/ptx``). For each row: the instructions that the
threads execute for each value of the result, by kernel and all together, with the goal beside them; the bytes read
and written for each value; how wide the accesses are. The numbers are exact, not timings.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "0"

from typing import Any

from imgops.extend.testing import cuda_kernel
from tests.ptx.machine import Machine, Totals, on_ptx
from tests.ptx.rows import DTYPES, GOALS, LAYOUTS, OF_LAST_KERNEL, Call, calls

WIDTHS = (1, 2, 4, 8, 16)
HEAD = f"{'row':34}{'dtype':8}{'layout':12}{'total':>8}{'goal':>6} {'read':>6}{'written':>8}  widths, kernels"


def count(machine: Machine, call: Call) -> dict[str, Any]:
    """Run one row and return what was executed for each value of the result."""
    machine.totals = Totals()
    name = call.operator if "::" in call.operator else f"imgops::{call.operator}"
    values = cuda_kernel(name)(*call.arguments).numel()
    totals = machine.totals
    by_kernel = {kernel: n / values for kernel, n in totals.instructions.items()}
    return {
        "instructions": sum(by_kernel.values()),
        "kernels": by_kernel,
        "read": totals.read / values,
        "written": totals.written / values,
        "widths": [n / max(sum(totals.widths), 1) for n in totals.widths],
    }


def shown(name: str, dtype: str, layout: str, found: dict[str, Any]) -> str:
    """Return a row as a line of text."""
    goal = GOALS.get(name) if dtype == "uint8" else None
    counted = list(found["kernels"].values())[-1] if name in OF_LAST_KERNEL else found["instructions"]
    mark = "" if goal is None else f"{goal}{'!' if counted > goal else ''}"
    widths = " ".join(
        f"{w}:{share:.0%}" for w, share in zip(WIDTHS, found["widths"], strict=True) if share >= 0.005
    )
    kernels = ", ".join(f"{kernel} {n:.1f}" for kernel, n in found["kernels"].items())
    start = f"{name:34}{dtype:8}{layout:12}{found['instructions']:8.1f}{mark:>6}"
    return f"{start} {found['read']:6.2f}{found['written']:8.2f}  {widths}; {kernels}"


def main(only: str = "", dtype: str = "", layout: str = "", side: int = 512, batch: int = 2) -> None:
    print(HEAD)
    with on_ptx(90) as machine:
        for each in DTYPES if not dtype else (dtype,):
            for order in LAYOUTS if not layout else (layout,):
                for call in calls(each, order, side, batch):
                    if only not in call.name:
                        continue
                    try:
                        print(shown(call.name, each, order, count(machine, call)), flush=True)
                    except (NotImplementedError, RuntimeError) as error:
                        print(f"{call.name:34}{each:8}{order:12}  {str(error)[:150]}", flush=True)
