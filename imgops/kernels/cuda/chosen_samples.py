"""CUDA kernels of transforms of the chosen samples; the other samples are copied in the same pass."""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda import _color_steps
from imgops.kernels.cuda._arithmetic import convert
from imgops.kernels.cuda._launch import kernel, launch
from imgops.kernels.cuda._tiles import PIXELS, per_image
from imgops.kernels.cuda._values import values_in, values_of
from imgops.kernels.cuda._words import is_interleaved
from imgops.kernels.cuda.movement import mirror

#: The number of pixels of a program.
_BLOCK = 2048


def flip(out: Tensor, image: Tensor, chosen: Tensor, dim: int) -> Any:
    flags, step = per_image(chosen, image, 0, torch.uint8)
    return mirror(out, image, flags, step, dim == -1, dim != -1)


def grayscale(out: Tensor, image: Tensor, chosen: Tensor) -> Any:
    if image.dtype not in PIXELS or image.shape[-3] != 3:
        return NotImplemented
    target, (source,), vector = values_of(out, image)
    flags, step = per_image(chosen, image, 0, torch.uint8)
    pixels = target.shape[-2] * target.shape[-1]
    blocks = -(-pixels // _BLOCK)
    launch(
        _gray_kernel,
        target.shape[0] * blocks,
        *(target, source, flags, pixels, blocks, step),
        INTERLEAVED=is_interleaved(out),
        VECTOR=1 if is_interleaved(out) or pixels % vector else vector,
        BLOCK=_BLOCK,
    )
    return None


@kernel(tensors=3)
def _gray_kernel(
    out, image, chosen, pixels, blocks, chosen_n,
    INTERLEAVED: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    n, start, inside = values_in(tl.program_id(0), pixels, blocks, VECTOR, BLOCK)
    i = tl.arange(0, BLOCK)
    if INTERLEAVED:
        first, step, i = start * 3, tl.full((), 1, tl.int64), i * 3
    else:
        first, step = start + n * 2 * pixels, pixels.to(tl.int64)
    if VECTOR > 1:
        first, step = tl.multiple_of(first, VECTOR), tl.multiple_of(step, VECTOR)
    r = tl.load(image + first + i, mask=inside, other=0)
    g = tl.load(image + (first + step) + i, mask=inside, other=0)
    b = tl.load(image + (first + 2 * step) + i, mask=inside, other=0)
    if tl.load(chosen + n * chosen_n) != 0:
        gray = _color_steps.luma(r.to(tl.float32), g.to(tl.float32), b.to(tl.float32), True, LEVELS)
        if LEVELS:
            value = gray.to(tl.uint8)
        else:
            value = convert(gray, out.dtype.element_ty)
        r, g, b = value, value, value
    tl.store(out + first + i, r, mask=inside)
    tl.store(out + (first + step) + i, g, mask=inside)
    tl.store(out + (first + 2 * step) + i, b, mask=inside)
