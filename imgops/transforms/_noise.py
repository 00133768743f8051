"""Noise with random strengths. What is drawn is a seed; the noise of the image's size is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

import imgops
from imgops.transforms._added import (
    AddedTransform,
    from_seed,
    on_pixels,
    real_of,
    seed,
    uniform,
)
from imgops.transforms._arguments import (
    in_range,
)
from imgops.transforms._parameters import IS_APPLIED, Parameter

__all__ = [
    "RandomGaussianNoise",
    "RandomISONoise",
    "RandomSaltAndPepper",
    "RandomShotNoise",
]

Range = float | Sequence[float]


class RandomSaltAndPepper(AddedTransform):
    """Turn some pixels white and some black, with a probability.

    Parameters
    ----------
    amount : float or (float, float)
        The range of the share of pixels, in [0, 1].
    salt : float or (float, float)
        The range of the share of white ones among them, in [0, 1].
    p : float
        The probability with which it is applied.
    per_sample, generator
        :doc:`As for every transform </transforms>`.

    Notes
    -----
    Reference: NumPy's ``where``, as in albumentations' SaltAndPepper, bit-exact for the same pixels:
    :func:`imgops.salt_and_pepper`. Each pixel is drawn by itself, so their number varies a little.
    """

    random_parameters = (IS_APPLIED, Parameter("amount"), Parameter("salt"), Parameter("seed"))
    _known = ("seed",)
    _made_of = ("salt_and_pepper",)
    _example = {"amount": 0.15}

    def __init__(
        self,
        amount: Range = (0.01, 0.06),
        salt: Range = (0.4, 0.6),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        amounts, shares = (in_range(self, n, v, 0.0, 1.0) for n, v in (("amount", amount), ("salt", salt)))
        super().__init__(p, per_sample, generator, amount=amounts, salt=shares)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"amount": uniform(self.amount), "salt": uniform(self.salt), "seed": seed()}

    def changed(self, image: Tensor, amount: Tensor, salt: Tensor, seed: float) -> Tensor:
        return imgops.salt_and_pepper(image, _noise(torch.rand, image, 1, seed), amount, salt)


class RandomShotNoise(AddedTransform):
    """Add the noise of counted photons, with a probability.

    Parameters
    ----------
    amount : float or (float, float)
        The range of the variance of white: one over the number of its photons.
    p : float
        The probability with which it is applied.
    per_sample, generator
        :doc:`As for every transform </transforms>`.

    Notes
    -----
    Reference: NumPy's formula of :func:`imgops.shot_noise`: Poisson's distribution as a normal one, which has
    a gradient. (albumentations' ShotNoise counts photons of intensities to the power of 2.2.)
    """

    random_parameters = (IS_APPLIED, Parameter("amount"), Parameter("seed"))
    _known = ("seed",)
    _made_of = ("shot_noise",)
    _example = {"amount": 0.08}

    def __init__(
        self,
        amount: Range = (0.005, 0.03),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(p, per_sample, generator, amount=in_range(self, "amount", amount, 0.0))

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"amount": uniform(self.amount), "seed": seed()}

    def changed(self, image: Tensor, amount: Tensor, seed: float) -> Tensor:
        return imgops.shot_noise(image, _noise(torch.randn, image, image.shape[-3], seed), amount)


class RandomISONoise(AddedTransform):
    """Add the noise of a camera at high sensitivity, to hue and to lightness, with a probability.

    Parameters
    ----------
    color_shift : float or (float, float)
        The range of the standard deviation of hue at full intensity, in turns.
    intensity : float or (float, float)
        The range of the strength of both.
    p : float
        The probability with which it is applied.
    per_sample, generator
        :doc:`As for every transform </transforms>`.

    Notes
    -----
    Reference: albumentations' ISONoise, within a level: :func:`imgops.iso_noise` with normal noise for hue,
    and for lightness Poisson's, whose mean is the intensity times the standard deviation of the lightness. 3
    channels. (Its color shift is in degrees, 360 times this one, and seldom seen.) The noise is a constant in
    the gradient.
    """

    random_parameters = (IS_APPLIED, Parameter("color_shift"), Parameter("intensity"), Parameter("seed"))
    _levels = True
    _known = ("intensity", "seed")
    _made_of = ("iso_noise",)
    _example = {"color_shift": 0.3, "intensity": 0.8}

    def __init__(
        self,
        color_shift: Range = (0.01, 0.05),
        intensity: Range = (0.1, 0.5),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        shifts = in_range(self, "color_shift", color_shift, 0.0, 1e6)
        strengths = in_range(self, "intensity", intensity, 0.0, 1e6)
        super().__init__(p, per_sample, generator, color_shift=shifts, intensity=strengths)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        numbers = {"color_shift": uniform(self.color_shift), "intensity": uniform(self.intensity)}
        return {**numbers, "seed": seed()}

    def changed(self, image: Tensor, color_shift: Tensor, intensity: float, seed: float) -> Tensor:
        hue = _noise(torch.randn, image, 1, seed)
        light = _photons(_lightness_spread(image) * intensity, image, seed)
        return imgops.iso_noise(image, torch.cat([hue, light], -3), color_shift, intensity)


def _lightness_spread(image: Tensor) -> Tensor:
    """The standard deviation of HLS' lightness, ``(..., 1, 1, 1)``."""
    pixels = image.detach()
    real = pixels.to(torch.float32) / 255 if image.dtype == torch.uint8 else pixels.to(torch.float32)
    low, high = real.aminmax(dim=-3, keepdim=True)
    return ((low + high) / 2).std((-3, -2, -1), correction=0, keepdim=True)


def _photons(rate: Tensor, image: Tensor, seed: float) -> Tensor:
    """Counts of Poisson's distribution, one for each pixel."""
    rates = rate.cpu().expand(*image.shape[:-3], 1, *image.shape[-2:])
    counts = torch.poisson(rates, generator=from_seed(seed + 1))
    dtype = real_of(image)
    return counts.to(image.device, dtype, non_blocking=True)


class RandomGaussianNoise(AddedTransform):
    """Add normal noise of a random strength, with a probability.

    Parameters
    ----------
    sigma : float or (float, float)
        The range of the standard deviation, as a share of the largest value.
    mean : float or (float, float)
        The range of the mean, likewise.
    per_channel : bool
        Whether each channel has noise of its own.
    p : float
        The probability with which it is applied.
    per_sample, generator
        :doc:`As for every transform </transforms>`.

    Notes
    -----
    Reference: the sum with the same noise, which is cut off to whole levels, as in albumentations'
    GaussNoise: exact on uint8. Floats are clamped to [0, 1]; the gradient is 1 where they are not.
    (torchvision's GaussianNoise has one strength, and no probability.)
    """

    _levels = True
    random_parameters = (IS_APPLIED, Parameter("sigma"), Parameter("mean"), Parameter("seed"))
    _known = ("seed",)
    _example = {"sigma": 0.2}

    def __init__(
        self,
        sigma: Range = (0.02, 0.1),
        mean: Range = (0.0, 0.0),
        per_channel: bool = True,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        spreads, means = in_range(self, "sigma", sigma, 0.0), in_range(self, "mean", mean)
        how = {"sigma": spreads, "mean": means, "per_channel": bool(per_channel)}
        super().__init__(p, per_sample, generator, **how)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"sigma": uniform(self.sigma), "mean": uniform(self.mean), "seed": seed()}

    def changed(self, image: Tensor, sigma: Tensor, mean: Tensor, seed: float) -> Tensor:
        noise = _noise(torch.randn, image, image.shape[-3] if self.per_channel else 1, seed)
        added = noise * on_pixels(sigma, image) + on_pixels(mean, image)
        if image.dtype == torch.uint8:
            return (image + (added * 255).to(torch.int16)).clamp(0, 255).to(torch.uint8)
        return (image + added).clamp(0, 1).to(image.dtype)


def _noise(draw: Any, image: Tensor, channels: int, seed: float) -> Tensor:
    """Numbers beside an image. They are drawn on the CPU, so that each device has the same."""
    shape = (*image.shape[:-3], channels, *image.shape[-2:])
    dtype = real_of(image)
    noise = draw(shape, generator=from_seed(seed), dtype=dtype, device="cpu")
    return noise.to(image.device, non_blocking=True)
