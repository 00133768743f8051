"""What belongs to an object stays with it: boxes from masks, flags of keypoints, labels, masks of several samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from added_cases import Row
from checks import bits_equal
from groups import compile_together, groups
from test_transforms_moves import GRAPHS, MOVING, made
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torchvision import tv_tensors
from torchvision.ops import masks_to_boxes
from torchvision.transforms import v2
from transform_cases import Case, picture, seeded

from imgops import transforms as ours
from tests.tiers import nightly

needs_classes = pytest.mark.skipif(not GRAPHS, reason="dynamo takes no tv_tensors")
HEIGHT, WIDTH = 96, 128


def plain(value: Any) -> Any:
    return value.as_subclass(Tensor) if isinstance(value, Tensor) else value


def same(found: Any, wanted: Any) -> bool:
    pairs = list(zip(tree_leaves(found), tree_leaves(wanted), strict=True))
    return all(
        type(a) is type(b) and (bits_equal(plain(a), plain(b)) if isinstance(a, Tensor) else a == b)
        for a, b in pairs
    )


def with_an_l(seed: int, format: str = "XYXY", count: int = 1, dtype: torch.dtype = torch.uint8) -> Any:
    """Return an image with objects of the form of an L, whose boxes are mostly empty."""
    draw = torch.Generator().manual_seed(seed)
    masks, boxes = torch.zeros(count, HEIGHT, WIDTH, dtype=dtype), []
    for mask in masks:
        high, wide = torch.randint(40, 90, (2,), generator=draw).tolist()
        top, left = (
            int(torch.rand((), generator=draw) * (n - m)) for n, m in ((HEIGHT, high), (WIDTH, wide))
        )
        mask[top : top + high, left : left + 4] = 1
        mask[top + high - 4 : top + high, left : left + wide] = 1
        boxes.append([left, top, left + wide, top + high])
    corners = tv_tensors.BoundingBoxes(
        torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4), format="XYXY", canvas_size=(HEIGHT, WIDTH)
    )
    return {
        "image": tv_tensors.Image(torch.full((3, HEIGHT, WIDTH), 9, dtype=torch.uint8)),
        "boxes": v2.ConvertBoundingBoxFormat(format)(corners),
        "masks": tv_tensors.Mask(masks),
        "labels": torch.arange(count),
    }


def around(masks: Any) -> np.ndarray:
    """Return the edges of masks by NumPy."""
    found = np.zeros((len(masks), 4))
    for box, mask in zip(found, plain(masks).numpy()):
        rows, columns = np.nonzero(mask)
        if len(rows):
            box[:] = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
    return found


CROPS: dict[str, dict[str, Any]] = {
    "RandomCrop": {"size": 32},
    "RandomResizedCrop": {"size": 32, "scale": (0.03, 0.2)},
    "CenterCrop": {"size": 32},
    "RandomIoUCrop": {"sampler_options": [0.0]},
}


def count_boxes_without_pixels(transform: Any) -> int:
    found = 0
    for seed in range(200):
        out = seeded(seed, transform, with_an_l(seed))
        box = plain(v2.ConvertBoundingBoxFormat("XYXY")(out["boxes"]))[0]
        found += bool((box[2:] > box[:2]).all()) and not out["masks"].any()
    return found


@pytest.mark.parametrize("name", CROPS)
def test_no_box_is_left_without_a_pixel(name: str) -> None:
    """Of 200 objects of the form of an L, many keep a box after a crop without any of their pixels."""
    crop = getattr(ours, name)
    before = count_boxes_without_pixels(crop(**CROPS[name]))
    assert before > {"RandomCrop": 50, "RandomResizedCrop": 50, "CenterCrop": 50, "RandomIoUCrop": 5}[name]
    assert count_boxes_without_pixels(getattr(v2, name)(**CROPS[name])) == before
    assert count_boxes_without_pixels(ours.Compose([crop(**CROPS[name]), ours.BoxesFromMasks()])) == 0
    assert count_boxes_without_pixels(crop(**CROPS[name], boxes_from_masks=True)) == 0


@pytest.mark.parametrize("name", CROPS)
def test_boxes_from_masks_after_a_crop(name: str) -> None:
    """Only the boxes change; a box that RandomIoUCrop drops stays dropped."""
    option, without = (getattr(ours, name)(**CROPS[name], boxes_from_masks=on) for on in (True, False))
    assert "boxes_from_masks=True" in repr(option) and "boxes_from_masks" not in repr(without)
    dropped = 0
    for seed in range(20):
        given = with_an_l(seed, ("XYXY", "XYWH", "CXCYWH")[seed % 3], 4)
        found, wanted = seeded(seed, option, given), seeded(seed, without, given)
        assert same({**found, "boxes": 0}, {**wanted, "boxes": 0})
        assert found["boxes"].canvas_size == found["image"].shape[-2:]
        tight = around(wanted["masks"])
        if name == "RandomIoUCrop":
            is_dropped = (plain(wanted["boxes"]) == 0).all(-1).numpy()
            dropped += int((is_dropped & tight.any(-1)).sum())
            tight[is_dropped] = 0
        assert np.array_equal(plain(v2.ConvertBoundingBoxFormat("XYXY")(found["boxes"])).numpy(), tight)
        clean = ours.SanitizeBoundingBoxes()(found)
        assert clean["labels"].tolist() == np.flatnonzero(tight.any(-1)).tolist()
        assert len(clean["masks"]) == len(clean["boxes"]) and clean["masks"].bool().flatten(1).any(1).all()
    assert bool(dropped) == (name == "RandomIoUCrop")
    image = picture()
    assert same(seeded(1, option, image), seeded(1, without, image)) if name != "RandomIoUCrop" else True


def test_boxes_are_the_edges_of_masks() -> None:
    """They are masks_to_boxes of torchvision with the edge behind the last pixel, as flips and crops have them."""
    draw = torch.Generator().manual_seed(0)
    corners = torch.randint(0, 40, (60, 2, 2), generator=draw).sort(1).values
    masks = torch.zeros(60, 41, 41, dtype=torch.uint8)
    for mask, ((x, y), (right, bottom)) in zip(masks, corners.tolist()):
        mask[y : bottom + 1, x : right + 1] = torch.rand(bottom + 1 - y, right + 1 - x, generator=draw) < 0.2
    masks[7] = 0
    edges = masks_to_boxes(masks)
    edges[:, 2:] += masks.bool().flatten(1).any(1)[:, None]
    assert np.array_equal(edges.numpy(), around(masks))
    old = torch.randint(0, 40, (60, 4), generator=draw)
    for format in ("XYXY", "XYWH", "CXCYWH"):
        for dtype in (torch.float32, torch.float64, torch.float16, torch.int64, torch.int32):
            like = {"format": format, "canvas_size": (41, 41), "dtype": dtype}
            for kind in (torch.uint8, torch.bool, torch.uint16, torch.int64, torch.float32):
                out = ours.BoxesFromMasks()(
                    tv_tensors.BoundingBoxes(old, **like), tv_tensors.Mask(masks.to(kind))
                )
                theirs = tv_tensors.BoundingBoxes(edges.to(dtype), **{**like, "format": "XYXY"})
                theirs = v2.ConvertBoundingBoxFormat(format)(theirs)
                assert same(out[0], theirs) and out[0].dtype == dtype, (format, dtype, kind)
                assert out[0].format.value == format
    sample = {
        "boxes": tv_tensors.BoundingBoxes(old, format="XYXY", canvas_size=(41, 41)),
        "masks": tv_tensors.Mask(masks),
    }
    tight = ours.BoxesFromMasks()
    for move in (
        *(ours.RandomHorizontalFlip(1.0), ours.RandomVerticalFlip(1.0), ours.RandomRotate90(1.0)),
        *(ours.Pad(3), ours.RandomTranspose(1.0)),
    ):
        one, other = seeded(0, move, tight(sample)), tight(seeded(0, move, sample))
        is_object = masks.bool().flatten(1).any(1)  # a box without an object stays (0, 0, 0, 0)
        assert torch.equal(plain(one["boxes"])[is_object], plain(other["boxes"])[is_object]), move
    for shape in ((0, 5, 7), (2, 0, 7), (0, 0, 0)):
        boxes = tv_tensors.BoundingBoxes(torch.ones(shape[0], 4), format="XYXY", canvas_size=shape[1:])
        found = tight(boxes, tv_tensors.Mask(torch.zeros(shape)))[0]
        assert found.shape == (shape[0], 4) and not found.any() and found.canvas_size == shape[1:]


def test_boxes_of_several_samples() -> None:
    """Lists of boxes and masks, and masks with a batch dimension, give what a loop gives."""
    samples, tight = [with_an_l(seed, count=2 + seed) for seed in range(3)], ours.BoxesFromMasks()
    each = [{"boxes": s["boxes"] * 0 + 1, "masks": s["masks"]} for s in samples]
    for s, one in zip(samples, each):
        one["boxes"] = tv_tensors.wrap(one["boxes"], like=s["boxes"])
    wanted = [tight(s)["boxes"] for s in each]
    assert same([s["boxes"] for s in tight(each)], wanted)
    assert same(tight({k: [s[k] for s in each] for k in ("boxes", "masks")})["boxes"], wanted)
    alike = [with_an_l(seed, count=2) for seed in range(3)]
    stacked = tv_tensors.Mask(torch.stack([plain(s["masks"]) for s in alike]))
    found = tight({"boxes": [s["boxes"] for s in alike], "masks": stacked})["boxes"]
    assert same(found, [s["boxes"] for s in alike])
    classes = {"classes": tv_tensors.Mask(torch.ones(HEIGHT, WIDTH)), **each[1]}
    assert same(tight(classes)["boxes"], wanted[1])


def test_masks_that_do_not_fit_raise() -> None:
    given, tight = with_an_l(0, count=2), ours.BoxesFromMasks()
    must = r"^BoxesFromMasks: bounding boxes must be \(n, 4\), with a Mask \(n, H, W\) of their canvas, got "
    for change, message in (
        ({"masks": given["image"]}, r"\[2\] boxes, and masks of shape \[\]"),
        ({"masks": tv_tensors.Mask(plain(given["masks"])[:1])}, r"\[2\] boxes, and masks of shape"),
        (
            {"masks": tv_tensors.Mask(plain(given["masks"])[:, 1:])},
            r"2 boxes of the canvas \(96, 128\) and a",
        ),
        ({"boxes": [given["boxes"]] * 2}, r"\[2, 2\] boxes, and masks of shape \[\(2, 96, 128\)\]"),
    ):
        with pytest.raises(ValueError, match=must + message):
            tight({**given, **change})
    for dtype, is_held in (
        (torch.uint8, False),
        (torch.int8, False),
        (torch.int16, True),
        (torch.int64, True),
    ):
        boxes = tv_tensors.BoundingBoxes(torch.ones(1, 4, dtype=dtype), format="XYXY", canvas_size=(400, 300))
        masks = tv_tensors.Mask(torch.ones(1, 400, 300))
        if is_held:
            assert tight(boxes, masks)[0].tolist() == [[0, 0, 300, 400]]
            continue
        with pytest.raises(ValueError, match=f"must have a dtype that holds .*got {dtype} and .400, 300.$"):
            tight(boxes, masks)
    with pytest.raises(TypeError, match="BoxesFromMasks: masks must have real numbers"):
        tight(boxes, tv_tensors.Mask(torch.ones(1, 400, 300, dtype=torch.complex64)))
    with pytest.raises(ValueError, match=r"^BoxesFromMasks: inputs must have bounding boxes .*got no boxes$"):
        tight({"masks": given["masks"]})
    for format in ("XYWHR", "CXCYWHR", "XYXYXYXY"):
        length = 8 if format == "XYXYXYXY" else 5
        canvas = {"format": format, "canvas_size": (HEIGHT, WIDTH)}
        turned = tv_tensors.BoundingBoxes(torch.ones(2, length), **canvas)
        for transform in (tight, ours.RandomCrop(9, boxes_from_masks=True)):
            with pytest.raises(NotImplementedError, match=rf"must have the format XYXY.*got {format}$"):
                transform({**given, "boxes": turned})
    with pytest.raises(ValueError, match=r"^RandomCrop: bounding boxes must be \(n, 4\), with a Mask"):
        ours.RandomCrop(9, boxes_from_masks=True)(given["image"], given["boxes"])
    with pytest.raises(TypeError, match=r"^RandomCrop: boxes_from_masks must be"):
        ours.RandomCrop(9, boxes_from_masks=2)


def test_mosaic_with_boxes_from_masks() -> None:
    """All boxes enclose their masks, those that are not cut and those that were wider than their masks, too."""
    samples = [with_an_l(seed, count=2) for seed in range(4)]
    for sample in samples:
        sample["boxes"] = tv_tensors.wrap(
            sample["boxes"] * 0 + torch.tensor([0.0, 0, 128, 96]), like=sample["boxes"]
        )
    wider = 0
    for seed in range(8):
        out = seeded(seed, ours.Mosaic(100, boxes_from_masks=True), samples)
        assert np.array_equal(plain(out["boxes"]).numpy(), around(out["masks"]))
        usual = seeded(seed, ours.Mosaic(100), samples)
        assert same({**out, "boxes": 0}, {**usual, "boxes": 0}) and out["boxes"].canvas_size == (100, 100)
        wider += not same(out["boxes"], usual["boxes"])
    assert wider


@needs_classes
def test_boxes_from_masks_in_a_graph() -> None:
    """One graph for all draws; RandomApply leaves the boxes of a skipped crop as they were."""
    given = with_an_l(3, count=5)
    wide = tv_tensors.wrap(given["boxes"] - 1, like=given["boxes"])
    calls: dict[str, Any] = {
        name: getattr(ours, name)(**options, boxes_from_masks=True) for name, options in CROPS.items()
    }
    calls["BoxesFromMasks"] = ours.BoxesFromMasks()
    crop = ours.RandomCrop((HEIGHT, WIDTH), padding=9, boxes_from_masks=True)
    calls["RandomApply"] = ours.RandomApply([crop], p=0.5)
    joined = [with_an_l(seed, count=2) for seed in range(4)]
    graph, counting = compile_together(
        {**calls, "Mosaic": ours.Mosaic(90, boxes_from_masks=True)}, "eager", "own"
    )
    inputs = {**dict.fromkeys(calls, ({**given, "boxes": wide},)), "Mosaic": (joined,)}
    seen = set()
    for seed in range(6):
        found = seeded(seed, graph, inputs)
        torch.manual_seed(seed)
        wanted = {n: (calls.get(n) or ours.Mosaic(90, boxes_from_masks=True))(*x) for n, x in inputs.items()}
        for name, value in wanted.items():
            assert same(found[name]["boxes"], value["boxes"]), name
        seen.add(same(found["RandomApply"]["boxes"], wide))
    assert seen == {True, False} and counting.count <= 2


def test_boxes_from_masks_of_each_sample() -> None:
    """Each sample of a batch has the boxes of its own crop, also if RandomApply skips it."""
    samples = [with_an_l(seed, count=1 + seed) for seed in range(3)]
    batch = {k: [s[k] for s in samples] for k in ("boxes", "masks")}
    batch["image"] = torch.stack([plain(s["image"]) for s in samples])
    padded = ours.RandomCrop((HEIGHT, WIDTH), padding=40, boxes_from_masks=True)
    for steps in ([ours.RandomResizedCrop(30, boxes_from_masks=True)], [ours.RandomApply([padded], p=0.5)]):
        for seed in range(4):
            found = seeded(seed, ours.Compose(steps, per_sample=True), batch)
            torch.manual_seed(seed)
            wanted = [ours.Compose(steps)({k: v[i] for k, v in batch.items()}) for i in range(3)]
            assert same(
                [found["boxes"], found["masks"]], [[w[k] for w in wanted] for k in ("boxes", "masks")]
            )


# -- lists of what follows the images of a batch ---------------------------------------------------


def batch_of(size: tuple[int, int], count: int = 3) -> dict[str, Any]:
    """Return a batch of images whose boxes, masks and keypoints differ in number."""
    height, width = size
    draw = torch.Generator().manual_seed(5)
    canvas = {"canvas_size": size}
    ends = [torch.rand(n, 2, 2, generator=draw).sort(1).values.flatten(1) for n in (2, 3, 1)]
    scale = torch.tensor([width, height, width, height]) - 1  # older torchvision displaces no box at the edge
    numbers = (2, 3, 1)  # two objects in the first sample: as many as a batch of two would have
    return {
        "image": torch.stack([picture(height=height, width=width, seed=s) for s in range(count)]),
        "boxes": [tv_tensors.BoundingBoxes(e * scale, format="XYXY", **canvas) for e in ends[:count]],
        "masks": [
            tv_tensors.Mask(torch.randint(0, 5, (n, height, width), generator=draw)) for n in numbers[:count]
        ],
        "points": [
            tv_tensors.KeyPoints(torch.rand(n, 4, 2, generator=draw) * min(size), **canvas)
            for n in numbers[:count]
        ],
    }


EACH = [
    case
    for case in MOVING
    if hasattr(getattr(ours, case.name), "per_sample")
    and not getattr(case, "sized", False)
    and getattr(case, "per_sample", True)
]


def loop(case: Case | Row, batch: dict[str, Any]) -> list[dict[str, Any]]:
    alone = made(case)
    return [alone({k: v[i] for k, v in batch.items()}) for i in range(len(batch["image"]))]


def forms(batch: dict[str, Any]) -> list[Any]:
    """Return the batch in four forms: lists in a dict, a list and tuples of dicts; some have boxes twice."""
    names = ("boxes", "masks", "points")
    each = [{n: batch[n][i] for n in names} for i in range(len(batch["image"]))]
    twice = tuple({"more": x["boxes"], **x} for x in each)
    return [(batch,), (batch["image"], each), (batch["image"], tuple(each)), (batch["image"], twice)]


def rows_of(out: Any) -> list[dict[str, Any]]:
    """Return the output of a form as a list of samples."""
    if isinstance(out, dict):
        return [{k: v[i] for k, v in out.items()} for i in range(len(out["image"]))]
    return [{"image": image, **targets} for image, targets in zip(*out)]


@pytest.mark.parametrize("cases", groups(EACH))
def test_lists_of_followers_are_what_a_loop_gives(cases: list[Case | Row]) -> None:
    """Each sample has its own draws, whatever form its boxes, masks and keypoints come in."""
    for case in cases:
        size = case.size if isinstance(case, Row) else (40, 52)
        for count in (2, 3):
            batch = batch_of(size, count)
            for seed in (0, 1, 2):
                torch.manual_seed(seed)
                wanted = loop(case, batch)
                for form in forms(batch):
                    found = rows_of(seeded(seed, made(case, per_sample=True), *form))
                    for sample in found:
                        assert same(sample.pop("more", sample["boxes"]), sample["boxes"])
                    assert same(found, wanted), (str(case), count, seed)


@needs_classes
@pytest.mark.parametrize(
    "cases", [*groups(EACH[::4]), *groups([c for i, c in enumerate(EACH) if i % 4], marks=nightly)]
)
def test_lists_of_followers_in_a_graph(cases: list[Case | Row]) -> None:
    calls = {str(case): made(case, per_sample=True) for case in cases}
    inputs = {str(c): (batch_of(c.size if isinstance(c, Row) else (40, 52)),) for c in cases}
    graph, _ = compile_together(calls, "eager", "own")
    for seed in (0, 1):
        found = seeded(seed, graph, inputs)
        torch.manual_seed(seed)
        for name, call in calls.items():
            wanted = call(*inputs[name])
            for a, b in zip(tree_leaves(found[name]), tree_leaves(wanted), strict=True):
                assert type(a) is type(b)
                if isinstance(a, (tv_tensors.Mask, tv_tensors.KeyPoints, tv_tensors.BoundingBoxes)):
                    assert bits_equal(plain(a), plain(b)), name


def test_lists_of_followers_in_containers() -> None:
    """A closed gate leaves a sample as it is, with labels and flags that swap."""
    batch = batch_of((40, 40))
    batch["labels"] = [torch.arange(len(x)) % 2 for x in batch["masks"]]
    batch["visible"] = [torch.randint(0, 3, x.shape[:-1]) for x in batch["points"]]
    steps = [
        ours.RandomHorizontalFlip(0.5, swap=[(0, 1)], swap_labels=[(0, 1)]),
        ours.RandomApply([ours.RandomAffine(20), ours.RandomVerticalFlip()], p=0.5),
        ours.RandomChoice([ours.RandomRotation(30), ours.RandomHorizontalFlip(1.0)]),
        ours.RandomApply([ours.RandomCrop(40, padding=4)], p=0.5),
        ours.RandomResizedCrop(20),
    ]
    for given in (batch, {k: v for k, v in batch.items() if k != "boxes"}):
        for seed in range(6):
            found = rows_of(seeded(seed, ours.Compose(steps, per_sample=True), given))
            torch.manual_seed(seed)
            wanted = [ours.Compose(steps)({k: v[i] for k, v in given.items()}) for i in range(3)]
            assert same(found, wanted), seed


def test_what_is_no_list_of_samples() -> None:
    """Different classes in a list, and tensors in a tuple without followers, have a batch dimension."""
    images, flip = (
        torch.stack([picture(seed=s) for s in range(2)]),
        ours.RandomHorizontalFlip(0.5, per_sample=True),
    )
    masks = tv_tensors.Mask(torch.randint(0, 5, (2, 40, 52)))
    points = tv_tensors.KeyPoints(torch.rand(2, 7, 2) * 40, canvas_size=(40, 52))
    for seed in range(4):
        _, found = seeded(seed, flip, images, [masks, points])
        torch.manual_seed(seed)
        each = [
            ours.RandomHorizontalFlip(0.5)(
                images[i], tv_tensors.Mask(plain(masks)[i]), tv_tensors.wrap(plain(points)[i], like=points)
            )
            for i in range(2)
        ]
        assert same([plain(x)[i] for i in range(2) for x in found], [plain(x) for e in each for x in e[1:]])
    with pytest.raises(ValueError, match=r"^RandomHorizontalFlip: Mask must be a batch of 2 with per_sample"):
        flip(images, {"masks": [tv_tensors.Mask(torch.zeros(3, 40, 52))] * 3})


# -- flags of keypoints ------------------------------------------------------------------------------


def test_flags_of_keypoints_that_are_cut_off_become_0() -> None:
    """Without the request all of them keep COCO's flag 2; SanitizeKeyPoints says which are outside."""
    draw, cut, kept = torch.Generator().manual_seed(0), 0, 0
    clamp, bare = ours.ClampKeyPoints(visible_getter="default"), ours.ClampKeyPoints()
    crops = (
        ours.RandomCrop(32),
        ours.RandomResizedCrop(32),
        ours.RandomAffine(40, (0.3, 0.3)),
        ours.CenterCrop(50),
    )
    for seed in range(60):
        points = tv_tensors.KeyPoints(torch.rand(17, 2, generator=draw) * 80, canvas_size=(80, 80))
        given = {"points": points, "visible": torch.full((17,), 2)}
        moved = seeded(seed, crops[seed % 4], {"image": torch.zeros(3, 80, 80), **given})
        inside = v2.SanitizeKeyPoints(labels_getter=lambda x: x["index"])(
            {**moved, "index": torch.arange(17)}
        )["index"]
        out = clamp(moved)
        assert set(out["visible"].nonzero().flatten().tolist()) == set(inside.tolist())
        assert set(out["visible"].unique().tolist()) <= {0, 2} and out["visible"].dtype == torch.int64
        assert same(out["points"], v2.ClampKeyPoints()(moved["points"])) and same(
            bare(moved)["points"], out["points"]
        )
        assert bare(moved)["visible"] is moved["visible"]
        cut, kept = cut + 17 - len(inside), kept + int((out["visible"] == 0).sum())
    assert cut == kept > 400


@pytest.mark.parametrize("backend", [None, pytest.param("eager", marks=needs_classes)])
def test_flags_of_every_form(backend: str | None) -> None:
    values = torch.tensor([[[1.0, 1], [11, 3], [-0.1, 0]], [[9.9, 9.9], [9, -1], [float("nan"), 1]]])
    points = tv_tensors.KeyPoints(values, canvas_size=(10, 10))
    one = tv_tensors.KeyPoints(values[0], canvas_size=(10, 2))
    wanted = torch.tensor([[1, 0, 0], [1, 0, 0]])
    torch.compiler.reset()
    for dtype in (torch.int64, torch.uint8, torch.bool, torch.float32, torch.uint16):
        flags = torch.ones(2, 3).to(dtype)
        clamp: Any = ours.ClampKeyPoints(visible_getter="default")
        if backend:
            clamp = torch.compile(clamp, fullgraph=True, backend=backend)
        for given, found in (
            ({"points": points, "Visibility": flags}, lambda out: out["Visibility"]),
            ({"points": points, "visible": flags[..., None]}, lambda out: out["visible"][..., 0]),
            (
                [{"p": one, "visible": flags[0]}, {"p": points, "visible": flags}],
                lambda out: out[1]["visible"],
            ),
        ):
            assert bits_equal(found(clamp(given)), wanted.to(dtype))
    by_hand = ours.ClampKeyPoints(visible_getter=lambda x: x[1])
    assert by_hand(points, torch.full((2, 3), 2))[1].tolist() == (2 * wanted).tolist()
    shares = torch.ones(2, 3, requires_grad=True)
    clamp = ours.ClampKeyPoints(visible_getter="default")
    assert torch.equal(
        torch.autograd.grad(clamp({"p": points, "visible": shares})["visible"].sum(), shares)[0],
        wanted.float(),
    )
    assert same(clamp({"image": picture()}), {"image": picture()})
    for given, got in (
        ({"p": points}, "none"),
        ({"p": points, "visible": torch.ones(3, 2)}, r"shape \(3, 2\)"),
    ):
        with pytest.raises(
            ValueError, match=rf"^ClampKeyPoints: visible must have a flag for each keypoint.*got {got}"
        ):
            clamp(given)
    with pytest.raises(
        ValueError, match=r"^ClampKeyPoints: visible_getter must be 'default', a callable or None, got 3"
    ):
        ours.ClampKeyPoints(visible_getter=3)


# -- labels that are no tensors ----------------------------------------------------------------------

LABELS: dict[str, Any] = {
    "list": [3, 1, 2],
    "names": ["cat", "dog", "cow"],
    "tuple": (3, 1, 2),
    "array": np.array([3, 1, 2], np.int32),
    "array of names": np.array(["cat", "dog", "cow"]),
    "rows": np.arange(6.0).reshape(3, 2),
    "polygons": [(0, 1), (2, 3), (4, 5)],
    "tensors": [torch.tensor(3), torch.tensor(1), torch.tensor(2)],
    "tensor": torch.tensor([3, 1, 2]),
}


def kept(labels: Any, places: list[int]) -> Any:
    return (
        labels[places]
        if isinstance(labels, (np.ndarray, Tensor))
        else type(labels)(labels[i] for i in places)
    )


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and (torch.equal(a, b) if isinstance(a, Tensor) else list(a) == list(b))


def sanitizers() -> list[tuple[str, dict[str, Any]]]:
    boxes = torch.tensor([[0.0, 0, 5, 5], [3, 3, 3, 3], [1, 1, 4, 8]])
    points = torch.tensor([[1.0, 1], [11, 3], [4, 8]])
    return [
        (
            "SanitizeBoundingBoxes",
            {"x": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(10, 10))},
        ),
        ("SanitizeKeyPoints", {"x": tv_tensors.KeyPoints(points, canvas_size=(10, 10))}),
    ]


@pytest.mark.parametrize(("name", "given"), sanitizers(), ids=["boxes", "keypoints"])
def test_labels_that_are_no_tensors(name: str, given: dict[str, Any]) -> None:
    """The valid entries are in an object of the same class; torchvision says which they are."""
    sanitizer = getattr(ours, name)
    theirs = getattr(v2, name)(labels_getter="default")({**given, "labels": torch.arange(3)})
    places = theirs["labels"].tolist()
    assert places == [0, 2]
    for key, labels in LABELS.items():
        out = sanitizer(labels_getter="default")({**given, "labels": labels, "other": [1, 2, 3]})
        assert equal(out["labels"], kept(labels, places)), key
        assert same(out["x"], theirs["x"]) and out["other"] == [1, 2, 3]
    whole = sanitizer(labels_getter=lambda x: tuple(x[key] for key in LABELS))({**given, **LABELS})
    assert all(equal(whole[key], kept(labels, places)) for key, labels in LABELS.items())
    nothing = {"x": tv_tensors.wrap(plain(given["x"])[:0], like=given["x"])}
    for empty in ([], (), np.zeros(0), torch.zeros(0)):
        assert equal(sanitizer(labels_getter="default")({**nothing, "labels": empty})["labels"], empty)
    for labels, got in (([1, 2], 2), ((1,), 1), (np.zeros(4), 4)):
        with pytest.raises(
            ValueError, match=rf"^{name}: inputs must have .*, and as many labels, got 3 and {got} "
        ):
            sanitizer(labels_getter="default")({**given, "labels": labels})
    with pytest.raises(
        ValueError, match=rf"^{name}: labels must be in the inputs once, got tuple that is in 2 pl"
    ):
        sanitizer(labels_getter=lambda x: x["a"])({**given, "a": LABELS["tuple"], "b": LABELS["tuple"]})
    with pytest.raises(
        ValueError, match=rf"^{name}: labels must be in the inputs once, got list that is in 0 pl"
    ):
        sanitizer(labels_getter=lambda x: x["a"].tolist())({**given, "a": torch.arange(3)})


@needs_classes
def test_labels_in_a_graph() -> None:
    """Arrays of numbers are traced; the length of a list cannot depend on data."""
    for name, given in sanitizers():
        torch.compiler.reset()
        sanitizer = getattr(ours, name)(labels_getter="default")
        graph = torch.compile(sanitizer, fullgraph=True, backend="eager")
        for key in ("array", "rows", "tensor"):
            found, wanted = (f({**given, "labels": LABELS[key]}) for f in (graph, sanitizer))
            assert equal(found["labels"], wanted["labels"]) and same(found["x"], wanted["x"])
        with pytest.raises(
            Exception, match=f"{name}: labels must be tensors or arrays in a graph, got a list"
        ):
            graph({**given, "labels": [1, 2, 3]})


# -- MixUp and CutMix of semantic masks ---------------------------------------------------------------

CLASSES = 4


def scenes(dtype: torch.dtype = torch.uint8) -> tuple[Tensor, Tensor, Tensor]:
    """Return images, masks of indices (255 is no class), and the same masks as shares."""
    draw = torch.Generator().manual_seed(1)
    images = torch.rand(5, 3, 20, 24, generator=draw)
    masks = torch.randint(0, CLASSES, (5, 20, 24), generator=draw)
    masks[0, :3] = 255
    shares = torch.stack([(masks == k).float() for k in range(CLASSES)], 1)
    return images, masks.to(dtype), shares


@pytest.mark.parametrize("name", ["MixUp", "CutMix"])
def test_semantic_masks_are_mixed_as_torchvision_mixes_images(name: str) -> None:
    """torchvision mixes the shares of classes as further channels of the images, with equal draws."""
    images, masks, shares = scenes()
    labels = torch.arange(5) % CLASSES
    mix, theirs = (getattr(m, name) for m in (ours, v2))
    for seed in range(8):
        both, weights = seeded(seed, theirs(num_classes=CLASSES), torch.cat([images, shares], 1), labels)
        wanted, of_masks = both.split([3, CLASSES], 1)
        for form in (
            (images, tv_tensors.Mask(masks)),
            (images, tv_tensors.Mask(masks.int())),
            (images, tv_tensors.Mask(shares)),
            (tv_tensors.Image(images), {"mask": tv_tensors.Mask(shares.to(torch.uint8))}),
            (tv_tensors.Image(images), {"labels": tv_tensors.Mask(masks)}),
        ):
            out = tree_leaves(seeded(seed, mix(num_classes=CLASSES), *form))
            assert torch.allclose(plain(out[0]), wanted) and type(out[1]) is tv_tensors.Mask
            is_cut = name == "CutMix" and form[-1] is not masks and out[1].dtype == torch.uint8
            assert torch.allclose(plain(out[1]).float(), of_masks, atol=1e-6)
            assert out[1].dtype == (torch.uint8 if is_cut else torch.float32)
        given = {"image": tv_tensors.Image(images), "mask": tv_tensors.Mask(shares), "labels": labels}
        out = seeded(seed, mix(num_classes=CLASSES), given)
        assert torch.allclose(plain(out["mask"]), of_masks, atol=1e-6)
        assert torch.allclose(out["labels"], weights)
        if name == "CutMix":
            for dtype in (torch.uint8, torch.int64, torch.bool, torch.uint16):
                once = tv_tensors.Mask(masks.to(dtype))
                out = seeded(seed, mix(), images, once)[1]
                channel = masks.to(dtype)[:, None].float()
                pasted, _ = seeded(seed, theirs(num_classes=CLASSES), torch.cat([images, channel], 1), labels)
                assert out.dtype == dtype and torch.equal(plain(out).float(), pasted[:, 3])


@needs_classes
def test_masks_are_mixed_in_one_graph_and_per_sample() -> None:
    images, masks, shares = scenes()
    calls = {
        f"{name}-{each}": getattr(ours, name)(num_classes=CLASSES, per_sample=each)
        for name in ("MixUp", "CutMix")
        for each in (False, True)
    }
    calls["choice"] = ours.RandomChoice([ours.MixUp(num_classes=CLASSES), ours.CutMix(num_classes=CLASSES)])
    for form in (
        (images, tv_tensors.Mask(masks)),
        ({"i": tv_tensors.Image(images), "m": tv_tensors.Mask(shares)},),
    ):
        graph, counting = compile_together(calls, "eager")
        for seed in range(4):
            found = seeded(seed, graph, *form)
            torch.manual_seed(seed)
            for name, call in calls.items():
                for a, b in zip(tree_leaves(found[name]), tree_leaves(call(*form)), strict=True):
                    assert type(a) is type(b) and torch.allclose(plain(a), plain(b), atol=1e-6), name
        assert counting.count <= 2
    each = ours.MixUp(num_classes=CLASSES, per_sample=True)
    params = each.sample((images, tv_tensors.Mask(masks)))
    weights = params[()].numbers[:, 0].float()[:, None, None, None]
    found = each.apply((images, tv_tensors.Mask(masks)), params)[1]
    assert torch.allclose(plain(found), shares.roll(1, 0) * (1 - weights) + shares * weights, atol=1e-6)
    grad = torch.rand(5, CLASSES, 20, 24, requires_grad=True)
    for name in ("MixUp", "CutMix"):
        out = seeded(0, getattr(ours, name)(), images, tv_tensors.Mask(grad))[1]
        assert torch.allclose(torch.autograd.grad(plain(out).sum(), grad)[0], torch.ones(()))


def test_masks_that_cannot_be_mixed_raise() -> None:
    images, masks, shares = scenes()
    labels, index, mask = torch.arange(5) % CLASSES, tv_tensors.Mask(masks), tv_tensors.Mask(shares)
    boxes = tv_tensors.BoundingBoxes(torch.zeros(1, 4), format="XYXY", canvas_size=(20, 24))
    both = ("MixUp", "CutMix")
    for names, options, inputs, message in (
        (both[:1], {}, (images, index), r"masks must be shares \(N, K, H, W\), or indices \(N, H, W\) with"),
        (
            both[:1],
            {"num_classes": 4},
            (images, labels, index),
            r"masks must be shares .* without labels, got",
        ),
        (
            both,
            {"num_classes": 3},
            (images, mask),
            r"masks must be indices \(N, H, W\) or shares of 3 classes",
        ),
        (
            both,
            {"num_classes": 4},
            (images, tv_tensors.Mask(masks[:2])),
            r"masks must be .*got shape \(2, 20, 24\)",
        ),
        (
            both,
            {"num_classes": 4},
            (images, tv_tensors.Mask(masks[:, 1:])),
            r"masks must be .*got shape \(5, 19, 24",
        ),
        (
            both,
            {"num_classes": 4},
            (images, tv_tensors.Mask(masks[0])),
            r"masks must be .*got shape \(20, 24\)",
        ),
        (
            both,
            {},
            (images, labels, mask),
            r"labels must be indices \(N,\) with num_classes, or .*num_classes=None",
        ),
        (
            both,
            {"num_classes": 4},
            (images, labels, mask, boxes),
            "inputs must be images, masks and labels, without",
        ),
        (both, {}, ({"mask": mask},), "inputs must be images, masks and labels"),
        (both, {"labels_getter": lambda x: "a"}, (images, mask), "labels must be indices .*got str"),
    ):
        for name in names:
            with pytest.raises(ValueError, match=f"^{name}: {message}"):
                getattr(ours, name)(**options)(*inputs)
    for name in both:
        with pytest.raises(
            TypeError, match=f"^{name}: masks .* must be indices of classes, in integers, got torch.fl"
        ):
            getattr(ours, name)(num_classes=4)(images, tv_tensors.Mask(masks.float()))
