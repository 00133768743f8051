"""What the kernels may execute: the numbers of ``budgets.json``, which ``python -m benchmarks.cuda --count --write`` measures.

The numbers are exact for one version of Triton. ``python -m tests.ptx.budgets --part 0/4`` measures a choice of rows
again and prints those that exceed them or spill registers.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "0"

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
import triton

from imgops.extend.testing import cuda_kernel
from tests.ptx.machine import Machine, Totals, on_ptx
from tests.ptx.rows import DTYPES, LAYOUTS, OF_LAST_KERNEL, Call, calls

FILE = Path(__file__).with_name("budgets.json")
WIDTHS = (1, 2, 4, 8, 16)
#: How many times the measured instructions a kernel may execute, and with another version of Triton.
ALLOWED, ALLOWED_ELSEWHERE = 1.02, 1.2
Measured = dict[str, Any]


def measure(machine: Machine, call: Call) -> Measured:
    """Run one row and return what was executed for each value of the result, and what its kernels take."""
    machine.totals = totals = Totals()
    name = call.operator if "::" in call.operator else f"imgops::{call.operator}"
    values = cuda_kernel(name)(*call.arguments).numel()
    kernels = {kernel: n / values for kernel, n in totals.instructions.items()}
    resources = [machine.resources(each) for each in totals.programs]
    return {
        "instructions": round(sum(kernels.values()), 2),
        "kernels": {kernel: round(n, 2) for kernel, n in kernels.items()},
        "launches": totals.launches,
        "read": round(totals.read / values, 2),
        "written": round(totals.written / values, 2),
        "widths": [round(n / max(sum(totals.widths), 1), 3) for n in totals.widths],
        **{key: max(each[key] for each in resources) for key in ("registers", "stack", "spills")},
        "shared": max(each.shared for each in totals.programs),
        "seconds": round(sum(each.seconds for each in totals.programs), 1),
    }


def counted(name: str, found: Measured) -> float:
    """Return the instructions of a row that its goal is about."""
    if name in OF_LAST_KERNEL:
        return float(list(found["kernels"].values())[-1])
    return float(found["instructions"])


def key(dtype: str, layout: str) -> str:
    return f"{dtype} {layout}"


def read() -> dict[str, Any]:
    """Return the file: the version of Triton, and the rows by name, dtype and layout."""
    found: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"rows": {}}
    return found


def write(name: str, dtype: str, layout: str, found: Measured) -> None:
    """Replace one row."""
    known = read()
    known["triton"] = triton.__version__
    known["rows"].setdefault(name, {})[key(dtype, layout)] = found
    FILE.write_text(_text(known))


def _text(known: dict[str, Any]) -> str:
    """Return the file's text: a line for each row of a dtype and layout, so that changes are read easily."""
    rows = ",\n".join(
        f"    {json.dumps(name)}: {{\n"
        + ",\n".join(f"      {json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(each.items(), reverse=True))
        + "\n    }"
        for name, each in known["rows"].items()
    )
    return f'{{\n  "triton": {json.dumps(known["triton"])},\n  "rows": {{\n{rows}\n  }}\n}}\n'


def excess(name: str, dtype: str, layout: str, found: Measured) -> str:
    """Return what exceeds the budget of a row, or an empty text."""
    known = read()
    before = known["rows"].get(name, {}).get(key(dtype, layout))
    if before is None:
        return "has no budget: python -m benchmarks.cuda --count --write"
    if found["spills"]:
        return f"spills {found['spills']} bytes"
    factor = ALLOWED if known["triton"] == triton.__version__ else ALLOWED_ELSEWHERE
    most = before["instructions"] * factor + 0.1
    return f"{found['instructions']} instructions, at most {most:.1f}" if found["instructions"] > most else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--part", default="0/1", help="every so many rows, another dtype and layout for each")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    torch.use_deterministic_algorithms(True)
    rows, failed = 0, 0
    with on_ptx(90) as machine:
        variants = [(dtype, layout) for dtype in DTYPES for layout in LAYOUTS]
        for i, (dtype, layout) in enumerate(variants):
            for j, call in enumerate(calls(dtype, layout)):
                if (j + i) % parts != part:
                    continue
                rows += 1
                try:
                    found = excess(call.name, dtype, layout, measure(machine, call))
                except (NotImplementedError, RuntimeError) as error:
                    found = str(error)
                if found:
                    failed += 1
                    print(f"{call.name}, {dtype}, {layout}: {found}", flush=True)
    print(f"{rows} rows, {failed} exceed their budget")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
