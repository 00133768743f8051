"""PIL images, transformed by imgops' operators if these give exactly PIL's pixels.

In a pipeline a PIL image becomes a tensor before the first such transform, and a PIL image again after the
last, if one of the transforms saves enough time, because a conversion can cost as much as a transform.
Transforms whose pixels differ from PIL's, such as warps, stay torchvision's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import Tensor

from imgops._common.torch_private import raise_error


def is_known(image: Any) -> bool:
    """Return whether the operators compute an image of this class and mode as PIL does."""
    has_mode = type(image) is PIL.Image.Image and image.mode in ("L", "RGB")
    return has_mode and image.width > 0 and image.height > 0


def to_tensor(image: PIL.Image.Image) -> Tensor:
    """Return the pixels as an interleaved tensor ``(C, H, W)``."""
    pixels = np.array(image)
    return torch.from_numpy(pixels)[None] if pixels.ndim == 2 else torch.from_numpy(pixels).permute(2, 0, 1)


def to_pil(image: Tensor) -> PIL.Image.Image:
    """Convert a tensor to a PIL image: one channel to gray, three to RGB."""
    pixels = image[0] if len(image) == 1 else image.permute(1, 2, 0)
    return PIL.Image.fromarray(np.ascontiguousarray(pixels.numpy()))


def each(owner: str, image: Tensor, change: Callable[[PIL.Image.Image], PIL.Image.Image]) -> Tensor:
    """Change each image of a uint8 tensor by a function of PIL images, on the host."""
    if image.dtype != torch.uint8 or image.shape[-3] not in (1, 3):
        must = f"{owner}: image must be uint8 of 1 or 3 channels"
        raise_error(TypeError, f"{must}, got {image.dtype} of {image.shape[-3]}")
    return each_frame(image, lambda frame: to_tensor(change(to_pil(frame))))


def each_frame(image: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor:
    """Change each image ``(C, H, W)`` of a tensor by a function, on the host."""
    frames = image.detach().reshape(-1, *image.shape[-3:]).cpu()
    return torch.stack([change(frame) for frame in frames]).reshape(image.shape).to(image.device)
