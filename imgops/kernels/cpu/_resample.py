"""Application of two resampling tables to an image: by the native kernel if it was built, else by ATen.

The native kernel repeats PIL's integer arithmetic, so it is used for uint8 only if the installed PIL computes
that way. It is compared with PIL once, before its first use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from imgops._common import layout
from imgops.kernels.cpu import _pil, _resampling_tables, _threads, native

FILTERS = {
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "hamming": Image.Resampling.HAMMING,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}

Tables = tuple[
    _resampling_tables.Table | None, _resampling_tables.Table | None
]  # rows, columns; None is the identity
#: (height, width, out_height, out_width) -> whether the vertical pass comes first
Order = Callable[[int, int, int, int], bool]


def apply(out: Tensor, image: Tensor, tables: Tables, order: Order | None = None) -> bool:
    """Multiply an image by a table along each axis; return False on uint8 if the native kernel cannot.

    On uint8 each pass rounds to 8 bits, so that ``order`` matters; for other dtypes it does not.
    """
    if tables == (None, None):
        out.copy_(image)
        return True
    image = layout.in_format(image, layout.writes_interleaved(out))
    height, width = image.shape[-2:]
    rows_first = order is not None and order(height, width, *out.shape[-2:])
    rows, columns = (None if table is None else table.arrays for table in tables)
    if native.resample(out, image, rows, columns, rows_first):
        return True
    if out.dtype == torch.uint8:
        return False
    # ATen multiplies by dense matrices.
    result = image
    for axis, table in zip((-2, -1), tables, strict=True):
        if table is not None:
            matrix = torch.from_numpy(table.matrix(image.shape[axis])).to(image.dtype)
            result = matrix @ result if axis == -2 else result @ matrix.T
    out.copy_(result)
    return True


def by_native(out: Tensor, image: Tensor, region: Any, interpolation: str) -> bool:
    """Resize as PIL does, in one native call, which also makes the tables; return False if it cannot."""
    interleaved, order = layout.writes_interleaved(out), pil_order()
    if not (image.dtype == torch.uint8 and _has_whole_rows(image, interleaved)):
        image = layout.in_usual_strides(image, interleaved)
    rows_first = order is not None and order(*image.shape[-2:], *out.shape[-2:])
    return native.pil_resize(out, image, interpolation, region, rows_first)


def crops_by_native(out: Tensor, image: Tensor, boxes: Tensor, interpolation: str) -> bool:
    """Resize crops of uint8 images as PIL does, in one native call; return False if that is not possible.

    Return False for a single large image, too, because threads can share a resize.
    """
    order = pil_order()
    if order is None or (image.ndim == 3 and not _threads.is_small(image)):
        return False
    batch = image.shape[:-3]
    rows = boxes.expand(*batch, 4) if boxes.ndim > 1 else boxes
    if rows.dtype != torch.int64:
        return False
    return native.resized_crops(
        out, image, rows.reshape(-1, 4).contiguous().numpy(), interpolation, order is _most_shrunk_first
    )


def packed_by_native(
    out: Tensor,
    data: Tensor,
    sizes: Tensor,
    offsets: Tensor,
    boxes: Tensor | None,
    interpolation: str,
    interleaved: bool,
) -> bool:
    """Resize uint8 images of different sizes, or crops of them, in one native call.

    Return False if that is not possible.
    """
    height, width = out.shape[-2:]
    numbers = windows(sizes, boxes, (height, width))
    steps = window_step(interpolation, height, width)
    return (
        run_windows(out, data, facts_of(sizes, offsets), None, steps, numbers, None, interleaved) is not None
    )


#: The numbers of a window: a box, the height and width after its resize, and the corner of what is kept.
WINDOW_NUMBERS = 8


def window_step(interpolation: str, height: int, width: int, color: int = 0) -> np.ndarray:
    """Return the first step of a program for images of different sizes; its numbers come first."""
    which = list(FILTERS).index(interpolation) | color << 8
    return np.array([[native.STEP_KINDS.index("window"), 0, height, width, which, 0, 0]], np.int64)


def windows(
    sizes: Tensor,
    boxes: Tensor | None,
    targets: Sequence[int] | Tensor | None = None,
    corners: Tensor | None = None,
) -> np.ndarray:
    """Return the numbers of windows.

    The box of each image is by default all of it, its size after the resize that of the box, and the left and
    top of what is kept 0.
    """
    numbers = np.zeros((len(sizes), WINDOW_NUMBERS))
    numbers[:, 2:4] = sizes[:, [1, 0]].numpy()
    if boxes is not None:
        numbers[:, :4] = boxes.numpy()
    numbers[:, 4], numbers[:, 5] = numbers[:, 3] - numbers[:, 1], numbers[:, 2] - numbers[:, 0]
    if targets is not None:
        numbers[:, 4:6] = targets
    if corners is not None:
        numbers[:, 6:] = corners.numpy()
    return numbers


def facts_of(sizes: Tensor, offsets: Tensor) -> np.ndarray:
    """Return where the bytes of each image begin and end, and its height and width."""
    ends = offsets.numpy()
    return np.column_stack([ends[:-1], ends[1:], sizes.numpy()]).astype(np.int64)


def run_windows(
    out: Tensor,
    data: Tensor,
    facts: np.ndarray,
    decoder: Any,
    steps: np.ndarray,
    numbers: np.ndarray,
    tables: Tensor | None,
    interleaved: bool,
) -> np.ndarray | None:
    """Run a program on images of different sizes, by ``native.run_sources``; None if nothing was done."""
    if pil_order() is None:
        return None
    most = int((steps[:, 2] * steps[:, 3]).max())
    floats = None if tables is None else tables.numpy()
    how = shrinks_rows_first(), interleaved
    return native.run_sources(out, data, facts, decoder, steps, most, numbers, floats, *how)


def shrinks_rows_first() -> bool:
    """Return whether PIL resizes the rows first where the height shrinks most."""
    return pil_order() is _most_shrunk_first


def _has_whole_rows(image: Tensor, interleaved: bool) -> bool:
    """Return whether the values of each row are adjacent in memory and rows do not overlap, as in a crop."""
    channels, width, row = image.shape[-3], image.shape[-1], image.stride(-2)
    if width == 1 or image.shape[-2] == 1:  # strides of such sides may be any
        return False
    if not interleaved:
        return image.stride(-1) == 1 and row >= width
    adjacent = image.stride(-3) == 1 and image.stride(-1) == channels and channels > 1
    return adjacent and row >= width * channels


def by_pil(out: Tensor, image: Tensor, region: Any, interpolation: str) -> None:
    """Resize by PIL itself, plane by plane."""
    height, width = out.shape[-2:]
    target = torch.empty(out.shape, dtype=out.dtype, device="cpu")
    sources, targets = layout.planes(image.contiguous()), layout.planes(target)

    def work(start: int, stop: int) -> None:
        for source, plane in zip(sources[start:stop], targets[start:stop], strict=True):
            resized = _pil.view(source).resize((width, height), FILTERS[interpolation], box=region)
            plane[...] = np.asarray(resized)

    _threads.split(len(sources), image.numel(), work)
    out.copy_(target)


def _most_shrunk_first(height: int, width: int, out_height: int, out_width: int) -> bool:
    """Return whether Pillow 13 starts with rows: the height loses over twice as many pixels as the width."""
    return out_height < height and height - out_height > 2 * (width - out_width)


@native.comparison("resize", "Pillow")
def pil_order() -> Order | None:
    """Return the order of PIL's two passes, found by comparing with PIL.

    None means that PIL computes in another way, or that there is no native module.
    """
    orders = (_most_shrunk_first, lambda *_: False) if _same_weights() else ()
    return next((order for order in orders if _same_pixels(order)), None)


#: Sizes on both sides of the rule above, with enough rows and columns for the vector code.
_PROBES = ((40, 40, 19, 30), (40, 40, 20, 30), (33, 50, 70, 20), (60, 21, 31, 36), (35, 40, 17, 12))


def _same_weights() -> bool:
    """Return whether our weights equal PIL's, which it returns when it resizes an identity matrix of mode F.

    Noise of 8 bits rarely reveals different weights.
    """
    impulses = Image.fromarray(np.eye(48, dtype=np.float32))
    for name in FILTERS:
        for out in (17, 61):
            rows, _ = pil_tables(name, (48, 48), (0.0, 0.0, 48.0, 48.0), (out, 48))
            theirs = np.asarray(impulses.resize((48, out), FILTERS[name]))
            if rows is None or not np.array_equal(rows.matrix(48).astype(np.float32), theirs):
                return False
    return True


def _same_pixels(order: Order) -> bool:
    noise = np.random.default_rng(0).integers(0, 256, (60, 50), dtype=np.uint8)
    for name in FILTERS:
        for height, width, out_height, out_width in _PROBES:
            source = np.ascontiguousarray(noise[:height, :width])
            for left, top in ((0.0, 0.0), (1.7, 0.4)):
                region = (left, top, float(width), float(height))
                tables = pil_tables(name, (height, width), region, (out_height, out_width))
                ours = torch.empty((1, out_height, out_width), dtype=torch.uint8, device="cpu")
                if not apply(ours, torch.from_numpy(source)[None], tables, order):
                    return False
                size = (out_width, out_height)
                theirs = _pil.view(source).resize(size, FILTERS[name], box=region)
                if not np.array_equal(ours[0].numpy(), np.asarray(theirs)):
                    return False
    return True


def pil_tables(name: str, source: Any, region: Any, size: Any, *, single: bool = True) -> Tables:
    left, top, right, bottom = region
    rows = _resampling_tables.pil(name, source[0], top, bottom, size[0], single=single)
    return rows, _resampling_tables.pil(name, source[1], left, right, size[1], single=single)
