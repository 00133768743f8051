"""CUDA kernels of crop, pad, paste and erase, each in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from imgops.decomposition._saturate import saturate
from imgops.kernels.cuda._arithmetic import convert, fold_positions, round_half_even
from imgops.kernels.cuda._launch import inline, launch
from imgops.kernels.cuda._tiles import (
    PIXELS,
    batch,
    carrier,
    grid_of,
    has_carrier,
    offset,
    output_batch,
    per_image,
    place_of,
    tile_of,
)

#: The number of values of a program: enough loads in flight for each thread, of 1 to 8 bytes.
_TILE = 4096


def crop(out: Tensor, image: Tensor, left: int, top: int, right: int, bottom: int) -> Any:
    return _move(out, image, None, left, top, "constant")


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
    fill = fill if padding_mode == "constant" else None
    if fill is not None and fill.is_complex():
        return NotImplemented
    return _move(out, image, fill, -left, -top, padding_mode)


def flip(out: Tensor, image: Tensor, dims: Sequence[int]) -> Any:
    """Mirror packed images."""
    if not has_carrier(image):
        return NotImplemented
    target, source = carrier(output_batch(out)), carrier(batch(image))
    constants, programs = grid_of(target, _TILE)
    axes = {"DOWN": -2 in dims or 2 in dims, "ACROSS": -1 in dims or 3 in dims}
    launch(_flip_kernel, programs, target, source, *target.shape, **axes, **constants)
    return None


@triton.jit
def _flip_kernel(
    out, image, images, channels, height, width, sizes, starts,
    PACKED: tl.constexpr, DOWN: tl.constexpr, ACROSS: tl.constexpr,
    INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, c, y, x, inside = tile_of(
        tl.program_id(0), channels, height, width, images, INTERLEAVED, ROWS, COLUMNS
    )
    place, plane, line, step, height, width = place_of(sizes, starts, n, n < images, channels, PACKED)
    inside &= (y < height) & (x < width)
    from_y, from_x = y, x
    if DOWN:
        from_y = height - 1 - y
    if ACROSS:
        from_x = width - 1 - x
    value = tl.load(image + offset(place, c, from_y, from_x, 1, plane, line, step, INTERLEAVED), mask=inside)
    tl.store(out + offset(place, c, y, x, 1, plane, line, step, INTERLEAVED), value, mask=inside)


def pad_adjoint(
    out: Tensor, grad: Tensor, left: int, top: int, right: int, bottom: int, padding_mode: str
) -> Any:
    """Crop the gradient of a constant border; other borders add pixels up, which ATen does."""
    if padding_mode != "constant":
        return NotImplemented
    return _move(out, grad, None, left, top, padding_mode)


def _move(out: Tensor, image: Tensor, fill: Tensor | None, left: int, top: int, padding_mode: str) -> Any:
    if not has_carrier(image):
        return NotImplemented
    source, target = carrier(batch(image)), carrier(output_batch(out))
    color, steps = target, [0, 0]
    if fill is not None:
        values = saturate(fill, image.dtype).expand(*image.shape[:-2])
        color = carrier(values.reshape(target.shape[:2]).contiguous())
        steps = list(color.stride())
    constants, programs = grid_of(target, _TILE)
    launch(
        _move_kernel,
        programs,
        target,
        source,
        color,
        left,
        top,
        *target.shape,
        *source.shape[-2:],
        *target.stride(),
        *source.stride(),
        *steps,
        MODE=padding_mode,
        FILLS=fill is not None,
        **constants,
    )
    return None


@triton.jit(do_not_specialize=["left", "top"])
def _move_kernel(
    out, image, color, left, top, images, channels, height, width, image_height, image_width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x, color_n, color_c,
    sizes, starts, PACKED: tl.constexpr, MODE: tl.constexpr, FILLS: tl.constexpr, INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, c, y, x, inside = tile_of(
        tl.program_id(0), channels, height, width, images, INTERLEAVED, ROWS, COLUMNS
    )
    place = n
    if PACKED != "":
        place, image_c, image_y, image_x, image_height, image_width = place_of(
            sizes, starts, n, n < images, channels, PACKED
        )
        image_n = 1
    from_y, from_x = y + top, x + left
    if MODE == "constant":
        shown = (from_y >= 0) & (from_y < image_height) & (from_x >= 0) & (from_x < image_width)
    else:
        from_y, from_x = fold_positions(from_y, image_height, MODE), fold_positions(from_x, image_width, MODE)
        shown = from_y >= 0
    at = offset(place, c, from_y, from_x, image_n, image_c, image_y, image_x, INTERLEAVED)
    value = tl.load(image + at, mask=inside & shown, other=0)
    if FILLS:
        around = tl.load(color + n * color_n + c * color_c, mask=inside, other=0)
        value = tl.where(shown, value, around)
    to = offset(n, c, y, x, out_n, out_c, out_y, out_x, INTERLEAVED)
    tl.store(out + to, value, mask=inside)


def paste(out: Tensor, image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> Any:
    return _paste(output_batch(out), batch(image), source, mask, left, top)


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
    return _paste(window, window, source, mask, left - x0, top - y0)


def _paste(out: Tensor, image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> Any:
    source = batch(source)
    kind = "none"
    if mask is not None and mask.dtype == torch.bool:
        kind, mask = "bool", batch(mask).view(torch.uint8)
    elif mask is not None:
        if out.dtype not in PIXELS or mask.dtype not in (*PIXELS, torch.float64):
            return NotImplemented
        kind, mask = "levels" if mask.dtype == torch.uint8 else "real", batch(mask)
    if kind in ("none", "bool"):
        if not has_carrier(out):
            return NotImplemented
        out, image, source = carrier(out), carrier(image), carrier(source)
    weight = source if mask is None else mask
    constants, programs = grid_of(out, _TILE)
    launch(
        _paste_kernel,
        programs,
        out,
        image,
        source,
        weight,
        left,
        top,
        *out.shape,
        *source.shape[-2:],
        *out.stride(),
        *image.stride(),
        *source.stride(),
        weight.stride(0),
        *weight.stride()[-2:],
        MASK=kind,
        **constants,
    )
    return None


@triton.jit(do_not_specialize=["left", "top"])
def _paste_kernel(
    out, image, source, mask, left, top, images, channels, height, width, source_height, source_width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x, source_n, source_c, source_y, source_x,
    mask_n, mask_y, mask_x,
    MASK: tl.constexpr, INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, c, y, x, inside = tile_of(
        tl.program_id(0), channels, height, width, images, INTERLEAVED, ROWS, COLUMNS
    )
    v, u = y - top, x - left
    covered = inside & (v >= 0) & (v < source_height) & (u >= 0) & (u < source_width)
    over = source + offset(n, c, v, u, source_n, source_c, source_y, source_x, INTERLEAVED)
    under = image + offset(n, c, y, x, image_n, image_c, image_y, image_x, INTERLEAVED)
    weight = mask + offset(n, c, v, u, mask_n, 0, mask_y, mask_x, INTERLEAVED)
    if MASK == "none":
        value = tl.load(under, mask=inside & ~covered, other=0)
        value = tl.where(covered, tl.load(over, mask=covered, other=0), value)
    elif MASK == "bool":
        covered &= tl.load(weight, mask=covered, other=0) != 0
        value = tl.load(under, mask=inside & ~covered, other=0)
        value = tl.where(covered, tl.load(over, mask=covered, other=0), value)
    else:
        below = tl.load(under, mask=inside, other=0)
        above = tl.load(over, mask=covered, other=0)
        share = tl.load(weight, mask=covered, other=0)
        if out.dtype.element_ty == tl.uint8:
            value = tl.where(covered, _mix_levels(below, above, share), below)
        else:
            if MASK == "levels":
                share = tl.div_rn(share.to(tl.float32), 255.0)
            share = share.to(tl.float32)
            mixed = below.to(tl.float32) * (1 - share) + above.to(tl.float32) * share
            value = tl.where(covered, convert(mixed, out.dtype.element_ty), below)
    tl.store(out + offset(n, c, y, x, out_n, out_c, out_y, out_x, INTERLEAVED), value, mask=inside)


@inline
def _mix_levels(below, above, share):
    """Blend levels as PIL, by the exact quotient by 255, in integers.

    A float mask is rounded to the nearest level.
    """
    if share.dtype == tl.uint8:
        weight = share.to(tl.int32)
    else:
        share = share.to(tl.float32)
        weight = round_half_even(tl.where(share > 0, tl.minimum(share, 1.0), 0.0) * 255).to(tl.int32)
    total = below.to(tl.int32) * (255 - weight) + above.to(tl.int32) * weight + 128
    return (((total >> 8) + total) >> 8).to(tl.uint8)


def erase(out: Tensor, image: Tensor, fill: Tensor, box: Tensor) -> Any:
    if not has_carrier(image):
        return NotImplemented
    target, source, color = carrier(output_batch(out)), carrier(batch(image)), carrier(batch(fill))
    # One color for a box is an image with strides of 0 along rows and columns.
    steps = color.stride()
    if color.shape[-2:] == (1, 1):
        steps = (*steps[:2], 0, 0)
    each, step = per_image(box, image, 1, torch.int64)
    constants, programs = grid_of(target, 4096)
    launch(
        _erase_kernel,
        programs,
        target,
        source,
        color,
        each,
        step,
        *target.shape,
        *target.stride(),
        *source.stride(),
        *steps,
        **constants,
    )
    return None


@triton.jit
def _erase_kernel(
    out, image, color, boxes, box_n, images, channels, height, width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x, color_n, color_c, color_y, color_x,
    INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    n, c, y, x, inside = tile_of(
        tl.program_id(0), channels, height, width, images, INTERLEAVED, ROWS, COLUMNS
    )
    box = boxes + n * box_n
    real = n < images
    left, top = tl.load(box, mask=real, other=0), tl.load(box + 1, mask=real, other=0)
    right, bottom = tl.load(box + 2, mask=real, other=0), tl.load(box + 3, mask=real, other=0)
    erased = inside & (x >= left) & (x < right) & (y >= top) & (y < bottom)
    kept = tl.load(
        image + offset(n, c, y, x, image_n, image_c, image_y, image_x, INTERLEAVED),
        mask=inside & ~erased,
        other=0,
    )
    new = tl.load(
        color + offset(n, c, y, x, color_n, color_c, color_y, color_x, INTERLEAVED), mask=erased, other=0
    )
    tl.store(
        out + offset(n, c, y, x, out_n, out_c, out_y, out_x, INTERLEAVED),
        tl.where(erased, new, kept),
        mask=inside,
    )
