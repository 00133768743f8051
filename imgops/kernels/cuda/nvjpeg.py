"""JPEG on the device, with nvJPEG through TorchCodec or torchvision, whose decoders TorchCodec replaces.

The pixels and bytes are nvJPEG's own. The host processes images that nvJPEG does not support or refuses.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from imgops.kernels.cpu import codec

_MODES = {"RGB": "RGB", "L": "GRAY"}


@cache
def _decoder() -> Callable[[Tensor, str, torch.device], Tensor] | None:
    try:
        from torchcodec.decoders import decode_jpeg
    except Exception:  # not installed, too old, or without the FFmpeg that it loads
        pass
    else:
        return lambda data, mode, device: decode_jpeg(data, mode=mode, device=device)
    try:
        from torchvision.io import decode_jpeg as older
    except Exception:
        return None
    return lambda data, mode, device: _quietly(older, data, mode=mode, device=device)


@cache
def _encoder() -> Callable[[Tensor, int], Tensor] | None:
    try:
        from torchcodec.encoders import JpegEncoder
    except Exception:
        pass
    else:
        return lambda image, quality: JpegEncoder(image).to_tensor(quality=quality)
    try:
        from torchvision.io import encode_jpeg
    except Exception:
        return None
    return lambda image, quality: _quietly(encode_jpeg, image, quality=quality)


def _quietly(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Call a function of torchvision without its warnings.

    In each call torchvision recommends TorchCodec, which imgops already uses if it is installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **keywords)


def decode(data: Tensor, mode: str, max_pixels: int, device: torch.device) -> Tensor | None:
    """Return the pixels on the device, or None for data that the host must decode or refuse."""
    raw = data.numpy().tobytes()
    is_whole = raw.startswith(b"\xff\xd8\xff") and b"\xff\xd9" in raw[-64:]
    if device.type != "cuda" or mode not in _MODES or not is_whole or _decoder() is None:
        return None
    try:
        codec.size_of_file(data, max_pixels, False)  # raises for more pixels; the host then raises the error
        return _decoder()(data, _MODES[mode], device)  # type: ignore[misc]
    except Exception:  # an unsupported kind of JPEG, or a hostile file: the host decides which
        return None


def encode(image: Tensor, quality: int) -> Tensor | None:
    """Return an RGB image as the bytes of a JPEG on its device, or None if the host must encode it."""
    if not image.is_cuda or image.dtype != torch.uint8 or image.shape[-3:-2] != (3,) or _encoder() is None:
        return None
    try:
        return _encoder()(image.contiguous(), quality)  # type: ignore[misc]
    except Exception:
        return None
