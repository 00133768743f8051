"""``python -m benchmarks.converted``: pipelines of other libraries, their conversions, and imgops' own classes.

Each pipeline runs on one thread, on one photograph of 375 x 500 at a time. The original gets it as its library
takes it: a PIL image, or an array for albumentations. The columns take turns; each number is the time divided
by that of the original, the median of the rounds' ratios: below 1, imgops is faster. "Converted" gets the
input of the original. "A tensor" is a uint8 tensor, which the conversion and a pipeline of imgops' own classes
get. The classes make torchvision's draws, and their pixels differ from those of albumentations.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from statistics import median
from typing import Any

import cv2
import torch
from PIL import Image
from torchvision import transforms as v1

from benchmarks.__main__ import RESULTS
from benchmarks.pipelines import MEAN, STD, measure, photo, steps
from benchmarks.table import machine
from imgops import transforms as ours

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")
HEAD = ("converted", "converted, a tensor", "imgops' classes, a tensor")


def _last() -> list[Any]:
    return [ours.ToDtype(torch.float32, scale=True), ours.Normalize(MEAN, STD)]


def pipelines() -> dict[str, tuple[Any, Any, bool]]:
    """Return each pipeline, imgops' classes for the same work if there are any, and whether it takes arrays."""
    import albumentations as A
    from albumentations.pytorch import ToTensorV2
    from timm.data import create_transform

    of_v1 = [v1.ToTensor(), v1.Normalize(MEAN, STD)]
    found: dict[str, tuple[Any, Any, bool]] = {
        f"torchvision, {name}": (steps(name, v1, of_v1), steps(name, ours, _last()), False)
        for name in ("ImageNet", "SimCLR", "RandAugment")
    }
    bicubic = ours.InterpolationMode.BICUBIC
    evaluation = ours.Compose([ours.Resize(256, bicubic), ours.CenterCrop(224), *_last()])
    found["timm, evaluation"] = create_transform(224, interpolation="bicubic"), evaluation, False
    policy = create_transform(224, is_training=True, auto_augment="rand-m9-mstd0.5-inc1")
    found["timm, RandAugment"] = policy, None, False
    crop, last = A.RandomResizedCrop((224, 224)), [A.Normalize(MEAN, STD), ToTensorV2()]
    views = [A.ColorJitter(0.4, 0.4, 0.4, 0.1, p=1.0), A.GaussianBlur((23, 23), (0.1, 2.0)), A.ToGray(p=0.2)]
    for name, more in (("ImageNet", []), ("SimCLR", views)):
        given = A.Compose([crop, A.HorizontalFlip(), *more, *last])
        # albumentations does not antialias its random crops.
        found[f"albumentations, {name}"] = given, steps(name, ours, _last(), antialias=False), True
    return found


def line(name: str, given: Any, classes: Any, takes_arrays: bool, rounds: int) -> str:
    frame = photo()
    picture, tensor = Image.fromarray(frame), torch.from_numpy(frame).permute(2, 0, 1).contiguous()
    converted = ours.convert(given)

    def original(pipeline: Any) -> Callable[[], Any]:
        return lambda: pipeline(image=frame) if takes_arrays else pipeline(picture)

    calls = {"original": original(given), HEAD[0]: original(converted), HEAD[1]: lambda: converted(tensor)}
    if classes is not None:
        calls[HEAD[2]] = lambda: classes(tensor)
    found = measure(calls, rounds)
    cells = [f"{median(r['original'] for r in found) / 1e3:.2f}"]
    cells += [
        f"{median(r[column] / r['original'] for r in found):.2f}" if column in calls else "–"
        for column in HEAD
    ]
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.converted")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    facts = machine()
    packages = ("torch", "torchvision", "pillow", "timm", "albumentations")
    lines = [
        "# Converted pipelines",
        "",
        f"{facts['cpu']}, one thread; {', '.join(f'{p} {version(p)}' for p in packages)}.",
        "",
        *(__doc__ or "").split("\n\n")[1].strip().splitlines(),
        "",
        f"| pipeline | original, ms | {' | '.join(HEAD)} |",
        "|---|---|---|---|---|",
    ]
    for name, parts in pipelines().items():
        lines.append(line(name, *parts, options.rounds))
        print(lines[-1], flush=True)
    path = RESULTS / f"converted-{date.today()}-{facts['slug']}.md"
    path.write_text("\n".join([*lines, ""]))
    print(path)


if __name__ == "__main__":
    main()
