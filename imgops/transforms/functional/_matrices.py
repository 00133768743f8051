"""torchvision's geometry as forward matrices for OpenCV, where pixel centers have integer coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from imgops._common import check
from imgops._common.torch_private import is_eager, raise_error
from imgops.ops._matrices import affine as affine
from imgops.ops._matrices import expanded_size as expanded_size
from imgops.ops._matrices import rotation as rotation
from imgops.ops._matrices import size_after_rotation as size_after_rotation


def displacement_map(displacement: Tensor, height: int, width: int) -> Tensor:
    """Return the map ``(..., 2, H, W)`` of displacements ``(..., H, W, 2)``, whose unit is half the image."""
    options: dict[str, Any] = {"dtype": displacement.dtype, "device": displacement.device}
    x = torch.arange(width, **options) + displacement[..., 0] * (width / 2)
    y = torch.arange(height, **options)[:, None] + displacement[..., 1] * (height / 2)
    return torch.stack([x, y], -3)


def perspective(
    startpoints: Sequence[Sequence[int]] | Tensor | None,
    endpoints: Sequence[Sequence[int]] | Tensor | None,
    coefficients: Sequence[float] | None = None,
) -> Tensor:
    """Return the matrix, ``(3, 3)`` or ``(..., 3, 3)``, that moves corners ``(..., 4, 2)`` to endpoints."""
    if coefficients is not None:
        if startpoints is not None and endpoints is not None:
            must = "perspective: coefficients must be None if startpoints and endpoints are given"
            raise_error(ValueError, f"{must}, got {len(coefficients)}")
        numbers = check.real("perspective", "coefficients", coefficients).to(torch.float64)
        if numbers.shape[-1:] != (8,):
            must = "perspective: coefficients must be 8 numbers, or those of each sample"
            raise_error(ValueError, f"{must}, got shape {check.written(numbers.shape)}")
        if is_eager() and not (isinstance(coefficients, Tensor) or numbers.requires_grad):
            return _forward(list(coefficients))  # faster with Python's numbers
        return _forward(numbers.unbind(-1))
    if startpoints is None or endpoints is None:
        must = "perspective: startpoints and endpoints must be given, or coefficients"
        raise_error(ValueError, f"{must}, got None")
    start, end = (
        _points(name, points) for name, points in (("startpoints", startpoints), ("endpoints", endpoints))
    )
    # The first 8 numbers of the matrix, whose last is 1, that maps the end points to the start points.
    end, start = torch.broadcast_tensors(end, start)
    x, y = end.unbind(-1)
    u, v = start.unbind(-1)
    one, zero = torch.ones_like(x), torch.zeros_like(x)
    rows_u = torch.stack([x, y, one, zero, zero, zero, -u * x, -u * y], -1)
    rows_v = torch.stack([zero, zero, zero, x, y, one, -v * x, -v * y], -1)
    system, wanted = torch.cat([rows_u, rows_v], -2), torch.cat([u, v], -1)
    solved, info = torch.linalg.solve_ex(system, wanted.unsqueeze(-1))
    return _forward(torch.where(info[..., None] == 0, solved.squeeze(-1), torch.nan).unbind(-1))


def _points(name: str, points: Sequence[Sequence[int]] | Tensor) -> Tensor:
    corners = check.real("perspective", name, points).to("cpu", torch.float64)
    if corners.shape[-2:] != (4, 2):
        must = f"perspective: {name} must be 4 points (x, y), or those of each sample"
        raise_error(ValueError, f"{must}, got shape {check.written(corners.shape)}")
    return corners


def of_coefficients(numbers: Sequence[float] | Tensor) -> Tensor:
    """Return the matrix for numbers ``(..., 9)``: whether to warp at all, and torchvision's 8 coefficients.

    The coefficients are those of the inverse.
    """
    if not isinstance(numbers, Tensor):
        return _forward(numbers[1:])
    moves = numbers[..., :1] > 0
    identity = torch.tensor([1.0, 0, 0, 0, 1, 0, 0, 0], dtype=torch.float64, device="cpu")
    return _forward(torch.where(moves, numbers[..., 1:], identity).unbind(-1))


def _forward(back: Sequence[Any]) -> Tensor:
    """Return the forward matrix of torchvision's 8 inverse coefficients, with pixel edges at integers."""
    a, b, c, d, e, f, g, h = back
    i = 1.0
    # Go from the centers of pixels to their corners, apply the inverse, and go back to centers.
    c, f, i = c + (a + b) / 2, f + (d + e) / 2, i + (g + h) / 2
    a, b, c = a - g / 2, b - h / 2, c - i / 2
    d, e, f = d - g / 2, e - h / 2, f - i / 2
    # Invert the 3 x 3 matrix by its cofactors.
    rows = (
        (e * i - f * h, c * h - b * i, b * f - c * e),
        (f * g - d * i, a * i - c * g, c * d - a * f),
        (d * h - e * g, b * g - a * h, a * e - b * d),
    )
    size = a * rows[0][0] + b * rows[1][0] + c * rows[2][0]
    if isinstance(size, Tensor):
        return torch.stack([value / size for row in rows for value in row], -1).unflatten(-1, (3, 3))
    size = size or math.nan  # without an inverse, as for a tensor, so that the warp shows the border
    (a, b, c), (d, e, f), (g, h, i) = rows
    rows = ((a / size, b / size, c / size), (d / size, e / size, f / size), (g / size, h / size, i / size))
    return torch.tensor(rows, dtype=torch.float64, device="cpu")
