"""libjpeg-turbo as a decoder of JPEGs, whole or a region of them; no other module imports ``_native_jpeg``.

It is built if libjpeg-turbo is installed. It gives up at the first sign that a file is unusual or not
complete; then Pillow decodes the file, or refuses it.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from PIL import Image

from imgops._common import compare
from imgops.kernels.cpu import _threads

try:
    module: Any = import_module("imgops.kernels.cpu._native_jpeg")
except ImportError:  # built without libjpeg-turbo
    module = None


def decode(pixels: np.ndarray, raw: bytes, left: int, top: int, size: Sequence[int]) -> bool:
    """Decode the region of a JPEG at ``(left, top)`` that has the size of ``pixels``.

    ``pixels`` is ``(height, width, 1 or 3)``, interleaved or planar; ``size`` is the (width, height) of the
    whole image. Return False, with undefined ``pixels``, if Pillow should decode the file.
    """
    if module is None:
        compare.warn("libjpeg-turbo is not a part of it, so that Pillow decodes JPEGs")
        return False
    return is_pillow() and module.decode(pixels, raw, left, top, size[1], size[0])


def decode_each(
    out: np.ndarray, files: list[Any], facts: np.ndarray, channels: int, interleaved: bool
) -> np.ndarray:
    """Decode regions of JPEGs on threads; return for each whether it was decoded. Pillow decodes the others.

    Each row of ``facts`` has the offset of a region in ``out``, its left, top, height and width, and the
    height and width of the whole image.
    """
    done = np.zeros(len(files), np.uint8)
    if module is None or not is_pillow():
        return done

    def work(first: int, last: int) -> None:
        module.decode_each(out, files, facts, done, channels, interleaved, first, last)

    _threads.split(
        len(files), len(files) * _threads.VALUES_PER_THREAD, work
    )  # a file takes long enough for a thread
    return done


def decoder() -> Any:
    """Return the function that decodes regions of files for a program; None if Pillow should decode them."""
    return module.decoder if module is not None and is_pillow() else None


def header(raw: bytes | np.ndarray) -> tuple[int, int, int] | None:
    """Return the width, height and channels of a JPEG without EXIF data; None if Pillow should read it."""
    return None if module is None else module.header(raw)


@compare.comparison("libjpeg-turbo", "Pillow")
def is_pillow() -> bool:
    """Return whether the libjpeg-turbo of imgops has the pixels of Pillow's."""
    rng = np.random.default_rng(0)
    fine = rng.integers(0, 256, (43, 67, 3)).astype(np.uint8)
    coarse = np.asarray(Image.fromarray(fine[:7, :9]).resize((67, 43), Image.Resampling.BICUBIC))
    ways: list[dict[str, Any]] = [
        {"quality": quality, "subsampling": subsampling, "progressive": progressive}
        for quality, progressive in ((30, False), (95, False), (75, True))
        for subsampling in (0, 1, 2)
    ]
    files = [(pixels, way) for pixels in (fine, coarse) for way in ways]
    files += [
        (pixels[..., 0], {"quality": 75, "progressive": p})
        for pixels in (fine, coarse)
        for p in (False, True)
    ]
    return all(_decodes(Image.fromarray(pixels), **way) for pixels, way in files)


def _decodes(image: Image.Image, **how: Any) -> bool:
    file = io.BytesIO()
    image.save(file, "JPEG", **how)
    raw, size = file.getvalue(), image.size
    with Image.open(file) as opened:
        expected = np.asarray(opened).reshape(size[1], size[0], -1)
    whole = np.empty_like(expected)
    planes = np.empty((expected.shape[2], size[1], size[0]), np.uint8).transpose(1, 2, 0)
    region = np.empty((9, 21, expected.shape[2]), np.uint8)
    found = [module.decode(out, raw, 0, 0, size[1], size[0]) for out in (whole, planes)]
    found.append(module.decode(region, raw, 23, 19, size[1], size[0]))
    same = np.array_equal(whole, expected) and np.array_equal(planes, expected)
    return all(found) and same and np.array_equal(region, expected[19:28, 23:44])
