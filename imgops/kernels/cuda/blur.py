"""CUDA kernels of the Gaussian blur and of the mean of a window: on uint8 in OpenCV's integers, along y and then along x.

The sums along y are stored. Sums of uint8 fit into 16 bits, so a word holds two, and one product computes both. A row
of sums is as long as a row of the image plus the margins that the second pass reads at both ends.
"""

# ruff: noqa: RUF005 - Triton does not unpack within a tuple

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda._arithmetic import fused, round_half_even
from imgops.kernels.cuda._launch import inline, kernel, launch
from imgops.kernels.cuda._packed import Packed
from imgops.kernels.cuda._tiles import PIXELS, batch, output_batch, per_image
from imgops.kernels.cuda._windows import (
    THREADS,
    Lines,
    border_at,
    format_of,
    is_whole,
    lines_in,
    load_four,
    load_masked,
    no_values,
    plane_at,
    reflect_row,
    rest_of,
    store_four,
    store_values,
    tail_of,
    unit_of,
    values_at,
    words_at,
)

#: The number of zeros at the end of a table of weights, so that no pass must check for its end: a thread processes up
#: to 8 rows in the first pass, and 4 weights at a time in the second.
_ZEROS = 8
#: The largest number of rows of levels whose sum fits into 16 bits.
_MOST_ROWS = 257


def gaussian_blur(out: Tensor, image: Tensor, sigma: Tensor, kernel_width: int, kernel_height: int) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    target = output_batch(out)
    source = lines_in(batch(image), format_of(target))
    sigmas, step = per_image(sigma, image, 1, torch.float64)
    reach = max(kernel_width, kernel_height) // 2
    levels = image.dtype == torch.uint8
    kind = torch.int32 if levels else torch.float32
    length = reach + 2 + _ZEROS
    weights = torch.empty((sigmas.numel(), length), dtype=kind, device=image.device)
    reaches = kernel_width // 2, kernel_height // 2
    launch(
        _gaussian_kernel,
        -(-sigmas.numel() // 32),
        weights,
        sigmas,
        *reaches,
        length,
        sigmas.numel(),
        LEVELS=levels,
        ZEROS=_ZEROS,
        BLOCK=32,
        warps=1,
    )
    step = step and 2 * length
    _blur(target, source, weights, (step, length), reaches[0], "reflect")
    return None


def box_blur(out: Tensor, image: Tensor, kernel_width: int, kernel_height: int, padding_mode: str) -> Any:
    if image.dtype not in PIXELS or (image.dtype == torch.uint8 and kernel_height > _MOST_ROWS):
        return NotImplemented
    target = output_batch(out)
    source = lines_in(batch(image), format_of(target))
    _blur(target, source, None, (kernel_width, kernel_height), kernel_width // 2, padding_mode)
    return None


def _blur(
    out: Tensor,
    source: Lines,
    weights: Tensor | None,
    numbers: tuple[int, int],
    reach: int,
    padding_mode: str,
) -> None:
    """Sum along y and along x, weighted or not.

    ``numbers`` are the steps of the weights from image to image and from axis to axis, or, without weights, the width
    and height of the window.
    """
    kind = torch.int32 if source.tensor.dtype == torch.uint8 else torch.float32
    margin = (reach + 3 + 15) // 16 * 16 * source.pixel  # weights are processed four at a time
    rows, rows_n = _sums(source, margin, kind)
    table, box = (rows, True) if weights is None else (weights, False)
    tail, unit = tail_of(source), unit_of(source)
    blocks = max(source.length - tail, 0) // unit
    quads = (2 * margin + -(-source.length // 16) * 16 - unit * blocks) // 4
    if blocks and isinstance(source.tensor, Packed):
        quads = margin // 2 + 8
    height = 4 if kind == torch.int32 else 8
    groups = -(-source.height // height)
    inner, edge = -(-groups * blocks // THREADS), -(-groups * quads // THREADS)
    planes = source.images * source.planes
    launch(
        _down_kernel,
        planes * (inner + edge),
        *(rows, source.tensor, table, *source.shape, *source.steps),
        *(tail, margin, rows_n, *numbers, inner, inner + edge),
        BOX=box,
        BORDER=padding_mode,
        ROWS=height,
        BLOCK=THREADS,
    )
    lines = lines_in(out, format_of(out))
    programs = -(-lines.height * -(-lines.length // 16) // THREADS)
    launch(
        _across_kernel,
        planes * programs,
        *(rows, lines.tensor, table, *lines.shape, *lines.steps, margin, rows_n, *numbers, programs),
        *_division(numbers[0] * numbers[1] if box else 1),
        BOX=box,
        PIXEL=lines.pixel,
        BLOCK=THREADS,
    )


def _division(area: int) -> tuple[int, int, int, float]:
    """Return how OpenCV divides the sum of a window of levels: for up to 256 pixels in integers, otherwise in floats.

    Two pixels are an exception: OpenCV 5 adds one too much, so that 255 becomes 0.
    """
    if area < 3:
        return area, area // 2, 2**23 // area, 1 / area
    whole, rest = divmod(2**23, area)
    is_low = 2 * rest < area
    return area, area // 2 + is_low, whole + (not is_low), 1 / area


def _sums(source: Lines, margin: int, kind: torch.dtype) -> tuple[Tensor, int]:
    """Return memory for the sums of all rows, and the additional step between the sums of packed images."""
    images, planes, height = source.images, source.planes, source.height
    length = 2 * margin + -(-source.length // 16) * 16
    values, step = images * planes * height * length, 0
    if isinstance(source.tensor, Packed):
        step = (planes * height * (2 * margin + 15)) // 16 * 16 + 32
        values = source.tensor.numel() + images * step
    if kind == torch.int32:
        values //= 2
    return torch.empty(values, dtype=kind, device=source.tensor.device), step


@kernel(tensors=2)
def _gaussian_kernel(
    weights, sigmas, reach_x, reach_y, step, count, LEVELS: tl.constexpr, ZEROS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Compute ``cv2.getGaussianKernel`` from the middle outwards, after its reach; each lane has one image and axis.

    The reach is the distance of the last weight that is not 0. OpenCV's weights for uint8 are multiples of 1/256:
    from the outside in, each is rounded including the error of the previous ones, and the middle weight takes the
    remainder.
    """
    lane = tl.minimum(tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), count - 1)
    sigma, reach = tl.load(sigmas + lane), tl.where(lane % 2 == 0, reach_x, reach_y)
    sigma = tl.where(sigma > 0, sigma, tl.load(sigmas + (lane - lane % 2)))
    is_short = (sigma <= 0) & (reach > 0) & (reach <= 4)
    # OpenCV's standard deviation for a window size
    sigma = tl.where(sigma > 0, sigma, (reach.to(tl.float64) - 1) * 0.3 + 0.8)
    blurs = sigma > 0.02
    scale = -0.5 / tl.where(blurs, sigma * sigma, 1.0)
    row = weights + lane.to(tl.int64) * step
    most = tl.maximum(reach_x, reach_y)
    total = tl.full((BLOCK,), 0, tl.float64)
    for i in range(most):
        x = most - i
        total += tl.where(x <= reach, tl.exp(scale * x * x), 0.0)
    total = 2 * total + 1
    error, found = tl.full((BLOCK,), 0, tl.float64), tl.full((BLOCK,), 0, tl.float64)
    far = tl.full((BLOCK,), 0, tl.int32)
    for i in range(most):
        x = most - i
        value = tl.where(blurs & (x <= reach), tl.exp(scale * x * x) / total, 0.0)
        value = tl.where(is_short & (x <= reach), _short_weight(reach, x), value)
        if LEVELS:
            exact = value * 256 + error
            value = round_half_even(exact)
            error = exact - value
            found += value
        far = tl.where((value != 0) & (far == 0), x, far)
        tl.store(row + 1 + x, value.to(weights.dtype.element_ty))
    middle = tl.where(blurs, 1 / total, 1.0)
    middle = tl.where(is_short, _short_weight(reach, 0), middle)
    if LEVELS:
        middle = 256 - 2 * found
    tl.store(row, far.to(weights.dtype.element_ty))
    tl.store(row + 1, middle.to(weights.dtype.element_ty))
    for i in tl.static_range(ZEROS):
        tl.store(row + (2 + most + i), far.to(weights.dtype.element_ty) * 0)


@inline
def _short_weight(reach, x):
    """Return a weight of OpenCV's integer kernels, from ``SHORT_KERNELS``, which has a byte for each weight."""
    four = tl.full(reach.shape, 0x040D1E333C, tl.int64)
    bytes = tl.where(
        reach == 1, 0x4080, tl.where(reach == 2, 0x104060, tl.where(reach == 3, 0x081C3848, four))
    )
    return ((bytes >> (8 * tl.minimum(x, 7)).to(tl.int64)) & 255).to(tl.float64) * 0.00390625


@inline
def _start_of_sums(plane, planes, height, pitch, rows_n, starts, PACKED: tl.constexpr):
    """Return the offset of a plane's sums; in packed images they are ``rows_n`` farther apart than the images."""
    if PACKED == "":
        start = plane.to(tl.int64) * height * pitch
    else:
        n, c = (plane // planes).to(tl.int64), (plane % planes).to(tl.int64)
        start = tl.load(starts + n) // 16 * 16 + n * rows_n + c * height * pitch
    return start


@kernel(tensors=3)
def _down_kernel(
    rows, image, weights, sizes, starts, planes, height, width, pixel, step_x, step_n, step_c, step_y,
    tail, margin, rows_n, one, other, inner, programs, PACKED: tl.constexpr, BOX: tl.constexpr, BORDER: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum along y: blocks of rows, and 4 values at a time at their ends and in the margins."""
    UNIT: tl.constexpr = 16 if image.dtype.element_ty == tl.uint8 else 4
    plane, part = tl.program_id(0) // programs, tl.program_id(0) % programs
    start, line, tall, length = plane_at(
        plane, planes, height, width, pixel, step_x, step_n, step_c, step_y, sizes, starts, PACKED
    )
    pitch = 2 * margin + (length + 15) // 16 * 16
    to = _start_of_sums(plane, planes, tall, pitch, rows_n, starts, PACKED) + margin
    own, before, count = weights, other // 2, other
    if not BOX:
        own += (plane // planes) * one + other
        before = tl.load(own).to(tl.int32)
        count = 2 * before + 1
    groups = (tall + ROWS - 1) // ROWS
    blocks = tl.maximum(length - tail, 0) // UNIT
    if part < inner:
        if part * BLOCK < groups * blocks:
            element = part * BLOCK + tl.arange(0, BLOCK)
            y, column = element // blocks * ROWS, element % blocks * UNIT
            places = no_values() + (image + start + column,)
            whole = is_whole(image + start, line, 0)
            sums = _sum_rows(
                places, places, line, y, tall, own, before, count, whole, True, BOX, BORDER, ROWS, BLOCK
            )
            _store_sums(rows, sums, to + column, pitch, y, tall, ROWS)
    else:
        quads, first = (pitch - UNIT * blocks) // 4, margin // 4
        element = (part - inner) * BLOCK + tl.arange(0, BLOCK)
        if (part - inner) * BLOCK < groups * quads:
            y, quad = element // quads * ROWS, element % quads
            column = tl.where(quad < first, quad, quad + blocks * (UNIT // 4)) * 4 - margin
            places, insides = no_values(), no_values()
            for i in tl.static_range(4):
                x, c = (column + (margin + i)) // pixel, (column + (margin + i)) % pixel
                x, inside = border_at(x - margin // pixel, length // pixel, BORDER)
                places = places + (image + start + (x * pixel + c).to(tl.int64) * step_x,)
                insides = insides + (inside,)
            sums = _sum_rows(
                places, insides, line, y, tall, own, before, count, True, False, BOX, BORDER, ROWS, BLOCK
            )
            _store_sums(rows, sums, to + column, pitch, y, tall, ROWS)


@inline
def _sum_rows(
    places, insides, line, y, tall, own, before, count, whole,
    INNER: tl.constexpr, BOX: tl.constexpr, BORDER: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Return the sums of the values at given positions, for each row of the result.

    Levels come as words: the first sums are those of the bytes 0 and 2, the others those of the bytes 1 and 3,
    to which byte 2 adds in between.
    """
    LEVELS: tl.constexpr = places[0].dtype.element_ty == tl.uint8
    KIND: tl.constexpr = tl.uint32 if LEVELS else tl.float32
    COUNT: tl.constexpr = (8 if INNER else 2) if LEVELS else 4
    sums, weights = no_values(), no_values()
    for _ in tl.static_range(ROWS):
        weights = weights + ((count * 0).to(KIND),)
    for _ in tl.static_range(ROWS * COUNT):
        sums = sums + (tl.full((BLOCK,), 0, KIND),)
    for s in range(count + ROWS - 1):
        row, has_row = _row_at(y + (s - before), tall, before >= tall, BORDER)
        row = row.to(tl.int64) * line
        mask = has_row if BORDER == "constant" else None
        if BOX:
            weight = (s < count).to(KIND)
        else:
            weight = tl.load(own + 1 + tl.abs(s - before)).to(KIND)
        weights = (weight,) + weights[: ROWS - 1]
        if INNER:
            if LEVELS:
                values = _spread(words_at((places[0] + row).to(tl.int64), whole, 0, 4, mask))
            else:
                values = values_at(places[0] + row, whole, 0, 4, mask)
        else:
            values = no_values()
            for i in tl.static_range(4):
                inside = has_row & insides[i] if BORDER == "constant" else None
                values = values + (load_masked(places[i] + row, inside, 0).to(KIND),)
            if LEVELS:
                word = values[0] | values[1] << 8 | values[2] << 16 | values[3] << 24
                values = _spread(no_values() + (word,))
        # Floats must not be multiplied by zeros, because an infinity would become NaN.
        if LEVELS or ((s >= ROWS - 1) & (s < count)):
            added = _add_rows(sums, values, weights, s, count, False, ROWS)
        else:
            added = _add_rows(sums, values, weights, s, count, True, ROWS)
        sums = added
    return sums


@inline
def _row_at(i, size, is_far, BORDER: tl.constexpr):
    """Return the row to read for a row, and whether it is in the image."""
    if BORDER == "reflect":
        at, inside = reflect_row(i, size, is_far), i >= 0
    else:
        at, inside = border_at(i, size, BORDER)
    return at, inside


@inline
def _add_rows(sums, values, weights, s, count, SOME: tl.constexpr, ROWS: tl.constexpr):
    """Add the products of a row to the sums of all rows of the result, or only of those whose window contains it."""
    COUNT: tl.constexpr = len(values)
    added = no_values()
    for i in tl.static_range(ROWS):
        row = sums[i * COUNT : i * COUNT + COUNT]
        if SOME:
            if (s >= i) & (s - i < count):
                row = _add_row(row, values, weights[i])
        else:
            row = _add_row(row, values, weights[i])
        added = added + row
    return added


@inline
def _add_row(sums, values, weight):
    added = no_values()
    for i in tl.static_range(len(sums)):
        if sums[0].dtype == tl.float32:
            added = added + (fused(values[i], weight, sums[i]),)
        else:
            added = added + (sums[i] + weight * values[i],)
    return added


@inline
def _spread(words):
    values = no_values()
    for i in tl.static_range(len(words)):
        values = values + (words[i] & 0x00FF00FF,) + (words[i] >> 8,)
    return values


@inline
def _store_sums(rows, sums, at, pitch, y, tall, ROWS: tl.constexpr):
    """Store the sums of each row; sums of levels two per word."""
    COUNT: tl.constexpr = len(sums) // ROWS
    for i in tl.static_range(ROWS):
        values, to = sums[i * COUNT : i * COUNT + COUNT], at + (y + i).to(tl.int64) * pitch
        if rows.dtype.element_ty == tl.float32:
            store_four(rows + to, values, y + i < tall)
        else:
            words, where = no_values(), rows.to(tl.pointer_type(tl.uint32)) + (to >> 1)
            for j in tl.static_range(COUNT // 2):
                even, odd = values[2 * j], values[2 * j + 1]
                words = words + (even,) + (odd - ((even >> 16) << 8),)
            if COUNT == 8:
                store_four(where, words[:4], y + i < tall)
                store_four(where + 4, words[4:], y + i < tall)
            else:
                tl.store(where, words[0], mask=y + i < tall)
                tl.store(where + 1, words[1], mask=y + i < tall)


@kernel(tensors=3)
def _across_kernel(
    rows, out, weights, sizes, starts, planes, height, width, pixel, step_x, step_n, step_c, step_y,
    margin, rows_n, one, other, programs, area, more, scale, share, PACKED: tl.constexpr, BOX: tl.constexpr, PIXEL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum the sums of rows along x, with 16 values per thread."""
    LEVELS: tl.constexpr = out.dtype.element_ty == tl.uint8
    plane, part = tl.program_id(0) // programs, tl.program_id(0) % programs
    start, line, tall, length = plane_at(
        plane, planes, height, width, pixel, step_x, step_n, step_c, step_y, sizes, starts, PACKED
    )
    blocks = (length + 15) // 16
    element = part * BLOCK + tl.arange(0, BLOCK)
    y, column = element // blocks, element % blocks * 16
    if part * BLOCK < tall * blocks:
        pitch = 2 * margin + blocks * 16
        at = _start_of_sums(plane, planes, tall, pitch, rows_n, starts, PACKED)
        at += tl.minimum(y, tall - 1).to(tl.int64) * pitch + margin + column
        if LEVELS:
            at = rows.to(tl.pointer_type(tl.uint32)) + (at >> 1)
        else:
            at = rows + at
        own, left, right = weights, one // 2, one - 1 - one // 2
        if not BOX:
            own += (plane // planes) * one
            left = tl.load(own).to(tl.int32)
            right = left
        sums = _sum_columns(at, own, left, right, PIXEL, LEVELS, BOX)
        to, stop = out + start + y.to(tl.int64) * line, tl.where(y < tall, length, 0)
        rest = rest_of(out + start, line, length, step_x)
        values = no_values()
        for i in tl.static_range(16):
            values = values + (_mean(sums[i], area, more, scale, share, LEVELS, BOX),)
        if LEVELS:
            store_values(to, values, column, step_x, stop, rest)
        else:
            for i in tl.static_range(4):
                store_values(to, values[4 * i : 4 * i + 4], column + 4 * i, step_x, stop, rest)


@inline
def _mean(total, area, more, scale, share, LEVELS: tl.constexpr, BOX: tl.constexpr):
    """Divide a sum by the sum of the weights, as OpenCV does."""
    if not BOX:
        value = (total + 0x8000) >> 16 if LEVELS else total
    elif not LEVELS:
        value = tl.div_rn(total, area.to(tl.float32))
    elif area <= 256:
        value = ((total + more.to(tl.uint32)) * scale.to(tl.uint32)) >> 23
    else:
        value = (total.to(tl.float32) * share + 8388608.0 - 8388608.0).to(tl.uint32)
    return value


@inline
def _sum_columns(
    at, own, left_reach, right_reach, PIXEL: tl.constexpr, LEVELS: tl.constexpr, BOX: tl.constexpr
):  # fmt: skip
    """Return 16 sums along x, adding four pixels on each side at a time."""
    QUAD: tl.constexpr = 2 if LEVELS else 4
    KIND: tl.constexpr = tl.uint32 if LEVELS else tl.float32
    middle = no_values()
    for i in tl.static_range(4):
        middle = middle + _quad(at + i * QUAD, LEVELS)
    sums = middle
    if not BOX:
        weight, sums = tl.load(own + 1).to(KIND), no_values()
        for i in tl.static_range(16):
            sums = sums + (middle[i] * weight,)
    left, right = middle, middle
    for k in range(0, left_reach, 4):
        far = k // 4 * (PIXEL * QUAD)
        more = no_values()
        for i in tl.static_range(PIXEL):
            right = right + _quad(at + (far + (4 + i) * QUAD), LEVELS)
            more = more + _quad(at - (far + (PIXEL - i) * QUAD), LEVELS)
        left = more + left
        for t in tl.static_range(1, 5):
            one, other = left[(4 - t) * PIXEL : (4 - t) * PIXEL + 16], right[t * PIXEL : t * PIXEL + 16]
            if BOX:
                sums = _add_column(sums, one, k + t <= left_reach)
                sums = _add_column(sums, other, k + t <= right_reach)
            elif LEVELS or k + t <= left_reach:
                sums = _add_columns(sums, one, other, tl.load(own + 1 + k + t).to(KIND))
        left, right = left[:16], right[4 * PIXEL :]
    return sums


@inline
def _add_column(sums, values, exists):
    if exists:
        added = no_values()
        for i in tl.static_range(16):
            added = added + (sums[i] + values[i],)
        sums = added
    return sums


@inline
def _add_columns(sums, left, right, weight):
    added = no_values()
    for i in tl.static_range(16):
        if sums[0].dtype == tl.float32:
            added = added + (fused(left[i] + right[i], weight, sums[i]),)
        else:
            added = added + (sums[i] + (left[i] + right[i]) * weight,)
    return added


@inline
def _quad(at, LEVELS: tl.constexpr):
    """Return four adjacent sums."""
    if LEVELS:
        pair = tl.load(tl.multiple_of(at[:, None] + tl.arange(0, 2)[None, :], [1, 8]))
        even, odd = tl.split(pair)
        values = even & 0xFFFF, odd & 0xFFFF, even >> 16, odd >> 16
    else:
        values = load_four(at)
    return values
