"""CUDA kernels of the color operators: all steps of a sequence in one pass over the pixels, or two.

Contrast needs the mean of its input, so the steps before it are a separate pass, which writes its result and sums the
luma. Autocontrast and equalize need other statistics, and sharpness reads neighboring pixels: if a sequence may have
one of these steps, each step is a separate pass.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
import triton.language as tl
from torch import Tensor

from imgops.decomposition.color import STEPS
from imgops.kernels.cuda import _color_steps
from imgops.kernels.cuda._arithmetic import level
from imgops.kernels.cuda._launch import constant, inline, kernel, launch
from imgops.kernels.cuda._packed import Packed
from imgops.kernels.cuda._pixels import (
    BLOCK,
    Cover,
    cover,
    is_whole,
    load_pixels,
    load_vectors,
    parameter,
    place_of,
    positions,
    store_pixels,
    store_vectors,
    vector_of,
)
from imgops.kernels.cuda._statistics import Gate, mean_of, rounded_mean, statistics
from imgops.kernels.cuda._tiles import PIXELS, batch
from imgops.kernels.cuda.filter import sharpen

#: The letters that kernels use for the steps.
_LETTERS = dict(zip(STEPS, "bcshxpoiae", strict=True))
#: The number of blocks of pixels that a program processes. It is small, because a small batch has few blocks.
_SPAN = 4


def adjust_brightness(out: Tensor, image: Tensor, factor: Tensor) -> Any:
    return _one_step("brightness", out, image, factor)


def adjust_contrast(out: Tensor, image: Tensor, factor: Tensor) -> Any:
    return _one_step("contrast", out, image, factor)


def adjust_saturation(out: Tensor, image: Tensor, factor: Tensor) -> Any:
    return _one_step("saturation", out, image, factor)


def adjust_hue(out: Tensor, image: Tensor, factor: Tensor) -> Any:
    return _one_step("hue", out, image, factor)


def _one_step(name: str, out: Tensor, image: Tensor, factor: Tensor) -> Any:
    return _run(out, image, None, factor.reshape(*factor.shape, 1), name)


def color_sequence(out: Tensor, image: Tensor, order: Tensor, parameters: Tensor, names: str) -> Any:
    return _run(out, image, order, parameters, names)


class _Steps(NamedTuple):
    """The steps of a sequence."""

    #: A letter for each step, padded with "-" to the largest number of steps.
    letters: str
    #: Whether programs process pixels with all their channels, planes, or values.
    kind: str
    #: Whether the sequence has contrast, a step that needs tables, and sharpness.
    has_contrast: bool
    has_tables: bool
    has_sharpness: bool


@lru_cache(64)
def _steps(names: str) -> _Steps | None:
    """Return the steps with these names, or None if a name occurs twice."""
    each = names.split(",")
    if len(set(each)) < len(each):
        return None
    letters = "".join(_LETTERS[name] for name in each)
    mixes, tables, contrast, sharpness = (any(x in letters for x in kind) for kind in ("csh", "ae", "c", "x"))
    kind = "pixels" if mixes else "planes" if tables else "values"
    return _Steps(letters.ljust(len(_LETTERS), "-"), kind, contrast, tables, sharpness)


def _run(out: Tensor, image: Tensor, order: Tensor | None, parameters: Tensor, names: str) -> Any:
    """Run steps in a given order; without an order there is only one step."""
    steps, channels = _steps(names), image.shape[-3]
    if image.dtype not in PIXELS or out.numel() == 0 or steps is None:
        return NotImplemented
    if channels not in (1, 3) and steps.has_contrast:  # around the mean of all channels
        steps = steps._replace(kind="planes" if steps.has_tables else "values")
    amounts, amount_n = parameter(parameters, image, 1)
    turns, turn_n = (None, 0) if order is None else parameter(order, image, 1)
    job = _Job(steps, turns, turn_n, amounts, amount_n)
    count = 1 if order is None else order.shape[-1]
    if count == 0:
        out.copy_(image)
    elif steps.has_tables or steps.has_sharpness:
        _turn_by_turn(job, out, image, count)
    else:
        job.apply(out, image, 0, count)
    return None


def _turn_by_turn(job: _Job, out: Tensor, image: Tensor, count: int) -> None:
    """Run each turn from one image to the next; between turns, half precision is stored as float32."""
    for turn in range(count):
        target = out if turn == count - 1 else _empty(out)
        job.apply(target, image, turn, turn + 1)
        if job.steps.has_sharpness:
            order = job.amounts if job.order is None else job.order
            gate = Gate(order, job.order_n, turn, job.steps.letters.index("x"))
            sharpen(batch(target), batch(image), job.amounts, job.amount_n, gate)
        image = target


def _empty(out: Tensor) -> Tensor:
    """Return uninitialized images like a batch or packed images, in a dtype that needs no rounding of results."""
    dtype = out.dtype if out.dtype == torch.uint8 else torch.float32
    if isinstance(out, Packed):
        return out.with_values(torch.empty_like(out.data, dtype=dtype))
    return torch.empty_like(out, dtype=dtype)


def _middle(out: Tensor, over: Cover) -> Tensor:
    """Return memory for the images between two passes."""
    if over.constants["FORM"] == "words":
        count = over.programs * over.numbers[1] * BLOCK * over.constants["CHANNELS"]
        return torch.empty(count, dtype=out.dtype, device=out.device)
    return out if out.element_size() != 2 else _empty(out)


class _Job(NamedTuple):
    """Steps of a batch in an order, with an amount for each step."""

    steps: _Steps
    order: Tensor | None
    order_n: int
    amounts: Tensor
    amount_n: int

    def apply(self, out: Tensor, image: Tensor, begin: int, end: int) -> None:
        """Run the turns from ``begin`` to ``end``; if there are several, no step may need tables."""
        over, amounts, letters = cover(out, image, self.steps.kind, _SPAN), self.amounts, self.steps.letters
        image, turns = over.image, amounts if self.order is None else self.order
        middle, found, tables, found_n = image, amounts, amounts, 0
        constants: dict[str, Any] = {"STEPS": letters, "ORDERED": self.order is not None, **over.constants}
        where = self.order_n, self.amount_n, begin, end
        if self.steps.has_tables:
            tables, found = statistics(over, image.shape[-3], letters, self.order, self.order_n, begin)
            found_n = 2 * over.constants["CHANNELS"]
        elif self.steps.has_contrast:
            parts, images = over.numbers[0], over.programs // over.numbers[0]
            found_n = end - begin + 1 + parts
            found = torch.empty((images, found_n), dtype=torch.float32, device=image.device)
            if end - begin > 1:
                middle = _middle(out, over)
            tensors, which = (found, image, middle, turns, amounts), letters.index("c")
            numbers = *over.numbers, found_n, *where
            launch(_luma_kernel, over.programs, *tensors, *numbers, CONTRAST=which, **constants)
            launch(_means_kernel, images, *tensors, *numbers, CONTRAST=which, **constants)
        every = out, image, middle, found, tables, turns, amounts
        numbers = *over.numbers, found_n, *where
        launch(_steps_kernel, over.programs, *every, *numbers, MIDDLE=middle is not image, **constants)


@kernel(tensors=5)
def _luma_kernel(
    found, image, middle, order, amounts, sizes, starts, parts, span, planes, channels, factor, pixels,
    found_n, order_n, amount_n, begin, end, PACKED: tl.constexpr, STEPS: tl.constexpr,
    CONTRAST: tl.constexpr, ORDERED: tl.constexpr, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr,
    FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Run the steps of each image before its first contrast, if it has one, and sum the luma of their result."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    VECTOR: tl.constexpr = vector_of(image.dtype.element_ty, FORM)
    _plane, n, start, within, pixels, step, blocks, head, tail = place_of(
        tl.program_id(0), image, parts, span, planes, channels, factor, pixels, sizes, starts,
        PACKED, INTERLEAVED, FORM, BLOCK,
    )  # fmt: skip
    order, amounts, found = order + n * order_n, amounts + n * amount_n, found + n * found_n
    stop = _first(order, begin, end, CONTRAST, ORDERED)
    if stop == end:
        return
    total = tl.full((BLOCK // VECTOR, VECTOR), 0, tl.float32)
    for i in range(blocks):
        at, first, last = start + within + i * BLOCK * step, head - i * BLOCK, tail - i * BLOCK
        r, g, b = _load(image, at, pixels, step, first, last, CHANNELS, INTERLEAVED, FORM, BLOCK)
        if ORDERED:
            if stop > begin:
                r, g, b = _apply(
                    r, g, b, begin, stop, order, amounts, found, found,
                    STEPS, False, ORDERED, CHANNELS, LEVELS,
                )  # fmt: skip
                _store_middle(
                    middle, tl.program_id(0) * span + i, at, pixels, step, first, last, r, g, b,
                    CHANNELS, INTERLEAVED, FORM, BLOCK,
                )  # fmt: skip
        total += _luma(r, g, b, first, last, CHANNELS, BLOCK, LEVELS)
    tl.store(found + (end - begin + 1 + tl.program_id(0) % parts), tl.sum(total))


@inline
def _first(order, begin, end, WHICH: tl.constexpr, ORDERED: tl.constexpr):
    """Return the first turn of a step, or ``end`` if there is none."""
    found = end
    if ORDERED:
        for i in range(begin, end):
            turn = begin + end - 1 - i
            found = tl.where(tl.load(order + turn) == WHICH, turn, found)
    else:
        found = begin
    return found


@inline
def _luma(r, g, b, begin, end, CHANNELS: tl.constexpr, BLOCK: tl.constexpr, LEVELS: tl.constexpr):
    """Return the luma of a block, and 0 for missing pixels."""
    gray = _color_steps.luma(r, g, b, CHANNELS == 3, LEVELS)
    if (begin > 0) | (end < BLOCK):
        _, inside = positions(begin, end, gray.shape[1], BLOCK)
        gray = tl.where(inside, gray, 0.0)
    return gray


@inline
def _load(
    image, at, pixels, step, begin, end, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr,
    FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Load three channels as floats."""
    if is_whole(image, begin, end, FORM, BLOCK):
        r, g, b, _ = load_pixels(
            image, at, pixels, step, begin, end, True, CHANNELS, INTERLEAVED, FORM, BLOCK
        )
    else:
        r, g, b, _ = load_pixels(
            image, at, pixels, step, begin, end, False, CHANNELS, INTERLEAVED, FORM, BLOCK
        )
    return r.to(tl.float32), g.to(tl.float32), b.to(tl.float32)


@inline
def _store(
    out, at, pixels, step, begin, end, r, g, b, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr,
    FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    if is_whole(out, begin, end, FORM, BLOCK):
        store_pixels(out, at, pixels, step, begin, end, r, g, b, r, True, CHANNELS, INTERLEAVED, FORM, BLOCK)
    else:
        store_pixels(out, at, pixels, step, begin, end, r, g, b, r, False, CHANNELS, INTERLEAVED, FORM, BLOCK)


@inline
def _store_middle(
    middle, block, at, pixels, step, begin, end, r, g, b, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr,
    FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Store pixels between two passes: block by block if planes begin at any byte, else as in the image."""
    if FORM == "words":
        to = middle + block.to(tl.int64) * (CHANNELS * BLOCK)
        store_vectors(to, BLOCK, 0, BLOCK, r, g, b, r, CHANNELS, False, True, 4, BLOCK)
    else:
        _store(middle, at, pixels, step, begin, end, r, g, b, CHANNELS, INTERLEAVED, FORM, BLOCK)


@inline
def _load_middle(
    middle, block, at, pixels, step, begin, end, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr,
    FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    if FORM == "words":
        here = middle + block.to(tl.int64) * (CHANNELS * BLOCK)
        r, g, b, _ = load_vectors(here, BLOCK, 0, BLOCK, CHANNELS, False, True, 4, BLOCK)
        r, g, b = r.to(tl.float32), g.to(tl.float32), b.to(tl.float32)
    else:
        r, g, b = _load(middle, at, pixels, step, begin, end, CHANNELS, INTERLEAVED, FORM, BLOCK)
    return r, g, b


@kernel(tensors=5)
def _means_kernel(
    found, image, middle, order, amounts, sizes, starts, parts, span, planes, channels, factor, pixels,
    found_n, order_n, amount_n, begin, end, PACKED: tl.constexpr, STEPS: tl.constexpr,
    CONTRAST: tl.constexpr, ORDERED: tl.constexpr, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr,
    FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute the mean luma at each turn with contrast, and write the first of these turns after the means.

    The mean at the first of these turns is the sum of parts. If contrast is repeated, this program reads the whole
    image for each further turn.
    """
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    _plane, n, start, within, pixels, step, _blocks, head, _tail = place_of(
        tl.program_id(0) * parts, image, parts, span, planes, channels, factor, pixels, sizes, starts,
        PACKED, INTERLEAVED, FORM, BLOCK,
    )  # fmt: skip
    order, amounts, found = order + n * order_n, amounts + n * amount_n, found + n * found_n
    stop = _first(order, begin, end, CONTRAST, ORDERED)
    tl.store(found + (end - begin), stop.to(tl.float32))
    if stop == end:
        return
    tl.store(found + (stop - begin), mean_of(found + (end - begin + 1), parts, 1, pixels, LEVELS))
    if ORDERED:
        for turn in range(stop + 1, end):
            if tl.load(order + turn) == CONTRAST:
                tl.debug_barrier()  # the steps use the means that are stored here
                total = tl.full((), 0, tl.float64)
                skipped = pixels * 0
                for block in range(parts * span):
                    at, first = start + within + skipped * step, tl.maximum(head - skipped, 0).to(tl.int32)
                    last = tl.minimum(head + pixels - skipped, BLOCK + 4).to(tl.int32)
                    if last > 0:
                        if stop > begin:
                            r, g, b = _load_middle(
                                middle, n * (parts * span) + block, at, pixels, step, first, last,
                                CHANNELS, INTERLEAVED, FORM, BLOCK,
                            )  # fmt: skip
                        else:
                            r, g, b = _load(
                                image, at, pixels, step, first, last, CHANNELS, INTERLEAVED, FORM, BLOCK
                            )
                        r, g, b = _apply(
                            r, g, b, stop, turn, order, amounts, found - begin, found,
                            STEPS, True, ORDERED, CHANNELS, LEVELS,
                        )  # fmt: skip
                        gray = _luma(r, g, b, first, last, CHANNELS, BLOCK, LEVELS)
                        total += tl.sum(gray).to(tl.float64)
                    skipped += BLOCK
                tl.store(found + (turn - begin), rounded_mean(total, pixels, LEVELS))


@kernel(tensors=7)
def _steps_kernel(
    out, image, middle, found, tables, order, amounts, sizes, starts, parts, span, planes, channels, factor,
    pixels, found_n, order_n, amount_n, begin, end, PACKED: tl.constexpr, STEPS: tl.constexpr,
    MIDDLE: tl.constexpr, ORDERED: tl.constexpr, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr,
    FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Run the steps from the first contrast on, or all if there is none."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    plane, n, start, within, pixels, step, blocks, head, tail = place_of(
        tl.program_id(0), image, parts, span, planes, channels, factor, pixels, sizes, starts,
        PACKED, INTERLEAVED, FORM, BLOCK,
    )  # fmt: skip
    order, amounts = order + n * order_n, amounts + n * amount_n
    found, tables = found + plane * found_n - begin, tables + plane * (CHANNELS * 256)
    go = begin
    if MIDDLE:
        stop = tl.load(found + end).to(tl.int32)
        go = tl.where(stop == end, begin, stop)
    for i in range(blocks):
        at, first, last = start + within + i * BLOCK * step, head - i * BLOCK, tail - i * BLOCK
        if MIDDLE:
            if go > begin:
                r, g, b = _load_middle(
                    middle, tl.program_id(0) * span + i, at, pixels, step, first, last,
                    CHANNELS, INTERLEAVED, FORM, BLOCK,
                )  # fmt: skip
            else:
                r, g, b = _load(image, at, pixels, step, first, last, CHANNELS, INTERLEAVED, FORM, BLOCK)
        else:
            r, g, b = _load(image, at, pixels, step, first, last, CHANNELS, INTERLEAVED, FORM, BLOCK)
        r, g, b = _apply(
            r, g, b, go, end, order, amounts, found, tables, STEPS, True, ORDERED, CHANNELS, LEVELS
        )
        _store(out, at, pixels, step, first, last, r, g, b, CHANNELS, INTERLEAVED, FORM, BLOCK)


@constant
def _letter(steps: str, i: int) -> str:
    return steps[i]


@inline
def _apply(
    r, g, b, begin, end, order, amounts, means, tables, STEPS: tl.constexpr, ALL: tl.constexpr,
    ORDERED: tl.constexpr, CHANNELS: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    """Run the steps of an image at some turns; without ``ALL``, no step among them needs a mean or tables."""
    if ORDERED:
        for turn in range(begin, end):
            which = tl.load(order + turn)
            for i in tl.static_range(10):
                if STEPS[i] != "-" and (ALL or STEPS[i] != "c"):
                    if which == i:
                        r, g, b = _step(
                            _letter(STEPS, i), r, g, b, amounts + i, means + turn, tables, CHANNELS, LEVELS
                        )
    else:
        r, g, b = _step(_letter(STEPS, 0), r, g, b, amounts, means, tables, CHANNELS, LEVELS)
    return r, g, b


@inline
def _step(STEP: tl.constexpr, r, g, b, amount, mean, tables, CHANNELS: tl.constexpr, LEVELS: tl.constexpr):
    """Apply one step; ``amount`` and ``mean`` are the addresses of its numbers."""
    RGB: tl.constexpr = CHANNELS == 3
    if STEP == "b":
        r, g, b = _color_steps.scale_all(r, g, b, tl.load(amount).to(tl.float32), RGB, LEVELS)
    elif STEP == "c":
        r, g, b = _color_steps.mix_all(tl.load(mean), r, g, b, tl.load(amount).to(tl.float32), RGB, LEVELS)
    elif STEP == "s":
        gray = _color_steps.luma(r, g, b, RGB, LEVELS)
        r, g, b = _color_steps.mix_all(gray, r, g, b, tl.load(amount).to(tl.float32), RGB, LEVELS)
    elif STEP == "h":
        if RGB:
            r, g, b = _color_steps.turn_hue(r, g, b, tl.load(amount), LEVELS)
    elif STEP == "p":
        bits = tl.load(amount).to(tl.float64)
        r = _color_steps.posterize(r, bits, LEVELS)
        if RGB:
            g, b = _color_steps.posterize(g, bits, LEVELS), _color_steps.posterize(b, bits, LEVELS)
    elif STEP == "o":
        threshold = tl.load(amount).to(tl.float64)
        r = _color_steps.solarize(r, threshold, LEVELS)
        if RGB:
            g, b = _color_steps.solarize(g, threshold, LEVELS), _color_steps.solarize(b, threshold, LEVELS)
    elif STEP == "i":
        r, g, b = (255 - r, 255 - g, 255 - b) if LEVELS else (1 - r, 1 - g, 1 - b)
    elif STEP == "a" or STEP == "e":
        r = _look_up(STEP, tables, mean, r, LEVELS)
        if RGB:
            g = _look_up(STEP, tables + 256, mean + 2, g, LEVELS)
            b = _look_up(STEP, tables + 512, mean + 4, b, LEVELS)
    return r, g, b


@inline
def _look_up(STEP: tl.constexpr, table, numbers, x, LEVELS: tl.constexpr):
    if LEVELS:
        value = tl.load(table + x.to(tl.int32)).to(tl.float32)
    elif STEP == "e":
        value = tl.div_rn(tl.load(table + level(x * 255.999).to(tl.int32)).to(tl.float32), 255.0)
    else:
        low, scale = tl.load(numbers), tl.load(numbers + 1)
        value = tl.where(scale == 0, x, _color_steps.unit((x - low) * scale))
    return value


def grayscale(out: Tensor, image: Tensor, num_output_channels: int) -> Any:
    """Write the luma, on uint8 in PIL's integers, to each channel."""
    if image.dtype not in PIXELS or out.numel() == 0:
        return NotImplemented
    over = cover(out, image, "pixels", _SPAN)
    numbers = (*over.numbers,)
    launch(_gray_kernel, over.programs, out, over.image, *numbers, OUT=num_output_channels, **over.constants)
    return None


@kernel(tensors=2)
def _gray_kernel(
    out, image, sizes, starts, parts, span, planes, channels, factor, pixels, PACKED: tl.constexpr,
    OUT: tl.constexpr, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr, FORM: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    _plane, _n, start, within, pixels, step, blocks, head, tail = place_of(
        tl.program_id(0), image, parts, span, planes, channels, factor, pixels, sizes, starts,
        PACKED, INTERLEAVED, FORM, BLOCK,
    )  # fmt: skip
    for i in range(blocks):
        at, first, last = start + within + i * BLOCK * step, head - i * BLOCK, tail - i * BLOCK
        to = _other(start, at, OUT, CHANNELS, INTERLEAVED)
        if is_whole(image, first, last, FORM, BLOCK):
            _gray_block(
                out, image, to, at, pixels, step, first, last, True, OUT, CHANNELS, INTERLEAVED, FORM, BLOCK
            )
        else:
            _gray_block(
                out, image, to, at, pixels, step, first, last, False, OUT, CHANNELS, INTERLEAVED, FORM, BLOCK
            )


@inline
def _other(start, at, OUT: tl.constexpr, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr):
    """Return the positions of pixels in an image with another number of channels."""
    if INTERLEAVED:
        to = at // CHANNELS * OUT
    else:
        to = at + (start // CHANNELS * OUT - start)
    return to


@inline
def _gray_block(
    out, image, to, at, pixels, step, begin, end, WHOLE: tl.constexpr, OUT: tl.constexpr,
    CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr, FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    r, g, b, _ = load_pixels(image, at, pixels, step, begin, end, WHOLE, CHANNELS, INTERLEAVED, FORM, BLOCK)
    r, g, b = r.to(tl.float32), g.to(tl.float32), b.to(tl.float32)
    gray = _color_steps.luma(r, g, b, CHANNELS == 3, image.dtype.element_ty == tl.uint8)
    step = OUT if INTERLEAVED else 1
    store_pixels(
        out, to, pixels, step, begin, end, gray, gray, gray, gray, WHOLE, OUT, INTERLEAVED, FORM, BLOCK
    )


def color_matrix(out: Tensor, image: Tensor, matrix: Tensor) -> Any:
    if image.dtype not in PIXELS or out.numel() == 0 or max(out.shape[-3], image.shape[-3]) > 4:
        return NotImplemented
    rows, step = parameter(matrix, image, 2)
    over = cover(out, image, "pixels", _SPAN)
    shape = {"OUT": out.shape[-3], "WIDTH": rows.shape[-1]}
    launch(
        _matrix_kernel,
        over.programs,
        *(out, over.image, rows, *over.numbers, step),
        **shape,
        **over.constants,
    )
    return None


@kernel(tensors=3)
def _matrix_kernel(
    out, image, matrix, sizes, starts, parts, span, planes, channels, factor, pixels, matrix_n,
    PACKED: tl.constexpr, OUT: tl.constexpr, WIDTH: tl.constexpr, CHANNELS: tl.constexpr,
    INTERLEAVED: tl.constexpr, FORM: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    _plane, n, start, within, pixels, step, blocks, head, tail = place_of(
        tl.program_id(0), image, parts, span, planes, channels, factor, pixels, sizes, starts,
        PACKED, INTERLEAVED, FORM, BLOCK,
    )  # fmt: skip
    row = matrix + n * matrix_n
    for i in range(blocks):
        at, first, last = start + within + i * BLOCK * step, head - i * BLOCK, tail - i * BLOCK
        to = _other(start, at, OUT, CHANNELS, INTERLEAVED)
        if is_whole(image, first, last, FORM, BLOCK):
            _matrix_block(
                out, image, row, to, at, pixels, step, first, last, WIDTH, True, OUT, CHANNELS,
                INTERLEAVED, FORM, BLOCK,
            )  # fmt: skip
        else:
            _matrix_block(
                out, image, row, to, at, pixels, step, first, last, WIDTH, False, OUT, CHANNELS,
                INTERLEAVED, FORM, BLOCK,
            )  # fmt: skip


@inline
def _matrix_block(
    out, image, row, to, at, pixels, step, begin, end, WIDTH: tl.constexpr, WHOLE: tl.constexpr,
    OUT: tl.constexpr, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr, FORM: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    r, g, b, a = load_pixels(image, at, pixels, step, begin, end, WHOLE, CHANNELS, INTERLEAVED, FORM, BLOCK)
    r, g, b, a = r.to(tl.float32), g.to(tl.float32), b.to(tl.float32), a.to(tl.float32)
    red = _row(row, r, g, b, a, CHANNELS, WIDTH, LEVELS)
    green, blue, alpha = red, red, red
    if OUT > 1:
        green = _row(row + WIDTH, r, g, b, a, CHANNELS, WIDTH, LEVELS)
    if OUT > 2:
        blue = _row(row + 2 * WIDTH, r, g, b, a, CHANNELS, WIDTH, LEVELS)
    if OUT > 3:
        alpha = _row(row + 3 * WIDTH, r, g, b, a, CHANNELS, WIDTH, LEVELS)
    step = OUT if INTERLEAVED else 1
    store_pixels(
        out, to, pixels, step, begin, end, red, green, blue, alpha, WHOLE, OUT, INTERLEAVED, FORM, BLOCK
    )


@inline
def _row(row, r, g, b, a, CHANNELS: tl.constexpr, WIDTH: tl.constexpr, LEVELS: tl.constexpr):
    """Multiply pixels by a row of a matrix."""
    total = tl.load(row).to(tl.float32) * r
    if CHANNELS > 1:
        total += tl.load(row + 1).to(tl.float32) * g
    if CHANNELS > 2:
        total += tl.load(row + 2).to(tl.float32) * b
    if CHANNELS > 3:
        total += tl.load(row + 3).to(tl.float32) * a
    if WIDTH > CHANNELS:
        total += tl.load(row + CHANNELS).to(tl.float32)
    if LEVELS:
        # Above 2**23 all floats are integers, so the sum is rounded half to even.
        total = tl.minimum(tl.maximum(total, 0.0), 255.0) + 8388608.0 - 8388608.0
    return total
