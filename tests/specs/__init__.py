"""Every operator's spec, one module per family. A new operator adds its spec to the module of its family.

``SPECS`` has all of them by name, in the order of registration; the functions that are not operators come last.
``python -m tests.specs`` rewrites the table of operators in docs/tables.md from them.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import imgops
from imgops._operator.record import operators
from tests.specs._spec import OpSpec as OpSpec
from tests.specs._spec import Sample as Sample

_PAGES = sorted(p.stem for p in Path(__file__).parent.glob("[a-z]*.py"))
_ORDER = [*operators(), *imgops.__all__]
SPECS: dict[str, OpSpec] = {
    spec.name: spec
    for spec in sorted(
        (spec for page in _PAGES for spec in import_module(f"tests.specs.{page}").SPECS),
        key=lambda spec: _ORDER.index(spec.name),
    )
}
#: The specs of operators; the others are public functions made of other operators.
OPERATORS = {name: spec for name, spec in SPECS.items() if spec.is_operator}
SAMPLES: tuple[Sample, ...] = tuple(s for spec in OPERATORS.values() for s in spec.samples)
