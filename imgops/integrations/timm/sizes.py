"""Resizes and crops of timm, whose sizes and places follow from the image or are drawn.

A transform has the name of timm's class, by which it finds its rules: its size in :data:`SIZES`, and the
place of a crop in :data:`PLACES`. They are timm's own functions, which may draw.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

import imgops
from imgops._common import check
from imgops._common.torch_private import sym_max, sym_min
from imgops._operator import subclass
from imgops.integrations._counterparts import Counterpart, RandomCounterpart
from imgops.integrations._reader import Unmapped
from imgops.integrations.torchvision.rules import resampling
from imgops.transforms._core import annotation_kinds, operators, seeding
from imgops.transforms._core.base import FixedTransform
from imgops.transforms._core.batches import PendingBatch, Windows
from imgops.transforms._core.inputs import ANNOTATIONS, meta_image
from imgops.transforms._core.parameters import Numbers, Parameter, Params, each_number
from imgops.transforms._core.steps import Compute, Step
from imgops.transforms.functional import _dispatch, _geometry
from imgops.transforms.geometry.resize import _RandomResize

# -- rules -----------------------------------------------------------------------------------------------

#: The settings that the size for a number of patches depends on, in the order of timm's function.
SEQUENCE = ("patch_size", "max_seq_len", "divisible_by_patch", "max_ratio")
#: The draws of ResizeKeepRatio, in the order of timm's function, and those for a number of patches.
RATIO = ("scale_prob", "scale_range", "scale_area", "aspect_prob", "aspect_range")
RATIO_TO_SEQUENCE = tuple(f"random_{name}" for name in RATIO)


def as_tuple(value: Any) -> Any:
    """Return a list as a tuple, and other values unchanged."""
    return tuple(value) if isinstance(value, list) else value


def _of_size(height: int, width: int) -> Tensor:
    """Return a tensor from which timm's functions read a size, in a graph too."""
    return torch.empty(1, height, width, device="meta", dtype=torch.float32)


def _keep_ratio(t: Any, height: int, width: int) -> Sequence[int]:
    from timm.data.transforms import ResizeKeepRatio

    draws = [getattr(t, name) for name in RATIO if name in t._config]
    return ResizeKeepRatio.get_params(_of_size(height, width), t.target, t.longest, *draws)


def _keep_ratio_to_sequence(t: Any, height: int, width: int) -> Sequence[int]:
    from timm.data.naflex_transforms import ResizeKeepRatioToSequence

    known = {name: getattr(t, name) for name in (*SEQUENCE, *RATIO_TO_SEQUENCE, "longest")}
    known["max_sequence_len"] = known.pop("max_seq_len")
    return ResizeKeepRatioToSequence.get_params(_of_size(height, width), **known)


def _of_sequence(t: Any, height: int, width: int) -> Sequence[int]:
    from timm.data.naflex_transforms import get_image_size_for_seq

    _, size = get_image_size_for_seq((height, width), *(getattr(t, name) for name in SEQUENCE))
    return size


#: Name -> the height and width of the result, from the transform and the height and width of the image.
SIZES: dict[str, Callable[[Any, int, int], Sequence[Any]]] = {
    "CenterCropOrPad": lambda t, height, width: t.size,
    "CenterCropToSequence": _of_sequence,
    "RandomCropOrPad": lambda t, height, width: t.size,
    "RandomCropToSequence": _of_sequence,
    "RandomPad": lambda t, *size: [sym_max(n, m) for n, m in zip(t.size, size, strict=True)],
    "ResizeKeepRatio": _keep_ratio,
    "ResizeKeepRatioToSequence": _keep_ratio_to_sequence,
    "ResizeToSequence": _of_sequence,
    "TrimBorder": lambda t, *size: [sym_max(0, n - 2 * t.border_size) for n in size],
}


def _at_center(t: Any, height: int, width: int) -> tuple[int, int]:
    high, wide = t._out_size(height, width)
    return _geometry.center_offset(height, high), _geometry.center_offset(width, wide)


def _drawn_place(t: Any, height: int, width: int) -> tuple[int, int]:
    """Draw the place of a crop by the method of timm's class of the same name."""
    from timm.data import naflex_transforms, transforms

    module: Any = naflex_transforms if t._name == "RandomCropToSequence" else transforms
    size = t.size if t._name == "RandomPad" else t._out_size(height, width)
    found = getattr(module, t._name).get_params(meta_image(1, 1, height, width), size)
    return (-found[1], -found[0]) if t._name == "RandomPad" else found


#: Name -> the top and the left edge of a crop in the image, which are negative where the image is padded.
PLACES: dict[str, Callable[[Any, int, int], Sequence[Any]]] = {
    "CenterCropOrPad": _at_center,
    "CenterCropToSequence": _at_center,
    "RandomCropOrPad": _drawn_place,
    "RandomCropToSequence": _drawn_place,
    "RandomPad": _drawn_place,
    "TrimBorder": lambda t, *size: [sym_min(t.border_size, n) for n in size],
}


class _Named:
    """A transform whose name is one of its settings, by which it finds its rules."""

    _name: str

    def _get_name(self) -> str:
        return self._name

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        high, wide = SIZES[self._name](self, height, width)
        return high, wide


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


def in_drawn_mode(numbers: Numbers, modes: list[str], change: Callable[[str, bool], Tensor]) -> Tensor:
    """Change an image in the mode whose index is the last of the numbers.

    ``change`` takes the operators' name of the interpolation, and whether it antialiases. In a graph, and if
    each sample has separate parameters, select between the results of all modes.
    """
    each = [_geometry.resize_interpolation(mode, True) for mode in modes]
    if len(modes) == 1 or not isinstance(numbers, Tensor):
        return change(*each[int(numbers[-1]) if len(modes) > 1 else 0])
    drawn, out = numbers[..., -1, None, None, None], change(*each[0])
    for i, how in enumerate(each[1:], 1):
        out = torch.where(drawn.to(out.device) == i, change(*how), out)
    return out


def in_known_format(out: Tensor, image: Tensor) -> Tensor:
    """Return a resized image in the planar format, as a compiler that does not know its size has to know."""
    return out if image.is_contiguous() else operators.planar(out)


# -- resizes ---------------------------------------------------------------------------------------------


def size_of(inpt: Any) -> tuple[int, int]:
    """Return the height and width of an input of any class, in a graph too."""
    if isinstance(inpt, ANNOTATIONS):
        return inpt.canvas_size
    height, width = (
        subclass.plain(inpt).shape[-2:] if isinstance(inpt, Tensor) else v2.functional.get_size(inpt)
    )
    return height, width


class _Fixed(_Named, FixedTransform, Counterpart):
    """A transform to a size that follows from the size of the image."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if annotation_kinds.need_operator(inpt):
            return self._annotations(inpt)
        return self._by_torchvision(inpt, params)


def _each(transform: Any, sizes: Tensor, rule: Callable[[Any, int, int], Sequence[Any]]) -> Tensor:
    """Return what a rule of timm gives for each of several sizes."""
    must = "image must be a Tensor in a graph, because timm's code reads its size"
    check.refuse_in_graph(NotImplementedError, transform._get_name(), must, "images of different sizes")
    found = [rule(transform, height, width) for height, width in sizes.tolist()]
    return torch.tensor(found, dtype=torch.int64, device="cpu").reshape(-1, 2)


class ResizeTo(_Fixed):
    """A resize to a size that follows from the size of the image."""

    interpolation: str
    _outweighs_pil = True
    _takes_batches = True
    _resizes_batches = True

    def _has_one_size(self) -> bool:
        return False

    def _batch(self, images: PendingBatch, params: Params) -> PendingBatch:
        targets = _each(self, images.sizes, SIZES[self._name])
        return images.resize(targets, *_geometry.resize_interpolation(self.interpolation, True))

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        size = self._out_size(*image.shape[-2:])
        how = _geometry.resize_interpolation(self.interpolation, True)
        return _geometry.resize_sides(image, size, None, *how)

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        how = {"interpolation": InterpolationMode(self.interpolation), "antialias": True}
        return self._kernel(v2.functional.resize, inpt, list(self._out_size(*size_of(inpt))), **how)


class ResizeInAMode(_Named, RandomCounterpart):
    """A resize to a size that follows from the size of the image, in an interpolation that is drawn."""

    _random_parameters = (Parameter("mode", kind=int),)
    _moves = True
    interpolations: list[str]
    _has_pils_pixels = True
    _outweighs_pil = True

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        with seeding.own_generators():
            return {"mode": draw_mode(self.interpolations)}

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        size = self._out_size(*image.shape[-2:])

        def resize(*how: Any) -> Tensor:
            return _geometry.resize_to(image, size, *how)

        return in_drawn_mode(params.numbers, self.interpolations, resize)

    def _mask(self, mask: Tensor, params: Params) -> Tensor:
        return _geometry.resize_labels_to(mask, self._out_size(*mask.shape[-2:]))

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        mode = InterpolationMode(self.interpolations[values["mode"]])
        return v2.functional.resize(inpt, list(self._out_size(*size_of(inpt))), mode, antialias=True)


class RandomResizeTo(_RandomResize, _Named, RandomCounterpart):
    """A resize to a size that is drawn, in one interpolation or in one that is drawn."""

    _random_parameters: Any = (*_RandomResize._random_parameters, Parameter("mode", kind=int))
    antialias = True
    interpolation = InterpolationMode.NEAREST  # of masks
    interpolations: list[str]

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        _, _, height, width = self._shape_of(flat_inputs)
        with seeding.own_generators():
            size = SIZES[self._name](self, height, width)
            return {"size": size, "mode": draw_mode(self.interpolations)}

    def _numbers_from(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [*map(float, values["size"]), float(values["mode"])]

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        mode = InterpolationMode(self.interpolations[values["mode"]])
        return v2.functional.resize(inpt, values["size"], mode, antialias=True)

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        size = self._canvas(params)

        def resize(*how: Any) -> Tensor:
            out = _geometry.resize_to(image, size, *how)
            return out if params.is_one_draw else in_known_format(out, image)

        return in_drawn_mode(params.numbers, self.interpolations, resize)


# -- windows ---------------------------------------------------------------------------------------------


def _sides(height: int, width: int, top: int, left: int, high: int, wide: int) -> list[Any]:
    """Return the padding with which an image holds a window, as left, top, right and bottom."""
    sides = (-left, -top, left + wide - width, top + high - height)
    return [sym_max(side, 0) for side in sides]


class _Window(_Named):
    """A window that is cut out of an image; where it reaches beyond the image, the image is padded."""

    fill: Any = 0
    padding_mode = "constant"

    def _cut(self, image: Tensor, top: int, left: int, fill: Any) -> Tensor:
        """Cut out the window of a tensor ``(..., C, H, W)``, whose size a compiler may not know."""
        height, width = image.shape[-2:]
        high, wide = self._out_size(height, width)
        if self.padding_mode == "constant" and fill == 0:  # a crop is 0 outside of the image
            return _geometry.crop(image, top, left, high, wide)
        padding = _sides(height, width, top, left, high, wide)
        image = imgops.pad(image, padding, self.padding_mode, _geometry.color_of(fill))
        first: Any = sym_max(top, 0)
        second: Any = sym_max(left, 0)
        return _geometry.crop(image, first, second, high, wide)

    def _cut_any(self, inpt: Any, top: int, left: int) -> Any:
        """Cut out the window of an input of any class, by torchvision's functions."""
        this: Any = self
        height, width = size_of(inpt)
        high, wide = self._out_size(height, width)
        padding = _sides(height, width, top, left, high, wide)
        if any(padding):
            are_labels = isinstance(inpt, Tensor) and not _dispatch.is_image(inpt)
            how: dict[str, Any] = {"fill": 0 if are_labels else self.fill, "padding_mode": self.padding_mode}
            inpt = this._kernel(v2.functional.pad, inpt, padding, **how)
        return this._kernel(v2.functional.crop, inpt, max(top, 0), max(left, 0), high, wide)


class FixedWindow(_Window, _Fixed):
    """A crop or a padding at a place that follows from the size of the image."""

    size: Sequence[int]

    _resizes_batches = True

    @property
    def _takes_batches(self) -> bool:  # type: ignore[override]
        return self._name == "CenterCropOrPad" and self.padding_mode == "constant"

    def _batch(self, images: PendingBatch, params: Params) -> Windows:
        corners = _each(self, images.sizes, PLACES[self._name]).flip(-1)
        return images.crop(corners, self.size, _geometry.color_of(self.fill))

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        top, left = PLACES[self._name](self, *image.shape[-2:])
        return self._cut(image, top, left, self.fill)

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        return self._cut_any(inpt, *PLACES[self._name](self, *size_of(inpt)))


class RandomWindow(_Window, RandomCounterpart):
    """A crop at a random place, or a padding with the image at a random place, on each axis separately."""

    _random_parameters = (Parameter("top", kind=int), Parameter("left", kind=int))
    _moves = True
    _has_pils_pixels = True

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        _, _, height, width = self._shape_of(flat_inputs)
        with seeding.own_generators():
            top, left = PLACES[self._name](self, height, width)
        return {"top": top, "left": left}

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> Sequence[Step]:
        fill = 0 if kind is tv_tensors.Mask else self.fill

        def cut(image: Tensor, numbers: Numbers) -> Tensor:
            top, left = each_number(numbers)
            if not isinstance(numbers, Tensor):
                return self._cut(image, int(top), int(left), fill)
            height, width = image.shape[-2:]
            high, wide = self._out_size(height, width)
            rows, columns = (sym_max(n, 0) for n in (high - height, wide - width))
            padding: Any = [columns, rows, columns, rows]  # enough for every place
            image = imgops.pad(image, padding, self.padding_mode, _geometry.color_of(fill))
            edges = (left + columns, top + rows, left + columns + wide, top + rows + high)
            boxes = torch.stack([edge.long() for edge in edges], -1)
            return _geometry.resize_boxes(image, boxes, (high, wide), "nearest", True)

        return [Compute(params.numbers, cut)]

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        return self._cut_any(inpt, values["top"], values["left"])
