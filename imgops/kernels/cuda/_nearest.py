"""CUDA kernel of nearest resizing, for any dtype, with tables of the selected pixels."""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda import _resampling_tables
from imgops.kernels.cuda._launch import inline, kernel, launch
from imgops.kernels.cuda._packed import Packed
from imgops.kernels.cuda._tiles import batch, has_carrier, output_batch
from imgops.kernels.cuda._words import (
    below,
    has_edges,
    image_of,
    part_of,
    place_in_output,
    programs_of,
    row_format,
    units_in,
    write,
)


def take_nearest(out: Tensor, image: Tensor, regions: Any, rule: str) -> Any:
    """Write the pixels that PIL, OpenCV or PyTorch selects in the regions of an image's rows and columns."""
    if not has_carrier(image):
        return NotImplemented
    (rows, rows_n), (columns, columns_n) = (
        _resampling_tables.nearest(r, n, image.device, rule)
        for r, n in zip(regions, out.shape[-2:], strict=True)
    )
    whole = output_batch(out)
    interleaved = image.interleaved if isinstance(image, Packed) else row_format(whole)
    dense = torch.empty_like(whole, memory_format=torch.contiguous_format) if interleaved is None else whole
    target, source = units_in(dense, bool(interleaved)), units_in(batch(image), bool(interleaved))
    programs, grid, constants = programs_of(target)
    size = 4 // constants["UNIT"]
    starts = target.tensor.data_ptr() if size == 4 else 0
    launch(
        _nearest_kernel,
        programs,
        *(target.tensor, source.tensor, rows, columns),
        *grid,
        *(
            target.planes,
            target.height,
            target.length,
            target.pixel,
            target.scale,
            *target.steps,
            *source.steps,
        ),
        *(rows_n, columns_n),
        ALIGNED=not any(n % size for n in (starts, target.length, *target.steps)),
        **constants,
    )
    if dense is not whole:
        whole.copy_(dense)
    return None


@kernel(tensors=4)
def _nearest_kernel(
    out, image, table_rows, columns, sizes, starts, across, down, rows, planes, height, length, pixel, scale,
    out_n, out_p, out_y, image_n, image_p, image_y, rows_n, columns_n,
    PACKED: tl.constexpr, ALIGNED: tl.constexpr, UNIT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    plane, first, end, block = part_of(tl.program_id(0), across, down, rows, height, COLUMNS)
    n, p = (plane // planes).to(tl.int64), (plane % planes).to(tl.int64)
    at, to = n * image_n + p * image_p, n * out_n + p * out_p
    if PACKED != "":
        at, image_p, image_y, _, _ = image_of(sizes, starts, n, pixel, scale)
        at += p * image_p
    table_rows, columns = table_rows + n * rows_n, columns + n * columns_n
    j = block + tl.arange(0, COLUMNS)[None, :]
    KIND: tl.constexpr = "words" if UNIT == 4 else ("aligned" if ALIGNED else "shifted")
    _nearest_part(
        out, image, table_rows, columns, to, at, out_y, image_y, first, end, j, False, length, pixel, KIND, ROWS
    )  # fmt: skip
    if KIND == "shifted":
        if has_edges(out, to, out_y, length, block):
            e = tl.arange(0, 4)[None, :]
            _nearest_part(
                out, image, table_rows, columns, to, at, out_y, image_y, first, end, e, True, length, pixel, "bytes", ROWS
            )  # fmt: skip


@inline
def _nearest_part(
    out, image, table_rows, columns, to, at, out_y, image_y, y, end, j, edges, length, pixel,
    KIND: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    r = tl.arange(0, ROWS)[:, None]
    target, c, written = place_in_output(out, to, y, out_y, r, j, length, edges, KIND)
    # For a missing pixel, read the bytes of the first pixel, and clear them.
    x0, kept = _taken(columns, c, length, pixel, KIND)
    if KIND != "words":
        x1, kept1 = _taken(columns, c + 1, length, pixel, KIND)
        x2, kept2 = _taken(columns, c + 2, length, pixel, KIND)
        x3, kept3 = _taken(columns, c + 3, length, pixel, KIND)
        kept |= (kept1 << 8) | (kept2 << 16) | (kept3 << 24)
    units = image.to(tl.pointer_type(tl.uint32 if KIND == "words" else tl.uint8)) + at
    for above in range(y, end, ROWS):
        exists = r < end - above
        taken = tl.load(table_rows + above + r, mask=exists, other=0)
        line = units + tl.maximum(taken, 0) * image_y.to(tl.int64)
        if KIND == "words":
            value = tl.load(tl.max_contiguous(line + x0, [1, 2]))
        else:
            low = tl.load(tl.max_contiguous(line + x0, [1, 2])).to(tl.uint16) | (
                tl.load(tl.max_contiguous(line + x1, [1, 2])).to(tl.uint16) << 8
            )
            high = tl.load(tl.max_contiguous(line + x2, [1, 2])).to(tl.uint16) | (
                tl.load(tl.max_contiguous(line + x3, [1, 2])).to(tl.uint16) << 8
            )
            value = low.to(tl.uint32) | (high.to(tl.uint32) << 16)
        write(target, tl.where(taken >= 0, value & kept, 0), exists & written, c, length, KIND)
        target += below(out_y, ROWS, KIND)


@inline
def _taken(columns, c, length, pixel, KIND: tl.constexpr):
    """Return the source unit of unit ``c`` of a row, and a bit mask that is all ones if the source exists."""
    x = c // pixel
    taken = tl.load(tl.max_contiguous(columns + x, [1, 2]), mask=(c >= 0) & (c < length), other=0)
    unit = tl.maximum(tl.maximum(taken, 0) * pixel + (c - x * pixel), 0)
    return unit, tl.where(taken >= 0, tl.full((1, 1), 0xFFFFFFFF if KIND == "words" else 0xFF, tl.uint32), 0)
