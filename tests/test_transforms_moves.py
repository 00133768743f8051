"""Every transform that moves pixels: masks, boxes and keypoints follow the image, onto a canvas of its size."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from added_cases import ROWS, Row
from checks import bits_equal
from torch import Tensor
from torchvision import tv_tensors
from transform_cases import CASES, Case, seeded

from imgops import transforms as ours
from tests.tiers import nightly

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


def scene_of(case: Case | Row) -> dict[str, Any]:
    return scene(*(case.size if isinstance(case, Row) else (40, 52)))


def assert_one_canvas(out: dict[str, Any]) -> None:
    assert canvases(out) == {tuple(out["image"].shape[-2:])}
    assert [b.format.value for b in out["boxes"]] == FORMATS


@nightly
@pytest.mark.parametrize("case", MOVING, ids=str)
def test_one_canvas(case: Case | Row) -> None:
    """After a transform, all that follows an image has a canvas of its size."""
    transform = made(case)
    for seed in range(6):
        assert_one_canvas(seeded(seed, transform, scene_of(case)))


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


def stated() -> dict[str, str]:
    """Return what the page says of the keypoints of each transform."""
    page = (Path(__file__).parents[1] / "docs" / "transforms.rst").read_text()
    table = page.split("   * - Keypoints\n")[1].split("\n\n``RandomRotation``")[0]
    rows = (row.split("\n     - ") for row in table.split("\n   * - ")[1:])
    return {name: row[0] for row in rows for name in re.findall(r"``(\w+)``", row[1])}


#: Transforms that interpolate: the nearest pixels, which masks take, lie half a pixel beside.
_SMOOTH = ("Resize", "Jitter", "ShortestSize", "MaxSize", "LetterBox")


def offset(case: Case | Row, seed: int) -> Tensor | None:
    """Return how far the keypoint lies from the middle of the moved disk; None if the disk is cut."""
    options = {"fill": 0} if case.name == "LetterBox" else {}
    height, width = case.size if isinstance(case, Row) else (40, 52)
    out = seeded(seed, made(case, **options), scene(height, width))
    smooth = any(name in case.name for name in _SMOOTH)
    plane = out["image" if smooth else "mask"].as_subclass(Tensor)[0].double()
    weights = plane if smooth else (plane == 1).double()
    edges = torch.cat([weights[0], weights[-1], weights[:, 0], weights[:, -1]])
    if edges.any() or not weights.any():
        return None
    x = (weights.sum(0) * (torch.arange(weights.shape[1]) + 0.5)).sum() / weights.sum()
    y = (weights.sum(1) * (torch.arange(weights.shape[0]) + 0.5)).sum() / weights.sum()
    return out["points"][0].as_subclass(Tensor).double() - torch.stack([x, y])


@nightly
@pytest.mark.parametrize("case", [c for c in MOVING if "nearest" not in c.id], ids=str)
def test_keypoints_are_where_the_page_says(case: Case | Row) -> None:
    convention = stated()[case.name]
    found = [off for seed in range(12) if (off := offset(case, seed)) is not None]
    assert found
    if convention.startswith("whole pixels"):
        axis = 0 if "Horizontal" in case.name else 1
        assert {round(off[axis].item(), 6) for off in found} == {0.0, -1.0}
        assert all(off[1 - axis] == 0 for off in found)
    elif convention == "continuous, along the map":  # a disk that is bent has another middle
        assert torch.stack(found).abs().mean() < 0.75
    else:
        assert torch.stack(found).abs().max() < (0 if convention == "unchanged" else 0.75) + 1e-9


def test_every_transform_is_on_the_page() -> None:
    assert {case.name for case in MOVING} | {"Mosaic", "CopyPaste"} == set(stated())


def test_quarter_turns_are_rotations() -> None:
    """Both turns of a right angle move pixels, boxes and keypoints alike."""
    for turns, angle in enumerate((0.0, 90.0, 180.0, 270.0)):
        turn, rotation = ours.RandomRotate90(p=1.0), ours.RandomRotation((angle, angle), expand=True)
        given, wanted = scene(), rotation(scene())
        found = {name: turn.transform(x, {"turns": turns}) for name, x in given.items() if name != "boxes"}
        assert bits_equal(found["image"], wanted["image"])
        torch.testing.assert_close(found["points"].as_subclass(Tensor), wanted["points"].as_subclass(Tensor))
        for box, other in zip(given["boxes"], wanted["boxes"], strict=True):
            moved = turn.transform(box, {"turns": turns})
            assert moved.canvas_size == other.canvas_size
            if box.format.value in ("XYXY", "XYWH", "CXCYWH"):
                torch.testing.assert_close(moved.as_subclass(Tensor), other.as_subclass(Tensor))
