"""Boxes, positions and sides for each sample, and parameters of rotations: against PIL, loops, and in one graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from checks import bits_equal, check_format, check_raises, check_vmap
from PIL import Image
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional

import imgops
from tests.specs._maker import formatted

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


def pil(image: Tensor) -> Image.Image:
    return Image.fromarray(image.movedim(0, -1).contiguous().numpy())


def of_pil(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(image)).movedim(-1, 0)


@pytest.mark.parametrize("format", ["planar", "interleaved"])
def test_crops_and_pastes_are_pils(format: str) -> None:
    image, source = (formatted(levels(N, 3, *size), format) for size in ((HEIGHT, WIDTH), (7, 9)))
    position = places()
    box = boxes_at(position, 7, 9)
    for size in (None, (7, 9)):
        found = imgops.crop(image, box, size=size)
        check_format(found, image)
        for one, row, got in zip(image, box.tolist(), found, strict=True):
            assert bits_equal(got, of_pil(pil(one).crop(row)))
    masks = {"L": levels(N, 1, 7, 9, seed=3), "1": levels(N, 1, 7, 9, seed=4) > 99}
    for kind, mask in {"": None, **masks}.items():
        found = imgops.paste(image, source, position, mask)
        check_format(found, image)
        for i, (one, place) in enumerate(zip(image, position.tolist(), strict=True)):
            canvas = pil(one)
            weight = Image.fromarray(mask[i, 0].numpy()) if kind and mask is not None else None
            canvas.paste(pil(source[i]), tuple(place), weight)
            assert bits_equal(found[i], of_pil(canvas)), (kind, place)


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
MASK = torch.rand(N, 1, 6, 5, generator=generator(3))
#: A call with a tensor that has a row for each image, and its rows by a seed.
CALLS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[int], Tensor]]] = {
    "crop": (lambda x, r: imgops.crop(x, r, size=(8, 6)), lambda seed: boxes_at(places(seed=seed), 8, 6)),
    "paste": (lambda x, r: imgops.paste(x, PATCH.to(x.dtype), r), lambda seed: places(seed=seed)),
    "paste-mask": (
        lambda x, r: imgops.paste(x, PATCH.to(x.dtype), r, MASK[0].to(x.dtype)),
        lambda seed: places(seed=seed),
    ),
    "pad": (
        lambda x, r: imgops.pad(x, r, fill=0.5, size=(30, 40)),
        lambda seed: padded((30, 40), seed),
    ),
    "pad-reflect": (
        lambda x, r: imgops.pad(x, r, "reflect", size=(30, 40)),
        lambda seed: padded((30, 40), seed),
    ),
    "rotate": (lambda x, r: imgops.rotate(x, r), lambda seed: 99.0 * places(seed=seed)[:, 0]),
    "affine": (
        lambda x, r: imgops.affine(x, r[..., 0], r / 7, 1.1, r[..., :2] / 9, center=r),
        lambda seed: places(seed=seed).double() % 40,
    ),
}


@pytest.mark.parametrize("name", list(CALLS))
def test_new_values_make_no_new_graph(name: str) -> None:
    """Neither forward nor backward, with sizes that are symbols too; values are those of a loop."""
    call, draw = CALLS[name]
    for dynamic in (False, True):
        counter = CompileCounterWithBackend("aot_eager")
        compiled = torch.compile(call, fullgraph=True, dynamic=dynamic, backend=counter)
        for seed in range(4):
            rows = draw(seed)
            x = IMAGES.clone().requires_grad_()
            out = compiled(x, rows)
            wanted = torch.stack([call(one, row) for one, row in zip(IMAGES, rows, strict=True)])
            assert bits_equal(out.detach(), wanted)
            (grad,) = torch.autograd.grad(out.square().sum(), x)
            eager = IMAGES.clone().requires_grad_()
            assert bits_equal(grad, torch.autograd.grad(call(eager, rows).square().sum(), eager)[0])
        # torch 2.11 calls the backend twice for rotations of symbolic sizes, whatever the number of draws.
        assert counter.frame_count <= 2, f"{counter.frame_count} compilations, dynamic={dynamic}"


@pytest.mark.parametrize("name", list(CALLS))
def test_vmap_over_rows(name: str) -> None:
    call, draw = CALLS[name]
    x, rows = IMAGES[:3].double(), draw(7)[:3]
    check_vmap(call, (x, rows), (0, 0))
    check_vmap(call, (x[0], rows), (None, 0))
    check_vmap(call, (x, rows[0]), (0, None))
    grads = torch.vmap(torch.func.grad(lambda x, r: call(x, r).square().sum()), (0, 0))(x, rows)
    leaf = x.clone().requires_grad_()
    wanted = torch.autograd.grad(call(leaf, rows).square().sum(), leaf)[0]
    torch.testing.assert_close(grads, wanted, rtol=1e-12, atol=1e-12)


def test_sizes_of_rows_are_read_in_one_graph() -> None:
    """Without ``size`` the first row gives the size, which is a new symbol in a graph."""
    counter = CompileCounterWithBackend("aot_eager")

    @torch.compile(fullgraph=True, dynamic=True, backend=counter)
    def call(x: Tensor, box: Tensor, padding: Tensor) -> tuple[Tensor, Tensor]:
        return imgops.crop(x, box), imgops.pad(x, padding)

    for seed in range(4):
        box, padding = boxes_at(places(seed=seed), 3 + seed, 9 - seed), padded((30 + seed, 44), seed)
        crops, pads = call(IMAGES, box, padding)
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


def test_gradients_in_float64() -> None:
    """To image, patch and mask, of first and second order, where a position is inside, across an edge and outside."""
    image = torch.rand(3, 2, 5, 6, dtype=torch.float64, requires_grad=True)
    source = torch.rand(2, 3, 4, dtype=torch.float64, requires_grad=True)
    mask = torch.rand(3, 1, 3, 4, dtype=torch.float64, requires_grad=True)
    position = torch.tensor([[1, 1], [-2, 3], [9, 0]])
    paste = lambda x, s, m: imgops.paste(x, s, position, m)
    assert torch.autograd.gradcheck(paste, (image, source, mask), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(paste, (image, source, mask))
    for values in (torch.tensor([-7.5, 1e-9, 300.0]), torch.tensor([float("nan")] * 3)):
        grad = values.reshape(3, 1, 1, 1).expand(3, 2, 3, 4).contiguous()
        x = torch.zeros(3, 2, 5, 6, requires_grad=True)
        imgops.crop(x, boxes_at(position, 3, 4)).backward(grad)
        loop = [imgops.paste(torch.zeros(2, 5, 6), g, p) for g, p in zip(grad, position.tolist())]
        assert x.grad is not None and bits_equal(x.grad, torch.stack(loop))


def test_rows_of_no_images() -> None:
    none, rows = IMAGES[:0], torch.zeros(0, 4, dtype=torch.int64)
    assert imgops.crop(none, rows, size=(4, 5)).shape == (0, 3, 4, 5)
    assert imgops.paste(none, PATCH, rows[:, :2]).shape == none.shape
    assert imgops.pad(none, rows, size=(HEIGHT, WIDTH)).shape == none.shape
    assert imgops.rotate(none, rows[:, 0].double()).shape == none.shape


def test_packed_images_have_boxes_of_their_own() -> None:
    images = [levels(3, 9 + i, 20 - 3 * i, seed=i) for i in range(4)]
    box = boxes_at(places(4), 6, 5)
    found = imgops.crop(imgops.PackedImages.of(images), box, size=(6, 5))
    for one, row, got in zip(images, box.tolist(), found, strict=True):
        assert bits_equal(got, of_pil(pil(one).crop(row)))


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


def test_gradients_of_angles() -> None:
    """To each parameter and the fill, shared and one for each sample, of first and second order."""
    image = torch.rand(2, 2, 6, 7, dtype=torch.float64, generator=generator(), requires_grad=True)
    numbers = [[10.3, -33.1], [[1.02, 2.3], [-1.1, 0.4]], 1.2, [[5.0, -9.0], [3.0, 2.0]], [3.05, 4.2], 0.3]
    leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in numbers]

    def affine(x: Tensor, angle: Tensor, move: Tensor, scale: Tensor, shear: Tensor, *rest: Tensor) -> Tensor:
        center, fill = rest
        return imgops.affine(x, angle, move, scale, shear, "bilinear", center, fill)

    assert torch.autograd.gradcheck(affine, (image, *leaves), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(affine, (image, *leaves), fast_mode=True)

    def rotate(x: Tensor, angle: Tensor, center: Tensor) -> Tensor:
        return imgops.rotate(x, angle, "bicubic", center=center)

    assert torch.autograd.gradcheck(rotate, (image, leaves[0], leaves[4]), check_forward_ad=True)
    single = torch.tensor(1.3, requires_grad=True)  # float32, with pairs of numbers and tensors
    imgops.affine(image.detach(), translate=(single, 1.0), shear=single).sum().backward()
    assert single.grad is not None and single.grad.dtype == torch.float32 and single.grad != 0


def test_expand_in_a_graph() -> None:
    compiled = torch.compile(
        lambda x, a: imgops.rotate(x, a, expand=True), fullgraph=True, backend="aot_eager"
    )
    for angle in (30.5, 44.0, 60.25):
        assert bits_equal(compiled(IMAGES, angle), imgops.rotate(IMAGES, angle, expand=True))
