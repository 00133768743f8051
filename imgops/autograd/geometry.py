"""Gradients of the warps: the adjoint for the image, and the image's slope at each coordinate for the map.

The gradient of a matrix follows by the chain rule from that of its map. Forward mode is derived from the
decompositions.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops._operator.record import calls as ops
from imgops.decomposition import geometry as positions
from imgops.decomposition._precision import summed


def _load(ctx: Any) -> tuple[Any, Any, Any]:
    first, second, *fill = ctx.saved_tensors
    return first, second, fill[0] if fill else None


def _save(ctx: Any, *tensors: Tensor | None) -> None:
    kept = [t for t in tensors if t is not None]
    ctx.save_for_backward(*kept)


def remap_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    image, map, fill, *ctx.how = inputs
    _save(ctx, image, map, fill)


def remap_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    image, map, fill = _load(ctx)
    grad_image, grad_map, grad_fill = _pull_back(ctx, grad, image, map, fill)
    return grad_image, _or_zeros(ctx, grad_map, map), grad_fill, None, None


def _or_zeros(ctx: Any, found: Tensor | None, like: Tensor) -> Tensor | None:
    """Return the gradient of positions: zeros where it is wanted and there is none."""
    return torch.zeros_like(like) if found is None and ctx.needs_input_grad[1] else found


def _pull_back(ctx: Any, grad: Tensor, image: Tensor, map: Tensor, fill: Any) -> tuple[Any, Any, Any]:
    """Return the gradients for image, map and fill; that of a map is None for "nearest"."""
    grad_image = grad_map = grad_fill = None
    if ctx.needs_input_grad[0]:
        grad_image = ops.remap_adjoint(grad, map, *image.shape[-2:], *ctx.how)
    if ctx.needs_input_grad[1] and ctx.how[0] != "nearest":
        grad_map = ops.remap_grad_map(grad, image, map, fill, *ctx.how)
    if ctx.needs_input_grad[2]:
        one = grad.new_ones(()).expand(*image.shape[:-3], 1, *image.shape[-2:])
        uncovered = 1 - ops.remap(one, map, None, *ctx.how)
        total = (grad * uncovered).sum((-2, -1))
        grad_fill = summed(total, fill)
    return grad_image, grad_map, grad_fill


def remap_adjoint_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    grad, map, *_, interpolation, padding_mode = inputs
    ctx.how = interpolation, padding_mode
    _save(ctx, grad, map)


def remap_adjoint_backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
    grad, map, _ = _load(ctx)
    back = slope = None
    if ctx.needs_input_grad[0]:
        back = ops.remap(cotangent, map, None, *ctx.how)
    if ctx.needs_input_grad[1]:
        slope = ops.remap_grad_map(grad, cotangent, map, None, *ctx.how)
    return back, slope, None, None, None, None


def warp_affine_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    image, matrix, fill, height, width, interpolation, padding_mode = inputs
    ctx.size = height, width
    ctx.how = interpolation, padding_mode
    _save(ctx, image, matrix, fill)


warp_perspective_setup_context = warp_affine_setup_context


def _map(ctx: Any, map_of: Any, image: Tensor, matrix: Tensor) -> Tensor:
    map = map_of(matrix, *ctx.size, image.device, ctx.how[0]).double()
    return map.expand(*image.shape[:-3], *map.shape[-3:])


def _grid(ctx: Any, image: Tensor) -> Tensor:
    height, width = ctx.size
    return positions.pixel_grid(height, width, image.device)


def _flat(map: Tensor) -> Tensor:
    return map.reshape(*map.shape[:-2], map.shape[-2] * map.shape[-1])


def _matrix_gradient(grad_inverse: Tensor, inverse: Tensor, matrix: Tensor) -> Tensor:
    """Compute a matrix's gradient from that of its inverse, whose batch may be larger than the matrix's."""
    back = -(inverse.mT @ grad_inverse @ inverse.mT)
    if matrix.shape[-2] == 2:
        back = back[..., :2, :]
    return summed(back, matrix)


def warp_affine_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    image, matrix, fill = _load(ctx)
    map = _map(ctx, positions.affine_map, image, matrix)
    grad_image, grad_map, grad_fill = _pull_back(ctx, grad, image, map, fill)
    grad_matrix = None
    if grad_map is not None:
        grid = _grid(ctx, image)
        pulled = (_flat(grad_map) @ grid.mT).to(matrix.device)
        pulled = torch.cat([pulled, torch.zeros_like(pulled[..., :1, :])], -2)
        inverse = positions.inverse_affine(matrix.double())
        third_row = torch.eye(3, dtype=inverse.dtype, device=inverse.device)[2]
        inverse = torch.cat([inverse, third_row.expand(*inverse.shape[:-2], 1, 3)], -2)
        grad_matrix = _matrix_gradient(pulled, inverse, matrix)
    return grad_image, _or_zeros(ctx, grad_matrix, matrix), grad_fill, None, None, None, None


def warp_perspective_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    image, matrix, fill = _load(ctx)
    map = _map(ctx, positions.perspective_map, image, matrix)
    grad_image, grad_map, grad_fill = _pull_back(ctx, grad, image, map, fill)
    grad_matrix = None
    if grad_map is not None:
        inverse = positions.inverse_perspective(matrix.double())
        grid = _grid(ctx, image)
        if inverse.shape[:-2].numel() == 1:  # all images share the matrix, so that their gradients are added
            map, grad_map = map[(0,) * (map.ndim - 3)], grad_map.sum_to_size(grad_map.shape[-3:])
        x, y = _flat(map)[..., 0, :], _flat(map)[..., 1, :]
        gx, gy = _flat(grad_map)[..., 0, :], _flat(grad_map)[..., 1, :]
        w = (inverse.to(image.device) @ grid)[..., 2:, :]
        scale = torch.where(w == 0, 0, 1 / torch.where(w == 0, 1, w))
        pulled = torch.stack([gx, gy, -(gx * x + gy * y)], -2) * scale
        grad_matrix = _matrix_gradient((pulled @ grid.mT).to(matrix.device), inverse, matrix)
    return grad_image, _or_zeros(ctx, grad_matrix, matrix), grad_fill, None, None, None, None
