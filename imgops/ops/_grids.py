"""What the functions that make maps share: the positions of pixels, and checks of their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from imgops import _check, _torch_private
from imgops.kernels import _values


def real(
    op: str, name: str, value: object, check: Callable[[str, str, Tensor], None] = _values.finite
) -> Tensor:
    """Return a parameter as a tensor of real numbers; ``check`` looks at the values that can be read."""
    numbers = _check.real(op, name, value)
    if numbers.dtype == torch.bool or numbers.dtype.is_complex:
        _check.fail(TypeError, op, f"{name} must be real numbers", numbers.dtype)
    if _torch_private.is_readable(numbers):
        check(op, name, numbers)
    return numbers


def fitting(op: str, name: str, batch: Sequence[Any], other_name: str, other: Sequence[Any]) -> None:
    """Check that the leading dimensions of two parameters broadcast."""
    pairs = zip(reversed(batch), reversed(other), strict=False)
    if not all(one == 1 or two == 1 or one == two for one, two in pairs):
        must = f"{name} must have leading dimensions that fit those of {other_name} {_check.numbers(*other)}"
        _check.fail(ValueError, op, must, _check.numbers(*batch))


def map_dtype(op: str, dtype: object) -> None:
    if dtype not in (torch.float32, torch.float64):
        _check.fail(TypeError, op, "dtype must be torch.float32 or torch.float64", dtype)


def displacement(op: str, name: str, value: Tensor) -> None:
    _check.tensor(op, name, value)
    _check.image(op, name, value)
    if value.dtype not in (torch.float32, torch.float64):
        _check.fail(TypeError, op, f"{name} must be float32 or float64", value.dtype)
    if _check.violates(value.shape[-3] == 2):
        _check.fail(ValueError, op, f"{name} must have 2 channels (x, y)", _check.number(value.shape[-3]))


def pixel_grid(height: int, width: int, like: Tensor) -> Tensor:
    """The position of each pixel, (2, height, width)."""
    y, x = (torch.arange(n, dtype=like.dtype, device=like.device) for n in (height, width))
    return torch.stack([x.expand(height, width), y[:, None].expand(height, width)])


def meshed(x: Tensor, y: Tensor, height: int, width: int, dtype: torch.dtype) -> Tensor:
    x, y = torch.broadcast_tensors(x.to(dtype), y.to(dtype))
    return torch.stack([x, y], -3).expand(*x.shape[:-2], 2, height, width)
