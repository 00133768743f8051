"""What the CUDA kernels execute, and what the first hour on a GPU measured."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

from parsed import ROOT, Parsed, table

from benchmarks import first_hour
from tests.ptx import budgets
from tests.ptx.rows import PACKED, goal, share_goal

VARIANTS = [f"{dtype} {layout}" for dtype in ("uint8", "float32") for layout in ("planar", "interleaved")]


def _instructions(name: str, variant: str, found: dict[str, Any] | None) -> str:
    if found is None:
        return "–"
    count, most = budgets.counted(name, found), goal(name, variant.split()[0])
    return f"{count:.0f}" + (", missed" if most is not None and count > most else "")


def _share(name: str, dtype: str, each: dict[str, Any]) -> str:
    """Return the share of a copy's speed that the instructions of the slower layout allow, and its goal."""
    found = [budgets.share(measured) for variant, measured in each.items() if variant.startswith(dtype)]
    if not found:
        return "–"
    wanted, reach = share_goal(name, dtype), min(found)
    if wanted is None:
        return f"{reach:.0%}"
    return f"{reach:.0%} of {wanted:.0%}" + (", missed" if reach < wanted else "")


class Instructions(Parsed):
    """``.. instructions::`` shows the instructions of each row, with the goals that they meet or miss.

    With an argument, ``packed``, the rows are those of packed images.
    """

    optional_arguments = 1

    def lines(self) -> list[str]:
        head = ["row", "goal", *VARIANTS, "of a copy, uint8", "of a copy, float32", "registers"]
        rows, missed, spilled, goals = [head], 0, [], 0
        known = budgets.read()
        for name, each in known["rows"].items():
            if name.startswith(PACKED) != bool(self.arguments):
                continue
            shown = [_instructions(name, variant, each.get(variant)) for variant in VARIANTS]
            shares = [_share(name, dtype, each) for dtype in ("uint8", "float32")]
            registers = str(max(found["registers"] for found in each.values()))
            most = goal(name, "uint8")
            rows.append([name, "–" if most is None else f"{most:g}", *shown, *shares, registers])
            goals += most is not None
            missed += any("missed" in cell for cell in shown)
            spilled += [
                f"{name} ({variant}, {found['spills']} bytes)"
                for variant, found in each.items()
                if found["spills"]
            ]
        said = f"{goals - missed} of {goals} goals are met, with Triton {known['triton']}. "
        said += (
            f"Registers are spilled by {', '.join(spilled)}." if spilled else "No kernel spills registers."
        )
        seconds = [found["seconds"] for each in known["rows"].values() for found in each.values()]
        said += (
            f" To compile the kernels of a row takes {median(seconds):.1f} s, at most {max(seconds):.1f} s."
        )
        return [*table(rows), said, ""]


class FirstHour(Parsed):
    """``.. first-hour::`` shows what ``python -m benchmarks.first_hour`` found on each GPU where it was run."""

    def lines(self) -> list[str]:
        files = sorted((ROOT / "benchmarks" / "results").glob("first-hour-*.json"))
        if not files:
            return ["It has not been run yet: no GPU was available when these pages were made.", ""]
        lines: list[str] = []
        for file in files:
            found = json.loads(file.read_text())
            lines += [f"{found['device']}, torch {found['torch']}, Triton {found['triton']}:", ""]
            lines += table(first_hour.checks_table(found))
            for shape, rows in first_hour.timings_tables(found):
                lines += [f"{shape}, microseconds a batch:", "", *table(rows)]
        return lines
