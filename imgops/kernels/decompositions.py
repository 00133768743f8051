"""Decompositions as kernels: ATen computes an operator that has no other kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from imgops._common import torch_private


def run_decomposition(out: Tensor, function: Callable[..., Tensor], *args: Any) -> None:
    """Run a decomposition as a kernel that fills ``out``."""
    with torch_private.default_dispatch_state(), torch.no_grad():
        out.copy_(function(*detach_all(args)))


def detach_all(args: Iterable[Any]) -> list[Any]:
    return [a.detach() if isinstance(a, Tensor) else a for a in args]
