"""Converted pipelines on inputs of every kind: PIL's modes, arrays, tensors, samples of several inputs, and no image."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils._pytree import tree_leaves
from torchvision import transforms as v1
from torchvision import tv_tensors
from torchvision.transforms import _presets, v2

from imgops import transforms as ours
from tests import converted_cases as cases
from tests import image_forms
from tests.converted_cases import VERSIONS, attempt, both, levels_apart, of, of_floats, photo, sizes
from tests.tiers import every_night, nightly_unless
from tests.transform_cases import CASES, Case

pytestmark = pytest.mark.filterwarnings("ignore:convert. these come near", "ignore:The transform `ToTensor")


def given_by(library: str) -> list[Any]:
    """Return transforms of a library, and pipelines that begin with conversions."""
    version = VERSIONS.get(library)
    if version is None:
        return [row.make() for row in (*cases.TIMM, *conversions_of_timm())]
    this = version
    floats = [this.ConvertImageDtype(d) for d in (torch.float32, torch.int16, torch.uint8)]
    jitter, steps = this.ColorJitter(0.3), [this.ToTensor(), this.Normalize([0.5] * 3, [0.5] * 3)]
    found = [row.make() for row in (*both(this), *of_floats(this))]
    found += [*floats, this.ToPILImage(), this.ToPILImage("RGB"), this.RandomApply([this.ToTensor()])]
    for listed in (
        [this.Resize(20), *steps],
        [this.ToPILImage(), this.RandomCrop(20), jitter, *steps[:1]],
        steps,
        steps[::-1],
    ):
        found.append(this.Compose(listed))
    if this is v2:
        return [*found, v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]), v2.ToPureTensor()]
    weights = [_presets.ObjectDetection(), _presets.SemanticSegmentation(resize_size=None)]
    return [*found, *weights, _presets.ImageClassification(resize_size=24, crop_size=20), v1.Compose([])]


def conversions_of_timm() -> list[Any]:
    erasing = partial(of, "timm.data.random_erasing", "RandomErasing", 1.0, device="cpu")
    operation = partial(of, "timm.data.auto_augment", "AugmentOp")
    return [
        *(sizes(name) for name in ("MaybeToTensor", "MaybePILToTensor", "ToTensor")),
        sizes("ToTensor", torch.float16),
        *(erasing(mode=mode) for mode in ("const", "pixel", "rand")),
        cases.pipeline(24),
        cases.pipeline(24, is_training=True),
        cases.pipeline(24, is_training=True, auto_augment="rand-m9-mstd0.5-inc1", re_prob=1.0),
        operation("Rotate", 1.0, 7, {"img_mean": 9}),
        operation("Invert", 1.0, 7),
    ]


def first_of_each(given: list[Any], whole: bool) -> list[Any]:
    """Return all transforms, or one of each class for ``make test``."""
    return given if whole else list({type(x): x for x in reversed(given)}.values())


#: The forms that are one image for some transform, and some that are none.
ARRAYS = image_forms.ARRAYS | image_forms.SEVERAL
INPUTS: dict[str, dict[str, Callable[[], Any]]] = {
    "PIL images": {
        k: v for k, v in image_forms.PIL.items() if not k.endswith(("modes", "tuple", "nested", "1", "9"))
    },
    "arrays": {
        name: make
        for name, make in ARRAYS.items()
        if (name.endswith((", last", "Fortran")) and not re.search("object|uint32|uint64|double", name))
        or name in ("array 1-D", "batch of one")
    },
    "tensors": {
        name: make
        for name, make in image_forms.TENSORS.items()
        if not re.search("torchvision|2-D|parameter|nested|list", name)
    },
}


def kinds_of(out: Any) -> Any:
    """Return the classes, modes, dtypes and shapes of what a pipeline returns."""
    if isinstance(out, (tuple, list)):
        return [kinds_of(each) for each in out]
    forms = [getattr(out, name, None) for name in ("mode", "size", "dtype", "shape")]
    return [type(out), *[None if callable(form) else form for form in forms]]


def is_of_16_bits(inpt: Any) -> bool:
    if isinstance(inpt, Image.Image):
        return inpt.mode.startswith("I;16")
    return isinstance(inpt, np.ndarray) and inpt.dtype == np.int16


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("library", [*VERSIONS, "timm"])
def test_inputs_of_every_kind(library: str, kind: str, whole: bool) -> None:
    """What the given transform takes, the converted one takes, with the same result; it refuses the rest.

    `make test` shows each class a sixth of the forms, and each form to a sixth of the classes.

    On tensors the pixels are imgops', which take more dtypes than the first version does.
    """
    inputs = [(name, make()) for name, make in INPUTS[kind].items()]
    for i, given in enumerate(first_of_each(given_by(library), whole)):
        converted, shown = ours.convert(given), str(given)
        for name, inpt in inputs if whole else inputs[i % 6 :: 6]:
            what = f"{shown}, {name}"
            wanted, found = attempt(given, inpt), attempt(converted, inpt)
            if isinstance(wanted, Exception):
                # The policies of imgops take any number of channels.
                assert isinstance(found, Exception) or kind == "tensors" or "AugMix" in shown, what
                continue
            if kind == "tensors" and "ToNumpy" in shown:  # it takes the channels from where PIL has them
                continue
            if is_of_16_bits(inpt) and (isinstance(found, Exception) or kinds_of(found)[3] == torch.uint16):
                continue  # torchvision has negative numbers here, or the lower half of the bits
            if isinstance(found, Exception):
                raise AssertionError(what) from found
            assert kinds_of(found) == kinds_of(wanted), what
            if isinstance(given, v2.RandomErasing) and given.value is None and isinstance(found, Image.Image):
                continue  # noise below 0 has no defined level
            most = cases.DIFFERENCES.get(type(given).__name__, 0)
            if isinstance(given, v1.RandomAffine):  # the last bit of its matrix decides what is transparent
                most = 30
            assert kind == "tensors" or levels_apart(found, wanted) <= most, what


@pytest.mark.parametrize("version", [*VERSIONS.values(), ours], ids=[*VERSIONS, "imgops"])
@pytest.mark.parametrize("dtype", [torch.uint8, *every_night(torch.float32)])
def test_memory_is_planar_where_torchvisions_is(dtype: torch.dtype, version: Any) -> None:
    """One interleaved image, as ToImage makes it of a PIL image: by each class, and by converted ones."""
    image = v2.functional.to_dtype(v2.functional.pil_to_tensor(photo(50, 40)), dtype, scale=True)
    assert not image.is_contiguous()
    large = [Case("CenterCrop", {"size": (60, 50)}), Case("ColorJitter", {"brightness": 0.3})]
    for case in (*CASES, *large):
        library = v2 if version is ours else version
        if (
            case.boxes
            or not hasattr(library, case.name)
            or (version is v1 and case.name in cases.DIFFERENCES)
        ):
            continue
        given = getattr(library, case.name)(**case.options)
        call = case.make(ours) if version is ours else ours.convert(given)
        for inpt in (image, tv_tensors.Image(image)):
            wanted = attempt(given, inpt, 1)
            if not isinstance(wanted, Exception):
                pairs = zip(tree_leaves(wanted), tree_leaves(attempt(call, inpt, 1)), strict=True)
                assert all(b.is_contiguous() for a, b in pairs if a.is_contiguous()), case


@pytest.mark.parametrize("mode", ["I;16", "I;16B"])
def test_numbers_of_16_bits_are_not_negative(mode: str) -> None:
    levels = np.array([[0, 1, 32767, 32768, 40000, 65535]])
    image = Image.frombytes(mode, (6, 1), levels.astype(">u2" if mode == "I;16B" else "<u2").tobytes())
    calls = [ours.ToTensor(), *(ours.convert(version.ToTensor()) for version in (v1, v2))]
    calls += [ours.convert(v1.Compose([v1.RandomHorizontalFlip(0), v1.ToTensor()]))]
    calls += [] if mode == "I;16B" else [ours.PILToTensor(), ours.convert(v1.PILToTensor())]
    for call in calls:
        found = call(image)
        assert found.shape == (1, 1, 6) and found.flatten().tolist() == levels.flatten().tolist()


# -- samples of several inputs ---------------------------------------------------------------------------


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
        for i, names in enumerate(product(known, repeat=count)):
            if count < 3 or i % 7 == 0:
                values = [known[name] for name in names]
                by_key, nested = dict(zip("abc", values)), {"a": [values[0]], "b": values[1:]}
                found.append([tuple(values), values, by_key, nested][i % 4])
    return found


STEPS = {
    "ToTensor": v2.ToTensor(),
    "ToImage": v2.ToImage(),
    "PILToTensor": v2.PILToTensor(),
    "ConvertImageDtype": v2.ConvertImageDtype(torch.float32),
    "ToDtype": v2.ToDtype(torch.float32, scale=True),
    "ToPureTensor": v2.ToPureTensor(),
    "Normalize": v2.Normalize([0.5], [0.5]),
    "Resize": v2.Resize(8),
}


@pytest.mark.parametrize("first", nightly_unless("ToTensor".__eq__, STEPS))
def test_samples_of_several_inputs(first: str) -> None:
    """What the given pipeline returns for a sample, the converted one returns."""
    every = samples()
    for i, (second, third) in enumerate(product(STEPS, repeat=2)):
        given = v2.Compose([STEPS[name] for name in ("Resize", first, second, third)])
        converted = ours.convert(given)
        for sample in every[i % 32 :: 32]:
            wanted = attempt(given, sample)
            if isinstance(wanted, Exception):
                continue
            for a, b in zip(*(tree_leaves(x) for x in (attempt(converted, sample), wanted)), strict=True):
                # A level of resized pixels counts four times after two Normalize.
                is_of_levels = isinstance(b, Image.Image) or getattr(b, "dtype", 0) in (torch.uint8, np.uint8)
                what = (first, second, third, sample)
                assert levels_apart(a, b) <= (1 if is_of_levels else 4.01 / 255), what


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS)
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


@pytest.mark.parametrize("library", [*VERSIONS, "timm"])
def test_what_is_no_image_is_refused(library: str, whole: bool) -> None:
    """What the given pipeline refuses, the converted one refuses."""
    for given in first_of_each(given_by(library), whole):
        converted = ours.convert(given)
        if isinstance(given, v1.RandomApply) and not isinstance(given, v2.Transform):
            continue  # it refuses what it would not apply its steps to, too
        for wrong in (None, "cat.jpg", 3, 2.5, [], ["cat.jpg"], {"a": None}, b"bytes", object()):
            wanted, found = (attempt(call, wrong) for call in (given, converted))
            assert isinstance(found, Exception) or not isinstance(wanted, Exception), (given, wrong)


# -- few channels and few pixels --------------------------------------------------------------------------

SHAPES = ((26, 30), (1, 26, 30), (1, 1, 26, 30), (2, 26, 30), (2, 1, 26, 30))


@pytest.mark.parametrize("dtype", [*every_night(torch.uint8), torch.float32], ids=str)
def test_shapes_of_the_first_version(dtype: torch.dtype, whole: bool) -> None:
    """What the first version takes as a tensor is taken, with a result of the same shape and dtype."""
    taken = dict.fromkeys(SHAPES, 0)
    for row in (*both(v1), *of_floats(v1)):
        given = row.make()
        converted = ours.convert(given)
        for shape, number in product(SHAPES, range(3 if whole else 1)):
            levels = torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(0))
            image = levels.to(dtype) if dtype == torch.uint8 else levels / 255
            wanted, found = (attempt(call, image, number) for call in (given, converted))
            if isinstance(wanted, Exception):
                continue
            taken[shape] += 1
            if isinstance(found, ValueError) and "because gray is a sum of" in str(found):
                continue  # it refuses the channels before it draws; the original, only if it is applied
            if isinstance(found, Exception):
                raise AssertionError(f"{given}, {shape}, {number}") from found
            assert kinds_of(found) == kinds_of(wanted), (given, shape, number)
    assert min(taken.values()) > 10


@pytest.mark.parametrize("size", [*every_night((1, 1), (2, 2), (30, 1), (2, 40)), (1, 30)], ids=str)
def test_images_of_few_pixels(size: tuple[int, int]) -> None:
    crop = partial(sizes, "RandomResizedCropAndInterpolation", 8)
    every = [crop(), crop(interpolation="random"), cases.pipeline(8, is_training=True)]
    every += [of("torchvision.transforms", "RandomResizedCrop", 8)]
    for row, mode in product(every, ("RGB", "L")):
        given = row.make()
        image = Image.new(mode, size, 200 if mode == "L" else (200, 10, 10))
        converted = ours.convert(given)
        for number in range(12):
            wanted, found = attempt(given, image, number), attempt(converted, image, number)
            assert isinstance(wanted, Exception) or levels_apart(found, wanted) == 0, (given, number)


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


@pytest.mark.parametrize("inpt", ["photo", *every_night("floats")])
def test_replaced_functions_are_called(inpt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transform that calls a function with which a program replaces torchvision's stays as it is."""
    image, tried = leaves()[inpt], set()
    for given in (row.make() for row in (*both(v1), *of_floats(v1))):
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
