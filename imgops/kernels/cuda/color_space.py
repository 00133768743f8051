"""The CUDA kernel of cvt_color: every conversion in one pass, through RGB.

A thread converts 4 pixels of uint8, which are read and written as whole words, or one pixel.
"""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops._common import layout
from imgops.kernels.cuda import _color_formulas, _color_levels, _color_tables
from imgops.kernels.cuda._arithmetic import convert
from imgops.kernels.cuda._launch import blocks, inline, kernel, launch
from imgops.kernels.cuda._tiles import PIXELS, batch, is_interleaved, output_batch

#: The number of work items, one per thread at a time, in a program.
_LANES = 256
#: The lookup tables for conversions of uint8.
_TABLES = {"2lab": "lab", "2luv": "luv", "lab2": "back", "luv2": "back"}


def cvt_color(out: Tensor, image: Tensor, code: str) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    if out.numel() == 0:
        return None
    source = batch(layout.in_format(image.detach(), layout.is_interleaved(image)))
    target = output_batch(out)
    images, channels, height, width = source.shape
    made, pixels = target.shape[1], height * width
    begin, _, end = code.partition("2")
    tables = source
    if image.dtype == torch.uint8:
        for part, name in _TABLES.items():
            if part in code:
                tables = _color_tables.table(name, out.device)
    are_words = pixels % 4 == source.data_ptr() % 4 == target.data_ptr() % 4 == 0
    words = image.dtype == torch.uint8 and are_words
    parts = blocks((pixels // 4 if words else pixels, _LANES))
    launch(
        _convert_kernel,
        images * parts,
        *(target, source, tables, pixels, width, parts),
        SOURCE=_space(begin),
        TARGET=_space(end),
        SWAPPED=begin.startswith("bgr") != end.startswith("bgr"),
        CHANNELS=channels,
        MADE=made,
        FROM_INTERLEAVED=channels > 1 and is_interleaved(source),
        TO_INTERLEAVED=made > 1 and is_interleaved(target),
        WORDS=words,
        LANES=_LANES,
    )
    return None


def _space(name: str) -> str:
    """Return a space that is not a permutation of RGB, or an empty string."""
    return "" if name.startswith(("rgb", "bgr")) else name


@kernel(3)
def _convert_kernel(
    out, image, tables, pixels, width, parts,
    SOURCE: tl.constexpr, TARGET: tl.constexpr, SWAPPED: tl.constexpr, CHANNELS: tl.constexpr, MADE: tl.constexpr,
    FROM_INTERLEAVED: tl.constexpr, TO_INTERLEAVED: tl.constexpr, WORDS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    part, n = tl.program_id(0) % parts, (tl.program_id(0) // parts).to(tl.int64)
    image += n * pixels * CHANNELS
    out += n * pixels * MADE
    lane = part * LANES + tl.arange(0, LANES)
    if WORDS:
        inside = lane < pixels // 4
        a, b, c, d = _load_words(image, lane, pixels, inside, CHANNELS, FROM_INTERLEAVED)
        p = 4 * lane
        a = _converted(a, p, width, tables, SOURCE, TARGET, SWAPPED, CHANNELS, True)
        b = _converted(b, p + 1, width, tables, SOURCE, TARGET, SWAPPED, CHANNELS, True)
        c = _converted(c, p + 2, width, tables, SOURCE, TARGET, SWAPPED, CHANNELS, True)
        d = _converted(d, p + 3, width, tables, SOURCE, TARGET, SWAPPED, CHANNELS, True)
        _store_words(out, a, b, c, d, lane, pixels, inside, MADE, TO_INTERLEAVED)
    else:
        LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
        inside = lane < pixels
        pixel = _load_pixel(image, lane, pixels, inside, CHANNELS, FROM_INTERLEAVED, LEVELS)
        pixel = _converted(pixel, lane, width, tables, SOURCE, TARGET, SWAPPED, CHANNELS, LEVELS)
        at = out + (lane.to(tl.int64) * MADE if TO_INTERLEAVED else lane)
        step = 1 if TO_INTERLEAVED else pixels
        for i in tl.static_range(MADE):
            value = pixel[i].to(tl.uint8) if LEVELS else convert(pixel[i], out.dtype.element_ty)
            tl.store(at + i * step, value, mask=inside)


@inline
def _converted(
    pixel, p, width, tables,
    SOURCE: tl.constexpr, TARGET: tl.constexpr, SWAPPED: tl.constexpr, CHANNELS: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    """Return the pixel at position ``p`` of its image in the other space, always with 4 channels."""
    x, y, z, alpha = pixel
    if SOURCE == "hsv" and LEVELS:
        x, y, z = _color_levels.from_hsv(x, y, z, _in_vector(p, width, 32), 180)
    elif SOURCE == "hsv_full" and LEVELS:
        x, y, z = _color_levels.from_hsv(x, y, z, p < 0, 255)
    elif SOURCE != "" and SOURCE != "gray":
        x, y, z = _from_levels(x, y, z, tables, SOURCE) if LEVELS else _from_floats(x, y, z, SOURCE)
    if SWAPPED:
        x, z = z, x
    if TARGET == "hls" and LEVELS:
        x, y, z = _color_levels.to_hls(x, y, z, _in_vector(p, width, 8))
    elif TARGET != "":
        x, y, z = _to_levels(x, y, z, tables, TARGET) if LEVELS else _to_floats(x, y, z, TARGET)
    if CHANNELS != 4:
        alpha = x * 0 + 255 if LEVELS else tl.full(x.shape, 1.0, tl.float32)
    return x, y, z, alpha


@inline
def _in_vector(p, width, PIXELS: tl.constexpr):
    """Return whether OpenCV processes a pixel in a vector, on processors with AVX2, and not at the end of a row."""
    return p % width < width // PIXELS * PIXELS


@inline
def _to_levels(r, g, b, tables, SPACE: tl.constexpr):
    """Convert RGB of uint8; gray has three equal channels."""
    if SPACE == "gray":
        x = _color_levels.to_gray(r, g, b)
        y, z = x, x
    elif SPACE == "ycrcb":
        x, y, z = _color_levels.to_chroma(r, g, b, r, b, 11682, 9241)
    elif SPACE == "yuv":
        x, y, z = _color_levels.to_chroma(r, g, b, b, r, 8061, 14369)
    elif SPACE == "xyz":
        x, y, z = _color_levels.to_xyz(r, g, b)
    elif SPACE == "hsv":
        x, y, z = _color_levels.to_hsv(r, g, b, 180, 122880.0, 1.0)
    elif SPACE == "hsv_full":
        x, y, z = _color_levels.to_hsv(r, g, b, 256, 524288.0, 3.0)
    elif SPACE == "lab":
        x, y, z = _color_levels.to_lab(r, g, b, tables)
    else:
        x, y, z = _color_levels.to_luv(r, g, b, tables)
    return x, y, z


@inline
def _from_levels(x, y, z, tables, SPACE: tl.constexpr):
    if SPACE == "ycrcb":
        r, g, b = _color_levels.from_chroma(x, z, y, 22987, -5636, -11698, 29049)
    elif SPACE == "yuv":
        r, g, b = _color_levels.from_chroma(x, y, z, 18678, -6472, -9519, 33292)
    elif SPACE == "xyz":
        r, g, b = _color_levels.from_xyz(x, y, z)
    elif SPACE == "hls":
        r, g, b = _color_levels.from_hls(x, y, z)
    elif SPACE == "lab":
        r, g, b = _color_levels.from_lab(x, y, z, tables)
    else:
        r, g, b = _color_levels.from_luv(x, y, z, tables)
    return r, g, b


@inline
def _to_floats(r, g, b, SPACE: tl.constexpr):
    """Convert RGB of floats; gray has three equal channels."""
    if SPACE == "gray":
        x = _color_formulas.to_gray(r, g, b)
        y, z = x, x
    elif SPACE == "ycrcb":
        x, y, z = _color_formulas.to_chroma(r, g, b, r, b, 0.713, 0.564)
    elif SPACE == "yuv":
        x, y, z = _color_formulas.to_chroma(r, g, b, b, r, 0.492, 0.877)
    elif SPACE == "xyz":
        x, y, z = _color_formulas.to_xyz(r, g, b)
    elif SPACE == "hls":
        x, y, z = _color_formulas.to_hls(r, g, b)
    elif SPACE == "lab":
        x, y, z = _color_formulas.to_lab(r, g, b)
    elif SPACE == "luv":
        x, y, z = _color_formulas.to_luv(r, g, b)
    else:
        x, y, z = _color_formulas.to_hsv(r, g, b)
    return x, y, z


@inline
def _from_floats(x, y, z, SPACE: tl.constexpr):
    if SPACE == "ycrcb":
        r, g, b = _color_formulas.from_chroma(x, z, y, 1.403, -0.344, -0.714, 1.773)
    elif SPACE == "yuv":
        r, g, b = _color_formulas.from_chroma(x, y, z, 1.14, -0.395, -0.581, 2.032)
    elif SPACE == "xyz":
        r, g, b = _color_formulas.from_xyz(x, y, z)
    elif SPACE == "hls":
        r, g, b = _color_formulas.from_hls(x, y, z)
    elif SPACE == "lab":
        r, g, b = _color_formulas.from_lab(x, y, z)
    elif SPACE == "luv":
        r, g, b = _color_formulas.from_luv(x, y, z)
    else:
        r, g, b = _color_formulas.from_hsv(x, y, z)
    return r, g, b


# -- memory ------------------------------------------------------------------------------------------


@inline
def _load_pixel(
    image, p, pixels, inside, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr, LEVELS: tl.constexpr
):
    """Return the 4 channels of pixels; missing channels repeat the first."""
    at = image + (p.to(tl.int64) * CHANNELS if INTERLEAVED else p)
    step = 1 if INTERLEAVED else pixels
    TO: tl.constexpr = tl.int32 if LEVELS else tl.float32
    x = tl.load(at, mask=inside, other=0).to(TO)
    y, z, alpha = x, x, x
    if CHANNELS > 1:
        y = tl.load(at + step, mask=inside, other=0).to(TO)
        z = tl.load(at + 2 * step, mask=inside, other=0).to(TO)
    if CHANNELS > 3:
        alpha = tl.load(at + 3 * step, mask=inside, other=0).to(TO)
    return x, y, z, alpha


@inline
def _load_words(image, four, pixels, inside, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr):
    """Return 4 pixels of 4 channels; missing channels repeat the first."""
    words = image.to(tl.pointer_type(tl.int32))
    if INTERLEAVED:
        at = words + four.to(tl.int64) * CHANNELS
        p = _bytes(tl.load(at, mask=inside, other=0))
        q = _bytes(tl.load(at + 1, mask=inside, other=0))
        r = _bytes(tl.load(at + 2, mask=inside, other=0))
        if CHANNELS == 3:
            a, b = (p[0], p[1], p[2], p[0]), (p[3], q[0], q[1], p[3])
            c, d = (q[2], q[3], r[0], q[2]), (r[1], r[2], r[3], r[1])
        else:
            a, b, c, d = p, q, r, _bytes(tl.load(at + 3, mask=inside, other=0))
    else:
        step = pixels // 4
        x = _bytes(tl.load(words + four, mask=inside, other=0))
        y, z, alpha = x, x, x
        if CHANNELS > 1:
            y = _bytes(tl.load(words + step + four, mask=inside, other=0))
            z = _bytes(tl.load(words + 2 * step + four, mask=inside, other=0))
        if CHANNELS > 3:
            alpha = _bytes(tl.load(words + 3 * step + four, mask=inside, other=0))
        a, b = (x[0], y[0], z[0], alpha[0]), (x[1], y[1], z[1], alpha[1])
        c, d = (x[2], y[2], z[2], alpha[2]), (x[3], y[3], z[3], alpha[3])
    return a, b, c, d


@inline
def _bytes(word):
    return word & 255, (word >> 8) & 255, (word >> 16) & 255, (word >> 24) & 255


@inline
def _store_words(out, a, b, c, d, four, pixels, inside, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr):
    words = out.to(tl.pointer_type(tl.int32))
    if INTERLEAVED:
        at = words + four.to(tl.int64) * CHANNELS
        if CHANNELS == 3:
            tl.store(at, _word(a[0], a[1], a[2], b[0]), mask=inside)
            tl.store(at + 1, _word(b[1], b[2], c[0], c[1]), mask=inside)
            tl.store(at + 2, _word(c[2], d[0], d[1], d[2]), mask=inside)
        else:
            tl.store(at, _word(a[0], a[1], a[2], a[3]), mask=inside)
            tl.store(at + 1, _word(b[0], b[1], b[2], b[3]), mask=inside)
            tl.store(at + 2, _word(c[0], c[1], c[2], c[3]), mask=inside)
            tl.store(at + 3, _word(d[0], d[1], d[2], d[3]), mask=inside)
    else:
        for i in tl.static_range(CHANNELS):
            at = words + i * (pixels // 4) + four
            tl.store(at, _word(a[i], b[i], c[i], d[i]), mask=inside)


@inline
def _word(a, b, c, d):
    return a | (b << 8) | (c << 16) | (d << 24)
