"""CUDA kernels of crop, pad, flip, paste and erase, each in one pass, which move words of memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops._common import layout
from imgops.decomposition._saturate import saturate
from imgops.kernels.cuda._arithmetic import convert, fold_positions
from imgops.kernels.cuda._launch import inline, kernel, launch
from imgops.kernels.cuda._tiles import PIXELS, batch, has_carrier, output_batch, per_image
from imgops.kernels.cuda._words import (
    BITS,
    Units,
    below,
    bits_between,
    choose,
    covered,
    end_of_words,
    has_edges,
    image_of,
    is_interleaved,
    limit_of,
    part_of,
    place,
    place_in_output,
    programs_of,
    read,
    row_format,
    slow_part,
    units_in,
    units_of,
    write,
)

# -- crop and pad ------------------------------------------------------------------------------------


def crop(out: Tensor, image: Tensor, left: int, top: int, right: int, bottom: int) -> Any:
    return _move(out, image, None, -left, -top)


def crop_each(out: Tensor, image: Tensor, box: Tensor, height: int, width: int) -> Any:
    return _move(out, image, None, 0, 0, -box[..., :2])


def pad(
    out: Tensor,
    image: Tensor,
    fill: Tensor | None,
    left: int,
    top: int,
    right: int,
    bottom: int,
    padding_mode: str,
) -> Any:
    if padding_mode == "constant":
        complex_fill = fill is not None and fill.is_complex()
        return NotImplemented if complex_fill else _move(out, image, fill, left, top)
    both = units_of(out, image)
    if both is None:
        return NotImplemented
    target, source = both
    programs, grid, constants = programs_of(target, source.length)
    launch(
        _border_kernel,
        programs,
        *(target.tensor, source.tensor),
        *grid,
        *(target.planes, target.height, target.length, left * source.pixel, top),
        *(source.height, source.length, source.pixel, *source.steps, limit_of(source.tensor), BITS),
        MODE=padding_mode,
        **constants,
    )
    return None


def pad_each(
    out: Tensor,
    image: Tensor,
    fill: Tensor | None,
    padding: Tensor,
    height: int,
    width: int,
    padding_mode: str,
) -> Any:
    """Add constant borders; ATen takes the pixels of the others by their rows and columns."""
    if padding_mode != "constant" or (fill is not None and fill.is_complex()):
        return NotImplemented
    return _move(out, image, fill, 0, 0, padding[..., :2])


def pad_adjoint(
    out: Tensor, grad: Tensor, left: int, top: int, right: int, bottom: int, padding_mode: str
) -> Any:
    """Crop the gradient of a constant border; other borders need sums of pixels, which ATen computes."""
    return _move(out, grad, None, -left, -top) if padding_mode == "constant" else NotImplemented


def _move(
    out: Tensor, image: Tensor, fill: Tensor | None, left: int, top: int, position: Tensor | None = None
) -> Any:
    """Write each image at (left, top) of its output, or at its own ``position``, with a color or 0 around it."""
    both = units_of(out, image)
    if both is None:
        return NotImplemented
    target, source = both
    color, where = None, (0, 0, 1)
    if fill is not None:
        values = saturate(fill, image.dtype).expand(image.shape[:-2]).reshape(source.images, image.shape[-3])
        color, where = _color(values, source)
    _launch_move(target, source, color, where, left, top, _positions(position, image))
    return None


#: Positions ``(N, 2)`` as a kernel reads them, and their step from image to image; None if all images share one.
_Positions = tuple[Tensor, int] | None


def _positions(position: Tensor | None, image: Tensor) -> _Positions:
    return None if position is None else per_image(position, image, 1, torch.int64)


def _launch_move(
    target: Units,
    source: Units,
    color: Tensor | None,
    where: tuple[int, int, int],
    left: int,
    top: int,
    positions: _Positions = None,
) -> None:
    """Write a batch at positions of another one, with a color, or 0, around it."""
    programs, grid, constants = programs_of(target)
    x = min(max(left * source.pixel, -source.length), target.length)
    places, step = (target.tensor, 0) if positions is None else positions
    launch(
        _move_kernel,
        programs,
        *(target.tensor, source.tensor, target.tensor if color is None else color, places),
        *grid,
        *(target.planes, target.height, target.length, *target.steps),
        *(x, min(max(top, -source.height), target.height), step, source.height, source.length),
        *(source.pixel, source.scale, *source.steps, limit_of(source.tensor), BITS, *where),
        FILLS=color is not None,
        EACH=positions is not None,
        **constants,
    )


def _color(values: Tensor, image: Units) -> tuple[Tensor, tuple[int, int, int]]:
    """Return colors ``(N, C, ...)``, their steps from image to image and from plane to plane, and their period.

    The period is the number of units after which a color repeats in a row.
    """
    if values.dtype != image.tensor.dtype:
        values = layout.bits(values)
    step_n, step_c = values.stride()[:2]
    if values.shape[1] == 1:
        step_c = 0
    elif step_c > 1 and image.planes == 1:
        values, step_n, step_c = values.contiguous(), values.shape[1], 1
    return values, (step_n * image.scale, step_c * image.scale, image.pixel if step_c else image.scale)


@kernel(tensors=4)
def _move_kernel(
    out, image, color, positions, sizes, starts, across, down, rows, planes, height, length, out_n, out_p, out_y,
    left, top, position_n, image_height, image_length, pixel, scale, image_n, image_p, image_y, limit, bits, color_n, color_p, period,
    PACKED: tl.constexpr, FILLS: tl.constexpr, EACH: tl.constexpr,
    UNIT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    plane, first, end, block = part_of(tl.program_id(0), across, down, rows, height, COLUMNS)
    n, p = (plane // planes).to(tl.int64), (plane % planes).to(tl.int64)
    at = n * image_n
    if PACKED != "":
        at, image_p, image_y, image_height, image_length = image_of(sizes, starts, n, pixel, scale)
    if EACH:
        left, top = _place_of(positions + n * position_n, image_height, image_length, height, length, pixel)
    at += p * image_p - (top * image_y.to(tl.int64) + left)
    to = n * out_n + p * out_p
    color = color.to(tl.pointer_type(tl.uint32 if UNIT == 4 else tl.uint8)) + (n * color_n + p * color_p)
    low, high = tl.maximum(left, 0), tl.minimum(left + image_length, length)
    begin = tl.minimum(tl.maximum(top, first), end)
    stop = tl.maximum(tl.minimum(top + image_height, end), begin)
    j = block + tl.arange(0, COLUMNS)[None, :]
    if UNIT == 4:
        _move_part(
            out, image, color, to, at, out_y, image_y, first, end, j, False, begin, stop, low, high, length,
            bits, period, "words", FILLS, ROWS,
        )  # fmt: skip
    else:
        fast = end_of_words(image, at, image_y, first, stop, high, limit, ROWS)
        fast = tl.where(fast == stop, end, fast)
        bits = bits_between(out, to, out_y, image, at, image_y, bits)
        _move_part(
            out, image, color, to, at, out_y, image_y, first, fast, j, False, begin, stop, low, high, length,
            bits, period, "shifted", FILLS, ROWS,
        )  # fmt: skip
        begins = tl.where(has_edges(out, to, out_y, length, block), 0, 1)
        for i in range(begins, tl.where(fast < end, COLUMNS // 4 + 1, 1)):
            edges, y, last, some = slow_part(i, first, fast, end, block)
            _move_part(
                out, image, color, to, at, out_y, image_y, y, last, some, edges, begin, stop, low, high, length,
                bits, period, "bytes", FILLS, ROWS,
            )  # fmt: skip


@inline
def _place_of(position, image_height, image_length, height, length, pixel):
    """Read the place of an image in its output, in units; any place outside of it shows the same."""
    left = tl.minimum(tl.maximum(tl.load(position), -(image_length // pixel)), length // pixel)
    top = tl.minimum(tl.maximum(tl.load(position + 1), -image_height), height)
    return left.to(tl.int32) * pixel, top.to(tl.int32)


@inline
def _move_part(
    out, image, color, to, at, out_y, image_y, y, end, j, edges, begin, stop, low, high, length, bits, period,
    KIND: tl.constexpr, FILLS: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    r = tl.arange(0, ROWS)[:, None]
    target, c, written = place_in_output(out, to, y, out_y, r, j, length, edges, KIND)
    source, shift = place(image, at, y, image_y, r, c, KIND)
    inside = covered(c, low, high, KIND)
    if FILLS:
        fill = _fill(color, c, j, out, to, out_y, period, KIND)
    before = r - (begin - y)
    for above in range(y, end, ROWS):
        shown = before.to(tl.uint32, bitcast=True) < (stop - begin).to(tl.uint32)
        value = read(source, shift, c, low, high, shown, bits, KIND)
        if FILLS:
            value = tl.where(shown, choose(inside, value, fill), fill)
        elif KIND == "shifted":
            value &= inside
        write(target, value, (r < end - above) & written, c, length, KIND)
        source += below(image_y, ROWS, KIND)
        target += below(out_y, ROWS, KIND)
        before += ROWS


@inline
def _fill(color, c, j, out, to, out_y, period, KIND: tl.constexpr):
    """Return the words ``j``, at the columns ``c`` of an output, for rows that repeat a color."""
    value = tl.zeros_like(c)
    if (KIND == "shifted") and (out_y & 3 == 0):  # all rows have the same words
        value += _pattern(color, j * 4 - ((out.to(tl.int64) + to) & 3).to(tl.int32), period, KIND)
    else:
        value += _pattern(color, c, period, KIND)
    return value.to(tl.uint32, bitcast=True)


@inline
def _pattern(color, c, period, KIND: tl.constexpr):
    if KIND == "words":
        value = tl.load(tl.max_contiguous(color + c % period, [1, 2])).to(tl.int32, bitcast=True)
    else:
        value = tl.full((1, 1), 0, tl.int32)
        for k in tl.static_range(4):  # the first word of a row may begin before the row
            byte = tl.load(tl.max_contiguous(color + (c + k + 4 * period) % period, [1, 2]))
            value = value | (byte.to(tl.int32) << (8 * k))
    return value


@kernel(tensors=2)
def _border_kernel(
    out, image, across, down, rows, planes, height, length, left, top,
    image_height, image_length, pixel, image_n, image_p, image_y, limit, bits,
    MODE: tl.constexpr, UNIT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Write the words whose columns are in the image; the programs share the other words."""
    plane, first, end, block = part_of(tl.program_id(0), across, down, rows, height, COLUMNS)
    at = (plane // planes).to(tl.int64) * image_n + (plane % planes).to(tl.int64) * image_p
    to = plane.to(tl.int64) * height * length
    KIND: tl.constexpr = "words" if UNIT == 4 else "shifted"
    size = 4 // UNIT
    r = tl.arange(0, ROWS)[:, None]
    j = (left + size - 1) // size + block + tl.arange(0, COLUMNS)[None, :]
    target, c, written = place_in_output(out, to, first, length, r, j, length, False, KIND)
    written &= (c >= left) & (c <= left + image_length - size)
    start = at - (top * image_y.to(tl.int64) + left)
    source, shift = place(image, start, first, image_y, r, c, KIND)
    bits = bits_between(out, to, length, image, start, image_y, bits)
    for above in range(first, end, ROWS):
        last = tl.minimum(above + ROWS, end)
        plain = (above >= top) & (last <= top + image_height)
        shown = (r < last - above) & written
        stop = end_of_words(image, start, image_y, above, last, left + image_length, limit, ROWS)
        if plain & (stop == last):
            value = read(source, shift, c, left, left + image_length, shown, bits, KIND, True)
        else:
            y = above + r - top
            value = _folded(image, at, y, c - left, image_height, image_length, pixel, image_y, MODE, UNIT)
        write(target, value, shown, c, length, KIND)
        source += below(image_y, ROWS, KIND)
        target += below(length, ROWS, KIND)
    most = tl.where(has_edges(out, to, length, length, 0), size - 1, 0)  # of the bytes before the first word
    before, after = (left + size - 1 + most) // size, (left + image_length) // size
    count = before + (length + size - 1 + most) // size - after
    for i in range(block // COLUMNS * 4, count, across * 4):
        e = i + tl.arange(0, 4)[None, :]
        e = tl.where(e < before, e, e - before + after)
        SLOW: tl.constexpr = "words" if UNIT == 4 else "bytes"
        words, x, _ = place_in_output(out, to, first, length, r, e, length, False, SLOW)
        around = (x > -size) & (x < length) & ((x < left) | (x > left + image_length - size))
        for above in range(first, end, ROWS):
            y = above + r - top
            value = _folded(image, at, y, x - left, image_height, image_length, pixel, image_y, MODE, UNIT)
            write(words, value, (r < end - above) & around, x, length, SLOW)
            words += below(length, ROWS, SLOW)


@inline
def _folded(image, at, y, c, height, length, pixel, step, MODE: tl.constexpr, UNIT: tl.constexpr):
    """Return the words that a border selects for rows and columns around an image."""
    line = at + fold_positions(y, height, MODE).to(tl.int64) * step
    width = length // pixel
    if UNIT == 4:
        words = image.to(tl.pointer_type(tl.uint32)) + line
        value = tl.load(tl.max_contiguous(words + _folded_column(c, width, pixel, MODE), [1, 2]))
    else:
        value = tl.full((1, 1), 0, tl.uint32)
        bytes = image.to(tl.pointer_type(tl.uint8)) + line
        for k in tl.static_range(4):
            byte = tl.load(tl.max_contiguous(bytes + _folded_column(c + k, width, pixel, MODE), [1, 2]))
            value = value | (byte.to(tl.uint32) << (8 * k))
    return value


@inline
def _folded_column(c, width, pixel, MODE: tl.constexpr):
    x = tl.where(c < 0, c - pixel + 1, c) // pixel
    return fold_positions(x, width, MODE) * pixel + (c - x * pixel)


# -- flip --------------------------------------------------------------------------------------------


def flip(out: Tensor, image: Tensor, dims: Sequence[int]) -> Any:
    """Mirror packed images."""
    return mirror(out, image, None, 0, -1 in dims or 3 in dims, -2 in dims or 2 in dims)


def mirror(out: Tensor, image: Tensor, chosen: Tensor | None, step: int, across: bool, down: bool) -> Any:
    """Mirror the images whose number in ``chosen`` is not 0, by default all; copy the others."""
    both = units_of(out, image)
    if both is None:
        return NotImplemented
    target, source = both
    programs, grid, constants = programs_of(target)
    words = constants["UNIT"] == 1 and across and source.pixel <= 4
    launch(
        _mirror_kernel,
        programs,
        *(target.tensor, source.tensor, target.tensor if chosen is None else chosen),
        *grid,
        *(target.planes, target.height, target.length, source.pixel, source.scale, *source.steps),
        *(limit_of(source.tensor), BITS, step, across, down),
        CHOOSES=chosen is not None,
        PIXEL=source.pixel if words else 0,
        **constants,
    )
    return None


@kernel(tensors=3)
def _mirror_kernel(
    out, image, chosen, sizes, starts, across, down, rows, planes, height, length, pixel, scale, image_n, image_p, image_y,
    limit, bits, chosen_n, turns_across, turns_down, PACKED: tl.constexpr, CHOOSES: tl.constexpr, PIXEL: tl.constexpr,
    UNIT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    plane, first, end, block = part_of(tl.program_id(0), across, down, rows, height, COLUMNS)
    n, p = (plane // planes).to(tl.int64), (plane % planes).to(tl.int64)
    at, to = n * image_n + p * image_p, plane.to(tl.int64) * height * length
    if PACKED != "":
        at, image_p, image_y, height, length = image_of(sizes, starts, n, pixel, scale)
        at += p * image_p
        to, end = at, tl.minimum(end, height)
    if CHOOSES:
        turns = tl.load(chosen + n * chosen_n).to(tl.int32)
        turns_across, turns_down = tl.where(turns != 0, turns_across, 0), tl.where(turns != 0, turns_down, 0)
    step = image_y.to(tl.int64)
    if turns_down != 0:
        at, step = at + (height - 1) * step, -step
    if (PACKED == "") or (block * 4 < length * UNIT + 3):
        j = block + tl.arange(0, COLUMNS)[None, :]
        if UNIT == 4:
            _mirror_part(
                out, image, to, at, first, end, j, False, length, step, pixel, turns_across, bits, 0, "words", ROWS
            )  # fmt: skip
        else:
            fast = end_of_words(image, at, step, first, end, length, limit, ROWS)
            _mirror_part(
                out, image, to, at, first, fast, j, False, length, step, pixel, turns_across, bits, PIXEL,
                "shifted", ROWS,
            )  # fmt: skip
            begins = tl.where(has_edges(out, to, length, length, block), 0, 1)
            for i in range(begins, tl.where(fast < end, COLUMNS // 4 + 1, 1)):
                edges, y, last, some = slow_part(i, first, fast, end, block)
                _mirror_part(
                    out, image, to, at, y, last, some, edges, length, step, pixel, turns_across, bits, PIXEL,
                    "bytes", ROWS,
                )  # fmt: skip


@inline
def _mirror_part(
    out, image, to, at, y, end, j, edges, length, step, pixel, turns_across, bits,
    PIXEL: tl.constexpr, KIND: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    r = tl.arange(0, ROWS)[:, None]
    target, c, written = place_in_output(out, to, y, length, r, j, length, edges, KIND)
    start = c
    if turns_across != 0:
        if KIND == "words":
            start = _mirrored_column(c, length, pixel)
        elif (
            PIXEL == 3
        ):  # the first bytes of a word, up to the end of a pixel, are 6 bytes after those of the others
            start = length - 3 - c + 2 * ((c + 3) % 3)
        elif PIXEL > 0:
            start = length - 4 - c
    source, shift = place(image, at, y, step, r, start, KIND)
    by = bits_between(out, to, length, image, at, step | length, bits)
    if PIXEL == 3:
        others, other_shift = place(image, at, y, step, r, start - 6, KIND)
        first = (tl.full((1, 1), 1, tl.uint32) << (24 - 8 * ((c + 3) % 3)).to(tl.uint32)) - 1
    for above in range(y, end, ROWS):
        shown = (r < end - above) & written
        if turns_across == 0:
            value = read(source, shift, c, 0, length, shown, by, KIND, True)
        elif KIND == "words":
            value = read(source, shift, start, 0, length, shown, by, KIND, True)
        elif PIXEL == 3:
            value = read(source, shift, start, 0, length, shown, bits, KIND)
            rest = read(others, other_shift, start - 6, 0, length, shown, bits, KIND)
            value = choose(first, value, rest)
        elif PIXEL > 0:
            value = read(source, shift, start, 0, length, shown, by, KIND, True)
            if PIXEL == 2:
                value = (value >> 16) | (value << 16)
            elif PIXEL == 1:
                value = (value >> 24) | ((value >> 8) & 0xFF00) | ((value << 8) & 0xFF0000) | (value << 24)
        else:
            value = tl.full((1, 1), 0, tl.uint32)
            line = image.to(tl.pointer_type(tl.uint8)) + at + (above + r) * step
            for k in tl.static_range(4):
                there = shown & (c + k >= 0) & (c + k < length)
                byte = tl.load(
                    tl.max_contiguous(line + _mirrored_column(c + k, length, pixel), [1, 2]),
                    mask=there,
                    other=0,
                )
                value = value | (byte.to(tl.uint32) << (8 * k))
        write(target, value, shown, c, length, KIND)
        source += below(step, ROWS, KIND)
        target += below(length, ROWS, KIND)
        if PIXEL == 3:
            others += below(step, ROWS, KIND)


@inline
def _mirrored_column(c, length, pixel):
    """Return the source unit for unit ``c`` of a mirrored row."""
    return length - pixel - c + 2 * (c % pixel)


# -- erase -------------------------------------------------------------------------------------------


def erase(out: Tensor, image: Tensor, fill: Tensor, box: Tensor) -> Any:
    both = units_of(out, image)
    if both is None:
        return NotImplemented
    target, source = both
    fill = fill if fill.ndim == 4 else batch(fill)
    is_color, limit = fill.shape[-2:] == (1, 1), -1
    if is_color:
        color, where = _color(fill, source)
    else:
        pixels = units_in(fill, is_interleaved(out))
        color, where, limit = pixels.tensor, pixels.steps, limit_of(pixels.tensor)
    boxes, step = per_image(box, image, 1, torch.int64)
    programs, grid, constants = programs_of(target)
    launch(
        _erase_kernel,
        programs,
        *(target.tensor, source.tensor, color, boxes),
        *grid,
        *(target.planes, target.height, target.length, source.pixel, *source.steps, limit_of(source.tensor)),
        *(*where, limit, step, BITS),
        COLOR=is_color,
        **constants,
    )
    return None


@kernel(tensors=4)
def _erase_kernel(
    out, image, color, boxes, across, down, rows, planes, height, length, pixel, image_n, image_p, image_y, image_limit,
    color_n, color_p, color_y, color_limit, box_n, bits,
    COLOR: tl.constexpr, UNIT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    plane, first, end, block = part_of(tl.program_id(0), across, down, rows, height, COLUMNS)
    n, p = (plane // planes).to(tl.int64), (plane % planes).to(tl.int64)
    at, to = n * image_n + p * image_p, plane.to(tl.int64) * height * length
    new = n * color_n + p * color_p
    box, width = boxes + n * box_n, length // pixel
    low = tl.minimum(tl.maximum(tl.load(box), 0), width).to(tl.int32) * pixel
    high = tl.minimum(tl.maximum(tl.load(box + 2), 0), width).to(tl.int32) * pixel
    begin = tl.minimum(tl.maximum(tl.load(box + 1), first), end).to(tl.int32)
    stop = tl.minimum(tl.maximum(tl.load(box + 3), begin), end).to(tl.int32)
    j = block + tl.arange(0, COLUMNS)[None, :]
    if UNIT == 4:
        _erase_part(
            out, image, color, to, at, new, image_y, color_y, first, end, j, False,
            (block < high) & (block + COLUMNS > low), begin, stop, low, high, length, bits, COLOR, "words", ROWS,
        )  # fmt: skip
    else:
        fast = end_of_words(image, at, image_y, first, end, length, image_limit, ROWS)
        if not COLOR:
            fast = tl.minimum(fast, end_of_words(color, new, color_y, first, end, length, color_limit, ROWS))
        _erase_part(
            out, image, color, to, at, new, image_y, color_y, first, fast, j, False,
            (block * 4 - 3 < high) & (block * 4 + COLUMNS * 4 > low), begin, stop, low, high, length, bits, COLOR, "shifted", ROWS,
        )  # fmt: skip
        begins = tl.where(has_edges(out, to, length, length, block), 0, 1)
        for i in range(begins, tl.where(fast < end, COLUMNS // 4 + 1, 1)):
            edges, y, last, some = slow_part(i, first, fast, end, block)
            _erase_part(
                out, image, color, to, at, new, image_y, color_y, y, last, some, edges,
                True, begin, stop, low, high, length, bits, COLOR, "bytes", ROWS,
            )  # fmt: skip


@inline
def _erase_part(
    out, image, color, to, at, new, image_y, color_y, y, end, j, edges, near, begin, stop, low, high, length, bits,
    COLOR: tl.constexpr, KIND: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    r = tl.arange(0, ROWS)[:, None]
    target, c, written = place_in_output(out, to, y, length, r, j, length, edges, KIND)
    under, shift = place(image, at, y, image_y, r, c, KIND)
    by = bits_between(out, to, length, image, at, image_y, bits)
    erased = covered(c, low, high, KIND)
    if COLOR:  # the steps of a color end with its period
        units = color.to(tl.pointer_type(tl.uint32 if KIND == "words" else tl.uint8)) + new
        over = _fill(units, c, j, out, to, length, color_y, KIND)
    else:
        pixels, over_shift = place(color, new, y, color_y, r, c, KIND)
        over_by = bits_between(out, to, length, color, new, color_y, bits)
    before = r - (begin - y)
    for above in range(y, end, ROWS):
        shown = (r < end - above) & written
        if near & (above < stop) & (above + ROWS > begin):
            inside = before.to(tl.uint32, bitcast=True) < (stop - begin).to(tl.uint32)
            gone = tl.where(inside, erased, 0)
            value = read(under, shift, c, 0, length, shown & (gone != 0xFFFFFFFF), by, KIND, True)
            if not COLOR:
                over = read(pixels, over_shift, c, low, high, shown & inside, over_by, KIND)
            value = choose(gone, over, value)
        else:
            value = read(under, shift, c, 0, length, shown, by, KIND, True)
        write(target, value, shown, c, length, KIND)
        under += below(image_y, ROWS, KIND)
        target += below(length, ROWS, KIND)
        if not COLOR:
            pixels += below(color_y, ROWS, KIND)
        before += ROWS


# -- paste -------------------------------------------------------------------------------------------


def paste(out: Tensor, image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> Any:
    return paste_into(output_batch(out), batch(image), source, mask, left, top)


def paste_each(out: Tensor, image: Tensor, source: Tensor, mask: Tensor | None, position: Tensor) -> Any:
    positions = _positions(position, image)
    return paste_into(output_batch(out), batch(image), source, mask, 0, 0, positions)


def paste_onto(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> Any:
    """Paste in place: only the window is read and written."""
    x0, y0 = max(left, 0), max(top, 0)
    x1, y1 = min(left + source.shape[-1], image.shape[-1]), min(top + source.shape[-2], image.shape[-2])
    if x0 >= x1 or y0 >= y1:
        return None
    try:
        window = output_batch(image)[..., y0:y1, x0:x1]
    except RuntimeError:  # leading dimensions that no view can join
        return NotImplemented
    return paste_into(window, window, source, mask, left - x0, top - y0)


def paste_into(
    out: Tensor,
    image: Tensor,
    source: Tensor,
    mask: Tensor | None,
    left: int,
    top: int,
    positions: _Positions = None,
) -> Any:
    """Paste into a batch of any strides; ``image`` may be ``out`` itself if ``source`` covers it."""
    kind = "none"
    if mask is not None and mask.dtype == torch.bool:
        kind, mask = "bool", batch(mask).view(torch.uint8)
    elif mask is not None:
        if out.dtype not in PIXELS or mask.dtype not in (*PIXELS, torch.float64):
            return NotImplemented
        kind, mask = "levels" if mask.dtype == torch.uint8 else "real", batch(mask)
    if not has_carrier(out):
        return NotImplemented
    interleaved = row_format(out)
    if interleaved is None:
        if mask is not None and kind == "bool":
            mask = mask.view(torch.bool)
        dense = out.clone(memory_format=torch.contiguous_format)
        answer = paste_into(dense, dense if image is out else image, source, mask, left, top)
        out.copy_(dense)
        return answer
    target, over = units_in(out, interleaved), units_in(batch(source), interleaved)
    if mask is None and image is out:
        _launch_move(target, over, None, (0, 0, 1), left, top)
        return None
    under = target if image is out else units_in(image, interleaved)
    _launch_paste(target, under, over, kind, mask, left, top, positions)
    return None


def _launch_paste(
    target: Units,
    under: Units,
    over: Units,
    kind: str,
    mask: Tensor | None,
    left: int,
    top: int,
    positions: _Positions,
) -> None:
    places, step = (target.tensor, 0) if positions is None else positions
    programs, grid, constants = programs_of(target)
    weight, mask_steps, mask_limit = over.tensor, (0, 0, 0), -1
    if mask is not None:
        weight, mask_steps, mask_limit = (
            mask,
            (mask.stride(0), mask.stride(2), mask.stride(3)),
            limit_of(mask),
        )
    by_words = target.pixel == 1 and constants["UNIT"] == 1 and weight.dtype == torch.uint8
    launch(
        _paste_kernel,
        programs,
        *(target.tensor, under.tensor, over.tensor, weight, places),
        *grid,
        *(target.planes, target.height, target.length, target.pixel, *target.steps),
        *(*under.steps, limit_of(under.tensor), left * target.pixel, top, step, over.height, over.length),
        *(*over.steps, limit_of(over.tensor), *mask_steps, mask_limit, BITS),
        MASK=kind,
        EACH=positions is not None,
        WORDS=by_words and mask_steps[2] == 1,
        **constants,
    )


@kernel(tensors=5)
def _paste_kernel(
    out, image, source, mask, positions, across, down, rows, planes, height, length, pixel, out_n, out_p, out_y,
    image_n, image_p, image_y, image_limit, left, top, position_n, source_height, source_length,
    source_n, source_p, source_y, source_limit, mask_n, mask_y, mask_x, mask_limit, bits,
    MASK: tl.constexpr, WORDS: tl.constexpr, EACH: tl.constexpr,
    UNIT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    plane, first, end, block = part_of(tl.program_id(0), across, down, rows, height, COLUMNS)
    n, p = (plane // planes).to(tl.int64), (plane % planes).to(tl.int64)
    if EACH:
        left, top = _place_of(positions + n * position_n, source_height, source_length, height, length, pixel)
    to, at = n * out_n + p * out_p, n * image_n + p * image_p
    new = n * source_n + p * source_p - (top * source_y.to(tl.int64) + left)
    weight = n * mask_n - top * mask_y.to(tl.int64)
    low, high = tl.maximum(left, 0), tl.minimum(left + source_length, length)
    begin = tl.minimum(tl.maximum(top, first), end)
    stop = tl.maximum(tl.minimum(top + source_height, end), begin)
    j = block + tl.arange(0, COLUMNS)[None, :]
    if UNIT == 4:
        near = (block < high) & (block + COLUMNS > low)
        _paste_part(
            out, image, source, mask, to, at, new, weight, out_y, image_y, source_y, mask_y, mask_x, first, end, j, False,
            near, begin, stop, low, high, length, left, pixel, bits, MASK, WORDS, "words", ROWS,
        )  # fmt: skip
    else:
        near = (block * 4 - 3 < high) & (block * 4 + COLUMNS * 4 > low)
        fast = end_of_words(image, at, image_y, first, end, length, image_limit, ROWS)
        some = end_of_words(source, new, source_y, begin, stop, high, source_limit, ROWS)
        fast = tl.minimum(fast, tl.where(some == stop, end, first))
        if WORDS:
            some = end_of_words(mask, weight - left, mask_y, begin, stop, high, mask_limit, ROWS)
            fast = tl.minimum(fast, tl.where(some == stop, end, first))
        _paste_part(
            out, image, source, mask, to, at, new, weight, out_y, image_y, source_y, mask_y, mask_x, first, fast, j, False,
            near, begin, stop, low, high, length, left, pixel, bits, MASK, WORDS, "shifted", ROWS,
        )  # fmt: skip
        begins = tl.where(has_edges(out, to, out_y, length, block), 0, 1)
        for i in range(begins, tl.where(fast < end, COLUMNS // 4 + 1, 1)):
            edges, y, last, few = slow_part(i, first, fast, end, block)
            _paste_part(
                out, image, source, mask, to, at, new, weight, out_y, image_y, source_y, mask_y, mask_x, y, last, few, edges,
                True, begin, stop, low, high, length, left, pixel, bits, MASK, WORDS, "bytes", ROWS,
            )  # fmt: skip


@inline
def _paste_part(
    out, image, source, mask, to, at, new, weight, out_y, image_y, source_y, mask_y, mask_x, y, end, j, edges,
    near, begin, stop, low, high, length, left, pixel, bits,
    MASK: tl.constexpr, WORDS: tl.constexpr, KIND: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    dtype: tl.constexpr = image.dtype.element_ty
    SIZE: tl.constexpr = 4 if KIND == "words" else dtype.primitive_bitwidth // 8
    EVERY: tl.constexpr = (1 << (8 * SIZE)) - 1  # the bits of a value
    r = tl.arange(0, ROWS)[:, None]
    target, c, written = place_in_output(out, to, y, out_y, r, j, length, edges, KIND)
    under, under_shift = place(image, at, y, image_y, r, c, KIND)
    over, over_shift = place(source, new, y, source_y, r, c, KIND)
    under_by = bits_between(out, to, out_y, image, at, image_y, bits)
    over_by = bits_between(out, to, out_y, source, new, source_y, bits)
    if WORDS:
        shares, share_shift = place(mask, weight - left, y, mask_y, r, c, KIND)
        share_by = bits_between(out, to, out_y, mask, weight - left, mask_y, bits)
    inside = covered(c, low, high, KIND)
    x = (c - left) // pixel
    rest = (c - left) - x * pixel
    before = r - (begin - y)
    for above in range(y, end, ROWS):
        shown = (r < end - above) & written
        value = read(under, under_shift, c, 0, length, shown, under_by, KIND, True)
        if near & (above < stop) & (above + ROWS > begin):
            pasted = shown & (before.to(tl.uint32, bitcast=True) < (stop - begin).to(tl.uint32))
            pixels = read(over, over_shift, c, low, high, pasted, over_by, KIND)
            keep = tl.where(pasted, inside, 0)
            if MASK != "none":
                weights = pixels
                if WORDS:
                    weights = read(shares, share_shift, c, low, high, pasted, share_by, KIND)
                line = mask + (weight + (above + r) * mask_y.to(tl.int64))
                made = tl.zeros_like(keep)
                for k in tl.static_range(0, 4, SIZE):
                    if WORDS:
                        share = (weights >> (8 * k)) & 255
                    else:
                        there = pasted & (c + k >= low) & (c + k < high)
                        further = (
                            (rest + k >= pixel).to(tl.int32)
                            + (rest + k >= 2 * pixel)
                            + (rest + k >= 3 * pixel)
                        )
                        share = tl.load(
                            tl.max_contiguous(line + (x + further) * mask_x, [1, 2]), mask=there, other=0
                        )
                    if MASK == "bool":
                        made |= tl.where(share != 0, keep & (EVERY << (8 * k)), 0)
                    else:
                        made |= _mixed(value >> (8 * k), pixels >> (8 * k), share, dtype) << (8 * k)
                if MASK == "bool":
                    keep = made
                else:
                    pixels = made
            value = choose(keep, pixels, value)
        write(target, value, shown, c, length, KIND)
        under += below(image_y, ROWS, KIND)
        over += below(source_y, ROWS, KIND)
        target += below(out_y, ROWS, KIND)
        if WORDS:
            shares += below(mask_y, ROWS, KIND)
        before += ROWS


@inline
def _mixed(below, above, share, dtype: tl.constexpr):
    """Blend the values in the lowest bits of words, and return the bits of the result.

    Levels are blended as in PIL, with the exact quotient by 255 in integers; a float mask is rounded to the nearest
    level.
    """
    if dtype == tl.uint8:
        if share.dtype.is_floating():
            share = share.to(tl.float32) * 255
            share = tl.where(share > 0, tl.minimum(share, 255.0), 0.0)
            share = (share + 12582912.0) - 12582912.0  # at this magnitude the spacing of floats is 1
        below, above = (below & 255).to(tl.int32), (above & 255).to(tl.int32)
        total = below * 255 + 128 + (above - below) * share.to(tl.int32)
        bits = (((total >> 8) + total) >> 8).to(tl.uint32)
    else:
        if share.dtype.is_floating():
            share = share.to(tl.float32)
        else:
            share = tl.div_rn(share.to(tl.float32), 255.0)
        mixed = _float(below, dtype) * (1 - share) + _float(above, dtype) * share
        if dtype == tl.float32:
            bits = mixed.to(tl.uint32, bitcast=True)
        else:
            bits = convert(mixed, dtype).to(tl.uint16, bitcast=True).to(tl.uint32)
    return bits


@inline
def _float(bits, dtype: tl.constexpr):
    if dtype == tl.float32:
        value = bits.to(tl.float32, bitcast=True)
    else:
        value = (bits & 0xFFFF).to(tl.uint16).to(dtype, bitcast=True).to(tl.float32)
    return value
