"""The tables of the migration page have every transform of the other libraries, with every parameter of it."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from torchvision import tv_tensors

import imgops
from imgops import transforms
from imgops.integrations.albumentations import conversions, convert, moves

sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "_ext"))

from migration import Row, route, rows

#: Parameters that the page explains once for all transforms of a library.
OF_ALL = {
    "albumentations": {"p", "save_applied_params", "seed", "kwargs"},
    "kornia": {"p", "p_batch", "same_on_batch", "keepdim", "resample", "align_corners", "size"},
}


def by_name(library: str) -> dict[str, Row]:
    named = [(name, row) for row in rows(library) for name in row.names]
    assert len({n for n, _ in named}) == len(named), "a name stands there twice"
    return dict(named)


@pytest.mark.parametrize("library", ["albumentations", "kornia", "imgaug"])
def test_counterparts_exist(library: str) -> None:
    for row in rows(library):
        if row.here:
            assert row.here in {*transforms.OURS, *transforms.ADDED}, row
            known = ("yes", "draws nothing", "one sample of several", "one sample of two")
            assert row.per_sample in known, row
        else:
            assert row.text, f"{row.names}: why?"
        for name in re.findall(r"imgops\.(\w+)", row.text):
            assert hasattr(__import__("imgops"), name), row


def classes(module: Any, *bases: type) -> dict[str, type]:
    found = {n: getattr(module, n) for n in dir(module)}
    return {n: c for n, c in found.items() if inspect.isclass(c) and (not bases or issubclass(c, bases))}


def check(library: str, given: dict[str, type]) -> None:
    table = by_name(library)
    assert set(table) == set(given)
    for name, cls in given.items():
        parameters = set(inspect.signature(cls.__init__).parameters) - {"self", *OF_ALL[library]}
        missing = {p for p in parameters if not re.search(rf"\b{p}\b", table[name].text)}
        if not re.search(r"of volumes|of spectrograms", table[name].text):
            assert not missing, (name, missing)


def test_albumentations() -> None:
    A = pytest.importorskip("albumentations", "2.0.8")
    bases = {"BasicTransform", "BaseCompose", "DualTransform", "ImageOnlyTransform", "Transform3D"}
    given = classes(A, A.BasicTransform, A.BaseCompose)
    check("albumentations", {n: c for n, c in given.items() if n not in bases})


def test_kornia() -> None:
    K = pytest.importorskip("kornia.augmentation")
    given = {n: c for n, c in classes(K).items() if "Base" not in n}
    assert {n for names in (r.names for r in rows("kornia")) for n in names} == set(given)
    check("kornia", given)


def test_imgaug() -> None:
    """The names were counted in the wheel of 0.4.0, which NumPy 2 cannot import."""
    assert len(by_name("imgaug")) == 201


def test_what_the_page_says_of_conversions() -> None:
    """The page names how each class is converted; the tests of the converter compare all that it names."""
    names = set(by_name("albumentations"))
    assert {*convert.CONTAINERS, *convert.WITHOUT, *conversions.CONVERSIONS, *moves.MOVES} <= names
    assert {name for name in names if route(name).startswith("no: ")} == set(convert.WITHOUT)


def test_what_the_page_says_of_masks_and_keypoints() -> None:
    A = pytest.importorskip("albumentations", "2.0.8")
    given = A.Compose([A.CenterCrop(20, 20)], A.BboxParams("pascal_voc", label_fields=["kinds"]))
    masks, frame = np.zeros((2, 60, 80), np.uint8), np.zeros((60, 80, 3), np.uint8)
    boxes, kinds = [[30.0, 20, 50, 40], [0, 0, 9, 9]], [0, 1]
    theirs = given(image=frame, masks=list(masks), bboxes=boxes, kinds=kinds)
    sample = {
        "image": tv_tensors.Image(torch.from_numpy(frame).permute(2, 0, 1)),
        "masks": tv_tensors.Mask(torch.from_numpy(masks)),
        "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(60, 80)),
        "kinds": torch.tensor(kinds),
    }
    ours = transforms.from_albumentations(given)(sample)
    assert len(theirs["masks"]) == len(ours["masks"]) == 2
    assert len(theirs["bboxes"]) == len(ours["boxes"]) == len(ours["kinds"]) == 1
    by_hand = {**sample, "labels": torch.tensor(kinds)}
    by_hand["boxes"] = tv_tensors.wrap(torch.tensor([[30.0, 20, 50, 40], [9, 9, 9, 9]]), like=sample["boxes"])
    assert len(transforms.SanitizeBoundingBoxes()(by_hand)["masks"]) == 1
    for format in ("xya", "xys", "xyas"):
        points = A.Compose([A.HorizontalFlip()], keypoint_params=A.KeypointParams(format))
        with pytest.raises(ValueError, match=rf"got KeypointParams\(format={format}\)$"):
            transforms.from_albumentations(points)


@pytest.mark.parametrize("center", [(15.5, 10.0), (0.0, 0.0), (16.0, 11.5)])
def test_rotations_of_opencv(center: tuple[float, float]) -> None:
    """The page of PIL and OpenCV says how the center and the sign of an angle are converted."""
    frame = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    wanted = cv2.warpAffine(frame, cv2.getRotationMatrix2D(center, 30, 1), (32, 24))
    image, middle = torch.from_numpy(frame).permute(2, 0, 1), tuple(c + 0.5 for c in center)
    for found in (
        imgops.rotate(image, 30, "bilinear", center=middle),
        imgops.affine(image, -30, (0, 0), 1.0, 0.0, "bilinear", center=middle),
    ):
        assert (found.int() - torch.from_numpy(wanted).permute(2, 0, 1).int()).abs().max() <= 1
