"""What the CUDA kernels execute, and what the first hour on a GPU measured."""

from __future__ import annotations

import json
from statistics import median
from typing import Any

from parsed import ROOT, Parsed, table

from benchmarks import first_hour
from tests.ptx import budgets
from tests.ptx.rows import PACKED

VARIANTS = [f"{dtype} {layout}" for dtype in ("uint8", "float32") for layout in ("planar", "interleaved")]


def _instructions(found: dict[str, Any] | None) -> str:
    return "–" if found is None else f"{budgets.counted(found):.0f}"


def _share(dtype: str, each: dict[str, Any]) -> str:
    """Return the share of a copy's speed that the instructions of the slower layout allow."""
    found = [budgets.share(measured) for variant, measured in each.items() if variant.startswith(dtype)]
    return f"{min(found):.0%}" if found else "–"


def _traffic(each: dict[str, Any]) -> str:
    """Return the bytes that the kernels of a row move, divided by those that they must, in the slower layout."""
    found = [measured for variant, measured in each.items() if variant.startswith("uint8")]
    return f"{max(measured['moved'] / measured['least'] for measured in found):.1f}" if found else "–"


class Instructions(Parsed):
    """``.. instructions::`` shows the instructions of each row.

    With an argument, ``packed``, the rows are those of packed images.
    """

    optional_arguments = 1

    def lines(self) -> list[str]:
        head = ["row", *VARIANTS, "of a copy, uint8", "of a copy, float32", "traffic", "registers"]
        rows, spilled = [head], []
        known = budgets.read()
        for name, each in known["rows"].items():
            if name.startswith(PACKED) != bool(self.arguments):
                continue
            shown = [_instructions(each.get(variant)) for variant in VARIANTS]
            shares = [_share(dtype, each) for dtype in ("uint8", "float32")]
            registers = str(max(found["registers"] for found in each.values()))
            rows.append([name.removeprefix(PACKED), *shown, *shares, _traffic(each), registers])
            spilled += [
                f"{name} ({variant}, {found['spills']} bytes)"
                for variant, found in each.items()
                if found["spills"]
            ]
        said = f"The kernels were compiled with Triton {known['triton']}. "
        said += (
            f"Registers are spilled by {', '.join(spilled)}." if spilled else "No kernel spills registers."
        )
        seconds = [found["seconds"] for each in known["rows"].values() for found in each.values()]
        said += (
            f" Compiling the kernels of a row takes {median(seconds):.1f} s, at most {max(seconds):.1f} s."
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
                used = [i for i in range(len(rows[0])) if any(row[i] not in ("", "–") for row in rows[1:])]
                lines += [
                    f"{shape}, microseconds a batch:",
                    "",
                    *table([[row[i] for i in used] for row in rows]),
                ]
        return lines
