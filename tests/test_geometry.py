"""Warps, maps, crops, pastes and pads beyond the samples: exact positions, ties, positions far outside, rows of them."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional

import imgops
from tests.checks import bits_equal, check_raises
from tests.specs._libraries import BORDERS, FLAGS
from tests.specs._maker import ANY_DTYPE
from tests.specs.geometry import OPENCV_IS_EXACT
from tests.tiers import nightly, nightly_unless

MODES = tuple(BORDERS)
OPENCV_ROUNDS = pytest.mark.skipif(
    not OPENCV_IS_EXACT, reason="before OpenCV 5 positions are rounded to 1/32"
)


def sampled(image: Tensor, x: Tensor, y: Tensor, name: str, padding_mode: str) -> Tensor:
    """Sample pixel by pixel, in double precision; this shares nothing with imgops."""
    height, width = image.shape[-2:]

    def at(i: int, j: int) -> Any:
        if padding_mode == "constant":
            return (
                image[:, i, j].double()
                if 0 <= i < height and 0 <= j < width
                else torch.zeros(len(image)).double()
            )
        i = cv2.borderInterpolate(i, height, BORDERS[padding_mode])
        return image[:, i, cv2.borderInterpolate(j, width, BORDERS[padding_mode])].double()

    def cubic(d: float, a: float = -0.75) -> float:
        d = abs(d)
        if d <= 1:
            return (a + 2) * d**3 - (a + 3) * d**2 + 1
        return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0

    kernel, reach = {"bilinear": (lambda d: max(0.0, 1 - abs(d)), 1), "bicubic": (cubic, 2)}[name]
    out = torch.zeros(len(image), *x.shape, dtype=torch.float64)
    for r in range(x.shape[0]):
        for c in range(x.shape[1]):
            px, py = float(x[r, c]), float(y[r, c])
            left, top = int(np.floor(px)), int(np.floor(py))
            for i in range(top - reach + 1, top + reach + 1):
                for j in range(left - reach + 1, left + reach + 1):
                    out[:, r, c] += at(i, j) * kernel(px - j) * kernel(py - i)
    return out


@pytest.mark.parametrize("padding_mode", MODES)
@pytest.mark.parametrize("name", ["bilinear", "bicubic"])
def test_double_precision_is_exact(name: str, padding_mode: str) -> None:
    image = torch.rand(2, 6, 5, dtype=torch.float64)
    map = torch.rand(2, 4, 3, dtype=torch.float64) * 14 - 4
    out = imgops.remap(image, map, name, padding_mode)
    torch.testing.assert_close(
        out, sampled(image, map[0], map[1], name, padding_mode), rtol=1e-12, atol=1e-12
    )
    matrix = torch.tensor([[0.7, -0.4, 1.1], [0.5, 1.2, -2.3]], dtype=torch.float64)
    inverse = torch.linalg.inv(torch.cat([matrix, torch.tensor([[0.0, 0, 1]]).double()]))
    y, x = torch.meshgrid(torch.arange(7.0).double(), torch.arange(8.0).double(), indexing="ij")
    u, v = (inverse[k, 0] * x + inverse[k, 1] * y + inverse[k, 2] for k in (0, 1))
    warped = imgops.warp_affine(image, matrix, (7, 8), name, padding_mode)
    torch.testing.assert_close(warped, sampled(image, u, v, name, padding_mode), rtol=1e-12, atol=1e-12)


def test_no_fringe_at_a_filled_border() -> None:
    """torchvision's issue 8083: a white image on a white border stays white."""
    for dtype, white in ((torch.uint8, 255), (torch.float32, 1.0), (torch.float16, 1.0)):
        image = torch.full((3, 20, 20), white, dtype=dtype)
        turned = imgops.warp_affine(image, torch.tensor([[0.8, -0.6, 6.0], [0.6, 0.8, -3.3]]), fill=white)
        assert bool((turned == white).all())


def test_half_precision_has_no_nan() -> None:
    """torchvision's issue 9029: positions far outside overflow in half precision."""
    for dtype in (torch.float16, torch.bfloat16):
        image = torch.rand(1, 1000, 700).to(dtype)
        out = imgops.warp_perspective(image, torch.tensor([[1.0, 0, 0], [0, 1, 0], [1e-3, 0, 1]]))
        assert out.isfinite().all() and out.dtype == dtype


@OPENCV_ROUNDS
@pytest.mark.parametrize("padding_mode", MODES)
@pytest.mark.parametrize("name", list(FLAGS)[:3])
def test_positions_that_are_not_finite_show_the_border(name: str, padding_mode: str) -> None:
    """NaN lies far to the left and above; the result is the same in every dtype, and finite."""
    image = torch.rand(2, 4, 5)
    far = torch.tensor([float("nan"), float("inf"), float("-inf"), 3e9, -3e9, 1e20, 1.0])
    map = torch.stack(torch.broadcast_tensors(far[:, None], far))
    single = imgops.remap(image, map, name, padding_mode, fill=5)
    double = imgops.remap(image.double(), map.double(), name, padding_mode, fill=5)
    assert single.isfinite().all() and double.isfinite().all()
    torch.testing.assert_close(single.double(), double, rtol=0, atol=1e-5)
    levels = (image * 255).byte()
    found = imgops.remap(levels, map, name, padding_mode, fill=5)
    wanted = imgops.remap(levels.double(), map.double(), name, padding_mode, fill=5).round().clamp(0, 255)
    assert (found.double() - wanted).abs().max() <= 1
    if padding_mode == "constant":
        assert (single[:, :6] == 5).all() and (found[:, :6] == 5).all()


@OPENCV_ROUNDS
@pytest.mark.parametrize("padding_mode", MODES)
def test_a_horizon_shows_the_border(padding_mode: str) -> None:
    """Where w is 0 a position is infinite; the pixels are the same in every dtype and in the decomposition."""
    image = torch.rand(2, 6, 7)
    matrix = torch.linalg.inv(torch.tensor([[1.0, 0, 0], [0, 1, 0], [-0.5, 0, 1]], dtype=torch.float64))
    for name in ("nearest", "bilinear", "bicubic"):
        single, double = (
            imgops.warp_perspective(x, matrix, None, name, padding_mode) for x in (image, image.double())
        )
        assert single.isfinite().all()
        torch.testing.assert_close(single.double(), double, rtol=0, atol=1e-4)
    row = imgops.decompositions()[torch.ops.imgops.warp_perspective.default]
    torch.testing.assert_close(row(image.double(), matrix, None, 6, 7, "bicubic", padding_mode), double)


@pytest.mark.parametrize("padding_mode", MODES)
@pytest.mark.parametrize("name", nightly_unless(lambda name: name == "bilinear", list(FLAGS)[:3]))
def test_far_positions_cost_what_near_ones_do(name: str, padding_mode: str) -> None:
    """OpenCV folds one period at a time and never returns from some of these; each call would take minutes."""
    for size in ((1, 8), (8, 1), (1, 1), (6, 7)):
        image = torch.rand(1, *size)
        for x in (image, image.double(), (image * 255).byte()):
            for scale in (1.0, 1e-9, 1e-300, 0.0, float("inf"), float("nan")):
                matrix = torch.tensor([[scale, 0, 0.5], [0, 1, 0.25]], dtype=torch.float64)
                assert imgops.warp_affine(x, matrix, None, name, padding_mode).isfinite().all()
                row = torch.tensor([[1e-3, -0.3 * scale, 1e-9]], dtype=torch.float64)
                out = imgops.warp_perspective(x, torch.cat([matrix, row]), (4, 7), name, padding_mode)
                assert out.isfinite().all()
            for far in (1e9, 3e9, 1e30, float("inf")):
                map = torch.full((2, 8, 8), far)
                assert imgops.remap(x, map, name, padding_mode).isfinite().all()


def test_what_opencv_gives_stays_to_the_bit() -> None:
    """Positions up to 256 periods outside are OpenCV's own; farther out a bilinear result is the same, by folding."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        height, width = (int(v) for v in rng.integers(2, 9, 2))
        plane = (rng.random((height, width)) * 255).astype(rng.choice([np.uint8, np.float32]))
        image = torch.from_numpy(plane)[None]
        for padding_mode in MODES[1:]:
            for name in ("nearest", "bilinear", "bicubic"):
                for scale in (10, 1000, 20000):
                    map = ((rng.random((2, 5, 6)) - 0.5) * scale).astype(np.float32)
                    wanted = cv2.remap(plane, map[0], map[1], FLAGS[name], borderMode=BORDERS[padding_mode])
                    found = imgops.remap(image, torch.from_numpy(map), name, padding_mode)
                    assert np.array_equal(found[0].numpy(), wanted), (padding_mode, name, scale)


def test_a_far_sample_of_a_batch_leaves_the_others_to_opencv() -> None:
    images = torch.rand(3, 2, 6, 7)
    matrices = torch.eye(2, 3).repeat(3, 1, 1)
    matrices[:, 0, 2] = torch.tensor([0.4, 1e12, -0.3])
    fills = torch.rand(3, 2)
    out = imgops.warp_affine(images, matrices, None, "bilinear", "reflect", fills)
    for i in (0, 2):
        assert bits_equal(out[i], imgops.warp_affine(images[i], matrices[i], None, "bilinear", "reflect"))
    assert out[1].isfinite().all()


@pytest.mark.parametrize("dtype", ANY_DTYPE, ids=str)
def test_ties_fall_alike_in_every_dtype(dtype: torch.dtype) -> None:
    """An image turned by a right angle is sampled between two pixels: a mask of any dtype has to turn with it."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        height, width = (int(v) for v in rng.integers(3, 40, 2))
        turn = np.pi / 2 * rng.integers(1, 4)
        a, b = np.cos(turn), np.sin(turn)
        x, y = (width - 1) / 2, (height - 1) / 2
        matrix = torch.tensor([[a, -b, x - a * x + b * y], [b, a, y - b * x - a * y]])
        image = torch.from_numpy(rng.integers(0, 2, (2, height, width), dtype=np.uint8))
        wanted = imgops.warp_affine(image, matrix, None, "nearest")
        found = imgops.warp_affine(image.to(dtype), matrix, None, "nearest")
        assert bits_equal(found.to(torch.uint8), wanted)


@OPENCV_ROUNDS
def test_the_decomposition_has_opencvs_ties() -> None:
    decomposition = imgops.decompositions()[torch.ops.imgops.warp_affine.default]
    for size in ((6, 9), (7, 12), (30, 11)):
        image = torch.randint(0, 256, (1, *size), dtype=torch.uint8)
        x, y = (size[1] - 1) / 2, (size[0] - 1) / 2
        matrix = torch.tensor([[0.0, -1, x + y], [1, 0, y - x]], dtype=torch.float64)
        wanted = imgops.warp_affine(image, matrix, None, "nearest")
        assert bits_equal(decomposition(image, matrix, None, *size, "nearest", "constant"), wanted)


@OPENCV_ROUNDS
def test_the_derivative_of_a_map_is_that_of_opencv() -> None:
    """It is compared with differences of ``cv2.remap`` between positions a little to either side."""
    image, step = np.random.default_rng(0).random((2, 7, 9)).astype(np.float32), np.float32(0.02)
    map = np.random.default_rng(1).uniform(0.2, 0.8, (2, 4, 5)).astype(np.float32)
    map += np.random.default_rng(2).integers(0, 5, map.shape)
    grad = torch.from_numpy(np.random.default_rng(3).random((2, 4, 5)).astype(np.float32))
    found = torch.ops.imgops.remap_grad_map(
        grad, torch.from_numpy(image), torch.from_numpy(map), None, "bilinear", "constant"
    )

    def sampled_at(axis: int, by: float) -> np.ndarray:
        moved = map.copy()
        moved[axis] += by
        return np.stack([cv2.remap(p, moved[0], moved[1], cv2.INTER_LINEAR) for p in image])

    for axis in (0, 1):
        slope = (sampled_at(axis, step) - sampled_at(axis, -step)) / (2 * step)
        wanted = (grad.numpy() * slope).sum(0)
        np.testing.assert_allclose(found[axis].numpy(), wanted, rtol=0, atol=2e-3)


def test_singular_matrix_and_huge_sides() -> None:
    image = torch.rand(1, 3, 4)
    assert imgops.warp_affine(image, torch.zeros(2, 3)).shape == image.shape
    wide = torch.rand(1, 1, 40000)
    shifted = imgops.warp_affine(wide, torch.tensor([[1.0, 0, 1], [0, 1, 0]]))
    torch.testing.assert_close(shifted[..., 1:], wide[..., :-1])


def test_resized_crop_of_pil_sees_nothing_around_a_crop() -> None:
    image = torch.randint(0, 256, (3, 40, 50), dtype=torch.uint8)
    pil = Image.fromarray(image.permute(1, 2, 0).contiguous().numpy())
    box = (7, 3, 39, 36)
    crop = pil.crop(box).resize((20, 11), Image.Resampling.BILINEAR)
    region = pil.resize((20, 11), Image.Resampling.BILINEAR, box=box)
    assert np.array_equal(imgops.resized_crop(image, box, (11, 20)).permute(1, 2, 0).numpy(), np.array(crop))
    exact = imgops.resized_crop(image, tuple(map(float, box)), (11, 20))
    assert np.array_equal(exact.permute(1, 2, 0).numpy(), np.array(region))
    assert not np.array_equal(np.array(crop), np.array(region))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64])
def test_a_matrix_of_any_type(dtype: torch.dtype) -> None:
    """OpenCV takes matrices of two dtypes; all others work as well."""
    image = torch.arange(3 * 6 * 7, dtype=torch.uint8).reshape(3, 6, 7)
    for matrix in (torch.eye(2, 3), torch.tensor([[1.0, 0, 2], [0, 1, -1]])):
        for each in (matrix, matrix.expand(2, 2, 3)):
            batch = image.expand(2, 3, 6, 7) if each.ndim == 3 else image
            assert bits_equal(imgops.warp_affine(batch, each.to(dtype)), imgops.warp_affine(batch, each))


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear"])
def test_both_formats_are_opencvs_at_every_width(interpolation: str) -> None:
    """OpenCV sums the positions of the last pixels of a row in another order; half a quarter turn has many ties."""
    flag = cv2.INTER_NEAREST if interpolation == "nearest" else cv2.INTER_LINEAR
    for width in range(16, 40):
        frame = np.random.default_rng(width).integers(0, 256, (24, width, 3), np.uint8)
        planar = torch.from_numpy(frame).permute(2, 0, 1)
        for angle in (-135.0, -45.0, -30.0, 33.3):
            matrix = cv2.getRotationMatrix2D(((width - 1) / 2, 11.5), angle, 1)
            wanted = cv2.warpAffine(frame, matrix, (width, 24), flags=flag)
            for image in (planar, planar.contiguous()):
                found = imgops.warp_affine(image, torch.from_numpy(matrix), (24, width), interpolation)
                assert np.array_equal(found.permute(1, 2, 0).numpy(), wanted), (width, angle)


# -- boxes, positions and sides for each sample -------------------------------------------------------

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
