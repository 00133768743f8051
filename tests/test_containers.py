"""Every transform inside of every container: graphs and per-sample draws give the results of eager mode, call after call."""

from __future__ import annotations

import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from itertools import cycle, product
from typing import Any

import PIL.Image
import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map
from torchvision import tv_tensors
from torchvision.transforms import v2 as reference

import imgops
from imgops import transforms as ours
from imgops.transforms._core.base import RandomTransform
from tests.added_cases import ROWS
from tests.checks import difference
from tests.followers import Boxes, Image, Points, objects, rows, stack
from tests.groups import compile_together, groups, together
from tests.tiers import nightly, nightly_unless
from tests.transform_cases import CASES, needs_classes, outcome, picture, same, seeded

SEEDS = range(4)

#: name -> a transform of a batch of images that keeps its shape.
OF_IMAGES: dict[str, Callable[[], Any]] = {
    **{str(c): lambda c=c: c.make(ours) for c in CASES if not (c.sized or c.boxes)},
    **{str(r): lambda r=r: r.make(p=1.0) for r in ROWS if r.per_sample},
    "RandomCrop of the image's size": lambda: ours.RandomCrop(40, padding=3),
    "RandomCrop behind a reflection": lambda: ours.RandomCrop(
        40, padding=[1, 2, 3, 4], padding_mode="reflect"
    ),
    "Normalize": lambda: ours.Normalize([0.5] * 3, [0.25] * 3),
    "Identity": lambda: ours.Identity(),
    "Compose": lambda: ours.Compose([ours.RandomHorizontalFlip(), ours.ColorJitter(0.3)]),
    "RandomApply": lambda: ours.RandomApply([ours.RandomVerticalFlip(1.0)]),
    "Lambda": lambda: ours.Lambda(lambda x: 1 - x),
}
#: Transforms that join several samples, or mix the samples of a batch, with labels.
MIXING: dict[str, Callable[[], Any]] = {
    "MixUp": lambda: ours.MixUp(num_classes=3),
    "CutMix": lambda: ours.CutMix(num_classes=3),
    "flip, then MixUp": lambda: ours.Compose([ours.RandomHorizontalFlip(), ours.MixUp(num_classes=3)]),
}
IMAGES = torch.stack([picture(seed=s) for s in range(4)])
LABELS = {"indices": torch.tensor([0, 1, 2, 1]), "shares": torch.eye(3)[[0, 1, 2, 1]]}


def contain(container: str, first: Any, second: Any, per_sample: bool) -> Any:
    how = {"per_sample": True} if per_sample else {}
    if container == "RandomApply":
        return ours.RandomApply([first], p=0.5, **how)
    return getattr(ours, container)([first, second], **how)


def assert_graph_is_eager(transform: Any, *inputs: Any) -> None:
    torch.compiler.reset()
    graph = torch.compile(transform, fullgraph=True, backend="eager")
    for seed in SEEDS:
        same(outcome(seed, graph, *inputs), outcome(seed, transform, *inputs), seed, 2e-6)


#: Six ways to hold a transform, of which each transform has one.
WAYS = list(product(("RandomApply", "RandomChoice", "RandomOrder"), ("shared", "per_sample")))
HELD = [(name, *way) for name, way in zip(OF_IMAGES, cycle(WAYS), strict=False)]


@nightly
@pytest.mark.parametrize("held", groups(HELD))
def test_transforms_of_images(held: list[tuple[str, str, str]]) -> None:
    images = torch.stack([picture(torch.float32, seed=s)[..., :40, :40] for s in range(3)])
    made: dict[str, Any] = {}
    for name, container, how in held:
        transform = OF_IMAGES[name]()
        with torch.no_grad():
            changes_shape = seeded(0, transform, images).shape != images.shape
        if changes_shape and container != "RandomChoice":
            continue  # transforms that may be left out keep the shape: tested below
        other = OF_IMAGES[name]() if changes_shape else ours.RandomVerticalFlip(1.0)
        made["-".join((name, container, how))] = contain(container, transform, other, how == "per_sample")
    graph, _ = compile_together(made, "eager")
    for seed in SEEDS:
        same(*(outcome(seed, f, images) for f in (graph, together(made))), seed, 2e-6)


@nightly
@pytest.mark.parametrize("p", [[1.0, 0.0], [0.0, 1.0]])
def test_the_weights_of_a_choice_count(p: list[float]) -> None:
    images = torch.stack([picture(seed=s) for s in range(4)])
    choice = ours.RandomChoice([ours.MixUp(num_classes=3), ours.CutMix(num_classes=3)], p=p)
    graph = torch.compile(choice, fullgraph=True, backend="eager")
    for seed in SEEDS:
        _, labels = seeded(seed, graph, images, LABELS["indices"])
        assert ((labels > 0).sum(1) <= 2).all(), "labels of one mix have two classes at most"
        assert torch.allclose(labels.sum(1), torch.ones(4))


def mixed(container: str, name: str, per_sample: bool) -> Any:
    return contain(container, MIXING[name](), ours.CutMix(num_classes=3), per_sample)


_MIX, _PASTE, _MOSAIC = ours.MixUp(num_classes=3), ours.CopyPaste(p=1.0), ours.Mosaic(size=48)
_SCENES = [objects("XYXY", seed) for seed in range(4)]
_GROWS = ours.RandomZoomOut(side_range=(1.5, 1.5), p=1.0)
#: Transforms and their inputs, for which a graph has the results of eager mode. `make test` takes every fourth.
IN_GRAPHS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    **{
        f"{container} of {name} with {labels}, {per_sample=}": (
            mixed(container, name, per_sample),
            (IMAGES, LABELS[labels]),
        )
        for name, container, labels, per_sample in product(
            MIXING, ("RandomApply", "RandomChoice", "RandomOrder"), LABELS, (False, True)
        )
        if (container, labels) != ("RandomApply", "indices")  # which is refused, below
    },
    # What is never or always applied may change the labels.
    **{
        f"RandomApply of MixUp, {p=}, {per_sample=}": (
            ours.RandomApply([_MIX], p=p, per_sample=per_sample),
            (IMAGES, LABELS["indices"]),
        )
        for p, per_sample in product((0.0, 1.0), (False, True))
    },
    "a choice of CopyPaste": (ours.RandomChoice([_PASTE, ours.CopyPaste(p=1.0)]), (_SCENES[:2],)),
    "CopyPaste, never": (ours.RandomApply([_PASTE], p=0.0), (_SCENES[:2],)),
    "CopyPaste, always": (ours.RandomApply([_PASTE], p=1.0), (_SCENES[:2],)),
    "a choice of Mosaic": (ours.RandomChoice([_MOSAIC, ours.Mosaic(size=48)]), (_SCENES,)),
    "Mosaic, never": (ours.RandomApply([_MOSAIC], p=0.0), (_SCENES,)),
    "Mosaic, always": (ours.RandomApply([_MOSAIC], p=1.0), (_SCENES,)),
    **{
        f"an Image that {type(made).__name__} may leave": (
            ours.RandomApply([made]),
            (tv_tensors.Image(picture(torch.float32)),),
        )
        for made in (ours.Normalize([0.5] * 3, [0.5] * 3), ours.Grayscale(3))
    },
    "after a size that depends on a draw": (
        ours.Compose(
            [
                _GROWS,
                ours.RandomOrder([ours.RandomVerticalFlip(), ours.RandomInvert()]),
                ours.RandomOrder([ours.Compose([ours.CenterCrop(12)])]),
            ]
        ),
        (picture(torch.float32),),
    ),
}


@needs_classes
@pytest.mark.parametrize("name", nightly_unless(list(IN_GRAPHS)[::9].__contains__, IN_GRAPHS))
def test_graphs(name: str) -> None:
    transform, inputs = IN_GRAPHS[name]
    assert_graph_is_eager(transform, *inputs)


def test_what_is_never_or_always_applied_may_change_the_labels() -> None:
    for p, per_sample in product((0.0, 1.0), (False, True)):
        out, labels = ours.RandomApply([_MIX], p=p, per_sample=per_sample)(IMAGES, LABELS["indices"])
        assert (labels.ndim == 2) == bool(p) and (p or torch.equal(out, IMAGES))
    assert len(seeded(0, ours.RandomApply([_PASTE], p=0.0), _SCENES[:2])) == 2


_CROPS = [ours.RandomResizedCrop(8), ours.RandomResizedCrop(9)]
_LEFT_OUT = "RandomApply: transforms that may be left out must keep the structure"
_SIZES_OF = (ours.Resize((12, 12)), ours.RandomCrop(12))
#: Error -> a pattern of its text -> the calls whose graph raises it, each with its inputs.
REFUSED_BY_GRAPHS: dict[type[Exception], dict[str, list[tuple[Any, ...]]]] = {
    ValueError: {
        _LEFT_OUT: [
            *(
                (mixed("RandomApply", name, each), IMAGES, LABELS["indices"])
                for name, each in product(MIXING, (False, True))
            ),
            (ours.RandomApply([_PASTE]), _SCENES[:2]),
            (ours.RandomApply([_MOSAIC]), _SCENES),
        ],
        "RandomChoice: transforms must give results of .* got RandomResizedCrop": [
            (ours.RandomChoice(_CROPS, per_sample=each), IMAGES) for each in (False, True)
        ],
        "RandomApply: transforms that may be left out .* got RandomResizedCrop: 40 x 52 to 8 x 8": [
            (ours.RandomApply(_CROPS[:1], per_sample=each), IMAGES) for each in (False, True)
        ],
        **{
            f"RandomApply: transforms that may be left out .*{type(change).__name__}": [
                (ours.RandomChoice([ours.RandomApply([change]), ours.Resize((12, 12))]), IMAGES[0])
            ]
            for change in _SIZES_OF
        },
        "RandomApply: .* got <lambda>: another str, which is not a Tensor": [
            (ours.RandomApply([lambda image, name: (image, name.upper())]), IMAGES, "a.png")
        ],
        r"resize: size must have 2 integers \(height, width\), got 1": [
            (lambda x: imgops.resize(x, (3,)), IMAGES)
        ],
    },
    NotImplementedError: {
        "ToPILImage: the transform must come after the compiled": [(ours.ToPILImage(), IMAGES[0])]
    },
    TypeError: {
        rf"{name}: labels must be int64 .*got torch.float32 of shape \(4,\)": [
            (getattr(ours, name)(num_classes=3), IMAGES, LABELS["indices"].float())
        ]
        for name in ("MixUp", "CutMix")
    },
}
_REFUSED = [
    (e, text, c) for e, texts in REFUSED_BY_GRAPHS.items() for text, calls in texts.items() for c in calls
]


@nightly
@needs_classes
@pytest.mark.parametrize("n", range(len(_REFUSED)))
def test_refusals_of_graphs(n: int) -> None:
    """The error names the transforms that the user wrote, and it is the error that the user sees."""
    error, text, (call, *inputs) = _REFUSED[n]
    torch.compiler.reset()
    with pytest.raises(error, match=f"^{text}"):
        torch.compile(call, fullgraph=True, backend="eager")(*inputs)


def test_refusals_of_batches() -> None:
    outer = ours.RandomChoice([ours.RandomApply([_SIZES_OF[0]], p=0.5), ours.Resize((12, 12))])
    with pytest.raises(ValueError, match="RandomApply: transforms that may be left out"):
        ours.Compose([outer], per_sample=True)(IMAGES)
    for name in ("MixUp", "CutMix"):
        mixer, labels = getattr(ours, name)(num_classes=3), LABELS["indices"]
        with pytest.raises(ValueError, match=f"^{name}: labels must be from 0 to 2, got labels from 1 to 3"):
            mixer(IMAGES, labels + 1)
        with pytest.raises(TypeError, match=f"^{name}: labels must be int64"):
            mixer(IMAGES, labels.float())


class Inverted(torch.nn.Module):
    """A user's transform, which knows nothing of what is chosen."""

    def forward(self, image: Tensor, *labels: Tensor) -> Any:
        return (1 - image, *labels) if labels else 1 - image


#: Containers inside of a choice between results of two sizes, or of mixes.
NESTED: dict[str, Callable[[], Any]] = {
    "RandomApply": lambda: ours.RandomApply([Inverted()], p=0.5),
    "RandomChoice": lambda: ours.RandomChoice([Inverted(), ours.Identity()]),
    "RandomOrder": lambda: ours.RandomOrder([Inverted(), ours.RandomSolarize(0.3, p=1.0)]),
    "RandomApply of ours": lambda: ours.RandomApply([ours.RandomInvert(p=1.0)], p=0.5),
}


@nightly
@pytest.mark.parametrize("name", NESTED)
def test_a_choice_inside_of_a_choice(name: str) -> None:
    """Its own choice is made although the outer container selects between whole results."""
    image = picture(torch.float32)[..., :20, :16].contiguous()
    resized = ours.Compose([NESTED[name](), ours.Resize((12, 12))])
    outer = ours.RandomChoice([resized, ours.RandomCrop(12)])
    torch.compiler.reset()
    graph = torch.compile(outer, fullgraph=True, backend="eager")
    for seed in range(12):
        same(outcome(seed, graph, image), outcome(seed, outer, image), seed, 2e-6)
    mixed = ours.Compose([NESTED[name](), ours.MixUp(num_classes=3)])
    batch = torch.stack([picture(torch.float32, seed=s)[..., :8, :8] for s in range(4)])
    assert_graph_is_eager(ours.RandomChoice([mixed, ours.CutMix(num_classes=3)]), batch, LABELS["shares"])


@nightly
@needs_classes
@pytest.mark.parametrize(
    "transform",
    [ours.RandomRotation(30), ours.RandomAffine(20), ours.RandomCrop((40, 52)), ours.ElasticTransform()],
    ids=lambda t: type(t).__name__,
)
def test_boxes_that_are_left_out_are_as_they_were(transform: Any) -> None:
    """Outside of the canvas, too: neutral parameters would clamp them. In a batch and in a graph."""
    samples = [
        {
            "image": Image(picture(seed=i)),
            "boxes": Boxes([[-3.0, -2, 5 + i, 6]], format="XYXY", canvas_size=(40, 52)),
        }
        for i in range(4)
    ]
    made, run = (
        ours.RandomApply([transform], p=0.5),
        ours.Compose([ours.RandomApply([transform])], per_sample=True),
    )
    graph, _ = compile_together({"shared": made}, "eager")
    torch.manual_seed(3)
    wanted = [made(sample) for sample in samples]
    assert not difference(rows(seeded(3, run, stack(samples)), 4), wanted, 1e-5)
    for seed in range(4):
        assert not difference(seeded(seed, graph, samples[0])["shared"], seeded(seed, made, samples[0]), 1e-5)


@nightly
@needs_classes
def test_boxes_of_several_canvases() -> None:
    """In a graph as in eager mode and in torchvision: each has its own."""
    sizes = ((20, 16), (30, 40))
    boxes = [Boxes([[1.0, 1, 5, 6]], format="XYXY", canvas_size=size) for size in sizes]
    points = [Points([[1.0, 1]], canvas_size=size) for size in sizes]
    flips = ours.RandomHorizontalFlip(1.0), ours.RandomVerticalFlip(1.0), ours.RandomRotation([30, 30])
    calls = {type(flip).__name__: flip for flip in flips}
    for given in (boxes, points):
        graph, _ = compile_together(calls, "eager")
        assert not difference(graph(given), together(calls)(given), 1e-5)


# -- forms of samples ---------------------------------------------------------------------------------

LABEL, NAMES = torch.tensor([2, 0, 1, 2]), ["a", "b", "c", "d"]
#: Batches of four images, of one size and of several.
BATCH = tv_tensors.Image(torch.stack([picture(seed=s)[..., :16, :12] for s in range(4)]))
PACKED = imgops.PackedImages.of([picture(seed=s)[..., : 16 + s, :12] for s in range(4)])


def forms(images: Any) -> dict[str, Any]:
    scale = torch.tensor(2.0, dtype=torch.float64)
    return {
        "image, label": (images, LABEL),
        "label, image": (LABEL, images),
        "label first in a dict": {"label": LABEL, "image": images},
        "shares first": [torch.eye(4), OrderedDict(image=images)],
        "lists": defaultdict(list, {"label": [3, 1, 2, 0], "image": images, "names": NAMES}),
        "a list of rows": (list(torch.eye(4)), [list(LABEL), images]),
        "what is no tensor": (images, None, b"train", {"fold": 1.5, "scale": scale}, NAMES),
    }


def changed(*sample: Any) -> Any:
    """Change what has a row for each sample, as a user's function does; a scale is of all samples."""

    def change(value: Any) -> Any:
        if isinstance(value, Tensor):
            return value if value.dtype == torch.float64 else tv_tensors.wrap(value + 1, like=value)
        return value + 1 if isinstance(value, int) else value.upper() if isinstance(value, str) else value

    out = tree_map(change, sample)
    return out if len(sample) > 1 else out[0]


#: Transforms, and the batches that they take.
STEPS: dict[str, tuple[Callable[[], list[Any]], Any]] = {
    "ours": (lambda: [ours.RandomHorizontalFlip(), ours.RandomCrop((16, 12), padding=2)], BATCH),
    "noise": (lambda: [ours.RandomInvert(), ours.RandomErasing(1.0)], BATCH),
    "sizes": (lambda: [ours.RandomCrop(8), ours.Resize((8, 8))], BATCH),
    "a user's": (lambda: [changed, ours.Identity()], BATCH),
    "results": (lambda: [ours.Compose([changed, ours.Resize((8, 8))]), ours.Resize((8, 8))], BATCH),
    "packed": (lambda: [ours.RandomInvert(), ours.RandomHorizontalFlip()], PACKED),
    "packed, then one size": (lambda: [ours.RandomResizedCrop(8), ours.Resize((8, 8))], PACKED),
    "packed, then a user's": (
        lambda: [ours.Compose([ours.Resize((8, 8)), changed, ours.Identity()]), ours.Resize((8, 8))],
        PACKED,
    ),
}


def sample_of(batch: Any, index: int) -> Any:
    """Return a sample of a batch in one of the forms."""

    def take(value: Any) -> Any:
        if isinstance(value, imgops.PackedImages):
            return tv_tensors.Image(value[index])
        if isinstance(value, Tensor) and not value.ndim:
            return value
        row = value[index] if isinstance(value, (Tensor, list)) else value
        return tv_tensors.wrap(row, like=value) if isinstance(value, tv_tensors.TVTensor) else row

    def is_whole(value: Any) -> bool:
        return isinstance(value, imgops.PackedImages) or (type(value) is list and len(value) == len(BATCH))

    return tree_map(take, batch, is_leaf=is_whole)


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("container", ["Compose", "RandomApply", "RandomChoice", "RandomOrder"])
def test_a_batch_in_any_form_is_a_loop_over_its_samples(container: str, steps: str) -> None:
    make, images = STEPS[steps]
    keeps_size = steps in ("ours", "noise", "a user's", "packed")
    if not keeps_size and container != "RandomChoice" and not (images is PACKED and container == "Compose"):
        return  # a size that depends on a choice is refused, above
    whole, one = (getattr(ours, container)(make(), **how) for how in ({"per_sample": True}, {}))
    for (name, batch), seed in product(forms(images).items(), range(3)):
        found = outcome(seed, whole, *(batch if isinstance(batch, tuple) else [batch]))
        torch.manual_seed(seed)
        for index in range(len(BATCH)):
            sample = sample_of(batch, index)
            wanted = one(*sample) if isinstance(sample, tuple) else one(sample)
            pairs = zip(tree_leaves(sample_of(found[0], index)), tree_leaves(wanted), strict=True)
            for a, b in pairs:
                assert type(a) is type(b) or (images is PACKED and isinstance(b, tv_tensors.Image)), name
                assert torch.equal(a, b) if isinstance(a, Tensor) else a == b, name
        assert torch.equal(found[1], torch.rand(1)), name


def test_images_of_other_counts_are_refused() -> None:
    """The error names the transform, whichever it is, or is torchvision's."""
    four = tv_tensors.Image(torch.stack([picture(torch.float32, seed=s)[..., :40, :40] for s in range(4)]))
    others = {
        "three": (four, tv_tensors.Image(four[:3])),
        "four after one": (tv_tensors.Image(four[:1]), four),
        "one alone": (tv_tensors.Image(four[0]), four),
        "a video": (four, tv_tensors.Video(four)),
        "a PIL image": (PIL.Image.new("RGB", (40, 40)), four),
    }
    for name, make in OF_IMAGES.items():
        transform = make()
        if not isinstance(transform, RandomTransform) or isinstance(
            transform, ours.Compose | ours.RandomApply
        ):
            continue
        words = rf"^({type(transform).__name__}: .* must be a batch of [14]|Auto augment trans)"
        for way, images in others.items():
            whole = ours.RandomApply([transform], 1.0, per_sample=True)
            with pytest.raises((ValueError, TypeError)) as refused:
                whole(images)
            assert re.match(words, str(refused.value)), (name, way, str(refused.value))


@pytest.mark.parametrize("change", [lambda x: x[:2], lambda x: torch.cat([x, x]), lambda x: x[0]])
def test_a_function_that_changes_the_count_comes_last(change: Callable[[Tensor], Tensor]) -> None:
    """Before another transform, or where it may be left out, it is refused."""
    batch = BATCH.as_subclass(Tensor)
    flip = ours.RandomHorizontalFlip()
    assert torch.equal(
        ours.Compose([ours.RandomInvert(1.0), change], per_sample=True)(batch), change(255 - batch)
    )
    with pytest.raises(
        ValueError, match=r"^RandomHorizontalFlip: Tensor must be a batch of 4 with per_sample=T"
    ):
        ours.Compose([flip, change, flip], per_sample=True)(batch)
    with pytest.raises(ValueError, match=r"^RandomApply: transforms that may be left out must keep"):
        ours.RandomApply([change], per_sample=True)(batch)


@pytest.mark.parametrize("library", [ours, reference], ids=["ours", "torchvision's"])
def test_mixers_in_containers_are_torchvisions(library: Any) -> None:
    """Draws, results and the types of labels: of our mixers and of torchvision's in our containers."""

    def pipelines(containers: Any, library: Any) -> list[Any]:
        mixers = [library.MixUp(num_classes=3), library.CutMix(num_classes=3)]
        flip = containers.RandomHorizontalFlip()
        return [
            containers.RandomChoice(mixers, p=[0.3, 0.7]),
            containers.RandomApply(mixers[:1]),
            containers.RandomOrder([flip, *mixers]),
            containers.Compose([flip, containers.RandomApply([containers.RandomChoice(mixers)])]),
        ]

    images = tv_tensors.Image(torch.stack([picture(torch.float32, seed=s) for s in range(4)]))
    labels = LABELS["indices"]
    samples = (
        (images, labels),
        {"label": labels, "image": images},
        [images, {"label": labels}],
        (images, LABELS["shares"], "a", None),
    )
    pairs = zip(pipelines(ours, library), pipelines(reference, reference), strict=True)
    for (mine, theirs), sample, seed in product(pairs, samples, range(4)):
        inputs = sample if isinstance(sample, tuple) and len(sample) > 2 else (sample,)
        same(outcome(seed, mine, *inputs), outcome(seed, theirs, *inputs), seed, 2e-6)


# -- code that writes into its input ------------------------------------------------------------------


class Blackened(torch.nn.Module):
    def __init__(self, inplace: bool) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, image: Tensor, *labels: Tensor) -> Any:
        out = image.zero_() if self.inplace else torch.zeros_like(image)
        return (out, *labels) if labels else out


#: Whether it writes in place -> a transform.
WRITING: dict[str, Callable[[bool], Any]] = {
    "a module": Blackened,
    "a function": lambda inplace: lambda x: x.mul_(2) if inplace else x * 2,
    "Lambda": lambda inplace: ours.Lambda(lambda x: x.mul_(2) if inplace else x * 2),
    "Normalize": lambda inplace: ours.Normalize([0.2] * 3, [0.5] * 3, inplace),
    "RandomErasing": lambda inplace: ours.RandomErasing(1.0, inplace=inplace),
    "torchvision's": lambda inplace: reference.Normalize([0.2] * 3, [0.5] * 3, inplace),
}


def writing(name: str, container: str, inplace: bool, per_sample: bool) -> Any:
    step, other = WRITING[name](inplace), ours.RandomHorizontalFlip(0.5)
    if container == "results":
        step, other = ours.Compose([step, ours.Resize((12, 12))]), ours.Resize((12, 12))
    made = contain(container.replace("results", "RandomChoice"), step, other, per_sample)
    return lambda image: made(image.clone())


@nightly
def test_what_is_left_out_is_not_written_to() -> None:
    """Transforms that write in place give what those that do not give, also inside of a choice of results."""
    images = torch.stack([picture(torch.float32, seed=s)[..., :16, :16] for s in range(3)])
    ways = list(product(WRITING, ("RandomApply", "RandomChoice", "RandomOrder", "results")))
    shared = {"-".join(way): writing(*way, True, False) for way in ways[::5]}
    graph, _ = compile_together(shared, "eager")
    for seed in range(3):
        for way in ways:
            found, wanted = (seeded(seed, writing(*way, inplace, True), images) for inplace in (True, False))
            assert torch.equal(found, wanted), way
        found, wanted = (seeded(seed, run, images) for run in (graph, together(shared)))
        same(found, wanted, seed, 2e-6)


class OfUser(tv_tensors.Mask):
    """A mask of a user, which has no channels."""


def test_masks_of_a_subclass_are_a_batch() -> None:
    masks = torch.arange(4 * 16 * 12).reshape(4, 16, 12).as_subclass(OfUser)
    found = ours.RandomHorizontalFlip(1.0, per_sample=True)({"image": BATCH, "mask": masks})["mask"]
    assert type(found) is OfUser and torch.equal(
        found.as_subclass(Tensor), masks.as_subclass(Tensor).flip(-1)
    )


# -- call after call ---------------------------------------------------------------------------------

# A container holds each transform, with a probability of 0, a half and 1, and is called three times and again after each
# change of an attribute, a list or a module in place. The results and the states of the generator are those of
# torchvision's containers, which keep nothing from call to call.

Make = Callable[[Any], Any]
SMALL = picture(height=24, width=28)

#: Transforms with the pixels of torchvision's: of pixels, of the size, of the dtype, of the class; with draws or not.
INNER: dict[str, Make] = {
    "flip": lambda t: t.RandomHorizontalFlip(),
    "invert": lambda t: t.RandomInvert(1.0),
    "posterize": lambda t: t.RandomPosterize(3, p=0.5),
    "resize": lambda t: t.Resize(33, "nearest"),
    "pad": lambda t: t.Pad([1, 2, 3, 4]),
    "filled pad": lambda t: t.Pad(2, fill={"others": 5}),
    "center": lambda t: t.CenterCrop([8, 9]),
    "crop": lambda t: t.RandomCrop([9, 11]),
    "padded crop": lambda t: t.RandomCrop([24, 28], padding=3),
    "floats": lambda t: t.ToDtype(torch.float32, scale=True),
    "image": lambda t: t.ToImage(),
    "identity": lambda t: t.Identity(),
}
CONTAINERS: dict[str, Callable[[Any, Make, float], Any]] = {
    "RandomApply": lambda t, inner, p: t.RandomApply([inner(t)], p),
    "of two": lambda t, inner, p: t.RandomApply([t.RandomVerticalFlip(), inner(t)], p),
    "Compose of one": lambda t, inner, p: t.Compose([t.RandomApply([inner(t)], p)]),
    "Compose": lambda t, inner, p: t.Compose(
        [t.RandomVerticalFlip(), t.RandomApply([inner(t)], p), t.RandomHorizontalFlip(1.0)]
    ),
    "nested": lambda t, inner, p: t.RandomApply([t.RandomApply([inner(t)], 0.5), t.RandomVerticalFlip()], p),
    "modules": lambda t, inner, p: t.RandomApply(torch.nn.ModuleList([inner(t)]), p),
    "RandomChoice": lambda t, inner, p: t.RandomChoice([inner(t), t.RandomVerticalFlip(1.0)], [p, 1.01 - p]),
    "RandomOrder": lambda t, inner, p: t.RandomOrder([inner(t), t.RandomVerticalFlip(p)]),
}
PROBABILITIES = (0.0, 0.5, 1.0)


def has_one_form(container: str, inner: str, p: float) -> bool:
    """Return whether all samples of a batch are known to come out in one form, whatever is drawn."""
    if inner in ("flip", "invert", "posterize", "identity", "padded crop"):
        return True
    return (
        p in (0.0, 1.0)
        and container not in ("RandomChoice", "RandomOrder")
        and (container != "nested" or not p)
    )


def changes(transform: Any, path: str = "") -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Yield changes of the attributes, lists and modules of a container and of those inside it, in order."""
    inside = list(getattr(transform, "transforms", ()))
    for i, inner in enumerate(inside):
        for name, change in changes(inner):
            yield f"{path}[{i}]{name}", lambda t, i=i, change=change: change(t.transforms[i])
    if isinstance(getattr(transform, "p", None), float):
        for p in (1.0, 0.0, 0.5):
            yield f"{path}.p = {p}", lambda t, p=p: setattr(t, "p", p)
    if isinstance(getattr(transform, "fill", None), dict):
        yield f"{path}.fill in place", lambda t: t.fill.update(others=99)
    if isinstance(getattr(transform, "p", None), list):
        yield f"{path}.p in place", lambda t: t.p.__setitem__(slice(None), t.p[::-1])
    for name in ("padding", "size"):
        if isinstance(getattr(transform, name, None), list):

            def change(t: Any, name: str = name) -> None:
                getattr(t, name)[0] += 1

            yield f"{path}.{name} in place", change
    if inside:
        yield (
            f"{path}.transforms gets one more",
            lambda t: t.transforms.append(_of(t).RandomVerticalFlip(1.0)),
        )
        yield f"{path}.transforms loses the first", lambda t: t.transforms.__delitem__(0)
        yield f"{path}.transforms is another", _replace_transforms


def _replace_transforms(container: Any) -> None:
    container.transforms = type(container.transforms)([_of(container).RandomInvert(1.0)])


def _of(transform: Any) -> Any:
    return ours if type(transform).__module__.startswith("imgops.") else reference


#: Transforms that `make test` holds: of pixels, of the size, of the dtype, with a border.
QUICK = ("flip", "resize", "floats", "padded crop")


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_call_is_that_of_new_objects(container: str, whole: bool) -> None:
    for name, inner in INNER.items() if whole else [(name, INNER[name]) for name in QUICK]:
        for p in PROBABILITIES if whole else (0.5,):
            transform = CONTAINERS[container](ours, inner, p)
            theirs = CONTAINERS[container](reference, inner, p)
            which = f"{name}, p = {p}"
            for call in range(4):
                wanted = outcome(call, theirs, SMALL)
                same(outcome(call, transform, SMALL), wanted, f"{which}, call {call + 1}", 1e-6)
            for what, change in list(changes(transform)):
                if container == "RandomChoice" and "transforms" in what:
                    continue  # the weights are for as many transforms as before
                change(transform), change(theirs)
                which += f", then {what}"
                for call in range(2):
                    wanted = outcome(call, theirs, SMALL)
                    same(outcome(call, transform, SMALL), wanted, f"{which}, call {call + 1}", 1e-6)


@pytest.mark.parametrize("container", CONTAINERS)
def test_samples_are_a_loop(container: str, whole: bool) -> None:
    """With ``per_sample=True``, on a batch and on packed images."""
    batch = torch.stack([SMALL, SMALL.flip(-1), SMALL.flip(-2)])
    for name, inner in INNER.items() if whole else [(name, INNER[name]) for name in QUICK]:
        for p in PROBABILITIES:
            torch.manual_seed(4)
            loop = [CONTAINERS[container](reference, inner, p)(x) for x in batch]
            state = torch.rand(1)
            transform = ours.Compose([CONTAINERS[container](ours, inner, p)], per_sample=True)
            for call in range(3):
                for form in ("batch", "packed"):
                    x = batch if form == "batch" else imgops.PackedImages.of(list(batch))
                    which = f"{name}, p = {p}, call {call + 1}, {form}"
                    if form == "batch" and has_one_form(container, name, p):
                        out, after = outcome(4, transform, x)
                    else:
                        try:
                            out, after = outcome(4, transform, x)
                        except (TypeError, ValueError):
                            continue
                    for a, b in zip(out, loop, strict=True):
                        assert a.shape == b.shape and a.dtype == b.dtype, which
                        assert torch.allclose(a.double(), b.double(), rtol=0, atol=1e-6), which
                    assert torch.equal(after, state), f"{which}: other draws"


def inverting(module: Any) -> Any:
    """Return an AutoAugment with a policy of its own, set as torchvision sets those that it knows."""
    transform = module.AutoAugment()
    transform._policies = [(("Invert", 1.0, None), ("Invert", 0.0, None))]
    return transform


def a_forward_replaced(module: Any) -> Any:
    class Flip(module.RandomHorizontalFlip):
        pass

    flip = Flip(0.5)
    module.Compose([flip])(SMALL)
    Flip.forward = lambda self, *inputs: 255 - inputs[0]
    return flip


@pytest.mark.parametrize("make", [inverting, a_forward_replaced])
@pytest.mark.parametrize("container", CONTAINERS)
def test_what_a_user_replaces_is_used(container: str, make: Make) -> None:
    """At each call, also where it is replaced after the second one."""
    transform, theirs = (CONTAINERS[container](t, make, 0.5) for t in (ours, reference))
    for call in range(4):
        same(outcome(call, transform, SMALL), outcome(call, theirs, SMALL), call)
    if make is inverting and container in ("Compose", "RandomOrder"):
        batch = torch.stack([SMALL, SMALL])
        for t in (ours.Compose([transform], per_sample=True), torch.compile(transform, backend="eager")):
            given = batch if isinstance(t, ours.Compose) else SMALL
            loop = [CONTAINERS[container](ours, make, 0.5)] * len(batch)
            torch.manual_seed(3)
            wanted = [f(SMALL) for f in loop] if given is batch else [loop[0](SMALL)]
            torch.manual_seed(3)
            assert torch.equal(t(given).reshape(-1, *SMALL.shape[-2:]), torch.cat(wanted))
