"""Decompositions of the pyramids, axis by axis; an adjoint uses the transpose of the same matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from imgops.decomposition._borders import correlate_along, fold_positions
from imgops.decomposition._precision import LEVELS, finish, of_sums, working_dtype


def pyr_down(image: Tensor) -> Tensor:
    return _scale(_down(_down(image.to(working_dtype(image)), -1), -2), 256, image)


def pyr_up(image: Tensor) -> Tensor:
    return _scale(_up(_up(image.to(working_dtype(image)), -1), -2), 64, image)


def pyr_down_adjoint(image: Tensor, height: int, width: int) -> Tensor:
    return _transpose(_down, image, height, width, 256)


def pyr_up_adjoint(image: Tensor) -> Tensor:
    return _transpose(_up, image, image.shape[-2] // 2, image.shape[-1] // 2, 64)


def _down(x: Tensor, dim: int) -> Tensor:
    smooth = correlate_along(x, (1.0, 4.0, 6.0, 4.0, 1.0), dim, "reflect")
    return smooth[..., ::2] if dim == -1 else smooth[..., ::2, :]


def _up(x: Tensor, dim: int) -> Tensor:
    size = x.shape[dim]
    at = torch.arange(size, device=x.device, dtype=torch.int64)
    before = x.index_select(dim, fold_positions("reflect", at - 1, size))
    after = x.index_select(dim, fold_positions("edge", at + 1, size))
    return torch.stack([before + 6 * x + after, 4 * (x + after)], x.ndim + dim + 1).flatten(dim - 1, dim)


def _scale(total: Tensor, scale: int, image: Tensor) -> Tensor:
    if image.dtype in LEVELS:
        return finish(((total + scale / 2) / scale).floor(), image)
    return finish(total / scale, image)


def _transpose(
    along: Callable[[Tensor, int], Tensor], image: Tensor, height: Any, width: Any, scale: int
) -> Tensor:
    x = image.to(of_sums(working_dtype(image), image.device))
    across, down = (along(torch.eye(size, dtype=x.dtype, device=x.device), -1) for size in (width, height))
    return finish(down @ (x @ across.mT) / scale, image)
