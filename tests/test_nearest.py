"""The nearest pixel of torchvision and of PIL, for masks and images of every dtype, and the names of interpolations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode
from torchvision.transforms import v2 as theirs

import imgops
from imgops import transforms as v2
from tests.checks import bits_equal
from tests.transform_cases import seeded

NEAREST = InterpolationMode.NEAREST
DTYPES = [torch.uint8, torch.int64, torch.bool, torch.float32, torch.float64, torch.bfloat16, torch.int16]
F, T = v2.functional, theirs.functional


def of_pil(labels: Tensor, size: list[int]) -> Tensor:
    planes = [PIL.Image.fromarray(p.numpy()).resize(size[::-1], PIL.Image.Resampling.NEAREST) for p in labels]
    return torch.from_numpy(np.stack([np.asarray(p) for p in planes]))


@pytest.mark.parametrize("mode", [NEAREST, InterpolationMode.NEAREST_EXACT], ids=lambda mode: mode.value)
def test_labels_are_those_of_torchvision(mode: InterpolationMode) -> None:
    """For 200 sizes, the first of them in every dtype. "nearest-exact" is PIL's pixel, for masks as for images."""
    rng, is_exact = np.random.default_rng(3), mode != NEAREST
    for i in range(200):
        height, width, *size = (int(n) for n in rng.integers(1, 300, 4))
        labels = torch.randint(0, 9, (2, height, width), dtype=torch.uint8)
        wanted = of_pil(labels, size) if is_exact else T.resize(labels, size, mode)
        dtype = torch.uint8 if is_exact or i >= 21 else DTYPES[i % len(DTYPES)]
        image = labels.to(dtype)
        interleaved = image.permute(1, 2, 0).contiguous().permute(2, 0, 1)
        for given in (tv_tensors.Mask(image), (image, interleaved, tv_tensors.Image(image))[i % 3]):
            found = F.resize(given, size, mode, antialias=False)
            assert type(found) is type(given) and bits_equal(found.as_subclass(Tensor), wanted.to(dtype)), i
        assert bits_equal(v2.Resize(size, mode, antialias=False)(image), wanted.to(dtype))
        if not is_exact:
            assert bits_equal(imgops.resize(image, size, "torch_nearest", antialias=False), wanted.to(dtype))


def test_labels_of_crops_that_are_resized() -> None:
    masks = torch.randint(0, 9, (4, 1, 57, 83), dtype=torch.uint8)
    crop = v2.RandomResizedCrop((37, 45))
    for seed in range(300):
        mask = tv_tensors.Mask(masks[seed % 4])
        wanted = seeded(seed, theirs.RandomResizedCrop((37, 45)), mask)
        assert bits_equal(seeded(seed, crop, mask), wanted)


@pytest.mark.parametrize("kind", [v2.LetterBox, v2.LongestMaxSize, v2.SmallestMaxSize])
def test_fits_of_an_image_and_its_mask(kind: Any) -> None:
    image = torch.randint(0, 19, (2, 50, 33), dtype=torch.uint8)
    fitted = kind(29, interpolation=NEAREST)(tv_tensors.Image(image), tv_tensors.Mask(image))
    assert torch.equal(*(x.as_subclass(Tensor) for x in fitted))


def _warps(rng: np.random.Generator, height: int, width: int) -> dict[str, Callable[[Any, Any], Any]]:
    """Return warps with random parameters, and one that puts positions exactly between two pixels."""
    angle, scale, shear = (
        float(rng.uniform(-180, 180)),
        float(rng.uniform(0.7, 1.3)),
        float(rng.uniform(-9, 9)),
    )
    move = [int(n) for n in rng.integers(-9, 9, 2)]
    corners = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
    ends = [[abs(x - int(rng.integers(9))), abs(y - int(rng.integers(9)))] for x, y in corners]
    bent = torch.from_numpy(rng.normal(0, 0.1, (1, height, width, 2))).float()
    return {
        "rotate": lambda m, mask: m.rotate(mask, angle),
        "rotate, expand": lambda m, mask: m.rotate(mask, angle, expand=True),
        "affine": lambda m, mask: m.affine(mask, angle, move, scale, [shear, 0.0]),
        "perspective": lambda m, mask: m.perspective(mask, corners, ends),
        "elastic": lambda m, mask: m.elastic(mask, bent),
        "halves": lambda m, mask: m.affine(mask, 45.0, [3, 2], 1.5, [0.0, 0.0]),
    }


def test_labels_of_warps_are_those_of_the_nearest_pixel(whole: bool) -> None:
    """Labels are torchvision's, but where a position lies between two pixels: there it may be the other one."""
    rng = np.random.default_rng(0)
    differ: dict[str, list[float]] = {}
    for _ in range(40 if whole else 10):
        height, width = (int(n) for n in rng.integers(30, 130, 2))
        places = torch.arange(1, height * width + 1).reshape(1, height, width)
        for name, warp in _warps(rng, height, width).items():
            found, wanted = (warp(m, tv_tensors.Mask(places)).as_subclass(Tensor) for m in (F, T))
            off = (found != wanted) & (found > 0) & (wanted > 0)  # 0 is outside of the mask
            for step in (
                (found - 1) // width - (wanted - 1) // width,
                (found - 1) % width - (wanted - 1) % width,
            ):
                assert step[off].abs().max().item() <= 1 if off.any() else True, name
            differ.setdefault(name, []).append((found != wanted).double().mean().item())
    shares = {name: float(np.mean(share)) for name, share in differ.items()}
    assert all(shares[name] < 1e-4 for name in ("rotate", "rotate, expand", "affine", "elastic")), shares
    assert shares["perspective"] < 1e-3 and shares["halves"] < 0.2, shares


X = torch.rand(3, 12, 14)
MATRIX = torch.tensor([[0.9, 0.2, 1.0], [-0.1, 1.1, 0.5]])
PLACES = torch.rand(2, 4, 5) * 10
#: The functions that have an interpolation.
INTERPOLATED: dict[str, Callable[[Any], Any]] = {
    "resize": lambda name: imgops.resize(X, (5, 7), name),
    "resize of OpenCV": lambda name: imgops.resize(X, (5, 7), name, antialias=False),
    "resized_crop": lambda name: imgops.resized_crop(X, (1, 2, 9, 8), (5, 7), name),
    "resized_crop of a real box": lambda name: imgops.resized_crop(X, (1.5, 2, 9, 8), (5, 7), name),
    "resize_out": lambda name: imgops.resize_out(X, (5, 7), name, out=torch.empty(3, 5, 7)),
    "contain": lambda name: imgops.contain(X, (5, 7), name),
    "cover": lambda name: imgops.cover(X, (5, 7), name),
    "fit": lambda name: imgops.fit(X, (5, 7), name),
    "downscale": lambda name: imgops.downscale(X, 0.5, "area", name),
    "warp_affine": lambda name: imgops.warp_affine(X, MATRIX, None, name),
    "warp_perspective": lambda name: imgops.warp_perspective(X, torch.eye(3) * 1.5, None, name),
    "remap": lambda name: imgops.remap(X, PLACES, name),
}


@pytest.mark.parametrize("name", INTERPOLATED)
def test_an_interpolation_is_a_mode_or_its_name(name: str) -> None:
    call = INTERPOLATED[name]
    for mode in (InterpolationMode.NEAREST, InterpolationMode.BILINEAR, InterpolationMode.BICUBIC):
        assert bits_equal(call(mode), call(mode.value)), mode
    with pytest.raises(ValueError, match="nearest-exact"):
        call(InterpolationMode.NEAREST_EXACT)
