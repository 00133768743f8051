"""Every transform that moves pixels: masks, boxes and keypoints follow the image, onto a canvas of its size."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from added_cases import ROWS, Row
from checks import bits_equal
from torch import Tensor
from torchvision import tv_tensors
from transform_cases import CASES, Case, seeded

from imgops import transforms as ours

FORMATS = [format.value for format in tv_tensors.BoundingBoxFormat]
GRAPHS = hasattr(torch.Tag, "inplace")  # before torch 2.13 dynamo takes no tv_tensors

#: torchvision refuses boxes and keypoints with these arguments.
_WITHOUT_BOXES = ("reflect", "edge", "symmetric")
MOVING: list[Case | Row] = [
    case
    for case in (*CASES, *ROWS)
    if getattr(ours, case.name)._moves and case.options.get("padding_mode") not in _WITHOUT_BOXES
]


def made(case: Case | Row, **more: Any) -> Any:
    if isinstance(case, Case):
        return case.make(ours, **more)
    return case.make(p=1.0, **more) if case.per_sample else case.make(**more)


def scene(height: int = 40, width: int = 52, dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """Return an image with a disk, its mask, its boxes in each format, and its middle as a keypoint.

    Positions are continuous: the first pixel reaches from 0 to 1.
    """
    x, y, radius = 24.0, 19.0, 8.0
    columns, rows = torch.arange(width) + 0.5, torch.arange(height)[:, None] + 0.5
    disk = (columns - x) ** 2 + (rows - y) ** 2 <= radius**2
    canvas = {"canvas_size": (height, width)}
    left, top, right, bottom, side = x - radius, y - radius, x + radius, y + radius, 2 * radius
    numbers = {
        "XYXY": (left, top, right, bottom),
        "XYWH": (left, top, side, side),
        "CXCYWH": (x, y, side, side),
        "XYWHR": (left, top, side, side, 0),
        "CXCYWHR": (x, y, side, side, 0),
        "XYXYXYXY": (left, top, right, top, right, bottom, left, bottom),
    }
    boxes = [
        tv_tensors.BoundingBoxes(torch.tensor([numbers[f]], dtype=dtype), format=f, **canvas) for f in FORMATS
    ]
    return {
        "image": tv_tensors.Image(disk.to(torch.uint8).mul(200).expand(3, -1, -1).contiguous()),
        "mask": tv_tensors.Mask(disk[None].to(torch.uint8)),
        "boxes": boxes,
        "points": tv_tensors.KeyPoints(torch.tensor([[x, y]]), **canvas),
    }


def canvases(out: dict[str, Any]) -> set[tuple[int, ...]]:
    images = (tuple(out[name].shape[-2:]) for name in ("image", "mask"))
    return {*images, *(tuple(x.canvas_size) for x in (*out["boxes"], out["points"]))}


@pytest.mark.parametrize("case", MOVING, ids=str)
def test_one_canvas(case: Case | Row) -> None:
    """After a transform, alone and in a graph, all that follows an image has a canvas of its size."""
    height, width = case.size if isinstance(case, Row) else (40, 52)
    transform = made(case)
    runs = [transform]
    if GRAPHS and (not case.id or case.id == "expand"):
        torch.compiler.reset()
        runs.append(torch.compile(transform, fullgraph=True, backend="eager"))
    for seed in range(6):
        for run in runs[: 2 if seed < 1 else 1]:
            out = seeded(seed, run, scene(height, width))
            assert canvases(out) == {tuple(out["image"].shape[-2:])}
            assert [b.format.value for b in out["boxes"]] == FORMATS


MASK_DTYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
)


def with_holes(case: Case | Row) -> Any:
    """Make a transform; a dropout makes its holes in masks, too."""
    is_dropout = case.name in ("CoarseDropout", "GridDropout", "PixelDropout")
    return made(case, mask_fill=0) if is_dropout and not case.options.get("per_channel") else made(case)


@pytest.mark.parametrize("case", [c for c in MOVING if not getattr(c, "boxes", False)], ids=str)
def test_masks_of_every_dtype(case: Case | Row) -> None:
    """The labels of a mask go to the same places, whatever its dtype."""
    height, width = case.size if isinstance(case, Row) else (40, 52)
    transform = with_holes(case)
    disk = scene(height, width)["mask"].as_subclass(Tensor)
    image = tv_tensors.Image(torch.zeros(3, height, width, dtype=torch.uint8))
    wanted = seeded(3, transform, image, tv_tensors.Mask(disk * 100))[1].as_subclass(Tensor)
    for dtype in MASK_DTYPES:
        found = seeded(3, transform, image, tv_tensors.Mask((disk * 100).to(dtype)))[1]
        assert type(found) is tv_tensors.Mask and found.dtype == dtype
        assert bits_equal(found.as_subclass(Tensor), wanted.to(dtype))
