"""Pipelines of albumentations 2.0.8, converted: the same pixels, the same names; what is not mapped is named."""

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
from imgops.transforms import _albumentations as table

A = pytest.importorskip("albumentations", "2.0.8")

IMAGE = picture(height=64, width=80)
FRAME = IMAGE.permute(1, 2, 0).contiguous().numpy()
#: What a transform cannot be made without.
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
        warnings.simplefilter("ignore")  # what is deprecated there
        return getattr(A, name)(**NEEDED.get(name, {}), **more)


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
    """Made without a warning, of the same probability, applicable to an image."""
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
    assert np.array_equal(pixels(ours.from_albumentations(real)(IMAGE)), FRAME)


def test_distributions() -> None:
    """Of what is drawn, over 400 images: chances and the mean of an angle's displacement, as a loop over albumentations."""
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


#: As they stand in public repositories: detection, segmentation, classification, forensics, medical images.
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
    given_here = {"image": tv_tensors.Image(image), "boxes": boxes, "labels": torch.tensor([1])}
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
    """The names of both tables are those of albumentations."""
    names = {n for n in dir(A) if isinstance(getattr(A, n), type)}
    assert set(table.SAME) | set(table.NEAR) <= names and not set(table.SAME) & set(table.NEAR)
