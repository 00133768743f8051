"""Counterparts of albumentations' transforms that change the dtype of an image, and draw nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops._common.torch_private import raise_error
from imgops._operator import subclass
from imgops.integrations.albumentations.rules import Unmapped, name_of
from imgops.transforms._core.base import OperatorTransform
from imgops.transforms._core.parameters import Params
from imgops.transforms.color import channels
from imgops.transforms.functional import _dispatch


class _Conversion(OperatorTransform, v2.Transform):
    """A change of the values of images by a function, which may return another dtype."""

    def __init__(self, name: str, change: Callable[[Tensor], Tensor]) -> None:
        v2.Transform.__init__(self)
        self.name, self.change = name, change

    def _get_name(self) -> str:
        return self.name

    def extra_repr(self) -> str:
        return ""

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return self.change(image)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if not _dispatch.is_image(inpt):
            return inpt
        return _dispatch.wrap_like(self.change(subclass.plain(inpt)), inpt)


def _shifted(tables: list[Tensor], shift: Tensor, factor: Tensor, image: Tensor) -> Tensor:
    """Return floats from levels by albumentations' own tables, and from other values by the same line."""
    count = image.shape[-3]
    if image.dtype == torch.uint8:
        table = tables[min(count, len(tables)) - 1]
        return imgops.lut(image, table if len(table) == count else table[0])
    # A number for each channel, or the first number for all if there are too few.
    shift, factor = (
        (x[:count] if len(x) >= count else x[:1]).to(image.device)[:, None, None] for x in (shift, factor)
    )
    return (image.float() - shift) * factor


def _shares(tables: list[Tensor], largest: float | None, image: Tensor) -> Tensor:
    """Return levels as shares of the largest one, and floats unchanged, as float32."""
    if image.dtype == torch.uint16:
        return (image.double() / float(largest or 65535)).float()
    _require_levels_or_floats(image, "ToFloat", "uint8, uint16")
    return _shifted(tables, torch.zeros(1, device="cpu", dtype=torch.float32), _ONE, image)


_ONE = torch.ones(1, device="cpu", dtype=torch.float32)


def _require_levels_or_floats(image: Tensor, name: str, levels: str) -> None:
    if image.dtype != torch.uint8 and not image.is_floating_point():
        must = f"{name}: image must be {levels} or floating point"
        raise_error(TypeError, f"{must}, got {image.dtype}")


def _normalized(kind: str, image: Tensor) -> Tensor:
    """Return floats by the mean and deviation, or by the range, of each image or channel."""
    real = image.float()
    dims = (-2, -1) if kind.endswith("per_channel") else (-3, -2, -1)
    if kind.startswith("min_max"):
        low, high = real.amin(dims, keepdim=True), real.amax(dims, keepdim=True)
        out = (real - low) / (high - low + _LEAST)
    else:
        deviation = real.std(dims, correction=0, keepdim=True)
        out = (real - real.mean(dims, keepdim=True)) / (deviation + _LEAST)
    return out.clamp(-20, 20)


_LEAST = 1e-4


def _rounded(largest: float, image: Tensor) -> Tensor:
    """Return levels from floats, rounded to the nearest."""
    if image.dtype == torch.uint8:
        return image
    _require_levels_or_floats(image, "FromFloat", "uint8")
    return (image.float() * largest).round().clamp(0, 255).to(torch.uint8)


def tables_of(given: Any) -> list[np.ndarray]:
    """Return the results of Normalize or ToFloat for all levels, ``(256, C)``, for 1, 2, ... channels.

    The last table is for all that have more channels than the transform has numbers: one number serves them.
    """
    most = max(np.size(getattr(given, name, 0)) for name in ("mean_np", "denominator"))
    counts = range(1, most + 2) if most > 1 else [1]
    levels = np.arange(256, dtype=np.uint8)[:, None, None]
    each = [given.apply(np.repeat(levels, count, 2)).reshape(256, count) for count in counts]
    return [np.ascontiguousarray(table) for table in each]


def has_tables(given: Any) -> bool:
    """Return whether a transform is a function of each level, and not of the whole image."""
    name = name_of(given)
    return name == "ToFloat" or (name == "Normalize" and given.normalization == "standard")


def _tensors_of(given: Any) -> list[Tensor]:
    return [torch.from_numpy(table).mT.contiguous() for table in tables_of(given)]


def _normalize(given: Any) -> list[Any]:
    if not has_tables(given):
        return [_Conversion("Normalize", partial(_normalized, given.normalization))]
    line = (torch.from_numpy(np.atleast_1d(x)) for x in (given.mean_np, given.denominator))
    return [_Conversion("Normalize", partial(_shifted, _tensors_of(given), *line))]


def _from_float(given: Any) -> list[Any]:
    if np.dtype(given.dtype) != np.uint8:
        raise Unmapped(f"dtype={given.dtype}")
    return [_Conversion("FromFloat", partial(_rounded, float(given.max_value or 255)))]


def _to_rgb(given: Any) -> list[Any]:
    if given.num_output_channels != 3:
        raise Unmapped(f"num_output_channels={given.num_output_channels}")
    return [channels.RGB()]


#: Class -> its counterparts.
CONVERSIONS: dict[str, Callable[[Any], list[Any]]] = {
    "FromFloat": _from_float,
    "NoOp": lambda given: [],
    "Normalize": _normalize,
    "ToFloat": lambda given: [_Conversion("ToFloat", partial(_shares, _tensors_of(given), given.max_value))],
    "ToRGB": _to_rgb,
    "ToTensorV2": lambda given: [],
}
