"""What the table of docs/comparison.md says of torchvision, kornia and albumentations holds for the installed versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from skimage import data
from torch import Tensor
from torchvision.transforms import v2

import imgops

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
    assert not any(
        one_graph(t) for t in (v2.RandomResizedCrop(8), v2.ColorJitter(0.4), v2.RandomHorizontalFlip())
    )
    angle = torch.tensor(0.3, requires_grad=True)
    image = BATCH.clone().requires_grad_()
    assert v2.functional.adjust_brightness(BATCH, angle).requires_grad, "of some factors"
    assert not v2.functional.rotate(BATCH, angle).requires_grad  # type: ignore[arg-type]
    assert v2.functional.rotate(image, 0.3).requires_grad
    same = v2.ColorJitter(0.9)(BATCH[:1].expand(2, 3, 24, 24))
    assert torch.equal(same[0], same[1]), "one draw for a batch"


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
