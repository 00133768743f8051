"""The gradient of filter2d: its transpose, and for the kernel the products with the pixels that it meets."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from imgops.autograd._adjoints import adjoint
from imgops.autograd._sums import saved, summed
from imgops.decomposition._borders import margins
from imgops.decomposition._precision import working_dtype

ops = torch.ops.imgops


def filter2d_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    image, kernel, ctx.padding_mode = inputs
    ctx.save_for_backward(kernel, *saved(image, needed=ctx.needs_input_grad[1]))


def filter2d_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    kernel, image = ctx.saved_tensors
    of_image = adjoint(grad, kernel, ctx.padding_mode) if ctx.needs_input_grad[0] else None
    of_kernel = None
    if ctx.needs_input_grad[1]:
        rows, columns = kernel.shape[-2:]
        top, bottom, left, right = margins(rows, columns)
        dtype = working_dtype(grad)
        wide = ops.pad(image.to(dtype), None, left, top, right, bottom, ctx.padding_mode)
        planes = grad.shape[:-2].numel()
        weight = grad.to(dtype).reshape(planes, 1, *grad.shape[-2:])
        products = conv2d(wide.reshape(1, planes, *wide.shape[-2:]), weight, groups=planes)
        of_kernel = summed(products.reshape(*grad.shape[:-2], rows, columns).sum(-3), kernel)
    return of_image, of_kernel, None
