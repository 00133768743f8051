"""OpenCV's "area" interpolation on uint8, for images that shrink.

The results are means of 2 x 2 pixels, of cells of whole pixels, or of cells with parts of pixels.
"""

from __future__ import annotations

import numpy as np
import torch
import triton
import triton.language as tl
from torch import Tensor

from imgops.decomposition import _resampling_filters
from imgops.kernels.cuda._arithmetic import round_half_even
from imgops.kernels.cuda._launch import launch
from imgops.kernels.cuda._resampling_tables import move_tables
from imgops.kernels.cuda._tiles import grid_of, offset, tile_of


def levels(out: Tensor, image: Tensor) -> None:
    size, source = out.shape[-2:], image.shape[-2:]
    whole = source[0] % size[0] == 0 and source[1] % size[1] == 0
    factors = source[0] // size[0], source[1] // size[1]
    arrays = [a for n, m in zip(source, size, strict=True) for a in _cells(n, m)]
    tables = move_tables([torch.from_numpy(a) for a in arrays], image.device)
    kind = "parts"
    if whole:
        kind = "halves" if factors == (2, 2) else "cells"
    constants, programs = grid_of(out, 1024, 256)
    launch(
        _area_kernel,
        programs,
        out,
        image,
        *out.shape,
        *out.stride(),
        *image.stride(),
        *tables,
        tables[2].shape[0],
        tables[5].shape[0],
        float(np.float32(1) / np.float32(factors[0] * factors[1])),
        KIND=kind,
        **constants,
    )


def _cells(size: int, out: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each cell's first pixel, number of pixels and, in float32, their shares ``(taps, out)``."""
    x, scale = torch.arange(out, dtype=torch.float64), torch.tensor(size / out, dtype=torch.float64)
    first, last, head, tail, cell = (v.numpy() for v in _resampling_filters.area_cells(size, scale, x))
    start = first - (head > 0)
    count = (last - start + (tail > 0)).astype(np.int64)
    position = start + np.arange(max(int(count.max()), 1))[:, None]
    share = np.where((position >= first) & (position < last), 1.0, 0.0)
    share = np.where(position == first - 1, head, share)
    share = np.where(position == last, tail, share)
    return start.astype(np.int32), count.astype(np.int32), (share / cell).astype(np.float32)


@triton.jit(do_not_specialize=["tall", "wide", "scale"])
def _area_kernel(
    out, image, images, channels, height, width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x,
    y_first, y_count, y_share, x_first, x_count, x_share, tall, wide, scale,
    KIND: tl.constexpr, INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, c, y, x, inside = tile_of(
        tl.program_id(0), channels, height, width, images, INTERLEAVED, ROWS, COLUMNS
    )
    has_row, has_column = n < images, inside
    top, left = tl.load(y_first + y, mask=has_row, other=0), tl.load(x_first + x, mask=has_column, other=0)
    rows, columns = (
        tl.load(y_count + y, mask=has_row, other=0),
        tl.load(x_count + x, mask=has_column, other=0),
    )
    total = tl.full((ROWS, COLUMNS), 0, tl.float32 if KIND == "parts" else tl.int32)
    for t in range(tall):
        sums = tl.full((ROWS, COLUMNS), 0, total.dtype)
        for k in range(wide):
            use = inside & (t < rows) & (k < columns)
            at = offset(n, c, top + t, left + k, image_n, image_c, image_y, image_x, INTERLEAVED)
            pixel = tl.load(image + at, mask=use, other=0).to(total.dtype)
            if KIND == "parts":  # in OpenCV's order, in single precision
                sums += pixel * tl.load(x_share + k * width + x, mask=use, other=0)
            else:
                sums += pixel
        if KIND == "parts":
            total += sums * tl.load(y_share + t * height + y, mask=has_row & (t < rows), other=0)
        else:
            total += sums
    if KIND == "halves":
        value = (total + 2) >> 2
    elif KIND == "cells":
        value = round_half_even(total.to(tl.float32) * scale).to(tl.int32)
    else:
        value = round_half_even(total).to(tl.int32)
    value = tl.minimum(tl.maximum(value, 0), 255).to(tl.uint8)
    tl.store(out + offset(n, c, y, x, out_n, out_c, out_y, out_x, INTERLEAVED), value, mask=inside)
