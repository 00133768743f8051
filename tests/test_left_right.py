"""A mirror lets left and right change places: keypoints and their flags, classes of boxes, values of masks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from checks import bits_equal
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torchvision import tv_tensors
from transform_cases import seeded

import imgops.transforms as ours
from tests.tiers import nightly_unless

MIRRORS = ("RandomHorizontalFlip", "RandomVerticalFlip", "RandomTranspose")
KNOWN = json.loads(Path(__file__).with_name("data").joinpath("rotated_boxes.json").read_text())
#: The names of COCO's keypoints in its order.
COCO = (
    *(
        "nose",
        "left_eye",
        "right_eye",
        "left_ear",
        "right_ear",
        "left_shoulder",
        "right_shoulder",
        "left_elbow",
    ),
    *("right_elbow", "left_wrist", "right_wrist", "left_hip", "right_hip", "left_knee", "right_knee"),
    *("left_ankle", "right_ankle"),
)
SIDE = 24


def people(samples: int = 0, seed: int = 0) -> dict[str, Any]:
    """Return two people with their keypoints, or a batch of such samples."""
    draw, lead = torch.Generator().manual_seed(seed), (samples,) if samples else ()
    boxes = [
        tv_tensors.BoundingBoxes([[1.0, 2, 9, 8], [3, 4, 20, 22]], format="XYXY", canvas_size=(SIDE, SIDE))
        for _ in range(samples or 1)
    ]
    labels = [torch.tensor([1, 2]) for _ in range(samples or 1)]
    return {
        "image": tv_tensors.Image(
            torch.randint(0, 256, (*lead, 3, SIDE, SIDE), dtype=torch.uint8, generator=draw)
        ),
        "points": tv_tensors.KeyPoints(
            torch.rand(*lead, 2, 17, 2, generator=draw) * SIDE, canvas_size=(SIDE, SIDE)
        ),
        "visibility": torch.rand(*lead, 2, 17, generator=draw),
        "boxes": boxes if samples else boxes[0],
        "labels": labels if samples else labels[0],
        "mask": tv_tensors.Mask(torch.randint(0, 5, (*lead, SIDE, SIDE), generator=draw)),
    }


def mirror(name: str, p: float = 1.0, **how: Any) -> Any:
    given = {"swap": "coco", "swap_labels": [(1, 2)], "swap_masks": [(3, 4)], **how}
    return getattr(ours, name)(p, **given)


def test_coco_is_a_list_of_names() -> None:
    sides = [(name.replace("left", "right"), i) for i, name in enumerate(COCO) if name.startswith("left")]
    assert ours.RandomHorizontalFlip(swap="coco").swap == [[i, COCO.index(other)] for other, i in sides]


@pytest.mark.parametrize("name", MIRRORS)
def test_left_and_right_change_places(name: str) -> None:
    given = people()
    plain, out = getattr(ours, name)(1.0)(given), mirror(name)(given)
    other = [
        COCO.index(
            {"left": "right", "right": "left"}.get(n.split("_")[0], n) + n[n.find("_") :] if "_" in n else n
        )
        for n in COCO
    ]
    assert bits_equal(out["points"].as_subclass(Tensor), plain["points"].as_subclass(Tensor)[:, other])
    assert bits_equal(out["visibility"], given["visibility"][:, other])
    assert out["labels"].tolist() == [2, 1]
    values = torch.tensor([0, 1, 2, 4, 3])[plain["mask"].as_subclass(Tensor)]
    assert bits_equal(out["mask"].as_subclass(Tensor), values)
    for key in ("image", "boxes"):
        assert bits_equal(out[key].as_subclass(Tensor), plain[key].as_subclass(Tensor))
    twice = mirror(name)(out)
    for key in ("image", "visibility", "labels", "mask"):
        assert bits_equal(twice[key].as_subclass(Tensor), given[key].as_subclass(Tensor))
    torch.testing.assert_close(twice["points"].as_subclass(Tensor), given["points"].as_subclass(Tensor))


@pytest.mark.parametrize("theirs", sorted(KNOWN["named"]))
def test_albumentationsx_has_the_same_rows(theirs: str) -> None:
    name = {"Transpose": "RandomTranspose"}.get(theirs, f"Random{theirs}")
    points = tv_tensors.KeyPoints(KNOWN["points"], canvas_size=tuple(KNOWN["size"]))
    out = getattr(ours, name)(1.0, swap=[(0, 1)])(points)
    torch.testing.assert_close(out.as_subclass(Tensor), torch.tensor(KNOWN["named"][theirs]))


@pytest.mark.parametrize("name", MIRRORS)
def test_nothing_changes_without_a_mirror(name: str) -> None:
    given = people()
    out = mirror(name, 0.0)(given)
    assert all(bits_equal(out[k].as_subclass(Tensor), v.as_subclass(Tensor)) for k, v in given.items())
    bare = getattr(ours, name)(1.0)(given)
    assert bare["labels"] is given["labels"] and bare["visibility"] is given["visibility"]


@pytest.mark.parametrize("name", MIRRORS)
def test_each_sample_is_what_a_loop_gives(name: str) -> None:
    batch = people(5)
    for labels in (batch["labels"], torch.stack(batch["labels"])):
        given = {**batch, "labels": labels}
        found = seeded(0, mirror(name, 0.5, per_sample=True), given)
        torch.manual_seed(0)
        alone, chosen = mirror(name, 0.5), 0
        for i in range(5):
            one = {
                k: v[i] if isinstance(v, list) or type(v) is Tensor else tv_tensors.wrap(v[i], like=v)
                for k, v in given.items()
            }
            out = alone(one)
            chosen += not torch.equal(out["labels"], one["labels"])
            for key, value in out.items():
                assert bits_equal(found[key][i].as_subclass(Tensor), value.as_subclass(Tensor)), (key, i)
        assert 0 < chosen < 5


@pytest.mark.parametrize(
    ("name", "samples"),
    nightly_unless(
        lambda values: (values[0] == MIRRORS[0]) == (values[1] == 0),
        [(n, s) for n in MIRRORS for s in (0, 4)],
    ),
)
def test_one_graph(name: str, samples: int) -> None:
    torch._dynamo.reset()
    given = people(samples)
    transform = ours.Compose(
        [mirror(name, 0.5, per_sample=bool(samples)), ours.RandomApply([mirror(name, 0.5)])]
    )
    if samples:
        transform = ours.Compose(transform.transforms, per_sample=True)
    compiled = torch.compile(transform, fullgraph=True, backend="aot_eager")
    for seed in range(4):
        wanted, found = (tree_leaves(seeded(seed, f, given)) for f in (transform, compiled))
        assert all(
            bits_equal(a.as_subclass(Tensor), b.as_subclass(Tensor))
            for a, b in zip(wanted, found, strict=True)
        )


def test_getters_find_labels_and_flags() -> None:
    given = people()
    sample = (
        given["image"],
        {
            "seen": given["visibility"][..., None],
            "kinds": given["labels"],
            "points": given["points"],
            "boxes": given["boxes"],
        },
    )
    transform = ours.RandomHorizontalFlip(
        1.0,
        swap="coco",
        swap_labels=[(1, 2)],
        labels_getter=lambda inputs: inputs[1]["kinds"],
        visible_getter=lambda inputs: inputs[1]["seen"],
    )
    _, out = transform(sample)
    assert out["kinds"].tolist() == [2, 1]
    assert bits_equal(out["seen"][:, 1], sample[1]["seen"][:, 2])
    _, out = ours.RandomHorizontalFlip(1.0, swap="coco", visible_getter=None)(sample)
    assert out["seen"] is sample[1]["seen"]


def test_parameters_can_be_applied_again() -> None:
    given, transform = people(), mirror("RandomHorizontalFlip", 0.5)
    params = [transform.sample(given) for _ in range(8)]
    results = {tuple(transform.apply(given, p)["labels"].tolist()) for p in params}
    assert results == {(1, 2), (2, 1)}


@pytest.mark.parametrize("name", MIRRORS)
def test_errors(name: str) -> None:
    make, given = getattr(ours, name), people()
    for argument in ("swap", "swap_labels", "swap_masks"):
        for wrong in (
            [(1, 1)],
            [(1, 2), (2, 3)],
            [(1, 2, 3)],
            [(-1, 2)],
            [(0.5, 1)],
            7,
            [1, 2],
            [("a", "b")],
        ):
            with pytest.raises(
                ValueError, match=f"^{name}: {argument} must be pairs of different whole numbers"
            ):
                make(**{argument: wrong})
    with pytest.raises(
        ValueError, match=f"^{name}: swap must be pairs of keypoints or one of coco, got 'mpii'"
    ):
        make(swap="mpii")
    for argument in ("labels_getter", "visible_getter"):
        with pytest.raises(
            ValueError, match=f"^{name}: {argument} must be 'default', a callable or None, got 3"
        ):
            make(**{argument: 3})
    with pytest.raises(ValueError, match=f"^{name}: keypoints must be at least 18 for swap, got 17"):
        make(1.0, swap=[(0, 17)])(given)
    with pytest.raises(ValueError, match=f"^{name}: visible must have a flag for each keypoint, "):
        make(1.0, swap="coco")({**given, "visibility": torch.ones(3)})
    with pytest.raises(
        ValueError, match=f"^{name}: swap_masks must be from 0 to 255 for torch.uint8, got 300"
    ):
        make(1.0, swap_masks=[(1, 300)])(
            given["image"], tv_tensors.Mask(torch.zeros(SIDE, SIDE, dtype=torch.uint8))
        )
    with pytest.raises(
        ValueError,
        match=rf"^{name}: labels must be one for each box or mask, of shape \[\(2,\), \(2,\)\], got",
    ):
        mirror(name, per_sample=True)({**people(2), "labels": [torch.tensor([1])] * 3})


@pytest.mark.parametrize("labels", [["left", "right"], [1, 2], None, torch.tensor([1, 2]).float().tolist()])
def test_labels_that_cannot_change_places_raise(labels: Any) -> None:
    """They would stay on the wrong side in silence."""
    given = {**people(), "labels": labels}
    for how in ({}, {"labels_getter": lambda inputs: torch.tensor([1, 2])}):
        with pytest.raises(
            ValueError,
            match=r"^RandomHorizontalFlip: labels must be tensors of the inputs, not nested ones, got",
        ):
            mirror("RandomHorizontalFlip", **how)(given)


WIDE = (torch.uint8, torch.int8, torch.uint16, torch.uint32, torch.uint64, torch.float16, torch.float64)


@pytest.mark.parametrize("dtype", WIDE)
def test_labels_of_any_dtype_change_places(dtype: torch.dtype) -> None:
    given = {**people(), "labels": torch.tensor([1, 2]).to(dtype)}
    labels = mirror("RandomHorizontalFlip")(given)["labels"]
    assert labels.dtype == dtype and labels.long().tolist() == [2, 1]


def nest(sample: dict[str, Any], how: str) -> Any:
    """Return a sample in a structure of others."""
    target = {k: v for k, v in sample.items() if k != "image"}
    if how == "flat":
        return sample
    if how == "pair":
        return sample["image"], target
    if how == "target":
        return {"image": sample["image"], "target": target}
    if how == "deep":
        return [{"a": {"image": sample["image"], "b": [{"c": target}]}}]
    points = ("points", "visibility")
    parts = [{k: v for k, v in target.items() if (k in points) == wanted} for wanted in (True, False)]
    return sample["image"], {"pose": parts[0]}, {"found": parts[1]}


@pytest.mark.parametrize("how", ["flat", "pair", "target", "deep", "apart"])
def test_what_belongs_to_boxes_and_points_is_found_in_any_structure(how: str) -> None:
    given = people()
    wanted = tree_leaves(nest(mirror("RandomHorizontalFlip")(given), how))
    found = tree_leaves(mirror("RandomHorizontalFlip")(nest(given, how)))
    assert all(
        bits_equal(a.as_subclass(Tensor), b.as_subclass(Tensor)) for a, b in zip(found, wanted, strict=True)
    )
    assert found[3 if how == "flat" else -2].tolist() != [1, 2]


def test_several_samples_in_one_call() -> None:
    first, second = people(), people(seed=1)
    second["labels"] = torch.tensor([2, 7])
    flip = mirror("RandomHorizontalFlip")
    for together in ([first, second], {"a": first, "b": second}, (first, {"more": [second]})):
        leaves = tree_leaves(flip(together))
        wanted = [x for sample in (first, second) for x in tree_leaves(flip(sample))]
        assert all(
            bits_equal(a.as_subclass(Tensor), b.as_subclass(Tensor))
            for a, b in zip(leaves, wanted, strict=True)
        )
    twice = {"image": first["image"]}
    for i, sample in enumerate((first, second)):
        twice |= {f"boxes_{i}": sample["boxes"], f"labels_{i}": sample["labels"]}
    out = flip(twice)
    assert (out["labels_0"].tolist(), out["labels_1"].tolist()) == ([2, 1], [1, 7])


@pytest.mark.parametrize(("p", "backend"), [(0.0, None), (1.0, None), (0.5, "eager")])
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"labels": torch.tensor([[0, 1, 0], [0, 0, 1]])},
            "labels must be one for each box or mask, of shape",
        ),
        ({"labels": torch.tensor([1, 2, 1])}, "labels must be one for each box or mask, of shape"),
        ({"labels": torch.tensor(1)}, "labels must be one for each box or mask, of shape"),
        ({"labels": torch.tensor([True, False])}, "swap_labels must be from 0 to 1 for torch.bool, got 2"),
        ({"boxes": 3, "points": 3}, "labels must be one for each box or mask, got no boxes and no masks"),
        ({"visibility": torch.ones(2, 16)}, "visible must have a flag for each keypoint"),
        (
            {"points": tv_tensors.KeyPoints(torch.ones(2, 16, 2), canvas_size=(SIDE, SIDE))},
            "keypoints must be at least 17",
        ),
    ],
)
def test_errors_do_not_depend_on_the_draw(
    p: float, backend: str | None, change: dict[str, Any], text: str
) -> None:
    transform = mirror("RandomHorizontalFlip", p, swap_masks=None)
    given = {k: v for k, v in people().items() if k != "mask"} | change
    if backend is not None:
        torch._dynamo.reset()
        transform = torch.compile(transform, backend=backend)
    with pytest.raises(ValueError, match=f"^RandomHorizontalFlip: {text}"):
        transform(given)


def test_labels_that_are_missing_raise() -> None:
    given = people()
    plain = given["image"].as_subclass(Tensor)
    pictures = plain, given["image"], ours.functional.to_pil_image(plain)
    flip = ours.RandomHorizontalFlip(0.0, swap_labels=[(1, 2)])
    for inputs in (
        *pictures,
        {k: v for k, v in given.items() if k != "labels"},
        (given["image"], given["boxes"]),
    ):
        for transform in (flip, ours.Compose([flip, flip])):
            with pytest.raises(
                ValueError,
                match=r"^RandomHorizontalFlip: labels must be one for each box or mask, "
                r"(of shape .*got \[\]|got no boxes and no masks)$",
            ):
                transform(inputs)


def test_labels_of_masks_change_places() -> None:
    masks = tv_tensors.Mask(torch.randint(0, 2, (2, SIDE, SIDE), dtype=torch.uint8))
    given = {"image": people()["image"], "masks": masks, "labels": torch.tensor([1, 2])}
    assert ours.RandomHorizontalFlip(1.0, swap_labels=[(1, 2)])(given)["labels"].tolist() == [2, 1]
    both = {
        k: torch.stack([v, v]) if type(v) is Tensor else tv_tensors.wrap(torch.stack([v, v]), like=v)
        for k, v in given.items()
    }
    labels = seeded(0, ours.RandomHorizontalFlip(0.5, swap_labels=[(1, 2)], per_sample=True), both)["labels"]
    assert labels.tolist() in ([[1, 2], [2, 1]], [[2, 1], [1, 2]])


def test_numbers_that_a_dtype_cannot_hold_raise() -> None:
    mask = tv_tensors.Mask(torch.zeros(SIDE, SIDE, dtype=torch.float16))
    with pytest.raises(
        ValueError,
        match=r"^RandomHorizontalFlip: swap_masks must be from 0 to 2048 for torch.float16, got 2049",
    ):
        ours.RandomHorizontalFlip(0.0, swap_masks=[(1, 2049)])(people()["image"], mask)


def test_pairs_can_be_set() -> None:
    flip = ours.RandomHorizontalFlip(1.0)
    flip.swap, flip.swap_labels = "coco", torch.tensor([[1, 2]])
    given = people()
    out, wanted = flip(given), mirror("RandomHorizontalFlip", swap_masks=None)(given)
    assert all(bits_equal(out[k].as_subclass(Tensor), v.as_subclass(Tensor)) for k, v in wanted.items())
    with pytest.raises(ValueError, match=r"^RandomHorizontalFlip: swap_masks must be pairs of different"):
        flip.swap_masks = [(1, 1)]
    with pytest.raises(
        ValueError, match=r"^RandomHorizontalFlip: swap must be pairs of keypoints or one of coco"
    ):
        flip.swap = "mpii"


@pytest.mark.parametrize("backend", [None, "eager"])
def test_tensors_in_several_places_change_once(backend: str | None) -> None:
    given, labels, flags = people(), torch.tensor([1, 2]), torch.arange(34.0).reshape(2, 17)
    given = {k: v for k, v in given.items() if k not in ("mask", "visibility")} | {"labels": labels}
    transform = mirror("RandomHorizontalFlip", swap_masks=None)
    if backend is not None:
        torch._dynamo.reset()
        transform = torch.compile(transform, backend=backend)
    out = transform([{**given, "cls": labels}, given])
    assert [x["labels"].tolist() for x in out] == [[2, 1], [2, 1]] and out[0]["cls"] is labels
    both = transform({**given, "visible": flags, "visibility": flags})
    assert bits_equal(both["visible"], both["visibility"]) and both["visible"][0, :3].tolist() == [0, 2, 1]
    getter: Any = ours.RandomHorizontalFlip(
        1.0, swap_labels=[(1, 2)], labels_getter=lambda x: [y["labels"] for y in x]
    )
    assert [x["labels"].tolist() for x in getter([given, given])] == [[2, 1], [2, 1]]
    with pytest.raises(ValueError, match=r"^RandomHorizontalFlip: labels must be tensors of the inputs"):
        getter([{**given, "cls": labels}, given])  # which two of the three places?


def test_samples_of_a_list_that_share_labels_swap_alone() -> None:
    batch = people(2)
    batch["labels"] = [torch.tensor([1, 2])] * 2
    transform = mirror("RandomHorizontalFlip", 0.5, per_sample=True)
    seen = {
        tuple(map(tuple, (x.tolist() for x in seeded(seed, transform, batch)["labels"])))
        for seed in range(12)
    }
    assert len(seen) == 4


def test_masks_and_keypoints_that_are_not_of_all_samples_raise() -> None:
    """Outside of a list with one for each sample they must have a batch dimension."""
    images = tv_tensors.Image(torch.zeros(2, 3, SIDE, SIDE, dtype=torch.uint8))
    flip: Any = ours.RandomHorizontalFlip(0.5, per_sample=True)
    for one in (
        tv_tensors.Mask(torch.zeros(3, SIDE, SIDE, dtype=torch.uint8)),
        tv_tensors.Mask(torch.zeros(SIDE, SIDE, dtype=torch.uint8)),
        tv_tensors.KeyPoints(torch.zeros(3, 17, 2), canvas_size=(SIDE, SIDE)),
        tv_tensors.Image(torch.zeros(3, SIDE, SIDE, dtype=torch.uint8)),
    ):
        for targets in (one, [one] * 3):
            with pytest.raises(
                ValueError, match=f"^RandomHorizontalFlip: {type(one).__name__} must be a batch of 2 with"
            ):
                flip(images, targets)


def test_nested_labels_raise() -> None:
    given = people(2)
    labels = torch.nested.nested_tensor(given["labels"])
    with pytest.raises(
        ValueError, match=r"^RandomHorizontalFlip: labels must be tensors of the inputs, not nested"
    ):
        mirror("RandomHorizontalFlip", per_sample=True)({**given, "labels": labels})


def test_keys_that_only_look_like_flags_stay() -> None:
    given = {**people(), "invisible_ratio": torch.tensor(0.5)}
    out = mirror("RandomHorizontalFlip")(given)
    assert out["invisible_ratio"] is given["invisible_ratio"]


def test_repr_shows_what_is_given() -> None:
    assert repr(ours.RandomHorizontalFlip()) == "RandomHorizontalFlip(p=0.5)"
    assert repr(ours.RandomVerticalFlip(swap=[(0, 1)])) == "RandomVerticalFlip(p=0.5, swap=[[0, 1]])"


class Opaque(dict[str, Any]):
    """A dict that PyTorch does not open: what is in it cannot be changed."""


@pytest.mark.parametrize("key", ["labels", "visible"])
def test_a_dict_that_pytorch_does_not_open_raises_or_is_no_dict(key: str) -> None:
    """Nothing is counted in it, so that no tensor behind it changes places instead."""
    given = people()
    value = given.pop(next(k for k in given if key[:5] in k))
    flip = ours.RandomHorizontalFlip(1.0, swap="coco", swap_labels=[(1, 2)])
    with pytest.raises(
        TypeError, match=f"^RandomHorizontalFlip: {key} must be in dicts, lists or tuples, got Opaque"
    ):
        flip((given, Opaque({key: value})))
    given = people()
    other = torch.arange(17)
    out = flip((Opaque(name="a", tags=other), given, other))
    wanted = flip(given)
    assert out[2] is other
    assert all(torch.equal(out[1][k], wanted[k]) for k in given)


def test_fields_of_named_tuples_are_keys() -> None:
    class Pose(NamedTuple):
        image: Tensor
        points: Tensor
        visible: Tensor

    given = people()
    flags = torch.arange(given["points"].shape[-2]).expand(given["points"].shape[:-1]).clone()
    flip = ours.RandomHorizontalFlip(1.0, swap="coco")
    out = flip(Pose(given["image"], given["points"], flags))
    wanted = flip({**given, "visible": flags})
    assert torch.equal(out.visible, wanted["visible"]) and torch.equal(out.points, wanted["points"])
    assert not torch.equal(out.visible, flags)


def test_a_name_stands_for_a_number_of_keypoints() -> None:
    """Two people in one row of keypoints are not one person with more of them."""
    points = tv_tensors.KeyPoints(torch.rand(34, 2), canvas_size=(SIDE, SIDE))
    image = people()["image"]
    for p in (0.0, 1.0):
        with pytest.raises(
            ValueError, match=r"^RandomHorizontalFlip: keypoints must be 17 for a swap by name, got 34"
        ):
            ours.RandomHorizontalFlip(p, swap="coco")((image, points))
    flip = ours.RandomHorizontalFlip(1.0, swap="coco")
    flip.swap = [(0, 33)]
    assert flip((image, points))[1][33, 1] == points[0, 1]
