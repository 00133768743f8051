"""Fakes of the noise operators."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check
from imgops._common.check import fail, violates
from imgops.fake._images import image_like


def salt_and_pepper(image: Tensor, noise: Tensor, amount: Tensor, salt: Tensor) -> Tensor:
    out = _check_noise("salt_and_pepper", image, noise)
    check.per_sample_parameter("salt_and_pepper", "amount", amount, image)
    check.per_sample_parameter("salt_and_pepper", "salt", salt, image)
    return out


def shot_noise(image: Tensor, noise: Tensor, scale: Tensor) -> Tensor:
    out = _check_noise("shot_noise", image, noise)
    check.per_sample_parameter("shot_noise", "scale", scale, image)
    return out


def speckle_noise(image: Tensor, noise: Tensor, sigma: Tensor) -> Tensor:
    out = _check_noise("speckle_noise", image, noise)
    check.per_sample_parameter("speckle_noise", "sigma", sigma, image)
    return out


def iso_noise(image: Tensor, noise: Tensor, color_shift: Tensor, intensity: Tensor) -> Tensor:
    if image.ndim >= 3 and violates(image.shape[-3] == 3):
        fail(ValueError, "iso_noise", "image must have 3 channels", check.number(image.shape[-3]))
    out = _check_noise("iso_noise", image, noise, channels=2)
    check.per_sample_parameter("iso_noise", "color_shift", color_shift, image)
    check.per_sample_parameter("iso_noise", "intensity", intensity, image)
    return out


def _check_noise(op: str, image: Tensor, noise: Tensor, channels: int | None = None) -> Tensor:
    """Validate an image and its noise, and allocate the output.

    The noise has ``channels`` channels, by default 1 or those of the image.
    """
    out = image_like(op, image)
    check.image(op, "noise", noise)
    check.floating(op, "noise", noise)
    check.same_device(op, "noise", noise, "image", image)
    check.batch(op, "noise", noise, "image", image)
    given, most = noise.shape[-3], channels or image.shape[-3]
    if violates(given == most) and (channels or violates(given == 1)):
        counts = f"{channels}" if channels else f"1 or {check.number(most)}"
        fail(ValueError, op, f"noise must have {counts} channels", check.number(given))
    if violates(noise.shape[-2] == image.shape[-2]) or violates(noise.shape[-1] == image.shape[-1]):
        height, width = check.numbers(*image.shape[-2:])
        fail(ValueError, op, f"noise must be {height} x {width}", f"shape {check.shape(noise)}")
    return out
