"""The dtype in which pixels are computed, and the conversion back."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops._common import layout

#: The greatest level of each dtype that has levels, which is white. OpenCV, or Pillow's mode I;16, defines
#: most operators on uint16. For the others the formula is torchvision's with this white: ``to_levels`` and
#: ``mix`` cut the fraction off, ``finish_rounded`` rounds. ``histograms`` says where whole numbers are used.
LEVELS = {torch.uint8: 255, torch.uint16: 65535}
#: The signed dtypes of as many bits, which ATen gathers.
SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def white_of(image: Any) -> int:
    """Return the value of white: the greatest level, or 1 for floats."""
    return LEVELS.get(image.dtype, 1)


def bits_of(image: Any) -> int:
    """Return the number of bits of a level; for floats that of uint8."""
    return 16 if image.dtype == torch.uint16 else 8


def to_levels(share: Tensor, image: Tensor) -> Tensor:
    """Return the level that a share of white belongs to, by torchvision's rule: 255.999 for 255."""
    return (share * (LEVELS[image.dtype] + 0.999)).nan_to_num(0).clamp(0, LEVELS[image.dtype]).trunc()


def working_dtype(image: Tensor) -> torch.dtype:
    """Return the dtype in which an image is computed; float32 has few bits for sums of 16-bit levels."""
    return torch.float64 if image.dtype in (torch.float64, torch.uint16) else torch.float32


def of_sums(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """Return the dtype in which a matrix product or a convolution is computed.

    It is float64 on CUDA, because float32 products may have only 10 bits there (TF32), by a setting or by
    cuDNN's default.
    """
    return torch.float64 if device.type == "cuda" else dtype


def divide(value: Tensor, number: Any) -> Tensor:
    """Divide floating-point values by a number or a size, with one rounding on every device.

    ATen on CUDA multiplies by the reciprocal of a number, which rounds twice, except for a power of two. It
    divides by a tensor on the device.
    """
    return value / torch.full((), number, dtype=value.dtype, device=value.device)


def parameter(value: Tensor, image: Tensor, core: int = 0) -> Tensor:
    """Reshape a parameter so that it broadcasts over images.

    The parameter has one number per sample, or, for a positive ``core``, that many more dimensions per
    sample.
    """
    value = value.to(device=image.device, dtype=working_dtype(image))
    return value.reshape(
        *value.shape[: value.ndim - core], *(1,) * (3 - core), *value.shape[value.ndim - core :]
    )


def summed(values: Tensor, like: Tensor) -> Tensor:
    """Sum values over the dimensions that a parameter was broadcast to, in its dtype and on its device."""
    lead = (1,) * (values.ndim - like.ndim)
    total = values.sum_to_size(lead + tuple(like.shape)).reshape(like.shape)
    return total.to(device=like.device, dtype=like.dtype)


def finish(out: Tensor, image: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Convert a result to the dtype (or to ``dtype``) and the memory format of ``image``; never alias it."""
    out = layout.in_format(out.to(dtype or image.dtype), layout.is_interleaved(image))
    return out.clone() if out is image else out


def mix(start: Tensor, end: Tensor, factor: Tensor, image: Tensor) -> Tensor:
    """Compute ``Image.blend`` from one image to another, or beyond; clamp float images to [0, 1]."""
    if image.dtype in LEVELS:
        made = start.float() + factor.float() * (end.float() - start.float())
        return made.clamp(0, LEVELS[image.dtype]).trunc()
    return (end * factor + start * (1 - factor)).clamp(0, 1)


def finish_rounded(out: Tensor, image: Tensor) -> Tensor:
    if image.dtype in LEVELS:
        out = out.round().clamp(0, LEVELS[image.dtype])
    return finish(out, image)
