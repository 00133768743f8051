"""Applying two tables to an image: the native kernel where it was built, ATen's matrices where not.

The native kernel repeats PIL's integer arithmetic, so it serves uint8 only as long as the installed
PIL computes that way: it is compared with PIL once, before its first use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from imgops import _layout
from imgops.kernels.cpu import _tables, _threads

try:
    from imgops.kernels.cpu._native import resample as native
except ImportError:  # built without a C compiler: PIL and ATen do the work, with the same pixels
    native = None

FILTERS = {
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "hamming": Image.Resampling.HAMMING,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}
_KIND = {torch.uint8: "B", torch.float32: "f", torch.float64: "d"}

Tables = tuple[_tables.Table | None, _tables.Table | None]  # rows, columns; None is the identity
#: (height, width, out_height, out_width) -> whether the vertical pass comes first
Order = Callable[[int, int, int, int], bool]


_NO_TABLE = (0, 0, 0, 0, 0)
_LEVEL = 2  # all the vector instructions that the native kernel knows, where the machine has them


def apply(out: Tensor, image: Tensor, tables: Tables, order: Order | None = None) -> bool:
    """Multiply by a table along each axis; False where the native kernel cannot.

    On uint8 each pass rounds to 8 bits, in the given order; elsewhere the order is free.
    """
    if tables == (None, None):
        out.copy_(image)
        return True
    if native is None:
        if image.dtype == torch.uint8:
            return False
        _multiply(out, image, tables)
        return True
    interleaved = _layout.writes_interleaved(out)
    image = _layout.in_format(image, interleaved)
    channels = out.shape[-3] if interleaved else 1
    height, width = image.shape[-2:]
    planes = image.numel() // (height * width * channels)
    step_in, step_out = image.nbytes // planes, out.nbytes // planes
    rows_first = order is not None and order(height, width, *out.shape[-2:])
    pointers = [_NO_TABLE if table is None else table.pointers for table in tables]
    done = True

    def work(start: int, stop: int) -> None:
        nonlocal done
        if not native(
            _KIND[out.dtype],
            out.data_ptr() + start * step_out,
            image.data_ptr() + start * step_in,
            stop - start,
            height,
            width,
            channels,
            *pointers,
            rows_first,
            _LEVEL,
        ):
            done = False

    _threads.split(planes, image.numel(), work)
    if not done and out.dtype != torch.uint8:  # no memory for its buffers: ATen's word is final
        _multiply(out, image, tables)
        return True
    return done


def _multiply(out: Tensor, image: Tensor, tables: Tables) -> None:
    """The same products by ATen, as dense matrices."""
    result = image
    for axis, table in zip((-2, -1), tables, strict=True):
        if table is not None:
            matrix = torch.from_numpy(table.matrix(image.shape[axis])).to(image.dtype)
            result = matrix @ result if axis == -2 else result @ matrix.T
    out.copy_(result)


def by_pil(out: Tensor, image: Tensor, region: Any, interpolation: str) -> None:
    """PIL itself, plane by plane."""
    height, width = out.shape[-2:]
    target = torch.empty(out.shape, dtype=out.dtype)
    sources, targets = _layout.planes(image.contiguous()), _layout.planes(target)

    def work(start: int, stop: int) -> None:
        for source, plane in zip(sources[start:stop], targets[start:stop], strict=True):
            resized = pil_view(source).resize((width, height), FILTERS[interpolation], box=region)
            plane[...] = np.asarray(resized)

    _threads.split(len(sources), image.numel(), work)
    out.copy_(target)


def pil_view(plane: np.ndarray) -> Image.Image:
    """A contiguous plane as a PIL image: uint8 over the same memory, float32 copied by PIL."""
    if plane.dtype != np.uint8:
        return Image.fromarray(plane)
    height, width = plane.shape
    return Image.frombuffer("L", (width, height), plane, "raw", "L", 0, 1)


def _columns_first(height: int, width: int, out_height: int, out_width: int) -> bool:
    return False


def _most_shrunk_first(height: int, width: int, out_height: int, out_width: int) -> bool:
    """Pillow 13: rows first when the height loses more than twice as many pixels as the width."""
    return out_height < height and height - out_height > 2 * (width - out_width)


@cache
def pil_order() -> Order | None:
    """The order of PIL's two passes, found by comparing with PIL; None: PIL computes in another way."""
    if native is None:
        return None
    return next((o for o in (_most_shrunk_first, _columns_first) if _agrees(o)), None)


#: Sizes on both sides of the rule above, with enough rows and columns for the vector code.
_PROBES = ((40, 40, 19, 30), (40, 40, 20, 30), (33, 50, 70, 20), (60, 21, 31, 36), (35, 40, 17, 12))


def _agrees(order: Order) -> bool:
    noise = np.random.default_rng(0).integers(0, 256, (60, 50), dtype=np.uint8)
    for name in FILTERS:
        for height, width, out_height, out_width in _PROBES:
            source = np.ascontiguousarray(noise[:height, :width])
            for left, top in ((0.0, 0.0), (1.7, 0.4)):
                region = (left, top, float(width), float(height))
                tables = pil_tables(name, (height, width), region, (out_height, out_width))
                ours = torch.empty((1, out_height, out_width), dtype=torch.uint8)
                if not apply(ours, torch.from_numpy(source)[None], tables, order):
                    return False
                size = (out_width, out_height)
                theirs = pil_view(source).resize(size, FILTERS[name], box=region)
                if not np.array_equal(ours[0].numpy(), np.asarray(theirs)):
                    return False
    return True


def pil_tables(name: str, source: Any, region: Any, size: Any, *, single: bool = True) -> Tables:
    left, top, right, bottom = region
    rows = _tables.pil(name, source[0], top, bottom, size[0], single=single)
    return rows, _tables.pil(name, source[1], left, right, size[1], single=single)
