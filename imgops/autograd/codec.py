"""The gradient of jpeg: straight through, for its true one is 0 almost everywhere."""

from __future__ import annotations

from typing import Any

from torch import Tensor


def jpeg_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    pass


def jpeg_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return grad, None


def jpeg_jvp(ctx: Any, tangent: Tensor | None, quality: Tensor | None) -> Tensor | None:
    return tangent
