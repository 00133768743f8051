"""Dtypes that cannot be interpolated, which are converted for an operator and back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.decomposition._precision import LEVELS
from imgops.decomposition._saturate import saturate

#: The dtypes in which numbers are added to levels.
_SUMS = {torch.uint8: torch.int16, torch.uint16: torch.int32}


def numbers_for(image: Any, name: str) -> Any:
    """Convert an image whose dtype cannot be interpolated to float32, as torchvision does."""
    if name.endswith("nearest") or image.dtype in LEVELS or image.dtype.is_floating_point:
        return image
    return image.float()


def restore_dtype(out: Tensor, image: Any) -> Tensor:
    """Convert ``out`` to the dtype of the image; integers are rounded and, as in OpenCV, saturate."""
    is_whole = not image.dtype.is_floating_point and image.dtype != torch.bool
    return saturate(out, image.dtype) if is_whole else out.to(image.dtype)


def add_to_levels(image: Tensor, numbers: Tensor, clip: bool = True) -> Tensor:
    """Add numbers in levels, without their fractions, as torchvision adds noise to uint8."""
    dtype = _SUMS[image.dtype]
    levels = image if image.dtype == torch.uint8 else image.to(dtype)  # ATen does not promote uint16
    sums = levels + numbers.to(dtype)
    return (torch.clamp(sums, 0, LEVELS[image.dtype]) if clip else sums).to(image.dtype)
