"""``python -m tests.ptx.count --part 0/4``: measure a choice of rows, and print what exceeds its budget or spills registers."""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "0"

import argparse
import sys

from imgops.extend.testing import cuda_kernel
from imgops.kernels.cuda import _resampling_tables
from tests.ptx.budgets import Measured, excess, is_slow
from tests.ptx.machine import Machine, Totals, on_ptx
from tests.ptx.rows import DTYPES, LAYOUTS, Call, calls, packed_calls


def measure(machine: Machine, call: Call) -> Measured:
    """Run one row and return what was executed for each value of the result, and what its kernels take.

    It is what a first call executes: the tables that are kept for the next are made as well.
    """
    _resampling_tables._kept.clear()
    machine.totals = totals = Totals()
    name = call.operator if "::" in call.operator else f"imgops::{call.operator}"
    out = cuda_kernel(name)(*call.arguments)
    if not totals.launches:
        raise NotImplementedError(f"{name} leaves these arguments to ATen")
    values, image = out.numel(), call.arguments[0]
    least = image.numel() * image.element_size() * call.part + values * out.element_size()
    kernels = {kernel: n / values for kernel, n in totals.instructions.items()}
    resources = [machine.resources(each) for each in totals.programs]
    return {
        "instructions": round(sum(kernels.values()), 2),
        "kernels": {kernel: round(n, 2) for kernel, n in kernels.items()},
        "launches": totals.launches,
        "least": round(least / values, 2),
        "read": round(totals.read / values, 2),
        "written": round(totals.written / values, 2),
        "moved": {kernel: round(32 * n / values, 2) for kernel, n in totals.sectors.items()},
        "widths": [round(n / max(sum(totals.widths), 1), 3) for n in totals.widths],
        **{key: max(each[key] for each in resources) for key in ("registers", "stack", "spills")},
        "spilling": sorted(
            {p.name for p, each in zip(totals.programs, resources, strict=True) if each["spills"]}
        ),
        "shared": max(each.shared for each in totals.programs),
        "seconds": round(sum(each.seconds for each in totals.programs), 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--part", default="0/1", help="every so many rows, another dtype and layout for each")
    parser.add_argument("--packed", action="store_true", help="packed images, instead of batches")
    parser.add_argument("--quick", action="store_true", help="leave out what takes ten seconds to compile")
    options = parser.parse_args()
    made = packed_calls if options.packed else calls
    part, parts = map(int, options.part.split("/"))
    rows, failed = 0, 0
    with on_ptx(90) as machine:
        variants = [(dtype, layout) for dtype in DTYPES for layout in LAYOUTS]
        for i, (dtype, layout) in enumerate(variants):
            for j, call in enumerate(made(dtype, layout)):
                slow = options.quick and is_slow(call.name, dtype, layout)
                if (j + i) % parts != part or slow:
                    continue
                try:
                    found = excess(call.name, dtype, layout, measure(machine, call))
                except NotImplementedError:  # it has no kernel of its own, and so no budget
                    continue
                except RuntimeError as error:
                    found = str(error)
                rows += 1
                if found:
                    failed += 1
                    print(f"{call.name}, {dtype}, {layout}: {found}", flush=True)
    print(f"{rows} rows, {failed} exceed their budget")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
