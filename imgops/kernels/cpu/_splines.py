"""Thin-plate splines on the CPU, where no gradient is needed."""

from __future__ import annotations

import torch
from torch import Tensor

#: Numbers computed at a time: few enough for memory, and enough that threads seldom wait for each other.
_PART = 1 << 21


def row_by_row(
    solved: Tensor, target: Tensor, height: int, width: int, scale: float, dtype: torch.dtype
) -> Tensor:
    """Return the map of a solved spline, computed some rows at a time: pairs of pixels and points are many.

    There are no gradients, so intermediate results can be overwritten.
    """
    count = target.shape[-2]
    rows = max(1, _PART // (count * width))
    y, x = (torch.arange(n, dtype=torch.float64, device="cpu") / scale for n in (height, width))
    out = torch.empty((*target.shape[:-2], 2, height, width), dtype=dtype, device="cpu")
    each = solved.reshape(-1, count + 3, 2), target.reshape(-1, count, 2), out.view(-1, 2, height, width)
    for factors, centers, part in zip(*each, strict=True):
        weights, (start, by_x, by_y) = factors[:count].mT / 2, factors[count:, :, None]
        across, down = ((v - centers[:, i, None]).square_() for i, v in enumerate((x, y)))
        from_x, from_y = start + by_x * x, by_y * y
        for top in range(0, height, rows):
            bottom = min(top + rows, height)
            square = down[:, top:bottom, None] + across[:, None]
            # At a control point the squared distance is 0, and 0 times any finite logarithm is 0.
            bending = square.clamp_min(1e-300).log_().mul_(square)
            bent = (weights @ bending.flatten(1)).unflatten(1, (-1, width))
            part[:, top:bottom] = bent.add_(from_x[:, None]).add_(from_y[:, top:bottom, None])
    return out
