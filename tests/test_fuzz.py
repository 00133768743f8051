"""Random calls of everything: :mod:`tests.fuzz_calls`, whose million calls are run once; test_found.py has their finds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests import fuzz_calls
from tests.specs import SPECS

ROOT = Path(__file__).parent.parent
PARTS = 8
CALLS = 2000


@pytest.mark.parametrize("part", range(PARTS))
def test_random_calls(part: int) -> None:
    """The seed differs from that of the million calls; a failure names the call, which ``--only`` runs again."""
    found, wrong = fuzz_calls.run(1_000_000, part * CALLS // PARTS, (part + 1) * CALLS // PARTS)
    assert not wrong and sum(found.values()) == CALLS // PARTS
    assert found["the library's pixels"] > 20 and found["ValueError"] > 10 and found["TypeError"] > 10


@pytest.mark.parametrize("part", range(4))
def test_random_calls_of_what_is_new(part: int) -> None:
    """Batches of different sizes, parts of files, corruptions, annotations, recipes and processors: :mod:`tests.fuzz_new`."""
    found, wrong = fuzz_calls.run(1_000_000, part * 400, (part + 1) * 400, new=True)
    assert not wrong and sum(found.values()) == 400 and found["not made"] == 0
    for kind in (
        "ragged: as alone",
        "annotations: annotations follow",
        "corruption: the same again",
        "region: decoded",
    ):
        assert found[kind] > 5, kind


def test_random_calls_are_of_every_operator() -> None:
    """Of everything that a user calls and that has samples."""
    fuzzed = (fuzz_calls.Fuzzed(1_000_000, n).spec.name for n in range(CALLS) if n % 5 < 4)
    assert {*fuzzed} == {name for name, spec in SPECS.items() if spec.is_public and spec.samples}


def test_the_oracle_sees_wrong_pixels() -> None:
    """It reports pixels that differ by one level, and an error that may not be raised."""
    calls = (fuzz_calls.Fuzzed(0, n) for n in range(20_000) if n % 5 < 4)
    exact = (f for f in calls if torch.uint8 not in f.spec.tolerance and f.maker.dtype == torch.uint8)
    fuzzed = next(f for f in exact if not f.changes and fuzz_calls.checked(f) == "the library's pixels")
    right = fuzzed.spec.reference
    object.__setattr__(fuzzed.spec, "reference", lambda *args: right(*args) + 1)
    try:
        with pytest.raises(fuzz_calls.Wrong, match="not the library's pixels"):
            fuzz_calls.checked(fuzzed)
    finally:
        object.__setattr__(fuzzed.spec, "reference", right)
    fuzzed.function = lambda *args: torch.zeros(2, 3) @ torch.zeros(2, 3)
    with pytest.raises(fuzz_calls.Wrong, match="another error: RuntimeError"):
        fuzz_calls.checked(fuzzed)


def test_threads_give_the_bits_of_one() -> None:
    """A short run of :mod:`tests.soak`, whose million calls are made once."""
    command = [sys.executable, "-m", "tests.soak", "1500", "--threads", "4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "1500 calls by 4 threads" in done.stdout, done.stdout + done.stderr
