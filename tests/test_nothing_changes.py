"""Calls without anything to change: every transform returns its inputs, as torchvision's does, and warns once."""

from __future__ import annotations

import contextlib
import copy
import pickle
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

import imgops
from imgops import transforms as ours
from tests.test_modes import every_transform
from tests.tiers import nightly
from tests.transform_cases import CASES, picture

ARRAY = np.zeros((40, 52, 3), np.uint8)
#: Inputs without an image.
WITHOUT: dict[str, Any] = {
    "array": ARRAY,
    "dict": {"image": ARRAY, "label": 3, "file": "a.jpg"},
    "tuple": (ARRAY, "a"),
    "text": "a.jpg",
    "bytes": b"\xff\xd8",
    "labels": {"label": 3, "more": [1.5, None]},
}
#: The transforms that do not warn: those of classes and dtypes, of annotations only, and those of a user's code.
_SILENT = (
    "ConvertImageDtype Identity Lambda PILToTensor ToDtype ToImage ToPILImage ToPureTensor ToTensor "
    "BoxesFromMasks ClampBoundingBoxes ClampKeyPoints ConvertBoundingBoxFormat SetClampingMode "
    "SanitizeBoundingBoxes SanitizeKeyPoints"
)
SILENT = set(_SILENT.split())


def transforms() -> dict[str, Any]:
    """Return one of each class, of the tables of the tests and of those that need no arguments."""
    found = every_transform() | {"JPEG": ours.JPEG(50), "RandomIoUCrop": ours.RandomIoUCrop()}
    for name in (*ours.OURS, *ours.ADDED):
        with contextlib.suppress(TypeError, ValueError), warnings.catch_warnings():  # some need arguments
            warnings.simplefilter("ignore")
            found.setdefault(name, getattr(ours, name)())
    for transform in found.values():
        if isinstance(getattr(transform, "p", None), float):
            transform.p = 1.0  # one that chance leaves out finds nothing
    return found | {
        "Lambda": ours.Lambda(str, dict),
        "ConvertBoundingBoxFormat": ours.ConvertBoundingBoxFormat("XYWH"),
    }


def said(call: Callable[..., Any], *inputs: Any) -> tuple[Any, list[warnings.WarningMessage]]:
    """Return the result of a call, or the error it raises, and the warnings about it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            out = call(*inputs)
        except Exception as error:
            out = error
    return out, [w for w in caught if w.category is imgops.NothingChangesWarning]


def is_same(out: Any, inputs: Any) -> bool:
    flat, other = (torch.utils._pytree.tree_leaves(x) for x in (out, inputs))
    return len(flat) == len(other) and all(a is b for a, b in zip(flat, other, strict=True))


AROUND: tuple[Callable[[Any], Any], ...] = (
    lambda t: t,
    lambda t: ours.Compose([ours.Identity(), t]),
    lambda t: ours.RandomApply([t], p=1),
)


def test_every_transform_without_an_image(whole: bool) -> None:
    """Alone and in pipelines: one warning, at the line of the call, if nothing changed and nothing was raised.

    `make test` makes a sixth of the calls.
    """
    warned, raised, calls = set(), set(), list(product(WITHOUT.items(), AROUND))
    for i, (name, transform) in enumerate(transforms().items()):
        for (kind, inputs), around in calls if whole else calls[i % 6 :: 6]:
            called = around(copy.deepcopy(transform))
            quiet = copy.deepcopy(called)
            out, first = said(called, inputs)
            _, again = said(called, inputs)
            where = f"{name}, {kind}, {type(called).__name__}"
            assert not again, where
            if isinstance(out, Exception):
                raised.add(name)
                assert not first, where
                continue
            assert len(first) == (name not in SILENT and is_same(out, inputs)), where
            if first:
                warned.add(name)
                text = f"{type(called).__name__}: inputs must have an image"
                assert first[0].filename == __file__ and str(first[0].message).startswith(text), where
            quiet.warn_if_nothing_changes = False
            assert not said(quiet, inputs)[1], where
    known = {"Resize", "RandomHorizontalFlip", "ColorJitter", "Normalize", "GaussianBlur", "RandomCLAHE"}
    assert known <= warned and not warned & SILENT
    # Those that must have an image raise, as torchvision's do.
    assert {"AutoAugment", "RandomCrop", "RandomIoUCrop"} <= raised
    for case in CASES:
        if case.name in raised:
            theirs = case.make(v2)
            if isinstance(getattr(theirs, "p", None), float):
                theirs.p = 1.0
            assert isinstance(said(theirs, ARRAY)[0], Exception), case.name


def test_every_transform_with_an_image(whole: bool) -> None:
    """Whatever else is in the input, and whether or not the transform changes what there is."""
    image, canvas = picture(), (40, 52)
    boxes = tv_tensors.BoundingBoxes([[1, 2, 20, 30]], format="XYXY", canvas_size=canvas)
    points = tv_tensors.KeyPoints([[3, 4]], canvas_size=canvas)
    mask = tv_tensors.Mask(torch.zeros(1, *canvas, dtype=torch.uint8))
    pil = PIL.Image.fromarray(np.ascontiguousarray(image.permute(1, 2, 0).numpy()))
    given: list[Any] = [image, tv_tensors.Image(image), tv_tensors.Video(image[None]), pil]
    given.append(imgops.EncodedImage(imgops.encode_image(image)))
    given += [{"array": ARRAY, "x": x} for x in (*given, mask, boxes, points)]
    given += [(ARRAY, image), None, {}, [None]]
    calls = list(product(given, (lambda t: t, lambda t: ours.Compose([t, ours.Identity()]))))
    for i, (name, transform) in enumerate(transforms().items()):
        for inputs, around in calls if whole else calls[i % 6 :: 6]:
            assert not said(around(copy.deepcopy(transform)), inputs)[1], name


def test_pipelines() -> None:
    flip, convert = ours.RandomHorizontalFlip(1.0), ours.ToImage()
    silent = {
        "a conversion": [convert, flip],
        "a conversion later": [flip, convert],
        "a user's function": [flip, lambda x: {"image": torch.zeros(3, 4, 4)}],
        "only a user's function": [lambda x: x],
        "left out": [ours.RandomApply([flip], p=0.0)],
        "conversions": [ours.PILToTensor(), ours.ToDtype(torch.float32), ours.ToPureTensor()],
        "labels": [ours.ClampBoundingBoxes(), ours.Lambda(lambda x: x)],
        "theirs": [v2.RandomHorizontalFlip(1.0)],
    }
    for name, steps in silent.items():
        assert not said(ours.Compose(steps), {"image": ARRAY})[1], name
    loud = {
        "two": [flip, ours.Resize(9)],
        "nested": [ours.Compose([flip]), ours.RandomChoice([flip, ours.Resize(9)]), ours.RandomOrder([flip])],
        "a conversion that has nothing to do": [ours.PILToTensor(), ours.Normalize([0.5], [0.5])],
    }
    for name, steps in loud.items():
        for more in ({}, {"per_sample": True}):
            pipeline = ours.Compose(copy.deepcopy(steps), **more)
            found = said(pipeline, {"image": ARRAY, "label": 3})[1]
            assert [str(w.message).partition(",")[0] for w in found] == [
                "Compose: inputs must have an image"
            ], name
            assert "got ndarray, int, which come back unchanged; ToImage() makes images" in str(
                found[0].message
            )
            assert not said(pipeline, ARRAY, "a")[1], name
    # A pipeline is asked once; a copy of one that has not warned warns by itself, in each thread.
    pipeline = ours.Compose([flip])
    others = [copy.deepcopy(pipeline), pickle.loads(pickle.dumps(pipeline))]
    assert [len(said(each, ARRAY)[1]) for each in (pipeline, *others)] == [1, 1, 1]
    with warnings.catch_warnings(record=True) as caught, ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("always")
        list(pool.map(lambda _: ours.Compose([flip])(ARRAY), range(8)))
    assert [w.category for w in caught] == [imgops.NothingChangesWarning] * 8
    # After an error inside of a container, calls warn as before.
    assert isinstance(said(ours.Compose([lambda x: 1 / 0]), ARRAY)[0], ZeroDivisionError)
    assert len(said(ours.Resize(9), ARRAY)[1]) == 1


def test_errors_of_the_warning() -> None:
    """A test suite may turn the warning into an error; the next call is as if nothing had happened."""
    pipeline = ours.Compose([ours.RandomInvert(1.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("error", imgops.NothingChangesWarning)
        with pytest.raises(imgops.NothingChangesWarning, match=r"^Compose: inputs must have an image"):
            pipeline({"label": 3})
        assert pipeline({"label": 3}) == {"label": 3}
        assert torch.equal(
            pipeline(torch.zeros(3, 4, 4, dtype=torch.uint8)), torch.full((3, 4, 4), 255).byte()
        )


def test_errors_say_how_an_input_becomes_an_image() -> None:
    """torchvision's error of a transform that samples names neither the transform nor the inputs."""
    must = r"inputs must have an image, .* or keypoints, got"
    for made in (ours.RandomCrop(8), ours.Compose([ours.RandomCrop(8), ours.Resize(4)], per_sample=True)):
        for given, got in ((ARRAY, "ndarray"), ({"image": ARRAY, "label": 3}, "ndarray, int")):
            with pytest.raises(TypeError, match=rf"^{type(made).__name__}: {must} {got}; ToImage\(\) makes"):
                made(given)
        with pytest.raises(TypeError, match=rf"{must} str; imgops.EncodedImage\(path\) is"):
            made("a.jpg")
        with pytest.raises(TypeError, match=rf"{must} int$"):
            made({"label": 3})
    converted = ours.convert(v2.Compose([v2.RandomCrop(8)]))
    with pytest.raises(TypeError, match=rf"^Compose: {must} str; imgops.EncodedImage"):
        converted(["a.jpg", "b.jpg"])
    picture = PIL.Image.fromarray(ARRAY)
    for wrong, hint in (
        (ARRAY, r"ndarray; torch.from_numpy\(array\).permute\(2, 0, 1\) makes one"),
        (ARRAY[..., 0], r"ndarray; torch.from_numpy\(array\)\[None\] makes one"),
        (ARRAY.transpose(2, 0, 1), r"ndarray; torch.from_numpy\(array\) makes one"),
        (ARRAY[None], r"ndarray; torch.from_numpy\(array\).permute\(0, 3, 1, 2\) makes one"),
        (picture, "Image; imgops.transforms.functional takes PIL images"),
        ("a.jpg", r"str; imgops.decode_image\(path\) reads a file"),
        (3, "int"),
    ):
        with pytest.raises(TypeError, match=rf"^crop: image must be a Tensor, got {hint}$"):
            imgops.crop(wrong, (0, 0, 4, 4))  # type: ignore[arg-type]


@nightly
def test_no_graph_break_and_no_recompile() -> None:
    """In a graph nothing warns, and a pipeline that warned in eager mode has the same graph."""
    torch.compiler.reset()
    pipeline = ours.Compose([ours.RandomHorizontalFlip(1.0), ours.Resize((8, 9), antialias=True)])
    graph = torch.compile(pipeline, fullgraph=True, backend="eager")
    image = picture()
    inputs: list[Any] = [{"image": image, "label": 3}, {"label": 3}]
    assert all(not said(graph, x)[1] for x in inputs)
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    assert len(said(pipeline, {"label": 3})[1]) == 1
    out, found = said(graph, inputs[0])
    assert isinstance(out["image"], Tensor) and not found
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == before
