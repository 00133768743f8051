"""Fakes of the operators that mix the channels of a pixel."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops import _check, _layout
from imgops._check import fail


def image_like(op: str, image: Tensor, *, channels: bool = False) -> Tensor:
    _check.image(op, "image", image)
    _check.levels_or_floats(op, image)
    if channels:
        _gray_or_rgb(op, image)
    return _layout.empty(image, *image.shape[-2:])


def _gray_or_rgb(op: str, image: Tensor) -> None:
    if image.shape[-3] not in (1, 3):
        fail(ValueError, op, "image must have 1 or 3 channels", _check.number(image.shape[-3]))


def adjust_brightness(image: Tensor, factor: Tensor) -> Tensor:
    out = image_like("adjust_brightness", image)
    _check.amounts("adjust_brightness", "factor", factor, image)
    return out


def adjust_contrast(image: Tensor, factor: Tensor) -> Tensor:
    out = image_like("adjust_contrast", image, channels=True)
    _check.amounts("adjust_contrast", "factor", factor, image)
    return out


def adjust_saturation(image: Tensor, factor: Tensor) -> Tensor:
    out = image_like("adjust_saturation", image, channels=True)
    _check.amounts("adjust_saturation", "factor", factor, image)
    return out


def adjust_hue(image: Tensor, factor: Tensor) -> Tensor:
    out = image_like("adjust_hue", image, channels=True)
    _check.amounts("adjust_hue", "factor", factor, image)
    return out


def grayscale(image: Tensor, channels: int) -> Tensor:
    image_like("grayscale", image, channels=True)
    if channels not in (1, 3):
        fail(ValueError, "grayscale", "channels must be 1 or 3", _check.number(channels))
    return _layout.empty(image, *image.shape[-2:], channels=channels)


def color_matrix(image: Tensor, matrix: Tensor) -> Tensor:
    image_like("color_matrix", image)
    channels = image.shape[-3]
    if matrix.ndim < 2 or matrix.shape[-1] not in (channels, channels + 1):
        channels = _check.number(channels)
        must = f"matrix must have {channels} or {channels + 1} columns"
        fail(ValueError, "color_matrix", must, f"shape {_check.shape(matrix)}")
    _check.amounts("color_matrix", "matrix", matrix, image, *matrix.shape[-2:])
    return _layout.empty(image, *image.shape[-2:], channels=matrix.shape[-2])


#: The steps that a sequence may have.
STEPS = (
    "brightness",
    "contrast",
    "saturation",
    "hue",
    "sharpness",
    "posterize",
    "solarize",
    "invert",
    "autocontrast",
    "equalize",
)


def color_sequence(image: Tensor, order: Tensor, amounts: Tensor, names: str) -> Tensor:
    each = names.split(",")
    for name in each:
        _check.choice("color_sequence", "names", name, STEPS)
    out = image_like(
        "color_sequence", image, channels=any(n in ("contrast", "saturation", "hue") for n in each)
    )
    if order.ndim < 1:
        fail(
            ValueError,
            "color_sequence",
            "order must have at least 1 dimension",
            f"shape {_check.shape(order)}",
        )
    if order.dtype != torch.int64:
        fail(TypeError, "color_sequence", "order must be int64", order.dtype)
    _check.amounts("color_sequence", "order", order, image, order.shape[-1])
    _check.amounts("color_sequence", "amounts", amounts, image, len(each))
    return out
