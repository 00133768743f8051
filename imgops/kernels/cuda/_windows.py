"""Rows of images in pieces, for kernels that look at the pixels around each.

A thread takes 16 bytes of a row of uint8 at a time, as four words, or 4 values of another dtype. Where such a
block and the pixels around it lie inside of the row, the words hold all that is needed, and bytes are cut out
of them; near the ends of a row each value is loaded by itself, from the column that the border shows there.
Which of both a program does is one decision for all its threads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton.language as tl
from torch import Tensor

from imgops import _layout
from imgops.kernels.cuda._arithmetic import modulo
from imgops.kernels.cuda._launch import inline
from imgops.kernels.cuda._packed import Packed
from imgops.kernels.cuda._tiles import rows_in

#: The threads of a program, each of which has one piece of some rows.
THREADS = 128
#: The most channels of an interleaved image whose rows are taken whole.
_MOST_CHANNELS = 4


class Lines(NamedTuple):
    """The rows of a batch, for kernels.

    ``pixel`` is the number of values of a pixel next to each other, and ``step_x`` the step from value to value:
    an interleaved image of many channels is taken plane by plane, as if it were planar.
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
        """What kernels need to know of sizes."""
        return self.planes, self.height, self.width, self.pixel, self.step_x

    @property
    def length(self) -> int:
        return self.width * self.pixel


def lines_in(image: Tensor, interleaved: bool) -> Lines:
    """Return the rows of a batch ``(N, C, H, W)`` in a memory format; it is copied if they are not dense."""
    n, c, h, w = image.shape
    if not interleaved or c <= _MOST_CHANNELS:
        rows = rows_in(image, interleaved)
        return Lines(rows.tensor, n, rows.planes, h, w, rows.pixel, 1, rows.steps)
    if isinstance(image, Packed):
        return Lines(image, n, c, h, w, 1, c, (0, 0, 0))
    if not _layout.is_interleaved(image):
        image = _layout.in_format(image, True)
    return Lines(image, n, c, h, w, 1, c, (h * w * c, 1, w * c))


def lines_of(out: Tensor) -> Lines:
    """Return the rows of an output that was allocated in one of the two formats."""
    interleaved = out.interleaved if isinstance(out, Packed) else not out.is_contiguous()
    return lines_in(out, interleaved)


def format_of(out: Tensor) -> bool:
    """Return whether an output is interleaved."""
    return out.interleaved if isinstance(out, Packed) else not out.is_contiguous()


def tail_of(lines: Lines) -> int:
    """Return how many bytes at the end of a row do not belong to a block, so that no word beyond is read.

    Rows of words may end with a block. Other values than bytes, or bytes that do not lie next to each other, have
    no blocks.
    """
    if lines.tensor.dtype != torch.uint8 or lines.step_x > 1:
        return 1 << 30
    if isinstance(lines.tensor, Packed):
        return 4
    return 4 * ((lines.tensor.data_ptr() | lines.steps[0] | lines.steps[1] | lines.steps[2]) & 3 > 0)


@inline
def plane_at(
    plane, planes, height, width, pixel, step_x, step_n, step_c, step_y, sizes, starts, PACKED: tl.constexpr
):  # fmt: skip
    """Return where a plane begins, the step of its rows, and its number of rows and of values in a row."""
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
def append(values, value):
    """Return a tuple with one more value; kernels have no lists."""
    return values + (value,)  # noqa: RUF005 - Triton does not unpack in a tuple


@inline
def prepend(value, values):
    """Return a tuple with one more value before the others."""
    return (value,) + values  # noqa: RUF005


@inline
def load_four(at):
    """Load four values next to each other, at a multiple of 16 bytes, as a tuple."""
    every = tl.load(tl.multiple_of(at[:, None] + tl.arange(0, 4)[None, :], [1, 16]))
    even, odd = tl.split(tl.reshape(every, (every.shape[0], 2, 2)))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@inline
def store_four(at, values, mask):
    """Store a tuple of four values next to each other, at a multiple of 16 bytes."""
    pairs = tl.join(tl.join(values[0], values[2]), tl.join(values[1], values[3]))
    to = tl.multiple_of(at[:, None] + tl.arange(0, 4)[None, :], [1, 16])
    tl.store(to, tl.reshape(pairs, (values[0].shape[0], 4)), mask=mask[:, None])


@inline
def words_at(address, whole):
    """Return the 16 bytes at an address as four words; ``whole`` tells whether it is a multiple of 16.

    Bytes at another address are cut out of the aligned words around them.
    """
    if whole:
        a, b, c, d = load_four(address.to(tl.pointer_type(tl.uint32)))
    else:
        at, shift = word_at(address)
        a, b, c, d = tl.load(at), tl.load(at + 1), tl.load(at + 2), tl.load(at + 3)
        last = tl.load(at + 4, mask=shift > 0, other=0)
        a, b, c, d = cut(a, b, shift), cut(b, c, shift), cut(c, d, shift), cut(d, last, shift)
    return a, b, c, d


@inline
def word_at(address):
    """Return the aligned word that an address lies in, and how many bits before it."""
    before = address & 3
    return (address - before).to(tl.pointer_type(tl.uint32)), (before * 8).to(tl.uint32)


@inline
def cut(low, high, shift):
    """Return the word that begins ``shift`` bits within two words; a shift by 32 bits would be undefined."""
    return (low >> shift) | ((high << 1) << (shift ^ 31))


@inline
def reflect_row(i, size, is_far):
    """Return the row that is read for a row outside of an image; ``is_far`` tells whether some are far outside."""
    if is_far:
        i = modulo(i, tl.maximum(2 * size - 2, 1))
    last = 2 * size - 2
    i = tl.minimum(tl.abs(i), last)
    return tl.minimum(i, last - i)
