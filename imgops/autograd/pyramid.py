"""Gradients of the pyramids: each operator is linear, and its backward is the registered adjoint."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from imgops._operator.record import calls as ops


def _save_nothing(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    pass


pyr_up_setup_context = pyr_up_adjoint_setup_context = _save_nothing


def pyr_down_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.size = inputs[0].shape[-2:]


def pyr_down_backward(ctx: Any, grad: Tensor) -> tuple[Tensor]:
    return (ops.pyr_down_adjoint(grad, *ctx.size),)


def pyr_down_jvp(ctx: Any, tangent: Tensor) -> Tensor:
    return ops.pyr_down(tangent)


def pyr_down_adjoint_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.size = output.shape[-2:]


def pyr_down_adjoint_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return ops.pyr_down(grad), None, None


def pyr_down_adjoint_jvp(ctx: Any, tangent: Tensor, *sizes: Any) -> Tensor:
    return ops.pyr_down_adjoint(tangent, *ctx.size)


def pyr_up_backward(ctx: Any, grad: Tensor) -> tuple[Tensor]:
    return (ops.pyr_up_adjoint(grad),)


def pyr_up_jvp(ctx: Any, tangent: Tensor) -> Tensor:
    return ops.pyr_up(tangent)


def pyr_up_adjoint_backward(ctx: Any, grad: Tensor) -> tuple[Tensor]:
    return (ops.pyr_up(grad),)


def pyr_up_adjoint_jvp(ctx: Any, tangent: Tensor) -> Tensor:
    return ops.pyr_up_adjoint(tangent)
