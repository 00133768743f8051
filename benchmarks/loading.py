"""``python -m benchmarks.loading``: from JPEG files to a batch, compared with other libraries.

40 photographs in five sizes around 500 x 375, JPEG quality 90. A row's columns take turns, with equal seeds;
each number is the median of the rounds' ratios. imgops transforms one batch of `EncodedImages` on one or two
threads; the other columns transform one file at a time, on one thread or in a pool of two threads. "One by
one" is `EncodedImage`, which also decodes only the part that the crop keeps; "whole" decodes whole images.
torchvision.io and PIL antialias when they downsample, as imgops does; albumentations does so only with
INTER_AREA.
"""

from __future__ import annotations

import argparse
import io
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from importlib.metadata import version
from importlib.util import find_spec
from statistics import median
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision.io import ImageReadMode
from torchvision.io import decode_image as tv_decode
from torchvision.transforms import v2 as tv

import imgops
from benchmarks.__main__ import RESULTS
from benchmarks.batches import busy_neighbors
from benchmarks.pipelines import photo
from benchmarks.table import machine
from imgops import transforms as v2

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SIZES = ((500, 375), (375, 500), (500, 333), (640, 480), (400, 300))
COUNT = 40
PIPELINES = ("ImageNet", "SimCLR")
PEERS = (
    "one by one",
    "whole",
    "torchvision.io",
    "torchvision, PIL",
    "albumentations",
    "albumentations, INTER_AREA",
    "DALI",
)


def file_of(size: tuple[int, int], seed: int = 0, mode: str = "RGB", **keywords: Any) -> bytes:
    image = (
        Image.fromarray(np.roll(photo(), 7 * seed, 1)).resize(size, Image.Resampling.BICUBIC).convert(mode)
    )
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=90, **keywords)
    return buffer.getvalue()


def rounds_of(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Return the microseconds per image of each column, in rounds in which all columns draw from the same seeds."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for i in range(-1, rounds):
        for name, call in calls.items():
            torch.manual_seed(i)
            random.seed(i)
            before = time.perf_counter()
            call()
            if i >= 0:  # the first round warms up
                found[name].append((time.perf_counter() - before) / COUNT * 1e6)
    return found


def ratio(found: dict[str, list[float]], peer: str, own: str = "imgops") -> float:
    return median(a / b for a, b in zip(found[peer], found[own], strict=True))


# -- decoding ----------------------------------------------------------------------------------------------


def decoding(rounds: int) -> list[str]:
    lines = [
        "| file | imgops, us | cv2.imdecode | interleaved | PIL | torchvision.io |",
        "|---|---|---|---|---|---|",
    ]
    kinds: dict[str, dict[str, Any]] = {
        f"{'progressive' if p else 'baseline'} {name}": {"progressive": p, "subsampling": s}
        for p in (False, True)
        for s, name in ((2, "4:2:0"), (1, "4:2:2"), (0, "4:4:4"))
    }
    kinds |= {"baseline gray": {"mode": "L"}, "progressive gray": {"mode": "L", "progressive": True}}
    for name, keywords in kinds.items():
        mode = keywords.get("mode", "RGB")
        flag, read = (
            (cv2.IMREAD_GRAYSCALE, ImageReadMode.GRAY)
            if mode == "L"
            else (cv2.IMREAD_COLOR, ImageReadMode.RGB)
        )
        raws = [file_of((500, 375), i, **keywords) for i in range(COUNT)]
        datas, arrays = [tensor(r) for r in raws], [np.frombuffer(r, np.uint8) for r in raws]
        calls: dict[str, Callable[[], Any]] = {
            "imgops": lambda d=datas, m=mode: [imgops.decode_image(x, m) for x in d],
            "cv2": lambda a=arrays, f=flag: [cv2.imdecode(x, f) for x in a],
            "interleaved": lambda d=datas, m=mode: [
                imgops.decode_image(x, m, memory_format=torch.channels_last) for x in d
            ],
            "PIL": lambda r=raws: [np.asarray(Image.open(io.BytesIO(x))) for x in r],
            "torchvision": lambda d=datas, m=read: [tv_decode(x, m) for x in d],
        }
        found = rounds_of(calls, rounds)
        cells = [f"{ratio(found, peer):.2f}" for peer in calls if peer != "imgops"]
        lines.append(f"| {name} | {median(found['imgops']):.0f} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    return lines


def tensor(raw: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8)


# -- pipelines ---------------------------------------------------------------------------------------------


def steps(name: str, module: Any, first: list[Any], last: list[Any]) -> Any:
    found = [*first, module.RandomResizedCrop(224, antialias=True), module.RandomHorizontalFlip()]
    if name == "SimCLR":
        found += [
            module.RandomApply([module.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8),
            module.RandomGrayscale(0.2),
            module.GaussianBlur(23, (0.1, 2.0)),
        ]
    return module.Compose([*found, *last])


def columns(name: str, raws: list[bytes]) -> dict[str, Callable[[Any], Any]]:
    """Return the work of each library for one file."""

    def last(module: Any) -> list[Any]:
        return [module.ToDtype(torch.float32, scale=True), module.Normalize(MEAN, STD)]

    ours, theirs = steps(name, v2, [], last(v2)), steps(name, tv, [], last(tv))
    of_pil = steps(name, tv, [], [tv.ToImage(), *last(tv)])
    calls: dict[str, Callable[[Any], Any]] = {
        "one by one": lambda raw: ours(imgops.EncodedImage(raw)),
        "whole": lambda raw: ours(imgops.decode_image(raw)),
        "torchvision.io": lambda raw: theirs(tv_decode(tensor(raw), ImageReadMode.RGB)),
        "torchvision, PIL": lambda raw: of_pil(Image.open(io.BytesIO(raw)).convert("RGB")),
    }
    if find_spec("albumentations"):
        import albumentations as A

        more = []
        if name == "SimCLR":
            more = [
                A.ColorJitter(0.8, 0.8, 0.8, 0.2, p=0.8),
                A.ToGray(p=0.2),
                A.GaussianBlur((23, 23), (0.1, 2.0), p=1),
            ]
        for label, how in (
            ("albumentations", cv2.INTER_LINEAR),
            ("albumentations, INTER_AREA", cv2.INTER_AREA),
        ):
            crop = A.RandomResizedCrop((224, 224), interpolation=how)
            pipeline = A.Compose(
                [crop, A.HorizontalFlip(p=0.5), *more, A.Normalize(MEAN, STD), A.ToTensorV2()]
            )
            calls[label] = lambda raw, p=pipeline: p(
                image=cv2.imdecode(np.frombuffer(raw, np.uint8), cv2.IMREAD_COLOR_RGB)
            )["image"]
    return calls


def batched(name: str) -> Any:
    """Return imgops' pipeline for a batch."""
    last = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    return v2.Compose(steps(name, v2, [], last).transforms, per_sample=True)


def dali(raws: list[bytes], threads: int) -> Callable[[], Any] | None:
    """Return DALI's fused pipeline over all files on the CPU, or None if it is not installed."""
    if not find_spec("nvidia"):
        return None
    try:
        from nvidia.dali import fn, pipeline_def, types
    except ImportError:
        return None
    arrays = [np.frombuffer(raw, np.uint8) for raw in raws]

    @pipeline_def(
        batch_size=COUNT, num_threads=threads, device_id=None, exec_pipelined=False, exec_async=False
    )
    def pipeline() -> Any:
        files = fn.external_source(lambda: arrays, batch=True)
        images = fn.decoders.image_random_crop(
            files, random_area=(0.08, 1.0), random_aspect_ratio=(3 / 4, 4 / 3)
        )
        images = fn.resize(images, size=(224, 224), antialias=True)
        mean, std = ([255 * x for x in values] for values in (MEAN, STD))
        return fn.crop_mirror_normalize(
            images, mirror=fn.random.coin_flip(), mean=mean, std=std, dtype=types.FLOAT, output_layout="CHW"
        )

    made = pipeline()
    made.build()
    return made.run


def pipelines(rounds: int) -> list[str]:
    raws = [file_of(SIZES[i % len(SIZES)], i) for i in range(COUNT)]
    lines = [
        "| pipeline | threads | images/s | " + " | ".join(PEERS) + " |",
        "|---|---|---|" + "---|" * len(PEERS),
    ]
    for name in PIPELINES:
        scaling: dict[int, float] = {}
        for threads in (1, 2):
            with ThreadPoolExecutor(threads) as pool:

                def over(
                    work: Callable[[Any], Any], p: ThreadPoolExecutor = pool, n: int = threads
                ) -> Callable[[], Any]:
                    if n == 1:
                        return lambda: [work(raw) for raw in raws]
                    return lambda: list(p.map(work, raws))

                pipeline = batched(name)

                def in_one_call(whole: Any = pipeline, n: int = threads) -> None:
                    torch.set_num_threads(n)
                    whole(imgops.EncodedImages(raws))
                    torch.set_num_threads(1)

                calls = {"imgops": in_one_call}
                calls |= {label: over(work) for label, work in columns(name, raws).items()}
                if name == "ImageNet" and (fused := dali(raws, threads)):
                    calls["DALI"] = fused
                found = rounds_of(calls, rounds)
            scaling[threads] = median(found["imgops"])
            cells = [f"{ratio(found, peer):.2f}" if peer in found else "–" for peer in PEERS]
            lines.append(f"| {name} | {threads} | {1e6 / scaling[threads]:.0f} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
        print(f"{name}: two threads are {scaling[1] / scaling[2]:.2f} times as fast as one", flush=True)
    return lines


# -- evaluation, loaders, growth ------------------------------------------------------------------------------


def evaluation(rounds: int) -> list[str]:
    """Return the times of Resize(256), CenterCrop(224), which need no draws, relative to imgops' in one call."""
    raws = [file_of(SIZES[i % len(SIZES)], i) for i in range(COUNT)]

    def steps_of(module: Any, *first: Any) -> Any:
        last = [module.ToDtype(torch.float32, scale=True), module.Normalize(MEAN, STD)]
        return module.Compose([module.Resize(256, antialias=True), module.CenterCrop(224), *first, *last])

    ours, theirs, of_pil = steps_of(v2), steps_of(tv), steps_of(tv, tv.ToImage())
    lines = ["| threads | images/s | whole | torchvision.io | torchvision, PIL |", "|---|---|---|---|---|"]
    for threads in (1, 2):
        torch.set_num_threads(threads)
        with ThreadPoolExecutor(threads) as pool:
            calls: dict[str, Callable[[], Any]] = {
                "imgops": lambda: ours(imgops.EncodedImages(raws)),
                "whole": lambda p=pool: list(p.map(lambda raw: ours(imgops.decode_image(raw)), raws)),
                "io": lambda p=pool: list(
                    p.map(lambda r: theirs(tv_decode(tensor(r), ImageReadMode.RGB)), raws)
                ),
                "PIL": lambda p=pool: list(
                    p.map(lambda r: of_pil(Image.open(io.BytesIO(r)).convert("RGB")), raws)
                ),
            }
            found = rounds_of(calls, rounds)
        cells = " | ".join(f"{ratio(found, peer):.2f}" for peer in calls if peer != "imgops")
        lines.append(f"| {threads} | {1e6 / median(found['imgops']):.0f} | {cells} |")
        print(lines[-1], flush=True)
    torch.set_num_threads(1)
    return lines


class Files(Dataset[torch.Tensor]):
    """A dataset of files in memory. A worker decodes and transforms one file at a time."""

    def __init__(self, raws: list[bytes], work: Callable[[bytes], torch.Tensor]) -> None:
        self.raws, self.work = raws, work

    def __len__(self) -> int:
        return len(self.raws)

    def __getitem__(self, i: int) -> torch.Tensor:
        return self.work(self.raws[i])


def loaders(rounds: int) -> list[str]:
    """Return the images a second of one process with two threads, and of a DataLoader with two workers."""
    raws = [file_of(SIZES[i % len(SIZES)], i) for i in range(COUNT)] * 16
    lines = ["| loader, batches of 64 | ImageNet, images/s | SimCLR, images/s |", "|---|---|---|"]
    cells: dict[str, list[str]] = {}
    for name in PIPELINES:
        pipeline, works = batched(name), columns(name, raws)

        def in_threads(whole: Any = pipeline) -> None:
            torch.set_num_threads(2)
            for start in range(0, len(raws), 64):
                whole(imgops.EncodedImages(raws[start : start + 64]))
            torch.set_num_threads(1)

        def over(loader: Any) -> Callable[[], None]:
            def epoch() -> None:
                for _ in loader:
                    pass

            return epoch

        calls: dict[str, Callable[[], Any]] = {"one process, two threads, `EncodedImages`": in_threads}
        for label, key in (("imgops", "one by one"), ("torchvision.io", "torchvision.io")):
            loader = DataLoader(Files(raws, works[key]), 64, num_workers=2, persistent_workers=True)
            calls[f"DataLoader, two workers, {label}"] = over(loader)
        for label, times in rounds_of(calls, max(rounds // 6, 3)).items():
            rate = len(raws) / (median(times) * COUNT / 1e6)
            cells.setdefault(label, []).append(f"{rate:.0f}")
    lines += [f"| {label} | {' | '.join(row)} |" for label, row in cells.items()]
    print("\n".join(lines), flush=True)
    return lines


def growth(rounds: int) -> list[str]:
    """Return how the time of an image changes with the batch, with a second thread, and on a busy machine."""
    raws = [file_of(SIZES[i % len(SIZES)], i) for i in range(COUNT)]
    lines = [
        "| pipeline | 256 over 16 | two threads over one, 64 | the same on a busy machine |",
        "|---|---|---|---|",
    ]
    for name in PIPELINES:
        pipeline = batched(name)

        def call(count: int, threads: int, whole: Any = pipeline) -> Callable[[], None]:
            files = imgops.EncodedImages((raws * 7)[:count])

            def run() -> None:
                torch.set_num_threads(threads)
                for _ in range(max(64 // count, 1)):
                    whole(files)
                torch.set_num_threads(1)

            return run

        grown = rounds_of({"16": call(16, 1), "256": call(256, 1)}, rounds)
        cells = [f"{ratio(grown, '256', '16') / 4:.2f}"]
        both = {"one": call(64, 1), "two": call(64, 2)}
        cells.append(f"{ratio(rounds_of(both, rounds), 'one', 'two'):.2f}")
        with busy_neighbors(2):
            cells.append(f"{ratio(rounds_of(both, rounds), 'one', 'two'):.2f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


# -- images of different sizes --------------------------------------------------------------------------------


def packed(rounds: int) -> list[str]:
    """Return the time of a call on 64 images of different sizes, divided by that of a loop on one thread."""
    generator = torch.Generator().manual_seed(0)
    sizes = torch.randint(250, 600, (64, 2), generator=generator).tolist()
    lines = ["| function | memory | loop, ms | one thread | two |", "|---|---|---|---|---|"]
    factors = torch.linspace(0.5, 1.5, len(sizes))
    boxes = torch.tensor([[w // 5, h // 6, w // 5 + w // 2, h // 6 + h // 2] for h, w in sizes])
    rows: dict[str, Callable[[Any, Any], Any]] = {
        "resize": lambda x, own: imgops.resize(x, (224, 224)),
        "resized_crop": lambda x, own: imgops.resized_crop(x, own(boxes), (224, 224)),
        "warp_affine": lambda x, own: imgops.warp_affine(x, TURN, (224, 224)),
        "adjust_saturation": lambda x, own: imgops.adjust_saturation(x, own(factors)),
        "gaussian_blur": lambda x, own: imgops.gaussian_blur(x, 9, 2.0),
    }
    for name, call in rows.items():
        for memory in ("planar", "interleaved"):
            images = [
                torch.randint(0, 256, (h, w, 3), dtype=torch.uint8, generator=generator) for h, w in sizes
            ]
            images = [x.permute(2, 0, 1) for x in images]
            if memory == "planar":
                images = [x.contiguous() for x in images]
            batch = imgops.PackedImages.of(images)

            def one_call(n: int, b: Any = batch, c: Any = call) -> Any:
                torch.set_num_threads(n)
                made = c(b, lambda values: values)
                torch.set_num_threads(1)
                return made

            def loop(each: Any = images, c: Any = call) -> Any:
                made = [c(x, lambda values, i=i: values[i]) for i, x in enumerate(each)]  # type: ignore[misc]
                return torch.stack(made) if all(m.shape == made[0].shape for m in made) else made

            found = rounds_of({"loop": loop, "one": lambda: one_call(1), "two": lambda: one_call(2)}, rounds)
            times = [1 / ratio(found, "loop", own) for own in ("one", "two")]
            cells = f"{median(found['loop']) * COUNT / 1000:.1f} | {times[0]:.2f} | {times[1]:.2f}"
            lines.append(f"| `{name}` | {memory} | {cells} |")
            print(lines[-1], flush=True)
    return lines


TURN = torch.tensor([[0.9, 0.1, 3.0], [-0.1, 0.9, 20.0]])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loading")
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    facts = machine()
    packages = [
        p for p in ("torch", "torchvision", "pillow", "albumentations", "nvidia-dali-cuda130") if _version(p)
    ]
    decoder = imgops.show_config("dicts")["JPEG decoder"]["decoder"]  # type: ignore[index]
    lines = [
        "# From files",
        "",
        f"{facts['cpu']}; {decoder}; " + ", ".join(f"{p} {_version(p)}" for p in packages) + ".",
        "",
        *(__doc__ or "").split("\n\n")[1].strip().splitlines(),
        "Above 1 imgops is faster.",
        "",
        *pipelines(options.rounds),
        "",
        "For evaluation, `Resize(256), CenterCrop(224)`: the time of the other ways divided by that of one call",
        "of imgops, which decodes only what the crop needs:",
        "",
        *evaluation(options.rounds),
        "",
        "Loaders on the same two cores:",
        "",
        *loaders(options.rounds),
        "",
        "The time of an image, decoded and transformed, in a batch of 256 over one of 16, on one thread; and how many",
        "times as fast two threads are as one, on an idle machine and next to two programs that compute all the time:",
        "",
        *growth(options.rounds),
        "",
        "64 images of different sizes in one call, divided by the time of a loop on one thread:",
        "",
        *packed(max(options.rounds // 3, 5)),
        "",
        "Decoding alone, one thread, 500 x 375; imgops' planar result (\"interleaved\" is imgops' interleaved one):",
        "",
        *decoding(options.rounds),
    ]
    path = RESULTS / f"loading-{date.today().isoformat()}-{facts['slug']}.md"
    path.write_text("\n".join(lines) + "\n")
    print(path)


def _version(package: str) -> str:
    try:
        return version(package)
    except Exception:
        return ""


if __name__ == "__main__":
    main()
