"""Sizes that could kill a process raise an error instead; tested in a separate process with a limit of memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import memory_program
from tests.tiers import nightly

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")


def run(gigabytes: int, what: str) -> dict[str, str]:
    command = [sys.executable, "-m", "tests.limits_program", str(gigabytes), what]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0 and done.stdout.endswith("alive\n"), done.stdout[-2000:] + done.stderr[-3000:]
    lines = done.stdout.splitlines()[:-1]
    found = dict(line.rsplit(": ", 1) if "WRONG" not in line else line.split(": ", 1) for line in lines)
    assert [f"{k}: {v}" for k, v in found.items() if "WRONG" in v] == []
    return found


@nightly
@pytest.mark.parametrize("gigabytes", [8, 16])
def test_more_than_there_is_memory_for(gigabytes: int) -> None:
    found = run(gigabytes, "huge")
    assert len(found) == 19 and set(found.values()) == {"error", "memory"}
    assert found["decode a bomb"] == "error" and found["clahe"] == "memory"
    assert found["resize to 2**62"] == "error"


@nightly
def test_memory_is_that_of_the_page() -> None:
    """The table of docs/security.rst names each call of tests/memory_program.py, and none takes more."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    command = [sys.executable, "-m", "tests.memory_program"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert {name: limit for name, limit in page().items() if found[name] > limit} == {}
    assert max(found.values()) > 30  # it measures something


def page() -> dict[str, float]:
    text = (ROOT / "docs" / "security.rst").read_text()
    part = text[text.index("How much memory a call takes") : text.index("How much was tested")]
    rows = re.findall(r"   \* - (.+)\n     - ([\d.]+)\n", part)
    return {name: float(limit) for name, limit in rows}


def test_the_page_of_memory_has_every_call() -> None:
    assert set(page()) == set(memory_program.calls())


@nightly
def test_a_million_pixels_in_a_row() -> None:
    found = run(16, "long")
    assert len(found) > 120 and set(found.values()) == {"returned", "error"}
    refused = {name.split()[0] for name, what in found.items() if what == "error"}
    assert refused == {
        "resized_crop",
        "encode_image",
        "jpeg",
        "webp",
        "contain",
    }  # boxes; formats; a side of 0
