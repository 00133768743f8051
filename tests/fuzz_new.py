"""Random calls of batches of different sizes, and annotations.

:mod:`tests.fuzz` makes them with ``--kind new``. Each has values that are not finite, images of one pixel and arguments of the
wrong kind among its inputs, and must give what a loop or the library behind it gives, or one error of imgops' form.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors

import imgops
from imgops import transforms as v2
from tests.checks import difference
from tests.fuzz_values import NUMBERS, OBJECTS, REALS, Made, Wrong, shown_as
from tests.packed_calls import PACKED
from tests.specs import OPERATORS
from tests.specs._maker import Maker

SIDES = (1, 1, 2, 3, 7, 16, 33)
DTYPES = *(torch.uint8, torch.float32) * 2, torch.float64, torch.float16, torch.bfloat16


def image(random: Random, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    values = torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(random.randrange(999)))
    out = values.to(dtype) if dtype == torch.uint8 else (values / 255).to(dtype)
    if dtype.is_floating_point and random.random() < 0.25:
        out.view(-1)[random.randrange(out.numel())] = random.choice((torch.nan, torch.inf, -torch.inf, 1e30))
    return out.transpose(-1, -2).contiguous().transpose(-1, -2) if random.random() < 0.3 else out


def argument(random: Random, usual: Any) -> Any:
    """Return a usual argument, or in one of ten cases an odd one."""
    return usual if random.random() < 0.9 else random.choice((*NUMBERS, *REALS, *OBJECTS))


# -- batches of different sizes ----------------------------------------------------------------------------


#: An image of one pixel has no memory format, so that the last bit of its floats may differ, as that of a distance to nothing.
APART = {
    torch.uint8: 1e-6,
    torch.float32: 1e-6,
    torch.float64: 1e-14,
    torch.float16: 2e-3,
    torch.bfloat16: 2e-2,
}


def ragged(random: Random) -> Made:
    """A sample of an operator on packed images gives what it gives for each image alone."""
    sample = random.choice([s for s in PACKED if OPERATORS[s.op].is_public])
    dtype = random.choice([d for d in DTYPES if d in sample.dtypes])
    function, (first, *args), keywords = sample.call(Maker(dtype))
    shapes = [(len(first), random.choice(SIDES), random.choice(SIDES)) for _ in range(random.randrange(1, 6))]
    images = [image(random, shape, dtype) for shape in shapes]
    interleaved, given = random.choice((True, False, None)), [argument(random, a) for a in args]

    def check() -> str:
        packed = imgops.PackedImages.of(images, interleaved)
        found = function(packed, *given, **keywords)
        each = found.unpack() if isinstance(found, imgops.PackedImages) else list(found)
        wanted = [function(x, *given, **keywords) for x in packed.unpack()]
        if differs := difference(each, wanted, APART.get(dtype, 0.0)):
            raise Wrong(f"packed images have {differs} alone")
        return "as alone"

    return f"{sample}({shapes}, {dtype}, {', '.join(map(shown_as, given))})", check


# -- annotations -------------------------------------------------------------------------------------------

#: Transforms that are always applied, and their arguments, and transforms with a probability.
ALWAYS = {
    "RandomResizedCrop": {"size": 9},
    "Mosaic": {"size": 24},
    "RandomAffine": {"degrees": 30},
    "RandomIoUCrop": {},
}
MOVING: tuple[str, ...] = (
    *("RandomHorizontalFlip", "RandomVerticalFlip", "RandomTranspose", "RandomRotate90", "RandomElastic"),
    *("RandomGridDistortion", "RandomOpticalDistortion", "RandomThinPlateSpline", "CopyPaste"),
    *("CoarseDropout", "GridDropout", "PixelDropout", *ALWAYS),
)
FORMATS = {"XYXY": 4, "XYWH": 4, "CXCYWH": 4, "XYWHR": 5, "CXCYWHR": 5, "XYXYXYXY": 8}


def annotations(random: Random) -> Made:
    """Boxes of every format, keypoints, masks and labels keep their kinds, and follow only where something moves."""
    name, format = random.choice(MOVING), random.choice(tuple(FORMATS))
    height, width, count = random.choice((1, 2, 9, 24)), random.choice((1, 2, 9, 24)), random.randrange(5)
    draw = torch.Generator().manual_seed(random.randrange(999))
    dtype = random.choice((torch.float32, torch.float64, torch.float32, torch.float16))
    boxes = (
        torch.rand(count, FORMATS[format], generator=draw) * random.choice((1, 24, 300))
        - random.choice((0, 9))
    ).to(dtype)
    if count and random.random() < 0.15:
        boxes[0, 0] = random.choice((float("nan"), float("inf"), 0.0, 1e30))
    canvas, sides = {"canvas_size": (height, width)}, (height, width)
    sample = {
        "image": tv_tensors.Image(torch.randint(0, 256, (3, *sides), dtype=torch.uint8, generator=draw)),
        "boxes": tv_tensors.BoundingBoxes(boxes, format=format, **canvas),
        "points": tv_tensors.KeyPoints(torch.rand(count, 3, 2, generator=draw) * 24, **canvas),
        "visible": torch.arange(count * 3).reshape(count, 3),
        "masks": tv_tensors.Mask(torch.randint(0, 4, (count, *sides), dtype=torch.uint8, generator=draw)),
        "labels": torch.arange(count),
    }
    p, key = random.choice((0.0, 0.5, 1.0)), random.randrange(2**40)
    how: dict[str, Any] = dict(ALWAYS.get(name, {"p": p}))
    if "Flip" in name or name == "RandomTranspose":
        swapped = argument(random, [(0, 2)]), argument(random, [(0, 1)]), [(1, 3)]
        how |= dict(zip(("swap", "swap_labels", "swap_masks"), swapped, strict=True))
    if "Dropout" in name:
        how["min_visible"] = argument(random, 0.5)
    several = {"Mosaic": 4, "CopyPaste": 2}.get(name, 0)
    inputs: Any = [sample] * several if several else sample

    def check() -> str:
        if name == "RandomIoUCrop" and min(sides) < 4:
            return "torchvision divides by zero"
        transform = getattr(v2, name)(**how)
        found, again = (v2.seeded(transform, key)(inputs) for _ in range(2))
        if differs := difference(again, found):
            raise Wrong(f"for the same key, {differs}")
        if how.get("p") == 0 and not several and (differs := difference(found, sample)):
            raise Wrong(f"at p=0, {differs}")
        for part, value in found.items():
            if type(value) is not type(sample[part]) or value.dtype != sample[part].dtype:
                raise Wrong(f"{part} came out as {type(value).__name__} of {value.dtype}")
        if (
            found["boxes"].format is not sample["boxes"].format
            or found["boxes"].canvas_size != found["image"].shape[-2:]
        ):
            raise Wrong("boxes of another format or canvas")
        rows = {len(found[part]) for part in ("boxes", "labels", "masks")}
        if len(rows) > 1:
            raise Wrong(f"{rows} boxes, labels and masks")
        # torchvision's clamp of boxes with an angle, which its own transforms call, divides by zero.
        theirs = name in ("RandomAffine", "RandomResizedCrop", "RandomIoUCrop") or dtype == torch.float16
        if not theirs and bool((boxes.abs() < 1e6).all()) and not bool(found["boxes"].isfinite().all()):
            raise Wrong("boxes are not finite")
        return "annotations follow"

    return f"{name}({how})({height} x {width}, {count} boxes {format} of {dtype})", check


KINDS: tuple[Callable[[Random], Made], ...] = ragged, ragged, ragged, annotations, annotations


def made(random: Random) -> Made:
    """Return a call of a random kind, whose outcomes begin with its name."""
    kind = random.choice(KINDS)
    text, check = kind(random)
    return f"{kind.__name__}-{text}", lambda: f"{kind.__name__}: {check()}"
