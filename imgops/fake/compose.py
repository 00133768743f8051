"""Fakes of crop, paste and pad."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops import _check, _layout

PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def crop(image: Tensor, left: int, top: int, right: int, bottom: int) -> Tensor:
    _check.image("crop", "image", image)
    height, width = bottom - top, right - left
    if not (type(height) is type(width) is int and _is_box(left, top, right, bottom)):
        _crop_box(left, top, right, bottom)
    return _layout.empty(image, height, width)


def _is_box(left: int, top: int, right: int, bottom: int) -> bool:
    low, high = _check.INT32_MIN, _check.INT32_MAX
    ordered = low <= left <= right <= high and low <= top <= bottom <= high
    return ordered and (bottom - top) * (right - left) <= _check.MAX_PIXELS


def _crop_box(left: int, top: int, right: int, bottom: int) -> None:
    """Symbolic boxes get their guards here, wrong ones their message."""
    got = (left, top, right, bottom)
    _check.require(right >= left, "crop", "box must have right >= left", got)
    _check.require(bottom >= top, "crop", "box must have bottom >= top", got)
    for low, high in ((left, right), (top, bottom)):
        _check.require(low >= _check.INT32_MIN, "crop", "box must have 32-bit coordinates", got)
        _check.require(high <= _check.INT32_MAX, "crop", "box must have 32-bit coordinates", got)
    _check.pixels("crop", "box", bottom - top, right - left)


def paste(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> Tensor:
    _check.image("paste", "image", image)
    _check.image("paste", "source", source)
    _check.like("paste", "source", source, "image", image)
    channels = image.shape[-3]
    if source.shape[-3] != channels:
        must = f"source must have the channels of image ({channels})"
        _check.fail(ValueError, "paste", must, source.shape[-3])
    _check.batch("paste", "source", source, "image", image)
    for at in (left, top):
        in_range = at >= _check.INT32_MIN, at <= _check.INT32_MAX
        for holds in in_range:
            _check.require(holds, "paste", "position must have 32-bit coordinates", (left, top))
    if mask is not None:
        _paste_mask(image, source, mask)
    like = image if _layout.has_format(image) else source
    return _layout.empty(
        image, image.shape[-2], image.shape[-1], interleaved=_layout.is_interleaved(like)
    )


def _paste_mask(image: Tensor, source: Tensor, mask: Tensor) -> None:
    _check.image("paste", "mask", mask)
    _check.same_device("paste", "mask", mask, "image", image)
    if image.dtype == torch.uint8 or image.dtype.is_floating_point:
        known = mask.dtype in (torch.uint8, torch.bool) or mask.dtype.is_floating_point
        must = "mask must be floating point, uint8 or bool"
    else:
        known = mask.dtype == torch.bool
        must = f"mask must be bool for an image of {image.dtype}"
    if not known:
        _check.fail(TypeError, "paste", must, mask.dtype)
    height, width = source.shape[-2:]
    _check.require(
        mask.shape[-3] == 1 and mask.shape[-2] == height and mask.shape[-1] == width,
        "paste",
        f"mask must be (..., 1, {height}, {width}) as source is",
        _check.shape(mask),
    )
    _check.batch("paste", "mask", mask, "image", image)


def pad(
    image: Tensor, fill: Tensor | None, left: int, top: int, right: int, bottom: int, mode: str
) -> Tensor:
    _check.image("pad", "image", image)
    _padding("pad", left, top, right, bottom, mode)
    height, width = image.shape[-2:]
    if mode != "constant":
        _check.require(
            height * width > 0,
            "pad",
            f"image must have at least one pixel for mode {mode!r}",
            f"shape {_check.shape(image)}",
        )
    if fill is not None:
        _fill(image, fill)
    _check.pixels("pad", "the padded image", height + top + bottom, width + left + right)
    return _layout.empty(image, height + top + bottom, width + left + right)


def pad_adjoint(
    grad: Tensor, left: int, top: int, right: int, bottom: int, mode: str
) -> Tensor:
    _check.image("pad_adjoint", "grad", grad)
    _check.floating("pad_adjoint", "grad", grad)
    _padding("pad_adjoint", left, top, right, bottom, mode)
    height, width = grad.shape[-2] - top - bottom, grad.shape[-1] - left - right
    smallest = 0 if mode == "constant" else 1
    _check.require(
        height >= smallest and width >= smallest,
        "pad_adjoint",
        "padding must leave a part of grad",
        f"{(left, top, right, bottom)} for shape {_check.shape(grad)}",
    )
    return _layout.empty(grad, height, width)


def _padding(op: str, left: int, top: int, right: int, bottom: int, mode: str) -> None:
    _check.choice(op, "mode", mode, PAD_MODES)
    got = (left, top, right, bottom)
    positive = left >= 0 and top >= 0 and right >= 0 and bottom >= 0
    _check.require(positive, op, "padding must not be negative", got)
    limit = _check.INT32_MAX
    small = left <= limit and top <= limit and right <= limit and bottom <= limit
    _check.require(small, op, "padding must be 32-bit", got)


def _fill(image: Tensor, fill: Tensor) -> None:
    """``fill`` broadcasts to ``(..., C)``: one value, one a channel, or one a sample and channel."""
    _check.parameter("pad", "fill", fill)
    if fill.dtype.is_complex and not image.dtype.is_complex:
        _check.fail(TypeError, "pad", "fill must be real", fill.dtype)
    target = image.shape[:-2]
    fits = fill.ndim <= len(target)
    for have, want in zip(reversed(fill.shape), reversed(target), strict=False):
        fits = fits and (have == 1 or have == want)
    _check.require(
        fits,
        "pad",
        f"fill must be one value or one for each of {target[-1]} channels",
        f"shape {_check.shape(fill)}",
    )
