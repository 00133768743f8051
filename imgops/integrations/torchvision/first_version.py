"""Transforms that draw as those of torchvision's first version, where its second one draws otherwise."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torchvision import transforms as v1

from imgops._common.torch_private import raise_error
from imgops._operator import subclass
from imgops.transforms import color, containers, conversion, dropout, geometry, policy
from imgops.transforms._core import seeding, torchvision_private
from imgops.transforms._core.inputs import meta_image
from imgops.transforms._core.parameters import Params, Shape
from imgops.transforms.functional import _dispatch


class _FirstVersion:
    """A policy whose steps are drawn by the code of torchvision's first version."""

    def _get_name(self) -> str:
        return type(self).__name__.removeprefix("_")

    def _given(self) -> Any:
        """Return the policy of the first version that draws."""
        raise NotImplementedError

    def _torchvision_forward(self, image: Tensor) -> Any:
        this: Any = self
        return torchvision_private.run_first_version(self._given(), image, self._note, this._dirichlet)

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


class _OfPlanes:
    """A transform that takes tensors ``(H, W)``, as an image of one channel that is returned without it."""

    def _run(self, inputs: tuple[Any, ...], sampler: Any) -> Any:
        this: Any = super()
        if len(inputs) == 1 and type(inputs[0]) is Tensor and inputs[0].ndim == 2:
            return this._run((inputs[0][None],), sampler)[0]
        return this._run(inputs, sampler)

    def _get_name(self) -> str:
        return type(self).__name__.removeprefix("_")


class _AutoAugment(_OfPlanes, _FirstVersion, policy.AutoAugment):
    def _given(self) -> Any:
        return v1.AutoAugment(self.policy)


class _RandAugment(_OfPlanes, _FirstVersion, policy.RandAugment):
    def _given(self) -> Any:
        return v1.RandAugment(self.num_ops, self.magnitude, self.num_magnitude_bins)


class _TrivialAugmentWide(_OfPlanes, _FirstVersion, policy.TrivialAugmentWide):
    def _given(self) -> Any:
        return v1.TrivialAugmentWide(self.num_magnitude_bins)


class _AugMix(_OfPlanes, _FirstVersion, policy.AugMix):
    def _given(self) -> Any:
        return v1.AugMix(self.severity, self.mixture_width, self.chain_depth, self.alpha, self.all_ops)


class _ColorJitter(_OfPlanes, color.ColorJitter):
    """A jitter of planes, too."""


class _Pad(geometry.Pad):
    """A padding of planes, too."""

    def _get_name(self) -> str:
        return "Pad"

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if type(inpt) is Tensor and inpt.ndim == 2:
            return super().transform(inpt[None], params)[0]
        return super().transform(inpt, params)


class _Grayscale(color.Grayscale):
    """A conversion to gray after which a tensor of one channel has one, as torchvision's has."""

    def _get_name(self) -> str:
        return "Grayscale"

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


class _RandomCrop(_OfPlanes, geometry.RandomCrop):
    """A crop that draws a row and a column wherever one of them is to be chosen."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        _, _, height, width = self._shape_of(flat_inputs)
        left, top, right, bottom = self._padding(height, width)
        padded = meta_image(1, 1, height + top + bottom, width + left + right)
        top, left, _, _ = v1.RandomCrop.get_params(padded, self.size)
        return {"top": top, "left": left}


class _RandomErasing(dropout.RandomErasing):
    """An erasing of tensors alone, where the second version returns PIL images unchanged."""

    def _get_name(self) -> str:
        return "RandomErasing"

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        for inpt in flat_inputs:
            _require_tensor(self, inpt)


class _ConvertImageDtype(conversion._DivideBy255):
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


class _FirstChance(containers._Chance):
    """The sampling of the first version's RandomApply, which applies where the draw is the probability."""

    def _draw_row(self, shape: Shape) -> list[float]:
        return [0.0 if self.p < torch.rand(1, dtype=torch.float32, device="cpu") else 1.0]


class _RandomApply(_FirstChance, containers.RandomApply):
    _described = _FirstChance

    def _get_name(self) -> str:
        return "RandomApply"


class _PythonChoice(containers._Choice):
    """The sampling of the first version's RandomChoice."""

    weights: list[float] | None
    count: int

    def _draw_row(self, shape: Shape) -> list[float]:
        with seeding.own_generators():
            return [float(random.choices(range(self.count), weights=self.weights)[0])]


class _PythonOrder(containers._Order):
    """The sampling of the first version's RandomOrder."""

    def _draw_row(self, shape: Shape) -> list[float]:
        order = list(range(shape[1]))
        with seeding.own_generators():
            random.shuffle(order)
        return [float(i) for i in order]


class _RandomChoice(_PythonChoice, containers.RandomChoice):
    _config: Any = ("weights", "count")
    _described = _PythonChoice

    def __init__(self, transforms: list[Any], weights: Any) -> None:
        self.weights, self.count = None if weights is None else list(weights), len(transforms)
        super().__init__(transforms)

    def _get_name(self) -> str:
        return "RandomChoice"


class _RandomOrder(_PythonOrder, containers.RandomOrder):
    _described = _PythonOrder

    def _get_name(self) -> str:
        return "RandomOrder"
