"""The counterparts of timm's transforms, which draw by Python's and NumPy's generators."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode, v2
from torchvision.transforms import functional as v1_functional

from imgops import transforms
from imgops.transforms import geometry
from imgops.transforms._core import pil_images, seeding
from imgops.transforms._core.base import NOTHING, OperatorTransform, like
from imgops.transforms._core.parameters import Numbers, Parameter, Params, as_integers
from imgops.transforms._core.sizes import FixedTransform
from imgops.transforms.converters._reader import Reader, Unmapped, add_makers
from imgops.transforms.converters._torchvision import resampling, to_tensor
from imgops.transforms.functional import _dispatch, _geometry
from imgops.transforms.geometry.resize import _RandomResize


def _modes(interpolation: Any) -> list[str]:
    """Return the names of one interpolation, or of those of which one is drawn."""
    several = interpolation if isinstance(interpolation, (tuple, list)) else (interpolation,)
    return [resampling(mode).value for mode in several]


class ResizeTo(FixedTransform, v2.Transform):
    """A resize to a size that follows from the size of the image."""

    interpolation: str

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        raise NotImplementedError

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        size = self._out_size(*image.shape[-2:])
        how = pil_images.interpolation_of(kind, InterpolationMode(self.interpolation), True)
        return _geometry.resize(image, size, how[0], None, how[1])

    def outweighs_pil(self) -> bool:
        return True

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        size = self._out_size(*v2.functional.get_size(inpt))
        how = {"interpolation": InterpolationMode(self.interpolation), "antialias": True}
        return self.call_kernel(v2.functional.resize, inpt, list(size), **how)


class ResizeKeepRatio(ResizeTo):
    """A resize of the shortest or of the longest side, or of a length between, to that of a target."""

    _config = ("target", "longest", "interpolation")

    def __init__(self, target: Any, longest: float, interpolation: str) -> None:
        v2.Transform.__init__(self)
        self.target, self.longest, self.interpolation = tuple(target), longest, interpolation
        self._describe()

    def _get_name(self) -> str:
        return "ResizeKeepRatio"

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        from timm.data.transforms import ResizeKeepRatio as Given

        high, wide = Given.get_params(like(1, 1, height, width), self.target, self.longest)
        return high, wide


class _TimmResizeToSequence(ResizeTo):
    _config = ("patch_size", "max_seq_len", "divisible_by_patch", "max_ratio", "interpolation")

    def __init__(
        self,
        patch_size: Any,
        max_seq_len: int,
        divisible_by_patch: bool,
        max_ratio: float | None,
        interpolation: str,
    ) -> None:
        v2.Transform.__init__(self)
        self.patch_size = tuple(patch_size) if isinstance(patch_size, (tuple, list)) else patch_size
        self.max_seq_len, self.divisible_by_patch = max_seq_len, divisible_by_patch
        self.max_ratio, self.interpolation = max_ratio, interpolation
        self._describe()

    def _get_name(self) -> str:
        return "ResizeToSequence"

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        from timm.data.naflex_transforms import get_image_size_for_seq

        how = self.patch_size, self.max_seq_len, self.divisible_by_patch, self.max_ratio
        _, (high, wide) = get_image_size_for_seq((height, width), *how)
        return high, wide


class _TimmRandomResizeKeepRatio(_RandomResize, v2.Transform):
    """A resize by a random scale and aspect ratio."""

    random_parameters: Any = (*_RandomResize.random_parameters, Parameter("mode", kind=int))
    _config = (
        *("target", "longest", "scale_prob", "scale_range", "scale_area", "aspect_prob", "aspect_range"),
        "interpolations",
    )
    antialias = True

    def __init__(self, **config: Any) -> None:
        v2.Transform.__init__(self)
        self.__dict__.update(config)
        self._start(False, None)

    def _get_name(self) -> str:
        return "ResizeKeepRatio"

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        from timm.data.transforms import ResizeKeepRatio

        _, _, height, width = self.shape_of(flat_inputs)
        chance = self.scale_prob, self.scale_range, self.scale_area, self.aspect_prob, self.aspect_range
        with seeding.own_generators():
            size = ResizeKeepRatio.get_params(like(1, 1, height, width), self.target, self.longest, *chance)
            return {"size": size, "mode": _draw(self.interpolations)}

    def pack(self, values: dict[str, Any], height: int, width: int) -> Numbers:
        return [*map(float, values["size"]), float(values["mode"])]

    def by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        mode = InterpolationMode(self.interpolations[values["mode"]])
        return v2.functional.resize(inpt, values["size"], mode, antialias=True)

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        size = self._canvas(params)

        def resize(mode: str) -> Tensor:
            return _geometry.resize_to(image, size, InterpolationMode(mode), True)

        return _in_one_mode(_number(params, 2), self.interpolations, resize)


def _number(params: Params, place: int) -> Any:
    """Return one of the numbers that were sampled, or a tensor of one for each sample."""
    numbers = params.numbers
    return numbers[..., place] if isinstance(numbers, Tensor) else numbers[place]


def _draw(interpolations: list[str]) -> int:
    """Draw one of several interpolations as timm does; one alone is not drawn."""
    return random.choice(range(len(interpolations))) if len(interpolations) > 1 else 0


def _in_one_mode(mode: Any, interpolations: list[str], resize: Any) -> Tensor:
    """Resize in the mode that was drawn; where it is a tensor, select between the results of all."""
    if len(interpolations) == 1:
        return resize(interpolations[0])
    if not isinstance(mode, Tensor):
        return resize(interpolations[int(mode)])
    first, second = (resize(m) for m in interpolations)
    return torch.where(mode[..., None, None, None].to(first.device) > 0, second, first)


class CenterCropOrPad(FixedTransform, v2.Transform):
    _config = ("size", "fill", "padding_mode")

    def __init__(self, size: Any, fill: Any, padding_mode: str) -> None:
        v2.Transform.__init__(self)
        self.size, self.padding_mode = tuple(size), padding_mode
        self.fill = tuple(fill) if isinstance(fill, (list, tuple)) else fill
        self._describe()

    def _places(self, height: int, width: int) -> tuple[list[int], int, int]:
        """Return the padding as left, top, right and bottom, and where the crop starts after it."""
        high, wide = self.size
        x, y = max(wide - width, 0), max(high - height, 0)
        top, left = (round((n - m) / 2) for n, m in ((height + y, high), (width + x, wide)))
        return [x // 2, y // 2, (x + 1) // 2, (y + 1) // 2], top, left

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        padding, top, left = self._places(*image.shape[-2:])
        if any(padding):
            image = _geometry.pad(image, padding, self.fill, self.padding_mode)
        return _geometry.crop(image, top, left, *self.size)

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        return self.size

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        padding, top, left = self._places(*v2.functional.get_size(inpt))
        if any(padding):
            fill = self.fill if _dispatch.is_image(inpt) or not isinstance(inpt, Tensor) else 0
            how: dict[str, Any] = {"fill": fill, "padding_mode": self.padding_mode}
            inpt = self.call_kernel(v2.functional.pad, inpt, padding, **how)
        return self.call_kernel(v2.functional.crop, inpt, top, left, *self.size)


class _TimmTrimBorder(FixedTransform, v2.Transform):
    _config = ("border_size",)

    def __init__(self, border_size: int) -> None:
        v2.Transform.__init__(self)
        self.border_size = border_size
        self._describe()

    def _get_name(self) -> str:
        return "TrimBorder"

    def _out_size(self, height: int, width: int) -> tuple[int, int]:
        high, wide = (max(0, n - 2 * self.border_size) for n in (height, width))
        return high, wide

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        height, width = image.shape[-2:]
        top, left = (min(self.border_size, n) for n in (height, width))
        return _geometry.crop(image, top, left, *self._out_size(height, width))

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        height, width = v2.functional.get_size(inpt)
        top, left = (min(self.border_size, n) for n in (height, width))
        return self.call_kernel(v2.functional.crop, inpt, top, left, *self._out_size(height, width))


class _TimmPatchify(OperatorTransform, v2.Transform):
    """Cut an image into patches by timm's function: a dict of patches, coordinates, and which are valid."""

    def __init__(self, patch_size: Any, flatten_patches: bool, channels_last: bool) -> None:
        v2.Transform.__init__(self)
        self.patch_size, self.flatten_patches = tuple(patch_size), flatten_patches
        self.channels_last = channels_last

    def _get_name(self) -> str:
        return "Patchify"

    def _plan(self, shape: Any, program: Any) -> None:
        return None

    def _image(self, image: Tensor, params: Params, kind: type) -> Any:
        from timm.data.naflex_transforms import patchify_image

        how = {"flatten_patches": self.flatten_patches, "channels_last": self.channels_last}
        patches, places, valid = patchify_image(image, self.patch_size, **how)
        return {"patches": patches, "patch_coord": places, "patch_valid": valid}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        image = inpt if isinstance(inpt, Tensor) else v1_functional.to_tensor(inpt)
        return self._image(image, NOTHING, Tensor)


class _TimmRandomResizedCrop(geometry.RandomResizedCrop):
    """A resized crop drawn by timm, in one of several interpolations."""

    random_parameters: Any = (*geometry.RandomResizedCrop.random_parameters, Parameter("mode", kind=int))
    _config: Any = (*geometry.RandomResizedCrop._config, "interpolations")

    def __init__(self, size: Any, scale: Any, ratio: Any, interpolations: list[str]) -> None:
        self.interpolations = list(interpolations)  # before the description is made of it
        super().__init__(size, scale, ratio, InterpolationMode(interpolations[0]), True)

    def _get_name(self) -> str:
        return "RandomResizedCropAndInterpolation"

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        from timm.data.transforms import RandomResizedCropAndInterpolation

        _, _, height, width = self.shape_of(flat_inputs)
        with seeding.own_generators():
            found = RandomResizedCropAndInterpolation.get_params(
                like(1, 1, height, width), self.scale, self.ratio
            )
            mode = _draw(self.interpolations)
        return {**dict(zip(("top", "left", "height", "width"), found, strict=True)), "mode": mode}

    def by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        where = (values[name] for name in ("top", "left", "height", "width"))
        mode = InterpolationMode(self.interpolations[values["mode"]])
        return v2.functional.resized_crop(inpt, *where, list(self.size), mode, antialias=True)

    def operator_numbers(self, numbers: Numbers, height: int, width: int) -> Numbers:
        crop = numbers[..., :4] if isinstance(numbers, Tensor) else numbers[:4]
        return super().operator_numbers(crop, height, width)

    @property
    def takes_packed(self) -> bool:  # type: ignore[override]
        return len(self.interpolations) == 1

    @property
    def decodes_regions(self) -> bool:  # type: ignore[override]
        return len(self.interpolations) == 1

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        if len(self.interpolations) == 1:
            return super()._image(image, params, kind)
        boxes = as_integers(params.beside(image))

        def crop(mode: str) -> Tensor:
            how = pil_images.interpolation_of(kind, InterpolationMode(mode), True)
            return _geometry.crop_boxes(image, boxes, self.size, *how, planar=image.ndim == 3)

        return _in_one_mode(_number(params, 4), self.interpolations, crop)


class _TimmToNumpy(OperatorTransform, v2.Transform):
    """Convert an image to an array ``(C, H, W)`` of levels, as timm's loaders take them."""

    def _get_name(self) -> str:
        return "ToNumpy"

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if isinstance(inpt, Tensor):
            return inpt.numpy()
        levels = np.array(inpt, dtype=np.uint8)
        return np.rollaxis(levels if levels.ndim > 2 else levels[..., None], 2)


def _resize_keep_ratio(given: Any, reader: Reader) -> Any:
    modes = _modes(given.interpolation)
    if not given.random_scale_prob and not given.random_aspect_prob and len(modes) == 1:
        return ResizeKeepRatio(given.size, given.longest, modes[0])
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
    return _TimmRandomResizedCrop(given.size, given.scale, given.ratio, _modes(given.interpolation))


def _resize_to_sequence(given: Any, reader: Reader) -> Any:
    modes = _modes(given.interpolation)
    if len(modes) > 1:
        raise Unmapped("interpolation='random'")
    return _TimmResizeToSequence(
        given.patch_size, given.max_seq_len, given.divisible_by_patch, given.max_ratio, modes[0]
    )


_TRANSFORMS: dict[str, Any] = {
    "transforms.MaybeToTensor": to_tensor,
    "transforms.MaybePILToTensor": lambda t, _: transforms.PILToTensor(),
    "transforms.ToTensor": lambda t, _: [transforms.PILToTensor(), transforms.ToDtype(t.dtype)],
    "transforms.ToNumpy": lambda t, _: _TimmToNumpy(),
    "transforms.ResizeKeepRatio": _resize_keep_ratio,
    "transforms.RandomResizedCropAndInterpolation": _resized_crop,
    "naflex_transforms.ResizeToSequence": _resize_to_sequence,
    "transforms.TrimBorder": lambda t, _: _TimmTrimBorder(t.border_size),
    "naflex_transforms.Patchify": lambda t, _: _TimmPatchify(
        t.patch_size, t.flatten_patches, t.channels_last
    ),
    "transforms.CenterCropOrPad": lambda t, _: CenterCropOrPad(t.size, t.fill, t.padding_mode),
}
add_makers("timm.data", _TRANSFORMS)
