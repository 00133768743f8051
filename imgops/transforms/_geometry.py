"""The geometric transforms whose output size is known beforehand."""

from __future__ import annotations

from copy import copy
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

from imgops.transforms import _operators, _pil, _program, _torchvision
from imgops.transforms._base import OperatorTransform, RandomTransform, fill_of
from imgops.transforms._init import take_signature
from imgops.transforms._parameters import (
    IS_APPLIED,
    Numbers,
    Parameter,
    Params,
    as_integers,
    copy_to,
    each_number,
)
from imgops.transforms.functional import _geometry, _matrices


class _Fixed(OperatorTransform):
    """A transform whose arguments are all that it depends on, with PIL's bits."""

    _moves = True

    def is_pils(self) -> bool:
        return True


class Resize(_Fixed, v2.Resize):
    """As torchvision's, with PIL's and OpenCV's pixels."""

    _config = ("size", "max_size")

    def outweighs_pil(self) -> bool:
        return True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        interpolation, antialias = _pil.interpolation_of(kind, self.interpolation, self.antialias)
        return _geometry.resize(image, self.size, interpolation, self.max_size, antialias)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        high, wide = _torchvision.resized_size((height, width), self.size, self.max_size)
        return high, wide


class CenterCrop(_Fixed, v2.CenterCrop):
    """As torchvision's."""

    _config = ("size",)

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return _geometry.center_crop(image, self.size)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return tuple(self.size)


class Pad(OperatorTransform, v2.Pad):
    """As torchvision's; a border may be wider than the image."""

    _config = ("padding", "padding_mode")
    _moves = True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return _geometry.pad(image, self.padding, fill_of(self, kind), self.padding_mode)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        left, right, top, bottom = _torchvision.pad_sides(self.padding)
        return height + top + bottom, width + left + right


class FiveCrop(OperatorTransform, v2.FiveCrop):
    """As torchvision's: the corners and the middle, as five images."""

    def _image(self, image: Tensor, params: Params, kind: type) -> tuple[Tensor, ...]:
        return _geometry.five_crop(image, self.size)


class TenCrop(OperatorTransform, v2.TenCrop):
    """As torchvision's: the corners and the middle, and those of the mirrored image."""

    def _image(self, image: Tensor, params: Params, kind: type) -> tuple[Tensor, ...]:
        return _geometry.ten_crop(image, self.size, self.vertical_flip)


class _Flip(RandomTransform):
    _config = ("p",)
    _moves = True
    _dim = -1
    random_parameters = (IS_APPLIED,)

    def is_pils(self) -> bool:
        return True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        if params.is_known:
            return _operators.flip(image, self._dim)
        return _operators.flipped(image, params.beside(image)[..., 0] > 0, self._dim)


class RandomHorizontalFlip(_Flip, v2.RandomHorizontalFlip):
    """As torchvision's, and per sample."""


class RandomVerticalFlip(_Flip, v2.RandomVerticalFlip):
    """As torchvision's, and per sample."""

    _dim = -2


class RandomResizedCrop(RandomTransform, v2.RandomResizedCrop):
    """As torchvision's, with PIL's pixels, and per sample."""

    _config = ("size", "scale", "ratio")
    _moves = True
    random_parameters = (
        Parameter("top", kind=int),
        Parameter("left", kind=int),
        Parameter("height", neutral=lambda shape: [shape[2]], kind=int),
        Parameter("width", neutral=lambda shape: [shape[3]], kind=int),
    )

    def prepared(self, numbers: Numbers, height: int, width: int) -> Numbers:
        top, left, high, wide = each_number(numbers)
        box = [left, top, left + wide, top + high]
        return torch.stack(box, -1) if isinstance(numbers, Tensor) else box

    def outweighs_pil(self) -> bool:
        return True

    def is_pils(self) -> bool:
        return True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        boxes = as_integers(params.beside(image))
        how = _pil.interpolation_of(kind, self.interpolation, self.antialias)
        # torchvision's crop of one interleaved image comes out planar: what follows is faster so.
        return _geometry.crop_boxes(image, boxes, self.size, *how, planar=image.ndim == 3)

    def _mask(self, mask: Tensor, params: Params) -> Tensor:
        boxes = as_integers(params.beside(mask))
        boxes = torch.as_tensor(boxes, device=None if isinstance(boxes, Tensor) else "cpu")
        return _operators.nearest(mask, boxes, self.size, False)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return tuple(self.size)


class RandomCrop(RandomTransform, v2.RandomCrop):
    """As torchvision's, and per sample."""

    _config = ("size", "padding", "pad_if_needed", "padding_mode")
    _moves = True
    random_parameters = (Parameter("top", kind=int), Parameter("left", kind=int))

    @classmethod
    def _from_config(cls, padding: list[int] | None, **config: Any) -> RandomCrop:
        if padding is not None:
            left, right, top, bottom = padding
            padding = [left, top, right, bottom]
        return cls(padding=padding, **config)

    def pack(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [values["top"], values["left"]]

    def unpack(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        top, left = map(int, numbers)
        padding, (high, wide) = self._padding(height, width), self.size
        crop = {"needs_crop": True, "top": top, "left": left, "height": high, "width": wide}
        return crop | {"needs_pad": any(padding), "padding": padding}

    def prepared(self, numbers: Numbers, height: int, width: int) -> Numbers:
        top, left = each_number(numbers)
        box = [left, top, left + self.size[1], top + self.size[0]]
        return torch.stack(box, -1) if isinstance(numbers, Tensor) else box

    def _padding(self, height: int, width: int) -> list[int]:
        """left, top, right, bottom."""
        left, right, top, bottom = self.padding if self.padding is not None else (0, 0, 0, 0)
        if self.pad_if_needed:
            high, wide = self.size
            more_rows = torch.sym_max(high - height - top - bottom, 0)
            more_columns = torch.sym_max(wide - width - left - right, 0)
            left, right, top, bottom = (
                *(left + more_columns, right + more_columns),
                *(top + more_rows, bottom + more_rows),
            )
        return [left, top, right, bottom]

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        height, width = image.shape[-2:]
        boxes = params.beside(image)
        if not params.is_known:
            boxes = boxes.long()
        if self.padding is not None or self.pad_if_needed:
            padding, fill = self._padding(height, width), fill_of(self, kind)
            if params.is_known and self.padding_mode == "constant" and not fill:
                # Outside of an image a crop is 0, and torchvision's padding lies outside of it.
                left, top = boxes[0] - padding[0], boxes[1] - padding[1]
                return _geometry.crop(image, top, left, *self.size)
            image = _geometry.pad(image, padding, fill, self.padding_mode)
        if params.is_known:
            return _geometry.crop(image, boxes[1], boxes[0], *self.size)
        return _geometry.crop_boxes(image, boxes, self.size, InterpolationMode.NEAREST_EXACT, None)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return tuple(self.size)


class _Warp(RandomTransform):
    _moves = True

    def _warped(self, image: Tensor, params: Params, interpolation: Any, fill: Any) -> Tensor:
        raise NotImplementedError

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return self._warped(image, params, self.interpolation, fill_of(self, kind))  # type: ignore[attr-defined]

    def _mask(self, mask: Tensor, params: Params) -> Tensor:
        return self._warped(mask, params, InterpolationMode.NEAREST, fill_of(self, tv_tensors.Mask))


class RandomAffine(_Warp, v2.RandomAffine):
    """As torchvision's, with OpenCV's pixels, and per sample."""

    _config = ("degrees", "translate", "scale", "shear", "center")
    random_parameters = (
        Parameter("angle"),
        Parameter("translate", 2, kind=int),
        Parameter("scale", neutral=1.0),
        Parameter("shear", 2),
    )

    def prepared(self, numbers: Numbers, height: int, width: int) -> Tensor:
        angle, translate, scale, shear = self.split(numbers)
        how = angle, each_number(translate), scale, each_number(shear), self.center, height, width
        return _matrices.affine(*how).flatten(-2)

    def _warped(self, image: Tensor, params: Params, interpolation: Any, fill: Any) -> Tensor:
        matrix = params.beside(image).unflatten(-1, (2, 3))
        return _geometry.warp(image, matrix, interpolation, fill)


class RandomPerspective(_Warp, v2.RandomPerspective):
    """As torchvision's, with OpenCV's pixels, and per sample."""

    _config = ("distortion_scale", "p")
    random_parameters = (IS_APPLIED, Parameter("coefficients", 8))

    def prepared(self, numbers: Numbers, height: int, width: int) -> Tensor:
        return _matrices.of_coefficients(numbers).flatten(-2)

    def _warped(self, image: Tensor, params: Params, interpolation: Any, fill: Any) -> Tensor:
        matrix = params.beside(image).unflatten(-1, (3, 3))
        return _geometry.warp_corners(image, matrix, interpolation, fill)


class ElasticTransform(RandomTransform, v2.ElasticTransform):
    """As torchvision's, by OpenCV's ``remap``, and per sample.

    ``alpha`` may also be a tensor of one number, or of one for x and one for y, which can require a gradient.
    """

    _config = ("sigma",)
    _moves = True
    random_parameters = (Parameter("displacement", lambda _, shape: 2 * shape[2] * shape[3]),)

    def __init__(
        self,
        alpha: Any = 50.0,
        sigma: Any = 5.0,
        interpolation: Any = InterpolationMode.BILINEAR,
        fill: Any = 0,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        number = not isinstance(alpha, Tensor)
        v2.ElasticTransform.__init__(self, alpha if number else 1.0, sigma, interpolation, fill)
        if not number:
            self.alpha = alpha
        self._start(per_sample, generator)

    @classmethod
    def _from_config(cls, sigma: list[float]) -> ElasticTransform:
        """What is sampled in a graph is the displacement for an alpha of 1."""
        return cls(1.0, sigma)

    def _factor(self) -> Tensor:
        if isinstance(self.alpha, Tensor):
            return self.alpha.to("cpu")
        return torch.tensor(self.alpha, dtype=torch.float32, device="cpu")

    def _draw(self, inputs: Any) -> Tensor:
        return _program.from_description(self._description).make_params(inputs)["displacement"].flatten()

    def pack(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return values["displacement"].flatten()

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        unit = copy(self)  # torchvision's displacement has the factor already
        unit.alpha = [1.0, 1.0]
        return RandomTransform.transform(unit, inpt, params)

    def unpack(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        unit = torch.tensor(numbers, dtype=torch.float32).reshape(1, height, width, 2)
        return {"displacement": unit * self._factor()}

    def _annotations(self, inpt: Any, params: Params | None = None) -> Any:
        assert params is not None
        scaled = (params.numbers.unflatten(-1, (-1, 2)) * self._factor()).flatten(-2)
        return super()._annotations(inpt, Params(params.canvas, scaled))

    def _elastic(self, image: Tensor, params: Params, interpolation: Any, fill: Any) -> Tensor:
        dtype = torch.float64 if image.dtype == torch.float64 else torch.float32
        unit = params.beside(image).unflatten(-1, (*image.shape[-2:], 2))
        (displacement,) = copy_to(image.device, [(unit * self._factor()).to(dtype)])
        whole = displacement[None] if displacement.ndim == 3 else displacement
        return _geometry.elastic(image, whole, interpolation, fill)

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return self._elastic(image, params, self.interpolation, fill_of(self, kind))

    def _mask(self, mask: Tensor, params: Params) -> Tensor:
        return self._elastic(mask, params, InterpolationMode.NEAREST, fill_of(self, tv_tensors.Mask))


take_signature(ElasticTransform, v2.ElasticTransform)
