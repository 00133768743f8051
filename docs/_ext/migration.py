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


def route(name: str) -> str:
    """Return how a transform of albumentations is converted."""
    from imgops.integrations.albumentations import conversions, convert, moves, values

    if name in convert.WITHOUT:
        return f"no: {convert.WITHOUT[name]}"
    own = {*convert.CONTAINERS, *conversions.CONVERSIONS, *moves.MOVES, *values.OPERATORS}
    return "imgops" if name in own else "albumentations, on the CPU"


def table(library: str) -> list[list[str]]:
    """Return the cells in reStructuredText."""
    if library == "albumentations":
        cells = [
            [
                "albumentations",
                "converted; its image is computed by",
                "the closest class of imgops",
                "its parameters there",
            ]
        ]
        for row in rows(library):
            for name in row.names:
                here = f":class:`~imgops.transforms.{row.here}`" if row.here else "–"
                cells.append([f"``{name}``", route(name), here, row.text or "–"])
        return cells
    head = [library, "imgops", "parameters, or the reason", "per sample"]
    cells = [head]
    for row in rows(library):
        names = ", ".join(f"``{n}``" for n in row.names)
        if row.here:
            cells.append([names, f":class:`~imgops.transforms.{row.here}`", row.text or "–", row.per_sample])
        else:
            cells.append([names, "no counterpart", row.text, "–"])
    return cells
