"""The transforms of color, and blur and noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops._torch_private import is_eager
from imgops.transforms import _operators, _seeded
from imgops.transforms._base import NOTHING, OperatorTransform, RandomTransform
from imgops.transforms._parameters import IS_APPLIED, Numbers, Parameter, Params, as_integers
from imgops.transforms._sampling import ParameterSampler
from imgops.transforms.functional import _color as functional_color
from imgops.transforms.functional import _dispatch


class Grayscale(OperatorTransform, v2.Grayscale):
    """As torchvision's, with PIL's pixels."""

    _dtypes = _dispatch.COMPUTED

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return functional_color.rgb_to_grayscale(image, self.num_output_channels)

    def _plan(self, shape: Any, program: Any) -> Any:
        samples, _, height, width = shape
        return samples, self.num_output_channels, height, width


class RGB(OperatorTransform, v2.RGB):
    """As torchvision's: gray images get three equal channels."""

    _dtypes = _dispatch.COMPUTED

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return functional_color.grayscale_to_rgb(image)

    def _plan(self, shape: Any, program: Any) -> Any:
        samples, channels, height, width = shape
        return samples, max(channels, 3), height, width


class _Steps(RandomTransform):
    """Parameters are an order and an amount for each of ``_names``: see :func:`imgops.color_sequence`."""

    _names = ""
    _dtypes = _dispatch.COMPUTED
    random_parameters = (Parameter("order", 4, neutral=-1.0), Parameter("amounts", 4))

    def is_pils(self) -> bool:
        return True

    def _pack_steps(self, values: dict[str, Any], order: Sequence[int]) -> list[float]:
        """The order, with -1 for steps that are left out, and the factors of torchvision's parameters."""
        factors = [values[f"{name}_factor"] for name in self._names.split(",")]
        taken = [float(i) if factors[i] is not None else -1.0 for i in order]
        return [*taken, *(0.0 if f is None else f for f in factors)]

    def _unpack_factors(self, numbers: list[float]) -> dict[str, Any]:
        taken, names = numbers[:4], self._names.split(",")
        return {f"{name}_factor": numbers[4 + i] if i in taken else None for i, name in enumerate(names)}

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        order, amounts, *_ = self.split(params.beside(image))
        if params.is_known:
            order = torch.tensor(as_integers(order), device="cpu")
            amounts = torch.tensor(amounts, dtype=torch.float64, device="cpu")
        return imgops.color_sequence(image, order.long(), amounts, self._names)


class ColorJitter(_Steps, v2.ColorJitter):
    """As torchvision's, in one operator, with PIL's pixels, and per sample."""

    _names = "brightness,contrast,saturation,hue"
    _config = ("brightness", "contrast", "saturation", "hue")
    _channels = (1, 3)

    def _draw(self, inputs: Any) -> Numbers | None:
        numbers = super()._draw(inputs)
        return numbers if self._changes() else None

    def _changes(self) -> bool:
        return any(f is not None for f in (self.brightness, self.contrast, self.saturation, self.hue))

    def is_pils(self) -> bool:
        return self.hue is None  # PIL turns hues in 8 bits

    def outweighs_pil(self) -> bool:
        return sum(f is not None for f in (self.brightness, self.contrast, self.saturation)) > 1

    def pack(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return self._pack_steps(values, values["fn_idx"].tolist())

    def unpack(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        used = [int(i) for i in numbers[:4] if i >= 0]
        order = [*used, *(i for i in range(4) if i not in used)]
        return {"fn_idx": torch.tensor(order), **self._unpack_factors(numbers)}

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return super()._image(image, params, kind) if self._changes() else image


#: The channels in their new order.
PERMUTATION = Parameter("permutation", lambda _, shape: shape[1], lambda shape: range(shape[1]), int)


class RandomPhotometricDistort(_Steps, v2.RandomPhotometricDistort):
    """As torchvision's, in two operators, with PIL's pixels, and per sample."""

    _names = "brightness,contrast,saturation,hue"
    _config = ("brightness", "contrast", "saturation", "hue", "p")
    _channels = (1, 3)
    random_parameters = (*_Steps.random_parameters, PERMUTATION)

    def is_pils(self) -> bool:
        return False

    def pack(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        order = [0, 1, 2, 3] if values["contrast_before"] else [0, 2, 3, 1]
        permutation = values["channel_permutation"]
        if permutation is None:
            permutation = torch.arange(values["channels"])
        return [*self._pack_steps(values, order), *permutation.tolist()]

    def _draw(self, inputs: Any) -> Numbers:
        channels = self.shape_of(inputs)[1]
        return self.pack({**self.make_params(inputs), "channels": channels}, 0, 0)

    def unpack(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        permutation = torch.tensor([int(n) for n in numbers[8:]])
        return {
            **self._unpack_factors(numbers),
            "contrast_before": numbers[3] != 1,
            "channel_permutation": permutation,
        }

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        order, _, permutation = self.split(params.beside(image))
        if not params.is_known or max(order) >= 0:
            image = super()._image(image, params, kind)
        if params.is_known and permutation == sorted(permutation):
            return image
        return permuted(image, as_integers(permutation))


class RandomChannelPermutation(RandomTransform, v2.RandomChannelPermutation):
    """As torchvision's, and per sample."""

    random_parameters = (PERMUTATION,)

    def unpack(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        return {"permutation": torch.tensor([int(n) for n in numbers])}

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return permuted(image, as_integers(params.beside(image)))


def permuted(image: Tensor, order: Sequence[int] | Tensor) -> Tensor:
    """Return the channels in an order, or each sample's in an order of its own."""
    order = torch.as_tensor(order, dtype=torch.int64).to(image.device, non_blocking=True)
    if order.ndim == 1:
        return image.index_select(-3, order)
    return image.gather(-3, order[..., None, None].expand(image.shape))


class _OneStep(_Steps):
    """One step, taken with a probability, whose amount is an argument of the transform."""

    _config: tuple[str, ...] = ("p",)
    random_parameters = (Parameter("order", 1, neutral=-1.0), Parameter("amount"))

    def pack(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [0.0, self._amount()]

    def unpack(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        return {} if numbers[0] >= 0 else None

    def _amount(self) -> float:
        return 0.0

    def _step(self, image: Tensor) -> Tensor:
        """Do the step to a whole image."""
        raise NotImplementedError

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        if params.is_known:
            return self._step(image)
        numbers = params.beside(image)
        return imgops.color_sequence(image, numbers[..., :1].long(), numbers[..., 1:], self._names)


class RandomGrayscale(RandomTransform, v2.RandomGrayscale):
    """As torchvision's, with PIL's pixels, and per sample."""

    _config = ("p",)
    _dtypes = _dispatch.COMPUTED
    random_parameters = (IS_APPLIED, Parameter("num_input_channels", kind=int))

    def is_pils(self) -> bool:
        return True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        if issubclass(kind, _dispatch.Video):
            return image  # as torchvision has it
        channels = image.shape[-3]
        if channels == 1:
            return image
        if channels != 3:
            raise ValueError(f"RandomGrayscale: image must have 1 or 3 channels, got {channels}")
        if params.is_known:
            return imgops.grayscale(image, 3)
        return _operators.grayed(image, params.beside(image)[..., 0] > 0)


class RandomInvert(_OneStep, v2.RandomInvert):
    """As torchvision's, and per sample."""

    _names = "invert"

    def _step(self, image: Tensor) -> Tensor:
        return imgops.invert(image)


class RandomPosterize(_OneStep, v2.RandomPosterize):
    """As torchvision's, and per sample."""

    _names = "posterize"
    _config = ("bits", "p")

    def _amount(self) -> float:
        return float(self.bits)

    def _step(self, image: Tensor) -> Tensor:
        return imgops.posterize(image, self.bits)

    def _computes(self, image: Tensor) -> bool:
        return isinstance(self.bits, int) and 0 <= self.bits <= 8 and super()._computes(image)


class RandomSolarize(_OneStep, v2.RandomSolarize):
    """As torchvision's, and per sample."""

    _names = "solarize"
    _config = ("threshold", "p")

    def _amount(self) -> float:
        return float(self.threshold)

    def _step(self, image: Tensor) -> Tensor:
        return imgops.solarize(image, self.threshold)

    def _computes(self, image: Tensor) -> bool:
        return self.threshold <= functional_color.white_of(image) and super()._computes(image)


class RandomAdjustSharpness(_OneStep, v2.RandomAdjustSharpness):
    """As torchvision's, with PIL's pixels, and per sample."""

    _names = "sharpness"
    _config = ("sharpness_factor", "p")
    _channels = (1, 3)

    def _amount(self) -> float:
        return float(self.sharpness_factor)

    def _step(self, image: Tensor) -> Tensor:
        return imgops.adjust_sharpness(image, self.sharpness_factor)

    def outweighs_pil(self) -> bool:
        return True

    def _computes(self, image: Tensor) -> bool:
        return self.sharpness_factor >= 0 and super()._computes(image)


class RandomAutocontrast(_OneStep, v2.RandomAutocontrast):
    """As torchvision's, with PIL's pixels, and per sample."""

    _names = "autocontrast"
    _channels = (1, 3)

    def _step(self, image: Tensor) -> Tensor:
        return imgops.autocontrast(image)

    def outweighs_pil(self) -> bool:
        return True


class RandomEqualize(_OneStep, v2.RandomEqualize):
    """As torchvision's, and per sample."""

    _names = "equalize"

    def _step(self, image: Tensor) -> Tensor:
        return imgops.equalize(image)


class GaussianBlur(RandomTransform, v2.GaussianBlur):
    """As torchvision's, with OpenCV's pixels, and per sample."""

    _config = ("kernel_size", "sigma")
    _dtypes = _dispatch.COMPUTED
    random_parameters = (Parameter("sigma", 2),)

    def unpack(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        return {"sigma": list(numbers)} if numbers[0] > 0 else None

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return imgops.gaussian_blur(image, tuple(self.kernel_size), params.beside(image))


class GaussianNoise(RandomTransform, v2.GaussianNoise):
    """As torchvision's, and per sample."""

    _config = ("mean", "sigma", "clip")
    _dtypes = frozenset()  # noise is drawn where the transform is applied
    random_parameters = (IS_APPLIED,)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {}

    def forward(self, *inputs: Any) -> Any:
        if (
            len(inputs) == 1
            and type(inputs[0]) is Tensor
            and is_eager()
            and self._draws_like_torchvision(inputs[0])
        ):
            noise = torch.empty_like(
                inputs[0], dtype=inputs[0].dtype if inputs[0].is_floating_point() else torch.float32
            )
            _seeded.noise(noise)
            return self._noisy(inputs[0], noise, NOTHING)
        return super().forward(*inputs)

    def _draws_like_torchvision(self, image: Tensor) -> bool:
        is_plain = (
            self.generator is None and not self.per_sample and self.sigma >= 0 and bool(self._description)
        )
        return is_plain and (image.dtype == torch.uint8 or image.dtype.is_floating_point)

    def _plan(self, shape: Any, program: Any) -> None:
        return None  # noise is drawn in its turn, beside the image

    def _record(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> None:
        self._run(inputs, sampler)

    def _change(self, inpt: Any, params: Params, sampler: ParameterSampler) -> Any:
        if not _dispatch.is_image(inpt):
            return super()._change(inpt, params, sampler)
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
        if params.is_known:
            return out
        return _operators.where(params.beside(image)[..., 0] > 0, out, image)
