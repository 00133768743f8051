"""Converted pipelines: the draws of the original under its seeds, and its pixels, for inputs of every kind; graphs and refusals.

The table of classes, arguments and inputs is :mod:`tests.converted_cases`.
"""

from __future__ import annotations

import importlib.util
import pickle
import pkgutil
import random
import re
import sys
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageFilter
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torchvision import transforms as v1
from torchvision import tv_tensors
from torchvision.transforms import _presets, v2

from imgops import transforms as ours
from imgops.integrations._reader import LIBRARIES, MAKERS
from imgops.integrations.torchvision.first_version import share_of_white
from imgops.transforms._core import origin
from tests import converted_cases as cases
from tests import image_forms
from tests.converted_cases import FLOATS, LEVELS, PHOTO, ROWS, VERSIONS, Inputs, Row, attempt, levels_apart
from tests.groups import apart, compile_together, groups
from tests.tiers import every_night, nightly, nightly_unless
from tests.transform_cases import CASES, Case

for _library in LIBRARIES:  # whose counterparts are loaded when the library is met
    import_module(f"imgops.integrations.{_library}")

pytestmark = pytest.mark.filterwarnings(
    "ignore:convert. these come near", "ignore:The transform `ToTensor", "ignore:Unused augmentation"
)


def warned(given: Any) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours.convert(given)
    return "; ".join(str(w.message) for w in caught if "come near" in str(w.message))


def compare(row: Row) -> None:
    """Check that a converted pipeline draws, returns and refuses what the original does.

    A tensor has the pixels that PIL computes, unless a warning says that they differ.
    """
    given, greatest = row.make(), 0.0
    converted = ours.convert(given)
    assert bool(warned(given)) is (row.differs is not False)
    for inpt, number in product(row.inputs, range(row.seeds)):
        wanted, after = attempt(given, inpt, number), cases.state()
        if isinstance(wanted, Exception):  # Pillow 13 refuses to keep no bits, as timm's posterize asks it to
            found = attempt(converted, inpt, number)
            assert isinstance(found, type(wanted)) or "bits must be" in str(wanted)
            continue
        for form in row.forms(inpt):
            found = attempt(converted, form, number)
            far = levels_apart(found, wanted)
            assert far <= (row.apart if form is inpt or row.differs is False else 1e9), number
            assert cases.state() == after
            greatest = max(greatest, far)
        if isinstance(wanted, Tensor) and wanted.is_contiguous():
            assert attempt(converted, inpt, number).is_contiguous()
        if row.differs and greatest > 0:
            return
    assert not row.differs


@pytest.mark.parametrize("name", nightly_unless(cases.is_quick, ROWS))
def test_values_and_draws(name: str) -> None:
    compare(ROWS[name])


@nightly
def test_evaluation_of_timms_models() -> None:
    every = list(cases.evaluations())
    assert len(every) > 100
    for row in every:
        compare(row)


@pytest.mark.parametrize("bins", [5, 10, 31, 77])
def test_levels_of_the_first_version(bins: int) -> None:
    for level in torch.linspace(255.0, 0.0, bins).tolist():
        assert share_of_white(level) * 255 == pytest.approx(level, abs=1e-12)
        assert np.ceil(share_of_white(level) * 255) == np.ceil(level)  # the same levels are inverted


# -- graphs and batches ----------------------------------------------------------------------------------


def close(found: Any, wanted: Any) -> None:
    leaves = (tree_leaves(x) for x in (found, wanted))
    for a, b in zip(*leaves, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5 if a.is_floating_point() else 1e-4)


def in_one_graph(calls: dict[str, Any], inputs: dict[str, tuple[Any, ...]]) -> None:
    """Check that calls give and draw in a graph what they do without one."""
    graph, _ = compile_together(calls, inputs="own")
    for number in range(3):
        cases.seed(number)
        wanted, after = apart(calls)(inputs), cases.state()
        cases.seed(number)
        close(graph(inputs), wanted)
        assert cases.state() == after


GRAPHS = [name for name, row in ROWS.items() if row.graph]
#: The rows whose graphs ``make test`` compiles: one of each kind of counterpart.
QUICK = ("timm.RandomCropOrPad-1", "timm.RandomResizedCropToSequence-1", "timm.Mixup-4")
QUICK += ("timm.RandomErasing-2", "lightly.PhaseShiftTransform-1", "lightly.VICRegLTransform-1")


@pytest.mark.parametrize(
    "names",
    [
        *groups([name for name in GRAPHS if name in QUICK], 12),
        *groups([name for name in GRAPHS if name not in QUICK], 12, marks=nightly),
    ],
)
def test_graphs_and_samples(names: list[str]) -> None:
    """A graph draws what eager mode does; a batch gives what a loop over its samples gives, in a graph, too."""
    calls: dict[str, Any] = {}
    inputs: dict[str, tuple[Any, ...]] = {}
    for name in names:
        calls[name] = pickle.loads(pickle.dumps(ours.convert(ROWS[name].make())))
        (inpt,) = ROWS[name].forms(ROWS[name].inputs[0])[-1:]
        inputs[name] = tuple(inpt) if isinstance(inpt, Inputs) else (inpt,)
    in_one_graph(calls, inputs)
    batches, each = {}, {}
    for name in names:
        if ROWS[name].graph != "one":
            (image,) = inputs[name]
            batches[name] = (torch.stack([image, image.flip(-1), 255 - image]),)
            each[name] = ours.Compose(calls[name].transforms, per_sample=True)
        if ROWS[name].graph == "sizes":
            with pytest.raises(NotImplementedError, match="samples of different sizes cannot form a batch"):
                each.pop(name)(*batches[name])
    cases.seed(1)
    loop = {name: [calls[name](image) for image in batches[name][0]] for name in each}
    after = cases.state()
    cases.seed(1)
    for name, found in apart(each)(batches).items():
        one = [tree_leaves(sample) for sample in loop[name]]
        close(found, [torch.stack(views) for views in zip(*one, strict=True)])
    assert cases.state() == after
    in_one_graph(each, batches)


@pytest.mark.parametrize("i", nightly_unless(lambda i: i == 2, range(3)))
def test_a_key_decides_all_draws(i: int) -> None:
    given = ROWS[("v1.Compose-1", "v1.Compose-2", "timm.create_transform-30")[i]].make()
    converted = ours.convert(given)
    cases.seed(1)
    keyed, before = ours.seeded(converted, "a key")(LEVELS), cases.state()
    cases.seed(2)
    assert torch.equal(ours.seeded(converted, "a key")(LEVELS), keyed)
    cases.seed(1)
    assert cases.state() == before
    assert torch.equal(ours.seeded(pickle.loads(pickle.dumps(converted)), "a key")(LEVELS), keyed)


@nightly
def test_spectra_in_views_of_a_batch() -> None:
    """PyTorch's cosines depend in their last bit on the place in a batch, and levels are cut off."""
    given = cases.lightly("FDAView2Transform", input_size=64, gmm_num_gaussians=2, **cases.FDA).make()
    each = ours.Compose(ours.convert(given).transforms, per_sample=True)
    cases.seed(1)
    wanted, after = torch.stack([given(PHOTO) for _ in range(6)]), cases.state()
    for call in (each, torch.compile(each, fullgraph=True, backend="aot_eager")):
        cases.seed(1)
        assert (call(torch.stack([LEVELS] * 6)) != wanted).double().mean() < 1e-3
        assert cases.state() == after


@nightly
def test_grids_of_each_sample_in_a_graph() -> None:
    view = cases.lightly("DetConSTransform", (3, 2), cj_prob=0.0, gaussian_blur_t1=0.0, input_size=40).make()
    each = ours.Compose(ours.convert(view).transforms, per_sample=True)
    masks = tv_tensors.Mask(torch.zeros(2, 1, 75, 97))
    in_one_graph({"samples": each}, {"samples": (torch.stack([LEVELS] * 2), masks)})


def test_patches_of_a_batch() -> None:
    naflex = pytest.importorskip("timm").data.naflex_transforms
    images = torch.rand(3, 3, 33, 47)
    for settings in ({}, {"flatten_patches": False}, {"channels_last": False}):
        given = naflex.Patchify((16, 8), **settings)
        wanted = [given(image) for image in images]
        found = ours.convert(given)(images)
        assert all(torch.equal(found[key], torch.stack([one[key] for one in wanted])) for key in found)


@nightly
@pytest.mark.parametrize("mode", ["batch", "elem", "pair"])
def test_mixup_of_every_dtype_and_shape(mode: str) -> None:
    """What timm takes is taken, with equal images, labels and dtypes; integers only where none is a sum."""
    timm = pytest.importorskip("timm")
    kinds = ({}, {"cutmix_alpha": 1.0}, {"mixup_alpha": 0.0, "cutmix_alpha": 1.0, "label_smoothing": 0.0})
    shapes = ((4, 3, 9, 11), (4, 7), (4,), (4, 5, 6), (4, 3, 2, 5, 6))
    dtypes = (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.uint8, torch.int64)
    for dtype, settings, shape, is_enabled in product(dtypes, kinds, shapes, (True, False)):
        given = timm.data.Mixup(num_classes=7, mode=mode, **settings)
        given.mixup_enabled = is_enabled
        images = torch.rand(shape, generator=torch.Generator().manual_seed(0))
        images = images.to(dtype) if dtype.is_floating_point else (255 * images).to(dtype)
        batch = Inputs((images, torch.tensor([1, 2, 3, 4])))
        for number in range(4):
            wanted, after = attempt(given, batch, number), cases.state()
            found = attempt(ours.convert(given), batch, number)
            if isinstance(wanted, Exception) or isinstance(found, (TypeError, ValueError)):
                assert isinstance(wanted, Exception) or not dtype.is_floating_point or len(shape) != 4
                continue
            assert cases.state() == after
            assert all(a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


# -- the classes that have a counterpart -------------------------------------------------------------------


def classes_of(package: Any, modules: str = "") -> set[str]:
    """Return the full names of the public classes that the modules of a package define."""
    found = set()
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not modules or module.name.rpartition(".")[2] in modules.split():
            for name, cls in vars(import_module(module.name)).items():
                if isinstance(cls, type) and cls.__module__ == module.name and name[0] != "_":
                    found.add(f"{module.name}.{name}")
    return found


#: Package -> the modules that have transforms, all if none is named, and the classes that are none.
PACKAGES = {
    "torchvision.transforms": ("transforms autoaugment", {"AutoAugmentPolicy", "RandomTransforms"}),
    "torchvision.transforms.v2": (
        "_augment _auto_augment _color _container _deprecated _geometry _meta _misc _temporal _type_conversion",
        set(),
    ),
    "timm.data": (
        "transforms naflex_transforms auto_augment random_erasing mixup naflex_mixup naflex_random_erasing",
        set(),
    ),
    "lightly.transforms": ("", {"Location", "DeprecatedShim"}),
}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_class_has_a_counterpart(package: str) -> None:
    modules, others = PACKAGES[package]
    found = classes_of(pytest.importorskip(package), modules) - set(MAKERS)
    assert {name.rpartition(".")[2] for name in found} == others


def test_every_class_of_a_library_is_its_own() -> None:
    """No class of a library looks as if a user had changed it."""
    for name in MAKERS:
        module, _, path = name.rpartition(".")
        if importlib.util.find_spec(module.partition(".")[0]):
            kind = getattr(import_module(module), path)
            assert origin.is_in_its_module(kind), name
            assert not isinstance(kind, type) or origin.has_own_methods(kind), name


# -- what a user puts into a pipeline ------------------------------------------------------------------


class Blur:
    """The class that many training scripts have."""

    def __init__(self, p: float = 0.5) -> None:
        self.p = p

    def __call__(self, image: Image.Image) -> Image.Image:
        assert isinstance(image, Image.Image)
        if random.random() > self.p:
            return image
        return image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2.0)))


class Sometimes(v1.RandomApply):
    """A subclass with a constructor alone."""

    def __init__(self, p: float) -> None:
        super().__init__([v1.GaussianBlur(9, (0.1, 2.0))], p=p)


class SecondSometimes(v2.RandomRotation):
    def __init__(self) -> None:
        super().__init__(degrees=20)
        self.name = "mine"


class CropOfTheMiddle(v1.CenterCrop):
    """A subclass that computes something else."""

    def forward(self, image: Any) -> Any:
        return v1.functional.crop(image, 1, 2, *self.size)


class Draws(v2.RandomHorizontalFlip):
    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return v2.functional.invert(inpt)


class OfFloats(torch.nn.Module):
    """A module that takes tensors, and does nothing in evaluation."""

    def forward(self, image: Tensor) -> Tensor:
        assert isinstance(image, Tensor) and image.is_floating_point()
        return image + torch.rand(1) if self.training else image


class Resize:
    """A class with the name of one of torchvision."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, image: Image.Image) -> Image.Image:
        return image.rotate(90)


Resize.__module__ = v1.Resize.__module__


def with_its_own_method(transform: Any, name: str, method: Any) -> Any:
    setattr(transform, name, method)
    return transform


def inside(version: Any, own: Any, takes_floats: bool) -> Any:
    """Return a pipeline with a step of a user, before or after the conversion to floats."""
    floats = [v1.ToTensor()]
    if version is v2:
        floats = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    steps = [version.RandomResizedCrop(32), version.RandomApply([version.ColorJitter(0.4, 0.4)], p=0.8)]
    steps += [*floats, own] if takes_floats else [own, *floats]
    return version.Compose([*steps, version.Normalize([0.5] * 3, [0.5] * 3)])


#: Steps that run code of a user: of PIL images, and of floats.
OF_PIL: dict[str, Callable[[], Any]] = {
    "a class": Blur,
    "a function": lambda: lambda image: image.rotate(random.randint(0, 90)),
    "a method": lambda: Blur(1.0).__call__,
    "a constructor": lambda: Sometimes(0.6),
    "a constructor of the second version": SecondSometimes,
    "another forward": lambda: CropOfTheMiddle(30),
    "other draws": Draws,
    "a library's name": lambda: Resize(3),
    "a method of an object": lambda: with_its_own_method(
        v1.CenterCrop(30), "forward", lambda image: image.rotate(90)
    ),
    "draws of an object": lambda: with_its_own_method(
        v1.RandomCrop(30), "get_params", lambda image, size: (1, 2, 30, 30)
    ),
    "inside of a choice": lambda: v1.RandomChoice([Blur(1.0), v1.RandomInvert(1.0)]),
    "inside of an order": lambda: v1.RandomOrder([Blur(1.0), v1.RandomInvert(1.0), v1.Compose([Blur()])]),
    "inside of a module": lambda: v1.RandomApply(torch.nn.ModuleList([v1.RandomInvert(1.0)]), 0.5),
}
ON_FLOATS: dict[str, Callable[[], Any]] = {
    "a module": OfFloats,
    "a module in evaluation": lambda: OfFloats().eval(),
    "a function of tensors": lambda: torch.sqrt,
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", [*OF_PIL, *ON_FLOATS])
def test_a_users_code_stays_in_its_pipeline(name: str, version: str) -> None:
    """It gets what it gets without a conversion, and draws and returns the same."""
    own = (OF_PIL | ON_FLOATS)[name]
    near: dict[str, Any] = {"apart": 1 / 255 / 0.5 + 1e-6, "differs": None} if "constructor" in name else {}
    make = lambda: inside(VERSIONS[version], own(), name in ON_FLOATS)
    compare(Row(name, make, seeds=6, tensors=False, **near))


def test_a_users_object_is_the_same_object() -> None:
    own, module = Blur(), OfFloats()
    converted = ours.convert(v1.Compose([v1.Resize(9), own, v1.ToTensor(), v1.RandomApply([module])]))
    assert own in converted.transforms and converted.transforms[-1].transforms == [module]


class Inverter:
    def invert(self, *_: Any) -> Any:
        return v1.functional.invert(cases.photo(20, 20))


@pytest.mark.parametrize(
    ("cls", "name", "method"),
    [
        (v1.CenterCrop, "forward", lambda *_: v1.functional.invert(cases.photo(20, 20))),
        (v2.CenterCrop, "transform", lambda *_: v1.functional.invert(cases.photo(20, 20))),
        (v1.RandomCrop, "get_params", staticmethod(lambda *_: (1, 2, 20, 20))),
        (v1.CenterCrop, "forward", Inverter().invert),
        (v1.CenterCrop, "forward", partial(Inverter().invert)),
        (v1.GaussianBlur, "forward", staticmethod(Inverter().invert)),
    ],
)
def test_a_method_of_a_class_that_was_replaced(
    cls: Any, name: str, method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(cls, name, method)
        given = v1.Compose([cls(21)])
        assert levels_apart(ours.convert(given)(PHOTO), given(PHOTO)) == 0
    assert ours.convert(v1.Compose([cls(21)])).transforms[0] is not given.transforms[0]


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS)
def test_sequential(version: Any) -> None:
    steps: list[Any] = [version.RandomCrop(40), version.RandomHorizontalFlip()]
    end = version.CenterCrop(24), version.ConvertImageDtype(torch.float32)
    for nested in (steps, [torch.nn.Sequential(*steps)]):
        compare(Row("Sequential", partial(torch.nn.Sequential, *nested, *end), [LEVELS]))
    own = torch.nn.Sequential(version.RandomCrop(40), torch.nn.Identity(), torch.nn.Dropout(0.5).eval())
    assert ours.convert(own).transforms[1:] == list(own)[1:]
    noisy = torch.nn.Sequential(version.RandomCrop(40), OfFloats())
    converted = ours.convert(noisy)
    assert not converted.eval().transforms[1].training and converted.train().transforms[1].training
    assert not ours.convert(version.Compose([noisy[0].eval()])).transforms[0].training
    learned = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.Identity())
    gated = version.RandomApply(torch.nn.ModuleList([torch.nn.Dropout(0.5), torch.nn.BatchNorm2d(3)]), 1.0)
    for given in (torch.nn.Sequential(version.RandomCrop(40), learned), torch.nn.Sequential(gated)):
        converted = ours.convert(given)
        assert list(converted.state_dict()) == list(given.state_dict())
        assert [*map(id, converted.parameters())] == [*map(id, given.parameters())]
        assert next(converted.double().parameters()).dtype == torch.float64
        assert not any(m.training for m in converted.eval().modules())


@pytest.mark.parametrize("draw", [0.0, 0.49, 0.5, 0.51])
@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS)
def test_a_draw_that_is_the_probability(version: Any, draw: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "rand", lambda *_, **__: torch.tensor([draw]))
    given = version.RandomApply([version.RandomInvert(1.0)], 0.5)
    assert levels_apart(ours.convert(given)(PHOTO), given(PHOTO)) == 0


@pytest.mark.parametrize("how", [{}, {"auto_augment": "augmix-m5-w4-d2"}])
def test_parts_of_a_pipeline(how: dict[str, Any]) -> None:
    given, image = cases.training(separate=True, **how).make(), PHOTO
    found = ours.convert(given)
    assert type(found) is type(given) and len(found) == len(given)
    for part, theirs in zip(found, given, strict=True):
        wanted = attempt(theirs, image, 1)
        assert levels_apart(attempt(part, image, 1), wanted) == 0
        image = wanted


def test_a_pipeline_of_imgops_stays() -> None:
    given = ours.Compose([ours.RandomCrop(3)])
    assert ours.convert(given) is given
    mixed = ours.convert(v1.Compose([ours.RandomCrop(30), v1.ToTensor()]))
    assert mixed(PHOTO).shape == (3, 30, 30)
    learned = v1.Normalize(torch.nn.Parameter(torch.full((3,), 0.5)), [0.5] * 3)
    assert ours.convert(v1.Compose([learned]))(FLOATS).requires_grad


# -- warnings and errors ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS.values(), ids=VERSIONS)
def test_what_comes_near_is_said_once(version: Any) -> None:
    steps = [version.GaussianBlur(3), version.GaussianBlur(5), version.RandomRotation(3)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours.convert(version.Compose(steps))
    (warning,) = caught
    assert str(warning.message).count("GaussianBlur") == 1 and "RandomRotation" in str(warning.message)
    assert warning.filename == __file__
    assert warned(version.RandomApply(steps, p=0.0)) == ""


def timm() -> Any:
    return pytest.importorskip("timm.data")


def hooked(module: Any, kind: str = "forward_hook") -> Any:
    getattr(module, f"register_{kind}")(lambda *_: None)
    return module


#: Pipelines without a counterpart, and what the error calls them.
UNKNOWN: dict[str, Callable[[], Any]] = {
    "FastCollateMixup(a function that collates a batch: ": lambda: timm().FastCollateMixup(),
    "NaFlexMixup(images of different sizes ": lambda: timm().naflex_mixup.NaFlexMixup(num_classes=3),
    "PatchRandomErasing(patches ": lambda: timm().naflex_random_erasing.PatchRandomErasing(),
    "RandomErasing(num_splits=2, ": lambda: timm().random_erasing.RandomErasing(num_splits=2),
    "ResizeToSequence(an interp": lambda: timm().naflex_transforms.ResizeToSequence(
        9, interpolation=(cases.BICUBIC,)
    ),
    f"{__name__}": lambda: lambda image: image,
    f"{__name__}.Blur": Blur,
    f"{__name__}.CropOfTheMiddle": lambda: CropOfTheMiddle(3),
    "CenterCrop(hooks)": lambda: hooked(v1.CenterCrop(3)),
    "Sequential(hooks)": lambda: hooked(torch.nn.Sequential(v1.CenterCrop(3))),
    "Compose(hooks)": lambda: hooked(v2.Compose([v1.CenterCrop(3)])),
    "Normalize(hooks)": lambda: hooked(v2.Normalize([0.5], [0.5]), "forward_pre_hook"),
    "Normalize(hooks);": lambda: hooked(v2.Normalize([0.5], [0.5]), "full_backward_hook"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_has_no_counterpart(name: str) -> None:
    must = re.escape(f"convert: transforms must have a counterpart, got {name}")
    with pytest.raises(ValueError, match=must):
        ours.convert(UNKNOWN[name]())


def test_the_error_names_all_and_says_what_to_do() -> None:
    """A pipeline must be a transform of a library."""
    erasing = v1.RandomApply([UNKNOWN["RandomErasing(num_splits=2, "]()])
    steps = [v1.Resize(9), timm().FastCollateMixup(), erasing]
    must = "got FastCollateMixup.*num_splits=2.*; leave them out.*from imgops"
    for given in (v1.Compose(steps), (v1.Resize(9), v1.Compose(steps))):
        with pytest.raises(ValueError, match=must):
            ours.convert(given)
    must = "convert: pipeline must be a transform of torchvision, timm, open_clip, lightly or"
    for wrong in (3, "crop", np.zeros(3), torch.zeros(3), [], (v1.Resize(9), 3), torch.nn.ReLU()):
        with pytest.raises(TypeError, match=must):
            ours.convert(wrong)


def resized(*more: Any) -> Any:
    return v1.Compose([*more, v1.Resize(9), v1.ToTensor()])


IMAGE = tv_tensors.Image(LEVELS)
POLICY = cases.training(auto_augment="v0").make
NO_IMAGE = "convert: image must be a PIL image or a Tensor, got "
#: A pipeline, the inputs of a call, and the error.
REFUSED: list[tuple[Callable[[], Any], tuple[Any, ...], type[Exception], str]] = [
    *((resized, (x,), TypeError, NO_IMAGE) for x in (np.zeros((5, 5, 3), np.uint8), "file.jpg", [], None)),
    (lambda: resized(v1.Lambda(np.array)), (PHOTO,), TypeError, f"{NO_IMAGE}ndarray"),
    (resized, (LEVELS.short(),), TypeError, r"ToTensor: image must be a PIL image, an array, .* torch\.int16"),
    (lambda: cases.training(separate=True).make()[-1], ("file.jpg",), TypeError,
     "convert: image must be a PIL image, an array or a Tensor, got str"),
    (POLICY, (IMAGE, tv_tensors.Mask(torch.zeros(75, 97))), TypeError,
     "AutoAugment: inputs must not be masks, boxes or keypoints, got Mask"),
    (POLICY, (IMAGE / 255,), TypeError,
     r"AutoAugment: image must be uint8 of 1 or 3 channels, got torch\.float32 of 3"),
    (ROWS["lightly.Jigsaw-0"].make, (cases.photo(97, 59),), ValueError,
     r"Jigsaw: sides of the image must be at least 60, got \(59, 97\)"),
    *((row.make, (PHOTO,), TypeError, f"{name.removeprefix('lightly.')[:-2]}: image must be a Tensor")
      for name, row in ROWS.items()
      if name.startswith("lightly.") and isinstance(row.inputs[0], Tensor)),
    *((row.make, (images, torch.arange(6)), error, f"Mixup: images must be {text}")
      for name, row in ROWS.items()
      if name.startswith("timm.Mixup")
      for images, error, text in (
          (torch.rand(5, 3, 4, 4), ValueError, "even in number, got 5"),
          (torch.tensor(1.0), ValueError, "a batch"),
          (torch.ones(2, 3, 4, 4, dtype=torch.int32), TypeError, "floating point, got torch"),
      )
      if not (error is TypeError and name == "timm.Mixup-2")),  # which sums up no images
]  # fmt: skip


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_inputs_that_are_refused(i: int) -> None:
    make, inputs, error, text = REFUSED[i]
    with pytest.raises(error, match=text):
        ours.convert(make())(*inputs)


# -- the whole program -----------------------------------------------------------------------------------


def test_the_dtype_of_floats_is_that_of_the_call() -> None:
    given = v1.Compose([v1.ToTensor(), v1.Normalize([0.5] * 3, [0.3] * 3)])
    converted = ours.convert(given)
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.equal(converted(PHOTO), given(PHOTO)) and converted(PHOTO).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("module", [v1, v2, ours], ids=["v1", "v2", "imgops"])
def test_a_pipeline_keeps_the_profile_of_an_image(module: Any) -> None:
    given = module.Compose([module.Resize(40), module.RandomHorizontalFlip(1.0), module.RandomInvert(1.0)])
    image = cases.photo()
    image.info = {"icc_profile": b"profile", "dpi": (72, 72)}
    for pipeline in (given, ours.convert(given)):
        assert pipeline(image).info == image.info


# -- inputs of every kind: PIL's modes, arrays, tensors, and no image -----------------------------------------


def given_by(library: str) -> list[Any]:
    """Return transforms of a library, and pipelines that begin with conversions."""
    version = VERSIONS.get(library)
    if version is None:
        return [row.make() for row in (*cases.TIMM, *conversions_of_timm())]
    this = version
    floats = [this.ConvertImageDtype(d) for d in (torch.float32, torch.int16, torch.uint8)]
    jitter, steps = this.ColorJitter(0.3), [this.ToTensor(), this.Normalize([0.5] * 3, [0.5] * 3)]
    found = [row.make() for row in (*cases.both(this), *cases.of_floats(this))]
    found += [*floats, this.ToPILImage(), this.ToPILImage("RGB"), this.RandomApply([this.ToTensor()])]
    found += [this.Compose(listed) for listed in ([this.Resize(20), *steps], steps, steps[::-1])]
    found.append(this.Compose([this.ToPILImage(), this.RandomCrop(20), jitter, *steps[:1]]))
    if this is v2:
        return [*found, v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]), v2.ToPureTensor()]
    weights = [_presets.ObjectDetection(), _presets.SemanticSegmentation(resize_size=None)]
    return [*found, *weights, _presets.ImageClassification(resize_size=24, crop_size=20), v1.Compose([])]


def conversions_of_timm() -> list[Any]:
    erasing = partial(cases.of, "timm.data.random_erasing", "RandomErasing", 1.0, device="cpu")
    operation = partial(cases.of, "timm.data.auto_augment", "AugmentOp")
    return [
        *(cases.sizes(name) for name in ("MaybeToTensor", "MaybePILToTensor", "ToTensor")),
        cases.sizes("ToTensor", torch.float16),
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
    image = v2.functional.to_dtype(v2.functional.pil_to_tensor(cases.photo(50, 40)), dtype, scale=True)
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
    image = cases.photo(14, 12)
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
    image = cases.photo(14, 12)
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
    for row in (*cases.both(v1), *cases.of_floats(v1)):
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
    crop = partial(cases.sizes, "RandomResizedCropAndInterpolation", 8)
    every = [crop(), crop(interpolation="random"), cases.pipeline(8, is_training=True)]
    every += [cases.of("torchvision.transforms", "RandomResizedCrop", 8)]
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
    for given in (row.make() for row in (*cases.both(v1), *cases.of_floats(v1))):
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
