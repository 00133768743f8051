"""The CUDA kernel of jpeg: the losses of a JPEG file, without the file.

Entropy coding is lossless, so it is omitted. Three launches convert pixels to samples of luma and of chroma at half
the resolution; transform, quantize and restore the blocks of samples in place; and convert the samples back. A thread
processes 4 pixels of 2 rows, which have two samples of chroma, or a block of 8 x 8 samples.
"""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from PIL import features
from torch import Tensor

from imgops._common import compare, layout
from imgops.kernels.cuda import _jpeg
from imgops.kernels.cuda._arithmetic import convert, round_half_even
from imgops.kernels.cuda._launch import blocks, inline, kernel, launch
from imgops.kernels.cuda._tiles import batch, is_interleaved, output_batch, per_image

#: The number of work items, one per thread at a time, in a program.
_LANES = 128


def jpeg(out: Tensor, image: Tensor, quality: Tensor) -> Any:
    if not _pillow_has_libjpeg_turbo():
        return NotImplemented
    target = output_batch(out)
    interleaved = is_interleaved(target)
    source = batch(layout.in_format(image.detach(), interleaved))
    images, channels, height, width = target.shape
    if out.numel() == 0:
        return None
    numbers, quality_n = per_image(quality, image, 0, quality.dtype)
    is_color = channels == 3
    grid = images, -(-height // 8), -(-width // 8)
    of_luma, of_chroma = grid[1] * grid[2], -(-height // 16) * -(-width // 16) * 2 * is_color
    samples = torch.empty((images * (of_luma + of_chroma), 16), dtype=torch.int32, device=out.device)
    tables = torch.empty((images if quality_n else 1, 2, 64), dtype=torch.int64, device=out.device)
    size = height * width
    pixels = height, width, channels * size, 1 if interleaved else size, quality_n
    are_words = out.dtype == torch.uint8 and width % 4 == source.data_ptr() % 4 == target.data_ptr() % 4 == 0
    how = {"COLOR": is_color, "INTERLEAVED": interleaved, "WORDS": are_words, "LANES": _LANES}
    parts = blocks((16 * of_chroma if is_color else 8 * of_luma, _LANES))
    launch(
        _samples_kernel,
        images * parts,
        *(source, samples, tables, numbers, *pixels, *grid, parts),
        **how,
    )
    programs = blocks((images * of_luma, _LANES)), blocks((images * of_chroma, _LANES))
    launch(
        _blocks_kernel,
        sum(programs),
        *(samples, tables, numbers, quality_n, *grid, programs[0]),
        LANES=_LANES,
    )
    parts = blocks((-(-height // 2) * -(-width // 4), _LANES))
    launch(
        _pixels_kernel,
        images * parts,
        *(target, source, samples, numbers, *pixels, *grid, parts),
        **how,
        SMOOTH=width > 4,
    )
    return None


@compare.comparison("jpeg on CUDA", "Pillow")
def _pillow_has_libjpeg_turbo() -> bool:
    """Return whether Pillow uses libjpeg-turbo, because other libraries have another arithmetic."""
    has, has_other = (features.check_feature(name) for name in ("libjpeg_turbo", "mozjpeg"))
    return bool(has and not has_other)


# -- from pixels to samples --------------------------------------------------------------------------


@kernel(4)
def _samples_kernel(
    image, samples, tables, qualities,
    height, width, image_n, image_c, quality_n, images, down, across, parts,
    COLOR: tl.constexpr, INTERLEAVED: tl.constexpr, LANES: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """Write the samples of whole blocks; beyond the image, its last column and row repeat."""
    part, n = tl.program_id(0) % parts, (tl.program_id(0) // parts).to(tl.int64)
    quality = _whole(tl.load(qualities + n * quality_n))
    if quality > 0:
        if (part == 0) & ((n == 0) | (quality_n > 0)):
            k = tl.arange(0, 64)
            entry = tables + n * (quality_n * 128) + k
            tl.store(entry, _jpeg.quantization_table(quality, k, _jpeg._LUMA_ROWS))
            tl.store(entry + 64, _jpeg.quantization_table(quality, k, _jpeg._CHROMA_ROWS))
        lane = part * LANES + tl.arange(0, LANES)
        fours = 4 * ((across + 1) // 2) if COLOR else 2 * across
        pair, four = lane // fours, lane % fours
        inside = pair < (8 * ((down + 1) // 2) if COLOR else 4 * down)
        source = image + n * image_n
        upper = tl.minimum(2 * pair, (height - 1) // 2 * 2)  # the last pair of rows repeats below the image
        lower = tl.minimum(upper + 1, height - 1)
        above = _load_four(source, upper, four, width, image_c, inside, COLOR, INTERLEAVED, WORDS)
        below = _load_four(source, lower, four, width, image_c, inside, COLOR, INTERLEAVED, WORDS)
        beyond = four * 4 >= width
        y = 2 * pair
        at = samples + n * (16 * down * across) + y.to(tl.int64) * (2 * across) + four
        here = inside & (four < 2 * across)
        first = _luma_word(above, beyond, COLOR, WORDS)
        second = _luma_word(below, beyond, COLOR, WORDS)
        tl.store(at, tl.where(y < height, first, second), mask=here & (y < 8 * down))
        tl.store(at + 2 * across, second, mask=here & (y < 8 * down))
        if COLOR:
            at, size = _chroma_plane(samples, n, images, down, across)
            at += pair.to(tl.int64) * (fours // 2)
            blue, red = _chroma_pairs(above, below, beyond, WORDS)
            tl.store(at.to(tl.pointer_type(tl.int16)) + four, blue.to(tl.int16), mask=inside)
            at += size
            tl.store(at.to(tl.pointer_type(tl.int16)) + four, red.to(tl.int16), mask=inside)


@inline
def _chroma_plane(samples, n, images, down, across):
    """Return the offset of an image's blue differences, and the words of a plane; the red differences follow."""
    size = 16 * ((down + 1) // 2) * ((across + 1) // 2)
    return samples + images.to(tl.int64) * (16 * down * across) + n * 2 * size, size


@inline
def _whole(quality):
    """Return a quality as an integer from 0 to 100; a tensor on the device may contain any number."""
    return tl.where(quality > 0, tl.where(quality < 100, quality, 100), 0).to(tl.int32)


@inline
def _load_four(
    image, y, four, width, step_c, inside, COLOR: tl.constexpr, INTERLEAVED: tl.constexpr, WORDS: tl.constexpr
):
    """Return red, green and blue of 4 pixels as levels, each as a tuple of 4; for gray images they are the same.

    Beyond the width the last pixel is repeated or, if pixels are read as ``WORDS``, the last four.
    """
    if WORDS:
        four = tl.minimum(four, width // 4 - 1)
        row = y.to(tl.int64) * width
        if not COLOR:
            r = _bytes(_load_word(image, row, four, inside))
            g, b = r, r
        elif INTERLEAVED:
            p = _bytes(_load_word(image, 3 * row, 3 * four, inside))
            q = _bytes(_load_word(image, 3 * row, 3 * four + 1, inside))
            t = _bytes(_load_word(image, 3 * row, 3 * four + 2, inside))
            r, g, b = (p[0], p[3], q[2], t[1]), (p[1], q[0], q[3], t[2]), (p[2], q[1], t[0], t[3])
        else:
            r = _bytes(_load_word(image, row, four, inside))
            g = _bytes(_load_word(image, row + step_c, four, inside))
            b = _bytes(_load_word(image, row + 2 * step_c, four, inside))
    else:
        step: tl.constexpr = 3 if COLOR and INTERLEAVED else 1
        row = image + y.to(tl.int64) * width * step
        r = _load_levels(row, four, width, step, inside)
        if COLOR:
            g = _load_levels(row + step_c, four, width, step, inside)
            b = _load_levels(row + 2 * step_c, four, width, step, inside)
        else:
            g, b = r, r
    return r, g, b


@inline
def _load_levels(row, four, width, step: tl.constexpr, inside):
    """Return 4 values of a row as levels."""
    x = 4 * four
    return (
        _levels(tl.load(row + tl.minimum(x, width - 1) * step, mask=inside, other=0)),
        _levels(tl.load(row + tl.minimum(x + 1, width - 1) * step, mask=inside, other=0)),
        _levels(tl.load(row + tl.minimum(x + 2, width - 1) * step, mask=inside, other=0)),
        _levels(tl.load(row + tl.minimum(x + 3, width - 1) * step, mask=inside, other=0)),
    )


@inline
def _load_word(image, row, word, inside):
    return tl.load((image + row).to(tl.pointer_type(tl.int32)) + word, mask=inside, other=0)


@inline
def _bytes(word):
    return word & 255, (word >> 8) & 255, (word >> 16) & 255, (word >> 24) & 255


@inline
def _levels(value):
    """Return values as levels; floats are rounded to the nearest of 256."""
    if not value.dtype.is_floating():
        levels = value.to(tl.int32)
    else:
        real = 255 * (value if value.dtype == tl.float64 else value.to(tl.float32))
        levels = round_half_even(tl.where(real > 0, tl.minimum(real, 255.0), 0.0)).to(tl.int32)
    return levels


@inline
def _luma_word(four, beyond, COLOR: tl.constexpr, WORDS: tl.constexpr):
    """Return the luma of 4 pixels in one word."""
    r, g, b = four
    if COLOR:
        last = _jpeg.luma_of(r[3], g[3], b[3])
        first, second = _jpeg.luma_of(r[0], g[0], b[0]), _jpeg.luma_of(r[1], g[1], b[1])
        word = _jpeg.pack(first, second, _jpeg.luma_of(r[2], g[2], b[2]), last)
    else:
        last = r[3]
        word = _jpeg.pack(r[0], r[1], r[2], last)
    return tl.where(beyond, last * 0x01010101, word) if WORDS else word


@inline
def _chroma_pairs(above, below, beyond, WORDS: tl.constexpr):
    """Return two samples of each difference, as 16 bits; libjpeg alternates between rounding a half down and up."""
    p, q = _column_chroma(above, below, 0), _column_chroma(above, below, 1)
    s, t = _column_chroma(above, below, 2), _column_chroma(above, below, 3)
    blue, red = (p[0], q[0], s[0], t[0]), (p[1], q[1], s[1], t[1])
    return _mean_pair(blue, beyond, WORDS), _mean_pair(red, beyond, WORDS)


@inline
def _column_chroma(above, below, i: tl.constexpr):
    """Return the sums of the differences of two pixels."""
    blue, red = _jpeg.chroma_of(above[0][i], above[1][i], above[2][i])
    other_blue, other_red = _jpeg.chroma_of(below[0][i], below[1][i], below[2][i])
    return blue + other_blue, red + other_red


@inline
def _mean_pair(v, beyond, WORDS: tl.constexpr):
    first, second = v[0] + v[1], v[2] + v[3]
    if WORDS:
        last = 2 * v[3]
        first, second = tl.where(beyond, last, first), tl.where(beyond, last, second)
    return ((first + 1) >> 2) | (((second + 2) >> 2) << 8)


# -- blocks of samples -------------------------------------------------------------------------------


@kernel(3)
def _blocks_kernel(
    samples, tables, qualities,
    quality_n, images, down, across, luma_programs,
    LANES: tl.constexpr,
):  # fmt: skip
    """Quantize and restore each block; a program processes blocks of luma or of chroma."""
    program = tl.program_id(0)
    of_chroma = (program >= luma_programs).to(tl.int32)
    block = (program - of_chroma * luma_programs).to(tl.int64) * LANES + tl.arange(0, LANES)
    start = images.to(tl.int64) * (16 * down * across * of_chroma)
    down, across = (down + of_chroma) >> of_chroma, (across + of_chroma) >> of_chroma
    plane, rest = block // (down * across), (block % (down * across)).to(tl.int32)
    n = plane // (1 + of_chroma)
    inside = n < images
    inside &= _whole(tl.load(qualities + n * quality_n, mask=inside, other=0)) > 0
    row, column, words = rest // across, rest % across, 2 * across
    at = samples + start + plane * (16 * down * across) + (row * 8).to(tl.int64) * words + column * 2
    table = tables + n * (quality_n * 128) + of_chroma * 64
    rows: tl.tuple = ()
    for y in tl.static_range(8):
        low = tl.load(at + y * words, mask=inside, other=0)
        high = tl.load(at + y * words + 1, mask=inside, other=0)
        rows += (_jpeg.transform_row(_bytes(low) + _bytes(high)),)
    columns: tl.tuple = ()
    for x in tl.static_range(8):
        columns += (_restored_column(rows, table, x, inside),)
    for y in tl.static_range(8):
        low, high = _jpeg.restored_row(columns, y)
        tl.store(at + y * words, low, mask=inside)
        tl.store(at + y * words + 1, high, mask=inside)


@inline
def _restored_column(rows, table, x: tl.constexpr, inside):
    """Quantize a column of the coefficients of transformed rows, and transform it back."""
    v = _jpeg.transform_column(_jpeg.across(rows, x))
    kept: tl.tuple = ()
    for y in tl.static_range(8):
        entry = tl.load(table + (8 * y + x), mask=inside, other=0)
        # libjpeg subtracts 128 from each sample.
        kept += (_jpeg.quantize(v[y] - 8192 if x + y == 0 else v[y], entry),)
    return _jpeg.invert(kept, 0, 11)


# -- from samples to pixels --------------------------------------------------------------------------


@kernel(4)
def _pixels_kernel(
    out, image, samples, qualities,
    height, width, image_n, image_c, quality_n, images, down, across, parts,
    COLOR: tl.constexpr, INTERLEAVED: tl.constexpr, LANES: tl.constexpr, WORDS: tl.constexpr, SMOOTH: tl.constexpr,
):  # fmt: skip
    """Write pixels from samples, or copy an image of quality 0."""
    part, n = tl.program_id(0) % parts, (tl.program_id(0) // parts).to(tl.int64)
    quality = _whole(tl.load(qualities + n * quality_n))
    lane = part * LANES + tl.arange(0, LANES)
    fours = (width + 3) // 4
    pair, four = lane // fours, lane % fours
    y = 2 * pair
    upper, lower = y < height, y + 1 < height
    target, source = out + n * image_n, image + n * image_n
    if quality > 0:
        at = samples + n * (16 * down * across) + y.to(tl.int64) * (2 * across) + four
        above = _bytes(tl.load(at, mask=upper, other=0))
        below = _bytes(tl.load(at + 2 * across, mask=lower, other=0))
        if COLOR:
            at, size = _chroma_plane(samples, n, images, down, across)
            blue = _upsample(at, pair, four, height, width, SMOOTH)
            red = _upsample(at + size, pair, four, height, width, SMOOTH)
            above = _colors(above, blue[0], red[0])
            below = _colors(below, blue[1], red[1])
        else:
            above, below = (above,), (below,)
        _store_four(target, above, y, four, width, image_c, upper, COLOR, INTERLEAVED, WORDS)
        _store_four(target, below, y + 1, four, width, image_c, lower, COLOR, INTERLEAVED, WORDS)
    else:
        _copy_four(target, source, y, four, width, image_c, upper, COLOR, INTERLEAVED)
        _copy_four(target, source, y + 1, four, width, image_c, lower, COLOR, INTERLEAVED)


@inline
def _upsample(plane, y, four, height, width, SMOOTH: tl.constexpr):
    """Return the chroma of 4 pixels in the rows above and below the middle of row ``y`` of the samples.

    A pixel is the sum of 9/16 of the nearest sample, 3/16 of each of its two neighbors, and 1/16 of the diagonal one;
    in images of at most 4 columns libjpeg takes the nearest sample.
    """
    height, width, step = (height + 1) // 2, (width + 1) // 2, (width + 15) // 16 * 8
    plane = plane.to(tl.pointer_type(tl.uint8))
    y, x = tl.minimum(y, height - 1), 2 * four  # the last program may have threads without pixels
    row = plane + y.to(tl.int64) * step
    if not SMOOTH:
        a, b = _sample(row, x), _sample(row, tl.minimum(x + 1, width - 1))
        values = (a, a, b, b), (a, a, b, b)
    else:
        before = plane + tl.maximum(y - 1, 0).to(tl.int64) * step
        after = plane + tl.minimum(y + 1, height - 1).to(tl.int64) * step
        upper: tl.tuple = ()
        lower: tl.tuple = ()
        for i in tl.static_range(4):
            at = tl.minimum(tl.maximum(x + (i - 1), 0), width - 1)
            near = 3 * _sample(row, at)
            upper += (near + _sample(before, at),)
            lower += (near + _sample(after, at),)
        values = _between(upper), _between(lower)
    return values


@inline
def _sample(row, x):
    return tl.load(row + x).to(tl.int32)


@inline
def _between(v):
    a, b = 3 * v[1], 3 * v[2]
    return (a + v[0] + 8) >> 4, (a + v[2] + 7) >> 4, (b + v[1] + 8) >> 4, (b + v[3] + 7) >> 4


@inline
def _colors(luma, blue, red):
    """Return the channels of 4 pixels, each as a tuple of 4."""
    p, q = _jpeg.color_of(luma[0], blue[0], red[0]), _jpeg.color_of(luma[1], blue[1], red[1])
    s, t = _jpeg.color_of(luma[2], blue[2], red[2]), _jpeg.color_of(luma[3], blue[3], red[3])
    return (p[0], q[0], s[0], t[0]), (p[1], q[1], s[1], t[1]), (p[2], q[2], s[2], t[2])


@inline
def _store_four(
    out, four_of, y, four, width, step_c, inside, COLOR: tl.constexpr, INTERLEAVED: tl.constexpr, WORDS: tl.constexpr
):  # fmt: skip
    """Write 4 pixels as words, or only the pixels inside of the width."""
    if WORDS:
        if COLOR and INTERLEAVED:
            r, g, b = four_of
            row = (out + y.to(tl.int64) * width * 3).to(tl.pointer_type(tl.int32)) + 3 * four
            tl.store(row, _jpeg.pack(r[0], g[0], b[0], r[1]), mask=inside)
            tl.store(row + 1, _jpeg.pack(g[1], b[1], r[2], g[2]), mask=inside)
            tl.store(row + 2, _jpeg.pack(b[2], r[3], g[3], b[3]), mask=inside)
        else:
            row = out + y.to(tl.int64) * width
            for c in tl.static_range(3 if COLOR else 1):
                v = four_of[c]
                word = (row + c * step_c).to(tl.pointer_type(tl.int32)) + four
                tl.store(word, _jpeg.pack(v[0], v[1], v[2], v[3]), mask=inside)
    else:
        step: tl.constexpr = 3 if COLOR and INTERLEAVED else 1
        row = out + y.to(tl.int64) * width * step
        for c in tl.static_range(3 if COLOR else 1):
            for i in tl.static_range(4):
                x = 4 * four + i
                value = _pixel(four_of[c][i], out.dtype.element_ty)
                tl.store(row + c * step_c + x * step, value, mask=inside & (x < width))


@inline
def _pixel(level, to: tl.constexpr):
    """Convert a level to a pixel, which is in [0, 1] if pixels are floats."""
    if to == tl.uint8:
        value = level.to(tl.uint8)
    elif to == tl.float64:
        value = level.to(tl.float64) / 255.0
    else:
        value = convert(tl.div_rn(level.to(tl.float32), 255.0), to)
    return value


@inline
def _copy_four(out, image, y, four, width, step_c, inside, COLOR: tl.constexpr, INTERLEAVED: tl.constexpr):
    step: tl.constexpr = 3 if COLOR and INTERLEAVED else 1
    row = y.to(tl.int64) * width * step
    for c in tl.static_range(3 if COLOR else 1):
        for i in tl.static_range(4):
            x = 4 * four + i
            at, here = row + c * step_c + x * step, inside & (x < width)
            tl.store(out + at, tl.load(image + at, mask=here), mask=here)
