"""torchvision's geometry as forward matrices for OpenCV, where pixel centers have integer coordinates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def affine(
    angle: float | Tensor,
    translate: Sequence[float | Tensor],
    scale: float | Tensor,
    shear: Sequence[float | Tensor],
    center: Sequence[float] | None,
    height: int,
    width: int,
) -> Tensor:
    """Return the matrix ``(2, 3)`` of an affine map, or ``(..., 2, 3)`` if a parameter is a tensor.

    The angle and the shears are in degrees, the translation in pixels; the scale is a factor.
    """
    values = (angle, *translate, scale, *shear)
    tensors = any(isinstance(v, Tensor) for v in values)
    m: Any = torch if tensors else math
    if tensors:
        values = tuple(
            torch.as_tensor(v, dtype=torch.float64, device=None if isinstance(v, Tensor) else "cpu")
            for v in values
        )
    degrees, move_x, move_y, factor, shear_x, shear_y = values
    turn, sx, sy = (v * (math.pi / 180) for v in (degrees, shear_x, shear_y))
    a = m.cos(turn - sy) / m.cos(sy) * factor
    b = (-m.cos(turn - sy) * m.tan(sx) / m.cos(sy) - m.sin(turn)) * factor
    c = m.sin(turn - sy) / m.cos(sy) * factor
    d = (-m.sin(turn - sy) * m.tan(sx) / m.cos(sy) + m.cos(turn)) * factor
    x, y = (width - 1) / 2, (height - 1) / 2
    if center is not None:
        x, y = center[0] - 0.5, center[1] - 0.5
    rows = ((a, b, x - a * x - b * y + move_x), (c, d, y - c * x - d * y + move_y))
    if not tensors:
        return torch.tensor(rows, dtype=torch.float64, device="cpu")
    whole = torch.broadcast_tensors(*rows[0], *rows[1])  # it may be that only the shift is per sample
    return torch.stack(whole, -1).unflatten(-1, (2, 3))


def shift_matrix(matrix: Tensor, x: float, y: float) -> Tensor:
    """Return a ``(..., 2, 3)`` matrix followed by a shift in pixels."""
    return torch.cat([matrix[..., :2], matrix[..., 2:] + shift(x, y)[:, None]], -1)


def shift(x: float, y: float) -> Tensor:
    return torch.stack([torch.full((), v, dtype=torch.float64, device="cpu") for v in (x, y)])


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
            raise ValueError(
                "The startpoints/endpoints and the coefficients shouldn't be defined concurrently."
            )
        if len(coefficients) != 8:
            raise ValueError("Argument coefficients should have 8 float values")
        return _forward(list(coefficients))
    if startpoints is None or endpoints is None:
        raise ValueError("Either the startpoints/endpoints or the coefficients must have non `None` values.")
    return _forward(_through_corners(endpoints, startpoints).unbind(-1))


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
    """Return the forward matrix of torchvision's 8 inverse coefficients, whose pixels begin at integers."""
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
    (a, b, c), (d, e, f), (g, h, i) = rows
    rows = ((a / size, b / size, c / size), (d / size, e / size, f / size), (g / size, h / size, i / size))
    return torch.tensor(rows, dtype=torch.float64, device="cpu")


def _through_corners(start: Any, end: Any) -> Tensor:
    """Return the first 8 numbers of the matrix, whose last is 1, that maps four points to four others."""
    start, end = (torch.as_tensor(p, dtype=torch.float64, device="cpu") for p in (start, end))
    start, end = torch.broadcast_tensors(start, end)
    x, y = start.unbind(-1)
    u, v = end.unbind(-1)
    one, zero = torch.ones_like(x), torch.zeros_like(x)
    rows_u = torch.stack([x, y, one, zero, zero, zero, -u * x, -u * y], -1)
    rows_v = torch.stack([zero, zero, zero, x, y, one, -v * x, -v * y], -1)
    system, wanted = torch.cat([rows_u, rows_v], -2), torch.cat([u, v], -1)
    return torch.linalg.solve(system, wanted.unsqueeze(-1)).squeeze(-1)
