"""The kernel of all warps: a position is computed once for all channels of a pixel.

A program processes tiles that are below each other. Bounds of a tile's positions show whether all pixels that it
reads are inside of the image; then no access is masked or folded at a border. If all of them are outside, nothing is
read.
"""

# Tuples have lengths that depend on constants, which Triton's types support, but mypy's do not.
# mypy: disable-error-code="assignment,misc"

from __future__ import annotations

import triton.language as tl

from imgops.kernels.cuda._arithmetic import convert, round_half_even
from imgops.kernels.cuda._interpolation import (
    are_far,
    around_position,
    bound_positions,
    pixel_at,
    taps,
    tile_of_pixels,
    weights,
)
from imgops.kernels.cuda._launch import inline, kernel


@kernel(tensors=2)
def invert_kernel(inverse, matrix, images, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Invert matrices in double precision, as OpenCV does: 9 floats for each, 0 for singular matrices."""
    n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    real = n < images
    to = inverse + n * 9
    if KIND == "affine":
        at = matrix + n * 6
        a, b, x = _load_row(at, real)
        c, d, y = _load_row(at + 3, real)
        scale = _reciprocal(a * d - b * c)
        a, b, c, d = d * scale, -b * scale, -c * scale, a * scale
        _store_row(to, a, b, -(a * x + b * y), real)
        _store_row(to + 3, c, d, -(c * x + d * y), real)
    else:
        at = matrix + n * 9
        a, b, c = _load_row(at, real)
        d, e, f = _load_row(at + 3, real)
        g, h, i = _load_row(at + 6, real)
        scale = _reciprocal(a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g))
        _store_row(to, (e * i - f * h) * scale, (h * c - i * b) * scale, (b * f - c * e) * scale, real)
        _store_row(to + 3, (f * g - d * i) * scale, (i * a - g * c) * scale, (c * d - a * f) * scale, real)
        _store_row(to + 6, (d * h - e * g) * scale, (g * b - h * a) * scale, (a * e - b * d) * scale, real)


@inline
def _load_row(at, real):
    a, b = tl.load(at, mask=real, other=0), tl.load(at + 1, mask=real, other=0)
    c = tl.load(at + 2, mask=real, other=0)
    return a.to(tl.float64), b.to(tl.float64), c.to(tl.float64)


@inline
def _store_row(to, a, b, c, real):
    tl.store(to, a.to(tl.float32), mask=real)
    tl.store(to + 1, b.to(tl.float32), mask=real)
    tl.store(to + 2, c.to(tl.float32), mask=real)


@inline
def _reciprocal(determinant):
    return tl.where(determinant == 0, 0.0, 1.0 / tl.where(determinant == 0, 1.0, determinant))


@inline
def _product(row, x, y, FUSED: tl.constexpr):
    """Multiply a row of a matrix by ``(x, y, 1)``."""
    start = row[1] * y + row[2]
    if FUSED:
        value = tl.fma(row[0], x, start)
    else:
        value = row[0] * x + start
    return value


@inline
def _bounds(row, x, y, FUSED: tl.constexpr):
    """Return the least and the greatest product for positions between two columns and two rows.

    Each operation of a product is monotonic, even with rounding.
    """
    left, right = tl.where(row[0] > 0, x[0], x[1]), tl.where(row[0] > 0, x[1], x[0])
    top, bottom = tl.where(row[1] > 0, y[0], y[1]), tl.where(row[1] > 0, y[1], y[0])
    return _product(row, left, top, FUSED), _product(row, right, bottom, FUSED)


@inline
def _place_tile(
    a, b, c, x, y, height, width,
    KIND: tl.constexpr, TAPS: tl.constexpr, BORDER: tl.constexpr, SPARE: tl.constexpr,
):  # fmt: skip
    """Return whether all pixels that a tile reads are inside, whether all are outside, and whether any is far.

    The last ``SPARE`` rows of the image do not count as inside. The bounds are those of numerators; they are compared
    with multiples of the bounds of the divisors, with a margin of one pixel for rounding. A NaN makes every
    comparison false.
    """
    FUSED: tl.constexpr = TAPS < 4
    low_u, high_u = _bounds(a, x, y, FUSED)
    low_v, high_v = _bounds(b, x, y, FUSED)
    low_w, high_w = 1.0, 1.0
    if KIND == "perspective":
        low_w, high_w = _bounds(c, x, y, FUSED)
    least = (1.0 if TAPS == 4 else 0.0) * high_w
    last_u, last_v = (width - 1).to(tl.float32), (height - 1).to(tl.float32)
    most_u, most_v = (last_u - TAPS // 2) * low_w, (last_v - (TAPS // 2 + SPARE)) * low_w
    inner = (low_u > least) & (low_v > least) & (tl.maximum(high_u - most_u, high_v - most_v) < 0)
    outer, far = False, False
    if BORDER == "constant":
        beyond = tl.maximum(low_u - (last_u + 4) * high_w, low_v - (last_v + 4) * high_w)
        outer = (tl.minimum(high_u, high_v) < -4 * high_w) | (beyond > 0)
    elif BORDER != "edge":
        end = 1073741824.0 * low_w
        far = ((low_u >= -end) & (low_v >= -end) & (tl.maximum(high_u, high_v) <= end)) == 0
    if KIND == "perspective":
        inner, outer, far = inner & (low_w > 0), outer & (low_w > 0), far | (low_w <= 0)
    return inner, outer, far


@inline
def _store(to, at, value, inside, TAPS: tl.constexpr, VECTOR: tl.constexpr):
    """Store values; groups of ``VECTOR`` bytes of consecutive columns are aligned, and entirely inside or outside."""
    to += at
    if VECTOR > 1:
        to = tl.multiple_of(to, [1, VECTOR])
    if TAPS > 1:
        if to.dtype.element_ty == tl.uint8:
            if TAPS == 4:
                value = tl.minimum(tl.maximum(value, 0.0), 255.0)
            # The sum of a float below 2**22 and 1.5 * 2**23 ends in the bits of the rounded number.
            value = (value + 12582912.0).to(tl.int32, bitcast=True).to(tl.uint8)
        else:
            value = convert(value, to.dtype.element_ty)
    tl.store(to, value, mask=inside)


@inline
def _around(color, c, color_c, FILLS: tl.constexpr):
    """Return the color of a channel outside of the image."""
    return tl.load(color + c * color_c) if FILLS else tl.zeros((), color.dtype.element_ty)


@inline
def _move(
    to, at, source, color, u, v, inside, far, size, step, out_c, color_c,
    BORDER: tl.constexpr, FILLS: tl.constexpr, CHANNELS: tl.constexpr, VECTOR: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Store the pixels that are nearest to positions."""
    height, width = size
    if (BORDER == "constant" or BORDER == "" or BORDER == "edge") and not WIDE and u.dtype == tl.float32:
        if BORDER == "edge":
            u = tl.minimum(tl.maximum(u, 0.0), (width - 1).to(tl.float32))
            v = tl.minimum(tl.maximum(v, 0.0), (height - 1).to(tl.float32))
        # The sum of a float and 1.5 * 2**23 has the bits of the rounded number, or is outside of any image.
        x = (u + 12582912.0).to(tl.int32, bitcast=True) - 0x4B400000
        y = (v + 12582912.0).to(tl.int32, bitcast=True) - 0x4B400000
    else:
        u, v = bound_positions(u, v, width, height, far, BORDER)
        x, y = round_half_even(u).to(tl.int32), round_half_even(v).to(tl.int32)
        if BORDER != "constant" and BORDER != "":
            x, _ = pixel_at(x, width, BORDER)
            y, _ = pixel_at(y, height, BORDER)
    has = inside
    if BORDER == "constant":
        has = (x.to(tl.uint32) < width.to(tl.uint32)) & (y.to(tl.uint32) < height.to(tl.uint32))
    if WIDE:
        x, y = x.to(tl.int64), y.to(tl.int64)
    source += y * step[1] + x * step[2]
    for c in tl.static_range(CHANNELS):
        value = tl.load(source + c * step[0], mask=has, other=_around(color, c, color_c, FILLS))
        _store(to + c * out_c, at, value, inside, 1, VECTOR)


@inline
def _load(at, has_x, has_y, around, BORDER: tl.constexpr):
    if BORDER == "constant":
        value = tl.load(at, mask=has_x & has_y, other=around)
    else:
        value = tl.load(at)
    return value.to(tl.float32)


@inline
def _blend(
    c, to, at, source, color, inside, fraction, wx, wy, x, y, has_x, has_y, step_c, out_c, color_c,
    TAPS: tl.constexpr, BORDER: tl.constexpr, FILLS: tl.constexpr, VECTOR: tl.constexpr,
):  # fmt: skip
    """Store the weighted sums of a channel's pixels at offsets from ``source``."""
    source += c * step_c
    around = _around(color, c, color_c, FILLS)
    rows = ()
    for j in tl.static_range(TAPS):
        line = source + y[j]
        pixel = _load(line + x[0], has_x[0], has_y[j], around, BORDER)
        if TAPS == 2:
            row = tl.fma(fraction[0], _load(line + x[1], has_x[1], has_y[j], around, BORDER) - pixel, pixel)
        else:
            row = pixel * wx[0]
            for i in tl.static_range(1, 4):
                row = tl.fma(_load(line + x[i], has_x[i], has_y[j], around, BORDER), wx[i], row)
        rows += (row,)
    if TAPS == 2:
        value = tl.fma(fraction[1], rows[1] - rows[0], rows[0])
    else:
        value = tl.fma(rows[3], wy[3], tl.fma(rows[2], wy[2], tl.fma(rows[1], wy[1], rows[0] * wy[0])))
    _store(to + c * out_c, at, value, inside, TAPS, VECTOR)


@inline
def _load_bytes(line, shift, CHANNELS: tl.constexpr, WORDS: tl.constexpr):
    """Return four pixels of bytes, ``shift`` bits after the start of a word, in as many words as there are channels.

    The next word is loaded only if some of its bytes are needed, because it may be beyond the image.
    """
    words = ()
    for k in tl.static_range(CHANNELS):
        words += (tl.load(line + k),)
    if CHANNELS < 4 or WORDS == "any":
        words += (tl.load(line + CHANNELS, mask=shift > 0, other=0),)
        moved = ()
        for k in tl.static_range(CHANNELS):
            moved += ((words[k] >> shift) | ((words[k + 1] << 1) << (shift ^ 31)),)
        words = moved
    return words


@inline
def _byte(words, i: tl.constexpr):
    return ((words[i // 4] >> (i % 4 * 8)) & 255).to(tl.float32)


@inline
def _blend_words(
    to, at, source, left, top, inside, wx, wy, step, out_c,
    CHANNELS: tl.constexpr, PIXEL: tl.constexpr, VECTOR: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """Store bicubic sums of bytes inside of an image, which are loaded as words.

    "aligned" rows and planes begin at words; "any" means that rows of an interleaved image may begin inside a word.
    """
    begin = top * step[1] + left * PIXEL
    if WORDS == "any":
        before = (source.to(tl.int64) & 3).to(tl.int32)
        begin += before
        source -= before
    for plane in tl.static_range(0, CHANNELS, PIXEL):
        base = (source + plane * step[0]).to(tl.pointer_type(tl.uint32))
        rows = ()
        for j in tl.static_range(4):
            if WORDS == "aligned":
                line = base + (begin >> 2) + j * (step[1] >> 2)
                words = _load_bytes(line, ((begin & 3) << 3).to(tl.uint32), PIXEL, WORDS)
            else:
                first = begin + j * step[1]
                words = _load_bytes(base + (first >> 2), ((first & 3) << 3).to(tl.uint32), PIXEL, WORDS)
            for c in tl.static_range(PIXEL):
                row = _byte(words, c) * wx[0]
                for i in tl.static_range(1, 4):
                    row = tl.fma(_byte(words, i * PIXEL + c), wx[i], row)
                rows += (row,)
        for c in tl.static_range(PIXEL):
            value = rows[c] * wy[0]
            for j in tl.static_range(1, 4):
                value = tl.fma(rows[j * PIXEL + c], wy[j], value)
            _store(to + (plane + c) * out_c, at, value, inside, 4, VECTOR)


@inline
def _interpolate(
    to, at, source, color, u, v, inside, far, size, step, out_c, color_c,
    TAPS: tl.constexpr, BORDER: tl.constexpr, FILLS: tl.constexpr, CHANNELS: tl.constexpr, PIXEL: tl.constexpr,
    VECTOR: tl.constexpr, WIDE: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """Store the interpolated pixels at positions."""
    height, width = size
    if BORDER != "":
        u, v = bound_positions(u, v, width, height, far, BORDER)
    left, top, fx, fy = around_position(u, v, TAPS)
    wx, wy = weights(fx, TAPS), weights(fy, TAPS)
    if WORDS != "" and BORDER == "":
        _blend_words(
            to, at, source, left, top, inside, wx, wy, step, out_c, CHANNELS, PIXEL, VECTOR, WORDS
        )  # fmt: skip
    else:
        if WIDE:
            left, top = left.to(tl.int64), top.to(tl.int64)
        y, has_y = taps(top, height, step[1], TAPS, BORDER)
        x, has_x = taps(left, width, step[2], TAPS, BORDER)
        if BORDER == "constant" or BORDER == "":
            source += top * step[1] + left * step[2]
        if TAPS == 4 and BORDER != "":
            # Few tiles are at a border, and the code of a bicubic sum is long.
            for c in range(CHANNELS):
                _blend(
                    c, to, at, source, color, inside, (fx, fy), wx, wy, x, y, has_x, has_y, step[0], out_c, color_c,
                    TAPS, BORDER, FILLS, VECTOR
                )  # fmt: skip
        else:
            for c in tl.static_range(CHANNELS):
                _blend(
                    c, to, at, source, color, inside, (fx, fy), wx, wy, x, y, has_x, has_y, step[0], out_c, color_c,
                    TAPS, BORDER, FILLS, VECTOR
                )  # fmt: skip


@inline
def _sample(
    to, at, source, color, u, v, inside, far, size, step, out_c, color_c,
    TAPS: tl.constexpr, BORDER: tl.constexpr, FILLS: tl.constexpr, CHANNELS: tl.constexpr, PIXEL: tl.constexpr,
    VECTOR: tl.constexpr, WIDE: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """Store the pixels at positions. An empty ``BORDER`` means that they need no pixel outside of the image."""
    if TAPS == 1:
        _move(
            to, at, source, color, u, v, inside, far, size, step, out_c, color_c,
            BORDER, FILLS, CHANNELS, VECTOR, WIDE
        )  # fmt: skip
    else:
        _interpolate(
            to, at, source, color, u, v, inside, far, size, step, out_c, color_c,
            TAPS, BORDER, FILLS, CHANNELS, PIXEL, VECTOR, WIDE, WORDS
        )  # fmt: skip


@inline
def _find_positions(
    a, b, c, x, y, last_x, last_y, KIND: tl.constexpr, FUSED: tl.constexpr, BORDER: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Return the source positions of pixels; pixels beyond the last row or column get its positions."""
    x = tl.broadcast_to(tl.minimum(x.to(tl.float32), last_x), (ROWS, COLUMNS))
    y = tl.broadcast_to(tl.minimum(y.to(tl.float32), last_y), (ROWS, COLUMNS))
    u, v = _product(a, x, y, FUSED), _product(b, x, y, FUSED)
    if KIND == "perspective":
        w = _product(c, x, y, FUSED)
        if BORDER == "constant":  # infinite positions and NaNs are outside
            u, v = tl.div_rn(u, w), tl.div_rn(v, w)
        else:
            divisor = tl.where(w == 0, 1.0, w)
            u = tl.where(w == 0, -1073741824.0, tl.div_rn(u, divisor))
            v = tl.where(w == 0, -1073741824.0, tl.div_rn(v, divisor))
    return u, v


@inline
def _load_rows(where, KIND: tl.constexpr):
    """Return the rows of an inverse matrix."""
    a, b, c = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)
    if KIND != "map":
        a = (tl.load(where), tl.load(where + 1), tl.load(where + 2))
        b = (tl.load(where + 3), tl.load(where + 4), tl.load(where + 5))
    if KIND == "perspective":
        c = (tl.load(where + 6), tl.load(where + 7), tl.load(where + 8))
    return a, b, c


@inline
def _load_map(
    where, plane, x, y, width, inside, image_height, image_width,
    TAPS: tl.constexpr, VECTOR: tl.constexpr, TESTS: tl.constexpr, SPARE: tl.constexpr,
):  # fmt: skip
    """Return the positions of a map, and whether all pixels around them are known to be inside of the image."""
    at_x, at_y = where + (y * width + x), where + plane + (y * width + x)
    if VECTOR > 1:
        at_x, at_y = tl.multiple_of(at_x, [1, 16]), tl.multiple_of(at_y, [1, 16])
    # Beyond the last row and column, use a position inside of every nonempty image.
    u, v = tl.load(at_x, mask=inside, other=1.5), tl.load(at_y, mask=inside, other=1.5)
    inner = False
    if TESTS:
        lies = (u >= 1) & (u < image_width - TAPS // 2)
        lies &= (v >= 1) & (v < image_height - TAPS // 2 - SPARE)
        inner = tl.min(tl.min(lies.to(tl.int32), 1), 0) > 0
    return u, v, inner


@kernel(tensors=4)
def warp_kernel(
    out, image, where, color, sizes, starts,
    channels, height, width, image_height, image_width, image_n, image_c, image_y, where_n, color_n, color_c,
    PACKED: tl.constexpr, KIND: tl.constexpr, TAPS: tl.constexpr, BORDER: tl.constexpr, FILLS: tl.constexpr,
    CHANNELS: tl.constexpr, PIXEL: tl.constexpr, ALIGNED: tl.constexpr, WIDE: tl.constexpr, WORDS: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, TALL: tl.constexpr,
):  # fmt: skip
    """Warp ``CHANNELS`` channels of a block of ``TALL`` rows, tile by tile.

    ``where`` has a map, or nine floats of an inverse matrix, for each image. ``PIXEL`` is the number of values of a
    pixel in a row of the image: 1 in a planar image, 0 if it is not a constant. ``ALIGNED`` says that groups of four
    columns are aligned. ``WIDE`` images need 64-bit offsets within a plane.
    """
    # OpenCV's own code for "nearest" and "bilinear" fuses operations; the positions of its bicubic filter come from
    # older code.
    FUSED: tl.constexpr = TAPS < 4
    VECTOR: tl.constexpr = out.dtype.element_ty.primitive_bitwidth // 2 if ALIGNED and PIXEL == 1 else 1
    REPEATS: tl.constexpr = BORDER == "wrap" or BORDER == "symmetric" or BORDER == "reflect"
    TESTS: tl.constexpr = not WIDE and (REPEATS or TAPS == 4 or (TAPS == 2 and KIND != "map"))
    SPARE: tl.constexpr = 1 if WORDS == "any" else 0
    n, group, first_y, first_x = tile_of_pixels(
        tl.program_id(0), channels // CHANNELS, height, width, TALL, COLUMNS
    )
    pixel = channels if PIXEL == 0 else PIXEL
    plane = height.to(tl.int64) * width
    if PACKED == "":
        source = image + n * image_n
    else:
        source = image + tl.load(starts + n)
        image_height = tl.load(sizes + n * 2).to(tl.int32)
        image_width = tl.load(sizes + n * 2 + 1).to(tl.int32)
        image_y, image_c = image_width * pixel, image_width.to(tl.int64) * image_height
    step_y = image_y.to(tl.int64) if WIDE else image_y
    step_c, out_c = image_c.to(tl.int64), plane
    if PIXEL != 1:
        step_c, out_c = 1, 1
    channel = group.to(tl.int64) * CHANNELS
    source += channel * step_c
    to = out + (n * (plane * channels) + channel * out_c)
    color += n * color_n + channel * color_c
    where += n * where_n
    size, step = (image_height, image_width), (step_c, step_y, pixel)
    a, b, c = _load_rows(where, KIND)
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    x = first_x + column
    has_column = (column // 4 * 4 if ALIGNED else column) < width - first_x
    last_x, last_y = (width - 1).to(tl.float32), (height - 1).to(tl.float32)
    for above in range(0, tl.minimum(TALL, height - first_y), ROWS):
        tile_y = first_y + above
        y = tile_y + row
        inside = (row < height - tile_y) & has_column
        if WIDE:
            y = y.to(tl.int64)
        inner, outer, far = False, False, True
        if KIND == "map":
            u, v, inner = _load_map(
                where, plane, x, y, width, inside, image_height, image_width, TAPS, VECTOR, TESTS, SPARE
            )
        else:
            u, v = _find_positions(a, b, c, x, y, last_x, last_y, KIND, FUSED, BORDER, ROWS, COLUMNS)
            if TESTS:
                x0, y0 = first_x.to(tl.float32), tile_y.to(tl.float32)
                x1, y1 = tl.minimum(x0 + (COLUMNS - 1), last_x), tl.minimum(y0 + (ROWS - 1), last_y)
                inner, outer, far = _place_tile(
                    a, b, c, (x0, x1), (y0, y1), image_height, image_width, KIND, TAPS, BORDER, SPARE
                )
        at = y * (width * pixel) + x * pixel
        if inner:
            _sample(
                to, at, source, color, u, v, inside, far, size, step, out_c, color_c,
                TAPS, "", False, CHANNELS, PIXEL, VECTOR, WIDE, WORDS
            )  # fmt: skip
        else:
            if outer:
                for k in tl.static_range(CHANNELS):
                    _store(to + k * out_c, at, _around(color, k, color_c, FILLS), inside, 1, VECTOR)
            else:
                any_far = are_far(u, v) if KIND == "map" and REPEATS else far
                _sample(
                    to, at, source, color, u, v, inside, any_far, size, step, out_c, color_c,
                    TAPS, BORDER, FILLS, CHANNELS, PIXEL, VECTOR, WIDE, ""
                )  # fmt: skip
