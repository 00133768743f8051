"""CUDA kernel of the Gaussian blur: on uint8 in OpenCV's integers, both passes in one kernel."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda._arithmetic import convert, fold_positions, round_half_even
from imgops.kernels.cuda._launch import blocks, launch, tile
from imgops.kernels.cuda._tiles import PIXELS, batch, is_interleaved, output_batch, per_image, place_of


def gaussian_blur(out: Tensor, image: Tensor, sigma: Tensor, kernel_width: int, kernel_height: int) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    source, target = batch(image), output_batch(out)
    pairs, _ = per_image(sigma, image, 1, torch.float64)
    pairs = pairs.reshape(-1, 2)
    reach_x, reach_y = kernel_width // 2, kernel_height // 2
    made = torch.empty((len(pairs), reach_x + reach_y + 2), dtype=torch.float32, device=image.device)
    reaches = torch.empty((len(pairs), 2), dtype=torch.int32, device=image.device)
    levels = image.dtype == torch.uint8
    for axis, reach in ((0, reach_x), (1, reach_y)):
        where = made, reaches, pairs, axis, axis * (reach_x + 1), reach, made.shape[1], len(pairs)
        launch(_gaussian_kernel, -(-len(pairs) // 32), *where, LEVELS=levels, BLOCK=32, warps=1)
    images, channels, height, width = target.shape
    _, across = tile(width * channels, 1, 128)
    each = len(pairs) > 1
    launch(
        _blur_kernel,
        images * blocks((height, _ROWS), (width * channels, across)),
        target,
        source,
        made,
        reaches,
        made.shape[1] if each else 0,
        2 if each else 0,
        reach_x + 1,
        *(channels, height, width),
        *target.stride(),
        *source.stride(),
        INTERLEAVED=is_interleaved(target),
        ROWS=_ROWS,
        COLUMNS=across,
    )
    return None


@triton.jit(do_not_specialize=["start", "reach", "step", "count"])
def _gaussian_kernel(
    weights, reaches, sigmas, axis, start, reach, step, count, LEVELS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Compute ``cv2.getGaussianKernel`` from the middle outwards, an image in each lane, and its reach.

    The reach is the distance of the last weight that is not 0. OpenCV's weights for uint8 are 256ths: from
    the outside in, each is rounded with the error of those before it, and the middle takes what is missing.
    """
    n = tl.minimum(tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), count - 1)
    sigma = tl.load(sigmas + n * 2 + axis)
    blurs = sigma > 0.02
    scale = -0.5 / tl.where(blurs, sigma * sigma, 1.0)
    row = weights + n * step + start
    total = tl.full((BLOCK,), 0, tl.float64)
    for i in range(reach):
        x = reach - i
        total += tl.exp(scale * x * x)
    total = 2 * total + 1
    error, found = tl.full((BLOCK,), 0, tl.float64), tl.full((BLOCK,), 0, tl.float64)
    far = tl.full((BLOCK,), 0, tl.int32)
    for i in range(reach):
        x = reach - i
        value = tl.where(blurs, tl.exp(scale * x * x) / total, 0.0)
        if LEVELS:
            exact = value * 256 + error
            value = round_half_even(exact)
            error = exact - value
            found += value
        far = tl.where((value != 0) & (far == 0), reach - i, far)
        tl.store(row + (reach - i), value.to(tl.float32))
    middle = tl.where(blurs, 1 / total, 1.0)
    if LEVELS:
        middle = 256 - 2 * found
    tl.store(row, middle.to(tl.float32))
    tl.store(reaches + n * 2 + axis, far)


@triton.jit
def _blur_kernel(
    out, image, weights, reaches, weight_n, reach_n, y_start, channels, height, width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x, sizes, starts,
    PACKED: tl.constexpr, INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Blur a row at a time along x, and add it to the rows of the tile that it belongs to."""
    LEVELS: tl.constexpr = image.dtype.element_ty == tl.uint8
    length = width * channels
    across, down = (length + COLUMNS - 1) // COLUMNS, (height + ROWS - 1) // ROWS
    program = tl.program_id(0)
    n = (program // (across * down)).to(tl.int64)
    first = ((program // across) % down) * ROWS
    y = first + tl.arange(0, ROWS)
    j = (program % across) * COLUMNS + tl.arange(0, COLUMNS)
    if INTERLEAVED:
        x, c = j // channels, j % channels
    else:
        x, c = j % width, j // width
    inside, place = j < length, n
    if PACKED != "":
        place, image_c, image_y, image_x, height, width = place_of(sizes, starts, n, n >= 0, channels, PACKED)
        inside &= x < width
        image_n, out_n, out_c, out_y, out_x = 1, 1, image_c, image_y, image_x
    reach_x, reach_y = tl.load(reaches + n * reach_n), tl.load(reaches + n * reach_n + 1)
    across_weights = weights + n * weight_n
    down_weights = across_weights + y_start
    source = image + place * image_n + c.to(tl.int64) * image_c
    line_step = n * 0 + image_y
    if LEVELS:
        acc = tl.full((ROWS, COLUMNS), 0x8000, tl.int32)
    else:
        acc = tl.full((ROWS, COLUMNS), 0, tl.float32)
    last = tl.minimum(first + ROWS, height)
    for r in range(first - reach_y, last + reach_y):
        line = source + fold_positions(n * 0 + r, height, "reflect") * line_step
        if LEVELS:
            middle = tl.full((COLUMNS,), 0, tl.int32)
        else:
            middle = tl.full((COLUMNS,), 0, tl.float32)
        for k in range(-reach_x, reach_x + 1):
            at = fold_positions(x + k, width, "reflect").to(tl.int64) * image_x
            pixel = tl.load(line + at, mask=inside, other=0).to(middle.dtype)
            far = tl.maximum(k, -k)
            middle += pixel * tl.load(across_weights + far).to(middle.dtype)
        far = tl.abs(y - r)
        has = far <= reach_y
        share = tl.load(down_weights + far, mask=has, other=0).to(acc.dtype)
        acc += tl.where(has[:, None], share[:, None] * middle[None, :], 0)
    if LEVELS:
        value = (acc >> 16).to(tl.uint8)
    else:
        value = convert(acc, out.dtype.element_ty)
    to = out + place * out_n + c.to(tl.int64) * out_c + x.to(tl.int64) * out_x
    tl.store(
        to[None, :] + y[:, None].to(tl.int64) * out_y, value, mask=(y < height)[:, None] & inside[None, :]
    )


_ROWS = 16
