"""Converted pipelines on samples of several inputs, on what no pipeline takes, and on tensors of few channels."""

from __future__ import annotations

import itertools
import sys
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torchvision import transforms as v1
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops import transforms as ours
from tests.test_convert import BOTH, attempt, levels_apart, of_floats, of_libraries, photo, seed

pytestmark = pytest.mark.filterwarnings("ignore:convert. these come near", "ignore:The transform `ToTensor")


def leaves() -> dict[str, Any]:
    """Return the inputs that samples are made of."""
    image = photo(14, 12)
    levels = v1.functional.pil_to_tensor(image)
    boxes = tv_tensors.BoundingBoxes([[1, 2, 9, 9]], format="XYXY", canvas_size=(12, 14))
    return {
        "photo": image,
        "mask": image.convert("L"),
        "array": np.array(image),
        "boxes": boxes,
        "levels": levels,
        "floats": levels / 255,
        "label": torch.tensor([1, 2, 3]),
        "number": 3,
        "Image": tv_tensors.Image(levels),
        "Mask": tv_tensors.Mask(levels[:1]),
    }


def samples() -> list[Any]:
    """Return tuples of one to three inputs, and as many lists, dicts and nested structures."""
    known, found = leaves(), []
    for count in (1, 2, 3):
        for i, names in enumerate(itertools.product(known, repeat=count)):
            if count < 3 or i % 7 == 0:
                values = [known[name] for name in names]
                found.append(
                    [
                        tuple(values),
                        values,
                        dict(zip("abc", values, strict=False)),
                        {"a": [values[0]], "b": values[1:]},
                    ][i % 4]
                )
    return found


def steps() -> dict[str, Any]:
    return {
        "ToTensor": v2.ToTensor(),
        "ToImage": v2.ToImage(),
        "PILToTensor": v2.PILToTensor(),
        "ConvertImageDtype": v2.ConvertImageDtype(torch.float32),
        "ToDtype": v2.ToDtype(torch.float32, scale=True),
        "ToPureTensor": v2.ToPureTensor(),
        "Normalize": v2.Normalize([0.5], [0.5]),
        "Resize": v2.Resize(8),
    }


def difference(found: Any, wanted: Any) -> str | None:
    """Return how two samples differ; a level of resized pixels counts four times after two Normalize."""
    if type(found) is not type(wanted):
        return f"{type(found).__name__}, wanted {type(wanted).__name__}"
    if isinstance(wanted, dict):
        return difference(list(found.values()), list(wanted.values())) if [*found] == [*wanted] else "keys"
    if isinstance(wanted, (tuple, list)):
        each = (difference(a, b) for a, b in zip(found, wanted, strict=True))
        return next((x for x in each if x), None)
    if isinstance(wanted, (Tensor, np.ndarray, Image.Image)):
        apart = levels_apart(found, wanted)
        is_of_levels = isinstance(wanted, Image.Image) or wanted.dtype in (torch.uint8, np.uint8)
        return f"{apart} apart" if apart > (1 if is_of_levels else 4.01 / 255) else None
    return None if found == wanted else f"{found}, wanted {wanted}"


@pytest.mark.parametrize("first", steps())
def test_samples_of_several_inputs(first: str) -> None:
    """What the given pipeline returns for a sample, the converted one returns."""
    known, every = steps(), samples()
    for i, (second, third) in enumerate(itertools.product(known, repeat=2)):
        given = v2.Compose([known[name] for name in ("Resize", first, second, third)])
        converted = ours.convert(given)
        for sample in every[i % 32 :: 32]:
            try:
                wanted = given(sample)
            except Exception:  # what torchvision refuses is not compared
                continue
            assert difference(converted(sample), wanted) is None, (first, second, third, sample)


@pytest.mark.parametrize("version", [v1, v2], ids=["v1", "v2"])
def test_every_image_of_a_sample_becomes_floats(version: Any) -> None:
    """The first version takes no sample; converted, each image of one is what it is alone."""
    image = photo(14, 12)
    converted = ours.convert(version.Compose([version.ToTensor(), version.Normalize([0.5], [0.5])]))
    alone = v1.functional.to_tensor(image.convert("L"))
    for sample in ((image, image.convert("L")), [np.array(image), image.convert("L"), torch.tensor(3)]):
        found = converted(sample)
        assert levels_apart(found[0], converted(image)) == 0
        assert levels_apart(found[1], alone) == 0
        assert found[2:] == sample[2:]
    levels = v1.functional.pil_to_tensor(image)
    found = converted((levels, levels))
    assert levels_apart(found[0], converted(image)) == 0 and torch.equal(found[1], levels)


# -- what no pipeline takes -----------------------------------------------------------------------------


def outcome(call: Any, inpt: Any) -> Any:
    seed(0)
    try:
        return call(inpt)
    except Exception as error:
        return error


@pytest.mark.parametrize("library", ["v1", "v2", "timm"])
def test_what_is_no_image_is_refused(library: str) -> None:
    """What the given pipeline refuses, the converted one refuses."""
    for given in of_libraries(library):
        converted = ours.convert(given)
        if isinstance(given, v1.RandomApply) and not isinstance(given, v2.Transform):
            continue  # it refuses what it would not apply its steps to, too
        for wrong in (None, "cat.jpg", 3, 2.5, [], ["cat.jpg"], {"a": None}, b"bytes", object()):
            wanted, found = (outcome(call, wrong) for call in (given, converted))
            assert isinstance(found, Exception) or not isinstance(wanted, Exception), (given, wrong)


# -- tensors of few channels ----------------------------------------------------------------------------


SHAPES = ((26, 30), (1, 26, 30), (1, 1, 26, 30), (2, 26, 30), (2, 1, 26, 30))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32], ids=str)
def test_shapes_of_the_first_version(dtype: torch.dtype) -> None:
    """What the first version takes as a tensor is taken, with a result of the same shape and dtype."""
    taken = dict.fromkeys(SHAPES, 0)
    for given in [getattr(v1, name)(**arguments) for name, arguments in BOTH] + of_floats(v1):
        converted = ours.convert(given)
        for shape, number in itertools.product(SHAPES, range(3)):
            levels = torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(0))
            image = levels.to(dtype) if dtype == torch.uint8 else levels / 255
            wanted = attempt(given, image, number)
            if isinstance(wanted, Exception):
                continue
            taken[shape] += 1
            found = attempt(converted, image, number)
            if isinstance(found, ValueError) and "because gray is a sum of" in str(found):
                continue  # it refuses the channels before it draws; the original, only if it is applied
            if isinstance(found, Exception):
                raise AssertionError(f"{given}, {shape}, {number}") from found
            assert forms(found) == forms(wanted), (given, shape, number)
    assert min(taken.values()) > 30


def forms(out: Any) -> list[Any]:
    return [(type(x), x.shape, x.dtype) for x in (out if isinstance(out, tuple) else (out,))]


# -- images of few pixels -------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(1, 1), (1, 30), (2, 2), (30, 1), (2, 40)], ids=str)
def test_images_of_few_pixels(size: tuple[int, int]) -> None:
    timm = pytest.importorskip("timm")
    crop, Random = timm.data.transforms.RandomResizedCropAndInterpolation, v1.RandomResizedCrop
    every = [
        crop(8),
        crop(8, interpolation="random"),
        timm.data.create_transform(8, is_training=True),
        Random(8),
    ]
    for given, mode in itertools.product(every, ("RGB", "L")):
        image = Image.new(mode, size, 200 if mode == "L" else (200, 10, 10))
        converted = ours.convert(given)
        for number in range(12):
            wanted, found = attempt(given, image, number), attempt(converted, image, number)
            if not isinstance(wanted, Exception):
                assert levels_apart(found, wanted) == 0, (given, number)


# -- functions of torchvision that a program replaces ----------------------------------------------------

#: The modules of the first version's functions.
MODULES = (v1.functional, v1._functional_pil, v1._functional_tensor)


def calls_of(call: Any, image: Any) -> set[tuple[Any, str]]:
    """Return the modules and names of torchvision's functions that are called."""
    known = {f.__code__: (m, n) for m in MODULES for n, f in vars(m).items() if hasattr(f, "__code__")}
    found = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in known:
            found.add(known[frame.f_code])

    sys.setprofile(note)
    try:
        attempt(call, image)
    finally:
        sys.setprofile(None)
    return {(module, name) for module, name in found if not name.startswith("_")}


@pytest.mark.parametrize("inpt", ["photo", "floats"])
def test_replaced_functions_are_called(inpt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transform that calls a function with which a program replaces torchvision's stays as it is."""
    image, tried = leaves()[inpt], set()
    for given in [getattr(v1, name)(**arguments) for name, arguments in BOTH] + of_floats(v1):
        for module, name in calls_of(given, image):
            if (type(given), name) in tried:
                continue
            usual, called = getattr(module, name), []

            def noted(*args: Any, _usual: Any = usual, _called: list[int] = called, **keywords: Any) -> Any:
                _called.append(1)
                return _usual(*args, **keywords)

            with monkeypatch.context() as patch:
                patch.setattr(module, name, noted)
                attempt(ours.convert(v1.Compose([given, v1.RandomHorizontalFlip(0)])), image)
            assert called, (given, name)
            tried.add((type(given), name))
    assert len(tried) > 30
