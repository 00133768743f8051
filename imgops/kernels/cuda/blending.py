"""CUDA kernels of blend, add_weighted and alpha_composite, each in one pass."""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda._arithmetic import convert, fused, level, nearest_level
from imgops.kernels.cuda._launch import inline, kernel, launch
from imgops.kernels.cuda._tiles import PIXELS, per_image
from imgops.kernels.cuda._values import values_in, values_of
from imgops.kernels.cuda._words import is_interleaved

#: The number of values of a program, if each thread reads several of them at once, and if not.
_BLOCK, _SINGLE = 4096, 2048


def blend(out: Tensor, image: Tensor, other: Tensor, alpha: Tensor) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    weights, step = per_image(alpha, image, 0, torch.float32)
    _launch_sum(out, image, other, (weights, weights, weights), (step, step, step), "blend")
    return None


def add_weighted(
    out: Tensor, image: Tensor, other: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor
) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    weights, steps = zip(*(per_image(x, image, 0, torch.float32) for x in (alpha, beta, gamma)), strict=True)
    _launch_sum(out, image, other, weights, steps, "sum")
    return None


def _launch_sum(out: Tensor, image: Tensor, other: Tensor, weights: Any, steps: Any, kind: str) -> None:
    target, (start, end), vector = values_of(out, image, other)
    count, size = target.shape[0], target.shape[1:].numel()
    block = _BLOCK if vector > 1 else _SINGLE
    blocks = -(-size // block)
    constants: dict[str, Any] = {"KIND": kind, "VECTOR": vector, "BLOCK": block}
    launch(_sum_kernel, count * blocks, target, start, end, *weights, size, blocks, *steps, **constants)


@kernel(tensors=6)
def _sum_kernel(
    out, image, other, alpha, beta, gamma, size, blocks, alpha_n, beta_n, gamma_n,
    KIND: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Blend two images by one factor, or add them with weights."""
    n, start, inside = values_in(tl.program_id(0), size, blocks, VECTOR, BLOCK)
    i = tl.arange(0, BLOCK)
    x = tl.load(image + start + i, mask=inside, other=0).to(tl.float32)
    y = tl.load(other + start + i, mask=inside, other=0).to(tl.float32)
    factor = tl.load(alpha + n * alpha_n)
    LEVELS: tl.constexpr = out.dtype.element_ty == tl.uint8
    if KIND == "sum":
        value = fused(x, factor, fused(y, tl.load(beta + n * beta_n), tl.load(gamma + n * gamma_n)))
        if LEVELS:
            made = nearest_level(value)
    elif LEVELS:
        made = level(x + factor * (y - x))
    else:
        value = y * factor + x * (1 - factor)
    if not LEVELS:
        made = convert(value, out.dtype.element_ty)
    tl.store(out + start + i, made, mask=inside)


def alpha_composite(out: Tensor, image: Tensor, other: Tensor) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    target, (below, above), vector = values_of(out, image, other)
    count, _, height, width = target.shape
    pixels, interleaved = height * width, is_interleaved(out)
    block = _SINGLE // 4
    blocks = -(-pixels // block)
    launch(
        _composite_kernel,
        count * blocks,
        *(target, below, above, pixels, blocks),
        INTERLEAVED=interleaved,
        VECTOR=vector if interleaved or pixels % vector == 0 else 1,
        BLOCK=block,
    )
    return None


@kernel(tensors=3)
def _composite_kernel(
    out, image, other, pixels, blocks, INTERLEAVED: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    LEVELS: tl.constexpr = out.dtype.element_ty == tl.uint8
    n, start, inside = values_in(tl.program_id(0), pixels, blocks, 1 if INTERLEAVED else VECTOR, BLOCK)
    i = tl.arange(0, BLOCK)
    if INTERLEAVED and LEVELS and VECTOR > 1:  # a pixel is a word
        words = tl.pointer_type(tl.int32)
        under = tl.load(image.to(words) + start + i, mask=inside, other=0)
        over = tl.load(other.to(words) + start + i, mask=inside, other=0)
        a, b = (under >> 24) & 255, (over >> 24) & 255
        alpha, share = _shares(a, b)
        value = _mixed(under & 255, over & 255, share)
        value |= _mixed((under >> 8) & 255, (over >> 8) & 255, share) << 8
        value |= _mixed((under >> 16) & 255, (over >> 16) & 255, share) << 16
        tl.store(out.to(words) + start + i, tl.where(b == 0, under, value | (alpha << 24)), mask=inside)
    else:
        first, step = start + n * 3 * pixels, pixels.to(tl.int64)
        if INTERLEAVED:
            first, step = start * 4, tl.full((), 1, tl.int64)
        elif VECTOR > 1:
            first, step = tl.multiple_of(first, VECTOR), tl.multiple_of(step, VECTOR)
        i = i * 4 if INTERLEAVED else i
        under, over, to = image + first + i, other + first + i, out + first + i
        a = tl.load(under + 3 * step, mask=inside, other=0)
        b = tl.load(over + 3 * step, mask=inside, other=0)
        if LEVELS:
            alpha, share = _shares(a.to(tl.int32), b.to(tl.int32))
        else:
            rest = a.to(tl.float32) * (1 - b.to(tl.float32))
            alpha = b.to(tl.float32) + rest
        for _ in tl.static_range(3):
            x, y = tl.load(under, mask=inside, other=0), tl.load(over, mask=inside, other=0)
            if LEVELS:
                made = tl.where(b == 0, x, _mixed(x.to(tl.int32), y.to(tl.int32), share).to(tl.uint8))
            else:
                color = y.to(tl.float32) * b.to(tl.float32) + x.to(tl.float32) * rest
                color = tl.where(
                    alpha > 0, tl.div_rn(color, tl.where(alpha > 0, alpha, 1.0)), x.to(tl.float32)
                )
                made = convert(color, out.dtype.element_ty)
            tl.store(to, made, mask=inside)
            under, over, to = under + step, over + step, to + step
        if LEVELS:
            made = tl.where(b == 0, a, alpha.to(tl.uint8))
        else:
            made = convert(alpha, out.dtype.element_ty)
        tl.store(to, made, mask=inside)


@inline
def _shares(a, b):
    """Return PIL's alpha of a level over another one, and the weight of the upper color, times 255 * 128."""
    alpha = b * 255 + a * (255 - b)
    return _by_255(alpha + 128), b * (255 * 255 * 128) // tl.maximum(alpha, 1)


@inline
def _mixed(under, over, share):
    return _by_255(over * share + under * (255 * 128 - share) + 128 * 128) >> 7


@inline
def _by_255(value):
    return ((value >> 8) + value) >> 8
