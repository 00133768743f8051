"""CPU kernels of the colour operators.

uint8 and float32 go through a native pass. What that does not compute (float64, half precision, and all where
the native module was not built) is the decomposition, run by ATen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops import _layout
from imgops.decomposition import color as formula
from imgops.decomposition import levels as tone
from imgops.kernels.cpu import _color, _threads, filter, levels

_RGB = 3


def adjust_brightness(out: Tensor, image: Tensor, factor: Tensor) -> None:
    if not _color.knows(image):
        _color.computed(out, formula.adjust_brightness, image, factor)
        return
    factors = _color.each(factor, image)
    _color.elementwise("constant", out, _color.readable(image, out), factors, [0.0] * len(factors))


def adjust_contrast(out: Tensor, image: Tensor, factor: Tensor) -> None:
    if not _color.knows(image) or image.numel() == 0:
        _color.computed(out, formula.adjust_contrast, image, factor)
        return
    image, factors = _color.readable(image, out), _color.each(factor, image)
    _color.elementwise("constant", out, image, factors, _means(image, len(factors)))


def _means(image: Tensor, count: int) -> list[float]:
    """The mean luma of each image; PIL rounds it on uint8."""
    size = image.shape[-2] * image.shape[-1]
    if image.shape[-3] == _RGB:
        totals = torch.empty(count, dtype=torch.float64)
        _color.pixels("total", totals, image, [0.0] * count)
    else:
        totals = image.reshape(count, -1).sum(
            1, dtype=torch.int64 if image.dtype == torch.uint8 else torch.float64
        )
    means = [total / size for total in totals.tolist()]
    return [float(int(m + 0.5)) for m in means] if image.dtype == torch.uint8 else means


def adjust_saturation(out: Tensor, image: Tensor, factor: Tensor) -> None:
    _three_channels("saturation", formula.adjust_saturation, out, image, factor)


def adjust_hue(out: Tensor, image: Tensor, factor: Tensor) -> None:
    _three_channels("hue", formula.adjust_hue, out, image, factor)


def _three_channels(
    name: str, function: Callable[..., Tensor], out: Tensor, image: Tensor, factor: Tensor
) -> None:
    if not _color.knows(image) or image.shape[-3] != _RGB:
        _color.computed(out, function, image, factor)
        return
    _color.pixels(name, out, _color.readable(image, out), _color.each(factor, image))


def grayscale(out: Tensor, image: Tensor, channels: int) -> None:
    if not _color.knows(image) or image.shape[-3] != _RGB:
        _color.computed(out, formula.grayscale, image, channels)
        return
    image = _color.readable(image)
    gray = (
        out
        if channels == 1
        else torch.empty_like(image[..., :1, :, :], memory_format=torch.contiguous_format)
    )
    _color.pixels("gray", gray, image, [0.0] * image.shape[:-3].numel())
    if channels == 1:
        return
    if _layout.writes_interleaved(out):
        for plane, frame in zip(_layout.planes(gray), _layout.frames(out), strict=True):
            cv2.merge([plane] * channels, dst=frame)
    else:
        out.copy_(gray.expand_as(out))


def color_matrix(out: Tensor, image: Tensor, matrix: Tensor) -> None:
    if (
        image.dtype not in (torch.uint8, torch.float32)
        or out.numel() == 0
        or max(out.shape[-3], image.shape[-3]) > 4
    ):
        _color.computed(out, formula.color_matrix, image, matrix)
        return
    _threads.follow_torch()
    matrix = matrix.detach().expand(*image.shape[:-3], *matrix.shape[-2:])
    each = matrix.reshape(-1, *matrix.shape[-2:]).double().numpy()
    image = _color.readable(image)
    if _layout.is_interleaved(image):
        sources = list(_layout.frames(image))
    else:
        sources = [cv2.merge(list(planes)) for planes in _grouped(image)]
    if _layout.writes_interleaved(out):
        for source, m, target in zip(sources, each, _layout.frames(out), strict=True):
            cv2.transform(source, m, dst=target)
    else:
        for source, m, targets in zip(sources, each, _grouped(out), strict=True):
            cv2.split(cv2.transform(source, m), list(targets))


def _grouped(image: Tensor) -> Any:
    """A planar batch as (images, C, H, W)."""
    return _layout.planes(image).reshape(-1, *image.shape[-3:])


#: The kernels of a sequence's steps: each of an image and one number a sample.
STEPS: dict[str, Callable[..., None]] = {
    "brightness": adjust_brightness,
    "contrast": adjust_contrast,
    "saturation": adjust_saturation,
    "hue": adjust_hue,
    "sharpness": filter.adjust_sharpness,
    "posterize": levels.posterize,
    "solarize": levels.solarize,
    "invert": lambda out, image, amount: _color.computed(out, tone.invert, image),
    "autocontrast": lambda out, image, amount: levels.autocontrast(out, image),
    "equalize": lambda out, image, amount: levels.equalize(out, image),
}


def color_sequence(out: Tensor, image: Tensor, order: Tensor, amounts: Tensor, names: str) -> None:
    """The steps that were chosen, in the memory of ``out``: every kernel can read what it writes to."""
    if image.dtype in (torch.float16, torch.bfloat16):  # rounded once, at the end
        single = torch.empty_like(out, dtype=torch.float32)
        color_sequence(single, image.detach().float(), order, amounts, names)
        out.copy_(single)
        return
    out.copy_(image.detach())
    steps = [STEPS[name] for name in names.split(",")]
    batch = image.shape[:-3]
    orders = order.expand(*batch, order.shape[-1])
    values = amounts.detach().expand(*batch, len(steps))
    if order.numel() == order.shape[-1] and amounts.numel() == len(steps):  # one sequence for all
        orders, values = order.reshape(-1), amounts.detach().reshape(-1)
        parts: Any = [(out, orders, values)]
    else:
        parts = [(out[i], orders[i], values[i]) for i in np.ndindex(*batch)]
    for part, turns, numbers in parts:
        for which in turns.tolist():
            if 0 <= which < len(steps):
                steps[which](part, part, numbers[which])
