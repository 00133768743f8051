"""Dtypes, classes and numbers: what converts an image without changing what it shows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops import _subclass
from imgops.transforms._core.base import OperatorTransform
from imgops.transforms._core.parameters import Params
from imgops.transforms.functional import _dispatch

__all__ = [
    "ConvertImageDtype",
    "Identity",
    "Lambda",
    "LinearTransformation",
    "Normalize",
    "PILToTensor",
    "ToDtype",
    "ToImage",
    "ToPILImage",
    "ToPureTensor",
    "ToTensor",
]


class ToDtype(OperatorTransform, v2.ToDtype):
    """torchvision's own arithmetic; in a graph with tv_tensors too."""

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        if isinstance(self.dtype, torch.dtype):
            return _dispatch.KERNELS["to_dtype"](image, self.dtype, scale=self.scale)
        return super().transform(image, {})


class ConvertImageDtype(OperatorTransform, v2.ConvertImageDtype):
    """torchvision's own arithmetic; in a graph with tv_tensors too."""

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return _dispatch.KERNELS["to_dtype"](image, self.dtype, scale=True)


class Normalize(OperatorTransform, v2.Normalize):
    """torchvision's own arithmetic; in a graph with tv_tensors too."""

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return _dispatch.KERNELS["normalize"](image, self.mean, self.std, self.inplace)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in ("mean", "std"):
            # A graph takes the table of levels as a tensor: other numbers are no other graph.
            self._levels = _levels_of(self.__dict__.get("mean"), self.__dict__.get("std"), "cpu")

    def levels(self, channels: int, device: torch.device) -> Tensor | None:
        """Return what torchvision's arithmetic makes of the 256 levels of each channel, ``(C, 256)``.

        None where there is no such table, and torchvision says what is wrong.
        """
        if _subclass.in_graph():
            table = self._levels
            if table is None or table.shape[0] != channels:
                return None
            return table if device.type == "cpu" else table.to(device, non_blocking=True)
        table = _levels_of(self.mean, self.std, str(device))
        return None if table is None or table.shape[0] != channels else table


def _levels_of(mean: Any, std: Any, device: str) -> Tensor | None:
    if not (isinstance(mean, (list, tuple)) and isinstance(std, (list, tuple))):
        return None
    if len(mean) != len(std) or not mean or not all(std):
        return None
    try:
        return _compute_levels(tuple(mean), tuple(std), device)
    except TypeError:  # not numbers
        return None


@lru_cache(maxsize=64)
def _compute_levels(mean: tuple[float, ...], std: tuple[float, ...], device: str) -> Tensor:
    with torch.inference_mode(False):  # the next call may be outside
        levels = torch.arange(256, dtype=torch.uint8, device="cpu").expand(len(mean), 1, 256)
        real = v2.functional.to_dtype(levels, torch.float32, scale=True)
        return v2.functional.normalize(real, list(mean), list(std))[:, 0].to(device)


class ToImage(OperatorTransform, v2.ToImage):
    """As torchvision's; in a graph with tensors too."""

    def _image(self, image: Tensor, params: Params, kind: type) -> Any:
        return image.as_subclass(tv_tensors.Image) if _subclass.in_graph() else tv_tensors.Image(image)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if _subclass.in_graph() and isinstance(inpt, Tensor):
            return _subclass.plain(inpt).as_subclass(tv_tensors.Image)
        return super().transform(inpt, params)


class ToPureTensor(OperatorTransform, v2.ToPureTensor):
    """As torchvision's."""

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return image

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return _subclass.plain(inpt)


class PILToTensor(OperatorTransform, v2.PILToTensor):
    """As torchvision's. A graph has no PIL images: what is one is converted before it is compiled."""


class ToPILImage(OperatorTransform, v2.ToPILImage):
    """As torchvision's. Not for a graph, whose outputs are tensors."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if _subclass.in_graph():
            must = "the transform must come after the compiled function, for a graph has no PIL images"
            raise NotImplementedError(f"ToPILImage: {must}, got a call inside of it")
        return super().transform(inpt, params)


class ToTensor(OperatorTransform, v2.ToTensor):
    """As torchvision's, deprecated like it: ToImage and ToDtype do the same."""


class Identity(OperatorTransform, v2.Identity if hasattr(v2, "Identity") else v2.Transform):
    """As torchvision's: nothing is changed."""

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return image

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt


class Lambda(OperatorTransform, v2.Lambda):
    """As torchvision's: a function of the user's, which a compiler follows as far as it can."""

    def _plan(self, shape: Any, program: Any) -> None:
        return None


class LinearTransformation(OperatorTransform, v2.LinearTransformation):
    """torchvision's own arithmetic; in a graph with tv_tensors too."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if not _dispatch.is_image(inpt):
            return inpt
        return _dispatch.wrap_like(super().transform(_subclass.plain(inpt), params), inpt)
