"""Gradients of blend and add_weighted: each image is multiplied by its weight."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from imgops.autograd._sums import product, saved, scaled
from imgops.decomposition._precision import summed


def blend_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    image, other, alpha = inputs
    ctx.save_for_backward(alpha, *saved(image, other, needed=ctx.needs_input_grad[2]))


def blend_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    alpha, image, other = ctx.saved_tensors
    of_image, of_other, of_alpha = ctx.needs_input_grad[:3]
    return (
        scaled(grad, 1 - alpha) if of_image else None,
        scaled(grad, alpha) if of_other else None,
        product(grad, other - image, alpha) if of_alpha else None,
    )


def add_weighted_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    image, other, alpha, beta, gamma = inputs
    needs = ctx.needs_input_grad
    ctx.save_for_backward(
        *(alpha, beta, gamma), *saved(image, needed=needs[2]), *saved(other, needed=needs[3])
    )


def add_weighted_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    alpha, beta, gamma, image, other = ctx.saved_tensors
    of_image, of_other, of_alpha, of_beta, of_gamma = ctx.needs_input_grad[:5]
    return (
        scaled(grad, alpha) if of_image else None,
        scaled(grad, beta) if of_other else None,
        product(grad, image, alpha) if of_alpha else None,
        product(grad, other, beta) if of_beta else None,
        summed(grad.sum((-3, -2, -1)), gamma) if of_gamma else None,
    )
