"""CPU kernels of crop, pad, paste and erase."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops._common import layout
from imgops.decomposition._borders import fold_positions
from imgops.decomposition._saturate import saturate
from imgops.kernels.cpu import _pil, _threads, native
from imgops.kernels.cpu._opencv import BORDERS

#: From this many values on, ATen's copy, which uses threads, is faster than NumPy's, whose calls cost less.
_LARGE = 1 << 20

#: Below this many values per image OpenCV's calls cost more than the pixels, so NumPy fills all at once.
_SMALL = 1 << 14

#: OpenCV copies values as any type of the right width; 8-byte values are copied as doubles, bit for bit.
_CARRIER = {1: "u1", 2: "i2", 4: "i4", 8: "f8"}

_WHOLE = (...,)


@_threads.waits_for_memory
def crop(out: Tensor, image: Tensor, left: int, top: int, right: int, bottom: int) -> None:
    if native.crop(out, image, left, top):
        return
    height, width = image.shape[-2:]
    if left >= 0 and top >= 0 and right <= width and bottom <= height:
        _copy(out, _WHOLE, image, (..., slice(top, bottom), slice(left, right)))
        return
    x0, x1 = clip(left, right, width)
    y0, y1 = clip(top, bottom, height)
    out.zero_()
    _copy(out, window(x0 - left, x1 - left, y0 - top, y1 - top), image, window(x0, x1, y0, y1))


@_threads.waits_for_memory
def crop_each(out: Tensor, image: Tensor, box: Tensor, height: int, width: int) -> None:
    if not out.numel():
        return
    rows = _rows(box, image)
    if len(rows) > 1 and native.crop_each(out, image, np.array([row[:2] for row in rows], np.int64)):
        return
    for target, source, row in _with_rows(rows, out, image):
        crop(target, source, *row)


def _rows(value: Tensor, image: Tensor) -> list[list[int]]:
    """Return the numbers for each image, or one list of numbers for all images."""
    length = value.shape[-1]
    if value.numel() != length:
        value = value.expand(*image.shape[:-3], length)
    return value.reshape(-1, length).tolist()  # type: ignore[no-any-return]


def _with_rows(rows: list[list[int]], out: Tensor, *images: Tensor | None) -> Iterator[tuple[Any, ...]]:
    """Yield the output, the images and the numbers of each sample; all samples together share one row."""
    if len(rows) == 1:
        yield out, *images, rows[0]
        return
    for place, row in zip(np.ndindex(*out.shape[:-3]), rows, strict=True):
        yield out[place], *(None if x is None else x[place] for x in images), row


@_threads.waits_for_memory
def paste(out: Tensor, image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> None:
    _copy(out, _WHOLE, image, _WHOLE)
    paste_onto(out, source, mask, left, top)


@_threads.waits_for_memory
def paste_each(out: Tensor, image: Tensor, source: Tensor, mask: Tensor | None, position: Tensor) -> None:
    _copy(out, _WHOLE, image, _WHOLE)
    if out.numel():
        for target, patch, weight, (left, top) in _with_rows(_rows(position, image), out, source, mask):
            paste_onto(target, patch, weight, left, top)


def paste_onto(out: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> None:
    x0, x1 = clip(left, left + source.shape[-1], out.shape[-1])
    y0, y1 = clip(top, top + source.shape[-2], out.shape[-2])
    target = window(x0, x1, y0, y1)
    cut = window(x0 - left, x1 - left, y0 - top, y1 - top)
    if mask is None:
        _copy(out, target, source, cut)
    elif x0 == x1 or y0 == y1 or out.numel() == 0:
        return
    elif mask.dtype == torch.bool:
        chosen = layout.array(mask)[cut]
        np.copyto(layout.array(out)[target], layout.array(source)[cut], where=chosen)
    elif out.dtype == torch.uint8:
        _paste_levels(out, source, _levels(mask), left, top)
    else:
        _blend(out.detach()[target], source.detach()[cut], mask.detach()[cut])


def clip(low: int, high: int, size: int) -> tuple[int, int]:
    """Return the part of ``[low, high)`` that lies in ``[0, size)``, as ``a <= b``."""
    a = min(max(low, 0), size)
    return a, max(a, min(high, size))


def window(x0: int, x1: int, y0: int, y1: int) -> tuple[Any, ...]:
    return (..., slice(y0, y1), slice(x0, x1))


def _copy(out: Tensor, to: tuple[Any, ...], image: Tensor, at: tuple[Any, ...]) -> None:
    if out.numel() >= _LARGE or out.element_size() > 8:
        out[to].copy_(image.detach()[at])
    else:
        source, target = layout.array(image), layout.array(out)
        np.copyto(target if to is _WHOLE else target[to], source if at is _WHOLE else source[at])


def _levels(mask: Tensor) -> Tensor:
    """Return a mask as PIL uses it, in levels from 0 to 255.

    A float is rounded to the nearest level; NaN keeps the image.
    """
    if mask.dtype == torch.uint8:
        return mask
    return mask.detach().float().nan_to_num(0.0).clamp(0, 1).mul(255).round().to(torch.uint8)


def _paste_levels(out: Tensor, source: Tensor, mask: Tensor, left: int, top: int) -> None:
    """Blend by PIL, which writes into the planes of ``out``.

    PIL blends each byte separately, so an interleaved image can be passed as one wide plane.
    """
    masks = layout.planes(mask.contiguous())
    if layout.writes_interleaved(out):
        channels = out.shape[-3]
        canvas, patches = _wide(out), _wide(layout.in_format(source, True))
        # OpenCV repeats each value in a row many times faster than NumPy.
        masks = (
            np.repeat(masks, channels, axis=-1)
            if channels > 4
            else np.stack([cv2.merge([mask] * channels).reshape(len(mask), -1) for mask in masks])
        )
        left = left * channels
    else:
        canvas, patches = layout.planes(out), layout.planes(source.contiguous())
    repeat = len(canvas) // len(masks)
    for i, plane in enumerate(canvas):
        if i % repeat == 0:
            level = _pil.view(masks[i // repeat])
        image = _pil.view(plane)
        image.readonly = 0  # PIL maps memory as read-only; this memory is ours to write
        image.paste(_pil.view(patches[i]), (left, top), level)


def _wide(image: Tensor) -> np.ndarray:
    """Return an interleaved image as planes of width W * C."""
    frames = layout.frames(image)
    return frames.reshape(*frames.shape[:2], -1) if frames.size else frames[..., 0]


def _blend(part: Tensor, source: Tensor, mask: Tensor) -> None:
    """Compute ``part = part * (1 - mask) + source * mask`` in float32 at least, rounded once."""
    working = torch.float64 if part.dtype == torch.float64 else torch.float32
    weight = mask.to(working)
    if mask.dtype == torch.uint8:
        weight = weight / 255
    above = source.to(working) * weight
    if part.dtype == working:
        part.mul_(1 - weight).add_(above)
    else:
        part.copy_(part.to(working).mul_(1 - weight).add_(above))


@_threads.waits_for_memory
def pad(
    out: Tensor,
    image: Tensor,
    fill: Tensor | None,
    left: int,
    top: int,
    right: int,
    bottom: int,
    padding_mode: str,
) -> None:
    if padding_mode == "constant" and fill is None and native.crop(out, image, -left, -top):
        return  # a crop has zeros outside of the image
    interleaved = layout.writes_interleaved(out)
    channels = out.shape[-3]
    values = None if fill is None or padding_mode != "constant" else saturate(fill.detach(), image.dtype)
    scalars: list[Scalar] | None = [_ZERO]
    if out.element_size() > 8 or image.numel() == 0 or (interleaved and channels > layout.MAX_CHANNELS):
        scalars = None
    elif padding_mode == "constant":
        calls = out.numel() // math.prod(out.shape[-3:] if interleaved else out.shape[-2:])
        many_small = calls > 4 and out.numel() < calls * _SMALL
        scalars = None if many_small else _scalars(values, channels, interleaved)
    if scalars is not None:
        if interleaved:
            sources, targets = layout.frames(image), layout.frames(out)
        else:
            sources, targets = layout.planes(image.contiguous()), layout.planes(out)
        if scalars[0] is _ZERO or padding_mode != "constant":  # bits are copied, and the bits of 0 are 0
            carrier = _CARRIER[out.element_size()]
            sources, targets = sources.view(carrier), targets.view(carrier)
        flag = BORDERS[padding_mode]
        for source, target, value in zip(sources, targets, cycle(scalars), strict=False):
            cv2.copyMakeBorder(source, top, bottom, left, right, flag, dst=target, value=value)
    elif padding_mode == "constant":
        # Any dtype and number of channels, also with a fill for each sample: NumPy broadcasts it.
        height, width = image.shape[-2:]
        color: Any = 0 if values is None else layout.array(values)[..., None, None]
        whole = layout.array(out)
        whole[..., :top, :] = color
        whole[..., top + height :, :] = color
        whole[..., top : top + height, :left] = color
        whole[..., top : top + height, left + width :] = color
        _copy(out, window(left, left + width, top, top + height), image, _WHOLE)
    elif out.numel():
        rows = _repeated_pixels(padding_mode, image.shape[-2], top, bottom)
        columns = _repeated_pixels(padding_mode, image.shape[-1], left, right)
        out.copy_(image.detach()[..., rows[:, None], columns])


@_threads.waits_for_memory
def pad_each(
    out: Tensor,
    image: Tensor,
    fill: Tensor | None,
    padding: Tensor,
    height: int,
    width: int,
    padding_mode: str,
) -> None:
    if not out.numel():
        return
    rows = _rows(padding, image)
    colors = None
    if fill is not None and len(rows) > 1:
        colors = fill.expand(image.shape[:-2]).reshape(len(rows), -1)
    for i, (target, source, sides) in enumerate(_with_rows(rows, out, image)):
        left, top, right, bottom = sides
        color = fill if colors is None else colors[i]
        pad(target, source, color, left, top, right, bottom, padding_mode)


def _repeated_pixels(padding_mode: str, size: int, before: int, after: int) -> Tensor:
    """Return the index of the pixel that each pixel of a padded axis repeats."""
    return fold_positions(
        padding_mode, torch.arange(-before, size + after, dtype=torch.int64, device="cpu"), size
    )


Scalar = tuple[float, ...]
_ZERO: Scalar = (0.0, 0.0, 0.0, 0.0)


def _scalars(values: Tensor | None, channels: int, interleaved: bool) -> list[Scalar] | None:
    """Return a fill as OpenCV scalars (four doubles) of planes or frames; None where they cannot hold it."""
    if interleaved and channels > 4:
        return None
    if values is None:
        return [_ZERO]
    if values.dtype not in (torch.uint8, torch.float32, torch.float64) or values.ndim > 1:
        return None
    numbers = values.expand(channels).tolist()
    if interleaved:
        return [tuple(numbers)]
    return [(v, v, v, v) for v in numbers]


def pad_adjoint(
    out: Tensor, grad: Tensor, left: int, top: int, right: int, bottom: int, padding_mode: str
) -> None:
    """Add every padded pixel to the pixel that it repeats, by ATen, because PIL and OpenCV cannot."""
    height, width = out.shape[-2:]
    if padding_mode == "constant" or out.numel() == 0:
        crop(out, grad, left, top, left + width, top + height)
        return
    working = torch.float64 if grad.dtype == torch.float64 else torch.float32
    rows = _repeated_pixels(padding_mode, height, top, bottom)
    columns = _repeated_pixels(padding_mode, width, left, right)
    out.copy_(_fold(_fold(grad.detach().to(working), -2, top, height, rows), -1, left, width, columns))


def _fold(grad: Tensor, dim: int, before: int, size: int, index: Tensor) -> Tensor:
    total = grad.narrow(dim, before, size).clone()
    after = before + size
    for start, length in ((0, before), (after, len(index) - after)):
        if length:
            strip = slice(start, start + length)
            total.index_add_(dim, index[strip], grad.narrow(dim, start, length))
    return total


@_threads.waits_for_memory
def erase(out: Tensor, image: Tensor, fill: Tensor, box: Tensor) -> None:
    """Erase boxes by NumPy, whose slicing costs a tenth of a tensor's."""
    target, pixels = layout.array(out), layout.array(fill)
    np.copyto(target, layout.array(image))
    if box.numel() == 4:
        _write_box(target, pixels, box.flatten().tolist())
        return
    batch = image.shape[:-3]
    pixels = np.broadcast_to(pixels, (*batch, *pixels.shape[-3:]))
    for place, one in zip(np.ndindex(*batch), box.expand(*batch, 4).reshape(-1, 4).tolist(), strict=True):
        _write_box(target[place], pixels[place], one)


def _write_box(target: np.ndarray, pixels: np.ndarray, box: list[int]) -> None:
    """Write ``pixels`` into a box of ``target``; a single pixel fills all of the box."""
    x0, x1 = clip(box[0], box[2], target.shape[-1])
    y0, y1 = clip(box[1], box[3], target.shape[-2])
    if x0 >= x1 or y0 >= y1:
        return
    columns = slice(x0, x1) if pixels.shape[-1] == target.shape[-1] else slice(None)
    rows = slice(y0, y1) if pixels.shape[-2] == target.shape[-2] else slice(None)
    target[..., y0:y1, x0:x1] = pixels[..., rows, columns]
