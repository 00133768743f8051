"""Fakes of the operators that mix the channels of a pixel."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops._common import check, layout
from imgops._common.check import fail
from imgops.decomposition.color import STEPS
from imgops.fake._images import image_like


def adjust_brightness(image: Tensor, factor: Tensor) -> Tensor:
    out = image_like("adjust_brightness", image)
    check.per_sample_parameter("adjust_brightness", "factor", factor, image)
    return out


def adjust_contrast(image: Tensor, factor: Tensor) -> Tensor:
    out = image_like("adjust_contrast", image, gray_or_rgb=True)
    check.per_sample_parameter("adjust_contrast", "factor", factor, image)
    return out


def adjust_saturation(image: Tensor, factor: Tensor) -> Tensor:
    out = image_like("adjust_saturation", image, gray_or_rgb=True)
    check.per_sample_parameter("adjust_saturation", "factor", factor, image)
    return out


def adjust_hue(image: Tensor, factor: Tensor) -> Tensor:
    out = image_like("adjust_hue", image, gray_or_rgb=True)
    check.per_sample_parameter("adjust_hue", "factor", factor, image)
    return out


def grayscale(image: Tensor, num_output_channels: int) -> Tensor:
    image_like("grayscale", image, gray_or_rgb=True)
    if num_output_channels not in (1, 3):
        fail(ValueError, "grayscale", "num_output_channels must be 1 or 3", check.number(num_output_channels))
    return layout.empty(image, *image.shape[-2:], channels=num_output_channels)


def color_matrix(image: Tensor, matrix: Tensor) -> Tensor:
    image_like("color_matrix", image)
    channels = image.shape[-3]
    if matrix.ndim < 2 or matrix.shape[-1] not in (channels, channels + 1):
        channels = check.number(channels)
        must = f"matrix must have {channels} or {channels + 1} columns"
        fail(ValueError, "color_matrix", must, f"shape {check.shape(matrix)}")
    check.per_sample_parameter("color_matrix", "matrix", matrix, image, *matrix.shape[-2:])
    return layout.empty(image, *image.shape[-2:], channels=matrix.shape[-2])


def color_sequence(image: Tensor, order: Tensor, parameters: Tensor, names: str) -> Tensor:
    if not isinstance(names, str):
        check.fail(TypeError, "color_sequence", "names must be a str", type(names).__name__)
    each = names.split(",")
    for name in each:
        check.choice("color_sequence", "names", name, STEPS)
    mixes_channels = any(name in ("contrast", "saturation", "hue") for name in each)
    out = image_like("color_sequence", image, gray_or_rgb=mixes_channels)
    if order.ndim < 1:
        fail(
            ValueError,
            "color_sequence",
            "order must have at least 1 dimension",
            f"shape {check.shape(order)}",
        )
    if order.dtype != torch.int64:
        fail(TypeError, "color_sequence", "order must be int64", order.dtype)
    check.per_sample_parameter("color_sequence", "order", order, image, order.shape[-1])
    check.per_sample_parameter("color_sequence", "parameters", parameters, image, len(each))
    return out
