"""Copies of a library's functions that call imgops' functions in the place of torchvision's."""

from __future__ import annotations

import functools
import sys
from importlib.util import find_spec
from types import CellType, FunctionType
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms.v2 import functional as torchvision_functional

import imgops
from imgops.integrations.transformers import _pixels as pixels
from imgops.transforms import functional


class _Functions:
    """torchvision's functions, but for those whose pixels are not the ones of transformers' PIL backend."""

    def __init__(self, by_levels: bool) -> None:
        self._by_levels = by_levels

    def resize(
        self, image: Tensor, size: Any, interpolation: Any = None, *args: Any, **keywords: Any
    ) -> Tensor:
        if not isinstance(size, (list, tuple)) or len(size) != 2:
            how = {} if interpolation is None else {"interpolation": interpolation}
            return functional.resize(image, size, *args, **how, **keywords)
        new = int(size[0]), int(size[1])
        return pixels.resize(image, new, pixels.interpolation(interpolation), True, self._by_levels)

    @staticmethod
    def rgb_to_grayscale(image: Tensor, num_output_channels: int = 1) -> Tensor:
        if image.shape[-3] > 3:  # opacity does not count
            image = image[..., :3, :, :]
        if image.dtype == torch.uint8:
            return imgops.grayscale(image, num_output_channels)
        return torchvision_functional.rgb_to_grayscale(image, num_output_channels)

    def __getattr__(self, name: str) -> Any:
        return getattr(torchvision_functional, name)


@functools.cache
def has_pil_backend(module: str) -> bool:
    """Return whether there is a PIL backend beside the module of a model's processor; none is for videos."""
    twin = module.replace(".image_processing_", ".image_processing_pil_")
    return twin != module and find_spec(twin) is not None


@functools.cache
def names_of(module: str) -> dict[str, Any]:
    """Return the names of a module in which ``tvF`` and the module's own functions are exact."""
    names = dict(vars(sys.modules[module]))
    for name, value in names.items():
        if value is torchvision_functional:
            names[name] = _Functions(has_pil_backend(module))
        elif isinstance(value, FunctionType) and value.__module__ == module:
            names[name] = rebound(value, names)
    return names


def rebound(function: FunctionType, names: dict[str, Any]) -> FunctionType:
    """Return a copy of a function, and of those that it wraps, for which ``names`` are the globals."""
    if function.__globals__ is names:
        return function
    home = sys.modules.get(function.__module__ or "")
    where = names if home is not None and vars(home) is function.__globals__ else function.__globals__
    cells = tuple(_rebound_cell(cell, names) for cell in function.__closure__ or ())
    copy = FunctionType(
        function.__code__, where, function.__name__, function.__defaults__, cells or function.__closure__
    )
    copy.__kwdefaults__, copy.__qualname__ = function.__kwdefaults__, function.__qualname__
    functools.update_wrapper(copy, function)
    copy.__dict__.pop("__wrapped__", None)
    if hasattr(function, "__wrapped__"):
        copy.__wrapped__ = function.__wrapped__  # type: ignore[attr-defined]
    return copy


def _rebound_cell(cell: CellType, names: dict[str, Any]) -> CellType:
    """Return the cell of a closure; a decorated function of the module is in a cell of its decorator."""
    value = cell.cell_contents
    if isinstance(value, FunctionType) and value.__globals__.get("__name__") == names.get("__name__"):
        return CellType(rebound(value, names))
    return cell
