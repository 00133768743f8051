"""Brightness, contrast and colors that are shifted or scaled at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

import imgops
from imgops.transforms._added import AddedTransform, on_pixels, real_of, uniform
from imgops.transforms._arguments import (
    in_range,
    one_of,
    require_rgb,
)
from imgops.transforms._parameters import IS_APPLIED, Parameter

__all__ = ["RandomBrightnessContrast", "RandomHSV", "RandomMultiplicativeNoise", "RandomRGBShift"]

Range = float | Sequence[float]
_LEVELS = torch.arange(256, dtype=torch.float32)


def _cut(table: Tensor) -> Tensor:
    """Levels, cut off to whole ones."""
    return table.clamp(0, 255).to(torch.uint8)


class RandomBrightnessContrast(AddedTransform):
    """Multiply all values with one number and add another, with a probability.

    Parameters
    ----------
    brightness : float or (float, float)
        The range of what is added, as a share of the largest value.
    contrast : float or (float, float)
        The range of the factor less 1.
    p : float
        The probability with which it is applied.
    per_sample, generator
        :doc:`As for every transform </transforms>`.

    Notes
    -----
    Reference: albumentations' RandomBrightnessContrast, ``image * (1 + contrast) + brightness``, cut off to
    whole levels, bit-exact on uint8: :func:`imgops.lut`. Floats are computed by the formula and clamped to
    [0, 1], with that gradient. (torchvision's ColorJitter changes contrast around the mean gray.)
    """

    _levels = True
    random_parameters = (IS_APPLIED, Parameter("brightness"), Parameter("contrast"))
    _made_of = ("lut",)
    _example = {"brightness": 0.1, "contrast": 0.7}

    def __init__(
        self,
        brightness: Range = (-0.2, 0.2),
        contrast: Range = (-0.2, 0.2),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        added = in_range(self, "brightness", brightness)
        factors = in_range(self, "contrast", contrast, -1.0)
        super().__init__(p, per_sample, generator, brightness=added, contrast=factors)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"brightness": uniform(self.brightness), "contrast": uniform(self.contrast)}

    def changed(self, image: Tensor, brightness: Tensor, contrast: Tensor) -> Tensor:
        if image.dtype == torch.uint8:
            by, more = ((v.float())[..., None] for v in (1 + contrast, brightness * 255))
            return imgops.lut(image, _cut(_LEVELS * by + more)[..., None, :])
        by, more = on_pixels(1 + contrast, image), on_pixels(brightness, image)
        return (image * by + more).clamp(0, 1).to(image.dtype)


class RandomRGBShift(AddedTransform):
    """Add a number to each channel, with a probability.

    Parameters
    ----------
    red, green, blue : float or (float, float)
        The ranges of what is added, in levels of 255.
    p : float
        The probability with which it is applied.
    per_sample, generator
        :doc:`As for every transform </transforms>`.

    Notes
    -----
    Reference: albumentations' RGBShift, which adds the whole part, bit-exact on uint8: :func:`imgops.lut`.
    Floats are added and clamped to [0, 1], with that gradient. 3 channels.
    """

    _levels = True
    random_parameters = (IS_APPLIED, Parameter("shifts", 3))
    _made_of = ("lut",)
    _example = {"red": 60.0, "green": -30.0, "blue": -60.0}

    def __init__(
        self,
        red: Range = (-20.0, 20.0),
        green: Range = (-20.0, 20.0),
        blue: Range = (-20.0, 20.0),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        given = {"red": red, "green": green, "blue": blue}
        super().__init__(p, per_sample, generator, **{n: in_range(self, n, v) for n, v in given.items()})

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"shifts": [uniform(bounds) for bounds in (self.red, self.green, self.blue)]}

    def changed(self, image: Tensor, shifts: Tensor) -> Tensor:
        require_rgb(self, image)
        if image.dtype == torch.uint8:
            return imgops.lut(image, _cut(_LEVELS + shifts.float().trunc()[..., None]))
        return (image + _of_channels(shifts / 255, image)).clamp(0, 1).to(image.dtype)


def _of_channels(values: Tensor, image: Tensor) -> Tensor:
    """A number for each channel, (..., C, 1, 1), beside an image."""
    dtype = real_of(image)
    return values[..., None, None].to(image.device, dtype, non_blocking=True)


class RandomHSV(AddedTransform):
    """Shift or scale hue, saturation and value, with a probability.

    Parameters
    ----------
    hue, saturation, value : float or (float, float)
        The ranges of what is added, hue in half degrees and the others in levels of 255; or of the factors,
        with ``method="scale"``.
    method : {"shift", "scale"}
        What is done.
    p : float
        The probability with which it is applied.
    per_sample, generator
        :doc:`As for every transform </transforms>`.

    Notes
    -----
    Reference: ``cv2.cvtColor`` to HSV and back, with a table for each channel between, as in albumentations'
    HueSaturationValue ("shift") and in what detectors of the YOLO family are trained with ("scale"),
    bit-exact on uint8: :func:`imgops.cvt_color`, :func:`imgops.lut`. Gray stays gray. Floats are computed in
    real numbers, with the gradient of that. 3 channels.
    """

    random_parameters = (IS_APPLIED, Parameter("amounts", 3))
    _made_of = ("cvt_color", "lut")
    _example = {"hue": 60.0, "saturation": 60.0}

    def __init__(
        self,
        hue: Range = (-20.0, 20.0),
        saturation: Range = (-30.0, 30.0),
        value: Range = (-20.0, 20.0),
        method: str = "shift",
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        method = one_of(self, "method", method, ("shift", "scale"))
        low = 0.0 if method == "scale" else float("-inf")
        given = {"hue": hue, "saturation": saturation, "value": value}
        ranges = {n: in_range(self, n, v, low) for n, v in given.items()}
        super().__init__(p, per_sample, generator, **ranges, method=method)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"amounts": [uniform(bounds) for bounds in (self.hue, self.saturation, self.value)]}

    def changed(self, image: Tensor, amounts: Tensor) -> Tensor:
        require_rgb(self, image)
        hsv = imgops.cvt_color(image, "rgb2hsv")
        if image.dtype == torch.uint8:
            return imgops.cvt_color(imgops.lut(hsv, self._tables(amounts)), "hsv2rgb")
        by = _of_channels(amounts, hsv)
        if self.method == "scale":
            moved = hsv * by
        else:
            moved = hsv + by * _of_channels(torch.tensor([2.0, 1 / 255, 1 / 255]), hsv)
        hue, saturation, value = moved.split(1, -3)
        gray = hsv.narrow(-3, 1, 1) <= 0
        saturation = torch.where(gray, 0.0, saturation.clamp(0, 1))
        turned = torch.cat([hue % 360, saturation, value.clamp(0, 1)], -3)
        return imgops.cvt_color(turned.to(image.dtype), "hsv2rgb")

    def _tables(self, amounts: Tensor) -> Tensor:
        """What becomes of the levels of hue, saturation and value, (..., 3, 256)."""
        hue, *others = amounts[..., None].double().unbind(-2)
        levels = _LEVELS.double()
        if self.method == "scale":
            tables = [(levels * hue) % 180, *(levels * x for x in others)]
        else:
            tables = [(levels + hue) % 180, *(levels + x.trunc() for x in others)]
        table = _cut(torch.stack(tables, -2))
        table[..., 1, 0] = 0
        return table


class RandomMultiplicativeNoise(AddedTransform):
    """Multiply all values, or each channel's, with a random number, with a probability.

    Parameters
    ----------
    factor : float or (float, float)
        The range of the factor.
    per_channel : bool
        Whether each channel has one of its own.
    p : float
        The probability with which it is applied.
    per_sample, generator
        :doc:`As for every transform </transforms>`.

    Notes
    -----
    Reference: albumentations' MultiplicativeNoise, whose products are cut off to whole levels, bit-exact on
    uint8: :func:`imgops.lut`. Floats are multiplied and clamped to [0, 1], with that gradient. (For a factor
    of each pixel there is :func:`imgops.multiplicative_noise`.)
    """

    _levels = True
    random_parameters = (IS_APPLIED, Parameter("factors", lambda t, shape: t._rest(shape[1])))
    _made_of = ("lut",)
    _example = {"factor": (0.4, 1.6), "per_channel": True}

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
        super().__init__(p, per_sample, generator, factor=factors, per_channel=bool(per_channel))

    def _rest(self, channels: int) -> int:
        return channels if self.per_channel else 1

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        count = self._rest(self.shape_of(flat_inputs)[1])
        return {"factors": [uniform(self.factor) for _ in range(count)]}

    def changed(self, image: Tensor, factors: Tensor) -> Tensor:
        if image.dtype == torch.uint8:
            return imgops.lut(image, _cut(_LEVELS * factors.float()[..., None]))
        return (image * _of_channels(factors, image)).clamp(0, 1).to(image.dtype)
