"""Decompositions of the color operators: PIL's arithmetic on uint8, its formulas in real numbers on floats.

On uint16 the gray is OpenCV's, and the other formulas are torchvision's with a white of 65535.

Float images are in [0, 1], as in torchvision. The kernels also run these formulas where no faster code gives
the same values.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.decomposition import filter, histograms, levels
from imgops.decomposition._precision import (
    LEVELS,
    divide,
    finish,
    finish_rounded,
    mix,
    of_sums,
    parameter,
    to_levels,
    working_dtype,
)
from imgops.decomposition.color_space import LUMA

#: PIL's weights of red, green and blue in 65536ths; LUMA has them as real numbers.
_LUMA_INTEGERS = (19595, 38470, 7471)
#: OpenCV's weights for uint16, in 32768ths.
_LUMA_OF_16_BITS = (9798, 19235, 3735)


def luma(image: Tensor) -> Tensor:
    """Convert an image of three channels to one, as PIL's mode L; others keep their channels."""
    if image.shape[-3] != 3:
        return image.to(torch.int32) if image.dtype in LEVELS else image.to(working_dtype(image))
    red, green, blue = image.unsqueeze(-4).unbind(-3)
    if image.dtype in LEVELS:
        bits, weights = (16, _LUMA_INTEGERS) if image.dtype == torch.uint8 else (15, _LUMA_OF_16_BITS)
        r, g, b = (w * x.to(torch.int32) for w, x in zip(weights, (red, green, blue), strict=True))
        return torch.div(r + g + b + (1 << (bits - 1)), 1 << bits, rounding_mode="floor")
    dtype = working_dtype(image)
    return LUMA[0] * red.to(dtype) + LUMA[1] * green.to(dtype) + LUMA[2] * blue.to(dtype)


def adjust_brightness(image: Tensor, factor: Tensor) -> Tensor:
    x = image.to(working_dtype(image))
    return finish(mix(torch.zeros_like(x), x, parameter(factor, image), image), image)


def adjust_contrast(image: Tensor, factor: Tensor) -> Tensor:
    gray = luma(image)
    if image.dtype in LEVELS:
        count = gray.shape[-3] * gray.shape[-2] * gray.shape[-1]
        total = gray.to(torch.int64).sum((-3, -2, -1), keepdim=True)
        mean = divide(total.double(), count)
        if image.dtype == torch.uint8:  # PIL rounds the mean
            mean = (mean + 0.5).floor()
    else:
        mean = gray.mean((-3, -2, -1), keepdim=True)
    x = image.to(working_dtype(image))
    return finish(mix(mean.to(x.dtype), x, parameter(factor, image), image), image)


def adjust_saturation(image: Tensor, factor: Tensor) -> Tensor:
    x = image.to(working_dtype(image))
    return finish(mix(luma(image).to(x.dtype), x, parameter(factor, image), image), image)


def grayscale(image: Tensor, num_output_channels: int) -> Tensor:
    gray = luma(image)
    return finish(gray.expand(*image.shape[:-3], num_output_channels, *image.shape[-2:]), image)


def adjust_hue(image: Tensor, factor: Tensor) -> Tensor:
    if image.shape[-3] == 1:
        return finish(image, image)
    if image.dtype == torch.uint8:
        return _turn_levels(image, factor)
    x = image.to(working_dtype(image))
    if image.dtype == torch.uint16:
        x = divide(x, LEVELS[image.dtype])
    red, green, blue = x.unsqueeze(-4).unbind(-3)
    most, least = x.amax(-3, keepdim=True), x.amin(-3, keepdim=True)
    chroma = most - least
    scale = 1 / torch.where(chroma == 0, 1, chroma)
    turn = torch.where(
        most == red,
        (green - blue) * scale,
        torch.where(most == green, (blue - red) * scale + 2, (red - green) * scale + 4),
    )
    turn = turn + parameter(factor, image) * 6
    turn = turn - 6 * torch.floor(turn * (1 / 6))
    turned = (most - chroma * _fall(turn, 1)).clamp(0, 1)
    return finish(to_levels(turned, image) if image.dtype in LEVELS else turned, image)


def _fall(place: Tensor, one: int) -> Tensor:
    """Return how far each of the three channels is below the greatest one, at a place on the color circle.

    ``one`` is a sixth of the circle, and also the largest distance. Each channel rises, stays, falls and
    stays again, a third of the circle after the previous channel.
    """
    place = torch.cat([5 * one + place, 3 * one + place, one + place], -3)
    place = torch.where(place < 6 * one, place, place - 6 * one)
    return torch.minimum(place, 4 * one - place).clamp(0, one)


def hue_shift(factor: Tensor) -> Tensor:
    """Return the whole number of PIL's 256 hues for a factor, in float64."""
    shift = (factor.double() * 255).trunc()
    return torch.remainder(torch.where(shift.isfinite(), shift, 0), 256)


def _turn_levels(image: Tensor, factor: Tensor) -> Tensor:
    """Convert to PIL's mode HSV, add to the hue, and convert back.

    PIL rounds a hue as these floats do. Quotients are computed in float64 because compilers approximate those
    of float32. The rest of PIL's arithmetic has the bits of whole numbers.
    """
    x = image.to(torch.int32)
    red, green, blue = x.unsqueeze(-4).unbind(-3)
    most, least = x.amax(-3, keepdim=True), x.amin(-3, keepdim=True)
    chroma = most - least
    low_blue, low_red = least == blue, least == red
    apart = torch.where(low_blue, red - green, torch.where(low_red, green - blue, blue - red))
    base = torch.where(low_blue, 1, torch.where(low_red, 3, torch.where(apart < 0, -1, 5)))
    hue = base - (apart.double() / chroma.clamp(min=1).double()).float()
    hue = divide(hue.double(), 6).float()
    hue = (torch.where(hue < 0, hue + 1, hue) * 255).to(torch.int32)
    shift = parameter(hue_shift(factor), image).to(torch.int32)
    hue = torch.remainder(hue + shift, 256)
    share = torch.div(255 * chroma, most.clamp(min=1), rounding_mode="floor")
    fall = most * share * _fall(2 * hue, 85)
    return finish(most - torch.div(2 * fall + 21675, 43350, rounding_mode="floor"), image)


def color_matrix(image: Tensor, matrix: Tensor) -> Tensor:
    x = image.to(of_sums(working_dtype(image), image.device))
    channels = image.shape[-3]
    matrix = matrix.to(device=image.device, dtype=x.dtype)
    flat = x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])
    out = matrix[..., :channels] @ flat
    if matrix.shape[-1] > channels:
        out = out + matrix[..., channels:]
    return finish_rounded(out.reshape(*image.shape[:-3], matrix.shape[-2], *image.shape[-2:]), image)


def color_sequence(image: Tensor, order: Tensor, parameters: Tensor, names: str) -> Tensor:
    given, steps = image, [STEPS[name] for name in names.split(",")]
    if image.dtype not in LEVELS:
        image = image.to(working_dtype(image))
    for turn in range(order.shape[-1]):
        which = order[..., turn].to(image.device)[..., None, None, None]
        out = image
        for i, step in enumerate(steps):
            out = torch.where(which == i, step(image, parameters[..., i]), out)
        image = out
    return finish(image, given)


def _chosen_steps(image: Tensor, order: Tensor, parameters: Tensor, names: str) -> Tensor:
    """Compute ``color_sequence`` by its chosen steps; their order is known, perhaps one for each image."""
    if not order.is_cpu:  # reading it would wait for the device
        return color_sequence(image, order, parameters, names)
    rows = order.reshape(-1, order.shape[-1])
    if len(rows) > 1 and not bool((rows == rows[:1]).all()):
        batch, count = image.shape[:-3], parameters.shape[-1]
        own = parameters.expand(*batch, count).reshape(-1, count)
        orders = order.expand(*batch, order.shape[-1]).reshape(-1, order.shape[-1])
        each = zip(image.reshape(-1, *image.shape[-3:]), orders, own, strict=True)
        return torch.stack([_chosen_steps(*of, names) for of in each]).reshape(image.shape)
    given, steps = image, names.split(",")
    if image.dtype not in LEVELS:
        image = image.to(working_dtype(image))
    for i in rows[0].tolist():
        if 0 <= i < len(steps):
            image = STEPS[steps[i]](image, parameters[..., i])
    return finish(image, given)


color_sequence.of_known_values = _chosen_steps  # type: ignore[attr-defined]

#: The steps of a sequence: each is a function of an image and one number per sample.
STEPS: dict[str, Any] = {
    "brightness": adjust_brightness,
    "contrast": adjust_contrast,
    "saturation": adjust_saturation,
    "hue": adjust_hue,
    "sharpness": filter.adjust_sharpness,
    "posterize": levels.posterize,
    "solarize": levels.solarize,
    "invert": lambda image, amount: levels.invert(image),
    "autocontrast": lambda image, amount: histograms.autocontrast(image),
    "equalize": lambda image, amount: histograms.equalize(image),
}
