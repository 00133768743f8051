"""Transforms that add noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops._common import check
from imgops._common.torch_private import is_eager
from imgops.decomposition._precision import LEVELS
from imgops.kernels.cpu import _threads
from imgops.transforms._core import draws, operators, seeding
from imgops.transforms._core.arguments import in_range, switch
from imgops.transforms._core.base import NOTHING, RandomTransform
from imgops.transforms._core.dtypes import add_to_levels
from imgops.transforms._core.parameters import IS_APPLIED, Parameter, Params, Shape, spread
from imgops.transforms._core.probabilistic import (
    ProbabilisticTransform,
    from_seed,
    on_pixels,
    real_of,
    uniform,
)
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms.color.adjust import _LEVELS, _of_channels, _to_levels
from imgops.transforms.functional import _dispatch

__all__ = [
    "GaussianNoise",
    "RandomGaussianNoise",
    "RandomISONoise",
    "RandomMultiplicativeNoise",
    "RandomSaltAndPepper",
    "RandomShotNoise",
]

Range = float | Sequence[float]


class GaussianNoise(RandomTransform, v2.GaussianNoise):
    """Add Gaussian noise to the image, as torchvision's GaussianNoise does.

    Use :class:`RandomGaussianNoise` for a random strength, for a probability, or for the same noise in all
    channels.

    Parameters
    ----------
    mean : float
        The mean of the noise, as a share of the largest value.
    sigma : float
        The standard deviation of the noise, as a share of the largest value.
    clip : bool
        Whether the result is clamped to the image's range; otherwise uint8 wraps around.
    """

    _config = ("mean", "sigma", "clip")
    _dtypes = frozenset()  # noise is drawn where the transform is applied
    _random_parameters = (IS_APPLIED,)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {}

    def forward(self, *inputs: Any) -> Any:
        if (
            len(inputs) == 1
            and type(inputs[0]) is Tensor
            and is_eager()
            and self._draws_like_torchvision(inputs[0])
        ):
            return _threads.run_without_waiting(self._with_torchvisions_noise, inputs[0])
        return super().forward(*inputs)

    def _with_torchvisions_noise(self, image: Tensor) -> Tensor:
        noise = torch.empty_like(image, dtype=image.dtype if image.is_floating_point() else torch.float32)
        seeding.noise(noise)
        return self._noisy(image, noise, NOTHING)

    def _draws_like_torchvision(self, image: Tensor) -> bool:
        is_plain = (
            self.generator is None and not self.per_sample and self.sigma >= 0 and bool(self._description)
        )
        is_plain &= self._has_own_methods
        return is_plain and image.dtype in _dispatch.COMPUTED

    def _plan(self, shape: Any, program: Any) -> None:
        return None  # noise is drawn when the transform is applied

    def _record(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> None:
        self._run(inputs, sampler)

    def _transform_input(self, inpt: Any, params: Params, sampler: ParameterSampler) -> Any:
        if not _dispatch.is_image(inpt):
            return super()._transform_input(inpt, params, sampler)
        image = _dispatch.plain(inpt)
        if self.sigma < 0 or image.dtype not in _dispatch.COMPUTED:
            return self._by_torchvision(image, {})  # torchvision raises its own error
        return _dispatch.wrap_like(
            _threads.run_without_waiting(self._with_noise, image, params, sampler), inpt
        )

    def _with_noise(self, image: Tensor, params: Params, sampler: ParameterSampler) -> Tensor:
        noise = params.noise.pop(0) if params.noise else sampler.noise(self, image)
        if sampler.record is not None:
            sampler.record[sampler.path].noise.append(noise)
        return self._noisy(image, noise, params)

    def _noisy(self, image: Tensor, noise: Tensor, params: Params) -> Tensor:
        """Add noise to the samples that were chosen, by torchvision's arithmetic."""
        if image.dtype in LEVELS:
            white = LEVELS[image.dtype]
            out = add_to_levels(image, self.mean * white + noise * (self.sigma * white), self.clip)
        else:
            noisy = image + (self.mean + noise * self.sigma)
            out = torch.clamp(noisy, 0, 1) if self.clip else noisy
        if params.is_one_draw:
            return out
        return operators.where(spread(params.numbers, image)[..., 0] > 0, out, image)


class RandomMultiplicativeNoise(ProbabilisticTransform):
    """Multiply all values, or the values of each channel, by a random number, with a probability.

    All pixels get the same factor; use :class:`RandomGaussianNoise` for noise that differs between pixels.

    Parameters
    ----------
    factor : float or (float, float)
        The range of the factor.
    per_channel : bool
        Whether each channel has its own factor.

    Notes
    -----
    Reference: albumentations' MultiplicativeNoise, whose products are truncated to whole levels, bit-exact on
    uint8: :func:`imgops.lut`. Floats are multiplied and clamped to [0, 1], with the gradient of this
    computation. (:func:`imgops.speckle_noise` has a factor for each pixel.)
    """

    _levels = _takes_uint16 = True
    _random_parameters = (IS_APPLIED, Parameter("factors", lambda t, shape: t._rest(shape[1])))

    def __init__(
        self,
        factor: Range = (0.9, 1.1),
        per_channel: bool = False,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        factors = in_range(self, "factor", factor, 0.0)
        how = {"factor": factors, "per_channel": switch(self, "per_channel", per_channel)}
        super().__init__(p, per_sample, generator, **how)

    def _rest(self, channels: int) -> int:
        return channels if self.per_channel else 1

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        count = self._rest(self._shape_of(flat_inputs)[1])
        return {"factors": [uniform(self.factor) for _ in range(count)]}

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        count = self._rest(shape[1])
        return [draws.applied(self.p, *(draws.uniform_double(1 + i, *self.factor) for i in range(count)))]

    def _change_image(self, image: Tensor, factors: Tensor) -> Tensor:
        if image.dtype == torch.uint8:
            return imgops.lut(image, _to_levels(_LEVELS * factors.float()[..., None]))
        if image.dtype == torch.uint16:
            return _to_levels(image * _of_channels(factors, image), image.dtype)
        return (image * _of_channels(factors, image)).clamp(0, 1).to(image.dtype)


class RandomSaltAndPepper(ProbabilisticTransform):
    """Turn some pixels white and some black, with a probability.

    Use :class:`PixelDropout` for one value, or if masks and boxes must follow.

    Parameters
    ----------
    amount : float or (float, float)
        The range of the share of pixels, in [0, 1].
    salt : float or (float, float)
        The range of the share of white pixels among them, in [0, 1].

    Notes
    -----
    Reference: NumPy's ``where``, as in albumentations' SaltAndPepper, bit-exact for the same pixels:
    :func:`imgops.salt_and_pepper`. Each pixel is drawn independently, so the number of changed pixels varies
    a little.
    """

    _random_parameters = (IS_APPLIED, Parameter("amount"), Parameter("salt"), Parameter("seed"))
    _known = ("seed",)

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

    def _change_image(self, image: Tensor, amount: Tensor, salt: Tensor, seed: float) -> Tensor:
        return imgops.salt_and_pepper(image, _noise(torch.rand, image, 1, seed), amount, salt)


class RandomShotNoise(ProbabilisticTransform):
    """Add the noise of counted photons, with a probability.

    The noise grows with the brightness; use :class:`RandomGaussianNoise` for noise that is the same
    everywhere.

    Parameters
    ----------
    scale : float or (float, float)
        The range of the variance of white: 1 divided by the number of photons of a white pixel.

    Notes
    -----
    Reference: the NumPy formula of :func:`imgops.shot_noise`, which uses a normal distribution in place of
    Poisson's, and so has a gradient. (albumentations' ShotNoise counts photons of intensities to the power of
    2.2.)
    """

    _random_parameters = (IS_APPLIED, Parameter("scale"), Parameter("seed"))
    _known = ("seed",)

    def __init__(
        self,
        scale: Range = (0.005, 0.03),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(p, per_sample, generator, scale=in_range(self, "scale", scale, 0.0))

    def _change_image(self, image: Tensor, scale: Tensor, seed: float) -> Tensor:
        return imgops.shot_noise(image, _noise(torch.randn, image, image.shape[-3], seed), scale)


class RandomISONoise(ProbabilisticTransform):
    """Add the noise of a camera at high sensitivity, to hue and to lightness, with a probability.

    The noise changes hue and lightness; use :class:`RandomShotNoise` for independent noise in each channel.

    Parameters
    ----------
    color_shift : float or (float, float)
        The range of the standard deviation of hue at full intensity, in degrees.
    intensity : float or (float, float)
        The range of the strength of the noise of hue and of lightness.

    Notes
    -----
    Reference: albumentations' ISONoise, within a level: :func:`imgops.iso_noise` with normal noise for hue,
    and Poisson noise for lightness, whose mean is the intensity times the standard deviation of the
    lightness. The image must have 3 channels. (albumentations' color shift is in degrees too, but its usual
    values, 0.01 to 0.05, are seldom visible.) The gradient treats the noise as a constant.
    """

    _channels = check.HLS
    _random_parameters = (IS_APPLIED, Parameter("color_shift"), Parameter("intensity"), Parameter("seed"))
    _levels = _takes_uint16 = True
    _known = ("intensity", "seed")

    def __init__(
        self,
        color_shift: Range = (3.6, 18.0),
        intensity: Range = (0.1, 0.5),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        shifts = in_range(self, "color_shift", color_shift, 0.0, 1e6)
        strengths = in_range(self, "intensity", intensity, 0.0, 1e6)
        super().__init__(p, per_sample, generator, color_shift=shifts, intensity=strengths)

    def _change_image(self, image: Tensor, color_shift: Tensor, intensity: float, seed: float) -> Tensor:
        hue = _noise(torch.randn, image, 1, seed)
        # A count from Poisson's distribution for each pixel.
        rates = (_lightness_spread(image) * intensity).nan_to_num(0.0).cpu()
        rates = rates.expand(*image.shape[:-3], 1, *image.shape[-2:])
        counts = torch.poisson(rates, generator=from_seed(seed + 1))
        light = counts.to(image.device, real_of(image), non_blocking=True)
        return imgops.iso_noise(image, torch.cat([hue, light], -3), color_shift, intensity)


def _lightness_spread(image: Tensor) -> Tensor:
    """Return the standard deviation of the lightness of HLS, ``(..., 1, 1, 1)``."""
    pixels = image.detach()
    real = pixels.to(torch.float32)
    real = real / LEVELS[image.dtype] if image.dtype in LEVELS else real
    low, high = real.aminmax(dim=-3, keepdim=True)
    if not low.numel():  # the deviation of an empty tensor warns
        return low.new_zeros(*low.shape[:-3], 1, 1, 1)
    return ((low + high) / 2).std((-3, -2, -1), correction=0, keepdim=True)


class RandomGaussianNoise(ProbabilisticTransform):
    """Add normal noise of a random strength, with a probability.

    Use :class:`GaussianNoise` for torchvision's noise and draws, with one strength and always applied.

    Parameters
    ----------
    sigma : float or (float, float)
        The range of the standard deviation, as a share of the largest value.
    mean : float or (float, float)
        The range of the mean, as a share of the largest value.
    per_channel : bool
        Whether each channel has its own noise.

    Notes
    -----
    Reference: the sum of the image and the same noise, which is truncated to whole levels, as in
    albumentations' GaussNoise: exact on uint8. Floats are clamped to [0, 1]; the gradient is 1 where they are
    not clamped.
    """

    _levels = _takes_uint16 = True
    _random_parameters = (IS_APPLIED, Parameter("sigma"), Parameter("mean"), Parameter("seed"))
    _known = ("seed",)

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
        how = {"sigma": spreads, "mean": means, "per_channel": switch(self, "per_channel", per_channel)}
        super().__init__(p, per_sample, generator, **how)

    def _change_image(self, image: Tensor, sigma: Tensor, mean: Tensor, seed: float) -> Tensor:
        noise = _noise(torch.randn, image, image.shape[-3] if self.per_channel else 1, seed)
        offset = noise * on_pixels(sigma, image) + on_pixels(mean, image)
        if image.dtype in LEVELS:
            return add_to_levels(image, offset * LEVELS[image.dtype])
        return (image + offset).clamp(0, 1).to(image.dtype)


def _noise(draw: Any, image: Tensor, channels: int, seed: float) -> Tensor:
    """Draw random numbers for an image, on the CPU, so that they are the same on every device."""
    shape = (*image.shape[:-3], channels, *image.shape[-2:])
    dtype = real_of(image)
    noise = draw(shape, generator=from_seed(seed), dtype=dtype, device="cpu")
    return noise.to(image.device, non_blocking=True)
