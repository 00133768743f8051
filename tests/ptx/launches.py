"""``python -m tests.ptx.launches``: Python's time for a call on a device, and the kernels that changing sizes compile.

The driver is a mocked one, so neither is compiled or run: what is printed is the time until all launches are queued,
less that of the driver itself. ``--sizes`` counts compilations instead, for 300 batches of random sizes.
"""

from __future__ import annotations

import os

os.environ["TRITON_INTERPRET"] = "0"

import argparse
import random
import time
from typing import Any

import torch
from torch import Tensor

import imgops.transforms  # noqa: F401  registers the operators of transforms
from imgops._operator import record
from tests.ptx.driver import mocked

JITTER = "brightness,contrast,saturation,hue"


def calls(x: Tensor) -> list[tuple[str, tuple[Any, ...]]]:
    """Return calls with parameters for each image of a batch."""
    n, _, height, width = x.shape
    each = torch.linspace(0.7, 1.3, n, dtype=torch.float64)
    boxes = torch.tensor([[0, 0, width // 2, height // 2]]).repeat(n, 1)
    turn = torch.eye(3, dtype=torch.float64)[:2].repeat(n, 1, 1)
    patch, mask = x[..., :64, :64].contiguous(), torch.zeros((n, 1, 64, 64), dtype=torch.uint8)
    half = max(height // 2, 1), max(width // 2, 1)
    return [
        ("crop", (x, 5, 7, width - 9, height - 9)),
        ("pad", (x, None, 4, 4, 4, 4, "reflect")),
        ("paste", (x, patch, mask, 3, 4)),
        ("erase", (x, x[..., :1, :1].contiguous(), boxes)),
        ("solarize", (x, each * 128)),
        ("color_matrix", (x, torch.rand(3, 4))),
        (
            "color_sequence",
            (x, torch.tensor([[0, 1, 2, 3]]).repeat(n, 1), torch.stack([each] * 4, -1), JITTER),
        ),
        ("equalize", (x,)),
        ("adjust_gamma", (x, each, each)),
        ("adjust_sharpness", (x, each)),
        ("gaussian_blur", (x, each[:, None].repeat(1, 2), 23, 23)),
        ("resize", (x, None, *half, "bilinear", True)),
        ("resize", (x, None, *half, "bilinear", False)),
        ("resize", (x, None, *half, "area", False)),
        ("resized_crop", (x, boxes, 224, 224, "bilinear", True)),
        ("warp_affine", (x, turn, None, height, width, "bilinear", "constant")),
    ]


def run(name: str, arguments: tuple[Any, ...], out: Tensor | None = None) -> Tensor:
    operator = record.table[f"imgops::{name}"]
    made: Tensor = operator.fake(*arguments) if out is None else out
    assert operator.cuda is not None
    operator.cuda(made, *arguments)
    return made


def of_calls() -> None:
    x = torch.empty((32, 3, 224, 224), dtype=torch.uint8)
    with mocked() as launches:
        for name, arguments in calls(x):
            out = run(name, arguments)
            before = launches.count
            run(name, arguments, out)
            count, best = launches.count - before, float("inf")
            for _ in range(15):
                start = time.thread_time()
                for _ in range(100):
                    run(name, arguments, out)
                best = min(best, (time.thread_time() - start) / 100)
            kind = " ".join(str(a) for a in arguments if isinstance(a, (str, bool)))
            print(f"{name} {kind}: {best * 1e6:.0f} us, {count} launches", flush=True)


#: The operators of a training run, one of each kind.
TRAINING = ("crop", "pad", "paste", "erase", "solarize", "color_matrix", "color_sequence", "equalize")
TRAINING += ("gaussian_blur", "resize", "resized_crop", "warp_affine")


def of_sizes(batches: int) -> None:
    random.seed(0)
    with mocked() as launches:
        for _ in range(batches):
            n, height, width = (
                random.choice([1, 8, 16, 32, 17]),
                random.randint(200, 700),
                random.randint(200, 700),
            )
            x = torch.empty((n, 3, height, width), dtype=torch.uint8)
            known = set()
            for name, arguments in calls(x):
                if name in TRAINING and name not in known:
                    known.add(name)
                    run(name, arguments)
    for name, keys in sorted(launches.compiled.items(), key=lambda item: -len(item[1])):
        print(f"{name}: {len(keys)}")
    print(f"{launches.kernels} kernels after {batches} batches of {len(TRAINING)} operators")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--batches", type=int, default=300)
    options = parser.parse_args()
    if options.sizes:
        of_sizes(options.batches)
    else:
        of_calls()


if __name__ == "__main__":
    main()
