"""Argument helpers of the CPU kernels: images in one memory format, and the parameters of each image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from imgops._common import layout
from imgops.decomposition._precision import working_dtype

#: The half-precision dtypes: kernels compute them in float32 and round once.
HALF = (torch.float16, torch.bfloat16)


def in_format_of(image: Tensor, out: Tensor | None = None) -> Tensor:
    """Return ``image`` in the memory format of ``out``.

    Without ``out``, an interleaved image stays interleaved, and any other image becomes planar.
    """
    interleaved = layout.is_interleaved(image) if out is None else layout.writes_interleaved(out)
    return layout.in_format(image.detach(), interleaved)


def number_per_image(value: Tensor, image: Tensor) -> list[float]:
    """Return a scalar parameter as a Python number for each image of the batch."""
    value = value.detach()
    if value.ndim == 0:
        number = value.item()
        return [number] * (image.shape[:-3].numel() if image.ndim > 3 else 1)
    return value.expand(image.shape[:-3]).reshape(-1).tolist()


def array_per_image(value: Tensor, image: Tensor, core: int) -> np.ndarray:
    """Return a parameter of ``core`` dimensions as an array with one entry for each image of the batch.

    The leading axis has length 1 if all images share the parameter.
    """
    value = value.detach()
    if value.dtype in HALF:  # NumPy has no bfloat16, and would compute in float16
        value = value.float()
    if value.ndim == core:
        return value.contiguous().numpy()[None]
    own = value.shape[value.ndim - core :]
    if value.shape[: value.ndim - core].numel() != 1:
        value = value.expand(*image.shape[:-3], *own)
    return value.reshape(-1, *own).contiguous().numpy()


def real(image: Tensor) -> Tensor:
    """Return a planar image in float32 or float64, in which gradients are computed."""
    return image.detach().to(working_dtype(image)).contiguous()


def room(out: Tensor, dtype: torch.dtype) -> Tensor:
    """Return where a planar result of a dtype is written: ``out`` itself, or other memory."""
    is_ready = out.dtype == dtype and out.is_contiguous()
    return out if is_ready else torch.empty(out.shape, dtype=dtype, device="cpu")


def in_single(kernel: Callable[..., Any], out: Tensor, *args: Any) -> None:
    """Run ``kernel(out, *args)`` in float32, and round the result once to the half precision of ``out``."""
    single = torch.empty_like(out, dtype=torch.float32)
    kernel(single, *(a.detach().float() if isinstance(a, Tensor) and a.dtype in HALF else a for a in args))
    out.copy_(single)
