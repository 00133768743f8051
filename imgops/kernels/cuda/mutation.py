"""CUDA kernels of the operators that write to their arguments, in any strides and only where they change."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda import movement
from imgops.kernels.cuda._launch import launch
from imgops.kernels.cuda._tiles import batch, grid_of, offset, output_batch, tile_of


def paste_(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> Any:
    return movement.paste_onto(image, source, mask, left, top)


def paste_out(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int, out: Tensor) -> Any:
    try:
        target = output_batch(out)
    except RuntimeError:  # leading dimensions that no view can join
        return NotImplemented
    return movement._paste(target, batch(image), source, mask, left, top)


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
    for target, parts, multiplies in ((sums, values, weight is not None), (counts, shares, False)):
        constants, programs = grid_of(target, 4096)
        launch(
            _accumulate_kernel,
            programs,
            target,
            parts,
            shares,
            *target.shape,
            *target.stride(),
            *parts.stride(),
            shares.stride(0),
            *shares.stride()[-2:],
            MULTIPLIES=multiplies,
            COUNTS=target is counts and weight is None,
            **constants,
        )
    return None


@triton.jit
def _accumulate_kernel(
    total, values, weight, images, channels, height, width,
    total_n, total_c, total_y, total_x, values_n, values_c, values_y, values_x, weight_n, weight_y, weight_x,
    MULTIPLIES: tl.constexpr, COUNTS: tl.constexpr,
    INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, c, y, x, inside = tile_of(
        tl.program_id(0), channels, height, width, images, INTERLEAVED, ROWS, COLUMNS
    )
    at = total + offset(n, c, y, x, total_n, total_c, total_y, total_x, INTERLEAVED)
    added = tl.full((1, 1), 1, total.dtype.element_ty)
    if not COUNTS:
        added = tl.load(
            values + offset(n, c, y, x, values_n, values_c, values_y, values_x, INTERLEAVED),
            mask=inside,
            other=0,
        )
    if MULTIPLIES:
        added *= tl.load(
            weight + offset(n, c, y, x, weight_n, 0, weight_y, weight_x, INTERLEAVED), mask=inside, other=0
        )
    tl.store(at, tl.load(at, mask=inside, other=0) + added, mask=inside)
