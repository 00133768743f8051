"""CUDA kernels of resize, resized_crop and their adjoints: both passes in one kernel, a box for each image.

A program makes a tile of the output. It goes over the source rows of the tile, resamples each along x, rounds
it as PIL does between its passes, and adds it to every row of the tile that it belongs to. The intermediate
image is never stored, not even in shared memory, and each pixel of the source is read from memory about once.

==========  ===================================================  ===========================================
dtype       antialias=True (PIL)                                 antialias=False (OpenCV)
==========  ===================================================  ===========================================
uint8       PIL's integers, in PIL's order of passes             OpenCV's integers; bicubic in float32
floats      float32, rounded once                                float32, rounded once
any         nearest: the pixels that PIL takes                   the pixels that OpenCV takes
==========  ===================================================  ===========================================

float64 is left to ATen.
"""

from __future__ import annotations

from typing import Any

import PIL
import torch
import triton
import triton.language as tl
from torch import Tensor

from imgops import _layout
from imgops.decomposition import _resampling_weights
from imgops.kernels.cpu import _resampling_tables as host_tables
from imgops.kernels.cuda import _area_resize, _opencv_resize, _resampling_levels, _resampling_tables
from imgops.kernels.cuda._arithmetic import convert
from imgops.kernels.cuda._launch import blocks, inline, launch, tile
from imgops.kernels.cuda._packed import Packed
from imgops.kernels.cuda._resampling_tables import Region, Table
from imgops.kernels.cuda._tiles import (
    FLOATS,
    batch,
    carrier,
    grid_of,
    has_carrier,
    is_interleaved,
    offset,
    output_batch,
    per_image,
    place_of,
    rows_in,
    tile_of,
)

_PIL_MAY_START_WITH_ROWS = int(PIL.__version__.partition(".")[0]) >= 13
#: Rows of a tile: more of them resample fewer rows twice, but multiply by more zeros.
_ROWS = 16


def resize(
    out: Tensor,
    image: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
) -> Any:
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
    return resize(out, image, box, height, width, interpolation, antialias)


def resize_adjoint(
    out: Tensor,
    grad: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
) -> Any:
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
    sizes, size = None, out.shape[-2:]
    if isinstance(image, Packed):  # each image has tables of its own
        if name == "area" and not antialias:
            return NotImplemented
        sizes = image.sizes
        whole = torch.cat([torch.zeros_like(sizes), sizes.flip(-1)], -1)
        boxes = whole if boxes is None else boxes.expand(len(sizes), 4).contiguous()
    regions = _regions(image.shape[-2:], boxes, sizes)
    if out.numel() == 0:
        return None
    if name == "nearest":
        return _take_nearest(out, image, regions, antialias)
    levels = image.dtype == torch.uint8
    if not levels and image.dtype not in FLOATS:
        return NotImplemented
    target, source, device = output_batch(out), batch(image), image.device
    if antialias and levels:
        # The order of passes depends on what a box of integers cuts out, or else on the whole image.
        decides = boxes if sizes is None or boxes.dtype == torch.int64 else whole
        order = "columns first"
        if _PIL_MAY_START_WITH_ROWS:
            if decides is not None and decides.dtype == torch.int64:
                order = "boxes decide"
            elif _resampling_weights.rows_first(*image.shape[-2:], *size, image.device):
                order = "rows first"
        interleaved = is_interleaved(target)
        _resampling_levels.resample(
            rows_in(target, interleaved), rows_in(source, interleaved), regions, name, order, decides
        )
    elif antialias:
        rows, columns = (
            _resampling_tables.pil(name, r, n, device) for r, n in zip(regions, size, strict=True)
        )
        _resample(target, source, rows, columns)
    elif name == "area" and _shrinks(image.shape[-2:], size):
        if levels:
            _area_resize.levels(target, source)
        else:
            _resample(target, source, *_area_tables(image.shape[-2:], size, device))
    elif levels:
        kind = "real" if name == "bicubic" else "levels"
        rows, columns = (
            _resampling_tables.opencv(name, r, n, device, kind=kind)
            for r, n in zip(regions, size, strict=True)
        )
        _opencv_resize.levels(target, source, rows, columns, boxes, name)
    else:
        _resample(target, source, *_bands(name, regions, size, device))
    return None


def _adjoint(out: Tensor, grad: Tensor, boxes: Tensor | None, name: str, antialias: bool) -> Any:
    """Apply the transpose: each pixel gathers its terms, so that the order of additions never varies."""
    regions, size, device = _regions(out.shape[-2:], boxes), grad.shape[-2:], grad.device
    if grad.dtype not in FLOATS:
        return NotImplemented
    if out.numel() == 0:
        return None
    if name == "nearest":
        tables = tuple(_of_taken(r, n, device, antialias) for r, n in zip(regions, size, strict=True))
    elif antialias:
        tables = tuple(
            _resampling_tables.pil(name, r, n, device)
            for r, n in zip(regions, size, strict=True)
        )
    elif name == "area" and _shrinks(out.shape[-2:], size):
        tables = _area_tables(out.shape[-2:], size, device)
    else:
        tables = _bands(name, regions, size, device)
    rows, columns = (t.transposed(n) for t, n in zip(tables, out.shape[-2:], strict=True))
    _resample(output_batch(out), batch(grad), rows, columns)
    return None


def _shrinks(source: Any, size: Any) -> bool:
    return bool(source[0] >= size[0] and source[1] >= size[1])


def _area_tables(source: Any, size: Any, device: torch.device) -> tuple[Table, Table]:
    rows, columns = (
        _resampling_tables.of_host(host_tables.opencv("area", n, m, True), device)
        for n, m in zip(source, size, strict=True)
    )
    return rows, columns


def _bands(name: str, regions: Any, size: Any, device: torch.device) -> tuple[Table, Table]:
    rows, columns = (
        _resampling_tables.opencv(name, r, n, device, kind="bands")
        for r, n in zip(regions, size, strict=True)
    )
    return rows, columns


def _of_taken(region: Region, out: int, device: torch.device, by_pil: bool) -> Table:
    """Return the nearest filter as a table with a weight of 1.

    At the end of the image a box without extent takes no pixel.
    """
    index, step = _resampling_tables.nearest(region, out, device, by_pil=by_pil)
    taken = index >= 0
    first = torch.where(taken, index, region.size)
    weight = torch.ones((1, 1, out), dtype=torch.float32, device=device)
    return Table(first, taken.to(torch.int32), weight, step, 0)


# -- the two passes --------------------------------------------------------------------------------


def _resample(
    out: Tensor,
    image: Tensor,
    rows: Table,
    columns: Table,
    boxes: Tensor | None = None,
) -> None:
    """Apply two tables."""
    images, channels, height, width = out.shape
    _, across = tile(width * channels, 1, 128)
    order = "columns first"
    if image.dtype == torch.uint8 and _PIL_MAY_START_WITH_ROWS:
        if boxes is not None and boxes.dtype == torch.int64:
            order = "boxes decide"
        elif _resampling_weights.rows_first(image.shape[-2], image.shape[-1], height, width, image.device):
            order = "rows first"
    launch(
        _resample_kernel,
        images * blocks((height, _ROWS), (width * channels, across)),
        out,
        image,
        *(channels, height, width),
        *out.stride(),
        *image.stride(),
        *rows.arguments,
        *columns.arguments,
        rows.first if boxes is None else boxes,
        4 if boxes is not None and len(boxes) > 1 else 0,
        ORDER=order,
        TRANSPOSED=rows.start is not None,
        INTERLEAVED=_layout.is_interleaved(out),
        ROWS=_ROWS,
        COLUMNS=across,
    )


@inline
def _box_decides(box, height, width):
    """Return whether PIL resizes the rows of a box first."""
    lost_rows = tl.load(box + 3) - tl.load(box + 1) - height
    lost_columns = tl.load(box + 2) - tl.load(box) - width
    return (lost_rows > 0) & (lost_rows > 2 * lost_columns)


@inline
def _between(total):
    """Round an integer sum to a level, as PIL does."""
    return tl.minimum(tl.maximum(total >> 22, 0), 255)


@inline
def _sum_rows_first(
    acc, source, line_step, image_x, y, top, tall, y_weight, y_width, x, wide, x_weight, x_width, taps,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Add to ``acc`` the horizontal pass over columns that were summed and rounded first."""
    most = tl.max(tall, 0)
    tile = source[None, :] + top[:, None] * line_step
    for k in range(taps):
        use = k < wide
        middle = tl.full((ROWS, COLUMNS), 1 << 21, tl.int32)
        for t in range(most):
            has = t < tall
            share = tl.load(y_weight + t * y_width + y, mask=has, other=0).to(tl.int32)
            at = tile + (t * line_step + k * image_x)
            middle += share[:, None] * tl.load(at, mask=has[:, None] & use[None, :], other=0).to(tl.int32)
        share = tl.load(x_weight + k * x_width + x, mask=use, other=0).to(tl.int32)
        acc += (share[None, :] * _between(middle)).to(acc.dtype)
    return acc


@triton.jit(do_not_specialize=["y_width", "x_width"])
def _resample_kernel(
    out, image, channels, height, width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x,
    y_first, y_count, y_weight, y_start, y_n, y_weight_n, y_width, y_start_n,
    x_first, x_count, x_weight, x_start, x_n, x_weight_n, x_width, x_start_n,
    boxes, box_n, sizes, starts,
    PACKED: tl.constexpr, ORDER: tl.constexpr, TRANSPOSED: tl.constexpr, INTERLEAVED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    length = width * channels  # the channels of a frame are interleaved, or follow one another
    across, down = (length + COLUMNS - 1) // COLUMNS, (height + ROWS - 1) // ROWS
    program = tl.program_id(0)
    n = (program // (across * down)).to(tl.int64)
    y = ((program // across) % down) * ROWS + tl.arange(0, ROWS)
    j = (program % across) * COLUMNS + tl.arange(0, COLUMNS)
    if INTERLEAVED:
        x, c = j // channels, j % channels
    else:
        x, c = j % width, j // width
    has_row, has_column = y < height, j < length
    # The tables of this image. Rows and columns outside of the output have no pixels.
    top = tl.load(y_first + n * y_n + y, mask=has_row, other=0)
    tall = tl.load(y_count + n * y_n + y, mask=has_row, other=0)
    left = tl.load(x_first + n * x_n + x, mask=has_column, other=0)
    wide = tl.load(x_count + n * x_n + x, mask=has_column, other=0)
    y_weight, x_weight = y_weight + n * y_weight_n, x_weight + n * x_weight_n
    y_start, x_start = y_start + n * y_start_n, x_start + n * x_start_n
    pixel, line_step, plane, start = n * 0 + image_x, n * 0 + image_y, n * 0 + image_c, n * image_n
    if PACKED != "":
        start, plane, line_step, pixel, _, _ = place_of(sizes, starts, n, n >= 0, channels, PACKED)
    source = image + start + c.to(tl.int64) * plane + left.to(tl.int64) * pixel
    taps = tl.max(wide, 0)
    if LEVELS:
        acc = tl.full((ROWS, COLUMNS), 1 << 21, tl.int32)
    else:
        acc = tl.full((ROWS, COLUMNS), 0, tl.float32)
    starts_with_rows = ORDER == "rows first"
    if ORDER == "boxes decide":
        starts_with_rows = _box_decides(boxes + n * box_n, height, width)
    if starts_with_rows:
        acc = _sum_rows_first(
            acc, source, line_step, pixel, y, top, tall, y_weight, y_width, x, wide, x_weight, x_width, taps,
            ROWS, COLUMNS,
        )  # fmt: skip
    else:
        begin = tl.min(tl.where(tall > 0, top, 2147483647), 0)
        end = tl.max(top + tall, 0)
        for r in range(begin, end):
            line = source + r * line_step
            if LEVELS:
                middle = tl.full((COLUMNS,), 1 << 21, tl.int32)
            else:
                middle = tl.full((COLUMNS,), 0, tl.float32)
            for k in range(taps):
                use = k < wide
                value_at = tl.load(line + k * pixel, mask=use, other=0).to(middle.dtype)
                if TRANSPOSED:  # the share that output left + k gave to this pixel
                    tap = x - tl.load(x_start + left + k, mask=use, other=0)
                    middle += value_at * tl.load(x_weight + tap * x_width + left + k, mask=use, other=0)
                else:
                    middle += value_at * tl.load(x_weight + k * x_width + x, mask=use, other=0)
            has = (r >= top) & (r < top + tall)
            if TRANSPOSED:
                share = tl.load(y_weight + (y - tl.load(y_start + r)) * y_width + r, mask=has, other=0)
            else:
                share = tl.load(y_weight + (r - top) * y_width + y, mask=has, other=0)
            if LEVELS:
                acc += share[:, None] * _between(middle)[None, :]
            else:  # 0 times infinity would be NaN
                acc += tl.where(has[:, None], share[:, None] * middle[None, :], 0.0)
    if LEVELS:
        value = _between(acc).to(tl.uint8)
    else:
        value = convert(acc, out.dtype.element_ty)
    to = out + n * out_n + c.to(tl.int64) * out_c + x.to(tl.int64) * out_x
    to = to[None, :] + y[:, None].to(tl.int64) * out_y
    tl.store(to, value, mask=has_row[:, None] & has_column[None, :])


# -- nearest ---------------------------------------------------------------------------------------


def _take_nearest(out: Tensor, image: Tensor, regions: Any, by_pil: bool) -> Any:
    if not has_carrier(image):
        return NotImplemented
    target, source = carrier(output_batch(out)), carrier(batch(image))
    (rows, rows_step), (columns, columns_step) = (
        _resampling_tables.nearest(r, n, image.device, by_pil=by_pil)
        for r, n in zip(regions, out.shape[-2:], strict=True)
    )
    constants, programs = grid_of(target, 4096)
    launch(
        _nearest_kernel,
        programs,
        target,
        source,
        rows,
        columns,
        rows_step,
        columns_step,
        *target.shape,
        *target.stride(),
        *source.stride(),
        **constants,
    )
    return None


@triton.jit
def _nearest_kernel(
    out, image, rows, columns, rows_n, columns_n, images, channels, height, width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x, sizes, starts,
    PACKED: tl.constexpr, INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, c, y, x, inside = tile_of(
        tl.program_id(0), channels, height, width, images, INTERLEAVED, ROWS, COLUMNS
    )
    place = n
    if PACKED != "":
        place, image_c, image_y, image_x, _, _ = place_of(sizes, starts, n, n < images, channels, PACKED)
        image_n = 1
    at_y = tl.load(rows + n * rows_n + y, mask=n < images, other=0)
    at_x = tl.load(columns + n * columns_n + x, mask=inside, other=0)
    taken = inside & (at_y >= 0) & (at_x >= 0)
    at = image + offset(place, c, at_y, at_x, image_n, image_c, image_y, image_x, INTERLEAVED)
    value = tl.load(at, mask=taken, other=0)
    tl.store(out + offset(n, c, y, x, out_n, out_c, out_y, out_x, INTERLEAVED), value, mask=inside)
