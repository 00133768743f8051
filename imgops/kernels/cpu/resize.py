"""CPU kernels of resize and its adjoint.

============  ==========================================  =====================================
dtype         antialias=True (PIL)                        antialias=False (OpenCV)
============  ==========================================  =====================================
uint8         PIL's integers: native, or PIL itself       ``cv2.resize``
float32       PIL's weights: native, or PIL's mode F      ``cv2.resize``
float64       PIL's weights in double, by ATen or native  OpenCV's weights in double, likewise
float16       as float32, rounded once                    as float32, rounded once
any, nearest  PIL's positions                             OpenCV's positions
============  ==========================================  =====================================

PIL and OpenCV have no true float64 path (PIL has none, OpenCV keeps single-precision weights).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image
from torch import Tensor

from imgops import _check, _layout
from imgops.kernels.cpu import _tables, _threads
from imgops.kernels.cpu.compose import pil_view

try:
    from imgops.kernels.cpu._native import resample as native
except ImportError:  # built without a compiler: PIL and ATen do the work
    native = None

_OPENCV = {
    "nearest": cv2.INTER_NEAREST,
    "bilinear": cv2.INTER_LINEAR,
    "bicubic": cv2.INTER_CUBIC,
    "area": cv2.INTER_AREA,
    "lanczos": cv2.INTER_LANCZOS4,
}
_PIL = {
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "hamming": Image.Resampling.HAMMING,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
_KIND = {torch.uint8: "B", torch.float32: "f", torch.float64: "d"}

Tables = tuple[_tables.Table | None, _tables.Table | None]  # rows, columns; None is the identity
Region = tuple[float, float, float, float]


def resize(
    out: Tensor,
    image: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
) -> None:
    if out.numel() == 0:
        return
    if interpolation == "nearest":
        positions = _pil_positions if antialias else _opencv_positions
        _each_region(
            out, image, box, lambda o, i, region: _gather(o, i, *positions(i, region, height, width))
        )
    elif image.dtype in (torch.float16, torch.bfloat16):
        single = _layout.empty(image, height, width).float()
        resize(single, image.detach().float(), box, height, width, interpolation, antialias)
        out.copy_(single)
    elif antialias:
        _each_region(out, image, box, lambda o, i, region: _antialiased(o, i, region, interpolation))
    elif image.dtype == torch.float64:
        tables = _opencv_tables(interpolation, tuple(image.shape[-2:]), (height, width))
        _apply(out, _layout.dense(image), tables)
    else:
        _by_opencv(out, image, interpolation)


def resize_adjoint(
    out: Tensor,
    grad: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
) -> None:
    """The transpose of ``resize`` from ``(height, width)``, from the same tables."""
    if out.numel() == 0:
        return
    if grad.dtype in (torch.float16, torch.bfloat16):
        single = _layout.empty(grad, height, width).float()
        resize_adjoint(single, grad.detach().float(), box, height, width, interpolation, antialias)
        out.copy_(single)
        return

    def one(o: Tensor, g: Tensor, region: Region) -> None:
        size = tuple(g.shape[-2:])
        if interpolation == "nearest":
            positions = _pil_positions if antialias else _opencv_positions
            _scatter(o, g, *positions(o, region, *size))
            return
        if antialias:
            rows, columns = _pil_tables(interpolation, o, region, size)
        else:
            rows, columns = _opencv_tables(interpolation, (height, width), size)
        _apply(o, _layout.dense(g), (rows and rows.transpose(height), columns and columns.transpose(width)))

    _each_region(out, grad, box, one, wide=out)


def _each_region(
    out: Tensor,
    image: Tensor,
    box: Tensor | None,
    work: Callable[[Tensor, Tensor, Region], None],
    wide: Tensor | None = None,
) -> None:
    """Call ``work(out, image, region)``: once for all samples of one box, else sample by sample.

    Every box is checked before the first pixel is written. ``wide`` is the tensor that the boxes lie in.
    """
    wide = image if wide is None else wide
    height, width = wide.shape[-2:]
    if box is None:
        work(out.detach(), image.detach(), (0.0, 0.0, float(width), float(height)))
        return
    regions = box.detach().reshape(-1, 4).tolist()
    for region in regions:
        check_region("resize", region, height, width)
    if len(regions) == 1:
        work(out.detach(), image.detach(), tuple(regions[0]))
        return
    batch = image.shape[:-3]
    each = box.detach().expand(*batch, 4).reshape(-1, 4).tolist()
    for i, region in enumerate(each):
        index = np.unravel_index(i, batch)
        work(out.detach()[index], image.detach()[index], tuple(region))


def check_region(op: str, region: Any, height: int, width: int) -> None:
    """PIL's rules for a box; a NaN breaks them."""
    left, top, right, bottom = region
    if not (0 <= left <= right <= width and 0 <= top <= bottom <= height):
        must = f"box must satisfy 0 <= left <= right <= {width} and 0 <= top <= bottom <= {height}"
        _check.fail(ValueError, op, must, tuple(region))


def _pil_positions(
    image: Tensor, region: Region, height: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    left, top, right, bottom = region
    rows = _tables.pil_nearest(image.shape[-2], top, bottom, height)
    return rows, _tables.pil_nearest(image.shape[-1], left, right, width)


def _opencv_positions(
    image: Tensor, region: Region, height: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    rows = _tables.opencv_nearest(image.shape[-2], height)
    return rows, _tables.opencv_nearest(image.shape[-1], width)


def _gather(out: Tensor, image: Tensor, rows: np.ndarray, columns: np.ndarray) -> None:
    """Copy the pixels at ``rows`` and ``columns``: whole rows first, then within the fewer rows."""
    target, source = _layout.array(out), _layout.array(image)
    np.take(source.take(rows, axis=-2), columns, axis=-1, out=target, mode="clip")


def _scatter(out: Tensor, grad: Tensor, rows: np.ndarray, columns: np.ndarray) -> None:
    narrow = grad.new_zeros((*grad.shape[:-1], out.shape[-1]))
    narrow.index_add_(-1, torch.from_numpy(columns), grad)
    out.zero_().index_add_(-2, torch.from_numpy(rows), narrow)


def _pil_tables(name: str, wide: Tensor, region: Region, size: tuple[int, ...]) -> Tables:
    left, top, right, bottom = region
    single = wide.dtype != torch.float64
    height, width = wide.shape[-2:]
    rows = _tables.pil(name, height, top, bottom, size[0], single=single)
    return rows, _tables.pil(name, width, left, right, size[1], single=single)


def _opencv_tables(name: str, source: tuple[int, ...], size: tuple[int, ...]) -> Tables:
    shrinks = source[0] >= size[0] and source[1] >= size[1]
    rows = _tables.opencv(name, source[0], size[0], shrinks)
    return rows, _tables.opencv(name, source[1], size[1], shrinks)


def _antialiased(out: Tensor, image: Tensor, region: Region, interpolation: str) -> None:
    image = _layout.dense(image)
    if native is None and image.dtype != torch.float64:
        _by_pil(out, image, region, interpolation)
        return
    tables = _pil_tables(interpolation, image, region, tuple(out.shape[-2:]))
    if not _apply(out, image, tables):
        _by_pil(out, image, region, interpolation)


def _by_pil(out: Tensor, image: Tensor, region: Region, interpolation: str) -> None:
    """PIL itself, plane by plane."""
    height, width = out.shape[-2:]
    target = torch.empty(out.shape, dtype=out.dtype)
    sources, targets = _layout.planes(image.contiguous()), _layout.planes(target)
    eight_bit = out.dtype == torch.uint8

    def work(start: int, stop: int) -> None:
        for source, plane in zip(sources[start:stop], targets[start:stop], strict=True):
            view = pil_view(source) if eight_bit else Image.fromarray(source)
            resized = view.resize((width, height), _PIL[interpolation], box=region)
            plane[...] = np.asarray(resized)

    _threads.split(len(sources), image.numel(), work)
    out.copy_(target)


def _apply(out: Tensor, image: Tensor, tables: Tables) -> bool:
    """Multiply by a table along each axis; False where only PIL can give PIL's bits."""
    if tables == (None, None):
        out.copy_(image)
        return True
    if native is None:
        if image.dtype == torch.uint8:
            return False
        _multiply(out, image, tables)
        return True
    interleaved = _layout.is_interleaved(out)
    if _layout.is_interleaved(image) != interleaved:
        image = image.movedim(-3, -1).contiguous().movedim(-1, -3) if interleaved else image.contiguous()
    channels = out.shape[-3] if interleaved else 1
    height, width = image.shape[-2:]
    pixels = height * width * channels
    planes = image.numel() // pixels
    steps = (pixels * image.element_size(), out[..., 0, 0].numel() // planes and out.numel() // planes * out.element_size())
    pointers = tuple(_pointers(t) for t in tables)
    done = [True]

    def work(start: int, stop: int) -> None:
        ok = native(
            _KIND[out.dtype],
            out.data_ptr() + start * steps[1],
            image.data_ptr() + start * steps[0],
            stop - start,
            height,
            width,
            channels,
            *pointers,
            True,
        )
        done[0] = done[0] and ok

    _threads.split(planes, image.numel(), work)
    return done[0]


def _pointers(table: _tables.Table | None) -> tuple[int, int, int, int, int]:
    if table is None:
        return (0, 0, 0, 0, 0)
    return (
        table.start.ctypes.data,
        table.count.ctypes.data,
        table.weight.ctypes.data,
        *table.weight.shape,
    )


def _multiply(out: Tensor, image: Tensor, tables: Tables) -> None:
    """The same products by ATen, as dense matrices."""
    result = image
    for axis, table in zip((-2, -1), tables, strict=True):
        if table is not None:
            matrix = torch.from_numpy(table.matrix(image.shape[axis])).to(image.dtype)
            result = matrix @ result if axis == -2 else result @ matrix.T
    out.copy_(result)


def _by_opencv(out: Tensor, image: Tensor, interpolation: str) -> None:
    """``cv2.resize`` of each plane of a planar image, of each HWC frame of an interleaved one."""
    _threads.follow_torch()
    height, width = out.shape[-2:]
    interleaved = _layout.is_interleaved(out)
    if interleaved and not _takes_channels(interpolation, out.shape[-3]):
        planar = torch.empty(out.shape, dtype=out.dtype)
        _by_opencv(planar, image.contiguous(), interpolation)
        out.copy_(planar)
        return
    view = _layout.frames if interleaved else _layout.planes
    sources = view(image if interleaved else image.contiguous())
    for source, target in zip(sources, view(out), strict=True):
        cv2.resize(source, (width, height), dst=target, interpolation=_OPENCV[interpolation])


def _takes_channels(interpolation: str, channels: int) -> bool:
    """Whether OpenCV resizes a frame of so many channels in one call."""
    return channels <= (4 if interpolation == "area" else 128)
