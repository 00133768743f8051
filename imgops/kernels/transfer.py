"""The transfer of parameters to a device: one asynchronous copy from pinned memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

#: The alignment in bytes that a load of any dtype may need.
_ALIGNED = 16


def move_arguments(device: torch.device, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return ``args`` with every tensor on ``device``."""
    at = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.device != device]
    if not at or device.type == "cpu":
        return tuple(args)
    moved = dict(zip(at, move_together(device, [args[i] for i in at]), strict=True))
    return tuple(moved.get(i, a) for i, a in enumerate(args))


def move_together(device: torch.device, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Copy CPU tensors to ``device`` in one buffer, and return the copies as contiguous tensors."""
    pinned = device.type == "cuda"
    if pinned and torch.cuda.is_current_stream_capturing():
        must = "parameters must be on the device of the image while a CUDA graph is captured"
        raise RuntimeError(f"imgops: {must}, got parameters on the CPU")
    starts, end = [], 0
    for x in tensors:
        starts.append(end)
        end += -(-x.numel() * x.element_size() // _ALIGNED) * _ALIGNED
    buffer = torch.empty(end, dtype=torch.uint8, pin_memory=pinned)
    for part, x in zip(_parts(buffer, tensors, starts), tensors, strict=True):
        part.copy_(x.detach())
    # The caching host allocator keeps the pinned buffer until the copy has been read.
    return _parts(buffer.to(device, non_blocking=pinned), tensors, starts)


def _parts(buffer: Tensor, like: Sequence[Tensor], starts: Sequence[int]) -> list[Tensor]:
    parts = []
    for start, x in zip(starts, like, strict=True):
        part = buffer[start : start + x.numel() * x.element_size()]
        parts.append(part.view(x.dtype).reshape(x.shape))
    return parts
