"""Classes, pipelines and inputs of albumentations 2.0.8, and the comparison of a conversion with its original."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors

from imgops import transforms as ours
from imgops.integrations.albumentations import convert as table
from imgops.integrations.albumentations import host

A = pytest.importorskip("albumentations", "2.0.8")


def converted(given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ours.from_albumentations(given)


def assert_equal(found: Any, wanted: Any, where: str) -> None:
    """Check that two results are equal, with the types of their containers, and their dtypes."""
    assert type(found) is type(wanted), where
    if isinstance(wanted, dict):
        assert list(found) == list(wanted), where
        for key, value in wanted.items():
            assert_equal(found[key], value, f"{where}, {key}")
    elif isinstance(wanted, (list, tuple)):
        assert len(found) == len(wanted), where
        for a, b in zip(found, wanted, strict=True):
            assert_equal(a, b, where)
    elif isinstance(wanted, Tensor):
        assert found.dtype == wanted.dtype and torch.equal(found, wanted), where
    elif isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype and found.shape == wanted.shape, where
        np.testing.assert_array_equal(found, wanted, err_msg=where)
    else:
        assert found == wanted or (found != found and wanted != wanted), where


# -- samples ---------------------------------------------------------------------------------------------

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


IMAGE = torch.from_numpy(SCENE).permute(2, 0, 1).contiguous()


def composed(*transforms: Any, points: bool = True, **rules: Any) -> Any:
    return A.Compose(
        list(transforms),
        bbox_params=A.BboxParams("pascal_voc", label_fields=["labels"], **rules),
        keypoint_params=A.KeypointParams("xy", label_fields=["tags"]) if points else None,
    )


def sample_of(given: Any) -> dict[str, Any]:
    """Return the keywords of a call with all that a pipeline takes, in the forms that it asks for."""
    sample: dict[str, Any] = {"image": SCENE, "mask": MASK, "masks": [MASK, MASK // 2]}
    processors = getattr(given, "processors", {})
    sides = np.array([WIDTH, HEIGHT] * 2)
    if "bboxes" in processors:
        params = processors["bboxes"].params
        corners = np.array(BOXES)
        if params.clip:  # a box that lies partly outside, or has no area
            corners[-1] = [20, 50, 20, 60] if params.filter_invalid_bboxes else [-5, 50, 20, 70]
        sized = np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], 1)
        middles = np.concatenate([(corners[:, :2] + corners[:, 2:]) / 2, sized[:, 2:]], 1)
        forms = {"pascal_voc": corners, "coco": sized, "yolo": middles / sides}
        sample["bboxes"] = forms[params.format].tolist()
        sample |= {field: list(range(len(BOXES))) for field in params.label_fields or ()}
    if "keypoints" in processors:
        sample["keypoints"] = POINTS
        sample |= {field: list("vwxyz") for field in processors["keypoints"].params.label_fields or ()}
    return sample | dict.fromkeys(getattr(given, "additional_targets", {}), OTHER)


def sample_here(**more: Any) -> dict[str, Any]:
    """Return tensors in the place of arrays, and the same labels."""
    canvas = (HEIGHT, WIDTH)
    sample = {
        "image": tv_tensors.Image(IMAGE),
        "mask": tv_tensors.Mask(torch.from_numpy(MASK)),
        "bboxes": tv_tensors.BoundingBoxes(BOXES, format="XYXY", canvas_size=canvas),
        "labels": torch.arange(len(BOXES)),
        "keypoints": tv_tensors.KeyPoints(POINTS, canvas_size=canvas),
        "tags": list("vwxyz"),
    }
    return sample | more


def assert_same(mine: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Check that tensors are what albumentations makes of arrays; boxes and points by float32 arithmetic."""
    for key, value in wanted.items():
        if key in ("image", "mask") and isinstance(value, np.ndarray):
            found = mine[key].as_subclass(Tensor)
            assert_equal((found.permute(1, 2, 0) if key == "image" else found).numpy(), value, key)
        elif key in ("bboxes", "keypoints"):
            moved = np.array(value).reshape(-1, 4 if key == "bboxes" else 2)
            np.testing.assert_allclose(mine[key].numpy(), moved, rtol=0, atol=2e-3)
        elif key in ("labels", "tags"):
            assert list(mine[key]) == list(value), key


# -- classes ---------------------------------------------------------------------------------------------


def _names() -> list[str]:
    """Return the transforms of albumentations that have counterparts, as the library itself lists them."""
    kinds = {n: getattr(A, n) for n in dir(A) if isinstance(getattr(A, n), type)}
    bases = {"BasicTransform", "DualTransform", "ImageOnlyTransform", "Transform3D"}
    found = {n for n, kind in kinds.items() if issubclass(kind, A.BasicTransform) and n not in bases}
    return sorted(found - set(table.WITHOUT))


def itself(reference: Any) -> Any:
    return reference


def inverted(image: Any, **params: Any) -> Any:
    return 255 - image


REFERENCES = {"reference_images": [OTHER], "read_fn": itself}
#: The metadata without which albumentations does not apply a transform, though it has references.
METADATA = {
    "HistogramMatching": "hm_metadata",
    "FDA": "fda_metadata",
    "PixelDistributionAdaptation": "pda_metadata",
}
#: The required arguments of a transform.
NEEDED: dict[str, dict[str, Any]] = {
    "AtLeastOneBBoxRandomCrop": {"height": 30, "width": 34},
    "CenterCrop": {"height": 40, "width": 51},
    "ConstrainedCoarseDropout": {"mask_indices": [1, 2]},
    "Crop": {"x_min": 1, "y_min": 2, "x_max": 30, "y_max": 41},
    "CropAndPad": {"percent": (-0.1, 0.2)},
    "CropNonEmptyMaskIfExists": {"height": 30, "width": 34},
    **dict.fromkeys(METADATA, REFERENCES),
    "FrequencyMasking": {"freq_mask_range": (5, 20)},
    "FromFloat": {"dtype": "uint8"},
    "GridElasticDeform": {"num_grid_xy": (4, 4), "magnitude": 5},
    "Lambda": {"image": inverted},
    "LongestMaxSize": {"max_size": 50},
    "Pad": {"padding": (3, 5, 2, 1)},
    "PadIfNeeded": {"min_height": 70, "min_width": 90},
    "RandomCrop": {"height": 40, "width": 51},
    "RandomResizedCrop": {"size": (40, 51)},
    "RandomSizedBBoxSafeCrop": {"height": 40, "width": 51},
    "RandomSizedCrop": {"min_max_height": (20, 45), "size": (30, 37)},
    "Resize": {"height": 40, "width": 51},
    "SmallestMaxSize": {"max_size": 50},
    "TimeMasking": {"time_mask_range": (5, 20)},
    "XYMasking": {
        "num_masks_x": (1, 2),
        "num_masks_y": (1, 2),
        "mask_x_length": (3, 9),
        "mask_y_length": (3, 9),
    },
}
#: Further arguments with which a transform computes something else, or changes the size.
VARIANTS: dict[str, list[dict[str, Any]]] = {
    "Affine": [
        {
            "rotate": (-70, 70),
            "shear": (-10, 10),
            "translate_percent": (-0.2, 0.1),
            "fill": 7,
            "fill_mask": 3,
        },
        {"scale": (0.6, 1.5), "interpolation": 0, "border_mode": 1, "keep_ratio": True},
        {"rotate": (-40, 40), "fit_output": True},
        {"rotate": (-40, 40), "mask_interpolation": 1, "interpolation": 2, "border_mode": 3},
    ],
    "AutoContrast": [{"method": "pil"}],
    "CenterCrop": [{"height": 70, "width": 51, "pad_if_needed": True, "fill": 9, "fill_mask": 2}],
    "CoarseDropout": [{"fill": "random"}, {"fill": (1, 2, 3), "fill_mask": 4, "num_holes_range": (9, 20)}],
    "ColorJitter": [{"hue": (0, 0)}],
    "CropAndPad": [{"percent": None, "px": (-9, 9), "keep_size": False}],
    "D4": [{}],
    "ElasticTransform": [{"alpha": 300, "sigma": 6}, {"same_dxdy": True, "approximate": True, "alpha": 99}],
    "Equalize": [{"mode": "pil", "by_channels": False}],
    "GaussNoise": [{"per_channel": True, "noise_scale_factor": 0.5}],
    "GridDistortion": [{"distort_limit": 0.5, "num_steps": 3, "normalized": False}],
    "ImageCompression": [{"compression_type": "webp"}],
    "LongestMaxSize": [{"max_size": [30, 50, 99]}, {"max_size": None, "max_size_hw": (100, 90)}]
    + [{"interpolation": 4}, {"area_for_downscale": "image_mask"}],
    "MultiplicativeNoise": [{"elementwise": True}, {"per_channel": True}],
    "OpticalDistortion": [{"distort_limit": (-0.4, 0.4), "mode": "fisheye"}],
    "Pad": [{"padding": 4, "border_mode": 1}, {"padding": 4, "border_mode": 3}],
    "PadIfNeeded": [
        {"min_height": None, "min_width": None, "pad_height_divisor": 16, "pad_width_divisor": 32},
        {"position": "random", "fill": 7},
        {"position": "top_right", "border_mode": 1},
    ],
    "Perspective": [{"scale": (0.05, 0.3), "border_mode": 1}, {"keep_size": False}, {"fit_output": True}],
    "PixelDropout": [{"per_channel": True}, {"drop_value": None, "dropout_prob": 0.3}],
    "RGBShift": [{"r_shift_limit": 99}],
    "RandomBrightnessContrast": [{"brightness_by_max": False, "ensure_safe_range": True}],
    "RandomCrop": [{"height": 70, "width": 51, "pad_if_needed": True, "pad_position": "top_left"}],
    "RandomRain": [{"rain_type": "heavy"}],
    "RandomResizedCrop": [
        {"interpolation": 3},
        {"scale": (0.9, 1), "interpolation": 2},
        {"interpolation": 0},
    ],
    "RandomScale": [{"scale_limit": 0.5, "interpolation": 0}],
    "RandomSnow": [{"method": "texture"}],
    "RandomSunFlare": [{"src_radius": 30, "method": "physics_based"}],
    "Resize": [{"interpolation": 0}, {"interpolation": 3}, {"interpolation": 6}, {"mask_interpolation": 1}],
    "Rotate": [{"crop_border": True}, {"fill": 5, "fill_mask": 1, "rotate_method": "ellipse"}],
    "Sharpen": [{"method": "gaussian"}],
    "Solarize": [{"threshold_range": (0.1, 0.9)}],
    "Spatter": [{"mode": "mud"}],
    "ToGray": [{"method": "pca"}, {"method": "max"}],
    "XYMasking": [{"fill": "random"}],
}


def made(name: str, **more: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # albumentations warns of deprecations
        return getattr(A, name)(**(NEEDED.get(name, {}) | more))


def chance(name: str) -> float:
    return 1.0 if name == "ToTensorV2" else 0.8


def variants(name: str) -> list[dict[str, Any]]:
    return [{}, *VARIANTS.get(name, [])]


NAMES = _names()
#: Those that albumentations does not apply without a mask or boxes.
READS = {name for name in NAMES if host.reads_annotations(made(name))}


#: Arguments with which slow classes are quick.
QUICK: dict[str, dict[str, Any]] = {"Superpixels": {"n_segments": (4, 6), "max_size": 24}}

SHAPES = [(45, 57), *((45, 57, channels) for channels in (1, 2, 3, 4, 5))]
SHAPES += [(61, 83), (7, 90, 3), (1, 1, 3), (33, 2, 1)]
DTYPES = ["uint8", "uint16", "float32", "float64", "int32", "bool", "float16"]


def image_of(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Make a smooth image whose values fill the range of its dtype."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    share = (x * 3 + y * 2) % 200 / 199
    share = share if len(shape) == 2 else np.stack([share ** (1 + c / 2) for c in range(shape[2])], -1)
    if np.dtype(dtype).kind in "fb":
        return share.round().astype(dtype) if dtype == "bool" else share.astype(dtype)
    return (share * min(np.iinfo(dtype).max, 65535)).astype(dtype)


#: The forms of what follows an image, by what the pipeline is told of it.
Form = tuple[dict[str, Any], dict[str, Any]]


def given(**lists: Any) -> dict[str, Any]:
    return {name: value for name, value in lists.items() if value is not None}


def boxed(form: str, bboxes: Any, labels: Any = None, **more: Any) -> Form:
    fields = {"label_fields": ["labels"]} if labels is not None else {}
    return {"bbox_params": A.BboxParams(form, **(fields | more))}, given(bboxes=bboxes, labels=labels)


def pointed(form: str, keypoints: Any, tags: Any = None, **more: Any) -> Form:
    fields = {"label_fields": ["tags"]} if tags is not None else {}
    return {"keypoint_params": A.KeypointParams(form, **fields, **more)}, given(
        keypoints=keypoints, tags=tags
    )


LABELS, LABELED = [3, 1, 2, 5, 4], {"label_fields": ["labels"]}
COCO = [[3, 4, 20, 30], [30, 10, 20.5, 30]]
YOLO = [(0.25, 0.25, 0.2, 0.3), (0.7, 0.6, 0.3, 0.4)]
SHARES = [[0.1, 0.2, 0.5, 0.6, 7], [0.5, 0.5, 0.9, 1, 8]]
ALL = boxed("pascal_voc", BOXES, list("abcde")), pointed("xy", POINTS, [1.5, 2, 3, 4, 5])
FORMS: dict[str, Form] = {
    "nothing": ({}, {}),
    "mask": ({}, {"mask": MASK}),
    "mask of channels": ({}, {"mask": np.dstack([MASK, MASK > 1])}),
    "mask of floats": ({}, {"mask": MASK.astype(np.float32)}),
    "mask of int32": ({}, {"mask": MASK.astype(np.int32)}),
    "mask None": ({}, {"mask": None}),
    "masks": ({}, {"masks": [MASK, MASK // 2]}),
    "masks, array": ({}, {"masks": np.stack([MASK, MASK // 2])}),
    "masks, empty": ({}, {"masks": []}),
    "targets": ({"additional_targets": {"right": "image", "depth": "mask"}}, {"right": OTHER, "depth": MASK}),
    "boxes, lists": boxed("pascal_voc", BOXES, LABELS),
    "boxes, array": boxed("pascal_voc", np.array(BOXES), np.array(LABELS), min_visibility=0.3),
    "boxes, float32": boxed("coco", np.array(COCO, np.float32), ["a", "b"], min_area=9),
    "boxes, tuples": boxed("yolo", YOLO, ("x", "y")),
    "labels in columns": boxed("pascal_voc", BOXES, np.arange(5)[:, None]),
    "boxes with columns": boxed("albumentations", np.array(SHARES), clip=True),
    "boxes with a class": boxed("pascal_voc", [[*b, 7] for b in BOXES]),
    "boxes, empty": boxed("coco", [], []),
    "boxes, empty array": boxed("pascal_voc", np.zeros((0, 4), np.float32), np.zeros(0, np.int64)),
    "boxes absent": (boxed("pascal_voc", BOXES, LABELS)[0], {}),
    "labels absent": boxed("pascal_voc", BOXES, **LABELED),
    "labels of another length": boxed("pascal_voc", BOXES, [1]),
    "boxes that are wrong": boxed("yolo", [[0.5, 0.5, 2, 2]]),
    "two fields of labels": (
        {"bbox_params": A.BboxParams("yolo", label_fields=["labels", "scores"])},
        {"bboxes": YOLO, "labels": ("x", "y"), "scores": np.array([0.5, 0.25])},
    ),
    "points, lists": pointed("xy", POINTS),
    "points, array": pointed("xy", np.array(POINTS), np.array(list("abcde"))),
    "points, float32": pointed("yx", np.array(POINTS, np.float32)[:3, ::-1], remove_invisible=False),
    "points, whole": pointed("xy", [[3, 4], [10, 12], [0, HEIGHT - 1], [WIDTH - 1, 0]]),
    "points, empty": pointed("xy", []),
    "all": (
        {**ALL[0][0], **ALL[1][0], "save_applied_params": True},
        {"mask": MASK, "masks": [MASK], **ALL[0][1], **ALL[1][1], "path": "a.jpg", "row": np.arange(3)},
    ),
}
#: Several images in the place of one.
SEVERAL: dict[str, Any] = {
    "list": [SCENE, OTHER],
    "array": np.stack([SCENE, OTHER]),
    "gray": np.stack([MASK, MASK * 3]),
    "uint16": image_of((45, 57, 3), "uint16")[None],
}


def cases_of(name: str) -> list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Return the calls on which a class is compared: a name, its arguments, those of the pipeline, and the sample.

    Every set of arguments meets an image alone and with all that follows it; then come images of each shape and
    dtype, several images, and each form of what follows an image.
    """
    found = []
    for arguments in ({}, *VARIANTS.get(name, [])):
        found += [(f"{arguments} {form}", arguments, *FORMS[form]) for form in ("all", "nothing")]
    found += [(f"{d} {s}", {}, {}, {"image": image_of(s, d)}) for s, d in product(SHAPES, DTYPES)]
    found += [(f"images, {form}", {}, {}, {"images": images}) for form, images in SEVERAL.items()]
    found += [(form, {}, *rules_and_inputs) for form, rules_and_inputs in FORMS.items()]
    more: dict[str, Any] = {METADATA[name]: [OTHER]} if name in METADATA else {}
    image = SCENE / np.float32(255) if name == "FromFloat" else SCENE
    return [
        (
            where,
            QUICK.get(name, {}) | arguments,
            rules,
            ({} if "images" in sample else {"image": image}) | sample | more,
        )
        for where, arguments, rules, sample in found[
            :: 6 if name == "PiecewiseAffine" else 1
        ]  # it takes 50 ms
        # It cuts boxes into several: test_what_has_no_counterpart_is_named.
        if not (name == "RandomGridShuffle" and "bbox_params" in rules)
    ]


# -- pipelines -------------------------------------------------------------------------------------------


def steps() -> list[Any]:
    return [
        A.HorizontalFlip(p=0.5),
        A.RandomBrightnessContrast(p=0.7),
        A.Affine(rotate=30, p=0.6),
        A.Blur(p=0.5),
    ]


CONTAINERS: dict[str, Callable[[], list[Any]]] = {
    "Compose": lambda: [A.Compose(steps(), p=0.4), *steps()],
    "OneOf": lambda: [A.OneOf(steps(), p=0.8), A.OneOf(steps(), p=1), A.OneOf([A.InvertImg(p=1)], p=0)],
    "OneOrOther": lambda: [A.OneOrOther(A.VerticalFlip(p=0.1), A.Transpose(), p=0.4)],
    "RandomOrder": lambda: [A.RandomOrder(steps(), n=4, p=0.8), A.RandomOrder(steps(), n=2, p=1)],
    "Sequential": lambda: [A.Sequential(steps(), p=0.5), A.OneOf([A.Sequential(steps(), p=0.3), A.CLAHE()])],
    "SomeOf": lambda: [A.SomeOf(steps(), n=2, p=0.8), A.SomeOf(steps(), n=3, replace=True, p=1)],
}
#: Containers of two or more transforms, for random pipelines.
AROUND_STEPS: list[Callable[[list[Any]], Any]] = [
    lambda listed: A.OneOf(listed, p=0.9),
    lambda listed: A.SomeOf(listed, n=2, p=0.9),
    lambda listed: A.RandomOrder(listed, n=2, p=0.9),
    lambda listed: A.OneOrOther(*listed[:2], p=0.4),
    lambda listed: A.Sequential(listed, p=0.9),
    lambda listed: A.Compose(listed, p=0.9),
]
SLOW = {"PiecewiseAffine", "Superpixels"}
#: Classes of random pipelines: all but those that need other inputs, and the slow ones.
FREE = sorted({*NAMES} - {*METADATA, "FromFloat", "Lambda", *SLOW, "RandomGridShuffle", "ToTensorV2"})


def random_pipeline(number: int) -> Any:
    """Return a pipeline of any classes, some of them in containers inside of others, with rules for boxes."""
    draws = random.Random(number)

    def step(depth: int = 0) -> Any:
        if depth < 2 and draws.random() < 0.4:
            return draws.choice(AROUND_STEPS)([step(depth + 1) for _ in range(draws.randint(2, 4))])
        name = draws.choice(FREE)
        return made(name, p=draws.choice([0.3, 0.7, 1.0]), **draws.choice(variants(name)))

    rules = {"min_area": draws.choice([0, 60]), "min_visibility": draws.choice([0, 0.3])}
    return composed(*(step() for _ in range(draws.randint(1, 5))), **rules)


#: A pipeline of a public repository; random_pipeline makes others.
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
}


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


# -- classes of users ------------------------------------------------------------------------------------


def derived(name: str, base: Any, **methods: Any) -> Any:
    """Return a class that a user derives; it and its methods are pickled by their names."""
    for method, function in methods.items():
        function.__name__ = method
    return type(base)(name, (base,), {"__module__": __name__, **methods})


class Brightened(A.DualTransform):  # type: ignore[misc]
    """A user's own transform that reads the values of the image, also for masks."""

    def get_params_dependent_on_data(self, params: Any, data: Any) -> dict[str, Any]:
        return {"mean": int(data["image"].mean()), "share": self.random_generator.random()}

    def apply(self, img: np.ndarray, mean: int, share: float, **params: Any) -> np.ndarray:
        return (img * share + mean / 4).astype(np.uint8)

    def apply_to_mask(self, mask: np.ndarray, mean: int, **params: Any) -> np.ndarray:
        return (mask + mean).astype(mask.dtype)


class Doubled(A.DualTransform):  # type: ignore[misc]
    """A user's class that changes the size."""

    def apply(self, img: np.ndarray, **params: Any) -> np.ndarray:
        return np.repeat(img, 2, 0)

    def apply_to_bboxes(self, bboxes: np.ndarray, **params: Any) -> np.ndarray:
        return bboxes

    def apply_to_keypoints(self, keypoints: np.ndarray, **params: Any) -> np.ndarray:
        return keypoints * np.array([1, 2, *[1] * (keypoints.shape[1] - 2)], keypoints.dtype)


class LessBright(A.RandomBrightnessContrast):  # type: ignore[misc]
    def update_transform_params(self, params: Any, data: Any) -> Any:
        return super().update_transform_params(params, data) | {"alpha": 0.5}


class Steps(A.Compose):  # type: ignore[misc]
    def __init__(self, transforms: list[Any], p: float) -> None:
        super().__init__(transforms, p=p)


Cropped, Either = derived("Cropped", A.RandomCrop), derived("Either", A.OneOf)  # under other names
#: A class with the same name as albumentations' and another method.
HorizontalFlip = derived(
    "HorizontalFlip", A.HorizontalFlip, apply=lambda self, img, **params: np.ascontiguousarray(img[::-1])
)
FixedMask = derived("FixedMask", A.HorizontalFlip, apply_to_mask=lambda self, mask, **params: mask)
CutResize = derived(
    *("CutResize", A.Resize),
    apply=lambda self, img, **params: np.ascontiguousarray(img[:20, :22]),
    apply_to_mask=lambda self, mask, **params: np.ascontiguousarray(mask[:20, :22]),
)
OneTurn = derived("OneTurn", A.RandomRotate90, get_params=lambda self: {"factor": 1})
CornerCrop = derived(
    *("CornerCrop", A.RandomCrop),
    get_params_dependent_on_data=lambda self, params, data: {
        "crop_coords": (1, 2, 1 + self.width, 2 + self.height)
    },
)
Seldom = derived(
    "Seldom",
    A.HorizontalFlip,
    should_apply=lambda self, force_apply=False: bool(self.py_random.random() < 0.3),
)
Halved = derived(
    *("Halved", A.ImageOnlyTransform),
    get_params=lambda self: {"shift": self.py_random.randint(0, 99)},
    apply=lambda self, img, shift, **params: img // 2 + np.uint8(shift),
)
#: A class that draws while it changes the image.
Late = derived(
    *("Late", A.ImageOnlyTransform),
    apply=lambda self, img, **params: img // 2 + np.uint8(self.py_random.randint(0, 90)),
)
Floats = derived("Floats", A.ImageOnlyTransform, apply=lambda self, img, **params: img.astype(np.float32) / 7)
Enlarged = derived("Enlarged", A.ImageOnlyTransform, apply=lambda self, img, **params: np.repeat(img, 2, 0))


def unchanged(mask: np.ndarray, **params: Any) -> np.ndarray:
    return mask


def with_a_method() -> Any:
    made = A.HorizontalFlip(p=1)
    made.apply_to_mask = unchanged
    made._set_keys()
    return made


DERIVED: dict[str, Any] = {
    "another name": lambda: Cropped(20, 30, p=1),
    "another name, by chance": lambda: Cropped(20, 30, p=0.5),
    "apply": lambda: HorizontalFlip(p=0.5),
    "apply_to_mask": lambda: FixedMask(p=1),
    "another size": lambda: Doubled(p=0.5),
    "another size than Resize": lambda: CutResize(30, 40, p=1),
    "get_params": lambda: OneTurn(p=1),
    "get_params_dependent_on_data": lambda: CornerCrop(20, 20, p=1),
    "update_transform_params": lambda: LessBright(p=1),
    "should_apply": Seldom,
    "draws in apply": lambda: Late(p=0.6),
    "draws in get_params": lambda: Halved(p=0.7),
    "another dtype": lambda: Floats(p=1),
    "a method of the instance": with_a_method,
    "in a container": lambda: Either([HorizontalFlip(), A.Blur(), Cropped(20, 30)], p=0.8),
    "in containers": lambda: Steps([Doubled(p=0.5), A.SomeOf([FixedMask(), A.Transpose()], 2)], p=0.6),
}


def drawing() -> list[Any]:
    """Return transforms of all kinds, whose draws are counted differently."""
    chosen = [A.RandomCrop(40, 50), A.HorizontalFlip(), A.GaussNoise(p=0.6), A.InvertImg(p=0.5)]
    chosen += [A.RandomScale(p=0.5), A.Resize(30, 40), A.D4(p=0.7), A.Normalize(p=0.5), A.PadIfNeeded(50, 50)]
    chosen += [A.OneOf(steps(), p=0.8), A.SomeOf(steps(), n=2, p=0.7), A.RandomOrder(steps(), n=3, p=1)]
    return [*chosen, A.Sequential([A.OneOrOther(A.VerticalFlip(), A.CoarseDropout(), p=0.4)], p=0.6)]


def annotated(listed: list[Any], kind: Any = A.Compose, **more: Any) -> Any:
    boxes = A.BboxParams("pascal_voc", label_fields=["labels"], min_visibility=0.2)
    return kind(listed, boxes, A.KeypointParams("xy", label_fields=["tags"]), **more)


def inner() -> list[Any]:
    """Return pipelines that are used as a step: of all kinds, and a single transform."""
    return [
        A.Compose([A.RandomCrop(35, 45), A.GaussNoise(p=0.5)], seed=1),
        A.Compose([A.Affine(rotate=(-30, 30), p=0.9)], A.BboxParams("coco", label_fields=["other"]), p=0.6),
        A.Sequential([A.VerticalFlip(), A.CoarseDropout()], p=0.7),
        A.OneOf([A.Transpose(), A.InvertImg(p=0.2)], p=0.8),
        A.SomeOf([A.CLAHE(), A.HorizontalFlip(), A.ColorJitter()], n=2),
        A.OneOrOther(A.Blur(), A.ToGray(), p=0.3),
        A.RandomSizedBBoxSafeCrop(40, 50, p=0.5),
        A.D4(p=0.4),
    ]


#: Pipelines around others.
AROUND: dict[str, Callable[[list[Any]], Any]] = {
    "Compose": lambda listed: annotated([A.HorizontalFlip(), *listed, A.RandomGamma()]),
    "strict": lambda listed: annotated([*listed, A.Rotate()], strict=True, save_applied_params=True),
    "targets": lambda listed: annotated(listed, additional_targets={"right": "image"}, p=0.8),
    "mask_interpolation": lambda listed: annotated([*listed, A.Rotate()], mask_interpolation=1),
    "OneOf": lambda listed: annotated([A.OneOf(listed, p=0.9), A.VerticalFlip()]),
    "SomeOf": lambda listed: annotated([A.SomeOf(listed, n=5)]),
    "RandomOrder": lambda listed: annotated([A.RandomOrder(listed, n=4)]),
    "Sequential": lambda listed: annotated([A.Sequential(listed, p=0.9)]),
    "OneOrOther": lambda listed: annotated([A.OneOrOther(*listed[:2], p=0.4)]),
    "Compose of Compose": lambda listed: annotated([A.Compose([A.Compose(listed[:3]), *listed[3:]])]),
    "ReplayCompose": lambda listed: annotated(listed, A.ReplayCompose),
}


def twice() -> Any:
    shared = A.RandomBrightnessContrast(p=0.7)
    return A.Compose([shared, A.HorizontalFlip(), shared])


#: Pipelines of one finding each, and those of the pages of a library.
SPECIAL: dict[str, Callable[[], Any]] = {
    "draws of all kinds": lambda: A.Compose(drawing(), p=0.9),
    "one transform in two places": twice,
    "boxes too small from the beginning": lambda: composed(
        A.InvertImg(p=1), A.Resize(122, 166), min_area=150
    ),
    "points that a distortion loses": lambda: A.Compose(
        [A.PiecewiseAffine(p=1)], keypoint_params=A.KeypointParams("xy", remove_invisible=False)
    ),
    "left out": lambda: A.Compose(
        [A.InvertImg(p=1)], A.BboxParams("coco", label_fields=["cls"], min_area=1e6), p=0.5
    ),
    "none left": lambda: composed(A.HorizontalFlip(p=1), A.RandomCrop(50, 60, p=1), min_area=1e6),
    "tensors": lambda: A.Compose([A.HorizontalFlip(p=1), A.Normalize(), A.ToTensorV2()]),
    "transposed": lambda: A.Compose([A.ToTensorV2(transpose_mask=True)]),
    "values that masks depend on": lambda: A.Compose([Brightened(p=1), A.Transpose(p=0.5)]),
    "OneOrOther alone": lambda: A.OneOrOther(A.VerticalFlip(), A.Transpose(), p=0.4),
    "OneOf alone": lambda: A.OneOf(steps(), p=0.6),
    "a class alone": lambda: A.CLAHE(),
}


def pipelines() -> dict[str, Callable[[], Any]]:
    """Return the pipelines of all tables, by name; some meet an outer chance."""
    found = dict(SPECIAL)
    for name, make in CONTAINERS.items():
        for p in (1.0, 0.6):
            found[f"{name}, {p}"] = lambda make=make, p=p: annotated(make(), p=p)
    found |= {f"public, {name}": make for name, make in PUBLIC.items()} | RULES
    for name, make in DERIVED.items():
        found[f"derived, {name}"] = lambda make=make: annotated([make(), A.VerticalFlip(p=0.5)])
    return found | {f"around, {name}": lambda make=make: make(inner()) for name, make in AROUND.items()}


def seeded_pipeline(make: Callable[[], Any], seed: int = 3) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # albumentations warns of deprecations
        given = make()
    given.set_random_seed(seed)
    return given


PIPELINES = pipelines()
