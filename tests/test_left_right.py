"""A mirror lets left and right change places: keypoints and their flags, classes of boxes, values of masks."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

import imgops.transforms as ours
from tests.checks import bits_equal, difference
from tests.followers import Boxes, Image, Mask, Points, check_in_one_graph, plain, raises_each, rows, stack
from tests.tiers import nightly
from tests.transform_cases import seeded

MIRRORS = ("RandomHorizontalFlip", "RandomVerticalFlip", "RandomTranspose")
FLIP = ours.RandomHorizontalFlip
PARTS = ("eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle")
#: The names of COCO's keypoints in its order, and for each of them the one that it becomes in a mirror.
COCO = ["nose", *(f"{side}_{part}" for part in PARTS for side in ("left", "right"))]
OTHER = [0, *(COCO.index(f"{side}_{part}") for part in PARTS for side in ("right", "left"))]
SIDE = 24


def people(seed: int = 0) -> dict[str, Any]:
    """Return two people with their keypoints."""
    draw = torch.Generator().manual_seed(seed)
    return {
        "image": Image(torch.randint(0, 256, (3, SIDE, SIDE), dtype=torch.uint8, generator=draw)),
        "points": Points(torch.rand(2, 17, 2, generator=draw) * SIDE, canvas_size=(SIDE, SIDE)),
        "visibility": torch.rand(2, 17, generator=draw),
        "boxes": Boxes([[1.0, 2, 9, 8], [3, 4, 20, 22]], format="XYXY", canvas_size=(SIDE, SIDE)),
        "labels": torch.tensor([1, 2]),
        "mask": Mask(torch.randint(0, 5, (SIDE, SIDE), generator=draw)),
    }


def crowd(count: int) -> dict[str, Any]:
    """Return a batch of samples, whose boxes and labels are lists."""
    return stack([people(i) for i in range(count)], ("boxes", "labels"))


def mirror(name: str = "RandomHorizontalFlip", p: float = 1.0, **how: Any) -> Any:
    return getattr(ours, name)(p, **{"swap": "coco", "swap_labels": [(1, 2)], "swap_masks": [(3, 4)], **how})


# -- what changes places -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", MIRRORS)
def test_left_and_right_change_places(name: str) -> None:
    """In a mirror, everything named changes places, and twice gives what was; without one, nothing does."""
    given = people()
    bare, out = getattr(ours, name)(1.0)(given), mirror(name)(given)
    wanted = {
        **bare,
        "points": Points(plain(bare["points"])[:, OTHER], canvas_size=(SIDE, SIDE)),
        "visibility": given["visibility"][:, OTHER],
        "labels": torch.tensor([2, 1]),
        "mask": Mask(torch.tensor([0, 1, 2, 4, 3])[plain(bare["mask"])]),
    }
    assert not difference(out, wanted) and not difference(mirror(name)(out), given, 1e-5)
    assert bare["labels"] is given["labels"] and bare["visibility"] is given["visibility"]
    assert not difference(mirror(name, 0.0)(given), given)
    assert mirror(name).swap == [[i, OTHER[i]] for i in range(17) if i < OTHER[i]]


@pytest.mark.parametrize("name", MIRRORS)
def test_each_sample_is_what_a_loop_gives(name: str) -> None:
    batch = crowd(5)
    for labels in (batch["labels"], torch.stack(batch["labels"])):
        found = rows(seeded(0, mirror(name, 0.5, per_sample=True), {**batch, "labels": labels}), 5)
        torch.manual_seed(0)
        wanted = [mirror(name, 0.5)(people(i)) for i in range(5)]
        assert not difference(found, wanted)
        assert 0 < sum(out["labels"].tolist() == [2, 1] for out in wanted) < 5
    batch["labels"] = [batch["labels"][0]] * 5  # one tensor in several places: each sample swaps alone
    seen = [seeded(seed, mirror(name, 0.5, per_sample=True), batch)["labels"] for seed in range(12)]
    assert len({tuple(labels[i].tolist() for i in (0, 1)) == ([1, 2], [2, 1]) for labels in seen}) == 2


@nightly
@pytest.mark.parametrize("names", [MIRRORS[:1], MIRRORS], ids=len)
def test_one_graph(names: tuple[str, ...]) -> None:
    """One sample or a batch, of a transform and of one in a container."""
    calls, inputs = {}, {}
    for name, count in product(names, (0, 4) if len(names) > 1 else (0,)):
        steps = mirror(name, 0.5, per_sample=bool(count)), ours.RandomApply([mirror(name, 0.5)])
        calls[f"{name} {count}"] = ours.Compose(steps, per_sample=bool(count))
        inputs[f"{name} {count}"] = (crowd(count) if count else people(),)
    check_in_one_graph(calls, inputs, 4)


def test_parameters_can_be_applied_again() -> None:
    given, transform = people(), mirror(p=0.5)
    params = [transform.sample(given) for _ in range(8)]
    assert {tuple(transform.apply(given, p)["labels"].tolist()) for p in params} == {(1, 2), (2, 1)}


@pytest.mark.parametrize(
    "dtype",
    [torch.uint8, torch.int8, torch.uint16, torch.uint32, torch.uint64, torch.float16, torch.float64],
)
def test_labels_of_any_dtype_change_places(dtype: torch.dtype) -> None:
    labels = mirror()({**people(), "labels": torch.tensor([1, 2]).to(dtype)})["labels"]
    assert labels.dtype == dtype and labels.long().tolist() == [2, 1]


def test_labels_of_masks_change_places() -> None:
    masks = Mask(torch.randint(0, 2, (2, SIDE, SIDE), dtype=torch.uint8))
    given = {"image": people()["image"], "masks": masks, "labels": torch.tensor([1, 2])}
    assert FLIP(1.0, swap_labels=[(1, 2)])(given)["labels"].tolist() == [2, 1]
    labels = seeded(0, FLIP(0.5, swap_labels=[(1, 2)], per_sample=True), stack([given, given]))["labels"]
    assert labels.tolist() in ([[1, 2], [2, 1]], [[2, 1], [1, 2]])


def test_pairs_can_be_set_and_shown() -> None:
    flip, given = FLIP(1.0), people()
    flip.swap, flip.swap_labels = "coco", torch.tensor([[1, 2]])
    assert not difference(flip(given), mirror(swap_masks=None)(given))
    row = given["image"], Points(torch.rand(34, 2), canvas_size=(SIDE, SIDE))
    flip.swap, flip.swap_labels = [(0, 33)], None  # a name stands for 17 keypoints, pairs for any number
    assert flip(row)[1][33, 1] == row[1][0, 1]
    assert repr(FLIP()) == "RandomHorizontalFlip(p=0.5)"
    assert repr(ours.RandomVerticalFlip(swap=[(0, 1)])) == "RandomVerticalFlip(p=0.5, swap=[[0, 1]])"


# -- where labels and flags are ----------------------------------------------------------------------


def nest(sample: dict[str, Any], how: str) -> Any:
    """Return a sample in a structure of others."""
    target = {k: v for k, v in sample.items() if k != "image"}
    if how == "pair":
        return sample["image"], target
    if how == "target":
        return {"image": sample["image"], "target": target}
    if how == "deep":
        return [{"a": {"image": sample["image"], "b": [{"c": target}]}}]
    pose = ("points", "visibility")
    parts = [{k: v for k, v in target.items() if (k in pose) == wanted} for wanted in (True, False)]
    return sample["image"], {"pose": parts[0]}, {"found": parts[1]}


@pytest.mark.parametrize("how", ["pair", "target", "deep", "apart"])
def test_what_belongs_to_boxes_and_points_is_found_in_any_structure(how: str) -> None:
    given = people()
    assert not difference(mirror()(nest(given, how)), nest(mirror()(given), how))


def test_several_samples_in_one_call() -> None:
    first, second, flip = people(), people(1), mirror()
    second["labels"] = torch.tensor([2, 7])
    wanted = tree_leaves([flip(first), flip(second)])
    for together in ([first, second], {"a": first, "b": second}, (first, {"more": [second]})):
        assert not difference(tree_leaves(flip(together)), wanted)
    keys = {f"{k}_{i}": s[k] for i, s in enumerate((first, second)) for k in ("boxes", "labels")}
    out = flip({"image": first["image"], **keys})
    assert (out["labels_0"].tolist(), out["labels_1"].tolist()) == ([2, 1], [1, 7])


def test_getters_find_labels_and_flags() -> None:
    given = people()
    target = {"seen": given["visibility"][..., None], "kinds": given["labels"]}
    sample = given["image"], {**target, "points": given["points"], "boxes": given["boxes"]}
    found = {"labels_getter": lambda x: x[1]["kinds"], "visible_getter": lambda x: x[1]["seen"]}
    _, out = FLIP(1.0, swap="coco", swap_labels=[(1, 2)], **found)(sample)
    assert out["kinds"].tolist() == [2, 1] and bits_equal(out["seen"], target["seen"][:, OTHER])
    _, out = FLIP(1.0, swap="coco", visible_getter=None)(sample)
    assert out["seen"] is target["seen"]


@pytest.mark.parametrize("backend", [None, pytest.param("eager", marks=nightly)])
def test_tensors_in_several_places_change_once(backend: str | None) -> None:
    given, labels, flags = people(), torch.tensor([1, 2]), torch.arange(34.0).reshape(2, 17)
    given = {k: v for k, v in given.items() if k not in ("mask", "visibility")} | {"labels": labels}
    transform = mirror(swap_masks=None)
    if backend is not None:
        transform = torch.compile(transform, backend=backend)
    out = transform([{**given, "cls": labels}, given])
    assert [x["labels"].tolist() for x in out] == [[2, 1], [2, 1]] and out[0]["cls"] is labels
    both = transform({**given, "visible": flags, "visibility": flags})
    assert bits_equal(both["visible"], both["visibility"]) and bits_equal(both["visible"], flags[:, OTHER])
    getter: Any = FLIP(1.0, swap_labels=[(1, 2)], labels_getter=lambda x: [y["labels"] for y in x])
    assert [x["labels"].tolist() for x in getter([given, given])] == [[2, 1], [2, 1]]
    with pytest.raises(ValueError, match=r"^RandomHorizontalFlip: labels must be tensors of the inputs"):
        getter([{**given, "cls": labels}, given])  # which two of the three places?


class Opaque(dict[str, Any]):
    """A dict that PyTorch does not open: what is in it cannot be changed."""


class Pose(NamedTuple):
    """A tuple whose fields are keys."""

    image: Tensor
    points: Tensor
    visible: Tensor


def test_keys_are_those_of_what_pytorch_opens() -> None:
    given, flip = people(), FLIP(1.0, swap="coco", swap_labels=[(1, 2)])
    wanted = flip(given)
    other, flags = torch.arange(17), torch.arange(17).expand(2, 17).clone()
    for key, value in (("labels", given["labels"]), ("visible", given["visibility"])):
        rest = {k: v for k, v in given.items() if v is not value}
        with pytest.raises(TypeError, match=f"^RandomHorizontalFlip: {key} must be in dicts, .*, got Opaque"):
            flip((rest, Opaque({key: value})))
    out = flip((Opaque(name="a", tags=other), given, other))  # no flags: nothing is counted in it
    assert out[2] is other and not difference(out[1], wanted)
    pose = FLIP(1.0, swap="coco")(Pose(given["image"], given["points"], flags))
    assert not difference(pose.points, wanted["points"]) and bits_equal(pose.visible, flags[:, OTHER])
    ratio = torch.tensor(0.5)
    assert flip({**given, "invisible_ratio": ratio})["invisible_ratio"] is ratio


# -- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MIRRORS)
def test_arguments_that_are_no_pairs_raise(name: str) -> None:
    make, given = getattr(ours, name), people()
    wrong = ([(1, 1)], [(1, 2), (2, 3)], [(1, 2, 3)], [(-1, 2)], [(0.5, 1)], 7, [1, 2], [("a", "b")])
    for argument in ("swap", "swap_labels", "swap_masks"):
        text, flip = f"^{name}: {argument} must be pairs of different whole numbers", make(1.0)
        for pairs in wrong:
            raises_each(ValueError, (lambda: make(**{argument: pairs}), text))
        raises_each(ValueError, (lambda: setattr(flip, argument, [(1, 1)]), text))
    for argument in ("labels_getter", "visible_getter"):
        text = f"^{name}: {argument} must be 'default', a callable or None, got 3"
        raises_each(ValueError, (lambda: make(**{argument: 3}), text))
    byte, half = (Mask(torch.zeros(SIDE, SIDE, dtype=d)) for d in (torch.uint8, torch.float16))
    row = given["image"], Points(torch.rand(34, 2), canvas_size=(SIDE, SIDE))
    raises_each(
        ValueError,
        (lambda: make(swap="mpii"), f"^{name}: swap must be pairs of keypoints or one of coco, got 'mpii'"),
        (
            lambda: make(1.0, swap=[(0, 17)])(given),
            f"^{name}: keypoints must be at least 18 for swap, got 17",
        ),
        (lambda: make(0.0, swap="coco")(row), f"^{name}: keypoints must be 17 for a swap by name, got 34"),
        (
            lambda: make(1.0, swap_masks=[(1, 300)])(byte),
            f"^{name}: swap_masks .* 255 for torch.uint8, got 300",
        ),
        (lambda: make(0.0, swap_masks=[(1, 2049)])(half), f"^{name}: .* 2048 for torch.float16, got 2049"),
    )


ONE_EACH = "labels must be one for each box or mask, "
LABELS = torch.tensor([1, 2])
#: What is changed of a sample, and the error, whatever is drawn.
WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"labels": torch.tensor([[0, 1, 0], [0, 0, 1]])}, ONE_EACH + "of shape"),
    ({"labels": torch.tensor([1, 2, 1])}, ONE_EACH + "of shape"),
    ({"labels": torch.tensor(1)}, ONE_EACH + "of shape"),
    ({"labels": torch.tensor([True, False])}, "swap_labels must be from 0 to 1 for torch.bool, got 2"),
    ({"boxes": 3, "points": 3}, ONE_EACH + "got no boxes and no masks"),
    ({"visibility": torch.ones(2, 16)}, "visible must have a flag for each keypoint"),
    ({"points": Points(torch.ones(2, 16, 2), canvas_size=(SIDE, SIDE))}, "keypoints must be at least 17"),
    *(
        ({"labels": labels}, "labels must be tensors of the inputs, not nested ones, got")
        for labels in (["left", "right"], [1, 2], None, [1.0, 2.0])
    ),
)


@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize(("change", "text"), WRONG)
def test_errors_do_not_depend_on_the_draw(p: float, change: dict[str, Any], text: str) -> None:
    given = {k: v for k, v in people().items() if k != "mask"} | change
    with pytest.raises(ValueError, match=f"^RandomHorizontalFlip: {text}"):
        mirror(p=p, swap_masks=None)(given)


@nightly
@pytest.mark.parametrize(("change", "text"), WRONG[:7])
def test_errors_in_a_graph(change: dict[str, Any], text: str) -> None:
    given = {k: v for k, v in people().items() if k != "mask"} | change
    with pytest.raises(ValueError, match=f"^RandomHorizontalFlip: {text}"):
        torch.compile(mirror(p=0.5, swap_masks=None), backend="eager")(given)


def test_labels_that_are_missing_raise() -> None:
    """They would stay on the wrong side in silence; so would those that a getter does not find."""
    given, flip = people(), FLIP(0.0, swap_labels=[(1, 2)])
    pictures = plain(given["image"]), given["image"], ours.functional.to_pil_image(plain(given["image"]))
    some = {k: v for k, v in given.items() if k != "labels"}, (given["image"], given["boxes"])
    text = rf"^RandomHorizontalFlip: {ONE_EACH}(of shape .*got \[\]|got no boxes and no masks)$"
    for inputs in (*pictures, *some):
        raises_each(ValueError, *((lambda: t(inputs), text) for t in (flip, ours.Compose([flip, flip]))))
    lost, nested = mirror(labels_getter=lambda x: LABELS), torch.nested.nested_tensor([LABELS, LABELS])
    batch, each = crowd(2), mirror(per_sample=True)
    text = "^RandomHorizontalFlip: labels must be tensors of the inputs, not nested ones, got"
    raises_each(
        ValueError,
        (lambda: lost({**given, "labels": [1, 2]}), text),
        (lambda: each({**batch, "labels": nested}), text),
        (lambda: each({**batch, "labels": [LABELS[:1]] * 3}), rf"{ONE_EACH}of shape \[\(2,\), \(2,\)\], got"),
    )


def test_masks_and_keypoints_that_are_not_of_all_samples_raise() -> None:
    """Outside of a list with one for each sample they must have a batch dimension."""
    images, flip = torch.zeros(2, 3, SIDE, SIDE, dtype=torch.uint8), FLIP(0.5, per_sample=True)
    masks = [Mask(torch.zeros(*n, SIDE, SIDE, dtype=torch.uint8)) for n in ((3,), ())]
    points = Points(torch.zeros(3, 17, 2), canvas_size=(SIDE, SIDE))
    for one in (*masks, points, Image(torch.zeros(3, SIDE, SIDE, dtype=torch.uint8))):
        for targets in (one, [one] * 3, {"masks": [one] * 3}):
            with pytest.raises(
                ValueError, match=rf"Flip: {type(one).__name__} must be a batch of 2 with per_sample"
            ):
                flip(Image(images), targets)
    masks, points = (
        Mask(torch.randint(0, 5, (2, SIDE, SIDE))),
        Points(torch.rand(2, 7, 2), canvas_size=(SIDE, SIDE)),
    )
    found = seeded(1, flip, images, [masks, points])[1]  # two classes in a list: each has a batch dimension
    torch.manual_seed(1)
    wanted = [FLIP(0.5)(images[i], rows(masks, 2)[i], rows(points, 2)[i])[1:] for i in range(2)]
    assert not difference([rows(x, 2) for x in found], [[w[k] for w in wanted] for k in (0, 1)])
