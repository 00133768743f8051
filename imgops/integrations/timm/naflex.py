"""The counterparts of timm's transforms for NaFlex, which keep an image within a number of patches."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms import functional as v1_functional

import imgops
from imgops.integrations._counterparts import Counterpart, RandomCounterpart
from imgops.integrations._reader import Reader
from imgops.integrations.timm.sizes import (
    RATIO_TO_SEQUENCE,
    SEQUENCE,
    FixedWindow,
    RandomResizeTo,
    RandomWindow,
    ResizeInAMode,
    ResizeTo,
    as_tuple,
    in_drawn_mode,
    in_known_format,
    modes_of,
)
from imgops.transforms import geometry
from imgops.transforms._core import operators, seeding
from imgops.transforms._core.base import NOTHING, RandomSizeTransform
from imgops.transforms._core.inputs import meta_image
from imgops.transforms._core.parameters import Numbers, Parameter, Params, as_integers, each_number
from imgops.transforms._core.steps import Compute, Step, join
from imgops.transforms.functional import _geometry


class RandomResizedCropToSequence(RandomSizeTransform, RandomCounterpart):
    """A random crop, resized to a size that follows from that of the crop, and may be drawn."""

    _random_parameters: Any = (
        *geometry.RandomResizedCrop._random_parameters,
        Parameter("size", 2, neutral=lambda shape: [shape[2], shape[3]], kind=int),
        Parameter("mode", kind=int),
    )
    #: The settings that timm's class draws with; it has a max_ratio, which it does not pass on.
    drawn_with = (
        *("scale", "ratio", "attempts", "patch_h", "patch_w", "max_seq_len", "divisible_by_patch"),
        "final_scale_range",
    )
    _has_pils_pixels = True
    _outweighs_pil = True

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        from timm.data import naflex_transforms as timm

        _, _, height, width = self._shape_of(flat_inputs)
        known = {name: getattr(self, name) for name in self.drawn_with}
        known["crop_attempts"] = known.pop("attempts")
        modes = tuple(range(len(self.interpolations)))
        known["interpolation"] = modes if len(modes) > 1 else 0
        with seeding.own_generators():
            image = meta_image(1, 1, height, width)
            place, size, mode = timm.RandomResizedCropToSequence.get_params(image, **known)
        names = ("top", "left", "height", "width")
        return {**dict(zip(names, place, strict=True)), "size": list(size), "mode": mode}

    def _sampled_sizes(self, numbers: list[float], height: int, width: int) -> tuple[int, ...]:
        return int(numbers[4]), int(numbers[5])

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[Step]:
        top, left, high, wide, _, _, mode = each_number(params.numbers)
        box, out_size = (left, top, left + wide, top + high), self._canvas(params)
        if kind is tv_tensors.Mask:

            def cropped_labels(mask: Tensor, numbers: Numbers) -> Tensor:
                return _geometry.resize_boxes(mask, as_integers(numbers), out_size, "nearest", True)

            return [Compute(join(*box), cropped_labels)]

        def cropped(image: Tensor, numbers: Numbers) -> Tensor:
            boxes = as_integers(numbers[..., :4] if isinstance(numbers, Tensor) else numbers[:4])

            def crop(*how: Any) -> Tensor:
                out = _geometry.resize_boxes(image, boxes, out_size, *how)
                if not params.is_one_draw:
                    return in_known_format(out, image)
                return operators.as_planar(out) if image.ndim == 3 else out

            return in_drawn_mode(numbers, self.interpolations, crop)

        return [Compute(join(*box, mode), cropped)]

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        where = (values[name] for name in ("top", "left", "height", "width"))
        mode = InterpolationMode(self.interpolations[values["mode"]])
        return v2.functional.resized_crop(inpt, *where, values["size"], mode, antialias=True)


class Patchify(Counterpart):
    """Cut an image into patches: a dict of patches, of their coordinates, and of which are valid."""

    _transformed_types = (Tensor, PIL.Image.Image, np.ndarray)

    def _plan(self, shape: Any, program: Any) -> None:
        return None

    def _image(self, image: Tensor, params: Params, kind: type) -> Any:
        """Do the work of timm's function, also for images whose size a compiler does not know."""
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


def _sequence_of(given: Any, name: str, max_ratio: float | None = None) -> dict[str, Any]:
    length = given.max_seq_len if hasattr(given, "max_seq_len") else given.max_sequence_len
    size = as_tuple(given.patch_size)
    known = zip(SEQUENCE, (size, length, given.divisible_by_patch, max_ratio), strict=True)
    return {"_name": name, **dict(known)}


def _crop_to_sequence(given: Any, name: str, max_ratio: float | None) -> dict[str, Any]:
    border = {"fill": as_tuple(given.fill), "padding_mode": given.padding_mode}
    return {**_sequence_of(given, name, max_ratio), **border}


def resize(known: dict[str, Any], modes: list[str]) -> Any:
    """Return a resize in one interpolation, or in one that is drawn."""
    if len(modes) > 1:
        return ResizeInAMode(**known, interpolations=modes)
    return ResizeTo(**known, interpolation=modes[0])


def _keep_ratio_to_sequence(given: Any, reader: Reader) -> Any:
    modes = modes_of(given.interpolation)
    known = _sequence_of(given, "ResizeKeepRatioToSequence", given.max_ratio)
    known |= {name: as_tuple(getattr(given, name)) for name in (*RATIO_TO_SEQUENCE, "longest")}
    if given.random_scale_prob > 0 or given.random_aspect_prob > 0:
        return RandomResizeTo(interpolations=modes, **known)
    return resize(known, modes)


def _resized_crop_to_sequence(given: Any, reader: Reader) -> Any:
    cls = RandomResizedCropToSequence
    known = {name: as_tuple(getattr(given, name)) for name in cls.drawn_with}
    return cls(interpolations=modes_of(given.interpolation), **known)


NAFLEX: dict[str, Any] = {
    "ResizeToSequence": lambda t, _: resize(
        _sequence_of(t, "ResizeToSequence", t.max_ratio), modes_of(t.interpolation)
    ),
    "ResizeKeepRatioToSequence": _keep_ratio_to_sequence,
    "CenterCropToSequence": lambda t, _: FixedWindow(**_crop_to_sequence(t, "CenterCropToSequence", None)),
    # timm passes 1 here, so that an image is not enlarged.
    "RandomCropToSequence": lambda t, _: RandomWindow(**_crop_to_sequence(t, "RandomCropToSequence", 1.0)),
    "RandomResizedCropToSequence": _resized_crop_to_sequence,
    "Patchify": lambda t, _: Patchify(
        patch_size=tuple(t.patch_size), flatten_patches=t.flatten_patches, channels_last=t.channels_last
    ),
}
