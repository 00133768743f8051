"""``python -m tests.ptx KIND ...``: compare the compiled kernels, run on the CPU, with the CPU's own kernels.

- first, samples: a sample of each operator, or all of them, in several dtypes and layouts;
- calls: the rows of ``rows.py`` on small images of several sizes;
- counts, packed-counts: the instructions of these rows, which ``budgets.json`` limits;
- planes, rows, columns: pixels that are far apart in this direction;
- packed: packed images, also at the end of a large buffer;
- large: images of more than 2**31 values;
- faults: kernels with faults that the machine must see.

Each case that differs, or that accesses memory which is not its own, is printed; the last line counts all.
Tensors without values are poisoned, so that what a kernel leaves out differs. ``--changed`` runs the families of kernels
whose code has changed since ``--write`` recorded it: after the first samples and the counts, or, with ``--all``, after
all kinds.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "0"

import argparse
import sys
from collections.abc import Iterator

import torch

import imgops.transforms  # noqa: F401  (registers its operators)
from tests.ptx import budgets, cases
from tests.ptx.machine import Machine, on_ptx

FAMILIES = budgets.families()


def chosen(kind: str, machine: Machine) -> Iterator[cases.Case]:
    """Yield the cases of a kind; those of large images in two dtypes."""
    if kind in ("first", "samples"):
        yield from cases.samples(kind == "samples")
    elif kind == "calls":
        yield from cases.calls()
    elif kind in ("counts", "packed-counts"):
        yield from cases.counts(machine, kind != "counts")
    elif kind == "faults":
        yield from cases.faults(machine)
    else:
        of = {"packed": cases.packed, "large": cases.large}
        for dtype in cases.LEVELS:
            axis = {"planes": -3, "rows": -2, "columns": -1}.get(kind)
            yield from of[kind](dtype) if axis is None else cases.views(dtype, axis)


def result(case: cases.Case) -> str:
    """Return what is wrong with a kernel's result, or an empty text; "left" if it leaves the call to ATen."""
    try:
        case.check()
    except NotImplementedError as error:
        return "left" if type(error) is NotImplementedError else str(error)
    except Exception as error:  # a fault of one kernel does not hide those of others
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kinds", nargs="+")
    parser.add_argument("--capability", type=int, default=90)
    parser.add_argument("--part", default="0/1", help="0/2 takes every second case")
    parser.add_argument("--only", default="", help="cases whose operators or texts contain this")
    parser.add_argument("--changed", action="store_true")
    parser.add_argument("--all", dest="runs", action="store_const", const="all", default="texts")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if options.write and (options.only or options.changed or options.part != "0/1"):
        parser.error("--write records that all cases of all kernels have run")
    part, parts = map(int, options.part.split("/"))
    families = budgets.changed(options.runs) if options.changed else {*FAMILIES.values()}
    found = {"": 0, "left": 0, "differ": 0}
    for kind in options.kinds:
        # Fills empty tensors with NaN and the largest integers; those of large images take no memory.
        torch.use_deterministic_algorithms(kind in ("first", "samples", "calls"))
        with on_ptx(options.capability, cases.PROGRAMS if kind == "large" else 2**32) as machine:
            for i, case in enumerate(chosen(kind, machine)):
                is_other = FAMILIES.get(case.name.replace("_packed", "")) not in {None, *families}
                if i % parts != part or is_other or options.only not in f"{case.name} {case.text}":
                    continue
                said = result(case)
                found[said if said in found else "differ"] += 1
                if said not in found:
                    print(f"{kind} {case.text}: {said}", flush=True)
    print(f"{found['']} equal, {found['left']} left to ATen, {found['differ']} differ")
    if options.write and not found["differ"]:
        budgets.save(budgets.read() | {options.runs: budgets.texts()})
    return found["differ"] > 0


if __name__ == "__main__":
    sys.exit(main())
