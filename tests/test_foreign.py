"""Code that is not imgops' never sees a packed buffer or the bytes of a file in the place of an image."""

from __future__ import annotations

from collections import OrderedDict, UserDict, defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves
from torchvision import transforms as first
from torchvision import tv_tensors
from torchvision.transforms import v2

import imgops
from imgops import EncodedImage, EncodedImages, PackedImages
from imgops import transforms as ours
from tests.tiers import nightly
from tests.transform_cases import seeded

refused = partial(pytest.raises, ValueError)
IMAGES = [torch.full((3, h, 5), value, dtype=torch.uint8) for h, value in ((4, 10), (6, 200))]


class Mine(v2.Transform):
    """A transform of a user."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt.flip(-1)


class Brighter(nn.Module):
    """A module of a user."""

    def forward(self, image: Tensor) -> Tensor:
        return torch.clamp(image + 1, max=255)


FOREIGN: dict[str, Callable[[], Any]] = {
    "torchvision's flip": lambda: v2.RandomHorizontalFlip(1.0),
    "torchvision's resize": lambda: v2.Resize(3),
    "torchvision's ToDtype": lambda: v2.ToDtype(torch.float32),
    "torchvision's Lambda": lambda: v2.Lambda(lambda x: x.flip(-1)),
    "a transform": Mine,
    "a module": Brighter,
    "a function": lambda: lambda x: x.flip(-1),
}
CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "alone": lambda t: t,
    "Compose": lambda t: ours.Compose([t, ours.RandomInvert(0.0, per_sample=True)]),
    "Compose per sample": lambda t: ours.Compose([ours.RandomInvert(0.0), t], per_sample=True),
    "RandomApply": lambda t: ours.RandomApply([t], p=1.0),
    "RandomChoice": lambda t: ours.RandomChoice([t]),
    "RandomOrder": lambda t: ours.RandomOrder([t]),
    "seeded": lambda t: ours.seeded(t, 3),
    "Sequential": lambda t: nn.Sequential(t if isinstance(t, nn.Module) else v2.Lambda(t)),
    "torchvision's Compose": lambda t: v2.Compose([t]),
    "torchvision's RandomApply": lambda t: v2.RandomApply([t], p=1.0),
    "in a structure": lambda t: lambda x: t({"image": x, "label": torch.tensor([1, 2])}),
}
BATCHES: dict[str, Callable[[], Any]] = {
    "packed": lambda: PackedImages.of(IMAGES),
    "files": lambda: EncodedImages([imgops.encode_image(x, "png") for x in IMAGES]),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("foreign", FOREIGN)
def test_batches_of_different_sizes_are_refused(foreign: str, container: str, batch: str) -> None:
    transform = CONTAINERS[container](FOREIGN[foreign]())
    with pytest.raises((TypeError, AttributeError, ValueError)):
        transform(BATCHES[batch]())


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_file_is_decoded_or_refused(foreign: str, container: str) -> None:
    """imgops' containers decode a file before foreign code; without one of them, torchvision refuses it."""
    if container == "in a structure" and foreign in ("a module", "a function"):
        pytest.skip("they take an image alone")
    wanted = CONTAINERS[container](FOREIGN[foreign]())(IMAGES[0])
    file = EncodedImage(imgops.encode_image(IMAGES[0], "png"))
    try:
        found = CONTAINERS[container](FOREIGN[foreign]())(file)
    except (TypeError, AttributeError):
        assert not container.startswith(("Compose", "Random"))
        return
    for a, b in zip(tree_leaves(found), tree_leaves(wanted), strict=True):
        assert torch.equal(torch.as_tensor(a), torch.as_tensor(b))


def test_the_error_names_the_transform() -> None:
    for make in BATCHES.values():
        with pytest.raises(TypeError, match=r"^Mine: image must be a Tensor or a PIL image"):
            ours.Compose([Mine()])(make())
    with pytest.raises(Exception, match="PackedImages must not be flattened as a pytree in a graph"):
        torch.compile(ours.Compose([v2.CenterCrop(3)]), fullgraph=True, backend="eager")(BATCHES["packed"]())


@pytest.mark.parametrize("container", ["Compose", "RandomApply", "seeded", "torchvision's Compose"])
def test_own_transforms_are_not_refused(container: str) -> None:
    flip = ours.RandomHorizontalFlip(1.0, per_sample=True)
    for make in BATCHES.values():
        if container != "RandomApply":
            found = CONTAINERS[container](flip)(make())
            assert all(torch.equal(a, b.flip(-1)) for a, b in zip(found, IMAGES, strict=True))


# -- draws of each sample -----------------------------------------------------------------------------


class Inherited(ours.Compose):
    """A container of a user, which changes nothing."""


class Logged(ours.Compose):
    """A container of a user, whose forward is its own."""

    def forward(self, *inputs: Any) -> Any:
        return super().forward(*inputs)


class Drawing(v2.Transform):
    """A transform of a user, which draws once for a call."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"dims": (-1,) if torch.rand(1) < 0.5 else ()}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt.flip(params["dims"])


@pytest.mark.parametrize("form", ["arrays", "one array", "a tensor of each", "a number", "a tensor"])
@pytest.mark.parametrize("container", [ours.RandomApply, ours.RandomChoice])
def test_others_write_into_a_copy(container: Any, form: str) -> None:
    """A sample that was not chosen keeps its values, and what cannot be chosen for each sample may not change."""
    forms: dict[str, Any] = {
        "arrays": [np.zeros(2) for _ in range(4)],
        "one array": [np.zeros(4)],
        "a tensor of each": [torch.zeros(()) for _ in range(4)],
        "a number": [torch.zeros(())],
        "a tensor": [torch.tensor([torch.nan, 1.0, 2.0])],
    }

    def write(sample: dict[str, Any]) -> dict[str, Any]:
        for value in sample["others"] if sample["writes"] else ():
            value += 1
        return {**sample, "image": sample["image"].flip(-1)}

    steps = [write, ours.Identity()] if container is ours.RandomChoice else [write]
    transform = container(steps, per_sample=True)
    image = torch.stack([torch.arange(12.0).reshape(1, 3, 4)] * 4)
    sample = {"image": image, "others": forms[form], "writes": False}
    out = seeded(5, transform, sample)
    for a, b in zip(out["others"], forms[form], strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    torch.manual_seed(5)
    if len(forms[form]) == 1:
        with refused(match=r"must (keep|give results of) the structure"):
            transform({**sample, "writes": True})
        return
    out = transform({**sample, "writes": True})
    chosen = [not torch.equal(a, b) for a, b in zip(out["image"], image, strict=True)]
    assert 0 < sum(chosen) < 4
    assert [float(np.asarray(x).max()) for x in out["others"]] == [float(c) for c in chosen]
    assert not any(np.asarray(x).any() for x in forms[form])


def hooked(module: nn.Module) -> nn.Module:
    module.register_forward_hook(lambda *_: None)
    return module


#: What holds a transform, or draws by itself, and whether each sample of a batch can have its own draw.
HOLDERS: dict[str, tuple[Callable[..., Any], bool]] = {
    "Compose": (lambda t, **how: ours.Compose([t(**how)]), True),
    "a subclass": (lambda t, **how: Inherited([t(**how)]), True),
    "a subclass with a forward": (lambda t, **how: Logged([t(**how)]), False),
    "a hook": (lambda t, **how: hooked(t(**how)), False),
    "a hook inside": (lambda t, **how: ours.Compose([hooked(t(**how))]), False),
    "a hooked container": (lambda t, **how: hooked(ours.RandomOrder([t(**how)])), False),
    "Sequential": (lambda t, **how: nn.Sequential(t(**how)), False),
    "Lambda": (lambda t, **how: ours.Lambda(t(**how)), False),
    "torchvision's Compose": (lambda t, **how: v2.Compose([t(**how)]), False),
    "torchvision's first Compose": (lambda t, **how: first.Compose([t(**how)]), False),
    "torchvision's RandomApply": (lambda t, **how: v2.RandomApply([ours.Identity()]), False),
    "torchvision's RandomChoice": (lambda t, **how: first.RandomChoice([t(**how)]), False),
    "torchvision's first Lambda": (lambda t, **how: first.Lambda(t(**how)), False),
    "a method": (lambda t, **how: v2.RandomHorizontalFlip().forward, False),
    "a partial": (lambda t, **how: partial(v2.RandomHorizontalFlip()), False),
    "torchvision's flip": (lambda t, **how: v2.RandomHorizontalFlip(), False),
    "torchvision's policy": (lambda t, **how: first.RandAugment(), False),
    "a user's": (lambda t, **how: Drawing(), False),
}


def loop(transform: Any, images: Any) -> Tensor:
    return torch.stack([transform(image) for image in images])


ROWS = torch.stack([torch.arange(48, dtype=torch.uint8).reshape(3, 4, 4) + i for i in range(5)])


@pytest.mark.parametrize("container", [ours.Compose, ours.RandomApply, ours.RandomChoice, ours.RandomOrder])
@pytest.mark.parametrize("holder", HOLDERS)
def test_samples_share_no_draw_in_silence(holder: str, container: Any) -> None:
    """A transform that cannot draw for each sample is refused, unless it has ``per_sample=True`` itself."""
    hold, is_own = HOLDERS[holder]
    whole = container([hold(ours.RandomHorizontalFlip)], per_sample=True)
    if is_own:
        one = container([hold(ours.RandomHorizontalFlip)])
        assert torch.equal(seeded(3, whole, ROWS), seeded(3, loop, one, ROWS))
        return
    with refused(match="transforms in a container with per_sample=True must be imgops' own"):
        whole(ROWS)
    assert container([hold(ours.RandomHorizontalFlip)])(ROWS).shape == ROWS.shape  # one draw for the call
    if holder in ("Sequential", "a hook", "a hook inside", "Lambda", "torchvision's Compose"):
        whole = container([hold(ours.RandomHorizontalFlip, per_sample=True)], per_sample=True)
        assert whole(ROWS).shape == ROWS.shape


# -- collation ---------------------------------------------------------------------------------------


def sample(height: int, boxes: int, mask_height: int | None = None) -> dict[str, Any]:
    canvas = {"canvas_size": (height, 5)}
    return {
        "image": tv_tensors.Image(torch.zeros(3, height, 5, dtype=torch.uint8)),
        "mask": tv_tensors.Mask(torch.full((1, mask_height or height, 5), 200, dtype=torch.uint8)),
        "boxes": tv_tensors.BoundingBoxes([[1.0, 2, 3, 4]] * boxes, format="XYXY", **canvas),
        "points": tv_tensors.KeyPoints([[1.0, 2.0]], **canvas),
        "label": torch.tensor(height),
        "path": f"{height}.png",
    }


@pytest.mark.parametrize("counts", [(1, 2), (2, 2)])
def test_collation_keeps_classes(counts: tuple[int, int]) -> None:
    samples = [sample(h, n) for h, n in zip((4, 6), counts, strict=True)]
    batch = PackedImages.collate(samples)
    assert type(batch["image"]) is PackedImages
    for name in ("mask", "boxes", "points"):
        assert all(a is b[name] for a, b in zip(batch[name], samples, strict=True))
    assert torch.equal(batch["label"], torch.tensor([4, 6])) and batch["path"] == ["4.png", "6.png"]
    with pytest.raises(TypeError, match="must not be images, masks, boxes or keypoints"):
        ours.RandomHorizontalFlip(1.0, per_sample=True)(batch)
    out = ours.RandomInvert(1.0, per_sample=True)(batch)
    assert all(mask.eq(200).all() for mask in out["mask"])


class OfUser(tv_tensors.Image):
    """A user's class of images, which may have its own kernels."""


class Sample(dict):
    """A sample of a user, which is no structure of inputs for torchvision."""


def test_collation_keeps_the_classes_of_users_and_of_dicts() -> None:
    images = [image.as_subclass(OfUser) for image in IMAGES]
    assert all(a is b for a, b in zip(PackedImages.collate(images), images, strict=True))
    with pytest.raises(
        TypeError, match=r"^PackedImages.of: images must be Tensors or Images, got one of OfUser"
    ):
        PackedImages.of(images)
    clips = PackedImages.collate([tv_tensors.Image(IMAGES[0][None])] * 2)
    assert type(clips) is tv_tensors.Image and clips.shape == (2, 1, *IMAGES[0].shape)
    for make in (dict, OrderedDict, UserDict, Sample, lambda **values: defaultdict(list, values)):
        batch = PackedImages.collate([make(image=image, label=3) for image in IMAGES])
        assert type(batch) is type(make()) and type(batch["image"]) is PackedImages
        assert getattr(batch, "default_factory", list) is list


@pytest.mark.parametrize("make", [OrderedDict, UserDict, Sample, lambda values: defaultdict(list, values)])
@pytest.mark.parametrize("batch", BATCHES)
def test_classes_of_dicts_pass_through(make: Any, batch: str) -> None:
    """As in torchvision, what is no structure of inputs comes out as it is, with the images in it."""
    sample = make({"image": BATCHES[batch](), "label": torch.tensor([1, 2])})
    is_structure = isinstance(sample, (OrderedDict, defaultdict))
    for transform in (
        ours.RandomInvert(1.0, per_sample=True),
        ours.Lambda(lambda x: x),
        ours.Compose([ours.ToDtype(torch.float32)]),
    ):
        if is_structure and isinstance(transform, ours.Lambda):
            with pytest.raises(
                TypeError, match=r"^Lambda: image must be a Tensor, got images of different sizes"
            ):
                transform(sample)
            continue
        found = transform(sample)
        assert type(found) is type(sample)
        assert (found["image"] is sample["image"]) == (not is_structure)
        assert isinstance(found["image"], (PackedImages, EncodedImages)) and len(found["image"]) == 2


def test_other_batches() -> None:
    """Masks of one shape become one; what is no image is refused, and so is a size of no images."""
    batch = PackedImages.collate([sample(4, 1, 7), sample(6, 1, 7)])
    assert type(batch["mask"]) is tv_tensors.Mask and batch["mask"].shape == (2, 1, 7, 5)
    with pytest.raises(TypeError, match="images must be Tensors or Images, got one of Mask"):
        PackedImages.of([tv_tensors.Mask(torch.zeros(1, 3, 4))])
    mixed = [{"x": tv_tensors.Mask(torch.zeros(1, 3, 4))}, {"x": tv_tensors.Video(torch.zeros(2, 1, 3, 4))}]
    with pytest.raises(TypeError, match="values of one place must have one class, got Mask, Video"):
        PackedImages.collate(mixed)
    for size in (None, (4, 5)):
        with refused(match=r"^PackedImages.padded: images must be one or more, got 0$"):
            PackedImages.of(IMAGES)[0:0].padded(size)


@pytest.mark.parametrize("container", [ours.Compose, ours.RandomApply, ours.RandomChoice, ours.RandomOrder])
def test_a_pil_image_next_to_a_batch(container: Any) -> None:
    """One draw for both, as in torchvision; a plain tensor is no image then, and passes through."""
    image = PIL.Image.fromarray(torch.arange(48, dtype=torch.uint8).reshape(4, 4, 3).numpy())
    theirs = getattr(v2, container.__name__)([v2.RandomHorizontalFlip(), v2.RandomInvert()])
    mine = container([ours.RandomHorizontalFlip(), ours.RandomInvert()])
    for sample in ((tv_tensors.Image(ROWS), image), (image, tv_tensors.Image(ROWS)), (ROWS, image)):
        for seed in range(3):
            for a, b in zip(*(seeded(seed, call, sample) for call in (mine, theirs)), strict=True):
                assert type(a) is type(b) and np.array_equal(np.asarray(a), np.asarray(b))


# -- containers that select --------------------------------------------------------------------------

TV_TENSORS = pytest.mark.skipif(not hasattr(torch.Tag, "inplace"), reason="dynamo takes no tv_tensors")
BOXES = {"format": "XYXY", "canvas_size": (24, 24)}


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("container", [ours.RandomChoice, ours.RandomOrder])
def test_boxes_of_each_sample_are_selected(container: Any, rows: int) -> None:
    """Two samples with two boxes each: the choice is for a sample, not for a row."""
    images = tv_tensors.Image(torch.zeros(2, 3, 24, 24, dtype=torch.uint8))
    corners = torch.arange(4.0 * rows).reshape(rows, 4) + torch.tensor([0.0, 0, 6, 6])
    boxes = [tv_tensors.BoundingBoxes(corners + 1, **BOXES) for _ in range(2)]
    steps = [ours.Resize((12, 12)), ours.CenterCrop(12)]
    if container is ours.RandomOrder:
        steps = [ours.RandomHorizontalFlip(1.0), ours.ClampBoundingBoxes(), ours.RandomVerticalFlip(1.0)]
    samples = [{"i": tv_tensors.Image(images[k]), "b": boxes[k]} for k in range(2)]
    for seed in range(6):
        found = seeded(seed, container(steps, per_sample=True), {"i": images, "b": boxes})["b"]
        wanted = [out["b"] for out in seeded(seed, lambda: [container(steps)(x) for x in samples])]
        assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True)), seed


def nested(boxes: list[Any]) -> Any:
    whole = torch.nested.as_nested_tensor([x.as_subclass(Tensor) for x in boxes]).as_subclass(
        tv_tensors.BoundingBoxes
    )
    whole.__dict__.update(boxes[0].__dict__)
    return whole


#: Boxes that are not those of two samples, in one list or nested.
OTHER_BOXES: dict[str, Callable[[Any], Any]] = {
    "one tensor for all": lambda of: of(),
    "two names": lambda of: {"a": of(), "b": of(), "c": of()},
    "two lists of three": lambda of: {"a": [of(), of(), of()], "b": [of(), of(), of()]},
    "a list of three": lambda of: [of(), of(), of()],
}


@pytest.mark.parametrize("boxes", OTHER_BOXES)
def test_boxes_of_other_counts_are_refused(boxes: str) -> None:
    """Also of as many rows as there are samples."""
    corners = torch.tensor([[1.0, 2, 8, 9], [3, 1, 12, 8]])
    images = tv_tensors.Image(torch.zeros(2, 3, 24, 24, dtype=torch.uint8))
    sample = {"i": images, "b": OTHER_BOXES[boxes](lambda: tv_tensors.BoundingBoxes(corners, **BOXES))}
    for transform in (
        ours.RandomHorizontalFlip(1.0, per_sample=True),
        ours.Compose([ours.RandomAffine(9)], per_sample=True),
    ):
        with refused(match=r"bounding boxes must be a list of 2, one for each sample, or nested"):
            transform(sample)
    if boxes in ("one tensor for all", "a list of three"):
        for steps in (
            [ours.Resize((12, 12)), ours.CenterCrop(12)],
            [ours.ClampBoundingBoxes(), ours.Identity()],
        ):
            with refused(match=r"of torch.float32 for 2 samples|a value of \(2, 4\) for 2 samples"):
                ours.RandomChoice(steps, per_sample=True)(sample)


def test_nested_boxes_are_for_samples_with_their_own_draws() -> None:
    boxes = [tv_tensors.BoundingBoxes([[1.0, 2, 8, 9]] * n, **BOXES) for n in (1, 2)]
    sample = {"i": tv_tensors.Image(torch.zeros(2, 3, 24, 24)), "b": nested(boxes)}
    for transform in (
        ours.Resize(12),
        ours.RandomHorizontalFlip(1.0),
        ours.ClampBoundingBoxes(),
        ours.SanitizeBoundingBoxes(labels_getter=None),
        ours.RandomApply([ours.ConvertBoundingBoxFormat("XYWH")], 1.0, per_sample=True),
    ):
        with refused(match=r"bounding boxes must not be nested in a transform without per_sample=T"):
            transform(sample)
    kept = ours.RandomApply([lambda sample: sample], per_sample=True)(sample)["b"]
    assert all(torch.equal(a, b) for a, b in zip(kept.unbind(), boxes, strict=True))
    flip = ours.RandomHorizontalFlip(1.0, per_sample=True)
    wanted = [ours.RandomHorizontalFlip(1.0)(x) for x in boxes]
    for found in flip({**sample, "b": [nested(boxes), boxes, nested(boxes)]})["b"]:
        each = found if isinstance(found, list) else found.unbind()
        assert all(torch.equal(a, b) for a, b in zip(each, wanted, strict=True))


def test_boxes_of_several_samples_are_not_sanitized_by_the_first() -> None:
    boxes = [tv_tensors.BoundingBoxes([[1.0, 2, *far], [3, 1, 12, 8]], **BOXES) for far in ((8, 9), (1, 2))]
    with refused(match=r"^SanitizeBoundingBoxes: bounding boxes must be one tensor, those of one"):
        ours.SanitizeBoundingBoxes(labels_getter=None)({"b": boxes})


@nightly
@TV_TENSORS
@pytest.mark.parametrize(
    ("transform", "name", "before", "after"),
    [
        (lambda: ours.ConvertBoundingBoxFormat("XYWH"), "format ", "XYXY", "XYWH"),
        (lambda: ours.SetClampingMode("hard"), "clamping_mode ", "soft", "hard"),
        (lambda: ours.RandomResizedCrop(8), "", ".24, 24.", ".8, 8."),
        (lambda: ours.Resize(8), "canvas_size ", ".24, 24.", ".8, 8."),
        (lambda: ours.ToPureTensor(), "", "BoundingBoxes", "Tensor"),
    ],
)
@pytest.mark.parametrize("container", [ours.RandomApply, ours.RandomChoice, ours.RandomOrder])
def test_metadata_that_depends_on_a_choice_is_refused(
    container: Any, transform: Any, name: str, before: str, after: str
) -> None:
    """RandomApply compares with its input, the others with the result of their first transform."""
    boxes = tv_tensors.BoundingBoxes([[1.0, 2, 13, 14]], **BOXES)
    pipeline = container([transform(), ours.ClampBoundingBoxes()])
    if not hasattr(tv_tensors.BoundingBoxes, "clamping_mode") and "clamping" in name:
        pytest.skip("a newer torchvision has it")
    words = (before, after) if container is ours.RandomApply else (after, before)
    with pytest.raises(Exception, match=f"^{container.__name__}: transforms .*{name}{' to '.join(words)}"):
        torch.compile(pipeline, fullgraph=True, backend="eager")(boxes)


def half(image: Tensor) -> Tensor:
    """Return a quarter of an image, as a user's function that no plan knows."""
    return image[..., :6, :6]


#: Transforms that give one form together, and some that do not.
CHOICES: dict[str, tuple[Callable[[], list[Any]], str]] = {
    "functions": (lambda: [half, lambda image: image[..., 6:, 6:]], ""),
    "torchvision's": (lambda: [v2.Resize((6, 6)), v2.CenterCrop(6)], ""),
    "Sequential": (lambda: [nn.Sequential(v2.Resize((6, 6))), ours.CenterCrop(6)], ""),
    "behind ours": (
        lambda: [ours.Compose([ours.Resize((6, 6)), Brighter()]), ours.Compose([half, Brighter()])],
        "",
    ),
    "another dtype": (lambda: [ours.ToDtype(torch.float32), lambda image: image.float()], ""),
    "two sizes": (lambda: [half, Brighter()], r"Brighter: \(4, 3, 6, 6\) of torch.uint8 to \(4, 3, 12, 12\)"),
    "two dtypes": (lambda: [Brighter(), Tensor.float], r"float: .* of torch.uint8 to .* of torch.float32"),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_choices_of_other_code_are_made_for_each_sample(choice: str) -> None:
    """The results are a loop's if they have one form; else the error names the container and the transform."""
    make, refusal = CHOICES[choice]
    images = torch.randint(0, 256, (4, 3, 12, 12), dtype=torch.uint8)
    whole = ours.RandomChoice(make(), per_sample=True)
    if refusal:
        with refused(match=rf"^RandomChoice: transforms must give results of .*, got {refusal}"):
            whole(images)
        return
    for seed in range(3):
        wanted = seeded(seed, loop, ours.RandomChoice(make()), images)
        assert torch.equal(seeded(seed, whole, images), wanted)
    with refused(match=r"^RandomApply: transforms that may be left out .*, got RandomChoice: \(4"):
        ours.RandomApply([ours.RandomChoice(make())], per_sample=True)(images)


@nightly
@pytest.mark.parametrize("make", [ours.RandomChoice, ours.RandomOrder, ours.RandomApply])
def test_refusals_are_whole_where_sizes_are_symbols(make: Any) -> None:
    image = torch.zeros(3, 24, 24, dtype=torch.uint8)
    pipeline = make([ours.RandomAffine(10), ours.Resize((12, 12))])
    graph = torch.compile(pipeline, fullgraph=True, dynamic=True, backend="eager")
    with pytest.raises(Exception, match=r"must .* and with per_sample=True, got Resize: .*24.*12"):
        graph(image)


# -- exported programs -------------------------------------------------------------------------------


class Program(nn.Module):
    def __init__(self, transform: Any) -> None:
        super().__init__()
        self.transform = transform

    def forward(self, image: Tensor) -> Any:
        return self.transform(image)


@TV_TENSORS
@pytest.mark.parametrize("strict", [False, True])
def test_programs_hold_no_generator(strict: bool) -> None:
    """A generator, and another library's, is an object of this process."""
    generator = torch.Generator()
    flip = ours.RandomHorizontalFlip(per_sample=True, generator=generator)
    pipeline, noise = ours.Compose([ours.RandomInvert(), flip]), ours.GaussianNoise(generator=generator)
    for transform in (flip, pipeline, ours.RandomApply([flip]), noise):
        with pytest.raises(
            Exception, match="generator must be PyTorch's in an exported program, got one of its own"
        ):
            torch.export.export(Program(transform), (torch.rand(2, 3, 4, 6),), strict=strict)


def test_a_handle_of_another_process_is_refused() -> None:
    from imgops.transforms._core import programs

    handles = {programs.new_handle() for _ in range(100)}
    assert len(handles) == 100 and all(0 < h < 2**56 for h in handles)
    with refused(match="generator must be one of this process"):
        programs.generator_of(12345)
