"""The native module as functions of tensors; no other module imports ``_native``.

The native module exists if there was a C compiler during the build. Its passes compute the decompositions
operation by operation, with the same bits on uint8 at every SIMD level; without it ATen runs the
decompositions.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor

from imgops import _layout, _slow_path
from imgops.kernels.cpu import _threads

try:
    module: Any = import_module("imgops.kernels.cpu._native")
except ImportError:  # built without a C compiler
    module = None

#: The highest SIMD level to use: 0 portable C, 1 AVX2, 2 AVX-512 with VNNI. The machine may support less.
SIMD_LEVEL = 2

RESAMPLING_TYPES = (torch.uint8, torch.float32, torch.float64)
#: The steps that ``sequence`` knows, in its order.
STEPS = ("brightness", "contrast", "saturation", "hue")


def is_built() -> bool:
    """Return whether the native module was built; warn if not, because the caller would be faster with it."""
    if module is None:
        _slow_path.warn("its native module was not built")
    return module is not None


def has_passes(image: Tensor) -> bool:
    """Return whether the passes of color and levels support the dtype of an image."""
    return image.dtype in (torch.uint8, torch.float32) and is_built()


def resample(out: Tensor, image: Tensor, rows: Any, columns: Any, rows_first: bool) -> bool:
    """Multiply an image by a table ``(start, length, weight)`` along each axis; None is the identity.

    ``image`` has the memory format of ``out``. Return False if nothing was done.
    """
    if not is_built():
        return False
    if _layout.writes_interleaved(out):
        target, source = _layout.frames(out), _layout.frames(image)
    else:
        target, source = _layout.planes(out)[..., None], _layout.planes(image)[..., None]
    done = []

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        done.append(module.resample(target[part], source[part], rows, columns, rows_first, SIMD_LEVEL))

    _threads.split(len(source), image.numel(), work)
    return all(done)


def pil_resize(out: Tensor, image: Tensor, name: str, region: Sequence[float], rows_first: bool) -> bool:
    """Resize a region ``(left, top, right, bottom)`` as PIL, antialiased; return False if nothing was done.

    ``image`` has the memory format of ``out``; rows of uint8 may lie apart, as those of a crop do.
    """
    if image.dtype not in RESAMPLING_TYPES or not is_built():
        return False
    if _layout.writes_interleaved(out):
        target, source = _layout.frames(out), _layout.frames(image)
    else:
        target, source = _layout.planes(out)[..., None], _layout.planes(image)[..., None]
    how = (name, *region, rows_first, image.dtype != torch.float64, SIMD_LEVEL)
    if torch.get_num_threads() == 1:
        return module.pil_resize(target, source, *how)
    done = []

    def work(start: int, stop: int) -> None:
        done.append(module.pil_resize(target[start:stop], source[start:stop], *how))

    _threads.split(len(source), image.numel(), work)
    return all(done)


def fill_table(name: str, size: int, low: float, extent: float, table: Any) -> bool:
    """Write PIL's weights into the arrays of a table; return False without the module."""
    if not is_built():
        return False
    module.table(name, size, low, extent, *table)
    return True


def point(
    name: str,
    out: Tensor,
    image: Tensor,
    amounts: Sequence[float],
    constants: Sequence[float] | None = None,
    other: Tensor | None = None,
) -> None:
    """Apply an elementwise function; equal parts of memory have an amount and a constant each.

    All tensors have one memory format.
    """
    parts = len(amounts)
    target, source = _memory(out).reshape(parts, -1), _memory(image).reshape(parts, -1)
    second = None if other is None else _memory(other).reshape(parts, -1)
    numbers = np.array(amounts, np.float32)
    additions = np.zeros(parts, np.float32) if constants is None else np.array(constants, np.float32)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        beside = None if second is None else second[part]
        module.point(name, target[part], source[part], beside, numbers[part], additions[part], SIMD_LEVEL)

    if image.numel():
        _threads.split(parts, image.numel(), work)


def lut(out: Tensor, image: Tensor, tables: np.ndarray) -> None:
    """Look up levels in ``(parts, period, 256)`` tables, which take turns in each equal part of memory."""
    tables = np.ascontiguousarray(tables)
    target, source = _memory(out).reshape(len(tables), -1), _memory(image).reshape(len(tables), -1)

    def work(start: int, stop: int) -> None:
        module.lut(target[start:stop], source[start:stop], tables[start:stop], SIMD_LEVEL)

    _threads.split(len(tables), image.numel(), work)


def mirror(out: Tensor, image: Tensor) -> bool:
    """Mirror each row of a planar uint8 image; return False if nothing was done."""
    if image.dtype != torch.uint8 or not (out.is_contiguous() and image.is_contiguous()):
        return False
    if not is_built():
        return False
    if image.numel():
        rows = image.shape[-1]
        target, source = _layout.array(out).reshape(-1, rows), _layout.array(image).reshape(-1, rows)
        module.move("mirror", target, source, SIMD_LEVEL)
    return True


def split(out: Tensor, image: Tensor) -> bool:
    """Split interleaved uint8 frames of three channels into planes; return False if nothing was done."""
    pixels = image.movedim(-3, -1)
    if image.dtype != torch.uint8 or image.shape[-3] != 3 or not pixels.is_contiguous():
        return False
    if not is_built():
        return False
    if image.numel():
        size = image.shape[-1] * image.shape[-2]
        target, source = _layout.array(out).reshape(-1, 3, size), _layout.array(pixels).reshape(-1, size, 3)
        module.move("split", target, source, SIMD_LEVEL)
    return True


def crop(out: Tensor, image: Tensor, left: int, top: int) -> bool:
    """Crop an image from (left, top) on, with zeros outside of it; return False if nothing was done."""
    return is_built() and -_FAR < left < _FAR and -_FAR < top < _FAR and module.crop(out, image, left, top)


def crop_each(out: Tensor, image: Tensor, places: np.ndarray) -> bool:
    """Crop each of equal parts of a batch from its own (left, top) on; return False if nothing was done."""
    return is_built() and module.crop_each(out, image, places)


def mirror_chosen(out: Tensor, image: Tensor, chosen: bytes) -> bool:
    """Mirror the chosen parts of a uint8 batch, copy the rest; return False if nothing was done."""
    return is_built() and module.mirror_chosen(out, image, chosen, SIMD_LEVEL)


def resized_crops(out: Tensor, image: Tensor, boxes: np.ndarray, name: str, shrinks_rows_first: bool) -> bool:
    """Resize, as PIL, a box of each of equal parts of a uint8 batch; return False if nothing was done."""
    return is_built() and module.resized_crops(out, image, boxes, name, shrinks_rows_first, SIMD_LEVEL)


#: The bound of crop positions: their offsets in bytes, too, fit into a machine word.
_FAR = 1 << 40


def levels(out: Tensor, image: Tensor, table: bytes) -> bool:
    """Look up bytes in a table of 256; return False if nothing was done.

    The memory format may be planar or interleaved, the same for both images.
    """
    return is_built() and module.levels(out, image, table, SIMD_LEVEL)


def stretch_levels(out: Tensor, image: Tensor, equalize: bool) -> bool:
    """Run PIL's autocontrast or equalize on the planes of a uint8 image; return False if nothing was done."""
    return is_built() and module.stretch_levels(out, image, equalize, SIMD_LEVEL)


def gray_rgb(out: Tensor, image: Tensor) -> bool:
    """Write PIL's gray of a uint8 RGB image to three equal channels; return False if nothing was done."""
    return is_built() and module.gray(out, image, SIMD_LEVEL)


def sharpen(out: Tensor, image: Tensor, factors: Sequence[float]) -> None:
    """Apply PIL's sharpness to uint8 images, each with its factor; ``image`` has the format of ``out``."""
    view = _layout.frames if _layout.writes_interleaved(out) else _layout.planes
    target, source = view(out), view(image)
    if target.ndim == 3:
        target, source = target[..., None], source[..., None]
    numbers = np.array(factors, np.float32).repeat(len(target) // len(factors))

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        module.sharpen(target[part], source[part], numbers[part], SIMD_LEVEL)

    _threads.split(len(target), image.numel(), work)


def warp(out: np.ndarray, image: np.ndarray, inverse: np.ndarray, fill: Sequence[float]) -> bool:
    """Warp three uint8 planes by the inverse of an affine matrix, with the nearest pixels.

    Return False if nothing was done.
    """
    if not (out.flags.c_contiguous and image.flags.c_contiguous) or image.size == 0 or not is_built():
        return False
    if max(out.size, image.size) >= 3 << 24:
        return False
    word = sum(int(value) << 8 * i for i, value in enumerate(fill))
    return module.warp(out, image, inverse.astype(np.float32), word, SIMD_LEVEL)


def blur(out: np.ndarray, image: np.ndarray, across: Sequence[int], down: Sequence[int]) -> bool:
    """Blur a uint8 plane or HWC frame by weights in 256ths, the middle one first.

    Return False if nothing was done.
    """
    if not (out.flags.c_contiguous and image.flags.c_contiguous) or not is_built():
        return False
    shape = (1, *image.shape, *(1,) * (3 - image.ndim))
    weights = (np.asarray(side, np.int32) for side in (across, down))
    return module.blur(out.reshape(shape), image.reshape(shape), *weights, SIMD_LEVEL)


def statistics(name: str, image: Tensor) -> np.ndarray:
    """Return the histograms or the extremes, as ``name`` says, of each plane as ``(planes, n)``.

    The image is planar or interleaved.
    """
    pixels = _pixels(image)
    size, dtype = (256, np.int64) if name == "histogram" else (2, pixels.dtype)
    found = np.empty((*pixels.shape[:2], size), dtype)

    def work(start: int, stop: int) -> None:
        module.statistics(name, found[start:stop], pixels[start:stop], SIMD_LEVEL)

    _threads.split(len(pixels), image.numel(), work)
    return found.reshape(-1, size)


def gray(out: Tensor, image: Tensor) -> None:
    """Write the luma of a planar or interleaved image to one channel."""
    source = _pixels(image)
    target = _layout.array(out).reshape(len(source), source.shape[-1])

    def work(start: int, stop: int) -> None:
        module.luma("gray", target[start:stop], source[start:stop], SIMD_LEVEL)

    _threads.split(len(source), image.numel(), work)


def luma_means(image: Tensor) -> list[float]:
    """Return the mean luma of each float32 image."""
    source = _pixels(image)
    found = np.empty((len(source), 1))

    def work(start: int, stop: int) -> None:
        module.luma("mean", found[start:stop], source[start:stop], SIMD_LEVEL)

    _threads.split(len(source), image.numel(), work)
    return found[:, 0].tolist()


def matrix(out: Tensor, image: Tensor, matrices: np.ndarray) -> None:
    """Multiply three float32 channels by ``(1 or images, 3, 3 or 4)``; both images have one memory format."""
    target, source = _pixels(out), _pixels(image)
    each = np.zeros((len(matrices), 3, 4), np.float32)
    each[..., : matrices.shape[-1]] = matrices

    def work(start: int, stop: int) -> None:
        own = each if len(each) == 1 else each[start:stop]
        module.matrix(target[start:stop], source[start:stop], own, SIMD_LEVEL)

    _threads.split(len(source), image.numel(), work)


def sequence(out: Tensor, image: Tensor, steps: Sequence[tuple[str, float]]) -> None:
    """Run steps in as few passes as they need; ``image`` has the format of ``out``, or is ``out`` itself."""
    target, source = _pixels(out), _pixels(image)
    kinds = np.array([STEPS.index(name) for name, _ in steps], np.int32)
    amounts = np.array([amount for _, amount in steps], np.float32)

    def work(start: int, stop: int) -> None:
        module.sequence(target[start:stop], source[start:stop], kinds, amounts, SIMD_LEVEL)

    _threads.split(len(source), image.numel(), work)


def _memory(image: Tensor) -> np.ndarray:
    """Return the values of a nonempty image in memory order."""
    return _layout.array(image if image.is_contiguous() else image.movedim(-3, -1))


def _pixels(image: Tensor) -> np.ndarray:
    """Return a planar or interleaved image as ``(images, channels, pixels)``, a view."""
    *batch, channels, height, width = image.shape
    count, pixels = torch.Size(batch).numel(), height * width
    if image.is_contiguous():
        return _layout.array(image).reshape(count, channels, pixels)
    return _layout.array(image.movedim(-3, -1)).reshape(count, pixels, channels).transpose(0, 2, 1)
