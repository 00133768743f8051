"""Images as pixels in memory order, for kernels that map each pixel or each value independently.

A program processes blocks of consecutive pixels of an image, or of one of its planes. Blocks begin at the beginning
of a vector, so the first block may begin before the image. A thread computes as many pixels as a vector has values,
even if channels are interleaved: three vectors are then sorted into channels in registers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import triton.language as tl
from torch import Tensor

from imgops._common import layout
from imgops.kernels.cuda._arithmetic import convert
from imgops.kernels.cuda._launch import constant, inline
from imgops.kernels.cuda._packed import Packed

#: The number of pixels that a program has in registers at a time.
BLOCK = 2048


class Cover(NamedTuple):
    """The programs that cover a batch, and the numbers with which they find their pixels."""

    image: Any
    programs: int
    #: The number of programs of a plane and of blocks of each program, the planes of an image, the values of a pixel,
    #: the factor of packed sizes, and the pixels of a plane.
    numbers: tuple[int, ...]
    constants: dict[str, Any]


def cover(out: Any, image: Any, kind: str, span: int) -> Cover:
    """Return how programs cover an image; copy the image if it does not have the memory format of the output.

    A program processes pixels with all their channels (``"pixels"``); or the values of one plane, or of three
    interleaved planes (``"planes"``); or arbitrary values of an image (``"values"``). It processes ``span`` blocks
    one after the other, and loads the data that they share only once.

    The constant ``FORM`` is the form of memory accesses: vectors, if planes have a ``"whole"`` number of vectors or a
    fractional one (``"vectors"``); shifted ``"words"``, if three planes begin at any byte; or ``"single"`` values.
    """
    shape, is_packed = image.shape, isinstance(out, Packed)
    channels, pixels, planes, factor = shape[-3], shape[-2] * shape[-1], 1, 1
    if is_packed:
        interleaved, images, at = out.interleaved, shape[0], out.data.data_ptr() | image.data.data_ptr()
    else:
        interleaved = not out.is_contiguous()
        if shape != out.shape or image.stride() != out.stride():
            if out.shape[-3] == 1:
                interleaved = layout.is_interleaved(image)
            image = layout.in_format(image.detach(), interleaved)
        images, at = image.numel() // max(channels * pixels, 1), out.data_ptr() | image.data_ptr()
    size = image.element_size()
    vector = 16 if size == 1 else 4
    if kind == "values":
        interleaved, factor, channels, pixels = False, channels, 1, pixels * channels
    elif kind == "planes" and not (interleaved and channels == 3):
        planes = channels
    is_whole = not is_packed and pixels % vector == 0
    form = "single" if at & 15 else "whole" if is_whole else "vectors"
    if interleaved and (not {channels, out.shape[-3]} <= {1, 3} or size != out.element_size()):
        form = "single"
    elif form == "vectors" and kind == "pixels" and not interleaved and max(channels, out.shape[-3]) > 1:
        form = "words" if size == 1 else "single"
    vector = 4 if form == "words" else vector
    parts = -(-(pixels if is_whole else pixels + vector - 1) // (BLOCK * span))
    constants = {"CHANNELS": channels // planes, "INTERLEAVED": interleaved, "FORM": form, "BLOCK": BLOCK}
    return Cover(image, images * planes * parts, (parts, span, planes, channels, factor, pixels), constants)


def parameter(value: Tensor, image: Any, core: int) -> tuple[Tensor, int]:
    """Return a contiguous parameter of ``core`` dimensions, in its own dtype, and its step from image to image."""
    own, lead = value.shape[value.ndim - core :], value.shape[: value.ndim - core]
    if lead.numel() == 1:
        return (value if value.is_contiguous() else value.contiguous()), 0
    if lead != image.shape[:-3]:
        value = value.expand(*image.shape[:-3], *own)
    return (value if value.is_contiguous() else value.contiguous()), own.numel()


@inline
def place_of(
    program, image, parts, span, planes, channels, factor, pixels, sizes, starts,
    PACKED: tl.constexpr, INTERLEAVED: tl.constexpr, FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Return the plane and the image of a program, and the positions of its pixels.

    The positions are: the beginning of the image; the beginning of the first block relative to it, which may be
    before the plane; the number of pixels of the plane; the step from pixel to pixel; the number of blocks; and the
    first pixel of the plane and the end of its pixels, counted from the first block. All are scalars; those that may
    exceed 32 bits have 64 bits.
    """
    VECTOR: tl.constexpr = vector_of(image.dtype.element_ty, FORM)
    plane, first = program // parts, (program % parts).to(tl.int64) * (span * BLOCK)
    n, c = (plane // planes).to(tl.int64), (plane % planes).to(tl.int64)
    if PACKED != "":
        pixels = tl.load(sizes + n * 2) * tl.load(sizes + n * 2 + 1) * factor
        start = tl.load(starts + n)
    else:
        pixels = pixels.to(tl.int64)
        start = n * channels * pixels
    if INTERLEAVED:
        step, within, before = channels, c, start // channels
    else:
        step, within, before = 1, c * pixels, start + c * pixels
    before = before % VECTOR if FORM == "vectors" else before * 0
    begin = tl.maximum(before - first, 0).to(tl.int32)
    end = tl.minimum(before + pixels - first, span * BLOCK + VECTOR).to(tl.int32)
    blocks = tl.minimum(tl.maximum(end + (BLOCK - 1), 0) // BLOCK, span)
    return plane.to(tl.int64), n, start, within + (first - before) * step, pixels, step, blocks, begin, end


@constant
def vector_of(kind: Any, form: str) -> int:
    """Return the pixels of a vector."""
    return 16 if kind.primitive_bitwidth == 8 and form != "words" else 4


@inline
def positions(begin, end, VECTOR: tl.constexpr, BLOCK: tl.constexpr):
    """Return the numbers of the pixels of a block, and which of them lie inside."""
    p = tl.arange(0, BLOCK // VECTOR)[:, None] * VECTOR + tl.arange(0, VECTOR)[None, :]
    return p, (p >= begin) & (p < end)


@inline
def is_whole(image, begin, end, FORM: tl.constexpr, BLOCK: tl.constexpr):
    """Return whether a block can be accessed in its form, because all pixels of its vectors are in the plane."""
    if FORM == "vectors":
        whole = (tl.maximum(begin, 0) | tl.minimum(end, BLOCK)) % vector_of(image.dtype.element_ty, FORM) == 0
    elif FORM == "words":
        whole = (begin <= 0) & (end >= BLOCK + 4)  # so that only pixels are read
    else:
        whole: tl.constexpr = True  # type: ignore[no-redef]
    return whole


@inline
def load_pixels(
    image, at, pixels, step, begin, end, WHOLE: tl.constexpr, CHANNELS: tl.constexpr,
    INTERLEAVED: tl.constexpr, FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Return up to four channels of a block as ``(BLOCK // vector, vector)``, integers or floats of 32 bits.

    The block begins at the offset ``at``. Its pixels from ``begin`` to before ``end`` are loaded, and the others are
    0. A pixel of an interleaved image has ``step`` values. Missing channels repeat the first one.
    """
    VECTOR: tl.constexpr = vector_of(image.dtype.element_ty, FORM)
    between = 1 if INTERLEAVED else pixels
    if FORM == "single":
        r, g, b, a = _load_each(image + at, between, step, begin, end, CHANNELS, VECTOR, BLOCK)
    elif FORM == "words" and WHOLE:
        if (at | between) % 4 == 0:
            r, g, b, a = load_vectors(image + at, between, 0, BLOCK, CHANNELS, False, True, 4, BLOCK)
        else:
            r, g, b, a = _load_words(image, at, between, CHANNELS, BLOCK)
    else:
        r, g, b, a = load_vectors(
            image + at, between, begin, end, CHANNELS, INTERLEAVED, WHOLE, VECTOR, BLOCK
        )
    return r, g, b, a


@inline
def store_pixels(
    out, at, pixels, step, begin, end, r, g, b, a, WHOLE: tl.constexpr, CHANNELS: tl.constexpr,
    INTERLEAVED: tl.constexpr, FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Store channels from ``load_pixels``; floats to be stored as levels are integers in their range."""
    VECTOR: tl.constexpr = r.shape[1]
    between = 1 if INTERLEAVED else pixels
    if FORM == "single":
        _store_each(out + at, between, step, begin, end, r, g, b, a, CHANNELS, VECTOR, BLOCK)
    elif FORM == "words" and WHOLE:
        if (at | between) % 4 == 0:
            store_vectors(out + at, between, 0, BLOCK, r, g, b, a, CHANNELS, False, True, 4, BLOCK)
        else:
            store_vectors(out + at, between, begin, end, r, g, b, a, CHANNELS, False, False, 4, BLOCK)
    else:
        store_vectors(out + at, between, begin, end, r, g, b, a, CHANNELS, INTERLEAVED, WHOLE, VECTOR, BLOCK)


@inline
def _load_each(
    at, between, step, begin, end, CHANNELS: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr
):
    """Load value by value."""
    p, inside = positions(begin, end, VECTOR, BLOCK)
    at += p * step
    r = _number(tl.load(at, mask=inside, other=0))
    g, b, a = r, r, r
    if CHANNELS > 1:
        g = _number(tl.load(at + between, mask=inside, other=0))
    if CHANNELS > 2:
        b = _number(tl.load(at + 2 * between, mask=inside, other=0))
    if CHANNELS > 3:
        a = _number(tl.load(at + 3 * between, mask=inside, other=0))
    return r, g, b, a


@inline
def _store_each(
    at, between, step, begin, end, r, g, b, a, CHANNELS: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    p, inside = positions(begin, end, VECTOR, BLOCK)
    at += p * step
    tl.store(at, _value(r, at), mask=inside)
    if CHANNELS > 1:
        tl.store(at + between, _value(g, at), mask=inside)
    if CHANNELS > 2:
        tl.store(at + 2 * between, _value(b, at), mask=inside)
    if CHANNELS > 3:
        tl.store(at + 3 * between, _value(a, at), mask=inside)


@inline
def _load_words(image, at, between, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    """Load four levels at once from planes that begin at any byte."""
    r = _load_shifted(image, at, BLOCK)
    g, b, a = r, r, r
    if CHANNELS > 1:
        g = _load_shifted(image, at + between, BLOCK)
    if CHANNELS > 2:
        b = _load_shifted(image, at + 2 * between, BLOCK)
    if CHANNELS > 3:
        a = _load_shifted(image, at + 3 * between, BLOCK)
    return r, g, b, a


@inline
def _load_shifted(image, at, BLOCK: tl.constexpr):
    words = image.to(tl.pointer_type(tl.uint32)) + at // 4 + tl.arange(0, BLOCK // 4)
    shift = (at % 4 * 8).to(tl.uint32)
    word = (tl.load(words) >> shift) | ((tl.load(words + 1) << 1) << (shift ^ 31))
    word = word.to(tl.int32, bitcast=True)
    return _join(word & 255, (word >> 8) & 255, (word >> 16) & 255, (word >> 24) & 255)


@inline
def load_vectors(
    at, between, begin, end, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr, WHOLE: tl.constexpr,
    VECTOR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Load channels vector by vector or, if vectors are not ``WHOLE``, value by value with the same threads."""
    if INTERLEAVED and CHANNELS == 3:
        x, y, z = _load_thirds(at, begin, end, WHOLE, VECTOR, BLOCK)
        if at.dtype.element_ty == tl.uint8:
            r = _join(x & 255, (x >> 24) & 255, (y >> 16) & 255, (z >> 8) & 255)
            g = _join((x >> 8) & 255, y & 255, (y >> 24) & 255, (z >> 16) & 255)
            b = _join((x >> 16) & 255, (y >> 8) & 255, z & 255, (z >> 24) & 255)
        else:
            r, g, b = _number(x), _number(y), _number(z)
        a = r
    else:
        r = _load_vector(at, begin, end, WHOLE, VECTOR, BLOCK)
        g, b, a = r, r, r
        if CHANNELS > 1:
            g = _load_vector(at + between, begin, end, WHOLE, VECTOR, BLOCK)
        if CHANNELS > 2:
            b = _load_vector(at + 2 * between, begin, end, WHOLE, VECTOR, BLOCK)
        if CHANNELS > 3:
            a = _load_vector(at + 3 * between, begin, end, WHOLE, VECTOR, BLOCK)
    return r, g, b, a


@inline
def store_vectors(
    at, between, begin, end, r, g, b, a, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr,
    WHOLE: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    if INTERLEAVED and CHANNELS == 3:
        if at.dtype.element_ty == tl.uint8:
            r0, r1, r2, r3 = _quarters(r)
            g0, g1, g2, g3 = _quarters(g)
            b0, b1, b2, b3 = _quarters(b)
            x, y, z = _word(r0, g0, b0, r1), _word(g1, b1, r2, g2), _word(b2, r3, g3, b3)
        else:
            x, y, z = _value(r, at), _value(g, at), _value(b, at)
        _store_thirds(at, begin, end, x, y, z, WHOLE, VECTOR, BLOCK)
    else:
        _store_vector(at, begin, end, r, WHOLE, VECTOR, BLOCK)
        if CHANNELS > 1:
            _store_vector(at + between, begin, end, g, WHOLE, VECTOR, BLOCK)
        if CHANNELS > 2:
            _store_vector(at + 2 * between, begin, end, b, WHOLE, VECTOR, BLOCK)
        if CHANNELS > 3:
            _store_vector(at + 3 * between, begin, end, a, WHOLE, VECTOR, BLOCK)


@inline
def _vectors(at, begin, end, WHOLE: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr):
    """Return the addresses of pixels, and a mask of the pixels to access.

    The hint that vectors are aligned decides which pixels a thread gets. Whether the thread accesses them at once
    also depends on the mask.
    """
    row = tl.arange(0, BLOCK // VECTOR)[:, None] * VECTOR
    p = row + tl.arange(0, VECTOR)[None, :]
    if WHOLE:
        inside = (row >= begin) & (row < end)
    else:
        inside = (p >= begin) & (p < end)
    BYTES: tl.constexpr = at.dtype.element_ty.primitive_bitwidth // 8 * VECTOR
    return tl.multiple_of(at + p, [1, BYTES if BYTES < 16 else 16]), inside


@inline
def _load_vector(at, begin, end, WHOLE: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr):
    here, inside = _vectors(at, begin, end, WHOLE, VECTOR, BLOCK)
    return _number(tl.load(here, mask=inside, other=0))


@inline
def _store_vector(at, begin, end, x, WHOLE: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr):
    if WHOLE and at.dtype.element_ty == tl.uint8 and x.dtype == tl.float32:
        x0, x1, x2, x3 = _quarters(x)
        row = tl.arange(0, BLOCK // VECTOR)[:, None] * VECTOR
        words = tl.reshape(_word(x0, x1, x2, x3), [BLOCK // VECTOR, VECTOR // 4])
        to = at.to(tl.pointer_type(tl.int32)) + (row // 4 + tl.arange(0, VECTOR // 4)[None, :])
        tl.store(tl.multiple_of(to, [1, VECTOR]), words, mask=(row >= begin) & (row < end))
    else:
        here, inside = _vectors(at, begin, end, WHOLE, VECTOR, BLOCK)
        tl.store(here, _value(x, at), mask=inside)


@inline
def _load_thirds(at, begin, end, WHOLE: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr):
    """Load three values for each pixel, or words of four levels, and sort them into the three channels.

    The results are ``(BLOCK // VECTOR, 4)``, because a vector of pixels has 12 values or words.
    """
    a0, b0, c0, a1 = _quarters(_load_third(at, begin, end, 0, WHOLE, VECTOR, BLOCK))
    b1, c1, a2, b2 = _quarters(_load_third(at, begin, end, 1, WHOLE, VECTOR, BLOCK))
    c2, a3, b3, c3 = _quarters(_load_third(at, begin, end, 2, WHOLE, VECTOR, BLOCK))
    return _join(a0, a1, a2, a3), _join(b0, b1, b2, b3), _join(c0, c1, c2, c3)


@inline
def _store_thirds(at, begin, end, a, b, c, WHOLE: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr):
    a0, a1, a2, a3 = _quarters(a)
    b0, b1, b2, b3 = _quarters(b)
    c0, c1, c2, c3 = _quarters(c)
    _store_third(at, begin, end, _join(a0, b0, c0, a1), 0, WHOLE, VECTOR, BLOCK)
    _store_third(at, begin, end, _join(b1, c1, a2, b2), 1, WHOLE, VECTOR, BLOCK)
    _store_third(at, begin, end, _join(c2, a3, b3, c3), 2, WHOLE, VECTOR, BLOCK)


@inline
def _load_third(
    at, begin, end, THIRD: tl.constexpr, WHOLE: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr
):
    here, inside = _third(at, begin, end, THIRD, False, WHOLE, VECTOR, BLOCK)
    x = tl.load(here, mask=inside, other=0)
    if at.dtype.element_ty == tl.uint8:  # the compiler recognizes these words as the loaded ones
        x0, x1, x2, x3 = _quarters(x)
        x = _word(x0, x1, x2, x3)
    return x


@inline
def _store_third(
    at, begin, end, x, THIRD: tl.constexpr, WHOLE: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr
):
    LEVELS: tl.constexpr = at.dtype.element_ty == tl.uint8
    here, inside = _third(at, begin, end, THIRD, LEVELS and WHOLE, WHOLE, VECTOR, BLOCK)
    if LEVELS and not WHOLE:
        x = _join(x, x >> 8, x >> 16, x >> 24).to(tl.uint8)
    tl.store(here, x, mask=inside)


@inline
def _third(
    at, begin, end, THIRD: tl.constexpr, WORDS: tl.constexpr, WHOLE: tl.constexpr, VECTOR: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Return the addresses of a third of the values, or words, of vectors of pixels, and a mask for the access."""
    row = tl.arange(0, BLOCK // VECTOR)[:, None]
    LENGTH: tl.constexpr = VECTOR // 4 if WORDS else VECTOR
    if WORDS:
        at = at.to(tl.pointer_type(tl.int32))
    value = row * (3 * LENGTH) + (THIRD * LENGTH + tl.arange(0, LENGTH)[None, :])
    if WHOLE:
        inside = (row * VECTOR >= begin) & (row * VECTOR < end)
    else:
        inside = (value >= begin * 3) & (value < end * 3)
    BYTES: tl.constexpr = at.dtype.element_ty.primitive_bitwidth // 8 * LENGTH
    return tl.multiple_of(at + value, [1, BYTES if BYTES < 16 else 16]), inside


@inline
def _quarters(x):
    """Return every fourth column of ``(rows, columns)``, from the first, second, third and fourth column on."""
    COLUMNS: tl.constexpr = x.shape[1] // 4
    even, odd = tl.split(tl.reshape(x, [x.shape[0], COLUMNS, 2, 2]))
    a, c = tl.split(even)
    b, d = tl.split(odd)
    shape: tl.constexpr = [x.shape[0]] if COLUMNS == 1 else [x.shape[0], COLUMNS]
    return tl.reshape(a, shape), tl.reshape(b, shape), tl.reshape(c, shape), tl.reshape(d, shape)


@inline
def _join(a, b, c, d):
    """Join the columns that ``_quarters`` separates."""
    x = tl.join(tl.join(a, c), tl.join(b, d))
    return tl.reshape(x, [x.shape[0], x.numel // x.shape[0]])


@inline
def _word(a, b, c, d):
    """Return four levels as the bytes of a word."""
    if a.dtype == tl.float32:  # two bytes at once are exact in a float
        byte = tl.full(a.shape, 256.0, tl.float32)
        low, high = tl.fma(b, byte, a).to(tl.int32), tl.fma(d, byte, c).to(tl.int32)
        word = low + high * 65536
    else:
        word = a.to(tl.int32) + b.to(tl.int32) * 256 + c.to(tl.int32) * 65536 + d.to(tl.int32) * 16777216
    return word


@inline
def _number(x):
    """Return loaded values as integers or floats of 32 bits."""
    return x.to(tl.float32) if x.dtype.is_floating() else x.to(tl.int32)


@inline
def _value(x, at):
    """Convert a computed value to the dtype of memory."""
    to: tl.constexpr = at.dtype.element_ty
    if to.is_floating() and x.dtype != to:
        x = convert(x, to)
    return x.to(to)
