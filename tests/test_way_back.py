"""The way back: results of every transform that moves pixels return to the positions that the inputs had."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import cv2
import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors

from imgops import transforms as ours
from imgops.transforms._core import projections
from imgops.transforms._core.base import RandomTransform
from imgops.transforms._core.parameters import Params
from imgops.transforms.annotations import Camera, Disparity, Flow, Normals
from tests.added_cases import ROWS
from tests.transform_cases import CASES

BILINEAR = ours.InterpolationMode.BILINEAR

#: Transforms that lose no pixel and interpolate nothing, or only crop: what is known comes back to the bit.
EXACT: tuple[Any, ...] = (
    lambda **k: ours.RandomHorizontalFlip(0.5, **k),
    lambda **k: ours.RandomVerticalFlip(0.5, **k),
    lambda **k: ours.RandomRotate90(0.8, **k),
    lambda **k: ours.RandomTranspose(0.5, **k),
    lambda **k: ours.RandomCrop(24, **k),
    lambda **k: ours.RandomCrop((60, 44), padding=4, pad_if_needed=True, fill=7, **k),
    lambda **k: ours.CoarseDropout(p=0.0, **k),
)
#: The same for transforms that draw nothing, or change the size at random, so that no batch has draws of its own.
EXACT_ALONE: tuple[Any, ...] = (
    lambda: ours.Pad((1, 2, 3, 4), fill=7),
    lambda: ours.Pad((-3, 2, -1, 4)),
    lambda: ours.PadIfNeeded((60, 70), anchor="top_left"),
    lambda: ours.CenterCrop((30, 70)),
    lambda: ours.RandomZoomOut(p=0.7),
    lambda: ours.RandomRotation((90, 90), expand=True),
    lambda: ours.RandomRotation((180, 180)),
    lambda: ours.RandomIoUCrop(),
)
#: Transforms that interpolate: a smooth image comes back as far as two interpolations allow.
SMOOTH: tuple[Any, ...] = (
    lambda **k: ours.RandomResizedCrop((50, 60), scale=(0.3, 1.0), **k),
    lambda **k: ours.RandomResizedCrop(24, scale=(0.8, 1.0), **k),
    lambda **k: ours.RandomAffine(30, (0.1, 0.2), (0.8, 1.3), (-10, 10, -5, 5), BILINEAR, **k),
    lambda **k: ours.RandomPerspective(0.4, 0.8, BILINEAR, **k),
    lambda **k: ours.RandomRotation(40, BILINEAR, center=(5, 9), **k),
)
SMOOTH_ALONE: tuple[Any, ...] = (
    lambda: ours.Resize(30),
    lambda: ours.Resize((90, 60), antialias=False),
    lambda: ours.LetterBox((70, 90)),
    lambda: ours.LongestMaxSize(33),
    lambda: ours.SmallestMaxSize(66),
    lambda: ours.RandomResize(30, 70),
    lambda: ours.RandomShortestSize([30, 41], 70),
    lambda: ours.ScaleJitter((60, 60), (0.5, 1.5)),
    lambda: ours.RandomRotation(40, BILINEAR, expand=True),
)
#: Transforms that have no way back.
REFUSED = frozenset(
    [
        "AugMix",
        "AutoAugment",
        "CopyPaste",
        "CutMix",
        "ElasticTransform",
        "FiveCrop",
        "Lambda",
        "LinearTransformation",
        "MixUp",
        "Mosaic",
        "PixMix",
        "RandAugment",
        "RandomElastic",
        "RandomGridDistortion",
        "RandomOpticalDistortion",
        "RandomThinPlateSpline",
        "TenCrop",
        "TrivialAugmentWide",
        "UniformTemporalSubsample",
    ]
)


def picture(height: int, width: int) -> Tensor:
    """Return a smooth image ``(3, H, W)``."""
    y, x = torch.meshgrid(torch.arange(height) / 9, torch.arange(width) / 9, indexing="ij")
    return torch.stack([x.sin(), y.cos(), (x + y).sin()]) / 2 + 0.5


def sample_of(size: tuple[int, int]) -> tuple[Any, ...]:
    """Return an image, a mask, boxes of three formats and keypoints in the middle of it."""
    height, width = size
    edges = torch.tensor([[0.45, 0.4, 0.6, 0.55], [0.5, 0.45, 0.52, 0.6]]) * torch.tensor([width, height] * 2)
    boxes = tv_tensors.BoundingBoxes(edges, format="XYXY", canvas_size=size)
    centered = ours.functional.convert_bounding_box_format(boxes, new_format="CXCYWH")
    corners = torch.stack([edges[:, i] for i in (0, 1, 2, 1, 2, 3, 0, 3)], 1)
    angled = tv_tensors.BoundingBoxes(corners, format="XYXYXYXY", canvas_size=size)
    points = tv_tensors.KeyPoints(edges[:, :2].clone(), canvas_size=size)
    labels = (picture(height, width)[0] * 4).long()
    return tv_tensors.Image(picture(height, width)), tv_tensors.Mask(labels), boxes, centered, angled, points


def corners_of(boxes: Any) -> Tensor:
    return torch.as_tensor(ours.functional.convert_bounding_box_format(boxes, new_format="XYXY")).clone()


def check(before: tuple[Any, ...], after: tuple[Any, ...], known: Tensor, exact: bool, what: str) -> None:
    """Check what came back; ``exact`` to the bit."""
    (image, mask, boxes, centered, angled, points), (image2, mask2, boxes2, centered2, angled2, points2) = (
        before,
        after,
    )
    assert all(type(a) is type(b) and a.dtype == b.dtype for a, b in zip(before, after, strict=True)), what
    assert all(x.canvas_size == boxes.canvas_size for x in after[2:]), what
    assert image2.shape == image.shape and mask2.shape == mask.shape, what
    assert known.shape == mask.shape and known.dtype == torch.bool and known.any(), what
    off = (image2 - image).abs()[:, known]
    if exact:
        assert off.max() == 0 and torch.equal(mask2[known], mask[known]), what
        assert not image2[:, ~known].any() and not mask2[~known].any(), what
    else:
        assert off.median() < 0.02, (what, off.median())
        assert (mask2 != mask)[known].float().mean() < 0.25, what
    # The middle of the image is visible in all of these cases, but crops cut boxes that reach beyond them.
    torch.testing.assert_close(points2, points, atol=1e-3, rtol=0, msg=what)
    for a, b in ((boxes, boxes2), (centered, centered2)):
        low, high = corners_of(a), corners_of(b)
        if "Affine" in what or "Perspective" in what or "Rotation" in what:  # the box around a turned one
            assert (high[:, :2] <= low[:, :2] + 1e-3).all() and (high[:, 2:] >= low[:, 2:] - 1e-3).all(), what
        else:
            torch.testing.assert_close(high, low, atol=1e-3, rtol=0, msg=what)
    if "Perspective" not in what and "Affine" not in what:
        torch.testing.assert_close(angled2, angled, atol=1e-3, rtol=0, msg=what)


def test_every_transform_goes_back_or_says_so() -> None:
    """All public transforms are in one of the lists, move nothing, or refuse."""
    moving = {type(make()).__name__ for make in (*EXACT, *EXACT_ALONE, *SMOOTH, *SMOOTH_ALONE)}
    nothing, refused = set(), set()
    image, mask, boxes, *_, points = sample_of((40, 40))
    made = {row.name: row.make() for row in (*ROWS,)} | {case.name: case.make(ours) for case in CASES}
    made["TenCrop"], made["FiveCrop"] = ours.TenCrop(8), ours.FiveCrop(8)
    made["CutMix"], made["MixUp"] = ours.CutMix(num_classes=3), ours.MixUp(num_classes=3)
    made["CopyPaste"], made["Mosaic"] = ours.CopyPaste(), ours.Mosaic(40)
    made["Lambda"], made["UniformTemporalSubsample"] = ours.Lambda(abs), ours.UniformTemporalSubsample(1)
    made["LinearTransformation"] = ours.LinearTransformation(torch.eye(3), torch.zeros(3))
    for name, transform in made.items():
        if name in moving:
            continue
        results = (image, mask, boxes, points)
        # Without parameters only what moves nothing goes back.
        try:
            back = transform.invert(results, {(): None})
        except NotImplementedError as error:
            if str(error).startswith("invert: transforms must have a way back, got "):
                refused.add(name)
            continue
        assert all(a is b for a, b in zip(back, results, strict=True)), name
        nothing.add(name)
    assert refused == REFUSED
    assert {"ColorJitter", "GaussianBlur", "RandomErasing", "RandomFog", "CoarseDropout"} - moving <= nothing
    assert not [n for n in nothing if getattr(ours, n)._moves and n not in ("GridDropout", "PixelDropout")]
    for name in ours.__all__:
        cls = getattr(ours, name)
        if isinstance(cls, type) and getattr(cls, "_moves", False):
            assert name in moving | REFUSED | nothing, name


@pytest.mark.parametrize("exact", [True, False])
def test_results_come_back(exact: bool) -> None:
    makes = (*EXACT, *EXACT_ALONE) if exact else (*SMOOTH, *SMOOTH_ALONE)
    for seed in range(4):
        for make in makes:
            inside = make()
            square = type(inside).__name__ in ("RandomRotate90", "RandomTranspose")
            before = sample_of((48, 48) if square else (48, 56))
            mirrored = ours.Compose(
                [ours.RandomHorizontalFlip(0.5), make(), ours.RandomApply([ours.RandomVerticalFlip(1.0)])]
            )
            for transform in (inside, mirrored):
                torch.manual_seed(seed)
                params = transform.sample(before)
                results = transform.apply(before, params)
                torch.manual_seed(seed)
                called = transform(before)
                assert all(torch.equal(a, b) for a, b in zip(results, called, strict=True))
                back, known = transform.invert(results, params, with_known=True)
                if type(inside).__name__ == "RandomCrop" or "Crop" in str(inside):
                    # A crop cuts boxes: those that it left whole come back.
                    whole = known[15:34, 15:40].all()
                    if not whole:
                        assert torch.equal(back[0][:, known], before[0][:, known]) or not exact
                        torch.testing.assert_close(back[5], before[5], atol=1e-3, rtol=0)
                        continue
                check(before, back, known, exact, f"{inside} {seed}")
                assert all(
                    torch.equal(a, b) for a, b in zip(transform.invert(results, params), back, strict=True)
                )


def test_each_sample_of_a_batch_comes_back() -> None:
    """With parameters of their own, samples come back as each of them does alone."""
    images = torch.stack([picture(48, 48) * (i + 1) / 4 for i in range(4)])
    labels = (images[:, 0] * 9).long()
    containers = (
        lambda: ours.RandomChoice([ours.RandomResizedCrop(30), ours.RandomCrop(30)]),
        lambda: ours.RandomOrder([ours.RandomHorizontalFlip(), ours.RandomRotate90(0.7)]),
        lambda: ours.RandomApply([ours.RandomVerticalFlip(), ours.RandomAffine(20)]),
    )
    for make in (*EXACT, *SMOOTH, *containers):
        pipeline = ours.Compose([make(), ours.ColorJitter(0.3), ours.Resize(40)], per_sample=True)
        given = {
            "image": tv_tensors.Image(images),
            "mask": tv_tensors.Mask(labels),
            "boxes": [sample_of((48, 48))[2] for _ in range(4)],
            "points": tv_tensors.KeyPoints(torch.stack([sample_of((48, 48))[5]] * 4), canvas_size=(48, 48)),
        }
        params = pipeline.sample(given)
        results = pipeline.apply(given, params)
        back, known = pipeline.invert(results, params, with_known=True)
        assert back["image"].shape == images.shape and known.shape == (4, 48, 48)
        torch.testing.assert_close(back["points"], given["points"], atol=1e-3, rtol=0)
        for i in range(4):
            rows = {path: row_of(value, i) for path, value in params.items()}
            one = {
                "image": tv_tensors.Image(results["image"][i]),
                "mask": tv_tensors.Mask(results["mask"][i]),
            }
            one["boxes"] = results["boxes"][i]
            alone, seen = pipeline.invert(one, rows, with_known=True)
            torch.testing.assert_close(alone["image"], back["image"][i], atol=1e-5, rtol=1e-5)
            torch.testing.assert_close(alone["boxes"], back["boxes"][i], atol=1e-4, rtol=0)
            assert torch.equal(alone["mask"], back["mask"][i]) and torch.equal(seen, known[i])


def test_the_edge_of_the_results_has_no_part_of_zero() -> None:
    """A constant map comes back as that constant where it is known, and as 0 elsewhere, at the edge too."""
    warps = (
        lambda mode, **k: ours.RandomAffine(30, (0.1, 0.2), (0.8, 1.3), (-10, 10, -5, 5), mode, **k),
        lambda mode, **k: ours.RandomPerspective(0.5, 1.0, mode, **k),
        lambda mode, **k: ours.RandomRotation(40, mode, center=(5, 9), **k),
    )
    makes = [*EXACT, *EXACT_ALONE, *SMOOTH, *SMOOTH_ALONE]
    makes += [
        functools.partial(w, mode) for w in warps for mode in (BILINEAR, ours.InterpolationMode.BICUBIC)
    ]
    for seed, make in itertools.product(range(3), makes):
        alone = make in EXACT_ALONE or make in SMOOTH_ALONE
        for transform, batch in [(make(), 1), *([] if alone else [(make(per_sample=True), 3)])]:
            torch.manual_seed(seed)
            given = torch.zeros(batch, 3, 40, 40)
            boxes = sample_of((40, 40))[2] if isinstance(transform, ours.RandomIoUCrop) else None
            inputs = given if boxes is None else (given, boxes)
            params = transform.sample(inputs)
            results = transform.apply(inputs, params)
            size = (results if boxes is None else results[0]).shape[-2:]
            for ones in (torch.full((batch, 2, *size), 0.75), torch.full((batch, 1, *size), 200).byte()):
                back, known = transform.invert(ones, params, with_known=True)
                expected = known.expand(batch, 40, 40)[:, None] * ones.flatten()[0]
                torch.testing.assert_close(
                    back, expected.expand(back.shape), atol=1e-5, rtol=0, msg=f"{transform} {seed}"
                )


def test_a_warp_back_has_the_pixels_of_opencv() -> None:
    """Those of the inverse matrix with replicated pixels, where the center is inside of the results."""
    image = picture(40, 52)
    rotation = ours.RandomRotation((25, 25), BILINEAR)
    params = rotation.sample(image)
    results = rotation.apply(image, params)
    back, known = rotation.invert(results, params, with_known=True)
    cos, sin = math.cos(math.radians(25)), math.sin(math.radians(25))
    x, y = (52 - 1) / 2, (40 - 1) / 2  # from the result to the image, about the center of both
    matrix = np.array([[cos, sin, x - cos * x - sin * y], [-sin, cos, y + sin * x - cos * y]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    planes = results.permute(1, 2, 0).contiguous().numpy()
    wanted = cv2.warpAffine(planes, matrix, (52, 40), flags=flags, borderMode=cv2.BORDER_REPLICATE)
    inside = cv2.warpAffine(
        np.ones((40, 52), np.uint8), matrix, (52, 40), flags=cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP
    )
    assert (known.numpy() != (inside > 0)).sum() < 4
    both = known & torch.from_numpy(inside > 0)
    torch.testing.assert_close(
        back[:, both], torch.from_numpy(wanted).permute(2, 0, 1)[:, both], atol=1e-4, rtol=0
    )
    assert not back[:, ~known].any()


def row_of(value: Any, sample: int) -> Any:
    """Return the parameters of one sample."""
    if isinstance(value, Tensor):
        return value[sample]
    if value is None or isinstance(value, list) or not isinstance(value.numbers, Tensor):
        return value
    return Params(value.canvas, value.numbers[sample])


def test_a_graph_goes_back() -> None:
    """One graph has the draws, the transforms and the way back, for all draws."""
    pipeline = ours.Compose(
        [ours.RandomHorizontalFlip(), ours.RandomResizedCrop(24), ours.RandomCrop(20), ours.Resize(32)]
    )
    each = ours.Compose(
        [ours.RandomResizedCrop(24), ours.RandomAffine(20), ours.RandomVerticalFlip()], per_sample=True
    )
    image, batch = picture(40, 52).requires_grad_(), torch.stack([picture(40, 52)] * 3)

    def there_and_back(transform: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        params = transform.sample(x)
        return transform.invert(transform.apply(x, params), params, with_known=True)

    for transform, x in ((pipeline, image), (each, batch)):
        torch._dynamo.reset()
        compiled = torch.compile(there_and_back, fullgraph=True, backend="aot_eager")
        for seed in range(3):
            torch.manual_seed(seed)
            found, known = compiled(transform, x)
            torch.manual_seed(seed)
            wanted, expected = there_and_back(transform, x)
            torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)
            assert torch.equal(known, expected)
        if x.requires_grad:
            (gradient,) = torch.autograd.grad(found.sum(), x)
            (same,) = torch.autograd.grad(wanted.sum(), x)
            torch.testing.assert_close(gradient, same, atol=1e-4, rtol=1e-4)


@pytest.mark.skipif(not hasattr(torch.Tag, "inplace"), reason="dynamo takes no tv_tensors")
def test_known_pixels_of_classes_in_a_graph() -> None:
    """``with_known`` in a graph of an image, a mask, boxes and points, or of one of them alone."""
    pipeline = ours.Compose([ours.RandomHorizontalFlip(), ours.RandomCrop(32)])
    everything = sample_of((40, 40))
    image, mask, boxes, _, _, points = everything
    given = {"image": image, "mask": mask, "boxes": boxes, "points": points}

    def there_and_back(x: Any) -> Any:
        params = pipeline.sample(x)
        return pipeline.invert(pipeline.apply(x, params), params, with_known=True)

    for names in (tuple(given), ("mask",), ("boxes",)):
        torch._dynamo.reset()
        x = {name: given[name] for name in names}
        compiled = torch.compile(there_and_back, fullgraph=True, backend="eager")
        for seed in range(3):
            torch.manual_seed(seed)
            found, known = compiled(x)
            torch.manual_seed(seed)
            wanted, expected = there_and_back(x)
            assert torch.equal(known, expected)
            for name in names:
                assert type(found[name]) is type(wanted[name])
                torch.testing.assert_close(found[name], wanted[name])


def test_forms_and_refusals() -> None:
    """Maps of other channels, dtypes, PIL images, several arguments, and what is refused."""
    crop = ours.RandomCrop(20)
    image = (picture(40, 52) * 255).byte()
    params = crop.sample(image)
    maps = torch.rand(2, 7, 20, 20, dtype=torch.float64).requires_grad_()
    back, known = crop.invert(maps, params, with_known=True)
    assert back.shape == (2, 7, 40, 52) and back.dtype == torch.float64 and known.sum() == 400
    assert torch.equal(back[..., known].reshape(maps.shape), maps)
    assert torch.equal(torch.autograd.grad(back.sum(), maps)[0], torch.ones_like(maps))
    picked = PIL.Image.fromarray(image.permute(1, 2, 0).numpy())
    returned = crop.invert(crop.apply(picked, params), params)
    assert isinstance(returned, PIL.Image.Image)
    expected = crop.invert(crop.apply(image, params), params)
    assert np.array_equal(np.asarray(returned), expected.permute(1, 2, 0).numpy())
    boxes = sample_of((40, 52))[2]
    one, two = crop.invert((crop.apply(image, params), crop.apply(boxes, params)), params)
    assert torch.equal(one, expected) and two.canvas_size == (40, 52)
    pairs = ours.RandomHorizontalFlip(1.0, swap=[[0, 1]])
    points = sample_of((40, 52))[5]
    moved = pairs.sample(points)
    assert torch.equal(pairs.invert(pairs.apply(points, moved), moved), points)
    with pytest.raises(
        ValueError, match="RandomCrop: inputs of invert must have the size of the transform's results"
    ):
        crop.invert(image, params)
    with pytest.raises(KeyError, match="invert: params must be those of this transform"):
        ours.Compose([crop]).invert(maps, params)
    with pytest.raises(TypeError, match="invert: params must be the dict that sample returned, got Tensor"):
        crop.invert(maps, maps)
    for foreign in (ours.Lambda(abs), torch.nn.ReLU()):
        pipeline = ours.Compose([foreign, crop])
        with pytest.raises(NotImplementedError, match="invert: transforms must have a way back, got"):
            pipeline.invert(maps, {(1,): params[()]})


def test_cameras_and_fields_come_back() -> None:
    """Of one sample, and of a batch with parameters of its own."""
    height = width = 48
    y, x = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
    normals = torch.nn.functional.normalize(torch.stack([0.3 - 0.01 * x, 0.01 * y, x * 0 - 1]), dim=0)
    flow = torch.stack([3 + 0.05 * x - 0.1 * y, -2 + 0.08 * x + 0.04 * y])
    camera = torch.tensor([[50.0, 0, 20], [0, 60, 31], [0, 0, 1]])
    alone = [(make, False) for make in (*EXACT, *EXACT_ALONE, *SMOOTH, *SMOOTH_ALONE)]
    for make, per_sample in [*alone, *((make, True) for make in (*EXACT, *SMOOTH))]:
        inside = make()
        given: dict[str, Any] = {
            "camera": Camera(camera, canvas_size=(height, width)),
            "image": tv_tensors.Image(picture(height, width)),
            "boxes": tv_tensors.BoundingBoxes([[9, 9, 30, 30]], format="XYXY", canvas_size=(height, width)),
            "flow": Flow(flow),
        }
        if inside._kind_of_map <= projections.AFFINE:
            given["normals"] = Normals(normals)
        if inside._kind_of_map <= projections.KEEPS_ROWS:
            given["disparity"] = Disparity(flow[:1])
        steps = [ours.RandomHorizontalFlip(0.5), inside, ours.RandomVerticalFlip(0.5)]
        transform = ours.Compose(steps, per_sample=True) if per_sample else ours.Compose(steps)
        if per_sample:
            del given["boxes"]
            names = {n: type(v) for n, v in given.items() if n != "camera"}
            given |= {n: kind(torch.stack([torch.as_tensor(given[n])] * 3)) for n, kind in names.items()}
            given["camera"] = Camera(torch.stack([camera] * 3), canvas_size=(height, width))
            given["flows"] = [Flow(flow)] * 3
        for seed in range(3):
            torch.manual_seed(seed)
            params = transform.sample(given)
            back, known = transform.invert(transform.apply(given, params), params, with_known=True)
            what = f"{inside} {per_sample} {seed}"
            assert back["camera"].canvas_size == (height, width), what
            torch.testing.assert_close(back["camera"], given["camera"], atol=1e-4, rtol=0, msg=what)
            for name in set(given) & {"flow", "normals", "disparity"}:
                assert type(back[name]) is type(given[name]) and back[name].shape == given[name].shape
                off = (torch.as_tensor(back[name]) - torch.as_tensor(given[name])).abs().amax(-3)
                assert off[known].median() < 0.02 and off[known].quantile(0.9) < 0.1, (what, name)
            if per_sample:
                assert all(torch.equal(a, b) for a, b in zip(back["flows"], back["flow"], strict=True))


def test_parameters_of_others_are_refused() -> None:
    """Of another transform, of another container, and of a batch of another size, in both directions."""
    flip, crop, affine = ours.RandomHorizontalFlip(1.0), ours.RandomCrop(20), ours.RandomAffine(20)
    chosen = ours.RandomApply([crop], p=1.0)
    transforms = (
        *(flip, crop, affine, chosen),
        ours.RandomResizedCrop(20),
        ours.RandomPerspective(p=1.0),
        ours.Compose([flip, crop]),
        ours.Compose([crop, flip]),
        ours.Compose([flip, crop, flip]),
        ours.Compose([chosen]),
        ours.RandomChoice([crop, affine]),
    )
    image = picture(20, 20)
    for one, other in itertools.permutations(transforms, 2):
        params = other.sample(image)
        names = {type(one).__name__, type(other).__name__}
        # Four numbers, or a choice, say nothing about which of the two it was.
        if names <= {"RandomCrop", "RandomResizedCrop"} or names <= {"RandomApply", "RandomChoice"}:
            continue
        for call in (one.invert, one.apply):
            with pytest.raises(
                KeyError, match=f"{call.__name__}: params must be those of this transform, got"
            ):
                call(image, params)
    each = ours.Compose([flip, crop], per_sample=True)
    params = each.sample(picture(20, 24).expand(5, 3, 20, 24))
    for wrong in (torch.rand(3, 3, 20, 20), torch.rand(3, 20, 20), tv_tensors.Mask(torch.zeros(20, 20))):
        with pytest.raises(
            ValueError, match=r"invert: .* must be a batch of 5 with per_sample=True, got shape"
        ):
            each.invert(wrong, params)


def test_images_of_several_sizes_in_one_call_do_not_go_back() -> None:
    """A transform that draws nothing takes them; the sizes before it are not in the parameters."""
    images = tuple(tv_tensors.Image(picture(*size)) for size in ((40, 56), (20, 22)))
    makes = [make for make in (*EXACT_ALONE, *SMOOTH_ALONE) if not isinstance(make(), RandomTransform)]
    assert len(makes) >= 9
    for make in makes:
        for transform in (make(), ours.Compose([make()])):
            params = transform.sample(images)
            with pytest.raises(NotImplementedError, match="images must have one size on the way back"):
                transform.invert(transform.apply(images, params), params)
