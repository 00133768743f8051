"""Every name of torchvision.transforms.v2: transforms without draws, generators, replays, batches with boxes, vmap."""

from __future__ import annotations

import copy
import inspect
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torchvision import tv_tensors
from torchvision.transforms import v2

import imgops
from imgops import transforms as ours
from tests.checks import bits_equal
from tests.groups import apart, compile_together, compiled
from tests.tiers import every_night, nightly
from tests.transform_cases import CASES, needs_classes, picture, same, sample, seeded


def whole() -> dict[str, Any]:
    given = sample(picture())
    given.pop("label")
    return given


def with_instances() -> dict[str, Any]:
    given = whole()
    given["mask"] = tv_tensors.Mask(torch.arange(2 * 40 * 52, dtype=torch.int64).reshape(2, 40, 52))
    given["boxes"][1, 2] = 10.0  # a box without a width
    given["labels"] = torch.tensor([4, 7])
    return given


#: Transforms that sample nothing: their arguments, and their input.
STILL: dict[str, tuple[dict[str, Any], Callable[[], Any]]] = {
    "CenterCrop": ({"size": 20}, whole),
    "ClampBoundingBoxes": ({}, whole),
    "ClampKeyPoints": ({}, whole),
    "ConvertBoundingBoxFormat": ({"format": "CXCYWH"}, whole),
    "ConvertImageDtype": ({}, picture),
    "FiveCrop": ({"size": 20}, lambda: tv_tensors.Image(picture())),
    "Grayscale": ({"num_output_channels": 3}, whole),
    "Identity": ({}, whole),
    "Lambda": ({"lambd": torch.neg}, lambda: {"a": picture(), "b": torch.ones(3)}),
    "LinearTransformation": (
        {"transformation_matrix": torch.eye(12) * 2, "mean_vector": torch.ones(12)},
        lambda: tv_tensors.Image(picture(torch.float32)[:, :2, :2]),
    ),
    "Normalize": ({"mean": [0.5] * 3, "std": [0.2] * 3}, lambda: tv_tensors.Image(picture(torch.float32))),
    "Pad": ({"padding": [1, 2]}, whole),
    "PILToTensor": ({}, whole),
    "RGB": ({}, lambda: tv_tensors.Image(picture()[:1])),
    "Resize": ({"size": 20}, whole),
    "SanitizeBoundingBoxes": ({}, with_instances),
    "SanitizeKeyPoints": ({}, whole),
    "SetClampingMode": ({"clamping_mode": "hard"}, whole),
    "TenCrop": ({"size": 20}, lambda: tv_tensors.Image(picture())),
    "ToDtype": ({"dtype": torch.float32, "scale": True}, whole),
    "ToImage": ({}, picture),
    "ToPILImage": ({}, picture),
    "ToPureTensor": ({}, whole),
    "ToTensor": ({}, lambda: picture().permute(1, 2, 0).numpy()),
    "UniformTemporalSubsample": (
        {"num_samples": 3},
        lambda: tv_tensors.Video(torch.stack([picture(seed=s) for s in range(7)])),
    ),
}
#: Transforms that PyTorch cannot trace, because a graph has no PIL images.
NOT_IN_A_GRAPH = ("ToPILImage", "ToTensor")
CONTAINERS = {"Compose", "RandomApply", "RandomChoice", "RandomOrder", "MixUp", "CutMix"}


def test_every_name_has_a_case() -> None:
    assert {*STILL, *CONTAINERS, *(c.name for c in CASES)} == set(ours.OURS)


@pytest.mark.filterwarnings("ignore:The transform `ToTensor")
@pytest.mark.parametrize("name", STILL)
def test_transforms_that_sample_nothing(name: str) -> None:
    options, given = STILL[name]
    if not hasattr(v2, name):
        pytest.skip("a newer torchvision has it")
    mine, theirs = (getattr(m, name)(**options) for m in (ours, v2))
    wanted = theirs(given())
    same(mine(given()), wanted, name, 1e-4, levels=1)
    if name != "SanitizeKeyPoints":  # torchvision's own one has a lambda
        same(pickle.loads(pickle.dumps(mine))(given()), wanted, name, 1e-4, levels=1)


@nightly
@needs_classes
def test_transforms_that_sample_nothing_in_a_graph() -> None:
    calls = {n: getattr(ours, n)(**options) for n, (options, _) in STILL.items() if n not in NOT_IN_A_GRAPH}
    inputs = {name: (STILL[name][1](),) for name in calls}
    graph, counting = compile_together(calls, inputs="own")
    for _ in range(2):
        same(graph(inputs), apart(calls)(inputs), "in a graph", 1e-4)
    assert counting.count <= 1


def test_a_name_that_is_not_there_is_answered_by_one_that_is() -> None:
    for name, meant in (
        ("HorizontalFlip", "RandomHorizontalFlip"),
        ("ColorJiter", "ColorJitter"),
        ("Rotate", "RandomRotation"),
    ):
        with pytest.raises(
            AttributeError, match=rf"'imgops\.transforms' has no attribute '{name}'; did.*'{meant}'"
        ):
            getattr(ours, name)
    with pytest.raises(AttributeError, match=r"'imgops\.transforms' has no attribute 'qqqq'$"):
        getattr(ours, "q" * 4)


@needs_classes
def test_a_temporal_subsample_is_of_videos() -> None:
    """An image next to a video stays as it is, because it has no time dimension."""
    given = {**whole(), "video": tv_tensors.Video(torch.arange(5 * 12).reshape(5, 3, 2, 2))}
    image = tv_tensors.Image(picture())
    alone = ours.UniformTemporalSubsample(2)
    for inputs in (given, image, given["video"], given["mask"], torch.zeros(4, 3, 2, 2)):
        for transform in (alone, ours.Compose([ours.RandomHorizontalFlip(0.0), alone])):
            same(transform(inputs), v2.UniformTemporalSubsample(2)(inputs), "a subsample")


def sized_pipelines() -> dict[str, list[Any]]:
    """Return pipelines of detectors, with steps that may follow a size that is not known."""
    color = ours.ColorJitter(0.3, 0.3, 0.3, 0.1)
    to_floats = ours.ToDtype(torch.float32, scale=True)
    return {
        "large scale jitter": [
            *(ours.ScaleJitter((64, 64)), ours.RandomCrop(48, pad_if_needed=True, fill=3)),
            *(ours.RandomHorizontalFlip(), to_floats),
        ],
        "SSD": [
            *(ours.RandomPhotometricDistort(), ours.RandomZoomOut(fill=7), ours.RandomIoUCrop()),
            *(ours.RandomHorizontalFlip(), ours.SanitizeBoundingBoxes(), to_floats),
        ],
        "many scales": [
            *(ours.RandomShortestSize([30, 40, 50], max_size=80), ours.RandomVerticalFlip(), color),
            *(ours.GaussianBlur(3), ours.RandomRotation(20), ours.RandomInvert()),
        ],
        "geometry": [
            *(ours.RandomResize(30, 60), ours.RandomAffine(10), ours.RandomPerspective(), ours.Pad(2)),
            ours.CenterCrop(40),
        ],
        "sizes of sizes": [ours.RandomResize(30, 60), ours.Resize(33), ours.Resize(20, max_size=25)],
        "fields": [
            ours.RandomResize(30, 60),
            ours.ElasticTransform(),
            ours.RandomGrayscale(),
            ours.JPEG((20, 60)),
        ],
    }


@nightly
@needs_classes
@pytest.mark.parametrize("name", sized_pipelines())
def test_what_follows_a_dynamic_size(name: str) -> None:
    """One graph serves images of every size, and any number of boxes that stay."""
    pipeline, given = ours.Compose(sized_pipelines()[name]), {**whole(), "labels": torch.tensor([4, 7])}
    graph, counting = compiled(pipeline)
    sizes, counts = set(), set()
    for seed in range(50):
        found = seeded(seed, graph, given)
        if seed % 4 == 0:
            same(found, seeded(seed, pipeline, given), name, 1e-4, levels=1)
        sizes.add(found["image"].shape), counts.add(len(found["boxes"]))
    assert counting.count <= 2 and (len(counts) > 1) == (name == "SSD")
    assert len(sizes) > 2 or name in ("large scale jitter", "geometry", "sizes of sizes")


# -- generators --------------------------------------------------------------------------------


def test_a_generator_is_copied_and_pickled_with_its_state() -> None:
    flip = ours.RandomRotation(30, generator=torch.Generator().manual_seed(3))
    image = picture()
    for again in (copy.deepcopy(flip), pickle.loads(pickle.dumps(flip))):
        state = flip.generator.get_state()
        wanted = [flip(image) for _ in range(3)]
        assert all(bits_equal(again(image), w) for w in wanted)
        flip.generator.set_state(state)
    with pytest.raises(TypeError, match="RandomRotation: generator must be a torch"):
        ours.RandomRotation(30, generator=3)


def test_generators_of_containers_and_mixes() -> None:
    image = picture()
    flips = [v2.functional.horizontal_flip, v2.functional.vertical_flip, v2.functional.invert]
    for name in ("RandomApply", "RandomChoice", "RandomOrder"):
        global_one = getattr(ours, name)(flips)
        own = getattr(ours, name)(flips, generator=torch.Generator().manual_seed(8))
        torch.manual_seed(8)
        wanted = [global_one(image) for _ in range(6)]
        assert all(bits_equal(own(image), w) for w in wanted)
    images, labels = torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 1])
    for name in ("MixUp", "CutMix"):
        wanted = seeded(4, getattr(v2, name)(num_classes=3), images, labels)
        own = getattr(ours, name)(num_classes=3, generator=torch.Generator().manual_seed(4))
        for a, b in zip(own(images, labels), wanted):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-6)


# -- arguments ---------------------------------------------------------------------------------


_PUBLIC = {n: getattr(module, n) for module in (imgops, ours) for n in dir(module) if not n.startswith("_")}
PUBLIC = {
    name: value
    for name, value in _PUBLIC.items()
    if (inspect.isclass(value) and hasattr(ours, name) and name != "Any")
    or (inspect.isfunction(value) and value.__module__.startswith("imgops."))
}
#: Functions that take any number of arguments by nature: those of an operator for ``inverse``, types for the others.
_ANY_NUMBER = {"inverse", "has_any", "has_all", "Lambda"}


def documented(value: Any) -> list[str]:
    """Return the names under "Parameters" in a docstring."""
    _, _, rest = inspect.cleandoc(value.__doc__ or "").partition("Parameters\n----------\n")
    lines = itertools.takewhile(
        lambda pair: not pair[1].startswith("---"), itertools.pairwise(rest.split("\n"))
    )
    heads = [line.split(" : ")[0] for line, _ in lines if line and not line.startswith(" ")]
    return [name.strip(" *") for head in heads for name in head.split(",")]


@pytest.mark.parametrize("name", PUBLIC)
def test_arguments_are_shown_and_documented(name: str) -> None:
    """All of them, and no others are taken."""
    value, parameters = PUBLIC[name], inspect.signature(PUBLIC[name]).parameters
    if inspect.isfunction(value) or name in (*ours.OURS, *ours.ADDED):
        assert documented(value) == list(parameters)
    if name not in _ANY_NUMBER:
        assert not {p.kind for p in parameters.values()} & {2, 4}  # *args and **keywords
    if inspect.isclass(value):
        wanted = dict.fromkeys((n for n, p in parameters.items() if p.default is p.empty), 1)
        with pytest.raises(TypeError, match=r"unexpected keyword|positional|takes no|no_such|subclass"):
            value(**wanted, no_such=1)


# -- the same parameters again -----------------------------------------------------------------


def test_the_parameters_of_a_mix_are_applied_again() -> None:
    """``apply`` of a function is the method of torch.nn.Module."""
    images, labels, mix, seen = (
        torch.rand(4, 3, 8, 8),
        torch.tensor([0, 1, 2, 1]),
        ours.MixUp(num_classes=3),
        [],
    )
    params = seeded(3, mix.sample, (images, labels))
    same(mix.apply((images, labels), params), seeded(3, mix, images, labels), "MixUp")
    ours.Compose([mix]).apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Compose"]


# -- vmap --------------------------------------------------------------------------------------


@nightly
@pytest.mark.parametrize("mode", ["different", *every_night("same", "error")])
def test_vmap_in_a_graph(mode: str) -> None:
    """A graph has the draws of eager mode: the transforms that share a way to sample are one function."""
    images = torch.stack([picture(torch.float32, seed=s) for s in range(4)])
    jitter = ours.ColorJitter(0.4)
    steps = [
        ours.RandomHorizontalFlip(),
        jitter,
        ours.RandomAffine(20),
        ours.RandomErasing(),
        ours.GaussianNoise(),
    ]
    pipeline = ours.Compose([ours.RandomApply(steps[:2]), ours.RandomChoice(steps[2:4])])

    def call(images: Tensor, labels: Tensor) -> Any:
        outs = [torch.vmap(t, randomness=mode)(images) for t in (*steps, pipeline)]
        behind = torch.vmap(lambda x, y: jitter((x, y)), (None, 0), randomness=mode)(images[0], labels)
        return outs, behind[0]

    labels = torch.arange(4)
    graph = torch.compile(call, fullgraph=True, backend="aot_eager")
    if mode == "error":
        with pytest.raises(Exception, match="randomness must be 'same' or 'different' under vmap"):
            graph(images, labels)
        return
    for seed in range(3):
        found, wanted = (tree_leaves(seeded(seed, f, images, labels)) for f in (graph, call))
        for a, b in zip(found, wanted, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-5)


def test_gradients_of_an_elastic_transform() -> None:
    """Gradients to the image and to alpha match finite differences."""
    image = torch.rand(
        3, 7, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1)
    ).requires_grad_()
    alpha = torch.tensor([2.3, 1.7], dtype=torch.float64).requires_grad_()

    def moved(image: Tensor, alpha: Tensor) -> Tensor:
        return seeded(3, ours.ElasticTransform(alpha, sigma=1.0), image)

    assert torch.autograd.gradcheck(moved, (image, alpha), fast_mode=True)
    assert bits_equal(
        moved(image.detach().float(), torch.tensor([50.0, 50.0])),
        seeded(3, ours.ElasticTransform(50.0, sigma=1.0), image.detach().float()),
    )


@pytest.mark.parametrize("p", [0, 1, 0.2, np.float32(0.2), np.float64(0.7), torch.tensor(0.2), True], ids=str)
def test_probabilities_of_every_kind(p: Any) -> None:
    image = picture()
    mine, theirs, later = ours.RandomInvert(p), v2.RandomInvert(p), ours.RandomInvert(0.5)
    later.p = p
    for seed in range(40):
        wanted = seeded(seed, theirs, image)
        assert all(torch.equal(seeded(seed, transform, image), wanted) for transform in (mine, later))
    if isinstance(p, Tensor):  # which may change in place
        each = ours.Compose([ours.RandomInvert(p, per_sample=True)])
        calls = mine, ours.Compose([mine, ours.RandomInvert(0.0)]), lambda x: each(x[None])[0]
        for value in (0.0, 1.0, 0.0):
            p.fill_(value)
            assert all(torch.equal(call(image), 255 - image if value else image) for call in calls * 3)


#: Public members that a transform has in addition to torchvision's and to its arguments.
PUBLIC_MEMBERS = {
    "apply",
    "forward",
    "generator",
    "invert",
    "per_sample",
    "sample",
    "warn_if_nothing_changes",
}


@pytest.mark.parametrize("name", [*ours.OURS, *ours.ADDED])
def test_public_members_are_those_of_the_page(name: str) -> None:
    cls = getattr(ours, name)
    theirs = {
        *dir(getattr(v2, name, v2.Transform)),
        *dir(torch.nn.Module),
        *inspect.signature(cls).parameters,
    }
    more = {n for n in dir(cls) if not n.startswith("_")} - theirs - PUBLIC_MEMBERS
    assert {n for n in more if f"``{name}.{n}``" not in str(cls.__doc__)} == set()
