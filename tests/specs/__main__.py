"""``python -m tests.specs``: rewrite the table of operators in docs/tables.md from the specs and the registered rows."""

from __future__ import annotations

import re
from pathlib import Path

from imgops._rows import Contract, Gradient, operators
from imgops.kernels.cuda import route
from tests.specs import SPECS, OpSpec

TABLES = Path(__file__).parents[2] / "docs" / "tables.md"
_MARKS = re.compile(r"(<!-- operators: .*? -->\n)(.*?)(<!-- /operators -->)", re.S)
HEAD = (
    *("call", "reference", "difference", "dtypes", "gradient"),
    *("CUDA", "vmap", "DTensor", "autocast", "in core ATen"),
)


def gradient(spec: OpSpec) -> str:
    row = spec.row
    if row.no_gradient:
        return "none"
    if isinstance(row.autograd, Gradient):
        if spec.straight_through:
            return "straight through"
        if row.adjoint is None:
            return "derived"
        forward = "" if row.autograd.jvp else ", no forward mode"
        return f"`{row.adjoint}`{forward}"
    if row.contract in (Contract.INPLACE, Contract.BUFFERS):
        return "yes"
    return "an error, as in PyTorch" if row.contract is Contract.OUT else "–"


def decomposition(spec: OpSpec) -> str:
    if spec.row.decomposition is not None:
        return spec.decomposed_difference
    return "functional" if spec.row.contract.mutates else "–"


def cuda(spec: OpSpec) -> str:
    """What computes on CUDA: a kernel of our own (and ATen what it leaves), ATen alone, or the CPU."""
    if spec.row.cuda is not None:
        return "Triton"
    return "ATen" if route.stays_on_device(spec.row) else "host"


def cells(spec: OpSpec) -> tuple[str, ...]:
    row = spec.row
    return (
        f"`imgops.{spec.name}`" if spec.is_public else f"`torch.ops.imgops.{spec.name}`",
        spec.reference_name,
        spec.difference,
        spec.dtype_names,
        gradient(spec),
        cuda(spec),
        "yes" if row.vmap else "–",
        "batch" if row.sharding else "–",
        row.autocast.__name__ if row.autocast else "as given",
        decomposition(spec),
    )


def table() -> str:
    rows = [HEAD, ("---",) * len(HEAD), *(cells(SPECS[name]) for name in operators())]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines[1] = "|" + "---|" * len(HEAD)
    return "\n".join(lines) + "\n"


def current() -> str:
    found = _MARKS.search(TABLES.read_text())
    return found.group(2) if found else ""


if __name__ == "__main__":
    TABLES.write_text(_MARKS.sub(lambda m: m.group(1) + table() + m.group(3), TABLES.read_text()))
