"""Resizing and rescaling, as transformers' backend on PIL images and arrays computes them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as torchvision_functional
from transformers.image_utils import pil_torch_interpolation_mapping

import imgops


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


class _OwnLevels:
    """The levels of an image of PIL as an array that may be written.

    Pillow hands out a copy as bytes, which nobody else holds; NumPy would copy them again.
    """

    def __init__(self, image: PIL.Image.Image) -> None:
        self._levels = np.asarray(image)
        described = self._levels.__array_interface__
        self.__array_interface__ = {**described, "data": (described["data"][0], False)}


def from_pil(image: PIL.Image.Image) -> Tensor:
    """Return the levels of an image of PIL, ``(H, W)`` or ``(H, W, C)``, in their one copy."""
    return torch.from_numpy(np.asarray(_OwnLevels(image)))


def resize(image: Tensor, size: tuple[int, int], how: str, antialias: bool, by_levels: bool) -> Tensor:
    """Resize levels as PIL does, and floats as transformers does by PIL, which has 256 levels.

    Floats that need a gradient, those in a graph, and those of models that have no PIL backend (``by_levels``
    is False) are resized as floats.
    """
    if not antialias:  # OpenCV resizes interleaved frames, and a plane of one by itself can differ by a level
        image = image.movedim(-3, -1).contiguous().movedim(-1, -3)
    if not image.is_floating_point():
        return _of_levels(image if how == "nearest" else as_bytes(image), size, how, antialias)
    if by_levels and image.ndim > 3 and len(image) > 1:  # whether an image has levels is a matter of its own
        return torch.stack([resize(x, size, how, antialias, by_levels) for x in image])
    if not by_levels or image.requires_grad or torch.compiler.is_compiling():
        return imgops.resize(image, size, how, antialias=antialias)
    levels = as_levels(image)
    if levels is None:
        mode = InterpolationMode(how)
        return torchvision_functional.resize(image, list(size), interpolation=mode, antialias=antialias)
    out = _of_levels(levels[0], size, how, antialias)
    return (out.double() * (1 / 255)).float() if levels[1] else out


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
    """Resize as PIL does, which weights the colors of RGBA by their opacity."""
    if image.dtype != torch.uint8 or image.shape[-3] != 4 or how == "nearest":
        return imgops.resize(image, size, how, antialias=antialias)
    color, alpha = image[..., :3, :, :].int(), image[..., 3:, :, :].int()
    weighted = color * alpha + 128
    weighted = ((weighted >> 8) + weighted) >> 8
    out = imgops.resize(torch.cat([weighted, alpha], -3).to(torch.uint8), size, how, antialias=antialias)
    color, alpha = out[..., :3, :, :].int(), out[..., 3:, :, :].int()
    plain = (alpha == 0) | (alpha == 255)
    shown = torch.where(plain, color, (255 * color // alpha.clamp(min=1)).clamp(max=255))
    return torch.cat([shown, alpha], -3).to(torch.uint8)


def as_levels(image: Tensor) -> tuple[Tensor, bool] | None:
    """Return a float image as the levels that transformers makes of it for PIL, and whether it was in [0, 1].

    Other values are not for PIL, and torchvision resamples them.
    """
    low, high = image.aminmax()
    is_whole = bool(torch.allclose(image, image.trunc()))
    if low < 0 or high > (255 if is_whole else 1):
        return None
    if is_whole:
        return image.to(torch.uint8), False
    return (image.double() * 255).float().to(torch.uint8), True


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
