"""Boxes, positions and sides for each sample beyond the samples, and the pixels of torchvision's rotations."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from checks import bits_equal, check_raises
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional

import imgops
from tests.tiers import nightly

N, HEIGHT, WIDTH = 12, 23, 31


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def levels(*shape: int, seed: int = 0) -> Tensor:
    return torch.randint(0, 256, shape, generator=generator(seed), dtype=torch.uint8)


def places(count: int = N, seed: int = 1) -> Tensor:
    """Return positions inside the image, partly outside, and wholly outside."""
    found = torch.randint(-14, 36, (count, 2), generator=generator(seed))
    found[:2] = torch.tensor([[-200, 5], [3, 1000]])[:count]
    return found


def boxes_at(position: Tensor, height: int, width: int) -> Tensor:
    return torch.cat([position, position + torch.tensor([width, height])], -1)


def test_leading_dimensions_of_a_paste_broadcast() -> None:
    image, source, position = torch.rand(2, 3, 3, 8, 9), torch.rand(3, 2, 4), places(3) % 9
    wanted = torch.stack([imgops.paste(image[:, i], source, p) for i, p in enumerate(position.tolist())], 1)
    assert bits_equal(imgops.paste(image, source, position), wanted)
    onto_one = imgops.paste(image[0, 0], source, position, torch.full((1, 2, 4), 0.5))
    assert onto_one.shape == (3, 3, 8, 9)
    for got, place in zip(onto_one, position.tolist(), strict=True):
        assert bits_equal(got, imgops.paste(image[0, 0], source, place, torch.full((1, 2, 4), 0.5)))
    assert bits_equal(
        imgops.paste(image, source, position[1].int()), imgops.paste(image, source, position[1].tolist())
    )


def padded(size: tuple[int, int], seed: int = 5) -> Tensor:
    """Return sides that pad an image of HEIGHT x WIDTH to a size."""
    more = torch.tensor([size[1] - WIDTH, size[0] - HEIGHT])
    before = (torch.rand((N, 2), generator=generator(seed)) * (more + 1)).long()
    return torch.cat([before, more - before], -1)


IMAGES = torch.rand(N, 3, HEIGHT, WIDTH, generator=generator())
PATCH = torch.rand(3, 6, 5, generator=generator(2))


@nightly
def test_sizes_of_rows_are_read_in_one_graph() -> None:
    """Without ``size`` the first row gives the size, which is a new symbol in a graph."""
    counter = CompileCounterWithBackend("aot_eager")

    @torch.compile(fullgraph=True, dynamic=True, backend=counter)
    def call(x: Tensor, box: Tensor, padding: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return imgops.crop(x, box), imgops.pad(x, padding), imgops.paste(x, PATCH, box[:, :2])

    for seed in range(4):
        box, padding = boxes_at(places(seed=seed), 3 + seed, 9 - seed), padded((30 + seed, 44), seed)
        crops, pads, pasted = call(IMAGES, box, padding)
        assert bits_equal(pasted, imgops.paste(IMAGES, PATCH, box[:, :2]))
        assert bits_equal(crops, imgops.crop(IMAGES, box)) and crops.shape[-2:] == (3 + seed, 9 - seed)
        assert bits_equal(pads, imgops.pad(IMAGES, padding)) and pads.shape[-2:] == (30 + seed, 44)
    assert counter.frame_count == 1


def test_values_are_checked_in_a_graph() -> None:
    box = torch.tensor([[0, 0, 4, 4], [0, 0, 4, 5]])
    compiled = torch.compile(lambda x, b: imgops.crop(x, b, size=(4, 4)), fullgraph=True, backend="aot_eager")
    must = "crop: box must span the size (4, 4) of every crop of the call, got (0, 0, 4, 5)"
    check_raises(lambda: compiled(IMAGES[:2], box), ValueError, must)
    check_raises(
        lambda: torch.vmap(lambda b: imgops.crop(IMAGES[0], b))(box),
        ValueError,
        "crop: size must be given for a box under vmap, got None",
    )


def test_exported() -> None:
    class Patch(torch.nn.Module):
        def forward(self, x: Tensor, patch: Tensor, position: Tensor) -> Tensor:
            out = imgops.paste(x, patch, position)
            return imgops.rotate(imgops.crop(out, torch.cat([position, position + 9], -1), size=(9, 9)), 20.0)

    batch = torch.export.Dim("n", min=2)
    shapes = {"x": {0: batch}, "patch": None, "position": {0: batch}}
    program = torch.export.export(Patch(), (IMAGES, PATCH, places()), dynamic_shapes=shapes)
    for count in (12, 5):
        args = IMAGES[:count], PATCH + 1, places(count, seed=8)
        assert bits_equal(program.module()(*args), Patch()(*args))


def test_inverses_of_rows() -> None:
    position = torch.tensor([[3, 2], [-2, 5], [28, 20]])
    image, box = IMAGES[:3], boxes_at(torch.tensor([[3, 2], [-2, 5], [28, 20]]), 8, 6)
    undo = imgops.inverse(imgops.crop, image, box, size=(8, 6))
    assert bits_equal(undo(imgops.crop(image, box), image), image)
    out = imgops.paste(image, PATCH, position)
    back = imgops.inverse(imgops.paste, image, PATCH, position)(out)
    assert bits_equal(back, imgops.crop(out, boxes_at(position, 6, 5)))
    padding = padded((30, 40))[:3]
    assert bits_equal(imgops.inverse(imgops.pad, image, padding)(imgops.pad(image, padding)), image)


#: Arguments of rotate and affine by torchvision's names.
TURNS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("rotate", {"angle": 31.3}),
    ("rotate", {"angle": -71.5, "center": (3, 9.5)}),
    ("rotate", {"angle": 31.3, "expand": True}),
    ("rotate", {"angle": 101.5, "expand": True, "center": (1.3, 2.2)}),
    ("rotate", {"angle": 180}),
    ("affine", {"angle": 30, "translate": (3, -5), "scale": 1.2, "shear": (10, -7)}),
    ("affine", {"angle": -10, "translate": (0, 0), "scale": 0.7, "shear": (0, 20), "center": (3, 4)}),
)


@pytest.mark.parametrize(("name", "how"), TURNS)
def test_rotations_are_torchvisions(name: str, how: dict[str, Any]) -> None:
    """The nearest pixels are equal; others differ at the border, where OpenCV interpolates with the fill."""
    image = levels(2, 3, HEIGHT, WIDTH)
    ours, theirs = getattr(imgops, name), getattr(functional, name)
    found = ours(image, interpolation="nearest", fill=7, **how)
    assert bits_equal(found, theirs(image, interpolation=InterpolationMode.NEAREST, fill=7, **how))
    real = image.double()
    found = ours(real, interpolation="bilinear", fill=0, **how)
    wanted = theirs(real, interpolation=InterpolationMode.BILINEAR, **how)
    assert (found - wanted).abs().max() < 0.5


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic"])
def test_quarter_turns_move_whole_pixels(interpolation: str) -> None:
    square = levels(3, 31, 31)
    for turns in (-1, 0, 1, 2, 3):
        found = imgops.rotate(square, 90 * turns, interpolation)
        assert bits_equal(found, imgops.rotate90(square, turns))
        whole = imgops.rotate(square[:, :20], 90 * turns, interpolation, expand=True)
        assert bits_equal(whole, imgops.rotate90(square[:, :20], turns))


def test_a_gradient_has_the_dtype_of_its_number() -> None:
    """A pair may be of a number and a tensor."""
    single = torch.tensor(1.3, requires_grad=True)
    imgops.affine(IMAGES, translate=(single, 1.0), shear=single).sum().backward()
    assert single.grad is not None and single.grad.dtype == torch.float32 and single.grad != 0
