"""The parameters of a call as one frozen object, which can be compared, hashed, printed and saved.

Pass it in place of the first parameter: ``imgops.resize(image, Resize((224, 224), "bicubic"))``. The
operator gets the plain numbers and names, so a program exported with a config can be saved and loaded.
Fields have the names, the order and the defaults of the function's parameters; they hold numbers, not
tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

__all__ = ["Crop", "DecodeImage", "EncodeImage", "Pad", "Paste", "Resize"]


@dataclass(frozen=True)
class Crop:
    """The parameters of :func:`imgops.crop`."""

    box: tuple[int, int, int, int]


@dataclass(frozen=True)
class Paste:
    """The parameters of :func:`imgops.paste`, :func:`imgops.paste_` and :func:`imgops.paste_out`."""

    position: tuple[int, int]


@dataclass(frozen=True)
class Pad:
    """The parameters of :func:`imgops.pad`."""

    padding: int | tuple[int, ...]
    padding_mode: str = "constant"
    fill: float | tuple[float, ...] = 0


@dataclass(frozen=True)
class Resize:
    """The parameters of :func:`imgops.resize` and :func:`imgops.resize_out`."""

    size: tuple[int, int] | None = None
    interpolation: str = "bilinear"
    antialias: bool = True
    box: tuple[float, float, float, float] | None = None
    scale: tuple[float, float] | None = None


@dataclass(frozen=True)
class EncodeImage:
    """The parameters of :func:`imgops.encode_image`."""

    format: str = "jpeg"
    quality: int = 95
    device: str | None = None


@dataclass(frozen=True)
class DecodeImage:
    """The parameters of :func:`imgops.decode_image`."""

    mode: str = "RGB"
    box: tuple[int, int, int, int] | None = None
    apply_exif_orientation: bool = False
    max_pixels: int = 1024 * 1024 * 1024 // 4 // 3
    memory_format: torch.memory_format = torch.contiguous_format
    device: str | None = None
