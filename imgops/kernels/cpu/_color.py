"""One pass of the native colour kernel over the frames of a batch.

The kernel computes what the decomposition says, operation by operation: either gives the same bits on uint8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from imgops import _layout, _torch_private
from imgops.kernels.cpu import _threads

try:
    from imgops.kernels.cpu._native import color as native
    from imgops.kernels.cpu._native import sequence as native_sequence
except ImportError:  # built without a C compiler: ATen runs the decompositions
    native = native_sequence = None

_KIND = {torch.uint8: "B", torch.float32: "f"}
_LEVEL = 2  # all the vector instructions that the native kernel knows, where the machine has them


def knows(image: Tensor) -> bool:
    return native is not None and image.dtype in _KIND


def each(value: Tensor, image: Tensor) -> list[float]:
    """A parameter of one number, for each image of the batch."""
    value = value.detach()
    if value.ndim == 0:
        number = value.item()
        return [number] * (image.shape[:-3].numel() if image.ndim > 3 else 1)
    return value.expand(image.shape[:-3]).reshape(-1).tolist()


def _in_turn(parts: int, image: Tensor, call: Callable[[int], object]) -> None:
    """``call(i)`` for each part of an image, in as many threads as PyTorch would use."""

    def work(start: int, stop: int) -> None:
        for i in range(start, stop):
            call(i)

    _threads.split(parts, image.numel(), work)


def values(name: str, out: Tensor, image: Tensor, amounts: list[float], constants: list[float]) -> None:
    """A function of single values; equal parts of memory have an amount and a constant each."""
    step, kind = image.numel() // max(len(amounts), 1), _KIND[image.dtype]
    source, target, size = image.data_ptr(), out.data_ptr(), step * image.element_size()

    def call(i: int) -> None:
        pointers = target + i * size, source + i * size, 0
        native(name, kind, *pointers, step, 1, 0, amounts[i], constants[i], _LEVEL)

    _in_turn(len(amounts), image, call)


def images(out: Tensor, image: Tensor, other: Tensor, factors: list[float]) -> None:
    """The blend of two images; all three have one memory format."""
    step, kind = image.numel() // max(len(factors), 1), _KIND[image.dtype]
    size = step * image.element_size()

    def call(i: int) -> None:
        pointers = (x.data_ptr() + i * size for x in (out, image, other))
        native("images", kind, *pointers, step, 1, 0, factors[i], 0.0, _LEVEL)

    _in_turn(len(factors), image, call)


def gray(out: Tensor, image: Tensor) -> None:
    """The luma of a planar or interleaved image, in one channel."""
    count, steps = _pixels(image)
    size = count * image.element_size()
    kind, source, target = _KIND[image.dtype], image.data_ptr(), out.data_ptr()

    def call(i: int) -> None:
        native("gray", kind, target + i * size, source + 3 * i * size, 0, count, *steps, 0.0, 0.0, _LEVEL)

    _in_turn(image.shape[:-3].numel(), image, call)


def table(out: Tensor, image: Tensor, tables: np.ndarray, period: int) -> None:
    """Levels through ``(parts, period, 256)`` tables, which take turns in each equal part of memory."""
    tables = np.ascontiguousarray(tables)
    step, source, target = image.numel() // len(tables), image.data_ptr(), out.data_ptr()
    first = tables.ctypes.data

    def call(i: int) -> None:
        pointers = target + i * step, source + i * step, first + i * 256 * period
        native("lut", "B", *pointers, step, 1, period, 0.0, 0.0, _LEVEL)

    _in_turn(len(tables), image, call)


def of_planes(name: str, image: Tensor, size: int, dtype: Any) -> np.ndarray:
    """``size`` numbers about each plane of a planar or interleaved image, in the order of its dimensions."""
    count, (pixel_step, _) = _pixels(image)
    channels, length, kind = image.shape[-3], image.element_size(), _KIND[image.dtype]
    found = np.empty((image.shape[:-2].numel(), size), dtype)
    source, target = image.data_ptr(), found.ctypes.data

    def call(i: int) -> None:
        frame, channel = divmod(i, channels)
        at = frame * channels * count + channel if pixel_step > 1 else i * count
        pointers = target + i * found.strides[0], source + at * length, 0
        native(name, kind, *pointers, count, pixel_step, 0, 0.0, 0.0, _LEVEL)

    _in_turn(len(found), image, call)
    return found


def matrix(out: Tensor, image: Tensor, matrix: Tensor) -> None:
    """Three channels of float32 by ``(..., 3, 3 or 4)``, one for all or one for each image."""
    flat = samples(matrix, image, 2)
    each = np.zeros((len(flat), 3, 4), np.float32)
    each[..., : flat.shape[-1]] = flat
    count, steps = _pixels(image)
    source, target, size = image.data_ptr(), out.data_ptr(), 3 * count * image.element_size()
    first = each.ctypes.data

    def call(i: int) -> None:
        own = first + i % len(each) * each.strides[0]
        native("matrix", "f", target + i * size, source + i * size, own, count, *steps, 0.0, 0.0, _LEVEL)

    _in_turn(image.shape[:-3].numel(), image, call)


def luma_means(image: Tensor) -> list[float]:
    """The mean luma of each float32 image."""
    count, steps = _pixels(image)
    found = np.empty(image.shape[:-3].numel())
    source, target, size = image.data_ptr(), found.ctypes.data, 3 * count * image.element_size()

    def call(i: int) -> None:
        native("mean", "f", target + 8 * i, source + i * size, 0, count, *steps, 0.0, 0.0, _LEVEL)

    _in_turn(len(found), image, call)
    return found.tolist()


def _pixels(image: Tensor) -> tuple[int, tuple[int, int]]:
    """How many pixels each image has, and the steps between pixels and between channels."""
    count = image.shape[-2] * image.shape[-1]
    return count, (image.shape[-3], 1) if _layout.is_interleaved(image) else (1, count)


def together(out: Tensor, image: Tensor, steps: list[tuple[int, float]]) -> None:
    """Steps of a sequence in as few passes as they need; ``image`` has the format of ``out``, or is it."""
    kinds = np.array([kind for kind, _ in steps], dtype=np.int32)
    amounts = np.array([amount for _, amount in steps], dtype=np.float32)
    count, pixel_steps = _pixels(image)
    size = 3 * count * image.element_size()
    kind, source, target = _KIND[image.dtype], image.data_ptr(), out.data_ptr()

    chosen = kinds.ctypes.data, amounts.ctypes.data, len(steps)

    def call(i: int) -> None:
        at = i * size
        native_sequence(kind, target + at, source + at, count, *pixel_steps, *chosen, _LEVEL)

    _in_turn(image.numel() // (3 * count), image, call)


def readable(image: Tensor, out: Any = None) -> Tensor:
    """``image`` in one of the two formats: that of ``out``, where it is given."""
    interleaved = _layout.is_interleaved(image) if out is None else _layout.writes_interleaved(out)
    return _layout.in_format(image.detach(), interleaved)


def computed(out: Tensor, function: Callable[..., Tensor], image: Tensor, *parameters: Any) -> None:
    """The decomposition is the kernel."""
    with _torch_private.afresh(), torch.no_grad():
        out.copy_(function(image.detach(), *parameters))


def samples(value: Tensor, image: Tensor, core: int) -> np.ndarray:
    """A parameter of ``core`` dimensions for each image; one where they share it."""
    value = value.detach()
    lead = value.shape[:-core]
    if lead.numel() != 1:
        value = value.expand(*image.shape[:-3], *value.shape[-core:])
    return value.reshape(-1, *value.shape[-core:]).contiguous().numpy()
