"""Each class of albumentations, converted, on every form of input that albumentations takes.

The result, its types and dtypes are albumentations' own, or both raise.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from test_from_albumentations import (
    METADATA,
    NAMES,
    OTHER,
    READS,
    chance,
    converted,
    made,
)
from torch import Tensor

A = pytest.importorskip("albumentations", "2.0.8")

HEIGHT, WIDTH = 45, 57
SHAPES = [(HEIGHT, WIDTH), *((HEIGHT, WIDTH, channels) for channels in (1, 2, 3, 4, 5))]
DTYPES = ["uint8", "uint16", "float32", "float64", "int32", "bool", "float16"]


def image_of(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Make a smooth image whose values fill the range of its dtype."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    share = (x * 3 + y * 2) % 200 / 199
    share = share if len(shape) == 2 else np.stack([share ** (1 + c / 2) for c in range(shape[2])], -1)
    if np.dtype(dtype).kind in "fb":
        return share.round().astype(dtype) if dtype == "bool" else share.astype(dtype)
    return (share * min(np.iinfo(dtype).max, 65535)).astype(dtype)


IMAGE = image_of((HEIGHT, WIDTH, 3), "uint8")
MASK = IMAGE[..., 0] // 60
BOXES = [[10.5, 8.5, 30.5, 25.5], [20.5, 15.5, 55.5, 44.5], [0, 0, 12.5, 10.5]]
POINTS = [[12.0, 9], [50, 30], [55, 3]]
#: The forms of what follows an image, by what the pipeline is told of it.
Form = tuple[dict[str, Any], dict[str, Any]]
YOLO = [[0.25, 0.25, 0.2, 0.3], [0.7, 0.6, 0.3, 0.4]]
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
    "targets": ({"additional_targets": {"right": "image", "depth": "mask"}}, {"right": IMAGE, "depth": MASK}),
    "boxes, lists": (
        {"bbox_params": A.BboxParams("pascal_voc", label_fields=["labels"])},
        {"bboxes": BOXES, "labels": [3, 1, 2]},
    ),
    "boxes, array": (
        {"bbox_params": A.BboxParams("pascal_voc", label_fields=["labels"], min_visibility=0.3)},
        {"bboxes": np.array(BOXES), "labels": np.array([3, 1, 2])},
    ),
    "boxes, float32": (
        {"bbox_params": A.BboxParams("coco", label_fields=["labels"], min_area=9)},
        {"bboxes": np.array([[3, 4, 20, 30], [30, 10, 20.5, 30]], np.float32), "labels": ["a", "b"]},
    ),
    "boxes, tuples": (
        {"bbox_params": A.BboxParams("yolo", label_fields=["labels", "scores"])},
        {"bboxes": [tuple(b) for b in YOLO], "labels": ("x", "y"), "scores": np.array([0.5, 0.25])},
    ),
    "labels in columns": (
        {"bbox_params": A.BboxParams("pascal_voc", label_fields=["labels"])},
        {"bboxes": BOXES, "labels": np.array([[3], [1], [2]])},
    ),
    "boxes with columns": (
        {"bbox_params": A.BboxParams("albumentations", clip=True)},
        {"bboxes": np.array([[0.1, 0.2, 0.5, 0.6, 7], [0.5, 0.5, 0.9, 1, 8]])},
    ),
    "boxes with a class": ({"bbox_params": A.BboxParams("pascal_voc")}, {"bboxes": [[*b, 7] for b in BOXES]}),
    "boxes, empty": (
        {"bbox_params": A.BboxParams("coco", label_fields=["labels"])},
        {"bboxes": [], "labels": []},
    ),
    "boxes, empty array": (
        {"bbox_params": A.BboxParams("pascal_voc", label_fields=["labels"])},
        {"bboxes": np.zeros((0, 4), np.float32), "labels": np.zeros(0, np.int64)},
    ),
    "boxes absent": ({"bbox_params": A.BboxParams("pascal_voc", label_fields=["labels"])}, {}),
    "labels absent": (
        {"bbox_params": A.BboxParams("pascal_voc", label_fields=["labels"])},
        {"bboxes": BOXES},
    ),
    "labels of another length": (
        {"bbox_params": A.BboxParams("pascal_voc", label_fields=["labels"])},
        {"bboxes": BOXES, "labels": [1]},
    ),
    "boxes that are wrong": ({"bbox_params": A.BboxParams("yolo")}, {"bboxes": [[0.5, 0.5, 2, 2]]}),
    "points, lists": ({"keypoint_params": A.KeypointParams("xy")}, {"keypoints": POINTS}),
    "points, array": (
        {"keypoint_params": A.KeypointParams("xy", label_fields=["tags"])},
        {"keypoints": np.array(POINTS), "tags": np.array(["a", "b", "c"])},
    ),
    "points, float32": (
        {"keypoint_params": A.KeypointParams("yx", remove_invisible=False)},
        {"keypoints": np.array(POINTS, np.float32)},
    ),
    "points, whole": (
        {"keypoint_params": A.KeypointParams("xy")},
        {"keypoints": np.array(POINTS).astype(int)},
    ),
    "points, empty": ({"keypoint_params": A.KeypointParams("xy")}, {"keypoints": []}),
    "all": (
        {
            "bbox_params": A.BboxParams("pascal_voc", label_fields=["labels"]),
            "keypoint_params": A.KeypointParams("xy", label_fields=["tags"]),
            "save_applied_params": True,
        },
        {"mask": MASK, "masks": [MASK], "bboxes": BOXES, "labels": list("abc"), "keypoints": POINTS}
        | {"tags": [1.5, 2, 3], "path": "a.jpg"},
    ),
}
#: Arguments with which a slow class is quick.
QUICK: dict[str, dict[str, Any]] = {"Superpixels": {"n_segments": (4, 6), "max_size": 24}}
#: A class that takes 50 ms for the smallest image: it meets a third of the forms.
SLOW = {"PiecewiseAffine"}
#: Several images in the place of one.
SEVERAL: dict[str, Any] = {
    "list": [IMAGE, IMAGE // 2],
    "array": np.stack([IMAGE, IMAGE // 2]),
    "gray": np.stack([MASK, MASK * 3]),
    "uint16": image_of((HEIGHT, WIDTH, 3), "uint16")[None],
}


def outcome(pipeline: Any, sample: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a call gives, None if it raises."""
    try:
        return pipeline(**copy.deepcopy(sample))
    except Exception:
        return None


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


def compare(name: str, sample: dict[str, Any], where: str, **arguments: Any) -> None:
    """Compare two calls of a class alone in a pipeline with its conversion."""
    more = {METADATA[name]: [OTHER]} if name in METADATA else {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        arguments = copy.deepcopy(arguments)
        given = A.Compose([made(name, p=chance(name), **QUICK.get(name, {}))], seed=4, **arguments)
        if (
            name == "RandomGridShuffle" and "bboxes" in given.processors
        ):  # test_what_has_no_counterpart_is_named
            return
        mine = converted(given)
        for _ in range(2):
            wanted, found = outcome(given, sample | more), outcome(mine, sample | more)
            if wanted is None:
                assert found is None, where
            else:
                assert found is not None, f"{where}: raised"
                assert_equal(found, wanted, where)


def image_forms(whole: bool) -> Iterator[tuple[tuple[int, ...], str]]:
    """Yield shapes and dtypes: all pairs, or the pairs in which one of them is the usual one."""
    for shape, dtype in product(SHAPES, DTYPES):
        if whole or shape == SHAPES[3] or dtype == "uint8" or (shape, dtype) == (SHAPES[0], "uint16"):
            yield shape, dtype


@pytest.mark.parametrize("name", NAMES)
def test_images(name: str, whole: bool) -> None:
    for shape, dtype in [*image_forms(whole)][:: 3 if name in SLOW else 1]:
        compare(name, {"image": image_of(shape, dtype)}, f"{name} of {dtype} {shape}")
    for form, images in SEVERAL.items():
        compare(name, {"images": images}, f"{name} of images, {form}")


@pytest.mark.parametrize("name", NAMES)
def test_what_follows_an_image(name: str, whole: bool) -> None:
    """A form in three for each class, so that each form meets a third of the classes; all before a release."""
    start = NAMES.index(name) % 3
    for form in [*FORMS][0 if whole else start :: 1 if whole else 9 if name in SLOW else 3]:
        arguments, more = FORMS[form]
        compare(name, {"image": IMAGE} | more, f"{name}, {form}", **arguments)


@pytest.mark.parametrize("name", sorted(set(NAMES) - READS - {"ToTensorV2"}))
def test_tensors(name: str) -> None:
    """Tensors give the pixels and dtypes of arrays, or the class says which dtypes it takes."""
    for dtype, channels in (("uint8", 4), ("uint16", 3), ("uint16", 1)):
        image = image_of((HEIGHT, WIDTH, channels), dtype)
        if name == "FromFloat":
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = A.Compose([made(name, p=1.0, **QUICK.get(name, {}))], seed=4)
            mine, more = converted(given), {METADATA[name]: [OTHER]} if name in METADATA else {}
            wanted = outcome(given, {"image": image} | more)
            if wanted is not None:
                found = mine(torch.from_numpy(image).permute(2, 0, 1))
                assert_equal(found.permute(1, 2, 0).numpy(), wanted["image"], f"{name} of {dtype}")


def test_dtypes_that_a_conversion_refuses() -> None:
    must = "image must be uint8 or floating point, got torch.uint16"
    with pytest.raises(TypeError, match=f"^FromFloat: {must}$"):
        converted(A.FromFloat(dtype="uint8"))(torch.zeros(3, 4, 5, dtype=torch.uint16))
    with pytest.raises(
        TypeError, match=r"^ToFloat: image must be uint8, uint16 or floating .* got torch.int32"
    ):
        converted(A.ToFloat())(torch.zeros(3, 4, 5, dtype=torch.int32))
