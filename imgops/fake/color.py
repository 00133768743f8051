"""Fakes of the operators that mix the channels of a pixel."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops._common import check, layout
from imgops._common.check import fail
from imgops.decomposition.color import STEPS
from imgops.fake._output import output

#: The channels that a sequence needs, by whether it has saturation and hue.
_NEEDS = {
    (False, False): None,
    (True, False): check.SATURATION,
    (False, True): check.HUE,
    (True, True): check.SATURATION_AND_HUE,
}


def adjust_brightness(image: Tensor, factor: Tensor) -> Tensor:
    return output("adjust_brightness", image, takes_uint16=True, factor=factor)


def adjust_contrast(image: Tensor, factor: Tensor) -> Tensor:
    return output("adjust_contrast", image, takes_uint16=True, factor=factor)


def adjust_saturation(image: Tensor, factor: Tensor) -> Tensor:
    return output("adjust_saturation", image, check.SATURATION, takes_uint16=True, factor=factor)


def adjust_hue(image: Tensor, factor: Tensor) -> Tensor:
    return output("adjust_hue", image, check.HUE, takes_uint16=True, factor=factor)


def grayscale(image: Tensor, num_output_channels: int) -> Tensor:
    check.computed_image("grayscale", image, check.GRAY, takes_uint16=True)
    if num_output_channels not in (1, 3):
        fail(ValueError, "grayscale", "num_output_channels must be 1 or 3", check.number(num_output_channels))
    return layout.empty(image, *image.shape[-2:], channels=num_output_channels)


def color_matrix(image: Tensor, matrix: Tensor) -> Tensor:
    check.computed_image("color_matrix", image, takes_uint16=True)
    channels = image.shape[-3]
    if matrix.ndim < 2 or matrix.shape[-1] not in (channels, channels + 1):
        channels = check.number(channels)
        check.fail_shape("color_matrix", f"matrix must have {channels} or {channels + 1} columns", matrix)
    check.per_sample_parameter("color_matrix", "matrix", matrix, image, *matrix.shape[-2:])
    return layout.empty(image, *image.shape[-2:], channels=matrix.shape[-2])


def color_sequence(image: Tensor, order: Tensor, parameters: Tensor, names: str) -> Tensor:
    op = "color_sequence"
    if not isinstance(names, str):
        fail(TypeError, op, "names must be a str", type(names).__name__)
    steps = names.split(",")
    for name in steps:
        check.choice(op, "names", name, STEPS)
    out = output(op, image, _NEEDS[("saturation" in steps, "hue" in steps)], takes_uint16=True)
    if order.ndim < 1:
        check.fail_shape(op, "order must have at least 1 dimension", order)
    check.dtype(op, "order", order, torch.int64)
    check.per_sample_parameter(op, "order", order, image, order.shape[-1])
    check.per_sample_parameter(op, "parameters", parameters, image, len(steps))
    return out
