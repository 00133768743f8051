"""Resizes and crops whose size follows from the image, or is drawn: the bases of timm's transforms."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

import imgops
from imgops._operator import subclass
from imgops.integrations._reader import Unmapped
from imgops.integrations._settings import RandomWithSettings
from imgops.integrations.torchvision.transforms import resampling
from imgops.transforms._core import operators, pil_images, seeding
from imgops.transforms._core.base import FixedTransform
from imgops.transforms._core.inputs import ANNOTATIONS
from imgops.transforms._core.parameters import Numbers, Parameter, Params, each_number
from imgops.transforms.functional import _dispatch, _geometry
from imgops.transforms.geometry.resize import _RandomResize

# -- interpolations --------------------------------------------------------------------------------------


def modes_of(interpolation: Any) -> list[str]:
    """Return the names of one interpolation, or of those of which one is drawn."""
    if not isinstance(interpolation, (tuple, list)):
        return [resampling(interpolation).value]
    if len(interpolation) == 1:  # timm draws it, and the draws after it depend on that
        raise Unmapped("an interpolation that is drawn from one alone")
    return [resampling(mode).value for mode in interpolation]


def draw_mode(modes: list[str]) -> int:
    """Draw one of several interpolations as timm does; one alone is not drawn."""
    return random.choice(range(len(modes))) if len(modes) > 1 else 0


def number_of(params: Params, place: int) -> Any:
    """Return one of the numbers that were sampled, or a tensor of one for each sample."""
    numbers = params.numbers
    return numbers[..., place] if isinstance(numbers, Tensor) else numbers[place]


def in_one_mode(mode: Any, modes: list[str], resize: Callable[[str], Tensor]) -> Tensor:
    """Resize in the mode that was drawn; where it is a tensor, select between the results of all."""
    if len(modes) == 1 or not isinstance(mode, Tensor):
        return resize(modes[int(mode) if len(modes) > 1 else 0])
    out = resize(modes[0])
    for i, name in enumerate(modes[1:], 1):
        out = torch.where(mode[..., None, None, None].to(out.device) == i, resize(name), out)
    return out


def in_known_format(out: Tensor, image: Tensor) -> Tensor:
    """Return a resized image in the planar format, as a compiler that does not know its size has to know."""
    return out if image.is_contiguous() else operators.planar(out)


def as_tuple(value: Any) -> Any:
    """Return a list as a tuple, and anything else as it is."""
    return tuple(value) if isinstance(value, list) else value


def of_size(height: int, width: int) -> Tensor:
    """Return what timm's functions read a size from, in a graph too."""
    return torch.empty(1, height, width, device="meta", dtype=torch.float32)


# -- resizes ---------------------------------------------------------------------------------------------


def size_of(inpt: Any) -> tuple[int, int]:
    """Return the height and width of an input of any class, in a graph too."""
    if isinstance(inpt, ANNOTATIONS):
        return inpt.canvas_size
    height, width = (
        subclass.plain(inpt).shape[-2:] if isinstance(inpt, Tensor) else v2.functional.get_size(inpt)
    )
    return height, width


class FixedSize(FixedTransform, v2.Transform):
    """A transform to a size that follows from the size of the image."""

    def __init__(self, **config: Any) -> None:
        v2.Transform.__init__(self)
        self.__dict__.update(config)
        self._describe()

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        raise NotImplementedError

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if isinstance(inpt, ANNOTATIONS) and is_compiling():
            return self._annotations(inpt)
        return self._by_torchvision(inpt, params)


class ResizeTo(FixedSize):
    """A resize to a size that follows from the size of the image."""

    interpolation: str

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        size = self._out_size(*image.shape[-2:])
        how = pil_images.interpolation_of(kind, InterpolationMode(self.interpolation), True)
        return _geometry.resize(image, size, how[0], None, how[1])

    def _outweighs_pil(self) -> bool:
        return True

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        how = {"interpolation": InterpolationMode(self.interpolation), "antialias": True}
        return self._kernel(v2.functional.resize, inpt, list(self._out_size(*size_of(inpt))), **how)


class ResizeInAMode(RandomWithSettings):
    """A resize to a size that follows from the size of the image, in an interpolation that is drawn."""

    _random_parameters = (Parameter("mode", kind=int),)
    _moves = True
    interpolations: list[str]

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        with seeding.own_generators():
            return {"mode": draw_mode(self.interpolations)}

    def _has_pils_pixels(self) -> bool:
        return True

    def _outweighs_pil(self) -> bool:
        return True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        size = self._out_size(*image.shape[-2:])

        def resize(mode: str) -> Tensor:
            return _geometry.resize_to(image, size, InterpolationMode(mode), True)

        return in_one_mode(number_of(params, 0), self.interpolations, resize)

    def _mask(self, mask: Tensor, params: Params) -> Tensor:
        return _geometry.resize_labels_to(mask, self._out_size(*mask.shape[-2:]), InterpolationMode.NEAREST)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        raise NotImplementedError

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        size = self._out_size(*size_of(inpt))
        mode = InterpolationMode(self.interpolations[values["mode"]])
        return v2.functional.resize(inpt, list(size), mode, antialias=True)


class RandomResizeTo(_RandomResize, RandomWithSettings):
    """A resize to a size that is drawn, in one interpolation or in one that is drawn."""

    _random_parameters: Any = (*_RandomResize._random_parameters, Parameter("mode", kind=int))
    antialias = True
    interpolation = InterpolationMode.NEAREST  # of masks
    interpolations: list[str]

    def draw_size(self, height: int, width: int) -> Sequence[int]:
        """Draw the height and width to which an image of a size is resized, by timm's code."""
        raise NotImplementedError

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        _, _, height, width = self._shape_of(flat_inputs)
        with seeding.own_generators():
            return {"size": self.draw_size(height, width), "mode": draw_mode(self.interpolations)}

    def _numbers_from(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [*map(float, values["size"]), float(values["mode"])]

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        mode = InterpolationMode(self.interpolations[values["mode"]])
        return v2.functional.resize(inpt, values["size"], mode, antialias=True)

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        size = self._canvas(params)

        def resize(mode: str) -> Tensor:
            out = _geometry.resize_to(image, size, InterpolationMode(mode), True)
            return out if params.is_known else in_known_format(out, image)

        return in_one_mode(number_of(params, 2), self.interpolations, resize)


# -- windows ---------------------------------------------------------------------------------------------


def _border(inpt: Any, fill: Any) -> Any:
    """Return the fill of an input: labels are filled with 0."""
    return 0 if isinstance(inpt, Tensor) and not _dispatch.is_image(inpt) else fill


def _sides(height: int, width: int, top: int, left: int, high: int, wide: int) -> list[Any]:
    """Return the padding with which an image holds a window, as left, top, right and bottom."""
    sides = (-left, -top, left + wide - width, top + high - height)
    return [torch.sym_max(side, 0) for side in sides]


class _Windowed:
    """The window that is cut out of an image; where it reaches beyond the image, the image is padded."""

    fill: Any
    padding_mode: str

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        raise NotImplementedError

    def _cut(self, image: Tensor, top: int, left: int, fill: Any) -> Tensor:
        """Cut out the window of a tensor ``(..., C, H, W)``, whose size a compiler may not know."""
        height, width = image.shape[-2:]
        high, wide = self._out_size(height, width)
        if self.padding_mode == "constant" and fill == 0:  # a crop is 0 outside of the image
            return _geometry.crop(image, top, left, high, wide)
        padding = _sides(height, width, top, left, high, wide)
        image = imgops.pad(image, padding, self.padding_mode, _geometry.color_of(fill))
        first: Any = torch.sym_max(top, 0)
        second: Any = torch.sym_max(left, 0)
        return _geometry.crop(image, first, second, high, wide)

    def _cut_any(self, inpt: Any, top: int, left: int, kernel: Callable[..., Any]) -> Any:
        """Cut out the window of an input of any class, by torchvision's functions."""
        height, width = size_of(inpt)
        high, wide = self._out_size(height, width)
        padding = _sides(height, width, top, left, high, wide)
        if any(padding):
            how: dict[str, Any] = {"fill": _border(inpt, self.fill), "padding_mode": self.padding_mode}
            inpt = kernel(v2.functional.pad, inpt, padding, **how)
        return kernel(v2.functional.crop, inpt, max(top, 0), max(left, 0), high, wide)


class CenterWindow(_Windowed, FixedSize):
    """A crop of the middle to a size, or a padding to it, on each axis by itself."""

    def _place(self, height: int, width: int) -> tuple[int, int]:
        high, wide = self._out_size(height, width)
        return _geometry.center_offset(height, high), _geometry.center_offset(width, wide)

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return self._cut(image, *self._place(*image.shape[-2:]), self.fill)

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        return self._cut_any(inpt, *self._place(*size_of(inpt)), self._kernel)


class RandomWindow(_Windowed, RandomWithSettings):
    """A crop at a random place, or a padding with the image at a random place, on each axis by itself.

    The place may be negative: the top and the left edge of the window, from those of the image.
    """

    _random_parameters = (Parameter("top", kind=int), Parameter("left", kind=int))
    _moves = True

    def draw_place(self, height: int, width: int) -> tuple[int, int]:
        """Draw the top and the left edge of the window for an image of a size, by timm's code."""
        raise NotImplementedError

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        _, _, height, width = self._shape_of(flat_inputs)
        with seeding.own_generators():
            top, left = self.draw_place(height, width)
        return {"top": top, "left": left}

    def _has_pils_pixels(self) -> bool:
        return True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        fill = 0 if kind is tv_tensors.Mask else self.fill
        if params.is_known:
            top, left = params.numbers
            return self._cut(image, int(top), int(left), fill)
        height, width = image.shape[-2:]
        high, wide = self._out_size(height, width)
        rows, columns = (torch.sym_max(n, 0) for n in (high - height, wide - width))
        padding: Any = [columns, rows, columns, rows]  # what any place needs
        top, left = each_number(params.beside(image))
        image = imgops.pad(image, padding, self.padding_mode, _geometry.color_of(fill))
        edges = (left + columns, top + rows, left + columns + wide, top + rows + high)
        boxes = torch.stack([edge.long() for edge in edges], -1)
        return _geometry.crop_boxes(image, boxes, (high, wide), InterpolationMode.NEAREST_EXACT, None)

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        def call(functional: Any, *args: Any, **how: Any) -> Any:
            return functional(*args, **how)

        return self._cut_any(inpt, values["top"], values["left"], call)
