"""The tables of the migration page: the transforms of another library and their counterparts in imgops."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent.parent / "migration"


@dataclass(frozen=True)
class Row:
    """One or several transforms of another library. If they have no counterpart, ``here`` is empty and ``text`` says why."""

    names: tuple[str, ...]
    here: str
    text: str
    per_sample: str


def rows(library: str) -> list[Row]:
    found = []
    for line in (FOLDER / f"{library}.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        names, here, text, *rest = (cell.strip() for cell in line.split(" |"))
        found.append(Row(tuple(names.split(", ")), here.strip("- "), text, rest[0] if rest else ""))
    return found


def table(library: str) -> list[list[str]]:
    """Return the cells in reStructuredText."""
    head = [library, "imgops", "parameters, or the reason", "per sample"]
    cells = [head]
    for row in rows(library):
        names = ", ".join(f"``{n}``" for n in row.names)
        if row.here:
            cells.append([names, f":class:`~imgops.transforms.{row.here}`", row.text or "–", row.per_sample])
        else:
            cells.append([names, "no counterpart", row.text, "–"])
    return cells
