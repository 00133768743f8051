"""All that follows an image goes where its pixels go: alone, in a batch, in a graph, in a container and back.

The kinds are boxes with and without an angle, masks, keypoints, cameras, flows, normals and disparities; the image of
the sample shows its own positions, so that it says where all others must be (tests/followers.py).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

from imgops import transforms as ours
from imgops.transforms._core import projections
from imgops.transforms._core.base import RandomTransform
from imgops.transforms._core.parameters import Params
from tests.added_cases import ROWS, Row
from tests.checks import bits_equal, difference
from tests.followers import (
    ANGLED,
    SQUARE,
    Image,
    Mask,
    Moved,
    check_back,
    check_in_one_graph,
    plain,
    raises_each,
    rows,
    sample,
    stack,
)
from tests.groups import groups
from tests.tiers import nightly, nightly_unless
from tests.transform_cases import CASES, Case, needs_classes, picture, seeded

#: torchvision refuses boxes and keypoints with these borders.
_WITHOUT_BOXES = ("reflect", "edge", "symmetric")
WITH_TWINS: list[Case | Row] = [
    case
    for case in (*CASES, *ROWS)
    if getattr(ours, case.name)._moves and case.options.get("padding_mode") not in _WITHOUT_BOXES
]
#: Every transform that moves pixels; as images are always interpolated here, without those that differ only in this.
MOVING = [c for c in WITH_TWINS if c.id not in ("nearest", "bicubic")]
EACH = [c for c in MOVING if hasattr(getattr(ours, c.name), "per_sample") and not getattr(c, "sized", False)]
EACH = [c for c in EACH if getattr(c, "per_sample", True)]
#: The edges of the tables of transforms, on the way there and back.
EDGES = [
    Case("Pad", {"padding": (-3, 2, -1, 4)}, id="negative"),
    Case("PadIfNeeded", {"size": (60, 70), "anchor": "top_left"}, id="corner"),
    Case("RandomRotation", {"degrees": (90, 90), "expand": True}, id="right"),
    Case("RandomRotation", {"degrees": (180, 180)}, id="half"),
    Case("RandomAffine", {"degrees": 0, "shear": (0, 0, -9, 9)}, id="rows"),
]
SHOWN = [c for c in (*MOVING, *EDGES) if "Dropout" not in c.name]
#: Transforms whose boxes with an angle are torchvision's, which fits them to stretched boxes in its own way.
FITTED = ("Resize", "RandomResizedCrop", "ScaleJitter", "ElasticTransform")


def is_first(case: Case | Row) -> bool:
    """Return whether a case is the first of its transform, or one of the edges."""
    return not case.id or case in EDGES


def bilinear(transform: Any) -> Any:
    transform.interpolation = InterpolationMode.BILINEAR
    return transform


def made(case: Case | Row, p: float = 1.0, **more: Any) -> Any:
    """Make a transform that interpolates images, so that their values are positions."""
    transform = case.make(ours, **more) if isinstance(case, Case) else case.make(**more)
    if hasattr(transform, "p"):
        transform.p = p
    return bilinear(transform) if hasattr(transform, "interpolation") else transform


def offset_of(transform: Any) -> float:
    """Return 0.5 for torchvision's flips, which take the centers of pixels in keypoints to be whole numbers."""
    return 0.5 if isinstance(transform, (v2.RandomHorizontalFlip, v2.RandomVerticalFlip)) else 0.0


def followers_of(transform: Any, seed: int = 0, **more: Any) -> dict[str, Any]:
    """Return a sample with all that can follow a transform, or all of a container."""
    return sample(seed=seed, maps=maps_of(transform), **more)


def maps_of(transform: Any) -> int:
    return max([getattr(transform, "_kind_of_map", 0), *map(maps_of, getattr(transform, "transforms", []))])


# -- one sample --------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", nightly_unless(is_first, SHOWN), ids=str)
def test_everything_goes_where_its_pixels_go(case: Case | Row, whole: bool) -> None:
    transform = made(case)
    offset, boxes = offset_of(transform), ("boxes",) if case.name in FITTED else ("boxes", "angled")
    tolerance = 0.25 if transform._kind_of_map < projections.OTHER else 1.3
    for seed in range(3 if whole else 1):
        at = (seed + SHOWN.index(case)) % 3
        how = {"upright": ("XYXY", "XYWH", "CXCYWH")[at], "angled": ANGLED[at]}
        given = followers_of(transform, seed, offset=offset, **how)
        out = seeded(seed, transform, given)
        assert [type(x) for x in out.values()] == [type(x) for x in given.values()]
        assert all(out[k].format is given[k].format for k in ("boxes", "angled"))
        side = 1.01 if isinstance(case, Row) else 1.8
        Moved(out, given, tolerance, side).check(offset, boxes, may_drop=case.name == "RandomIoUCrop")


def test_every_transform_that_moves_is_in_the_table() -> None:
    moving = {n for n in {*ours.OURS, *ours.ADDED} if getattr(getattr(ours, n), "_moves", False)}
    assert {c.name for c in MOVING} == moving - {"Mosaic", "CopyPaste"}  # of several samples


def test_the_page_says_where_keypoints_go() -> None:
    """Its conventions are those of the test above, which adds an offset where positions are whole pixels."""
    page = (Path(__file__).parents[1] / "docs" / "transforms.rst").read_text()
    table = page.split("   * - Keypoints\n")[1].split("\n\nIf ``CenterCrop``")[0]
    stated = {
        name: convention
        for convention, names in (row.split("\n     - ") for row in table.split("\n   * - ")[1:])
        for name in re.findall(r"``(\w+)``", names)
    }
    assert set(stated) == {c.name for c in MOVING} | {"Mosaic", "CopyPaste"}
    for case in MOVING:
        has_whole = stated[case.name].startswith("whole pixels")
        assert has_whole == bool(offset_of(made(case))), case.name
        assert ("Dropout" in case.name) == (stated[case.name] == "unchanged"), case.name


MASK_DTYPES = (
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.uint16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
)


@pytest.mark.parametrize("case", [c for c in WITH_TWINS if c.name != "RandomIoUCrop"], ids=str)
def test_masks_of_every_dtype(case: Case | Row) -> None:
    """The labels of a mask go to the same places, whatever its dtype; a dropout makes its holes in masks, too."""
    has_holes = "Dropout" in case.name and not case.options.get("per_channel")
    transform = case.applied(**({"mask_fill": 0} if has_holes else {}))
    image = Image(torch.zeros(3, *case.size, dtype=torch.uint8))
    labels = plain(sample(case.size)["masks"]) * 100
    wanted = plain(seeded(3, transform, image, Mask(labels))[1])
    for dtype in MASK_DTYPES:
        found = seeded(3, transform, image, Mask(labels.to(dtype)))[1]
        assert type(found) is Mask and bits_equal(plain(found), wanted.to(dtype)), dtype


@pytest.mark.parametrize("case", [c for c in MOVING if c.name != "RandomIoUCrop"], ids=str)
def test_nothing_moves_at_zero_probability_and_dtypes_stay(case: Case | Row) -> None:
    skipped, transform = made(case, p=0.0), made(case)
    given = followers_of(transform)
    if hasattr(skipped, "p"):
        assert not difference({**seeded(0, skipped, given), "image": 0}, {**given, "image": 0})
    of_imgops = (torch.float16,) if isinstance(case, Row) else ()
    for dtype in (*of_imgops, torch.float32, torch.float64):
        some = {k: tv_tensors.wrap(plain(given[k]).to(dtype), like=given[k]) for k in ("angled", "points")}
        none = {k: tv_tensors.wrap(plain(v)[:0], like=v) for k, v in some.items()}
        for found, wanted in zip(transform([{"image": given["image"], **some}, none]), (some, none)):
            assert all(found[k].dtype == dtype and found[k].shape == wanted[k].shape for k in wanted)


# -- batches, graphs and containers ------------------------------------------------------------------


def forms(samples: list[dict[str, Any]]) -> list[tuple[Any, Callable[[Any], list[Any]]]]:
    """Return a batch of samples in several forms, each with a function that takes its result apart.

    Lists in a dict; a list and a tuple of dicts, the latter with boxes twice; tensors with a batch dimension.
    """
    count, lists = len(samples), ("boxes", "angled", "masks", "shapes", "points")
    images = stack([{"image": s["image"]} for s in samples])["image"]
    targets = [{k: v for k, v in s.items() if k != "image"} for s in samples]
    twice = tuple({"more": t["boxes"], **t} for t in targets)

    def joined(out: Any) -> list[Any]:
        found = [{"image": i, **t} for i, t in zip(rows(out[0], count), out[1], strict=True)]
        assert all(not difference(s.pop("more", s["boxes"]), s["boxes"]) for s in found)
        return found

    def apart(out: Any) -> list[Any]:
        return rows(out, count)

    whole = [((stack(samples),), apart)] if len({len(s["boxes"]) for s in samples}) == 1 else []
    return [((stack(samples, lists),), apart), ((images, targets), joined), ((images, twice), joined), *whole]


@pytest.mark.parametrize("case", nightly_unless(is_first, EACH), ids=str)
def test_each_sample_is_what_a_loop_gives(case: Case | Row, whole: bool) -> None:
    """Each sample has its own draws, whatever form its followers come in.

    Two objects in the first of two samples are as many as there are samples.
    """
    alone, each = made(case, p=0.6), made(case, p=0.6, per_sample=True)
    for seed, counts in enumerate(((2, 2), (2, 3), (2, 3, 1))[: 3 if whole else 1]):
        samples = [followers_of(alone, i, count=n) for i, n in enumerate(counts)]
        torch.manual_seed(seed)
        wanted = [alone(s) for s in samples]
        for given, apart in forms(samples):
            assert not difference(apart(seeded(seed, each, *given)), wanted, 1e-5), counts


#: Pipelines whose steps move the image; the last has gates and choices for each sample.
PIPELINES: dict[str, Callable[[], list[Any]]] = {
    "fixed": lambda: [ours.CenterCrop((40, 44)), ours.Resize((30, 36)), ours.Pad([1, 2, 3, 4])],
    "fitted": lambda: [ours.LetterBox((30, 60)), ours.PadIfNeeded(64)],
    "flips": lambda: [ours.RandomHorizontalFlip(), ours.RandomVerticalFlip()],
    "drawn": lambda: [ours.RandomCrop(40, padding=2), ours.RandomResizedCrop(32, (0.5, 1.0))],
    "warps": lambda: [bilinear(ours.RandomAffine(30, scale=(0.9, 1.2))), bilinear(ours.RandomRotation(30))],
    "perspective": lambda: [ours.RandomPerspective(0.3, 1.0), ours.RandomTranspose(0.5)],
    "gates": lambda: [
        ours.RandomApply([bilinear(ours.RandomAffine(20)), ours.RandomTranspose(0.5)], p=0.5),
        ours.RandomChoice([bilinear(ours.RandomRotation(30)), ours.RandomRotate90(1.0)]),
        ours.RandomApply([ours.RandomCrop(48, padding=4)], p=0.5),
        ours.RandomResizedCrop(40, (0.5, 1.0)),
    ],
}


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_and_their_samples(name: str, whole: bool) -> None:
    """All follow through several steps; a closed gate or another choice leaves a sample as it was."""
    pipeline, offset = ours.Compose(PIPELINES[name]()), 0.5 if name == "flips" else 0.0
    samples = [followers_of(pipeline, i, count=1 + i, offset=offset) for i in range(3)]
    torch.manual_seed(0)
    wanted = [pipeline(s) for s in samples]
    for out, given in zip(wanted, samples):
        Moved(out, given, 0.3).check(offset)
    for given, apart in forms(samples) if name not in ("fixed", "fitted") else ():
        assert not difference(
            apart(seeded(0, ours.Compose(pipeline.transforms, per_sample=True), *given)), wanted, 1e-5
        )


#: What follows an image, by the keys of a sample.
KINDS = (("boxes", "masks"), ("angled", "shapes"), ("points",), ("camera", "flow"), ("normals", "disparity"))
ONE_OF_EACH = [*{c.name: c for c in reversed(MOVING)}.values()]


def of_kind(given: dict[str, Any], i: int) -> dict[str, Any]:
    """Return a sample with one of the kinds in its turn."""
    return {k: v for k, v in given.items() if k == "image" or k in KINDS[i % len(KINDS)]}


@needs_classes
def test_each_kind_in_one_graph() -> None:
    """Graphs of an image and its boxes have other tests; here each transform has one of the kinds."""
    calls = {c.name: made(c, p=0.5) for c in ONE_OF_EACH[::8]}
    check_in_one_graph(calls, {n: (of_kind(followers_of(c), i),) for i, (n, c) in enumerate(calls.items())})


@nightly
@needs_classes
@pytest.mark.parametrize("cases", groups(ONE_OF_EACH, 8))
def test_all_kinds_in_one_graph(cases: list[Case | Row]) -> None:
    calls = {c.name: made(c, p=0.5) for c in cases}
    inputs = {n: (followers_of(c),) for n, c in calls.items()}
    for case in (c for c in cases if c in EACH):
        name, each = f"{case.name} each", made(case, p=0.5, per_sample=True)
        calls[name], inputs[name] = each, (stack([followers_of(each, i, count=2) for i in range(2)]),)
    check_in_one_graph(calls, inputs)


def there_and_back(transform: Any) -> Callable[[Any], Any]:
    def run(given: Any) -> Any:
        params = transform.sample(given)
        out = transform.apply(given, params)
        return [out, transform.invert(out, params, with_known=True)]

    return run


@nightly
@needs_classes
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_and_their_way_back_in_one_graph(name: str, each: bool) -> None:
    """Each pipeline moves one kind of annotation; test_all_kinds_in_one_graph moves all kinds."""
    pipeline = ours.Compose(PIPELINES[name](), per_sample=each and name not in ("fixed", "fitted"))
    samples = [followers_of(pipeline, i, count=2, angled="XYXYXYXY") for i in range(2)]
    given = of_kind(stack(samples) if pipeline.per_sample else samples[0], [*PIPELINES].index(name) + each)
    check_in_one_graph({name: there_and_back(pipeline)}, {name: (given,)})


# -- and back ----------------------------------------------------------------------------------------

BACK = [c for c in SHOWN if made(c)._kind_of_map < projections.OTHER]
#: Transforms that interpolate, whose pixels come back as far as two interpolations allow.
SMOOTH = ("Resize", "Jitter", "ShortestSize", "MaxSize", "LetterBox", "Rotation", "Affine", "Perspective")
#: Transforms after which a box is that around a turned one.
TURNS = ("RandomAffine", "RandomPerspective", "RandomRotation")


@pytest.mark.parametrize("case", nightly_unless(is_first, BACK), ids=str)
def test_results_come_back(case: Case | Row, whole: bool) -> None:
    """To the positions and to the pixels from before, with what was seen of the image."""
    inside, flips = (
        made(case),
        (ours.RandomHorizontalFlip(0.5), ours.RandomApply([ours.RandomVerticalFlip(1.0)])),
    )
    exact = not any(name in case.name for name in SMOOTH) or case.id in ("right", "half")
    for transform in (ours.Compose([flips[0], inside, flips[1]]), *([inside] if whole else [])):
        given = followers_of(inside, angled="XYXYXYXY")
        if case.name in FITTED:
            del given["angled"]
        torch.manual_seed(1)
        params = transform.sample(given)
        results = transform.apply(given, params)
        assert not difference(results, seeded(1, transform, given))
        back, known = transform.invert(results, params, with_known=True)
        assert not difference(transform.invert(results, params), back)
        check_back(back, given, known, exact, case.name in TURNS)


def row_of(value: Any, sample: int) -> Any:
    """Return the parameters of one sample."""
    if isinstance(value, Tensor):
        return value[sample]
    if value is None or isinstance(value, list) or not isinstance(value.numbers, Tensor):
        return value
    return Params(value.canvas, value.numbers[sample])


#: What has a way back in a batch: transforms with parameters for each sample, and containers of them.
BATCHES: list[Any] = [
    *(made(c, p=0.6) for c in BACK if c in EACH),
    ours.RandomChoice([ours.RandomResizedCrop(30), ours.RandomCrop(30)]),
    ours.RandomOrder([ours.RandomHorizontalFlip(), ours.RandomRotate90(0.7)]),
    ours.RandomApply([ours.RandomVerticalFlip(), bilinear(ours.RandomAffine(20))]),
]


@pytest.mark.parametrize(
    "inside", nightly_unless(lambda t: t in BATCHES[::4], BATCHES), ids=lambda t: type(t).__name__
)
def test_each_sample_of_a_batch_comes_back_as_alone(inside: Any) -> None:
    pipeline = ours.Compose([inside, ours.Resize(40)], per_sample=True)
    samples = [followers_of(inside, i, count=2, angled="XYXYXYXY") for i in range(3)]
    given = stack(samples)
    given["flows"] = rows(given["flow"], 3)
    params = pipeline.sample(given)
    results = pipeline.apply(given, params)
    back, known = pipeline.invert(results, params, with_known=True)
    assert known.shape == (3, *SQUARE) and not difference(back.pop("flows"), rows(back["flow"], 3))
    results.pop("flows")
    for i, (one, mine) in enumerate(zip(rows(results, 3), rows(back, 3), strict=True)):
        alone, seen = pipeline.invert(one, {at: row_of(v, i) for at, v in params.items()}, with_known=True)
        assert not difference(mine, alone, 1e-4) and torch.equal(seen, known[i])
        torch.testing.assert_close(plain(mine["points"]), plain(samples[i]["points"]), rtol=0, atol=2e-3)


SIZE = (40, 52)
#: Transforms that have no way back.
REFUSED = {
    *("AugMix", "AutoAugment", "CopyPaste", "CutMix", "ElasticTransform", "FiveCrop", "Lambda"),
    *("LinearTransformation", "MixUp", "Mosaic", "PixMix", "RandAugment", "RandomElastic", "TenCrop"),
    *("RandomGridDistortion", "RandomOpticalDistortion", "RandomThinPlateSpline", "TrivialAugmentWide"),
    "UniformTemporalSubsample",
}
#: The arguments of transforms that are in no table.
OTHERS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("TenCrop", "FiveCrop", "Mosaic"), (8,)),
    **dict.fromkeys(("CutMix", "MixUp", "CopyPaste"), ()),
    "Lambda": (abs,),
    "UniformTemporalSubsample": (1,),
    "LinearTransformation": (torch.eye(3), torch.zeros(3)),
}


def test_every_transform_goes_back_or_says_so() -> None:
    """All public transforms come back (test_followers.py), move nothing, or refuse."""
    back, moving = {c.name for c in BACK}, {c.name for c in MOVING}
    given, nothing, refused = sample(), set(), set()
    every = [*((c.name, c.make(ours)) for c in CASES), *((r.name, r.make()) for r in ROWS)]
    every += [(name, getattr(ours, name)(*how)) for name, how in OTHERS.items()]
    for name, transform in every:
        if name in back:
            continue
        if name in REFUSED:
            with pytest.raises(NotImplementedError, match=r"^invert: transforms must have a way back, got "):
                transform.invert(given, {(): None})
            refused.add(name)
            continue
        found = transform.invert(given, {(): None})  # without parameters only what moves nothing goes back
        assert all(found[k] is v for k, v in given.items())
        nothing.add(name)
    assert refused == REFUSED and moving <= back | refused | nothing
    assert nothing >= {"ColorJitter", "GaussianBlur", "RandomErasing", "RandomFog", "CoarseDropout"}
    assert not nothing & moving - {"CoarseDropout", "GridDropout", "PixelDropout"}


@pytest.mark.parametrize("case", BACK, ids=str)
def test_the_edge_of_the_results_has_no_part_of_zero(case: Any) -> None:
    """A constant map comes back as that constant where it is known, and as 0 elsewhere, at the edge too."""
    given, boxes = torch.zeros(3, 3, 48, 48), sample()["boxes"]
    modes = (
        ("BILINEAR", "BICUBIC")
        if case.name in ("RandomAffine", "RandomPerspective", "RandomRotation")
        else ("",)
    )
    for mode, each in itertools.product(modes, (False, True) if case in EACH else (False,)):
        transform = made(case, **({"per_sample": True} if each else {}))
        if mode:
            transform.interpolation = InterpolationMode[mode]
        inputs = {"image": given, "boxes": boxes} if case.name == "RandomIoUCrop" else {"image": given}
        torch.manual_seed(0)
        params = transform.sample(inputs)
        size = transform.apply(inputs, params)["image"].shape[-2:]
        for ones in (torch.full((3, 2, *size), 0.75), torch.full((3, 1, *size), 200).byte()):
            back, known = transform.invert(ones, params, with_known=True)
            wanted = (known.expand(3, 48, 48)[:, None] * ones.flatten()[0]).expand(back.shape)
            torch.testing.assert_close(back, wanted, atol=1e-5, rtol=0)


def test_a_warp_back_has_the_pixels_of_opencv() -> None:
    """Those of the inverse matrix with replicated pixels, where the center is inside of the results."""
    image, rotation = picture(torch.float32), bilinear(ours.RandomRotation((25, 25)))
    params = rotation.sample(image)
    results = rotation.apply(image, params)
    back, known = rotation.invert(results, params, with_known=True)
    cos, sin = math.cos(math.radians(25)), math.sin(math.radians(25))
    x, y = (52 - 1) / 2, (40 - 1) / 2  # from the result to the image, about the center of both
    matrix = np.array([[cos, sin, x - cos * x - sin * y], [-sin, cos, y + sin * x - cos * y]])
    planes, ones = results.permute(1, 2, 0).contiguous().numpy(), np.ones(SIZE, np.uint8)
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    wanted = cv2.warpAffine(planes, matrix, SIZE[::-1], flags=flags, borderMode=cv2.BORDER_REPLICATE)
    inside = cv2.warpAffine(ones, matrix, SIZE[::-1], flags=cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP) > 0
    assert (known.numpy() != inside).sum() < 4 and not back[:, ~known].any()
    both = known & torch.from_numpy(inside)
    torch.testing.assert_close(
        back[:, both], torch.from_numpy(wanted).permute(2, 0, 1)[:, both], atol=1e-4, rtol=0
    )


@nightly
def test_the_gradient_of_a_graph_that_goes_back() -> None:
    """It is that of eager mode, of plain tensors, for one sample."""
    run = there_and_back(
        ours.Compose([ours.RandomHorizontalFlip(), ours.RandomResizedCrop(24), ours.RandomCrop(20)])
    )
    image, found = picture(torch.float32).requires_grad_(), []
    for call in (run, torch.compile(run, fullgraph=True, backend="aot_eager")):
        _, (back, known) = seeded(0, call, image)
        found.append((back.detach(), known, torch.autograd.grad(back.square().sum(), image)[0]))
    torch.testing.assert_close(found[1], found[0], atol=1e-4, rtol=1e-4)


def test_forms_on_the_way_back() -> None:
    """Maps of other channels and dtypes with a gradient, PIL images, several arguments, and pairs that swap."""
    crop, image, given = ours.RandomCrop(20), picture(), sample(SIZE)
    params = crop.sample(image)
    maps = torch.rand(2, 7, 20, 20, dtype=torch.float64).requires_grad_()
    back, known = crop.invert(maps, params, with_known=True)
    assert back.shape == (2, 7, *SIZE) and back.dtype == torch.float64 and known.sum() == 400
    assert torch.equal(back[..., known].reshape(maps.shape), maps)
    assert torch.equal(torch.autograd.grad(back.sum(), maps)[0], torch.ones_like(maps))
    picked, wanted = (
        PIL.Image.fromarray(image.permute(1, 2, 0).numpy()),
        crop.invert(crop.apply(image, params), params),
    )
    returned = crop.invert(crop.apply(picked, params), params)
    assert isinstance(returned, PIL.Image.Image)
    assert np.array_equal(np.asarray(returned), wanted.permute(1, 2, 0).numpy())
    one, two = crop.invert((crop.apply(image, params), crop.apply(given["boxes"], params)), params)
    assert torch.equal(one, wanted) and two.canvas_size == SIZE
    pairs, points = ours.RandomHorizontalFlip(1.0, swap=[[0, 1]]), given["points"]
    moved = pairs.sample(points)
    assert not difference(pairs.invert(pairs.apply(points, moved), moved), points, 1e-5)
    for alone in (given["masks"], given["boxes"]):  # what is known, without an image
        params = crop.sample(alone)
        assert crop.invert(crop.apply(alone, params), params, with_known=True)[1].sum() == 400


# -- what has no way back ------------------------------------------------------------------------------


def test_parameters_of_others_are_refused() -> None:
    """Of another transform, of another container, and of a batch of another size, in both directions."""
    flip, crop, affine = ours.RandomHorizontalFlip(1.0), ours.RandomCrop(20), ours.RandomAffine(20)
    chosen, image = ours.RandomApply([crop], p=1.0), picture(torch.float32, 20, 20)
    transforms = (
        *(flip, crop, affine, chosen, ours.RandomResizedCrop(20), ours.RandomPerspective(p=1.0)),
        *(ours.Compose(steps) for steps in ([flip, crop], [crop, flip], [flip, crop, flip], [chosen])),
        ours.RandomChoice([crop, affine]),
    )
    # Four numbers, or a choice, say nothing about which of the two it was.
    alike = {"RandomCrop", "RandomResizedCrop"}, {"RandomApply", "RandomChoice"}
    for one, other in itertools.permutations(transforms, 2):
        params = other.sample(image)
        if any({type(one).__name__, type(other).__name__} <= names for names in alike):
            continue
        for call in (one.invert, one.apply):
            with pytest.raises(
                KeyError, match=f"{call.__name__}: params must be those of this transform, got"
            ):
                call(image, params)
    each = ours.Compose([flip, crop], per_sample=True)
    params = each.sample(picture(torch.float32, 20, 24).expand(5, 3, 20, 24))
    for wrong in (torch.rand(3, 3, 20, 20), torch.rand(3, 20, 20), Mask(torch.zeros(20, 20))):
        with pytest.raises(
            ValueError, match=r"invert: .* must be a batch of 5 with per_sample=True, got shape"
        ):
            each.invert(wrong, params)


def test_what_is_refused_on_the_way_back() -> None:
    crop, image = ours.RandomCrop(20), picture()
    params, maps = crop.sample(image), torch.rand(7, 20, 20)
    foreign = [ours.Compose([first, crop]) for first in (ours.Lambda(abs), torch.nn.ReLU())]
    must = "RandomCrop: inputs of invert must have the size of the transform's results"
    raises_each(ValueError, (lambda: crop.invert(image, params), must))
    raises_each(
        KeyError, (lambda: ours.Compose([crop]).invert(maps, params), "must be those of this transform")
    )
    raises_each(
        TypeError, (lambda: crop.invert(maps, maps), "must be the dict that sample returned, got Tensor")
    )
    must = "invert: transforms must have a way back, got"
    raises_each(NotImplementedError, *((lambda: p.invert(maps, {(1,): params[()]}), must) for p in foreign))


@pytest.mark.parametrize("case", [c for c in BACK if not isinstance(made(c), RandomTransform)], ids=str)
def test_images_of_several_sizes_in_one_call_do_not_go_back(case: Any) -> None:
    """A transform that draws nothing takes them; the sizes before it are not in the parameters."""
    images = tuple(Image(picture(torch.float32, *size)) for size in ((40, 56), (20, 22)))
    for transform in (made(case), ours.Compose([made(case)])):
        params = transform.sample(images)
        with pytest.raises(NotImplementedError, match="images must have one size on the way back"):
            transform.invert(transform.apply(images, params), params)
