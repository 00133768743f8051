"""Boxes with an angle: exact corners, and the smallest boxes around masks, by NumPy, OpenCV and AlbumentationsX."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

import imgops.transforms as ours
from imgops.transforms._core import rotated_boxes
from tests.checks import bits_equal, difference
from tests.followers import (
    ANGLED,
    FORMATS,
    Boxes,
    Image,
    Mask,
    Points,
    converted,
    mask_of,
    objects,
    plain,
    polygons,
)
from tests.tiers import nightly, nightly_unless
from tests.transform_cases import seeded

KNOWN = json.loads(Path(__file__).with_name("data").joinpath("rotated_boxes.json").read_text())


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    return float((one & other).sum() / max((one | other).sum(), 1))


def boxes_of(rows: Any, canvas: tuple[int, int], format: str = "CXCYWHR") -> Any:
    """Return rows of a center, two sides and maybe an angle as boxes, which may reach beyond the canvas."""
    values = torch.as_tensor(rows)
    given = "CXCYWHR" if values.shape[1] == 5 else "CXCYWH"
    return converted(Boxes(values, format=given, canvas_size=canvas, clamping_mode=None), format)


def scattered(count: int, low: float, high: float, sides: tuple[float, float], seed: int = 0) -> np.ndarray:
    """Return boxes of every angle, some of them nearly or exactly level."""
    random = np.random.default_rng(seed)
    parts = [random.uniform(*span, (count, 2)) for span in ((low, high), sides)]
    found = np.concatenate([*parts, random.uniform(-180, 180, (count, 1))], 1)
    found[: count // 6, 4] = random.integers(-2, 3, count // 6) * 90 + random.uniform(-1, 1, count // 6)
    found[: count // 12, 4] = found[: count // 12, 4].round()
    return found


# -- right angles and mirrors ------------------------------------------------------------------------

#: Where positions go on an image of this width and height.
RIGHT: dict[str, Callable[..., tuple[Any, Any]]] = {
    "RandomHorizontalFlip": lambda x, y, width, height: (width - x, y),
    "RandomVerticalFlip": lambda x, y, width, height: (x, height - y),
    "RandomTranspose": lambda x, y, width, height: (y, x),
    "RandomRotate90": lambda x, y, width, height: (y, width - x),
}


def has_corners(found: np.ndarray, wanted: np.ndarray, atol: float) -> bool:
    """Return whether boxes have the same corners, whichever is the first."""
    far = np.linalg.norm(found[:, :, None] - wanted[:, None], axis=-1)
    return bool(far.min(1).max() < atol and far.min(2).max() < atol)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", RIGHT)
def test_corners_after_a_right_angle_or_a_mirror(name: str, format: str) -> None:
    """Those of NumPy's formulas; the width and the height of a box with an angle keep their bits."""
    given, transform = objects(format, size=(240, 330), scale=4), getattr(ours, name)(p=1.0)
    for _ in range(4 if name == "RandomRotate90" else 1):
        params = transform.sample(given)
        turns = int(params[()].numbers[1]) if name == "RandomRotate90" else 1
        out, corners, (height, width) = transform.apply(given, params), polygons(given["boxes"]), (240, 330)
        for _ in range(turns):
            corners = np.stack(RIGHT[name](corners[..., 0], corners[..., 1], width, height), -1)
            height, width = (height, width) if "Flip" in name else (width, height)
        assert has_corners(polygons(out["boxes"]), corners, 1e-9)
        assert out["boxes"].canvas_size == (height, width) == out["masks"].shape[-2:]
        if format in ANGLED[:2]:
            assert bits_equal(plain(out["boxes"])[:, 2:4], plain(given["boxes"])[:, 2:4])


@pytest.mark.parametrize("theirs", sorted(KNOWN["moved"]))
def test_albumentationsx_has_the_same_boxes_and_named_keypoints(theirs: str) -> None:
    """Its angles are clockwise, and its width is the side that is nearer to the horizontal."""
    flip, size = getattr(ours, f"Random{theirs}")(p=1.0, swap=[(0, 1)]), tuple(KNOWN["size"])
    clockwise = torch.tensor([1, 1, 1, 1, -1])
    out = flip(boxes_of(torch.tensor(KNOWN["boxes"]) * clockwise, size))
    wanted = boxes_of(torch.tensor(KNOWN["moved"][theirs]) * clockwise, out.canvas_size)
    assert has_corners(polygons(out), polygons(wanted), 1e-3)
    points = plain(flip(Points(KNOWN["points"], canvas_size=size)))
    torch.testing.assert_close(points, torch.tensor(KNOWN["named"][theirs]))


# -- distortions -------------------------------------------------------------------------------------

BENT: dict[str, dict[str, Any]] = {
    "RandomElastic": {"alpha": 80.0, "sigma": 16.0},
    "RandomGridDistortion": {},
    "RandomOpticalDistortion": {},
    "RandomThinPlateSpline": {},
}


@pytest.mark.parametrize(
    ("name", "format"),
    nightly_unless(
        lambda v: [*BENT].index(v[0]) % 3 == ANGLED.index(v[1]), [(n, f) for n in BENT for f in ANGLED]
    ),
)
def test_a_bent_box_is_the_smallest_around_its_mask(name: str, format: str) -> None:
    """It holds the moved mask, and is no larger than OpenCV's smallest box around that."""
    given = objects(format, size=(600, 600), scale=10)
    out = seeded(0, getattr(ours, name)(p=1.0, **BENT[name]), given)
    assert out["boxes"].format.value == format
    for polygon, mask in zip(polygons(out["boxes"]), out["masks"].numpy() > 0):
        tight = cv2.minAreaRect(np.argwhere(mask)[:, ::-1].astype(np.float32) + 0.5)
        found, best = (mask_of(p, 600, 600) for p in (polygon, cv2.boxPoints(tight).astype(float)))
        assert (found & mask).sum() >= 0.98 * mask.sum()
        area = np.linalg.norm(polygon[[1, 2]] - polygon[[0, 1]], axis=1).prod()
        assert abs(area - np.prod(tight[1])) <= 0.04 * area
        # Boxes of nearly the same area may have other angles, so that an overlap of two says less.
        assert overlap(found, best) >= 0.97 or found.sum() <= 1.015 * best.sum()


def test_the_corners_of_a_bent_box_keep_their_order() -> None:
    given = objects("XYXYXYXY", size=(300, 300), scale=5)
    for step in (1, -1):
        corners = polygons(given["boxes"])[:, ::step]
        boxes = tv_tensors.wrap(torch.from_numpy(corners.reshape(-1, 8).copy()), like=given["boxes"])
        out = seeded(0, ours.RandomElastic(p=1.0, alpha=20.0, sigma=8.0), given["image"], boxes)[1]
        assert np.abs(polygons(out) - corners).max() < 12


def test_smallest_box_of_few_points() -> None:
    for points in ([[5.0, 5.0]] * 4, [[0.0, 0], [4, 4], [2, 2], [1, 1]], [[0.0, 0], [4, 0], [4, 2], [0, 2]]):
        given = torch.tensor([points], dtype=torch.float64)
        box = rotated_boxes.smallest(given, given)[0]
        torch.testing.assert_close(box.mean(0), (given[0].amin(0) + given[0].amax(0)) / 2)
    lost = torch.full((1, 4, 2), float("nan"), dtype=torch.float64)
    assert rotated_boxes.smallest(lost, lost).isnan().all() and rotated_boxes.clip(lost, 4, 4).isnan().all()
    assert rotated_boxes.smallest(lost[:0], lost[:0]).shape == (0, 4, 2)


@pytest.mark.parametrize(("format", "length"), [("XYXY", 4), ("CXCYWHR", 5)])
def test_boxes_that_are_not_finite_do_not_hide_the_others(format: str, length: int) -> None:
    """A distortion gives NaN for them, and moves the others as if they were not there."""
    nan, inf, bend = float("nan"), float("inf"), ours.RandomElastic(p=1.0)
    given = torch.tensor([[9.0, 8, 20, 22, 30], [nan, 8, 20, 22, 30], [3.0, inf, 9, 9, 0]])[:, :length]
    boxes = [Boxes(x, format=format, canvas_size=(40, 52)) for x in (given, given[:1])]
    found, wanted = (plain(seeded(0, bend, torch.zeros(3, 40, 52), x)[1]) for x in boxes)
    assert bits_equal(found[:1], wanted) and not found[1:].isfinite().all(1).any()
    points = Points([[nan, 1.0], [5.0, 6.0]], canvas_size=(40, 52))
    assert seeded(0, bend, torch.zeros(3, 40, 52), points)[1].isnan().all(1).tolist() == [True, False]


# -- dropouts ----------------------------------------------------------------------------------------


DROPOUTS: dict[str, dict[str, Any]] = {
    "CoarseDropout": {"height": (0.2, 0.4), "width": (0.2, 0.4)},
    "GridDropout": {"ratio": 0.7},
    "PixelDropout": {"amount": 0.5},
}


@pytest.mark.parametrize("format", ["XYXY", *ANGLED])
@pytest.mark.parametrize("name", DROPOUTS)
def test_a_hidden_box_becomes_empty(name: str, format: str) -> None:
    """With ``min_visible``; without it, and without ``mask_fill``, boxes and masks stay."""
    given, changed = objects(format, size=(120, 120), scale=2, count=8), 0
    given["image"] = Image(torch.full((3, 120, 120), 255, dtype=torch.uint8))
    for seed in range(2):
        plainly = seeded(seed, getattr(ours, name)(p=1.0, **DROPOUTS[name]), given)
        assert not difference({**plainly, "image": 0}, {**given, "image": 0})
        out = seeded(seed, getattr(ours, name)(p=1.0, min_visible=0.5, mask_fill=0, **DROPOUTS[name]), given)
        assert bits_equal(plain(out["masks"]), plain(given["masks"]) * (plain(out["image"])[0] > 0))
        for i, box in enumerate(plain(out["boxes"])):
            stays = bits_equal(box, plain(given["boxes"])[i])
            assert stays or not box.any()
            assert stays == (float(out["masks"][i].sum() / given["masks"][i].sum()) >= 0.5), (seed, i)
            changed += not stays
        kept = ours.SanitizeBoundingBoxes()(out)
        assert kept["labels"].tolist() == [i for i, box in enumerate(plain(out["boxes"])) if box.any()]
    assert 0 < changed < 16


# -- boxes that are cut ------------------------------------------------------------------------------


def rest_of(polygon: np.ndarray, left: float, top: float, right: float, bottom: float) -> np.ndarray | None:
    """Return OpenCV's intersection of a polygon and a window, if it has an area."""
    frame = np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float32)
    if right <= left or bottom <= top or not polygon.any():
        return None
    area, rest = cv2.intersectConvexConvex(polygon.astype(np.float32), frame)
    return rest[:, 0].astype(float) if area > 1e-2 else None


def check_cut(before: np.ndarray, after: np.ndarray, window: tuple[float, ...]) -> None:
    """Check that each box is the smallest one, along its own axes, around its part in a window."""
    for old, new in zip(before, after, strict=True):
        rest = rest_of(old, *window)
        sides = [np.linalg.norm(new[i] - new[0]) for i in (1, 3)]
        if rest is None:
            assert sides[0] * sides[1] < 0.15
            continue
        wide = (old[1] - old[0]) / np.linalg.norm(old[1] - old[0])
        along = np.stack([wide, [-wide[1], wide[0]]], 1)
        found, wanted, box = ([(p @ along).min(0), (p @ along).max(0)] for p in (new, rest, old))
        assert np.abs(np.subtract(found, wanted)).max() < 0.03
        assert (found[0] >= box[0] - 0.01).all() and (found[1] <= box[1] + 0.01).all()


def test_a_polygon_without_an_area_holds_only_the_part_of_a_line_that_is_inside() -> None:
    flat = [[[-5.0, -5.0]] * 4, [[70.0, 3.0]] * 4, [[-9.0, -9], [80, 80], [80, 80], [-9, -9]]]
    found = rotated_boxes.clip(torch.tensor(flat, dtype=torch.float64), 64, 64)
    assert not found[:2].any() and found[2].unique().tolist() == pytest.approx([0, 64], abs=1e-9)


@pytest.mark.parametrize("grid", [2, 3])
@pytest.mark.parametrize("format", FORMATS)
def test_mosaics_cut_a_box_once(format: str, grid: int) -> None:
    """A box is the smallest of its angle around the polygon that is seen; one that is not seen is empty.

    A box that begins outside of its image covers no neighbor.
    """
    given, side = scattered(24, -30, 94, (4, 40), grid), 64 * grid
    given[0], given[1] = (200, 200, 10, 10, 30), 0
    boxes = boxes_of(given if format in ANGLED else given[:, :4], (64, 64), format)
    samples = [{"image": torch.zeros(3, 64, 64, dtype=torch.uint8), "boxes": boxes}] * grid**2
    mosaic = ours.Mosaic(side, grid)
    for seed in range(3):
        torch.manual_seed(seed)
        params = mosaic.sample(samples)
        y, x = mosaic._sampled_sizes(params[()].numbers, 0, 0)
        found = polygons(mosaic.apply(samples, params)["boxes"]).reshape(grid**2, -1, 4, 2)
        for i in range(grid**2):
            row, column = divmod(i, grid)
            top, left = (
                n - 64 * (at == 0) if grid == 2 else n - 96 + 64 * at for n, at in ((y, row), (x, column))
            )
            window = max(left, 0), max(top, 0), min(left + 64, side), min(top + 64, side)
            check_cut(polygons(boxes) + (left, top), found[i], window)


@pytest.mark.parametrize("format", ANGLED)
def test_iou_crops_draw_as_torchvision_does(format: str) -> None:
    """For the boxes around those with an angle; tests/test_followers.py compares what is cut with its mask."""
    given = objects(format, size=(300, 300), scale=5, count=5)
    corners = polygons(given["boxes"])
    around = Boxes(np.concatenate([corners.min(1), corners.max(1)], 1), format="XYXY", canvas_size=(300, 300))
    cropped = 0
    for seed in range(12):
        out = seeded(seed, ours.RandomIoUCrop(), given)
        other = seeded(seed, v2.RandomIoUCrop(), {**given, "boxes": around})
        assert out["image"].shape == other["image"].shape
        assert torch.equal(plain(out["boxes"]).any(1), plain(other["boxes"]).any(1))
        cropped += out["image"].shape[-2:] != (300, 300)
    assert cropped > 4


@pytest.mark.parametrize("format", ANGLED)
def test_an_iou_crop_cuts_boxes_as_torchvision_does_and_loses_none(format: str) -> None:
    """torchvision's clamp makes some boxes near a right angle empty, and turns others by 180 degrees."""
    count, inner = 1500, ours.RandomIoUCrop()
    boxes = boxes_of(scattered(count, 0, 80, (5, 40), 3), (80, 90), format)
    boxes.clamping_mode, chosen = "soft", torch.arange(count) % 7 > 0
    values = {"top": 10, "left": 8, "height": 55, "width": 60, "is_within_crop_area": chosen}
    mine, theirs = inner._by_torchvision(boxes, values), v2.RandomIoUCrop().transform(boxes, values)
    assert type(mine) is type(boxes) and mine.canvas_size == (55, 60) and mine.format == boxes.format
    out, wanted, before = polygons(mine), polygons(theirs), polygons(boxes) - (8, 10)
    apart = np.minimum(np.abs(out - wanted).max((1, 2)), np.abs(np.roll(out, 2, 1) - wanted).max((1, 2)))
    differs, counts = (apart > 1e-6) & chosen.numpy(), [0, 0]
    for i in np.flatnonzero(differs):  # the masks say who is right
        mask, found = (mask_of(polygon[i], 55, 60) for polygon in (before, out))
        assert (mask & found).sum() >= mask.sum() - 1
        counts[int(i < count // 6)] += bool(mask.any())
    assert counts[0] < 0.01 * count and counts[1] > 5
    assert not plain(mine)[::7].any()


@pytest.mark.parametrize(
    ("format", "row"),
    [("CXCYWHR", [-30.0, 5, 8, 6, 20]), pytest.param("XYXY", [-10.0, 5, 20, 20], marks=nightly)],
)
def test_an_iou_crop_that_keeps_all_leaves_boxes_in_a_graph(format: str, row: list[float]) -> None:
    boxes = Boxes([row], format=format, canvas_size=(60, 70), clamping_mode="soft")
    boxes = tv_tensors.wrap(torch.tensor([row]), like=boxes)
    given = {"image": Image(torch.zeros(3, 60, 70, dtype=torch.uint8)), "boxes": boxes}
    crop = ours.RandomIoUCrop(sampler_options=[1.0])
    for transform in (crop, torch.compile(crop, fullgraph=True, backend="eager")):
        assert transform(given)["boxes"].tolist() == [row]


# -- what is refused, and nothing ---------------------------------------------------------------------


@pytest.mark.parametrize(("join", "count"), [(ours.Mosaic(64), 4), (ours.CopyPaste(p=1.0), 2)])
def test_boxes_with_and_without_an_angle_do_not_mix(join: Any, count: int) -> None:
    given, level = (objects(format) for format in ("CXCYWHR", "XYXY"))
    with pytest.raises(
        ValueError, match=f"^{type(join).__name__}: boxes must all have an angle, or none, got "
    ):
        join([given, level] * (count // 2))
    for format in FORMATS:
        length = {"XYXYXYXY": 8}.get(format, 4 + format.endswith("R"))
        sample = {
            "image": Image(torch.zeros(3, 20, 30, dtype=torch.uint8)),
            "boxes": Boxes(torch.zeros(0, length), format=format, canvas_size=(20, 30)),
            "masks": Mask(torch.zeros(0, 20, 30, dtype=torch.uint8)),
        }
        assert join([sample] * count)["boxes"].shape == (0, length)


def test_a_class_that_moves_boxes_alone_refuses_angles() -> None:
    class Shift(ours.RandomTranspose.__mro__[3]):  # type: ignore[misc]  # ProbabilisticTransform
        _moves = True

        def _move_boxes(self, boxes: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
            return boxes + 1

    shift = Shift(1.0, False, None)
    with pytest.raises(NotImplementedError, match=r"^Shift: bounding boxes must have the format"):
        shift._by_torchvision(objects("CXCYWHR")["boxes"], {})
