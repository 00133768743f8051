"""The transforms that torchvision does not have: pixels, draws, graphs, gradients, and boxes, masks and keypoints."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from added_cases import JOINING, OF_BOXES, ROWS, Row
from checks import bits_equal
from groups import compiled
from torch import Tensor
from torchvision import tv_tensors
from transform_cases import check_refusals, picture, seeded

from imgops import transforms as ours

#: Before torch 2.13, dynamo does not support torchvision's tensor classes.
CLASSES = hasattr(torch.Tag, "inplace")
SAMPLING = [row for row in ROWS if row.per_sample]
ALBUMENTATIONS = "albumentations"


def test_every_transform_has_a_row() -> None:
    assert {row.name for row in ROWS} | {*JOINING, *OF_BOXES} == set(ours.ADDED)
    assert not set(ours.ADDED) & set(ours.OURS)
    assert all(getattr(ours, name).__doc__ for name in ours.ADDED)


def _chosen(row: Row) -> Any:
    return row.make(p=1.0) if row.per_sample else row.make()


def _frames() -> list[Tensor]:
    return [picture(height=h, width=w, seed=s) for s, (h, w) in enumerate([(40, 52), (64, 33), (37, 90)])]


@pytest.mark.parametrize("row", [r for r in ROWS if r.reference], ids=str)
def test_pixels(row: Row, whole: bool) -> None:
    """The pixels are those of the named library, called with the same parameters."""
    if ALBUMENTATIONS in row.of or row.moves:
        pytest.importorskip("albumentations")
    transform = _chosen(row)
    for image in _frames()[: None if whole else 1]:
        for seed in range((10 if whole else 3) if row.per_sample else 1):
            torch.manual_seed(seed)
            frame = image.permute(1, 2, 0).contiguous().numpy()
            same = torch.from_numpy(frame).permute(
                2, 0, 1
            )  # OpenCV rounds planar and interleaved pixels differently in places
            if row.per_sample:
                params = transform.sample(same)
                values = dict(transform._numbers_by_name(params[()].numbers))
                for name, value in values.items():
                    values[name] = int(value) if name == "kernel_size" else value
                found, wanted = transform.apply(same, params), row.reference(frame, transform, **values)
            else:
                found, wanted = transform(same), row.reference(frame, transform)
            assert found.dtype == torch.uint8
            off = np.abs(found.permute(1, 2, 0).numpy().astype(int) - wanted.astype(int))
            assert (off > row.levels).mean() <= row.share, (
                f"seed {seed}: {off.max()} levels, {(off > row.levels).mean():.2%}"
            )


def _scaled(row: Row) -> Any:
    """Return the same transform for floats, whose fill is in [0, 1]."""
    fill = row.options.get("fill")
    more: dict[str, Any] = {"p": 1.0} if row.per_sample else {}
    if fill is not None and not isinstance(fill, str):
        more["fill"] = [f / 255 for f in fill] if isinstance(fill, tuple) else fill / 255
    return row.make(**more)


def test_fog_of_a_large_image() -> None:
    """From 300 pixels on, OpenCV's kernel is the Gaussian for its size: bit-exact."""
    pytest.importorskip("albumentations")
    row = next(r for r in ROWS if r.name == "RandomFog")
    image, fog = picture(height=310, width=340), row.make(p=1.0)
    params = fog.sample(image)
    wanted = row.reference(
        image.permute(1, 2, 0).contiguous().numpy(), fog, **fog._numbers_by_name(params[()].numbers)
    )
    assert np.array_equal(fog.apply(image, params).permute(1, 2, 0).numpy(), wanted)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_floats_are_the_same_picture(row: Row, whole: bool) -> None:
    """Floats in [0, 1] give the result of uint8, except for rounding."""
    transform = _chosen(row)
    for seed in range(3 if whole else 1):
        image = picture(torch.uint8, *row.size, seed)
        levels = seeded(seed, transform, image)
        real = seeded(seed, _scaled(row), image / 255)
        assert real.dtype == torch.float32 and real.shape == levels.shape
        if row.id != "random":
            off = (real * 255 - levels).abs()
            assert off.mean() < 4 and (off > 12).double().mean() < 0.1


def test_gradients_of_gradients() -> None:
    image = torch.rand(2, 3, 5, 6, dtype=torch.float64).requires_grad_()
    each = ours.RandomGamma((1.5, 2.5), p=1.0, per_sample=True)
    assert torch.autograd.gradgradcheck(lambda x: seeded(1, each, x), (image,))


BENT = [r for r in ROWS if r.moves and "Dropout" not in r.name]


@pytest.mark.parametrize("row", BENT, ids=str)
def test_boxes_and_points_follow(row: Row) -> None:
    """A box is the smallest around the mask of its content, within a pixel; a keypoint is on its dot."""
    height, width = 120, 150
    boxes = torch.tensor([[20.0, 30, 90, 70], [0, 0, width, height], [60, 50, 140, 110]])
    masks = torch.zeros(3, height, width, dtype=torch.uint8)
    for mask, (x0, y0, x1, y1) in zip(masks, boxes.int().tolist()):
        mask[y0:y1, x0:x1] = 1
    points = torch.tensor([[40.0, 40], [75, 60], [110, 80]])
    dots = torch.zeros(3, height, width)
    for dot, (x, y) in zip(dots, points.int().tolist()):
        dot[y - 2 : y + 3, x - 2 : x + 3] = 1
    options = {"size": 100} if not row.per_sample else {}
    for format in ("XYXY", "XYWH", "CXCYWH"):
        given = {
            "image": tv_tensors.Image(dots),
            "masks": tv_tensors.Mask(masks),
            "boxes": ours.ConvertBoundingBoxFormat(format)(
                tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(height, width))
            ),
            "points": tv_tensors.KeyPoints(points, canvas_size=(height, width)),
        }
        make = row.make(**options, **({"p": 1.0} if row.per_sample else {}))
        if "fill" in row.options:
            make = row.make(**{**options, "fill": 0})
        for seed in range(6):
            out = seeded(seed, make, given)
            assert out["boxes"].format.value == format
            corners = ours.ConvertBoundingBoxFormat("XYXY")(out["boxes"]).as_subclass(Tensor)
            for mask, box in zip(out["masks"], corners):
                rows, columns = torch.nonzero(mask, as_tuple=True)
                tight = torch.stack([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])
                assert (box - tight).abs().max() <= 1.0, (seed, box, tight)
            for dot, point in zip(out["image"], out["points"].as_subclass(Tensor)):
                y, x = torch.nonzero(dot > 0.5, as_tuple=True)
                center = torch.stack([x.double().mean(), y.double().mean()])
                assert (point - center).abs().max() <= 1.0, (seed, point, center)


def test_a_point_of_a_fold_or_outside_comes_to_the_nearest_pixel() -> None:
    from imgops.transforms.geometry import inverse_map

    x = torch.tensor([0.0, 10, 2, 12, 14]).double().expand(3, 5)
    y = torch.arange(3.0).double()[:, None].expand(3, 5)
    found = inverse_map.points(torch.stack([x, y]), torch.tensor([[12.0, 1], [30, 1], [-9, 2]]).double())
    assert found[0].tolist() in ([3.0, 1.0], [1.0, 1.0]) and found[1, 0] >= 4 and found[2, 0] <= 0


@pytest.mark.parametrize("name", ["CoarseDropout", "GridDropout", "PixelDropout"])
def test_hidden_boxes_are_kept_or_dropped(name: str) -> None:
    """With min_visible, hidden boxes become empty, and SanitizeBoundingBoxes drops them and their labels; masks are optional."""
    options = {
        "CoarseDropout": {"height": 0.5, "width": 0.5},
        "GridDropout": {"ratio": 0.8},
        "PixelDropout": {"amount": 0.5},
    }
    boxes = torch.tensor([[x, y, x + 6.0, y + 6.0] for x in range(0, 50, 8) for y in range(0, 40, 8)])
    given = {
        "image": tv_tensors.Image(torch.full((3, 48, 60), 255, dtype=torch.uint8)),
        "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(48, 60)),
        "labels": torch.arange(len(boxes)),
        "mask": tv_tensors.Mask(torch.ones(1, 48, 60, dtype=torch.uint8)),
    }
    kept = seeded(0, getattr(ours, name)(p=1.0, **options[name]), given)
    assert bits_equal(kept["boxes"].as_subclass(Tensor), boxes) and bits_equal(kept["mask"], given["mask"])
    drops = getattr(ours, name)(p=1.0, min_visible=0.5, mask_fill=0, **options[name])
    out = seeded(0, drops, given)
    visible = out["image"][0] > 0
    assert bits_equal(out["mask"][0].as_subclass(Tensor) > 0, visible.as_subclass(Tensor))
    for before, after in zip(boxes.int().tolist(), out["boxes"].as_subclass(Tensor)):
        x0, y0, x1, y1 = before
        share = visible[y0:y1, x0:x1].double().mean()
        assert after.tolist() == (before if share >= 0.5 else [0, 0, 0, 0])
    clean = ours.SanitizeBoundingBoxes()(out)
    assert 0 < len(clean["labels"]) < len(boxes) and len(clean["labels"]) == len(clean["boxes"])


#: Error -> the beginning of its text -> the calls that raise it.
REFUSED: dict[type[Exception], dict[str, list[Callable[[], Any]]]] = {
    ValueError: {
        "RandomGamma: p must be a probability in [0, 1], got 1.5": [lambda: ours.RandomGamma(p=1.5)],
        "RandomGamma: gamma must be a number from 0 on or a range": [lambda: ours.RandomGamma((2, 1))],
        "RandomMedianBlur: kernel_size must be an odd": [lambda: ours.RandomMedianBlur((2, 4))],
        "RandomMorphology: operation must be one of 'erode'": [lambda: ours.RandomMorphology("melt")],
        "RandomSunFlare: angle must be a number from 0 to 360": [lambda: ours.RandomSunFlare(angle=361)],
        "RandomRain: method must be one of 'drizzle'": [lambda: ours.RandomRain(method="hail")],
        "RandomCLAHE: tiles must be an integer from 1 to 32767, or two, along x and y": [
            lambda: ours.RandomCLAHE(tiles=(0, 8))
        ],
        "CopyPaste: amount must be a number from 0 to 1": [lambda: ours.CopyPaste(amount=1.5)],
        "LetterBox: size must be an integer from 1 on": [lambda: ours.LetterBox((0, 3))],
        "LetterBox: size must have a product of at most 2147483647, got 65536": [
            lambda: ours.LetterBox(2**16)
        ],
        "corruptions: seed must be an integer from 0 to 2147483647, got 2147483648": [
            lambda: ours.corruptions(torch.zeros(1, 3, 4, 4), seed=2**31)
        ],
        "RandomShadow: region must be left, top": [lambda: ours.RandomShadow((0, 1, 1, 0))],
        "RandomSnow: image must have 3 channels, because HLS is a space of RGB colors, got 2": [
            lambda: ours.RandomSnow(p=1.0)(picture()[:2])
        ],
        "RandomChannelDropout: image must have more than 3": [
            lambda: ours.RandomChannelDropout(3, p=1.0)(picture())
        ],
        "FDA: references must be images": [lambda: ours.FDA([])],
        "CoarseDropout: fill must have 1 value or 3": [
            lambda: ours.CoarseDropout(fill=(1, 2), p=1.0)(picture())
        ],
        "PixelDropout: mask_fill must be None": [lambda: ours.PixelDropout(per_channel=True, mask_fill=1)],
        "RandomGridDistortion: num_steps": [lambda: ours.RandomGridDistortion(num_steps=10**30)],
        "RandomGamma: gamma must be a finite number": [lambda: ours.RandomGamma((0, math.inf))],
        "GridDropout: cells must be 2 integers": [lambda: ours.GridDropout(cells=(1,))],
        "LetterBox: interpolation must be an Interp": [lambda: ours.LetterBox(interpolation=-1)],
        "PixelDropout: fill must be from 0 to 255 for torch.uint8, got 300": [
            lambda: ours.PixelDropout(fill=300, p=1.0)(picture())
        ],
        "CoarseDropout: fill must be from 0 to 255 for torch.uint8, got 300": [
            lambda: ours.CoarseDropout(fill=300, p=1.0)(picture())
        ],
        "GridDropout: mask_fill must be from 0 to 255 for torch.uint8, got 300": [
            lambda: ours.GridDropout(mask_fill=300, p=1.0)(picture(), tv_tensors.Mask(picture()))
        ],
        "Mosaic: fill must be from 0 to 255 for torch.uint8, got -1": [
            lambda: ours.Mosaic(8, fill=-1)([picture()] * 4)
        ],
        "Mosaic: fill must have 1 value or 3, one for each channel, got 2": [
            lambda: ours.Mosaic(8, fill=(1, 2))([picture()] * 4)
        ],
        "RandomRain: color must be 3 integers": [lambda: ours.RandomRain(color=(1, 2))],
        "RandomSunFlare: color must be 3": [lambda: ours.RandomSunFlare(color=(1, 2, 256))],
        "Mosaic: image must have at least one pixel, got shape (3, 0, 4)": [
            lambda: ours.Mosaic(8)([torch.zeros(3, 0, 4)] * 4)
        ],
        "RandomShadow: region must be left, top, right": [lambda: ours.RandomShadow((0, 1))],
    },
    TypeError: {
        "RandomGamma: gamma must be a number from 0 on or a range": [lambda: ours.RandomGamma("1")],
        "GridDropout: cells must be 2 integers, along x and y, got 3": [lambda: ours.GridDropout(cells=3)],
        "RandomGamma: generator must be a torch.Generator": [lambda: ours.RandomGamma(generator=3)],
        "adjust_gamma: image must be": [lambda: ours.RandomGamma(p=1.0)(picture().int())],
        "FDA: references must be images (C, H, W)": [
            lambda: ours.FDA(references=5),
            lambda: ours.FDA([1, 2]),
        ],
        "GridDropout: cells must be 2 integers": [lambda: ours.GridDropout(cells=0)],
        "RandomFog: alpha must be a number": [lambda: ours.RandomFog(alpha=(0.1, 0.2))],
        "PixelDropout: fill must be a number": [lambda: ours.PixelDropout(fill=(1, 2))],
    },
}


@pytest.mark.parametrize("error", REFUSED)
def test_refusals(error: type[Exception]) -> None:
    check_refusals(REFUSED[error], error)


def test_angles_are_in_degrees() -> None:
    red = torch.tensor([255, 0, 0], dtype=torch.uint8)[:, None, None].expand(3, 4, 4)
    green = ours.RandomHSV(hue=120, saturation=0, value=0, p=1.0)(red)
    assert green[:, 0, 0].tolist() == [0, 255, 0]
    real = ours.RandomHSV(hue=120, saturation=0, value=0, p=1.0)(red / 255)
    torch.testing.assert_close(real[:, 0, 0], torch.tensor([0.0, 1.0, 0.0]))
    (x, _), circles = ours.RandomSunFlare(angle=90)._flare(100, 80, 3)
    assert {place[0] for _, place, *_ in circles} == {x}


def test_pairs_are_x_and_y() -> None:
    """The numbers of cells and tiles are along x and y, as OpenCV has them; only sizes are height and width."""
    boxes = ours.GridDropout(cells=(5, 2), random_offset=False)._boxes_of(0, 20, 100)
    assert (len(set(boxes[:, 0])), len(set(boxes[:, 1]))) == (5, 2)
    image = picture()[:1]
    wanted = cv2.createCLAHE(4.0, (5, 2)).apply(image[0].numpy())
    assert np.array_equal(ours.RandomCLAHE(4.0, (5, 2), p=1.0)(image)[0].numpy(), wanted)


def test_autocast_keeps_the_dtype() -> None:
    images = torch.stack([picture(torch.float32)] * 2).half()
    blur = ours.RandomMotionBlur(p=1.0, per_sample=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert blur(images).dtype == compiled(blur)[0](images).dtype == torch.float16
        assert ours.RandomMotionBlur(p=1.0)(images).dtype == torch.float16
