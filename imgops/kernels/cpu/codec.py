"""CPU kernels of encode_image and decode_image: Pillow's codecs, held to whole images and clear errors."""

from __future__ import annotations

import io
import re
import struct
import zlib
from typing import NoReturn

import numpy as np
import torch
from PIL import Image, ImageFile
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile
from PIL.WebPImagePlugin import WebPImageFile
from torch import Tensor

from imgops import _check

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}

#: Pillow's modes for 16 bits of grey; "I" before Pillow 11.
_DEEP = ("I", "I;16", "I;16B", "I;16L")

_TRANSPOSED = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_ORIENTATION = 0x0112
_PNG = b"\x89PNG\r\n\x1a\n"


def encode_image(image: Tensor, quality: int, format: str) -> Tensor:
    pixels = np.ascontiguousarray(np.moveaxis(image.detach().numpy(), 0, -1))
    if pixels.shape[-1] == 1:
        pixels = pixels[..., 0]
    file = io.BytesIO()
    keywords = {} if format == "png" else {"quality": quality}
    Image.fromarray(pixels).save(file, format.upper(), **keywords)
    return torch.frombuffer(bytearray(file.getbuffer()), dtype=torch.uint8)


def decode_image(data: Tensor, max_pixels: int, mode: str, apply_exif_orientation: bool) -> Tensor:
    if ImageFile.LOAD_TRUNCATED_IMAGES:
        must = "PIL.ImageFile.LOAD_TRUNCATED_IMAGES must be False, for no image is to be decoded in part"
        _check.fail(ValueError, "decode_image", must, True)
    raw = data.detach().numpy().tobytes()
    try:
        image = _opened(raw)
        if image.width * image.height > max_pixels:
            must = f"data must be an image of at most {max_pixels} pixels (max_pixels)"
            raise _Refused(must, f"{image.height} x {image.width}")
        image.load()
        if isinstance(image, JpegImageFile) and _ends_early(raw, image):
            raise _Refused("data must be a complete image", "a JPEG whose data end early")
        pixels = _pixels(image, mode, apply_exif_orientation)
    except _Refused as refused:
        _check.fail(ValueError, "decode_image", *refused.args)
    except Exception as error:  # of a dozen types: that is how hostile data show in Pillow
        _reject(raw, error)
    return torch.from_numpy(pixels)


class _Refused(Exception):
    """What must be, and what was found."""


def _reject(raw: bytes, error: Exception) -> NoReturn:
    got = f"{len(raw)} bytes that Pillow cannot decode ({type(error).__name__}: {error})"
    must = "decode_image: data must be a complete JPEG, PNG or WebP image"
    raise ValueError(f"{must}, got {got}") from error


def _opened(raw: bytes) -> Image.Image:
    """The file's header read. Not by ``Image.open``: it has a limit of pixels of its own, for the process."""
    file = io.BytesIO(raw)
    if raw.startswith(b"\xff\xd8\xff"):
        return JpegImageFile(file)
    if raw.startswith(_PNG):
        _check_png(raw)
        return PngImageFile(file)
    if raw[:4] == b"RIFF" and raw[8:12] == b"WEBP":
        return WebPImageFile(file)
    raise _Refused("data must be a JPEG, PNG or WebP file", f"{len(raw)} bytes that begin with {raw[:12]!r}")


def _check_png(raw: bytes) -> None:
    """Every chunk's checksum, up to the last chunk: Pillow looks at neither where the pixels are."""
    at = len(_PNG)
    while at + 12 <= len(raw):
        length, kind = struct.unpack_from(">I4s", raw, at)
        end = at + 8 + length
        if end + 4 > len(raw):
            break
        if zlib.crc32(memoryview(raw)[at + 4 : end]) != int.from_bytes(raw[end : end + 4], "big"):
            raise _Refused("data must have the checksums of a PNG", f"a wrong one in its chunk {kind!r}")
        if kind == b"IEND":
            return
        at = end + 4
    raise _Refused("data must be a complete image", "a PNG whose data end early")


def _pixels(image: Image.Image, mode: str, apply_exif_orientation: bool) -> np.ndarray:
    orientation = image.getexif().get(_ORIENTATION) if apply_exif_orientation else None
    if image.mode in _DEEP:  # the high byte, as Pillow itself reads 16-bit colour
        image = Image.fromarray((np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8))
    if image.mode != mode:
        image = image.convert(mode)
    if orientation in _TRANSPOSED:
        image = image.transpose(_TRANSPOSED[orientation])
    pixels = np.asarray(image)
    return np.array(pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, -1, 0), order="C")


# A JPEG has no checksum, and where its data end before the image does libjpeg fills in grey, and Pillow does
# not say so. What a complete scan does not read can be changed without a trace: so the image is decoded
# a second time with other bytes after each scan. That costs as much as the first time, and is needed only
# where the last corner is as flat as a filling.

_JUNK = bytes(range(17, 113, 5)) * 8
_SCAN_END = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]", re.DOTALL)
_SEQUENTIAL = (0xC0, 0xC1)


def _ends_early(raw: bytes, image: Image.Image) -> bool:
    corner = np.asarray(image.crop((max(image.width - 3, 0), max(image.height - 3, 0), *image.size)))
    if np.ptp(corner.reshape(-1, corner.shape[-1] if corner.ndim == 3 else 1).astype(int), axis=0).max() > 2:
        return False
    longer = _with_junk(raw)
    if longer is None:
        return False
    again = JpegImageFile(io.BytesIO(longer))
    again.load()
    return again.tobytes() != image.tobytes()


def _with_junk(raw: bytes) -> bytes | None:
    """The file with other data behind each scan; None for progressive ones, complete from their first scan on."""
    parts, start, at = [], 0, 2
    while at + 4 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (*_SEQUENTIAL, 0xC4, 0xC8, 0xCC):
            return None
        at += 2 + int.from_bytes(raw[at + 2 : at + 4], "big")
        if marker != 0xDA:
            continue
        end = _SCAN_END.search(raw, at)
        if end is None:
            break
        parts += [raw[start : end.start()], _JUNK]
        start = at = end.start()
        if raw[at + 1] == 0xD9:
            break
    return b"".join([*parts, raw[start:]])
