"""Padding."""

from __future__ import annotations

from torchvision.transforms import v2

from imgops.transforms._core import steps, torchvision_private
from imgops.transforms._core.base import OperatorTransform, RandomSizeTransform
from imgops.transforms._core.parameters import Parameter, Params

__all__ = ["Pad", "RandomZoomOut"]


class Pad(OperatorTransform, v2.Pad):
    """Pad the image, as torchvision's Pad does.

    A border may be wider than the image. Use :class:`PadIfNeeded` to pad up to a size. Masks, boxes and
    keypoints follow the image.

    Parameters
    ----------
    padding : int or sequence of int
        The width of the border in pixels: one number for all sides; two for left and right, and for top and
        bottom; or left, top, right and bottom.
    fill : float, sequence of float, dict or None
        The value of a constant border, or one for each channel; a dict has one for each class, as in
        ``{tv_tensors.Image: 128, "others": 0}``. None means 0.
    padding_mode : {"constant", "edge", "reflect", "symmetric"}
        The border mode.
    """

    _makes_planar = True
    _config = ("padding", "padding_mode")
    _moves = True
    _goes_back = True

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        return [steps.Pad(self.padding, torchvision_private.fill_of(self, kind), self.padding_mode)]

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        left, right, top, bottom = torchvision_private.pad_sides(self.padding)
        return height + top + bottom, width + left + right


class RandomZoomOut(RandomSizeTransform, v2.RandomZoomOut):
    """Place the image in a larger canvas with a probability, as torchvision's RandomZoomOut does.

    Masks, boxes and keypoints follow the image.

    Parameters
    ----------
    fill : float, sequence of float, dict or None
        The value of the canvas around the image, or one for each channel; a dict has one for each class, as
        in ``{tv_tensors.Image: 128, "others": 0}``. None means 0.
    side_range : (float, float)
        The range of the factor by which both sides grow, at least 1.
    per_sample : bool
        It must be False for a batch, because samples of different sizes cannot form one.
    """

    _makes_planar = True
    _one_size = True
    _config = ("side_range", "p")
    _goes_back = True
    _least = (0, 0, 0, 0)
    _random_parameters = (Parameter("padding", 4, kind=int),)

    def _sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        return tuple(int(n) for n in numbers)

    def _canvas(self, params: Params) -> tuple[int, int]:
        left, top, right, bottom = self._sizes(params)
        return params.canvas[0] + top + bottom, params.canvas[1] + left + right

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        return [steps.Pad(self._sizes(params), torchvision_private.fill_of(self, kind))]
