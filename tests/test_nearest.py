"""The nearest pixel of torchvision, for images of every kind, and the names of interpolations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from checks import bits_equal
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode
from torchvision.transforms import v2 as theirs

import imgops
from imgops import PackedImages
from imgops import transforms as v2

NEAREST = InterpolationMode.NEAREST
#: Sizes before and after, for most of which OpenCV takes other rows or columns than PyTorch.
SIZES = [
    ((50, 33), (52, 52)),
    ((48, 64), (45, 45)),
    ((37, 50), (51, 51)),
    ((50, 33), (22, 22)),
    ((7, 9), (14, 3)),
]
DTYPES = [torch.uint8, torch.int64, torch.bool, torch.float32, torch.float64, torch.bfloat16, torch.int16]


def labels(height: int, width: int, dtype: torch.dtype = torch.uint8, *batch: int) -> Tensor:
    generator = torch.Generator().manual_seed(height * width)
    return torch.randint(0, 19, (*batch, 2, height, width), generator=generator).to(dtype)


def by_torch(image: Tensor, size: tuple[int, int]) -> Tensor:
    """Resize the pixels' indices by PyTorch, because its kernels do not take every dtype."""
    height, width = image.shape[-2:]
    ramp = torch.arange(height * width, dtype=torch.float64).reshape(1, 1, height, width)
    taken = torch.nn.functional.interpolate(ramp, size, mode="nearest").long().flatten()
    return image.flatten(-2).index_select(-1, taken).unflatten(-1, size)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_labels_are_torchvisions(sizes: tuple[tuple[int, int], tuple[int, int]]) -> None:
    (height, width), size = sizes
    resize = v2.Resize(size, interpolation=NEAREST)
    for dtype in DTYPES:
        image = labels(height, width, dtype)
        wanted = by_torch(image, size)
        if dtype in (torch.uint8, torch.float32):
            assert torch.equal(theirs.Resize(size, interpolation=NEAREST)(image), wanted)
        interleaved = image.permute(1, 2, 0).contiguous().permute(2, 0, 1)
        for given in (image, interleaved, tv_tensors.Image(image), tv_tensors.Mask(image)):
            assert torch.equal(resize(given).as_subclass(Tensor), wanted), (dtype, type(given))
        assert torch.equal(v2.functional.resize(image, list(size), NEAREST), wanted)
        assert torch.equal(imgops.resize(image, size, "torch_nearest", antialias=False), wanted)
    image = labels(height, width)
    graph = torch.compile(resize, fullgraph=True, backend="aot_eager", dynamic=True)
    assert torch.equal(graph(image), by_torch(image, size))


def test_packed_images() -> None:
    images = [labels(*sizes[0]) for sizes in SIZES]
    found = v2.Resize((31, 17), interpolation=NEAREST)(PackedImages.of(images))
    assert torch.equal(found, torch.stack([by_torch(image, (31, 17)) for image in images]))


def test_crops() -> None:
    image = labels(50, 33)
    for box in ((3, 2, 40, 30), (0, 0, 50, 33), (11, 5, 7, 21)):
        top, left, height, width = box
        wanted = by_torch(image[:, top : top + height, left : left + width], (26, 26))
        assert torch.equal(v2.functional.resized_crop(image, *box, [26, 26], NEAREST), wanted)
        assert torch.equal(theirs.functional.resized_crop(image, *box, [26, 26], NEAREST), wanted)
    crop = v2.RandomResizedCrop(26, interpolation=NEAREST, per_sample=True)
    batch = torch.stack([image] * 4)
    for mode in (crop, torch.compile(crop, fullgraph=True, backend="aot_eager")):
        images, masks = mode(tv_tensors.Image(batch), tv_tensors.Mask(batch))
        assert torch.equal(images.as_subclass(Tensor), masks.as_subclass(Tensor))
        assert images.shape == (4, 2, 26, 26)
        assert not torch.equal(images[0], images[1])


@pytest.mark.parametrize(
    "fit", [v2.LetterBox((31, 26)), v2.LongestMaxSize(29), v2.SmallestMaxSize(29)], ids=repr
)
def test_fits_of_an_image_and_its_mask(fit: Any) -> None:
    fit = type(fit)(fit.size, interpolation=NEAREST)
    image = labels(50, 33)
    assert torch.equal(*(x.as_subclass(Tensor) for x in fit(tv_tensors.Image(image), tv_tensors.Mask(image))))


def test_gradients() -> None:
    image = torch.rand(2, 50, 33, dtype=torch.float64, requires_grad=True)
    out = v2.functional.resize(image, [52, 52], NEAREST)
    weight = torch.rand_like(out)
    (found,) = torch.autograd.grad(out, image, weight)
    (wanted,) = torch.autograd.grad(by_torch(image, (52, 52)), image, weight)
    assert torch.allclose(found, wanted)


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
