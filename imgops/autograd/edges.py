"""Gradients of the derivatives, whose kernels are symmetric, but for their sign."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from imgops._operator.record import calls as ops
from imgops.autograd._adjoints import folded
from imgops.decomposition.edges import SCHARR, taps


def sobel_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.dx, ctx.dy, ctx.kernel_size, ctx.padding_mode = inputs


def sobel_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    dx, dy, size = ctx.dx, ctx.dy, ctx.kernel_size

    def turned(wide: Tensor) -> Tensor:
        return (-1) ** (dx + dy) * ops.sobel(wide, dx, dy, size, "constant")  # type: ignore[no-any-return]

    extent = len(taps(dy, size)), len(taps(dx, size))
    return folded(grad, *extent, ctx.padding_mode, turned), None, None, None, None


def scharr_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.dx, ctx.dy, ctx.padding_mode = inputs


def scharr_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    def turned(wide: Tensor) -> Tensor:
        return -ops.scharr(wide, ctx.dx, ctx.dy, "constant")  # type: ignore[no-any-return]

    size = len(SCHARR[0])
    return folded(grad, size, size, ctx.padding_mode, turned), None, None, None


def laplacian_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.kernel_size, ctx.padding_mode = inputs


def laplacian_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    def same(wide: Tensor) -> Tensor:
        return ops.laplacian(wide, ctx.kernel_size, "constant")  # type: ignore[no-any-return]

    size = max(ctx.kernel_size, 3)
    return folded(grad, size, size, ctx.padding_mode, same), None, None
