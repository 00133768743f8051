"""Mosaic and CopyPaste: pixels by PIL and NumPy, boxes by masks, graphs, gradients, errors."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import PIL.Image
import pytest
import torch
from checks import bits_equal
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2
from transform_cases import picture, seeded

from imgops import transforms as ours
from imgops._common.torch_private import CountingBackend
from tests.specs._maker import formatted

needs_classes = pytest.mark.skipif(not hasattr(torch.Tag, "inplace"), reason="dynamo takes no tv_tensors")


def made(height: int, width: int, count: int, seed: int, dtype: torch.dtype = torch.uint8) -> dict[str, Any]:
    """Make a sample of a detector's data set, with a mask for each box and one for all pixels."""
    generator = torch.Generator().manual_seed(seed)
    corners = torch.rand(count, 2, 2, generator=generator).sort(1).values * torch.tensor([width, height])
    boxes = corners.flatten(1).round()
    masks = torch.zeros(count, height, width, dtype=torch.uint8)
    for mask, (x0, y0, x1, y1) in zip(masks, boxes.int().tolist()):
        mask[y0:y1, x0:x1] = 1
    return {
        "image": tv_tensors.Image(picture(dtype, height, width, seed)),
        "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(height, width)),
        "masks": tv_tensors.Mask(masks),
        "classes": tv_tensors.Mask(torch.full((height, width), seed + 1, dtype=torch.uint8)),
        "labels": torch.arange(count) + 10 * seed,
        "points": tv_tensors.KeyPoints(boxes[:, :2], canvas_size=(height, width)),
        "name": f"sample {seed}",
    }


FOUR = [made(60, 80, 3, 0), made(100, 70, 2, 1), made(50, 50, 4, 2), made(90, 120, 1, 3)]
NINE = [*FOUR, made(30, 30, 2, 4), *(made(40 + 9 * i, 60, 2, 5 + i) for i in range(4))]


def tight(mask: Tensor) -> Tensor:
    rows, columns = torch.nonzero(mask, as_tuple=True)
    return torch.stack([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1])


def pasted(
    samples: list[Any], grid: int, size: int, x: int, y: int, fill: int, antialias: bool = True
) -> tuple[np.ndarray, list[Any]]:
    """Make the mosaic by PIL (or OpenCV's resize); also return the left, the top and the factor of each image."""
    canvas = PIL.Image.new("RGB", (size, size), (fill,) * 3)
    places = []
    for i, sample in enumerate(samples):
        row, column = divmod(i, grid)
        frame = PIL.Image.fromarray(sample["image"].permute(1, 2, 0).numpy())
        factor = min(size / grid / frame.height, size / grid / frame.width)
        wide, high = max(round(frame.width * factor), 1), max(round(frame.height * factor), 1)
        starts = []
        for at, middle, length in ((column, x, wide), (row, y, high)):
            cell = size // 3
            if grid == 2:
                starts.append(middle - length if at == 0 else middle)
            else:
                left = middle - size // 6
                starts.append((left - length, middle - length // 2, left + cell)[at])
        if antialias:
            small = frame.resize((wide, high), PIL.Image.BILINEAR)
        else:
            small = PIL.Image.fromarray(cv2.resize(np.asarray(frame), (wide, high)))
        canvas.paste(small, tuple(starts))
        places.append((*starts, wide / frame.width, high / frame.height))
    return np.asarray(canvas), places


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("center", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("grid", [2, 3])
def test_images_that_leave_the_mosaic(grid: int, center: float, antialias: bool) -> None:
    """They are inside, cut off and fully outside; with a gradient (by paste) and without (into the canvas)."""
    samples, size = (FOUR, 128) if grid == 2 else (NINE, 150)
    transform = ours.Mosaic(size, grid, center=(center, center), fill=114, antialias=antialias)
    at = int(center * size)
    wanted, _ = pasted(samples, grid, size, at, at, 114, antialias)
    for format in ("planar", "interleaved"):
        images = [formatted(s["image"].as_subclass(Tensor), format) for s in samples]
        assert np.array_equal(transform(images).permute(1, 2, 0).numpy(), wanted)
        reals = [formatted(i.double(), format).requires_grad_() for i in images]
        out = transform(reals)
        assert out.requires_grad
        assert bits_equal(out.detach(), transform([r.detach() for r in reals]))


@pytest.mark.parametrize("interpolation", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("grid", [2, 3])
def test_masks_are_the_pixels_that_the_mosaic_shows(grid: int, interpolation: str) -> None:
    """The images are the numbers of their pixels, so that no two are equal; sizes have every remainder by 6."""
    for size in (60, 61, 62, 63, 64, 65):
        torch.manual_seed(size)
        samples = []
        for i in range(grid**2):
            height, width = torch.randint(8, 90, (2,)).tolist()
            numbers = (torch.arange(height * width).reshape(height, width) + 10_000 * i + 1).float()
            whole = [[0.0, 0, width, height]]
            samples.append(
                {
                    "image": tv_tensors.Image(numbers.expand(3, height, width).clone()),
                    "masks": tv_tensors.Mask(numbers[None].clone()),
                    "boxes": tv_tensors.BoundingBoxes(whole, format="XYXY", canvas_size=(height, width)),
                }
            )
        mosaic = ours.Mosaic(size, grid, interpolation=interpolation, antialias=False)(samples)
        shown, masks = (mosaic[name].as_subclass(Tensor) for name in ("image", "masks"))
        for i, mask in enumerate(masks):
            assert torch.equal(torch.where((shown[0] - 1) // 10_000 == i, shown[0], 0), mask), (size, i)


@pytest.mark.parametrize("grid", [2, 3])
def test_mosaic(grid: int) -> None:
    samples, size = (FOUR, 128) if grid == 2 else (NINE, 150)
    transform = ours.Mosaic(size, grid, fill=114)
    for seed in range(8):
        torch.manual_seed(seed)
        params = transform.sample(samples)
        y, x = transform._sampled_sizes(params[()].numbers, 0, 0)
        out = transform.apply(samples, params)
        wanted, places = pasted(samples, grid, size, x, y, 114)
        assert np.array_equal(out["image"].permute(1, 2, 0).numpy(), wanted)
        assert bits_equal(
            seeded(seed, transform, samples)["image"].as_subclass(Tensor), out["image"].as_subclass(Tensor)
        )
        assert list(out) == list(samples[0]) and out["name"] == "sample 0"
        assert {k: type(v) for k, v in out.items()} == {k: type(v) for k, v in samples[0].items()}
        assert out["labels"].tolist() == [v for s in samples for v in s["labels"].tolist()]
        assert out["boxes"].canvas_size == out["points"].canvas_size == (size, size)
        every = zip(out["masks"], out["boxes"].as_subclass(Tensor))
        for mask, box in every:
            if mask.any():
                assert (box - tight(mask)).abs().max() <= 1
            else:
                assert (box[2:] - box[:2]).min() < 1
        at = 0
        for sample, (left, top, by_x, by_y) in zip(samples, places):
            for point in sample["points"].as_subclass(Tensor).tolist():
                found = out["points"].as_subclass(Tensor)[at].tolist()
                assert found == pytest.approx([point[0] * by_x + left, point[1] * by_y + top], abs=1e-3)
                at += 1
        classes = set(out["classes"].unique().tolist())
        assert classes <= set(range(len(samples) + 1)) and len(classes) > grid
    clean = ours.SanitizeBoundingBoxes()(out)
    assert len(clean["boxes"]) == len(clean["labels"]) == len(clean["masks"]) <= len(out["labels"])


@needs_classes
@pytest.mark.parametrize("name", ["Mosaic", "CopyPaste"])
def test_one_graph(name: str) -> None:
    transform = ours.Mosaic(96) if name == "Mosaic" else ours.CopyPaste(p=0.6, feather=1.0)
    samples = FOUR if name == "Mosaic" else [FOUR[0], FOUR[2]]
    samples = [{k: v for k, v in s.items() if k != "name"} for s in samples]
    torch.compiler.reset()
    counting = CountingBackend("aot_eager")
    graph = torch.compile(transform, fullgraph=True, backend=counting)
    for seed in range(8):
        found, wanted = seeded(seed, graph, samples), seeded(seed, transform, samples)
        for key, value in wanted.items():
            assert type(found[key]) is type(value)
            assert torch.allclose(found[key].as_subclass(Tensor), value.as_subclass(Tensor), atol=1e-5), (
                seed,
                key,
            )
        assert found["boxes"].canvas_size == wanted["boxes"].canvas_size
    assert counting.count == 1


@pytest.mark.parametrize("feather", [0.0, 1.5])
def test_copy_paste(feather: float) -> None:
    """The pixels are NumPy's ``where`` by the pasted masks; boxes enclose the visible part of each mask."""
    first, second = FOUR[0], made(60, 80, 4, 2)
    taken = set()
    for seed in range(12):
        out = seeded(seed, ours.CopyPaste(p=1.0, feather=feather), [first, second])
        assert len(out["masks"]) == len(out["boxes"]) == len(out["labels"]) == 7 and out["name"] == "sample 0"
        assert out["labels"].tolist() == [0, 1, 2, 20, 21, 22, 23]
        over = out["masks"][3:].as_subclass(Tensor)
        chosen = [bool(m.any()) for m in over]
        taken.add(tuple(chosen))
        assert all(
            bits_equal(m, t.as_subclass(Tensor)) for m, t, c in zip(over, second["masks"], chosen) if c
        )
        hidden = (over > 0).any(0)
        if not feather:
            wanted = torch.where(
                hidden, second["image"].as_subclass(Tensor), first["image"].as_subclass(Tensor)
            )
            assert bits_equal(out["image"].as_subclass(Tensor), wanted)
        under = torch.where(hidden, 0, first["masks"].as_subclass(Tensor))
        assert bits_equal(out["masks"][:3].as_subclass(Tensor), under)
        for mask, box in zip(out["masks"], out["boxes"].as_subclass(Tensor)):
            assert box.tolist() == (tight(mask).tolist() if mask.any() else [0, 0, 0, 0])
    assert len(taken) > 4
    nothing = ours.SanitizeBoundingBoxes()(ours.CopyPaste(p=0.0)([first, second]))
    assert nothing["labels"].tolist() == [0, 1, 2] and bits_equal(nothing["image"], first["image"])
    small = seeded(1, ours.CopyPaste(1.0, p=1.0), [first, made(30, 40, 2, 1)])
    assert small["image"].shape == first["image"].shape and small["masks"].shape == (5, 60, 80)


def test_boxes_that_nothing_hides_stay() -> None:
    first = made(60, 80, 3, 0)
    first["boxes"] = tv_tensors.wrap(
        first["boxes"] + torch.tensor([-0.5, -0.5, 0.5, 0.5]), like=first["boxes"]
    )
    out = ours.CopyPaste(amount=0.0, p=1.0)([first, FOUR[2]])
    assert bits_equal(out["boxes"][:3].as_subclass(Tensor), first["boxes"].as_subclass(Tensor))


@pytest.mark.parametrize("format", ["XYWH", "CXCYWH"])
def test_other_formats(format: str) -> None:
    convert = ours.ConvertBoundingBoxFormat
    samples = [{**s, "boxes": convert(format)(s["boxes"])} for s in FOUR]
    for transform, given, wanted in (
        (ours.Mosaic(96), samples, FOUR),
        (ours.CopyPaste(p=1.0), samples[::2], FOUR[::2]),
    ):
        found = seeded(2, transform, given)["boxes"]
        assert found.format.value == format
        theirs = seeded(2, transform, wanted)["boxes"].as_subclass(Tensor)
        torch.testing.assert_close(convert("XYXY")(found).as_subclass(Tensor), theirs)


def test_gradients_reach_every_image() -> None:
    images = [torch.rand(3, 9, 11, dtype=torch.float64, requires_grad=True) for _ in range(4)]
    mosaic = ours.Mosaic(14)
    assert torch.autograd.gradcheck(lambda *x: seeded(0, mosaic, list(x)), images, fast_mode=True)
    samples = [{"image": x, **{k: made(9, 11, 2, 1)[k] for k in ("boxes", "masks")}} for x in images[:2]]
    paste = ours.CopyPaste(1.0, feather=0.7, p=1.0)
    out = seeded(0, paste, samples)["image"]
    grads = torch.autograd.grad(out.sum(), images[:2])
    assert all(g.abs().sum() > 0 for g in grads) and torch.allclose(sum(grads), torch.ones(3, 9, 11).double())


def test_one_box_each_is_a_mask_of_an_instance() -> None:
    """Tensors with as many rows as boxes are joined; a mask without boxes is one of classes."""
    samples = [
        {"image": torch.zeros(3, 8, 8), "mask": tv_tensors.Mask(torch.ones(1, 8, 8)), "x": 1}
        for _ in range(4)
    ]
    out = ours.Mosaic(16)(samples)
    assert out["mask"].shape == (1, 16, 16) and out["x"] == 1 and out["image"].shape == (3, 16, 16)


def test_refusals() -> None:
    for call, message in (
        (lambda: ours.Mosaic(8)(FOUR[:3]), "Mosaic: inputs must be a list of 4 samples, got 3"),
        (
            lambda: ours.Mosaic(8)(torch.zeros(3, 8, 8)),
            "Mosaic: inputs must be a list of 4 samples, got Tensor",
        ),
        (lambda: ours.Mosaic(8, 4), "Mosaic: grid must be 2 (four samples) or 3 (nine), got 4"),
        (
            lambda: ours.Mosaic(8)([*FOUR[:3], torch.zeros(3, 8, 8)]),
            "Mosaic: samples must have one structure",
        ),
        (
            lambda: ours.CopyPaste()([torch.zeros(3, 8, 8)] * 2),
            "CopyPaste: samples must have BoundingBoxes and a Mask",
        ),
    ):
        with pytest.raises(ValueError) as found:
            call()
        assert str(found.value).startswith(message)


def test_whole_keypoints_are_rounded_as_boxes_are() -> None:
    """A corner of a box of integers and a keypoint at the same place stay at one place."""
    samples = []
    for sample in FOUR:
        box = torch.tensor([[3, 4, 20, 30]])
        canvas = sample["boxes"].canvas_size
        boxes = tv_tensors.BoundingBoxes(box, format="XYXY", canvas_size=canvas)
        points = tv_tensors.KeyPoints(box.reshape(2, 2), canvas_size=canvas)
        samples.append({"image": sample["image"], "boxes": boxes, "points": points})
    out = ours.Mosaic(300, center=0.5)(samples)
    assert torch.equal(out["points"].as_subclass(Tensor).reshape(-1, 4), out["boxes"].as_subclass(Tensor))
    for transform in (ours.RandomOpticalDistortion(p=1.0), ours.RandomGridDistortion(p=1.0)):
        moved = seeded(3, transform, samples[0])["points"]
        exact = tv_tensors.KeyPoints(
            samples[0]["points"].double(), canvas_size=samples[0]["points"].canvas_size
        )
        wanted = seeded(3, transform, {**samples[0], "points": exact})["points"]
        assert torch.equal(moved.as_subclass(Tensor), wanted.as_subclass(Tensor).round().long())


def test_images_of_two_kinds_make_no_mosaic() -> None:
    """Whatever place they come to: some are cut off, some are outside."""
    level, real = torch.zeros(3, 20, 30, dtype=torch.uint8), torch.rand(3, 20, 30)
    for seed in range(8):
        with pytest.raises(
            TypeError, match=r"Mosaic: images must have one dtype, got torch.uint8 and torch.float32"
        ):
            seeded(seed, ours.Mosaic(32), [level, real, real, real])
        for other in (torch.rand(1, 20, 30), torch.rand(2, 3, 20, 30)):
            with pytest.raises(ValueError, match="Mosaic: images must have the same dimensions before their"):
                seeded(seed, ours.Mosaic(32), [real, other, real, real])


@pytest.mark.parametrize("format", ["XYXY", "CXCYWH", "CXCYWHR", "XYXYXYXY"])
def test_a_box_that_begins_outside_of_its_image_covers_no_neighbor(format: str) -> None:
    """Its mask lies in its image, and so does the box."""
    inside = torch.tensor([[-20.0, -10.0, 16.0, 24.0], [40.0, 30.0, 90.0, 80.0], [70.0, 5.0, 80.0, 9.0]])
    samples = []
    for _ in range(4):
        boxes = tv_tensors.BoundingBoxes(inside, format="XYXY", canvas_size=(48, 64), clamping_mode=None)
        if format == "XYXYXYXY":
            x0, y0, x1, y1 = inside.unbind(1)
            corners = torch.stack([x0, y0, x1, y0, x1, y1, x0, y1], 1)
            boxes = tv_tensors.BoundingBoxes(corners, format=format, canvas_size=(48, 64), clamping_mode=None)
        elif format == "CXCYWHR":
            plain = v2.functional.convert_bounding_box_format(inside, "XYXY", "CXCYWH")
            plain = torch.cat([plain, torch.zeros(3, 1)], 1)
            boxes = tv_tensors.BoundingBoxes(plain, format=format, canvas_size=(48, 64), clamping_mode=None)
        elif format != "XYXY":
            boxes = v2.functional.convert_bounding_box_format(boxes, new_format=format)
        samples.append({"image": torch.zeros(3, 48, 64, dtype=torch.uint8), "boxes": boxes})
    out = ours.Mosaic(128, center=0.5)(samples)["boxes"]
    if format == "XYXYXYXY":
        found = out.as_subclass(Tensor).reshape(-1, 4, 2)
        found = torch.cat(found.aminmax(dim=1), 1)
    else:
        plain = out.as_subclass(Tensor)[:, :4]
        found = v2.functional.convert_bounding_box_format(plain, format.removesuffix("R"), "XYXY")
    for i, (left, top) in enumerate(((0, 16), (64, 16), (0, 64), (64, 64))):
        first, second, third = found[3 * i : 3 * i + 3]
        assert first.tolist() == pytest.approx([left, top, left + 16, top + 24], abs=1e-4)
        assert second.tolist() == pytest.approx([left + 40, top + 30, left + 64, top + 48], abs=1e-4)
        assert (third[2] - third[0]) * (third[3] - third[1]) == pytest.approx(0, abs=1e-4)


def _entry(i: int, *keys: str) -> dict[str, Any]:
    """Return a sample with one box, whose tensors say its number."""
    parts = {
        "image": tv_tensors.Image(torch.zeros(3, 40, 40, dtype=torch.uint8)),
        "boxes": tv_tensors.BoundingBoxes([[1.0, 1, 30, 30]], format="XYXY", canvas_size=(40, 40)),
        "masks": tv_tensors.Mask(torch.ones(1, 40, 40, dtype=torch.uint8)),
        "labels": torch.tensor([i]),
        "area": torch.tensor([100 + i]),
        "points": tv_tensors.KeyPoints(torch.rand(17, 2) * 40, canvas_size=(40, 40)),
        "visible": torch.full((17,), i),
    }
    return {key: parts[key] for key in keys}


def _joins() -> list[tuple[Any, int]]:
    return [(ours.Mosaic(64), 4), (ours.CopyPaste(amount=1.0, p=1.0), 2)]


def test_values_of_one_key_belong_together() -> None:
    """Whatever order the keys of a sample have."""
    for join, count in _joins():
        samples = [_entry(i, "image", "boxes", "masks", "labels", "area") for i in range(count)]
        samples[1] = _entry(1, "area", "masks", "labels", "boxes", "image")
        for given in (samples, [(s, [{"more": s}]) for s in samples]):
            out = join(given)
            out = out if isinstance(out, dict) else out[0]
            assert out["labels"].tolist() == [*range(count)] and [*out] == [*samples[0]]
            assert out["area"].tolist() == [*range(100, 100 + count)]
        compiled = torch.compile(lambda x, join=join: join(x), fullgraph=True, backend="eager")
        assert compiled(samples)["labels"].tolist() == [*range(count)]


def test_samples_of_two_structures_raise() -> None:
    for join, count in _joins():
        samples = [_entry(i, "image", "boxes", "masks", "labels") for i in range(count)]
        for other in (
            _entry(1, "image", "boxes", "masks", "area"),
            _entry(1, "image", "boxes", "masks", "labels", "area"),
            tuple(samples[1].values()),
        ):
            given = [samples[0], other, *samples[2:]]
            with pytest.raises(
                ValueError, match=f"^{type(join).__name__}: samples must have one structure, got "
            ):
                join(given)


def test_labels_are_one_for_each_box() -> None:
    """A sample with a label too many does not make the labels those of the first sample."""
    fits = torch.tensor([0])
    for join, count in _joins():
        for right, wrong, got in (
            (fits, torch.tensor([1, 1]), r"shape \(2,\)"),
            (fits, torch.tensor(1), r"shape \(\)"),
            (["car"], ["cat", "dog"], "2 labels"),
            ("car", "cat", "str"),
            (np.array([0]), np.array([1, 1]), r"shape \(2,\)"),
        ):
            samples = [{**_entry(i, "image", "boxes", "masks"), "labels": right} for i in range(count)]
            samples[1]["labels"] = wrong
            if right == "car":
                samples[0]["labels"] = wrong
            must = (
                f"^{type(join).__name__}: labels must be a tensor, an array or a list with one for each box"
            )
            with pytest.raises(ValueError, match=f"{must}, got {got} and 1 boxes"):
                join(samples)


def test_labels_in_every_container_stay_with_their_boxes() -> None:
    """Lists, tuples and arrays are joined as the same tensors are, with any number of boxes in a sample."""
    for join, count in _joins():
        for numbers in ((1, 1, 1, 1), (0, 2, 3, 1), (0, 0, 0, 0)):
            texts = [[f"{i} {k}" for k in range(n)] for i, n in enumerate(numbers[:count])]
            wanted = [text for each in texts for text in each]
            for of in (list, tuple, np.array, lambda x: [[text] for text in x]):
                samples = []
                for i, each in enumerate(texts):
                    boxes = torch.tensor([[4.0, 4, 20, 20]]).expand(len(each), 4)
                    sample = _entry(i, "image") | {
                        "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(32, 32)),
                        "masks": tv_tensors.Mask(torch.ones(len(each), 32, 32, dtype=torch.uint8)),
                        "image": tv_tensors.Image(torch.rand(3, 32, 32)),
                        "labels": of(each),
                        "area": np.arange(len(each)) + 10.0 * i,
                    }
                    samples.append(sample if i % 2 else dict(reversed(sample.items())))
                out = join(samples)
                assert type(out["labels"]) is type(samples[0]["labels"]) and len(out["boxes"]) == len(wanted)
                assert np.array(out["labels"]).reshape(-1).tolist() == wanted
                assert out["area"].tolist() == [x for s in samples for x in s["area"]]
                assert list(out) == list(samples[0]) and len(samples[0]["labels"]) == numbers[0]
        samples = [{**_entry(i, "image", "boxes", "masks"), "labels": ["car"]} for i in range(count)]
        with pytest.raises(Exception, match="labels must be tensors or arrays in a graph, got a list"):
            torch.compile(join, fullgraph=True, backend="eager")(samples)
        samples[0]["labels"] = ("car",)
        with pytest.raises(ValueError, match=r"samples must have one structure, got .*'tuple'.*'list'"):
            join(samples)


def test_flags_are_joined_with_their_keypoints() -> None:
    samples = [_entry(i, "image", "points", "visible") for i in range(4)]
    out = ours.Mosaic(64)(samples)
    assert out["points"].shape == (68, 2) and out["visible"].tolist() == [
        i for i in range(4) for _ in range(17)
    ]
    for sample in samples:
        sample["visible"] = sample["visible"][:, None]
    assert ours.Mosaic(64)(samples)["visible"].shape == (68, 1)
    for sample in samples:
        sample["visible"] = sample["visible"].numpy()
    assert ours.Mosaic(64)(samples)["visible"].shape == (68, 1)


def test_rows_that_do_not_fit_together_raise() -> None:
    for join, count in _joins():
        name = type(join).__name__
        for add in (
            lambda i: torch.zeros(1, 1 + (i == 1)),
            lambda i: torch.zeros(1, *[1] * i),
            lambda i: tv_tensors.KeyPoints(torch.zeros(1, 3 + i, 2), canvas_size=(40, 40)),
        ):
            samples = [{**_entry(i, "image", "boxes", "masks"), "more": add(i)} for i in range(count)]
            with pytest.raises(ValueError, match=f"^{name}: samples must have rows of one shape, got "):
                join(samples)
    masks = [tv_tensors.Mask(torch.zeros(40, 40, dtype=d)) for d in [torch.uint8] * 3 + [torch.int64]]
    with pytest.raises(
        TypeError, match=r"^Mosaic: masks must have one dtype, got torch.uint8 and torch.int64"
    ):
        ours.Mosaic(64)([{**_entry(i, "image"), "mask": mask} for i, mask in enumerate(masks)])
    with pytest.raises(ValueError, match=r"^CopyPaste: samples must have an image"):
        ours.CopyPaste()([_entry(i, "boxes", "masks") for i in range(2)])


def bent(seed: int, format: str = "XYXY", dtype: torch.dtype = torch.uint8) -> dict[str, Any]:
    """Return a sample with one object of the shape of an L: a cut may leave only the empty corner of its box."""
    mask = torch.zeros(1, 90, 100, dtype=torch.uint8)
    mask[0, 10:80, 10 + seed : 16 + seed] = 1
    mask[0, 74:80, 10 + seed : 90] = 1
    left, top, right, bottom = 10.0 + seed, 10.0, 90.0, 80.0
    whole = [left, top, right, bottom]
    if format == "CXCYWHR":
        whole = [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top, 0.0]
    canvas = {"canvas_size": (90, 100)}
    return {
        "image": tv_tensors.Image(picture(height=90, width=100, seed=seed)),
        "boxes": tv_tensors.BoundingBoxes([whole], format=format, **canvas),
        "masks": tv_tensors.Mask(mask.to(dtype)),
        "labels": torch.tensor([seed]),
    }


@pytest.mark.parametrize("format", ["XYXY", "CXCYWHR"])
@pytest.mark.parametrize("grid", [2, 3])
def test_a_box_that_is_cut_is_that_of_its_mask(grid: int, format: str) -> None:
    mosaic = ours.Mosaic(120, grid, center=(0.1, 0.9))
    samples = [bent(i, format) for i in range(grid**2)]
    cut = gone = 0
    for seed in range(40):
        out = seeded(seed, mosaic, samples)
        boxes = out["boxes"]
        if format != "XYXY":
            corners = v2.functional.convert_bounding_box_format(boxes, new_format="XYXYXYXY")
            corners = corners.as_subclass(Tensor).reshape(-1, 4, 2)
            boxes = torch.cat(corners.aminmax(dim=1), -1)
        for box, mask in zip(boxes.as_subclass(Tensor), out["masks"].as_subclass(Tensor), strict=True):
            area = (box[2] - box[0]) * (box[3] - box[1])
            if not mask.any():
                assert area == 0
                gone += 1
                continue
            off = (box - tight(mask)).abs().max()
            assert off <= 1.5, (seed, box, tight(mask))
            cut += int(area < (70 * 120 / grid / 100) * (60 * 120 / grid / 100))
    assert cut > 4 and gone > 4


@pytest.mark.parametrize("name", ["Mosaic", "CopyPaste"])
def test_instance_masks_of_every_dtype(name: str) -> None:
    transform = ours.Mosaic(64, center=(0.2, 0.8)) if name == "Mosaic" else ours.CopyPaste(1.0, p=1.0)
    count = 4 if name == "Mosaic" else 2
    wanted = seeded(2, transform, [bent(i) for i in range(count)])
    for dtype in (torch.bool, torch.int8, torch.int16, torch.uint16, torch.int32, torch.int64, torch.float32):
        found = seeded(2, transform, [bent(i, dtype=dtype) for i in range(count)])
        assert found["masks"].dtype == dtype
        assert bits_equal(found["masks"].as_subclass(Tensor), wanted["masks"].as_subclass(Tensor).to(dtype))
        assert bits_equal(found["boxes"].as_subclass(Tensor), wanted["boxes"].as_subclass(Tensor))


@needs_classes
def test_boxes_of_masks_in_a_graph() -> None:
    mosaic = ours.Mosaic(64, center=(0.1, 0.9))
    torch.compiler.reset()
    graph = torch.compile(mosaic, fullgraph=True, backend="aot_eager")
    for seed in range(8):
        samples = [bent(i) for i in range(4)]
        found, wanted = (seeded(seed, f, samples)["boxes"].as_subclass(Tensor) for f in (graph, mosaic))
        torch.testing.assert_close(found, wanted)
