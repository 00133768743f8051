"""Checks of values of parameters, which are read.

A parameter on the CPU is read before any kernel runs, whatever the device of the image. A parameter on an
accelerator is never read here; kernels clamp it instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from imgops._common import check, torch_private

#: ``check(op, name, value)`` raises if a parameter has an invalid value.
Check = Callable[[str, str, Any], None]


def _numbers_of(value: Tensor | float) -> Sequence[float]:
    if isinstance(value, (int, float)):
        return (value,)
    return (value.item(),) if value.ndim == 0 else value.detach().flatten().tolist()


def _all(*rules: tuple[str, Callable[[float], bool]]) -> Check:
    """Return a check that all numbers of a parameter obey rules, each with its text for an error."""

    def require(op: str, name: str, value: Tensor | float) -> None:
        numbers = _numbers_of(value)
        for must, holds in rules:
            for number in numbers:
                if not holds(number):
                    check.fail(ValueError, op, f"{name} must {must}", number)

    return require


# The rules compare numbers, because functions such as math.isfinite do not take a graph's symbolic numbers.
_A_NUMBER = "be a number", lambda n: n == n
_FINITE = "be finite", lambda n: -math.inf < n < math.inf
_NOT_NEGATIVE = "not be negative", lambda n: n >= 0
_POSITIVE = "be positive", lambda n: n > 0
#: PIL cannot count larger numbers, and a larger radius exceeds every image.
_MOST = 2**20

no_nan, finite = _all(_A_NUMBER), _all(_FINITE)
not_negative, positive = _all(_NOT_NEGATIVE), _all(_POSITIVE)
finite_not_negative, finite_positive = _all(_NOT_NEGATIVE, _FINITE), _all(_POSITIVE, _FINITE)
above_1 = _all(_FINITE, ("be more than 1 with log=True", lambda n: n > 1))
unit = _all(("be in [0, 1]", lambda n: 0 <= n <= 1))
share = _all(("be in (0, 1]", lambda n: 0 < n <= 1))
radius = _all(_NOT_NEGATIVE, (f"be at most {_MOST}", lambda n: n <= _MOST))
levels = _all(_A_NUMBER, (f"be at most {_MOST} either way", lambda n: abs(n) <= _MOST))
quality = _all(
    ("be a whole number from 1 to 100, or 0 for none", lambda n: 0 <= n <= 100 and n == int(n)),
)


def sigmas(op: str, name: str, value: Tensor) -> None:
    """Check that pairs of numbers have no NaN."""
    for pair in value.detach().reshape(-1, 2).tolist():
        if any(map(math.isnan, pair)):
            check.fail(ValueError, op, f"{name} must not be NaN", tuple(pair))


def element(op: str, name: str, value: Tensor) -> None:
    """Check that each structuring element has a value that is not 0."""
    array = (value.detach() != 0).numpy()
    if not (array.any() if array.ndim == 2 else array.any((-2, -1)).all()):
        check.fail(ValueError, op, f"{name} must have a value that is not 0", "zeros")


def parameter(op: str, name: str, value: Any, require: Check = finite) -> Tensor:
    """Return a parameter as a tensor of real numbers, for functions that are made of operators.

    ``require`` checks its values if they can be read; a number can be read everywhere.
    """
    numbers = check.real(op, name, value)
    if numbers.dtype == torch.bool or numbers.dtype.is_complex:
        check.fail(TypeError, op, f"{name} must be real numbers", numbers.dtype)
    if isinstance(value, (int, float)):
        require(op, name, value)
    elif torch_private.is_readable(numbers):
        require(op, name, numbers)
    return numbers


def per_sample(op: str, name: str, value: Any, image: Tensor, require: Check = finite) -> Tensor:
    """Return a parameter that is a number, or one for each image, as ``parameter`` does."""
    numbers = check.of_one_image(parameter(op, name, value, require), image)
    check.per_sample_parameter(op, name, numbers, image)
    return numbers


# The functions below return checks of all arguments of an operator, for its facet ``values``.


def by_name(op: str, names: Sequence[str], checks: Mapping[str, Check]) -> Callable[..., None]:
    """Return a function that checks each parameter by the check of its name."""
    placed = [(names.index(name), name, require) for name, require in checks.items()]

    def validate(*args: Any) -> None:
        for i, name, require in placed:
            value = args[i]
            if value is not None and value.is_cpu:
                require(op, name, value)

    return validate


def regions(op: str, require: Callable[[str, Any, int, int], None]) -> Callable[..., None]:
    """Return a check of boxes in the image that is read or, for an adjoint, in the image that is made."""

    def validate(image: Tensor, box: Tensor | None, height: int, width: int, *others: Any) -> None:
        if box is not None and box.is_cpu:
            size = (height, width) if op.endswith("adjoint") else image.shape[-2:]
            for one in box.detach().reshape(-1, 4).tolist():
                require(op, one, *size)

    return validate


def region(op: str, box: Sequence[float], height: int, width: int) -> None:
    """Check a box of real numbers by PIL's rules; a box with a NaN breaks them."""
    left, top, right, bottom = box
    if not (0 <= left <= right <= width and 0 <= top <= bottom <= height):
        must = f"box must satisfy 0 <= left <= right <= {width} and 0 <= top <= bottom <= {height}"
        check.fail(ValueError, op, must, tuple(float(v) for v in box))


def pixel_box(op: str, box: Sequence[int], height: int, width: int) -> None:
    """Check that a box of whole pixels has at least one pixel and lies inside the image."""
    left, top, right, bottom = box
    if not (0 <= left < right <= width and 0 <= top < bottom <= height):
        must = f"box must satisfy 0 <= left < right <= {width} and 0 <= top < bottom <= {height}"
        check.fail(ValueError, op, must, (left, top, right, bottom))


def crop_boxes(image: Tensor, box: Tensor, height: int, width: int) -> None:
    """Check that boxes have the size of the results, and coordinates that PIL can count."""
    if box.is_cpu:
        for one in box.detach().reshape(-1, 4).tolist():
            left, top, right, bottom = one
            _coordinates("crop", "box", one)
            if right - left != width or bottom - top != height:
                must = f"box must span the size ({height}, {width}) of every crop of the call"
                check.fail(ValueError, "crop", must, tuple(one))


def paste_positions(image: Tensor, source: Tensor, mask: Tensor | None, position: Tensor) -> None:
    if position.is_cpu:
        for one in position.detach().reshape(-1, 2).tolist():
            _coordinates("paste", "position", one)


def _coordinates(op: str, name: str, numbers: Sequence[int]) -> None:
    if not all(map(check.is_int32, numbers)):
        check.fail(ValueError, op, f"{name} must have 32-bit coordinates", tuple(numbers))


def paddings(
    image: Tensor, fill: Tensor | None, padding: Tensor, height: int, width: int, padding_mode: str
) -> None:
    """Check a fill, and that borders are not negative and give the size of the results."""
    _fill_of_pad(image, fill, padding_mode)
    if not padding.is_cpu:
        return
    for one in padding.detach().reshape(-1, 4).tolist():
        left, top, right, bottom = one
        if min(one) < 0:
            check.fail(ValueError, "pad", "padding must not be negative", tuple(one))
        if left + image.shape[-1] + right != width or top + image.shape[-2] + bottom != height:
            must = f"padding must give the size ({height}, {width}) of every result of the call"
            check.fail(ValueError, "pad", must, tuple(one))


def fill(op: str, at: int) -> Callable[..., None]:
    """Return a check that integers can hold a fill; ``at`` is its place after the image."""

    def validate(image: Tensor, *args: Any) -> None:
        value, mode = args[at], args[-1]
        is_seen = mode == "constant" or op != "pad"
        if value is not None and value.is_cpu and value.is_floating_point() and is_seen:
            kind = image.dtype
            if not (kind.is_floating_point or kind.is_complex or kind == torch.bool):
                # OpenCV has no integer for other values.
                _all((f"be finite for {kind}", _FINITE[1]))(op, "fill", value)

    return validate


_fill_of_pad = fill("pad", 0)
