"""What the kernels may execute: ``budgets.json``, which ``python -m benchmarks.cuda --count --write`` measures."""

from __future__ import annotations

import ast
import hashlib
import json
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from imgops._operator import record
from imgops.extend.testing import cuda_kernel
from imgops.kernels import cuda
from tests.ptx.rows import OF_LAST_KERNEL, PACKED, Call

FILE = Path(__file__).with_name("budgets.json")
WIDTHS = (1, 2, 4, 8, 16)
#: How many times the measured instructions a kernel may execute, and with another version of Triton.
ALLOWED, ALLOWED_ELSEWHERE = 1.02, 1.2
#: What the file keeps of a row.
KEPT = ("instructions", "moved", "least", "registers", "spills", "seconds")
Measured = dict[str, Any]


def measure(machine: Any, call: Call) -> Measured:
    """Run one row and return what was executed for each value of the result, and what its kernels take.

    It is what a first call executes: the tables that are kept for the next are made as well.
    """
    from imgops.kernels.cuda import _resampling_tables
    from tests.ptx.machine import Totals

    _resampling_tables._kept.clear()
    machine.totals = totals = Totals()
    out = cuda_kernel(call.qualified)(*call.arguments)
    if not totals.launches:
        raise NotImplementedError(f"{call.qualified} leaves these arguments to ATen")
    values, image, count = out.numel(), call.arguments[0], totals.count
    least = image.numel() * image.element_size() * call.part + values * out.element_size()
    kernels = {kernel: n / values for kernel, n in totals.instructions.items()}
    resources = {program: machine.resources(program) for program in totals.programs}
    return {
        "instructions": round(sum(kernels.values()), 2),
        "kernels": {kernel: round(n, 2) for kernel, n in kernels.items()},
        "least": round(least / values, 2),
        "read": round(count.read / values, 2),
        "written": round(count.written / values, 2),
        "moved": round(32 * count.sectors / values, 2),
        "widths": [round(n / max(sum(count.widths), 1), 3) for n in count.widths],
        **{key: max(each[key] for each in resources.values()) for key in ("registers", "spills")},
        "spilling": sorted({program.name for program, each in resources.items() if each["spills"]}),
        "shared": max(program.shared for program in totals.programs),
        "seconds": round(sum(program.seconds for program in totals.programs), 1),
    }


def counted(found: Measured) -> float:
    """Return the instructions of a row, or those of its last kernel if only that one counts."""
    return float(found.get("last", found["instructions"]))


#: An H200: the instructions of threads that it can issue a second, which are as many as the bytes that its first caches
#: can move; the share of the instructions that kernels reach; and the bytes a second that a copy reads and writes.
ISSUE, REACHED, COPY = 132 * 128 * 1.755e9, 0.6, 4.1e12


def share(found: Measured) -> float:
    """Return the share of a copy's speed on an H200 that instructions and sectors of caches allow, at most 1."""
    slowest = max(found["instructions"] / (ISSUE * REACHED), found["moved"] / ISSUE)
    return min(1.0, (found["least"] / COPY) / slowest)


@cache
def _module(name: str) -> tuple[bytes, set[str]]:
    """Return the code of a module of kernels, and the other ones that it imports."""
    code, imported = (Path(cuda.__file__).parent / f"{name}.py").read_bytes(), set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(cuda.__name__):
            own = (node.module or "").removeprefix(cuda.__name__)[1:]
            imported |= {own} if own else {each.name for each in node.names}
    return code, imported


def text_of(family: str) -> str:
    """Return a hash of the code of a family's kernels, and of all modules of kernels that it imports."""
    modules = [family]
    for name in modules:
        modules += sorted(_module(name)[1].difference(modules))
    return hashlib.sha256(b"".join(_module(name)[0] for name in modules)).hexdigest()[:16]


def families() -> dict[str, str]:
    """Return the module of each operator's kernels for CUDA."""
    kernels = {name: operator.cuda for name, operator in record.table.items()}
    own = {name: kernel for name, kernel in kernels.items() if isinstance(kernel, cuda.Kernel)}
    return {name: kernel.__module__.rpartition(".")[2] for name, kernel in own.items()}


def texts() -> dict[str, str]:
    return {family: text_of(family) for family in sorted({*families().values()})}


def changed(runs: str = "texts") -> set[str]:
    """Return the families whose code is not what the file has a hash of.

    ``runs`` is "texts" for those of a first sample and of the counts, and "all" for those of all kinds.
    """
    known = read().get(runs, {})
    return {family for family, text in texts().items() if known.get(family) != text}


def key(dtype: str, layout: str) -> str:
    return f"{dtype} {layout}"


def read() -> dict[str, Any]:
    """Return the file: the version of Triton, the hashes of the code, and the rows by name, dtype and layout."""
    found: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"texts": {}, "rows": {}}
    return found


def clear() -> None:
    """Remove all rows, before all are measured again."""
    save(read() | {"rows": {}})


def write(name: str, dtype: str, layout: str, found: Measured) -> None:
    """Replace one row."""
    known = read() | {"triton": version("triton")}
    kept = {each: found[each] for each in KEPT}
    if name.removeprefix(PACKED) in OF_LAST_KERNEL:
        kept["last"] = list(found["kernels"].values())[-1]
    known["rows"].setdefault(name, {})[key(dtype, layout)] = kept
    save(known)


def save(known: dict[str, Any]) -> None:
    """Write the file, with a line for each row of a dtype and layout, so that changes are read easily."""
    text = json.dumps(known, indent=1, sort_keys=False)
    for inner in {line for row in known["rows"].values() for line in map(json.dumps, row.values())}:
        text = text.replace(json.dumps(json.loads(inner), indent=1).replace("\n", "\n   "), inner)
    FILE.write_text(text + "\n")


def excess(name: str, dtype: str, layout: str, found: Measured) -> str:
    """Return what exceeds the budget of a row, or an empty text."""
    known = read()
    before = known["rows"].get(name, {}).get(key(dtype, layout))
    if before is None:
        return "has no budget: python -m benchmarks.cuda --count --write"
    if found["spills"] > before["spills"] * ALLOWED_ELSEWHERE:
        return f"{', '.join(found['spilling'])} spills {found['spills']} bytes"
    factor = ALLOWED if known["triton"] == version("triton") else ALLOWED_ELSEWHERE
    most = before["instructions"] * factor + 0.1
    return f"{found['instructions']} instructions, at most {most:.1f}" if found["instructions"] > most else ""
