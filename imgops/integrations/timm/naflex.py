"""The counterparts of timm's transforms for NaFlex, which keep an image within a number of patches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms import functional as v1_functional

import imgops
from imgops.integrations._reader import Reader
from imgops.integrations._settings import RandomWithSettings
from imgops.integrations.timm.sizes import (
    CenterWindow,
    RandomResizeTo,
    RandomWindow,
    ResizeInAMode,
    ResizeTo,
    as_tuple,
    in_known_format,
    in_one_mode,
    modes_of,
    number_of,
    of_size,
)
from imgops.transforms import geometry
from imgops.transforms._core import seeding
from imgops.transforms._core.base import NOTHING, OperatorTransform, RandomSizeTransform
from imgops.transforms._core.inputs import meta_image
from imgops.transforms._core.parameters import Numbers, Parameter, Params, as_integers, each_number
from imgops.transforms.functional import _geometry

#: What decides the size of an image: that of a patch, their number, and how sizes are rounded.
_SEQUENCE = ("patch_size", "max_seq_len", "divisible_by_patch", "max_ratio")
_CHANCES = (
    *("random_scale_prob", "random_scale_range", "random_scale_area"),
    *("random_aspect_prob", "random_aspect_range"),
)


class _ToSequence:
    """The size at which an image has at most a number of patches, by timm's code."""

    def _get_name(self) -> str:
        return type(self).__name__.removeprefix("_Timm").removesuffix("InAMode")

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        from timm.data.naflex_transforms import get_image_size_for_seq

        _, (high, wide) = get_image_size_for_seq((height, width), *(getattr(self, n) for n in _SEQUENCE))
        return high, wide


class _TimmResizeToSequence(_ToSequence, ResizeTo):
    _config = (*_SEQUENCE, "interpolation")


class _TimmResizeToSequenceInAMode(_ToSequence, ResizeInAMode):
    _config = (*_SEQUENCE, "interpolations")


class _TimmCenterCropToSequence(_ToSequence, CenterWindow):
    _config = (*_SEQUENCE, "fill", "padding_mode")


class _TimmRandomCropToSequence(_ToSequence, RandomWindow):
    _config = (*_SEQUENCE, "fill", "padding_mode")

    def draw_place(self, height: int, width: int) -> tuple[int, int]:
        from timm.data.naflex_transforms import RandomCropToSequence

        top, left = RandomCropToSequence.get_params(
            meta_image(1, 1, height, width), self._out_size(height, width)
        )
        return top, left


class _KeepRatioToSequence(_ToSequence):
    """The size that nearly keeps the aspect ratio, with the draws of a scale and of an aspect ratio."""

    def draw_size(self, height: int, width: int) -> Sequence[int]:
        from timm.data.naflex_transforms import ResizeKeepRatioToSequence

        known = {name: getattr(self, name) for name in (*_CHANCES, *_SEQUENCE, "longest")}
        known["max_sequence_len"] = known.pop("max_seq_len")
        return ResizeKeepRatioToSequence.get_params(of_size(height, width), **known)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        high, wide = self.draw_size(height, width)  # which draws nothing where the probabilities are 0
        return high, wide


class _TimmResizeKeepRatioToSequence(_KeepRatioToSequence, ResizeTo):
    _config = (*_SEQUENCE, *_CHANCES, "longest", "interpolation")


class _TimmResizeKeepRatioToSequenceInAMode(_KeepRatioToSequence, ResizeInAMode):
    _config = (*_SEQUENCE, *_CHANCES, "longest", "interpolations")


class _TimmRandomResizeKeepRatioToSequence(RandomResizeTo):
    _config = (*_SEQUENCE, *_CHANCES, "longest", "interpolations")
    draw_size = _KeepRatioToSequence.draw_size

    def _get_name(self) -> str:
        return "ResizeKeepRatioToSequence"


class _TimmRandomResizedCropToSequence(RandomSizeTransform, RandomWithSettings):
    """A random crop, resized to a size that follows from that of the crop, and may be drawn."""

    _random_parameters: Any = (
        *geometry.RandomResizedCrop._random_parameters,
        Parameter("size", 2, neutral=lambda shape: [shape[2], shape[3]], kind=int),
        Parameter("mode", kind=int),
    )
    _config = (
        *("scale", "ratio", "attempts", "patch_h", "patch_w", "max_seq_len", "divisible_by_patch"),
        *("final_scale_range", "interpolations"),
    )

    def _get_name(self) -> str:
        return "RandomResizedCropToSequence"

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        from timm.data.naflex_transforms import RandomResizedCropToSequence

        _, _, height, width = self._shape_of(flat_inputs)
        known = {name: getattr(self, name) for name in self._config[:-1]}
        known["crop_attempts"] = known.pop("attempts")  # timm passes no max_ratio, though it has one
        modes: Any = tuple(range(len(self.interpolations)))
        modes = modes if len(modes) > 1 else 0
        with seeding.own_generators():
            given = RandomResizedCropToSequence.get_params(
                meta_image(1, 1, height, width), interpolation=modes, **known
            )
        where, size, mode = given
        names = ("top", "left", "height", "width")
        return {**dict(zip(names, where, strict=True)), "size": list(size), "mode": mode}

    def _has_pils_pixels(self) -> bool:
        return True

    def _outweighs_pil(self) -> bool:
        return True

    def _sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        return int(numbers[4]), int(numbers[5])

    def _operator_numbers(self, numbers: Numbers, height: int, width: int) -> Numbers:
        top, left, high, wide = each_number(numbers)[:4]
        box = [left, top, left + wide, top + high]
        return torch.stack(box, -1) if isinstance(numbers, Tensor) else box

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        boxes, size = as_integers(params.beside(image)), self._canvas(params)

        how: dict[str, Any] = {"antialias": True, "planar": params.is_known and image.ndim == 3}

        def crop(mode: str) -> Tensor:
            out = _geometry.crop_boxes(image, boxes, size, InterpolationMode(mode), **how)
            return out if params.is_known else in_known_format(out, image)

        return in_one_mode(number_of(params, 6), self.interpolations, crop)

    def _mask(self, mask: Tensor, params: Params) -> Tensor:
        boxes = as_integers(params.beside(mask))
        return _geometry.crop_boxes(mask, boxes, self._canvas(params), InterpolationMode.NEAREST_EXACT, True)

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        where = (values[name] for name in ("top", "left", "height", "width"))
        mode = InterpolationMode(self.interpolations[values["mode"]])
        return v2.functional.resized_crop(inpt, *where, values["size"], mode, antialias=True)


class _TimmPatchify(OperatorTransform, v2.Transform):
    """Cut an image into patches: a dict of patches, of their coordinates, and of which are valid."""

    _transformed_types = (Tensor, PIL.Image.Image, np.ndarray)

    def __init__(self, patch_size: Any, flatten_patches: bool, channels_last: bool) -> None:
        v2.Transform.__init__(self)
        self.patch_size, self.flatten_patches = tuple(patch_size), flatten_patches
        self.channels_last = channels_last

    def _get_name(self) -> str:
        return "Patchify"

    def _plan(self, shape: Any, program: Any) -> None:
        return None

    def _image(self, image: Tensor, params: Params, kind: type) -> Any:
        """Return what timm's function does, for images of sizes that a compiler does not know, too."""
        *samples, channels, height, width = image.shape
        high, wide = self.patch_size
        rows, columns = (height + high - 1) // high, (width + wide - 1) // wide
        image = imgops.crop(image, (0, 0, columns * wide, rows * high))  # 0 outside of the image
        patches = image.reshape(*samples, channels, rows, high, columns, wide)
        order = (-4, -2, -3, -1, -5) if self.channels_last else (-4, -2, -5, -3, -1)
        patches = patches.permute(*range(len(samples)), *(patches.ndim + i for i in order))
        patches = patches.flatten(-5, -4)
        places = torch.meshgrid(
            torch.arange(rows, dtype=torch.int64, device="cpu"),
            torch.arange(columns, dtype=torch.int64, device="cpu"),
            indexing="ij",
        )
        place = torch.stack([each.flatten() for each in places], 1)
        return {
            "patches": patches.flatten(-3) if self.flatten_patches else patches,
            "patch_coord": place.expand(*samples, -1, -1),
            "patch_valid": torch.ones(*samples, rows * columns, dtype=torch.bool, device="cpu"),
        }

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        image = inpt if isinstance(inpt, Tensor) else v1_functional.to_tensor(inpt)
        return self._image(image, NOTHING, Tensor)


# -- makers ----------------------------------------------------------------------------------------------


def _sequence_of(given: Any, max_ratio: float | None = None) -> dict[str, Any]:
    length = given.max_seq_len if hasattr(given, "max_seq_len") else given.max_sequence_len
    size = as_tuple(given.patch_size)
    return dict(zip(_SEQUENCE, (size, length, given.divisible_by_patch, max_ratio), strict=True))


def _border_of(given: Any) -> dict[str, Any]:
    return {"fill": as_tuple(given.fill), "padding_mode": given.padding_mode}


def _resize_to_sequence(given: Any, reader: Reader) -> Any:
    modes, known = modes_of(given.interpolation), _sequence_of(given, given.max_ratio)
    if len(modes) > 1:
        return _TimmResizeToSequenceInAMode(interpolations=modes, **known)
    return _TimmResizeToSequence(interpolation=modes[0], **known)


def _keep_ratio_to_sequence(given: Any, reader: Reader) -> Any:
    modes, known = modes_of(given.interpolation), _sequence_of(given, given.max_ratio)
    known |= {name: as_tuple(getattr(given, name)) for name in (*_CHANCES, "longest")}
    if given.random_scale_prob > 0 or given.random_aspect_prob > 0:
        return _TimmRandomResizeKeepRatioToSequence(interpolations=modes, **known)
    if len(modes) > 1:
        return _TimmResizeKeepRatioToSequenceInAMode(interpolations=modes, **known)
    return _TimmResizeKeepRatioToSequence(interpolation=modes[0], **known)


def _resized_crop_to_sequence(given: Any, reader: Reader) -> Any:
    cls = _TimmRandomResizedCropToSequence
    known = {name: as_tuple(getattr(given, name)) for name in cls._config[:-1]}
    return cls(interpolations=modes_of(given.interpolation), **known)


NAFLEX: dict[str, Any] = {
    "ResizeToSequence": _resize_to_sequence,
    "ResizeKeepRatioToSequence": _keep_ratio_to_sequence,
    "CenterCropToSequence": lambda t, _: _TimmCenterCropToSequence(**_sequence_of(t), **_border_of(t)),
    # timm passes 1 here, so that an image is not enlarged.
    "RandomCropToSequence": lambda t, _: _TimmRandomCropToSequence(**_sequence_of(t, 1.0), **_border_of(t)),
    "RandomResizedCropToSequence": _resized_crop_to_sequence,
    "Patchify": lambda t, _: _TimmPatchify(t.patch_size, t.flatten_patches, t.channels_last),
}
