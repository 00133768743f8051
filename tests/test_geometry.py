"""Warps, maps and resized crops against OpenCV and PIL, image by image, in every dtype, format and batch shape."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
import references
import torch
from checks import bits_equal, check_format
from PIL import Image
from samples import BATCHES, DEVICES, FORMATS, GEOMETRY, Maker, Sample, dtypes_of
from torch import Tensor

import imgops

FLAGS = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC}
MODES = ("constant", "edge", "reflect", "symmetric", "wrap")
EXACT = int(cv2.__version__.split(".")[0]) >= 5  # before, positions are rounded to 1/32 pixel


def by_opencv(op: str, image: Tensor, where: Tensor, size: Any, name: str, border: str, fill: Any) -> Tensor:
    """Plane by plane, or the HWC frame of an interleaved image."""
    carrier = image.to(torch.uint8) if image.dtype == torch.bool else image
    if image.dtype in (torch.float16, torch.bfloat16):
        carrier = image.float()
    channels = image.shape[0]
    color = [float(v) for v in (np.ravel(fill).tolist() * channels)[:channels]]
    options = {"borderMode": references._BORDERS[border]}

    def one(plane: np.ndarray, value: Any) -> np.ndarray:
        at = (where if where.is_floating_point() else where.double()).numpy()
        if op == "remap":
            return cv2.remap(plane, at[0], at[1], FLAGS[name], borderValue=value, **options)
        warp = cv2.warpAffine if op == "warp_affine" else cv2.warpPerspective
        return warp(plane, at, size[::-1], flags=FLAGS[name], borderValue=value, **options)

    if references.is_interleaved(image) and channels <= 4:
        frame = one(carrier.permute(1, 2, 0).numpy(), (*color, *(0,) * (4 - channels)))
        out = torch.from_numpy(frame.reshape(*frame.shape[:2], channels)).permute(2, 0, 1)
    else:
        planes = carrier.contiguous().numpy()
        out = torch.stack([torch.from_numpy(one(p, (v,) * 4)) for p, v in zip(planes, color)])
    return out.to(image.dtype)


def each(value: Tensor, lead: torch.Size, core: int) -> list[Tensor]:
    value = value.detach().cpu()
    tail = tuple(value.shape[value.ndim - core :])
    return list(value.expand((*lead, *tail)).reshape((lead.numel(), *tail)))


WARPS = [s for s in GEOMETRY if s.op in ("warp_affine", "warp_perspective", "remap")]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("sample", WARPS, ids=str)
def test_warps(sample: Sample, device: str) -> None:
    for dtype in dtypes_of(sample):
        for format in FORMATS:
            for batch in BATCHES if format in ("planar", "interleaved") else ((), (2,)):
                maker = Maker(dtype, format, batch, device)
                function, args, keywords = sample.call(maker)
                if sample.op == "remap" and device != "cpu":
                    args = (args[0], args[1].to(device), *args[2:])
                out = function(*args, **keywords)
                check_format(out, args[0])
                if 0 in batch:
                    assert out.shape[: len(batch)] == batch
                    continue
                compare(sample, out.cpu(), args, keywords)


def compare(sample: Sample, out: Tensor, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    image, where, *rest = args
    core = 3 if sample.op == "remap" else 2
    rest = rest if sample.op == "remap" else rest[1:]
    name, border, fill = (*rest, *("bilinear", "constant", 0)[len(rest) :])
    fill = keywords.get("fill", fill)
    size = tuple(out.shape[-2:])
    lead = image.shape[:-3]
    opencv = image.dtype in (torch.uint8, torch.float32, torch.bool, torch.float16, torch.bfloat16)
    if sample.op == "remap" and where.dtype != torch.float32:
        opencv = False
    images = image.detach().cpu().reshape(lead.numel(), *image.shape[-3:])
    outs = out.reshape(lead.numel(), *out.shape[-3:])
    for x, y, at in zip(images, outs, each(where, lead, core)):
        if opencv:
            x = references_format(x, image)
            at = at if at.is_floating_point() else at.double()
            wanted = by_opencv(sample.op, x, at, size, name, border, np.asarray(fill))
            identity = sample.id == "identity"
            assert bits_equal(y, wanted) or (identity and bits_equal(y, x)), f"{sample} {image.dtype}"
        elif EXACT:  # true positions, in any other dtype
            wide = by_opencv(
                sample.op, x.float(), at.float() if core == 3 else at, size, name, border, np.asarray(fill)
            )
            if name == "nearest" and x.dtype not in (torch.float64,):
                continue
            torch.testing.assert_close(y.double(), wide.double(), rtol=1e-4, atol=2e-4)


def references_format(x: Tensor, image: Tensor) -> Tensor:
    interleaved = not image.is_contiguous() and image.movedim(-3, -1).is_contiguous()
    return x.permute(1, 2, 0).contiguous().permute(2, 0, 1) if interleaved else x.contiguous()


def sampled(image: Tensor, x: Tensor, y: Tensor, name: str, border: str) -> Tensor:
    """Pixel by pixel, in double precision; nothing shared with imgops."""
    height, width = image.shape[-2:]

    def at(i: int, j: int) -> Any:
        if border == "constant":
            return (
                image[:, i, j].double()
                if 0 <= i < height and 0 <= j < width
                else torch.zeros(len(image)).double()
            )
        i = cv2.borderInterpolate(i, height, references._BORDERS[border])
        return image[:, i, cv2.borderInterpolate(j, width, references._BORDERS[border])].double()

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


@pytest.mark.parametrize("border", MODES)
@pytest.mark.parametrize("name", ["bilinear", "bicubic"])
def test_double_precision_is_exact(name: str, border: str) -> None:
    image = torch.rand(2, 6, 5, dtype=torch.float64)
    map = torch.rand(2, 4, 3, dtype=torch.float64) * 14 - 4
    out = imgops.remap(image, map, name, border)
    torch.testing.assert_close(out, sampled(image, map[0], map[1], name, border), rtol=1e-12, atol=1e-12)
    matrix = torch.tensor([[0.7, -0.4, 1.1], [0.5, 1.2, -2.3]], dtype=torch.float64)
    inverse = torch.linalg.inv(torch.cat([matrix, torch.tensor([[0.0, 0, 1]]).double()]))
    y, x = torch.meshgrid(torch.arange(7.0).double(), torch.arange(8.0).double(), indexing="ij")
    u, v = (inverse[k, 0] * x + inverse[k, 1] * y + inverse[k, 2] for k in (0, 1))
    warped = imgops.warp_affine(image, matrix, (7, 8), name, border)
    torch.testing.assert_close(warped, sampled(image, u, v, name, border), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.int32, torch.int16, torch.bool, torch.float64, torch.float16]
)
def test_nearest_moves_every_dtype(dtype: torch.dtype) -> None:
    labels = torch.arange(200).reshape(1, 10, 20)
    image = (labels % 2 == 0) if dtype == torch.bool else labels.to(dtype)
    matrix = torch.tensor([[0.8, -0.6, 6.2], [0.6, 0.8, -3.3]])
    wanted = imgops.warp_affine(labels.to(torch.uint8), matrix, interpolation="nearest", fill=201)
    out = imgops.warp_affine(image, matrix, interpolation="nearest", fill=201)
    inside = wanted != 201
    if dtype == torch.bool:
        assert bits_equal(out[inside], (wanted % 2 == 0)[inside]) and out[~inside].all()
    else:
        assert bits_equal(out, wanted.to(dtype))


def test_no_fringe_at_a_filled_border() -> None:
    """torchvision's issue 8083: a white image on white stays white."""
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


def test_positions_that_are_not_numbers_show_the_border() -> None:
    image = torch.ones(1, 4, 4)
    map = torch.tensor([[[float("nan"), float("inf"), 1.0]], [[1.0, 1.0, 1.0]]])
    for x in (image, image.double()):
        assert imgops.remap(x, map.to(x.dtype), fill=5).flatten().tolist() == [5, 5, 1]


def test_singular_matrix_and_huge_sides() -> None:
    image = torch.rand(1, 3, 4)
    assert imgops.warp_affine(image, torch.zeros(2, 3)).shape == image.shape
    wide = torch.rand(1, 1, 40000)
    shifted = imgops.warp_affine(wide, torch.tensor([[1.0, 0, 1], [0, 1, 0]]))
    torch.testing.assert_close(shifted[..., 1:], wide[..., :-1])


def test_flip_and_rotate90_are_opencv_and_pil() -> None:
    image = torch.arange(2 * 3 * 4 * 5, dtype=torch.uint8).reshape(2, 3, 4, 5)
    for direction, code in (("horizontal", 1), ("vertical", 0), ("both", -1)):
        wanted = [[cv2.flip(p.numpy(), code) for p in i] for i in image]
        assert bits_equal(imgops.flip(image, direction), torch.from_numpy(np.array(wanted)))
    for turns, way in (
        (1, Image.Transpose.ROTATE_90),
        (2, Image.Transpose.ROTATE_180),
        (-1, Image.Transpose.ROTATE_270),
    ):
        wanted = [[np.array(Image.fromarray(p.numpy()).transpose(way)) for p in i] for i in image]
        out = imgops.rotate90(image, turns)
        assert bits_equal(out, torch.from_numpy(np.array(wanted))) and out.is_contiguous()
    interleaved = image.contiguous(memory_format=torch.channels_last)
    assert imgops.flip(interleaved).is_contiguous(memory_format=torch.channels_last)


CROPS = [s for s in GEOMETRY if s.op == "resized_crop"]


@pytest.mark.parametrize("sample", CROPS, ids=str)
def test_resized_crop_is_a_crop_and_a_resize(sample: Sample) -> None:
    for dtype in dtypes_of(sample):
        for format in FORMATS:
            for batch in ((), (2,), (2, 3)):
                function, args, keywords = sample.call(Maker(dtype, format, batch))
                image, boxes, size, *name = args
                out = function(*args, **keywords)
                check_format(out, image)
                flat = image.detach().reshape(-1, *image.shape[-3:])
                for x, y, box in zip(
                    flat, out.reshape(-1, *out.shape[-3:]), each(boxes, image.shape[:-3], 1)
                ):
                    left, top, right, bottom = box.tolist()
                    part = references_format(x, image)[:, top:bottom, left:right]
                    part = references_format(part, image)
                    wanted = references.resize(
                        part, size, *name, **keywords, interleaved=references.is_interleaved(part)
                    )
                    close = {torch.uint8: 0, torch.float32: 1e-5}.get(
                        dtype, 1e-5 if dtype == torch.float64 else 8e-3
                    )
                    if "nearest" in sample.id:
                        assert bits_equal(y, wanted)
                    else:
                        torch.testing.assert_close(y, wanted, rtol=close, atol=close)


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
    """OpenCV takes two types of matrices; the others are as good."""
    image = torch.arange(3 * 6 * 7, dtype=torch.uint8).reshape(3, 6, 7)
    for matrix in (torch.eye(2, 3), torch.tensor([[1.0, 0, 2], [0, 1, -1]])):
        for each in (matrix, matrix.expand(2, 2, 3)):
            batch = image.expand(2, 3, 6, 7) if each.ndim == 3 else image
            assert bits_equal(imgops.warp_affine(batch, each.to(dtype)), imgops.warp_affine(batch, each))
