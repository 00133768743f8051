"""The counterparts of timm's transforms, which draw by Python's and NumPy's generators."""

from __future__ import annotations

from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode, v2

from imgops import transforms
from imgops.integrations._counterparts import Counterpart
from imgops.integrations._reader import Maker, Reader, Unmapped, add_makers
from imgops.integrations._to_tensor import maybe_to_tensor
from imgops.integrations.timm.naflex import NAFLEX, resize
from imgops.integrations.timm.sizes import (
    RATIO,
    FixedWindow,
    RandomResizeTo,
    RandomWindow,
    as_tuple,
    draw_mode,
    in_drawn_mode,
    modes_of,
)
from imgops.transforms import geometry
from imgops.transforms._core import seeding, steps
from imgops.transforms._core.inputs import meta_image
from imgops.transforms._core.parameters import Numbers, Parameter, Params, each_number


class CropInDrawnMode(steps.Step):
    """A resized crop; ``numbers`` are left, top, right, bottom and the index of the interpolation."""

    def __init__(self, numbers: Numbers, size: Any, modes: list[str]) -> None:
        self.numbers = numbers
        self.size, self.modes = size, modes

    def image(self, image: Tensor) -> Tensor:
        numbers = self.numbers[..., :4] if isinstance(self.numbers, Tensor) else self.numbers[:4]

        def crop(*how: Any) -> Tensor:
            return steps.ResizedCrop(numbers, self.size, *how).image(image)

        return in_drawn_mode(self.numbers, self.modes, crop)


class RandomResizedCropAndInterpolation(geometry.RandomResizedCrop):
    """A resized crop drawn by timm, in one of several interpolations."""

    _random_parameters: Any = (*geometry.RandomResizedCrop._random_parameters, Parameter("mode", kind=int))
    _config: Any = (*geometry.RandomResizedCrop._config, "interpolations")

    def __init__(self, size: Any, scale: Any, ratio: Any, interpolations: list[str]) -> None:
        self.interpolations = list(interpolations)  # before the description is made of it
        super().__init__(size, scale, ratio, InterpolationMode(interpolations[0]), True)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        from timm.data import transforms as timm

        _, _, height, width = self._shape_of(flat_inputs)
        with seeding.own_generators():
            image, draw = meta_image(1, 1, height, width), timm.RandomResizedCropAndInterpolation.get_params
            place = draw(image, self.scale, self.ratio)
            mode = draw_mode(self.interpolations)
        return {**dict(zip(("top", "left", "height", "width"), place, strict=True)), "mode": mode}

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        where = (values[name] for name in ("top", "left", "height", "width"))
        mode = InterpolationMode(self.interpolations[values["mode"]])
        return v2.functional.resized_crop(inpt, *where, list(self.size), mode, antialias=True)

    @property
    def _takes_batches(self) -> bool:  # type: ignore[override]
        return len(self.interpolations) == 1

    @property
    def _decodes_regions(self) -> bool:  # type: ignore[override]
        return len(self.interpolations) == 1

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        if kind is PIL.Image.Image and not all(params.numbers[2:4]):
            # timm draws boxes without pixels on images of few pixels, and PIL resizes them to black.
            return image.new_zeros((*image.shape[:-2], *self.size))
        return super()._image(image, params, kind)

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        (crop,) = super()._steps(params, size, kind)
        if len(self.interpolations) == 1 or kind is tv_tensors.Mask:
            return [crop]
        box, mode = each_number(crop.numbers), each_number(params.numbers)[4]
        return [CropInDrawnMode(steps.join(*box, mode), self.size, self.interpolations)]


class ToNumpy(Counterpart):
    """Convert an image to an array ``(C, H, W)`` of levels, as timm's loaders take them."""

    _transformed_types = (Tensor, PIL.Image.Image, np.ndarray)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if isinstance(inpt, Tensor) and inpt.dtype == torch.uint8:
            return inpt.numpy()
        levels = np.array(inpt, dtype=np.uint8)
        return np.rollaxis(levels if levels.ndim > 2 else levels[..., None], 2)


def resize_keep_ratio(size: Any, longest: float, modes: list[str], **draws: Any) -> Any:
    """Return a resize that keeps the aspect ratio, or draws another ratio and a scale."""
    known = {"_name": "ResizeKeepRatio", "target": tuple(size), "longest": longest}
    return RandomResizeTo(**known, **draws, interpolations=modes) if draws else resize(known, modes)


def _resize_keep_ratio(given: Any, reader: Reader) -> Any:
    is_drawn = given.random_scale_prob or given.random_aspect_prob
    draws = {name: as_tuple(getattr(given, f"random_{name}")) for name in RATIO if is_drawn}
    modes = modes_of(given.interpolation)
    return resize_keep_ratio(given.size, given.longest, modes, **draws)


def center_crop_or_pad(given: Any, reader: Reader) -> Any:
    return _window(FixedWindow, given, "CenterCropOrPad", getattr(given, "padding_mode", "constant"))


def _window(cls: Any, given: Any, name: str, padding_mode: str) -> Any:
    return cls(_name=name, size=tuple(given.size), fill=as_tuple(given.fill), padding_mode=padding_mode)


def _without(why: str) -> Maker:
    """Return a maker that refuses a transform without a counterpart."""

    def refuse(given: Any, reader: Reader) -> Any:
        raise Unmapped(why)

    return refuse


_TRANSFORMS: dict[str, Any] = {
    "transforms.MaybeToTensor": maybe_to_tensor,
    "transforms.MaybePILToTensor": lambda t, _: transforms.PILToTensor(),
    "transforms.ToTensor": lambda t, _: [transforms.PILToTensor(), transforms.ToDtype(t.dtype)],
    "transforms.ToNumpy": lambda t, _: ToNumpy(),
    "transforms.ResizeKeepRatio": _resize_keep_ratio,
    "transforms.RandomResizedCropAndInterpolation": lambda t, _: RandomResizedCropAndInterpolation(
        t.size, t.scale, t.ratio, modes_of(t.interpolation)
    ),
    "transforms.TrimBorder": lambda t, _: FixedWindow(_name="TrimBorder", border_size=t.border_size),
    "transforms.CenterCropOrPad": center_crop_or_pad,
    "transforms.RandomCropOrPad": lambda t, _: _window(RandomWindow, t, "RandomCropOrPad", t.padding_mode),
    "transforms.RandomPad": lambda t, _: RandomWindow(
        _name="RandomPad", size=tuple(t.input_size), fill=as_tuple(t.fill)
    ),
    # These work on batches in timm's loaders, and are no steps of a pipeline.
    "mixup.FastCollateMixup": _without(
        "a function that collates a batch: convert Mixup, which takes a batch"
    ),
    "naflex_mixup.NaFlexMixup": _without("images of different sizes are mixed in a list, with their labels"),
    "naflex_random_erasing.PatchRandomErasing": _without(
        "patches of a batch are erased in place, and the draws depend on which are valid"
    ),
}
add_makers("timm.data", _TRANSFORMS)
add_makers("timm.data.naflex_transforms", NAFLEX)
