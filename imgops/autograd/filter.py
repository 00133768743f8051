"""Gradients of filter2d, for the image and the kernel, and of the sharpness."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import conv2d
from torch.nn.functional import pad as constant_pad

from imgops._common import torch_private
from imgops._operator.record import calls as ops
from imgops.autograd._adjoints import adjoint
from imgops.autograd._sums import number, product, saved, unclamped
from imgops.decomposition._borders import margins
from imgops.decomposition._precision import summed, working_dtype


def filter2d_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    image, kernel, ctx.padding_mode = inputs
    ctx.save_for_backward(kernel, *saved(image, needed=ctx.needs_input_grad[1]))


def filter2d_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    kernel, image = ctx.saved_tensors
    of_image = adjoint(grad, kernel, ctx.padding_mode) if ctx.needs_input_grad[0] else None
    of_kernel = None
    if ctx.needs_input_grad[1]:
        dtype = working_dtype(grad)
        top, bottom, left, right = margins(*kernel.shape[-2:])
        wide = ops.pad(image.to(dtype), None, left, top, right, bottom, ctx.padding_mode)
        of_kernel = summed(_products(wide, grad.to(dtype), *kernel.shape[-2:]), kernel)
    return of_image, of_kernel, None


def _products(wide: Tensor, grad: Tensor, rows: int, columns: int) -> Tensor:
    """Return the products of each image's gradient with the parts of the image: ``(..., rows, columns)``."""
    (height, width), planes = grad.shape[-2:], grad.shape[:-2].numel()
    if planes == 0:  # conv2d takes no 0 groups
        return grad.new_zeros((*grad.shape[:-3], rows, columns))
    if torch_private.is_distributed(grad):  # conv2d takes no planes of several processes as groups
        parts = [
            (wide[..., y : y + height, x : x + width] * grad).sum((-3, -2, -1))
            for y in range(rows)
            for x in range(columns)
        ]
        return torch.stack(parts, -1).unflatten(-1, (rows, columns))
    weight = grad.reshape(planes, 1, height, width)
    products = conv2d(wide.reshape(1, planes, *wide.shape[-2:]), weight, groups=planes)
    return products.reshape(*grad.shape[:-2], rows, columns).sum(-3)


def adjust_sharpness_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    # The smooth image is that of a symmetric filter; the outermost pixels are not filtered.
    image, factor = ctx.saved_tensors
    x, f = image.to(working_dtype(image)), number(factor, image)
    height, width = image.shape[-2:]
    if height < 3 or width < 3:
        zero = torch.zeros_like(factor) if ctx.needs_input_grad[1] else None
        return grad.clone() if ctx.needs_input_grad[0] else None, zero
    # PIL's filter SMOOTH; a graph takes no tensor from outside.
    kernel = torch.tensor([[1, 1, 1], [1, 5, 1], [1, 1, 1]], dtype=torch.float64, device="cpu") / 13
    smooth = ops.filter2d(x, kernel, "constant")
    inner = constant_pad(unclamped(grad, x * f + smooth * (1 - f))[..., 1:-1, 1:-1], (1, 1, 1, 1))
    of_image = None
    if ctx.needs_input_grad[0]:
        outer = unclamped(grad, x)
        rows = torch.slice_scatter(outer[..., 1:-1, :], inner[..., 1:-1, 1:-1] * f, -1, 1, width - 1)
        outer = torch.slice_scatter(outer, rows, -2, 1, height - 1)
        of_image = (outer + ops.filter2d(inner * (1 - f), kernel, "constant")).to(image.dtype)
    return of_image, product(inner, x - smooth, factor) if ctx.needs_input_grad[1] else None
