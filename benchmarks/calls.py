"""``python -m benchmarks.calls``: call overhead, transforms and codecs compared with peers, and threads.

The overhead of a call is the public function's time minus that of its kernel, which fills newly allocated
memory; the image is 32 x 32. Python's speed varies severalfold between machines, so the costs of
``torch.empty`` and of an empty custom operator, measured in the same rounds, serve as a reference.
"""

from __future__ import annotations

import io
import statistics
import timeit
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
from PIL import Image
from torch import Tensor

import imgops
from benchmarks import threads
from benchmarks.table import machine
from benchmarks.transform_calls import tables
from imgops._operator.record import operators

RESULTS = Path(__file__).parent / "results"
ROUNDS = 15


@torch.library.custom_op("benchmarks::nothing", mutates_args=())
def nothing(x: Tensor, a: int, b: int) -> Tensor:
    return torch.empty_like(x)


def best(calls: dict[str, Callable[[], Any]], number: int) -> dict[str, float]:
    """Return the shortest time of each call in microseconds; the calls take turns, round by round."""
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            rounds[name].append(timeit.timeit(call, number=number) / number * 1e6)
    return {name: min(times) for name, times in rounds.items()}


def into_new(name: str, *args: Any) -> Callable[[], Tensor]:
    """Return a call of the kernel on memory that is allocated as cheaply as PyTorch can."""
    row = operators()[name]
    made = row.fake(*args)
    size, stride, dtype = made.shape, made.stride(), made.dtype

    def call() -> Tensor:
        out = torch.empty_strided(size, stride, dtype=dtype)
        row.kernel(out, *args)
        return out

    return call


def calls(x: Tensor) -> dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]]:
    """Return, by name, a call of the kernel, of the public function, and of the operator through the dispatcher."""
    patch, ops, y = x[:, :8, :8].clone(), torch.ops.imgops, x.clone()
    write = operators()["paste_"].kernel
    return {
        "crop": (
            into_new("crop", x, 4, 4, 28, 28),
            lambda: imgops.crop(x, (4, 4, 28, 28)),
            lambda: ops.crop(x, 4, 4, 28, 28),
        ),
        "paste": (
            into_new("paste", x, patch, None, 2, 2),
            lambda: imgops.paste(x, patch, (2, 2)),
            lambda: ops.paste(x, patch, None, 2, 2),
        ),
        "pad": (
            into_new("pad", x, None, 2, 2, 2, 2, "reflect"),
            lambda: imgops.pad(x, 2, "reflect"),
            lambda: ops.pad(x, None, 2, 2, 2, 2, "reflect"),
        ),
        "resize": (
            into_new("resize", x, None, 16, 16, "bilinear", True),
            lambda: imgops.resize(x, (16, 16)),
            lambda: ops.resize(x, None, 16, 16, "bilinear", True, None),
        ),
        "paste_": (
            lambda: write(y, patch, None, 2, 2),
            lambda: imgops.paste_(y, patch, (2, 2)),
            lambda: ops.paste_(y, patch, None, 2, 2),
        ),
    }


def call_table() -> list[str]:
    x = torch.rand(3, 32, 32)
    scale = best({"empty": lambda: torch.empty((3, 24, 24)), "op": lambda: nothing(x, 1, 2)}, 4000)
    empty, op = scale["empty"], scale["op"]
    lines = [
        f"`torch.empty` takes {empty:.2f} us here, a custom operator that does nothing {op:.1f} us.",
        "",
        "| 32 x 32, float32 | kernel, us | overhead, us | in `torch.empty` | through the dispatcher, us |",
        "|---|---|---|---|---|",
    ]
    for name, (kernel, public, dispatched) in calls(x).items():
        found = best({"kernel": kernel, "public": public, "dispatched": dispatched}, 2000)
        over, through = found["public"] - found["kernel"], found["dispatched"] - found["kernel"]
        lines.append(f"| {name} | {found['kernel']:.1f} | {over:.1f} | {over / empty:.1f} | {through:.1f} |")
    return lines


def codec_table() -> list[str]:
    smooth = np.random.default_rng(0).normal(size=(512, 512, 3)).cumsum(0).cumsum(1)
    pixels = ((smooth - smooth.min()) / np.ptp(smooth) * 255).astype(np.uint8)
    image = torch.from_numpy(pixels).permute(2, 0, 1).contiguous()
    lines = [
        "| 512 x 512 RGB | Pillow / imgops | torchvision.io / imgops |",
        "|---|---|---|",
    ]
    tv_io = torchvision.io
    for format in ("jpeg", "png", "webp"):
        data = imgops.encode_image(image, format, 90)
        raw = data.numpy().tobytes()
        columns: dict[str, Callable[[], Any]] = {
            "ours": lambda d=data: imgops.decode_image(d),
            "pil": lambda r=raw: np.array(Image.open(io.BytesIO(r)).convert("RGB")),
            "tv": lambda d=data: tv_io.decode_image(d),
        }
        lines.append(_ratios(f"decode {format}", columns))
        keywords = {} if format == "png" else {"quality": 90}
        columns = {
            "ours": lambda f=format: imgops.encode_image(image, f, 90),
            "pil": lambda f=format, k=keywords: Image.fromarray(pixels).save(io.BytesIO(), f, **k),
        }
        if format == "jpeg":
            columns["tv"] = lambda: tv_io.encode_jpeg(image, 90)
        elif format == "png":
            columns["tv"] = lambda: tv_io.encode_png(image)
        lines.append(_ratios(f"encode {format}", columns))
    return lines


def _ratios(title: str, columns: dict[str, Callable[[], Any]]) -> str:
    rounds = [{n: timeit.timeit(c, number=2) for n, c in columns.items()} for _ in range(ROUNDS)]
    cells = [title]
    for peer in ("pil", "tv"):
        ratios = [r[peer] / r["ours"] for r in rounds if peer in r]
        cells.append(f"{statistics.median(ratios):.2f}" if ratios else "–")
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    torch.set_num_threads(1)
    about = machine()
    lines = ["# What a call costs", "", *shown_of(about), "", *call_table()]
    lines += ["", "# Codecs, one thread, medians of paired rounds", "", *codec_table(), ""]
    path = RESULTS / f"calls-{date.today()}-{about['slug']}.md"
    path.write_text("\n".join(lines))
    print("\n".join(lines))
    page = "\n".join(tables(", ".join(f"{k}: {v}" for k, v in about.items() if k in ("cpu", "python"))))
    (RESULTS / f"transform-calls-{date.today()}-{about['slug']}.md").write_text(page)
    print(page)
    gains = ["# Two threads compared with one", "", *shown_of(about), "", *threads.table(), ""]
    (RESULTS / f"threads-{date.today()}-{about['slug']}.md").write_text("\n".join(gains))


def shown_of(about: dict[str, str]) -> list[str]:
    return [f"- {k}: {v}" for k, v in about.items() if k != "slug"]


if __name__ == "__main__":
    main()
