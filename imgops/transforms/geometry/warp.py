"""Affine and perspective warps."""

from __future__ import annotations

from typing import Any, cast

from torch import Tensor
from torchvision.transforms import v2

from imgops.transforms._core import draws, projections, steps
from imgops.transforms._core.base import RandomSizeTransform, RandomTransform
from imgops.transforms._core.parameters import (
    IS_APPLIED,
    Numbers,
    Parameter,
    Params,
    Shape,
    each_number,
)
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms._core.torchvision_private import fill_of, perspective_coefficients
from imgops.transforms.functional import _geometry, _matrices

__all__ = ["RandomAffine", "RandomPerspective", "RandomRotation"]


class _Warp(RandomTransform):
    _makes_planar = True
    _one_size = True
    _needs_pixels = True
    _moves = True
    _goes_back = True
    _kind_of_map = projections.AFFINE

    #: The functional that an error about the interpolation names.
    _functional = "affine"

    def _matrix(self, numbers: Numbers, height: int, width: int) -> Tensor:
        """Return the matrix of a draw, or those of all samples."""
        raise NotImplementedError

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        matrix = self._matrix(params.numbers, *size).flatten(-2)
        given = cast("Any", self).interpolation
        name = _geometry.warp_interpolation(self._functional, given, kind)
        return [steps.Warp(matrix, name, fill_of(self, kind))]


class RandomAffine(_Warp, v2.RandomAffine):
    """Rotate, translate, scale and shear the image at random, as torchvision's RandomAffine does.

    The pixels are OpenCV's. Masks, boxes and keypoints follow the image.

    Parameters
    ----------
    degrees : float or (float, float)
        The range of the angle in degrees, clockwise; one number is (-degrees, degrees).
    translate : (float, float), optional
        The largest shifts along x and y, as fractions of the width and height. By default the image is not
        shifted.
    scale : (float, float), optional
        The range of the factor; by default it is 1.
    shear : float or sequence of float, optional
        The range of the angle of shearing along x in degrees; one number is (-shear, shear), four are the
        ranges along x and y. By default the image is not sheared.
    fill : float, sequence of float, dict or None
        The value of pixels outside of the image, or one for each channel; a dict has one for each class, as
        in ``{tv_tensors.Image: 128, "others": 0}``. None means 0.
    center : (float, float), optional
        The point (x, y) in pixels around which the image is turned; by default its center.
    """

    _config = ("degrees", "translate", "scale", "shear", "center")
    _random_parameters = (
        Parameter("angle"),
        Parameter("translate", 2, kind=int),
        Parameter("scale", neutral=1.0),
        Parameter("shear", 2),
    )

    _draws_much = True

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        rule = [draws.uniform(0, *self.degrees)]
        if self.translate is not None:
            for i, side in enumerate((shape[3], shape[2])):
                most = float(self.translate[i] * side)
                rule.append(draws.uniform(1 + i, -most, most, rounded=True))
        if self.scale is not None:
            rule.append(draws.uniform(3, *self.scale))
        if self.shear is not None:
            rule.append(draws.uniform(4, *self.shear[:2]))
            if len(self.shear) == 4:
                rule.append(draws.uniform(5, *self.shear[2:]))
        return rule

    @property
    def _kind_of_map(self) -> int:  # type: ignore[override]
        turns = any(self.degrees) or any(() if self.shear is None else self.shear[2:])
        return projections.AFFINE if turns else projections.KEEPS_ROWS

    def _matrix(self, numbers: Numbers, height: int, width: int) -> Tensor:
        angle, translate, scale, shear = self._split(numbers)
        how = angle, each_number(translate), scale, each_number(shear), self.center, height, width
        return _matrices.affine(*how)


class RandomPerspective(_Warp, v2.RandomPerspective):
    """Warp the image by a random perspective with a probability, as torchvision's RandomPerspective does.

    The pixels are OpenCV's. Masks, boxes and keypoints follow the image.

    Parameters
    ----------
    distortion_scale : float
        The largest distance that corners move inwards, as a fraction of half the sides, in [0, 1].
    fill : float, sequence of float, dict or None
        The value of pixels outside of the image, or one for each channel; a dict has one for each class, as
        in ``{tv_tensors.Image: 128, "others": 0}``. None means 0.
    """

    _config = ("distortion_scale", "p")
    _kind_of_map = projections.PROJECTIVE
    _functional = "perspective"
    _random_parameters = (IS_APPLIED, Parameter("coefficients", 8))

    _draws_much = True

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        """Draw x and y of the corners, from the upper left one on clockwise."""
        height, width = shape[2:]
        high, wide = (int(self.distortion_scale * (side // 2)) + 1 for side in (height, width))
        lows = (0, 0), (width - wide, 0), (width - wide, height - high), (0, height - high)
        corners = [
            draws.integer(1 + 2 * i + j, low, count)
            for i, place in enumerate(lows)
            for j, (low, count) in enumerate(zip(place, (wide, high), strict=True))
        ]
        return [draws.applied(self.p, *corners)]

    def _numbers_of_draw(self, drawn: list[float], shape: Shape) -> list[float]:  # type: ignore[override]
        height, width = shape[2:]
        corners = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
        moved = [[int(x), int(y)] for x, y in zip(drawn[1::2], drawn[2::2], strict=True)]
        return [1.0, *perspective_coefficients(corners, moved)]

    def _matrix(self, numbers: Numbers, height: int, width: int) -> Tensor:
        return _matrices.of_coefficients(numbers)


class RandomRotation(RandomSizeTransform, v2.RandomRotation):
    """Rotate the image by a random angle, as torchvision's RandomRotation does.

    The pixels are OpenCV's. Use :class:`RandomRotate90` for multiples of a right angle. Masks, boxes and
    keypoints follow the image.

    Parameters
    ----------
    degrees : float or (float, float)
        The range of the angle in degrees, counterclockwise; one number is (-degrees, degrees).
    expand : bool
        Whether the output is enlarged to hold the whole turned image.
    center : (float, float), optional
        The point (x, y) in pixels around which the image is turned; by default its center.
    fill : float, sequence of float, dict or None
        The value of pixels outside of the image, or one for each channel; a dict has one for each class, as
        in ``{tv_tensors.Image: 128, "others": 0}``. None means 0.
    per_sample : bool
        Whether each image of a batch has its own draws, instead of one draw for all. ``expand`` must be False
        for such a batch.
    """

    _makes_planar = True
    _config = ("degrees", "expand", "center")
    _kind_of_map = projections.AFFINE
    _needs_pixels = True
    _goes_back = True
    _random_parameters = (Parameter("angle"),)

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        return [draws.uniform(0, *self.degrees)]

    def _sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        return _matrices.size_after_rotation(numbers[0], self.center, height, width)

    def _out_size(self, height: int, width: int) -> tuple[int, int] | None:
        return None if self.expand else (height, width)

    def _sample_params(self, inputs: list[Any], sampler: ParameterSampler) -> Params | None:
        if self.expand:
            return super()._sample_params(inputs, sampler)
        return RandomTransform._sample_params(self, inputs, sampler)

    def _canvas(self, params: Params) -> tuple[int, int]:
        return super()._canvas(params) if self.expand else params.canvas

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        fill = fill_of(self, kind)
        if params.is_one_draw and self.center is None and params.numbers[0] % 90 == 0:
            # torchvision moves whole pixels for these angles.
            return [steps.Turn(params.numbers, self.interpolation, self.expand, fill)]
        if not self.expand:
            (angle,) = each_number(params.numbers)
            matrix = _matrices.rotation(angle, self.center, size)
            name = _geometry.warp_interpolation("affine", self.interpolation, kind)
            return [steps.Warp(matrix.flatten(-2), name, fill)]
        # The matrix depends on the sampled size, which a graph reads from an operator.
        wanted, numbers = self._sizes(params), params.tensor()
        matrix = _matrices.rotation(numbers[..., 0], self.center, size, wanted)
        name = _geometry.warp_interpolation("rotate", self.interpolation, kind)
        return [steps.Warp(matrix.flatten(-2), name, fill, wanted)]
