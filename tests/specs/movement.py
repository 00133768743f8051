"""crop and paste."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from imgops import crop, paste
from tests.specs import _benchmarks as bench
from tests.specs import _plain as plain
from tests.specs._libraries import Array, by_pil_planes, chw, of_pil, photo_pil, to_pil
from tests.specs._maker import ANY_DTYPE, FLOATS, Maker
from tests.specs._spec import CLOSE, Benchmark, ErrorInput, OpSpec, Plain, Sample, Tolerance

DIMENSIONS = "must have at least 3 dimensions (..., C, H, W)"


# -- crop ------------------------------------------------------------------------------------------


def _crop(id: str, box: tuple[int, ...], shape: tuple[int, ...] = (3, 7, 9), **options: Any) -> Sample:
    return Sample(id, lambda m: (m.image(*shape), box), linear=True, **options)


def crop_reference(image: Array, left: int, top: int, right: int, bottom: int) -> Array:
    """PIL for what PIL has, else the pixels one by one."""
    if image.dtype in (np.uint8, np.float32, np.int32) and image.size and right > left and bottom > top:
        return by_pil_planes(image, lambda plane: plane.crop((left, top, right, bottom)))
    out = np.zeros((len(image), bottom - top, right - left), image.dtype)
    for y in range(max(top, 0), min(bottom, image.shape[1])):
        for x in range(max(left, 0), min(right, image.shape[2])):
            out[:, y - top, x - left] = image[:, y, x]
    return out


_BOX = "crop: box must have 4 integers (left, top, right, bottom)"

CROP = OpSpec(
    "crop",
    samples=(
        _crop("inside", (2, 1, 7, 5)),
        _crop("whole", (0, 0, 9, 7)),
        _crop("over-left-top", (-3, -2, 4, 4)),
        _crop("over-right-bottom", (5, 4, 12, 10)),
        _crop("around", (-2, -3, 12, 10)),
        _crop("outside", (20, -30, 25, -24)),
        _crop("empty", (3, 3, 3, 6)),
        _crop("empty-outside", (-4, 9, -4, 9)),
        _crop("one-pixel", (0, 0, 1, 1), (1, 1, 1), edge=True),
        _crop("one-row", (2, 0, 5, 1), (3, 1, 6), edge=True),
        _crop("one-column", (-1, 2, 3, 5), (3, 6, 1), edge=True),
        _crop("of-nothing", (-1, 0, 2, 2), (3, 0, 5), edge=True, differentiable=False),
        _crop("no-channels", (1, 1, 3, 4), (0, 5, 5), edge=True, differentiable=False),
        _crop("many-channels", (1, 1, 3, 4), (131, 5, 5), edge=True, differentiable=False),
    ),
    errors=(
        ErrorInput(TypeError, "crop: image must be a Tensor, got list", lambda x: crop([1], (0, 0, 1, 1))),
        ErrorInput(
            ValueError, f"crop: image {DIMENSIONS}, got shape (5, 6)", lambda x: crop(x[0, 0], (0, 0, 1, 1))
        ),
        ErrorInput(ValueError, f"{_BOX}, got 3", lambda x: crop(x, (0, 0, 1))),
        ErrorInput(TypeError, f"{_BOX}, got int", lambda x: crop(x, 3)),
        ErrorInput(TypeError, f"{_BOX}, got str", lambda x: crop(x, "0123")),
        ErrorInput(TypeError, f"{_BOX}, got float 1.5", lambda x: crop(x, (0, 0, 1.5, 2))),
        ErrorInput(TypeError, f"{_BOX}, got NoneType None", lambda x: crop(x, (0, 0, None, 2))),
        ErrorInput(TypeError, f"{_BOX}, got torch.float64", lambda x: crop(x, torch.zeros(4).double())),
        ErrorInput(ValueError, f"{_BOX}, got shape (3,)", lambda x: crop(x, torch.tensor([0, 0, 1]))),
        ErrorInput(
            ValueError, "crop: box must have right >= left, got (3, 0, 1, 2)", lambda x: crop(x, (3, 0, 1, 2))
        ),
        ErrorInput(
            ValueError, "crop: box must have bottom >= top, got (0, 2, 1, 1)", lambda x: crop(x, (0, 2, 1, 1))
        ),
        ErrorInput(
            ValueError,
            "crop: box must have 32-bit coordinates, got (0, 0, 4294967296, 1)",
            lambda x: crop(x, (0, 0, 2**32, 1)),
        ),
        ErrorInput(
            ValueError,
            "crop: box must span fewer than 2**31 pixels, got 32768 x 65536",
            lambda x: crop(x, (0, 0, 2**16, 2**15)),
        ),
    ),
    reference=crop_reference,
    decomposed={},
    dtypes=ANY_DTYPE,
    plain=Plain(
        lambda x: crop(x, (-1, 2, 6, 9)), lambda x: plain.crop(x, (-1, 2, 6, 9)), (plain.rand(3, 7, 9),)
    ),
    reference_name="`PIL.Image.crop`",
    dtype_names="all",
    decomposed_difference="0",
    section="Movement",
    formula=r"y_{c,i,j} = x_{c,\,i+\mathrm{top},\,j+\mathrm{left}}",
    border="0 outside of the image",
    transforms=(
        *("CenterCrop", "FiveCrop", "RandomCrop", "RandomIoUCrop", "TenCrop"),
        *("center_crop", "five_crop", "ten_crop"),
    ),
    photo=(lambda x: crop(x, (-9, 20, 300, 500)), lambda x: chw(photo_pil(x).crop((-9, 20, 300, 500)))),
    benchmarks=(
        Benchmark("crop", "PIL.Image.crop (uint8), NumPy slice (float32)", bench.crop, every_size=True),
    ),
)


# -- paste -----------------------------------------------------------------------------------------


def _paste(
    id: str,
    position: tuple[int, int],
    source: tuple[int, int] = (4, 5),
    shape: tuple[int, ...] = (3, 7, 9),
    mask: str | torch.dtype = "",
    **options: Any,
) -> Sample:
    def arguments(m: Maker) -> tuple[Any, ...]:
        image, patch = m.image(*shape), m.image(shape[0], *source)
        if not mask:
            return image, patch, position
        return image, patch, position, m.mask(*source, None if isinstance(mask, str) else mask)

    if mask and mask != torch.bool:
        options.setdefault("dtypes", FLOATS)
        options.setdefault("decomposed", CLOSE)
    return Sample(id, arguments, linear=not mask, **options)


def _mask_levels(mask: Array) -> Array:
    """As PIL has a mask: 0 to 255."""
    if mask.dtype == bool:
        return mask.astype(np.uint8) * 255
    if mask.dtype == np.uint8:
        return mask
    return np.rint(mask.astype(np.float32).clip(0, 1) * 255).astype(np.uint8)


def paste_reference(image: Array, source: Array, mask: Array | None, left: int, top: int) -> Array:
    """PIL on uint8, else the pixels one by one."""
    if image.dtype == np.uint8 and image.size and source.size:
        hard = None if mask is None else to_pil(_mask_levels(mask))
        planes = [to_pil(p[None]) for p in image]
        for plane, patch in zip(planes, source):
            plane.paste(to_pil(patch[None]), (left, top), hard)
        return np.concatenate([of_pil(p) for p in planes])
    out = image.copy()
    for y in range(source.shape[1]):
        for x in range(source.shape[2]):
            if 0 <= y + top < image.shape[1] and 0 <= x + left < image.shape[2]:
                share = None if mask is None else mask[0, y, x]
                out[:, y + top, x + left] = _mixed(out[:, y + top, x + left], source[:, y, x], share)
    return out


def _mixed(below: Array, above: Array, share: Any) -> Array:
    if share is None or (share.dtype == bool and share):
        return above
    if share.dtype == bool:
        return below
    working = np.float64 if below.dtype == np.float64 else np.float32
    weight = working(share) / working(255) if share.dtype == np.uint8 else working(share)
    return (below.astype(working) * (1 - weight) + above.astype(working) * weight).astype(below.dtype)


def _pasted_photo(x: Tensor) -> Image.Image:
    canvas = photo_pil(x)
    canvas.paste(photo_pil(x[:, :90, :120]), (-20, 250))
    return canvas


_PASTED = r"(1 - m_p)\, x_p + m_p\, s_{p - (\mathrm{left},\mathrm{top})}"

PASTE = OpSpec(
    "paste",
    samples=(
        _paste("inside", (2, 1)),
        _paste("clipped-left-top", (-2, -3)),
        _paste("clipped-right-bottom", (6, 5)),
        _paste("outside", (30, -20)),
        _paste("covers", (-1, -1), (10, 12)),
        _paste("mask", (2, 1), mask="own"),
        _paste("mask-clipped", (-2, -1), mask="own"),
        _paste("mask-clipped-right", (7, 4), mask="own"),
        _paste("mask-outside", (9, 0), mask="own"),
        _paste("mask-bool", (2, -1), mask=torch.bool),
        _paste("mask-uint8", (2, -1), mask=torch.uint8),
        _paste("mask-float", (2, -1), mask=torch.float32, gradcheck=False),
        _paste("empty-source", (2, 2), (0, 5), edge=True, differentiable=False),
        _paste("one-pixel", (0, 0), (1, 1), (1, 1, 1), edge=True),
        _paste("mask-one-row", (2, 0), (1, 3), (3, 1, 6), mask="own", edge=True),
        _paste("mask-onto-nothing", (0, 0), (2, 2), (3, 0, 5), mask="own", edge=True, differentiable=False),
    ),
    errors=(
        ErrorInput(TypeError, "paste: image must be a Tensor, got int", lambda x: paste(1, x, (0, 0))),
        ErrorInput(
            TypeError, "paste: source must be a Tensor, got NoneType", lambda x: paste(x, None, (0, 0))
        ),
        ErrorInput(TypeError, "paste: mask must be a Tensor, got float", lambda x: paste(x, x, (0, 0), 0.5)),
        ErrorInput(
            ValueError,
            "paste: position must have 2 integers (left, top), got 3",
            lambda x: paste(x, x, (0, 0, 0)),
        ),
        ErrorInput(
            TypeError,
            "paste: position must have 2 integers (left, top), got float 0.5",
            lambda x: paste(x, x, (0, 0.5)),
        ),
        ErrorInput(
            ValueError,
            "paste: position must have 32-bit coordinates, got (0, -8589934592)",
            lambda x: paste(x, x, (0, -(2**33))),
        ),
        ErrorInput(
            ValueError, f"paste: source {DIMENSIONS}, got shape (5, 6)", lambda x: paste(x, x[0, 0], (0, 0))
        ),
        ErrorInput(
            TypeError,
            "paste: source must have the dtype of image (torch.float32), got torch.float64",
            lambda x: paste(x, x.double(), (0, 0)),
        ),
        ErrorInput(
            ValueError,
            "paste: source must have the channels of image (3), got 1",
            lambda x: paste(x, x[:, :1], (0, 0)),
        ),
        ErrorInput(
            ValueError,
            "paste: source must have the leading dimensions of image (2,), got (3,)",
            lambda x: paste(x, x[:1].repeat(3, 1, 1, 1), (0, 0)),
        ),
        ErrorInput(
            ValueError,
            "paste: mask must be (..., 1, 5, 6) as source is, got (2, 1, 4, 6)",
            lambda x: paste(x, x, (0, 0), x[:, :1, :4]),
        ),
        ErrorInput(
            ValueError,
            "paste: mask must be (..., 1, 5, 6) as source is, got (2, 3, 5, 6)",
            lambda x: paste(x, x, (0, 0), x),
        ),
        ErrorInput(
            TypeError,
            "paste: mask must be floating point, uint8 or bool, got torch.int64",
            lambda x: paste(x, x, (0, 0), x[:, :1].long()),
        ),
        ErrorInput(
            TypeError,
            "paste: mask must be bool for an image of torch.int64, got torch.float32",
            lambda x: paste(x, x, (0, 0), x[:, :1].float()),
            torch.int64,
        ),
    ),
    reference=paste_reference,
    tolerance={torch.float16: Tolerance(1e-3), torch.bfloat16: Tolerance(8e-3)},
    decomposed={},
    dtypes=ANY_DTYPE,
    plain=Plain(
        lambda x, s, m: paste(x, s, (-2, 5), m),
        lambda x, s, m: plain.paste(x, s, (-2, 5), m),
        (plain.rand(3, 7, 9), plain.rand(3, 4, 5), plain.rand(1, 4, 5)),
    ),
    reference_name="`PIL.Image.paste`",
    dtype_names="all",
    decomposed_difference="0; float masks 1e-5",
    section="Movement",
    formula=rf"y_p = {_PASTED},\quad m = 1 \text{{ without a mask}}",
    border="what lies outside of the image is clipped",
    photo=(lambda x: paste(x, x[:, :90, :120], (-20, 250)), lambda x: chw(_pasted_photo(x))),
    benchmarks=(
        Benchmark("paste", "PIL.Image.paste (uint8), NumPy slice (float32)", bench.paste, every_size=True),
        Benchmark(
            "paste mask",
            "PIL.Image.paste (uint8), NumPy formula (float32)",
            bench.paste_mask,
            every_size=True,
        ),
    ),
)


SPECS = (CROP, PASTE)
