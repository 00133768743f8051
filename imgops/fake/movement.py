"""Fakes of crop, pad, paste and erase."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops._common import check, layout
from imgops._common.check import fail, violates


def crop(image: Tensor, left: int, top: int, right: int, bottom: int) -> Tensor:
    check.image("crop", "image", image)
    height, width = bottom - top, right - left
    if not (type(height) is type(width) is int and _is_box(left, top, right, bottom)):
        box = left, top, right, bottom
        if violates(right >= left):
            fail(ValueError, "crop", "box must have right >= left", check.numbers(*box))
        if violates(bottom >= top):
            fail(ValueError, "crop", "box must have bottom >= top", check.numbers(*box))
        if not all(map(check.is_int32, box)):
            fail(ValueError, "crop", "box must have 32-bit coordinates", check.numbers(*box))
        check.pixels("crop", "box", bottom - top, right - left)
    return layout.empty(image, height, width)


def size_of_crop(image: Tensor, left: int, top: int, right: int, bottom: int) -> tuple[int, ...]:
    """Return the part of a box that the output depends on: the size of a valid box, or the whole box."""
    if type(left) is type(top) is type(right) is type(bottom) is int and _is_box(left, top, right, bottom):
        return right - left, bottom - top
    return left, top, right, bottom


def _is_box(left: int, top: int, right: int, bottom: int) -> bool:
    low, high = check.INT32_MIN, check.INT32_MAX
    ordered = low <= left <= right <= high and low <= top <= bottom <= high
    return ordered and (bottom - top) * (right - left) <= check.MAX_PIXELS


def crop_each(image: Tensor, box: Tensor, height: int, width: int) -> Tensor:
    check.image("crop", "image", image)
    _size("crop", height, width)
    _rows("crop", "box", box, image, 4)
    return layout.empty(image, height, width)


def _size(op: str, height: int, width: int) -> None:
    if violates(height >= 0, width >= 0):
        fail(ValueError, op, "size must not be negative", check.numbers(height, width))
    check.pixels(op, "size", height, width)


def _rows(op: str, name: str, value: Tensor, image: Tensor, length: int) -> None:
    """Check that there is a row of integers for all images, or one for each."""
    check.dtype(op, name, value, torch.int64)
    check.per_sample_parameter(op, name, value, image, length)


def paste(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> Tensor:
    check_paste("paste", image, source, mask, left, top)
    return _pasted(image, source)


def paste_each(image: Tensor, source: Tensor, mask: Tensor | None, position: Tensor) -> Tensor:
    _check_images("paste", image, source, mask)
    _rows("paste", "position", position, image, 2)
    return _pasted(image, source)


def _pasted(image: Tensor, source: Tensor) -> Tensor:
    height, width = image.shape[-2:]
    if image.is_contiguous():
        return layout.empty(image, height, width, interleaved=False)
    # If the strides of image fit no format (zeros expanded from one number), source decides.
    interleaved = layout.is_interleaved(image) or layout.is_interleaved(source)
    return layout.empty(image, height, width, interleaved=interleaved)


def check_paste(op: str, image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> None:
    _check_images(op, image, source, mask)
    check_position(op, left, top)


def _check_images(op: str, image: Tensor, source: Tensor, mask: Tensor | None) -> None:
    check.image(op, "image", image)
    check.image(op, "source", source)
    check.same_dtype_and_device(op, "source", source, "image", image)
    check.same_channels(op, "source", source, "image", image)
    check.batch(op, "source", source, "image", image)
    if mask is not None:
        check_mask(op, image, mask, "source", source)


def check_position(op: str, left: int, top: int) -> None:
    if not (check.is_int32(left) and check.is_int32(top)):
        fail(ValueError, op, "position must have 32-bit coordinates", check.numbers(left, top))


def check_mask(op: str, image: Tensor, mask: Tensor, name: str, source: Tensor) -> None:
    """Check the mask of a paste; ``name`` is the argument whose pixels it weights."""
    check.image(op, "mask", mask)
    check.same_device(op, "mask", mask, "image", image)
    if image.dtype == torch.uint8 or image.dtype.is_floating_point:
        known = mask.dtype in (torch.uint8, torch.bool) or mask.dtype.is_floating_point
        must = "mask must be floating point, uint8 or bool"
    else:
        known = mask.dtype == torch.bool
        must = f"mask must be bool for an image of {image.dtype}"
    if not known:
        fail(TypeError, op, must, mask.dtype)
    check_plane(op, "mask", mask, source, name)
    check.batch(op, "mask", mask, "image", image)


def check_plane(op: str, name: str, value: Tensor, source: Tensor, source_name: str = "source") -> None:
    """Check that ``value`` has one number for each pixel of ``source``."""
    if value.shape[-3] != 1 or value.shape[-2:] != source.shape[-2:]:
        height, width = check.numbers(*source.shape[-2:])
        must = f"{name} must be (..., 1, {height}, {width}) as {source_name} is"
        fail(ValueError, op, must, check.shape(value))


def pad(
    image: Tensor, fill: Tensor | None, left: int, top: int, right: int, bottom: int, padding_mode: str
) -> Tensor:
    check.image("pad", "image", image)
    _check_padding("pad", left, top, right, bottom, padding_mode)
    _check_border(image, fill, padding_mode)
    height, width = image.shape[-2] + top + bottom, image.shape[-1] + left + right
    check.pixels("pad", "the padded image", height, width)
    return layout.empty(image, height, width)


def pad_each(
    image: Tensor, fill: Tensor | None, padding: Tensor, height: int, width: int, padding_mode: str
) -> Tensor:
    check.image("pad", "image", image)
    check.border("pad", padding_mode)
    _check_border(image, fill, padding_mode)
    if violates(height >= image.shape[-2], width >= image.shape[-1]):
        must = f"size must be at least that of image {check.written(image.shape[-2:])}"
        fail(ValueError, "pad", must, check.numbers(height, width))
    check.pixels("pad", "the padded image", height, width)
    _rows("pad", "padding", padding, image, 4)
    return layout.empty(image, height, width)


def _check_border(image: Tensor, fill: Tensor | None, padding_mode: str) -> None:
    if padding_mode != "constant" and violates(image.shape[-2] * image.shape[-1] > 0):
        must = f"image must have at least one pixel for padding_mode {padding_mode!r}"
        check.fail_shape("pad", must, image)
    if fill is not None:
        check.fill("pad", image, fill)


def pad_adjoint(grad: Tensor, left: int, top: int, right: int, bottom: int, padding_mode: str) -> Tensor:
    check.image("pad_adjoint", "grad", grad)
    check.floating("pad_adjoint", "grad", grad)
    _check_padding("pad_adjoint", left, top, right, bottom, padding_mode)
    height, width = grad.shape[-2] - top - bottom, grad.shape[-1] - left - right
    smallest = 0 if padding_mode == "constant" else 1
    if violates(height >= smallest, width >= smallest):
        got = f"{check.numbers(left, top, right, bottom)} for shape {check.shape(grad)}"
        fail(ValueError, "pad_adjoint", "padding must leave a part of grad", got)
    return layout.empty(grad, height, width)


def _check_padding(op: str, left: int, top: int, right: int, bottom: int, padding_mode: str) -> None:
    check.border(op, padding_mode)
    padding = left, top, right, bottom
    if violates(*(side >= 0 for side in padding)):
        fail(ValueError, op, "padding must not be negative", check.numbers(*padding))
    if not all(map(check.is_int32, padding)):
        fail(ValueError, op, "padding must be 32-bit", check.numbers(*padding))


def erase(image: Tensor, fill: Tensor, box: Tensor) -> Tensor:
    check.image("erase", "image", image)
    check.image("erase", "fill", fill)
    check.same_dtype_and_device("erase", "fill", fill, "image", image)
    check.batch("erase", "fill", fill, "image", image)
    check.same_channels("erase", "fill", fill, "image", image)
    if tuple(fill.shape[-2:]) != (1, 1) and fill.shape[-2:] != image.shape[-2:]:
        height, width = check.numbers(*image.shape[-2:])
        check.fail_shape("erase", f"fill must be one color, or an image of {height} x {width}", fill)
    check.dtype("erase", "box", box, torch.int64)
    check.per_sample_parameter("erase", "box", box, image, 4)
    return layout.empty(image, *image.shape[-2:])
