"""``python -m tests.specs``: rewrite the table of operators in docs/tables.md from the specs and the registered operators."""

from __future__ import annotations

import re
from pathlib import Path

from imgops._operator.record import Contract, Gradient, operators
from imgops.kernels import devices
from tests.specs import SPECS, OpSpec

#: The families of the public functions, in the order of the pages.
SECTIONS = (
    *(
        "Movement",
        "Resizing",
        "Warps",
        "Maps",
        "Color",
        "Levels",
        "Histograms",
        "Thresholds",
        "Blur",
        "Filters",
        "Edges",
    ),
    *("Morphology", "Regions", "Noise", "Blending", "Into existing memory", "Files"),
)
#: The family of the operators that only other functions call.
INTERNAL = "Registered operators without a public function"
TABLES = Path(__file__).parents[2] / "docs" / "tables.md"
_MARKS = re.compile(r"(<!-- operators: .*? -->\n)(.*?)(<!-- /operators -->)", re.S)
HEAD = (
    *("call", "reference", "difference", "dtypes", "gradient", "per sample", "packed images"),
    *("CUDA", "vmap", "DTensor", "autocast", "in core ATen"),
)


def gradient(spec: OpSpec) -> str:
    operator = spec.operator
    if operator.no_gradient:
        return "none"
    if isinstance(operator.autograd, Gradient):
        if spec.straight_through:
            return "straight through"
        if operator.adjoint is None:
            return "derived" if spec.is_derived else "formula"
        forward = "" if operator.autograd.jvp else ", no forward mode"
        return f"`{operator.adjoint}`{forward}"
    if operator.contract in (Contract.INPLACE, Contract.BUFFERS):
        return "yes"
    return "an error, as in PyTorch" if operator.contract is Contract.OUT else "–"


def decomposition(spec: OpSpec) -> str:
    if spec.operator.decomposition is not None:
        return spec.decomposed_difference
    return "functional" if spec.operator.contract.mutates else "–"


def per_sample(spec: OpSpec) -> list[str]:
    """Return the parameters that may be tensors with one value for each image of a batch."""
    operator = spec.operator
    if operator.contract is Contract.DYNAMIC:  # a file, or one image
        return []
    return list(operator.signature.parameters)[1 : operator.tensors]


def packed(spec: OpSpec) -> str:
    """Return how an operator takes packed images on CUDA: in one launch, or image by image; on the CPU it is one call."""
    if spec.operator.packed is None:
        return "–"
    return "one launch" if getattr(spec.operator.cuda, "takes_packed", False) else "each"


def cuda(spec: OpSpec) -> str:
    """Return what computes on CUDA: a Triton kernel (and ATen where it declines), ATen alone, or the host."""
    if spec.operator.cuda is not None:
        return "Triton"
    return "ATen" if devices.stays_on_device(spec.operator) else "host"


def cells(spec: OpSpec) -> tuple[str, ...]:
    operator = spec.operator
    return (
        f"`imgops.{spec.name}`" if spec.is_public else f"`torch.ops.imgops.{spec.name}`",
        spec.reference_name,
        spec.difference,
        spec.dtype_names,
        gradient(spec),
        ", ".join(f"`{name}`" for name in per_sample(spec)) or "–",
        packed(spec),
        cuda(spec),
        "yes" if operator.vmap else "–",
        "batch" if operator.sharding else "–",
        operator.autocast.__name__ if operator.autocast else "as given",
        decomposition(spec),
    )


def families() -> dict[str, list[OpSpec]]:
    """Return the registered operators by family; those without a public function are the last one."""
    found: dict[str, list[OpSpec]] = {title: [] for title in (*SECTIONS, INTERNAL)}
    for name in operators():
        found[SPECS[name].section or INTERNAL].append(SPECS[name])
    return {title: specs for title, specs in found.items() if specs}


def table() -> str:
    lines = []
    for title, specs in families().items():
        rows = ["| " + " | ".join(row) + " |" for row in (HEAD, *map(cells, specs))]
        lines += [f"### {title}", "", rows[0], "|" + "---|" * len(HEAD), *rows[1:], ""]
    return "\n".join(lines)


def current() -> str:
    found = _MARKS.search(TABLES.read_text())
    return found.group(2) if found else ""


if __name__ == "__main__":
    TABLES.write_text(_MARKS.sub(lambda m: m.group(1) + table() + m.group(3), TABLES.read_text()))
