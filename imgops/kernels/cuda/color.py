"""CUDA kernels of the color operators: every step of a sequence in one pass over the pixels.

Contrast needs a mean, which an earlier pass computes; autocontrast and equalize need statistics likewise.
Sharpness looks at neighboring pixels. So if a sequence may have sharpness, autocontrast or equalize, each
step is a pass of its own.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from imgops.decomposition.color import STEPS
from imgops.kernels.cuda import _color_steps, _statistics
from imgops.kernels.cuda._arithmetic import convert, level, round_half_even, unit
from imgops.kernels.cuda._launch import inline, launch
from imgops.kernels.cuda._packed import Packed
from imgops.kernels.cuda._pixels import cover, dense, pixels_of, steps
from imgops.kernels.cuda._tiles import (
    PIXELS,
    batch,
    grid_of_pixels,
    offset,
    output_batch,
    per_image,
    place_of,
    tile_of,
)
from imgops.kernels.cuda.filter import sharpen

_MIXES_CHANNELS = ("contrast", "saturation", "hue")
#: The steps that need statistics of the image as it is at their turn, or look at other pixels.
_NEEDS_A_PASS = ("autocontrast", "equalize", "sharpness")


def adjust_brightness(out: Tensor, image: Tensor, factor: Tensor) -> Any:
    return _one_step("brightness", out, image, factor)


def adjust_contrast(out: Tensor, image: Tensor, factor: Tensor) -> Any:
    return _one_step("contrast", out, image, factor)


def adjust_saturation(out: Tensor, image: Tensor, factor: Tensor) -> Any:
    return _one_step("saturation", out, image, factor)


def adjust_hue(out: Tensor, image: Tensor, factor: Tensor) -> Any:
    return _one_step("hue", out, image, factor)


def _one_step(name: str, out: Tensor, image: Tensor, factor: Tensor) -> Any:
    order = torch.zeros((1,), dtype=torch.int64, device=image.device)
    return color_sequence(out, image, order, factor[..., None], name)


def color_sequence(out: Tensor, image: Tensor, order: Tensor, parameters: Tensor, names: str) -> Any:
    each, channels = names.split(","), image.shape[-3]
    if image.dtype not in PIXELS or out.numel() == 0 or len(set(each)) < len(each):
        return NotImplemented
    if channels not in (1, 3) and any(name in _MIXES_CHANNELS for name in each):
        return NotImplemented
    turns, turn_n = per_image(order, image, 1, torch.int64)
    numbers, number_n = per_image(parameters, image, 1, torch.float64)
    job = _Job(each, turns, turn_n, numbers, number_n)
    source, target, count = dense(image, out), output_batch(out), order.shape[-1]
    if count == 0:
        target.copy_(source)
    elif not any(name in _NEEDS_A_PASS for name in each):
        job.apply(target, source, 0, count)
    else:
        _turn_by_turn(job, target, source, count)
    return None


def _turn_by_turn(job: _Job, out: Tensor, image: Tensor, count: int) -> None:
    """Run each turn from one image to the next; between turns half precision is kept in float32."""
    kind = image.dtype if image.dtype == torch.uint8 else torch.float32
    for turn in range(count):
        is_last = turn == count - 1
        target = out if is_last else _empty(image, kind)
        job.apply(target, image, turn, turn + 1)
        image = target


def _empty(image: Tensor, dtype: torch.dtype) -> Tensor:
    """Return uninitialized images like a batch, or like packed images."""
    if isinstance(image, Packed):
        return image.with_values(torch.empty_like(image.data, dtype=dtype))
    return torch.empty_like(image, dtype=dtype)


class _Job:
    """Color sequence of a batch: its steps are ``names[which]`` for each number ``which`` in ``order``."""

    def __init__(self, names: list[str], order: Tensor, order_n: int, amounts: Tensor, amount_n: int) -> None:
        self.order, self.order_n, self.amounts, self.amount_n = order, order_n, amounts, amount_n
        self.index = {name: names.index(name) if name in names else -1 for name in STEPS}
        self.constants = {name.upper(): which for name, which in self.index.items()}
        self.count = len(names)

    def gate(self, turn: int, name: str) -> _statistics.Gate:
        return _statistics.Gate(self.order, self.order_n, turn, self.index[name])

    def apply(self, out: Tensor, image: Tensor, begin: int, end: int) -> None:
        """Run the turns from ``begin`` to ``end``; if several, only contrast may need a pass of its own."""
        images, channels, height, width = image.shape
        pixels, is_rgb = height * width, channels == 3
        part = _statistics.part_of(pixels)
        parts = -(-pixels // part)
        sums = tables = stretches = scales = self.amounts
        common = self.order, self.order_n, self.amounts, self.amount_n, self.count, begin
        layout = 1 if is_rgb else channels, *steps(image)
        options = {**self.constants, "RGB": is_rgb}
        if self.index["contrast"] >= 0:  # the luma of each part, for each turn
            sums = torch.empty((images, end - begin, parts), dtype=torch.float32, device=image.device)
            for turn in range(begin, end):
                where = sums, image, *common, turn, *layout, end - begin, parts, pixels
                launch(_luma_kernel, images * parts, *where, **options, BLOCK=part)
        if self.index["equalize"] >= 0:
            tables = _statistics.equalization_tables(image, self.gate(begin, "equalize"))
        if self.index["autocontrast"] >= 0:
            stretches, scales = _statistics.stretch_tables(image, self.gate(begin, "autocontrast"))
        programs, block = cover(image)
        launch(
            _steps_kernel,
            programs * layout[0],
            *(out, image, sums, tables, stretches, scales),
            *(*common, end, *layout, end - begin, parts, pixels),
            **options,
            **block,
        )
        if self.index["sharpness"] >= 0:
            sharpen(out, image, self.amounts, self.amount_n, self.gate(begin, "sharpness"))


@inline
def _step(r, g, b, which, amount, mean, LEVELS: tl.constexpr, RGB: tl.constexpr, BRIGHTNESS: tl.constexpr,
          CONTRAST: tl.constexpr, SATURATION: tl.constexpr, HUE: tl.constexpr, POSTERIZE: tl.constexpr,
          SOLARIZE: tl.constexpr, INVERT: tl.constexpr):  # fmt: skip
    """Apply one step to pixels of an image; ``which`` is one number for all of them."""
    factor = amount.to(tl.float32)
    if BRIGHTNESS >= 0:
        if which == BRIGHTNESS:
            r = _color_steps.mix(0.0, r, factor, LEVELS)
            if RGB:
                g, b = _color_steps.mix(0.0, g, factor, LEVELS), _color_steps.mix(0.0, b, factor, LEVELS)
    if CONTRAST >= 0:
        if which == CONTRAST:
            r = _color_steps.mix(mean, r, factor, LEVELS)
            if RGB:
                g, b = (
                    _color_steps.mix(mean, g, factor, LEVELS),
                    _color_steps.mix(mean, b, factor, LEVELS),
                )
    if SATURATION >= 0:
        if which == SATURATION:
            gray = _color_steps.luma(r, g, b, RGB, LEVELS)
            r = _color_steps.mix(gray, r, factor, LEVELS)
            if RGB:
                g, b = (
                    _color_steps.mix(gray, g, factor, LEVELS),
                    _color_steps.mix(gray, b, factor, LEVELS),
                )
    if HUE >= 0:
        if RGB:
            if which == HUE:
                r, g, b = _color_steps.turn_hue(r, g, b, factor, LEVELS)
    if POSTERIZE >= 0:
        if which == POSTERIZE:
            r = _color_steps.posterize(r, amount, LEVELS)
            if RGB:
                g, b = _color_steps.posterize(g, amount, LEVELS), _color_steps.posterize(b, amount, LEVELS)
    if SOLARIZE >= 0:
        if which == SOLARIZE:
            r = _color_steps.solarize(r, amount, LEVELS)
            if RGB:
                g, b = _color_steps.solarize(g, amount, LEVELS), _color_steps.solarize(b, amount, LEVELS)
    if INVERT >= 0:
        if which == INVERT:
            r = 255 - r if LEVELS else 1 - r
            if RGB:
                g, b = (255 - g if LEVELS else 1 - g), (255 - b if LEVELS else 1 - b)
    return r, g, b


@inline
def _mean(sums, n, slot, turns, parts, pixels, LEVELS: tl.constexpr):
    """Return the mean luma of an image from the sums of its parts; PIL rounds that of levels to a level."""
    total = n.to(tl.float64) * 0
    for first in range(0, parts, 128):
        i = first + tl.arange(0, 128)
        each = tl.load(sums + (n * turns + slot) * parts + i, mask=i < parts, other=0)
        total += tl.sum(each.to(tl.float64), 0)
    value = total / pixels
    if LEVELS:
        value = tl.floor(value + 0.5)
    return value.to(tl.float32)


@triton.jit(do_not_specialize=["begin", "turn"])
def _luma_kernel(
    sums, image, order, order_n, amounts, amount_n, count, begin, turn, channels, image_n, image_c, image_p,
    turns, parts, pixels, sizes, starts, PACKED: tl.constexpr,
    BRIGHTNESS: tl.constexpr, CONTRAST: tl.constexpr, SATURATION: tl.constexpr, HUE: tl.constexpr,
    SHARPNESS: tl.constexpr, POSTERIZE: tl.constexpr, SOLARIZE: tl.constexpr, INVERT: tl.constexpr,
    AUTOCONTRAST: tl.constexpr, EQUALIZE: tl.constexpr, RGB: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sum the luma of a part of an image as it is before a turn, if that turn is contrast."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    n, part = (tl.program_id(0) // parts).to(tl.int64), tl.program_id(0) % parts
    place = n
    if PACKED != "":
        place, image_c, _, image_p, tall, wide = place_of(
            sizes, starts, n, n >= 0, 3 if RGB else channels, PACKED
        )
        image_n, pixels = 1, tall * wide
    if tl.load(order + n * order_n + turn) == CONTRAST:
        p = part * BLOCK + tl.arange(0, BLOCK)
        inside = p < pixels
        at = image + place * image_n + p.to(tl.int64) * image_p
        r = tl.load(at, mask=inside, other=0).to(tl.float32)
        g, b = r, r
        if RGB:
            g = tl.load(at + image_c, mask=inside, other=0).to(tl.float32)
            b = tl.load(at + 2 * image_c, mask=inside, other=0).to(tl.float32)
        for earlier in range(begin, turn):
            which = tl.load(order + n * order_n + earlier)
            if (which >= 0) & (which < count):
                amount = tl.load(amounts + n * amount_n + which)
                mean = amount.to(tl.float32)
                if which == CONTRAST:
                    mean = _mean(sums, n, earlier - begin, turns, parts, pixels, LEVELS)
                r, g, b = _step(r, g, b, which, amount, mean, LEVELS, RGB, BRIGHTNESS, CONTRAST, SATURATION, HUE,
                                POSTERIZE, SOLARIZE, INVERT)  # fmt: skip
        gray = tl.where(inside, _color_steps.luma(r, g, b, RGB, LEVELS), 0.0)
        tl.store(sums + (n * turns + turn - begin) * parts + part, tl.sum(gray, 0))


@triton.jit(do_not_specialize=["begin", "end"])
def _steps_kernel(
    out, image, sums, tables, stretches, scales, order, order_n, amounts, amount_n, count, begin, end,
    channels, image_n, image_c, image_p, turns, parts, pixels, sizes, starts, PACKED: tl.constexpr,
    BRIGHTNESS: tl.constexpr, CONTRAST: tl.constexpr, SATURATION: tl.constexpr, HUE: tl.constexpr,
    SHARPNESS: tl.constexpr, POSTERIZE: tl.constexpr, SOLARIZE: tl.constexpr, INVERT: tl.constexpr,
    AUTOCONTRAST: tl.constexpr, EQUALIZE: tl.constexpr, RGB: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Run the steps on pixels in all their channels; channels that are not mixed are images of their own."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    plane, p, inside = pixels_of(tl.program_id(0), pixels, BLOCK)
    n, c = plane // channels, plane % channels
    place = n
    if PACKED != "":
        place, image_c, _, image_p, tall, wide = place_of(
            sizes, starts, n, n >= 0, 3 if RGB else channels, PACKED
        )
        image_n, pixels = 1, tall * wide
        inside = p < pixels
    at = place * image_n + c * image_c + p.to(tl.int64) * image_p
    r = tl.load(image + at, mask=inside, other=0).to(tl.float32)
    g, b = r, r
    if RGB:
        g = tl.load(image + at + image_c, mask=inside, other=0).to(tl.float32)
        b = tl.load(image + at + 2 * image_c, mask=inside, other=0).to(tl.float32)
    for turn in range(begin, end):
        which = tl.load(order + n * order_n + turn)
        if (which >= 0) & (which < count):
            amount = tl.load(amounts + n * amount_n + which)
            mean = amount.to(tl.float32)
            if which == CONTRAST:
                mean = _mean(sums, n, turn - begin, turns, parts, pixels, LEVELS)
            r, g, b = _step(r, g, b, which, amount, mean, LEVELS, RGB, BRIGHTNESS, CONTRAST, SATURATION, HUE,
                            POSTERIZE, SOLARIZE, INVERT)  # fmt: skip
            if EQUALIZE >= 0:
                if which == EQUALIZE:
                    r = _equalize(tables, r, plane, inside, LEVELS, RGB, 0)
                    if RGB:
                        g = _equalize(tables, g, plane, inside, LEVELS, RGB, 1)
                        b = _equalize(tables, b, plane, inside, LEVELS, RGB, 2)
            if AUTOCONTRAST >= 0:
                if which == AUTOCONTRAST:
                    r = _stretch(stretches, scales, r, plane, inside, LEVELS, RGB, 0)
                    if RGB:
                        g = _stretch(stretches, scales, g, plane, inside, LEVELS, RGB, 1)
                        b = _stretch(stretches, scales, b, plane, inside, LEVELS, RGB, 2)
    tl.store(out + at, _pixel(r, out.dtype.element_ty), mask=inside)
    if RGB:
        tl.store(out + at + image_c, _pixel(g, out.dtype.element_ty), mask=inside)
        tl.store(out + at + 2 * image_c, _pixel(b, out.dtype.element_ty), mask=inside)


@inline
def _pixel(value, to: tl.constexpr):
    if to == tl.uint8:
        found = value.to(tl.uint8)
    else:
        found = convert(value, to)
    return found


@inline
def _equalize(tables, x, plane, inside, LEVELS: tl.constexpr, RGB: tl.constexpr, C: tl.constexpr):
    table = tables + (plane * 3 + C if RGB else plane) * 256
    if LEVELS:
        value = tl.load(table + x.to(tl.int32), mask=inside, other=0).to(tl.float32)
    else:
        value = tl.load(table + level(x * 255.999).to(tl.int32), mask=inside, other=0).to(tl.float32)
        value = tl.div_rn(value, 255.0)
    return value


@inline
def _stretch(tables, scales, x, plane, inside, LEVELS: tl.constexpr, RGB: tl.constexpr, C: tl.constexpr):
    plane = plane * 3 + C if RGB else plane
    if LEVELS:
        value = tl.load(tables + plane * 256 + x.to(tl.int32), mask=inside, other=0).to(tl.float32)
    else:
        low, scale = tl.load(scales + plane * 2), tl.load(scales + plane * 2 + 1)
        value = tl.where(scale == 0, x, unit((x - low) * scale))
    return value


def grayscale(out: Tensor, image: Tensor, num_output_channels: int) -> Any:
    """Write the luma, on uint8 in PIL's integers, to each channel."""
    if image.dtype not in PIXELS or out.numel() == 0:
        return NotImplemented
    source = batch(image)
    target = output_batch(out)
    constants, programs = grid_of_pixels(target, 2048)
    sizes = target.shape[0], *target.shape[-2:], *target.stride(), *source.stride()
    launch(
        _gray_kernel,
        programs,
        target,
        source,
        *sizes,
        RGB=image.shape[-3] == 3,
        CHANNELS=num_output_channels,
        **constants,
    )
    return None


@triton.jit
def _gray_kernel(
    out, image, images, height, width, out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x, sizes, starts,
    PACKED: tl.constexpr, RGB: tl.constexpr, CHANNELS: tl.constexpr, INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    n, c, y, x, inside = tile_of(tl.program_id(0), 1, height, width, images, INTERLEAVED, ROWS, COLUMNS)
    place, to_place = n, n
    if PACKED != "":
        place, image_c, image_y, image_x, height, width = place_of(
            sizes, starts, n, n < images, (3 if RGB else 1), PACKED
        )
        inside &= (y < height) & (x < width)
        to_place, image_n, out_n, out_c, out_y, out_x = (
            place // (3 if RGB else 1) * CHANNELS,
            1,
            1,
            image_c,
            image_y,
            image_x,
        )
        if PACKED == "interleaved":
            out_y, out_x = width.to(tl.int64) * CHANNELS, CHANNELS
    at = image + offset(place, c, y, x, image_n, 0, image_y, image_x, INTERLEAVED)
    r = tl.load(at, mask=inside, other=0).to(tl.float32)
    g, b = r, r
    if RGB:
        g = tl.load(at + image_c, mask=inside, other=0).to(tl.float32)
        b = tl.load(at + 2 * image_c, mask=inside, other=0).to(tl.float32)
    value = _pixel(_color_steps.luma(r, g, b, RGB, LEVELS), out.dtype.element_ty)
    to = out + offset(to_place, c, y, x, out_n, 0, out_y, out_x, INTERLEAVED)
    for channel in tl.static_range(CHANNELS):
        tl.store(to + channel * out_c, value, mask=inside)


def color_matrix(out: Tensor, image: Tensor, matrix: Tensor) -> Any:
    if image.dtype not in PIXELS or out.numel() == 0 or max(out.shape[-3], image.shape[-3]) > 4:
        return NotImplemented
    rows, step = per_image(matrix, image, 2, torch.float32)
    source, target = batch(image), output_batch(out)
    constants, programs = grid_of_pixels(target, 2048)
    sizes = target.shape[0], *target.shape[-2:], *target.stride(), *source.stride()
    launch(
        _matrix_kernel,
        programs,
        *(target, source, rows, step),
        *sizes,
        IN=image.shape[-3],
        OUT=out.shape[-3],
        WIDTH=rows.shape[-1],
        **constants,
    )
    return None


@triton.jit
def _matrix_kernel(
    out, image, matrix, matrix_n, images, height, width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x, sizes, starts,
    PACKED: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr, WIDTH: tl.constexpr,
    INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, c, y, x, inside = tile_of(tl.program_id(0), 1, height, width, images, INTERLEAVED, ROWS, COLUMNS)
    place, to_place = n, n
    if PACKED != "":
        place, image_c, image_y, image_x, height, width = place_of(sizes, starts, n, n < images, IN, PACKED)
        inside &= (y < height) & (x < width)
        to_place, image_n, out_n, out_c, out_y, out_x = place // IN * OUT, 1, 1, image_c, image_y, image_x
        if PACKED == "interleaved":
            out_y, out_x = width.to(tl.int64) * OUT, OUT
    at = image + offset(place, c, y, x, image_n, 0, image_y, image_x, INTERLEAVED)
    to = out + offset(to_place, c, y, x, out_n, 0, out_y, out_x, INTERLEAVED)
    row, real = matrix + n * matrix_n, n < images
    for o in tl.static_range(OUT):
        total = tl.full((ROWS, COLUMNS), 0, tl.float32)
        for i in tl.static_range(IN):
            pixel = tl.load(at + i * image_c, mask=inside, other=0).to(tl.float32)
            total += tl.load(row + o * WIDTH + i, mask=real, other=0) * pixel
        if WIDTH > IN:
            total += tl.load(row + o * WIDTH + IN, mask=real, other=0)
        if out.dtype.element_ty == tl.uint8:
            total = tl.minimum(tl.maximum(round_half_even(total), 0.0), 255.0)
        tl.store(to + o * out_c, _pixel(total, out.dtype.element_ty), mask=inside)
