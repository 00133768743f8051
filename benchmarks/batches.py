"""``python -m benchmarks.batches``: the time of pipelines in batches, in a graph, and on a busy machine.

The images are uint8, 256 x 256, and the pipelines those of ImageNet and SimCLR, with results of 224 x 224 float32. Each number
is a median; the calls that a ratio compares take turns, and seeds are set outside of the time.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import date
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.__main__ import RESULTS
from benchmarks.table import machine
from imgops import transforms as v2

ROUNDS = 9
LAST = [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
Call = Callable[[], Any]


def imagenet(size: int, **options: Any) -> v2.Compose:
    return v2.Compose([v2.RandomResizedCrop(size), v2.RandomHorizontalFlip(), *LAST], **options)


def simclr(size: int, **options: Any) -> v2.Compose:
    views = [
        v2.RandomApply([v2.ColorJitter(0.8, 0.8, 0.8, 0.2)], 0.8),
        v2.RandomGrayscale(0.2),
        v2.RandomApply([v2.GaussianBlur(23, (0.1, 2.0))], 0.5),
    ]
    return v2.Compose([v2.RandomResizedCrop(size), v2.RandomHorizontalFlip(), *views, *LAST], **options)


PIPELINES = {"ImageNet": imagenet, "SimCLR": simclr}


def images(count: int, side: int) -> Tensor:
    return torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8)


def medians(*calls: Call, rounds: int = ROUNDS, threads: tuple[int, ...] = ()) -> list[float]:
    """Return the median microseconds of calls that take turns; each takes at least a hundredth of a second.

    Each may have its own number of threads, which is set before its time.
    """
    counts, times = [], [[] for _ in calls]
    for call in calls:
        call(), call()  # the second makes a plan
        start = time.perf_counter()
        call()
        counts.append(max(1, int(0.01 / (time.perf_counter() - start))))
    for i in range(rounds):
        for k, (call, count, found) in enumerate(zip(calls, counts, times, strict=True)):
            if threads:
                torch.set_num_threads(threads[k])
                call()
            torch.manual_seed(i)
            start = time.perf_counter()
            for _ in range(count):
                call()
            found.append((time.perf_counter() - start) / count * 1e6)
    return [statistics.median(found) for found in times]


def batches() -> list[str]:
    lines = [
        "| pipeline, µs an image | one | batch of 1 | 16 | 64 | 256 | 256 over 16 | faults an image at 256 |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|")
    for name, make in PIPELINES.items():
        one, each = make(224), make(224, per_sample=True)
        given = {count: images(count, 256) for count in (1, 16, 64, 256)}
        calls = [partial(one, given[1][0]), *(partial(each, x) for x in given.values())]
        alone, *found = medians(*calls)
        per_image = [t / count for t, count in zip(found, given, strict=True)]
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(3):
            each(given[256])
        faults = (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 3 / 256
        cells = [f"{t:.0f}" for t in (alone, *per_image)]
        lines.append(f"| {name} | {' | '.join(cells)} | {per_image[3] / per_image[1]:.2f} | {faults:.1f} |")
    return lines


def serial() -> list[str]:
    """Return the time of images of 8 x 8, which have next to no pixels."""
    lines = ["| pipeline, 8 x 8 | one image, µs | 256 images, µs an image |", "|---|---|---|"]
    for name, make in PIPELINES.items():
        one, each, x = make(8), make(8, per_sample=True), images(256, 8)
        alone, batch = medians(partial(one, x[0]), partial(each, x))
        lines.append(f"| {name} | {alone:.0f} | {batch / 256:.1f} |")
    return lines


def threads() -> list[str]:
    lines = ["| pipeline, batch of 64 | one thread, ms | two threads, times as fast |", "|---|---|---|"]
    for name, make in PIPELINES.items():
        each, x = make(224, per_sample=True), images(64, 256)

        one, two = medians(partial(each, x), partial(each, x), threads=(1, 2))
        lines.append(f"| {name} | {one / 1000:.1f} | {one / two:.2f} |")
    torch.set_num_threads(1)
    return lines


def graphs() -> list[str]:
    lines = [
        "| pipeline, one image | eager, µs | aot_eager, more µs | inductor, more µs |",
        "|---|---|---|---|",
    ]
    empty = images(1, 4)[0].permute(1, 2, 0).contiguous().permute(2, 0, 1)
    plain = torch.ops.imgops_transforms.planar
    entry = [torch.compile(lambda x: plain(x), backend=b) for b in ("aot_eager", "inductor")]
    rows = {"an empty operator": (plain, entry, empty)}
    for name, make in PIPELINES.items():
        compiled = [torch.compile(make(224), backend=b, fullgraph=True) for b in ("aot_eager", "inductor")]
        rows[name] = make(224), compiled, images(1, 256)[0]
    for name, (eager, compiled, x) in rows.items():
        first, *others = medians(*(partial(f, x) for f in (eager, *compiled)))
        more = " | ".join(f"{other - first:.0f}" for other in others)
        lines.append(f"| {name} | {first:.0f} | {more} |")
    return lines


@contextmanager
def busy_neighbors(count: int) -> Iterator[None]:
    """Run programs that compute all the time next to what is measured."""
    with ExitStack() as stack:
        for _ in range(count):
            neighbor = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(neighbor.kill)
        yield


def busy() -> list[str]:
    lines = ["| two busy processes | one thread, ms | two threads, times as long |", "|---|---|---|"]
    with busy_neighbors(2):
        for name, make in PIPELINES.items():
            for what, call, x in (
                ("one image", make(224), images(1, 256)[0]),
                ("batch of 16", make(224, per_sample=True), images(16, 256)),
            ):
                one, two = medians(partial(call, x), partial(call, x), rounds=15, threads=(1, 2))
                lines.append(f"| {name}, {what} | {one / 1000:.2f} | {two / one:.2f} |")
    torch.set_num_threads(1)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=["batches", "serial", "threads", "graphs", "busy"])
    only = parser.parse_args().only
    torch.set_num_threads(1)
    known = machine()
    lines = [
        f"# Pipelines in batches, {date.today()}",
        "",
        f"{known['cpu']}, one thread unless a row says more.",
    ]
    for part in (batches, serial, threads, graphs, busy):
        if only in (None, part.__name__):
            found = part()
            print("\n".join(found), flush=True)
            lines += ["", *found]
    if only is None:
        (RESULTS / f"batches-{date.today()}-{known['slug']}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
