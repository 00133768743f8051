"""Matrices of affine maps by angle, translation, scale and shear, as torchvision defines them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.fx.experimental.symbolic_shapes import has_static_value

from imgops._common import check
from imgops._common.torch_private import is_eager
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


def rotation(
    angle: float | Tensor,
    center: Sequence[float] | None,
    size: Sequence[int],
    canvas: Sequence[int] | None = None,
) -> Tensor:
    """Return the matrix of a rotation by a counterclockwise angle onto a canvas with the same middle.

    ``canvas`` is a height and width; None is that of the image.
    """
    height, width = size
    matrix = affine(-angle, (0.0, 0.0), 1.0, (0.0, 0.0), center, height, width)
    if canvas is None:
        return matrix
    shift = check.real("rotate", "shift", ((canvas[1] - width) / 2, (canvas[0] - height) / 2))
    return torch.cat([matrix[..., :2], matrix[..., 2:] + shift[:, None]], -1)
