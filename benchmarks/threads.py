"""``python -m benchmarks.threads``: how many times as fast two threads are as one, in both memory formats.

The inputs are a batch of 16 uint8 images of 512 x 512, one image of 2048 x 2048, and pipelines with
``per_sample=True``. One thread and two threads take turns; each number is a ratio of medians. The last table is
measured next to two programs that compute all the time, so that two threads have about one core.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import date
from typing import Any

import torch
from torch import Tensor

import imgops
from benchmarks.__main__ import RESULTS
from benchmarks.batches import busy_neighbors
from benchmarks.table import machine
from imgops import transforms as v2

ROUNDS, CALLS = 9, 5
TURN = torch.tensor([[1.0, 0.1, 3.0], [0.1, 1.0, 2.0]])
BEND = torch.eye(3) + 0.0001
OPERATORS: dict[str, Callable[[Any], Any]] = {
    "resize": lambda x: imgops.resize(x, (224, 224)),
    "warp_affine": lambda x: imgops.warp_affine(x, TURN),
    "warp_perspective": lambda x: imgops.warp_perspective(x, BEND),
    "gaussian_blur": lambda x: imgops.gaussian_blur(x, 9, 2.0),
    "box_blur": lambda x: imgops.box_blur(x, 5),
    "median_blur": lambda x: imgops.median_blur(x, 3),
    "filter2d": lambda x: imgops.filter2d(x, torch.ones(3, 3)),
    "adjust_sharpness": lambda x: imgops.adjust_sharpness(x, 1.5),
    "adjust_brightness": lambda x: imgops.adjust_brightness(x, 1.2),
    "adjust_contrast": lambda x: imgops.adjust_contrast(x, 1.2),
    "adjust_saturation": lambda x: imgops.adjust_saturation(x, 1.2),
    "adjust_hue": lambda x: imgops.adjust_hue(x, 0.1),
    "color_matrix": lambda x: imgops.color_matrix(x, torch.eye(3)),
    "cvt_color": lambda x: imgops.cvt_color(x, "rgb2hsv"),
    "grayscale": lambda x: imgops.grayscale(x),
    "equalize": lambda x: imgops.equalize(x),
    "autocontrast": lambda x: imgops.autocontrast(x),
    "sobel": lambda x: imgops.sobel(x, 1, 0),
    "canny": lambda x: imgops.canny(x[..., :1, :, :].contiguous(), 50, 100),
    "erode": lambda x: imgops.erode(x, 3),
    "jpeg": lambda x: imgops.jpeg(x, 50),
    "pad": lambda x: imgops.pad(x, 8, "reflect"),
    "flip": lambda x: imgops.flip(x),
    "lut (waits for memory)": lambda x: imgops.lut(x, torch.arange(256, dtype=torch.uint8).flip(0)),
    "crop (waits for memory)": lambda x: imgops.crop(x, (5, 5, 500, 500)),
}


def pipelines() -> dict[str, tuple[Any, Tensor]]:
    last = [v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])]
    crop = [v2.RandomResizedCrop(224, antialias=True), v2.RandomHorizontalFlip()]
    views = [
        v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
        v2.RandomGrayscale(0.2),
        v2.RandomApply([v2.GaussianBlur(23, (0.1, 2.0))], p=0.5),
    ]
    large = torch.randint(0, 256, (32, 3, 375, 500), dtype=torch.uint8)
    return {
        "ImageNet, 32 images": (v2.Compose([*crop, *last], per_sample=True), large),
        "SimCLR, 32 images": (v2.Compose([*crop, *views, *last], per_sample=True), large),
        "RandAugment, 32 of 224 x 224": (
            v2.Compose([v2.RandAugment()], per_sample=True),
            large[..., :224, :224].contiguous(),
        ),
    }


def gain(call: Callable[[Any], Any], x: Tensor) -> tuple[float, float]:
    """Return the milliseconds on one thread, and the speedup with two threads."""
    found: dict[int, list[float]] = {1: [], 2: []}
    for i in range(ROUNDS):
        for threads, times in found.items():
            torch.set_num_threads(threads)
            call(x)  # OpenCV changes its number of threads in the next call
            for _ in range(CALLS):
                torch.manual_seed(i)
                before = time.perf_counter()
                call(x)
                times.append(time.perf_counter() - before)
    one, two = (statistics.median(times) for times in found.values())
    return one * 1000, one / two


def row(name: str, call: Callable[[Any], Any], x: Tensor) -> str:
    interleaved = x.movedim(-3, -1).contiguous().movedim(-1, -3)
    cells = [
        f"{milliseconds:.1f} | {times:.2f}"
        for milliseconds, times in (gain(call, x), gain(call, interleaved))
    ]
    line = f"| {name} | {' | '.join(cells)} |"
    print(line, flush=True)
    return line


def table() -> list[str]:
    before = torch.get_num_threads()
    head = ["| what | planar, ms | two threads | interleaved, ms | two threads |", "|---|---|---|---|---|"]
    lines = ["16 images of 512 x 512:", "", *head]
    batch = torch.randint(0, 256, (16, 3, 512, 512), dtype=torch.uint8)
    lines += [row(f"`{name}`", call, batch) for name, call in OPERATORS.items()]
    lines += ["", "One image of 2048 x 2048:", "", *head]
    names = [
        name for name in OPERATORS if name.startswith(("resize", "warp", "gaussian", "adjust", "cvt", "gray"))
    ]
    image = torch.randint(0, 256, (3, 2048, 2048), dtype=torch.uint8)
    lines += [row(f"`{name}`", OPERATORS[name], image) for name in names]
    lines += ["", "Pipelines with `per_sample=True`:", "", *head]
    lines += [row(name, call, x) for name, (call, x) in pipelines().items()]
    torch.set_num_threads(before)
    return lines


def busy_table() -> list[str]:
    """Return how many times as long two threads take as one, where other programs take both cores."""
    before, calls = (
        torch.get_num_threads(),
        {f"`{name}`, 16 images": call for name, call in OPERATORS.items()},
    )
    batch = torch.randint(0, 256, (16, 3, 512, 512), dtype=torch.uint8)
    rows = {name: (call, batch) for name, call in calls.items()}
    rows |= {
        f"`{name}`, one image of 224 x 224": (OPERATORS[name], batch[0, :, :224, :224]) for name in OPERATORS
    }
    lines = ["| what | planar | interleaved |", "|---|---|---|"]
    with busy_neighbors(2):
        for name, (call, x) in (rows | pipelines()).items():
            interleaved = x.movedim(-3, -1).contiguous().movedim(-1, -3)
            cells = [f"{1 / gain(call, memory)[1]:.2f}" for memory in (x.contiguous(), interleaved)]
            lines.append(f"| {name} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    torch.set_num_threads(before)
    return lines


def main() -> None:
    facts = machine()
    lines = [
        "# Two threads compared with one",
        "",
        f"{facts['cpu']}; torch {torch.__version__}.",
        "",
        *table(),
    ]
    lines += [
        "",
        "How many times as long two threads take as one next to two programs that compute all the time:",
        "",
    ]
    lines += busy_table()
    path = RESULTS / f"threads-{date.today().isoformat()}-{facts['slug']}.md"
    path.write_text("\n".join(lines) + "\n")
    print(path)


if __name__ == "__main__":
    main()
