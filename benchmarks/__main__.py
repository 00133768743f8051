"""``python -m benchmarks [--quick]``: time every case and write the table to benchmarks/results/."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import cv2
import torch
from tqdm import tqdm

from benchmarks.cases import BENCHMARKS, EVERY_SIZE, Case
from benchmarks.contributed import FOLDER, read
from benchmarks.table import Row, machine, write, write_json

RESULTS = Path(__file__).parent / "results"


def cases(quick: bool) -> list[Case]:
    sizes = ((512, 1),) if quick else tuple((s, b) for s in (32, 224, 512, 2048) for b in (1, 16))
    return [
        Case(operator, dtype, layout, size, batch)
        for size, batch in sizes
        for operator in (BENCHMARKS if (size, batch) == (512, 1) else EVERY_SIZE)
        for dtype in (torch.uint8, torch.float32)
        for layout in ("planar", "interleaved")
    ]


def measure(case: Case, seconds: float) -> Row:
    """Time the columns alternately, in rounds, so a temporary slowdown of the machine affects all columns."""
    calls = {name: call for name, call in case.columns().items() if call is not None}
    loops = {name: _loops(call) for name, call in calls.items()}
    rounds: list[dict[str, float]] = []
    started, elapsed = time.perf_counter(), 0.0
    while len(rounds) < 2 or (elapsed < 4 and len(rounds) < 5) or (elapsed < seconds and len(rounds) < 200):
        rounds.append({name: _time(call, loops[name]) for name, call in calls.items()})
        elapsed = time.perf_counter() - started
    return Row(case, rounds)


def _loops(call: Callable[[], Any]) -> int:
    once = _time(call, 1)
    if once < 1e5:  # the very first calls may be slow for other reasons
        once = min(_time(call, 1) for _ in range(3))
    return max(1 if once > 1e5 else 5, min(200, int(1000 / once)))


def _time(call: Callable[[], Any], loops: int) -> float:
    if loops > 1:
        call()  # the previous column left other memory in the cache
    start = time.perf_counter()
    for _ in range(loops):
        call()
    return (time.perf_counter() - start) / loops * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("--quick", action="store_true", help="512 x 512, batch 1 only; written to quick.md")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each case (default: %(default)s)")
    parser.add_argument("--only", default="", help="operators whose name contains this; written to quick.md")
    parser.add_argument("--contribute", metavar="NAME", help="write for benchmarks/results/contributed")
    options = parser.parse_args()
    if options.contribute and options.only:
        parser.error("a contribution has every operator: leave --only out")
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    wanted = [c for c in cases(options.quick) if options.only in c.operator]
    rows = [measure(case, options.seconds) for case in tqdm(wanted, ncols=78)]
    name = f"{date.today()}-{machine()['slug']}"
    if options.contribute:
        found = read(write_json(rows, FOLDER / name, options.contribute))
        print(f"{len(found['rows'])} rows in {found.path}")
    else:
        print(write(rows, RESULTS / ("quick" if options.quick or options.only else name)))


if __name__ == "__main__":
    main()
