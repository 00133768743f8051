"""The base of the directives, which write reStructuredText."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
#: The files that the directives read. Sphinx builds a page again when one of them changes.
SOURCES = [
    str(p)
    for p in (
        *Path(__file__).parent.glob("*.py"),
        *(DOCS / "migration").glob("*.txt"),
        DOCS / "tables.md",
        ROOT / "tests" / "added_cases.py",
        ROOT / "tests" / "ptx" / "budgets.json",
        *(ROOT / "benchmarks" / "results").glob("*.*"),
        *(ROOT / "benchmarks" / "results" / "contributed").glob("*.json"),
    )
]


class Parsed(SphinxDirective):
    """A directive that writes reStructuredText."""

    has_content = False

    def lines(self) -> list[str]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        for source in SOURCES:
            self.env.note_dependency(source)
        holder = nodes.Element()
        self.state.nested_parse(StringList(self.lines(), source="imgops_docs"), 0, holder, match_titles=True)
        return holder.children


def box(facts: list[tuple[str, str]], *above: str) -> list[str]:
    inside = [*above, *(f":{title}: {text}" for title, text in facts)]
    return [".. container:: facts", "", *("   " + line for line in inside), ""]


def double(text: str) -> str:
    return re.sub(r"`+([^`]+)`+", r"``\1``", text)


def table(rows: list[list[str]], widths: str = "auto", kind: str = "wide") -> list[str]:
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", f"   :class: {kind}", ""]
    for row in rows:
        lines += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(row)]
    return [*lines, ""]
