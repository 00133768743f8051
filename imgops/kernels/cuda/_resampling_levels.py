"""PIL's resampling of uint8 as two products of byte matrices, which tensor cores compute exactly.

A pass is a product of an image's lines and a banded matrix of weights. PIL's weights are integers with 22 fraction
bits. In base 256, with digits from -128 to 127, they form three byte matrices, whose products with the pixels are
summed in 32 bits without rounding. A tile has 32 outputs; the band of a tile is a dense block of whole groups of 32
values of the line, which begins at a multiple of 16.

The image between the passes is stored with its axes exchanged, so that the second pass also reads lines. It is stored
as signed bytes, after subtracting 128, because the products take signed bytes.

If rows of the image begin at any byte, a program processes every fourth row: these rows begin at the same byte of a
word of 4 bytes, so that words can be loaded. There are then four versions of each band, one for each byte.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops.decomposition._resampling_filters import FILTERS
from imgops.kernels.cuda import _resampling_tables
from imgops.kernels.cuda._launch import Prepared, inline, kernel, launch, prepared
from imgops.kernels.cuda._packed import Packed
from imgops.kernels.cuda._resampling_tables import Region, cached, pil_taps, pil_window
from imgops.kernels.cuda._tiles import Rows, alignment, place_of

#: The number of outputs of a tile, and of values of a block of its band.
_TILE, _BLOCK = 32, 32
#: The possible numbers of blocks of a band in registers. There are few, so that few kernels are compiled; a longer
#: band is read block by block for each digit.
_BLOCKS = 3, 4


@dataclass(frozen=True)
class Bands:
    """Weights of one axis: for each table, tile, version, digit and block a matrix of ``(_TILE, _BLOCK)`` bytes."""

    weight: Tensor
    #: The first values of the tiles' bands, followed by the first pixel that the table reads and the end of its
    #: pixels.
    begin: Tensor
    #: 128 times the sum of an output's weights, plus half of the last level.
    bias: Tensor
    blocks: int
    #: The versions of a band: 4 for rows that begin at any byte, or 1.
    versions: int
    #: Whether results may be outside of the 256 levels.
    clips: bool


def blocks_of(name: str, region: Region, out: int, pixel: int, versions: int) -> int:
    """Return how many blocks hold the band of any tile: those of 32 outputs, beginning at a multiple of 16."""
    _, support = FILTERS[name]
    # The extent of the windows of a tile's outputs; a sum of rounded doubles may cross an integer.
    apart = math.ceil((-(-_TILE // pixel) - (pixel == 1)) * region.size / out + 1e-6)
    span = (apart + math.ceil(2 * support * max(region.size / out, 1.0) + 1e-6)) * pixel + 15 + versions - 1
    return -(-span // _BLOCK)


class _BandsOf:
    """The launch that makes the bands of an axis, cached for similar regions."""

    def __init__(self, name: str, region: Region, out: int, pixel: int, blocks: int, versions: int) -> None:
        _, support = FILTERS[name]
        self.blocks, self.versions, tiles = blocks, versions, -(-out * pixel // _TILE)
        self.weight = region.count, tiles, versions, 3, blocks, _TILE, _BLOCK
        self.begin, self.bias = (region.count, tiles + 2), (region.count, tiles * _TILE)
        self.clips = name in ("bicubic", "lanczos")
        self.launch = Prepared(
            _bands_kernel,
            region.count * tiles,
            *(region.axis, region.size, out, pil_taps(support, region.size, out), tiles, blocks, versions),
            FILTER=name,
            SUPPORT=support,
            PIXEL=pixel,
            WHOLE=region.boxes is None,
            CUT=region.is_cut,
            SIZED=region.sizes is not None,
            TILE=_TILE,
            BLOCK=_BLOCK,
            warps=1,
        )

    def made(self, region: Region, device: torch.device) -> Bands:
        weight = torch.empty(self.weight, dtype=torch.int8, device=device)
        begin = torch.empty(self.begin, dtype=torch.int32, device=device)
        bias = torch.empty(self.bias, dtype=torch.int32, device=device)
        boxes = begin if region.boxes is None else region.boxes
        self.launch(weight, begin, bias, boxes, begin if region.sizes is None else region.sizes)
        return Bands(weight, begin, bias, self.blocks, self.versions, self.clips)


def bands(
    name: str, region: Region, out: int, pixel: int, blocks: int, versions: int, device: torch.device
) -> Bands:
    """Return PIL's weights for an axis whose pixels have ``pixel`` adjacent values."""
    shape = out, pixel, blocks, versions
    key = "bands", name, region.axis, region.size, *shape
    if region.boxes is None:
        return cached(key, device, lambda: _BandsOf(name, region, *shape).made(region, device))
    like = region.boxes.dtype, *(x is None or x.data_ptr() % 16 for x in (region.boxes, region.sizes))
    maker: _BandsOf = prepared((*key, region.count, *like), device, lambda: _BandsOf(name, region, *shape))
    return maker.made(region, device)


@kernel(tensors=5)
def _bands_kernel(
    weight, begin, bias, boxes, sizes, axis, size, out_size, taps, tiles, blocks, versions,
    FILTER: tl.constexpr, SUPPORT: tl.constexpr, PIXEL: tl.constexpr,
    WHOLE: tl.constexpr, CUT: tl.constexpr, SIZED: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the band of a tile: zeros, and the three digits of each weight at their positions."""
    table, tile = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    if SIZED:
        size = tl.load(sizes + table * 2 + 1 - axis).to(tl.int32)
    lane = tl.arange(0, TILE)
    j = tile * TILE + lane
    inside = j < out_size * PIXEL
    x = tl.minimum(j // PIXEL, out_size - 1)
    c = j % PIXEL
    start, length, center, inverse, is_same, origin = pil_window(
        boxes, table, axis, size, out_size, x, taps, SUPPORT, WHOLE, CUT
    )
    low = tl.min((start + origin) * PIXEL, 0) // 16 * 16
    own = begin + table * (tiles + 2)
    tl.store(own + tile, low)
    tl.store(own + tiles + lane * 0, start + origin, mask=j == 0)
    tl.store(own + tiles + 1 + lane * 0, start + origin + length, mask=j == out_size * PIXEL - 1)
    step = blocks * (TILE * BLOCK)
    base = weight + (table * tiles + tile).to(tl.int64) * versions * (3 * step)
    # Zeros first, then the weights; the barrier keeps the threads of the program in this order.
    zero = tl.zeros((TILE * BLOCK,), tl.int8)
    for part in range(versions * 3 * blocks):
        at = base + part * (TILE * BLOCK) + tl.arange(0, TILE * BLOCK)
        tl.store(tl.multiple_of(at, 16), zero)
    tl.debug_barrier()
    total = tl.full((TILE,), 0, tl.float64)
    for k in range(taps):
        total += tl.where(
            k < length, _resampling_tables._filter((start + k - center + 0.5) * inverse, FILTER), 0.0
        )
    first = (start + origin) * PIXEL + c - low
    every = tl.full((TILE,), 0, tl.int32)
    for k in range(taps):
        value = _resampling_tables._filter((start + k - center + 0.5) * inverse, FILTER)
        value = tl.where(total != 0, value / tl.where(total != 0, total, 1.0), value)
        value = tl.where(is_same, 1.0, value) * 4194304.0
        fixed = tl.where(value < 0, value - 0.5, value + 0.5).to(tl.int32)
        has = inside & (k < length)
        every += tl.where(has, fixed, 0)
        # The digits of base 256 between -128 and 127, the highest first.
        low_digit = ((fixed + 128) & 255) - 128
        rest = (fixed - low_digit) >> 8
        middle = ((rest + 128) & 255) - 128
        for version in range(versions):
            place = first + k * PIXEL + version
            at = base + version * (3 * step)
            at += (place // BLOCK) * (TILE * BLOCK) + lane * BLOCK + place % BLOCK
            tl.store(at, ((rest - middle) >> 8).to(tl.int8), mask=has)
            tl.store(at + step, middle.to(tl.int8), mask=has)
            tl.store(at + 2 * step, low_digit.to(tl.int8), mask=has)
    tl.store(bias + (table * tiles + tile) * TILE + lane, every * 128 + (1 << 21))


# -- the passes ------------------------------------------------------------------------------------


class Passes:
    """Both passes for images of given sizes, cached for similar images."""

    def __init__(
        self, out: Rows, image: Rows, tables: tuple[Bands, Bands], order: str, box_count: int
    ) -> None:
        rows, columns = tables
        # Lines between the passes are longer than necessary, so that every band can be read beyond their ends.
        tall, wide = (
            -(-length // 16) * 16 + table.blocks * _BLOCK
            for length, table in ((image.height, rows), (image.length, columns))
        )
        sizes = out.length * tall * (order != "rows first"), out.height * wide * (order != "columns first")
        self.size = image.images * image.planes * max(sizes)
        tiles = -(-out.height // _TILE), -(-out.length // _TILE)
        constants: dict[str, Any] = {
            "PIXEL": image.pixel,
            "BLOCKS": rows.blocks if rows.blocks in _BLOCKS else 0,
            "CLIPS": rows.clips,
        }
        # Values that differ from call to call are numbers rather than constants, so that few kernels are compiled.
        which = ("columns first", "rows first", "boxes decide").index(order)
        numbers = (
            *(
                which,
                4 if box_count > 1 else 0,
                image.planes,
                image.height,
                image.length,
                out.height,
                out.length,
            ),
            *(*tiles, rows.blocks, columns.versions, *(int(len(t.weight) > 1) for t in tables)),
            *(tall, wide, max(sizes)),
        )
        self.launches = []
        for is_first in (True, False):
            of_user, step = (image, columns.versions) if is_first else (out, 1)
            # The lines that are resampled, and the tiles of each, if columns or if rows come first.
            n, m = (image.height, image.length) if is_first else (out.length, out.height)
            n_tiles, m_tiles = tiles[::-1] if is_first else tiles
            # Use fewer lines if only every fourth line belongs to a program, or if the image is small.
            lines = 32 if max(n, m) <= 32 else 64 if step > 1 else 128
            several = _blocks(n, lines, step) * n_tiles, _blocks(m, lines, 1) * m_tiles
            each = (*several, max(several))[which]
            programs = image.images * image.planes * each
            more = {
                "IS_FIRST": is_first,
                "WORDS": step > 1,
                "ALIGNED": alignment(of_user),
                "LINES": lines,
                "warps": lines // 64 or 1,
            }
            self.launches.append((programs, (*numbers, each, *of_user.steps), constants | more))
        self.prepared = [Prepared(_pass_kernel, n, *known, **more) for n, known, more in self.launches]


def _blocks(lines: int, size: int, step: int) -> int:
    """Return how many blocks of ``size`` lines, ``step`` lines apart within a block, cover all lines."""
    return -(-lines // (size * step)) * step


def _loads_words(image: Rows) -> bool:
    """Return whether rows begin at any byte, and the words that contain them are in the image's memory."""
    x = image.tensor.data if isinstance(image.tensor, Packed) else image.tensor
    storage = x.untyped_storage()
    return alignment(image) == 1 and storage.nbytes() % 4 == 0 and storage.data_ptr() % 4 == 0


def resample(
    out: Rows, image: Rows, regions: tuple[Region, Region], name: str, order: str, boxes: Tensor | None
) -> None:
    """Resize rows of uint8. ``order`` is "columns first", "rows first" or, image by image, "boxes decide"."""
    device = image.tensor.device
    outs = (out.height, 1), (out.length // out.pixel, out.pixel)
    versions = 1, 4 if order != "rows first" and _loads_words(image) else 1
    axes = list(zip(regions, outs, versions, strict=True))
    blocks = max(_BLOCKS[0], *(blocks_of(name, r, *of, count) for r, of, count in axes))
    rows, columns = (bands(name, r, *of, blocks, count, device) for r, of, count in axes)
    if order != "boxes decide" or boxes is None:  # an argument that is not read always has the same dtype
        boxes = cached(("no boxes",), device, lambda: torch.empty((1, 4), dtype=torch.int64, device=device))
    operands = rows.weight, rows.begin, rows.bias, columns.weight, columns.begin, columns.bias, boxes
    if isinstance(image.tensor, Packed):
        passes = Passes(out, image, (rows, columns), order, len(boxes))
        between = torch.empty(passes.size, dtype=torch.int8, device=device)
        for (programs, known, more), of, x in zip(
            passes.launches, (between, out.tensor), (image.tensor, between), strict=True
        ):
            launch(_pass_kernel, programs, of, x, *operands, *known, **more)
        return
    like = len(boxes), boxes.dtype, boxes.data_ptr() % 16, len(rows.weight), regions[0].size
    key = "passes", name, order, out[1:], image[1:], alignment(out), alignment(image), versions, *like
    passes = prepared(key, device, lambda: Passes(out, image, (rows, columns), order, len(boxes)))
    between = torch.empty(passes.size, dtype=torch.int8, device=device)
    first, second = passes.prepared
    first(between, image.tensor, *operands)
    second(out.tensor, between, *operands)


@inline
def _product(
    source, line_step, step, m, length, begin, weight, blocks,
    ACROSS: tl.constexpr, SIGNED: tl.constexpr, ALIGNED: tl.constexpr, BLOCKS: tl.constexpr,
    TILE: tl.constexpr, BLOCK: tl.constexpr, LINES: tl.constexpr,
):  # fmt: skip
    """Sum the products of lines with the digits of a band, by Horner's rule in base 256."""
    k = tl.arange(0, BLOCK)[None, :]
    at_weight = weight + (tl.arange(0, TILE)[:, None] * BLOCK + k)
    total = tl.zeros((LINES, TILE), tl.int32)
    if BLOCKS > 0:
        p0 = _pixels(source, line_step, step, m, k, begin, length, ACROSS, SIGNED, ALIGNED)
        p1, p2, p3 = p0, p0, p0
        if BLOCKS > 1:
            p1 = _pixels(source, line_step, step, m, k + BLOCK, begin, length, ACROSS, SIGNED, ALIGNED)
        if BLOCKS > 2:
            p2 = _pixels(source, line_step, step, m, k + 2 * BLOCK, begin, length, ACROSS, SIGNED, ALIGNED)
        if BLOCKS > 3:
            p3 = _pixels(source, line_step, step, m, k + 3 * BLOCK, begin, length, ACROSS, SIGNED, ALIGNED)
        for digit in tl.static_range(3):
            if digit > 0:
                total *= 256
            for block in tl.static_range(BLOCKS):
                pixels = p0 if block == 0 else (p1 if block == 1 else (p2 if block == 2 else p3))
                at = at_weight + (digit * BLOCKS + block) * (TILE * BLOCK)
                share = tl.load(tl.multiple_of(at, [1, 16]))
                total = tl.dot(pixels, tl.trans(share), total, out_dtype=tl.int32)
    else:
        for digit in tl.static_range(3):
            if digit > 0:
                total *= 256
            for block in tl.range(0, blocks, num_stages=1):
                pixels = _pixels(
                    source, line_step, step, m, k + block * BLOCK, begin, length, ACROSS, SIGNED, ALIGNED
                )
                at = at_weight + (digit * blocks + block) * (TILE * BLOCK)
                share = tl.load(tl.multiple_of(at, [1, 16]))
                total = tl.dot(pixels, tl.trans(share), total, out_dtype=tl.int32)
    return total


@inline
def _pixels(
    source, line_step, step, m, k, begin, length, ACROSS: tl.constexpr, SIGNED: tl.constexpr, ALIGNED: tl.constexpr
):  # fmt: skip
    """Load a block of lines as signed bytes; its values beyond the end of a line have weights of 0."""
    if ACROSS:  # values of a line are a step apart, and lines are adjacent
        at = tl.multiple_of((source + (begin + k).to(tl.int64) * step) + m, [ALIGNED, 1])
    else:
        at = tl.multiple_of(source + m.to(tl.int64) * line_step + (begin + k), [1, ALIGNED])
    if SIGNED:  # between the passes
        pixels = tl.load(at)
    else:
        has = begin + k < length if ACROSS else begin + k // ALIGNED * ALIGNED < length
        pixels = (tl.load(at, mask=has, other=0) ^ 0x80).to(tl.int8, bitcast=True)
    return pixels


@kernel(tensors=9)
def _pass_kernel(
    out, image, row_weight, row_begin, row_bias, column_weight, column_begin, column_bias, boxes, sizes, starts,
    order, box_n, planes, height, length, out_height, out_length, row_tiles, column_tiles, blocks, versions,
    row_n, column_n, tall, wide, plane_size, each, step_n, step_p, step_y,
    PACKED: tl.constexpr, PIXEL: tl.constexpr, IS_FIRST: tl.constexpr, ALIGNED: tl.constexpr, WORDS: tl.constexpr,
    BLOCKS: tl.constexpr, CLIPS: tl.constexpr, LINES: tl.constexpr,
):  # fmt: skip
    TILE: tl.constexpr = 32
    BLOCK: tl.constexpr = 32
    plane, rest = tl.program_id(0) // each, tl.program_id(0) % each
    n, p = (plane // planes).to(tl.int64), plane % planes
    between = plane.to(tl.int64) * plane_size
    user = n * step_n + p.to(tl.int64) * step_p
    if PACKED != "":
        user, skip, line, _, height, wide_pixels = place_of(sizes, starts, n, n >= 0, planes * PIXEL, PACKED)
        if IS_FIRST:
            user += p * skip
            step_y = line
            length = wide_pixels * PIXEL
        else:
            user = n * step_n + p.to(tl.int64) * step_p
    rows_first = order == 1
    if order == 2:
        rows_first = _box_decides(boxes + n * box_n, out_height, out_length // PIXEL)
    row_table, column_table = n * row_n * row_tiles, n * column_n * column_tiles
    band = blocks * (3 * TILE * BLOCK)
    row_weight, column_weight = (
        row_weight + row_table * band,
        column_weight + column_table * (versions * band),
    )
    row_bias, column_bias = row_bias + row_table * TILE, column_bias + column_table * TILE
    row_begin += row_table + n * row_n * 2
    column_begin += column_table + n * column_n * 2
    if rows_first:
        _make_rows_first(
            out, image, user, between, rest, row_weight, row_begin, row_bias, column_weight, column_begin, column_bias,
            height, length, out_height, out_length, row_tiles, column_tiles, blocks, versions, tall, wide, step_y,
            PIXEL, IS_FIRST, ALIGNED, WORDS, BLOCKS, CLIPS, LINES, TILE, BLOCK,
        )  # fmt: skip
    else:
        _make_columns_first(
            out, image, user, between, rest, row_weight, row_begin, row_bias, column_weight, column_begin, column_bias,
            height, length, out_height, out_length, row_tiles, column_tiles, blocks, versions, tall, wide, step_y,
            PIXEL, IS_FIRST, ALIGNED, WORDS, BLOCKS, CLIPS, LINES, TILE, BLOCK,
        )  # fmt: skip


@inline
def _make_rows_first(
    out, image, user, between, rest, row_weight, row_begin, row_bias, column_weight, column_begin, column_bias,
    height, length, out_height, out_length, row_tiles, column_tiles, blocks, versions, tall, wide, step_y,
    PIXEL: tl.constexpr, IS_FIRST: tl.constexpr, ALIGNED: tl.constexpr, WORDS: tl.constexpr, BLOCKS: tl.constexpr,
    CLIPS: tl.constexpr, LINES: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Make a tile of the image between the passes, from columns of the image; or of the output, from rows."""
    m, j = tl.arange(0, LINES)[:, None], tl.arange(0, TILE)[None, :]
    band = blocks * (3 * TILE * BLOCK)
    if IS_FIRST:  # columns of the image, which become rows of the image between the passes
        tile, first = rest % row_tiles, rest // row_tiles * LINES
        low = tl.load(column_begin + column_tiles) * PIXEL
        high = tl.load(column_begin + column_tiles + 1) * PIXEL
        if (first < high) & (first + LINES > low):
            source = image + user + first
            # Columns beyond the end are computed like the last one; the second pass does not read them.
            at = tl.minimum(m, (length - first - 1) // ALIGNED * ALIGNED + m % ALIGNED)
            to = out + between + (tile * TILE + j).to(tl.int64) * wide + (first + m)
            has = (tile * TILE + j < out_height) & (first + m // 16 * 16 < length)
            _make(tl.multiple_of(to, [16, 1]), has, source, 1, step_y, at, height, tl.load(row_begin + tile),
                  row_weight + tile.to(tl.int64) * band, blocks, row_bias + tile * TILE + j,
                  True, True, False, ALIGNED, BLOCKS, CLIPS, TILE, BLOCK, LINES)  # fmt: skip
    else:
        tile, first = rest % column_tiles, rest // column_tiles * LINES
        if first < out_height:
            source = image + between + first.to(tl.int64) * wide
            at = tl.minimum(m, out_height - 1 - first)
            to = out + user + (first + m).to(tl.int64) * step_y + (tile * TILE + j)
            has = (first + m < out_height) & (tile * TILE + j // ALIGNED * ALIGNED < out_length)
            weight = column_weight + tile.to(tl.int64) * (versions * band)
            _make(tl.multiple_of(to, [1, ALIGNED]), has, source, wide, 1, at, wide, tl.load(column_begin + tile),
                  weight, blocks, column_bias + tile * TILE + j,
                  False, False, True, 16, BLOCKS, CLIPS, TILE, BLOCK, LINES)  # fmt: skip


@inline
def _make_columns_first(
    out, image, user, between, rest, row_weight, row_begin, row_bias, column_weight, column_begin, column_bias,
    height, length, out_height, out_length, row_tiles, column_tiles, blocks, versions, tall, wide, step_y,
    PIXEL: tl.constexpr, IS_FIRST: tl.constexpr, ALIGNED: tl.constexpr, WORDS: tl.constexpr, BLOCKS: tl.constexpr,
    CLIPS: tl.constexpr, LINES: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Make a tile of the image between the passes, from rows of the image; or of the output, from columns."""
    m, j = tl.arange(0, LINES)[:, None], tl.arange(0, TILE)[None, :]
    band = blocks * (3 * TILE * BLOCK)
    if IS_FIRST:  # rows of the image, which become columns of the image between the passes
        tile, block = rest % column_tiles, rest // column_tiles
        STEP: tl.constexpr = 4 if WORDS else 1
        first = block // STEP * (LINES * STEP) + block % STEP
        low, high = tl.load(row_begin + row_tiles), tl.load(row_begin + row_tiles + 1)
        if (first < high) & (first + LINES * STEP > low):
            source = image + user + first.to(tl.int64) * step_y
            weight = column_weight + tile.to(tl.int64) * (versions * band)
            at = tl.minimum(m, (height - 1 - first) // STEP)
            y = first + m * STEP
            to = out + between + (tile * TILE + j).to(tl.int64) * tall + y
            if WORDS:
                shift = (source.to(tl.int64) & 3).to(tl.int32)
                has = (tile * TILE + j < out_length) & (y < height)
                source, weight, length = source - shift, weight + shift * band, length + shift
            else:
                has = (tile * TILE + j < out_length) & (y // 16 * 16 < height)
                to = tl.multiple_of(to, [16, 1])
            _make(to, has, source, step_y * STEP, 1, at, length, tl.load(column_begin + tile),
                  weight, blocks, column_bias + tile * TILE + j,
                  False, True, False, 4 if WORDS else ALIGNED, BLOCKS, CLIPS, TILE, BLOCK, LINES)  # fmt: skip
    else:
        tile, first = rest % row_tiles, rest // row_tiles * LINES
        if first < out_length:
            source = image + between + first.to(tl.int64) * tall
            at = tl.minimum(m, out_length - 1 - first)
            to = out + user + (tile * TILE + j).to(tl.int64) * step_y + (first + m)
            has = (tile * TILE + j < out_height) & (first + m // ALIGNED * ALIGNED < out_length)
            _make(tl.multiple_of(to, [ALIGNED, 1]), has, source, tall, 1, at, tall, tl.load(row_begin + tile),
                  row_weight + tile.to(tl.int64) * band, blocks, row_bias + tile * TILE + j,
                  False, False, True, 16, BLOCKS, CLIPS, TILE, BLOCK, LINES)  # fmt: skip


@inline
def _make(
    to, has, source, line_step, step, at, length, begin, weight, blocks, bias,
    ACROSS: tl.constexpr, IS_IMAGE: tl.constexpr, IS_LAST: tl.constexpr, ALIGNED: tl.constexpr, BLOCKS: tl.constexpr,
    CLIPS: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr, LINES: tl.constexpr,
):  # fmt: skip
    """Compute a tile, and store it."""
    total = _product(source, line_step, step, at, length, begin, weight, blocks, ACROSS, not IS_IMAGE, ALIGNED,
                     BLOCKS, TILE, BLOCK, LINES)  # fmt: skip
    tl.store(to, _level(total, bias, not IS_LAST, CLIPS), mask=has)


@inline
def _level(total, bias, SIGNED: tl.constexpr, CLIPS: tl.constexpr):
    """Round sums to levels, as PIL does; signed levels are 128 lower."""
    LOW: tl.constexpr = -128 if SIGNED else 0
    value = (total + (tl.load(bias) + LOW * 4194304)) >> 22
    if CLIPS:
        value = tl.minimum(tl.maximum(value, LOW), LOW + 255)
    return value.to(tl.int8) if SIGNED else value.to(tl.uint8)


@inline
def _box_decides(box, height, width):
    """Return whether PIL resizes the rows of a box first."""
    lost_rows = tl.load(box + 3) - tl.load(box + 1) - height
    lost_columns = tl.load(box + 2) - tl.load(box) - width
    return (lost_rows > 0) & (lost_rows > 2 * lost_columns)
