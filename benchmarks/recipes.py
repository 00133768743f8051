"""``python -m benchmarks.recipes``: a detector's recipe and a strong one, compared with other libraries.

The detector: a mosaic of four photographs of 375 x 500 in 640 x 640, an affine warp, HSV factors and a flip,
with ten boxes per photograph; compared with the same recipe written with OpenCV, as in Ultralytics, and with
albumentations. Strong: CLAHE, motion blur, grid distortion, coarse dropout and JPEG, each always applied, on
one photograph; compared with albumentations and kornia (which has an elastic distortion instead of a grid).
One thread; the columns take turns; each number is the median of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from importlib.util import find_spec
from statistics import median
from typing import Any

import cv2
import numpy as np
import torch
from torchvision import tv_tensors

from benchmarks.__main__ import RESULTS
from benchmarks.pipelines import measure, photo
from benchmarks.table import machine
from imgops import transforms as v2

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")
SIZE, BOXES = 640, 10
PEERS = ("OpenCV", "albumentations", "kornia")


def boxes(seed: int) -> np.ndarray:
    """Return left, top, right and bottom of ten boxes of a photograph."""
    rng = np.random.default_rng(seed)
    corners = np.sort(rng.random((BOXES, 2, 2)), 1) * [500, 375]
    return corners.reshape(BOXES, 4)


# -- the detector --------------------------------------------------------------------------------------


def detector(**each: Any) -> list[Any]:
    """Return the transforms that follow the mosaic."""
    return [
        v2.RandomAffine(0, (0.1, 0.1), (0.5, 1.5), interpolation="bilinear", fill=114, **each),
        v2.RandomHSV((0.985, 1.015), (0.3, 1.7), (0.6, 1.4), method="scale", p=1.0, **each),
        v2.RandomHorizontalFlip(0.5, **each),
    ]


def by_opencv(frames: list[np.ndarray], given: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Run the hand-written recipe."""
    canvas = np.full((SIZE, SIZE, 3), 114, np.uint8)
    x, y = (int(SIZE * random.uniform(0.25, 0.75)) for _ in range(2))
    moved = []
    for i, (frame, each) in enumerate(zip(frames, given, strict=True)):
        factor = min(SIZE / 2 / frame.shape[0], SIZE / 2 / frame.shape[1])
        small = cv2.resize(frame, (round(frame.shape[1] * factor), round(frame.shape[0] * factor)))
        high, wide = small.shape[:2]
        left, top = (x - wide if i % 2 == 0 else x), (y - high if i < 2 else y)
        a, b, c, d = max(left, 0), max(top, 0), min(left + wide, SIZE), min(top + high, SIZE)
        canvas[b:d, a:c] = small[b - top : d - top, a - left : c - left]
        moved.append(each * factor + np.array([left, top, left, top]))
    found = np.concatenate(moved).clip(0, SIZE)
    factor, half = random.uniform(0.5, 1.5), SIZE / 2
    shift = [random.uniform(-0.1, 0.1) * SIZE for _ in range(2)]
    matrix = np.array(
        [[factor, 0, half - factor * half + shift[0]], [0, factor, half - factor * half + shift[1]]]
    )
    image = cv2.warpAffine(canvas, matrix, (SIZE, SIZE), borderValue=(114, 114, 114))
    points = np.ones((len(found) * 4, 3))
    points[:, :2] = found[:, [0, 1, 2, 3, 0, 3, 2, 1]].reshape(-1, 2)
    corners = (points @ matrix.T).reshape(-1, 4, 2)
    found = np.concatenate([corners.min(1), corners.max(1)], 1).clip(0, SIZE)
    factors = np.random.uniform(-1, 1, 3) * [0.015, 0.7, 0.4] + 1
    hue, saturation, value = cv2.split(cv2.cvtColor(image, cv2.COLOR_RGB2HSV))
    levels = np.arange(256, dtype=factors.dtype)
    tables = [(levels * factors[0]) % 180, *((levels * f).clip(0, 255) for f in factors[1:])]
    planes = [cv2.LUT(p, t.astype(np.uint8)) for p, t in zip((hue, saturation, value), tables, strict=True)]
    cv2.cvtColor(cv2.merge(planes), cv2.COLOR_HSV2RGB, dst=image)
    if random.random() < 0.5:
        image = np.ascontiguousarray(image[:, ::-1])
        found[:, [0, 2]] = SIZE - found[:, [2, 0]]
    return image, found


def detector_columns() -> dict[str, Callable[[], Any]]:
    frames, given = [photo()] * 4, [boxes(i) for i in range(4)]
    samples = [
        {
            "image": tv_tensors.Image(torch.from_numpy(frame).permute(2, 0, 1)),
            "boxes": tv_tensors.BoundingBoxes(
                torch.from_numpy(each).float(), format="XYXY", canvas_size=(375, 500)
            ),
        }
        for frame, each in zip(frames, given, strict=True)
    ]
    planar = [{**s, "image": tv_tensors.Image(s["image"].contiguous())} for s in samples]
    pipeline = v2.Compose([v2.Mosaic(SIZE, fill=114, antialias=False), *detector()])
    calls: dict[str, Callable[[], Any]] = {
        "imgops, planar": lambda: pipeline(planar),
        "imgops, interleaved": lambda: pipeline(samples),
        "OpenCV": lambda: by_opencv(frames, given),
    }
    if find_spec("albumentations"):
        import albumentations as A

        steps = [
            A.Mosaic(
                target_size=(SIZE, SIZE), cell_shape=(SIZE // 2, SIZE // 2), fit_mode="contain", fill=114, p=1
            ),
            A.Affine(scale=(0.5, 1.5), keep_ratio=True, translate_percent=(-0.1, 0.1), fill=114, p=1),
            A.HueSaturationValue(p=1),
            A.HorizontalFlip(p=0.5),
        ]
        theirs = A.Compose(steps, bbox_params=A.BboxParams("pascal_voc", label_fields=["labels"]))
        labels = list(range(BOXES))
        more = [
            {"image": f, "bboxes": b, "labels": labels} for f, b in zip(frames[1:], given[1:], strict=True)
        ]
        calls["albumentations"] = lambda: theirs(
            image=frames[0], bboxes=given[0], labels=labels, mosaic_metadata=more
        )
    return calls


# -- strong ----------------------------------------------------------------------------------------------


def strong(**each: Any) -> Any:
    steps = [
        v2.RandomCLAHE(p=1.0, **each),
        v2.RandomMotionBlur(p=1.0, **each),
        v2.RandomGridDistortion(p=1.0, **each),
        v2.CoarseDropout(p=1.0, **each),
        v2.RandomCompression(quality=(60, 95), p=1.0, **each),
    ]
    return v2.Compose(steps)


def strong_columns() -> dict[str, Callable[[], Any]]:
    frame = photo()
    hwc = torch.from_numpy(frame).permute(2, 0, 1)
    planar, pipeline = hwc.contiguous(), strong()
    calls: dict[str, Callable[[], Any]] = {
        "imgops, planar": lambda: pipeline(planar),
        "imgops, interleaved": lambda: pipeline(hwc),
    }
    if find_spec("albumentations"):
        import albumentations as A

        steps = [A.CLAHE(p=1), A.MotionBlur(p=1), A.GridDistortion(p=1), A.CoarseDropout(p=1)]
        theirs = A.Compose([*steps, A.ImageCompression(quality_range=(60, 95), p=1)])
        calls["albumentations"] = lambda: theirs(image=frame)
    if find_spec("kornia"):
        import kornia.augmentation as K

        parts = [
            K.RandomClahe(p=1.0),
            K.RandomMotionBlur((3, 7), 180.0, (-1.0, 1.0), p=1.0),
            K.RandomElasticTransform(p=1.0),
            K.RandomErasing(p=1.0),
            K.RandomJPEG((60.0, 95.0), p=1.0),
        ]
        kornia = K.AugmentationSequential(*parts, data_keys=["input"])
        real = (
            (planar[None] / 255).contiguous()[..., :368, :496].contiguous()
        )  # kornia's JPEG needs multiples of 16
        calls["kornia"] = lambda: kornia(real)
    return calls


# -- the page ----------------------------------------------------------------------------------------------


def line(name: str, found: list[dict[str, float]]) -> str:
    times = [median(r[f"imgops, {layout}"] for r in found) for layout in ("planar", "interleaved")]
    cells = []
    for peer in PEERS:
        if peer not in found[0]:
            cells.append("–")
            continue
        own = "imgops, planar" if peer == "kornia" else "imgops, interleaved"
        cells.append(f"{median(r[peer] / r[own] for r in found):.2f}")
    return (
        f"| {name} | {times[0]:.0f} | {times[1]:.0f} | {1e6 / min(times):.0f} | " + " | ".join(cells) + " |"
    )


def mosaic_alone(rounds: int) -> str:
    """Time a mosaic of images against the four resizes and pastes that it consists of."""
    frames = [photo()] * 4
    images = [torch.from_numpy(f).permute(2, 0, 1) for f in frames]
    transform = v2.Mosaic(SIZE, fill=114, antialias=False)

    def by_hand() -> np.ndarray:
        canvas = np.full((SIZE, SIZE, 3), 114, np.uint8)
        for i, frame in enumerate(frames):
            top, left = 80 + i // 2 * 240, i % 2 * 320
            canvas[top : top + 240, left : left + 320] = cv2.resize(frame, (320, 240))
        return canvas

    found = measure({"Mosaic": lambda: transform(images), "by hand": by_hand}, rounds)
    ratio = median(r["Mosaic"] / r["by hand"] for r in found)
    return f"`Mosaic` of four images takes {ratio:.2f} times as long as four `cv2.resize` and four pastes by NumPy."


def batches(rounds: int) -> list[str]:
    frame = torch.from_numpy(photo()).permute(2, 0, 1).contiguous()
    batch = frame.expand(8, -1, -1, -1).contiguous()
    square = torch.nn.functional.pad(batch, (0, 140, 0, 265))
    rows = {"detector, after its mosaic": (v2.Compose(detector(per_sample=True)), square)}
    rows["strong"] = strong(per_sample=True), batch
    lines = []
    for name, (pipeline, images) in rows.items():
        torch.compiler.reset()
        graph = torch.compile(pipeline, fullgraph=True)
        calls = {"eager": lambda f=pipeline, x=images: f(x), "compiled": lambda f=graph, x=images: f(x)}
        found = measure(calls, rounds)
        time = median(r["eager"] for r in found) / len(images)
        ratio = median(r["compiled"] / r["eager"] for r in found)
        lines.append(f"| {name} | {time:.0f} | {1e6 / time:.0f} | {ratio:.2f} |")
        print(lines[-1], flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recipes")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--no-compile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    facts = machine()
    packages = [p for p in ("torch", "torchvision", "kornia", "albumentations") if find_spec(p)]
    lines = [
        "# Recipes",
        "",
        f"{facts['cpu']}, one thread; " + ", ".join(f"{p} {version(p)}" for p in packages) + ".",
        "",
        *(__doc__ or "").split("\n\n")[1].strip().splitlines(),
        "Above 1 imgops is faster.",
        "",
        "| recipe | planar, us | interleaved, us | images/s | " + " | ".join(PEERS) + " |",
        "|---|---|---|---|" + "---|" * len(PEERS),
    ]
    for name, columns in (("detector", detector_columns), ("strong", strong_columns)):
        lines.append(line(name, measure(columns(), options.rounds)))
        print(lines[-1], flush=True)
    lines += ["", mosaic_alone(options.rounds)]
    print(lines[-1], flush=True)
    if not options.no_compile:
        lines += ["", "A batch of 8, each image with its own draws (`per_sample=True`):", ""]
        lines += ["| recipe | eager, us an image | images/s | compiled / eager |", "|---|---|---|---|"]
        lines += batches(max(options.rounds // 3, 5))
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"recipes-{date.today()}-{facts['slug']}.md"
    path.write_text("\n".join([*lines, ""]))
    print(path)


if __name__ == "__main__":
    main()
