"""Timings that users contribute from their machines: ``python -m benchmarks --quick --contribute "your name"`` writes a
file.

``benchmarks/results/contributed/schema.json`` defines the format; the benchmarks page shows every file in
that folder. ``python -m benchmarks.contributed file.json`` checks one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

FOLDER = Path(__file__).parent / "results" / "contributed"
SCHEMA = FOLDER / "schema.json"
PEERS = ("raw", "torchvision", "kornia", "scikit-image")
#: A ratio is the median of the rounds' ratios, so it is close, but not equal, to the ratio of the medians.
NEAR = 3.0


@dataclass(frozen=True)
class Contribution:
    path: Path
    data: dict[str, Any]

    def __getitem__(self, key: str) -> Any:
        return self.data[key]

    def ratios(self, peer: str, **which: object) -> list[float]:
        """Return how many times as long as imgops a peer takes, in the rows with these values."""
        rows = (r for r in self["rows"] if all(r[k] == v for k, v in which.items()))
        return [r["ratio"][peer] for r in rows if r["ratio"].get(peer)]

    def typical(self, peer: str) -> float | None:
        """Return the median over all rows, or None if there are none."""
        found = self.ratios(peer)
        return median(found) if found else None


def document(
    rows: Iterable[dict[str, Any]], machine: dict[str, str], versions: dict[str, str], contributor: str
) -> dict[str, Any]:
    """Return the contents of a file."""
    return {
        "schema": 1,
        "date": str(date.today()),
        "contributor": contributor,
        "machine": machine,
        "versions": versions,
        "rows": list(rows),
    }


def read(path: Path) -> Contribution:
    """Read a file; raise a ValueError that describes what is wrong with it."""
    import jsonschema

    def no_number(name: str) -> None:
        raise ValueError(f"{path.name}: {name} is no time")

    try:
        data = json.loads(path.read_text(), parse_constant=no_number)
        jsonschema.validate(data, json.loads(SCHEMA.read_text()), jsonschema.Draft202012Validator)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path.name}: not JSON: {error}") from None
    except jsonschema.ValidationError as error:
        raise ValueError(f"{path.name}: {error.json_path}: {error.message[:200]}") from None
    seen = set()
    for row in data["rows"]:
        key = tuple(row[k] for k in ("operator", "dtype", "layout", "size", "batch"))
        if key in seen:
            raise ValueError(f"{path.name}: {key} is there twice")
        seen.add(key)
        for peer, time in row["microseconds"].items():
            ratio = row["ratio"].get(peer)
            if (time is None) != (ratio is None):
                raise ValueError(f"{path.name}: {key}: {peer} must have a time and a ratio, or none")
            if time and not 1 / NEAR < ratio / (time / row["microseconds"]["imgops"]) < NEAR:
                raise ValueError(
                    f"{path.name}: {key}: the ratio {ratio:.2f} is not that of the times of {peer}"
                )
        if row["ratio"]["imgops"] != 1:
            raise ValueError(f"{path.name}: {key}: imgops beside itself must be 1")
    return Contribution(path, data)


def every(folder: Path = FOLDER) -> list[Contribution]:
    """Read all files, the newest first."""
    found = [read(p) for p in folder.glob("*.json") if p.name != SCHEMA.name]
    return sorted(found, key=lambda c: (c["date"], c.path.name), reverse=True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        try:
            found = read(Path(name))
        except ValueError as error:
            sys.exit(str(error))
        print(f"{name}: {len(found['rows'])} rows of {found['machine']['cpu']}")
