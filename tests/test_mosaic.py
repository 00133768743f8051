"""Mosaic and CopyPaste: pixels by PIL and NumPy, what follows by the moved images, rows, graphs, errors."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors

from imgops import transforms as ours
from tests.checks import bits_equal, difference
from tests.followers import (
    ANGLED,
    FORMATS,
    Boxes,
    Image,
    Mask,
    Moved,
    Points,
    around,
    check_in_one_graph,
    converted,
    gaps,
    objects,
    plain,
    polygons,
    raises_each,
)
from tests.groups import compile_together
from tests.specs._maker import formatted
from tests.test_objects import with_an_l
from tests.tiers import every_night, nightly, nightly_unless
from tests.transform_cases import needs_classes, picture, seeded


def of_boxes(height: int, width: int, boxes: Any, dtype: torch.dtype = torch.uint8) -> dict[str, Any]:
    """Return boxes with the masks of their pixels and keypoints at their corners."""
    masks, corners = torch.zeros(len(boxes), height, width, dtype=dtype), torch.tensor(boxes).float()
    for mask, (x0, y0, x1, y1) in zip(masks, boxes):
        mask[y0:y1, x0:x1] = 1
    return {
        "image": Image(torch.zeros(3, height, width, dtype=torch.uint8)),
        "boxes": Boxes(corners, format="XYXY", canvas_size=(height, width)),
        "masks": Mask(masks),
        "points": Points(corners[:, :2].clone(), canvas_size=(height, width)),
    }


def made(height: int, width: int, count: int, seed: int) -> dict[str, Any]:
    """Make a sample of a detector's data set, with a mask for each box and one for all pixels."""
    random = np.random.default_rng(seed)
    boxes = np.sort(random.uniform(0, (width, height), (count, 2, 2)), 1).round().reshape(count, 4)
    return {
        **of_boxes(height, width, boxes.astype(int).tolist()),
        "image": Image(picture(height=height, width=width, seed=seed)),
        "classes": Mask(torch.full((height, width), seed + 1, dtype=torch.uint8)),
        "labels": torch.arange(count) + 10 * seed,
        "name": f"sample {seed}",
    }


SIZES = ((60, 80), (100, 70), (50, 50), (90, 120), (30, 30), *((40 + 9 * i, 60) for i in range(4)))
NINE = [made(*size, 1 + i % 3, i) for i, size in enumerate(SIZES)]
FOUR = NINE[:4]
#: The transforms of several samples, and how many they join.
JOINS: list[tuple[Any, int]] = [(ours.Mosaic(64), 4), (ours.CopyPaste(amount=1.0, p=1.0), 2)]
joins = pytest.mark.parametrize(("join", "count"), JOINS, ids=["Mosaic", "CopyPaste"])

# -- pixels ------------------------------------------------------------------------------------------


def pasted(samples: list[Any], grid: int, size: int, x: int, y: int, antialias: bool) -> np.ndarray:
    """Make the mosaic by PIL (or OpenCV's resize), filled with 114."""
    canvas = PIL.Image.new("RGB", (size, size), (114,) * 3)
    for i, given in enumerate(samples):
        row, column = divmod(i, grid)
        frame = PIL.Image.fromarray(given["image"].permute(1, 2, 0).numpy())
        factor = min(size / grid / frame.height, size / grid / frame.width)
        wide, high = max(round(frame.width * factor), 1), max(round(frame.height * factor), 1)
        starts = []
        for at, middle, length in ((column, x, wide), (row, y, high)):
            start = middle - size // 6  # of the cell in the middle
            three = (start - length, middle - length // 2, start + size // 3)
            starts.append((middle - length, middle)[at] if grid == 2 else three[at])
        if antialias:
            small = frame.resize((wide, high), PIL.Image.BILINEAR)
        else:
            small = PIL.Image.fromarray(cv2.resize(np.asarray(frame), (wide, high)))
        canvas.paste(small, tuple(starts))
    return np.asarray(canvas)


@pytest.mark.parametrize(
    ("grid", "center", "antialias"),
    nightly_unless(
        lambda v: v[1] in (0.1, (0.25, 0.75)) and v[2] == (v[0] == 2),
        [(g, c, a) for g in (2, 3) for c in (0.0, 0.1, 1.0, (0.25, 0.75)) for a in (True, False)],
    ),
)
def test_pixels(grid: int, center: Any, antialias: bool) -> None:
    """Images are inside, cut off and fully outside; with a gradient (by paste) and without (into the canvas)."""
    samples, size = (FOUR, 128) if grid == 2 else (NINE, 150)
    transform = ours.Mosaic(size, grid, center, fill=114, antialias=antialias)
    torch.manual_seed(grid)
    params = transform.sample(samples)
    y, x = transform._sampled_sizes(params[()].numbers, 0, 0)
    assert type(center) is tuple or (y, x) == (int(center * size),) * 2
    wanted = pasted(samples, grid, size, x, y, antialias)
    assert np.array_equal(transform.apply(samples, params)["image"].permute(1, 2, 0).numpy(), wanted)
    assert not difference(seeded(grid, transform, samples), transform.apply(samples, params))
    for format in ("planar", "interleaved"):
        images = [formatted(plain(s["image"]), format) for s in samples]
        assert np.array_equal(transform.apply(images, params).permute(1, 2, 0).numpy(), wanted)
        reals = [formatted(i.double(), format).requires_grad_() for i in images]
        out = transform.apply(reals, params)
        assert out.requires_grad
        assert bits_equal(out.detach(), transform.apply([r.detach() for r in reals], params))


@pytest.mark.parametrize("interpolation", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("grid", [2, 3])
def test_masks_are_the_pixels_that_the_mosaic_shows(grid: int, interpolation: str) -> None:
    """The images are the numbers of their pixels, so that no two are equal; sizes have every remainder by 6."""
    for size in (60, 61, 62, 63, 64, 65):
        samples, random = [], np.random.default_rng(size)
        for i in range(grid**2):
            height, width = random.integers(8, 90, 2).tolist()
            numbers = (torch.arange(height * width).reshape(1, height, width) + 10_000 * i + 1).float()
            whole = Boxes([[0.0, 0, width, height]], format="XYXY", canvas_size=(height, width))
            samples.append({"image": Image(numbers.repeat(3, 1, 1)), "masks": Mask(numbers), "boxes": whole})
        mosaic = seeded(size, ours.Mosaic(size, grid, interpolation=interpolation, antialias=False), samples)
        shown = plain(mosaic["image"])[0]
        for i, mask in enumerate(plain(mosaic["masks"])):
            assert torch.equal(torch.where((shown - 1) // 10_000 == i, shown, 0), mask), (size, i)


@pytest.mark.parametrize("feather", [0.0, 1.5])
def test_copy_paste(feather: float) -> None:
    """The pixels are NumPy's ``where`` by the pasted masks; boxes enclose the visible part of each mask."""
    first, second, taken = made(60, 80, 3, 0), made(60, 80, 4, 2), set()
    for seed in range(12):
        out = seeded(seed, ours.CopyPaste(p=1.0, feather=feather), [first, second])
        assert out["labels"].tolist() == [0, 1, 2, 20, 21, 22, 23] and out["name"] == "sample 0"
        masks, over = plain(out["masks"]), plain(out["masks"])[3:]
        is_taken = over.flatten(1).any(1)
        taken.add(tuple(is_taken.tolist()))
        assert bits_equal(over, plain(second["masks"]) * is_taken[:, None, None])
        hidden = over.bool().any(0)
        if not feather:
            wanted = torch.where(hidden, plain(second["image"]), plain(first["image"]))
            assert bits_equal(plain(out["image"]), wanted)
        assert bits_equal(masks[:3], torch.where(hidden, 0, plain(first["masks"])))
        assert np.array_equal(plain(out["boxes"]).numpy(), around(masks))
    assert len(taken) > 4
    nothing = ours.SanitizeBoundingBoxes()(ours.CopyPaste(p=0.0)([first, second]))
    assert nothing["labels"].tolist() == [0, 1, 2] and bits_equal(nothing["image"], first["image"])
    small = seeded(1, ours.CopyPaste(1.0, p=1.0), [first, made(30, 40, 2, 1)])
    assert small["image"].shape == first["image"].shape and small["masks"].shape == (5, 60, 80)
    wide = first["boxes"] + torch.tensor([-0.5, -0.5, 0.5, 0.5])
    first["boxes"] = tv_tensors.wrap(wide, like=first["boxes"])  # boxes that nothing hides stay
    out = ours.CopyPaste(amount=0.0, p=1.0)([first, FOUR[2]])
    assert bits_equal(plain(out["boxes"])[:3], wide.as_subclass(Tensor))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64])
def test_what_is_pasted_has_another_size(dtype: torch.dtype) -> None:
    """A keypoint at the corner of its box stays there, masks keep their dtype, and class masks get the pasted objects."""
    first = of_boxes(30, 40, [[0, 0, 9, 9], [30, 20, 40, 30]], dtype)
    second = of_boxes(60, 80, [[20, 20, 40, 40]], dtype)
    for given, number in ((first, 5), (second, 7)):
        corners, masks = plain(given["boxes"]), plain(given["masks"])
        given["pairs"] = tv_tensors.wrap(corners.reshape(-1, 2, 2), like=given["points"])
        given["parts"], given["classes"] = Mask(masks.clone()), Mask(masks.any(0).byte() * number)
        given["planes"] = Mask(masks.any(0, keepdim=True).repeat(3, 1, 1).long())
    paste = ours.CopyPaste(amount=1.0, p=1.0)
    out = paste([first, second])
    assert out["boxes"][2].tolist() == [10, 10, 20, 20] and out["points"][2].tolist() == [10, 10]
    assert out["pairs"][2].tolist() == [[10, 10], [20, 20]]
    for name in ("masks", "parts"):
        assert out[name].dtype == dtype and out[name].shape == (3, 30, 40)
    assert not difference(out["parts"], out["masks"])
    classes = np.zeros((30, 40), np.uint8)
    classes[:9, :9] = classes[20:, 30:] = 5
    classes[10:20, 10:20] = 7
    assert np.array_equal(out["classes"].numpy(), classes) and out["classes"].dtype == torch.uint8
    assert np.array_equal(out["planes"].numpy(), np.repeat((classes > 0)[None], 3, 0).astype(np.int64))
    nothing = ours.CopyPaste(amount=0.0, p=1.0)([first, second])
    assert all(not difference(nothing[name], first[name]) for name in ("classes", "planes"))
    # A pasted object hides the class below it, also where its own class is 0.
    second["classes"] = Mask(torch.zeros(60, 80, dtype=torch.uint8))
    classes[10:20, 10:20] = 0
    assert np.array_equal(paste([first, second])["classes"].numpy(), classes)
    second["planes"] = Mask(torch.zeros(2, 60, 80, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"^CopyPaste: masks .* got \(3,\) and \(2,\)"):
        paste([first, second])


def test_gradients_reach_every_image() -> None:
    images = [torch.rand(3, 9, 11, dtype=torch.float64, requires_grad=True) for _ in range(4)]
    mosaic = ours.Mosaic(14)
    assert torch.autograd.gradcheck(lambda *x: seeded(0, mosaic, list(x)), images, fast_mode=True)
    others = {k: v for k, v in made(9, 11, 4, 2).items() if k in ("boxes", "masks")}
    paste = ours.CopyPaste(1.0, feather=0.7, p=1.0)
    out = seeded(0, paste, [{"image": x, **others} for x in images[:2]])["image"]
    grads = torch.autograd.grad(out.sum(), images[:2])
    assert all(g.abs().sum() > 0 for g in grads) and torch.allclose(sum(grads), torch.ones(3, 9, 11).double())


# -- what follows ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "grid"),
    nightly_unless(
        lambda v: FORMATS.index(v[0]) % 3 == 0 and v[1] == 2, [(f, g) for f in FORMATS for g in (2, 3)]
    ),
)
def test_everything_goes_where_its_pixels_go(format: str, grid: int) -> None:
    """Each image has its positions as values, and its number: what is beside it counts for the others."""
    samples = [objects(format, i, (48 + 5 * i, 60)) for i in range(grid**2)]
    for i, given in enumerate(samples):
        plain(given["image"])[2] = i + 1
    for seed in range(2):
        out = seeded(seed, ours.Mosaic(90 * grid, grid, antialias=False), samples)
        assert out["boxes"].format.value == format
        for i, given in enumerate(samples):
            part = {
                k: tv_tensors.wrap(plain(out[k])[3 * i : 3 * i + 3], like=out[k])
                for k in ("boxes", "masks", "points")
            }
            is_own = (plain(out["image"])[2:] == i + 1).float()
            Moved(
                {"image": Image(torch.cat([plain(out["image"])[:2] * is_own, is_own])), **part}, given
            ).check()


@pytest.mark.parametrize("format", FORMATS)
def test_copy_paste_boxes_what_is_left(format: str) -> None:
    """Each side of a box touches what is seen of its object."""
    samples, hidden = [objects(format, i) for i in range(2)], 0
    for seed in range(4):
        out = seeded(seed, ours.CopyPaste(amount=0.5, p=1.0), samples)
        assert out["boxes"].format.value == format and out["labels"].tolist() == [0, 1, 2, 10, 11, 12]
        for polygon, mask in zip(polygons(out["boxes"]), plain(out["masks"]).numpy() > 0, strict=True):
            assert polygon.any() == mask.any()
            assert not mask.any() or (np.abs(gaps(polygon, mask)) < 1.8).all()
        hidden += int((plain(out["masks"])[:3] != plain(samples[0]["masks"])).any())
    assert hidden


def level(boxes: Any) -> Any:
    """Return boxes without an angle as boxes of the angle 0."""
    rows = torch.cat([plain(converted(boxes, "CXCYWH")), torch.zeros(len(boxes), 1)], 1)
    return Boxes(rows, format="CXCYWHR", canvas_size=boxes.canvas_size)


@pytest.mark.parametrize("format", ["XYXY", "CXCYWHR"])
@pytest.mark.parametrize("grid", [2, 3])
def test_a_box_that_is_cut_is_that_of_its_mask(grid: int, format: str) -> None:
    """Of an object of the form of an L, a cut may leave only the empty corner of its box."""
    mosaic, samples, cut, gone = ours.Mosaic(120, grid, center=(0.1, 0.9)), [], 0, 0
    for i in range(grid**2):
        given = with_an_l(i)
        samples.append({**given, "boxes": level(given["boxes"]) if format == "CXCYWHR" else given["boxes"]})
    for seed in range(8):
        out = seeded(seed, mosaic, samples)
        corners, tight = polygons(out["boxes"]), around(out["masks"])
        boxes, seen = np.concatenate([corners.min(1), corners.max(1)], 1), tight.any(1)
        assert np.abs(boxes - tight)[seen].max() <= 1.5 and not boxes[~seen].any()
        cut, gone = cut + int((seen & (tight[:, :2] == 0).any(1)).sum()), gone + int((~seen).sum())
    assert cut > 4 and gone > 4


@pytest.mark.parametrize("grid", [2, 3])
def test_boxes_from_masks(grid: int) -> None:
    """All boxes enclose their masks, those that are not cut and those that were wider than their masks, too."""
    samples, wider = [with_an_l(seed, count=2) for seed in range(grid**2)], 0
    for given in samples:
        whole = torch.tensor([[0.0, 0, 128, 96]]).expand(2, 4)
        given["boxes"] = tv_tensors.wrap(whole, like=given["boxes"])
    for seed in range(4):
        out, usual = (
            seeded(seed, ours.Mosaic(100, grid, boxes_from_masks=on), samples) for on in (True, False)
        )
        assert np.array_equal(plain(out["boxes"]).numpy(), around(out["masks"]))
        assert not difference({**out, "boxes": 0}, {**usual, "boxes": 0}) and out["boxes"].canvas_size == (
            100,
            100,
        )
        wider += bool(difference(out["boxes"], usual["boxes"]))
    assert wider


@joins
def test_rows_of_samples_are_joined(join: Any, count: int) -> None:
    """Boxes, labels, masks and points of all samples, others of the first; masks of classes are one mask."""
    given = FOUR[:count]
    out = seeded(3, join, given)
    assert [*out] == [*given[0]] and [type(v) for v in out.values()] == [type(v) for v in given[0].values()]
    assert out["labels"].tolist() == [v for s in given for v in s["labels"].tolist()]
    size = tuple(out["image"].shape[-2:])
    assert out["boxes"].canvas_size == out["masks"].shape[-2:] == out["classes"].shape == size
    assert set(out["classes"].unique().tolist()) <= set(range(count + 1)) and out["name"] == "sample 0"
    clean = ours.SanitizeBoundingBoxes()(out)
    assert len(clean["boxes"]) == len(clean["labels"]) == len(clean["masks"]) <= len(out["labels"])
    # A mask of one object without a box is one of classes.
    alone = {"image": torch.zeros(3, 8, 8), "mask": Mask(torch.ones(1, 8, 8)), "x": 1}
    if count == 4:
        assert join([alone] * 4)["mask"].shape == (1, 64, 64) and join([alone] * 4)["x"] == 1


@needs_classes
@pytest.mark.parametrize("format", ["XYXY", *every_night(*ANGLED)])
def test_one_graph(format: str) -> None:
    """One graph for all draws, with boxes that are cut to their masks."""
    samples = [objects(format, i, (48, 48 + 4 * i)) for i in range(4)]
    samples[1] = dict(reversed(samples[1].items()))  # the keys of a sample have any order
    calls: dict[str, Any] = {"Mosaic": ours.Mosaic(96), "CopyPaste": ours.CopyPaste(p=0.6, feather=1.0)}
    inputs: dict[str, Any] = {"Mosaic": (samples,), "CopyPaste": (samples[::3],)}
    check_in_one_graph(calls, inputs, 6)


@nightly
@needs_classes
def test_how_often_other_numbers_of_boxes_compile() -> None:
    """PyTorch compiles one graph for one box and one for more, in each sample, after the first call."""
    calls = {"CopyPaste": ours.CopyPaste(p=1.0)}
    graph, counting = compile_together(calls, "eager", "own")
    for seed, counts in enumerate([(3, 2), (2, 3), (1, 4), (5, 1), (1, 1), (4, 6), (1, 2)]):
        samples = [of_boxes(30, 40, [[j, j, j + 9, j + 9] for j in range(n)]) for n in counts]
        found = seeded(seed, graph, {"CopyPaste": (samples,)})["CopyPaste"]
        assert not difference(found, seeded(seed, calls["CopyPaste"], samples)), counts
    assert counting.count <= 2**2 + 1


@joins
def test_instance_masks_of_every_dtype(join: Any, count: int) -> None:
    samples = [with_an_l(i) for i in range(count)]
    wanted = seeded(2, join, samples)
    for dtype in (torch.bool, torch.int8, torch.int16, torch.uint16, torch.int32, torch.int64, torch.float32):
        found = seeded(2, join, [{**s, "masks": Mask(plain(s["masks"]).to(dtype))} for s in samples])
        assert bits_equal(plain(found["masks"]), plain(wanted["masks"]).to(dtype))
        assert not difference(found["boxes"], wanted["boxes"])


def test_whole_keypoints_are_rounded_as_boxes_are() -> None:
    """A corner of a box of integers and a keypoint at the same place stay at one place."""
    samples, box = [], torch.tensor([[3, 4, 20, 30]])
    for given in FOUR:
        canvas = {"canvas_size": given["boxes"].canvas_size}
        both = {"boxes": Boxes(box, format="XYXY", **canvas), "points": Points(box.reshape(2, 2), **canvas)}
        samples.append({"image": given["image"], **both})
    out = ours.Mosaic(300, center=0.5)(samples)
    assert torch.equal(plain(out["points"]).reshape(-1, 4), plain(out["boxes"]))
    points = samples[0]["points"]
    for bend in (ours.RandomOpticalDistortion(p=1.0), ours.RandomGridDistortion(p=1.0)):
        exact = {**samples[0], "points": tv_tensors.wrap(plain(points).double(), like=points)}
        moved, wanted = (plain(seeded(3, bend, x)["points"]) for x in (samples[0], exact))
        assert torch.equal(moved, wanted.round().long())


# -- rows, keys and labels ---------------------------------------------------------------------------


def entry(i: int, *keys: str, count: int = 1) -> dict[str, Any]:
    """Return a sample with one box, or ``count``, whose tensors say its number."""
    boxes = torch.tensor([[1.0, 1, 30, 30]]).expand(count, 4)
    parts = {
        "image": Image(torch.zeros(3, 40, 40, dtype=torch.uint8)),
        "boxes": Boxes(boxes, format="XYXY", canvas_size=(40, 40)),
        "masks": Mask(torch.ones(count, 40, 40, dtype=torch.uint8)),
        "labels": torch.full((count,), i),
        "area": torch.full((count,), 100 + i),
        "points": Points(torch.rand(17, 2) * 40, canvas_size=(40, 40)),
        "visible": torch.full((17,), i),
    }
    return {key: parts[key] for key in keys}


OBJECT = ("image", "boxes", "masks")


@nightly
@needs_classes
@joins
def test_keys_and_labels_in_a_graph(join: Any, count: int) -> None:
    samples = [entry(i, *OBJECT, "labels") for i in range(count)]
    samples[1] = dict(reversed(samples[1].items()))
    compiled = torch.compile(lambda x: join(x), fullgraph=True, backend="eager")
    assert compiled(samples)["labels"].tolist() == [*range(count)]
    with pytest.raises(Exception, match="labels must be tensors or arrays in a graph, got a list"):
        compiled([{**s, "labels": ["car"]} for s in samples])


@joins
def test_labels_in_every_container_stay_with_their_boxes(join: Any, count: int) -> None:
    """Values of one key belong together, in any order of keys: lists, tuples and arrays as tensors, of any number."""
    for numbers in ((1, 1, 1, 1), (0, 2, 3, 1), (0, 0, 0, 0)):
        texts = [[f"{i} {k}" for k in range(n)] for i, n in enumerate(numbers[:count])]
        for of in (list, tuple, np.array, lambda each: [[text] for text in each]):
            samples = []
            for i, each in enumerate(texts):
                more = {"labels": of(each), "area": np.arange(len(each)) + 10.0 * i}
                given = entry(i, *OBJECT, count=len(each)) | more
                samples.append(given if i % 2 else dict(reversed(given.items())))
            out = join(samples)
            assert type(out["labels"]) is type(samples[0]["labels"]) and len(out["boxes"]) == sum(
                map(len, texts)
            )
            assert np.array(out["labels"]).reshape(-1).tolist() == [text for each in texts for text in each]
            assert out["area"].tolist() == [x for s in samples for x in s["area"]]
            nested = join([(sample, [{"more": sample}]) for sample in samples])
            assert list(nested[1][0]["more"]["area"]) == list(nested[0]["area"]) == list(out["area"])
            assert list(out) == list(samples[0]) and len(samples[0]["labels"]) == numbers[0]
    samples = [{**entry(i, *OBJECT), "labels": ["car"]} for i in range(count)]
    samples[0]["labels"] = ("car",)
    with pytest.raises(ValueError, match=r"samples must have one structure, got .*'tuple'.*'list'"):
        join(samples)


def test_flags_are_joined_with_their_keypoints() -> None:
    samples = [entry(i, "image", "points", "visible") for i in range(4)]
    out = ours.Mosaic(64)(samples)
    assert out["points"].shape == (68, 2) and out["visible"].tolist() == np.arange(4).repeat(17).tolist()
    for change in (lambda x: x[:, None], lambda x: x[:, None].numpy()):
        given = [{**s, "visible": change(s["visible"])} for s in samples]
        assert ours.Mosaic(64)(given)["visible"].shape == (68, 1)


# -- what is refused ---------------------------------------------------------------------------------


@joins
def test_samples_that_do_not_fit_together_raise(join: Any, count: int) -> None:
    """A sample with a label too many does not make the labels those of the first sample."""
    name = type(join).__name__
    samples = [entry(i, *OBJECT, "labels") for i in range(count)]
    wrong = entry(1, *OBJECT, "area"), entry(1, *OBJECT, "labels", "area"), tuple(samples[1].values())
    for other in wrong:
        with pytest.raises(ValueError, match=f"^{name}: samples must have one structure, got "):
            join([samples[0], other, *samples[2:]])
    must = f"^{name}: labels must be a tensor, an array or a list with one for each box"
    fits = torch.tensor([0])
    for right, other, got in (
        (fits, torch.tensor([1, 1]), r"shape \(2,\)"),
        (fits, torch.tensor(1), r"shape \(\)"),
        (["car"], ["cat", "dog"], "2 labels"),
        ("cat", "cat", "str"),
        (np.array([0]), np.array([1, 1]), r"shape \(2,\)"),
    ):
        given = [{**s, "labels": other if i == 1 else right} for i, s in enumerate(samples)]
        with pytest.raises(ValueError, match=f"{must}, got {got} and 1 boxes"):
            join(given)
    for add in (
        lambda i: torch.zeros(1, 1 + (i == 1)),
        lambda i: torch.zeros(1, *[1] * i),
        lambda i: Points(torch.zeros(1, 3 + i, 2), canvas_size=(40, 40)),
    ):
        with pytest.raises(ValueError, match=f"^{name}: samples must have rows of one shape, got "):
            join([{**s, "more": add(i)} for i, s in enumerate(samples)])


def test_refusals() -> None:
    level, mosaic = torch.zeros(3, 20, 30, dtype=torch.uint8), ours.Mosaic(8)
    bare = [entry(i, "boxes", "masks") for i in range(2)]
    masks = [Mask(torch.zeros(40, 40, dtype=d)) for d in [torch.uint8] * 3 + [torch.int64]]
    mixed = [{**entry(i, "image"), "mask": mask} for i, mask in enumerate(masks)]
    raises_each(
        ValueError,
        (lambda: mosaic(FOUR[:3]), "^Mosaic: inputs must be a list of 4 samples, got 3"),
        (lambda: mosaic(level), "^Mosaic: inputs must be a list of 4 samples, got Tensor"),
        (lambda: ours.Mosaic(8, 4), r"^Mosaic: grid must be 2 \(four samples\) or 3 \(nine\), got 4"),
        (lambda: mosaic([*FOUR[:3], level]), "^Mosaic: samples must have one structure"),
        (lambda: ours.CopyPaste()([level] * 2), "^CopyPaste: samples must have BoundingBoxes and a Mask"),
        (lambda: ours.CopyPaste()(bare), r"^CopyPaste: samples must have an image"),
    )
    raises_each(
        TypeError,
        (lambda: mosaic(mixed), r"^Mosaic: masks must have one dtype, got torch.uint8 and torch.in"),
    )
    real, dtypes = (
        torch.rand(3, 20, 30),
        "Mosaic: images must have one dtype, got torch.uint8 and torch.float32",
    )
    shapes = "Mosaic: images must have the same dimensions before their"
    for seed in range(8):  # whatever place they come to: some are cut off, some are outside
        torch.manual_seed(seed)
        raises_each(TypeError, (lambda: ours.Mosaic(32)([level, real, real, real]), dtypes))
        for other in (torch.rand(1, 20, 30), torch.rand(2, 3, 20, 30)):
            raises_each(ValueError, (lambda: ours.Mosaic(32)([real, other, real, real]), shapes))
