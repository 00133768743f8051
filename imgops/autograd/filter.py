"""Gradients of the linear filters: the turned kernel over a border of zeros, folded back by the border's rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import conv2d
from torch.nn.functional import pad as constant_pad

from imgops.autograd._sums import saved, summed
from imgops.decomposition._borders import margins
from imgops.decomposition._precision import working_dtype
from imgops.decomposition.edges import SCHARR, taps

ops = torch.ops.imgops


def _folded(grad: Tensor, rows: int, columns: int, padding_mode: str, transpose: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply the transpose of a filter of a size; half precision is computed in float32 and rounded once."""
    top, bottom, left, right = margins(rows, columns)
    around = left, top, right, bottom
    wide = ops.pad(grad.to(working_dtype(grad)), None, *around, "constant")
    return ops.pad_adjoint(transpose(wide), *around, padding_mode).to(grad.dtype)


def _adjoint(grad: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    rows, columns = kernel.shape[-2:]
    # The anchor of a turned kernel of an even size lies on the other side.
    turned = constant_pad(kernel.flip(-1, -2), ((columns + 1) % 2, 0, (rows + 1) % 2, 0))
    return _folded(grad, rows, columns, padding_mode, lambda wide: ops.filter2d(wide, turned, "constant"))


def filter2d_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    image, kernel, ctx.padding_mode = inputs
    ctx.save_for_backward(kernel, *saved(image, needed=ctx.needs_input_grad[1]))


def filter2d_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    kernel, image = ctx.saved_tensors
    of_image = _adjoint(grad, kernel, ctx.padding_mode) if ctx.needs_input_grad[0] else None
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


def box_blur_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.columns, ctx.rows, ctx.padding_mode = inputs


def box_blur_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    size = rows, columns = ctx.rows, ctx.columns
    if rows % 2 and columns % 2:
        blur = lambda wide: ops.box_blur(wide, columns, rows, "constant")
        return _folded(grad, *size, ctx.padding_mode, blur), None, None, None
    kernel = torch.full(size, 1 / (rows * columns), dtype=torch.float64, device="cpu")
    return _adjoint(grad, kernel, ctx.padding_mode), None, None, None


def sobel_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.dx, ctx.dy, ctx.kernel_size, ctx.padding_mode = inputs


def sobel_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    dx, dy, size = ctx.dx, ctx.dy, ctx.kernel_size
    turned = lambda wide: (-1) ** (dx + dy) * ops.sobel(wide, dx, dy, size, "constant")
    extent = len(taps(dy, size)), len(taps(dx, size))
    return _folded(grad, *extent, ctx.padding_mode, turned), None, None, None, None


def scharr_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.dx, ctx.dy, ctx.padding_mode = inputs


def scharr_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    turned = lambda wide: -ops.scharr(wide, ctx.dx, ctx.dy, "constant")
    size = len(SCHARR[0])
    return _folded(grad, size, size, ctx.padding_mode, turned), None, None, None


def laplacian_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.kernel_size, ctx.padding_mode = inputs


def laplacian_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    size = max(ctx.kernel_size, 3)
    same = lambda wide: ops.laplacian(wide, ctx.kernel_size, "constant")
    return _folded(grad, size, size, ctx.padding_mode, same), None, None
