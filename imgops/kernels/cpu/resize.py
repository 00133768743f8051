"""CPU kernels of resize and its adjoint.

============  =============================================  ====================================
dtype         antialias=True (PIL)                           antialias=False (OpenCV)
============  =============================================  ====================================
uint8         PIL's integers: native, or PIL itself          ``cv2.resize``
uint16        PIL's mode I;16                                ``cv2.resize``
float32       PIL's weights: native, or PIL's mode F         ``cv2.resize``
float64       PIL's weights in double: native, or ATen       OpenCV's weights in double, likewise
float16       as float32, rounded once                       as float32, rounded once
any, nearest  the pixels that PIL takes                      the pixels that OpenCV or PyTorch takes
============  =============================================  ====================================

Neither library has a true float64 path: PIL has none, and OpenCV keeps its weights in single precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops._common import layout
from imgops.kernels.cpu import _resample, _resampling_tables, _threads, native
from imgops.kernels.cpu._arguments import HALF, in_single
from imgops.kernels.cpu._opencv import INTERPOLATIONS

Region = tuple[float, float, float, float]

#: The dtypes that ``cv2.resize`` interpolates directly.
_OPENCV_HAS = (torch.uint8, torch.uint16, torch.float32)


@_threads.divides()
def resize(
    out: Tensor,
    image: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None = None,
) -> None:
    if out.numel() == 0:
        return
    if interpolation.endswith("nearest"):
        work = partial(_nearest, interpolation=interpolation, antialias=antialias, scale=scale)
        _each_region(out, image, box, image, work)
    elif image.dtype in HALF:
        in_single(resize, out, image, box, height, width, interpolation, antialias, scale)
    elif antialias and image.dtype == torch.uint16:
        _each_region(out, image, box, image, partial(_resample.by_pil, interpolation=interpolation))
    elif antialias:
        work = partial(_resize_antialiased, interpolation=interpolation)
        _each_region(out, image, box, image, work)
    elif image.dtype == torch.float64:
        tables = _opencv_tables(interpolation, image.shape[-2:], (height, width), scale)
        _resample.apply(out, image.detach(), tables)
    else:
        # A single pixel has both memory formats; OpenCV computes it in the format of the image it comes from.
        is_pixel = out.shape[-2:] == (1, 1) and layout.is_interleaved(image)
        if is_pixel:
            out = layout.in_usual_strides(out, True)  # the same memory
        _by_opencv(out, image, interpolation, is_pixel or layout.writes_interleaved(out), scale)


def resize_out(
    image: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    out: Tensor,
) -> None:
    interleaved = layout.is_interleaved(image)
    if out.is_contiguous():
        out = layout.in_usual_strides(out.detach(), False)  # the same memory
    by_opencv = not antialias and not interpolation.endswith("nearest") and image.dtype in _OPENCV_HAS
    if by_opencv and layout.is_window(out, interleaved) and out.numel():
        _by_opencv(out, image, interpolation, interleaved)
        return
    canvas = layout.writable(out, interleaved, read=False)
    resize(canvas, image, box, height, width, interpolation, antialias, None)
    layout.copy_back(out, canvas)


def _has_tables(grad: Tensor, box: Any, height: int, width: int, interpolation: str, *_: object) -> bool:
    return not interpolation.endswith("nearest")


@native.divides(_has_tables)
def resize_adjoint(
    out: Tensor,
    grad: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None = None,
) -> None:
    """Apply the transpose of ``resize`` from ``(height, width)``, with the same tables."""
    if out.numel() == 0:
        return
    if grad.dtype in HALF:
        in_single(resize_adjoint, out, grad, box, height, width, interpolation, antialias, scale)
        return
    size = tuple(grad.shape[-2:])

    def one(target: Tensor, source: Tensor, region: Region) -> None:
        if interpolation.endswith("nearest"):
            taken = _positions((height, width), region, size, interpolation, antialias, scale, grad.dtype)
            _scatter(target, source, *taken)
            return
        if antialias:
            single = grad.dtype != torch.float64
            tables = _resample.pil_tables(interpolation, (height, width), region, size, single=single)
        else:
            tables = _opencv_tables(interpolation, (height, width), size, scale)
        rows, columns = tables
        transposed = rows and rows.transpose(height), columns and columns.transpose(width)
        _resample.apply(target, source, transposed)

    _each_region(out, grad, box, out, one)


def resized_crop(
    out: Tensor, image: Tensor, box: Tensor, height: int, width: int, interpolation: str, antialias: bool
) -> None:
    """Resize each crop; unlike in ``resize``, the filter does not see pixels outside of the box."""
    if box.ndim == image.ndim - 2 == 2 and out.numel() and _crops_alone(out, image, box):
        return
    is_pils = antialias and interpolation != "nearest" and image.dtype == torch.uint8 and out.numel() > 0
    if is_pils and _resample.crops_by_native(out, image, box, interpolation):
        return

    def one(target: Tensor, source: Tensor, box: Sequence[int]) -> None:
        left, top, right, bottom = box
        part = source[..., top:bottom, left:right]
        if part.shape == target.shape:
            target.copy_(part)
        else:
            resize(target, part, None, height, width, interpolation, antialias, None)

    if out.numel():
        _each_box(out, image, box, one)


def _crops_alone(out: Tensor, image: Tensor, boxes: Tensor) -> bool:
    """Copy the boxes of a batch if each has the size of the result; return False if nothing was done."""
    rows = boxes.expand(image.shape[0], 4)
    sizes = rows[:, 2:] - rows[:, :2]
    if (
        boxes.dtype != torch.int64
        or not (sizes == torch.tensor([out.shape[-1], out.shape[-2]], dtype=torch.int64, device="cpu")).all()
    ):
        return False
    return native.crop_each(out, image, rows[:, :2].contiguous().numpy())


def resized_crop_adjoint(
    out: Tensor, grad: Tensor, box: Tensor, height: int, width: int, interpolation: str, antialias: bool
) -> None:
    def one(target: Tensor, source: Tensor, box: Sequence[int]) -> None:
        left, top, right, bottom = box
        part = layout.empty(source, bottom - top, right - left)
        resize_adjoint(part, source, None, bottom - top, right - left, interpolation, antialias, None)
        target.zero_()
        target[..., top:bottom, left:right] = part

    if out.numel():
        _each_box(out, grad, box, one)


def _each_box(out: Tensor, image: Tensor, box: Tensor, work: Callable[[Tensor, Tensor, Any], None]) -> None:
    """Call ``work(out, image, box)`` once if the samples share a box, else for each sample."""
    out, image, box, batch = out.detach(), image.detach(), box.detach(), image.shape[:-3]
    if box.numel() == 4:
        work(out, image, tuple(box.flatten().tolist()))
        return
    rows = list(zip(np.ndindex(*batch), box.expand(*batch, 4).reshape(-1, 4).tolist(), strict=True))

    def some(start: int, stop: int) -> None:
        for index, row in rows[start:stop]:
            work(out[index], image[index], tuple(row))

    _threads.split(len(rows), image.numel(), some)


def _each_region(
    out: Tensor,
    image: Tensor,
    box: Tensor | None,
    wide: Tensor,
    work: Callable[[Tensor, Tensor, Region], None],
) -> None:
    """Call ``work(out, image, region)`` for each box in ``wide``, or for all of it without a box."""
    if box is None:
        height, width = wide.shape[-2:]
        work(out.detach(), image.detach(), (0.0, 0.0, float(width), float(height)))
    else:
        _each_box(out, image, box, work)


def _positions(
    source: Sequence[int],
    region: Region,
    size: Sequence[int],
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None,
    dtype: torch.dtype,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the row and the column that the nearest filter takes for each output."""
    if interpolation == "torch_nearest":
        rows = _resampling_tables.torch_nearest(source[0], size[0])
        return rows, _resampling_tables.torch_nearest(source[1], size[1])
    if antialias:
        left, top, right, bottom = region
        has_16_bits = dtype == torch.uint16
        rows = _resampling_tables.pil_nearest(source[0], top, bottom, size[0], has_16_bits)
        return rows, _resampling_tables.pil_nearest(source[1], left, right, size[1], has_16_bits)
    y, x = _opencv_factors(source, size, scale)
    return _resampling_tables.opencv_nearest(source[0], y), _resampling_tables.opencv_nearest(source[1], x)


def _nearest(
    out: Tensor,
    image: Tensor,
    region: Region,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None,
) -> None:
    sizes = image.shape[-2:], region, out.shape[-2:]
    rows, columns = _positions(*sizes, interpolation, antialias, scale, image.dtype)
    # The pixels of interleaved frames move as a whole.
    view = layout.frames if layout.writes_interleaved(out) else layout.planes
    targets, sources = view(out), view(image)

    def some(start: int, stop: int) -> None:
        seen = sources[start:stop].take(rows, axis=1, mode="clip")
        np.take(seen, columns, axis=2, out=targets[start:stop], mode="clip")

    _threads.split(len(targets), image.numel(), some)
    if rows[-1] < 0 or columns[-1] < 0:
        target = layout.array(out)
        target[..., rows < 0, :] = 0
        target[..., columns < 0] = 0


def _scatter(out: Tensor, grad: Tensor, rows: np.ndarray, columns: np.ndarray) -> None:
    places = [_regular(taken) for taken in (rows, columns)]
    if None not in places:
        out.zero_()[..., places[0], places[1]] = grad
        return
    for axis, taken in ((-1, columns), (-2, rows)):
        size = list(grad.shape)
        size[axis] = out.shape[axis]
        (used,) = np.nonzero(taken >= 0)
        if len(used) < len(taken):
            grad, taken = grad.index_select(axis, torch.from_numpy(used)), taken[used]
        grad = grad.new_zeros(size).index_add_(axis, torch.from_numpy(taken), grad)
    out.copy_(grad)


def _regular(taken: np.ndarray) -> slice | None:
    """Return positions that are a slice, as those of a size divided by a whole number; else None."""
    step = int(taken[1] - taken[0]) if len(taken) > 1 else 1
    if step < 1 or taken[0] < 0 or (np.diff(taken) != step).any():
        return None
    return slice(int(taken[0]), int(taken[-1]) + 1, step)


def _resize_antialiased(out: Tensor, image: Tensor, region: Region, interpolation: str) -> None:
    double = image.dtype == torch.float64
    if double or _resample.pil_order() is not None:
        if _resample.by_native(out, image, region, interpolation):
            return
        sizes = image.shape[-2:], region, out.shape[-2:]
        tables = _resample.pil_tables(interpolation, *sizes, single=not double)
        if _resample.apply(out, image, tables, _resample.pil_order()):
            return
    _resample.by_pil(out, image, region, interpolation)


def _opencv_factors(
    source: Sequence[int], size: Sequence[int], scale: Sequence[float] | None
) -> tuple[float, float]:
    """Return the factors of rows and columns; OpenCV copies an image that keeps its size."""
    if scale is None or tuple(source) == tuple(size):
        return size[0] / source[0], size[1] / source[1]
    return scale[1], scale[0]


def _opencv_tables(name: str, source: Any, size: Any, scale: Sequence[float] | None) -> _resample.Tables:
    y, x = _opencv_factors(source, size, scale)
    shrinks = y <= 1 and x <= 1
    rows = _resampling_tables.opencv(name, source[0], size[0], y, shrinks)
    return rows, _resampling_tables.opencv(name, source[1], size[1], x, shrinks)


def _by_opencv(
    out: Tensor, image: Tensor, interpolation: str, interleaved: bool, scale: Sequence[float] | None = None
) -> None:
    """Run ``cv2.resize`` on each plane of a planar image, or on each HWC frame of an interleaved one."""
    height, width = out.shape[-2:]
    if interleaved and out.shape[-3] > (4 if interpolation == "area" else layout.MAX_CHANNELS):
        planar = torch.empty(out.shape, dtype=out.dtype, device="cpu")
        _by_opencv(planar, image.contiguous(), interpolation, False, scale)
        out.copy_(planar)
        return
    size = (width, height) if scale is None else None
    fx, fy = scale or (0.0, 0.0)
    view = layout.frames if interleaved else layout.planes
    sources, targets = view(image if interleaved else image.contiguous()), view(out)

    def some(start: int, stop: int) -> None:
        with _threads.opencv:
            for source, target in zip(sources[start:stop], targets[start:stop], strict=True):
                cv2.resize(source, size, target, fx, fy, INTERPOLATIONS[interpolation])

    if image.ndim == 3:  # OpenCV divides a large image itself
        some(0, len(sources))
    else:
        _threads.split(len(sources), image.numel(), some)
