"""CUDA kernels of operators that write to their arguments, with any strides, and only the changed parts."""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda import movement
from imgops.kernels.cuda._launch import blocks, kernel, launch
from imgops.kernels.cuda._tiles import batch, output_batch, plane_tile

#: The tile of a program of accumulate.
_ROWS, _COLUMNS = 8, 128


def paste_(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> Any:
    return movement.paste_onto(image, source, mask, left, top)


def paste_out(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int, out: Tensor) -> Any:
    try:
        target = output_batch(out)
    except RuntimeError:  # leading dimensions that no view can join
        return NotImplemented
    return movement.paste_into(target, batch(image), source, mask, left, top)


def accumulate(
    total: Tensor, count: Tensor, source: Tensor, weight: Tensor | None, left: int, top: int
) -> Any:
    if total.dtype not in (torch.float32, torch.float64):
        return NotImplemented
    x0, y0 = max(left, 0), max(top, 0)
    x1, y1 = min(left + source.shape[-1], total.shape[-1]), min(top + source.shape[-2], total.shape[-2])
    if x0 >= x1 or y0 >= y1:
        return None
    try:
        sums, counts = (output_batch(x)[..., y0:y1, x0:x1] for x in (total, count))
    except RuntimeError:
        return NotImplemented
    cut = (..., slice(y0 - top, y1 - top), slice(x0 - left, x1 - left))
    values = batch(source)[cut]
    shares = values if weight is None else batch(weight)[cut]
    images, channels, height, width = sums.shape
    launch(
        _accumulate_kernel,
        images * blocks((height, _ROWS), (width, _COLUMNS)),
        *(sums, counts, values, shares),
        *(channels, height, width, *sums.stride()),
        *(counts.stride(0), *counts.stride()[2:], *values.stride()),
        *(shares.stride(0), *shares.stride()[2:]),
        WEIGHTS=weight is not None,
        ROWS=_ROWS,
        COLUMNS=_COLUMNS,
    )
    return None


@kernel(tensors=4)
def _accumulate_kernel(
    total, count, values, weights, channels, height, width, total_n, total_c, total_y, total_x,
    count_n, count_y, count_x, values_n, values_c, values_y, values_x, weights_n, weights_y, weights_x,
    WEIGHTS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, _, y, first = plane_tile(tl.program_id(0), 1, height, width, ROWS, COLUMNS)
    x = first + tl.arange(0, COLUMNS)[None, :]
    inside = (y[:, None] < height) & (x < width)
    y, x = y[:, None].to(tl.int64), x.to(tl.int64)
    # Neighboring threads access neighboring columns, although the compiler does not know the step between them.
    at = tl.max_contiguous(count + (n * count_n + y * count_y) + x * count_x, [1, 2])
    before = tl.load(at, mask=inside, other=0)
    share = tl.full((1, 1), 1, count.dtype.element_ty)
    if WEIGHTS:
        share = tl.max_contiguous(weights + (n * weights_n + y * weights_y) + x * weights_x, [1, 2])
        share = tl.load(share, mask=inside, other=0)
    tl.store(at, before + share, mask=inside)
    sums = tl.max_contiguous(total + (n * total_n + y * total_y) + x * total_x, [1, 2])
    values = tl.max_contiguous(values + (n * values_n + y * values_y) + x * values_x, [1, 2])
    for _ in range(channels):
        added = tl.load(values, mask=inside, other=0)
        if WEIGHTS:
            added *= share
        tl.store(sums, tl.load(sums, mask=inside, other=0) + added, mask=inside)
        sums += total_c.to(tl.int64)
        values += values_c.to(tl.int64)
