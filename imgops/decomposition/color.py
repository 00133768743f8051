"""Decompositions of the color operators: PIL's arithmetic on uint8, its formulas in real numbers on floats.

Float images are in [0, 1], as in torchvision. The kernels also run these formulas where no faster code gives
the same values.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.decomposition import filter, histograms, levels
from imgops.decomposition._precision import divide, finish, mix, of_sums, parameter, working_dtype

#: PIL's weights of red, green and blue: in 65536ths, and as real numbers.
_LUMA_INTEGERS = (19595, 38470, 7471)
_LUMA = (0.299, 0.587, 0.114)


def luma(image: Tensor) -> Tensor:
    """Convert an image to one channel, as PIL's mode L."""
    if image.shape[-3] == 1:
        return image.to(torch.int32) if image.dtype == torch.uint8 else image.to(working_dtype(image))
    red, green, blue = image.unsqueeze(-4).unbind(-3)
    if image.dtype == torch.uint8:
        r, g, b = (w * x.to(torch.int32) for w, x in zip(_LUMA_INTEGERS, (red, green, blue), strict=True))
        return torch.div(r + g + b + 0x8000, 1 << 16, rounding_mode="floor")
    dtype = working_dtype(image)
    return _LUMA[0] * red.to(dtype) + _LUMA[1] * green.to(dtype) + _LUMA[2] * blue.to(dtype)


def adjust_brightness(image: Tensor, factor: Tensor) -> Tensor:
    x = image.to(working_dtype(image))
    return finish(mix(torch.zeros_like(x), x, parameter(factor, image), image), image)


def adjust_contrast(image: Tensor, factor: Tensor) -> Tensor:
    gray = luma(image)
    if image.dtype == torch.uint8:
        count = gray.shape[-2] * gray.shape[-1]
        total = gray.to(torch.int64).sum((-3, -2, -1), keepdim=True)
        mean = (divide(total.double(), count) + 0.5).floor()
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
    x = image.to(working_dtype(image))
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
    # Along the color circle each channel rises, stays, falls and stays again, a third of a turn after the
    # channel before it.
    k = torch.cat([5 + turn, 3 + turn, 1 + turn], -3)
    k = torch.where(k < 6, k, k - 6)
    ramp = torch.minimum(k, 4 - k).clamp(0, 1)
    out = most - chroma * ramp
    if image.dtype == torch.uint8:
        # torchvision's rounding of a float image to uint8, 255.999 / 255
        return finish((out * 1.003917647).clamp(0, 255).trunc(), image)
    return finish(out.clamp(0, 1), image)


def color_matrix(image: Tensor, matrix: Tensor) -> Tensor:
    x = image.to(of_sums(working_dtype(image), image.device))
    channels = image.shape[-3]
    matrix = matrix.to(device=image.device, dtype=x.dtype)
    flat = x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])
    out = matrix[..., :channels] @ flat
    if matrix.shape[-1] > channels:
        out = out + matrix[..., channels:]
    if image.dtype == torch.uint8:
        out = out.round().clamp(0, 255)
    return finish(out.reshape(*image.shape[:-3], matrix.shape[-2], *image.shape[-2:]), image)


def color_sequence(image: Tensor, order: Tensor, parameters: Tensor, names: str) -> Tensor:
    given, steps = image, [STEPS[name] for name in names.split(",")]
    if image.dtype != torch.uint8:
        image = image.to(working_dtype(image))
    for turn in range(order.shape[-1]):
        which = order[..., turn].to(image.device)[..., None, None, None]
        out = image
        for i, step in enumerate(steps):
            out = torch.where(which == i, step(image, parameters[..., i]), out)
        image = out
    return finish(image, given)


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
