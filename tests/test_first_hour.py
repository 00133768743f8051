"""The program for the first hour on a GPU: it goes on after a process that dies or hangs, and from where it stopped."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from benchmarks import first_hour
from tests.tiers import nightly

#: Stands for the program of the work: what it does with an item is the item's name.
CHILD = """
import json, os, sys, time
for item in sys.argv[1:]:
    print(item, file=sys.stderr, flush=True)
    if item == "dies": os._exit(139)
    if item == "hangs": time.sleep(60)
    print(json.dumps({"item": item, "ok": item != "bad", "said": item}), flush=True)
"""


@pytest.fixture(autouse=True)
def child(monkeypatch: pytest.MonkeyPatch) -> None:
    def command(name: str, device: str, items: Sequence[str]) -> list[str]:
        return [sys.executable, "-c", CHILD, *items]

    monkeypatch.setattr(first_hour, "_command", command)
    monkeypatch.setattr(first_hour, "PATIENCE", {"timings": 2})


def results(items: Sequence[str], seconds: float = 60) -> list[dict[str, Any]]:
    return list(first_hour.work("timings", items, "cpu", time.monotonic() + seconds))


def test_a_process_that_dies_costs_one_item() -> None:
    found = results(["one", "dies", "two", "bad"])
    assert [(r["item"], r["ok"]) for r in found] == [
        ("one", True),
        ("dies", False),
        ("two", True),
        ("bad", False),
    ]
    assert found[1]["said"] == "the process ended with status 139"
    assert found[1]["wrong"] == ["one\ndies"]


@nightly
def test_a_process_that_hangs_costs_one_item() -> None:
    found = results(["hangs", "two"])
    assert [(r["item"], r["ok"]) for r in found] == [("hangs", False), ("two", True)]
    assert found[0]["said"] == "no result in 2 s"


def test_what_the_limit_cuts_off_has_no_result() -> None:
    assert results(["one", "hangs"], seconds=1.5) in ([], [{"item": "one", "ok": True, "said": "one"}])


def test_it_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = tmp_path / "first-hour.json"
    document = first_hour.Document(path, {"device": "none"})
    items = ["one", "bad", "two"]
    first_hour.run_slice("timings", items[:2], "cpu", 1, 1, document.add)
    again = first_hour.Document(path, {"device": "none"})
    assert again.left("timings", items, False) == ["two"]
    assert again.left("timings", items, True) == ["bad", "two"]
    first_hour.run_slice("operators", ["dies", "one"], "cpu", 1, 2, again.add)
    rows = first_hour.checks_table(json.loads(path.read_text()))
    assert ["operators", "1", "1", "dies"] in rows
    assert ["timings", "1", "1", "bad"] in rows
    assert ["captures", "–", "–", "not run"] in rows


def program(path: Path, *options: str) -> str:
    command = [sys.executable, "-m", "benchmarks.first_hour", "--device", "cpu", "--out", str(path), *options]
    done = subprocess.run(command, cwd=first_hour.ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Triton's interpreter runs the kernels")


@nightly
@needs_triton
def test_an_operator_runs_in_the_interpreter(tmp_path: Path) -> None:
    out = program(tmp_path / "first.json", "--only", "imgops::blend", "--slice", "operators")
    assert re.search(r"^ok   operators: imgops::blend: [1-9]\d* equal, 0 differ, 0 left to ATen$", out, re.M)
    assert "left: sanitizer 1, graphs 1, calls 1, streams 1, captures 1; call again" in out


@nightly
@needs_triton
def test_every_slice_runs_in_the_interpreter(tmp_path: Path) -> None:
    path = tmp_path / "first.json"
    chosen = {"blend": ",".join(first_hour.SLICES), "solarize, each, float32, planar": "timings"}
    for only, slices in (chosen | {"cuda_dev": "tests", "ImageNet": "pipelines"}).items():
        assert "FAIL" not in program(path, "--only", only, "--slice", slices)
    content = json.loads(path.read_text())
    (title, rows), *_ = first_hour.timings_tables(content)
    assert title == "2 × 3 × 64 × 64"
    assert [row[3] for row in rows] == ["pass", "forward", "forward and backward"]
    good = {row[0]: row[1] for row in first_hour.checks_table(content)[1:]}
    assert set(good) == set(first_hour.SLICES)
    assert "–" not in good.values()
