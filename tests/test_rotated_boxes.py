"""Boxes with an angle follow the image: compared with their masks moved as masks, and with AlbumentationsX."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from checks import bits_equal
from groups import apart, compile_together, together
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2
from transform_cases import seeded

import imgops.transforms as ours
from imgops.transforms._core import rotated_boxes
from tests.tiers import every_night

FORMATS = ("CXCYWHR", "XYWHR", "XYXYXYXY")
KNOWN = json.loads(Path(__file__).with_name("data").joinpath("rotated_boxes.json").read_text())


def convert(boxes: Any, format: str) -> Any:
    return v2.functional.convert_bounding_box_format(boxes, new_format=tv_tensors.BoundingBoxFormat[format])


def polygons(boxes: Any) -> np.ndarray:
    plain = boxes.as_subclass(Tensor)
    corners = v2.functional.convert_bounding_box_format(plain.double(), boxes.format, "XYXYXYXY")
    return corners.reshape(-1, 4, 2).numpy()


def mask_of(polygon: np.ndarray, height: int, width: int) -> np.ndarray:
    """Return the pixels whose centers are in a convex polygon."""
    y, x = np.mgrid[:height, :width] + 0.5
    sides = [
        (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0])
        for a, b in zip(polygon, np.roll(polygon, -1, 0))
    ]
    return np.all([s >= 0 for s in sides], 0) | np.all([s <= 0 for s in sides], 0)


def overlap(one: np.ndarray, other: np.ndarray) -> float:
    return float((one & other).sum() / max((one | other).sum(), 1))


def scene(
    height: int = 300, width: int = 300, format: str = "CXCYWHR", count: int = 5, seed: int = 0
) -> dict[str, Any]:
    """Return an image with long boxes of every angle, and the mask of each."""
    random = np.random.RandomState(seed)
    middle = random.uniform(0.33, 0.67, (count, 2)) * (width, height)
    sides = random.uniform((60, 24), (90, 40), (count, 2)) * min(height, width) / 300
    given = np.concatenate([middle, sides, random.uniform(-180, 180, (count, 1))], 1)
    boxes = tv_tensors.BoundingBoxes(
        torch.tensor(given), format="CXCYWHR", canvas_size=(height, width), clamping_mode=None
    )
    masks = np.stack([mask_of(p, height, width) for p in polygons(boxes)])
    return {
        "image": tv_tensors.Image(torch.from_numpy(masks.any(0)[None].repeat(3, 0) * np.uint8(255))),
        "boxes": convert(boxes, format),
        "masks": tv_tensors.Mask(torch.from_numpy(masks.astype(np.uint8))),
        "labels": torch.arange(count),
    }


# -- right angles and mirrors ------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "name", ["RandomRotate90", "RandomTranspose", "RandomHorizontalFlip", "RandomVerticalFlip"]
)
@pytest.mark.parametrize("size", [(300, 300), (240, 330)])
def test_a_right_angle_turns_a_box_as_its_mask(name: str, format: str, size: tuple[int, int]) -> None:
    given = scene(*size, format)
    for seed in range(4):
        out = seeded(seed, getattr(ours, name)(p=1.0), given)
        height, width = out["masks"].shape[-2:]
        assert out["boxes"].canvas_size == (height, width) and out["boxes"].format.value == format
        for polygon, mask in zip(polygons(out["boxes"]), out["masks"].numpy()):
            assert overlap(mask_of(polygon, height, width), mask > 0) >= 0.995
        if format != "XYXYXYXY":
            assert bits_equal(
                out["boxes"][:, 2:4].as_subclass(Tensor), given["boxes"][:, 2:4].as_subclass(Tensor)
            )


@pytest.mark.parametrize("format", FORMATS)
def test_four_right_angles_are_none(format: str) -> None:
    boxes = scene(format=format)["boxes"]
    plain, canvas = boxes.as_subclass(Tensor), boxes.canvas_size
    turn, turned = ours.RandomRotate90(p=1.0), boxes
    for _ in range(4):
        turned = turn._by_torchvision(turned, {"turns": 1.0})
    torch.testing.assert_close(turned.as_subclass(Tensor), plain, rtol=0, atol=1e-9)
    half = turn._by_torchvision(turn._by_torchvision(boxes, {"turns": 2.0}), {"turns": 2.0})
    torch.testing.assert_close(half.as_subclass(Tensor), plain, rtol=0, atol=1e-9)
    twice = ours.RandomTranspose(p=1.0)(ours.RandomTranspose(p=1.0)(boxes))
    torch.testing.assert_close(twice.as_subclass(Tensor), plain, rtol=0, atol=1e-9)
    assert twice.canvas_size == canvas


def test_a_transpose_is_a_turn_and_a_flip() -> None:
    boxes = scene(240, 330)["boxes"]
    turned = ours.RandomRotate90(p=1.0)._by_torchvision(boxes, {"turns": 3.0})
    wanted = v2.functional.horizontal_flip(turned)
    found = ours.RandomTranspose(p=1.0)(boxes)
    angle = (wanted - found).as_subclass(Tensor)[:, 4].remainder(360)
    torch.testing.assert_close(
        found[:, :4].as_subclass(Tensor), wanted[:, :4].as_subclass(Tensor), rtol=0, atol=1e-9
    )
    assert torch.minimum(angle, 360 - angle).max() < 1e-9


@pytest.mark.parametrize("theirs", sorted(KNOWN["moved"]))
def test_albumentationsx_has_the_same_boxes(theirs: str) -> None:
    """Its angles are clockwise, and its width is the side that is nearer to the horizontal."""
    name = {"Transpose": "RandomTranspose"}.get(theirs, f"Random{theirs}")
    size = tuple(KNOWN["size"])
    given = torch.tensor(KNOWN["boxes"]) * torch.tensor([1.0, 1, 1, 1, -1])
    boxes = tv_tensors.BoundingBoxes(given, format="CXCYWHR", canvas_size=size)
    out = getattr(ours, name)(p=1.0)(boxes)
    wanted = torch.tensor(KNOWN["moved"][theirs]) * torch.tensor([1.0, 1, 1, 1, -1])
    found = polygons(out)
    theirs_are = polygons(tv_tensors.BoundingBoxes(wanted, format="CXCYWHR", canvas_size=out.canvas_size))
    for mine, other in zip(found, theirs_are):
        distances = np.linalg.norm(mine[:, None] - other, axis=-1)
        assert distances.min(1).max() < 1e-3 and distances.min(0).max() < 1e-3


# -- distortions -------------------------------------------------------------------------------------------

BENT: dict[str, dict[str, Any]] = {
    "RandomElastic": {"alpha": 80.0, "sigma": 16.0},
    "RandomGridDistortion": {},
    "RandomOpticalDistortion": {},
    "RandomThinPlateSpline": {},
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", BENT)
def test_a_bent_box_is_the_smallest_around_its_mask(name: str, format: str) -> None:
    """It holds the moved mask, and is no larger than OpenCV's smallest box around that."""
    given = scene(900, 900, format, count=3)
    for seed in range(2):
        out = seeded(seed, getattr(ours, name)(p=1.0, **BENT[name]), given)
        assert out["boxes"].format.value == format
        for polygon, mask in zip(polygons(out["boxes"]), out["masks"].numpy() > 0):
            places = np.argwhere(mask)[:, ::-1].astype(np.float32) + 0.5
            tight = cv2.minAreaRect(places)
            found = mask_of(polygon, 900, 900)
            assert (found & mask).sum() >= 0.985 * mask.sum(), (name, seed)
            sides = np.linalg.norm(polygon[[1, 2]] - polygon[[0, 1]], axis=1)
            assert abs(sides.prod() - np.prod(tight[1])) <= 0.03 * sides.prod()
            best = mask_of(cv2.boxPoints(tight).astype(float), 900, 900)
            # Boxes of nearly the same area may have other angles, so that an overlap of two says less.
            assert overlap(found, best) >= 0.98 or found.sum() <= 1.01 * best.sum()


def test_the_corners_of_a_bent_box_keep_their_order() -> None:
    given = scene(format="XYXYXYXY")
    out = seeded(0, ours.RandomElastic(p=1.0, alpha=20.0, sigma=8.0), given)
    assert np.abs(polygons(out["boxes"]) - polygons(given["boxes"])).max() < 12
    reversed_ = tv_tensors.BoundingBoxes(
        torch.from_numpy(polygons(given["boxes"])[:, ::-1].reshape(-1, 8).copy()),
        format="XYXYXYXY",
        canvas_size=(300, 300),
    )
    out = seeded(0, ours.RandomElastic(p=1.0, alpha=20.0, sigma=8.0), given["image"], reversed_)[1]
    assert np.abs(polygons(out) - polygons(reversed_)).max() < 12


def test_smallest_box_of_few_points() -> None:
    for points in ([[5.0, 5.0]] * 4, [[0.0, 0], [4, 4], [2, 2], [1, 1]], [[0.0, 0], [4, 0], [4, 2], [0, 2]]):
        given = torch.tensor([points], dtype=torch.float64)
        box = rotated_boxes.smallest(given, given)[0]
        assert torch.isfinite(box).all()
        low, high = given[0].amin(0), given[0].amax(0)
        torch.testing.assert_close(box.mean(0), (low + high) / 2)
    lost = torch.full((1, 4, 2), float("nan"), dtype=torch.float64)
    assert rotated_boxes.smallest(lost, lost).isnan().all()
    none = torch.zeros(0, 4, 2, dtype=torch.float64)
    assert rotated_boxes.smallest(none, none).shape == (0, 4, 2)


# -- dropouts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", ["CoarseDropout", "GridDropout", "PixelDropout"])
def test_a_hidden_box_becomes_empty(name: str, format: str) -> None:
    how: dict[str, Any] = {
        "CoarseDropout": {"height": (0.2, 0.4), "width": (0.2, 0.4)},
        "GridDropout": {"ratio": 0.7},
        "PixelDropout": {"amount": 0.5},
    }[name]
    given, changed = scene(format=format, count=8), 0
    for seed in range(3):
        out = seeded(seed, getattr(ours, name)(p=1.0, min_visible=0.5, mask_fill=0, **how), given)
        for i, box in enumerate(out["boxes"].as_subclass(Tensor)):
            share = float(out["masks"][i].sum() / given["masks"][i].sum())
            stays = bits_equal(box, given["boxes"][i].as_subclass(Tensor))
            assert stays or not box.any()
            assert stays == (share >= 0.5), (seed, i, share)
            changed += not stays
        kept = ours.SanitizeBoundingBoxes()(out)
        assert len(kept["labels"]) == len(kept["boxes"])
    assert 0 < changed < 24


# -- several samples ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_mosaic_clips_polygons(format: str) -> None:
    """A whole box is its mask; one that is cut is the smallest of its angle around what is left, inside of the one before."""
    samples = [scene(300, 300 - 20 * i, format, seed=i) for i in range(4)]
    cut = 0
    for seed in range(4):
        out = seeded(seed, ours.Mosaic(300, center=(0.3, 0.7)), samples)
        assert len(out["boxes"]) == len(out["masks"]) == len(out["labels"]) == 20
        before = [p for s in samples for p in polygons(s["boxes"])]
        for polygon, mask, old in zip(polygons(out["boxes"]), out["masks"].numpy() > 0, before):
            found = mask_of(polygon, 300, 300)
            whole = polygon.min() > 0 and polygon.max() < 300
            if not polygon.any():
                assert mask.sum() <= 3
            elif whole and mask.sum() > 400:
                assert overlap(found, mask) >= 0.9  # some 20 pixels wide, and labels move by whole pixels
            else:
                cut += 1
                assert (found & mask).sum() >= 0.95 * mask.sum() - 5
            if polygon.any():
                turns = [np.arctan2(*(p[1] - p[0])[::-1]) for p in (polygon, old)]
                assert abs(np.exp(1j * turns[0]) - np.exp(1j * turns[1])) < 0.02
    assert cut


def test_clipped_boxes_are_exact() -> None:
    """Beside OpenCV's intersection of convex polygons, projected on the box's own axes."""
    random = np.random.RandomState(0)
    given = np.concatenate(
        [
            random.uniform(-20, 120, (400, 2)),
            random.uniform(4, 90, (400, 2)),
            random.uniform(-180, 180, (400, 1)),
        ],
        1,
    )
    given[:40, 4] = random.randint(-2, 3, 40) * 90
    boxes = tv_tensors.BoundingBoxes(
        torch.tensor(given), format="CXCYWHR", canvas_size=(80, 100), clamping_mode=None
    )
    before = polygons(boxes)
    after = rotated_boxes.clip(torch.from_numpy(before), 80, 100).numpy()
    frame = np.array([[0, 0], [100, 0], [100, 80], [0, 80]], np.float32)
    for old, new in zip(before, after):
        area, left = cv2.intersectConvexConvex(old.astype(np.float32), frame)
        if area < 1e-2:
            assert not new.any() or area > 0 or left is not None
            continue
        wide = (old[1] - old[0]) / np.linalg.norm(old[1] - old[0])
        along = np.stack([wide, [-wide[1], wide[0]]])
        extents = [
            np.stack([(p @ along.T).min(0), (p @ along.T).max(0)]) for p in (left[:, 0].astype(float), new)
        ]
        assert np.abs(extents[0] - extents[1]).max() < 2e-2
        box = old @ along.T
        assert (extents[1][0] >= box.min(0) - 1e-9).all() and (extents[1][1] <= box.max(0) + 1e-9).all()
    inside = (before >= 0).all((1, 2)) & (before <= (100, 80)).all((1, 2))
    assert inside.any() and np.array_equal(before[inside], after[inside])
    lost = torch.full((1, 4, 2), float("nan"), dtype=torch.float64)
    assert rotated_boxes.clip(lost, 4, 4).isnan().all()


@pytest.mark.parametrize("format", FORMATS)
def test_copy_paste_boxes_what_is_left(format: str) -> None:
    samples = [scene(300, 300, format, seed=0), scene(600, 600, format, seed=1)]
    shrunk = 0
    for seed in range(4):
        out = seeded(seed, ours.CopyPaste(amount=0.5, p=1.0), samples)
        first = polygons(samples[0]["boxes"])
        for i, (polygon, mask) in enumerate(zip(polygons(out["boxes"]), out["masks"].numpy() > 0)):
            found = mask_of(polygon, 300, 300)
            if not mask.any():
                assert not polygon.any()
                continue
            assert (found & mask).sum() >= 0.97 * mask.sum()
            if i < 5:
                old = mask_of(first[i], 300, 300)
                assert (found & ~old).sum() <= 0.02 * old.sum()
                shrunk += bool(found.sum() < 0.98 * old.sum())
            elif (polygon > 0).all() and (polygon < 300).all():
                assert overlap(found, mask) >= 0.9
    assert shrunk


@pytest.mark.parametrize("name", ["Mosaic", "CopyPaste"])
def test_boxes_with_and_without_an_angle_do_not_mix(name: str) -> None:
    given = scene()
    level = {
        **given,
        "boxes": tv_tensors.BoundingBoxes(torch.rand(5, 4), format="XYXY", canvas_size=(300, 300)),
    }
    transform = ours.Mosaic(64) if name == "Mosaic" else ours.CopyPaste(p=1.0)
    samples = [given, level] * (2 if name == "Mosaic" else 1)
    with pytest.raises(ValueError, match=f"^{name}: boxes must all have an angle, or none, got "):
        transform(samples)


# -- crops -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_iou_crops_take_boxes_with_an_angle(format: str) -> None:
    given, cropped = scene(format=format), 0
    level = {
        **given,
        "boxes": tv_tensors.BoundingBoxes(
            torch.from_numpy(
                np.concatenate([polygons(given["boxes"]).min(1), polygons(given["boxes"]).max(1)], 1)
            ),
            format="XYXY",
            canvas_size=(300, 300),
        ),
    }
    for seed in range(12):
        out = seeded(seed, ours.RandomIoUCrop(), given)
        other = seeded(seed, v2.RandomIoUCrop(), level)
        assert out["image"].shape == other["image"].shape  # the same draws as for the boxes around them
        height, width = out["image"].shape[-2:]
        cropped += (height, width) != (300, 300)
        for box, reference in zip(out["boxes"], other["boxes"]):
            assert bool(box.as_subclass(Tensor).any()) == bool(reference.as_subclass(Tensor).any())
        for polygon, mask in zip(polygons(out["boxes"]), out["masks"].numpy() > 0):
            if polygon.any():
                assert (mask_of(polygon, height, width) & mask).sum() >= 0.97 * mask.sum()
    assert cropped > 4


@pytest.mark.parametrize("format", FORMATS)
def test_an_iou_crop_cuts_boxes_as_torchvision_does_and_loses_none(format: str) -> None:
    """torchvision's clamp makes some boxes near a right angle empty, and turns others by 180 degrees."""
    random = np.random.RandomState(3)
    count, inner = 3000, ours.RandomIoUCrop()
    given = np.concatenate(
        [
            random.uniform(0, 80, (count, 2)),
            random.uniform(5, 40, (count, 2)),
            random.uniform(-180, 180, (count, 1)),
        ],
        1,
    )
    given[:500, 4] = random.choice([-90, 0, 90], 500) + random.uniform(-1, 1, 500)
    boxes = convert(
        tv_tensors.BoundingBoxes(torch.tensor(given), format="CXCYWHR", canvas_size=(80, 90)), format
    )
    values = {
        "top": 10,
        "left": 8,
        "height": 55,
        "width": 60,
        "is_within_crop_area": torch.arange(count) % 7 > 0,
    }
    mine = inner._by_torchvision(boxes, values)
    theirs = v2.RandomIoUCrop().transform(boxes, values)
    assert type(mine) is type(boxes) and mine.canvas_size == (55, 60) and mine.format == boxes.format
    out, wanted, before = polygons(mine), polygons(theirs), polygons(boxes) - (8, 10)
    apart = np.minimum(np.abs(out - wanted).max((1, 2)), np.abs(np.roll(out, 2, 1) - wanted).max((1, 2)))
    differs = (apart > 1e-6) & values["is_within_crop_area"].numpy()
    counts = [0, 0]
    for i in np.flatnonzero(differs):  # the masks say who is right
        mask, found = (mask_of(polygon[i], 55, 60) for polygon in (before, out))
        assert (mask & found).sum() >= mask.sum() - 1
        counts[int(i < 500)] += bool(mask.any())
    assert counts[0] < 0.01 * 2500 and counts[1] > 5
    assert not mine.as_subclass(Tensor)[::7].any()


def test_a_polygon_without_an_area_outside_of_an_image_holds_none_of_it() -> None:
    points = torch.tensor(
        [[[-5.0, -5.0]] * 4, [[70.0, 3.0]] * 4, [[-9.0, -9], [80, 80], [80, 80], [-9, -9]]]
    ).double()
    found = rotated_boxes.clip(points, 64, 64)
    assert not found[:2].any()
    assert found[2].unique().tolist() == pytest.approx(
        [0, 64], abs=1e-9
    )  # the part of the line that is inside


@pytest.mark.parametrize("grid", [2, 3])
@pytest.mark.parametrize("format", FORMATS)
def test_mosaics_cut_a_box_once(format: str, grid: int) -> None:
    """A box is the smallest of its angle around the polygon that is seen; one that is not seen is empty."""
    random, height, width = np.random.RandomState(grid), 64, 64
    given = np.concatenate(
        [
            random.uniform(-30, 94, (40, 2)),
            random.uniform(4, 40, (40, 2)),
            random.uniform(-180, 180, (40, 1)),
        ],
        1,
    )
    given[0] = (200, 200, 10, 10, 30)
    given[1] = 0
    boxes = convert(
        tv_tensors.BoundingBoxes(
            torch.tensor(given), format="CXCYWHR", canvas_size=(height, width), clamping_mode=None
        ),
        format,
    )
    sample = {"image": torch.zeros(3, height, width, dtype=torch.uint8), "boxes": boxes}
    mosaic = ours.Mosaic(64 * grid, grid)
    for seed in range(6):
        torch.manual_seed(seed)
        params = mosaic.sample([sample] * grid**2)
        y, x = mosaic._sampled_sizes(params[()].numbers, 0, 0)
        found = polygons(mosaic.apply([sample] * grid**2, params)["boxes"]).reshape(grid**2, 40, 4, 2)
        for i in range(grid**2):
            (row, column), side = divmod(i, grid), 64 * grid
            if grid == 2:
                top, left = y - 64 * (row == 0), x - 64 * (column == 0)
            else:
                top, left = (n - 32 + 64 * (at - 1) for n, at in ((y, row), (x, column)))
            seen = np.array(
                [max(left, 0), max(top, 0), min(left + 64, side), min(top + 64, side)], np.float32
            )
            for polygon, box in zip(polygons(boxes) + (left, top), found[i]):
                corners = np.array(
                    [[seen[0], seen[1]], [seen[2], seen[1]], [seen[2], seen[3]], [seen[0], seen[3]]]
                )
                area, rest = 0.0, None
                if (seen[2:] > seen[:2]).all() and polygon.any():
                    area, rest = cv2.intersectConvexConvex(
                        polygon.astype(np.float32), corners.astype(np.float32)
                    )
                sides = [np.linalg.norm(box[1] - box[0]), np.linalg.norm(box[3] - box[0])]
                if area < 1e-3 or rest is None:
                    assert sides[0] * sides[1] < 0.1
                    continue
                along = (polygon[1] - polygon[0]) / np.linalg.norm(polygon[1] - polygon[0])
                spans = np.ptp(rest[:, 0] @ np.stack([along, (-along[1], along[0])], 1), axis=0)
                assert sides == pytest.approx(spans, abs=0.02)


def test_an_iou_crop_that_keeps_all_leaves_boxes_in_a_graph() -> None:
    for format, row in (("XYXY", [-10.0, 5, 20, 20]), ("CXCYWHR", [-30.0, 5, 8, 6, 20])):
        boxes = tv_tensors.BoundingBoxes([row], format=format, canvas_size=(60, 70), clamping_mode="soft")
        boxes = tv_tensors.wrap(torch.tensor([row]), like=boxes)
        given = {"image": tv_tensors.Image(torch.zeros(3, 60, 70, dtype=torch.uint8)), "boxes": boxes}
        crop = ours.RandomIoUCrop(sampler_options=[1.0])
        torch._dynamo.reset()
        for transform in (crop, torch.compile(crop, fullgraph=True, backend="aot_eager")):
            assert transform(given)["boxes"].tolist() == [row]


# -- per sample, in one graph, and not at all --------------------------------------------------------------

MOVING: dict[str, dict[str, Any]] = {
    "RandomRotate90": {},
    "RandomTranspose": {},
    **BENT,
    "CoarseDropout": {"min_visible": 0.6, "height": 0.3, "width": 0.3},
    "GridDropout": {"min_visible": 0.6},
    "PixelDropout": {"min_visible": 0.6, "amount": 0.4},
}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("name", MOVING)
def test_nothing_moves_at_zero_probability(name: str, format: str) -> None:
    given = scene(format=format)
    out = seeded(0, getattr(ours, name)(p=0.0, **MOVING[name]), given)
    assert all(bits_equal(out[key].as_subclass(Tensor), given[key].as_subclass(Tensor)) for key in given)
    assert out["boxes"].format is given["boxes"].format


@pytest.mark.parametrize("name", MOVING)
def test_each_sample_is_what_a_loop_gives(name: str) -> None:
    samples = [scene(64, 64, FORMATS[0], seed=i) for i in range(4)]
    make = getattr(ours, name)
    images = tv_tensors.Image(torch.stack([s["image"].as_subclass(Tensor) for s in samples]))
    found = seeded(0, make(p=0.5, per_sample=True, **MOVING[name]), images, *[s["boxes"] for s in samples])
    torch.manual_seed(0)
    alone = make(p=0.5, **MOVING[name])
    for i, sample in enumerate(samples):
        image, boxes = alone(sample["image"], sample["boxes"])
        assert bits_equal(found[0][i].as_subclass(Tensor), image.as_subclass(Tensor)), i
        assert bits_equal(found[1 + i].as_subclass(Tensor), boxes.as_subclass(Tensor)), i


@pytest.mark.parametrize("format", [FORMATS[0], *every_night(*FORMATS[1:])])
def test_one_graph(format: str) -> None:
    given = scene(64, 64, format)
    transforms = {name: getattr(ours, name)(p=0.5, **options) for name, options in MOVING.items()}
    graph, _ = compile_together(transforms)
    for seed in range(3):
        both = (seeded(seed, f, given["image"], given["boxes"]) for f in (together(transforms), graph))
        for name, (wanted, found) in zip(MOVING, zip(*(out.values() for out in both))):
            for a, b in zip(wanted, found):
                assert bits_equal(a.as_subclass(Tensor), b.as_subclass(Tensor)), name
            assert found[1].format is wanted[1].format and found[1].canvas_size == wanted[1].canvas_size


@pytest.mark.parametrize("format", [FORMATS[-1], *every_night(*FORMATS[:-1])])
def test_one_graph_of_several_samples(format: str) -> None:
    samples = [scene(80, 80, format, seed=i) for i in range(4)]
    calls: dict[str, Any] = {
        "Mosaic": ours.Mosaic(96),
        "CopyPaste": ours.CopyPaste(p=1.0),
        "RandomIoUCrop": ours.RandomIoUCrop(),
    }
    inputs: Any = {"Mosaic": (samples,), "CopyPaste": (samples[:2],), "RandomIoUCrop": (samples[0],)}
    graph, _ = compile_together(calls, inputs="own")
    for seed in range(3):
        wanted, found = (seeded(seed, f, inputs) for f in (apart(calls), graph))
        for name, out in wanted.items():
            for key, value in out.items():
                a, b = value.as_subclass(Tensor), found[name][key].as_subclass(Tensor)
                close = key == "boxes" and torch.allclose(a, b, rtol=0, atol=1e-9)
                assert close or bits_equal(a, b), (name, key)


def test_boxes_keep_their_dtype_and_shape() -> None:
    for dtype in (torch.float16, torch.float32, torch.float64):
        for name in MOVING:
            boxes = scene(64, 64)["boxes"].as_subclass(Tensor).to(dtype)
            given = tv_tensors.BoundingBoxes(boxes, format="CXCYWHR", canvas_size=(64, 64))
            none = tv_tensors.BoundingBoxes(boxes[:0], format="CXCYWHR", canvas_size=(64, 64))
            out = getattr(ours, name)(p=1.0, **MOVING[name])(torch.zeros(3, 64, 64), given, none)
            assert out[1].dtype == dtype and out[1].shape == given.shape and out[2].shape == none.shape


def test_a_class_that_moves_boxes_alone_refuses_angles() -> None:
    class Shift(ours.RandomTranspose.__mro__[3]):  # type: ignore[misc]  # ProbabilisticTransform
        _moves = True

        def _move_boxes(self, boxes: Tensor, canvas: tuple[int, int], **params: Any) -> Tensor:
            return boxes + 1

    shift = Shift(1.0, False, None)
    with pytest.raises(NotImplementedError, match=r"^Shift: bounding boxes must have the format"):
        shift._by_torchvision(scene()["boxes"], {})


def test_boxes_that_are_not_finite_do_not_hide_the_others() -> None:
    """A distortion gives NaN for them, with an angle or without, and moves the others as if they were not there."""
    for format, length in (("XYXY", 4), ("CXCYWHR", 5)):
        given = torch.tensor(
            [
                [9.0, 8, 20, 22, 30][:length],
                [float("nan"), 8, 20, 22, 30][:length],
                [3.0, float("inf"), 9, 9, 0][:length],
            ]
        )
        boxes, alone = (
            tv_tensors.BoundingBoxes(x, format=format, canvas_size=(40, 52)) for x in (given, given[:1])
        )
        transform = ours.RandomElastic(p=1.0)
        found, wanted = (
            seeded(0, transform, torch.zeros(3, 40, 52), x)[1].as_subclass(Tensor) for x in (boxes, alone)
        )
        assert bits_equal(found[:1], wanted) and not found[1:].isfinite().all(1).any()
    points = tv_tensors.KeyPoints([[float("nan"), 1.0], [5.0, 6.0]], canvas_size=(40, 52))
    out = seeded(0, ours.RandomElastic(p=1.0), torch.zeros(3, 40, 52), points)[1]
    assert out.isnan().all(1).tolist() == [True, False]


@pytest.mark.parametrize("format", ["XYXY", "CXCYWH", *FORMATS])
def test_mosaic_and_copy_paste_without_boxes(format: str) -> None:
    length = {"XYXYXYXY": 8}.get(format, 4 + format.endswith("R"))
    sample = {
        "image": tv_tensors.Image(torch.zeros(3, 20, 30, dtype=torch.uint8)),
        "boxes": tv_tensors.BoundingBoxes(torch.zeros(0, length), format=format, canvas_size=(20, 30)),
        "masks": tv_tensors.Mask(torch.zeros(0, 20, 30, dtype=torch.uint8)),
    }
    assert ours.Mosaic(24)([sample] * 4)["boxes"].shape == (0, length)
    assert ours.CopyPaste(p=1.0)([sample] * 2)["boxes"].shape == (0, length)
