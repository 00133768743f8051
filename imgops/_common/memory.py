"""The memory of large outputs, which later outputs use again."""

from __future__ import annotations

import os
from importlib import import_module
from math import prod
from typing import Any

import torch
from torch import Tensor

try:
    _memory: Any = import_module("imgops._common._memory")
except ImportError:  # built without a C compiler, or for Windows
    _memory = None

#: The smallest output in bytes that takes memory of the pool; smaller ones are cheap to allocate.
LEAST = 1 << 20

if _memory is not None and "IMGOPS_MEMORY_POOL" in os.environ:
    _memory.set_limit(int(os.environ["IMGOPS_MEMORY_POOL"]))


def empty_strided(size: tuple[int, ...], stride: tuple[int, ...], *, dtype: torch.dtype) -> Tensor:
    """Return a dense tensor on the CPU, of any values, as ``torch.empty_strided`` does.

    Its memory goes back to a pool when the last tensor that views it ends. The storage cannot be resized.
    """
    count = prod(size)
    nbytes = count * dtype.itemsize
    if nbytes < LEAST or _memory is None or torch.are_deterministic_algorithms_enabled():
        return torch.empty_strided(size, stride, dtype=dtype, device="cpu")  # which determinism fills
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
