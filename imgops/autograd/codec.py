"""Gradients of jpeg and webp: straight through, because the true gradients are 0 almost everywhere."""

from __future__ import annotations

from typing import Any

from torch import Tensor


def jpeg_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    pass


def jpeg_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return grad, None


def jpeg_jvp(ctx: Any, tangent: Tensor | None, quality: Tensor | None) -> Tensor | None:
    return tangent


webp_setup_context = jpeg_setup_context


def webp_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return grad, None


def webp_jvp(ctx: Any, tangent: Tensor | None, quality: Tensor | None) -> Tensor | None:
    return tangent
