"""``python -m benchmarks.cuda``: the operators and batch pipelines on a GPU, compared with a copy of the same bytes.

Each row is one call on a batch that is on the device, with different parameters for each image where the operator
takes them: imgops' Triton kernel, its decomposition (ATen), its host fallback, torchvision and kornia on the device,
and CV-CUDA's resize where it is installed. Columns take turns, round by round; times are medians of CUDA events around
several calls. GB/s counts the bytes that a kernel cannot do without: the image read once, the result written once.
``--device cpu`` runs the same calls on the CPU, on small images, to check that they work; its times mean nothing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
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

# -- timing ------------------------------------------------------------------------------------------


def _time(call: Callable[[], Any], loops: int, device: torch.device) -> float:
    """Return the time of one call in microseconds."""
    if device.type != "cuda":
        start = time.perf_counter()
        for _ in range(loops):
            call()
        return (time.perf_counter() - start) / loops * 1e6
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(loops):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / loops * 1e3


def measure(calls: dict[str, Callable[[], Any]], rounds: int, device: torch.device) -> dict[str, float]:
    """Return each column's median over rounds in which they take turns; print the error of one that fails, and drop it."""
    times: dict[str, list[float]] = {}
    for name, call in list(calls.items()):
        try:
            call()  # the first call compiles
            call()
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:200]}")
            del calls[name]
    loops = {
        name: max(1, min(20, int(2000 / max(_time(call, 1, device), 1)))) for name, call in calls.items()
    }
    for _ in range(rounds):
        for name, call in calls.items():
            times.setdefault(name, []).append(_time(call, loops[name], device))
    return {name: median(each) for name, each in times.items()}


def _without(kind: str, call: Callable[[], Any]) -> Callable[[], Any]:
    """Return imgops' call without Triton (``kind`` is "ATen"), or without anything on the device ("host")."""

    def run() -> Any:
        with devices.only(kind):
            return call()

    return run


def columns(row: Row, image: Tensor, backward: bool) -> dict[str, Callable[[], Any]]:
    calls = row.calls(image)

    def of(call: Callable[[Tensor], Any]) -> Callable[[], Any]:
        if not backward:
            return lambda: call(image)
        leaf = image.clone().requires_grad_()

        def both() -> None:
            out = call(leaf)
            out.backward(torch.ones_like(out))
            leaf.grad = None

        return both

    found = {name: of(call) for name, call in calls.items()}
    found["ATen"] = _without("ATen", found["imgops"])
    found["host"] = _without("host", found["imgops"])
    source = torch.empty(_bytes(row, image) // 2, dtype=torch.uint8, device=image.device)
    target = torch.empty_like(source)
    found["copy"] = lambda: target.copy_(source)
    return found


def _bytes(row: Row, image: Tensor) -> int:
    """Count the bytes of the image, read once, and of the result, written once."""
    return int(image.numel() * image.element_size() * (1 + row.result))


# -- the table ---------------------------------------------------------------------------------------

COLUMNS = ("imgops", "ATen", "host", "torchvision", "kornia", "CV-CUDA", "copy")
HEAD = ("operator", "dtype", "layout", "pass", *COLUMNS, "GB/s", "of copy", "goal")


def line(row: Row, image: Tensor, layout: str, backward: bool, times: dict[str, float]) -> str:
    dtype = str(image.dtype)[6:]
    cells = [row.name, dtype, layout, "forward and backward" if backward else "forward"]
    cells += [f"{times[c]:.0f}" if c in times else "–" for c in COLUMNS]
    if not backward and "imgops" in times:
        share = times["copy"] / times["imgops"]
        cells += [f"{_bytes(row, image) / times['imgops'] / 1e3:.0f}", f"{share:.0%}"]
        cells += [f"{row.goal:.0%}" + ("" if share >= row.goal else ", missed") if row.goal else "–"]
    else:
        cells += ["", "", ""]
    return "| " + " | ".join(cells) + " |"


def table(shape: tuple[int, ...], device: torch.device, rounds: int, only: str) -> list[str]:
    lines = [f"\n## {shape[0]} x {shape[1]} x {shape[2]} x {shape[3]}, microseconds a batch\n"]
    lines += ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    work = [(r, d, f, b) for r in ROWS for d in (torch.uint8, torch.float32) for f in ("planar", "interleaved")
            for b in (False, True) if only in r.name]  # fmt: skip
    for row, dtype, layout, backward in tqdm(work, ncols=78):
        if backward and (dtype == torch.uint8 or not row.differentiable):
            continue
        image = torch.randint(0, 256, shape, dtype=torch.uint8, device=device)
        image = image if dtype == torch.uint8 else image / 255
        image = image.to(memory_format=torch.channels_last) if layout == "interleaved" else image
        times = measure(columns(row, image, backward), rounds, device)
        lines.append(line(row, image, layout, backward, times))
    return lines


def pipelines(shape: tuple[int, ...], device: torch.device, rounds: int) -> list[str]:
    """Time batches on the device, with different draws for each image; torchvision draws once for all images."""
    lines = ["\n## Pipelines, a batch on the device, milliseconds a batch\n"]
    lines += ["| pipeline | imgops | imgops compiled | torchvision | kornia |", "|" + "---|" * 5]
    image = torch.randint(0, 256, shape, dtype=torch.uint8, device=device)
    for name in ("SimCLR", "ImageNet", "RandAugment"):
        last = [[m.ToDtype(torch.float32, scale=True), m.Normalize(MEAN, STD)] for m in (ours, v2)]
        mine = steps(name, ours, last[0], per_sample=True)
        theirs, compiled = steps(name, v2, last[1]), torch.compile(mine)
        calls: dict[str, Callable[[], Any]] = {
            "imgops": lambda p=mine: p(image),
            "imgops compiled": lambda p=compiled: p(image),
            "torchvision": lambda p=theirs: p(image),
        }
        other = _kornia_batch(name, device)
        if other is not None:
            calls["kornia"] = lambda p=other: p(image)
        times = measure(calls, rounds, device)
        each = [f"{times[c] / 1e3:.2f}" if c in times else "–" for c in (*calls, "kornia")[:4]]
        lines.append(f"| {name} | " + " | ".join(each) + " |")
    return lines


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
    """Return how far nvJPEG's pixels are from Pillow's."""
    from benchmarks.pipelines import photo

    frame = torch.from_numpy(photo()).permute(2, 0, 1).contiguous()
    lines = ["\n## nvJPEG beside Pillow\n"]
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
    shapes = ((256, 3, 512, 512), (32, 3, 224, 224)) if device.type == "cuda" else ((2, 3, 64, 64),)
    name = torch.cuda.get_device_name() if device.type == "cuda" else machine()["cpu"]
    lines = [f"# imgops on {name}, torch {torch.__version__}, {date.today()}"]
    for shape in shapes:
        lines += table(shape, device, options.rounds, options.only)
    if not options.only:
        lines += pipelines(shapes[0], device, options.rounds)
        lines += jpeg(device) if device.type == "cuda" else []
    text = "\n".join(lines) + "\n"
    print(text)
    if device.type == "cuda" and not options.only:
        slug = name.lower().replace(" ", "-")
        (RESULTS / f"cuda-{date.today()}-{slug}.md").write_text(text)


if __name__ == "__main__":
    main()
