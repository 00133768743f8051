"""crop, paste, pad and its adjoint, and erase."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image
from torch import Tensor

import imgops
from imgops import crop, pad, paste
from tests.specs import _benchmarks as bench
from tests.specs._draw import Draw
from tests.specs._libraries import BORDERS, Array, by_pil_planes, chw, of_pil, photo_frame, photo_pil, to_pil
from tests.specs._maker import ANY_DTYPE, FLOATS, Maker, parameter, rows
from tests.specs._spec import CLOSE, REAL, ROUNDED, Benchmark, ErrorInput, OpSpec, Sample

ops = torch.ops.imgops
DIMENSIONS = "must have at least 3 dimensions (..., C, H, W)"


# -- crop --------------------------------------------------------------------------------------------


def _crop(id: str, box: tuple[int, ...], shape: tuple[int, ...] = (3, 7, 9), **options: Any) -> Sample:
    return Sample(id, lambda m: (m.image(*shape), box), linear=True, **options)


def crop_reference(image: Array, left: int, top: int, right: int, bottom: int) -> Array:
    """Run PIL for its dtypes; otherwise copy the pixels one by one."""
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
    refused={
        TypeError: {
            "image must be a Tensor, got list": lambda x: crop([1], (0, 0, 1, 1)),
            "image must be a strided tensor, got torch.sparse_coo": lambda x: crop(
                torch.ones(3, 5, 6).to_sparse(), (0, 0, 1, 1)
            ),
            f"{_BOX}, got int": lambda x: crop(x, 3),
            f"{_BOX}, got str": lambda x: crop(x, "0123"),
            f"{_BOX}, got float 1.5": lambda x: crop(x, (0, 0, 1.5, 2)),
            f"{_BOX}, got NoneType None": lambda x: crop(x, (0, 0, None, 2)),
            f"{_BOX}, got torch.float64": lambda x: crop(x, torch.zeros(4).double()),
        },
        ValueError: {
            f"image {DIMENSIONS}, got shape (5, 6)": lambda x: crop(x[0, 0], (0, 0, 1, 1)),
            f"{_BOX}, got 3": lambda x: crop(x, (0, 0, 1)),
            f"{_BOX}, got shape (3,)": lambda x: crop(x, torch.tensor([0, 0, 1])),
            "box must have right >= left, got (3, 0, 1, 2)": lambda x: crop(x, (3, 0, 1, 2)),
            "box must have bottom >= top, got (0, 2, 1, 1)": lambda x: crop(x, (0, 2, 1, 1)),
            "box must have 32-bit coordinates, got (0, 0, 4294967296, 1)": lambda x: crop(
                x, (0, 0, 2**32, 1)
            ),
            "box must span fewer than 2**31 pixels, got 32768 x 65536": lambda x: crop(
                x, (0, 0, 2**16, 2**15)
            ),
        },
    },
    reference=crop_reference,
    draw=lambda d: (d.image(), *_drawn_box(d)[0].tolist()),
    decomposed={},
    dtypes=ANY_DTYPE,
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
    picture=lambda x: imgops.crop(
        x, (x.shape[-1] // 3, x.shape[-2] // 4, x.shape[-1] * 5 // 6, x.shape[-2] * 5 // 6)
    ),
    benchmarks=(
        Benchmark("crop", "PIL.Image.crop (uint8), NumPy slice (float32)", bench.crop, every_size=True),
    ),
)


# -- crop_each ---------------------------------------------------------------------------------------


def _crop_each(id: str, *each: tuple[int, int, int, int], **options: Any) -> Sample:
    size = each[0][3] - each[0][1], each[0][2] - each[0][0]
    shape = options.pop("shape", (3, 7, 9))
    return Sample(id, lambda m: (m.image(*shape), rows(m, *each), *size), linear=True, **options)


CROP_EACH = OpSpec(
    "crop_each",
    samples=(
        _crop_each("each", (2, 1, 7, 5), (-3, 5, 2, 9), (30, -20, 35, -16)),
        Sample("shared", lambda m: (m.image(3, 7, 9), torch.tensor([-2, 3, 4, 9]), 6, 6), linear=True),
        _crop_each("one-pixel", (0, 0, 1, 1), (-1, 0, 0, 1), shape=(1, 1, 1), edge=True),
        _crop_each("empty", (3, 3, 3, 6), (-3, 3, -3, 6), edge=True, differentiable=False),
        _crop_each("of-nothing", (-1, 0, 2, 2), shape=(3, 0, 5), edge=True, differentiable=False),
    ),
    refused={
        ValueError: {
            "crop: box must have 4 integers (left, top, right, bottom), got shape (2, 3)": lambda x: crop(
                x, torch.ones(2, 3).long()
            ),
            "crop: box must have shape (4,), or shape (2, 4), one for each image, got shape (3, 4)": lambda x: (
                crop(x, torch.zeros(3, 4).long(), size=(0, 0))
            ),
            "crop: box must span the size (2, 3) of every crop of the call, got (0, 0, 2, 3)": ErrorInput(
                lambda x: crop(x, torch.tensor([[0, 0, 3, 2], [0, 0, 2, 3]])), reads_values=True
            ),
            "crop: box must have 32-bit coordinates, got (0, 4294967296, 3, 4294967298)": ErrorInput(
                lambda x: crop(x, torch.tensor([0, 2**32, 3, 2**32 + 2]), size=(2, 3)), reads_values=True
            ),
            "crop: size must not be negative, got (-1, 2)": lambda x: crop(
                x, torch.zeros(4).long(), size=(-1, 2)
            ),
            "crop: size must be that of box (2, 3), got (3, 3)": lambda x: crop(x, (0, 0, 3, 2), size=(3, 3)),
            "crop: size must be given for a box of no rows, got None": lambda x: crop(
                x[:0], torch.zeros(0, 4).long()
            ),
        },
        TypeError: {
            "crop: box must have 4 integers (left, top, right, bottom), got torch.float32": lambda x: crop(
                x, torch.ones(2, 4)
            ),
        },
    },
    reference=lambda image, box, height, width: crop_reference(image, *box.tolist()),
    draw=lambda d: (d.image(), *_drawn_box(d)),
    decomposed={},
    dtypes=ANY_DTYPE,
    reference_name="`PIL.Image.crop` of each image",
    dtype_names="all",
    decomposed_difference="0",
)


def _drawn_box(d: Draw) -> tuple[Any, ...]:
    left, top, height, width = d.whole(-30, 45), d.whole(-30, 45), d.whole(1, 30), d.whole(1, 30)
    return torch.tensor([left, top, left + width, top + height]), height, width


# -- paste -------------------------------------------------------------------------------------------


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
    """Convert a mask to PIL's levels, 0 to 255."""
    if mask.dtype == bool:
        return mask.astype(np.uint8) * 255
    if mask.dtype == np.uint8:
        return mask
    return np.rint(mask.astype(np.float32).clip(0, 1) * 255).astype(np.uint8)


def paste_reference(image: Array, source: Array, mask: Array | None, left: int, top: int) -> Array:
    """Run PIL on uint8; otherwise copy the pixels one by one."""
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
    refused={
        TypeError: {
            "image must be a Tensor, got int": lambda x: paste(1, x, (0, 0)),
            "source must be a Tensor, got NoneType": lambda x: paste(x, None, (0, 0)),
            "mask must be a Tensor, got float": lambda x: paste(x, x, (0, 0), 0.5),
            "position must have 2 integers (left, top), got float 0.5": lambda x: paste(x, x, (0, 0.5)),
            "source must have the dtype of image (torch.float32), got torch.float64": lambda x: paste(
                x, x.double(), (0, 0)
            ),
            "mask must be floating point, uint8 or bool, got torch.int64": lambda x: paste(
                x, x, (0, 0), x[:, :1].long()
            ),
            "mask must be bool for an image of torch.int64, got torch.float32": ErrorInput(
                lambda x: paste(x, x, (0, 0), x[:, :1].float()), dtype=torch.int64
            ),
        },
        ValueError: {
            "position must have 2 integers (left, top), got 3": lambda x: paste(x, x, (0, 0, 0)),
            "position must have 32-bit coordinates, got (0, -8589934592)": lambda x: paste(
                x, x, (0, -(2**33))
            ),
            f"source {DIMENSIONS}, got shape (5, 6)": lambda x: paste(x, x[0, 0], (0, 0)),
            "source must have the channels of image (3), got 1": lambda x: paste(x, x[:, :1], (0, 0)),
            "source must have the leading dimensions of image (2,), got (3,)": lambda x: paste(
                x, x[:1].repeat(3, 1, 1, 1), (0, 0)
            ),
            "mask must be (..., 1, 5, 6) as source is, got (2, 1, 4, 6)": lambda x: paste(
                x, x, (0, 0), x[:, :1, :4]
            ),
            "mask must be (..., 1, 5, 6) as source is, got (2, 3, 5, 6)": lambda x: paste(x, x, (0, 0), x),
            "source must be on the device of image (cpu), got meta": lambda x: paste(
                torch.ones(3, 5, 6), torch.ones(3, 5, 6, device="meta"), (0, 0)
            ),
            "mask must be on the device of image (cpu), got meta": ErrorInput(
                lambda x: paste(torch.ones(3, 5, 6), x[0].cpu(), (0, 0), torch.ones(1, 5, 6, device="meta")),
                reads_values=True,
            ),
        },
    },
    reference=paste_reference,
    draw=lambda d: _drawn_paste(d, shared=True),
    drawn=CLOSE,
    tolerance=ROUNDED,
    decomposed={},
    dtypes=ANY_DTYPE,
    reference_name="`PIL.Image.paste`",
    dtype_names="all",
    decomposed_difference="0; float masks 1e-5",
    section="Movement",
    formula=rf"y_p = {_PASTED},\quad m = 1 \text{{ without a mask}}",
    border="what lies outside of the image is clipped",
    transforms=("CopyPaste",),
    photo=(lambda x: paste(x, x[:, :90, :120], (-20, 250)), lambda x: chw(_pasted_photo(x))),
    picture=lambda x: imgops.paste(x, x[:, ::2, ::2].contiguous(), (x.shape[-1] // 3, x.shape[-2] // 3)),
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


# -- paste_each --------------------------------------------------------------------------------------

_PLACES = (2, 1), (-2, 4), (30, -20), (8, -3)


def _paste_each(
    id: str,
    mask: str | torch.dtype = "",
    places: tuple[tuple[int, int], ...] = _PLACES,
    source: tuple[int, int] = (4, 5),
    shape: tuple[int, ...] = (3, 7, 9),
    **options: Any,
) -> Sample:
    call = _paste(id, (0, 0), source, shape, mask, **options)

    def arguments(m: Maker) -> tuple[Any, ...]:
        image, patch, _, *masks = call.arguments(m)
        return image, patch, *(masks or [None]), rows(m, *places)

    return replace(call, arguments=arguments)


PASTE_EACH = OpSpec(
    "paste_each",
    samples=(
        _paste_each("each"),
        _paste_each("mask", "own"),
        _paste_each("mask-bool", torch.bool),
        _paste_each("mask-uint8", torch.uint8),
        _paste_each("one-pixel", places=((0, 0), (-1, 0)), source=(1, 1), shape=(1, 1, 1), edge=True),
        _paste_each("empty-source", source=(0, 5), edge=True, differentiable=False),
        _paste_each(
            "mask-onto-nothing", "own", source=(2, 2), shape=(3, 0, 5), edge=True, differentiable=False
        ),
    ),
    refused={
        ValueError: {
            "paste: position must have 2 integers (left, top), got shape (2, 3)": lambda x: paste(
                x, x, torch.ones(2, 3).long()
            ),
            "paste: position must have shape (2,), or shape (2, 2), one for each image, got shape (3, 2)": lambda x: (
                paste(x, x, torch.ones(3, 2).long())
            ),
            "paste: position must have 32-bit coordinates, got (0, -8589934592)": ErrorInput(
                lambda x: paste(x, x, torch.tensor([[1, 1], [0, -(2**33)]])), reads_values=True
            ),
            "paste: source must have the channels of image (3), got 1": lambda x: paste(
                x, x[:, :1], torch.zeros(2, 2).long()
            ),
        },
        TypeError: {
            "paste: position must have 2 integers (left, top), got torch.float64": lambda x: paste(
                x, x, torch.ones(2, 2).double()
            ),
            "paste: mask must be a Tensor, got float": lambda x: paste(x, x, torch.zeros(2, 2).long(), 0.5),
        },
    },
    reference=lambda image, source, mask, position: paste_reference(image, source, mask, *position.tolist()),
    draw=lambda d: _drawn_paste(d),
    tolerance=ROUNDED,
    decomposed={},
    drawn=CLOSE,
    dtypes=ANY_DTYPE,
    reference_name="`PIL.Image.paste` of each image",
    dtype_names="all",
    decomposed_difference="0; float masks 1e-5",
)


def _drawn_paste(d: Draw, shared: bool = False) -> tuple[Any, ...]:
    image, size = d.image(), (d.whole(1, 30), d.whole(1, 30))
    mask = d.choice(None, d.image(1, size=size), d.image(1, size=size) > 0)
    position = d.whole(-30, 45), d.whole(-30, 45)
    return image, d.image(len(image), size=size), mask, *(position if shared else [torch.tensor(position)])


# -- erase -------------------------------------------------------------------------------------------

_INSIDE = torch.zeros(5, 6, dtype=torch.bool)


_INSIDE[1:4, 1:5] = True


def erase_reference(image: Array, value: Array, box: Array) -> Array:
    """Run PIL's paste of the other image's box, plane by plane; for other dtypes, NumPy's slices."""
    left, top, right, bottom = box.tolist()
    pixels = np.broadcast_to(value, image.shape)
    inside = 0 <= left <= right <= image.shape[2] and 0 <= top <= bottom <= image.shape[1]
    if image.dtype == np.uint8 and inside and right > left and bottom > top:
        planes = []
        for plane, other in zip(image, pixels):
            canvas = to_pil(plane[None])
            canvas.paste(to_pil(other[None]).crop((left, top, right, bottom)), (left, top))
            planes.append(of_pil(canvas))
        return np.concatenate(planes)
    out = image.copy()
    rows, columns = slice(max(top, 0), max(bottom, 0)), slice(max(left, 0), max(right, 0))
    out[:, rows, columns] = pixels[:, rows, columns]
    return out


def _erased_photo(x: Tensor) -> Image.Image:
    canvas = photo_pil(x)
    canvas.paste((0, 0, 0), (30, 40, 200, 220))
    return canvas


def _erase_calls(case: Any) -> bench.Calls:
    x, v2, arrays, half = case.image(), bench.functional(), case.arrays(case.image()), case.size // 2
    value = torch.zeros(3, 1, 1, dtype=x.dtype)

    def raw() -> Any:
        out = [a.copy() for a in arrays]
        for a in out:
            a[20:half, 20:half] = 0
        return out

    return (
        lambda: imgops.erase(x, (20, 20, half, half)),
        raw,
        lambda: v2.erase(x, 20, 20, half - 20, half - 20, value),
        None,
    )


ERASE = OpSpec(
    "erase",
    samples=(
        Sample("zero", lambda m: (m.image(3, 5, 6), (1, 2, 4, 5))),
        Sample("clipped-color", lambda m: (m.image(3, 5, 6), (-3, 2, 2, 9), (1, 0, 1))),
        Sample("empty", lambda m: (m.image(3, 5, 6), (3, 3, 3, 3), 1)),
        Sample("pixels", lambda m: (m.image(3, 5, 6), (1, 2, 4, 5), m.image(3, 5, 6))),
        Sample("each", lambda m: (m.image(3, 5, 6), rows(m, (1, 2, 4, 5), (0, 0, 0, 0)), m.image(3, 5, 6))),
    ),
    refused={
        ValueError: {
            "fill must have one number, or one for each of 3 channels, got 2": lambda x: imgops.erase(
                x, (0, 0, 1, 1), (1, 2)
            ),
            "fill must be finite for torch.uint8, got nan": ErrorInput(
                lambda x: imgops.erase(x, (0, 0, 1, 1), float("nan")), dtype=torch.uint8
            ),
        },
        TypeError: {
            "fill must be a number or one per channel, got str": lambda x: imgops.erase(
                x, (0, 0, 1, 1), "red"
            ),
            "fill must be a number or one per channel, got ndarray": lambda x: imgops.erase(
                x, (0, 0, 1, 1), np.array(3)
            ),
            "box must be int64, got torch.float32": lambda x: imgops.erase(x, torch.ones(4)),
        },
    },
    of_number=lambda x, v: imgops.erase(x, (3, 3, 9, 9), v),
    reference=erase_reference,
    decomposed={},
    dtypes=ANY_DTYPE,
    reference_name="`PIL.Image.paste`",
    dtype_names="all",
    decomposed_difference="0",
    section="Movement",
    formula=r"y_p = v_p \text{ inside the box},\ x_p \text{ elsewhere}",
    border="the box is clipped",
    transforms=("RandomErasing", "CutMix"),
    photo=(lambda x: imgops.erase(x, (30, 40, 200, 220)), lambda x: chw(_erased_photo(x))),
    picture=lambda x: imgops.erase(
        x, (x.shape[-1] // 3, x.shape[-2] // 3, x.shape[-1] * 2 // 3, x.shape[-2] * 2 // 3), 0
    ),
    benchmarks=(Benchmark("erase", "NumPy slice", _erase_calls),),
)


# -- pad ---------------------------------------------------------------------------------------------


def _pad(
    id: str,
    padding: Any,
    shape: tuple[int, ...] = (3, 5, 6),
    *,
    mode: str = "constant",
    fill: Any = 0,
    **options: Any,
) -> Sample:
    keywords = {"padding_mode": mode, "fill": fill}
    return Sample(id, lambda m: (m.image(*shape), padding), keywords, linear=fill == 0, **options)


def pad_reference(
    image: Array, fill: Array | None, left: int, top: int, right: int, bottom: int, mode: str
) -> Array:
    """Run OpenCV for its dtypes; for others, take the pixels that ``cv2.borderInterpolate`` names."""
    channels = len(image)
    values = np.zeros(channels) if fill is None else np.broadcast_to(fill, channels)
    if image.dtype in (np.uint8, np.float32) and image.size:
        around = top, bottom, left, right
        planes = [
            cv2.copyMakeBorder(p, *around, BORDERS[mode], value=float(v))
            for p, v in zip(np.ascontiguousarray(image), values)
        ]
        return np.stack(planes)
    height, width = image.shape[1:]
    if mode == "constant":
        out = np.empty((channels, height + top + bottom, width + left + right), image.dtype)
        info = np.iinfo(image.dtype) if image.dtype.kind in "iu" else None
        low, high = (info.min, info.max) if info else (-np.inf, np.inf)
        held = [min(max(round(v), low), high) if info else v for v in values.tolist()]
        out[...] = np.array([bool(v) if image.dtype == bool else v for v in held], image.dtype)[:, None, None]
        out[:, top : top + height, left : left + width] = image
        return out

    def taken(before: int, size: int, after: int) -> list[int]:
        return [cv2.borderInterpolate(i, size, BORDERS[mode]) for i in range(-before, size + after)]

    return image[:, taken(top, height, bottom)][:, :, taken(left, width, right)]


_PADDING = "pad: padding must have 4 integers (left, top, right, bottom)"


_FILL = "pad: fill must be a number or one per channel"


PAD = OpSpec(
    "pad",
    samples=(
        _pad("all", 2),
        _pad("pair", (3, 1), fill=0.25),
        _pad("four", (1, 0, 4, 2), fill=(1, 0, 2)),
        _pad("none", 0),
        *(_pad(mode, (2, 3, 1, 0), mode=mode) for mode in ("edge", "reflect", "symmetric", "wrap")),
        *(_pad(f"{mode}-wide", 14, mode=mode) for mode in ("reflect", "symmetric", "wrap")),
        _pad("one-pixel", 2, (1, 1, 1), mode="reflect", edge=True),
        _pad("one-row", (1, 3), (3, 1, 4), mode="symmetric", edge=True),
        _pad("of-nothing", (1, 2), (2, 0, 4), fill=1, edge=True, differentiable=False),
        _pad("no-channels", 1, (0, 3, 3), mode="wrap", edge=True, differentiable=False),
        _pad("five-channels", (2, 1), (5, 4, 4), fill=(1, 2, 3, 4, 5), edge=True, differentiable=False),
        _pad("many-channels", (2, 1), (131, 4, 4), mode="wrap", edge=True, differentiable=False),
    ),
    refused={
        TypeError: {
            "image must be a Tensor, got NoneType": lambda x: pad(None, 1),
            f"{_PADDING}, got float": lambda x: pad(x, 1.5),
            f"{_FILL}, got str": lambda x: pad(x, 1, fill="red"),
            f"{_FILL}, got NoneType": lambda x: pad(x, 1, fill=(1, None, 2)),
            "fill must be real, got torch.complex64": lambda x: pad(x, 1, fill=torch.tensor(1j)),
        },
        ValueError: {
            f"image {DIMENSIONS}, got shape (5, 6)": lambda x: pad(x[0, 0], 1),
            "padding must not be negative, got (-1, -1, -1, -1)": lambda x: pad(x, -1),
            f"{_PADDING}, got 3": lambda x: pad(x, (1, 2, 3)),
            "padding_mode must be one of 'constant', 'edge', 'reflect', 'symmetric', 'wrap', got 'mirror'": lambda x: (
                pad(x, 1, "mirror")
            ),
            "fill must be one value or one for each of 3 channels, got shape (2,)": lambda x: pad(
                x, 1, fill=(1, 2)
            ),
            "fill must be finite for torch.uint8, got inf": ErrorInput(
                lambda x: pad(x, 1, fill=float("inf")), dtype=torch.uint8
            ),
            "fill must be finite for torch.uint8, got nan": ErrorInput(
                lambda x: pad(x, 1, fill=torch.tensor([float("nan")])), dtype=torch.uint8, reads_values=True
            ),
            "image must have at least one pixel for padding_mode 'edge', got shape (2, 3, 0, 6)": lambda x: (
                pad(x[:, :, :0], 1, "edge")
            ),
            "padding must be 32-bit, got (4294967296, 0, 4294967296, 0)": lambda x: pad(x, (2**32, 0)),
            "the padded image must span fewer than 2**31 pixels, got 65541 x 65542": lambda x: pad(x, 2**15),
        },
    },
    of_number=lambda x, v: pad(x, 2, fill=v),
    reference=pad_reference,
    draw=lambda d: _drawn_padding(d, shared=True),
    decomposed={},
    dtypes=ANY_DTYPE,
    reference_name="`cv2.copyMakeBorder`",
    dtype_names="all",
    decomposed_difference="0",
    section="Movement",
    formula=r"y_{c,i,j} = x_{c,\,b(i-\mathrm{top}),\,b(j-\mathrm{left})}",
    border="``mode`` is the function b: constant, edge, reflect, symmetric or wrap",
    transforms=("Pad", "RandomCrop", "RandomZoomOut", "LetterBox", "PadIfNeeded"),
    photo=(
        lambda x: pad(x, (5, 9, 30, 2), "reflect"),
        lambda x: chw(cv2.copyMakeBorder(photo_frame(x), 9, 2, 5, 30, cv2.BORDER_REFLECT_101)),
    ),
    picture=lambda x: imgops.pad(x, 40, padding_mode="reflect"),
    benchmarks=tuple(
        Benchmark(f"pad {mode}", "cv2.copyMakeBorder", bench.pad(mode), every_size=True)
        for mode in ("constant", "reflect")
    ),
)


# -- pad_each ----------------------------------------------------------------------------------------


def _pad_each(
    id: str, mode: str, *each: tuple[int, ...], fill: Any = None, shape: Any = (3, 5, 6), **options: Any
) -> Sample:
    size = shape[1] + each[0][1] + each[0][3], shape[2] + each[0][0] + each[0][2]

    def arguments(m: Maker) -> tuple[Any, ...]:
        return m.image(*shape), None if fill is None else fill(m), rows(m, *each), *size, mode

    return Sample(id, arguments, linear=fill is None, **options)


_BORDERS_OF_EACH = (2, 3, 1, 0), (0, 0, 3, 3), (3, 1, 0, 2)


PAD_EACH = OpSpec(
    "pad_each",
    samples=(
        _pad_each("zeros", "constant", *_BORDERS_OF_EACH),
        _pad_each("color", "constant", *_BORDERS_OF_EACH, fill=lambda m: parameter(m, torch.arange(3.0))),
        _pad_each("colors", "constant", *_BORDERS_OF_EACH, fill=lambda m: m.per_sample(2.0, 5.0)[..., None]),
        *(_pad_each(mode, mode, *_BORDERS_OF_EACH) for mode in ("edge", "reflect", "symmetric", "wrap")),
        _pad_each("wide", "reflect", (14, 0, 2, 9), (3, 9, 13, 0)),
        _pad_each("one-pixel", "reflect", (2, 2, 2, 2), (0, 1, 4, 3), shape=(1, 1, 1), edge=True),
        _pad_each("of-nothing", "constant", (1, 2, 1, 2), shape=(2, 0, 4), edge=True, differentiable=False),
    ),
    refused={
        ValueError: {
            f"{_PADDING}, got shape (2, 2)": lambda x: pad(x, torch.ones(2, 2).long()),
            "pad: padding must have shape (4,), or shape (2, 4), one for each image, got shape (3, 4)": lambda x: (
                pad(x, torch.zeros(3, 4).long(), size=(5, 6))
            ),
            "pad: padding must not be negative, got (1, 0, -1, 0)": ErrorInput(
                lambda x: pad(x, torch.tensor([[0, 0, 0, 0], [1, 0, -1, 0]])), reads_values=True
            ),
            "pad: padding must give the size (5, 7) of every result of the call, got (1, 0, 1, 0)": ErrorInput(
                lambda x: pad(x, torch.tensor([[1, 0, 0, 0], [1, 0, 1, 0]])), reads_values=True
            ),
            "pad: size must be at least that of image (5, 6), got (5, 5)": lambda x: pad(
                x, torch.zeros(4).long(), size=(5, 5)
            ),
            "pad: size must be that of padding (7, 8), got (7, 7)": lambda x: pad(x, 1, size=(7, 7)),
            "pad: fill must be finite for torch.uint8, got inf": ErrorInput(
                lambda x: pad(x, torch.ones(2, 4).long(), fill=torch.tensor(float("inf"))),
                dtype=torch.uint8,
                reads_values=True,
            ),
            "pad: image must have at least one pixel for padding_mode 'edge', got shape (2, 3, 0, 6)": lambda x: (
                pad(x[:, :, :0], torch.ones(4).long(), "edge", size=(2, 8))
            ),
        },
    },
    reference=lambda image, fill, padding, height, width, mode: pad_reference(
        image, fill, *padding.tolist(), mode
    ),
    draw=lambda d: _drawn_padding(d),
    decomposed={},
    dtypes=ANY_DTYPE,
    reference_name="`cv2.copyMakeBorder` of each image",
    dtype_names="all",
    decomposed_difference="0",
)


def _drawn_padding(d: Draw, shared: bool = False) -> tuple[Any, ...]:
    image, mode = d.image(), d.padding_mode()
    padding = torch.tensor([d.whole(0, 50) for _ in range(4)])
    if shared:
        return image, d.choice(None, d.number(0, d.white)), *padding.tolist(), mode
    size = (n + int(padding[i::2].sum()) for i, n in ((1, image.shape[-2]), (0, image.shape[-1])))
    return image, d.choice(None, d.number(0, d.white)), padding, *size, mode


# -- pad_adjoint -------------------------------------------------------------------------------------


def pad_adjoint_reference(grad: Array, left: int, top: int, right: int, bottom: int, mode: str) -> Array:
    """Add every padded pixel to the pixel that ``cv2.borderInterpolate`` names, unless that is -1."""
    height, width = grad.shape[1] - top - bottom, grad.shape[2] - left - right
    out = np.zeros((len(grad), height, width))
    for y in range(grad.shape[1]):
        for x in range(grad.shape[2]):
            i = cv2.borderInterpolate(y - top, height, BORDERS[mode])
            j = cv2.borderInterpolate(x - left, width, BORDERS[mode])
            if i >= 0 and j >= 0:
                out[:, i, j] += grad[:, y, x]
    return out.astype(grad.dtype)


PAD_ADJOINT = OpSpec(
    "pad_adjoint",
    samples=tuple(
        Sample(mode, lambda m, mode=mode: (m.image(3, 9, 8), 2, 3, 1, 0, mode), linear=True)
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap")
    ),
    refused={
        TypeError: {
            "grad must be floating point, got torch.int64": ErrorInput(
                lambda x: ops.pad_adjoint(x, 1, 1, 1, 1, "edge"), dtype=torch.int64
            ),
        },
        ValueError: {
            "padding must leave a part of grad, got (3, 0, 3, 0) for shape (2, 3, 5, 6)": lambda x: (
                ops.pad_adjoint(x, 3, 0, 3, 0, "edge")
            ),
        },
    },
    reference=pad_adjoint_reference,
    tolerance=REAL,
    dtypes=FLOATS[1:],
    reference_name="transpose of pad",
    difference="float32 1e-5, float64 1e-12",
    dtype_names="floats",
    decomposed_difference="1e-5",
)


SPECS = (CROP, CROP_EACH, PASTE, PASTE_EACH, PAD, PAD_EACH, PAD_ADJOINT, ERASE)
