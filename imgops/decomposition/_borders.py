"""Border rules: which pixel stands in for one outside of the image."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def folded(mode: str, i: Tensor, size: int) -> Tensor:
    """The pixel that a border shows at each of the positions ``i``."""
    if mode == "edge":
        return i.clamp(0, size - 1)
    if mode == "wrap":
        return torch.remainder(i, size)
    if mode == "symmetric":
        i = torch.remainder(i, 2 * size)
        return torch.minimum(i, 2 * size - 1 - i)
    period: Any = torch.sym_max(2 * size - 2, 1)
    i = torch.remainder(i, period)
    return torch.minimum(i, period - i)
