"""Rows of images in pieces, for kernels that read the neighborhood of each pixel.

A thread processes 16 bytes of a row of uint8 at a time, as four words, or 4 values of another dtype. If such a block
and the pixels around it are inside of the row, they are loaded as words, and the bytes are extracted from these. Near
the ends of a row, each value is loaded separately, from the column that the border selects. The choice is the same
for all threads of a program.
"""

# ruff: noqa: RUF005 - Triton does not unpack within a tuple

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton.language as tl
from torch import Tensor

from imgops._common import layout
from imgops.kernels.cuda._arithmetic import convert, fold_positions, modulo
from imgops.kernels.cuda._launch import inline
from imgops.kernels.cuda._packed import Packed
from imgops.kernels.cuda._tiles import rows_in

#: The number of threads of a program, each of which processes one piece of some rows.
THREADS = 128
#: The largest number of channels of an interleaved image whose rows are processed as a whole.
_MOST_CHANNELS = 4


class Lines(NamedTuple):
    """The rows of a batch, for kernels.

    ``pixel`` is the number of adjacent values of a pixel, and ``step_x`` the step from value to value: an interleaved
    image with many channels is processed plane by plane, as if it were planar.
    """

    tensor: Any
    images: int
    planes: int
    height: int
    width: int
    pixel: int
    step_x: int
    #: The steps from image to image, from plane to plane and from row to row.
    steps: tuple[int, int, int]

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes that kernels need."""
        return self.planes, self.height, self.width, self.pixel, self.step_x

    @property
    def length(self) -> int:
        return self.width * self.pixel


def lines_in(image: Tensor, interleaved: bool) -> Lines:
    """Return the rows of a batch ``(N, C, H, W)`` in a memory format; copy the batch if they are not dense."""
    n, c, h, w = image.shape
    if not interleaved or c <= _MOST_CHANNELS:
        rows = rows_in(image, interleaved)
        return Lines(rows.tensor, n, rows.planes, h, w, rows.pixel, 1, rows.steps)
    if isinstance(image, Packed):
        return Lines(image, n, c, h, w, 1, c, (0, 0, 0))
    return Lines(layout.in_format(image, True), n, c, h, w, 1, c, (h * w * c, 1, w * c))


def lines_of(out: Tensor) -> Lines:
    """Return the rows of an output, which was allocated in one of the two formats."""
    interleaved = out.interleaved if isinstance(out, Packed) else not out.is_contiguous()
    return lines_in(out, interleaved)


def format_of(out: Tensor) -> bool:
    """Return whether an output is interleaved."""
    return out.interleaved if isinstance(out, Packed) else not out.is_contiguous()


def unit_of(lines: Lines) -> int:
    """Return the number of values of a block."""
    return 16 if lines.tensor.dtype == torch.uint8 else 4


def tail_of(lines: Lines) -> int:
    """Return how many values at a row's end belong to no block, so that no word beyond the row is read.

    If values are not adjacent, there are no blocks.
    """
    if lines.step_x > 1:
        return 1 << 30
    if lines.tensor.dtype != torch.uint8:
        return 0
    if isinstance(lines.tensor, Packed):
        return 4
    return 4 * ((lines.tensor.data_ptr() | lines.steps[0] | lines.steps[1] | lines.steps[2]) & 3 > 0)


def parts_of(lines: Lines, left: int, right: int, rows: int) -> tuple[int, int, int]:
    """Return the tail of rows, the number of parts of a plane that are blocks, and the total number of parts.

    A thread processes ``rows`` rows of its piece, and reads ``left`` values before it and ``right`` values after it.
    """
    tail, unit = tail_of(lines), unit_of(lines)
    first, more = -(-left // unit), tail + (right + 3) // 4 * 4
    blocks = max((lines.length - more) // unit - first, 0)
    quads = -(-(lines.length - unit * blocks) // 4)
    if isinstance(lines.tensor, Packed):  # a narrower image may have more of them
        quads = min(-(-lines.length // 4), (first * unit + more + unit + 3) // 4)
    groups = -(-lines.height // rows)
    inner = -(-groups * blocks // THREADS)
    return tail, inner, inner + -(-groups * quads // THREADS)


@inline
def plane_at(
    plane, planes, height, width, pixel, step_x, step_n, step_c, step_y, sizes, starts, PACKED: tl.constexpr
):  # fmt: skip
    """Return a plane's beginning, the step of its rows, and the numbers of its rows and of values in a row."""
    n, c = (plane // planes).to(tl.int64), (plane % planes).to(tl.int64)
    if PACKED == "":
        start, line = n * step_n + c * step_c, step_y
    else:
        height, width = tl.load(sizes + n * 2).to(tl.int32), tl.load(sizes + n * 2 + 1).to(tl.int32)
        line = width * (pixel * step_x)
        start = tl.load(starts + n)
        if PACKED == "planar":
            start += c * height * width
        else:
            start += c
    return start, line, height, width * pixel


@inline
def no_values():
    """Return an empty tuple, to which values of any type may be appended."""
    return ()


@inline
def piece_of(
    part, inner, height, length, tail, left, right, ROWS: tl.constexpr, UNIT: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Return the first row and column of each thread's piece, and whether this part of the plane has any pieces.

    The first ``inner`` parts are blocks; the others process 4 values at a time before and after the blocks of a row.
    """
    groups, first = (height + ROWS - 1) // ROWS, (left + (UNIT - 1)) // UNIT
    blocks = tl.maximum((length - tail - (right + 3) // 4 * 4) // UNIT - first, 0)
    is_inner = part < inner
    part = tl.where(is_inner, part, part - inner)
    each = tl.where(is_inner, blocks, (length - UNIT * blocks + 3) // 4)
    element = part * BLOCK + tl.arange(0, BLOCK)
    row, k = element // tl.maximum(each, 1), element % tl.maximum(each, 1)
    quads = tl.where(k < first * (UNIT // 4), k, k + blocks * (UNIT // 4))
    column = tl.where(is_inner, (k + first) * UNIT, quads * 4)
    return row * ROWS, column, part * BLOCK < groups * each


@inline
def load_four(at, mask=None, OTHER: tl.constexpr = 0):
    """Load four adjacent values at a multiple of 16 bytes, as a tuple."""
    where = tl.multiple_of(at[:, None] + tl.arange(0, 4)[None, :], [1, 16])
    every = load_masked(where, None if mask is None else mask[:, None], OTHER)
    even, odd = tl.split(tl.reshape(every, (every.shape[0], 2, 2)))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@inline
def store_four(at, values, mask):
    """Store a tuple of four adjacent values at a multiple of 16 bytes."""
    pairs = tl.join(tl.join(values[0], values[2]), tl.join(values[1], values[3]))
    to = tl.multiple_of(at[:, None] + tl.arange(0, 4)[None, :], [1, 16])
    tl.store(to, tl.reshape(pairs, (values[0].shape[0], 4)), mask=mask[:, None])


@inline
def fours_at(at, FIRST: tl.constexpr, COUNT: tl.constexpr, mask=None, OTHER: tl.constexpr = 0):
    """Return 4-byte values of a row, counted from a multiple of 16 bytes."""
    BEFORE: tl.constexpr = FIRST % 4
    values = no_values()
    for i in tl.static_range((BEFORE + COUNT + 3) // 4):
        values = values + load_four(at + (FIRST - BEFORE + 4 * i), mask, OTHER)
    return values[BEFORE : BEFORE + COUNT]


@inline
def cut_words_at(address, FIRST: tl.constexpr, COUNT: tl.constexpr, mask=None, OTHER: tl.constexpr = 0):
    """Return words of a row, counted from any address, extracted from the aligned words around them."""
    before = address & 3
    at, shift = (address - before).to(tl.pointer_type(tl.uint32)) + FIRST, (before * 8).to(tl.uint32)
    last = shift > 0 if mask is None else (shift > 0) & mask
    words, word = no_values(), load_masked(at, mask, OTHER)
    for i in tl.static_range(COUNT):
        following = load_masked(at + (i + 1), last if i == COUNT - 1 else mask, OTHER)
        # A shift by 32 bits would be undefined.
        words = words + ((word >> shift) | ((following << 1) << (shift ^ 31)),)
        word = following
    return words


@inline
def load_masked(at, mask, OTHER: tl.constexpr):
    """Load values; without a mask, all of them."""
    if mask is None:
        value = tl.load(at)
    else:
        value = tl.load(at, mask=mask, other=OTHER)
    return value


@inline
def words_at(address, whole, FIRST: tl.constexpr, COUNT: tl.constexpr, mask=None, OTHER: tl.constexpr = 0):
    """Return words of a row, counted from an address; ``whole`` says whether the address is a multiple of 16."""
    if whole:
        words = fours_at(address.to(tl.pointer_type(tl.uint32)), FIRST, COUNT, mask, OTHER)
    else:
        words = cut_words_at(address, FIRST, COUNT, mask, OTHER)
    return words


@inline
def bytes_at(
    address, whole, FIRST: tl.constexpr, COUNT: tl.constexpr, mask=None, OTHER: tl.constexpr = 0
):  # fmt: skip
    """Return bytes of a row, counted from an address, as 32-bit integers."""
    BEFORE: tl.constexpr = FIRST % 4
    words = words_at(address, whole, (FIRST - BEFORE) // 4, (BEFORE + COUNT + 3) // 4, mask, OTHER)
    values = no_values()
    for i in tl.static_range(COUNT):
        word = words[(BEFORE + i) // 4] >> (8 * ((BEFORE + i) % 4))
        values = values + (word & 0xFF,)
    return values


@inline
def values_at(at, whole, FIRST: tl.constexpr, COUNT: tl.constexpr, mask=None, OTHER: tl.constexpr = 0):
    """Return values of a row, counted from a pointer, in single precision."""
    if at.dtype.element_ty == tl.float32:
        if whole:
            values = fours_at(at, FIRST, COUNT, mask, OTHER)
        else:
            values = single_values_at(at, FIRST, COUNT, mask, OTHER)
    else:
        values = single_values_at(at, FIRST, COUNT, mask, OTHER)
    return values


@inline
def single_values_at(at, FIRST: tl.constexpr, COUNT: tl.constexpr, mask=None, OTHER: tl.constexpr = 0):
    values = no_values()
    for i in tl.static_range(COUNT):
        values = values + (load_masked(at + (FIRST + i), mask, OTHER).to(tl.float32),)
    return values


@inline
def reflect_row(i, size, is_far):
    """Return the row to read for a row outside of an image; ``is_far`` says whether some rows are far outside."""
    if is_far:
        i = modulo(i, tl.maximum(2 * size - 2, 1))
    last = 2 * size - 2
    i = tl.minimum(tl.abs(i), last)
    return tl.minimum(i, last - i)


@inline
def border_at(i, size, BORDER: tl.constexpr):
    """Return the pixel to read at a position, and whether the position is in the image."""
    if BORDER == "constant":
        at = tl.minimum(tl.maximum(i, 0), size - 1)
    elif BORDER == "doubled":  # as in an image of double size: reflected before the first pixel
        at = tl.minimum(tl.abs(i), size - 1)
    else:
        at = fold_positions(i, size, BORDER)
    return at, (i >= 0) & (i < size)


@inline
def places_at(
    row, column, shift, FIRST: tl.constexpr, COUNT: tl.constexpr, width, PIXEL: tl.constexpr, step_x, BORDER: tl.constexpr
):  # fmt: skip
    """Return pointers to the values of a row that a border selects, and a mask of the values inside of the image.

    They are counted from ``shift`` pixels after a column.
    """
    places, insides = no_values(), no_values()
    BEFORE: tl.constexpr = (PIXEL - 1 - FIRST) // PIXEL
    for i in tl.static_range(COUNT):
        c = column + (FIRST + i + BEFORE * PIXEL)
        x, inside = border_at(c // PIXEL + (shift - BEFORE), width, BORDER)
        places = places + (row + (x * PIXEL + c % PIXEL).to(tl.int64) * step_x,)
        insides = insides + (inside,)
    return places, insides


@inline
def is_whole(row, step, length):
    """Return whether rows begin at multiples of 16 bytes, and end there."""
    bits: tl.constexpr = row.dtype.element_ty.primitive_bitwidth // 8
    return (row.to(tl.int64) | (step * bits) | (length * bits)) % 16 == 0


@inline
def rest_of(row, step, length, step_x):
    """Return the offset of rows or their ends from a multiple of 16 bytes; 1 if values are not adjacent."""
    bits: tl.constexpr = row.dtype.element_ty.primitive_bitwidth // 8
    rest = (row.to(tl.int64) | (step * bits) | (length * bits)) & 15
    return tl.where(step_x == 1, rest, 1)


@inline
def store_values(row, values, column, step_x, stop, rest):
    """Store values of a row from a column on, up to the column ``stop`` (exclusive).

    They are stored as words, four at a time if their number and the ``rest`` of the rows allow it. A column is a
    multiple of the number of values.
    """
    kind: tl.constexpr = row.dtype.element_ty
    if kind == tl.uint8:
        _store_words(row, values, column, step_x, stop, rest, 4)
    elif kind == tl.int16:
        _store_words(row, values, column, step_x, stop, rest, 2)
    elif kind == tl.float32:
        _store_words(row, values, column, step_x, stop, rest, 1)
    else:
        store_single_values(row, values, column, step_x, stop)


@inline
def _store_words(row, values, column, step_x, stop, rest, EACH: tl.constexpr):
    """Store values, ``EACH`` of them per word."""
    if rest % 4 == 0:
        words = words_of(values, EACH)
        if len(words) % 4 == 0 and rest == 0:
            for i in tl.static_range(0, len(words), 4):
                to = (row + (column + i * EACH)).to(tl.pointer_type(words[0].dtype))
                store_four(to, words[i : i + 4], column + i * EACH < stop)
        else:
            for i in tl.static_range(len(words)):
                to = (row + (column + i * EACH)).to(tl.pointer_type(words[0].dtype))
                tl.store(to, words[i], mask=column + i * EACH < stop)
    else:
        store_single_values(row, values, column, step_x, stop)


@inline
def words_of(values, EACH: tl.constexpr):
    """Return values as words, which have four bytes, two pairs of bytes, or one value each."""
    words = no_values()
    for i in tl.static_range(0, len(values), EACH):
        if EACH == 4:
            low, high = values[i] | values[i + 1] << 8, values[i + 2] | values[i + 3] << 8
            words = words + (low | high << 16,)
        elif EACH == 2:
            words = words + (values[i] & 0xFFFF | values[i + 1] << 16,)
        else:
            words = words + (values[i],)
    return words


@inline
def store_single_values(row, values, column, step_x, stop):
    for i in tl.static_range(len(values)):
        if row.dtype.element_ty == tl.uint8 or row.dtype.element_ty == tl.int16:
            value = values[i].to(row.dtype.element_ty)
        else:
            value = convert(values[i], row.dtype.element_ty)
        tl.store(row + (column + i).to(tl.int64) * step_x, value, mask=column + i < stop)


@inline
def window_at(
    row, column, shift, whole, has_row, OUTSIDE: tl.constexpr, COUNT: tl.constexpr, LEFT: tl.constexpr, length, step_x,
    PIXEL: tl.constexpr, INNER: tl.constexpr, BORDER: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """Return values of a row from ``LEFT`` values before a column moved by ``shift`` pixels.

    With a constant border, values outside of the image are ``OUTSIDE``, which is 0 or 255 for bytes. Only inner
    pieces may be read as words.
    """
    LEVELS: tl.constexpr = row.dtype.element_ty == tl.uint8
    mask = has_row if BORDER == "constant" else None
    values = no_values()
    if INNER and LEVELS:
        WORD: tl.constexpr = 0xFFFFFFFF if OUTSIDE == 255 else 0
        address = (row + (column + shift * PIXEL)).to(tl.int64)
        every = bytes_at(address, whole, -LEFT, COUNT, mask, WORD)
        for i in tl.static_range(COUNT):
            values = values + (every[i].to(KIND),)
    elif INNER:
        values = values_at(row + (column + shift * PIXEL), whole, -LEFT, COUNT, mask, OUTSIDE)
    else:
        places, insides = places_at(row, column, shift, -LEFT, COUNT, length // PIXEL, PIXEL, step_x, BORDER)
        for i in tl.static_range(COUNT):
            inside = has_row & insides[i] if BORDER == "constant" else None
            values = values + (load_masked(places[i], inside, OUTSIDE).to(KIND),)
    return values
