"""Fakes of the noise operators."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check
from imgops._common.check import fail, violates
from imgops.fake._output import output


def salt_and_pepper(image: Tensor, noise: Tensor, amount: Tensor, salt: Tensor) -> Tensor:
    return _output("salt_and_pepper", image, noise, amount=amount, salt=salt)


def shot_noise(image: Tensor, noise: Tensor, scale: Tensor) -> Tensor:
    return _output("shot_noise", image, noise, scale=scale)


def speckle_noise(image: Tensor, noise: Tensor, sigma: Tensor) -> Tensor:
    return _output("speckle_noise", image, noise, sigma=sigma)


def iso_noise(image: Tensor, noise: Tensor, color_shift: Tensor, intensity: Tensor) -> Tensor:
    check.computed_image("iso_noise", image, check.HLS, takes_uint16=True)
    return _output("iso_noise", image, noise, 2, color_shift=color_shift, intensity=intensity)


def _output(
    op: str, image: Tensor, noise: Tensor, channels: int | None = None, **parameters: Tensor
) -> Tensor:
    """Check an image, its noise and its numbers, and allocate the output.

    The noise has ``channels`` channels, by default 1 or those of the image.
    """
    out = output(op, image, None, True, **parameters)
    check.image(op, "noise", noise)
    check.floating(op, "noise", noise)
    check.same_device(op, "noise", noise, "image", image)
    check.batch(op, "noise", noise, "image", image)
    given, most = noise.shape[-3], channels or image.shape[-3]
    if violates(given == most) and (channels or violates(given == 1)):
        counts = f"{channels}" if channels else f"1 or {check.number(most)}"
        fail(ValueError, op, f"noise must have {counts} channels", check.number(given))
    if violates(noise.shape[-2] == image.shape[-2], noise.shape[-1] == image.shape[-1]):
        height, width = check.numbers(*image.shape[-2:])
        check.fail_shape(op, f"noise must be {height} x {width}", noise)
    return out
