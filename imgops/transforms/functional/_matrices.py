"""torchvision's geometry as forward matrices for OpenCV, where pixel centers have integer coordinates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.fx.experimental.symbolic_shapes import has_static_value

from imgops._common import check
from imgops._common.torch_private import is_eager, raise_error
from imgops._operator.declare import operator


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
    values: tuple[Any, ...] = (angle, *translate, scale, *shear)
    middle = ((width - 1) / 2, (height - 1) / 2) if center is None else (center[0] - 0.5, center[1] - 0.5)
    if any(isinstance(v, Tensor) for v in (*values, *middle)):
        return _stack_rows(_affine_rows(torch, map(_double, values), *map(_double, middle)))
    if is_eager():
        return torch.tensor(_affine_rows(math, values, *middle), dtype=torch.float64, device="cpu")
    return _affine_of_numbers(check.numbers_tensor((*values, *middle)))


def _double(value: float | Tensor) -> Tensor:
    return value.to(torch.float64) if isinstance(value, Tensor) else check.numbers_tensor(value)


def _affine_rows(m: Any, values: Iterable[Any], x: Any, y: Any) -> tuple[tuple[Any, ...], ...]:
    """Return the two rows of the matrix, with the functions of ``m`` for numbers or for tensors."""
    degrees, move_x, move_y, factor, shear_x, shear_y = values
    turn, sx, sy = (v * (math.pi / 180) for v in (degrees, shear_x, shear_y))
    a = m.cos(turn - sy) / m.cos(sy) * factor
    b = (-m.cos(turn - sy) * m.tan(sx) / m.cos(sy) - m.sin(turn)) * factor
    c = m.sin(turn - sy) / m.cos(sy) * factor
    d = (-m.sin(turn - sy) * m.tan(sx) / m.cos(sy) + m.cos(turn)) * factor
    return (a, b, x - a * x - b * y + move_x), (c, d, y - c * x - d * y + move_y)


def _stack_rows(rows: Sequence[Sequence[Tensor]]) -> Tensor:
    whole = torch.broadcast_tensors(*rows[0], *rows[1])  # possibly only the shift differs between samples
    return torch.stack(whole, -1).unflatten(-1, (2, 3))


def _affine_kernel(out: Tensor, numbers: Tensor) -> None:
    *values, x, y = numbers.tolist()
    out.copy_(torch.tensor(_affine_rows(math, values, x, y), dtype=torch.float64, device="cpu"))


def _affine_formula(numbers: Tensor) -> Tensor:
    *values, x, y = numbers.unbind()
    return _stack_rows(_affine_rows(torch, values, x, y))


@operator(
    "imgops_transforms::affine_matrix",
    kernel=_affine_kernel,
    fake=lambda numbers: numbers.new_empty(2, 3),
    decomposition=_affine_formula,
)
def _affine_of_numbers(numbers: Tensor) -> Tensor:
    """Return the matrix of 8 numbers, with the arithmetic of eager mode."""


def size_after_rotation(
    angle: float, center: Sequence[float] | None, height: int, width: int
) -> tuple[int, int]:
    """Return the height and width of an image that is rotated and expanded to show the whole image.

    These are PIL's, with its rounding and its order of operations. In torchvision, tensors are up to two
    pixels smaller if less than 1e-4 of a pixel extends beyond them.
    """
    if center is None and angle % 90 == 0:
        return (height, width) if angle % 180 == 0 else (width, height)
    turn = -math.radians(angle % 360)
    cos, sin = round(math.cos(turn), 15), round(math.sin(turn), 15)
    x, y = (width / 2, height / 2) if center is None else center
    move_x, move_y = cos * -x + sin * -y + x, -sin * -x + cos * -y + y
    corners = ((0, 0), (width, 0), (width, height), (0, height))
    columns = [cos * a + sin * b + move_x for a, b in corners]
    rows = [-sin * a + cos * b + move_y for a, b in corners]
    high, wide = (math.ceil(max(values)) - math.floor(min(values)) for values in (rows, columns))
    return high, wide


def _size_kernel(out: Tensor, numbers: Tensor, height: int, width: int) -> None:
    angle, *center = numbers.tolist()
    size = size_after_rotation(angle, center or None, height, width)
    out.copy_(torch.tensor(size, dtype=torch.int64, device="cpu"))


@operator(
    "imgops_transforms::size_after_rotation",
    kernel=_size_kernel,
    fake=lambda numbers, height, width: numbers.new_empty(2, dtype=torch.int64),
)
def _size_of_numbers(numbers: Tensor, height: int, width: int) -> Tensor:
    """Return the height and width after a rotation by an angle, perhaps about a center."""


def expanded_size(
    angle: float | Tensor, center: Sequence[float] | None, height: int, width: int
) -> Sequence[int]:
    """Compute :func:`size_after_rotation` for numbers that a compiler may not know."""
    if isinstance(center, Tensor):
        center = center.unbind()  # type: ignore[assignment]
    numbers = (angle, *(center or ()))
    # The numbers of a graph may be symbolic, and no guard may depend on them.
    is_known = not is_compiling() or all(
        not isinstance(value, Tensor) and has_static_value(value) for value in numbers
    )
    if is_known:
        middle = None if center is None else tuple(map(float, center))
        return size_after_rotation(float(angle), middle, height, width)
    values = check.real("rotate", "angle and center", [_double(value).reshape(()) for value in numbers])
    return _size_of_numbers(values.detach(), height, width).tolist()


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
    return _forward(torch.linalg.solve(system, wanted.unsqueeze(-1)).squeeze(-1).unbind(-1))


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
    (a, b, c), (d, e, f), (g, h, i) = rows
    rows = ((a / size, b / size, c / size), (d / size, e / size, f / size), (g / size, h / size, i / size))
    return torch.tensor(rows, dtype=torch.float64, device="cpu")
