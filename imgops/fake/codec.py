"""Fakes of encode_image and the decoders, whose output sizes depend on the data, and of jpeg and webp."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from imgops._common import check
from imgops._common.check import fail, violates
from imgops.fake._output import output

#: For each format, the numbers of channels that it can hold, and its longest side.
FORMATS = {"jpeg": ((1, 3), 65500), "png": ((1, 2, 3, 4), check.INT32_MAX), "webp": ((3, 4), 16383)}
#: The modes of 8 bits, and those of files of 16 bits, with their numbers of channels.
MODES = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "L;16": 1, "LA;16": 2, "RGB;16": 3, "RGBA;16": 4}


def is_deep(mode: str) -> bool:
    """Return whether a mode is one of 16 bits."""
    return mode.endswith(";16")


def dtype_of(mode: str) -> torch.dtype:
    """Return the dtype of decoded pixels."""
    return torch.uint16 if is_deep(mode) else torch.uint8


#: The most bytes of an encoded file, and the longest side of a decoded image.
_MOST = check.INT32_MAX


def encode_image(new_size: Callable[..., int], image: Tensor, quality: int, format: str) -> Tensor:
    op = "encode_image"
    check.choice(op, "format", format, FORMATS)
    check.strided(op, "image", image)
    if image.ndim != 3:
        check.fail_shape(op, "image must be (C, H, W)", image)
    channels, most = FORMATS[format]
    deep = image.dtype == torch.uint16
    if deep and format != "png":
        fail(TypeError, op, f"image must be uint8 for {format}", image.dtype)
    if not deep and image.dtype != torch.uint8:
        fail(TypeError, op, "image must be uint8, or uint16 for png", image.dtype)
    check.channels(op, image, (1, 3, 4) if deep else channels, f" for {format}{' of uint16' if deep else ''}")
    check.not_empty(op, "image", image)
    _sides(op, image, most, f" for {format}")
    if violates(quality >= 1, quality <= 100):
        fail(ValueError, op, "quality must be from 1 to 100", check.number(quality))
    return image.new_empty((new_size(min=1, max=_MOST),), dtype=torch.uint8)


def decode_image(
    new_size: Callable[..., int],
    data: Tensor,
    max_pixels: int,
    mode: str,
    apply_exif_orientation: bool,
    channels_last: bool,
) -> Tensor:
    _check_file(data, max_pixels, mode)
    height, width = new_size(min=1, max=_MOST), new_size(min=1, max=_MOST)
    return decoded(data, dtype_of(mode), (MODES[mode], height, width), channels_last)


def decode_region(
    new_size: Callable[..., int],
    data: Tensor,
    box: Tensor,
    max_pixels: int,
    mode: str,
    apply_exif_orientation: bool,
    channels_last: bool,
) -> Tensor:
    _check_file(data, max_pixels, mode)
    must = "box must have 4 integers (left, top, right, bottom)"
    if box.dtype.is_floating_point or box.dtype.is_complex or box.dtype == torch.bool:
        fail(TypeError, "decode_image", must, box.dtype)
    if box.ndim != 1 or violates(box.shape[0] == 4):
        check.fail_shape("decode_image", must, box)
    height, width = new_size(min=1, max=_MOST), new_size(min=1, max=_MOST)
    return decoded(data, dtype_of(mode), (MODES[mode], height, width), channels_last)


def decode_packed(
    new_size: Callable[..., int],
    data: Tensor,
    ends: Tensor,
    boxes: Tensor,
    max_pixels: int,
    mode: str,
    apply_exif_orientation: bool,
) -> Tensor:
    _check_file(data, max_pixels, mode)
    for name, value in (("offsets", ends), ("boxes", boxes)):
        check.dtype("decode_images", name, value, torch.int64)
    if boxes.ndim != 2 or violates(boxes.shape[1] == 4):
        check.fail_shape("decode_images", "boxes must have shape (N, 4), one box for each file", boxes)
    if ends.ndim != 1 or violates(ends.shape[0] == boxes.shape[0] + 1):
        check.fail_shape("decode_images", "offsets must have one number more than there are files", ends)
    return data.new_empty((new_size(min=0, max=2**62),), dtype=dtype_of(mode))


def decode_frames(
    new_size: Callable[..., int],
    data: Tensor,
    frames: Tensor,
    max_pixels: int,
    mode: str,
    is_slice: bool,
    apply_exif_orientation: bool,
    channels_last: bool,
) -> Tensor:
    op = "decode_frames"
    _check_file(data, max_pixels, mode, op)
    check.dtype(op, "frames", frames, torch.int64)
    if frames.ndim != 1 or (is_slice and violates(frames.shape[0] == 3)):
        must = "frames must have 3 numbers of a slice" if is_slice else "frames must have 1 dimension"
        check.fail_shape(op, must, frames)
    count = new_size(min=0, max=_MOST) if is_slice else frames.shape[0]
    height, width = new_size(min=1, max=_MOST), new_size(min=1, max=_MOST)
    return decoded(data, dtype_of(mode), (count, MODES[mode], height, width), channels_last)


def box_of_integers(box: tuple[int, ...]) -> None:
    """Check a box whose integers are known."""
    left, top, right, bottom = box
    if violates(left >= 0, top >= 0, right > left, bottom > top):
        must = "box must have 0 <= left < right and 0 <= top < bottom"
        fail(ValueError, "decode_image", must, check.numbers(*box))


def _check_file(data: Tensor, max_pixels: int, mode: str, op: str = "decode_image") -> None:
    check.choice(op, "mode", mode, MODES)
    check.strided(op, "data", data)
    check.dtype(op, "data", data, torch.uint8)
    if data.ndim != 1:
        check.fail_shape(op, "data must have 1 dimension", data)
    check.integer(op, "max_pixels must be an integer", max_pixels)
    if violates(max_pixels >= 1):
        fail(ValueError, op, "max_pixels must be at least 1", check.number(max_pixels))


def decoded(data: Tensor, dtype: torch.dtype, shape: tuple[int, ...], channels_last: bool) -> Tensor:
    """Allocate an image ``(C, H, W)`` or several ``(T, C, H, W)``; the kernels call this, too."""
    if channels_last:
        *leading, channels, height, width = shape
        return data.new_empty((*leading, height, width, channels), dtype=dtype).movedim(-1, -3)
    return data.new_empty(shape, dtype=dtype)


def jpeg(image: Tensor, quality: Tensor) -> Tensor:
    return _through_a_file("jpeg", image, quality, check.JPEG)


def webp(image: Tensor, quality: Tensor) -> Tensor:
    return _through_a_file("webp", image, quality, check.WEBP)


def _through_a_file(op: str, image: Tensor, quality: Tensor, known: check.Channels) -> Tensor:
    out = output(op, image, known, quality=quality)
    _sides(op, image, FORMATS[op][1])
    return out


def _sides(op: str, image: Tensor, most: int, when: str = "") -> None:
    height, width = image.shape[-2:]
    if violates(height <= most, width <= most):
        must = f"image must have sides of at most {most}{when}"
        fail(ValueError, op, must, check.numbers(height, width))
