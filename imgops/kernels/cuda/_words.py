"""Rows of memory as words of 4 bytes, for kernels that move values of any dtype.

Values of 4 or more bytes are words. Rows of smaller values begin at any byte: a word of the output is combined from
two aligned words of the image by shifts, and is stored as a whole; only the words at the ends of a row are stored
byte by byte. So a thread moves 4 bytes with few instructions, wherever images and windows begin.

Kernels count in units, which are words or single bytes. ``KIND`` says how a tile of words is read and written:

==============  ==============================================================================================
``"words"``     Units are words.
``"shifted"``   Units are bytes. Only words that lie in a row as a whole are written.
``"aligned"``   Units are bytes, and each row of the output begins and ends with a whole word.
``"bytes"``     Units are bytes, and so are accesses: at the ends of rows, and in the last rows of a storage that
                does not end with a whole word, because nothing beyond it may be read.
==============  ==============================================================================================

The rows of a thread are a multiple of 4 rows apart, so all of them begin at the same byte of a word, and the compiler
computes values that depend on columns once for all of them. So row ``r`` is ``(r & 3) + 4 * (r >> 2)``.

If the compiler recognizes no order in the addresses of a tile, ``tl.max_contiguous(pointers, [1, 2])`` makes
neighboring threads access neighboring columns; otherwise Triton 3.6 would assign a separate row to each thread of a
warp. It has no other effect, because the known alignment forbids wider accesses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda._launch import inline
from imgops.kernels.cuda._packed import Packed
from imgops.kernels.cuda._tiles import batch, carrier, has_carrier, output_batch, rows_in

#: The number of bits of a byte. It is an argument of kernels, because the compiler turns a shift that is known to be
#: by whole bytes into a permutation of bytes, which is no faster, in a rarely supported mode of PTX's prmt.
BITS = 8
#: The dtypes that kernels take directly; the memory of other dtypes is viewed as integers.
_PASSED = (torch.uint8, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16)
#: The largest number of units in a row.
_LONGEST = 1 << 30
#: The smallest number of programs that share the work if each of them could also process more rows.
_PROGRAMS = 64


class Units(NamedTuple):
    """A batch as rows of units: a value has ``scale`` units, a pixel in a row has ``pixel`` units."""

    tensor: Tensor
    images: int
    planes: int
    height: int
    length: int
    pixel: int
    scale: int
    #: The steps from image to image, from plane to plane and from row to row.
    steps: tuple[int, int, int]


def units_in(image: Tensor, interleaved: bool) -> Units:
    """Return a batch as rows of units in a memory format; copy it if its rows are not dense."""
    tensor, images, planes, height, length, pixel, steps = rows_in(image, interleaved)
    size = tensor.element_size()
    if tensor.dtype not in _PASSED:
        tensor = carrier(tensor)
    scale = size // 4 if size >= 4 else size
    if scale != 1:
        steps = steps[0] * scale, steps[1] * scale, steps[2] * scale
    return Units(tensor, images, planes, height, length * scale, pixel * scale, scale, steps)


def units_of(out: Tensor, image: Tensor) -> tuple[Units, Units] | None:
    """Return an output in one of the memory formats, and an image, as rows of this format.

    Return None for values without a carrier dtype, and for rows that are too long for 32-bit columns.
    """
    if not has_carrier(image):
        return None
    interleaved = image.interleaved if isinstance(image, Packed) else is_interleaved(out)
    target = units_in(out if out.ndim == 4 else output_batch(out), interleaved)
    source = units_in(image if image.ndim == 4 else batch(image), interleaved)
    return None if max(target.length, source.length) > _LONGEST else (target, source)


def limit_of(image: Tensor) -> int:
    """Return the bytes of the storage after a tensor's beginning; -1 if they end with a whole word."""
    data = image.data if isinstance(image, Packed) else image
    size = data.element_size()
    if size >= 4:
        return -1
    rest = int(data.untyped_storage().nbytes()) - int(data.storage_offset()) * size
    return rest if (data.data_ptr() + rest) % 4 else -1


def programs_of(out: Units, length: int | None = None) -> tuple[int, tuple[int, int, int], dict[str, Any]]:
    """Return the number and arrangement of the programs that cover an output, and the constants of their kernel.

    A plane has ``across`` programs in a row and ``down`` in a column, each of which processes some rows. They may
    cover only a part of the length. There are two sizes of tiles, so that few kernels are compiled.
    """
    length = out.length if length is None else length
    unit = 4 if out.tensor.element_size() >= 4 else 1
    words = length if unit == 4 else (length + 3) // 4
    height, width, warps = (32, 32, 4) if words > 8 else (64, 8, 2)
    across, planes, rows = -(-words // width), out.images * out.planes, 4 * height
    down = -(-out.height // rows)
    while rows > height and planes * across * down < _PROGRAMS:
        rows //= 2
        down = -(-out.height // rows)
    return (
        planes * across * down,
        (across, down, rows),
        {"UNIT": unit, "ROWS": height, "COLUMNS": width, "warps": warps},
    )


def is_interleaved(out: Tensor) -> bool:
    """Return whether an output, which has one of the two memory formats, is interleaved."""
    return out.interleaved if isinstance(out, Packed) else out.stride(-1) != 1


def row_format(out: Tensor) -> bool | None:
    """Return whether the rows of a batch are interleaved, not planar; None if their values are not adjacent."""
    _, step_c, _, step_x = out.stride()
    channels, width = out.shape[1], out.shape[3]
    if step_x == 1 or width <= 1:
        return False
    return True if step_x == channels and step_c == 1 else None


@inline
def part_of(program, across, down, rows, height, COLUMNS: tl.constexpr):
    """Return the plane of a program, its first row, the end of its rows, and its first word."""
    block, rest = program % across, program // across
    first = (rest % down) * rows
    return rest // down, first, tl.minimum(first + rows, height), block * COLUMNS


@inline
def image_of(sizes, starts, n, pixel, scale):
    """Return the offset of a packed image, its steps from plane to plane and row to row, its height and length."""
    height, length = tl.load(sizes + n * 2), tl.load(sizes + n * 2 + 1) * pixel
    return tl.load(starts + n) * scale, height * length, length, height.to(tl.int32), length.to(tl.int32)


@inline
def slow_part(i, first, fast, end, block):
    """Return the range of the ``i``-th pass byte by byte: whether it is for ends of rows, its rows, its words.

    Pass 0 is for the ends of all rows, the others are for the words of the rows from ``fast`` on.
    """
    edges = i == 0
    j = tl.where(edges, 0, block + 4 * i - 4) + tl.arange(0, 4)[None, :]
    return edges, tl.where(edges, first, fast), end, j


@inline
def place(tensor, at, y, step, r, c, KIND: tl.constexpr):
    """Return addresses of the words of rows ``y + r`` at columns ``c``, and how many bytes they precede these.

    ``at`` is the unit of row 0 and column 0.
    """
    step = step.to(tl.int64)
    if KIND == "words":
        words = tensor.to(tl.pointer_type(tl.uint32)) + at + (y + r) * step + c
        shift = tl.full((1, 1), 0, tl.int32)
    else:
        start = tensor.to(tl.int64) + at + (y + (r & 3)) * step + c
        shift = (start & 3).to(tl.int32)
        words = (start - shift).to(tl.pointer_type(tl.uint32)) + (r >> 2) * step
    return tl.max_contiguous(words, [1, 2]), shift


@inline
def place_in_output(out, at, y, step, r, j, length, edges, KIND: tl.constexpr):
    """Return addresses of the words ``j`` of an output's rows ``y + r``, their columns, and a mask for writing.

    For bytes, word 0 contains the first byte of a row; only words that are entirely inside a row are written. If
    ``edges``, words 0 and 1 are the first and the last word of a row, and are written if they are only partly inside
    it.
    """
    step = step.to(tl.int64)
    if KIND == "words":
        c = j
        words = out.to(tl.pointer_type(tl.uint32)) + at + (y + r) * step + c
        written = c < length
    elif KIND == "aligned":
        c = j * 4
        words = out.to(tl.pointer_type(tl.uint32)) + (at >> 2) + (y + r) * (step >> 2) + j
        written = c < length
    else:
        start = out.to(tl.int64) + at + (y + (r & 3)) * step
        lead = (start & 3).to(tl.int32)
        if KIND == "bytes":
            last = (lead + length - 1) >> 2
            c = tl.where(edges & (j > 0), last, j) * 4 - lead
            whole = (c >= 0) & (c <= length - 4)
            written = tl.where(edges, ((j == 0) | ((j == 1) & (last > 0))) & ~whole, whole)
        else:
            c = j * 4 - lead
            written = (c >= 0) & (c <= length - 4)
        words = (start + c).to(tl.pointer_type(tl.uint32)) + (r >> 2) * step
    return tl.max_contiguous(words, [1, 2]), c, written


@inline
def has_edges(out, at, step, length, block):
    """Return whether rows of bytes may have partial words, which the programs of the first words write."""
    return (((out.to(tl.int64) + at) | step.to(tl.int64) | length) & 3 != 0) & (block == 0)


@inline
def below(step, ROWS: tl.constexpr, KIND: tl.constexpr):
    """Return the number of words to the row ``ROWS`` rows below."""
    return step.to(tl.int64) * (ROWS if KIND == "words" else ROWS // 4)


@inline
def covered(c, low, high, KIND: tl.constexpr):
    """Return a mask of the bits, in words at the columns ``c``, that belong to columns from ``low`` to ``high``."""
    every = tl.full((1, 1), 0xFFFFFFFF, tl.uint32)
    if KIND == "words":
        bits = tl.where((c >= low) & (c < high), every, 0)
    else:  # two shifts, because a shift by 32 is undefined in Triton
        before = (tl.minimum(tl.maximum(low - c, 0), 4) * 4).to(tl.uint32)
        after = (tl.minimum(tl.maximum(tl.maximum(high, low) - c, 0), 4) * 4).to(tl.uint32)
        bits = (every << before << before) ^ (every << after << after)
    return bits


@inline
def choose(bits, value, other):
    """Return words with the ``bits`` of one word and all other bits of the other."""
    return other ^ ((other ^ value) & bits)


@inline
def bits_between(out, to, out_step, image, at, step, bits):
    """Return 0 if no word of an image must be shifted for an output, else ``bits``, which is ``BITS``."""
    starts = (out.to(tl.int64) + to) | (image.to(tl.int64) + at)
    return tl.where((starts | out_step.to(tl.int64) | step.to(tl.int64)) & 3 == 0, 0, bits)


@inline
def read(words, shift, c, low, high, shown, bits, KIND: tl.constexpr, WHOLE: tl.constexpr = False):
    """Return words of memory at the columns ``c`` of the rows that are ``shown``.

    Bytes outside of the columns from ``low`` to ``high`` may have any value. If the words are ``WHOLE``, those that
    are shown are between these columns. ``bits`` is the result of ``bits_between``.
    """
    if KIND == "words":
        value = tl.load(words, mask=shown if WHOLE else shown & ((c >= low) & (c < high)), other=0)
    elif KIND == "shifted":
        start = c - shift
        first, second = shown, shown & (shift > 0)
        if not WHOLE:
            first = shown & ((start > low - 4) & (start < high))
            second = shown & ((start > low - 8) & (start < high - 4))
        value = tl.load(words, mask=first, other=0)
        if bits > 0:
            by = ((shift * bits) & 31).to(tl.uint32)
            value = (value >> by) | (tl.load(words + 1, mask=second, other=0) << (32 - by))
            # A shift by 32 gives 0 in PTX, and also in Triton's interpreter.
    else:
        value = tl.full((1, 1), 0, tl.uint32)
        start = tl.max_contiguous(words.to(tl.pointer_type(tl.uint8)) + shift, [1, 2])
        for k in tl.static_range(4):
            there = (c + k >= low) & (c + k < high)
            byte = tl.load(tl.max_contiguous(start + k, [1, 2]), mask=shown & there, other=0)
            value = value | (byte.to(tl.uint32) << (8 * k))
    return value


@inline
def write(words, value, shown, c, length, KIND: tl.constexpr):
    """Store words of the rows that are ``shown``."""
    if KIND == "bytes":
        start = words.to(tl.pointer_type(tl.uint8))
        for k in tl.static_range(4):
            there = (c + k >= 0) & (c + k < length)
            byte = (value >> (8 * k)).to(tl.uint8)
            tl.store(tl.max_contiguous(start + k, [1, 2]), byte, mask=shown & there)
    else:
        tl.store(words, value, mask=shown)


@inline
def end_of_words(tensor, at, step, y, end, high, limit, ROWS: tl.constexpr):
    """Return the end of those rows, from ``y`` to ``end``, that may be read as words.

    Their columns up to ``high`` are read, and ``limit`` is ``limit_of`` the tensor. Only the last rows of a storage
    are excluded, ``ROWS`` at a time.
    """
    stop = end
    if (limit >= 0) & (end > y):
        base, last = tensor.to(tl.int64), tl.where(step < 0, y, end - 1)
        if ((base + at + last * step.to(tl.int64) + high + 3) & -4) - base > limit:
            stop = tl.where(step < 4, y, y + (end - 1 - y) // ROWS * ROWS)
    return stop
