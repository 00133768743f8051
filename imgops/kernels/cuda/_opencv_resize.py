"""OpenCV's "bilinear", "bicubic" and "lanczos" on uint8: all taps of both axes in one pass."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from imgops.kernels.cuda._arithmetic import round_half_even
from imgops.kernels.cuda._launch import launch
from imgops.kernels.cuda._resampling_tables import Table
from imgops.kernels.cuda._tiles import grid_of, offset, place_of, tile_of


def levels(out: Tensor, image: Tensor, rows: Table, columns: Table, boxes: Tensor | None, name: str) -> None:
    constants, programs = grid_of(out, 1024, 256)
    launch(
        _opencv_kernel,
        programs,
        out,
        image,
        *out.shape,
        *image.shape[-2:],
        *out.stride(),
        *image.stride(),
        *(rows.first, rows.weight, rows.step, rows.weight_step),
        *(columns.first, columns.weight, columns.step, columns.weight_step),
        rows.first if boxes is None else boxes,
        4 if boxes is not None and len(boxes) > 1 else 0,
        NAME="bilinear" if name == "area" else name,
        TAPS=rows.weight.shape[1],
        CUT=boxes is not None,
        **constants,
    )


@triton.jit
def _opencv_kernel(
    out, image, images, channels, height, width, image_height, image_width,
    out_n, out_c, out_y, out_x, image_n, image_c, image_y, image_x,
    y_first, y_weight, y_n, y_weight_n, x_first, x_weight, x_n, x_weight_n, boxes, box_n, sizes, starts,
    PACKED: tl.constexpr, NAME: tl.constexpr, TAPS: tl.constexpr, CUT: tl.constexpr,
    INTERLEAVED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
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
    real = n < images
    top = tl.load(y_first + n * y_n + y, mask=real, other=0)
    left = tl.load(x_first + n * x_n + x, mask=inside, other=0)
    left_most, top_most, right_most, bottom_most = 0, 0, image_width - 1, image_height - 1
    if CUT:
        box = boxes + n * box_n
        left_most = tl.minimum(tl.maximum(tl.load(box, mask=real, other=0), 0), image_width - 1).to(tl.int32)
        top_most = tl.minimum(tl.maximum(tl.load(box + 1, mask=real, other=0), 0), image_height - 1).to(
            tl.int32
        )
        right_most = tl.minimum(tl.load(box + 2, mask=real, other=1), image_width).to(tl.int32) - 1
        bottom_most = tl.minimum(tl.load(box + 3, mask=real, other=1), image_height).to(tl.int32) - 1
        top, left = top + top_most, left + left_most
    total = tl.full((ROWS, COLUMNS), 0, tl.float32 if NAME == "bicubic" else tl.int32)
    for j in tl.static_range(TAPS):
        at_y = tl.minimum(tl.maximum(top + j, top_most), bottom_most)
        middle = tl.full((ROWS, COLUMNS), 0, total.dtype)
        for i in tl.static_range(TAPS):
            at_x = tl.minimum(tl.maximum(left + i, left_most), right_most)
            pixel = tl.load(
                image + offset(place, c, at_y, at_x, image_n, image_c, image_y, image_x, INTERLEAVED),
                mask=inside,
                other=0,
            )
            share = tl.load(x_weight + n * x_weight_n + i * width + x, mask=inside, other=0)
            middle += share * pixel.to(total.dtype)
        share = tl.load(y_weight + n * y_weight_n + j * height + y, mask=real, other=0)
        if NAME == "bilinear":  # in 16 bits from here on
            total += (share * (middle >> 4)) >> 16
        else:
            total += share * middle
    if NAME == "bilinear":
        value = (total + 2) >> 2
    elif NAME == "lanczos":
        value = (total + (1 << 21)) >> 22
    else:
        value = tl.minimum(tl.maximum(round_half_even(total), 0.0), 255.0).to(tl.int32)
    value = tl.minimum(tl.maximum(value, 0), 255).to(tl.uint8)
    tl.store(out + offset(n, c, y, x, out_n, out_c, out_y, out_x, INTERLEAVED), value, mask=inside)
