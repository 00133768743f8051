"""What the kernels may execute: ``budgets.json``, which ``python -m benchmarks.cuda --count --write`` measures."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.ptx.rows import OF_LAST_KERNEL, PACKED, SPILLING

FILE = Path(__file__).with_name("budgets.json")
WIDTHS = (1, 2, 4, 8, 16)
#: How many times the measured instructions a kernel may execute, and with another version of Triton.
ALLOWED, ALLOWED_ELSEWHERE = 1.02, 1.2
Measured = dict[str, Any]


def counted(name: str, found: Measured) -> float:
    """Return the instructions of a row, or those of its last kernel if only that one counts."""
    if name.removeprefix(PACKED) in OF_LAST_KERNEL:
        return float(list(found["kernels"].values())[-1])
    return float(found["instructions"])


#: An H200: the instructions of threads that it can issue a second, which are as many as the bytes that its first caches
#: can move; the share of the instructions that kernels reach; and the bytes a second that a copy reads and writes.
ISSUE, REACHED, COPY = 132 * 128 * 1.755e9, 0.6, 4.1e12


def share(found: Measured) -> float:
    """Return the share of a copy's speed on an H200 that instructions and sectors of caches allow, at most 1."""
    moved = sum(found["moved"].values())
    return min(1.0, (found["least"] / COPY) / max(found["instructions"] / (ISSUE * REACHED), moved / ISSUE))


def key(dtype: str, layout: str) -> str:
    return f"{dtype} {layout}"


def read() -> dict[str, Any]:
    """Return the file: the version of Triton, and the rows by name, dtype and layout."""
    found: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"rows": {}}
    return found


def clear() -> None:
    """Remove all rows, before all are measured again."""
    FILE.unlink(missing_ok=True)


def write(name: str, dtype: str, layout: str, found: Measured) -> None:
    """Replace one row."""
    known = read()
    known["triton"] = version("triton")
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
    if found["spills"] > (before["spills"] * ALLOWED_ELSEWHERE if name in SPILLING else 0):
        return f"{', '.join(found['spilling'])} spills {found['spills']} bytes"
    factor = ALLOWED if known["triton"] == version("triton") else ALLOWED_ELSEWHERE
    most = before["instructions"] * factor + 0.1
    return f"{found['instructions']} instructions, at most {most:.1f}" if found["instructions"] > most else ""


def is_slow(name: str, dtype: str, layout: str) -> bool:
    """Return whether the kernels of a row took more than ten seconds to compile."""
    before = read()["rows"].get(name, {}).get(key(dtype, layout))
    return before is not None and before["seconds"] > 10
