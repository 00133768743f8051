"""Decompositions of the noise operators: formulas of each value or each pixel."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops.decomposition._precision import LEVELS, divide, finish, parameter, white_of, working_dtype
from imgops.decomposition.color_space import from_hls, to_hls


def salt_and_pepper(image: Tensor, noise: Tensor, amount: Tensor, salt: Tensor) -> Tensor:
    amount, salt = parameter(amount, image), parameter(salt, image)
    noise = noise.to(working_dtype(image))
    out = torch.where(noise >= 1 - amount * salt, white_of(image), image)
    return finish(torch.where(noise < amount * (1 - salt), 0, out), image)


def shot_noise(image: Tensor, noise: Tensor, scale: Tensor) -> Tensor:
    x, top = image.to(working_dtype(image)), white_of(image)
    variance = (parameter(scale, image) * x * top).clamp(min=0)
    # The square root has no derivative at a variance of 0, where there is no noise.
    there = variance > 0
    deviation = torch.where(there, torch.where(there, variance, 1).sqrt(), 0)
    return _clamp(x + deviation * noise.to(x.dtype), image)


def speckle_noise(image: Tensor, noise: Tensor, sigma: Tensor) -> Tensor:
    x = image.to(working_dtype(image))
    return _clamp(x * (1 + parameter(sigma, image) * noise.to(x.dtype)), image)


def iso_noise(image: Tensor, noise: Tensor, color_shift: Tensor, intensity: Tensor) -> Tensor:
    x = divide(image.to(working_dtype(image)), white_of(image))
    strength = parameter(intensity, image)[..., 0, :, :]
    hue, light, share = to_hls(list(x.unbind(-3)), False)
    of_hue, of_light = noise.to(x.dtype).unbind(-3)
    hue = hue + parameter(color_shift, image)[..., 0, :, :] * strength * of_hue
    light = light + strength * of_light * (1 - light)
    return _clamp(torch.stack(from_hls([hue, light, share], False), -3) * white_of(image), image)


def _clamp(out: Tensor, image: Tensor) -> Tensor:
    if image.dtype in LEVELS:
        out = out.round()
    return finish(out.clamp(0, white_of(image)), image)
