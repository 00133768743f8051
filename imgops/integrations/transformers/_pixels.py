"""Resizing and rescaling, as transformers' backend on PIL images and arrays computes them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.compiler import is_compiling
from torchvision.transforms import InterpolationMode
from transformers.image_utils import pil_torch_interpolation_mapping

import imgops
from imgops._common import layout
from imgops._common.torch_private import is_eager


def _mode(resample: Any) -> InterpolationMode:
    if resample is None:
        return InterpolationMode.BILINEAR
    if isinstance(resample, (InterpolationMode, str)):
        return InterpolationMode(resample)
    return pil_torch_interpolation_mapping[resample]


def interpolation(resample: Any) -> str:
    """Return imgops' name of an interpolation of PIL or torchvision; by default bilinear."""
    name = _mode(resample).value
    return "nearest" if name.startswith("nearest") else name


class _Writable:
    """The memory of an array that may not be written.

    Pillow hands out a copy as bytes, which nobody else holds; NumPy would copy them again, and PyTorch would
    warn. Processors write to no image.
    """

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        described = array.__array_interface__
        self.__array_interface__ = {**described, "data": (described["data"][0], False)}


def from_array(array: np.ndarray) -> Tensor:
    """Return an array as a tensor, without a copy where PyTorch can describe its memory."""
    if array.dtype.char in "gO":  # long doubles and Python's numbers
        array = array.astype(np.float64)
    return torch.from_numpy(layout.readable(array if array.flags.writeable else np.asarray(_Writable(array))))


def resize(image: Tensor, size: tuple[int, int], how: str, antialias: bool, by_levels: bool) -> Tensor:
    """Resize levels as PIL does, and floats as transformers does by PIL, which has 256 levels.

    Floats that need a gradient, those in a graph, and those of models that have no PIL backend (``by_levels``
    is False) are resized as floats.
    """
    if not antialias:  # a plane of a frame that OpenCV resizes alone can differ by a level
        image = image.movedim(-3, -1).contiguous().movedim(-1, -3)
    if not image.is_floating_point():
        return _of_levels(image if how == "nearest" else as_bytes(image), size, how, antialias)
    if by_levels and image.ndim > 3 and len(image) > 1:  # each image may have levels or not
        return torch.stack([resize(x, size, how, antialias, by_levels) for x in image])
    if not by_levels or image.requires_grad or is_compiling():
        return imgops.resize(image, size, how, antialias=antialias)
    levels, are_shares = as_levels(image)
    out = _of_levels(levels, size, how, antialias)
    return (out.double() * (1 / 255)).float() if are_shares else out


def as_bytes(image: Tensor) -> Tensor:
    """Return integers or truth values as the levels that PIL has for them."""
    if image.dtype == torch.uint8:
        return image
    low, high = (int(x) for x in image.long().aminmax())
    if low < 0 or high > 255:
        raise ValueError(f"resize: image must have values from 0 to 255, got {low} to {high}")
    return image.to(torch.uint8)


def go_together(images: Any) -> bool:
    """Return whether images of several sizes are worth one call: on the CPU each of them is one anyway."""
    if not isinstance(images, list) or len({image.shape for image in images}) < 2:
        return False
    first = images[0]
    alike = all(x.dtype == torch.uint8 and x.shape[0] == first.shape[0] for x in images)
    return alike and first.ndim == 3 and first.shape[0] != 4 and _is_shared(first.device)


def _is_shared(device: torch.device) -> bool:
    return device.type != "cpu"


def _of_levels(image: Tensor, size: tuple[int, int], how: str, antialias: bool) -> Tensor:
    """Resize as PIL does, which weights the colors of LA and RGBA by their opacity."""
    if image.dtype != torch.uint8 or image.shape[-3] not in (2, 4) or how == "nearest":
        return imgops.resize(image, size, how, antialias=antialias)
    color, alpha = image[..., :-1, :, :].int(), image[..., -1:, :, :].int()
    weighted = color * alpha + 128
    weighted = ((weighted >> 8) + weighted) >> 8
    out = imgops.resize(torch.cat([weighted, alpha], -3).to(torch.uint8), size, how, antialias=antialias)
    color, alpha = out[..., :-1, :, :].int(), out[..., -1:, :, :].int()
    plain = (alpha == 0) | (alpha == 255)
    shown = torch.where(plain, color, (255 * color // alpha.clamp(min=1)).clamp(max=255))
    return torch.cat([shown, alpha], -3).to(torch.uint8)


def as_levels(image: Tensor) -> tuple[Tensor, bool]:
    """Return an image as the levels that transformers makes of it for PIL, and whether it was in [0, 1]."""
    if not image.is_floating_point():
        return as_bytes(image), False
    low, high = image.aminmax()
    is_whole = bool(torch.allclose(image, image.trunc()))
    if not (low >= 0 and high <= (255 if is_whole else 1)):
        must = "image must have values in [0, 1], or whole numbers from 0 to 255"
        raise ValueError(f"resize: {must}, got {low:g} to {high:g}")
    if is_whole:
        return image.to(torch.uint8), False
    return (image.double() * 255).float().to(torch.uint8), True


def are_done_one_by_one(images: Any) -> bool:
    """Return whether transformers handles several images one by one, without gradients or a graph."""
    if not (is_eager() and isinstance(images, list) and len(images) > 1):
        return False
    return all(x.device.type == "cpu" and not x.requires_grad for x in images)


def joined(images: Iterator[Tensor], count: int) -> Tensor | list[Tensor]:
    """Write images into one batch as they come, which is where their memory is in the cache.

    Images of several shapes remain a list.
    """
    first = next(images)
    batch = first.new_empty((count, *first.shape))
    batch[0] = first
    for i, image in enumerate(images, 1):
        if image.shape != first.shape or image.dtype != first.dtype:
            return [*batch[:i], image, *images]
        batch[i] = image
    return batch


def _bounds(images: Any) -> Iterator[tuple[int, int]]:
    """Yield the addresses between which each array and tensor of images lies."""
    if isinstance(images, (list, tuple)):
        for image in images:
            yield from _bounds(image)
    elif isinstance(images, np.ndarray):
        yield np.lib.array_utils.byte_bounds(images)
    elif isinstance(images, Tensor):
        storage = images.untyped_storage()
        yield storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def with_memory_of_its_own(result: Any, images: Any) -> Any:
    """Copy the results that share memory with the images, as those of a processor that changes nothing do."""
    bounds = list(_bounds(images))

    def own(value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)(own(each) for each in value)
        if not isinstance(value, (Tensor, np.ndarray)):
            return value
        at = value.data_ptr() if isinstance(value, Tensor) else value.ctypes.data
        is_shared = any(low <= at < high for low, high in bounds)
        return value if not is_shared else value.clone() if isinstance(value, Tensor) else value.copy()

    for key, value in result.items():
        result[key] = own(value)
    return result


def of_channels(name: str, value: Any, image: Tensor) -> Tensor:
    """Return a mean or standard deviation for each channel of an image."""
    value = torch.as_tensor(value, dtype=image.dtype, device=image.device)
    channels = image.shape[-3]
    if value.ndim and len(value) != channels:
        must = f"normalize: {name} must have a value for each of {channels} channels"
        raise ValueError(f"{must}, got {len(value)}")
    return value[:, None, None] if value.ndim else value


@functools.lru_cache(maxsize=64)
def table(factor: Any, normalizes: bool, mean: Any, std: Any, channels: int, device: torch.device) -> Tensor:
    """Return rescaled and normalized levels, in the arithmetic of transformers' backend on arrays."""
    levels: Any = np.arange(256, dtype=np.uint8)
    if factor is not None:
        levels = (levels.astype(np.float64) * factor).astype(np.float32)
    rows = np.broadcast_to(levels, (channels, 256)).astype(np.float32)
    if normalizes:
        for name, x in (("mean", mean), ("std", std)):
            if isinstance(x, tuple) and len(x) != channels:
                must = f"normalize: {name} must have a value for each of {channels} channels"
                raise ValueError(f"{must}, got {len(x)}")
        each = [np.broadcast_to(np.array(x, dtype=np.float32), (channels,))[:, None] for x in (mean, std)]
        rows = (rows - each[0]) / each[1]
    return torch.from_numpy(np.ascontiguousarray(rows)).to(device)
