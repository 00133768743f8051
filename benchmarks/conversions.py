"""``python -m benchmarks.conversions``: time each conversion and each exact processor against its original.

Each pipeline gets one photograph of 375 x 500 in its library's format: a PIL image, an array for
albumentations, four images for a processor. imgops and the original take turns with the same seeds; the
numbers are the time of imgops divided by that of the original, as a ratio of medians: below 1, imgops is
faster.
"""

from __future__ import annotations

import argparse
import os
import random
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from importlib.metadata import version
from importlib.util import find_spec
from statistics import median
from typing import Any

import numpy as np
import torch
from PIL import Image
from torchvision import transforms as v1
from torchvision import tv_tensors
from torchvision.transforms import _presets as presets
from torchvision.transforms import v2

from benchmarks.__main__ import RESULTS
from benchmarks.pipelines import MEAN, STD, photo
from benchmarks.table import machine
from imgops import transforms as ours

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")
Row = tuple[str, Callable[[], Any], Callable[[], Any]]


def _called(name: str, given: Any, *images: Any) -> Row:
    """Return a row for a pipeline and its conversion, which are called with images."""
    converted = ours.convert(given)
    return name, lambda: given(*images), lambda: converted(*images)


# -- torchvision ---------------------------------------------------------------------------------------


def _training(module: Any, last: list[Any]) -> dict[str, list[Any]]:
    """Return the training pipelines of torchvision's references, and two well-known ones."""
    crop, flip = module.RandomResizedCrop(224), module.RandomHorizontalFlip()
    jitter = module.RandomApply([module.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8)
    blur = module.RandomApply([module.GaussianBlur(23)], p=0.5)
    found = {"ImageNet": [crop, flip, *last]}
    for name in ("AutoAugment", "RandAugment", "TrivialAugmentWide", "AugMix"):
        found[name] = [crop, flip, getattr(module, name)(), *last, module.RandomErasing(0.1)]
    found["SimCLR"] = [crop, flip, jitter, module.RandomGrayscale(0.2), blur, *last]
    small = [module.Resize(32), module.CenterCrop(32)]
    return found | {"CIFAR, from 32 x 32": [*small, module.RandomCrop(32, 4), flip, *last]}


def torchvision_rows() -> Iterator[Row]:
    image = Image.fromarray(photo())
    tensor = v1.functional.pil_to_tensor(image)
    yield _called("ImageClassification", presets.ImageClassification(crop_size=224), image)
    yield _called("ImageClassification, a tensor", presets.ImageClassification(crop_size=224), tensor)
    yield _called("ObjectDetection", presets.ObjectDetection(), image)
    yield _called("SemanticSegmentation", presets.SemanticSegmentation(resize_size=520), image)
    yield _called("OpticalFlow", presets.OpticalFlow(), image, image)
    video = presets.VideoClassification(crop_size=(112, 112), resize_size=(128, 171))
    yield _called("VideoClassification, 8 frames", video, tensor.expand(8, -1, -1, -1).contiguous())
    last = [v1.ToTensor(), v1.Normalize(MEAN, STD)]
    for name, steps in _training(v1, last).items():
        yield _called(f"v1, {name}", v1.Compose(steps), image)
    last = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    for name, steps in _training(v2, last).items():
        yield _called(f"v2, {name}", v2.Compose(steps), image)
        yield _called(f"v2, {name}, a tensor", v2.Compose(steps), tensor)
    boxes = torch.tensor([[10.0, 20, 200, 300], [100, 50, 480, 350]])
    sample = {
        "image": image,
        "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(375, 500)),
        "labels": torch.tensor([1, 2]),
    }
    distort, zoom = v2.RandomPhotometricDistort(), v2.RandomZoomOut(fill=[123, 117, 104])
    steps = [distort, zoom, v2.RandomIoUCrop(), v2.RandomHorizontalFlip(), v2.ToImage()]
    steps += [v2.ToDtype(torch.float32, scale=True), v2.SanitizeBoundingBoxes()]
    yield _called("v2, SSD with boxes", v2.Compose(steps), sample)


# -- timm, open_clip, lightly --------------------------------------------------------------------------

TIMM: dict[str, dict[str, Any]] = {
    "RandAugment": {"auto_augment": "rand-m9-mstd0.5-inc1"},
    "RandAugment, random erasing": {
        "auto_augment": "rand-m9-mstd0.5-inc1",
        "re_prob": 0.25,
        "re_mode": "pixel",
    },
    "AutoAugment": {"auto_augment": "original"},
    "3-Augment": {"auto_augment": "3a", "color_jitter": 0.3},
    "AugMix": {"auto_augment": "augmix-m5-w4-d2"},
    "erasing by pixels": {"re_prob": 1.0, "re_mode": "pixel"},
    "erasing by colors": {"re_prob": 1.0, "re_mode": "rand", "re_count": 3},
    "erasing": {"re_prob": 1.0, "re_mode": "const"},
    "color jitter": {"color_jitter": 0.4, "color_jitter_prob": 0.8, "grayscale_prob": 0.2},
    "random interpolation": {"interpolation": "random"},
    "crops with their ratio": {"train_crop_mode": "rkrc", "vflip": 0.5},
    "NaFlex": {"naflex": True, "patch_size": 16, "max_seq_len": 196},
    "no augmentation": {"no_aug": True},
}


def timm_rows() -> Iterator[Row]:
    from timm.data import create_transform

    image = Image.fromarray(photo())
    for name, how in {"bicubic": {"interpolation": "bicubic"}, "bilinear": {}}.items():
        yield _called(f"evaluation, {name}", create_transform(224, **how), image)
    squash: dict[str, Any] = {"crop_pct": 1.0, "crop_mode": "squash", "interpolation": "bicubic"}
    yield _called("evaluation, squashed", create_transform(224, **squash), image)
    for name, how in TIMM.items():
        yield _called(f"training, {name}", create_transform(224, is_training=True, **how), image)


def open_clip_rows() -> Iterator[Row]:
    from open_clip.transform import image_transform

    image = Image.fromarray(photo())
    jitter = {"color_jitter": (0.4, 0.4, 0.4, 0.0), "color_jitter_prob": 0.8, "gray_scale_prob": 0.4}
    by_timm = {"use_timm": True, "scale": (0.3, 1.0), "color_jitter": 0.4, "re_prob": 0.5}
    every: dict[str, dict[str, Any]] = {
        "evaluation": {"is_train": False},
        "evaluation, longest": {"is_train": False, "resize_mode": "longest"},
        "evaluation, squashed": {"is_train": False, "resize_mode": "squash"},
        "training": {"is_train": True},
        "training, color jitter": {"is_train": True, "aug_cfg": jitter},
        "training, by timm": {"is_train": True, "aug_cfg": by_timm},
    }
    for name, how in every.items():
        yield _called(name, image_transform(224, **how), image)


def lightly_rows() -> Iterator[Row]:
    from lightly import transforms as lightly
    from lightly.transforms.ijepa_transform import IJEPATransform

    image = Image.fromarray(photo())
    for name in sorted(n for n in dir(lightly) if n.endswith("Transform")):
        with suppress(Exception):  # classes that are parts of others and do not take PIL images
            given = getattr(lightly, name)()
            given(image)
            yield _called(name, given, image)
    yield _called("IJEPATransform", IJEPATransform(), image)


# -- albumentations ------------------------------------------------------------------------------------


def albumentations_rows() -> Iterator[Row]:
    import albumentations as A
    from albumentations.pytorch import ToTensorV2

    last, crop = [A.Normalize(MEAN, STD), ToTensorV2()], A.RandomResizedCrop((224, 224))
    jitter, gray = A.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8), A.ToGray(p=0.2)
    blur = A.GaussianBlur(blur_limit=(23, 23), sigma_limit=(0.1, 2.0))
    affine = A.Affine(scale=(0.8, 1.2), rotate=(-20, 20), translate_percent=(-0.1, 0.1), p=1)
    each: dict[str, list[Any]] = {
        "ImageNet, evaluation": [A.SmallestMaxSize(256), A.CenterCrop(224, 224), *last],
        "ImageNet, training": [crop, A.HorizontalFlip(), *last],
        "SimCLR": [crop, A.HorizontalFlip(), jitter, gray, blur, *last],
        "colors": [
            A.RandomBrightnessContrast(p=1),
            A.HueSaturationValue(p=1),
            A.RandomGamma(p=1),
            A.CLAHE(p=1),
        ],
        "warps": [
            A.ElasticTransform(p=1),
            A.GridDistortion(p=1),
            A.OpticalDistortion(p=1),
            A.Perspective(p=1),
        ],
        "noise and blur": [A.GaussNoise(p=1), A.ISONoise(p=1), A.MotionBlur(p=1), A.ImageCompression(p=1)],
        "dropout": [A.CoarseDropout(p=1), A.GridDropout(p=1), A.PixelDropout(p=1)],
        "weather": [A.RandomRain(p=1), A.RandomFog(p=1), A.RandomSunFlare(p=1), A.RandomShadow(p=1)],
        "one of several": [
            A.OneOf([A.MedianBlur(), A.Sharpen(), A.Emboss()], p=1),
            A.SomeOf([A.Posterize(), A.Solarize(), A.Equalize()], 2, p=1),
        ],
        "small work": [A.HorizontalFlip(p=1), A.InvertImg(p=1), A.ChannelShuffle(p=1)],
    }
    frame, rng = photo(), np.random.default_rng(0)
    mask = rng.integers(0, 5, frame.shape[:2]).astype(np.uint8)
    boxes = np.array([[10, 20, 200, 300], [100, 50, 480, 350]], np.float32)
    pipelines = {name: (A.Compose(steps, seed=0), {"image": frame}) for name, steps in each.items()}
    steps = [affine, A.RandomCrop(320, 320), A.HorizontalFlip(), *last]
    pipelines["segmentation"] = A.Compose(steps, seed=0), {"image": frame, "mask": mask}
    square = [
        A.LongestMaxSize(640),
        A.PadIfNeeded(640, 640, border_mode=0),
        A.HorizontalFlip(),
        affine,
        *last,
    ]
    params = A.BboxParams("pascal_voc", label_fields=["labels"])
    sample = {"image": frame, "bboxes": boxes, "labels": [1, 2]}
    pipelines["detection"] = A.Compose(square, bbox_params=params, seed=0), sample
    for name, (given, sent) in pipelines.items():
        converted = ours.convert(given)
        yield name, lambda f=given, x=sent: f(**x), lambda f=converted, x=sent: f(**x)


# -- processors ----------------------------------------------------------------------------------------


def processor_rows(of_pil: bool) -> Iterator[Row]:
    """Yield each exact image processor together with the same processor of one of transformers' backends."""
    from imgops.integrations.transformers import exact
    from tests.processors import MADE_WITH, classes, result

    frame = photo()
    images = [Image.fromarray(np.roll(frame, 31 * i, 0)) for i in range(4)]
    for name, (kind, twin) in classes().items():
        theirs: Any = twin if of_pil else kind
        if theirs is None:
            continue
        given, mine = theirs(**MADE_WITH.get(name, {})), exact(kind(**MADE_WITH.get(name, {})))
        yield (
            name.removesuffix("ImageProcessor"),
            lambda p=given, n=name: result(p, n, images, "pt"),
            lambda p=mine, n=name: result(p, n, images, "pt"),
        )


# -- the page ----------------------------------------------------------------------------------------------

SECTIONS: dict[str, tuple[str, Callable[[], Iterator[Row]]]] = {
    "torchvision": ("torchvision", torchvision_rows),
    "timm": ("timm", timm_rows),
    "open_clip": ("open_clip", open_clip_rows),
    "lightly": ("lightly", lightly_rows),
    "albumentations": ("albumentations", albumentations_rows),
    "processors, next to the PIL backend": ("transformers", lambda: processor_rows(True)),
    "processors, next to the torchvision backend": ("transformers", lambda: processor_rows(False)),
}


def _seconds(call: Callable[[], Any], seed: int, count: int) -> float:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def compared(given: Callable[[], Any], mine: Callable[[], Any], seconds: float) -> tuple[float, float]:
    """Return the median times, in seconds, of two calls that take turns, with equal seeds in each round."""
    for call in (given, mine):
        _seconds(call, 0, 1)
    once = _seconds(given, 0, 1) + _seconds(mine, 0, 1)
    count = max(1, int(0.01 / once))
    rounds = min(max(int(seconds / (once * count)), 5), 60)
    pairs = [(_seconds(given, i, count), _seconds(mine, i, count)) for i in range(rounds)]
    return median(p[0] for p in pairs), median(p[1] for p in pairs)


def line(row: Row, threads: int, seconds: float) -> str:
    name, given, mine = row
    try:
        given()
    except Exception as error:  # the original needs a missing package, or another version of Pillow
        return f"| {name} | – | {type(error).__name__} | – |"
    times = {}
    for count in (1, threads):
        torch.set_num_threads(count)
        times[count] = compared(given, mine, seconds)
    alone, several = times[1], times[threads]
    ratios = [f"{mine / given:.2f}" for given, mine in (alone, several)]
    return f"| {name} | {alone[0] * 1e3:.2f} | {' | '.join(ratios)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.conversions")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each row and number of threads")
    parser.add_argument("--only", default="", help="sections whose name contains this; nothing is written")
    parser.add_argument("--row", default="", help="rows whose name contains this; nothing is written")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    threads, facts = torch.get_num_threads(), machine()
    packages = [
        "torch",
        "torchvision",
        "pillow",
        "timm",
        "open_clip_torch",
        "lightly",
        "albumentations",
        "transformers",
    ]
    installed = [
        p for p in packages if find_spec({"pillow": "PIL", "open_clip_torch": "open_clip"}.get(p, p))
    ]
    lines = ["# Conversions next to their originals", "", f"{facts['cpu']}; "]
    lines[-1] += ", ".join(f"{p} {version(p)}" for p in installed) + "."
    lines += ["", *(__doc__ or "").split("\n\n")[1].strip().splitlines()]
    for title, (package, rows) in SECTIONS.items():
        if options.only not in title or not find_spec(package):
            continue
        lines += ["", f"## {title}", "", f"| pipeline | original, ms | one thread | {threads} threads |"]
        lines.append("|---|---|---|---|")
        print("\n".join(lines[-3:]))
        for row in rows():
            if options.row in row[0]:
                lines.append(line(row, threads, options.seconds))
                print(lines[-1], flush=True)
    if not options.only and not options.row:
        path = RESULTS / f"conversions-{date.today()}-{facts['slug']}.md"
        path.write_text("\n".join([*lines, ""]))
        print(path)


if __name__ == "__main__":
    main()
