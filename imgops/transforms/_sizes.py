"""The transforms whose output size depends on what they sample: in a graph, new dynamic sizes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

import imgops
from imgops import _subclass
from imgops.transforms import _annotations, _operators, _torchvision
from imgops.transforms._base import RandomTransform, fill_of
from imgops.transforms._parameters import Numbers, Parameter, Params, Shape, each_number
from imgops.transforms._sampling import ParameterSampler, SamplingProgram
from imgops.transforms.functional import _dispatch, _geometry


class RandomSizeTransform(RandomTransform):
    """A :class:`RandomTransform` whose samples come out in sizes of their own, which make no batch."""

    _moves = True

    #: The least of each of the sizes that the parameters decide.
    _least: tuple[int, ...] = (1, 1)

    def sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        """The sizes that parameters ask for: a height and a width."""
        raise NotImplementedError

    def _out_size(self, height: int, width: int) -> tuple[int, int] | None:
        return None

    def _sampled(self, inputs: list[Any], sampler: ParameterSampler) -> Params | None:
        if sampler.count is not None or (self.per_sample and self._is_batch(inputs)):
            must = "per_sample must be False, for samples of different sizes make no batch"
            raise NotImplementedError(f"{type(self).__name__}: {must}, got True")
        return super()._sampled(inputs, sampler)

    @staticmethod
    def _is_batch(inputs: list[Any]) -> bool:
        return any(_dispatch.is_image(x) and _subclass.plain(x).ndim > 3 for x in inputs)

    def _sizes(self, params: Params) -> tuple[int, ...]:
        if params.sizes is None:
            if params.is_known:
                params.sizes = self.sampled_sizes(params.numbers, *params.canvas)
            elif _subclass.in_graph():
                how = (*params.canvas, self._least, self._description)
                params.sizes = tuple(_operators.sizes(params.numbers, *how).shape[: len(self._least)])
            else:
                params.sizes = self.sampled_sizes(params.numbers.tolist(), *params.canvas)
        return params.sizes

    def _canvas(self, params: Params) -> tuple[int, int]:
        height, width = self._sizes(params)
        return height, width


class _RandomResize(RandomSizeTransform):
    random_parameters = (Parameter("size", 2, neutral=lambda shape: [shape[2], shape[3]], kind=int),)

    def pack(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return _torchvision.resized_size((height, width), values["size"], None)

    def sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        return int(numbers[0]), int(numbers[1])

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        size = self._canvas(params)
        if params.is_known and size == tuple(image.shape[-2:]):
            return image
        return _geometry.resized(image, size, self.interpolation, self.antialias)  # type: ignore[attr-defined]

    def _mask(self, mask: Tensor, params: Params) -> Tensor:
        return _geometry.labels_resized(mask, self._canvas(params), self.interpolation)  # type: ignore[attr-defined]


class RandomResize(_RandomResize, v2.RandomResize):
    """As torchvision's, with PIL's pixels."""

    _config = ("min_size", "max_size")


class RandomShortestSize(_RandomResize, v2.RandomShortestSize):
    """As torchvision's, with PIL's pixels."""

    _config = ("min_size", "max_size")


class ScaleJitter(_RandomResize, v2.ScaleJitter):
    """As torchvision's, with PIL's pixels."""

    _config = ("target_size", "scale_range")


class RandomRotation(RandomSizeTransform, v2.RandomRotation):
    """As torchvision's, with OpenCV's pixels, and per sample unless it expands."""

    _config = ("degrees", "expand", "center")
    _least = (1, 1, 1, 1)

    random_parameters = (Parameter("angle"),)

    def sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        """The image's, and that of the canvas of boxes and keypoints, which torchvision computes apart."""
        canvas = v2.functional.rotate(
            tv_tensors.KeyPoints(torch.zeros(1, 2), canvas_size=(height, width)),
            numbers[0],
            expand=True,
            center=self.center,
        ).canvas_size
        return *_torchvision.rotated_size(numbers[0], self.center, height, width), *canvas

    def _out_size(self, height: int, width: int) -> tuple[int, int] | None:
        return None if self.expand else (height, width)

    def _sampled(self, inputs: list[Any], sampler: ParameterSampler) -> Params | None:
        if self.expand:
            return super()._sampled(inputs, sampler)
        return RandomTransform._sampled(self, inputs, sampler)

    def _canvas(self, params: Params) -> tuple[int, int]:
        if not self.expand:
            return params.canvas
        _, _, height, width = self._sizes(params)
        return height, width

    def _turned(self, image: Tensor, params: Params, interpolation: Any, fill: Any) -> Tensor:
        if params.is_known:
            (angle,) = params.numbers
            if self.center is None and angle % 90 == 0:  # torchvision turns whole pixels there
                return _geometry.rotate(image, angle, interpolation, self.expand, None, fill)
        if not self.expand:
            return _geometry.warp(image, params.beside(image).unflatten(-1, (2, 3)), interpolation, fill)
        angle = torch.as_tensor(params.beside(image), dtype=torch.float64)[..., 0]
        return _geometry.turn(image, angle, interpolation, self.center, fill, self._sizes(params)[:2])

    def prepared(self, numbers: Numbers, height: int, width: int) -> Numbers:
        if self.expand:  # then the matrix depends on a size that is sampled
            return numbers
        (angle,) = each_number(numbers)
        return _geometry.turned(angle, self.center, height, width).flatten(-2)

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return self._turned(image, params, self.interpolation, fill_of(self, kind))

    def _mask(self, mask: Tensor, params: Params) -> Tensor:
        return self._turned(mask, params, InterpolationMode.NEAREST, fill_of(self, tv_tensors.Mask))


class RandomZoomOut(RandomSizeTransform, v2.RandomZoomOut):
    """As torchvision's."""

    _config = ("side_range", "p")
    _least = (0, 0, 0, 0)
    random_parameters = (Parameter("padding", 4, kind=int),)

    def sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        return tuple(int(n) for n in numbers)

    def _canvas(self, params: Params) -> tuple[int, int]:
        left, top, right, bottom = self._sizes(params)
        return params.canvas[0] + top + bottom, params.canvas[1] + left + right

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return _geometry.pad(image, self._sizes(params), fill_of(self, kind))


class RandomIoUCrop(RandomSizeTransform, v2.RandomIoUCrop):
    """As torchvision's. In a graph one operator reads the boxes that the crop depends on."""

    _config = ("min_scale", "max_scale", "min_aspect_ratio", "max_aspect_ratio", "options", "trials")
    _least = (0, 0, 1, 1)

    @classmethod
    def _from_config(cls, options: list[float], **config: Any) -> RandomIoUCrop:
        return cls(sampler_options=options, **config)

    def _draw(self, inputs: Any) -> Numbers | None:
        values = self.make_params(inputs)
        return self.pack(values, 0, 0) if values else None

    def pack(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        box = [values["left"], values["top"], values["width"], values["height"]]
        return [*box, *values["is_within_crop_area"].tolist()]

    def unpack(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        left, top, wide, high = map(int, numbers[:4])
        inside = torch.tensor(numbers[4:], dtype=torch.float64) > 0
        return {"top": top, "left": left, "height": high, "width": wide, "is_within_crop_area": inside}

    def _plan(self, shape: Shape, program: SamplingProgram) -> None:
        return None  # the boxes are not known beforehand

    def _sampled(self, inputs: list[Any], sampler: ParameterSampler) -> Params | None:
        if sampler.draws_in_python():
            return super()._sampled(inputs, sampler)
        _, _, height, width = self.shape_of(inputs)
        boxes = next(x for x in inputs if isinstance(x, tv_tensors.BoundingBoxes))
        kind = _annotations.kind_of(boxes)
        numbers = sampler.beside_boxes(self, _subclass.plain(boxes), kind, (height, width))
        return Params((height, width), numbers)

    def sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        left, top, wide, high = (int(n) for n in numbers[:4])
        return left, top, wide, high

    def _canvas(self, params: Params) -> tuple[int, int]:
        _, _, wide, high = self._sizes(params)
        return high, wide

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        left, top, wide, high = self._sizes(params)
        return imgops.crop(image, (left, top, left + wide, top + high))
