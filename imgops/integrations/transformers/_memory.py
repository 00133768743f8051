"""Memory in which the results of a call lie in the order in which they are made, so that joining is free."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from imgops import _torch_private

#: How much more than the images of a call a lane may reserve, because models cut images into tiles. What is
#: never written takes no memory.
_RESERVE = 2**28
#: From how many bytes on a batch is worth it: smaller ones lie in memory that the process has already.
_LARGE = 2**23


class _Lane:
    """Memory for float results of one kind; the next begins where the last one that is still used ends."""

    def __init__(self, capacity: int) -> None:
        self._memory = np.empty(capacity, np.float32)
        #: What was taken, each with the end of all that was taken until then. A tensor holds its array.
        self._taken: list[tuple[weakref.ref[np.ndarray], int]] = []

    def take(self, shape: Sequence[int]) -> Tensor | None:
        """Return a new tensor; None if the lane is too short."""
        while self._taken and self._taken[-1][0]() is None:
            self._taken.pop()
        start = self._taken[-1][1] if self._taken else 0
        end = start + prod(shape)
        return None if end > len(self._memory) else self._between(start, end).view(tuple(shape))

    def _between(self, start: int, end: int) -> Tensor:
        part = self._memory[start:end]
        before = self._taken[-1][1] if self._taken else 0
        self._taken.append((weakref.ref(part), max(before, end)))
        return torch.from_numpy(part)

    def joined(self, tensors: Sequence[Tensor], size: int) -> Tensor | None:
        """Return the ``size`` values of tensors; None if they do not lie here one after the other."""
        at = tensors[0].data_ptr()
        start = (at - self._memory.ctypes.data) // 4
        if not 0 <= start < len(self._memory):
            return None
        for tensor in tensors:
            if not is_plain(tensor) or tensor.data_ptr() != at or not tensor.is_contiguous():
                return None
            at += tensor.numel() * 4
        return self._between(start, start + size)


class JoinedMemory(TorchFunctionMode):
    """Let ``torch.stack`` and ``torch.cat`` of the floats that a call makes on the CPU copy nothing.

    They are most of what a processor takes after its images were resized. The joined tensor has memory of
    just its size, which it shares with its parts.
    """

    def __init__(self, images: int) -> None:
        super().__init__()
        self._images = images
        self._lanes: dict[str, _Lane] = {}
        self._active = ExitStack()

    def take(self, kind: str, shape: Sequence[int]) -> Tensor | None:
        """Return memory for a float result, after the last one of its kind; None for ordinary memory.

        A mode costs each function some microseconds, so this one begins with the first large result.
        """
        lane = self._lanes.get(kind)
        if lane is None:
            wanted = prod(shape) * self._images
            if not self._lanes:
                if wanted * 4 < _LARGE or not _torch_private.can_bypass_dispatcher():
                    return None
                self._active.enter_context(self)
            try:
                lane = self._lanes[kind] = _Lane(wanted + min(15 * wanted, _RESERVE // 4))
            except MemoryError:  # the reserve is too much for this process
                return None
        return lane.take(shape)

    def close(self) -> None:
        """End the mode."""
        self._active.close()

    def _joined(self, tensors: Any, dim: int, is_new: bool) -> Tensor | None:
        """Return what ``torch.stack`` (a new dimension) or ``torch.cat`` would, if nothing need be copied."""
        if dim != 0 or not isinstance(tensors, (list, tuple)) or not tensors:
            return None
        first = tensors[0].shape
        same = all(t.shape[(not is_new) :] == first[(not is_new) :] for t in tensors)
        if not same or tensors[0].numel() == 0:
            return None
        shape = (len(tensors), *first) if is_new else (sum(len(t) for t in tensors), *first[1:])
        for lane in self._lanes.values():
            found = lane.joined(tensors, prod(shape))
            if found is not None:
                return found.view(shape)
        return None

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.stack or func is torch.cat:
            found = self._joined(*_arguments(*args, **kwargs), func is torch.stack)
            if found is not None:
                return found
        elif func is torch.nn.functional.pad:
            found = self._padded(*args, **kwargs)
            if found is not None:
                return found
        elif func is torch.Tensor.reshape and not kwargs and is_plain(args[0]):
            return self._reshaped(args[0], args[1:])
        return func(*args, **kwargs)

    def _padded(
        self, input: Tensor, pad: Sequence[int], mode: str = "constant", value: Any = None
    ) -> Tensor | None:
        """Return what ``torch.nn.functional.pad`` would, in memory of the call; None if it shall pad."""
        if not is_plain(input) or mode != "constant" or len(pad) != 4 or min(pad) < 0:
            return None
        if not any(pad):
            return input
        left, right, top, bottom = pad
        height, width = input.shape[-2:]
        out = self.take("pad", (*input.shape[:-2], top + height + bottom, left + width + right))
        if out is None:
            return None
        value = 0 if value is None else value
        out[..., :top, :] = value
        out[..., top + height :, :] = value
        out[..., top : top + height, :left] = value
        out[..., top : top + height, left + width :] = value
        out[..., top : top + height, left : left + width] = input
        return out

    def _reshaped(self, tensor: Tensor, shape: Any) -> Tensor:
        """Reshape into memory of the call, if it takes a copy."""
        try:
            return tensor.view(*shape)
        except RuntimeError:
            out = self.take("reshape", tensor.shape)
            return tensor.reshape(*shape) if out is None else out.copy_(tensor).view(*shape)


def _arguments(tensors: Any, dim: int = 0, **others: Any) -> tuple[Any, int]:
    return tensors, -1 if others else dim


def is_plain(tensor: Tensor) -> bool:
    """Return whether a tensor is one whose results may lie in a lane."""
    return tensor.dtype == torch.float32 and tensor.device.type == "cpu" and not tensor.requires_grad


_current: ContextVar[JoinedMemory | None] = ContextVar("_current", default=None)


def current() -> JoinedMemory | None:
    """Return the memory of the call that runs, if it has one."""
    return _current.get()


@contextmanager
def of_a_call(images: Any) -> Iterator[None]:
    """Give a call on an image or a list of images memory, unless it is a part of a call that has some."""
    if (
        _current.get() is not None
        or _torch_private.in_compiled_region()
        or not _torch_private.can_bypass_dispatcher()
    ):
        yield
        return
    memory = JoinedMemory(max(len(images), 1) if isinstance(images, (list, tuple)) else 1)
    before = _current.set(memory)
    try:
        yield
    finally:
        memory.close()
        _current.reset(before)
