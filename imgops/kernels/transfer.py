"""The transfer of parameters and constants to a device: one asynchronous copy for all of them.

A CUDA graph does not run a copy while it captures it: each replay copies the current contents of the host
memory. So parameters, whose values differ from call to call, are refused during a capture. Constants may be
copied: tables, and tensors that are made of the caller's Python numbers, which a capture fixes as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

from imgops._common import check, torch_private

#: The alignment in bytes that a load of any dtype may need.
_ALIGNED = 16
#: The host memory from which captured graphs copy constants at each replay. It is kept as long as the process
#: lives, because it is not known when the last of these graphs is deleted.
_read_by_graphs: list[Tensor] = []


def move_arguments(device: torch.device, args: Sequence[Any]) -> tuple[Any, ...]:
    """Return ``args`` with every tensor on ``device``."""
    at = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.device != device]
    if not at or device.type == "cpu":
        return tuple(args)
    moved = dict(zip(at, move_together(device, [args[i] for i in at]), strict=True))
    return tuple(moved.get(i, a) for i, a in enumerate(args))


def is_capturing(device: torch.device) -> bool:
    """Return whether the current stream of a device, which need not be the current device, is captured."""
    if device.type != "cuda":
        return False
    with torch.cuda.device(device):
        return torch.cuda.is_current_stream_capturing()


def copy_to(device: torch.device, tensors: list[Tensor]) -> list[Tensor]:
    """Copy tensors to a device without waiting; outside of a compiled graph, copy from pinned memory."""
    if is_compiling() or device.type != "cuda":
        return [x.to(device, non_blocking=device.type == "cuda") for x in tensors]
    return move_together(device, tensors)


def move_together(device: torch.device, tensors: Sequence[Tensor]) -> list[Tensor]:
    """Copy CPU tensors to ``device`` in one buffer, and return the copies as contiguous tensors."""
    if is_capturing(device):
        if all(map(check.is_constant, tensors)):
            return move_constant(device, tensors)[0]
        must = "parameters must be on the device of the image while a CUDA graph is captured"
        raise RuntimeError(f"imgops: {must}, got parameters on the CPU")
    pinned = device.type == "cuda"
    buffer, starts = _packed(tensors, pinned)
    # The caching host allocator keeps the pinned buffer until the copy has been read.
    return _parts(buffer.to(device, non_blocking=pinned), tensors, starts)


def move_constant(device: torch.device, tensors: Sequence[Tensor]) -> tuple[list[Tensor], bool]:
    """Copy CPU tensors whose values never change, such as tables, to ``device`` in one buffer.

    Return the copies, and whether they hold their values from now on, for every stream: the call waits for
    the copy. While the current stream is captured they do not: only replays of the graph fill them, so the
    caller must not keep them for other calls. (Kept tensors that are read during a capture must live as
    long as the graph.)
    """
    buffer, starts = _packed(tensors, pinned=device.type == "cuda")
    if is_capturing(device):
        _read_by_graphs.append(buffer)
        return _parts(buffer.to(device, non_blocking=True), tensors, starts), False
    made = make_lasting(device, lambda: buffer.to(device))
    return _parts(made, tensors, starts), True


def make_lasting(device: torch.device, make: Callable[[], Any]) -> Any:
    """Return what ``make`` returns: tensors on ``device`` that are kept from call to call.

    ``torch.compile``'s CUDA graphs do not let memory be kept that their thread allocates while they warm up.
    If there may be such graphs, another thread allocates it, on the current stream of this one.
    """
    if device.type != "cuda" or not torch_private.has_cuda_graph_trees():
        return make()
    stream = torch.cuda.current_stream(device)

    def on_stream() -> Any:
        with torch.cuda.stream(stream):
            return make()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(on_stream).result()


def _packed(tensors: Sequence[Tensor], pinned: bool) -> tuple[Tensor, list[int]]:
    """Copy tensors into one host buffer; return it, and where each tensor starts."""
    starts, end = [], 0
    for x in tensors:
        starts.append(end)
        end += -(-x.numel() * x.element_size() // _ALIGNED) * _ALIGNED
    buffer = torch.empty(end, dtype=torch.uint8, pin_memory=pinned, device="cpu")
    for part, x in zip(_parts(buffer, tensors, starts), tensors, strict=True):
        part.copy_(x.detach())
    return buffer, starts


def _parts(buffer: Tensor, like: Sequence[Tensor], starts: Sequence[int]) -> list[Tensor]:
    parts = []
    for start, x in zip(starts, like, strict=True):
        part = buffer[start : start + x.numel() * x.element_size()]
        parts.append(part.view(x.dtype).reshape(x.shape))
    return parts
