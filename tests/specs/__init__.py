"""Every operator's spec, family by family. Adding an operator adds its spec to its family's page.

``SPECS`` has all of them by name, in the order of the families' pages; ``python -m tests.specs`` rewrites the README's
table of operators from them.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from tests.specs._spec import OpSpec as OpSpec
from tests.specs._spec import Sample as Sample

FAMILIES = (
    *("compose", "pad", "resize", "resized_crop", "geometry", "remap"),
    *("color", "levels", "filter", "mix", "mutation", "codec"),
)
SPECS: dict[str, OpSpec] = {
    spec.name: spec for family in FAMILIES for spec in import_module(f"tests.specs.{family}").SPECS
}
#: Those that are operators of their own; the others are functions of PyTorch's.
OPERATORS = {name: spec for name, spec in SPECS.items() if spec.is_operator}
SAMPLES: tuple[Sample, ...] = tuple(s for spec in OPERATORS.values() for s in spec.samples)

assert set(FAMILIES) == {p.stem for p in Path(__file__).parent.glob("[a-z]*.py")}, "FAMILIES names every page"
