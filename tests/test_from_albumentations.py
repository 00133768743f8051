"""Pipelines of albumentations 2.0.8, converted: the same pixels and names; transforms that cannot be mapped are named."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from transform_cases import picture, seeded

from imgops import transforms as ours
from imgops.transforms.albumentations import convert as table
from imgops.transforms.albumentations import rules

A = pytest.importorskip("albumentations", "2.0.8")

IMAGE = picture(height=64, width=80)
FRAME = IMAGE.permute(1, 2, 0).contiguous().numpy()
#: The required arguments of a transform.
NEEDED: dict[str, dict[str, Any]] = {
    "CenterCrop": {"height": 40, "width": 50},
    "FDA": {"reference_images": [FRAME], "read_fn": lambda x: x},
    "HistogramMatching": {"reference_images": [FRAME], "read_fn": lambda x: x},
    "LongestMaxSize": {"max_size": 50},
    "PadIfNeeded": {"min_height": 70, "min_width": 90},
    "RandomCrop": {"height": 40, "width": 50},
    "RandomResizedCrop": {"size": (40, 50)},
    "Resize": {"height": 40, "width": 50},
    "SmallestMaxSize": {"max_size": 50},
}


def made(name: str, **more: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # albumentations warns of deprecations
        return getattr(A, name)(**(NEEDED.get(name, {}) | more))


def converted(given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ours.from_albumentations(given)


def pixels(image: Any) -> np.ndarray:
    return image.as_subclass(Tensor).permute(1, 2, 0).numpy()


def every(transform: Any) -> list[Any]:
    return [transform, *(t for inner in getattr(transform, "transforms", ()) for t in every(inner))]


@pytest.mark.parametrize("name", sorted(table.SAME))
def test_the_same(name: str) -> None:
    """It converts without a warning, keeps its probability, and applies to an image."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline = ours.from_albumentations(made(name, p=0.7))
        out = ours.from_albumentations(A.Compose([made(name, p=1.0)]))(IMAGE)
    assert isinstance(pipeline, ours.Compose) and isinstance(out, Tensor)
    if name not in ("NoOp", "ToTensorV2", "ToFloat", "FromFloat"):
        assert [t.p for t in every(pipeline) if getattr(t, "p", 1.0) != 1.0][:1] == [0.7]


@pytest.mark.parametrize("name", sorted(table.NEAR))
def test_the_near(name: str) -> None:
    with pytest.warns(UserWarning, match=f"come near, but differ: {name}: "):
        pipeline = ours.from_albumentations(made(name, p=1.0))
    assert isinstance(pipeline(IMAGE), Tensor)


FIXED: dict[str, Callable[[], list[Any]]] = {
    "sizes": lambda: [A.LongestMaxSize(70, p=1), A.PadIfNeeded(90, 90, fill=3), A.CenterCrop(60, 64)],
    "smallest": lambda: [
        A.SmallestMaxSize(max_size_hw=(50, 70)),
        A.Resize(40, 30, interpolation=cv2.INTER_CUBIC),
    ],
    "nearest": lambda: [
        A.Resize(40, 30, interpolation=cv2.INTER_NEAREST),
        A.Pad((3, 5, 2, 1), border_mode=cv2.BORDER_REFLECT_101),
    ],
    "turns": lambda: [A.HorizontalFlip(p=1), A.Transpose(p=1), A.VerticalFlip(p=1)],
    "filters": lambda: [A.CLAHE((3, 3), p=1), A.Blur((5, 5), p=1), A.MedianBlur((3, 3), p=1)],
    "tones": lambda: [A.InvertImg(p=1), A.Solarize((0.4, 0.4), p=1), A.Posterize((3, 3), p=1)],
    "levels": lambda: [
        A.RandomBrightnessContrast((0.1, 0.1), (0.3, 0.3), p=1),
        A.HueSaturationValue((7, 7), (20, 20), (-9, -9), p=1),
    ],
    "colors": lambda: [
        A.RGBShift((5, 5), (-7, -7), (30, 30), p=1),
        A.PlanckianJitter(temperature_limit=(6000, 6000), p=1),
    ],
    "lens": lambda: [A.OpticalDistortion((0.2, 0.2), p=1)],
    "snow": lambda: [A.RandomSnow(snow_point_range=(0.4, 0.4), p=1)],
    "factors": lambda: [A.MultiplicativeNoise((1.2, 1.2), p=1), A.ChannelDropout((2, 2), p=0)],
    "never": lambda: [A.Blur(p=0), A.OneOf([A.InvertImg(p=1)], p=0), A.Sequential([A.InvertImg(p=1)], p=0)],
    "nested": lambda: [
        A.Sequential([A.InvertImg(p=1)], p=1),
        A.OneOf([A.VerticalFlip(p=0.1)], p=1),
        A.OneOrOther(A.NoOp(), A.NoOp()),
    ],
}


@pytest.mark.parametrize("name", FIXED)
def test_the_same_pixels(name: str) -> None:
    given = A.Compose(FIXED[name]())
    found = pixels(ours.from_albumentations(given)(IMAGE))
    off = np.abs(found.astype(int) - given(image=FRAME)["image"].astype(int))
    assert off.max() <= (1 if name == "lens" else 0)


def test_the_end_of_a_pipeline() -> None:
    given = A.Compose([A.Normalize(), A.ToTensorV2()])
    found, wanted = ours.from_albumentations(given)(IMAGE), given(image=FRAME)["image"]
    torch.testing.assert_close(found, wanted, rtol=0, atol=2e-6)
    real = A.Compose([A.ToFloat(max_value=255), A.FromFloat("uint8")])
    assert np.array_equal(pixels(converted(real)(IMAGE)), FRAME)
    real, floats = A.Compose([A.FromFloat("uint8", p=1)]), torch.rand(3, 9, 10)
    off = pixels(converted(real)(floats)).astype(int) - real(image=pixels(floats))["image"]
    assert np.abs(off).max() <= 1


def test_distributions() -> None:
    """Over 400 images, the draws have the chances and the mean displacement of a loop over albumentations."""
    images = torch.arange(4.0).reshape(1, 2, 2).byte().expand(400, 1, 2, 2)
    pipeline = A.Compose([A.OneOf([A.HorizontalFlip(p=0.9), A.VerticalFlip(p=0.3)], p=0.5)])
    convert = ours.from_albumentations(pipeline)
    found = [tuple(seeded(i, convert, x).flatten().tolist()) for i, x in enumerate(images)]
    wanted = [tuple(pipeline(image=x[0].numpy())["image"].flatten().tolist()) for x in images]
    for outcome in set(found) | set(wanted):
        assert abs(found.count(outcome) - wanted.count(outcome)) < 5 * (400 * 0.5 * 0.5) ** 0.5


def test_boxes_and_masks() -> None:
    params = A.BboxParams("pascal_voc", label_fields=["labels"], min_area=100)
    given = A.Compose([A.CenterCrop(40, 50), A.HorizontalFlip(p=1), A.Resize(80, 100)], bbox_params=params)
    boxes, labels = [[20.0, 15, 60, 50], [0, 0, 14, 14], [70, 50, 80, 64]], [4, 5, 6]
    mask = (FRAME[..., 0] > 99).astype(np.uint8)
    theirs = given(image=FRAME, bboxes=boxes, labels=labels, mask=mask)
    mine = ours.from_albumentations(given)(
        {
            "image": tv_tensors.Image(IMAGE),
            "mask": tv_tensors.Mask(torch.from_numpy(mask)),
            "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(64, 80)),
            "labels": torch.tensor(labels),
        }
    )
    assert np.array_equal(pixels(mine["image"]), theirs["image"])
    assert np.array_equal(mine["mask"].numpy(), theirs["mask"])
    assert np.allclose(mine["boxes"].numpy(), theirs["bboxes"])
    assert mine["labels"].tolist() == [int(n) for n in theirs["labels"]] == [4]


#: Pipelines from public repositories: detection, segmentation, classification, forensics, medical images.
PUBLIC: dict[str, Callable[[], Any]] = {
    "yolo": lambda: A.Compose(
        [
            A.LongestMaxSize(max_size=64),
            A.PadIfNeeded(min_height=64, min_width=64, border_mode=cv2.BORDER_CONSTANT),
            A.RandomCrop(width=64, height=64),
            A.ColorJitter(brightness=0.6, contrast=0.6, saturation=0.6, hue=0.5, p=0.3),
            A.OneOf([A.ShiftScaleRotate(rotate_limit=10, p=0.3), A.Affine(shear=15, p=0.5)], p=0.3),
            A.HorizontalFlip(p=0.5),
            A.Blur(blur_limit=3, p=0.3),
            A.CLAHE(p=0.3),
            A.Posterize(p=0.3),
            A.ToGray(p=0.3),
            A.ChannelShuffle(p=0.3),
            A.Normalize(mean=[0.485, 0.456, 0.406], max_pixel_value=255, p=1.0),
            A.ToTensorV2(),
        ],
        bbox_params=A.BboxParams(format="yolo", min_visibility=0.4, label_fields=[]),
    ),
    "segmentation": lambda: A.Compose(
        [
            A.RandomResizedCrop((48, 48), scale=(0.75, 1.0), p=1.0),
            A.HorizontalFlip(p=0.5),
            A.VerticalFlip(p=0.2),
            A.RandomRotate90(p=0.3),
            A.ShiftScaleRotate(shift_limit=0.05, scale_limit=0.1, rotate_limit=20, p=0.5),
            A.RandomBrightnessContrast(0.15, 0.15, p=0.3),
            A.GaussNoise(p=0.15),
            A.GridDistortion(num_steps=4, distort_limit=0.04, p=0.2),
            A.Normalize(),
            A.ToTensorV2(),
        ]
    ),
    "introduction": lambda: A.Compose(
        [
            A.CLAHE(),
            A.RandomRotate90(),
            A.Transpose(),
            A.ShiftScaleRotate(shift_limit=0.0625, scale_limit=0.50, rotate_limit=45, p=0.75),
            A.Blur(blur_limit=3),
            A.OpticalDistortion(),
            A.GridDistortion(),
            A.HueSaturationValue(),
        ]
    ),
    "efficientdet": lambda: A.Compose(
        [
            *(A.Transpose(p=0.5), A.VerticalFlip(p=0.5), A.HorizontalFlip(p=0.5)),
            A.OneOf(
                [
                    A.CLAHE(p=1),
                    A.RandomBrightnessContrast(0.15, 0.15, p=1),
                    A.RandomGamma(p=1),
                    A.HueSaturationValue(p=1),
                ],
                p=0.8,
            ),
            A.OneOf([A.Blur(4, p=1), A.MotionBlur(5, p=1), A.Sharpen(p=1)], p=0.75),
            A.Normalize(),
        ],
        bbox_params=A.BboxParams(format="coco", label_fields=["category_ids"], min_visibility=0.2),
    ),
    "forensics": lambda: A.ReplayCompose(
        [
            A.HorizontalFlip(p=0.5),
            A.RandomBrightnessContrast(p=0.3),
            A.ImageCompression(quality_range=(40, 90), p=0.5),
            A.GaussNoise(p=0.3),
            A.CoarseDropout(
                num_holes_range=(1, 4), hole_height_range=(0.05, 0.15), hole_width_range=(0.05, 0.15), p=0.2
            ),
        ]
    ),
    "melanoma": lambda: A.Compose(
        [
            A.OneOf(
                [
                    A.MotionBlur(blur_limit=5),
                    A.MedianBlur(blur_limit=5),
                    A.GaussianBlur(blur_limit=5),
                    A.GaussNoise(),
                ],
                p=0.7,
            ),
            A.OneOf(
                [
                    A.OpticalDistortion(distort_limit=1.0),
                    A.GridDistortion(num_steps=5, distort_limit=1.0),
                    A.ElasticTransform(alpha=3),
                ],
                p=0.7,
            ),
            A.CLAHE(clip_limit=4.0, p=0.7),
            A.HueSaturationValue(hue_shift_limit=10, sat_shift_limit=20, val_shift_limit=10, p=0.7),
            A.ShiftScaleRotate(shift_limit=0.1, scale_limit=0.1, rotate_limit=15, border_mode=0, p=0.7),
            A.Resize(48, 48),
            A.CoarseDropout(
                num_holes_range=(1, 1), hole_height_range=(9, 18), hole_width_range=(9, 18), p=0.7
            ),
            A.Normalize(),
            A.ToTensorV2(),
        ],
        p=1.0,
    ),
    "signs": lambda: A.Compose(
        [
            A.Affine(
                scale=(0.85, 1.1),
                translate_percent=(-0.04, 0.04),
                rotate=(-22, 22),
                shear=(-7, 7),
                border_mode=cv2.BORDER_REPLICATE,
                p=0.95,
            ),
            A.Perspective(scale=(0.02, 0.08), border_mode=cv2.BORDER_REPLICATE, p=0.5),
            A.RandomBrightnessContrast(brightness_limit=0.35, contrast_limit=0.3, p=0.9),
            A.OneOf([A.MotionBlur(blur_limit=7), A.GaussianBlur(blur_limit=5)], p=0.4),
            *(A.GaussNoise(p=0.4), A.RandomShadow(p=0.3), A.CoarseDropout(p=0.4)),
        ],
        bbox_params=A.BboxParams(format="pascal_voc", label_fields=["cls"], min_visibility=0.35, min_area=64),
    ),
    "colors": lambda: A.Compose(
        [
            A.OneOf([A.Rotate(limit=45, p=0.5), A.HorizontalFlip(p=0.5)], p=1),
            A.OneOf(
                [A.RandomGamma(p=0.5), A.RandomBrightnessContrast(p=0.5), A.RGBShift(25, 25, 25, p=0.5)],
                p=0.7,
            ),
        ]
    ),
}


@pytest.mark.parametrize("name", PUBLIC)
def test_pipelines_of_public_repositories(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = PUBLIC[name]()
    pipeline = converted(given)
    keys = {"bboxes": [], "labels": [], "category_ids": [], "cls": []} if "bboxes" in given.processors else {}
    known = {n for p in given.processors.values() for n in (p.params.label_fields or ())} | {"bboxes"}
    image = IMAGE[:, :, :64].contiguous()
    theirs = given(
        image=np.ascontiguousarray(FRAME[:, :64]), **{k: v for k, v in keys.items() if k in known}
    )["image"]
    boxes = tv_tensors.BoundingBoxes([[9.0, 9, 40, 50]], format="XYXY", canvas_size=(64, 64))
    given_here = {"image": tv_tensors.Image(image), "boxes": boxes}
    given_here |= {n: torch.tensor([1]) for n in known - {"bboxes"}}
    for seed in range(12):
        out = seeded(seed, pipeline, given_here if keys else image)
        mine = out["image"] if keys else out
        shape = theirs.shape if isinstance(theirs, Tensor) else (theirs.shape[2], *theirs.shape[:2])
        assert tuple(mine.shape) == tuple(shape)
        assert str(mine.dtype).removeprefix("torch.") == str(theirs.dtype).removeprefix("torch.")


@pytest.mark.parametrize("name", ["segmentation", "forensics"])
def test_one_graph_per_sample(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = ours.Compose([converted(PUBLIC[name]())], per_sample=True)
    images = torch.stack([picture(height=64, width=64, seed=s) for s in range(3)])
    torch.compiler.reset()
    graph = torch.compile(pipeline, fullgraph=True, backend="aot_eager")
    for seed in range(3):
        torch.testing.assert_close(
            seeded(seed, graph, images), seeded(seed, pipeline, images), rtol=0, atol=1e-5
        )


HEIGHT, WIDTH = 61, 83


def _scene() -> np.ndarray:
    """Make a scene that is not square, with odd sides, smooth ramps and textures, so that any wrong turn or motion shows."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    ramps = np.stack([x * 3 % 256, y * 4 % 256, (x * 2 + y) % 256], -1) / 2
    noise = np.random.default_rng(0).uniform(0, 256, (HEIGHT, WIDTH, 3)).astype(np.float32)
    return np.clip(ramps + (cv2.GaussianBlur(noise, (0, 0), 3) - 128) * 4 + 90, 0, 255).astype(np.uint8)


SCENE = _scene()
OTHER = np.ascontiguousarray(SCENE[::-1, ::-1] // 2 + 40)
MASK = (SCENE[..., 0] // 60).astype(np.uint8)
#: Coordinates between whole pixels, because float32 arithmetic cannot decide ties.
BOXES = [
    [10.5, 8.5, 30.5, 25.5],
    [40.5, 20.5, 75.5, 55.5],
    [0, 0, 12.5, 10.5],
    [60.5, 40.5, 83, 61],
    [33.5, 3.5, 37.5, 7.5],
]
POINTS = [[12.0, 9], [50, 30], [5, 50], [80, 3], [41.25, 33.5]]
REFERENCES = {"reference_images": [OTHER], "read_fn": lambda x: x}
METADATA = {"HistogramMatching": {"hm_metadata": [OTHER]}, "FDA": {"fda_metadata": [OTHER]}}


def composed(*transforms: Any, points: bool = True, **rules: Any) -> Any:
    return A.Compose(
        list(transforms),
        bbox_params=A.BboxParams("pascal_voc", label_fields=["labels"], **rules),
        keypoint_params=A.KeypointParams("xy", label_fields=["tags"]) if points else None,
    )


def theirs(pipeline: Any, **more: Any) -> dict[str, Any]:
    sample = {"image": SCENE, "mask": MASK, "bboxes": BOXES, "labels": list(range(len(BOXES)))}
    if "keypoints" in pipeline.processors:
        sample |= {"keypoints": POINTS, "tags": list(range(len(POINTS)))}
    return pipeline(**(sample | more))


def sample_here(**more: Any) -> dict[str, Any]:
    canvas = (HEIGHT, WIDTH)
    sample = {
        "image": tv_tensors.Image(torch.from_numpy(SCENE).permute(2, 0, 1).contiguous()),
        "mask": tv_tensors.Mask(torch.from_numpy(MASK)),
        "bboxes": tv_tensors.BoundingBoxes(BOXES, format="XYXY", canvas_size=canvas),
        "labels": torch.arange(len(BOXES)),
        "keypoints": tv_tensors.KeyPoints(POINTS, canvas_size=canvas),
        "tags": [str(i) for i in range(len(POINTS))],
    }
    return sample | more


def assert_same(mine: dict[str, Any], wanted: dict[str, Any], levels: float, pixels_off: float = 0.0) -> None:
    """Check that images, masks, boxes, keypoints and labels are equal; at most a share of the mask's pixels may differ."""
    image = pixels(mine["image"]).astype(float)
    assert image.shape == wanted["image"].shape
    assert np.abs(image - wanted["image"]).max() <= levels
    assert mine["image"].dtype == torch.from_numpy(wanted["image"]).dtype
    if "mask" in wanted:
        assert (mine["mask"].numpy() != wanted["mask"]).mean() <= pixels_off
    if "bboxes" in wanted:
        assert mine["labels"].tolist() == [int(n) for n in wanted["labels"]]
        boxes = np.array(wanted["bboxes"]).reshape(-1, 4)
        np.testing.assert_allclose(mine["bboxes"].numpy(), boxes, rtol=0, atol=2e-3)
    if "keypoints" in wanted:
        assert mine["tags"] == [str(int(n)) for n in wanted["tags"]]
        points = np.array(wanted["keypoints"]).reshape(-1, 2)
        np.testing.assert_allclose(mine["keypoints"].numpy(), points, rtol=0, atol=2e-3)


_BACK = {"rotate_limit": (-50, -50), "scale_limit": (0, 0)}
#: Arguments that leave nothing to chance, and by how many levels the pixels may differ.
FIXED_ARGUMENTS: dict[str, list[tuple[dict[str, Any], float]]] = {
    "Affine": [
        ({"rotate": (20, 20)}, 1),
        ({"rotate": (-70, -70), "scale": {"x": (1.3, 1.3), "y": (0.8, 0.8)}, "fill": 7, "fill_mask": 3}, 1),
        ({"shear": {"x": (10, 10), "y": (-5, -5)}, "translate_px": {"x": (9, 9), "y": (-4, -4)}}, 1),
        (
            {"translate_percent": {"x": (0.1, 0.1), "y": (-0.2, -0.2)}, "rotate": (33, 33), "border_mode": 1},
            1,
        ),
        ({"scale": (0.7, 0.7), "keep_ratio": True, "interpolation": 0, "fill": (1, 2, 3)}, 0),
    ],
    "AutoContrast": [({}, 0), ({"method": "pil"}, 0)],
    "Blur": [({"blur_limit": (5, 5)}, 0)],
    "CLAHE": [({"clip_limit": (3, 3)}, 0), ({"clip_limit": (1.5, 1.5), "tile_grid_size": (4, 6)}, 0)],
    "CenterCrop": [
        ({"height": 40, "width": 50}, 0),
        ({"height": 37, "width": 64}, 0),
        ({"height": 70, "width": 50, "pad_if_needed": True, "fill": 9, "fill_mask": 2}, 0),
    ],
    "Emboss": [({"alpha": (0.5, 0.5), "strength": (0.6, 0.6)}, 1)],
    "Equalize": [({}, 0), ({"mode": "pil"}, 0)],
    "HistogramMatching": [({**REFERENCES, "blend_ratio": (0.7, 0.7)}, 1)],
    "HorizontalFlip": [({}, 0)],
    "HueSaturationValue": [
        ({"hue_shift_limit": (9, 9), "sat_shift_limit": (20, 20), "val_shift_limit": (-15, -15)}, 0),
        ({"hue_shift_limit": (-9, -9), "sat_shift_limit": (-20, -20), "val_shift_limit": (15, 15)}, 0),
    ],
    "ImageCompression": [
        ({"quality_range": (50, 50)}, 0),
        ({"quality_range": (20, 20), "compression_type": "webp"}, 0),
    ],
    "InvertImg": [({}, 0)],
    "LongestMaxSize": [({"max_size": 50}, 0), ({"max_size": None, "max_size_hw": (100, 90)}, 0)],
    "MedianBlur": [({"blur_limit": (5, 5)}, 0)],
    "MotionBlur": [
        (
            {
                "blur_limit": (7, 7),
                "angle_range": (30, 30),
                "direction_range": (0.3, 0.3),
                "allow_shifted": False,
            },
            1,
        ),
    ],
    "MultiplicativeNoise": [({"multiplier": (1.2, 1.2)}, 0)],
    "NoOp": [({}, 0)],
    "Normalize": [({}, 2e-6)],
    "OpticalDistortion": [
        ({"distort_limit": (0.3, 0.3)}, 1),
        ({"distort_limit": (-0.2, -0.2), "mode": "fisheye"}, 1),
    ],
    "Pad": [({"padding": (3, 5, 2, 1), "fill": 4, "fill_mask": 2}, 0), ({"padding": 4, "border_mode": 1}, 0)],
    "PadIfNeeded": [
        ({"min_height": 70, "min_width": 90, "fill": 7}, 0),
        ({"min_height": 70, "min_width": 90, "position": "top_right", "border_mode": 1}, 0),
        ({"min_height": None, "min_width": None, "pad_height_divisor": 16, "pad_width_divisor": 32}, 0),
    ],
    "PlanckianJitter": [({"temperature_limit": (6000, 6000)}, 0)],
    "Posterize": [({"num_bits": (3, 3)}, 0)],
    "RGBShift": [({"r_shift_limit": (5, 5), "g_shift_limit": (-7, -7), "b_shift_limit": (30, 30)}, 0)],
    "RandomBrightnessContrast": [({"brightness_limit": (0.1, 0.1), "contrast_limit": (0.3, 0.3)}, 0)],
    "RandomSnow": [({"snow_point_range": (0.4, 0.4)}, 0)],
    "Resize": [
        ({"height": 40, "width": 50}, 0),
        ({"height": 90, "width": 77, "interpolation": 2}, 0),
        ({"height": 33, "width": 99, "interpolation": 0}, 0),
    ],
    "Rotate": [({"limit": (20, 20)}, 1), ({"limit": (-100, -100), "fill": 5, "border_mode": 1}, 1)],
    "Sharpen": [({"alpha": (0.5, 0.5), "lightness": (0.8, 0.8)}, 1)],
    "ShiftScaleRotate": [
        ({"shift_limit": (0.1, 0.1), "scale_limit": (0.2, 0.2), "rotate_limit": (20, 20)}, 1),
        ({"shift_limit_x": (0.1, 0.1), "shift_limit_y": (-0.2, -0.2), **_BACK}, 1),
    ],
    "SmallestMaxSize": [({"max_size": 50}, 0)],
    "Solarize": [({"threshold_range": (0.4, 0.4)}, 0)],
    "ToFloat": [({}, 1e-7), ({"p": 0}, 0)],
    "ToRGB": [({}, 0)],
    "ToTensorV2": [],  # tested separately, as the end of a pipeline
    "Transpose": [({}, 0)],
    "VerticalFlip": [({}, 0)],
    # Transforms with an approximate counterpart.
    "Downscale": [({"scale_range": (0.4, 0.4)}, 30)],
    "FDA": [({**REFERENCES, "beta_limit": (0.1, 0.1)}, 1)],
    "GaussianBlur": [
        ({"blur_limit": (5, 5), "sigma_limit": (1.5, 1.5)}, 1),
        ({"blur_limit": 0, "sigma_limit": (2, 2)}, 1),
    ],
    "Morphological": [
        ({"operation": "dilation", "scale": (2, 6)}, 0),
        ({"operation": "erosion", "scale": (5, 3)}, 0),
    ],
    "RandomGamma": [({"gamma_limit": (120, 120)}, 1), ({"gamma_limit": (60, 60)}, 1)],
    "ToGray": [({}, 1)],
    "UnsharpMask": [
        ({"blur_limit": (7, 7), "sigma_limit": (2, 2), "alpha": (0.5, 0.5), "threshold": 0}, 3),
    ],
}
#: The share of nearest pixels that a warp may round differently, and the transforms that leave masks and boxes as they are.
ROUNDED = {"Affine": 0.01, "Rotate": 0.01, "ShiftScaleRotate": 0.01, "OpticalDistortion": 0.01}
IMAGES_ALONE = {"Morphological"}
#: The transforms that scale keypoints by a factor before they round the size.
ROUNDED_POINTS = {"LongestMaxSize", "SmallestMaxSize"}


@pytest.mark.parametrize("name", FIXED_ARGUMENTS)
def test_each_class_beside_albumentations(name: str) -> None:
    for arguments, levels in FIXED_ARGUMENTS[name]:
        given = made(name, **{"p": 1, **arguments})
        if name == "OpticalDistortion" or name in IMAGES_ALONE:
            pipeline, wanted = A.Compose([given]), A.Compose([given])(image=SCENE, mask=MASK)
            if name in IMAGES_ALONE:
                del wanted["mask"]
        else:
            pipeline = composed(given, points=name not in ROUNDED_POINTS)
            wanted = theirs(pipeline, **METADATA.get(name, {}))
        assert_same(converted(pipeline)(sample_here()), wanted, levels, ROUNDED.get(name, 0.0))


#: Transforms that cannot be fixed by ranges of one value: the images' statistics over many draws are equal. A share of
#: the spread may differ if the counterpart is only approximate.
DRAWN: dict[str, list[dict[str, Any]]] = {
    "Affine": [
        {"rotate": (-30, 30), "scale": (0.7, 1.4), "shear": (-10, 10), "translate_percent": (-0.2, 0.1)}
    ],
    "ChannelDropout": [{"channel_drop_range": (1, 2), "fill": 7}],
    "ChannelShuffle": [{}],
    "CoarseDropout": [
        {"num_holes_range": (1, 3), "hole_height_range": (5, 20), "hole_width_range": (8, 30), "fill": 9},
        {"hole_height_range": (0.5, 1.0), "hole_width_range": (0.5, 1.0), "num_holes_range": (200, 300)},
        {"hole_height_range": (0.2, 0.4), "hole_width_range": (0.3, 0.5), "fill": "random"},
    ],
    "ColorJitter": [{}],
    "D4": [{}],
    "ElasticTransform": [
        {"alpha": 300, "sigma": 6},
        {"alpha": 60, "sigma": 4, "noise_distribution": "uniform", "same_dxdy": True},
        {"alpha": 300, "sigma": 5, "approximate": True},
    ],
    "Erasing": [{}, {"scale": (0.2, 0.2), "ratio": (0.5, 0.5)}],
    "GaussNoise": [{"std_range": (0.1, 0.2), "mean_range": (0.05, 0.05)}, {"per_channel": False}],
    "GaussianBlur": [{"blur_limit": (3, 11), "sigma_limit": (0.5, 3)}],
    "GridDistortion": [
        {"distort_limit": (-0.3, 0.3)},
        {"distort_limit": 0.5, "num_steps": 3, "normalized": False},
    ],
    "GridDropout": [
        {},
        {"ratio": 0.4, "holes_number_xy": (4, 7)},
        {"ratio": 0.3, "unit_size_range": (9, 20), "random_offset": False, "shift_xy": (3, 5)},
    ],
    "ISONoise": [{"color_shift": (0.05, 0.05), "intensity": (0.5, 0.5)}],
    "MotionBlur": [{"blur_limit": (3, 11)}],
    "Perspective": [{"scale": (0.1, 0.1)}, {"scale": (0.05, 0.3), "border_mode": 1}],
    "PixelDropout": [{"dropout_prob": 0.2, "drop_value": 3}, {"dropout_prob": 0.2, "per_channel": True}],
    "RandomBrightnessContrast": [{}],
    "RandomCrop": [
        {"height": 40, "width": 50},
        {"height": 70, "width": 50, "pad_if_needed": True, "pad_position": "top_left"},
    ],
    "RandomFog": [{}],
    "RandomRain": [{"slant_range": (5, 5)}, {"rain_type": "heavy"}],
    "RandomResizedCrop": [{"size": (40, 50)}],
    "RandomRotate90": [{}],
    "RandomShadow": [{}],
    "RandomSunFlare": [{"src_radius": 30}, {"method": "physics_based", "src_radius": 30}],
    "RandomToneCurve": [{"scale": 0.2}, {"scale": 0.2, "per_channel": True}],
    "Rotate": [{"limit": (10, 60)}],
    "SaltAndPepper": [{"amount": (0.1, 0.1), "salt_vs_pepper": (0.3, 0.3)}],
    "ShotNoise": [{"scale_range": (0.3, 0.3)}, {"scale_range": (0.05, 0.2)}],
    "SquareSymmetry": [{}],
    "ThinPlateSpline": [{"scale_range": (0.2, 0.4)}],
}


SPREADS_DIFFER = {"SaltAndPepper"}


def _statistics(images: list[np.ndarray]) -> np.ndarray:
    """Return, for each image, the mean of each quarter of each channel, and the differences from the scene and from its mean."""
    rows = []
    for image in images:
        real = image.astype(float)
        high, wide = real.shape[0] // 2, real.shape[1] // 2
        quarters = [real[i : i + high, j : j + wide].mean((0, 1)) for i in (0, high) for j in (0, wide)]
        off = np.abs(real - SCENE).mean() if image.shape == SCENE.shape else real.std()
        rows.append(np.append(np.concatenate(quarters), [off, real.std()]))
    return np.array(rows)


@pytest.mark.parametrize("name", DRAWN)
def test_the_draws_of_each_class_beside_albumentations(name: str, whole: bool) -> None:
    """Means and spreads of 250 draws, in `make test` of 100, are within five standard errors."""
    count = 250 if whole else 100
    for arguments in DRAWN[name]:
        given = A.Compose([made(name, **{"p": 1, **arguments})], seed=1)
        pipeline, image = converted(given), torch.from_numpy(SCENE).permute(2, 0, 1).contiguous()
        wanted = _statistics([given(image=SCENE)["image"] for _ in range(count)])
        mine = _statistics([pixels(seeded(seed, pipeline, image)) for seed in range(count)])
        error = np.sqrt((wanted.var(0) + mine.var(0)) / count)
        assert (np.abs(wanted.mean(0) - mine.mean(0)) <= 5 * error + 0.35).all(), arguments
        if name in SPREADS_DIFFER:
            continue
        # The standard error of a spread: half of the fourth moment over the variance.
        for a, b in zip(wanted.T, mine.T, strict=True):
            fourth = [((x - x.mean()) ** 4).mean() / max(x.var(), 1e-9) / 4 for x in (a, b)]
            assert abs(a.std() - b.std()) <= 6 * np.sqrt(sum(fourth) / count) + 0.25, arguments


def the_step(pipeline: Any, name: str) -> Any:
    return next(t for t in every(pipeline) if type(t).__name__ == name)


def with_their_draws(given: Any, name: str, params_of: Callable[[Any], dict[str, Any]], **rules: Any) -> None:
    """Check one step, with boxes and keypoints, given the parameters that albumentations has just drawn."""
    for seed in range(12):
        pipeline = composed(given, **rules)
        pipeline.set_random_seed(seed)
        wanted, convert = theirs(pipeline), converted(pipeline)
        step, params = the_step(convert, name), params_of(given.params)
        steps = [
            t if t is not step else ours.Lambda(lambda x: step.transform(x, params), object)
            for t in convert.transforms
        ]
        mine: Any = sample_here()
        for t in steps:
            if isinstance(t, ours.Lambda):
                mine = {
                    k: step.transform(v, params) if isinstance(v, tv_tensors.TVTensor) else v
                    for k, v in mine.items()
                }
            else:
                mine = t(mine)
        assert_same(mine, wanted, 1, 0.005)


@pytest.mark.parametrize("padding_mode", [0, 1])
def test_a_perspective_zooms_in(padding_mode: int) -> None:
    def params_of(drawn: dict[str, Any]) -> dict[str, Any]:
        zoom = np.diag([WIDTH / drawn["max_width"], HEIGHT / drawn["max_height"], 1])
        return {"matrix": (zoom @ drawn["matrix"]).ravel().tolist()}

    given = A.Perspective((0.05, 0.2), border_mode=padding_mode, fill=9, fill_mask=1, p=1)
    with_their_draws(given, "_PerspectiveCounterpart", params_of)


@pytest.mark.parametrize("rules", [{}, {"min_area": 150}, {"min_visibility": 0.7}], ids=str)
@pytest.mark.parametrize("name", ["CoarseDropout", "Erasing"])
def test_holes_in_boxes(name: str, rules: dict[str, float]) -> None:
    """Boxes shrink to their visible part or are lost; keypoints in holes are lost."""

    def params_of(drawn: dict[str, Any]) -> dict[str, Any]:
        return {"seed": 0, "count": len(drawn["holes"]), "places": drawn["holes"].ravel().tolist()}

    arguments = {
        "CoarseDropout": {
            "num_holes_range": (3, 6),
            "hole_height_range": (10, 30),
            "hole_width_range": (10, 40),
        },
        "Erasing": {"scale": (0.2, 0.5)},
    }[name]
    given = made(name, fill=5, fill_mask=7, p=1, **arguments)
    with_their_draws(given, f"_{name}Counterpart", params_of, **rules)


@pytest.mark.parametrize("rules", [{}, {"min_area": 30}, {"min_visibility": 0.7}], ids=str)
def test_a_grid_of_holes_in_boxes(monkeypatch: pytest.MonkeyPatch, rules: dict[str, float]) -> None:
    given = A.GridDropout(0.6, fill_mask=3, p=1)
    counterpart = type(the_step(converted(composed(given)), "_GridDropoutCounterpart"))
    monkeypatch.setattr(counterpart, "boxes_of", lambda self, **params: given.params["holes"])
    with_their_draws(given, counterpart.__name__, lambda drawn: {"seed": 0, "rows": 0, "columns": 0}, **rules)


@pytest.mark.parametrize("rules", [{}, {"min_area": 150}, {"min_visibility": 0.77}], ids=str)
def test_dropped_pixels_in_boxes(monkeypatch: pytest.MonkeyPatch, rules: dict[str, float]) -> None:
    given = A.PixelDropout(0.2, drop_value=4, p=1)
    counterpart = type(the_step(converted(composed(given)), "_PixelDropoutCounterpart"))

    def drawn(self: Any, shape: Any, value: float) -> Tensor:
        return torch.from_numpy(given.params["drop_mask"][..., 0].copy())

    monkeypatch.setattr(counterpart, "_draw_pixels", drawn)
    with_their_draws(given, counterpart.__name__, lambda params: {"seed": 0}, **rules)


#: Pipelines with the rules by which boxes and keypoints are dropped.
RULES: dict[str, Callable[[], Any]] = {
    "nothing": lambda: composed(A.Resize(31, 42)),
    "small boxes stay": lambda: composed(A.Resize(6, 8)),
    "width": lambda: composed(A.Resize(61, 83), min_width=13),
    "height": lambda: composed(A.Resize(61, 83), min_height=16),
    "both": lambda: composed(A.Resize(40, 83), min_height=14, min_width=15),
    "area": lambda: composed(A.CenterCrop(40, 40), min_area=200),
    "shape": lambda: composed(A.Resize(30, 100), max_accept_ratio=2.5),
    "visibility": lambda: composed(A.CenterCrop(45, 50), min_visibility=0.6),
    "visibility in two steps": lambda: composed(
        A.CenterCrop(50, 60), A.Rotate((10, 10), p=1), min_visibility=0.75
    ),
    "visibility in the end": lambda: composed(
        A.CenterCrop(50, 60), A.Rotate((10, 10), p=1), min_visibility=0.75, check_each_transform=False
    ),
    "cropped and padded": lambda: composed(
        A.CenterCrop(30, 30), A.PadIfNeeded(70, 90), A.HorizontalFlip(p=1)
    ),
    "cropped and padded, unchecked": lambda: composed(
        A.CenterCrop(30, 30), A.PadIfNeeded(70, 90), points=False, check_each_transform=False
    ),
    "area before a resize": lambda: composed(A.CenterCrop(40, 50), A.Resize(122, 166), min_area=150),
    "warped": lambda: composed(
        A.Affine(rotate=(35, 35), scale=(1.4, 1.4), p=1), A.Perspective((0, 0), p=1), A.Transpose(p=1)
    ),
    "inside": lambda: composed(
        A.Sequential([A.CenterCrop(40, 50), A.Pad(9)], p=1), A.OneOf([A.VerticalFlip(p=1)], p=1), min_area=90
    ),
    "clipped": lambda: A.Compose(
        [A.HorizontalFlip(p=1)], A.BboxParams("pascal_voc", label_fields=["labels"], clip=True, min_area=9)
    ),
    "invalid": lambda: A.Compose(
        [A.HorizontalFlip(p=1)],
        A.BboxParams("pascal_voc", label_fields=["labels"], filter_invalid_bboxes=True, clip=True),
    ),
    "without images moved": lambda: composed(A.InvertImg(p=1), min_area=200),
    "visible points stay": lambda: A.Compose(
        [A.CenterCrop(40, 50), A.Pad(30)],
        keypoint_params=A.KeypointParams("xy", label_fields=["tags"], remove_invisible=False),
    ),
    "never": lambda: A.Compose(
        [A.CenterCrop(9, 9)], A.BboxParams("pascal_voc", label_fields=["labels"], min_area=900), p=0
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_what_is_dropped(name: str) -> None:
    pipeline = RULES[name]()
    more: dict[str, Any] = {}
    if name in ("clipped", "invalid"):
        more = {"bboxes": [*BOXES[:4], [-5.0, 50, 20, 70] if name == "clipped" else [20.0, 50, 20, 60]]}
    if "bboxes" in pipeline.processors:
        wanted = theirs(pipeline, **more)
    else:
        wanted = pipeline(image=SCENE, mask=MASK, keypoints=POINTS, tags=list(range(len(POINTS))))
    here = sample_here()
    if more:
        here["bboxes"] = tv_tensors.BoundingBoxes(more["bboxes"], format="XYXY", canvas_size=(HEIGHT, WIDTH))
    assert_same(converted(pipeline)(here), wanted, 1, 0.01)


@pytest.mark.parametrize("format", ["XYXY", "XYWH", "CXCYWH"])
def test_formats_of_boxes(format: str) -> None:
    pipeline = composed(A.CenterCrop(40, 50), A.Pad(5), min_area=150, points=False)
    wanted, here = theirs(pipeline), sample_here()
    convert = ours.ConvertBoundingBoxFormat(format)
    found = converted(pipeline)(here | {"bboxes": convert(here["bboxes"])})
    assert found["bboxes"].format.value == format and found["bboxes"].clamping_mode == "soft"
    assert_same(found | {"bboxes": ours.ConvertBoundingBoxFormat("XYXY")(found["bboxes"])}, wanted, 0)


def test_boxes_in_a_graph() -> None:
    """Dropped boxes keep their place in the tensors, so that one graph holds the pipeline."""
    pipeline = composed(
        A.CenterCrop(40, 50),
        A.Affine(rotate=(20, 20), p=1),
        A.Sequential([A.VerticalFlip(p=1)], p=0.5),
        min_area=150,
    )
    convert, here = converted(pipeline), sample_here()
    here["tags"] = torch.arange(len(POINTS))
    torch.compiler.reset()
    graph = torch.compile(convert, fullgraph=True, backend="aot_eager")
    for seed in range(4):
        wanted, found = seeded(seed, convert, here), seeded(seed, graph, here)
        for key, value in wanted.items():
            torch.testing.assert_close(found[key], value, rtol=0, atol=1e-4)
        assert len(wanted["bboxes"]) == len(wanted["labels"]) < len(BOXES)


def test_keypoints_that_a_distortion_moves_outside() -> None:
    pipeline = composed(A.OpticalDistortion((-0.9, -0.9), p=1))
    found, wanted = converted(pipeline)(sample_here()), theirs(pipeline)
    assert len(wanted["keypoints"]) < len(POINTS)
    assert found["tags"] == [str(int(n)) for n in wanted["tags"]]
    points = np.array(wanted["keypoints"]).reshape(-1, 2)
    np.testing.assert_allclose(found["keypoints"].numpy(), points, rtol=0, atol=2)


def test_boxes_and_keypoints_follow_distortions() -> None:
    """They agree as closely as whole pixels allow."""
    for distortion in (
        A.OpticalDistortion((0.3, 0.3), p=1),
        A.OpticalDistortion((-0.2, -0.2), mode="fisheye", p=1),
    ):
        pipeline = composed(distortion)
        found, wanted = converted(pipeline)(sample_here()), theirs(pipeline)
        assert found["labels"].tolist() == [int(n) for n in wanted["labels"]]
        assert found["tags"] == [str(int(n)) for n in wanted["tags"]]
        np.testing.assert_allclose(found["bboxes"].numpy(), np.array(wanted["bboxes"]), rtol=0, atol=2)
        np.testing.assert_allclose(found["keypoints"].numpy(), np.array(wanted["keypoints"]), rtol=0, atol=2)


def test_labels_by_their_names() -> None:
    given = A.Compose([A.CenterCrop(30, 30)], A.BboxParams("coco", label_fields=["kinds", "scores"]))
    boxes = tv_tensors.BoundingBoxes([[0.0, 0, 9, 9], [30, 20, 20, 20]], format="XYWH", canvas_size=(64, 80))
    sample = {
        "image": tv_tensors.Image(IMAGE),
        "boxes": boxes,
        "kinds": ["a", "b"],
        "scores": torch.tensor([0.1, 0.2]),
    }
    found = converted(given)(sample)
    assert (
        found["kinds"] == ["b"]
        and found["scores"].tolist() == [torch.tensor(0.2).item()]
        and len(found["boxes"]) == 1
    )
    assert sample["kinds"] == ["a", "b"] and len(sample["boxes"]) == 2
    must = "inputs must be a dict with the label fields kinds, scores, got a dict of image, boxes, kinds"
    with pytest.raises(ValueError, match=f"^from_albumentations: {must}$"):
        converted(given)({k: v for k, v in sample.items() if k != "scores"})
    with pytest.raises(ValueError, match="kinds must be a tensor or a list of 2 labels, got 3 labels"):
        converted(given)(sample | {"kinds": [1, 2, 3]})
    assert converted(given)(IMAGE).shape == (3, 30, 30)


def test_arrays_and_keywords_are_refused() -> None:
    pipeline = converted(A.Compose([A.HorizontalFlip(p=1)]))
    for wrong in (FRAME, {"image": FRAME}, {"image": IMAGE, "extra": [FRAME]}):
        with pytest.raises(
            TypeError, match=r"^from_albumentations: .* must be tensors .*, got a NumPy array$"
        ):
            pipeline(wrong)
    with pytest.raises(
        TypeError, match="inputs must be a tensor or one dict of tensors, got the keywords image"
    ):
        pipeline(image=FRAME)


def test_a_crop_of_a_smaller_image() -> None:
    given = A.Compose([A.CenterCrop(100, 50)])
    with pytest.raises(Exception, match="Crop size"):
        given(image=FRAME)
    with pytest.raises(ValueError, match=r"^CenterCrop: image must be at least 100 x 50, got 64 x 80$"):
        converted(given)(IMAGE)


def test_what_differs_only_for_some_arguments() -> None:
    mirrored = A.Affine(rotate=(5, 9), border_mode=cv2.BORDER_REFLECT_101, p=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours.from_albumentations(A.Compose([mirrored, A.OpticalDistortion(), A.LongestMaxSize(9)]))
        ours.from_albumentations(composed(A.Affine(), points=False))
    with pytest.warns(
        UserWarning, match="Affine: boxes .* mirrored border; OpticalDistortion: .*; LongestMaxSize: "
    ):
        ours.from_albumentations(composed(mirrored, A.OpticalDistortion(), A.LongestMaxSize(9)))


def test_chances_of_what_had_none() -> None:
    """Every class keeps its probability."""
    for name in (*table.SAME, *table.NEAR):
        if name not in ("NoOp", "ToTensorV2"):
            pipeline = converted(made(name, p=0.25))
            assert [t.p for t in every(pipeline) if getattr(t, "p", 1.0) == 0.25], name


class _Watched(dict[str, Any]):
    """Arguments that record which of them are read."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        super().__init__(arguments)
        self.unread = set(arguments)

    def __getitem__(self, name: str) -> Any:
        self.unread.discard(name)
        return super().__getitem__(name)


#: Arguments that may be ignored: they have no effect there, or the warning and the page say what happens instead.
PASSED_OVER = {
    "keypoint_remapping_method",  # the warning says how keypoints move
    "transpose_mask",  # a mask is always a tensor
    "padding",  # PadIfNeeded inherits it
    *("spatial_mode", "noise_params", "noise_type", "approximation"),  # RGBShift inherits them
}
ONLY_FOR_A_PADDING = {"fill", "fill_mask", "border_mode", "pad_position"}
ONLY_FOR_OTHERS = {"Sharpen": {"sigma", "kernel_size"}, "LongestMaxSize": {"max_size_hw"}}
ONLY_FOR_OTHERS |= {"SmallestMaxSize": {"max_size_hw"}, "FDA": {"metadata_key"}}
ONLY_FOR_OTHERS |= {"HistogramMatching": {"metadata_key"}, "CenterCrop": ONLY_FOR_A_PADDING}
ONLY_FOR_OTHERS |= {"RandomCrop": ONLY_FOR_A_PADDING, "NoOp": {"p"}, "ToTensorV2": {"p"}}


@pytest.mark.parametrize("name", sorted({**table.SAME, **table.NEAR}))
def test_no_argument_is_passed_over(name: str) -> None:
    arguments = _Watched({**made(name, p=0.5).get_transform_init_args(), "p": 0.5})
    arguments["rule"] = rules.Rule()
    (table.SAME.get(name) or table.NEAR[name][0])(arguments)
    assert arguments.unread <= PASSED_OVER | ONLY_FOR_OTHERS.get(name, set())


def test_a_batch_with_boxes() -> None:
    """Each sample of a batch has its own draws, boxes and labels."""
    pipeline = converted(
        A.Compose([A.Affine(rotate=(-40, 40), p=1)], A.BboxParams("coco", label_fields=["labels"]))
    )
    here = sample_here()
    images = torch.stack([here["image"].as_subclass(Tensor)] * 3)
    batch = {
        "image": tv_tensors.Image(images),
        "boxes": [here["bboxes"][:n].clone() for n in (2, 4, 5)],
        "labels": [here["labels"][:n] for n in (2, 4, 5)],
    }
    batch["boxes"] = [tv_tensors.wrap(b, like=here["bboxes"]) for b in batch["boxes"]]
    found = seeded(0, ours.Compose([pipeline], per_sample=True), batch)
    assert [len(b) for b in found["boxes"]] == [len(n) for n in found["labels"]]
    assert not torch.equal(found["image"][0], found["image"][1])


def test_every_class_has_been_compared() -> None:
    alone = {"FromFloat"}  # compared at the end of a pipeline
    assert {*FIXED_ARGUMENTS, *DRAWN, *alone} == {*table.SAME, *table.NEAR}


def test_what_is_not_mapped_is_named() -> None:
    given = A.Compose(
        [
            A.SomeOf([A.Blur(), A.AdvancedBlur()], n=1),
            A.OneOf([A.PiecewiseAffine(), A.Superpixels()]),
            A.RandomSnow(method="texture"),
            A.Blur(),
            A.GaussNoise(noise_scale_factor=0.5),
        ]
    )
    with pytest.raises(ValueError) as found:
        ours.from_albumentations(given)
    listed = (
        "SomeOf, PiecewiseAffine, Superpixels, RandomSnow(method=texture), GaussNoise(noise_scale_factor=0.5)"
    )
    assert str(found.value) == f"from_albumentations: transforms must have a counterpart, got {listed}"
    with pytest.raises(TypeError, match="compose must be a pipeline of albumentations, got RandomGamma"):
        ours.from_albumentations(ours.RandomGamma())


def test_every_transform_is_on_the_page() -> None:
    """All names in both tables exist in albumentations."""
    names = {n for n in dir(A) if isinstance(getattr(A, n), type)}
    assert set(table.SAME) | set(table.NEAR) <= names and not set(table.SAME) & set(table.NEAR)
