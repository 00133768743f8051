"""CUDA kernels of resize, resized_crop and their adjoints, in two passes, with a box for each image.

==========  ===================================================  ===========================================
dtype       antialias=True (PIL)                                 antialias=False (OpenCV)
==========  ===================================================  ===========================================
uint8       PIL's integers, in PIL's order of passes             OpenCV's integers; bicubic in float32
floats      float32, rounded once                                float32, rounded once
any         nearest: the pixels that PIL takes                   the pixels that OpenCV takes
==========  ===================================================  ===========================================

ATen computes float64, and resizes by factors. Tables that depend only on sizes are cached on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import PIL
import torch
from torch import Tensor

from imgops.decomposition import _resampling_weights
from imgops.kernels.cuda import _resampling_levels, _resampling_passes, _resampling_tables
from imgops.kernels.cuda._nearest import take_nearest
from imgops.kernels.cuda._packed import Packed
from imgops.kernels.cuda._resampling_tables import Region, Table
from imgops.kernels.cuda._tiles import (
    FLOATS,
    Rows,
    batch,
    is_interleaved,
    output_batch,
    per_image,
    rows_in,
)

_PIL_MAY_START_WITH_ROWS = int(PIL.__version__.partition(".")[0]) >= 13


def resize(
    out: Tensor,
    image: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None = None,
) -> Any:
    if scale is not None:
        return NotImplemented
    boxes = None if box is None else per_image(box, image, 1, torch.float64)[0].reshape(-1, 4)
    return _resize(out, image, boxes, interpolation, antialias)


def resized_crop(
    out: Tensor, image: Tensor, box: Tensor, height: int, width: int, interpolation: str, antialias: bool
) -> Any:
    every = per_image(box, image, 1, torch.int64)[0].reshape(-1, 4)
    return _resize(out, image, every, interpolation, antialias)


def resize_out(
    image: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    out: Tensor,
) -> Any:
    try:
        output_batch(out)
    except RuntimeError:  # leading dimensions that no view can join
        return NotImplemented
    return resize(out, image, box, height, width, interpolation, antialias, None)


def resize_adjoint(
    out: Tensor,
    grad: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None = None,
) -> Any:
    if scale is not None:
        return NotImplemented
    boxes = None if box is None else per_image(box, grad, 1, torch.float64)[0].reshape(-1, 4)
    return _adjoint(out, grad, boxes, interpolation, antialias)


def resized_crop_adjoint(
    out: Tensor, grad: Tensor, box: Tensor, height: int, width: int, interpolation: str, antialias: bool
) -> Any:
    every = per_image(box, grad, 1, torch.int64)[0].reshape(-1, 4)
    return _adjoint(out, grad, every, interpolation, antialias)


def _regions(size: Any, boxes: Tensor | None, sizes: Tensor | None = None) -> tuple[Region, Region]:
    return Region(size[0], boxes, 1, sizes), Region(size[1], boxes, 0, sizes)


def _resize(out: Tensor, image: Tensor, boxes: Tensor | None, name: str, antialias: bool) -> Any:
    sizes, whole = None, boxes
    if isinstance(image, Packed):  # each image has its own tables
        if name == "area" and not antialias:
            return NotImplemented
        sizes = image.sizes
        whole = torch.cat([torch.zeros_like(sizes), sizes.flip(-1)], -1)
        boxes = whole if boxes is None else boxes.expand(len(sizes), 4).contiguous()
    regions = _regions(image.shape[-2:], boxes, sizes)
    if out.numel() == 0:
        return None
    if name.endswith("nearest"):
        return take_nearest(out, image, regions, _rule(name, antialias, image.dtype))
    if image.dtype != torch.uint8 and image.dtype not in FLOATS:
        return NotImplemented
    target = output_batch(out)
    interleaved = is_interleaved(target)
    source, result = rows_in(batch(image), interleaved), rows_in(target, interleaved)
    if image.dtype != torch.uint8:
        rows, columns = _tables(name, regions, out.shape[-2:], antialias, out.device)
        _resampling_passes.resample(result, source, rows, columns, "float")
    elif antialias:
        # The order of passes depends on the part that an integer box cuts out, or otherwise on the whole image.
        decides = boxes if sizes is None or boxes.dtype == torch.int64 else whole
        order = _order(image.shape[-2:], out.shape[-2:], decides, out.device)
        _resampling_levels.resample(result, source, regions, name, order, decides)
    else:
        _resize_levels(result, source, regions, name)
    if result.tensor is not target:
        target.copy_(result.tensor)
    return None


def _order(size: Any, out_size: Any, boxes: Tensor | None, device: torch.device) -> str:
    """Return the order in which PIL resizes rows and columns."""
    if not _PIL_MAY_START_WITH_ROWS:
        return "columns first"
    if boxes is not None and boxes.dtype == torch.int64:
        return "boxes decide"
    starts_with_rows = _resampling_weights.rows_first(size[0], size[1], out_size[0], out_size[1], device)
    return "rows first" if starts_with_rows else "columns first"


def _resize_levels(out: Rows, image: Rows, regions: tuple[Region, Region], name: str) -> None:
    """Resize uint8 with OpenCV's filters."""
    device = image.tensor.device
    size = regions[0].size, regions[1].size
    out_size = out.height, out.length // out.pixel
    if name == "area" and _shrinks(size, out_size):
        is_whole = size[0] % out_size[0] == 0 and size[1] % out_size[1] == 0
        factors = size[0] // out_size[0], size[1] // out_size[1]
        rows, columns = (
            _resampling_tables.area(n, m, device, levels=is_whole)
            for n, m in zip(size, out_size, strict=True)
        )
        # OpenCV divides in single precision; it first adds fractions of pixels along rows.
        scale = float(np.float32(1) / np.float32(factors[0] * factors[1]))
        finish = ("halves" if factors == (2, 2) else "cells") if is_whole else "levels"
        _resampling_passes.resample(out, image, rows, columns, finish, scale, down_first=is_whole)
        return
    kind = "real" if name == "bicubic" else "levels"
    rows, columns = (
        _resampling_tables.opencv(name, r, n, device, kind=kind)
        for r, n in zip(regions, out_size, strict=True)
    )
    if name in ("bilinear", "area"):
        _resampling_passes.bilinear(out, image, rows, columns)
    else:
        finish = "fixed" if name == "lanczos" else "levels"
        _resampling_passes.resample(out, image, rows, columns, finish, down_first=name == "lanczos")


def _adjoint(out: Tensor, grad: Tensor, boxes: Tensor | None, name: str, antialias: bool) -> Any:
    """Apply the transpose: each pixel gathers its terms, so the order of additions never varies."""
    regions, size, device = _regions(out.shape[-2:], boxes), grad.shape[-2:], grad.device
    if grad.dtype not in FLOATS:
        return NotImplemented
    if out.numel() == 0:
        return None
    if name.endswith("nearest"):
        rule = _rule(name, antialias, grad.dtype)
        tables = tuple(_of_taken(r, n, device, rule) for r, n in zip(regions, size, strict=True))
    else:
        tables = _tables(name, regions, size, antialias, device)
    rows, columns = (t.transposed(n) for t, n in zip(tables, out.shape[-2:], strict=True))
    target = output_batch(out)
    interleaved = is_interleaved(target)
    source, result = rows_in(batch(grad), interleaved), rows_in(target, interleaved)
    _resampling_passes.resample(result, source, rows, columns, "float")
    return None


def _shrinks(source: Any, size: Any) -> bool:
    return bool(source[0] >= size[0] and source[1] >= size[1])


def _tables(name: str, regions: Any, size: Any, antialias: bool, device: torch.device) -> tuple[Table, ...]:
    """Return the tables of both axes in single precision."""
    axes = list(zip(regions, size, strict=True))
    if antialias:
        return tuple(_resampling_tables.pil(name, r, n, device) for r, n in axes)
    if name == "area" and _shrinks([r.size for r in regions], size):
        return tuple(_resampling_tables.area(r.size, n, device, levels=False) for r, n in axes)
    return tuple(_resampling_tables.opencv(name, r, n, device, kind="bands") for r, n in axes)


def _rule(name: str, antialias: bool, dtype: torch.dtype) -> str:
    """Return the library whose rule selects the nearest pixel; PIL has another one in mode I;16."""
    if name == "torch_nearest":
        return "torch"
    if not antialias:
        return "opencv"
    return "pil_16_bits" if dtype == torch.uint16 else "pil"


def _of_taken(region: Region, out: int, device: torch.device, rule: str) -> Table:
    """Return the nearest filter as a table with a weight of 1.

    At the end of the image a box without extent takes no pixel.
    """
    index, step = _resampling_tables.nearest(region, out, device, rule)
    taken = index >= 0
    first = torch.where(taken, index, region.size)
    weight = torch.ones((1, 1, out), dtype=torch.float32, device=device)
    return Table(first, taken.to(torch.int32), weight, step, 0, 1)
