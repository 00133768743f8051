"""The image processors of transformers, with inputs that each of them takes, and a comparison of their results."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
import transformers
from PIL import Image
from torchvision.transforms.v2 import functional as tv
from transformers.image_processing_backends import PilBackend, TorchvisionBackend

from tests.image_forms import photo as photo

#: A thousandth of a level, where a level is 1 / 255 of a range of at least 4 after the normalization.
TOLERANCE = 2e-5
#: What a class needs besides an image, or is made with.
MADE_WITH = {
    "ImageGPTImageProcessor": {
        "clusters": np.random.default_rng(0).uniform(-1, 1, (64, 3)).tolist(),
        "size": {"height": 32, "width": 32},
    },
    "LayoutLMv2ImageProcessor": {"apply_ocr": False},
    "LayoutLMv3ImageProcessor": {"apply_ocr": False},
}
#: Classes that count on tensors.
TENSORS = ("Sam2ImageProcessor", "Sam3ImageProcessor")
PAIRS = ("EfficientLoFTRImageProcessor", "LightGlueImageProcessor", "SuperGlueImageProcessor")


@cache
def classes() -> dict[str, tuple[type, type | None]]:
    """Return each class of the backend on tensors by its name, and its twin of the backend on PIL images."""
    found: dict[str, tuple[type, type | None]] = {}
    folder = Path(transformers.__file__).parent / "models"
    for path in sorted(folder.glob("*/image_processing_*.py")):
        try:
            module = import_module(f"transformers.models.{path.parent.name}.{path.stem}")
        except ImportError:  # a library that is not installed
            continue
        for name, value in vars(module).items():
            own = isinstance(value, type) and value.__module__ == module.__name__
            if own and issubclass(value, (TorchvisionBackend, PilBackend)):
                base = name.removesuffix("Pil")
                one, twin = found.get(base, (None, None))
                found[base] = (one, value) if issubclass(value, PilBackend) else (value, twin)
    return {name: pair for name, pair in found.items() if pair[0] is not None}  # type: ignore[misc]


def _levels(image: Image.Image) -> np.ndarray:
    return np.array(image)


KINDS = {
    "photo": lambda: photo(121, 160),
    "upright": lambda: photo(333, 207),
    "sizes": lambda: [photo(121, 160), photo(90, 45), photo(300, 310)],
    "gray": lambda: photo(121, 160, "L"),
    "alpha": lambda: photo(121, 160, "RGBA"),
    "palette": lambda: photo(121, 160, "P"),
    "array": lambda: _levels(photo(121, 160)),
    "tensor": lambda: torch.from_numpy(_levels(photo(121, 160))).permute(2, 0, 1),
    "floats": lambda: (_levels(photo(121, 160)) / 255).astype(np.float32),
    "whole floats": lambda: _levels(photo(121, 160)).astype(np.float32),
}


def _boxes_of(image: Any) -> dict[str, Any]:
    """Return annotations of two objects, in COCO's form."""
    each = []
    for i, box in enumerate([(10, 12, 60, 40), (50, 30, 55.5, 70.25)]):
        x, y, w, h = box
        outline = [x, y, x + w, y, x + w, y + h, x, y + h]
        each.append(
            {"bbox": box, "category_id": i + 1, "area": w * h, "iscrowd": 0, "segmentation": [outline]}
        )
    return {"image_id": 7, "annotations": each}


def more(name: str, call: Any, images: Any) -> dict[str, Any]:
    """Return the arguments of a call besides the images, those that are optional included."""
    several, taken = isinstance(images, list), inspect.signature(call).parameters
    count = len(images) if several else 1

    def each(value: Any) -> Any:
        return [value(x) for x in images] if several else value(images)

    def size_of(x: Any) -> tuple[int, int]:
        if isinstance(x, Image.Image):
            return x.height, x.width
        return (x.shape[-2], x.shape[-1]) if isinstance(x, torch.Tensor) else (x.shape[0], x.shape[1])

    def labels(x: Any) -> np.ndarray:
        height, width = size_of(x)
        y, x = np.mgrid[:height, :width]
        return ((y // 17 + x // 23) % 9).astype(np.uint8)

    given: dict[str, Any] = {}
    if "segmentation_maps" in taken:
        given["segmentation_maps"] = each(labels)
    if "trimaps" in taken:
        given["trimaps"] = each(lambda x: labels(x) * 28)
    if "annotations" in taken:
        given["annotations"] = each(_boxes_of)
    if "boxes" in taken:
        given["boxes"] = [[[10.0, 12.0, 60.0, 40.0], [50.0, 30.0, 55.5, 70.25]]] * count
    if "task_inputs" in taken:
        given["task_inputs"] = ["semantic"] * count
    if "prompt_depth" in taken:
        given["prompt_depth"] = each(lambda x: labels(x).astype(np.float32))
    return given


def result(processor: Any, name: str, images: Any, return_tensors: str | None = None, **how: Any) -> Any:
    if name in PAIRS:
        images = [images, images] if not isinstance(images, list) else images[:2]
    given = more(name, processor.preprocess, images)
    return processor(images, return_tensors="pt" if name in TENSORS else return_tensors, **given, **how)


def _resize_by_library(
    image: torch.Tensor, size: Any, interpolation: Any = None, max_size: Any = None, antialias: bool = True
) -> torch.Tensor:
    """Resize each plane by ``PIL.Image.resize`` or, without antialiasing, a frame by ``cv2.resize``."""
    name: Any = interpolation
    if not isinstance(interpolation, int):
        name = "bilinear" if interpolation is None else interpolation.value.removesuffix("-exact")
        name = getattr(Image.Resampling, name.upper())
    if isinstance(size, int) or len(size) == 1:
        short = size if isinstance(size, int) else size[0]
        height, width = image.shape[-2:]
        share = short / min(height, width)
        size = (short, int(width * share)) if height <= width else (int(height * share), short)
    new = int(size[1]), int(size[0])
    if not antialias and name != Image.Resampling.NEAREST:
        flag = {Image.Resampling.BILINEAR: cv2.INTER_LINEAR, Image.Resampling.BICUBIC: cv2.INTER_CUBIC}[name]
        frames = image.reshape(-1, *image.shape[-3:]).permute(0, 2, 3, 1).numpy()
        out = [np.atleast_3d(cv2.resize(frame, new, interpolation=flag)) for frame in frames]
        return torch.from_numpy(np.stack(out)).permute(0, 3, 1, 2).reshape(*image.shape[:-2], *size)
    flat = image.reshape(-1, *image.shape[-2:]).numpy()
    planes = [np.array(Image.fromarray(plane).resize(new, name)) for plane in flat]
    return torch.from_numpy(np.stack(planes)).reshape(*image.shape[:-2], *planes[0].shape).to(image.dtype)


@contextmanager
def resized_by_pil() -> Iterator[None]:
    """Let torchvision's function resize by PIL, for the classes of transformers that have no twin."""
    real = tv.resize
    tv.resize = _resize_by_library
    try:
        yield
    finally:
        tv.resize = real


def small(name: str) -> tuple[Any, Any]:
    """Return a class's processors of both backends with small sizes, or its own where these are refused."""
    kind, twin = classes()[name]
    made: Any = twin(**MADE_WITH.get(name, {}))  # type: ignore[misc]
    sizes = {}
    for key in ("size", "crop_size", "pad_size"):
        given = {k: v for k, v in dict(getattr(made, key, None) or {}).items() if v}
        if given:
            sizes[key] = {k: min(v, 40 if k == "longest_edge" else 24) for k, v in given.items()}
    settings = {**sizes, **MADE_WITH.get(name, {})}
    try:
        result(twin(**settings), name, photo(21, 27))  # type: ignore[misc]
        return kind(**settings), twin(**settings)  # type: ignore[misc]
    except Exception:
        return kind(**MADE_WITH.get(name, {})), made


def _flat(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each array of a result with its place; a list of arrays of one shape is one array."""
    if hasattr(value, "keys"):
        for key in value:
            yield from _flat(value[key], f"{where}.{key}")
        return
    if isinstance(value, (list, tuple)):
        parts = [dict(_flat(x, str(i))) for i, x in enumerate(value)]
        arrays = [part.get(str(i)) for i, part in enumerate(parts)]
        alike = {(x.shape, x.dtype) if isinstance(x, np.ndarray) else None for x in arrays}
        if len(alike) == 1 and None not in alike:
            yield where, np.stack(arrays)
            return
        yield where, len(value)
        for i, x in enumerate(value):
            yield from _flat(x, f"{where}[{i}]")
        return
    if isinstance(value, torch.Tensor) and value.dtype == torch.bfloat16:  # which NumPy lacks
        value = value.float()
    numbers = isinstance(value, (np.ndarray, torch.Tensor, np.number, int, float))
    yield where, np.asarray(value) if numbers else value


def difference(found: Any, wanted: Any) -> float:
    """Return infinity if two results differ by more than the tolerance."""
    return float("inf") if distinction(found, wanted) else 0.0


def assert_close(found: Any, wanted: Any, tolerance: float = TOLERANCE) -> None:
    assert not distinction(found, wanted, tolerance)


def distinction(found: Any, wanted: Any, tolerance: float = TOLERANCE) -> str:
    """Return how two results differ in structure, shape, dtype or values; nothing if they do not."""
    one, other = dict(_flat(found)), dict(_flat(wanted))
    if set(one) != set(other):
        return f"the keys {sorted(set(one) ^ set(other))[:4]}"
    for key, b in other.items():
        a = one[key]
        if isinstance(b, np.ndarray) and b.dtype == np.longdouble:  # PyTorch has none
            b = b.astype(np.float64)
        if not isinstance(b, np.ndarray) or b.dtype.kind in "OU":
            if not np.array_equal(a, b):
                return f"{key}: {a} is not {b}"
            continue
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{key}: {a.dtype} {a.shape} is not {b.dtype} {b.shape}"
        a, b = a.astype(np.float64), b.astype(np.float64)
        apart = np.abs(a - b)[~((a == b) | (np.isnan(a) & np.isnan(b)))]
        if apart.size and not apart.max() <= tolerance:
            return f"{key}: {apart.max():.3g} apart"
    return ""
