"""The way back: what has one, its edges, its pixels by OpenCV, forms, and what is refused.

tests/test_followers.py checks that everything comes back.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import cv2
import numpy as np
import PIL.Image
import pytest
import torch
from followers import Image, Mask, raises_each, same, sample
from test_followers import BACK, EACH, MOVING, bilinear, made, there_and_back
from torchvision.transforms import InterpolationMode
from transform_cases import CASES, picture, seeded

from imgops import transforms as ours
from imgops.transforms._core.base import RandomTransform
from tests.added_cases import ROWS
from tests.tiers import nightly

SIZE = (40, 52)
#: Transforms that have no way back.
REFUSED = {
    *("AugMix", "AutoAugment", "CopyPaste", "CutMix", "ElasticTransform", "FiveCrop", "Lambda"),
    *(
        "LinearTransformation",
        "MixUp",
        "Mosaic",
        "PixMix",
        "RandAugment",
        "RandomElastic",
        "RandomGridDistortion",
    ),
    *("RandomOpticalDistortion", "RandomThinPlateSpline", "TenCrop", "TrivialAugmentWide"),
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


def test_forms() -> None:
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
    assert same(pairs.invert(pairs.apply(points, moved), moved), points, 1e-5)
    for alone in (given["masks"], given["boxes"]):  # what is known, without an image
        params = crop.sample(alone)
        assert crop.invert(crop.apply(alone, params), params, with_known=True)[1].sum() == 400


# -- what is refused ---------------------------------------------------------------------------------


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


def test_what_is_refused() -> None:
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
