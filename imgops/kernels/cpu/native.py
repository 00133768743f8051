"""The native module as functions of tensors; no other module imports ``_native``.

The native module exists if there was a C compiler during the build. Its passes compute the decompositions
operation by operation, with the same bits on uint8 at every SIMD level; without it PIL, OpenCV and ATen do
its work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from imgops._common import compare, layout
from imgops.kernels.cpu import _threads
from imgops.kernels.cpu._arguments import array_per_image

try:
    module: Any = import_module("imgops.kernels.cpu._native")
except ImportError:  # built without a C compiler
    module = None

#: The highest SIMD level to use: 0 portable C, 1 AVX2, 2 AVX-512 with VNNI. The machine may support less.
SIMD_LEVEL = 2

RESAMPLING_TYPES = (torch.uint8, torch.float32, torch.float64)
#: The steps that ``sequence`` knows, in its order.
STEPS = ("brightness", "contrast", "saturation", "hue")
#: The colors that a program knows.
ALL_STEPS = (*STEPS, "posterize", "solarize", "invert", "autocontrast", "equalize", "sharpness")
#: The most channels of an image of a program.
MOST_CHANNELS = 4
#: The forms of the box of a resize, and the steps of a program, in the order of ``run_program``.
BOX_FORMS = ("edges", "whole", "sides", "corner")
STEP_KINDS = (
    "crop",
    "resize",
    "mirror",
    "flip",
    "colors",
    "gray",
    "blur",
    "warp",
    "erase",
    "split",
    "pad",
    "window",
)
#: The interpolations of "warp", and the border rules of "pad", in the same order.
WARPS = ("nearest", "bilinear")
BORDERS = ("constant", "edge", "reflect", "symmetric")


def is_built() -> bool:
    """Return whether the native module was built; warn if not, because the caller would be faster with it."""
    if module is None:
        compare.warn("its native module was not built")
    return module is not None


#: The names of the comparisons of native kernels.
compared: set[str] = set()


def comparison(name: str, library: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Decorate a comparison of a native kernel as ``compare.comparison``; None if there is no such kernel."""

    def decorate(probe: Callable[[], Any]) -> Callable[[], Any]:
        compared.add(name)
        result = compare.comparison(name, library)(probe)
        return wraps(probe)(lambda: result() if is_built() else None)

    return decorate


def divides(
    when: Callable[..., bool] = lambda *args: True,
) -> Callable[[_threads.Kernel], _threads.Kernel]:
    """Mark a kernel whose native passes divide a batch among threads, if they run."""
    return _threads.divides(when if module else lambda *args: False)


def has_passes(image: Tensor, *_: object) -> bool:
    """Return whether the passes of color and levels support the dtype of an image."""
    return image.dtype in (torch.uint8, torch.float32) and is_built()


def resample(out: Tensor, image: Tensor, rows: Any, columns: Any, rows_first: bool) -> bool:
    """Multiply an image by a table ``(start, length, weight)`` along each axis; None is the identity.

    ``image`` has the memory format of ``out``. Return False if nothing was done.
    """
    if not is_built():
        return False
    how = rows_first, _threads.worth(image.numel()), SIMD_LEVEL
    return module.resample(*_parts(out, image), rows, columns, *how)  # type: ignore[no-any-return]


def pil_resize(out: Tensor, image: Tensor, name: str, region: Sequence[float], rows_first: bool) -> bool:
    """Resize a region ``(left, top, right, bottom)`` as PIL, antialiased; return False if nothing was done.

    ``image`` has the memory format of ``out``; rows of uint8 may lie apart, as those of a crop do.
    """
    if image.dtype not in RESAMPLING_TYPES or not is_built():
        return False
    target, source = _parts(out, image)
    left, top, right, bottom = region
    height, single, threads = target.shape[1], image.dtype != torch.float64, _threads.worth(image.numel())
    if len(source) >= threads:
        whole = 0, height, rows_first, single, threads, SIMD_LEVEL
        return module.pil_resize(target, source, name, *region, *whole)  # type: ignore[no-any-return]
    how, done = (rows_first, single, 1, SIMD_LEVEL), []
    same_rows = top == 0 and bottom == height == source.shape[1]

    def rows(start: int, stop: int) -> None:
        band = slice(start, stop)
        for out_plane, plane in zip(target[:, None], source[:, None], strict=True):
            if same_rows:
                across = left, 0.0, right, float(stop - start), 0, stop - start
                done.append(module.pil_resize(out_plane[:, band], plane[:, band], name, *across, *how))
            else:
                done.append(module.pil_resize(out_plane[:, band], plane, name, *region, start, height, *how))

    _threads.split(height, image.numel(), rows)
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
    """Apply an elementwise function; each of equal parts of memory has an amount and a constant.

    All tensors have one memory format.
    """
    if not image.numel():
        return
    parts = len(amounts)
    target, source = _memory(out), _memory(image)
    second = None if other is None else _memory(other)
    numbers = np.array(amounts, np.float32)
    additions = np.zeros(parts, np.float32) if constants is None else np.array(constants, np.float32)

    how = numbers, additions, _threads.worth(image.numel()), SIMD_LEVEL
    module.point(name, target, source, second, *how)


def lut(out: Tensor, image: Tensor, tables: np.ndarray) -> None:
    """Look up levels in ``(parts, period, 256)`` tables, which take turns in each equal part of memory."""
    how = np.ascontiguousarray(tables), _threads.worth(image.numel()), SIMD_LEVEL
    module.lut(_memory(out), _memory(image), *how)


def mirror(out: Tensor, image: Tensor) -> bool:
    """Mirror each row of a planar uint8 image; return False if nothing was done."""
    if image.dtype != torch.uint8 or not (out.is_contiguous() and image.is_contiguous()):
        return False
    if not is_built():
        return False
    if image.numel():
        rows = image.shape[-1]
        target, source = layout.array(out).reshape(-1, rows), layout.array(image).reshape(-1, rows)
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
        target, source = layout.array(out).reshape(-1, 3, size), layout.array(pixels).reshape(-1, size, 3)
        module.move("split", target, source, SIMD_LEVEL)
    return True


def crop(out: Tensor, image: Tensor, left: int, top: int) -> bool:
    """Crop an image from (left, top) on, with zeros outside of it; return False if nothing was done."""
    if not (is_built() and -_FAR < left < _FAR and -_FAR < top < _FAR):
        return False
    return module.crop(out, image, left, top, _threads.worth(out.numel()))  # type: ignore[no-any-return]


def crop_each(out: Tensor, image: Tensor, places: np.ndarray) -> bool:
    """Crop equal parts of a batch, each from its (left, top) on; return False if nothing was done."""
    return is_built() and module.crop_each(out, image, places, _threads.worth(out.numel()))


def mirror_chosen(out: Tensor, image: Tensor, chosen: bytes) -> bool:
    """Mirror the chosen parts of a uint8 batch and copy the others; return False if nothing was done."""
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


def gray_rgb(out: Tensor, image: Tensor, chosen: bytes = b"1") -> bool:
    """Write PIL's gray of the chosen parts of a uint8 RGB image to three equal channels; copy other parts.

    Return False if nothing was done.
    """
    return is_built() and module.gray(out, image, chosen, SIMD_LEVEL)


def sharpen(out: Tensor, image: Tensor, factors: Sequence[float]) -> None:
    """Apply PIL's sharpness to uint8 images, each with its factor; ``image`` has the format of ``out``."""
    target, source = _parts(out, image)
    numbers = np.array(factors, np.float32).repeat(len(target) // len(factors))

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        module.sharpen(target[part], source[part], numbers[part], SIMD_LEVEL)

    _threads.split(len(target), image.numel(), work)


def warp(
    out: np.ndarray, image: np.ndarray, inverses: np.ndarray, fills: Sequence[Sequence[float] | None]
) -> bool:
    """Warp frames of three uint8 planes by the inverses of affine matrices, with the nearest pixels.

    A frame whose fill is None is copied. Return False if nothing was done.
    """
    if not (out.flags.c_contiguous and image.flags.c_contiguous) or image.size == 0 or not is_built():
        return False
    if max(out[0].size, image[0].size) >= 3 << 24:
        return False
    words = [-1 if f is None else int(f[0]) | int(f[1]) << 8 | int(f[2]) << 16 for f in fills]
    return module.warp(out, image, inverses.astype(np.float32), np.array(words, np.int64), SIMD_LEVEL)


def blur(out: np.ndarray, image: np.ndarray, across: np.ndarray, down: np.ndarray) -> bool:
    """Blur uint8 planes or HWC frames by weights ``(parts, n)`` in 256ths, the middle one first.

    Each of equal parts of the planes has its weights. Return False if nothing was done.
    """
    if not (out.flags.c_contiguous and image.flags.c_contiguous) or not is_built():
        return False
    shape = *image.shape, *(1,) * (4 - image.ndim)
    target, source, done = out.reshape(shape), image.reshape(shape), []
    if len(across) > 1 or len(source) >= _threads.number():
        each = len(source) // len(across)  # planes to a part
        units, together = (len(source), 1) if len(across) == 1 else (len(across), each)

        def planes(start: int, stop: int) -> None:
            some = slice(start * together, stop * together)
            own = slice(start, stop) if together > 1 else slice(None)
            sides = (side if len(side) == 1 else side[own] for side in (across, down))
            done.append(module.blur(target[some], source[some], *sides, 0, shape[1], SIMD_LEVEL))

        _threads.split(units, image.size, planes)
    else:

        def rows(start: int, stop: int) -> None:
            done.append(module.blur(target, source, across, down, start, stop, SIMD_LEVEL))

        _threads.split(shape[1], image.size, rows)
    return all(done)


def statistics(name: str, image: Tensor) -> np.ndarray:
    """Return the histograms or the extremes, as ``name`` says, of each plane as ``(planes, n)``.

    The image is planar or interleaved.
    """
    pixels = _pixels(image)
    size, dtype = (256, np.int64) if name == "histogram" else (2, pixels.dtype)
    found = np.empty((*pixels.shape[:2], size), dtype)

    module.statistics(name, found, pixels, _threads.worth(image.numel()), SIMD_LEVEL)
    return found.reshape(-1, size)


def gray(out: Tensor, image: Tensor) -> None:
    """Write the luma of a planar or interleaved image to one channel."""
    source = _pixels(image)
    target = layout.array(out).reshape(len(source), source.shape[-1])

    module.luma("gray", target, source, _threads.worth(image.numel()), SIMD_LEVEL)


def luma_means(image: Tensor) -> list[float]:
    """Return the mean luma of each float32 image."""
    source = _pixels(image)
    found = np.empty((len(source), 1))

    module.luma("mean", found, source, _threads.worth(image.numel()), SIMD_LEVEL)
    return found[:, 0].tolist()


def matrix(out: Tensor, image: Tensor, matrices: np.ndarray) -> None:
    """Multiply three float32 channels by ``(1 or images, 3, 3 or 4)``; both images have one memory format."""
    each = np.zeros((len(matrices), 3, 4), np.float32)
    each[..., : matrices.shape[-1]] = matrices
    module.matrix(_pixels(out), _pixels(image), each, _threads.worth(image.numel()), SIMD_LEVEL)


def sequence(out: Tensor, image: Tensor, kinds: np.ndarray, amounts: np.ndarray) -> None:
    """Run steps in as few passes as they need; ``image`` has the format of ``out``, or is ``out`` itself.

    ``kinds`` and ``amounts``, ``(1 or images, steps)``, are indices into ``STEPS``, -1 at the end, and their
    numbers.
    """
    how = kinds, amounts.astype(np.float32), _threads.worth(image.numel()), SIMD_LEVEL
    module.sequence(_pixels(out), _pixels(image), *how)


#: The border rules of ``remap_back``, in its order, and the taps of interpolations.
REMAP_BORDERS = (*BORDERS, "wrap")
TAPS = {"nearest": 1, "bilinear": 2, "bicubic": 4}


def remap_back(
    out: Tensor | None,
    slope: Tensor | None,
    grad: Tensor,
    image: Tensor | None,
    map: Tensor,
    fill: Tensor | None,
    size: tuple[int, int],
    how: tuple[str, str],
) -> bool:
    """Write the gradients of a remap: of the image, of a size, to ``out``; of the map to ``slope``.

    All tensors are planar and of float32 or float64, and have the batch of ``grad``, but for the map and the
    fill, which may be one for all. ``slope`` has the dtype of the map. Return False if nothing was done.
    """
    if grad.numel() == 0 or 0 in size or not is_built():
        return False
    planes, height, width = grad.shape[-3], *grad.shape[-2:]
    color = None
    if fill is not None:
        color = array_per_image(fill.double().expand(*fill.shape[:-1], planes), grad, 1)
    at = array_per_image(map, grad, 3).reshape(-1, 2, height * width)
    target = None if out is None else layout.array(out).reshape(-1, planes, size[0] * size[1])
    source = None if image is None else layout.array(image).reshape(-1, planes, size[0] * size[1])
    given = layout.array(grad).reshape(-1, planes, height * width)
    towards = None if slope is None else layout.array(slope).reshape(-1, 2, height * width)

    interpolation, border = how
    taps, rule = TAPS[interpolation], REMAP_BORDERS.index(border)
    threads = _threads.worth(given.size)
    module.remap_back(target, towards, given, source, at, color, *size, taps, rule, threads, SIMD_LEVEL)
    return True


def select_back(
    back: np.ndarray,
    wide: np.ndarray,
    chosen: np.ndarray,
    grad: np.ndarray,
    offsets: np.ndarray,
    first: bool,
) -> None:
    """Add the gradient of a plane of chosen pixels to ``back``, that of the plane with its border."""
    module.select_back(back, wide, chosen, grad, offsets, first, SIMD_LEVEL)


def stretch_back(out: Tensor, image: Tensor, grad: Tensor) -> None:
    """Write the gradient of autocontrast of each plane of a planar image."""
    planes = [layout.planes(x).reshape(-1, x.shape[-1] * x.shape[-2]) for x in (out, image, grad)]
    module.stretch_back(*planes, _threads.worth(image.numel()), SIMD_LEVEL)


#: The most steps whose gradient the native module computes.
LONGEST_SEQUENCE_BACK = 8


def sequence_back(
    out: Tensor | None, image: Tensor, grad: Tensor, kinds: np.ndarray, amounts: np.ndarray
) -> np.ndarray:
    """Write the gradient of an image of ``sequence`` to ``out``; return those of the steps, for each image.

    All images are planar, of float32 or float64. ``kinds`` and ``amounts`` are those of ``sequence``.
    """
    target, source, given = None if out is None else _pixels(out), _pixels(image), _pixels(grad)
    sums = np.zeros((len(source), kinds.shape[1]))
    how = kinds, amounts, _threads.worth(image.numel()), SIMD_LEVEL
    module.sequence_back(target, sums, source, given, *how)
    return sums


def run_program(
    out: Tensor,
    image: Tensor,
    steps: np.ndarray,
    pixels: int,
    numbers: np.ndarray,
    tables: np.ndarray | None,
    shrinks_rows_first: bool,
) -> int:
    """Run the steps of a program on each image of a uint8 tensor; return 0 if nothing was done.

    A step is an index into ``STEP_KINDS``, the column where its numbers begin, the height and width of its
    result, and three arguments; ``pixels`` are the most that an image has between steps. ``numbers`` has a
    row for each of equal parts of the images. ``out`` gets the last step's bytes, or what float32 ``tables``,
    ``(1 or C, 256)``, give for each. The result is ``UNCHANGED`` if no step has changed the images that one
    thread took, else 1.
    """
    if not is_built():
        return 0
    *batch, channels, _, _ = image.shape
    size = 2 * channels * pixels + 12 * (pixels + 2)
    counter, done = np.zeros(1, np.int64), []

    def work() -> None:
        how = counter, _scratch(size), shrinks_rows_first, SIMD_LEVEL
        done.append(module.run_program(out, image, steps, numbers, tables, *how))

    if not batch:
        work()
    else:
        count = prod(batch)
        _threads.share(count, count * channels * pixels * len(steps), work)
    return min(done)


def blend(out: Tensor, image: Tensor, matrices: np.ndarray, levels: Sequence[int]) -> bool:
    """Warp uint8 images by affine matrices ``(1 or parts, 6)``, with bilinear weights.

    ``levels`` are those of the channels outside. Return False if nothing was done.
    """
    if not is_built() or image.numel() == 0 or not 0 < image.shape[-3] <= 4 or image.ndim != out.ndim:
        return False
    size = out.shape[-2:]
    step = [STEP_KINDS.index("warp"), 0, *size, color_of(levels), 1, 0]
    most = max(size.numel(), image.shape[-2:].numel())
    return run_program(out, image, np.array([step], np.int64), most, matrices, None, True) > 0


def levels_of(color: Any, channels: int) -> list[int] | None:
    """Return the level of each channel of a color, or None if it is no color of whole levels."""
    numbers = [0] if color is None else list(color) if isinstance(color, (list, tuple)) else [color]
    if len(numbers) not in (1, channels) or not all(type(n) in (int, float) for n in numbers):
        return None
    if not all(0 <= n <= 255 and n == int(n) for n in numbers):
        return None
    return [int(n) for n in numbers] * (channels // len(numbers))


def color_of(levels: Sequence[int]) -> int:
    """Return the level of each channel as the bytes of a number, the first lowest."""
    return sum(level << 8 * i for i, level in enumerate(levels))


#: The result of ``run_program`` if all images are what they were.
UNCHANGED = 2


def run_sources(
    out: Tensor,
    data: Tensor,
    facts: np.ndarray,
    decoder: Any,
    steps: np.ndarray,
    pixels: int,
    numbers: np.ndarray,
    tables: np.ndarray | None,
    shrinks_rows_first: bool,
    interleaved: bool,
) -> np.ndarray | None:
    """Run a program on images of different sizes in a buffer; return for each whether it was done.

    ``facts`` has the first byte of each image, the one after its last, and the image's height and width. With
    a ``decoder`` the images are files, some of which it may leave to others. The first step is a "window":
    left, top, right and bottom of a box, the height and width to which it is resized, and the left and top
    of the part that is kept. The other arguments are those of ``run_program``. None means that nothing was
    done.
    """
    count, channels, *_ = out.shape
    boxes = numbers[:, steps[0, 1] :][:, :4]
    areas = (boxes[:, 3] - boxes[:, 1]) * (boxes[:, 2] - boxes[:, 0])
    room = (
        0 if decoder is None else channels * min(int(areas.max(initial=0)), _MOST_SCRATCH // (2 * channels))
    )
    size = 2 * channels * pixels + 12 * (pixels + 2) + room
    counter, done, codes = np.zeros(1, np.int64), np.zeros(count, np.uint8), []
    source = data.detach().numpy()

    def work() -> None:
        how = done, counter, _scratch(size), interleaved, shrinks_rows_first, SIMD_LEVEL
        codes.append(module.run_sources(out, source, facts, decoder, steps, numbers, tables, *how))

    # A file takes long enough for a thread.
    values = len(data) + count * channels * pixels * len(steps)
    _threads.share(count, values if decoder is None else count * _threads.VALUES_PER_THREAD, work)
    return done if min(codes) else None


def _scratch(size: int) -> np.ndarray:
    """Return memory of this thread for intermediate results, of any values."""
    found = getattr(_this, "scratch", None)
    if found is None or len(found) < size:
        found = np.empty(size, np.uint8)
        if size <= _MOST_SCRATCH:
            _this.scratch = found
    return found


_this = threading.local()
#: The most bytes that a thread keeps.
_MOST_SCRATCH = 1 << 24


def _parts(out: Tensor, image: Tensor) -> list[np.ndarray]:
    """Return both as ``(parts, H, W, C)``: the frames of interleaved images, or the planes of planar ones."""
    if layout.writes_interleaved(out):
        return [layout.frames(x) for x in (out, image)]
    return [layout.planes(x)[..., None] for x in (out, image)]


def _memory(image: Tensor) -> np.ndarray:
    """Return the values of a nonempty image in memory order."""
    return layout.array(image if image.is_contiguous() else image.movedim(-3, -1))


def _pixels(image: Tensor) -> np.ndarray:
    """Return a planar or interleaved image as ``(images, channels, pixels)``, a view."""
    *batch, channels, height, width = image.shape
    count, pixels = torch.Size(batch).numel(), height * width
    if image.is_contiguous():
        return layout.array(image).reshape(count, channels, pixels)
    return layout.array(image.movedim(-3, -1)).reshape(count, pixels, channels).transpose(0, 2, 1)
