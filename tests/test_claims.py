"""The claims of docs/comparison.md about other libraries, and those of the pages about rules that torchvision shares.

They hold for the installed versions.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from skimage import data
from torch import Tensor
from torchvision import transforms as v1
from torchvision import tv_tensors
from torchvision.transforms import v2

import imgops
from imgops import transforms
from tests.tiers import nightly

PHOTO = torch.from_numpy(data.astronaut()[:96, :112]).permute(2, 0, 1).contiguous()
BATCH = torch.rand(2, 3, 24, 24)
BY_PIL = np.asarray(Image.fromarray(data.astronaut()[:96, :112]).resize((31, 29), Image.Resampling.BILINEAR))


def apart(found: Tensor) -> int:
    """Return the largest difference from PIL's resize, in levels."""
    return int(np.abs(found.permute(1, 2, 0).numpy().astype(int) - BY_PIL).max())


def one_graph(function: Callable[[Tensor], Any]) -> bool:
    torch._dynamo.reset()
    try:
        torch.compile(function, fullgraph=True, backend="eager")(BATCH)
    except Exception:
        return False
    return True


def test_imgops() -> None:
    assert apart(imgops.resize(PHOTO, (29, 31), "bilinear")) == 0
    angle = torch.tensor([[0.9, 0.1, 1.0], [-0.1, 0.9, 2.0]], requires_grad=True)
    (slope,) = torch.autograd.grad(imgops.warp_affine(BATCH, angle).square().sum(), angle, create_graph=True)
    assert torch.autograd.grad(slope.sum(), angle)[0].abs().sum() > 0


def test_torchvision() -> None:
    resized = v2.functional.resize(PHOTO, [29, 31], antialias=True)
    assert 0 < apart(resized) <= 2, "near PIL's pixels"
    as_pil = v2.functional.resize(v2.functional.to_pil_image(PHOTO), [29, 31])
    assert np.array_equal(np.asarray(as_pil), BY_PIL)
    assert one_graph(lambda x: v2.functional.adjust_hue(x, 0.2)) and one_graph(v2.Resize(8))
    for transform in (v2.RandomResizedCrop(8), v2.ColorJitter(0.4), v2.RandomHorizontalFlip()):
        assert not one_graph(transform)
    angle = torch.tensor(0.3, requires_grad=True)
    image = BATCH.clone().requires_grad_()
    assert v2.functional.adjust_brightness(BATCH, angle).requires_grad, "of some factors"
    assert not v2.functional.rotate(BATCH, angle).requires_grad  # type: ignore[arg-type]
    assert v2.functional.rotate(image, 0.3).requires_grad
    same = v2.ColorJitter(0.9)(BATCH[:1].expand(2, 3, 24, 24))
    assert torch.equal(same[0], same[1]), "one draw for a batch"


@nightly
def test_kornia() -> None:
    kornia = pytest.importorskip("kornia")
    resized = kornia.geometry.transform.resize(PHOTO[None].float(), (29, 31), antialias=True)[0]
    assert apart(resized.round().clamp(0, 255).byte()) > 2, "pixels of its own"
    sigma = torch.tensor([[1.0, 1.0], [2.0, 0.5]], requires_grad=True)
    blurred = kornia.filters.gaussian_blur2d(BATCH[:1].expand(2, 3, 24, 24), (5, 5), sigma)
    assert blurred.requires_grad and not torch.equal(blurred[0], blurred[1])
    assert one_graph(lambda x: kornia.filters.gaussian_blur2d(x, (5, 5), (1.0, 1.0)))
    assert one_graph(kornia.augmentation.RandomAffine(10.0, p=1.0))
    assert not one_graph(kornia.augmentation.ColorJiggle(0.2, 0.2, 0.2, 0.1, p=1.0))


def test_albumentations() -> None:
    a = pytest.importorskip("albumentations", "2.0.8")
    photo = data.astronaut()[:96, :112]
    resized = a.Resize(29, 31, p=1)(image=photo)["image"]
    assert np.array_equal(resized, cv2.resize(photo, (31, 29), interpolation=cv2.INTER_LINEAR))
    with pytest.raises(Exception, match=r"flip|ndarray|array"):  # whatever error OpenCV raises for a tensor
        a.HorizontalFlip(p=1)(image=PHOTO)
    gray = np.full((6, 8, 8, 3), 100, np.uint8)
    made = a.RandomBrightnessContrast(p=1)(images=gray)["images"]
    assert len({int(image[0, 0, 0]) for image in made}) == 1, "one draw for all images of a call"


# -- the rules of torchvision that surprise ------------------------------------------------------------

PAGE = (Path(__file__).parent.parent / "docs" / "migrating" / "torchvision.rst").read_text()
PICTURE = Image.fromarray(data.astronaut()[:96, :112])
#: The arguments of the random transforms of both versions that need any; a module gives the transforms inside.
ARGUMENTS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    **dict.fromkeys(("RandomCrop", "RandomResizedCrop", "RandomRotation", "RandomAffine"), lambda m: (30,)),
    **dict.fromkeys(("RandomPosterize", "RandomSolarize", "RandomAdjustSharpness"), lambda m: (3,)),
    **dict.fromkeys(
        ("RandomApply", "RandomChoice", "RandomOrder"),
        lambda m: ([m.RandomHorizontalFlip(), m.RandomVerticalFlip(), m.RandomCrop(90)],),
    ),
    "ColorJitter": lambda m: (0.4, 0.4, 0.4, 0.1),
    "GaussianBlur": lambda m: (5,),
    "AugMix": lambda m: (3, 1),
}


def drawn(cls: str, module: Any) -> list[Any]:
    """Return the states of the generators, and the image, after calls with equal seeds."""
    transform, states = getattr(module, cls)(*ARGUMENTS.get(cls, lambda m: ())(module)), []
    for seed in range(4):
        torch.manual_seed(seed), random.seed(seed)
        result = np.asarray(transform(PICTURE))
        states.append((torch.get_rng_state().tolist(), random.getstate(), result.astype(int)))
    return states


def test_the_first_version_draws_otherwise_in_the_classes_that_the_page_names() -> None:
    random_ones = ("Random", "Rand", "Auto", "Trivial")
    both = {
        name
        for name, cls in vars(v1).items()
        if name.startswith(random_ones) and isinstance(cls, type) and issubclass(cls, torch.nn.Module)
    }
    other = set()
    for name in sorted((both | set(ARGUMENTS)) & set(dir(v2)) - {"RandomErasing"}):  # of tensors
        calls = zip(drawn(name, v1), drawn(name, transforms), strict=True)
        if any(a[:2] != b[:2] or a[2].shape != b[2].shape or np.abs(a[2] - b[2]).max() > 1 for a, b in calls):
            other.add(name)
    said = PAGE.partition("Six classes")[2].partition("If only the import")[0]
    assert other == set(re.findall(r"``([A-Z]\w+)``", said)) and len(other) == 6


def test_rules_that_surprise() -> None:
    white = torch.full((3, 40, 40), 255, dtype=torch.uint8)
    for module, said in ((transforms, "65,535"), (v2, "65,280")):
        made = module.ToDtype(torch.uint16, scale=True)(white).unique().tolist()
        assert [f"{n:,}" for n in made] == [said] and said in PAGE
        noise = module.RandomErasing(1.0, (0.9, 1.0), (1.0, 1.0), "random")(white // 2).unique()
        assert {*noise.tolist()} <= {127, *range(5), *range(251, 256)}
        depth = torch.arange(6.0).reshape(1, 2, 3)
        assert torch.equal(module.RandomHorizontalFlip(1.0)({"depth": depth})["depth"], depth.flip(-1))
        how = {"canvas_size": (9, 9)}
        boxes = tv_tensors.BoundingBoxes([[0, 0, 9, 9], [3, 3, 3, 3]], format="XYXY", **how)
        points = tv_tensors.KeyPoints(torch.ones(2, 17, 2), **how)
        persons = {"boxes": boxes, "labels": torch.ones(2), "points": points}
        clean = module.SanitizeBoundingBoxes()(persons)
        # Points stay, unless labels_getter names them.
        assert len(clean["boxes"]) == len(clean["labels"]) == 1 and len(clean["points"]) == 2
        mask = tv_tensors.Mask(torch.arange(8).expand(1, 8, 8).byte())
        # The image has the means of (0, 1), (2, 3), ...
        assert module.Resize(4)(mask)[0, 0].tolist() == [0, 2, 4, 6]
        how = module.InterpolationMode.NEAREST_EXACT
        exact = module.functional.resize(mask.as_subclass(Tensor), [4, 4], how)
        assert exact[0, 0].tolist() == [1, 3, 5, 7]
        alpha = np.random.default_rng(0).integers(0, 256, (96, 112), np.uint8)
        color = np.dstack((np.asarray(PICTURE), alpha))
        by_channel = module.Resize((48, 56))(torch.from_numpy(color).permute(2, 0, 1)).permute(1, 2, 0)
        weighted = np.asarray(module.Resize((48, 56))(Image.fromarray(color)))
        assert np.array_equal(weighted[..., 3], by_channel[..., 3]), module
        assert np.abs(weighted[..., :3].astype(int) - by_channel[..., :3].numpy()).max() > 2


def test_how_far_torchvisions_resize_of_tensors_is() -> None:
    """The table of transforms says in how many values it is more than a level from PIL's pixels."""
    photo = torch.from_numpy(data.astronaut()).permute(2, 0, 1).contiguous()
    for how, share in (("bilinear", 1e-5), ("bicubic", 2e-4)):
        mode, more, count = v2.InterpolationMode(how), 0, 0
        for size in ((40, 57), (300, 211), (700, 650), (511, 600)):
            levels = transforms.Resize(size, mode)(photo).int() - v2.Resize(size, mode)(photo).int()
            more, count = more + int((levels.abs() > 1).sum()), count + levels.numel()
        assert more < share * count and (how == "bilinear" or more)
