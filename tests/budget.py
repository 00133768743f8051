"""The CPU seconds of a run of ``make test``, over all of its processes, and their limit.

A suite grows by one slow test at a time, and a slow suite is not run. A complete run of the quick tier fails above the
limit: mark a test ``nightly``, or make one cheaper. ``IMGOPS_TEST_CPU_SECONDS`` sets another limit for a slower machine.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

LIMIT_S = int(os.environ.get("IMGOPS_TEST_CPU_SECONDS", "520"))
#: Where each process of a run leaves its seconds.
FOLDER = "IMGOPS_TEST_SECONDS"


def begin() -> None:
    """Make the folder that all processes of this run share."""
    os.environ.setdefault(FOLDER, tempfile.mkdtemp(prefix="imgops-seconds-"))


def keep() -> None:
    """Leave the seconds of this worker and of the processes that it started."""
    Path(os.environ[FOLDER], f"{os.getpid()}.json").write_text(json.dumps(sum(os.times()[:4])))


def total() -> float:
    """Return the seconds of this process, without its children, and of all workers that have ended."""
    return sum(os.times()[:2]) + sum(json.loads(p.read_text()) for p in Path(os.environ[FOLDER]).glob("*"))
