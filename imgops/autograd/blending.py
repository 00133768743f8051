"""Gradients of the blending operators: each image is multiplied by its weight."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.autograd._sums import product, saved, scaled, where_positive
from imgops.decomposition._precision import summed, working_dtype


def alpha_composite_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    dtype = working_dtype(grad)
    (given, of_alpha), (under, a), (upper, b) = (
        x.to(dtype).split((3, 1), -3) for x in (grad, *ctx.saved_tensors)
    )
    rest = a * (1 - b)
    alpha = b + rest
    scale = where_positive(1 / torch.ops.aten.threshold(alpha, 0, 1), alpha)
    shared = given * scale
    # The colors are a mean of the two: both shares change them by the difference, in opposite directions.
    towards = (shared * (upper - under)).sum(-3, keepdim=True) * scale
    of_rest = of_alpha - towards * b
    of_under = shared * rest + torch.where(
        alpha > 0, 0, given
    )  # where nothing is shown, the lower colors stay
    of_b = of_alpha + towards * rest - a * of_rest
    of_image, of_other = ctx.needs_input_grad[:2]
    return (
        torch.cat([of_under, of_rest * (1 - b)], -3).to(grad.dtype) if of_image else None,
        torch.cat([shared * b, of_b], -3).to(grad.dtype) if of_other else None,
    )


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
