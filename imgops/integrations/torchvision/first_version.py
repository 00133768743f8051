"""Transforms that draw as those of torchvision's first version, where its second one draws otherwise.

They have the names of torchvision's classes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor, nn
from torchvision import transforms as v1
from torchvision.transforms import v2

from imgops._common.torch_private import raise_error
from imgops._operator import subclass
from imgops.transforms import color, containers, conversion, dropout, geometry, policy
from imgops.transforms._core import seeding, torchvision_private
from imgops.transforms._core.inputs import meta_image
from imgops.transforms._core.parameters import Params, Shape
from imgops.transforms.functional import _dispatch

# -- policies --------------------------------------------------------------------------------------------


class _FirstVersion:
    """A policy whose steps are drawn as torchvision's first version draws them.

    The draws follow ``forward`` of torchvision's classes, which calls the function of a step by its global
    name; the magnitudes are those of torchvision's classes.
    """

    def _drawn_steps(self, height: int, width: int) -> Iterator[policy.Named]:
        """Draw the steps of an image of a size, by their names and magnitudes."""
        raise NotImplementedError

    def _torchvision_forward(self, image: Tensor) -> None:
        for kind, magnitude in self._drawn_steps(*image.shape[-2:]):
            self._note(image, kind, magnitude)

    def _note(self, image: Tensor, kind: str, magnitude: float) -> Tensor:
        this: Any = self
        if kind == "Solarize":  # the first version counts in levels, the second in shares of white
            magnitude = share_of_white(magnitude)
        return this._step(image, kind, magnitude, None, None)


def share_of_white(level: float) -> float:
    """Return the number that times 255 is a level again, to the bit."""
    share = level / 255
    for near in (share, *(share * (1 + sign * 2**-52) for sign in (-1, 1))):
        if near * 255 == level:
            return near
    return share


def _draw(count: int) -> int:
    return int(torch.randint(count, (1,), device="cpu"))


def _draw_step(space: dict[str, Any], place: Callable[[Tensor], int]) -> policy.Named:
    """Draw a step, the place of its magnitude by a function, and its sign."""
    kind = list(space)[_draw(len(space))]
    magnitudes, is_signed = space[kind]
    magnitude = float(magnitudes[place(magnitudes)]) if magnitudes.ndim else 0.0
    return kind, -magnitude if is_signed and _draw(2) else magnitude


class _OfPlanes:
    """A transform that takes tensors ``(H, W)``, as an image of one channel that is returned without it."""

    def _run(self, inputs: tuple[Any, ...], sampler: Any) -> Any:
        this: Any = super()
        if len(inputs) == 1 and type(inputs[0]) is Tensor and inputs[0].ndim == 2:
            return this._run((inputs[0][None],), sampler)[0]
        return this._run(inputs, sampler)


class AutoAugment(_OfPlanes, _FirstVersion, policy.AutoAugment):
    """A pair of steps of a learned policy."""

    def _drawn_steps(self, height: int, width: int) -> Iterator[policy.Named]:
        given = v1.AutoAugment(self.policy)
        place, chances, signs = given.get_params(len(given.policies))
        space = torchvision_private.first_space(given, 10, (height, width))
        for (kind, p, index), chance, sign in zip(given.policies[place], chances, signs, strict=True):
            if chance <= p:
                magnitudes, is_signed = space[kind]
                magnitude = 0.0 if index is None else float(magnitudes[index])
                yield kind, -magnitude if is_signed and sign == 0 else magnitude


class RandAugment(_OfPlanes, _FirstVersion, policy.RandAugment):
    """Steps of one magnitude."""

    def _drawn_steps(self, height: int, width: int) -> Iterator[policy.Named]:
        space = torchvision_private.first_space(v1.RandAugment(), self.num_magnitude_bins, (height, width))
        for _ in range(self.num_ops):
            yield _draw_step(space, lambda _: self.magnitude)


class TrivialAugmentWide(_OfPlanes, _FirstVersion, policy.TrivialAugmentWide):
    """One step of a random magnitude."""

    def _drawn_steps(self, height: int, width: int) -> Iterator[policy.Named]:
        space = torchvision_private.first_space(v1.TrivialAugmentWide(), self.num_magnitude_bins)
        yield _draw_step(space, lambda magnitudes: _draw(len(magnitudes)))


class AugMix(_OfPlanes, _FirstVersion, policy.AugMix):
    """A mixture of chains of steps."""

    def _torchvision_forward(self, batch: Tensor) -> None:
        height, width = batch.shape[-2:]
        space = torchvision_private.first_space(v1.AugMix(all_ops=self.all_ops), 10, (height, width))
        samples = len(batch) if batch.ndim > 3 else 1
        for count in (2, self.mixture_width):
            self._dirichlet(torch.empty(samples, count, dtype=torch.float32, device="cpu"))
        for _ in range(self.mixture_width):
            image = batch
            for _ in range(self.chain_depth if self.chain_depth > 0 else 1 + _draw(3)):
                image = self._note(image, *_draw_step(space, lambda _: _draw(self.severity)))


# -- transforms of images --------------------------------------------------------------------------------


class ColorJitter(_OfPlanes, color.ColorJitter):
    """A jitter that takes planes, too."""


class Pad(geometry.Pad):
    """A padding that takes planes, too."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if type(inpt) is Tensor and inpt.ndim == 2:
            return super().transform(inpt[None], params)[0]
        return super().transform(inpt, params)


class Grayscale(color.Grayscale):
    """A conversion to gray after which a tensor of one channel still has one."""

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        is_gray = image.shape[-3] == 1 and kind is not PIL.Image.Image
        return image.clone() if is_gray else super()._image(image, params, kind)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if _dispatch.is_image(inpt) and inpt.ndim > 2 and inpt.shape[-3] == 1:
            return _dispatch.wrap_like(subclass.plain(inpt).clone(), inpt)
        return super().transform(inpt, params)

    def _plan(self, shape: Shape, program: Any) -> Shape:
        samples, channels, height, width = shape
        return samples, 1 if channels == 1 else self.num_output_channels, height, width


class RandomCrop(_OfPlanes, geometry.RandomCrop):
    """A crop that draws a row and a column wherever one of them is to be chosen."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        _, _, height, width = self._shape_of(flat_inputs)
        left, top, right, bottom = self._padding(height, width)
        padded = meta_image(1, 1, height + top + bottom, width + left + right)
        top, left, _, _ = v1.RandomCrop.get_params(padded, self.size)
        return {"top": top, "left": left}


class RandomErasing(dropout.RandomErasing):
    """An erasing of tensors alone, where the second version returns PIL images unchanged."""

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        for inpt in flat_inputs:
            _require_tensor(self, inpt)


# -- conversions -----------------------------------------------------------------------------------------


class ConvertImageDtype(conversion._DivideBy255):
    """A conversion of tensors alone."""

    _transformed_types = (Tensor, PIL.Image.Image, np.ndarray)

    def _get_name(self) -> str:
        return "ConvertImageDtype"

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        _require_tensor(self, inpt)
        return super().transform(inpt, params)


def _require_tensor(owner: Any, inpt: Any) -> None:
    if not isinstance(inpt, Tensor):
        got = type(inpt).__name__
        raise_error(TypeError, f"{owner._get_name()}: image must be a Tensor, got {got}")


class PILToTensor(conversion.PILToTensor):
    """A conversion that leaves it to torchvision to refuse arrays."""

    _transformed_types = (PIL.Image.Image, np.ndarray)


class ToPILImage(conversion.ToPILImage):
    """A conversion that leaves it to torchvision to refuse PIL images."""

    _transformed_types = (*torchvision_private.types_of(v2.ToPILImage), PIL.Image.Image)


class Lambda(nn.Module):
    """A function that takes everything that the step before it returns."""

    def __init__(self, lambd: Any) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, whole: Any) -> Any:
        return self.lambd(whole)


# -- containers ------------------------------------------------------------------------------------------


class _Choice(containers._Choice):
    """The sampling of the first version's RandomChoice."""

    weights: list[float] | None
    count: int

    def _draw_row(self, shape: Shape) -> list[float]:
        with seeding.own_generators():
            return [float(random.choices(range(self.count), weights=self.weights)[0])]


class _Order(containers._Order):
    """The sampling of the first version's RandomOrder."""

    def _draw_row(self, shape: Shape) -> list[float]:
        order = list(range(shape[1]))
        with seeding.own_generators():
            random.shuffle(order)
        return [float(i) for i in order]


class RandomChoice(_Choice, containers.RandomChoice):
    """One transform of a list, which Python's generator draws."""

    _config: Any = ("weights", "count")
    _described = _Choice

    def __init__(self, transforms: list[Any], weights: Any) -> None:
        self.weights, self.count = None if weights is None else list(weights), len(transforms)
        super().__init__(transforms)


class RandomOrder(_Order, containers.RandomOrder):
    """Transforms in an order that Python's generator draws."""

    _described = _Order
