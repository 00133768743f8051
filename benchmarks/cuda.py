"""``python -m benchmarks.cuda``: the operators and batch pipelines on a GPU, compared with a copy of the same bytes.

Each row is one call on a batch on the device, with different parameters for each image if the operator takes
them: imgops' Triton kernel, eager and in a replayed graph, its decomposition (ATen), its host fallback, and
torchvision, kornia, CV-CUDA and DALI on the device. Columns take turns, round by round; times are medians of
CUDA events around several calls. Calls go through several batches, which together are larger than the
device's cache. GB/s counts only the necessary bytes: the part of the image that the result needs, read once,
and the result, written once. ``--device cpu`` runs the same calls on the CPU, on small images, to check that
they work; its timings are meaningless. ``--count`` counts instructions instead, without a GPU:
benchmarks/cuda_count.py.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from datetime import date
from importlib.util import find_spec
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2
from tqdm import tqdm

import imgops
from benchmarks.__main__ import RESULTS
from benchmarks.cuda_rows import ROWS, Row
from benchmarks.pipelines import MEAN, STD, steps
from benchmarks.table import machine
from imgops import transforms as ours
from imgops.kernels import devices

#: A function to time, and the number of its calls.
Run = tuple[Callable[[], Any], int]
#: The total size of the alternating batches, as a multiple of the device's cache.
CACHES = 4

# -- timing ------------------------------------------------------------------------------------------


def _time(name: str, run: Run, loops: int, device: torch.device) -> float:
    """Return the time of one call in microseconds."""
    call, count = run
    if device.type != "cuda" or name == "DALI":  # DALI queues its work on another stream
        _synchronize(device)
        start = time.perf_counter()
        for _ in range(loops):
            call()
        _synchronize(device)
        return (time.perf_counter() - start) / loops / count * 1e6
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(loops):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / loops / count * 1e3


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def measure(
    runs: dict[str, Run], rounds: int, device: torch.device
) -> tuple[dict[str, float], dict[str, str]]:
    """Return each column's median time and the errors of failed columns; the columns take turns in rounds.

    A column whose call takes more than a fifth of a second is timed once.
    """
    times: dict[str, list[float]] = {}
    errors: dict[str, str] = {}
    once: dict[str, float] = {}
    for name, run in runs.items():
        try:
            run[0]()  # the first call compiles
            once[name] = _time(name, run, 1, device) * run[1]
        except Exception as error:
            errors[name] = f"{type(error).__name__}: {str(error)[:200]}"
    loops = {name: max(1, min(20, int(2000 / max(t, 1)))) for name, t in once.items()}
    for i in range(rounds):
        for name in once:
            if once[name] < 2e5:
                times.setdefault(name, []).append(_time(name, runs[name], loops[name], device))
            elif i == 0:
                times[name] = [once[name] / runs[name][1]]
    return {name: median(each) for name, each in times.items()}, errors


def images_of(shape: tuple[int, ...], dtype: torch.dtype, layout: str, device: torch.device) -> list[Tensor]:
    """Return batches of noise that together exceed the device's cache several times."""
    size = math.prod(shape) * dtype.itemsize
    cache = torch.cuda.get_device_properties(device).L2_cache_size if device.type == "cuda" else size // 2
    format = torch.channels_last if layout == "interleaved" else torch.contiguous_format
    found = []
    for _ in range(max(1, -(-CACHES * cache // size))):
        image = torch.randint(0, 256, shape, dtype=torch.uint8, device=device)
        image = image if dtype == torch.uint8 else (image / 255).to(dtype)
        found.append(image.contiguous(memory_format=format))
    return found


def in_turn(call: Callable[[Tensor], Any], images: Sequence[Tensor]) -> Run:
    """Return a call on the next batch; it keeps as many results as batches, so each uses different memory."""
    kept: list[Any] = [None] * len(images)
    at = 0

    def run() -> None:
        nonlocal at
        kept[at] = call(images[at])
        at = (at + 1) % len(images)

    return run, 1


def in_graph(call: Callable[[Tensor], Any], images: Sequence[Tensor]) -> Run:
    """Return a call on all batches, captured in a graph and replayed; on the CPU, without a graph."""
    if not images[0].is_cuda:
        return (lambda: [call(image) for image in images]), len(images)
    graph: torch.cuda.CUDAGraph | None = None
    kept: list[Any] = []

    def run() -> None:
        nonlocal graph
        if graph is None:
            call(images[0])
            made = torch.cuda.CUDAGraph()
            with torch.cuda.graph(made):
                kept.extend(call(image) for image in images)
            graph = made
        graph.replay()

    return run, len(images)


def _without(kind: str, call: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    """Return imgops' call without Triton (``kind`` is "ATen"), or on the host only ("host")."""

    def run(image: Tensor) -> Any:
        with devices.only(kind):
            return call(image)

    return run


def _both(call: Callable[[Tensor], Any]) -> Callable[[Tensor], Any]:
    """Return a call forward and backward."""

    def run(image: Tensor) -> None:
        leaf = image.detach().requires_grad_()
        out = call(leaf)
        out.backward(torch.ones_like(out))

    return run


def columns(row: Row, images: Sequence[Tensor], backward: bool, size: int) -> dict[str, Run]:
    """Return the function to time for each column; a copy reads and writes half of ``size`` bytes each."""
    calls = row.calls(images[0])
    if backward:
        calls = {name: _both(call) for name, call in calls.items() if name not in ("CV-CUDA", "DALI")}
    calls["ATen"] = _without("ATen", calls["imgops"])
    calls["host"] = _without("host", calls["imgops"])
    found = {name: in_turn(call, images) for name, call in calls.items()}
    if not backward:
        found["imgops, graph"] = in_graph(calls["imgops"], images)
    options = {"dtype": torch.uint8, "device": images[0].device}
    found["copy"] = in_turn(
        torch.clone, [torch.empty(max(size // 2, 1), **options) for _ in range(len(images))]
    )
    return found


def moved(row: Row, image: Tensor) -> int:
    """Count the bytes of the part of the image that the result needs, read once, and of the result, written once."""
    out = row.calls(image)["imgops"](image)
    return int(image.numel() * image.element_size() * row.part + out.numel() * out.element_size())


def timing(
    row: Row,
    dtype: torch.dtype,
    layout: str,
    backward: bool,
    shape: tuple[int, ...],
    device: torch.device,
    rounds: int,
) -> dict[str, Any]:
    """Measure a row: microseconds per batch for each column, and the other cells of the table."""
    images = images_of(shape, dtype, layout, device)
    size = moved(row, images[0])
    times, errors = measure(columns(row, images, backward, size), rounds, device)
    name = str(dtype)[6:]
    return {
        "row": row.name,
        "dtype": name,
        "layout": layout,
        "pass": "forward and backward" if backward else "forward",
        "shape": list(shape),
        "batches": len(images),
        "times": {column: round(t, 1) for column, t in times.items()},
        "errors": errors,
        "bytes": size,
        "drawn_once": row.drawn_once(),
    }


# -- the table ---------------------------------------------------------------------------------------

COLUMNS = ("imgops", "imgops, graph", "ATen", "host", "torchvision", "kornia", "CV-CUDA", "DALI", "copy")
HEAD = ("operator", "dtype", "layout", "pass", *COLUMNS, "GB/s", "of copy")
#: The meaning of the mark in the table.
ONCE = "Marked with *: the library draws once for the whole batch, imgops for each image."


def cells(found: dict[str, Any]) -> list[str]:
    """Return a row of the table; the shares are those of the replayed graph, which does not wait for Python."""
    times, once = found["times"], found["drawn_once"]
    made = [found[key] for key in ("row", "dtype", "layout", "pass")]
    made += [f"{times[c]:.0f}{'*' * (c in once)}" if c in times else "–" for c in COLUMNS]
    best = min((times[c] for c in COLUMNS[:2] if c in times), default=None)
    if found["pass"] != "forward" or best is None or "copy" not in times:
        return [*made, "", ""]
    return [*made, f"{found['bytes'] / best / 1e3:.0f}", f"{times['copy'] / best:.0%}"]


def work(only: str = "") -> list[tuple[Row, torch.dtype, str, bool]]:
    """Return the cases to time: each row's dtypes and layouts, forward, and backward if it is differentiable."""
    return [
        (row, dtype, layout, backward)
        for row in ROWS
        for dtype in (torch.uint8, torch.float32)
        for layout in ("planar", "interleaved")
        for backward in (False, True)
        if only in row.name and not (backward and (dtype == torch.uint8 or not row.differentiable))
    ]


def shapes(device: torch.device) -> tuple[tuple[int, ...], ...]:
    """Return the batches: one that is larger than the cache of a GPU, and one of ImageNet's size."""
    return ((256, 3, 512, 512), (32, 3, 224, 224)) if device.type == "cuda" else ((2, 3, 64, 64),)


def table(shape: tuple[int, ...], device: torch.device, rounds: int, only: str) -> list[str]:
    lines = [f"\n## {' x '.join(map(str, shape))}, microseconds a batch\n"]
    lines += ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    for each in tqdm(work(only), ncols=78):
        found = timing(*each, shape, device, rounds)
        for column, error in found["errors"].items():
            print(f"{found['row']}, {column}: {error}")
        lines.append("| " + " | ".join(cells(found)) + " |")
    return [*lines, "", ONCE]


PIPELINES = ("SimCLR", "ImageNet", "RandAugment")


def pipeline(name: str, shape: tuple[int, ...], device: torch.device, rounds: int) -> dict[str, Any]:
    """Time batches on the device, with different draws for each image; torchvision draws once for all images."""
    image = torch.randint(0, 256, shape, dtype=torch.uint8, device=device)
    last = [[m.ToDtype(torch.float32, scale=True), m.Normalize(MEAN, STD)] for m in (ours, v2)]
    mine = steps(name, ours, last[0], per_sample=True)
    theirs, compiled = steps(name, v2, last[1]), torch.compile(mine)
    calls: dict[str, Run] = {
        "imgops": (lambda: mine(image), 1),
        "imgops compiled": (lambda: compiled(image), 1),
        "torchvision": (lambda: theirs(image), 1),
    }
    other = _kornia_batch(name, device)
    if other is not None:
        calls["kornia"] = (lambda: other(image), 1)
    times, errors = measure(calls, rounds, device)
    return {"pipeline": name, "shape": list(shape), "times": times, "errors": errors}


def pipelines(shape: tuple[int, ...], device: torch.device, rounds: int) -> list[str]:
    lines = ["\n## Pipelines, a batch on the device, milliseconds a batch\n"]
    lines += ["| pipeline | imgops | imgops compiled | torchvision* | kornia |", "|" + "---|" * 5]
    for name in PIPELINES:
        times = pipeline(name, shape, device, rounds)["times"]
        names = ("imgops", "imgops compiled", "torchvision", "kornia")
        each = [f"{times[c] / 1e3:.2f}" if c in times else "–" for c in names]
        lines.append(f"| {name} | " + " | ".join(each) + " |")
    return [*lines, "", ONCE]


def _kornia_batch(name: str, device: torch.device) -> Callable[[Tensor], Any] | None:
    if find_spec("kornia") is None or name == "RandAugment":
        return None
    import kornia.augmentation as K

    parts: list[Any] = [K.RandomResizedCrop((224, 224)), K.RandomHorizontalFlip()]
    if name == "SimCLR":
        jitter, blur = (
            K.ColorJitter(0.4, 0.4, 0.4, 0.1, p=1.0),
            K.RandomGaussianBlur((23, 23), (0.1, 2.0), p=0.5),
        )
        parts += [jitter, blur, K.RandomGrayscale(p=0.2)]
    parts.append(K.Normalize(torch.tensor(MEAN), torch.tensor(STD)))
    pipeline = K.AugmentationSequential(*parts, data_keys=["input"]).to(device)
    return lambda x: pipeline(x.float() / 255)


def jpeg(device: torch.device) -> list[str]:
    """Describe how far nvJPEG's pixels are from Pillow's."""
    from benchmarks.pipelines import photo

    frame = torch.from_numpy(photo()).permute(2, 0, 1).contiguous()
    lines = []
    for quality in (75, 95):
        data = imgops.encode_image(frame, quality=quality)
        apart = (imgops.decode_image(data, device=device).cpu().int() - imgops.decode_image(data).int()).abs()
        lines.append(
            f"Quality {quality}: at most {int(apart.max())} levels, {float(apart.float().mean()):.3f} on average."
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cuda")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--count", action="store_true", help="count what the kernels execute, without a GPU")
    parser.add_argument("--dtype", default="", choices=("", "uint8", "float32"), help="with --count")
    parser.add_argument("--layout", default="", choices=("", "planar", "interleaved"), help="with --count")
    parser.add_argument("--write", action="store_true", help="with --count: keep the numbers as the budgets")
    options = parser.parse_args()
    if options.count:
        from benchmarks import cuda_count

        cuda_count.main(options.only, options.dtype, options.layout, options.write)
        return
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        parser.error("there is no GPU; --device cpu shows that the calls work")
    name = torch.cuda.get_device_name() if device.type == "cuda" else machine()["cpu"]
    lines = [f"# imgops on {name}, torch {torch.__version__}, {date.today()}"]
    for shape in shapes(device):
        lines += table(shape, device, options.rounds, options.only)
    if not options.only:
        lines += pipelines(shapes(device)[0], device, options.rounds)
        lines += ["\n## nvJPEG beside Pillow\n", *jpeg(device)] if device.type == "cuda" else []
    text = "\n".join(lines) + "\n"
    print(text)
    if device.type == "cuda" and not options.only:
        slug = name.lower().replace(" ", "-")
        (RESULTS / f"cuda-{date.today()}-{slug}.md").write_text(text)


if __name__ == "__main__":
    main()
