"""Statistics that some color steps need: histograms, extremes and means, and the tables made of them.

Each program counts a part of an image and writes its own result; a consumer adds the parts in their order. So
the result does not depend on the order of the programs, and no memory has to be zeroed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda._arithmetic import level
from imgops.kernels.cuda._launch import inline, launch
from imgops.kernels.cuda._pixels import steps
from imgops.kernels.cuda._tiles import place_of

#: The most pixels that a program counts.
_PART = 4096


@dataclass(frozen=True)
class Gate:
    """Condition that an image has a step at a turn: its number in ``order`` there is ``which``."""

    order: Tensor
    step: int
    turn: int
    which: int

    @property
    def arguments(self) -> tuple[Any, ...]:
        return self.order, self.step, self.turn, self.which


def part_of(pixels: int) -> int:
    size = 64
    while size < min(pixels, _PART):
        size *= 2
    return size


def equalization_tables(image: Tensor, gate: Gate | None = None) -> Tensor:
    """Return ``ImageOps.equalize`` of each plane, as tables of levels ``(N, C, 256)``."""
    images, channels, height, width = image.shape
    part = part_of(height * width)
    parts = -(-height * width // part)
    counts = torch.empty((images, channels, parts, 256), dtype=torch.int32, device=image.device)
    tables = torch.empty((images, channels, 256), dtype=torch.uint8, device=image.device)
    gating = (counts, 0, 0, 0) if gate is None else gate.arguments
    where = images * parts, counts, image, *gating, channels, height * width, parts, *steps(image)
    launch(_histogram_kernel, *where, GATED=gate is not None, BLOCK=part)
    launch(
        _equalize_kernel,
        images * channels,
        tables,
        counts,
        *gating,
        channels,
        parts,
        GATED=gate is not None,
        warps=1,
    )
    return tables


def stretch_tables(image: Tensor, gate: Gate | None = None) -> tuple[Tensor, Tensor]:
    """Return ``ImageOps.autocontrast`` of each plane.

    For uint8 only the first result is filled: tables of levels. For floats only the second is filled: the
    lowest value and the scale of each plane.
    """
    images, channels, height, width = image.shape
    part = part_of(height * width)
    parts = -(-height * width // part)
    extremes = torch.empty((images, channels, parts, 2), dtype=torch.float32, device=image.device)
    tables = torch.empty((images, channels, 256), dtype=torch.uint8, device=image.device)
    scales = torch.empty((images, channels, 2), dtype=torch.float32, device=image.device)
    gating = (extremes, 0, 0, 0) if gate is None else gate.arguments
    where = images * parts, extremes, image, *gating, channels, height * width, parts, *steps(image)
    launch(_extremes_kernel, *where, GATED=gate is not None, BLOCK=part)
    sizes = channels, parts
    launch(
        _stretch_kernel,
        images * channels,
        *(tables, scales, extremes, *gating, *sizes),
        GATED=gate is not None,
        LEVELS=image.dtype == torch.uint8,
        warps=1,
    )
    return tables, scales


@inline
def is_chosen(order, order_n, n, turn, which, GATED: tl.constexpr):
    """Return whether this image has the step; without a gate, each image has it."""
    if GATED:
        found = tl.load(order + n * order_n + turn) == which
    else:
        found = n >= 0
    return found


@triton.jit(do_not_specialize=["turn", "which"])
def _histogram_kernel(
    counts, image, order, order_n, turn, which, channels, pixels, parts, image_n, image_c, image_p,
    sizes, starts, PACKED: tl.constexpr, GATED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    n, part = (tl.program_id(0) // parts).to(tl.int64), tl.program_id(0) % parts
    place = n
    if PACKED != "":
        place, image_c, _, image_p, tall, wide = place_of(sizes, starts, n, n >= 0, channels, PACKED)
        image_n, pixels = 1, tall * wide
    if is_chosen(order, order_n, n, turn, which, GATED):
        p = part * BLOCK + tl.arange(0, BLOCK)
        inside = p < pixels
        for c in range(channels):
            at = image + place * image_n + c * image_c + p.to(tl.int64) * image_p
            value = tl.load(at, mask=inside, other=0)
            if image.dtype.element_ty != tl.uint8:
                value = level(value.to(tl.float32) * 255.999)
            found = tl.histogram(value.to(tl.int32), 256, mask=inside)
            to = counts + ((n * channels + c) * parts + part) * 256 + tl.arange(0, 256)
            tl.store(to, found)


@triton.jit(do_not_specialize=["turn", "which"])
def _equalize_kernel(
    tables, counts, order, order_n, turn, which, channels, parts, GATED: tl.constexpr
):  # fmt: skip
    plane = tl.program_id(0).to(tl.int64)
    if is_chosen(order, order_n, plane // channels, turn, which, GATED):
        value = tl.arange(0, 256)
        count = tl.full((256,), 0, tl.int32)
        for part in range(parts):
            count += tl.load(counts + (plane * parts + part) * 256 + value)
        # As in PIL, the last level that occurs does not count, and a plane of one level stays as it is.
        last = tl.max(tl.where(count > 0, value, 0), 0)
        step = (tl.sum(count, 0) - tl.sum(tl.where(value == last, count, 0), 0)) // 255
        safe = tl.maximum(step, 1)
        before = tl.cumsum(count, 0) - count
        table = tl.minimum((before + safe // 2) // safe, 255)
        tl.store(tables + plane * 256 + value, tl.where(step == 0, value, table).to(tl.uint8))


@triton.jit(do_not_specialize=["turn", "which"])
def _extremes_kernel(
    extremes, image, order, order_n, turn, which, channels, pixels, parts, image_n, image_c, image_p,
    sizes, starts, PACKED: tl.constexpr, GATED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    n, part = (tl.program_id(0) // parts).to(tl.int64), tl.program_id(0) % parts
    place = n
    if PACKED != "":
        place, image_c, _, image_p, tall, wide = place_of(sizes, starts, n, n >= 0, channels, PACKED)
        image_n, pixels = 1, tall * wide
    if is_chosen(order, order_n, n, turn, which, GATED):
        p = part * BLOCK + tl.arange(0, BLOCK)
        for c in range(channels):
            at = image + place * image_n + c * image_c + p.to(tl.int64) * image_p
            low = tl.load(at, mask=p < pixels, other=255).to(tl.float32)
            high = tl.load(at, mask=p < pixels, other=0).to(tl.float32)
            if image.dtype.element_ty != tl.uint8:
                low = tl.where(p < pixels, low, float("inf"))
                high = tl.where(p < pixels, high, float("-inf"))
            to = extremes + ((n * channels + c) * parts + part) * 2
            tl.store(to, tl.min(low, 0))
            tl.store(to + 1, tl.max(high, 0))


@triton.jit(do_not_specialize=["turn", "which"])
def _stretch_kernel(
    tables, scales, extremes, order, order_n, turn, which, channels, parts,
    GATED: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    plane = tl.program_id(0).to(tl.int64)
    if is_chosen(order, order_n, plane // channels, turn, which, GATED):
        low = tl.load(extremes + plane * parts * 2)
        high = tl.load(extremes + plane * parts * 2 + 1)
        for part in range(1, parts):
            low = tl.minimum(low, tl.load(extremes + (plane * parts + part) * 2))
            high = tl.maximum(high, tl.load(extremes + (plane * parts + part) * 2 + 1))
        flat = high <= low
        if LEVELS:
            value = tl.arange(0, 256)
            first = value.to(tl.float64) * 0 + low
            scale = (first * 0 + 255.0) / tl.where(flat, first * 0 + 1.0, high - first)
            found = value.to(tl.float64) * scale + -first * scale
            found = tl.minimum(tl.maximum(found, 0.0), 255.0).to(tl.int32)
            tl.store(tables + plane * 256 + value, tl.where(flat, value, found).to(tl.uint8))
        else:  # a scale of 0 means that the plane stays as it is
            tl.store(scales + plane * 2, low)
            tl.store(
                scales + plane * 2 + 1,
                tl.where(flat, 0.0, tl.div_rn(low * 0 + 1.0, tl.where(flat, 1.0, high - low))),
            )
