"""The transforms of color, and blur and noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops.transforms import _operators
from imgops.transforms._base import Numbers, OperatorTransform, RandomTransform
from imgops.transforms._sampling import ParameterSampler, Params
from imgops.transforms.functional import _color as functional_color
from imgops.transforms.functional import _dispatch


class Grayscale(OperatorTransform, v2.Grayscale):
    """As torchvision's, with PIL's pixels."""

    def _plan(self, shape: Any, program: Any) -> Any:
        samples, _, height, width = shape
        return samples, self.num_output_channels, height, width


class RGB(OperatorTransform, v2.RGB):
    """As torchvision's: gray images get three equal channels."""

    def _plan(self, shape: Any, program: Any) -> Any:
        samples, channels, height, width = shape
        return samples, max(channels, 3), height, width


class _Steps(RandomTransform):
    """Parameters are an order and an amount for each of ``_names``: see :func:`imgops.color_sequence`."""

    _names = ""
    _dtypes = _dispatch.COMPUTED

    def is_pils(self) -> bool:
        return True

    @property
    def _length(self) -> int:
        return self._names.count(",") + 1

    def _count(self, samples: int, channels: int, height: int, width: int) -> int:
        return 2 * self._length

    def identity_params(self, samples: int, channels: int, height: int, width: int) -> Numbers:
        return [-1.0] * self._length + [0.0] * self._length

    def _pack_steps(self, values: dict[str, Any], order: Sequence[int]) -> list[float]:
        """The order, with -1 for steps that are left out, and the factors of torchvision's parameters."""
        factors = [values[f"{name}_factor"] for name in self._names.split(",")]
        taken = [float(i) if factors[i] is not None else -1.0 for i in order]
        return [*taken, *(0.0 if f is None else f for f in factors)]

    def _unpack_factors(self, numbers: list[float]) -> dict[str, Any]:
        names, steps = self._names.split(","), self._length
        taken = numbers[:steps]
        return {f"{name}_factor": numbers[steps + i] if i in taken else None for i, name in enumerate(names)}

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        numbers, steps = params.beside(image), self._length
        order, amounts = numbers[..., :steps].long(), numbers[..., steps : 2 * steps]
        return imgops.color_sequence(image, order, amounts, self._names)


class ColorJitter(_Steps, v2.ColorJitter):
    """As torchvision's, in one operator, with PIL's pixels, and per sample."""

    _names = "brightness,contrast,saturation,hue"
    _config = ("brightness", "contrast", "saturation", "hue")

    def sample_params(self, inputs: list[Any]) -> dict[str, Any] | None:
        values = self.make_params(inputs)
        return values if self._changes() else None

    def _changes(self) -> bool:
        return any(f is not None for f in (self.brightness, self.contrast, self.saturation, self.hue))

    def is_pils(self) -> bool:
        return self.hue is None  # PIL turns hues in 8 bits

    def outweighs_pil(self) -> bool:
        return sum(f is not None for f in (self.brightness, self.contrast, self.saturation)) > 1

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return self._pack_steps(values, values["fn_idx"].tolist())

    def unpack_params(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        used = [int(i) for i in numbers[:4] if i >= 0]
        order = [*used, *(i for i in range(4) if i not in used)]
        return {"fn_idx": torch.tensor(order), **self._unpack_factors(numbers)}

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        if not self._changes():
            return image
        functional_color.require_one_or_three("ColorJitter", image)
        return super()._image(image, params, kind)


class RandomPhotometricDistort(_Steps, v2.RandomPhotometricDistort):
    """As torchvision's, in two operators, with PIL's pixels, and per sample."""

    _names = "brightness,contrast,saturation,hue"
    _config = ("brightness", "contrast", "saturation", "hue", "p")

    def is_pils(self) -> bool:
        return False

    def _count(self, samples: int, channels: int, height: int, width: int) -> int:
        return 8 + channels

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        order = [0, 1, 2, 3] if values["contrast_before"] else [0, 2, 3, 1]
        permutation = values["channel_permutation"]
        return [
            *self._pack_steps(values, order),
            *(range(values["channels"]) if permutation is None else permutation.tolist()),
        ]

    def sample_params(self, inputs: list[Any]) -> dict[str, Any]:
        return {**self.make_params(inputs), "channels": self.shape_of(inputs)[1]}

    def unpack_params(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        permutation = torch.tensor([int(n) for n in numbers[8:]])
        return {
            **self._unpack_factors(numbers),
            "contrast_before": numbers[3] != 1,
            "channel_permutation": permutation,
        }

    def identity_params(self, samples: int, channels: int, height: int, width: int) -> Numbers:
        return [*super().identity_params(samples, channels, height, width), *range(channels)]

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        values = params.values
        if values is None or any(values[f"{name}_factor"] is not None for name in self._names.split(",")):
            functional_color.require_one_or_three("RandomPhotometricDistort", image)
            image = super()._image(image, params, kind)
        if values is not None and values["channel_permutation"] is None:
            return image
        return permuted(image, params.beside(image)[..., 8:].long())


class RandomChannelPermutation(RandomTransform, v2.RandomChannelPermutation):
    """As torchvision's, and per sample."""

    def _count(self, samples: int, channels: int, height: int, width: int) -> int:
        return channels

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return values["permutation"].tolist()

    def unpack_params(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        return {"permutation": torch.tensor([int(n) for n in numbers])}

    def identity_params(self, samples: int, channels: int, height: int, width: int) -> Numbers:
        return list(range(channels))

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return permuted(image, params.beside(image).long())


def permuted(image: Tensor, order: Tensor) -> Tensor:
    """The channels in an order, or each sample's in an order of its own."""
    order = order.to(image.device, non_blocking=True)
    if order.ndim == 1:
        return image.index_select(-3, order)
    return image.gather(-3, order[..., None, None].expand(image.shape))


class _Chosen(_Steps):
    """One step, taken with a probability."""

    _config: tuple[str, ...] = ("p",)

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [0.0, self._amount()]

    def unpack_params(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        return {} if numbers[0] >= 0 else None

    def _amount(self) -> float:
        return 0.0


class RandomGrayscale(RandomTransform, v2.RandomGrayscale):
    """As torchvision's, with PIL's pixels, and per sample."""

    _config = ("p",)
    _dtypes = _dispatch.COMPUTED

    def is_pils(self) -> bool:
        return True

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [1.0]

    def unpack_params(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        return {"num_input_channels": 3} if numbers[0] else None

    def identity_params(self, samples: int, channels: int, height: int, width: int) -> Numbers:
        return [0.0]

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        if issubclass(kind, _dispatch.Video):
            return image  # as torchvision has it
        channels = image.shape[-3]
        if channels == 1:
            return image
        if channels != 3:
            raise ValueError(f"RandomGrayscale: image must have 1 or 3 channels, got {channels}")
        known = params.values is not None  # then it was chosen
        return _operators.grayed(image, _operators.CHOSEN if known else params.beside(image)[..., 0] > 0)


class RandomInvert(_Chosen, v2.RandomInvert):
    """As torchvision's, and per sample."""

    _names = "invert"


class RandomPosterize(_Chosen, v2.RandomPosterize):
    """As torchvision's, and per sample."""

    _names = "posterize"
    _config = ("bits", "p")

    def _amount(self) -> float:
        return float(self.bits)

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        functional_color.require_bits(self.bits)
        return super()._image(image, params, kind)


class RandomSolarize(_Chosen, v2.RandomSolarize):
    """As torchvision's, and per sample."""

    _names = "solarize"
    _config = ("threshold", "p")

    def _amount(self) -> float:
        return float(self.threshold)

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        functional_color.require_threshold(image, self.threshold)
        return super()._image(image, params, kind)


class RandomAdjustSharpness(_Chosen, v2.RandomAdjustSharpness):
    """As torchvision's, with PIL's pixels, and per sample."""

    _names = "sharpness"
    _config = ("sharpness_factor", "p")

    def _amount(self) -> float:
        return float(self.sharpness_factor)

    def outweighs_pil(self) -> bool:
        return True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        functional_color.require_one_or_three("RandomAdjustSharpness", image)
        functional_color.require_not_negative("sharpness_factor", self.sharpness_factor)
        return super()._image(image, params, kind)


class RandomAutocontrast(_Chosen, v2.RandomAutocontrast):
    """As torchvision's, with PIL's pixels, and per sample."""

    _names = "autocontrast"

    def outweighs_pil(self) -> bool:
        return True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        functional_color.require_one_or_three("RandomAutocontrast", image)
        return super()._image(image, params, kind)


class RandomEqualize(_Chosen, v2.RandomEqualize):
    """As torchvision's, and per sample."""

    _names = "equalize"


class GaussianBlur(RandomTransform, v2.GaussianBlur):
    """As torchvision's, with OpenCV's pixels, and per sample."""

    _config = ("kernel_size", "sigma")
    _dtypes = _dispatch.COMPUTED

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [values["sigma"][0]]

    def unpack_params(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        return {"sigma": [numbers[0], numbers[0]]} if numbers[0] > 0 else None

    def identity_params(self, samples: int, channels: int, height: int, width: int) -> Numbers:
        return [0.0]

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        sigma = params.beside(image)
        return imgops.gaussian_blur(image, tuple(self.kernel_size), sigma.expand(*sigma.shape[:-1], 2))


class GaussianNoise(RandomTransform, v2.GaussianNoise):
    """As torchvision's, and per sample."""

    _config = ("mean", "sigma", "clip")
    _dtypes = frozenset()  # noise is drawn where the transform is applied

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {}

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [1.0]

    def identity_params(self, samples: int, channels: int, height: int, width: int) -> Numbers:
        return [0.0]

    def _plan(self, shape: Any, program: Any) -> None:
        return None  # noise is drawn in its turn, beside the image

    def _record(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> None:
        self._run(inputs, sampler)

    def _applied(self, inpt: Any, params: Params, sampler: ParameterSampler) -> Any:
        if not _dispatch.is_image(inpt):
            return super()._applied(inpt, params, sampler)
        image = _dispatch.plain(inpt)
        if self.sigma < 0 or not (image.dtype == torch.uint8 or image.dtype.is_floating_point):
            return self.by_torchvision(image, {})  # torchvision says what is wrong
        noise = params.noise.pop(0) if params.noise else sampler.noise(self, image)
        if sampler.record is not None:
            sampler.record[sampler.path].noise.append(noise)
        return _dispatch.wrapped(self._noisy(image, noise, params), inpt)

    def _noisy(self, image: Tensor, noise: Tensor, params: Params) -> Tensor:
        """torchvision's arithmetic, in the samples that were chosen."""
        if image.dtype == torch.uint8:
            noisy = image + (self.mean * 255 + noise * (self.sigma * 255)).to(torch.int16)
            out = (torch.clamp(noisy, 0, 255) if self.clip else noisy).to(torch.uint8)
        else:
            noisy = image + (self.mean + noise * self.sigma)
            out = torch.clamp(noisy, 0, 1) if self.clip else noisy
        if params.values is not None:
            return out
        return _operators.where(params.beside(image)[..., 0] > 0, out, image)
