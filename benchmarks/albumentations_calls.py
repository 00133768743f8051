"""``python -m benchmarks.albumentations_calls [row ...]``: converted pipelines of albumentations and the originals.

The benchmark calls the two pipelines alternately, with NumPy arrays as keyword arguments. Pipelines with a
seed draw the same numbers. Without a seed, the converted pipeline seeds each transform from PyTorch's generator. Each cell
is the time of the converted pipeline divided by that of the original, the median over the rounds of one run:
below 1, imgops is faster.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import cv2
import numpy as np
import torch

from benchmarks.table import machine
from imgops import transforms

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")

RESULTS = Path(__file__).parent / "results"
Pipeline = Callable[[int | None], Any]


def sample_of(height: int, width: int, boxes: int = 0, format: str = "pascal_voc", points: int = 0) -> Any:
    """Return an image of smooth noise, its mask, and boxes and keypoints with labels, as in a dataset."""
    draws = np.random.default_rng(0)
    small = draws.integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
    image = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
    sample: dict[str, Any] = {"image": image, "mask": image[..., 0] // 16}
    if boxes:
        near = draws.uniform(0, 0.7, (boxes, 2)) * [width, height]
        size = draws.uniform(0.05, 0.3, (boxes, 2)) * [width, height]
        far = near + size
        known = {
            "pascal_voc": np.hstack([near, far]),
            "coco": np.hstack([near, size]),
            "yolo": np.hstack([(near + far) / 2, size]) / [width, height, width, height],
        }
        sample |= {"bboxes": known[format].tolist(), "kinds": list(range(boxes))}
    if points:
        sample["keypoints"] = (draws.uniform(0, 1, (points, 2)) * [width, height]).tolist()
    return sample


def rows() -> dict[str, tuple[Pipeline, dict[str, Any]]]:
    """Return pipelines that take a seed, and the arguments of their calls."""
    import albumentations as A

    def boxes(format: str, **more: Any) -> Any:
        return A.BboxParams(format, label_fields=["kinds"], **more)

    def classify(seed: int | None) -> Any:
        return A.Compose([A.RandomResizedCrop((224, 224)), A.HorizontalFlip(), A.Normalize()], seed=seed)

    def color(seed: int | None) -> Any:
        jitter = A.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8)
        steps = [A.RandomResizedCrop((224, 224)), A.HorizontalFlip(), jitter, A.ToGray(p=0.2), A.Normalize()]
        return A.Compose([*steps, A.ToTensorV2()], seed=seed)

    def small(seed: int | None) -> Any:
        steps = [A.PadIfNeeded(40, 40), A.RandomCrop(32, 32), A.HorizontalFlip(), A.Normalize()]
        return A.Compose(steps, seed=seed)

    def detect(format: str) -> Pipeline:
        steps = [A.HorizontalFlip(), A.RandomBrightnessContrast(), A.HueSaturationValue(p=0.1)]
        return lambda seed: A.Compose(steps, boxes(format, clip=True, min_area=25), seed=seed)

    def letterbox(seed: int | None) -> Any:
        steps = [A.LongestMaxSize(320), A.PadIfNeeded(320, 320), A.Affine(scale=(0.8, 1.2), p=0.5)]
        return A.Compose([*steps, A.HorizontalFlip()], boxes("yolo", min_visibility=0.2), seed=seed)

    def flip(seed: int | None) -> Any:
        return A.Compose([A.HorizontalFlip()], boxes("pascal_voc"), A.KeypointParams("xy"), seed=seed)

    def segment(seed: int | None) -> Any:
        steps = [A.RandomCrop(192, 192), A.HorizontalFlip(), A.RandomRotate90(), A.RandomGamma()]
        return A.Compose([*steps, A.GaussNoise(p=0.2), A.Normalize()], seed=seed)

    def joints(seed: int | None) -> Any:
        steps = [A.Affine(rotate=(-30, 30), scale=(0.8, 1.2), p=0.8), A.HorizontalFlip(), A.Resize(192, 256)]
        return A.Compose(steps, keypoint_params=A.KeypointParams("xy", remove_invisible=False), seed=seed)

    def chosen(seed: int | None) -> Any:
        blurs = A.OneOf([A.Blur(3), A.MotionBlur(5), A.GaussianBlur((3, 5))], p=0.5)
        some = A.SomeOf([A.RandomGamma(p=1), A.CLAHE(p=1), A.RGBShift(p=1), A.Sharpen(p=1)], n=2)
        return A.Compose([blurs, some, A.HorizontalFlip(), A.CoarseDropout(p=0.3)], seed=seed)

    def image(height: int, width: int) -> dict[str, Any]:
        return {"image": sample_of(height, width)["image"]}

    several = sample_of(240, 320, 4, points=6)
    return {
        "classification, 240 x 320": (classify, image(240, 320)),
        "classification, 480 x 640": (classify, image(480, 640)),
        "classification with colors, 480 x 640": (color, image(480, 640)),
        "small images, 32 x 32": (small, image(32, 32)),
        "flip of mask, 4 boxes and 6 keypoints, 240 x 320": (flip, several),
        "detection, coco, 2 boxes, 240 x 320": (detect("coco"), sample_of(240, 320, 2, "coco")),
        "detection, coco, 8 boxes, 480 x 640": (detect("coco"), sample_of(480, 640, 8, "coco")),
        "detection, pascal_voc, 100 boxes, 480 x 640": (detect("pascal_voc"), sample_of(480, 640, 100)),
        "detection, yolo, letterbox, 6 boxes, 480 x 640": (letterbox, sample_of(480, 640, 6, "yolo")),
        "detection, yolo, letterbox, 100 boxes, 480 x 640": (letterbox, sample_of(480, 640, 100, "yolo")),
        "segmentation, 240 x 320": (segment, sample_of(240, 320)),
        "segmentation, 480 x 640": (segment, sample_of(480, 640)),
        "keypoints, 17, 240 x 320": (joints, sample_of(240, 320, points=17) | {"mask": None}),
        "OneOf and SomeOf, 240 x 320": (chosen, image(240, 320)),
        "OneOf and SomeOf, 480 x 640": (chosen, image(480, 640)),
    }


def measure(make: Pipeline, sample: dict[str, Any], seed: int | None, rounds: int) -> tuple[float, float]:
    """Return the time of the original pipeline in milliseconds, and the ratio of the converted one to it."""
    given, mine = make(seed), transforms.convert(make(seed))
    times: list[tuple[float, float]] = []
    for number in range(rounds + 1):
        both = []
        for pipeline in (given, mine) if number % 2 else (mine, given):
            start = time.perf_counter()
            for _ in range(20):
                pipeline(**sample)
            both.append((time.perf_counter() - start) / 20 * 1e3)
        times.append((both[0], both[1]) if number % 2 else (both[1], both[0]))
    return median(g for g, _ in times[1:]), median(m for _, m in times[1:]) / median(g for g, _ in times[1:])


def line(name: str, make: Pipeline, sample: dict[str, Any], rounds: int) -> str:
    cells = []
    default = torch.get_num_threads(), cv2.getNumThreads()
    for threads in ((1, 1), default):
        torch.set_num_threads(threads[0])
        cv2.setNumThreads(threads[1])
        for seed in (3, None):
            known, ratio = measure(make, sample, seed, rounds)
            if not cells:
                cells.append(f"{known:.2f}")
            cells.append(f"{ratio:.2f}")
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.albumentations_calls")
    parser.add_argument("rows", nargs="*", help="parts of the names of rows; all rows without one")
    parser.add_argument("--rounds", type=int, default=24)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    facts = machine()
    lines = [
        "# Converted pipelines of albumentations",
        "",
        f"{facts['cpu']}, albumentations {version('albumentations')}, torch {version('torch')}, "
        f"OpenCV {cv2.__version__}.",
        "",
        *(__doc__ or "").split("\n\n")[1].strip().splitlines(),
        "",
        f"| pipeline | albumentations, ms | 1 thread, seed | 1 thread | {cv2.getNumThreads()} threads, seed | "
        f"{cv2.getNumThreads()} threads |",
        "|---|---|---|---|---|---|",
    ]
    for name, (make, sample) in rows().items():
        if not options.rows or any(part in name for part in options.rows):
            lines.append(line(name, make, sample, options.rounds))
            print(lines[-1], flush=True)
    if not options.rows:
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"albumentations-calls-{date.today()}-{facts['slug']}.md"
        path.write_text("\n".join([*lines, ""]))
        print(path)


if __name__ == "__main__":
    main()
