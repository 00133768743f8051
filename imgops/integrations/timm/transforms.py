"""The counterparts of timm's transforms, which draw by Python's and NumPy's generators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode, v2

from imgops import transforms
from imgops.integrations._reader import Maker, Reader, Unmapped, add_makers
from imgops.integrations._to_tensor import maybe_to_tensor
from imgops.integrations.timm.naflex import NAFLEX
from imgops.integrations.timm.sizes import (
    CenterWindow,
    FixedSize,
    RandomResizeTo,
    RandomWindow,
    ResizeInAMode,
    ResizeTo,
    as_tuple,
    draw_mode,
    in_one_mode,
    modes_of,
    number_of,
    of_size,
    size_of,
)
from imgops.transforms import geometry
from imgops.transforms._core import pil_images, seeding
from imgops.transforms._core.base import OperatorTransform
from imgops.transforms._core.inputs import meta_image
from imgops.transforms._core.parameters import Numbers, Parameter, Params, as_integers
from imgops.transforms.functional import _geometry


class ResizeKeepRatio(ResizeTo):
    """A resize of the shortest or of the longest side, or of a length between, to that of a target."""

    _config = ("target", "longest", "interpolation")

    def __init__(self, target: Any, longest: float, interpolation: str) -> None:
        super().__init__(target=tuple(target), longest=longest, interpolation=interpolation)

    def _get_name(self) -> str:
        return "ResizeKeepRatio"

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        from timm.data.transforms import ResizeKeepRatio as Given

        high, wide = Given.get_params(of_size(height, width), self.target, self.longest)
        return high, wide


class _TimmResizeKeepRatioInAMode(ResizeInAMode):
    _config = ("target", "longest", "interpolations")

    def _get_name(self) -> str:
        return "ResizeKeepRatio"

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return ResizeKeepRatio._out_size(self, height, width)  # type: ignore[arg-type]


class _TimmRandomResizeKeepRatio(RandomResizeTo):
    """A resize by a random scale and aspect ratio."""

    _config = (
        *("target", "longest", "scale_prob", "scale_range", "scale_area", "aspect_prob", "aspect_range"),
        "interpolations",
    )

    def _get_name(self) -> str:
        return "ResizeKeepRatio"

    def draw_size(self, height: int, width: int) -> Sequence[int]:
        from timm.data.transforms import ResizeKeepRatio

        known = (getattr(self, name) for name in self._config[:-1])
        return ResizeKeepRatio.get_params(meta_image(1, 1, height, width), *known)


class CenterCropOrPad(CenterWindow):
    """Crop the middle of the image, or pad the image to the size."""

    _config = ("size", "fill", "padding_mode")

    def __init__(self, size: Any, fill: Any, padding_mode: str) -> None:
        super().__init__(size=tuple(size), fill=as_tuple(fill), padding_mode=padding_mode)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return self.size


class _TimmRandomCropOrPad(RandomWindow):
    _config = ("size", "fill", "padding_mode")

    def _get_name(self) -> str:
        return "RandomCropOrPad"

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        high, wide = self.size
        return high, wide

    def draw_place(self, height: int, width: int) -> tuple[int, int]:
        from timm.data.transforms import RandomCropOrPad

        top, left = RandomCropOrPad.get_params(meta_image(1, 1, height, width), self.size)
        return top, left


class _TimmRandomPad(RandomWindow):
    _config = ("size", "fill")
    padding_mode = "constant"

    def _get_name(self) -> str:
        return "RandomPad"

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        high, wide = (torch.sym_max(n, m) for n, m in zip(self.size, (height, width), strict=True))
        return high, wide

    def draw_place(self, height: int, width: int) -> tuple[int, int]:
        from timm.data.transforms import RandomPad

        left, top, _, _ = RandomPad.get_params(meta_image(1, 1, height, width), self.size)
        return -top, -left


class _TimmTrimBorder(FixedSize):
    _config = ("border_size",)

    def _get_name(self) -> str:
        return "TrimBorder"

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        high, wide = (torch.sym_max(0, n - 2 * self.border_size) for n in (height, width))
        return high, wide

    def _box(self, height: int, width: int) -> tuple[Any, ...]:
        """Return the top and the left edge of what stays, and its size."""
        top, left = (torch.sym_min(self.border_size, n) for n in (height, width))
        return top, left, *self._out_size(height, width)

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return _geometry.crop(image, *self._box(*image.shape[-2:]))

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        return self._kernel(v2.functional.crop, inpt, *self._box(*size_of(inpt)))


class _TimmRandomResizedCrop(geometry.RandomResizedCrop):
    """A resized crop drawn by timm, in one of several interpolations."""

    _random_parameters: Any = (*geometry.RandomResizedCrop._random_parameters, Parameter("mode", kind=int))
    _config: Any = (*geometry.RandomResizedCrop._config, "interpolations")

    def __init__(self, size: Any, scale: Any, ratio: Any, interpolations: list[str]) -> None:
        self.interpolations = list(interpolations)  # before the description is made of it
        super().__init__(size, scale, ratio, InterpolationMode(interpolations[0]), True)

    def _get_name(self) -> str:
        return "RandomResizedCropAndInterpolation"

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        from timm.data.transforms import RandomResizedCropAndInterpolation

        _, _, height, width = self._shape_of(flat_inputs)
        with seeding.own_generators():
            found = RandomResizedCropAndInterpolation.get_params(
                meta_image(1, 1, height, width), self.scale, self.ratio
            )
            mode = draw_mode(self.interpolations)
        return {**dict(zip(("top", "left", "height", "width"), found, strict=True)), "mode": mode}

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        where = (values[name] for name in ("top", "left", "height", "width"))
        mode = InterpolationMode(self.interpolations[values["mode"]])
        return v2.functional.resized_crop(inpt, *where, list(self.size), mode, antialias=True)

    def _operator_numbers(self, numbers: Numbers, height: int, width: int) -> Numbers:
        crop = numbers[..., :4] if isinstance(numbers, Tensor) else numbers[:4]
        return super()._operator_numbers(crop, height, width)

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
        if len(self.interpolations) == 1:
            return super()._image(image, params, kind)
        boxes = as_integers(params.beside(image))

        def crop(mode: str) -> Tensor:
            how = pil_images.interpolation_of(kind, InterpolationMode(mode), True)
            return _geometry.crop_boxes(image, boxes, self.size, *how, planar=image.ndim == 3)

        return in_one_mode(number_of(params, 4), self.interpolations, crop)


class _TimmToNumpy(OperatorTransform, v2.Transform):
    """Convert an image to an array ``(C, H, W)`` of levels, as timm's loaders take them."""

    _transformed_types = (Tensor, PIL.Image.Image, np.ndarray)

    def _get_name(self) -> str:
        return "ToNumpy"

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if isinstance(inpt, Tensor) and inpt.dtype == torch.uint8:
            return inpt.numpy()
        levels = np.array(inpt, dtype=np.uint8)
        return np.rollaxis(levels if levels.ndim > 2 else levels[..., None], 2)


def _resize_keep_ratio(given: Any, reader: Reader) -> Any:
    modes = modes_of(given.interpolation)
    if not given.random_scale_prob and not given.random_aspect_prob:
        if len(modes) == 1:
            return ResizeKeepRatio(given.size, given.longest, modes[0])
        return _TimmResizeKeepRatioInAMode(
            target=tuple(given.size), longest=given.longest, interpolations=modes
        )
    return _TimmRandomResizeKeepRatio(
        target=tuple(given.size),
        longest=given.longest,
        scale_prob=given.random_scale_prob,
        scale_range=tuple(given.random_scale_range),
        scale_area=given.random_scale_area,
        aspect_prob=given.random_aspect_prob,
        aspect_range=tuple(given.random_aspect_range),
        interpolations=modes,
    )


def _resized_crop(given: Any, reader: Reader) -> Any:
    return _TimmRandomResizedCrop(given.size, given.scale, given.ratio, modes_of(given.interpolation))


def _without(why: str) -> Maker:
    """Return a maker for what has no counterpart."""

    def refuse(given: Any, reader: Reader) -> Any:
        raise Unmapped(why)

    return refuse


#: What works on batches in timm's loaders, and is no step of a pipeline.
_OF_BATCHES: dict[str, Maker] = {
    "mixup.FastCollateMixup": _without(
        "a function that collates a batch: convert Mixup, which takes a batch"
    ),
    "naflex_mixup.NaFlexMixup": _without("images of different sizes are mixed in a list, with their labels"),
    "naflex_random_erasing.PatchRandomErasing": _without(
        "patches of a batch are erased in place, and the draws depend on which are valid"
    ),
}
_TRANSFORMS: dict[str, Any] = {
    "transforms.MaybeToTensor": maybe_to_tensor,
    "transforms.MaybePILToTensor": lambda t, _: transforms.PILToTensor(),
    "transforms.ToTensor": lambda t, _: [transforms.PILToTensor(), transforms.ToDtype(t.dtype)],
    "transforms.ToNumpy": lambda t, _: _TimmToNumpy(),
    "transforms.ResizeKeepRatio": _resize_keep_ratio,
    "transforms.RandomResizedCropAndInterpolation": _resized_crop,
    "transforms.TrimBorder": lambda t, _: _TimmTrimBorder(border_size=t.border_size),
    "transforms.CenterCropOrPad": lambda t, _: CenterCropOrPad(t.size, t.fill, t.padding_mode),
    "transforms.RandomCropOrPad": lambda t, _: _TimmRandomCropOrPad(
        size=tuple(t.size), fill=as_tuple(t.fill), padding_mode=t.padding_mode
    ),
    "transforms.RandomPad": lambda t, _: _TimmRandomPad(size=tuple(t.input_size), fill=as_tuple(t.fill)),
}
add_makers("timm.data", {**_TRANSFORMS, **_OF_BATCHES})
add_makers("timm.data.naflex_transforms", NAFLEX)
