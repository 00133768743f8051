"""The CPU seconds of a run of ``make test``, over all of its processes, and their limit.

A suite grows by one slow test at a time, and a slow suite is not run. A complete run of the quick tier fails above the
limit: mark a test ``nightly``, or make one cheaper. A slower machine gets more, by the time that it takes for a
fixed piece of work.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np

LIMIT_S = 520
#: The seconds of ``_piece_of_work`` on the machine that the limit was measured on, an Intel Xeon with AVX-512.
PIECE_S = 0.1
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


def limit() -> float:
    return LIMIT_S * max(1.0, min(_piece_of_work() for _ in range(5)) / PIECE_S)


def _piece_of_work() -> float:
    start = time.process_time()
    table: dict[str, int] = {}
    for i in range(200_000):
        table[str(i % 1000)] = i * i % 7
    for _ in range(20):
        np.sort(np.arange(200_000)[::-1] % 1009)
    return time.process_time() - start
