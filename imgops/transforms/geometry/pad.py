"""Padding."""

from __future__ import annotations

from torch import Tensor
from torchvision.transforms import v2

from imgops.transforms._core import torchvision_private
from imgops.transforms._core.base import OperatorTransform
from imgops.transforms._core.parameters import Parameter, Params
from imgops.transforms._core.sizes import RandomSizeTransform
from imgops.transforms.functional import _geometry

__all__ = ["Pad", "RandomZoomOut"]


class Pad(OperatorTransform, v2.Pad):
    """Pad the image, as torchvision's Pad does.

    A border may be wider than the image.
    """

    _config = ("padding", "padding_mode")
    _moves = True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return _geometry.pad(image, self.padding, torchvision_private.fill_of(self, kind), self.padding_mode)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        left, right, top, bottom = torchvision_private.pad_sides(self.padding)
        return height + top + bottom, width + left + right


class RandomZoomOut(RandomSizeTransform, v2.RandomZoomOut):
    """Place the image in a larger canvas with a probability, as torchvision's RandomZoomOut does."""

    _config = ("side_range", "p")
    _least = (0, 0, 0, 0)
    random_parameters = (Parameter("padding", 4, kind=int),)

    def sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        return tuple(int(n) for n in numbers)

    def _canvas(self, params: Params) -> tuple[int, int]:
        left, top, right, bottom = self._sizes(params)
        return params.canvas[0] + top + bottom, params.canvas[1] + left + right

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return _geometry.pad(image, self._sizes(params), torchvision_private.fill_of(self, kind))
