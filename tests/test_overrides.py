"""What a user overrides in a subclass, or sets on an object, is used or refused; it is never ignored.

The test overrides everything that torchvision's class of a transform defines, one name at a time, by a method
that counts its calls and then calls the original. Wherever torchvision calls the method, so must imgops.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torchvision import transforms as first
from torchvision.transforms import v2 as reference

import imgops
from imgops import transforms as ours
from tests.tiers import every_night, nightly, nightly_unless
from tests.transform_cases import CASES, Case, picture, sample, seeded

#: Names that change no result of a call, and that no transform reads.
WITHOUT_EFFECT = {
    *("__annotations__", "__dict__", "__doc__", "__init__", "__init_subclass__", "__module__", "__new__"),
    *("__parameters__", "__prepare_scriptable__", "__weakref__", "_extract_params_for_v1_transform"),
    *("_v1_transform_cls", "extra_repr"),
}


def overridable(name: str) -> Iterator[str]:
    """Yield the methods that torchvision's class and its bases define."""
    cls = getattr(reference, name)
    owners = [c for c in cls.__mro__ if c.__module__.startswith("torchvision.transforms")]
    for method in sorted({n for c in owners for n in vars(c)} - WITHOUT_EFFECT):
        if callable(getattr(cls, method)):
            yield method


def counted(base: type, method: str, calls: list[str]) -> dict[str, Any]:
    """Return the body of a class that counts the calls of one method."""
    if isinstance(inspect.getattr_static(base, method), staticmethod):

        def static(*args: Any, **keywords: Any) -> Any:
            calls.append(method)
            return getattr(base, method)(*args, **keywords)

        return {method: staticmethod(static)}

    def bound(self: Any, *args: Any, **keywords: Any) -> Any:
        calls.append(method)
        return getattr(base, method)(self, *args, **keywords)

    return {method: bound}


def made(library: Any, case: Case, method: str, calls: list[str], how: str, **more: Any) -> Any:
    """Return a transform of the case whose method counts its calls, in a subclass or on the object."""
    base = getattr(library, case.name)
    body = counted(base, method, calls)
    if how == "subclass":
        return case.make(SimpleNamespace(**{case.name: type(case.name, (base,), body)}), **more)
    transform = case.make(library, **more)
    function = body[method]
    static = isinstance(function, staticmethod)
    setattr(transform, method, function.__func__ if static else function.__get__(transform))
    return transform


ONE_OF_EACH = list({case.name: case for case in CASES}.values())
#: Transforms of batches, and of the middle and the end of a pipeline, that no case has.
OTHERS = (
    Case("ToDtype", {"dtype": torch.float32, "scale": True}),
    Case("Normalize", {"mean": [0.5] * 3, "std": [0.2] * 3}),
    Case("RGB"),
    Case("ToImage"),
    Case("Identity"),
)
#: Each method once, on the first class that has it.
METHODS = {method: case for case in reversed(ONE_OF_EACH) for method in overridable(case.name)}
#: What `make test` overrides: the classes with those methods, and one of each kind.
ALWAYS = ("RandomAffine", "ColorJitter", "RandAugment")
QUICK = [*(c for c in ONE_OF_EACH if c in METHODS.values() or c.name in ALWAYS), *OTHERS]
STAYS = ours.RandomHorizontalFlip(0.0)


@pytest.mark.parametrize("how", ["subclass", *every_night("object")])
@pytest.mark.parametrize("case", nightly_unless(QUICK.__contains__, [*ONE_OF_EACH, *OTHERS]), ids=str)
def test_overridden_methods_are_called(case: Case, how: str) -> None:
    """Alone, in pipelines, for each sample, on files and on packed images; files are decoded first."""
    levels, calls = picture(), list[str]()
    before = [ours.ToDtype(torch.float32, scale=True)] * (case.name == "Normalize")
    image = sample(levels) if case.boxes else ours.Compose([ours.Identity(), *before])(levels)
    file = imgops.encode_image(levels)

    def check(transform: Any, given: Any, where: str, refused: Any = ()) -> Any:
        calls.clear()
        try:
            out = seeded(0, transform, given)
        except refused as error:
            if isinstance(error, ValueError) and "per_sample" not in str(error):
                raise
            return None
        assert calls, f"{case}: {method} is ignored {where}"
        return out

    for method in overridable(case.name) if hasattr(reference, case.name) else ():
        theirs = made(reference, case, method, calls, how)
        calls.clear()
        wanted = seeded(0, theirs, image)
        state, is_called = torch.get_rng_state(), bool(calls)
        # torchvision's second version never calls the method of its first one.
        if not is_called and method != "get_params":
            continue
        transform = made(ours, case, method, calls, how)
        out = check(transform, image, "alone")
        assert torch.equal(torch.get_rng_state(), state) or method == "get_params", f"{method}: other draws"
        if case.boxes:
            continue
        assert out.shape == wanted.shape
        pipeline = ours.Compose([transform, STAYS])
        for call in range(3):
            assert torch.equal(check(pipeline, image, f"in call {call} of a pipeline"), out)
        if case.each:
            batch = torch.stack([image, image.flip(-1)])
            each = made(ours, case, method, calls, how, per_sample=True)
            found = check(each, batch, "with per_sample=True", NotImplementedError)
            torch.manual_seed(0)
            if found is not None:
                assert torch.equal(found, torch.stack([transform(x) for x in batch])), f"{method}: is no loop"
        if method in ("transform", "make_params", "_apply_image_or_video_transform") and case.draws:
            own = torch.Generator().manual_seed(3)
            state = torch.get_rng_state()
            made(ours, case, method, calls, how, generator=own)(image)
            assert torch.equal(torch.get_rng_state(), state), f"{case}: {method}"
        if not is_called:
            continue
        alone = made(ours, case, method, calls, how, **({"per_sample": True} if case.draws else {}))
        whole = ours.Compose([*before, alone, STAYS], per_sample=True)
        several = imgops.PackedImages.of([levels]), imgops.EncodedImages([file])
        for inpt in (imgops.EncodedImage(file), *several, levels):
            for call in (whole,) if before or inpt is levels else (alone, whole):
                refused = TypeError, NotImplementedError, ValueError
                check(call, inpt, f"on {type(inpt).__name__}", refused)


@nightly
def test_graphs_call_or_refuse_overridden_methods() -> None:
    for method, case in METHODS.items():
        calls: list[str] = []
        image = sample(picture()) if case.boxes else picture()
        made_eager = made(ours, case, method, calls, "subclass")
        calls.clear()
        seeded(0, made_eager, image)
        if not calls:
            continue
        transform = made(ours, case, method, calls, "subclass")
        calls.clear()
        torch.compiler.reset()
        try:
            torch.compile(transform, backend="eager", fullgraph=True)(image)
        except Exception:
            continue
        assert calls, f"{case}: {method} is ignored in a graph"


SPACE = {
    "Identity": (lambda bins, height, width: None, False),
    "Rotate": (lambda bins, height, width: torch.linspace(0.0, 90.0, bins), True),
    "Invert": (lambda bins, height, width: None, False),
}


@pytest.mark.parametrize("how", ["subclass", *every_night("object")])
@pytest.mark.parametrize("name", ["RandAugment", "TrivialAugmentWide", *every_night("AugMix")])
def test_the_steps_of_a_policy_are_the_users(name: str, how: str) -> None:
    names = ("_AUGMENTATION_SPACE", "_PARTIAL_AUGMENTATION_SPACE")[: 2 if name == "AugMix" else 1]

    def policy(library: Any, **more: Any) -> Any:
        base = getattr(library, name)
        if how == "subclass":
            return type(name, (base,), dict.fromkeys(names, SPACE))(**more)
        made = base(**more)
        for n in names:
            setattr(made, n, SPACE)
        return made

    image = picture(width=40)
    pipeline = ours.Compose([policy(ours), ours.RandomHorizontalFlip(0.0)])
    alone = policy(ours)
    for seed in range(6):
        theirs = reference.Compose([policy(reference), reference.RandomHorizontalFlip(0.0)])
        wanted = seeded(seed, theirs, image)
        state = torch.get_rng_state()
        for transform in (alone, pipeline):
            found = seeded(seed, transform, image)
            if transform is pipeline:
                assert torch.equal(torch.get_rng_state(), state)
            # Nearest pixels of a rotation may be neighbors.
            assert (found.float() - wanted.float()).abs().mean() < 12
    batch = torch.stack([image, image.flip(-1), image.flip(-2)])
    found = seeded(3, policy(ours, per_sample=True), batch)
    torch.manual_seed(3)
    wanted = torch.stack([alone(x) for x in batch])
    assert (found.float() - wanted.float()).abs().max() <= (1 if name == "AugMix" else 0)


def _replayed(base: Any) -> Any:
    class Replayed(base):
        drawn = None

        def get_params(self, *args: Any, **keywords: Any) -> Any:
            self.drawn = super().get_params(*args, **keywords) if self.drawn is None else self.drawn
            return self.drawn

    return Replayed


#: The classes with ``get_params``, and arguments.
FIRST = {
    "ColorJitter": (0.4, 0.3, 0.2, 0.1),
    "ElasticTransform": (60.0,),
    "GaussianBlur": (5, (0.1, 3.0)),
    "RandomAffine": (30, (0.1, 0.2), (0.7, 1.3), (-10, 10, -5, 5)),
    "RandomCrop": (20,),
    "RandomErasing": (1.0,),
    "RandomPerspective": (0.5, 1.0),
    "RandomResizedCrop": (24,),
    "RandomRotation": (40,),
    "AutoAugment": (),
}


def test_every_get_params_is_listed() -> None:
    named = {n for n in ours.__all__ if hasattr(getattr(first, n, None), "get_params")}
    assert named == FIRST.keys()


@pytest.mark.parametrize("name", nightly_unless(("RandomCrop", "ColorJitter").__contains__, FIRST))
def test_get_params_is_called_as_in_the_first_version(name: str) -> None:
    """The parameters of the first call stay, on images of any kind, in pipelines and for each sample."""
    pixels = picture()
    photo = PIL.Image.fromarray(pixels.permute(1, 2, 0).numpy())
    inputs = [pixels] if name == "RandomErasing" else [photo, pixels]
    for image in inputs:
        theirs = _replayed(getattr(first, name))(*FIRST[name])
        wanted = seeded(2, theirs, image)
        transform = _replayed(getattr(ours, name))(*FIRST[name])
        found = seeded(2, transform, image)
        assert transform.drawn is not None
        if image is photo:
            far = np.abs(np.asarray(found, float) - np.asarray(wanted, float)).mean()
            assert far < 1, f"{far} from the first version"
        again = seeded(5, ours.Compose([transform, ours.RandomHorizontalFlip(0.0)]), image)
        assert np.array_equal(np.asarray(again), np.asarray(found))
    batch = torch.stack([pixels, pixels.flip(-1)])
    each = _replayed(getattr(ours, name))(*FIRST[name], per_sample=True)
    out = seeded(2, each, batch)
    assert each.drawn is not None
    assert torch.equal(out, torch.stack([each(x[None])[0] for x in batch]))
    graph = _replayed(getattr(ours, name))(*FIRST[name])
    torch.compiler.reset()
    seeded(2, torch.compile(graph, backend="eager", fullgraph=True), pixels)
    assert graph.drawn is not None


#: What ``get_params`` may return in the first version, for its function takes it.
RETURNED: dict[str, Any] = {
    "fewer steps": ("ColorJitter", (torch.tensor([1, 0]), 1.2, 0.5, 0.7, 0.1)),
    "one step": ("ColorJitter", (torch.tensor([2]), None, None, 0.5, None)),
    "steps in a list": ("ColorJitter", ([3, 1, 0, 2], 1.2, 0.5, 0.7, 0.1)),
    "steps in a tuple": ("ColorJitter", ((0, 1), 1.2, 0.5, 0.7, 0.1)),
    "a number for the shear": ("RandomAffine", (30.0, (2, 3), 1.0, 5.0)),
    "a crop": ("RandomCrop", (1, 2, 20, 20)),
}


@pytest.mark.parametrize("case", RETURNED)
def test_get_params_returns_what_the_first_version_takes(case: str) -> None:
    name, values = RETURNED[case]
    photo = PIL.Image.fromarray(picture().permute(1, 2, 0).numpy())
    found = {}
    for module in (first, ours):
        members = {"get_params": staticmethod(lambda *_: values)}
        transform = type(name, (getattr(module, name),), members)(*FIRST[name])
        for given in (transform, module.Compose([transform])):
            found[module, type(given).__name__] = np.asarray(given(photo), int)
    for kind in (name, "Compose"):
        assert abs(found[first, kind] - found[ours, kind]).max() == 0, kind


def test_a_crop_of_another_size_is_refused() -> None:
    members = {"get_params": staticmethod(lambda *_: (1, 2, 10, 12))}
    transform = type("Crop", (ours.RandomCrop,), members)(20)
    with pytest.raises(
        ValueError, match="get_params must return a crop of the size of the transform, got 10 x 12"
    ):
        transform(picture())


def test_parameters_are_not_drawn_again() -> None:
    """A subclass whose own code runs cannot apply parameters; what it draws by is its own, and is applied."""

    class Turned(ours.RandomRotation):
        def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
            return super().transform(inpt, params)

    image, turned = picture(), Turned(40)
    params = turned.sample(image)
    must = r"^Turned: make_params and transform must be imgops' own in"
    with pytest.raises(NotImplementedError, match=must):
        turned.apply(image, params)
    turned = ours.RandomRotation(40)
    turned.transform = lambda inpt, params: inpt * 0  # type: ignore[method-assign]
    turned.get_params = lambda degrees: 10.0
    assert not turned(image).any() and not ours.Compose([turned, ours.RandomHorizontalFlip(0.0)])(image).any()
    turned = _replayed(ours.RandomRotation)(40)
    params = turned.sample(image)
    assert torch.equal(turned.apply(image, params), turned(image))


def test_a_box_that_does_not_fit_erases_nothing() -> None:
    """In a subclass, too, which gets torchvision's parameters without a value."""

    class Erasing(ours.RandomErasing):
        def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
            return super().transform(inpt, params)

    image = picture()
    assert torch.equal(Erasing(1.0, scale=(1.0, 1.0), ratio=(3.0, 3.0))(image), image)


def test_a_choice_of_crops_of_files_of_different_sizes() -> None:
    images = [picture(height=30 + i, seed=i) for i in range(3)]
    files = imgops.EncodedImages([imgops.encode_image(x) for x in images])
    for choices in ((ours.RandomCrop(16), ours.CenterCrop(16)), (ours.Resize((16, 16)), ours.LetterBox(16))):
        steps = [ours.RandomChoice(choices), ours.RandomHorizontalFlip()]
        each, one = ours.Compose(steps, per_sample=True), ours.Compose(steps)
        for seed in range(4):
            found = seeded(seed, each, files)
            assert torch.equal(found, seeded(seed, lambda: torch.stack([one(x) for x in files.decode()])))


def test_files_that_are_left_as_they_are_are_decoded() -> None:
    files = imgops.EncodedImages([imgops.encode_image(picture())] * 2)
    left = ours.RandomApply([ours.RGB()], 0.5)
    for container in (left, ours.Compose([left])):
        assert {type(seeded(seed, container, files)) for seed in range(8)} == {imgops.PackedImages}
