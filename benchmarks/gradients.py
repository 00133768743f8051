"""``python -m benchmarks.gradients``: forward and backward passes, compared with torchvision, kornia and plain PyTorch.

Float32 images. A row has the gradient of the image alone, of the image and all parameters, or of these with
one value for each sample. The columns take turns; each ratio is the median over the rounds of one run of
imgops' time, forward and backward together, over that of the fastest peer. Peak memory is the resident
memory of a process that runs one forward and one backward, without its inputs and their gradients.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from importlib.metadata import version
from statistics import median
from typing import Any

import cv2
import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.__main__ import RESULTS
from benchmarks.gradient_rows import Row, rows, transform_rows
from benchmarks.table import machine
from tests.memory_program import peak

SHAPES = ((4, 224), (16, 64))
OF = {"image": "the image", "all": "all", "each": "all, one value for each sample"}
Step = Callable[[], tuple[float, float]]


def found_rows(n: int, size: int, transforms: bool) -> Iterator[tuple[Row, str]]:
    """Return each row with each of its kinds of gradient."""
    if transforms:
        for per_sample in (False, True):
            for row in transform_rows(size, per_sample):
                yield row, "each" if per_sample else "image"
        return
    for row in rows(n, size, size):
        yield row, "image"
        if row.parameters or row.others:
            yield row, "all"
        if row.parameters:
            yield row, "each"


def inputs_of(row: Row, of: str, n: int, size: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    image = torch.rand((n, 3, size, size), generator=generator) if row.image is None else row.image
    parameters = [p.expand(n, *p.shape) if of == "each" else p for p in row.parameters]
    needs = [True, *(of != "image" for _ in (*parameters, *row.others))]
    return [
        x.clone().requires_grad_(b) for x, b in zip([image, *parameters, *row.others], needs, strict=True)
    ]


def calls_of(row: Row, of: str) -> dict[str, Callable[..., Tensor]]:
    of_image = () if of == "image" or not (row.parameters or row.others) else row.of_image_only
    return {"imgops": row.call, **{k: f for k, f in row.peers.items() if k not in of_image}}


def step(call: Callable[..., Tensor], inputs: list[Tensor]) -> Step:
    """Return a function that runs forward and backward, and returns the seconds of each."""
    torch.manual_seed(0)
    gradient = torch.rand_like(call(*inputs))

    def run() -> tuple[float, float]:
        for x in inputs:
            x.grad = None
        start = time.perf_counter()
        out = call(*inputs)
        between = time.perf_counter()
        # A crop may have another size at each draw.
        out.backward(gradient if out.shape == gradient.shape else torch.ones_like(out))
        return between - start, time.perf_counter() - between

    run()
    return run


def steps_of(row: Row, of: str, n: int, size: int, compiled: bool) -> dict[str, Step]:
    """Return the columns whose library has this gradient."""
    inputs, found = inputs_of(row, of, n, size), {}
    for name, call in calls_of(row, of).items():
        try:
            found[name] = step(torch.compile(call, dynamic=False) if compiled else call, inputs)
        except Exception:
            if name == "imgops":
                raise
    return found


def measured(columns: dict[str, Step], seconds: float) -> list[dict[str, tuple[float, float]]]:
    """Return the seconds of forward and backward of each column, round by round; all draw from the same seeds."""
    found: list[dict[str, tuple[float, float]]] = []
    started = time.perf_counter()
    while len(found) < 5 or (time.perf_counter() - started < seconds and len(found) < 200):
        row = {}
        for name, run in columns.items():
            torch.manual_seed(len(found))
            row[name] = run()
        found.append(row)
    return found


def summary(found: list[dict[str, tuple[float, float]]]) -> dict[str, Any]:
    """Return the medians of forward and backward, in milliseconds, and the ratio to the fastest peer."""
    columns = {k: [1e3 * median(r[k][i] for r in found) for i in (0, 1)] for k in found[0]}
    peers = {k: sum(v) for k, v in columns.items() if k != "imgops"}
    fastest = min(peers, key=peers.__getitem__) if peers else None
    ratio = median(sum(r["imgops"]) / sum(r[fastest]) for r in found) if fastest else None
    return {"columns": columns, "peer": fastest, "ratio": ratio}


# -- memory ------------------------------------------------------------------------------------------------


def peaks(row: Row, of: str, n: int, size: int) -> dict[str, float]:
    """Return the peak memory of each column, in images: what a forward and a backward add to their inputs."""
    inputs, found = inputs_of(row, of, n, size), {}
    for name, call in calls_of(row, of).items():
        with suppress(Exception):
            run = step(call, inputs)
            for x in inputs:
                x.grad = None
            found[name] = peak(lambda _, run=run: run(), inputs[0])
    return found


def memory(only: str) -> dict[str, dict[str, float]]:
    """Measure in a process whose freed memory goes back to the system at once."""
    command = [sys.executable, "-m", "benchmarks.gradients", "--memory", "--only", only]
    found = subprocess.run(
        command,
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "IMGOPS_MEMORY_POOL": "0"},
        check=True,
        stdout=subprocess.PIPE,
    )
    return dict(json.loads(found.stdout))


# -- the page ----------------------------------------------------------------------------------------------

_HEAD = "| row | gradient of | imgops, ms | backward / forward | fastest peer | its ms | ratio |"


def line(row: Row, of: str, found: dict[str, Any], peak: dict[str, float] | None, limit: float) -> str:
    forward, backward = found["columns"]["imgops"]
    cells = [row.name, OF[of], f"{forward + backward:.2f}", f"{backward / forward:.1f}"]
    peer, ratio = found["peer"], found["ratio"]
    if peer is None:
        cells += ["–", "–", "–"]
    else:
        cells += [
            peer,
            f"{sum(found['columns'][peer]):.2f}",
            f"**{ratio:.2f}**" if ratio > limit else f"{ratio:.2f}",
        ]
    if peak is not None:
        least = min((v for k, v in peak.items() if k != "imgops"), default=None)
        cells += [f"{peak['imgops']:.1f}", "–" if least is None else f"{least:.1f}"]
    return "| " + " | ".join(cells) + " |"


def table(
    title: str, cases: list[tuple[Row, str]], n: int, size: int, peak: dict[str, Any] | None, options: Any
) -> list[str]:
    head = _HEAD + (" peak memory, images | least of the peers |" if peak is not None else "")
    lines = ["", f"## {title}", "", head, "|---" * (head.count("|") - 1) + "|"]
    ratios, over = [], 0
    for row, of in tqdm(cases, ncols=78, desc=title[:30]):
        found = summary(measured(steps_of(row, of, n, size, options.compile), options.seconds))
        limit = 1.3 if row.fixed or size < 128 else 1.1  # where the time is that of a call and of memory
        lines.append(line(row, of, found, None if peak is None else peak[f"{row.name}, {of}"], limit))
        if found["ratio"] is not None:
            ratios.append(found["ratio"])
            over += found["ratio"] > limit
        if options.compile:
            torch.compiler.reset()
    lines += [
        "",
        f"{len(ratios)} rows with a peer: median {median(ratios):.2f}, {over} in bold." if ratios else "",
    ]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gradients")
    parser.add_argument("--seconds", type=float, default=0.4, help="for each row (default: %(default)s)")
    parser.add_argument("--only", default="", help="rows whose name contains this; printed, not written")
    parser.add_argument(
        "--compile", action="store_true", help="compile all columns with inductor; the image's gradient"
    )
    parser.add_argument("--memory", action="store_true", help="print the peaks of memory as JSON, alone")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    cv2.setNumThreads(1)

    def cases(n: int, size: int, transforms: bool) -> list[tuple[Row, str]]:
        found = [(r, of) for r, of in found_rows(n, size, transforms) if options.only in r.name]
        return [(r, of) for r, of in found if of == "image" or not options.compile]

    n, size = SHAPES[0]
    if options.memory:
        all_cases = [c for transforms in (False, True) for c in cases(n, size, transforms)]
        print(json.dumps({f"{row.name}, {of}": peaks(row, of, n, size) for row, of in all_cases}))
        return
    facts = machine()
    packages = ("torch", "torchvision", "kornia")
    lines = [
        "# Forward and backward passes",
        "",
        f"{facts['cpu']}; " + ", ".join(f"{p} {version(p)}" for p in packages) + ".",
        "",
        *(__doc__ or "").splitlines()[2:],
        "",
        "**Bold**: imgops takes more than 1.1 times as long, or 1.3 times on images of 64 × 64 and in rows that only",
        "copy or add images. A dash: no peer has this gradient.",
    ]
    backend = ", compiled by inductor" if options.compile else ""
    peak = None if options.compile else memory(options.only)
    for transforms, kind in ((False, "Operators"), (True, "Transforms")):
        for n, size in SHAPES[:1] if options.compile else SHAPES:
            for threads in (1,) if options.compile else (1, 2):
                torch.set_num_threads(threads)
                title = (
                    f"{kind}, {n} images of {size} × {size}, {threads} thread{'s'[: threads - 1]}{backend}"
                )
                used = peak if (n, threads) == (SHAPES[0][0], 1) else None
                made = table(title, cases(n, size, transforms), n, size, used, options)
                lines += made
                if options.only:
                    print("\n".join(made), flush=True)
    if options.only:
        return
    name = "gradients-compiled" if options.compile else "gradients"
    path = RESULTS / f"{name}-{date.today()}-{facts['slug']}.md"
    path.write_text("\n".join([*lines, ""]))
    print(path)


if __name__ == "__main__":
    main()
