"""Random calls of everything: :mod:`tests.fuzz`, whose million calls are made once; test_found.py has their finds."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
import torch

from tests import fuzz, fuzz_calls
from tests.checks import run_python
from tests.specs import SPECS
from tests.tiers import nightly, nightly_unless

#: How many calls of each kind are in a part of the night, and outcomes that more than some of them must have.
OUTCOMES = {
    "calls": (250, 10, ["the library's pixels", "ValueError", "TypeError"]),
    "new": (400, 5, ["ragged: as alone", "annotations: annotations follow"]),
}


@pytest.mark.parametrize(
    ("kind", "part"), nightly_unless(lambda row: row == ("calls", 0), product(OUTCOMES, range(8)))
)
def test_random_calls(kind: str, part: int, whole: bool) -> None:
    """The seed differs from that of the million calls; a failure names the call, which ``--only`` runs again."""
    count, least, outcomes = OUTCOMES[kind]
    made = count if whole else 60
    found, wrong = fuzz.run(kind, 1_000_000, part * count, part * count + made)
    assert not wrong and sum(found.values()) == made
    assert not whole or all(found[outcome] > least for outcome in outcomes), found


@nightly
def test_random_calls_are_of_every_operator() -> None:
    """Of everything that a user calls and that has samples."""
    texts = [fuzz.KINDS["calls"](1_000_000, n)[0] for n in range(2000) if n % 5 < 4]
    assert {text.partition("-")[0] for text in texts} == {
        n for n, s in SPECS.items() if s.is_public and s.samples
    }


def test_the_oracle_sees_wrong_pixels() -> None:
    """It reports pixels that differ by one level, and an error that may not be raised."""
    calls = (fuzz_calls.Fuzzed(Random(n)) for n in range(20_000))
    exact = (f for f in calls if torch.uint8 not in f.spec.tolerance and f.maker.dtype == torch.uint8)
    fuzzed = next(f for f in exact if not f.changes and fuzz_calls.check(f) == "the library's pixels")
    right = fuzzed.spec.reference
    object.__setattr__(fuzzed.spec, "reference", lambda *args: right(*args) + 1)
    try:
        with pytest.raises(fuzz.Wrong, match="not the library's pixels"):
            fuzz_calls.check(fuzzed)
    finally:
        object.__setattr__(fuzzed.spec, "reference", right)
    fuzzed.function = lambda *args: torch.zeros(2, 3) @ torch.zeros(2, 3)
    with pytest.raises(fuzz.Wrong, match="another error: RuntimeError"):
        fuzz_calls.check(fuzzed)


@nightly
def test_threads_give_the_bits_of_one() -> None:
    """A short run of :mod:`tests.soak`, whose million calls are made once."""
    assert "1500 calls by 4 threads" in run_python("-m", "tests.soak", "1500", "--threads", "4")
