"""Brightness, contrast, saturation, hue, tone and temperature."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops._common import check
from imgops.decomposition._precision import LEVELS
from imgops.transforms._core import draws, steps
from imgops.transforms._core.arguments import in_range, one_number, one_of, switch
from imgops.transforms._core.parameters import IS_APPLIED, Numbers, Parameter, Params, Shape
from imgops.transforms._core.probabilistic import ProbabilisticTransform, on_pixels, real_of, uniform
from imgops.transforms.color.channels import PERMUTATION
from imgops.transforms.color.sequence import ColorSteps

__all__ = [
    "ColorJitter",
    "RandomBrightnessContrast",
    "RandomGamma",
    "RandomHSV",
    "RandomPhotometricDistort",
    "RandomRGBShift",
    "RandomTemperature",
    "RandomToneCurve",
]

Range = float | Sequence[float]


class ColorJitter(ColorSteps, v2.ColorJitter):
    """Change brightness, contrast, saturation and hue at random, as torchvision's ColorJitter does.

    One operator makes all four changes in a random order, with PIL's pixels. Use
    :class:`RandomBrightnessContrast` for one linear map of all values, :class:`RandomHSV` for shifts in
    OpenCV's HSV, both with a probability. Without ``saturation`` and ``hue``, which are properties of RGB
    colors, images may have any number of channels; else 1 or 3.

    Parameters
    ----------
    brightness, contrast, saturation : float or (float, float), optional
        The ranges of the factors; one number b is (max(0, 1 - b), 1 + b). By default these properties do not
        change.
    hue : float or (float, float), optional
        The range of the shift of hue, as a share of a full turn in [-0.5, 0.5]; one number is (-hue, hue).
    """

    _names = "brightness,contrast,saturation,hue"
    _config = ("brightness", "contrast", "saturation", "hue")

    @property
    def _channels(self) -> check.Channels | None:  # type: ignore[override]
        if self.hue is None:
            return None if self.saturation is None else check.SATURATION
        return check.HUE if self.saturation is None else check.SATURATION_AND_HUE

    _draws_much = True

    def _draw(self, inputs: Any) -> Numbers | None:
        numbers = super()._draw(inputs)
        return numbers if self._changes() else None

    def _draw_rule(self, shape: Shape) -> draws.Rule | None:
        ranges = self.brightness, self.contrast, self.saturation, self.hue
        places = [-1 if limits is None else i for i, limits in enumerate(ranges)]
        factors = [draws.uniform(4 + i, *r) for i, r in enumerate(ranges) if r is not None]
        return [draws.permutation(0, places), *factors] if factors else None

    def _changes(self) -> bool:
        return any(f is not None for f in (self.brightness, self.contrast, self.saturation, self.hue))

    @property
    def _makes_planar(self) -> bool:  # type: ignore[override]
        return self.hue is not None

    @property
    def _outweighs_pil(self) -> bool:
        # To change the hue, PIL converts the image to HSV and back, which takes longer than a conversion to a
        # tensor.
        others = (self.brightness, self.contrast, self.saturation)
        return self.hue is not None or sum(f is not None for f in others) > 1

    def _numbers_from(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return self._pack_steps(values, values["fn_idx"].tolist())

    def _values_from(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        steps = [int(i) for i in numbers[:4] if i >= 0]
        order = [*steps, *(i for i in range(4) if i not in steps)]
        return {
            "fn_idx": torch.tensor(order, dtype=torch.int64, device="cpu"),
            **self._unpack_factors(numbers),
        }

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        return super()._steps(params, size, kind) if self._changes() else []


class RandomPhotometricDistort(ColorSteps, v2.RandomPhotometricDistort):
    """Change colors and permute channels at random, as torchvision's RandomPhotometricDistort does.

    Two operators compute the result, with PIL's pixels. This is the jitter of SSD, which makes each change
    with a probability; :class:`ColorJitter` always makes all of its changes. The image must have 1 or 3
    channels.

    Parameters
    ----------
    brightness, contrast, saturation : (float, float)
        The ranges of the factors.
    hue : (float, float)
        The range of the shift of hue, as a share of a full turn in [-0.5, 0.5].
    p : float
        The probability of each change, and of the permutation.
    """

    _makes_planar = True
    _names = "brightness,contrast,saturation,hue"
    _config = ("brightness", "contrast", "saturation", "hue", "p")
    _channels = check.SATURATION_AND_HUE
    _random_parameters = (*ColorSteps._random_parameters, Parameter("permutes"), PERMUTATION)
    _takes_batches = False

    _has_pils_pixels = False

    _draws_much = True

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        ranges = self.brightness, self.contrast, self.saturation, self.hue
        return [
            *(
                draws.chance(self.p, draws.put(i, i), draws.uniform(4 + i, *limits))
                for i, limits in enumerate(ranges)
            ),
            draws.chance(0.5, draws.rotation(1, 3), relation=">="),  # contrast comes last
            draws.chance(self.p, draws.put(8, 1), draws.permutation(9, range(shape[1]))),
        ]

    def _numbers_from(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        order = [0, 1, 2, 3] if values["contrast_before"] else [0, 2, 3, 1]
        permutation = values["channel_permutation"]
        listed = range(values["channels"]) if permutation is None else permutation.tolist()
        return [*self._pack_steps(values, order), float(permutation is not None), *listed]

    def _draw(self, inputs: Any) -> Numbers:
        channels = self._shape_of(inputs)[1]
        return self._numbers_from({**self.make_params(inputs), "channels": channels}, 0, 0)

    def _values_from(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        permutation = torch.tensor([int(n) for n in numbers[9:]], dtype=torch.int64, device="cpu")
        return {
            **self._unpack_factors(numbers),
            "contrast_before": numbers[3] != 1,
            # Even one that changes nothing changes the mode of a PIL image, in torchvision.
            "channel_permutation": permutation if numbers[8] else None,
        }

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        numbers, names = params.numbers, self._names.split(",")
        if not params.is_one_draw:
            colors, permutation = numbers[..., :8], numbers[..., 9:]
            return [steps.ColorSequence(colors, names), steps.PermuteChannels(permutation)]
        colors, permutation = numbers[:8], numbers[9:]
        found: list[steps.Step] = []
        if max(colors[:4]) >= 0:
            found.append(steps.ColorSequence(colors, names))
        if permutation != sorted(permutation):
            found.append(steps.PermuteChannels(permutation))
        return found


_LEVELS = torch.arange(256, dtype=torch.float32, device="cpu")


def _to_levels(values: Tensor, dtype: torch.dtype = torch.uint8) -> Tensor:
    """Truncate a table, or an image that was computed, to whole levels."""
    return values.clamp(0, LEVELS[dtype]).to(dtype)


class RandomBrightnessContrast(ProbabilisticTransform):
    """Multiply all values by one number and add another, with a probability.

    Use :class:`ColorJitter` for torchvision's factors, with contrast around the mean gray, :class:`RandomHSV`
    for changes of hue and saturation.

    Parameters
    ----------
    brightness : float or (float, float)
        The range of the number that is added, as a share of the largest value.
    contrast : float or (float, float)
        The range of the factor minus 1.

    Notes
    -----
    Reference: albumentations' RandomBrightnessContrast, ``image * (1 + contrast) + brightness``, truncated to
    whole levels, bit-exact on uint8: :func:`imgops.lut`. Floats are computed by the formula and clamped to
    [0, 1], with the gradient of this computation.
    """

    _levels = _takes_uint16 = True
    _random_parameters = (IS_APPLIED, Parameter("brightness"), Parameter("contrast"))

    def __init__(
        self,
        brightness: Range = (-0.2, 0.2),
        contrast: Range = (-0.2, 0.2),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        offsets = in_range(self, "brightness", brightness)
        factors = in_range(self, "contrast", contrast, -1.0)
        super().__init__(p, per_sample, generator, brightness=offsets, contrast=factors)

    def _change_image(self, image: Tensor, brightness: Tensor, contrast: Tensor) -> Tensor:
        if image.dtype == torch.uint8:
            by, more = ((v.float())[..., None] for v in (1 + contrast, brightness * 255))
            return imgops.lut(image, _to_levels(_LEVELS * by + more)[..., None, :])
        by, more = on_pixels(1 + contrast, image), on_pixels(brightness, image)
        if image.dtype == torch.uint16:
            return _to_levels(image * by + more * LEVELS[image.dtype], image.dtype)
        return (image * by + more).clamp(0, 1).to(image.dtype)


class RandomRGBShift(ProbabilisticTransform):
    """Add a number to each channel, with a probability.

    The channels change independently; use :class:`RandomTemperature` for the colors of real light.

    Parameters
    ----------
    red, green, blue : float or (float, float)
        The ranges of the numbers that are added, in levels of 255.

    Notes
    -----
    Reference: albumentations' RGBShift, which adds the integer part, bit-exact on uint8: :func:`imgops.lut`.
    Floats are added and clamped to [0, 1], with the gradient of this computation. The image must have 3
    channels.
    """

    _channels = check.Channels((3,), "it changes red, green and blue")
    _levels = _takes_uint16 = True
    _random_parameters = (IS_APPLIED, Parameter("shifts", 3))

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
        ranges_of = {"red": red, "green": green, "blue": blue}
        super().__init__(p, per_sample, generator, **{n: in_range(self, n, v) for n, v in ranges_of.items()})

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"shifts": [uniform(bounds) for bounds in (self.red, self.green, self.blue)]}

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        ranges = self.red, self.green, self.blue
        return [draws.applied(self.p, *(draws.uniform_double(1 + i, *r) for i, r in enumerate(ranges)))]

    def _change_image(self, image: Tensor, shifts: Tensor) -> Tensor:
        if image.dtype == torch.uint8:
            return imgops.lut(image, _to_levels(_LEVELS + shifts.float().trunc()[..., None]))
        if image.dtype == torch.uint16:  # 65535 is 257 times 255
            return _to_levels(image + _of_channels(shifts * 257, image).trunc(), image.dtype)
        return (image + _of_channels(shifts / 255, image)).clamp(0, 1).to(image.dtype)


def _of_channels(values: Tensor, image: Tensor) -> Tensor:
    """Return a number for each channel, ``(..., C, 1, 1)``, on the device of an image."""
    dtype = real_of(image)
    return values[..., None, None].to(image.device, dtype, non_blocking=True)


class RandomHSV(ProbabilisticTransform):
    """Shift or scale hue, saturation and value, with a probability.

    Use :class:`ColorJitter` for torchvision's factors and its shift of hue, :class:`RandomBrightnessContrast`
    for one linear map of all values.

    Parameters
    ----------
    hue, saturation, value : float or (float, float)
        The ranges of the numbers that are added, hue in degrees and the others in levels of 255; or of the
        factors, with ``method="scale"``.
    method : {"shift", "scale"}
        Whether the numbers are added ("shift") or multiply the values ("scale").

    Notes
    -----
    Reference: ``cv2.cvtColor`` to HSV and back, with a lookup table for each channel in between, as in
    albumentations' HueSaturationValue ("shift") and in the training of detectors of the YOLO family
    ("scale"), bit-exact on uint8: :func:`imgops.cvt_color`, :func:`imgops.lut`. Gray stays gray. Floats are
    computed without rounding, with the gradient of this computation. The image must have 3 channels.
    """

    _channels = check.Channels((3,), "HSV is a space of RGB colors")
    _random_parameters = (IS_APPLIED, Parameter("amounts", 3))

    def __init__(
        self,
        hue: Range = (-40.0, 40.0),
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
        ranges_of = {"hue": hue, "saturation": saturation, "value": value}
        ranges = {n: in_range(self, n, v, low) for n, v in ranges_of.items()}
        super().__init__(p, per_sample, generator, **ranges, method=method)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"amounts": [uniform(bounds) for bounds in (self.hue, self.saturation, self.value)]}

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        ranges = self.hue, self.saturation, self.value
        return [draws.applied(self.p, *(draws.uniform_double(1 + i, *r) for i, r in enumerate(ranges)))]

    def _change_image(self, image: Tensor, amounts: Tensor) -> Tensor:
        if image.dtype == torch.uint8:
            return _with_tables_of_hsv(image, _tables(amounts, self.method))
        hsv = imgops.cvt_color(image, "rgb2hsv")
        by = _of_channels(amounts, hsv)
        if self.method == "scale":
            hsv_out = hsv * by
        else:
            hsv_out = hsv + by * _of_channels(
                torch.tensor([1.0, 1 / 255, 1 / 255], dtype=torch.float32, device="cpu"), hsv
            )
        hue, saturation, value = hsv_out.split(1, -3)
        gray = hsv.narrow(-3, 1, 1) <= 0
        saturation = torch.where(gray, 0.0, saturation.clamp(0, 1))
        channels = torch.cat([hue % 360, saturation, value.clamp(0, 1)], -3)
        return imgops.cvt_color(channels.to(image.dtype), "hsv2rgb")


def _tables(amounts: Tensor, method: str) -> Tensor:
    """Return the lookup tables of hue, saturation and value, ``(..., 3, 256)``."""
    hue, *others = amounts[..., None].double().unbind(-2)
    levels = _LEVELS.double()
    if method == "scale":
        tables = [(levels * hue) % 180, *(levels * x for x in others)]
    else:
        tables = [(levels + hue / 2) % 180, *(levels + x.trunc() for x in others)]
    table = _to_levels(torch.stack(tables, -2))
    table[..., 1, 0] = 0
    return table


def _with_tables_of_hsv(image: Tensor, table: Tensor) -> Tensor:
    return imgops.cvt_color(imgops.lut(imgops.cvt_color(image, "rgb2hsv"), table), "hsv2rgb")


def hsv_shifted(image: Tensor, amounts: Tensor) -> Tensor:
    """Add degrees to the hue, and levels to the saturation and value, of a uint8 image."""
    return _with_tables_of_hsv(image, _tables(amounts, "shift"))


class RandomGamma(ProbabilisticTransform):
    """Raise all values to a random power, with a probability.

    Use :class:`RandomToneCurve` for curves of other forms.

    Parameters
    ----------
    gamma : float or (float, float)
        The range of the power; 1 changes nothing.

    Notes
    -----
    Reference: torchvision's ``adjust_gamma``, bit-exact on uint8: :func:`imgops.adjust_gamma`.
    (albumentations' RandomGamma, whose gamma is 100 times this one, is up to a level darker: it truncates 255
    times the power, not 255.999 times.)
    """

    _random_parameters = (IS_APPLIED, Parameter("gamma"))

    def __init__(
        self,
        gamma: Range = (0.8, 1.25),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(p, per_sample, generator, gamma=in_range(self, "gamma", gamma, 0.0))

    def _change_image(self, image: Tensor, gamma: Tensor) -> Tensor:
        return imgops.adjust_gamma(image, gamma)


class RandomToneCurve(ProbabilisticTransform):
    """Change the tone curve, which maps dark to light values, with a probability.

    Use :class:`RandomGamma` for a curve with one number.

    Parameters
    ----------
    scale : float
        The standard deviation of the two middle points of a Bezier curve, whose heights are 0.25 and 0.75 on
        average; they are clamped to [0, 1].
    per_channel : bool
        Whether each channel has its own curve.

    Notes
    -----
    Reference: albumentations' RandomToneCurve, ``3 (1 - x)**2 x low + 3 (1 - x) x**2 high + x**3``, bit-exact
    on uint8: :func:`imgops.lut`. Floats are computed by the formula, with its gradient.
    """

    _levels = _takes_uint16 = True
    _random_parameters = (IS_APPLIED, Parameter("curves", lambda t, shape: t._rest(shape[1])))

    def __init__(
        self,
        scale: float = 0.1,
        per_channel: bool = False,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        deviation = one_number(self, "scale", scale, 0.0, 1e6)
        how = {"scale": deviation, "per_channel": switch(self, "per_channel", per_channel)}
        super().__init__(p, per_sample, generator, **how)

    def _rest(self, channels: int) -> int:
        return 2 * (channels if self.per_channel else 1)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        count = self._rest(self._shape_of(flat_inputs)[1])
        means = torch.tensor([0.25, 0.75], dtype=torch.float32, device="cpu").repeat(count // 2)
        return {
            "curves": (means + self.scale * torch.randn(count, dtype=torch.float32, device="cpu"))
            .clamp(0, 1)
            .tolist()
        }

    def _change_image(self, image: Tensor, curves: Tensor) -> Tensor:
        low, high = curves.unflatten(-1, (-1, 2)).unbind(-1)  # (..., 1 or C)
        if image.dtype == torch.uint8:
            levels = torch.linspace(0, 1, 256, dtype=torch.float64, device="cpu")
            table = _bezier(levels, low[..., None], high[..., None]).mul(255).round()
            return imgops.lut(image, _to_levels(table))
        real = real_of(image)
        low, high = (x[..., None, None].to(image.device, real, non_blocking=True) for x in (low, high))
        if image.dtype == torch.uint16:
            white = LEVELS[image.dtype]
            return _to_levels(_bezier(image.to(real) / white, low, high).mul(white).round(), image.dtype)
        return _bezier(image.to(real), low, high).clamp(0, 1).to(image.dtype)


def _bezier(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    rest = 1 - x
    return 3 * rest**2 * x * low + 3 * rest * x**2 * high + x**3


#: The color (red, green, blue) of the light of a black body from 3000 kelvin on, and of daylight (CIE D) from
#: 4000 kelvin on, in steps of 500.
_LIGHT = {
    "blackbody": (
        3000,
        "0.6743 0.4029 0.0013 0.6281 0.4241 0.1665 0.5919 0.4372 0.2513 0.5623 0.4457 0.3154 "
        "0.5376 0.4515 0.3672 0.5163 0.4555 0.4103 0.4979 0.4584 0.4468 0.4816 0.4604 0.4782 "
        "0.4672 0.4619 0.5053 0.4542 0.4630 0.5289 0.4426 0.4638 0.5497 0.4320 0.4644 0.5681 "
        "0.4223 0.4648 0.5844 0.4135 0.4651 0.5990 0.4054 0.4653 0.6121 0.3980 0.4654 0.6239 "
        "0.3911 0.4655 0.6346 0.3847 0.4656 0.6444 0.3787 0.4656 0.6532 0.3732 0.4656 0.6613 "
        "0.3680 0.4655 0.6688 0.3632 0.4655 0.6756 0.3586 0.4655 0.6820 0.3544 0.4654 0.6878 "
        "0.3503 0.4653 0.6933",
    ),
    "cied": (
        4000,
        "0.5829 0.4421 0.2288 0.5510 0.4514 0.2948 0.5246 0.4576 0.3488 0.5021 0.4618 0.3941 "
        "0.4826 0.4646 0.4325 0.4654 0.4667 0.4654 0.4502 0.4681 0.4938 0.4364 0.4692 0.5186 "
        "0.4240 0.4700 0.5403 0.4127 0.4705 0.5594 0.4023 0.4709 0.5763 0.3928 0.4713 0.5914 "
        "0.3839 0.4715 0.6049 0.3757 0.4716 0.6171 0.3681 0.4717 0.6281 0.3609 0.4718 0.6380 "
        "0.3543 0.4719 0.6472 0.3480 0.4719 0.6555 0.3421 0.4719 0.6631 0.3365 0.4719 0.6702 "
        "0.3313 0.4719 0.6766 0.3263 0.4719 0.6826 0.3217 0.4719 0.6882",
    ),
}


_HOTTEST, _WHITE = 15000, 6000


@lru_cache
def _lights(method: str) -> Tensor:
    return torch.tensor(
        [float(x) for x in _LIGHT[method][1].split()], dtype=torch.float64, device="cpu"
    ).reshape(-1, 3)


class RandomTemperature(ProbabilisticTransform):
    """Change the color of an image's light, from a candle's red to a clear sky's blue, with a probability.

    Use :class:`RandomRGBShift` for arbitrary shifts of the channels.

    Parameters
    ----------
    method : {"blackbody", "cied"}
        The light source: a black body, or daylight (CIE illuminants D).
    temperature : (int, int), optional
        The range of the temperature of the light in kelvin, at most (3000, 15000) for "blackbody" and (4000,
        15000) for "cied", which are the defaults. Four of ten draws are below 6000 K, which is close to
        white.

    Notes
    -----
    Reference: albumentations' PlanckianJitter, bit-exact on uint8: red and blue are multiplied by the ratio
    of their light to the green light, and truncated to whole levels. Floats are multiplied and clamped, with
    the gradient of this computation. The image must have 3 channels.
    """

    _channels = check.Channels((3,), "light has a red, a green and a blue")
    _levels = _takes_uint16 = True
    _random_parameters = (IS_APPLIED, Parameter("temperature"))

    def __init__(
        self,
        method: str = "blackbody",
        temperature: Sequence[int] | None = None,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        coldest = _LIGHT[one_of(self, "method", method, tuple(_LIGHT))][0]
        limits = (coldest, _HOTTEST) if temperature is None else temperature
        limits = in_range(self, "temperature", limits, coldest, _HOTTEST, whole=True)
        super().__init__(p, per_sample, generator, method=method, temperature=limits)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        low, high = self.temperature
        middle = min(max(_WHITE, low), high)
        cold = uniform((0.0, 1.0)) < 0.4
        return {"temperature": int(uniform((low, middle) if cold else (middle, high)))}

    def _change_image(self, image: Tensor, temperature: Tensor) -> Tensor:
        lights, coldest = _lights(self.method), _LIGHT[self.method][0]
        at = (temperature.double() - coldest) / 500
        before = at.floor().clamp(0, len(lights) - 2)
        share = (at - before)[..., None]
        left = before.long()
        color = (1 - share) * lights[left] + share * lights[left + 1]
        factors = color / color[..., 1:2]
        if image.dtype == torch.uint8:
            return imgops.lut(image, _to_levels(_LEVELS * factors[..., None].float()))
        real = real_of(image)
        by = factors[..., None, None].to(image.device, real, non_blocking=True)
        if image.dtype == torch.uint16:
            return _to_levels(image * by, image.dtype)
        return (image.to(real) * by).clamp(0, 1).to(image.dtype)
