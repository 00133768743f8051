"""Filters, erase and blend against OpenCV and PIL, image by image."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
import references
import torch
from checks import bits_equal, check_format
from PIL import Image, ImageEnhance
from references_color import of_pil, to_pil
from samples import BATCHES, DEVICES, FILTERS, FORMATS, MIXES, Maker, Sample, dtypes_of
from test_geometry import each, references_format
from torch import Tensor

import imgops


def by_plane(image: Tensor, function: Any) -> Tensor:
    """Of each plane, or of the HWC frame of an interleaved image."""
    if references.is_interleaved(image) and len(image) <= 4:
        frame = function(image.permute(1, 2, 0).numpy())
        return torch.from_numpy(frame.reshape(*frame.shape[:2], -1)).permute(2, 0, 1)
    return torch.stack(
        [torch.from_numpy(np.ascontiguousarray(function(p))) for p in image.contiguous().numpy()]
    )


def gaussian_blur(image: Tensor, sigma: Tensor, width: int, height: int) -> Tensor:
    if not sigma.any():
        return image
    x, y = sigma.tolist()
    return by_plane(
        image, lambda p: cv2.GaussianBlur(p, (width, height), x, sigmaY=y, borderType=cv2.BORDER_REFLECT_101)
    )


def filter2d(image: Tensor, kernel: Tensor, border: str = "reflect") -> Tensor:
    rows, columns = kernel.shape
    around = rows // 2, rows - 1 - rows // 2, columns // 2, columns - 1 - columns // 2
    if border != "wrap":
        mode = references._BORDERS[border]
        return by_plane(image, lambda p: cv2.filter2D(p, -1, kernel.numpy(), borderType=mode))

    def one(plane: np.ndarray) -> np.ndarray:
        wide = cv2.copyMakeBorder(plane, *around, references._BORDERS[border])
        out = cv2.filter2D(wide, -1, kernel.numpy(), borderType=cv2.BORDER_CONSTANT)
        return out[around[0] : around[0] + plane.shape[0], around[2] : around[2] + plane.shape[1]]

    return by_plane(image, one)


def adjust_sharpness(image: Tensor, factor: Tensor) -> Tensor:
    if image.dtype == torch.uint8:
        planes = [of_pil(ImageEnhance.Sharpness(to_pil(p[None])).enhance(float(factor))) for p in image]
        return torch.cat(planes)
    if min(image.shape[-2:]) < 3:
        return image
    kernel = torch.tensor([[1.0, 1, 1], [1, 5, 1], [1, 1, 1]], dtype=torch.float64) / 13
    x = image.double()
    smooth = x.clone()
    inner = torch.nn.functional.conv2d(x[:, None], kernel[None, None])[:, 0]
    smooth[:, 1:-1, 1:-1] = inner
    return (smooth + float(factor) * (x - smooth)).clamp(0, 1)


def calls(sample: Sample, args: tuple[Any, ...], keywords: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The arguments of the reference for each image of the batch."""
    image, *rest = args
    lead = image.shape[:-3]
    images = [
        references_format(x, image) for x in image.detach().cpu().reshape(lead.numel(), *image.shape[-3:])
    ]
    if sample.op == "gaussian_blur":
        size, *sigma = rest
        width, height = (size, size) if isinstance(size, int) else size
        value = sigma[0] if sigma else (0.15 * width + 0.35, 0.15 * height + 0.35)
        value = torch.as_tensor(value, dtype=torch.float64).detach()
        value = value.expand(2) if value.ndim == 0 else value
        return [(x, s, width, height) for x, s in zip(images, each(value, lead, 1))]
    value = torch.as_tensor(rest[0])
    core = 2 if sample.op == "filter2d" else 0
    return [(x, v, *rest[1:]) for x, v in zip(images, each(value, lead, core))]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("sample", FILTERS, ids=str)
def test_filters(sample: Sample, device: str) -> None:
    for dtype in dtypes_of(sample):
        for format in FORMATS:
            for batch in BATCHES if format in ("planar", "interleaved") else ((), (2,)):
                function, args, keywords = sample.call(Maker(dtype, format, batch, device))
                out = function(*args, **keywords)
                check_format(out, args[0])
                if 0 in batch:
                    assert out.shape == args[0].shape
                    continue
                flat = out.cpu().reshape(-1, *out.shape[-3:])
                for y, one in zip(flat, calls(sample, args, keywords)):
                    compare(sample, y, one)


def compare(sample: Sample, out: Tensor, call: tuple[Any, ...]) -> None:
    image, *rest = call
    reference = globals()[sample.op]
    wide = {torch.float16: torch.float32, torch.bfloat16: torch.float32}.get(image.dtype, image.dtype)
    wanted = reference(image.to(wide), *rest)
    if image.dtype == torch.uint8 or (sample.op != "adjust_sharpness" and image.dtype != torch.float64):
        assert bits_equal(out, wanted.to(image.dtype)), f"{(out.double() - wanted.double()).abs().max()}"
    else:
        step = {torch.float16: 1e-3, torch.bfloat16: 8e-3}.get(image.dtype, 1e-6)
        torch.testing.assert_close(out.double(), wanted.double(), rtol=step, atol=step)


@pytest.mark.parametrize("sample", MIXES, ids=str)
def test_mixes(sample: Sample) -> None:
    for dtype in dtypes_of(sample):
        for format in FORMATS:
            for batch in ((), (2,), (2, 3)):
                function, args, keywords = sample.call(Maker(dtype, format, batch))
                out = function(*args, **keywords)
                check_format(out, args[0])
                lead = args[0].shape[:-3]
                images = args[0].detach().reshape(lead.numel(), *args[0].shape[-3:])
                flat = out.reshape(images.shape)
                if sample.op == "blend":
                    other = args[1].reshape(images.shape)
                    for x, o, y, w in zip(images, other, flat, each(torch.as_tensor(args[2]), lead, 0)):
                        blended(x, o, y, float(w))
                else:
                    boxes = each(torch.as_tensor(args[1]), lead, 1)
                    value = args[2] if len(args) > 2 else 0
                    for i, (x, y, box) in enumerate(zip(images, flat, boxes)):
                        erased(x, y, box.tolist(), value, i)


def blended(a: Tensor, b: Tensor, out: Tensor, weight: float) -> None:
    if a.dtype == torch.uint8:
        planes = [np.array(Image.blend(to_pil(p[None]), to_pil(q[None]), weight)) for p, q in zip(a, b)]
        assert bits_equal(out, torch.from_numpy(np.array(planes)))
    else:
        step = {torch.float16: 1e-3, torch.bfloat16: 8e-3}.get(a.dtype, 1e-6)
        wanted = a.double() * (1 - weight) + b.double() * weight
        torch.testing.assert_close(out.double(), wanted, rtol=step, atol=step)


def erased(x: Tensor, out: Tensor, box: list[int], value: Any, index: int) -> None:
    left, top, right, bottom = box
    wanted = x.clone()
    rows, columns = slice(max(top, 0), max(bottom, 0)), slice(max(left, 0), max(right, 0))
    if isinstance(value, Tensor):
        wanted[:, rows, columns] = value.reshape(-1, *x.shape)[index][:, rows, columns]
    else:
        color = torch.as_tensor(value, dtype=torch.float64).expand(len(x)).to(x.dtype)
        wanted[:, rows, columns] = color[:, None, None]
    assert bits_equal(out, wanted)


def test_a_sharpened_photograph_is_pil() -> None:
    rng = np.random.default_rng(3)
    photo = torch.from_numpy(rng.integers(0, 256, (3, 61, 83)).astype(np.uint8))
    for factor in (0.0, 0.4, 1.0, 1.9, -0.3):
        wanted = of_pil(ImageEnhance.Sharpness(to_pil(photo)).enhance(factor))
        for x in (photo, photo.permute(1, 2, 0).contiguous().permute(2, 0, 1)):
            assert bits_equal(imgops.adjust_sharpness(x, factor), wanted)
