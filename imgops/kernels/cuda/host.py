"""The honest first form on an accelerator: to the host, the CPU kernel, and back.

One copy each way for a whole batch; on CUDA through pinned memory, so that the copy runs at the
speed of the bus. Devices without pinned memory (mps, xpu) take the same way with ordinary memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_HOST = "cpu"


def round_trip(kernel: Callable[..., None]) -> Callable[..., None]:
    """A kernel for tensors of any device, made of one for the CPU."""

    def run(out: Tensor, *args: Any) -> None:
        pinned = out.is_cuda
        host_args = [_to_host(a, pinned) if isinstance(a, Tensor) else a for a in args]
        if pinned:
            # The copies above were queued on this stream; the kernel reads what they wrote.
            torch.cuda.current_stream(out.device).synchronize()
        host_out = _host_like(out, pinned)
        kernel(host_out, *host_args)
        # The caching host allocator keeps the pinned buffer until the copy has been read.
        out.copy_(host_out, non_blocking=pinned)

    return run


def _to_host(x: Tensor, pinned: bool) -> Tensor:
    if x.device.type == _HOST:
        return x
    if 0 in x.stride():
        # An expanded tensor is sent once, and expanded again on the host.
        return _expand_again(x, pinned)
    return _host_like(x, pinned).copy_(x.detach(), non_blocking=pinned)


def _expand_again(x: Tensor, pinned: bool) -> Tensor:
    once = x[tuple(slice(0, 1) if s == 0 else slice(None) for s in x.stride())]
    return _host_like(once, pinned).copy_(once.detach(), non_blocking=pinned).expand(x.shape)


def _host_like(x: Tensor, pinned: bool) -> Tensor:
    """An uninitialised CPU tensor with the memory format of ``x``."""
    return torch.empty_like(x, device="cpu", pin_memory=pinned)
