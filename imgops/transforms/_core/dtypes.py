"""Dtypes that cannot be interpolated, which are converted for an operator and back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.decomposition._saturate import saturate


def numbers_for(image: Any, name: str) -> Any:
    """Convert an image whose dtype cannot be interpolated to float32, as torchvision does."""
    has_levels = image.dtype in (torch.uint8, torch.uint16)
    if name.endswith("nearest") or has_levels or image.dtype.is_floating_point:
        return image
    return image.float()


def restore_dtype(out: Tensor, image: Any) -> Tensor:
    """Convert ``out`` to the dtype of the image; integers are rounded and, as in OpenCV, saturate."""
    is_whole = not image.dtype.is_floating_point and image.dtype != torch.bool
    return saturate(out, image.dtype) if is_whole else out.to(image.dtype)
