"""Checks of parameter values: the functions that operators name as ``values``.

A parameter on the CPU is read before any kernel runs, whatever the device of the image; a parameter on an
accelerator is never read here; kernels clamp it instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from imgops._common import check, torch_private
from imgops._operator.record import Function


def _finite_fill(op: str, fill: Tensor, dtype: torch.dtype) -> None:
    """Check that a fill for integers is finite, because OpenCV has no integer for other values."""
    if fill.dtype.is_floating_point and not (
        dtype.is_floating_point or dtype.is_complex or dtype == torch.bool
    ):
        for value in fill.detach().flatten().tolist():
            if not math.isfinite(value):
                check.fail(ValueError, op, f"fill must be finite for {dtype}", value)


def _finite_bits(bits: Tensor) -> None:
    if bits.dtype.is_floating_point:
        for value in _numbers_of(bits):
            if not math.isfinite(value):
                check.fail(ValueError, "posterize", "bits must be finite", value)


def _numbers_of(value: Tensor | float) -> Sequence[float]:
    if isinstance(value, (int, float)):
        return (value,)
    return (value.item(),) if value.ndim == 0 else value.detach().flatten().tolist()


# The checks compare numbers, because functions like math.isfinite do not take a graph's symbolic ones.


def no_nan(op: str, name: str, value: Tensor | float) -> None:
    for number in _numbers_of(value):
        if number != number:
            check.fail(ValueError, op, f"{name} must be a number", number)


def finite(op: str, name: str, value: Tensor | float) -> None:
    for number in _numbers_of(value):
        if not -math.inf < number < math.inf:
            check.fail(ValueError, op, f"{name} must be finite", number)


def not_negative(op: str, name: str, value: Tensor | float) -> None:
    for number in _numbers_of(value):
        if not number >= 0:
            check.fail(ValueError, op, f"{name} must not be negative", number)


def finite_not_negative(op: str, name: str, value: Tensor | float) -> None:
    not_negative(op, name, value)
    finite(op, name, value)


def finite_positive(op: str, name: str, value: Tensor | float) -> None:
    positive(op, name, value)
    finite(op, name, value)


def parameter(op: str, name: str, value: Any, require: Callable[[str, str, Any], None] = finite) -> Tensor:
    """Return a parameter as a tensor of real numbers, for functions that are made of operators.

    ``require`` validates its values if they can be read; a number can be read everywhere.
    """
    numbers = check.real(op, name, value)
    if numbers.dtype == torch.bool or numbers.dtype.is_complex:
        check.fail(TypeError, op, f"{name} must be real numbers", numbers.dtype)
    if isinstance(value, (int, float)):
        require(op, name, value)
    elif torch_private.is_readable(numbers):
        require(op, name, numbers)
    return numbers


def radius(op: str, name: str, value: Tensor) -> None:
    """Check that a radius is neither negative nor more than 2**20.

    A larger radius exceeds every image, and PIL cannot count it.
    """
    not_negative(op, name, value)
    for number in _numbers_of(value):
        if number > 2**20:
            check.fail(ValueError, op, f"{name} must be at most {2**20}", number)


def levels(op: str, name: str, value: Tensor) -> None:
    """Check that values are numbers of magnitude at most 2**20, which PIL can count."""
    no_nan(op, name, value)
    for number in _numbers_of(value):
        if not abs(number) <= 2**20:
            check.fail(ValueError, op, f"{name} must be at most {2**20} either way", number)


def positive(op: str, name: str, value: Tensor | float) -> None:
    for number in _numbers_of(value):
        if not number > 0:
            check.fail(ValueError, op, f"{name} must be positive", number)


def unit(op: str, name: str, value: Tensor) -> None:
    for number in _numbers_of(value):
        if not 0 <= number <= 1:
            check.fail(ValueError, op, f"{name} must be in [0, 1]", number)


def share(op: str, name: str, value: Tensor) -> None:
    for number in _numbers_of(value):
        if not 0 < number <= 1:
            check.fail(ValueError, op, f"{name} must be in (0, 1]", number)


def _on_host(value: Tensor | None) -> bool:
    return value is not None and value.device.type == "cpu"


def numbers(op: str, images: int = 1, **checks: Callable[[str, str, Tensor], None]) -> Function:
    """Return a check of all parameters; ``checks`` has their checks in the order of the arguments."""

    def validate(*args: Any) -> None:
        for (name, one), value in zip(checks.items(), args[images:], strict=False):
            if value is not None and value.is_cpu:
                one(op, name, value)

    return validate


def element(op: str) -> Function:
    """Return a check that a structuring element has a value that is not 0."""

    def validate(image: Tensor, kernel: Tensor, padding_mode: str) -> None:
        if not _on_host(kernel):
            return
        array = (kernel.detach() != 0).numpy()
        empty = not array.any() if array.ndim == 2 else not array.any((-2, -1)).all()
        if empty:
            check.fail(ValueError, op, "kernel must have a value that is not 0", "zeros")

    return validate


def region(op: str) -> Function:
    """Return a check that boxes lie inside the image that is read or, for an adjoint, that is made."""

    def validate(image: Tensor, box: Tensor | None, height: int, width: int, *rest: Any) -> None:
        if _on_host(box):
            size = (height, width) if op == "resize_adjoint" else image.shape[-2:]
            for each in box.detach().reshape(-1, 4).tolist():  # type: ignore[union-attr]
                check.region(op, each, *size)

    return validate


def boxes(op: str) -> Function:
    """Return a check that boxes of whole pixels lie inside the image, as ``region`` does."""

    def validate(image: Tensor, boxes: Tensor, height: int, width: int, *rest: Any) -> None:
        if _on_host(boxes):
            size = (height, width) if op == "resized_crop_adjoint" else image.shape[-2:]
            check.boxes(op, boxes.reshape(-1, 4).tolist(), *size)

    return validate


def fill(op: str, at: int) -> Function:
    """Return a check that integers can hold a fill; ``at`` is its place after the image."""

    def validate(image: Tensor, *args: Any) -> None:
        value, mode = args[at], args[-1]
        if value is not None and value.is_cpu and (mode == "constant" or op != "pad"):
            _finite_fill(op, value, image.dtype)

    return validate


def sigma(image: Tensor, sigma: Tensor, *rest: Any) -> None:
    if _on_host(sigma):
        for pair in sigma.detach().reshape(-1, 2).tolist():
            if any(map(math.isnan, pair)):
                check.fail(ValueError, "gaussian_blur", "sigma must not be NaN", tuple(pair))


def bits(image: Tensor, bits: Tensor) -> None:
    if _on_host(bits):
        _finite_bits(bits)
