"""The memory of large outputs, which later outputs use again."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

try:
    _memory: Any = import_module("imgops._common._memory")
except ImportError:  # built without a C compiler, or for Windows
    _memory = None

#: The smallest output in bytes whose next one takes memory of the pool; smaller ones are cheap to allocate.
LEAST = 1 << 20


def _limit() -> int | None:
    """Return the limit that the environment sets, None without one."""
    text = os.environ.get("IMGOPS_MEMORY_POOL", "").strip()
    if text and not (text.isascii() and text.isdigit()):
        raise ValueError(f"imgops: IMGOPS_MEMORY_POOL must be a number of bytes, got {text!r}")
    return min(int(text), sys.maxsize) if text else None


limit = _limit()
if limit == 0:  # the C library's own memory is faster than blocks that are never kept
    _memory = None
elif limit and _memory is not None:
    _memory.set_limit(limit)


def release() -> None:
    """Give the memory that waits for its next use back to the system."""
    if _memory is not None:
        limit = _memory.statistics()[2]
        _memory.set_limit(0)
        _memory.set_limit(limit)


if hasattr(os, "register_at_fork"):  # the child would keep a copy of memory that nothing uses
    os.register_at_fork(before=release)


def empty_strided(size: tuple[int, ...], stride: tuple[int, ...], *, dtype: torch.dtype) -> Tensor:
    """Return a tensor on the CPU, of any values, as ``torch.empty_strided`` does.

    From ``LEAST`` bytes on its memory goes back to a pool when the last tensor that views it ends, and the
    storage cannot be resized.
    """
    if _memory is None or 0 in size or torch.are_deterministic_algorithms_enabled():
        return torch.empty_strided(size, stride, dtype=dtype, device="cpu")  # which determinism fills
    count = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    nbytes = count * dtype.itemsize
    if nbytes < LEAST:
        return torch.empty_strided(size, stride, dtype=dtype, device="cpu")
    try:
        flat = torch.frombuffer(_memory.allocate(nbytes), dtype=dtype, count=count)
    except MemoryError:  # PyTorch's error says how much it wanted
        return torch.empty_strided(size, stride, dtype=dtype, device="cpu")
    # a view of ``flat`` would be a view for autograd, too
    return torch.empty(0, dtype=dtype, device="cpu").set_(flat.untyped_storage(), 0, size, stride)  # type: ignore[arg-type]


def statistics() -> dict[str, int]:
    """Return the bytes of the pool that are in use, those that wait for their next use, and their limit."""
    used, kept, limit = (0, 0, 0) if _memory is None else _memory.statistics()
    return {"in use": used, "kept": kept, "limit": limit}
