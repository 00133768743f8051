"""Conversions of dtypes, classes and numbers, which do not change the content of an image."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torch.compiler import is_compiling
from torchvision import tv_tensors
from torchvision.transforms import functional as v1_functional
from torchvision.transforms import v2

from imgops._common import check, layout
from imgops._common.torch_private import raise_error, tree_flatten, tree_unflatten
from imgops._operator import subclass
from imgops.batches.packed import PackedImages
from imgops.transforms._core import operators
from imgops.transforms._core.base import OperatorTransform
from imgops.transforms._core.batches import PendingBatch
from imgops.transforms._core.inputs import decode_all, has_batches
from imgops.transforms._core.parameters import Params
from imgops.transforms.functional import _color as functional_color
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
    """Convert the input to a dtype and optionally scale its values, as torchvision's ToDtype does.

    White stays white for every pair of dtypes, and values out of range become the nearest value of the dtype.
    Where torchvision's arithmetic does the same, the result is bit-exact with it; from uint8 to uint16, 255
    becomes 65280 in torchvision and 65535 here. In a graph the transform also works with tv_tensors.

    Parameters
    ----------
    dtype : torch.dtype or dict
        The dtype of images and videos; a dict has one for each class, as in
        ``{tv_tensors.Image: torch.float32, "others": None}``, and None does not change a class.
    scale : bool
        Whether the values of images and videos are scaled to the range of the new dtype, as from [0, 255] to
        [0, 1].
    """

    _needs_image = False
    _takes_batches = True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        if isinstance(image, PackedImages):
            return image.like(self._image(image.data, params, kind))
        if isinstance(self.dtype, torch.dtype):
            return _dispatch.KERNELS["to_dtype"](image, self.dtype, scale=self.scale)
        return super().transform(image, {})

    def _levels_table(self) -> Tensor:
        """Return what each level becomes as float32, ``(1, 256)``."""
        return _LEVELS


class _DivideBy255(ToDtype):
    """ToDtype in the arithmetic of torchvision's first version: divide by 255, not multiply by 1 / 255."""

    def _convert(self, image: Tensor) -> Tensor:
        if image.dtype == torch.uint8 and self.dtype.is_floating_point:
            return image.to(self.dtype).div_(255)
        return v1_functional.convert_image_dtype(image, self.dtype)

    def _levels_table(self) -> Tensor:
        return _QUOTIENTS

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        if isinstance(image, PackedImages):
            return image.like(self._convert(image.data))
        return self._convert(image)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if not _dispatch.is_image(inpt):
            return super().transform(inpt, params)
        return _dispatch.wrap_like(self._convert(subclass.plain(inpt)), inpt)

    def _get_name(self) -> str:
        return "ToDtype"


class _LevelsToFloat(_DivideBy255):
    """The second half of the first version's ToTensor: convert levels to floats and keep other dtypes."""

    def __init__(self) -> None:
        super().__init__(torch.float32, scale=True)

    @property
    def dtype(self) -> torch.dtype:  # type: ignore[override]
        return torch.get_default_dtype()

    @dtype.setter
    def dtype(self, value: Any) -> None:
        """Accept the value of the constructor, which changes nothing."""

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, scale=True"

    def forward(self, *inputs: Any) -> Any:
        if len(inputs) == 1 and not isinstance(inputs[0], (tuple, list, dict)):
            return super().forward(*inputs)
        return inputs if len(inputs) > 1 else inputs[0]

    def _convert(self, image: Tensor) -> Tensor:
        return super()._convert(image) if image.dtype == torch.uint8 else image


class ConvertImageDtype(OperatorTransform, v2.ConvertImageDtype):
    """Convert an image to a dtype and scale its values, as torchvision's ConvertImageDtype does.

    In new code use ``ToDtype(dtype, scale=True)``, which has the same arithmetic.

    Parameters
    ----------
    dtype : torch.dtype
        The dtype of the output.
    """

    _needs_image = False
    _takes_batches = True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        if isinstance(image, PackedImages):
            return image.like(self._image(image.data, params, kind))
        return _dispatch.KERNELS["to_dtype"](image, self.dtype, scale=True)


class _OfNumbers(v2.Normalize):
    """A Normalize that takes one number for all channels, as torchvision's first version does."""

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        sides: Any = [side if check.is_sequence(side) else [side] for side in (mean, std)]
        super().__init__(*sides, inplace)


class Normalize(OperatorTransform, _OfNumbers):
    """Normalize each channel by a mean and a standard deviation, as torchvision's Normalize does.

    The arithmetic is torchvision's own; in a graph the transform also works with tv_tensors. The image must
    have a floating-point dtype.

    Parameters
    ----------
    mean : sequence of float or float
        The mean of each channel, which is subtracted; a number is that of all channels.
    std : sequence of float or float
        The standard deviation of each channel, by which the difference is divided.
    inplace : bool
        Whether to overwrite the input.
    """

    _takes_batches = True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        if isinstance(image, PackedImages):
            return image.like(self._of_values(image))
        return _dispatch.KERNELS["normalize"](image, self.mean, self.std, self.inplace)

    def _of_values(self, images: PackedImages) -> Tensor:
        """Return the values of images of different sizes, each normalized by the numbers of its channel."""
        channels, data = images.num_channels, images.data
        normalize = _dispatch.KERNELS["normalize"]
        # Refuses wrong numbers and dtypes; so many channels are those of an image after broadcasting, too:
        shown = normalize(data.new_empty((channels, 0, 0)), self.mean, self.std)
        if shown.shape[0] != channels:
            must = (
                "Normalize: mean and std must have 1 number each for images of different sizes of 1 channel"
            )
            raise_error(ValueError, f"{must}, got {check.number(shown.shape[0])}")
        if images.interleaved:
            return normalize(data.view(-1, channels, 1, 1), self.mean, self.std, self.inplace).flatten()
        planes = images.sizes.prod(1).to(data.device).repeat_interleave(channels)
        numbers = [check.real("normalize", "mean and std", side) for side in (self.mean, self.std)]
        numbers = [side.to(data).expand(channels).repeat(len(images)) for side in numbers]
        numbers = [side.repeat_interleave(planes, output_size=data.shape[0]) for side in numbers]
        return normalize(data[None, None], *(side[None, None] for side in numbers), self.inplace)[0, 0]

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in ("mean", "std"):
            # The lookup table is a tensor input of the graph, so that other numbers do not need another
            # graph.
            given = self.__dict__.get("mean"), self.__dict__.get("std"), "cpu"
            self._levels, self._levels_of_quotients = (
                _levels_of(*given, divides) for divides in (False, True)
            )

    def _levels_table(self, channels: int, device: torch.device, divides: bool) -> Tensor | None:
        """Return the lookup table ``(C, 256)`` of torchvision's arithmetic for the levels of each channel.

        With ``divides``, levels are divided by 255 instead of multiplied by 1 / 255. Return None if there is
        no such table, so that torchvision raises its own error.
        """
        if is_compiling():  # a graph would take another table as a constant
            table = self._levels_of_quotients if divides else self._levels
            if table is None or table.shape[0] != channels:
                return None
            return table if device.type == "cpu" else table.to(device, non_blocking=True)
        table = _levels_of(self.mean, self.std, str(device), divides)
        return None if table is None or table.shape[0] != channels else table


class _NormalizeByChannel(Normalize):
    """A Normalize that raises for images with another number of channels, as the first version does."""

    def _get_name(self) -> str:
        return "Normalize"

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        if isinstance(image, PackedImages):
            return super()._image(image, params, kind)
        if image.ndim > 2 and len(self.mean) not in (1, image.shape[-3]):
            must = f"Normalize: image must have {len(self.mean)} channels, one for each mean"
            raise_error(ValueError, f"{must}, got {check.number(image.shape[-3])}")
        return super()._image(image, params, kind)


def _levels_of(mean: Any, std: Any, device: str, divides: bool) -> Tensor | None:
    if not (isinstance(mean, (list, tuple)) and isinstance(std, (list, tuple))):
        return None
    if len(mean) != len(std) or not mean or not all(std):
        return None
    try:
        numbers = (tuple(x.item() if isinstance(x, Tensor) else x for x in side) for side in (mean, std))
        return _compute_levels(*numbers, device, divides)
    except TypeError:  # the arguments are not numbers
        return None


@lru_cache(maxsize=64)
def _compute_levels(mean: tuple[float, ...], std: tuple[float, ...], device: str, divides: bool) -> Tensor:
    with torch.inference_mode(False):  # the next call may be outside of inference mode
        real = (_QUOTIENTS if divides else _LEVELS).expand(len(mean), 1, 256)
        return v2.functional.normalize(real, list(mean), list(std))[:, 0].to(device)


with torch.inference_mode(False):
    #: Each level as a float, multiplied by 1 / 255 as torchvision's second version does, ``(1, 256)``.
    _LEVELS = functional_color.LEVELS_AS_FLOATS[None]
    #: The same divided by 255, as its first version does.
    _QUOTIENTS = torch.arange(256, dtype=torch.float32, device="cpu")[None] / 255


class _KeepsPixels(OperatorTransform):
    """A conversion of classes: it leaves images of different sizes as they are, decoded or not."""

    _takes_batches = True
    _resizes_batches = True  # an image that is not decoded yet stays so

    def _batch(self, images: PendingBatch, params: Params) -> PendingBatch:
        return images


class ToImage(_KeepsPixels, v2.ToImage):
    """Convert a tensor, an array or a PIL image to an Image, as torchvision's ToImage does.

    In a graph the transform also works with tensors.
    """

    _needs_image = False
    _converts_to = tv_tensors.Image

    def _image(self, image: Tensor, params: Params, kind: type) -> Any:
        return tv_tensors.Image(image)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return super().transform(layout.readable(inpt), params)


class ToPureTensor(_KeepsPixels, v2.ToPureTensor):
    """Convert tv_tensors to plain tensors, as torchvision's ToPureTensor does."""

    _needs_image = False
    _converts_to = Tensor
    _unwraps = True

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return image

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return subclass.plain(inpt)


class PILToTensor(_KeepsPixels, v2.PILToTensor):
    """Convert a PIL image to a tensor without scaling its values, as torchvision's PILToTensor does.

    A graph has no PIL images: convert them before the call of a compiled function.
    """

    _needs_image = False
    _converts_to = Tensor


class _ImageToTensor(PILToTensor):
    """The first half of the first version's ToTensor: PIL images and arrays become planar tensors.

    uint8 tensors are unchanged, like the pixels that are read from a PIL image; so are tensors of floats, and
    with ``takes_tensors`` all other tensors. In a sample with several inputs this step also converts to
    floats, because later steps cannot distinguish tensors made from PIL images from tensors in the input.
    """

    _converts_to = Tensor
    _makes_planar = True
    _transformed_types = (PIL.Image.Image, np.ndarray, Tensor)

    def __init__(self, takes_tensors: bool = False) -> None:
        super().__init__()
        self._takes_tensors = takes_tensors

    def _get_name(self) -> str:
        return "PILToTensor"

    def forward(self, *inputs: Any) -> Any:
        if len(inputs) == 1 and not isinstance(inputs[0], (tuple, list, dict)):
            return super().forward(*inputs)
        floats = _LevelsToFloat()
        if has_batches(inputs):
            return floats._of_packed(inputs)
        inputs = decode_all(inputs)
        flat, structure = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        needs = [isinstance(x, (PIL.Image.Image, np.ndarray)) for x in flat]
        if not any(needs):
            needs = self._needs(flat)
        out = [floats(self.transform(x, {})) if n else x for x, n in zip(flat, needs, strict=True)]
        return tree_unflatten(out, structure)

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        is_known = image.dtype == torch.uint8 or image.is_floating_point()
        if not self._takes_tensors and not is_known:
            must = "ToTensor: image must be a PIL image, an array, or a Tensor of levels (uint8) or floats"
            raise_error(TypeError, f"{must}, got a Tensor of {image.dtype}")
        return image

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if isinstance(inpt, Tensor):
            return self._image(inpt, params, type(inpt))  # type: ignore[arg-type]
        return planar_pixels(inpt)


def planar_pixels(image: PIL.Image.Image | np.ndarray) -> Tensor:
    """Return the planar tensor ``(C, H, W)`` that the first version's ToTensor converts to floats.

    Numbers of 16 bits are never negative, unlike in torchvision's versions without uint16.
    """
    if isinstance(image, np.ndarray):
        if image.ndim not in (2, 3):
            raise ValueError(f"ToTensor: array must have 2 or 3 dimensions, got {image.ndim}")
        pixels = image
    elif image.mode.startswith("I;16"):
        pixels = np.array(image).astype(np.uint16)
    elif image.mode in ("I", "F"):
        pixels = np.array(image)
    elif image.mode == "1":
        pixels = np.array(image, np.uint8) * np.uint8(255)
    else:
        pixels = np.array(image, np.uint8)
    return operators.planar(torch.from_numpy(np.atleast_3d(layout.readable(pixels)).transpose(2, 0, 1)))


class ToPILImage(OperatorTransform, v2.ToPILImage):
    """Convert a tensor or an array to a PIL image, as torchvision's ToPILImage does.

    The transform raises in a graph, because the outputs of a graph are tensors.

    Parameters
    ----------
    mode : str, optional
        PIL's color mode of the output; by default it follows from the number of channels and the dtype.
    """

    _needs_image = False

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        must = "the transform must come after the compiled function, because a graph has no PIL images"
        check.refuse_in_graph(NotImplementedError, "ToPILImage", must, "a call inside of it")
        return super().transform(inpt, params)


class ToTensor(_KeepsPixels, v2.ToTensor):
    """Convert a PIL image or an array to a tensor and scale its values, as torchvision's ToTensor does.

    Only levels (uint8) are scaled. PIL images of 16 bits become uint16, so that no value is negative. The
    transform is deprecated, as in torchvision: ToImage and ToDtype do the same.
    """

    _needs_image = False

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if isinstance(inpt, PIL.Image.Image) and inpt.mode.startswith("I;16"):
            return planar_pixels(inpt)
        return super().transform(layout.readable(inpt), params)


class Identity(_KeepsPixels, v2.Identity if hasattr(v2, "Identity") else v2.Transform):
    """Return the input unchanged, as torchvision's Identity does."""

    _needs_image = False

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return image

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt


class Lambda(OperatorTransform, v2.Lambda):
    """Apply a user's function, as torchvision's Lambda does.

    A compiler traces the function as far as possible.

    Parameters
    ----------
    lambd : callable
        The function, which takes one input.
    *types : type
        The classes of inputs to which it is applied; by default all.
    """

    _needs_image = False
    _goes_back = False

    def _plan(self, shape: Any, program: Any) -> None:
        return None


class LinearTransformation(OperatorTransform, v2.LinearTransformation):
    """Transform the pixels by a matrix and a mean vector, as torchvision's LinearTransformation does.

    The arithmetic is torchvision's own; in a graph the transform works with tv_tensors too.

    Parameters
    ----------
    transformation_matrix : Tensor
        The matrix, ``(D, D)`` for D = C x H x W, by which the flattened image is multiplied.
    mean_vector : Tensor
        The vector ``(D,)`` that is subtracted before the product.
    """

    _goes_back = False

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if not _dispatch.is_image(inpt):
            return inpt
        return _dispatch.wrap_like(super().transform(subclass.plain(inpt), params), inpt)
