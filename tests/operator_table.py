"""The README's table of operators, made from the registry: ``python -m tests.operator_table`` rewrites it."""

from __future__ import annotations

import re
from pathlib import Path

import imgops
from imgops._rows import operators

README = Path(__file__).parent.parent / "README.md"
_MARKS = re.compile(r"(<!-- operators: .*? -->\n)(.*?)(<!-- /operators -->)", re.S)

#: What the rows cannot tell: the reference and the worst difference that the tests allow.
_REFERENCE = {
    "crop": ("`PIL.Image.crop`", "0"),
    "paste": ("`PIL.Image.paste`", "0"),
    "pad": ("`cv2.copyMakeBorder`", "0"),
    "resize": (
        "`PIL.Image.resize` (antialias), `cv2.resize` (not)",
        "0 on uint8; on float32 1e-5 (PIL), 0 (OpenCV)",
    ),
    "pad_adjoint": ("transpose of pad", "1e-12"),
    "resize_adjoint": ("transpose of resize", "1e-12"),
}


def table() -> str:
    lines = [
        "| call | reference | difference | dtypes | backward, adjoint | forward mode | vmap |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in operators().items():
        reference, difference = _REFERENCE[name]
        public = name in imgops.__all__
        call = f"`imgops.{name}`" if public else f"`torch.ops.imgops.{name}`"
        moves = name in ("crop", "paste", "pad")
        dtypes = "all" if moves else "uint8, floats; nearest: all" if public else "floats"
        gradient = f"`{row.adjoint}`" if row.autograd else "–"
        forward = "yes" if row.autograd and row.autograd.jvp else "–"
        vmap = "yes" if row.vmap else "–"
        cells = (call, reference, difference, dtypes, gradient, forward, vmap)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def current() -> str:
    found = _MARKS.search(README.read_text())
    return found.group(2) if found else ""


if __name__ == "__main__":
    README.write_text(_MARKS.sub(lambda m: m.group(1) + table() + m.group(3), README.read_text()))
