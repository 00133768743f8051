"""Exact counts of the work that the tests make, which budget.json limits.

A suite grows by its slow parts: graphs that are compiled, launches of Triton's kernels that its interpreter runs,
kernels that are compiled to PTX. A complete run of ``make test`` adds up these counts over all of its processes, and
fails if one is larger than its budget. To add such a test, make another one cheaper, or raise the budget in the
same change, where a reviewer sees it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from pathlib import Path

FILE = Path(__file__).with_name("budget.json")
#: Where each process of a run leaves its counts.
FOLDER = "IMGOPS_TEST_COUNTS"

counts: Counter[str] = Counter()


def begin() -> None:
    """Make the folder that all processes of this run share."""
    os.environ.setdefault(FOLDER, tempfile.mkdtemp(prefix="imgops-counts-"))


def keep() -> None:
    """Leave the counts of this process, if they belong to a run of the tests."""
    folder = os.environ.get(FOLDER)
    if folder and counts:
        Path(folder, f"{os.getpid()}.json").write_text(json.dumps(counts))


def total() -> Counter[str]:
    """Return the counts of all processes that have ended."""
    found: Counter[str] = Counter()
    for path in Path(os.environ[FOLDER]).glob("*.json"):
        found.update(json.loads(path.read_text()))
    return found


def exceeded(found: Counter[str]) -> list[str]:
    """Return a line for each count that is larger than its budget."""
    budget = json.loads(FILE.read_text())
    return [
        f"{name}: {found[name]:,}, but the budget in tests/{FILE.name} is {most:,}"
        for name, most in budget.items()
        if found[name] > most
    ]
