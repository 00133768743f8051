"""Gradients of the linear color operators, which are transposed matrices, and of the brightness."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops._operator.record import calls as ops
from imgops.autograd._sums import number, product, saved, unclamped
from imgops.decomposition._precision import summed, working_dtype
from imgops.decomposition.color_space import LUMA


def grayscale_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.channels = inputs[0].shape[-3]


def grayscale_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return from_gray(grad, ctx.channels), None


def from_gray(grad: Tensor, channels: int) -> Tensor:
    """Return the gradient of an image from that of its gray, which may be in several channels."""
    total = grad.to(working_dtype(grad))
    if total.shape[-3] > 1:
        total = total.sum(-3, keepdim=True)
    if channels > 1:
        weights = torch.tensor(LUMA, dtype=total.dtype, device="cpu")
        total = total * weights.to(total.device, non_blocking=True)[:, None, None]
    return total.to(grad.dtype)


def color_matrix_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    image, matrix = inputs
    ctx.channels = image.shape[-3]
    ctx.save_for_backward(matrix, *saved(image, needed=ctx.needs_input_grad[1]))


def color_matrix_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    matrix, image = ctx.saved_tensors
    of_image = of_matrix = None
    if ctx.needs_input_grad[0]:
        of_image = ops.color_matrix(grad, matrix[..., : ctx.channels].mT)
    if ctx.needs_input_grad[1]:
        dtype = working_dtype(grad)
        values, rows = (x.to(dtype).reshape(*x.shape[:-2], x.shape[-2:].numel()) for x in (image, grad))
        of_matrix = rows @ values.mT
        if matrix.shape[-1] > ctx.channels:  # the last column is added
            of_matrix = torch.cat([of_matrix, rows.sum(-1, keepdim=True)], -1)
        of_matrix = summed(of_matrix, matrix)
    return of_image, of_matrix


def adjust_brightness_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    image, factor = ctx.saved_tensors
    x, f = image.to(working_dtype(image)), number(factor, image)
    own = unclamped(grad, x * f)
    of_image = (own * f).to(image.dtype) if ctx.needs_input_grad[0] else None
    return of_image, product(own, x, factor) if ctx.needs_input_grad[1] else None
