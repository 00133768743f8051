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


def constant(out: Tensor, image: Tensor, factors: list[float], constants: list[float]) -> None:
    """The blend of a constant with an image: every value alike."""
    step = image[0].numel() if len(factors) == 1 and image.ndim > 3 else image.numel() // max(len(factors), 1)
    size, kind = image.element_size(), _KIND[image.dtype]
    source, target = image.data_ptr(), out.data_ptr()

    def work(start: int, stop: int) -> None:
        for i in range(start, stop):
            at = i * step * size
            native(
                "constant", kind, target + at, source + at, 0, step, 1, 0, factors[i], constants[i], _LEVEL
            )

    _threads.split(len(factors), image.numel(), work)


def images(out: Tensor, image: Tensor, other: Tensor, factors: list[float]) -> None:
    """The blend of two images; all three have one memory format."""
    step, size = image.numel() // max(len(factors), 1), image.element_size()
    kind = _KIND[image.dtype]

    def work(start: int, stop: int) -> None:
        for i in range(start, stop):
            at = i * step * size
            pointers = out.data_ptr() + at, image.data_ptr() + at, other.data_ptr() + at
            native("images", kind, *pointers, step, 1, 0, factors[i], 0.0, _LEVEL)

    _threads.split(len(factors), image.numel(), work)


def gray(out: Tensor, image: Tensor) -> None:
    """The luma of a planar or interleaved image, in one channel."""
    count, steps = _pixels(image)
    size = count * image.element_size()
    kind, source, target = _KIND[image.dtype], image.data_ptr(), out.data_ptr()

    def work(start: int, stop: int) -> None:
        for i in range(start, stop):
            pointers = target + i * size, source + 3 * i * size, 0
            native("gray", kind, *pointers, count, *steps, 0.0, 0.0, _LEVEL)

    _threads.split(image.shape[:-3].numel(), image.numel(), work)


def _pixels(image: Tensor) -> tuple[int, tuple[int, int]]:
    """How many pixels each image has, and the steps between pixels and between channels."""
    count = image.shape[-2] * image.shape[-1]
    return count, (3, 1) if _layout.is_interleaved(image) else (1, count)


def together(out: Tensor, image: Tensor, steps: list[tuple[int, float]]) -> None:
    """Steps of a sequence in as few passes as they need; ``image`` has the format of ``out``, or is it."""
    kinds = np.array([kind for kind, _ in steps], dtype=np.int32)
    amounts = np.array([amount for _, amount in steps], dtype=np.float32)
    count, pixel_steps = _pixels(image)
    size = 3 * count * image.element_size()
    kind, source, target = _KIND[image.dtype], image.data_ptr(), out.data_ptr()

    def work(start: int, stop: int) -> None:
        for i in range(start, stop):
            at = i * size
            pointers = kinds.ctypes.data, amounts.ctypes.data, len(steps)
            native_sequence(kind, target + at, source + at, count, *pixel_steps, *pointers, _LEVEL)

    _threads.split(image.numel() // (3 * count), image.numel(), work)


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
