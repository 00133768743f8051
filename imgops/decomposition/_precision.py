"""The precision that pixels are computed in, and the way back."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops import _layout


def working_dtype(image: Tensor) -> torch.dtype:
    """The dtype that an image is computed in."""
    return torch.float64 if image.dtype == torch.float64 else torch.float32


def of_sums(dtype: torch.dtype, device: torch.device) -> torch.dtype:
    """The dtype that products are summed in by a matrix product or a convolution.

    On CUDA those of float32 may be computed with 10 bits (TF32): by a setting, or by cuDNN's default.
    """
    return torch.float64 if device.type == "cuda" else dtype


def parameter(value: Tensor, image: Tensor, core: int = 0) -> Tensor:
    """A parameter of one number per sample, so that it broadcasts over images."""
    value = value.to(device=image.device, dtype=working_dtype(image))
    return value.reshape(
        *value.shape[: value.ndim - core], *(1,) * (3 - core), *value.shape[value.ndim - core :]
    )


def finish(out: Tensor, image: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """In the dtype (or another) and the memory format of ``image``, and no view of it."""
    out = _layout.in_format(out.to(dtype or image.dtype), _layout.is_interleaved(image))
    return out.clone() if out is image else out


def mix(start: Tensor, end: Tensor, factor: Tensor, image: Tensor) -> Tensor:
    """``Image.blend`` from one picture to another, or beyond; float images stay in [0, 1]."""
    if image.dtype == torch.uint8:
        return (start.float() + factor * (end.float() - start.float())).clamp(0, 255).trunc()
    return (end * factor + start * (1 - factor)).clamp(0, 1)


def finish_rounded(out: Tensor, image: Tensor) -> Tensor:
    if image.dtype == torch.uint8:
        out = out.round().clamp(0, 255)
    return finish(out, image)
