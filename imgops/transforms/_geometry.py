"""The geometric transforms whose output size is known beforehand."""

from __future__ import annotations

from typing import Any

import torch
from PIL.Image import Image
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

from imgops.transforms import _operators, _pil, _program, _torchvision
from imgops.transforms._base import Numbers, OperatorTransform, RandomTransform, fill_of
from imgops.transforms._init import take_signature
from imgops.transforms._sampling import ParameterSampler, Params, moved_to
from imgops.transforms.functional import _geometry, _matrices


class _Still(OperatorTransform):
    """A functional of arguments that are known."""

    def is_pils(self) -> bool:
        return True

    def pil_image(self, image: Tensor, sampler: ParameterSampler) -> Tensor:
        return self.transform(image, {})  # type: ignore[attr-defined]


class Resize(_Still, v2.Resize):
    """As torchvision's, with PIL's and OpenCV's pixels."""

    def outweighs_pil(self) -> bool:
        return True

    def pil_image(self, image: Tensor, sampler: ParameterSampler) -> Tensor:
        interpolation, antialias = _pil.interpolation_of(Image, self.interpolation, self.antialias)
        return _geometry.resize(image, self.size, interpolation, self.max_size, antialias)

    _config = ("size", "max_size")
    _moves = True

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        high, wide = _torchvision.resized_size((height, width), self.size, self.max_size)
        return high, wide


class CenterCrop(_Still, v2.CenterCrop):
    """As torchvision's."""

    _config = ("size",)
    _moves = True

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return tuple(self.size)


class Pad(OperatorTransform, v2.Pad):
    """As torchvision's; a border may be wider than the image."""

    _config = ("padding", "padding_mode")
    _moves = True

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        left, right, top, bottom = _torchvision.pad_sides(self.padding)
        return height + top + bottom, width + left + right


class FiveCrop(OperatorTransform, v2.FiveCrop):
    """As torchvision's: the corners and the middle, as five images."""


class TenCrop(OperatorTransform, v2.TenCrop):
    """As torchvision's: the corners and the middle, and those of the mirrored image."""


class _Flip(RandomTransform):
    _config = ("p",)
    _moves = True
    _dim = -1

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [1.0]

    def identity_params(self, samples: int, channels: int, height: int, width: int) -> Numbers:
        return [0.0]

    def unpack_params(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        return {} if numbers[0] else None

    def is_pils(self) -> bool:
        return True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        known = params.values is not None  # then it was chosen
        chosen = _operators.CHOSEN if known else params.beside(image)[..., 0] > 0
        return _operators.flipped(image, chosen, self._dim)


class RandomHorizontalFlip(_Flip, v2.RandomHorizontalFlip):
    """As torchvision's, and per sample."""


class RandomVerticalFlip(_Flip, v2.RandomVerticalFlip):
    """As torchvision's, and per sample."""

    _dim = -2


class RandomResizedCrop(RandomTransform, v2.RandomResizedCrop):
    """As torchvision's, with PIL's pixels, and per sample."""

    _config = ("size", "scale", "ratio")
    _size = 4
    _moves = True

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        top, left = values["top"], values["left"]
        return [left, top, left + values["width"], top + values["height"]]

    def identity_params(self, samples: int, channels: int, height: int, width: int) -> Numbers:
        return [0.0, 0.0, width, height]

    def unpack_params(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        left, top, right, bottom = map(int, numbers)
        return {"top": top, "left": left, "height": bottom - top, "width": right - left}

    def outweighs_pil(self) -> bool:
        return True

    def is_pils(self) -> bool:
        return True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        boxes = params.beside(image).long()
        how = _pil.interpolation_of(kind, self.interpolation, self.antialias)
        out = _geometry.crop_boxes(image, boxes, self.size, *how)
        # torchvision's crop of one interleaved image comes out planar: what follows is faster so.
        return _operators.planar(out) if out.ndim == 3 and not out.is_contiguous() else out

    def _mask(self, mask: Tensor, params: Params) -> Tensor:
        return _operators.nearest(mask, params.beside(mask).long(), self.size, False)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return tuple(self.size)


class RandomCrop(RandomTransform, v2.RandomCrop):
    """As torchvision's, and per sample."""

    _config = ("size", "padding", "pad_if_needed", "padding_mode")
    _size = 2
    _moves = True

    @classmethod
    def _from_config(cls, padding: list[int] | None, **config: Any) -> RandomCrop:
        if padding is not None:
            left, right, top, bottom = padding
            padding = [left, top, right, bottom]
        return cls(padding=padding, **config)

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [values["left"], values["top"]]

    def identity_params(self, samples: int, channels: int, height: int, width: int) -> Numbers:
        return [0.0, 0.0]

    def unpack_params(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        left, top = map(int, numbers)
        padding, (high, wide) = self._padding(height, width), self.size
        crop = {"needs_crop": True, "top": top, "left": left, "height": high, "width": wide}
        return crop | {"needs_pad": any(padding), "padding": padding}

    def prepared(self, numbers: Tensor, height: int, width: int) -> Tensor:
        left, top = numbers.unbind(-1)
        return torch.stack([left, top, left + self.size[1], top + self.size[0]], -1)

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
        padding = self._padding(height, width)
        boxes = params.beside(image).long()
        if self.padding is not None or self.pad_if_needed:
            image = _geometry.pad(image, padding, fill_of(self, kind), self.padding_mode)
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
    _size = 6

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [values["angle"], *values["translate"], values["scale"], *values["shear"]]

    def identity_params(self, samples: int, channels: int, height: int, width: int) -> Numbers:
        return [0.0, 0.0, 0.0, 1.0, 0.0, 0.0]

    def unpack_params(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        angle, x, y, scale, *shear = numbers
        return {"angle": angle, "translate": (int(x), int(y)), "scale": scale, "shear": tuple(shear)}

    def prepared(self, numbers: Tensor, height: int, width: int) -> Tensor:
        angle, x, y, scale, *shear = numbers.unbind(-1)
        matrix = _matrices.affine(angle, (x, y), scale, shear, self.center, height, width)
        return matrix.flatten(-2)

    def _warped(self, image: Tensor, params: Params, interpolation: Any, fill: Any) -> Tensor:
        matrix = params.beside(image).unflatten(-1, (2, 3))
        return _geometry.warp(image, matrix, interpolation, fill)


class RandomPerspective(_Warp, v2.RandomPerspective):
    """As torchvision's, with OpenCV's pixels, and per sample."""

    _config = ("distortion_scale", "p")
    _size = 9

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [1.0, *values["coefficients"]]

    def identity_params(self, samples: int, channels: int, height: int, width: int) -> Numbers:
        return [0.0] * 9

    def unpack_params(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        return {"coefficients": numbers[1:]} if numbers[0] else None

    def prepared(self, numbers: Tensor, height: int, width: int) -> Tensor:
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

    def sample_params(self, inputs: list[Any]) -> dict[str, Any]:
        unit = _program.from_spec(self._spec).make_params(inputs)
        return {"displacement": unit["displacement"] * self._factor()}

    def pack_params(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return values["displacement"].flatten()

    def unpack_params(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        return {"displacement": torch.tensor(numbers, dtype=torch.float32).reshape(1, height, width, 2)}

    def identity_params(self, samples: int, channels: int, height: int, width: int) -> Numbers:
        return 0.0

    def _count(self, samples: int, channels: int, height: int, width: int) -> int:
        return 2 * height * width

    def _ready(self, params: Params) -> Params:
        if params.values is not None:
            return params
        numbers = params.numbers.unflatten(-1, (-1, 2)) * self._factor()
        return Params(params.canvas, None, numbers.flatten(-2))

    def _elastic(self, image: Tensor, params: Params, interpolation: Any, fill: Any) -> Tensor:
        dtype = torch.float64 if image.dtype == torch.float64 else torch.float32
        displacement = params.beside(image).unflatten(-1, (*image.shape[-2:], 2)).to(dtype)
        (displacement,) = moved_to(image.device, [displacement])
        whole = displacement[None] if displacement.ndim == 3 else displacement
        return _geometry.elastic(image, whole, interpolation, fill)

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return self._elastic(image, params, self.interpolation, fill_of(self, kind))

    def _mask(self, mask: Tensor, params: Params) -> Tensor:
        return self._elastic(mask, params, InterpolationMode.NEAREST, fill_of(self, tv_tensors.Mask))


take_signature(ElasticTransform, v2.ElasticTransform)
