"""Copies of transformers' functions that call imgops' functions in the place of torchvision's.

The code of transformers' models calls torchvision's functions by a global name, ``tvF``, so that no argument
or method can replace them. Tried with transformers 5.19 to 5.24.
"""

from __future__ import annotations

import functools
import sys
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from types import CellType, FunctionType
from typing import Any

import numpy as np
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

    @staticmethod
    def pad(image: Tensor, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Tensor:
        """Pad as NumPy does, which mirrors an image again where it is smaller than its margin."""
        sizes = image.shape[-2:]
        each = padding if isinstance(padding, (list, tuple)) else [padding]
        if padding_mode not in ("reflect", "symmetric"):
            return torchvision_functional.pad(image, padding, fill, padding_mode)
        if min(sizes) > max(each):
            return functional.pad(image, padding, fill, padding_mode)
        left, top, right, bottom = [*each] * (4 // len(each))
        rows, columns = (
            torch.from_numpy(np.pad(np.arange(size), margins, mode=padding_mode)).to(image.device)  # type: ignore[call-overload]
            for size, margins in zip(sizes, ((top, bottom), (left, right)), strict=True)
        )
        return image[..., rows, :][..., columns]

    def __getattr__(self, name: str) -> Any:
        return getattr(torchvision_functional, name)


def is_of_a_model(module: str) -> bool:
    """Return whether a module is transformers' own or one that came with a model.

    The global names of other modules, those of a user's program, may change after functions were copied.
    """
    return module.startswith(("transformers.", "transformers_modules.")) and module in sys.modules


@functools.cache
def has_pil_backend(module: str) -> bool:
    """Return whether the module of a model's processor has a PIL twin, as none of video processors has."""
    return find_spec(_twin(module)) is not None and _twin(module) != module


def _twin(module: str) -> str:
    return module.replace(".image_processing_", ".image_processing_pil_")


def pil_backend(kind: type) -> Any:
    """Return the class of the PIL backend for one on tensors; None if the model has none."""
    if not has_pil_backend(kind.__module__):
        return None
    return getattr(import_module(_twin(kind.__module__)), f"{kind.__name__}Pil", None)


class _Names:
    """The names of a module for copies of its functions, each of which is copied once."""

    def __init__(self, module: str) -> None:
        self._module = vars(sys.modules[module])
        self._names = dict(self._module)
        self._copies: dict[FunctionType, FunctionType] = {}
        for name, value in self._module.items():
            if value is torchvision_functional:
                self._names[name] = _Functions(has_pil_backend(module))
            elif isinstance(value, FunctionType) and value.__module__ == module:
                self._names[name] = self.rebound(value)

    def rebound(self, function: FunctionType) -> FunctionType:
        """Return a copy of a function, and of those that it wraps, whose globals are these names."""
        if function in self._copies:
            return self._copies[function]
        where = self._names if function.__globals__ is self._module else function.__globals__
        given = function.__closure__
        cells = None if given is None else tuple(CellType() for _ in given)
        copy = FunctionType(function.__code__, where, function.__name__, function.__defaults__, cells)
        self._copies[function] = copy  # before its cells are filled, which may hold the function itself
        for name in (*functools.WRAPPER_ASSIGNMENTS, "__kwdefaults__"):
            setattr(copy, name, getattr(function, name))
        copy.__dict__.update(function.__dict__)
        for cell, old in zip(cells or (), given or (), strict=True):
            with suppress(ValueError):  # of an empty cell
                value = old.cell_contents
                # The cell of a decorator holds the function of the module that it decorates.
                is_own = isinstance(value, FunctionType) and value.__globals__ is self._module
                cell.cell_contents = self.rebound(value) if is_own else value
        return copy


@functools.cache
def names_of(module: str) -> _Names:
    """Return the names of a module in which ``tvF`` and the module's own functions are exact."""
    return _Names(module)
