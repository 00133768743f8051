"""CUDA kernel of blend, in one pass."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda._arithmetic import convert, level
from imgops.kernels.cuda._launch import launch
from imgops.kernels.cuda._tiles import PIXELS, batch, grid_of, offset, output_batch, per_image, tile_of


def blend(out: Tensor, image: Tensor, other: Tensor, alpha: Tensor) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    target, start, end = output_batch(out), batch(image), batch(other)
    weights, step = per_image(alpha, image, 0, torch.float32)
    constants, programs = grid_of(target, 4096)
    launch(
        _blend_kernel,
        programs,
        target,
        start,
        end,
        weights,
        step,
        *target.shape,
        *target.stride(),
        *start.stride(),
        *end.stride(),
        **constants,
    )
    return None


@triton.jit
def _blend_kernel(
    out, start, end, weights, weight_n, images, channels, height, width,
    out_n, out_c, out_y, out_x, start_n, start_c, start_y, start_x, end_n, end_c, end_y, end_x,
    INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, c, y, x, inside = tile_of(
        tl.program_id(0), channels, height, width, images, INTERLEAVED, ROWS, COLUMNS
    )
    factor = tl.load(weights + n * weight_n, mask=n < images, other=0)
    a = tl.load(
        start + offset(n, c, y, x, start_n, start_c, start_y, start_x, INTERLEAVED), mask=inside, other=0
    ).to(tl.float32)
    b = tl.load(end + offset(n, c, y, x, end_n, end_c, end_y, end_x, INTERLEAVED), mask=inside, other=0).to(
        tl.float32
    )
    if out.dtype.element_ty == tl.uint8:
        value = level(a + factor * (b - a))
    else:
        value = convert(b * factor + a * (1 - factor), out.dtype.element_ty)
    tl.store(out + offset(n, c, y, x, out_n, out_c, out_y, out_x, INTERLEAVED), value, mask=inside)
