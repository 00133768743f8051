"""Sizes that could kill a process raise an error instead; tested in a separate process with a limit of memory."""

from __future__ import annotations

import json
import re
import sys

import pytest

from tests import memory_program
from tests.checks import ROOT, run_python
from tests.tiers import nightly

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit of memory is Linux's")


def run(gigabytes: int, what: str) -> dict[str, str]:
    *lines, last = run_python("-m", "tests.limits_program", str(gigabytes), what).splitlines()
    found = dict(line.rsplit(": ", 1) if "WRONG" not in line else line.split(": ", 1) for line in lines)
    assert last == "alive" and [f"{k}: {v}" for k, v in found.items() if "WRONG" in v] == []
    return found


@nightly
@pytest.mark.parametrize("gigabytes", [8, 16])
def test_more_than_there_is_memory_for(gigabytes: int) -> None:
    found = run(gigabytes, "huge")
    assert len(found) == 19 and set(found.values()) == {"error", "memory"}
    assert found["decode a bomb"] == "error" and found["clahe"] == "memory"
    assert found["resize to 2**62"] == "error"


@nightly
@pytest.mark.needs("native", "libjpeg")
def test_memory_is_that_of_the_page() -> None:
    """The table of docs/security.rst names each call of tests/memory_program.py, and none takes more."""
    found = json.loads(run_python("-m", "tests.memory_program"))
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
