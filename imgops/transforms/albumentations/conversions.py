"""Counterparts of albumentations' transforms that change the dtype of an image, and draw nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops import _subclass
from imgops.transforms._core.base import OperatorTransform
from imgops.transforms._core.parameters import Params
from imgops.transforms.albumentations.rules import Unmapped
from imgops.transforms.color import channels
from imgops.transforms.functional import _dispatch


class _Conversion(OperatorTransform, v2.Transform):
    """A change of the values of images, to another dtype, by an argument-free function."""

    def __init__(self, name: str, **arguments: Any) -> None:
        v2.Transform.__init__(self)
        for key, value in ({"name": name} | arguments).items():
            setattr(self, key, value)

    def _get_name(self) -> str:
        return self.name

    def extra_repr(self) -> str:
        return ""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if not _dispatch.is_image(inpt):
            return inpt
        return _dispatch.wrap_like(self._image(_subclass.plain(inpt), Params((0, 0), []), type(inpt)), inpt)


class _AffineLevels(_Conversion):
    """Floats from levels by albumentations' own table, and from floats by the same line."""

    table: Tensor
    shift: Tensor
    factor: Tensor

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        # Of more numbers than there are channels, albumentations takes the first.
        count = image.shape[-3]
        if image.dtype == torch.uint8:
            return imgops.lut(image, self.table[:count] if self.table.ndim > 1 else self.table)
        shift, factor = (x[:count].to(image.device)[:, None, None] for x in (self.shift, self.factor))
        return (image.float() - shift) * factor


class _ImageNormalization(_Conversion):
    """Floats by the mean and deviation, or by the range, of each image or channel."""

    kind: str

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        real = image.float()
        dims = (-2, -1) if self.kind.endswith("per_channel") else (-3, -2, -1)
        if self.kind.startswith("min_max"):
            low, high = real.amin(dims, keepdim=True), real.amax(dims, keepdim=True)
            out = (real - low) / (high - low + _LEAST)
        else:
            deviation = real.std(dims, correction=0, keepdim=True)
            out = (real - real.mean(dims, keepdim=True)) / (deviation + _LEAST)
        return out.clamp(-20, 20)


_LEAST = 1e-4


class _RoundedLevels(_Conversion):
    """Levels from floats, rounded to the nearest."""

    largest: float

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        if image.dtype == torch.uint8:
            return image
        return (image.float() * self.largest).round().clamp(0, 255).to(torch.uint8)


def _of_levels(given: Any) -> Tensor:
    """Return what a transform makes of each level, ``(256,)`` or ``(C, 256)``."""
    mean = getattr(given, "mean_np", np.float32(0))
    levels = np.repeat(np.arange(256, dtype=np.uint8)[:, None, None], mean.size, 2)
    table = (
        torch.from_numpy(np.ascontiguousarray(given.apply(levels))).reshape(256, mean.size).mT.contiguous()
    )
    return table[0] if mean.size == 1 else table


def _normalize(given: Any) -> list[Any]:
    if given.normalization != "standard":
        return [_ImageNormalization("Normalize", kind=given.normalization)]
    shift, factor = (torch.from_numpy(np.atleast_1d(x)) for x in (given.mean_np, given.denominator))
    return [_AffineLevels("Normalize", table=_of_levels(given), shift=shift, factor=factor)]


def _to_float(given: Any) -> list[Any]:
    # albumentations leaves images of float32 as they are.
    shift, factor = (
        torch.zeros(1, dtype=torch.float32, device="cpu"),
        torch.ones(1, dtype=torch.float32, device="cpu"),
    )
    return [_AffineLevels("ToFloat", table=_of_levels(given), shift=shift, factor=factor)]


def _from_float(given: Any) -> list[Any]:
    if np.dtype(given.dtype) != np.uint8:
        raise Unmapped(f"dtype={given.dtype}")
    return [_RoundedLevels("FromFloat", largest=float(given.max_value or 255))]


def _to_rgb(given: Any) -> list[Any]:
    if given.num_output_channels != 3:
        raise Unmapped(f"num_output_channels={given.num_output_channels}")
    return [channels.RGB()]


#: Class -> its counterparts.
CONVERSIONS: dict[str, Callable[[Any], list[Any]]] = {
    "FromFloat": _from_float,
    "NoOp": lambda given: [],
    "Normalize": _normalize,
    "ToFloat": _to_float,
    "ToRGB": _to_rgb,
    "ToTensorV2": lambda given: [],
}
