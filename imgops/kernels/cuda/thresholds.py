"""The CUDA kernel of threshold: one pass, after a histogram of each channel if that determines the threshold.

A thread compares a word of 4 uint8 values, or one value.
"""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops._common import layout
from imgops.kernels.cuda._arithmetic import convert, round_half_even
from imgops.kernels.cuda._launch import blocks, inline, kernel, launch
from imgops.kernels.cuda._tiles import PIXELS, batch, is_interleaved, output_batch, per_image

#: The number of work items, one per thread at a time, in a program, and of values of a channel that a program counts.
_LANES, _PART = 1024, 4096


def threshold(out: Tensor, image: Tensor, threshold: Tensor, max_value: Tensor, operation: str) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    if out.numel() == 0:
        return None
    target = output_batch(out)
    interleaved = is_interleaved(target)
    source = batch(layout.in_format(image.detach(), interleaved))
    images, channels, height, width = target.shape
    tops, top_n = per_image(max_value, image, 0, max_value.dtype)
    found = operation in ("otsu", "triangle")
    if found:
        limits, limit_n, operation = _found_in_histograms(source, interleaved, operation), 1, "binary"
    else:
        limits, limit_n = per_image(threshold, image, 0, threshold.dtype)
    by_value = found and interleaved  # values of several channels alternate
    planes = channels if found and not interleaved else 1
    values = channels * height * width // planes
    are_words = values % 4 == source.data_ptr() % 4 == target.data_ptr() % 4 == 0
    words = out.dtype == torch.uint8 and are_words
    parts = blocks((values // 4 if words else values, _LANES))
    launch(
        _threshold_kernel,
        images * planes * parts,
        *(
            target,
            source,
            limits,
            tops,
            values,
            limit_n * (channels if by_value else 1),
            top_n,
            planes,
            parts,
        ),
        OPERATION=operation,
        CHANNELS=channels if by_value else 1,
        WORDS=words,
        LANES=_LANES,
    )
    return None


def _found_in_histograms(image: Tensor, interleaved: bool, operation: str) -> Tensor:
    """Return the threshold of each channel of each image."""
    images, channels, height, width = image.shape
    pixels = height * width
    parts = blocks((pixels, _PART))
    counts = torch.empty((images * channels, parts, 256), dtype=torch.int32, device=image.device)
    limits = torch.empty(images * channels, dtype=torch.int32, device=image.device)
    steps = (1, channels) if interleaved else (pixels, 1)
    launch(
        _histogram_kernel,
        images * channels * parts,
        *(counts, image, pixels, channels, *steps, parts),
        PART=_PART,
    )
    launch(_limit_kernel, images * channels, limits, counts, parts, TRIANGLE=operation == "triangle", warps=1)
    return limits


@kernel(4)
def _threshold_kernel(
    out, image, limits, tops, values, limit_n, top_n, planes, parts,
    OPERATION: tl.constexpr, CHANNELS: tl.constexpr, WORDS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Compare with the threshold of a plane or, with several ``CHANNELS``, with that of each channel."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    part, plane = tl.program_id(0) % parts, (tl.program_id(0) // parts).to(tl.int64)
    lane = part * LANES + tl.arange(0, LANES)
    image += plane * values
    out += plane * values
    limits += plane * limit_n
    top = tl.load(tops + plane // planes * top_n).to(tl.float32)
    if LEVELS:
        top = round_half_even(tl.minimum(tl.maximum(top, 0.0), 255.0)).to(tl.int32)
    if WORDS:
        inside = lane < values // 4
        word = tl.load(image.to(tl.pointer_type(tl.int32)) + lane, mask=inside, other=0)
        a = _compared(word & 255, limits, 4 * lane, top, OPERATION, CHANNELS, True)
        b = _compared((word >> 8) & 255, limits, 4 * lane + 1, top, OPERATION, CHANNELS, True)
        c = _compared((word >> 16) & 255, limits, 4 * lane + 2, top, OPERATION, CHANNELS, True)
        d = _compared((word >> 24) & 255, limits, 4 * lane + 3, top, OPERATION, CHANNELS, True)
        word = a | (b << 8) | (c << 16) | (d << 24)
        tl.store(out.to(tl.pointer_type(tl.int32)) + lane, word, mask=inside)
    else:
        inside = lane < values
        value = tl.load(image + lane, mask=inside, other=0).to(tl.int32 if LEVELS else tl.float32)
        value = _compared(value, limits, lane, top, OPERATION, CHANNELS, LEVELS)
        value = value.to(tl.uint8) if LEVELS else convert(value, out.dtype.element_ty)
        tl.store(out + lane, value, mask=inside)


@inline
def _compared(value, limits, i, top, OPERATION: tl.constexpr, CHANNELS: tl.constexpr, LEVELS: tl.constexpr):
    """Return the result for values at the positions ``i`` of a plane."""
    if CHANNELS > 1:  # thresholds that were computed, as levels
        limit = tl.load(limits + i % CHANNELS)
    elif LEVELS:  # rounded down, and clamped between -1 and 256
        low = tl.floor(tl.load(limits).to(tl.float64))
        limit = tl.where(low < 256, tl.where(low > -1, low, -1.0), 256.0).to(tl.int32)
    else:
        limit = tl.load(limits).to(tl.float32)
    above, zero = value > limit, tl.zeros_like(value)  # a product with 0 may be NaN
    if OPERATION == "binary":
        result = tl.where(above, top, zero)
    elif OPERATION == "binary_inv":
        result = tl.where(above, zero, top)
    elif OPERATION == "trunc":
        result = tl.where(above, tl.minimum(tl.maximum(limit, 0), 255) if LEVELS else limit, value)
    elif OPERATION == "tozero":
        result = tl.where(above, value, zero)
    else:
        result = tl.where(above, zero, value)
    return result


@kernel(2)
def _histogram_kernel(counts, image, pixels, channels, step_c, step_p, parts, PART: tl.constexpr):
    part, plane = tl.program_id(0) % parts, (tl.program_id(0) // parts).to(tl.int64)
    p = part * PART + tl.arange(0, PART)
    at = plane // channels * channels * pixels + plane % channels * step_c + p.to(tl.int64) * step_p
    value = tl.load(image + at, mask=p < pixels, other=0)
    found = tl.histogram(value.to(tl.int32), 256, mask=p < pixels)
    tl.store(counts + (plane * parts + part) * 256 + tl.arange(0, 256), found)


@kernel(2)
def _limit_kernel(limits, counts, parts, TRIANGLE: tl.constexpr):
    """Add up the histograms of the parts of a plane, and find its threshold."""
    plane = tl.program_id(0).to(tl.int64)
    level = tl.arange(0, 256).to(tl.int64)
    counts += plane * parts * 256
    count, turned = level * 0, level * 0
    for part in range(parts):
        count += tl.load(counts + part * 256 + level)
        turned += tl.load(counts + part * 256 + 255 - level)
    if TRIANGLE:
        found = _triangle(count, turned, level)
    else:
        found = _otsu(count, level)
    tl.store(limits + plane, found.to(tl.int32))


@inline
def _otsu(count, level):
    """Return the first level that splits a histogram with the largest variance between its parts."""
    below, moment = tl.cumsum(count, 0).to(tl.float64), tl.cumsum(count * level, 0).to(tl.float64)
    every, total = tl.sum(count, 0).to(tl.float64), tl.sum(count * level, 0).to(tl.float64)
    above = every - below
    least = every * 1.1920928955078125e-07  # the least fraction of the values in each part
    inside = (below >= least) & (above >= least) & (below < every)
    apart = total * below - moment * every
    variance = tl.where(inside, apart * apart / tl.where(inside, below * above, every), every * 0)
    return tl.argmax(variance, 0)


@inline
def _triangle(count, turned, level):
    """Return the level farthest from the line between a histogram's peak and the end of its longer side."""
    there = count > 0
    left = tl.maximum(tl.min(tl.where(there, level, 255), 0) - 1, 0)
    right = tl.minimum(tl.max(tl.where(there, level, 0), 0) + 1, 255)
    peak = 255 - tl.max(count * 256 + (255 - level), 0) % 256
    is_turned = peak - left < right - peak
    count = tl.where(is_turned, turned, count)
    left, peak = tl.where(is_turned, 255 - right, left), tl.where(is_turned, 255 - peak, peak)
    distance = tl.max(count, 0) * level + (left - peak) * count
    distance = tl.where((level > left) & (level <= peak) & (distance > 0), distance, 0)
    best = tl.max(distance * 256 + (255 - level), 0)
    found = tl.where(best >= 256, 255 - best % 256, left) - 1
    return tl.where(is_turned, 255 - found, found)
