"""Every transform in every kind of call: it gives what calls for one image give, by the same draws.

The product has a row for each transform, those of ``transform_cases`` and of ``added_cases``, and a column for each
kind of call. A kind yields pairs of results that must be equal; it yields none for transforms that it is not for.
"""

from __future__ import annotations

import pickle
import random
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional

from imgops import transforms as ours
from imgops.transforms.imagenet_c.formulas import FORMULAS
from tests import followers
from tests.added_cases import ROWS, Row
from tests.checks import check_raises
from tests.fuzz_pipelines import one_by_one, result
from tests.groups import apart, compile_together, groups
from tests.specs._maker import formatted
from tests.test_channels import COUNTS, planes, words_of
from tests.test_followers import WITH_TWINS
from tests.test_transforms import OF_ANY_MODE
from tests.tiers import nightly, nightly_unless
from tests.transform_cases import (
    CASES,
    CONTAINERS,
    Case,
    Container,
    needs_classes,
    outcome,
    picture,
    same,
    sample,
    seeded,
)

Every = Case | Row
Pairs = Iterator[tuple[Any, Any]]
EVERY: list[Every] = [
    *CASES,
    *ROWS,
    *CONTAINERS,
    Case("CenterCrop", {"size": (np.int64(20), np.int64(20))}, id="NumPy"),
    *(Row("Corruption", {"name": name, "severity": 3}, id=f"{name}-3") for name in FORMULAS),
]
#: The first case of each transform, for what costs a graph.
FIRST = list({case.name: case for case in reversed(EVERY)}.values())
KEYS = [(0, "a.jpg"), (0, "b.jpg"), (0, "a.jpg")]
FLIP = ours.RandomHorizontalFlip(1.0)

pytestmark = pytest.mark.filterwarnings("ignore:RandomErasing")


def images_of(case: Every, dtype: torch.dtype = torch.float32, count: int = 3) -> Tensor:
    return torch.stack([picture(dtype, *case.size, seed) for seed in range(count)])


def loop(transform: Callable[[Any], Any], images: Any) -> Tensor:
    return torch.stack([transform(x) for x in images])


# -- kinds of calls ------------------------------------------------------------------------------------


def of_a_batch(case: Every, dtype: torch.dtype) -> Pairs:
    """``per_sample=True`` is a loop."""
    if case.each:
        images, each, one = images_of(case, dtype), case.make(per_sample=True), case.make()
        for seed in range(3):
            yield outcome(seed, each, images), outcome(seed, loop, one, images)


def of_one(case: Every, dtype: torch.dtype) -> Pairs:
    """``per_sample=True`` changes nothing for one image, a tensor or of PIL, also where its size is drawn."""
    if not case.draws or case.boxes:
        return
    image = images_of(case, dtype)[0]
    given = [image] if dtype != torch.uint8 else [image, functional.to_pil_image(image)]
    for x in given:
        for seed in range(2):
            yield tuple(
                result(lambda t=t, x=x: t(x), seed) for t in (case.make(per_sample=True), case.make())
            )


def by_keys(case: Every, dtype: torch.dtype) -> Pairs:
    """The draws of an image depend on its key alone: equal keys give equal images, in any company."""
    if not case.each:
        return
    image, other = images_of(case, dtype)[:2]
    found = ours.seeded(case.make(per_sample=True), KEYS)(torch.stack([image, other, image]))
    yield found[0], found[2]
    for x, key, out in zip((image, other), KEYS, found):
        random.seed(0), np.random.seed(0), torch.manual_seed(0)  # the global generators must not matter
        yield out, ours.seeded(case.make(), key)(x)


def under_vmap(case: Every, dtype: torch.dtype) -> Pairs:
    """The mode "different" is a loop, "same" gives each sample the same parameters, and "error" raises."""
    if not case.each:
        return
    images, transform = images_of(case, dtype), case.make()
    found = seeded(4, torch.vmap(transform, randomness="different"), images)
    yield found, seeded(4, loop, transform, images)
    found = seeded(4, torch.vmap(transform, randomness="same"), images)
    yield found, loop(lambda x: seeded(4, transform, x), images)
    with pytest.raises(RuntimeError, match="randomness must be 'same' or 'different' under vmap"):
        torch.vmap(transform)(images)


def by_a_generator(case: Every, dtype: torch.dtype) -> Pairs:
    """The draws are those of an equally seeded global generator, which is not advanced."""
    if not case.draws or case.boxes or isinstance(case, Container):
        return
    images = images_of(case, dtype)[:2]
    wanted = seeded(5, lambda t: [t(x) for x in images], case.make())
    state = seeded(99, torch.get_rng_state)
    again = case.make(generator=torch.Generator().manual_seed(5))
    yield [again(x) for x in images], wanted
    if case.each:
        own = torch.Generator().manual_seed(5)
        yield case.make(generator=own, per_sample=True)(images), torch.stack(wanted)
    yield torch.get_rng_state(), state


def by_parameters(case: Every, dtype: torch.dtype) -> Pairs:
    """Parameters that were sampled for an image or a batch are those of a call, and are applied to others, too."""
    if not case.draws or case.boxes:
        return
    images = images_of(case, dtype)
    calls = [(case.make(), images[0])]
    calls += [(case.make(per_sample=True), images)] if case.each else []
    for transform, given in calls:
        for seed in range(2):
            params = seeded(seed, transform.sample, given)
            state = torch.get_rng_state()
            for x in (given, given.flip(-1)):
                yield transform.apply(x, params), seeded(seed, transform, x)
            torch.set_rng_state(state)
            transform.apply(given, params)
            yield torch.get_rng_state(), state


def in_a_pipeline(case: Every, dtype: torch.dtype) -> Pairs:
    """In the middle and at the end, in the first call and in those after it, with the same draws and errors."""
    if case.boxes or dtype != torch.uint8:
        return
    image = picture(dtype, *case.size)
    modes = ("RGB", "L", *(("RGBA", "P") if case.name in OF_ANY_MODE else ()))
    frames = [functional.to_pil_image(image).convert(mode) for mode in modes]
    for x in (image, tv_tensors.Image(image), *frames):
        for rest in ([], [ours.RandomVerticalFlip(1.0)]):
            steps = [FLIP, case.make(), *rest]
            wanted, pipeline = result(lambda x=x, s=steps: one_by_one(s, x), 5), ours.Compose(steps)
            for _ in range(3):
                found = result(lambda x=x, p=pipeline: p(x), 5)
                yield (
                    found if not isinstance(found[0], str) else found[0],
                    (wanted if not isinstance(wanted[0], str) else wanted[0]),
                )


def pickled(case: Every, dtype: torch.dtype) -> Pairs:
    if not case.boxes:
        transform, image = case.applied(), images_of(case, dtype)[0]
        again = pickle.loads(pickle.dumps(transform))
        yield seeded(5, again, image), seeded(5, transform, image)
        yield repr(again), repr(transform)


def of_another_layout(case: Every, dtype: torch.dtype) -> Pairs:
    """Images of other strides have the levels of planar ones; floats differ by OpenCV's order of sums at most."""
    if case.boxes or case.name == "GaussianNoise":
        return  # it draws in the order of the memory, as torchvision's does
    transform, image = case.applied(), picture(dtype, *case.size)
    for seed, layout in enumerate(("interleaved", "interleaved", "interleaved-window", "transposed")):
        planar = image[:2] if seed == 1 and not words_of(case, 2) else image
        yield seeded(seed, transform, formatted(planar, layout)), seeded(seed, transform, planar)


def of_channels(case: Every, dtype: torch.dtype) -> Pairs:
    """A transform takes any number of channels, or refuses before it draws, also if it would not be applied."""
    if case.boxes:
        return
    for count in COUNTS:
        images, words = planes(count, dtype, (3,))[..., : case.size[0], : case.size[1]], words_of(case, count)
        calls = [(case.make(), images[0]), *([(case.make(per_sample=True), images)] if case.each else [])]
        for transform, given in calls if "fill" not in words else ():  # a fill is refused where it is used
            if words:
                state = seeded(count, torch.get_rng_state)
                check_raises(lambda t=transform, x=given: t(x), ValueError, words)
                yield torch.get_rng_state(), state
            else:
                out = seeded(count, transform, given)
                assert out.shape[-3] == (3 if case.name == "Grayscale" else count)
        if case.each and count == 5 and not words:
            yield outcome(3, calls[1][0], images), outcome(3, loop, calls[0][0], images)


def of_nothing(case: Every, dtype: torch.dtype) -> Pairs:
    """A batch without images comes out as one, also with draws for each sample and by keys."""
    if case.boxes:
        return
    one = images_of(case, dtype)[:1]
    calls = [case.applied()]
    calls += [case.applied(per_sample=True)] if case.each else []
    calls += [ours.seeded(calls[1], [])] if case.each else []
    for call in calls:
        yield seeded(0, call, one[:0]), seeded(0, calls[0], one)[:0]


#: Transforms that draw noise for each pixel of a clip, so that frames differ.
NOISY = ("GaussianNoise", "PixelDropout", "Noise", "SaltAndPepper", "Corruption", "random")
#: torchvision's functionals return videos unchanged, and so do imgops' transforms of the same names.
UNCHANGED = ("Grayscale", "RandomGrayscale")


def of_a_clip(case: Every, dtype: torch.dtype) -> Pairs:
    """Frames share the draw of their clip; a batch of clips ``(N, T, C, H, W)`` has the same, or one for each."""
    if case.boxes:
        return
    transform, frames = case.applied(), images_of(case, dtype, 2)
    for clip in (frames, frames.contiguous(memory_format=torch.channels_last)):
        out = seeded(3, transform, tv_tensors.Video(clip))
        assert type(out) is tv_tensors.Video and len(out) == 2
        several = seeded(3, transform, tv_tensors.Video(clip[None]))
        yield several[:, :0], out[None][:, :0]
        if case.each:  # a clip is one sample, and each of a batch has its own draws
            each, clips = case.applied(per_sample=True), torch.stack([clip, clip.flip(-1)])
            yield seeded(3, each, tv_tensors.Video(clip)), out
            torch.manual_seed(3)
            wanted = [transform(tv_tensors.Video(x)).as_subclass(Tensor) for x in clips]
            yield seeded(3, each, tv_tensors.Video(clips)).as_subclass(Tensor), torch.stack(wanted)
        if not any(part in str(case) for part in NOISY):
            yield several[0], out.as_subclass(Tensor)
            plain = clip if case.name in UNCHANGED else loop(lambda x: seeded(3, transform, x), clip)
            yield out.as_subclass(Tensor), plain


def of_pil(case: Every, dtype: torch.dtype) -> Pairs:
    """Added transforms give PIL images a tensor's pixels; tests/test_transforms.py has torchvision's."""
    if isinstance(case, Case) or dtype != torch.uint8 or not case.draws:
        return
    transform, image = case.applied(), picture(dtype, *case.size)
    for mode in ("RGB", "L"):
        frame = functional.to_pil_image(image).convert(mode)
        tensor = functional.pil_to_tensor(frame)
        wanted, _ = result(lambda x=tensor: transform(x), 5)
        found, _ = result(lambda x=frame: transform(x), 5)
        assert isinstance(found, str) == isinstance(wanted, str)
        if not isinstance(found, str):
            assert isinstance(found, PIL.Image.Image) and found.mode == mode
            yield functional.pil_to_tensor(found), wanted.contiguous()
    with pytest.raises((TypeError, ValueError)):
        transform(functional.to_pil_image(image).convert("P"))


def left_out(case: Every, dtype: torch.dtype) -> Pairs:
    """What is not chosen stays as it was, and has the gradient of the identity."""
    is_container = isinstance(case, Container)
    if not case.each or is_container or not hasattr(case.make(), "p") or case.id:
        return
    if case.name == "RandomAutocontrast":
        return  # which changes little of these images
    images = images_of(case, dtype, 10)
    never, options = images[0], {**case.options, "p": 0.0}
    made = getattr(ours, case.name)(**options)
    assert made(never) is never
    yield getattr(ours, case.name)(**options, per_sample=True)(images), images
    each = getattr(ours, case.name)(**{**options, "p": 0.5}, per_sample=True)
    leaf = images.clone().requires_grad_(dtype.is_floating_point)
    out = seeded(1, each, leaf)
    kept = [torch.equal(a, b) for a, b in zip(out, images)]
    assert 0 < sum(kept) < 10
    if out.requires_grad:
        (grad,) = torch.autograd.grad(out.sum(), leaf)
        for one, stays in zip(grad, kept):
            assert not stays or bool((one == 1).all())


#: Transforms that refuse boxes in torchvision, or that have another image for each call.
_IMAGES_ALONE = ("FDA", "HistogramMatching")


def takes_boxes(case: Every) -> bool:
    how = case.options.get("padding_mode")
    return not (case.policy or case.name in _IMAGES_ALONE or (how == "reflect" and isinstance(case, Case)))


def scenes(case: Every, dtype: torch.dtype) -> list[dict[str, Any]]:
    """Return samples with masks, keypoints and other numbers of boxes."""
    found = [sample(picture(dtype, *case.size, seed)) for seed in range(3)]
    for i, one in enumerate(found):
        one["boxes"] = tv_tensors.wrap(one["boxes"][: 1 + i % 2] + i, like=one["boxes"])
        del one["label"]
    return found


def joined(given: list[dict[str, Any]]) -> dict[str, Any]:
    """Return samples as a batch: boxes as a list, all else as one tensor."""
    first = given[0]
    batch = {
        n: tv_tensors.wrap(torch.stack([g[n] for g in given]), like=v)
        for n, v in first.items()
        if n != "boxes"
    }
    return batch | {"boxes": [g["boxes"] for g in given]}


def of_what_follows(case: Every, dtype: torch.dtype) -> Pairs:
    """Masks, keypoints and boxes, of each sample and nested, move as in a loop."""
    if not takes_boxes(case):
        return
    given, one = scenes(case, dtype), case.applied()
    alone = seeded(5, one, given[0])
    yield {k: type(v) for k, v in alone.items()}, {k: type(v) for k, v in given[0].items()}
    others = {
        "name": "a.png",
        "none": None,
        "array": np.arange(3),
        "labels": torch.arange(5),
        "object": object(),
    }
    beside = seeded(5, one, {**others, **given[0]})  # before the image, which is then not the first tensor
    assert all(beside[name] is value for name, value in others.items())
    yield beside["image"], alone["image"]
    if not case.draws:
        return
    moves = isinstance(case, Container) or getattr(ours, case.name)._moves
    if not moves or "Dropout" in case.name:
        yield (
            [alone[n] for n in ("mask", "boxes", "points")],
            [given[0][n] for n in ("mask", "boxes", "points")],
        )
    if not case.each:
        return
    each, batch = case.applied(per_sample=True), joined(given)
    for seed in range(2):
        found = seeded(seed, each, batch)
        torch.manual_seed(seed)
        wanted = [one(g) for g in given]
        yield found["boxes"], [w["boxes"] for w in wanted]
        for name in ("image", "mask", "points"):
            yield found[name].as_subclass(Tensor), torch.stack([w[name].as_subclass(Tensor) for w in wanted])
        assert found["points"].canvas_size == wanted[0]["points"].canvas_size
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested = torch.nested.nested_tensor([b.as_subclass(Tensor) for b in batch["boxes"]])
        boxes = nested.as_subclass(tv_tensors.BoundingBoxes)
        boxes.__dict__.update(batch["boxes"][0].__dict__)
        moved = seeded(1, each, {**batch, "boxes": boxes})["boxes"]
        assert moved.canvas_size == found["boxes"][0].canvas_size
        yield list(moved.as_subclass(Tensor).unbind()), [b.as_subclass(Tensor) for b in found["boxes"]]


def of_no_objects(case: Every, dtype: torch.dtype) -> Pairs:
    if not takes_boxes(case) or case.boxes or dtype != torch.uint8:
        return
    canvas = {"canvas_size": case.size}
    for of in (torch.uint8, torch.bool, torch.int64):
        given = {
            "image": tv_tensors.Image(picture(dtype, *case.size)),
            "mask": tv_tensors.Mask(torch.zeros(0, *case.size, dtype=of)),
            "boxes": tv_tensors.BoundingBoxes(torch.zeros(0, 4), format="XYXY", **canvas),
            "points": tv_tensors.KeyPoints(torch.zeros(0, 2), **canvas),
        }
        out = seeded(1, case.applied(), given)
        size = tuple(out["image"].shape[-2:])
        yield out["mask"], tv_tensors.Mask(torch.zeros(0, *size, dtype=of))
        yield [tuple(out[n].shape) for n in ("boxes", "points")], [(0, 4), (0, 2)]
    if case.each:
        both = {"image": images_of(case)[:2], "mask": tv_tensors.Mask(torch.zeros(2, 0, *case.size))}
        out = seeded(1, case.applied(per_sample=True), both)
        yield tuple(out["mask"].shape), (2, 0, *out["image"].shape[-2:])


CALLS: dict[str, Callable[[Every, torch.dtype], Pairs]] = {
    call.__name__: call
    for call in (
        *(of_a_batch, of_one, by_keys, under_vmap, by_a_generator, by_parameters, in_a_pipeline, pickled),
        *(
            of_another_layout,
            of_channels,
            of_nothing,
            of_a_clip,
            of_pil,
            left_out,
            of_what_follows,
            of_no_objects,
        ),
    )
}


#: The turn of each pair in `make test`: it makes a third of the calls of the first case of a transform, with one dtype.
TURNS = {(call, str(case)): n + 2 * m for n, case in enumerate(FIRST) for m, call in enumerate(CALLS)}


def is_quick(pair: tuple[str, Every]) -> bool:
    call, turn = pair[0], TURNS.get((pair[0], str(pair[1])))
    return turn is not None and (call == "of_a_batch" or turn % 3 == 0)


@pytest.mark.parametrize(("call", "case"), nightly_unless(is_quick, product(CALLS, EVERY)), ids=str)
def test_calls(case: Every, call: str, whole: bool) -> None:
    turn = TURNS.get((call, str(case)), 0) % 2
    for dtype in case.dtypes if whole else case.dtypes[turn:][:1] or case.dtypes:
        for found, wanted in CALLS[call](case, dtype):
            same(found, wanted, (str(case), call, dtype), 2e-6)


# -- graphs ----------------------------------------------------------------------------------------------


def shared_draws(case: Every) -> tuple[Any, Any] | None:
    return None if case.boxes else (case.make(), images_of(case).requires_grad_(torch.float32 in case.dtypes))


def draws_of_each(case: Every) -> tuple[Any, Any] | None:
    return (case.make(per_sample=True), shared_draws(case)[1]) if case.each else None


def all_that_follows(case: Every) -> tuple[Any, Any] | None:
    """Return boxes in every format, masks and keypoints next to the image."""
    if not takes_boxes(case):
        return None
    formats = zip(("XYXY", "XYWH", "CXCYWH"), followers.ANGLED)
    given = [followers.sample(case.size, upright=u, angled=a) for u, a in formats]
    image = tv_tensors.Image(picture(torch.uint8, *case.size))
    boxes = [g[name] for g in given for name in ("boxes", "angled")]
    return case.applied(), {"image": image, "boxes": boxes, **{n: given[0][n] for n in ("masks", "points")}}


def batches_of_boxes(case: Every) -> tuple[Any, Any] | None:
    return (
        (case.applied(per_sample=True), joined(scenes(case, torch.uint8)))
        if takes_boxes(case) and case.each
        else None
    )


def masks_of_no_objects(case: Every) -> tuple[Any, Any] | None:
    masks = tv_tensors.Mask(torch.zeros(0, *case.size, dtype=torch.uint8))
    return (
        (case.applied(), [picture(torch.uint8, *case.size), masks])
        if case in WITH_TWINS and not case.boxes
        else None
    )


def clips(case: Every) -> tuple[Any, Any] | None:
    if case.boxes or case.name == "RandomGrayscale":  # which torchvision does not apply to clips
        return None
    return case.applied(), tv_tensors.Video(images_of(case, torch.uint8, 2))


def batches_of_nothing(case: Every) -> tuple[Any, Any] | None:
    return (case.make(per_sample=True), images_of(case)[:0]) if case.each else None


#: Form of an input -> a function that returns the transform of a case and its input, or None.
FORMS: dict[str, Callable[[Every], tuple[Any, Any] | None]] = {
    form.__name__: form
    for form in (
        *(shared_draws, draws_of_each, all_that_follows, batches_of_boxes),
        *(masks_of_no_objects, clips, batches_of_nothing),
    )
}


def tensors_of(value: Any) -> list[Tensor]:
    return [x.as_subclass(Tensor) for x in tree_leaves(value) if isinstance(x, Tensor)]


def places_of(x: Tensor) -> float:
    """Return a sum that differs, too, where the same values have other places."""
    return float(x.detach().double().flatten() @ torch.arange(1.0, x.numel() + 1, dtype=torch.float64))


def check_graph(
    made: dict[str, tuple[Any, Any]], least: int, drawing: Iterable[str] = (), backend: str = "aot_eager"
) -> None:
    """Compare the results, draws and gradients of one graph of many transforms with those of eager mode.

    A number of calls are compared at least, and up to 16 until those that are ``drawing`` have had two results.
    """
    transforms = {name: transform for name, (transform, _) in made.items()}
    inputs = {name: (given,) for name, (_, given) in made.items()}
    graph, counting = compile_together(transforms, backend, inputs="own")
    drawn: dict[str, set[str]] = {name: set() for name in made}
    for seed in range(16):
        if seed >= least and all(len(drawn[name]) > 1 for name in drawing):
            break
        found, wanted = (outcome(seed, f, inputs) for f in (graph, apart(transforms)))
        same(found[1], wanted[1], "the next draw")
        for name in made:
            same(found[0][name], wanted[0][name], (name, seed), 2e-6)
            drawn[name].add(repr([places_of(x) for x in tensors_of(found[0][name])]))
    leaves = [x for x in tensors_of(inputs) if x.requires_grad]
    if leaves:
        pairs = [[x for x in tensors_of(out[0]) if x.requires_grad] for out in (found, wanted)]
        grads = [
            torch.autograd.grad(sum(x.square().sum() for x in xs), leaves, allow_unused=True) for xs in pairs
        ]
        for a, b in zip(*grads, strict=True):
            torch.testing.assert_close(a, b, equal_nan=True)
    assert counting.count <= 2, f"{counting.count} compilations"
    assert not [name for name in drawing if len(drawn[name]) == 1], "every call draws the same"


@needs_classes
@pytest.mark.parametrize("cases", groups(FIRST))
def test_a_graph_of_every_transform(cases: list[Every]) -> None:
    """Of an image alone, which is what compiles fastest."""
    inputs = [scenes(c, torch.uint8)[0] if c.boxes else picture(c.dtypes[-1], *c.size) for c in cases]
    made = {str(case): (case.make(), given) for case, given in zip(cases, inputs)}
    check_graph(made, 2, backend="eager")


#: The forms in which the arguments of a transform decide nothing more: the first case of each stands for the others.
_OF_CLASSES = ("batches_of_boxes", "masks_of_no_objects", "clips", "batches_of_nothing")


@nightly
@needs_classes
@pytest.mark.parametrize(
    ("form", "cases"),
    [
        pytest.param(form, *part.values, id=f"{form}-{part.id}")
        for form in FORMS
        for part in groups(FIRST if form in _OF_CLASSES else [*CASES, *ROWS, *CONTAINERS])
    ],
)
def test_graphs(form: str, cases: list[Every]) -> None:
    made = {str(c): pair for c in cases if (pair := FORMS[form](c)) is not None}
    drawing = {str(c) for c in cases if c.draws and c.name != "RandomAutocontrast"}  # which changes little
    if made:
        check_graph(made, 4, drawing & made.keys() if form in ("shared_draws", "draws_of_each") else ())


@nightly
@pytest.mark.parametrize("cases", groups((c for c in [*CASES, *ROWS] if c.draws and not c.boxes), 12))
def test_generators_in_a_graph(cases: list[Every]) -> None:
    """The draws are those of an equally seeded global generator, which is not advanced."""
    wanted = {str(case): seeded(5, lambda t, x: [t(x), t(x)], case.make(), images_of(case)) for case in cases}
    calls = {str(case): case.make(generator=torch.Generator().manual_seed(5)) for case in cases}
    graph, _ = compile_together(calls, inputs="own")
    state = torch.get_rng_state()
    for i in range(2):
        for name, value in graph({str(case): (images_of(case),) for case in cases}).items():
            same(value, wanted[name][i], name, 2e-6)
    same(torch.get_rng_state(), state, "the state")


# -- gradients -----------------------------------------------------------------------------------------

DIFFERENTIABLE = [c for c in EVERY if c.gradient and not c.id.endswith("-3")]


@pytest.mark.parametrize("case", nightly_unless(FIRST.__contains__, DIFFERENTIABLE), ids=str)
def test_gradients(case: Every) -> None:
    """They match finite differences, of a single image and of samples with draws of their own."""
    generator = torch.Generator().manual_seed(3)
    height, width = (7, 7 if case.size[0] == case.size[1] else 9) if isinstance(case, Row) else (6, 7)
    image = (
        torch.rand(2, 3, height, width, dtype=torch.float64, generator=generator) * 0.8 + 0.1
    ).requires_grad_()
    small = (
        {"size": 5}
        if case.name == "RandomCrop"
        else {"kernel_size": 3}
        if case.name == "GaussianBlur"
        else {}
    )
    more = {"p": 1.0} if isinstance(case, Row) and case.per_sample else {}
    transform = getattr(ours, case.name)(**{**case.options, **small, **more})
    for seed in (0, 3):
        assert torch.autograd.gradcheck(lambda x: seeded(seed, transform, x), (image,), fast_mode=True)
    if case.each:
        each = getattr(ours, case.name)(**{**case.options, **small}, per_sample=True)
        assert torch.autograd.gradcheck(lambda x: seeded(1, each, x), (image,), fast_mode=True)
