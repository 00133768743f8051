"""``python -m benchmarks.corruptions``: the time of each corruption of ImageNet-C, compared with imagecorruptions.

imagecorruptions 1.1.2 needs an old scikit-image, and therefore a separate environment (described in
tests/data/corruptions.py). ``--python old/bin/python`` runs it there, on the same picture, alternating with
imgops. The table shows medians over all rounds, in milliseconds for one image of 224 x 224 at severity 3:
imagecorruptions, imgops, imgops per image of a batch of 16, and how many times as fast imgops is on the
single image.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median

import torch

from imgops import transforms as v2
from imgops.transforms.imagenet_c.formulas import FORMULAS

SIDE, SEVERITY, TURNS = 224, 3, 7
#: The program for the other environment: it times a corruption for each name that it reads.
OTHER = f"""
import sys, time, warnings
warnings.simplefilter("ignore")
import numpy as np
from imagecorruptions import corrupt
image = np.random.RandomState(0).randint(0, 256, ({SIDE}, {SIDE}, 3)).astype(np.uint8)
for name in map(str.strip, sys.stdin):
    start = time.perf_counter()
    corrupt(image, {SEVERITY}, name)
    print(time.perf_counter() - start, flush=True)
"""


def timed(call: Callable[[torch.Tensor], object], images: torch.Tensor) -> float:
    start = time.perf_counter()
    call(images)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", default="", help="an interpreter that has imagecorruptions")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (16, 3, SIDE, SIDE), dtype=torch.uint8, generator=generator)
    other = None
    if options.python:
        command = [options.python, "-c", OTHER]
        other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def reference(name: str) -> float:
        if other is None or other.stdin is None or other.stdout is None:
            return float("nan")
        print(name, file=other.stdin, flush=True)
        return float(other.stdout.readline())

    print(f"{'':20}{'imagecorruptions':>18}{'imgops':>9}{'of a batch':>12}{'times':>8}")
    for name in FORMULAS:
        transform = v2.Corruption(name, SEVERITY)
        turns = [
            (reference(name), timed(transform, images[0]), timed(transform, images) / 16)
            for _ in range(TURNS)
        ][1:]
        theirs, single, each = (median(x) * 1e3 for x in zip(*turns, strict=True))
        print(f"{name:20}{theirs:18.2f}{single:9.2f}{each:12.2f}{theirs / single:8.1f}", flush=True)
    if other is not None:
        other.terminate()


if __name__ == "__main__":
    sys.exit(main())
