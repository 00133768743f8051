"""Timings that others contribute: every file in benchmarks/results/contributed is valid, and wrong files are refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import contributed, table
from benchmarks.cases import BENCHMARKS, COLUMNS, Case

SENT = [p for p in contributed.FOLDER.glob("*.json") if p.name != contributed.SCHEMA.name]


@pytest.mark.parametrize("path", SENT, ids=lambda p: p.stem)
def test_what_was_sent(path: Path) -> None:
    found = contributed.read(path)
    assert path.stem == f"{found['date']}-{found['machine']['slug']}"
    named = {row["operator"] for row in found["rows"]} & set(BENCHMARKS)
    assert len(named) > 40, "a contribution has every operator, under the names of its time"


def test_one_is_there() -> None:
    assert SENT and [c.path for c in contributed.every()] == sorted(SENT, key=lambda p: p.name, reverse=True)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Return a file as the benchmark writes it."""
    rows = [
        table.Row(
            Case("crop", dtype, "planar", 512, 1),
            [{"imgops": 10.0, "raw": 9.0, "kornia": 30.0}, {"imgops": 12.0, "raw": 14.0, "kornia": 31.0}],
        )
        for dtype in (torch.uint8, torch.float32)
    ]
    return table.write_json(rows, tmp_path / "made", "a test")


def test_what_the_benchmark_writes_can_be_sent(made: Path) -> None:
    found = contributed.read(made)
    assert found["contributor"] == "a test" and torch.__version__.startswith(found["versions"]["torch"])
    assert found.ratios("kornia", dtype="uint8") == [2.792] and found.typical("raw") == 1.033
    assert found.typical("torchvision") is None
    assert set(found["rows"][0]["ratio"]) == set(COLUMNS)


def _row(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["rows"][0].update(changes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data.pop("date"), r"'date' is a required property"),
        (lambda data: data.update(schema=2), r"\$.schema: 1 was expected"),
        (lambda data: data.update(more=1), r"Additional properties are not allowed"),
        (lambda data: data["machine"].update(slug="../.."), r"machine.slug"),
        (lambda data: data["machine"].update(cpu="x\n\n.. raw:: html"), r"machine.cpu"),
        (lambda data: data.update(contributor="`me <http://x>`_"), r"contributor"),
        (lambda data: data["versions"].pop("opencv"), r"'opencv' is a required property"),
        (lambda data: data.update(rows=[]), r"rows"),
        (lambda data: data["rows"].append(data["rows"][0]), r"is there twice"),
        (_row(dtype="torch.uint8"), r"dtype"),
        (_row(size=0), r"size"),
        (_row(microseconds={"imgops": -1.0}), r"microseconds.imgops"),
        (_row(ratio={"imgops": 1.1, "raw": 1.0, "kornia": 2.8}), r"imgops beside itself must be 1"),
        (_row(ratio={"imgops": 1.0}), r"raw must have a time and a ratio, or none"),
        (
            _row(ratio={"imgops": 1.0, "raw": 40.0, "kornia": 2.8}),
            r"the ratio 40.00 is not that of the times",
        ),
        (_row(microseconds={"imgops": float("nan")}), r"NaN is no time"),
    ],
)
def test_what_is_refused(made: Path, change: Callable[[dict[str, Any]], None], said: str) -> None:
    data = copy.deepcopy(json.loads(made.read_text()))
    change(data)
    made.write_text(json.dumps(data))
    with pytest.raises(ValueError, match=rf"^made.json: .*{said}"):
        contributed.read(made)


def test_no_json(made: Path) -> None:
    made.write_text("{")
    with pytest.raises(ValueError, match=r"^made.json: not JSON"):
        contributed.read(made)
