"""Memory formats: the strides of an operator's output, and the views that PIL and OpenCV read.

An image ``(..., C, H, W)`` is *planar* when it is contiguous, and *interleaved* when its channels
lie next to each other (``channels_last``, or a permuted HWC array). Both reach PIL and OpenCV
without a copy. A slice has the format of the image that it was cut from. A fake allocates an operator's
output here; the kernel writes into this output or, in a repeated call, into one of the same strides. So fake
and kernel cannot disagree about strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.compiler import is_compiling

#: The integer dtype for each element size: elements of every dtype are moved exactly if their bits are moved.
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
#: The most channels of an interleaved frame that OpenCV takes: CV_CN_MAX of OpenCV 5; 512 before.
MAX_CHANNELS = 128

_NUMPY_HAS = frozenset(
    getattr(torch, name)
    for name in (
        *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16"),
        *("float32", "float64", "complex64", "complex128"),
    )
)


def readable(array: Any) -> Any:
    """Return an array whose memory PyTorch takes: the array itself, or a copy. Other values are returned.

    PyTorch takes no negative strides and no other byte order, and warns of memory that may not be written.
    """
    if not isinstance(array, np.ndarray) or is_compiling():  # in a graph, arrays are tensors
        return array
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.flags.writeable and all(step >= 0 and step % array.itemsize == 0 for step in array.strides):
        return array
    return array.copy()


def is_interleaved(image: Tensor) -> bool:
    """Return whether the channels of an image, or of one that it is a slice of, lie next to each other.

    A tensor that has both memory formats counts as planar, and so does a single channel.
    """
    if image.is_contiguous() or image.shape[-3] == 1:
        return False
    channel, row, column = image.stride()[-3:]
    return 0 < channel < (row if image.shape[-1] == 1 else column)


def is_dense(image: Tensor) -> bool:
    """Return whether ``image`` has one of the two memory formats, without gaps."""
    return image.is_contiguous() or _is_channels_last(image)


def _is_channels_last(image: Tensor) -> bool:
    if image.ndim == 3:  # the usual strides are recognized without making a view
        channels, _, width = image.shape
        if image.stride() == (1, width * channels, channels):
            return True
    return image.movedim(-3, -1).is_contiguous()


def writes_interleaved(out: Tensor) -> bool:
    """Return whether a tensor from ``empty``, which has one of the two formats, is interleaved."""
    return not out.is_contiguous()


def empty(
    like: Tensor,
    height: int,
    width: int,
    *,
    interleaved: bool | None = None,
    channels: int | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    """Allocate an uninitialized image of another size with the dtype, device and format of ``like``."""
    if interleaved is None:
        interleaved = is_interleaved(like)
    size = [*like.shape[:-3], like.shape[-3] if channels is None else channels, height, width]
    if not interleaved:
        return like.new_empty(size, dtype=dtype)
    return like.new_empty_strided(size, interleaved_strides(size), dtype=dtype)


def planar_strides(size: Sequence[int]) -> list[int]:
    """Return the strides of a planar image of a size ``(..., C, H, W)``."""
    stride: list[int] = []
    step = 1
    for extent in reversed(size):
        stride.insert(0, step)
        step *= max(extent, 1)
    return stride


def interleaved_strides(size: Sequence[int]) -> list[int]:
    """Return the strides of an interleaved image of a size ``(..., C, H, W)``."""
    channels, height, width = size[-3:]
    stride = [1, width * channels, channels]
    step = height * width * channels
    for extent in reversed(size[:-3]):
        stride.insert(0, step)
        step = step * extent
    return stride


def in_format(image: Tensor, interleaved: bool) -> Tensor:
    """Return ``image`` itself if it has the format, interleaved or planar, else a copy in this format."""
    if not interleaved:
        return image.contiguous()
    if _is_channels_last(image):
        return image
    return image.movedim(-3, -1).contiguous().movedim(-1, -3)


def in_usual_strides(image: Tensor, interleaved: bool) -> Tensor:
    """Return the image in a memory format, with the usual strides also for dimensions of size 1.

    PyTorch ignores the strides of such dimensions when it decides whether a tensor is contiguous. A copy is
    made only if needed.
    """
    whole = image.movedim(-3, -1).contiguous() if interleaved else image.contiguous()
    whole = whole.as_strided(whole.shape, planar_strides(whole.shape))
    return whole.movedim(-1, -3) if interleaved else whole


def writable(target: Tensor, interleaved: bool | None = None, *, read: bool = True) -> Tensor:
    """Return memory in a format that a kernel can write to: ``target`` if it has the format, or a copy.

    By default either format is accepted, and a copy is planar. ``copy_back`` copies the result back to
    ``target`` at the end, so after an error nothing has been written. ``read`` tells whether the kernel reads
    the previous values; if not, they are not copied.
    """
    if not interleaved and target.is_contiguous():
        return target
    if interleaved is not False and _is_channels_last(target):
        return target
    interleaved = bool(interleaved)
    if read:
        return in_format(target.detach(), interleaved)
    return empty(target, *target.shape[-2:], interleaved=interleaved)


def is_window(image: Tensor, interleaved: bool) -> bool:
    """Return whether an image has the strides of a window of a larger image in a memory format."""
    if image.ndim != 3:
        return False
    channels, _, width = image.shape
    each, row, pixel = image.stride()
    if interleaved:
        return each == 1 and pixel == channels and row >= width * channels
    return pixel == 1 and row >= width


def copy_back(target: Tensor, written: Tensor) -> None:
    if written is not target:
        target.detach().copy_(written)


def bits(image: Tensor) -> Tensor:
    """Return a view of ``image`` as integers of the same element size (no copy)."""
    return image.view(_BITS[image.element_size()])


def array(image: Tensor) -> np.ndarray:
    """Return a NumPy view of a CPU tensor, with the same memory and the same strides.

    A dtype that NumPy does not have is viewed as integers of the same element size.
    """
    if image.requires_grad:
        image = image.detach()
    if image.dtype in _NUMPY_HAS:
        return image.numpy()
    return bits(image).numpy()


def planes(image: Tensor) -> np.ndarray:
    """Return a planar image as a view of shape ``(planes, H, W)``."""
    view = array(image)
    if view.ndim == 3:
        return view
    return view.reshape(prod(view.shape[:-2]), *view.shape[-2:])


def frames(image: Tensor) -> np.ndarray:
    """Return an interleaved image as a view of shape ``(frames, H, W, C)``."""
    view = array(image)
    if view.ndim == 3:
        return view.transpose(1, 2, 0)[None]
    view = np.moveaxis(view, -3, -1)
    return view.reshape(prod(view.shape[:-3]), *view.shape[-3:])
