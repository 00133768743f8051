"""Host fallback for accelerators: copy to the host, run the CPU kernel, copy back.

A whole batch takes one copy each way, on CUDA through pinned memory, so that the copy runs at the
speed of the bus. Devices without pinned memory (mps, xpu) use ordinary memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

#: Tests change it, so that tensors on the CPU are copied too.
_HOST = "cpu"


def round_trip(kernel: Callable[..., None]) -> Callable[..., None]:
    """Make a kernel that fills a tensor on any device from a CPU kernel ``kernel(out, *args)``."""

    def run(out: Tensor, *args: Any) -> None:
        host_args = _all_to_host(args, out.device)
        host_out = _host_like(out, out.is_cuda)
        kernel(host_out, *host_args)
        # The caching host allocator keeps the pinned buffer until the copy has been read.
        out.copy_(host_out, non_blocking=out.is_cuda)

    return run


def round_trip_writing(kernel: Callable[..., None], written: Sequence[int]) -> Callable[..., None]:
    """Make a kernel for any device from a CPU kernel ``kernel(*args)`` that writes to some arguments."""

    def run(*args: Any) -> None:
        host_args = _all_to_host(args, args[written[0]].device)
        kernel(*host_args)
        for i in written:
            if host_args[i] is not args[i]:
                args[i].copy_(host_args[i], non_blocking=args[i].is_cuda)

    return run


def round_trip_returning(kernel: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Make a kernel from a CPU kernel that returns its result, on the device of its first argument."""

    def run(*args: Any) -> Tensor:
        device = args[0].device
        return kernel(*_all_to_host(args, device)).to(device)

    return run


def _all_to_host(args: Sequence[Any], device: torch.device) -> list[Any]:
    pinned = device.type == "cuda"
    moved = [_to_host(a, pinned) if isinstance(a, Tensor) else a for a in args]
    if pinned:
        # The copies above were queued on this stream; the kernel reads what they wrote.
        torch.cuda.current_stream(device).synchronize()
    return moved


def _to_host(x: Tensor, pinned: bool) -> Tensor:
    if x.device.type == _HOST:
        return x
    if 0 in x.stride():
        # An expanded tensor is copied without its repetitions, and expanded again on the host.
        return _expand_again(x, pinned)
    return _host_like(x, pinned).copy_(x.detach(), non_blocking=pinned)


def _expand_again(x: Tensor, pinned: bool) -> Tensor:
    once = x[tuple(slice(0, 1) if s == 0 else slice(None) for s in x.stride())]
    return _host_like(once, pinned).copy_(once.detach(), non_blocking=pinned).expand(x.shape)


def _host_like(x: Tensor, pinned: bool) -> Tensor:
    """Allocate an uninitialized CPU tensor with the memory format of ``x``."""
    return torch.empty_like(x, device="cpu", pin_memory=pinned)
