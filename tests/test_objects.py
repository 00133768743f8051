"""What belongs to an object stays with it: boxes from masks, flags of keypoints, labels, masks that are mixed."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torchvision import tv_tensors
from torchvision.ops import masks_to_boxes
from torchvision.transforms import v2

from imgops import transforms as ours
from tests.checks import bits_equal, difference
from tests.followers import around, check_in_one_graph, converted, plain, raises_each, rows, stack
from tests.tiers import nightly
from tests.transform_cases import needs_classes, picture, seeded

Boxes, Points, Image, Mask = tv_tensors.BoundingBoxes, tv_tensors.KeyPoints, tv_tensors.Image, tv_tensors.Mask
SIZE = HEIGHT, WIDTH = 96, 128
FORMATS = ("XYXY", "XYWH", "CXCYWH")


# -- boxes from masks --------------------------------------------------------------------------------


def with_an_l(seed: int, format: str = "XYXY", count: int = 1, margin: float = 0.0) -> dict[str, Any]:
    """Return an image with objects of the form of an L, whose boxes, widened by a margin, are mostly empty."""
    draw, masks, boxes = np.random.default_rng(seed), torch.zeros(count, *SIZE, dtype=torch.uint8), []
    for mask in masks:
        high, wide = draw.integers(40, 90, 2)
        top, left = draw.integers(0, (HEIGHT - high, WIDTH - wide))
        mask[top : top + high, left : left + 4] = 1
        mask[top + high - 4 : top + high, left : left + wide] = 1
        boxes.append([left - margin, top - margin, left + wide + margin, top + high + margin])
    corners = Boxes(torch.tensor(boxes).float().reshape(-1, 4), format="XYXY", canvas_size=SIZE)
    return {
        "image": Image(torch.full((3, *SIZE), 9, dtype=torch.uint8)),
        "boxes": converted(corners, format),
        "masks": Mask(masks),
        "labels": torch.arange(count),
    }


def edges_of(boxes: Any) -> np.ndarray:
    return plain(converted(boxes, "XYXY")).numpy()


CROPS: dict[str, dict[str, Any]] = {
    "RandomCrop": {"size": 32},
    "RandomResizedCrop": {"size": 32, "scale": (0.03, 0.2)},
    "CenterCrop": {"size": 32},
    "RandomIoUCrop": {"sampler_options": [0.0]},
}


@pytest.mark.parametrize("name", CROPS)
def test_boxes_from_masks_after_a_crop(name: str) -> None:
    """Only the boxes change, to NumPy's edges of the masks; a box that RandomIoUCrop drops stays dropped.

    Without the option, many boxes of such objects have none of their pixels.
    """
    option, without = (getattr(ours, name)(**CROPS[name], boxes_from_masks=on) for on in (True, False))
    assert "boxes_from_masks=True" in repr(option) and "boxes_from_masks" not in repr(without)
    dropped = lost = 0
    for seed in range(20):
        given = with_an_l(seed, FORMATS[seed % 3], 4)
        found, wanted = seeded(seed, option, given), seeded(seed, without, given)
        assert not difference({**found, "boxes": 0}, {**wanted, "boxes": 0})
        assert found["boxes"].canvas_size == found["image"].shape[-2:]
        tight, before = around(wanted["masks"]), edges_of(wanted["boxes"])
        lost += int(((before[:, 2:] > before[:, :2]).all(1) & ~tight.any(1)).sum())
        if name == "RandomIoUCrop":
            is_dropped = (plain(wanted["boxes"]) == 0).all(-1).numpy()
            dropped += int((is_dropped & tight.any(-1)).sum())
            tight[is_dropped] = 0
        assert np.array_equal(edges_of(found["boxes"]), tight)
        clean = ours.SanitizeBoundingBoxes()(found)
        assert clean["labels"].tolist() == np.flatnonzero(tight.any(-1)).tolist()
        assert len(clean["masks"]) == len(clean["boxes"]) and clean["masks"].bool().flatten(1).any(1).all()
    assert lost > 4 and bool(dropped) == (name == "RandomIoUCrop")
    if name != "RandomIoUCrop":
        assert not difference(seeded(1, option, picture()), seeded(1, without, picture()))


def test_boxes_are_the_edges_of_masks() -> None:
    """They are masks_to_boxes of torchvision with the edge behind the last pixel, as flips and crops have them."""
    draw, tight = np.random.default_rng(0), ours.BoxesFromMasks()
    masks = torch.zeros(60, 41, 41, dtype=torch.uint8)
    for mask in masks:
        (x, y), (right, bottom) = np.sort(draw.integers(0, 40, (2, 2)), 0) + [[0], [1]]
        mask[y:bottom, x:right] = torch.from_numpy(draw.random((bottom - y, right - x)) < 0.2)
    masks[7] = 0  # a box without an object becomes (0, 0, 0, 0)
    edges = masks_to_boxes(masks)
    edges[:, 2:] += masks.bool().flatten(1).any(1)[:, None]
    assert np.array_equal(edges.numpy(), around(masks))
    old = torch.from_numpy(draw.integers(0, 40, (60, 4)))
    for format in FORMATS:
        for dtype in (torch.float32, torch.float64, torch.float16, torch.int64, torch.int32):
            like = {"canvas_size": (41, 41), "dtype": dtype}
            theirs = converted(Boxes(edges.to(dtype), format="XYXY", **like), format)
            for kind in (torch.uint8, torch.bool, torch.uint16, torch.int64, torch.float32):
                out = tight(Boxes(old, format=format, **like), Mask(masks.to(kind)))
                assert not difference(out[0], theirs), (format, dtype, kind)
    for shape in ((0, 5, 7), (2, 0, 7), (0, 0, 0)):
        none = Boxes(torch.ones(shape[0], 4), format="XYXY", canvas_size=shape[1:])
        found = tight(none, Mask(torch.zeros(shape)))[0]
        assert found.shape == (shape[0], 4) and not found.any() and found.canvas_size == shape[1:]


def test_boxes_from_masks_of_several_samples() -> None:
    """Lists, masks with a batch dimension and a batch with own crops, also skipped ones, are what a loop gives."""
    samples, tight = [with_an_l(seed, count=2 + seed, margin=3) for seed in range(3)], ours.BoxesFromMasks()
    wanted = [tight(s)["boxes"] for s in samples]
    assert all(np.array_equal(edges_of(b), around(s["masks"])) for b, s in zip(wanted, samples))
    assert not difference([s["boxes"] for s in tight(samples)], wanted)
    assert not difference(tight({k: [s[k] for s in samples] for k in ("boxes", "masks")})["boxes"], wanted)
    assert not difference(tight({"classes": Mask(torch.ones(SIZE)), **samples[1]})["boxes"], wanted[1])
    alike = stack([with_an_l(seed, count=2, margin=3) for seed in range(3)], ("boxes",))
    found = tight({"boxes": alike["boxes"], "masks": alike["masks"]})["boxes"]
    assert not difference(found, [tight(with_an_l(seed, count=2, margin=3))["boxes"] for seed in range(3)])
    batch = stack(samples, ("boxes", "masks", "labels"))
    padded = ours.RandomCrop(SIZE, padding=40, boxes_from_masks=True)
    for steps in ([ours.RandomResizedCrop(30, boxes_from_masks=True)], [ours.RandomApply([padded], p=0.5)]):
        for seed in range(4):
            found = rows(seeded(seed, ours.Compose(steps, per_sample=True), batch), 3)
            torch.manual_seed(seed)
            assert not difference(found, [ours.Compose(steps)(s) for s in samples])


@nightly
@needs_classes
def test_boxes_from_masks_in_a_graph() -> None:
    """RandomApply leaves the boxes of a skipped crop as they were."""
    given = with_an_l(3, count=5, margin=1)
    calls: dict[str, Any] = {n: getattr(ours, n)(**how, boxes_from_masks=True) for n, how in CROPS.items()}
    calls["BoxesFromMasks"] = ours.BoxesFromMasks()
    calls["RandomApply"] = ours.RandomApply([ours.RandomCrop(SIZE, padding=9, boxes_from_masks=True)], p=0.5)
    calls["Mosaic"] = ours.Mosaic(90, boxes_from_masks=True)
    samples = [with_an_l(seed, count=2) for seed in range(4)]
    check_in_one_graph(calls, dict.fromkeys(calls, (given,)) | {"Mosaic": (samples,)}, 6)


def test_masks_that_do_not_fit_raise() -> None:
    given, tight = with_an_l(0, count=2), ours.BoxesFromMasks()
    must = r"^BoxesFromMasks: bounding boxes must be \(n, 4\), with a Mask \(n, H, W\) of their canvas, got "
    masks = plain(given["masks"])
    tall, other = Mask(torch.ones(1, 400, 300)), Mask(torch.ones(1, 400, 300, dtype=torch.complex64))
    crop = ours.RandomCrop(9, boxes_from_masks=True)

    def of(dtype: torch.dtype) -> Any:
        return Boxes(torch.ones(1, 4, dtype=dtype), format="XYXY", canvas_size=(400, 300))

    for change, text in (
        ({"masks": given["image"]}, r"\[2\] boxes, and masks of shape \[\]"),
        ({"masks": Mask(masks[:1])}, r"\[2\] boxes, and masks of shape"),
        ({"masks": Mask(masks[:, 1:])}, r"2 boxes of the canvas \(96, 128\) and a"),
        ({"boxes": [given["boxes"]] * 2}, r"\[2, 2\] boxes, and masks of shape \[\(2, 96, 128\)\]"),
    ):
        raises_each(ValueError, (lambda: tight({**given, **change}), must + text))
    for dtype in (torch.uint8, torch.int8):
        text = rf"must have a dtype that holds .*got {dtype} and .400, 300.$"
        raises_each(ValueError, (lambda: tight(of(dtype), tall), text))
    raises_each(
        ValueError,
        (lambda: tight(tall), r"^BoxesFromMasks: inputs must have bounding boxes .*got no boxes$"),
        (lambda: crop(given["image"], given["boxes"]), r"^RandomCrop: .* must be \(n, 4\), with a Mask"),
    )
    for dtype in (torch.int16, torch.int64):
        assert tight(of(dtype), tall)[0].tolist() == [[0, 0, 300, 400]]
    raises_each(
        TypeError,
        (lambda: tight(of(torch.int64), other), "BoxesFromMasks: masks must have real numbers"),
        (lambda: ours.RandomCrop(9, boxes_from_masks=2), r"^RandomCrop: boxes_from_masks must be"),
    )
    for format, length in (("XYWHR", 5), ("CXCYWHR", 5), ("XYXYXYXY", 8)):
        turned = {**given, "boxes": Boxes(torch.ones(2, length), format=format, canvas_size=SIZE)}
        text = rf"must have the format XYXY.*got {format}$"
        raises_each(NotImplementedError, (lambda: tight(turned), text), (lambda: crop(turned), text))


# -- flags of keypoints ------------------------------------------------------------------------------


def test_flags_of_keypoints_that_are_cut_off_become_0() -> None:
    """Without the request all of them keep COCO's flag 2; SanitizeKeyPoints says which are outside."""
    draw, cut, kept = torch.Generator().manual_seed(0), 0, 0
    clamp, bare = ours.ClampKeyPoints(visible_getter="default"), ours.ClampKeyPoints()
    keep = v2.SanitizeKeyPoints(labels_getter=lambda x: x["index"])
    crops = (
        *(getattr(ours, n)(32) for n in CROPS if n != "RandomIoUCrop"),
        ours.RandomAffine(40, (0.3, 0.3)),
    )
    for seed in range(60):
        points = Points(torch.rand(17, 2, generator=draw) * 80, canvas_size=(80, 80))
        given = {"image": torch.zeros(3, 80, 80), "points": points, "visible": torch.full((17,), 2)}
        moved = seeded(seed, crops[seed % 4], given)
        inside = keep({**moved, "index": torch.arange(17)})["index"]
        out = clamp(moved)
        assert out["visible"].tolist() == [2 * (i in inside) for i in range(17)]
        assert not difference(out["points"], v2.ClampKeyPoints()(moved["points"]))
        assert (
            not difference(bare(moved)["points"], out["points"])
            and bare(moved)["visible"] is moved["visible"]
        )
        cut, kept = cut + 17 - len(inside), kept + int((out["visible"] == 0).sum())
    assert cut == kept > 400


@nightly
@pytest.mark.parametrize("backend", [None, pytest.param("eager", marks=needs_classes)])
def test_flags_of_every_form(backend: str | None, whole: bool) -> None:
    values = torch.tensor([[[1.0, 1], [11, 3], [-0.1, 0]], [[9.9, 9.9], [9, -1], [float("nan"), 1]]])
    points, one = Points(values, canvas_size=(10, 10)), Points(values[0], canvas_size=(10, 2))
    wanted = torch.tensor([[1, 0, 0], [1, 0, 0]])
    dtypes = (torch.int64, torch.uint8, torch.bool, torch.float32, torch.uint16)
    for dtype in dtypes if whole or not backend else dtypes[:1]:
        torch.compiler.reset()
        clamp: Any = ours.ClampKeyPoints(visible_getter="default")
        if backend:
            clamp = torch.compile(clamp, fullgraph=True, backend=backend)
        flags = torch.ones(2, 3).to(dtype)
        two = [{"p": one, "visible": flags[0]}, {"p": points, "visible": flags}]
        for given, found in (
            ({"points": points, "Visibility": flags}, lambda out: out["Visibility"]),
            ({"points": points, "visible": flags[..., None]}, lambda out: out["visible"][..., 0]),
            (two, lambda out: out[1]["visible"]),
        ):
            assert bits_equal(found(clamp(given)), wanted.to(dtype))
    if backend:
        return
    by_hand = ours.ClampKeyPoints(visible_getter=lambda x: x[1])
    assert by_hand(points, torch.full((2, 3), 2))[1].tolist() == (2 * wanted).tolist()
    shares = torch.ones(2, 3, requires_grad=True)
    (grad,) = torch.autograd.grad(clamp({"p": points, "visible": shares})["visible"].sum(), shares)
    assert torch.equal(grad, wanted.float()) and not difference(
        clamp({"image": picture()}), {"image": picture()}
    )
    must = r"^ClampKeyPoints: visible must have a flag for each keypoint.*got "
    getter = "^ClampKeyPoints: visible_getter must be 'default', a callable or None, got 3"
    raises_each(
        ValueError,
        (lambda: clamp({"p": points}), must + "none"),
        (lambda: clamp({"p": points, "visible": torch.ones(3, 2)}), must + r"shape \(3, 2\)"),
        (lambda: ours.ClampKeyPoints(visible_getter=3), getter),
    )


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


def kept(labels: Any) -> Any:
    """Return the first and the last label, in an object of the same class."""
    if isinstance(labels, (np.ndarray, Tensor)):
        return labels[[0, 2]]
    return type(labels)((labels[0], labels[2]))


def equal(a: Any, b: Any) -> bool:
    dtypes = [getattr(x, "dtype", None) for x in (a, b)]
    return type(a) is type(b) and dtypes[0] == dtypes[1] and np.array_equal(a, b)


#: A sanitizer and three objects, the second of which is not valid.
THREE = [[0.0, 0, 5, 5], [3, 3, 3, 3], [1, 1, 4, 8]]
SANITIZERS: dict[str, Any] = {
    "SanitizeBoundingBoxes": Boxes(THREE, format="XYXY", canvas_size=(10, 10)),
    "SanitizeKeyPoints": Points([[1.0, 1], [11, 3], [4, 8]], canvas_size=(10, 10)),
}


@pytest.mark.parametrize("name", SANITIZERS)
def test_labels_that_are_no_tensors(name: str) -> None:
    """The valid entries are in an object of the same class; torchvision says which they are."""
    make, given = getattr(ours, name), {"x": SANITIZERS[name]}
    sanitizer = make(labels_getter="default")
    theirs = getattr(v2, name)(labels_getter="default")({**given, "labels": torch.arange(3)})
    assert theirs["labels"].tolist() == [0, 2]
    for key, labels in LABELS.items():
        out = sanitizer({**given, "labels": labels, "other": [1, 2, 3]})
        assert equal(out["labels"], kept(labels)), key
        assert not difference(out["x"], theirs["x"]) and out["other"] == [1, 2, 3]
    whole = make(labels_getter=lambda x: tuple(x[key] for key in LABELS))({**given, **LABELS})
    assert all(equal(whole[key], kept(labels)) for key, labels in LABELS.items())
    nothing = {"x": tv_tensors.wrap(plain(given["x"])[:0], like=given["x"])}
    for empty in ([], (), np.zeros(0), torch.zeros(0)):
        assert equal(sanitizer({**nothing, "labels": empty})["labels"], empty)
    for labels, got in (([1, 2], 2), ((1,), 1), (np.zeros(4), 4)):
        text = rf"^{name}: inputs must have .*, and as many labels, got 3 and {got} "
        raises_each(ValueError, (lambda: sanitizer({**given, "labels": labels}), text))
    twice, must = LABELS["tuple"], rf"^{name}: labels must be in the inputs once, got "
    two, none = make(labels_getter=lambda x: x["a"]), make(labels_getter=lambda x: [3, 1, 2])
    raises_each(
        ValueError,
        (lambda: two({**given, "a": twice, "b": twice}), must + "tuple that is in 2 pl"),
        (lambda: none({**given, "a": torch.arange(3)}), must + "list that is in 0 pl"),
    )


@needs_classes
@pytest.mark.parametrize("name", ["SanitizeBoundingBoxes", pytest.param("SanitizeKeyPoints", marks=nightly)])
def test_labels_in_a_graph(name: str) -> None:
    """Arrays of numbers are traced; the length of a list cannot depend on data."""
    sanitizer, given = getattr(ours, name)(labels_getter="default"), {"x": SANITIZERS[name]}
    graph = torch.compile(sanitizer, fullgraph=True, backend="eager")
    for key in ("array", "rows", "tensor"):
        found, wanted = (f({**given, "labels": LABELS[key]}) for f in (graph, sanitizer))
        assert equal(found["labels"], wanted["labels"]) and not difference(found["x"], wanted["x"])
    with pytest.raises(Exception, match=f"{name}: labels must be tensors or arrays in a graph, got a list"):
        graph({**given, "labels": [1, 2, 3]})


# -- MixUp and CutMix of semantic masks ---------------------------------------------------------------

CLASSES, BOTH = 4, ("MixUp", "CutMix")


def scenes() -> tuple[Tensor, Tensor, Tensor]:
    """Return images, masks of indices (255 is no class), and the same masks as shares."""
    draw = torch.Generator().manual_seed(1)
    images = torch.rand(5, 3, 20, 24, generator=draw)
    masks = torch.randint(0, CLASSES, (5, 20, 24), generator=draw)
    masks[0, :3] = 255
    shares = torch.stack([(masks == k).float() for k in range(CLASSES)], 1)
    return images, masks.to(torch.uint8), shares


@pytest.mark.parametrize("name", BOTH)
def test_semantic_masks_are_mixed_as_torchvision_mixes_images(name: str) -> None:
    """torchvision mixes the shares of classes as further channels of the images, with equal draws."""
    images, masks, shares = scenes()
    labels = torch.arange(5) % CLASSES
    mix, theirs = (getattr(m, name) for m in (ours, v2))
    given = (
        *(Mask(masks), Mask(masks.int()), Mask(shares), {"mask": Mask(shares.to(torch.uint8))}),
        *({"labels": Mask(masks)}, {"mask": Mask(shares), "labels": labels}),
    )
    for seed in range(8):
        both, weights = seeded(seed, theirs(num_classes=CLASSES), torch.cat([images, shares], 1), labels)
        wanted, of_masks = both.split([3, CLASSES], 1)
        for i, form in enumerate(given):
            pixels, mixed = seeded(seed, mix(num_classes=CLASSES), Image(images), form)
            (out,) = (x for x in tree_leaves(mixed) if isinstance(x, Mask))
            is_whole = name == "CutMix" and i == 3  # pasted shares keep their dtype
            assert torch.allclose(plain(pixels), wanted)
            assert torch.allclose(plain(out).float(), of_masks, atol=1e-6)
            assert out.dtype == (torch.uint8 if is_whole else torch.float32)
        assert torch.allclose(mixed["labels"], weights)
        for dtype in (torch.uint8, torch.int64, torch.bool, torch.uint16) if name == "CutMix" else ():
            out = seeded(seed, mix(), images, Mask(masks.to(dtype)))[1]
            channel = masks.to(dtype)[:, None].float()
            pasted, _ = seeded(seed, theirs(num_classes=CLASSES), torch.cat([images, channel], 1), labels)
            assert out.dtype == dtype and torch.equal(plain(out).float(), pasted[:, 3])


@needs_classes
def test_masks_are_mixed_in_one_graph(whole: bool) -> None:
    images, masks, shares = scenes()
    calls: dict[str, Any] = {
        "choice": ours.RandomChoice([getattr(ours, name)(num_classes=CLASSES) for name in BOTH])
    }
    for name, each in product(BOTH if whole else (), (False, True)):
        calls[f"{name}-{each}"] = getattr(ours, name)(num_classes=CLASSES, per_sample=each)
    for form in ((images, Mask(masks)), ({"i": Image(images), "m": Mask(shares)},))[: 2 if whole else 1]:
        check_in_one_graph(calls, dict.fromkeys(calls, form))


def test_mixed_masks_have_gradients_and_weights_of_their_own() -> None:
    images, masks, shares = scenes()
    each = ours.MixUp(num_classes=CLASSES, per_sample=True)
    params = each.sample((images, Mask(masks)))
    weights = params[()].numbers[:, 0].float()[:, None, None, None]
    found = each.apply((images, Mask(masks)), params)[1]
    assert torch.allclose(plain(found), shares.roll(1, 0) * (1 - weights) + shares * weights, atol=1e-6)
    grad = torch.rand(5, CLASSES, 20, 24, requires_grad=True)
    for name in BOTH:
        out = seeded(0, getattr(ours, name)(), images, Mask(grad))[1].as_subclass(Tensor)
        assert torch.allclose(torch.autograd.grad(out.sum(), grad)[0], torch.ones(()))


def test_masks_that_cannot_be_mixed_raise() -> None:
    images, masks, shares = scenes()
    labels, index, mask, four = torch.arange(5) % CLASSES, Mask(masks), Mask(shares), {"num_classes": CLASSES}
    boxes = Boxes(torch.zeros(1, 4), format="XYXY", canvas_size=(20, 24))
    indices = r"masks must be indices \(N, H, W\) or shares of 3 classes"
    one_hot = r"labels must be indices \(N,\) with num_classes, or .*num_classes=None"
    for names, options, inputs, message in (
        (BOTH[:1], {}, (images, index), r"masks must be shares \(N, K, H, W\), or indices \(N, H, W\) with"),
        (BOTH[:1], four, (images, labels, index), r"masks must be shares .* without labels, got"),
        (BOTH, {"num_classes": 3}, (images, mask), indices),
        (BOTH, four, (images, Mask(masks[:2])), r"masks must be .*got shape \(2, 20, 24\)"),
        (BOTH, four, (images, Mask(masks[:, 1:])), r"masks must be .*got shape \(5, 19, 24"),
        (BOTH, four, (images, Mask(masks[0])), r"masks must be .*got shape \(20, 24\)"),
        (BOTH, {}, (images, labels, mask), one_hot),
        (BOTH, four, (images, labels, mask, boxes), "inputs must be images, masks and labels, without"),
        (BOTH, {}, ({"mask": mask},), "inputs must be images, masks and labels"),
        (BOTH, {"labels_getter": lambda x: "a"}, (images, mask), "labels must be indices .*got str"),
    ):
        for name in names:
            with pytest.raises(ValueError, match=f"^{name}: {message}"):
                getattr(ours, name)(**options)(*inputs)
    for name in BOTH:
        text = f"^{name}: masks .* must be indices of classes, in integers, got torch.fl"
        raises_each(TypeError, (lambda: getattr(ours, name)(**four)(images, Mask(masks.float())), text))
