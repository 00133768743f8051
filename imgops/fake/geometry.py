"""Fakes of the warps."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops._common import check, layout
from imgops._common.check import fail, violates

INTERPOLATIONS = ("nearest", "bilinear", "bicubic")


def warp_affine(
    image: Tensor,
    matrix: Tensor,
    fill: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    padding_mode: str,
) -> Tensor:
    return _warp("warp_affine", image, matrix, 2, fill, height, width, interpolation, padding_mode)


def warp_perspective(
    image: Tensor,
    matrix: Tensor,
    fill: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    padding_mode: str,
) -> Tensor:
    return _warp("warp_perspective", image, matrix, 3, fill, height, width, interpolation, padding_mode)


def _warp(
    op: str,
    image: Tensor,
    matrix: Tensor,
    rows: int,
    fill: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    padding_mode: str,
) -> Tensor:
    check_warped(op, image, fill, interpolation, padding_mode)
    check.per_sample_parameter(op, "matrix", matrix, image, rows, 3)
    _size(op, height, width)
    return layout.empty(image, height, width)


def remap(image: Tensor, map: Tensor, fill: Tensor | None, interpolation: str, padding_mode: str) -> Tensor:
    check_warped("remap", image, fill, interpolation, padding_mode)
    _map("remap", map, "image", image)
    return layout.empty(image, *map.shape[-2:])


def remap_adjoint(
    grad: Tensor, map: Tensor, height: int, width: int, interpolation: str, padding_mode: str
) -> Tensor:
    check.image("remap_adjoint", "grad", grad)
    check.floating("remap_adjoint", "grad", grad)
    _choices("remap_adjoint", interpolation, padding_mode)
    _map("remap_adjoint", map, "grad", grad)
    _same_size("remap_adjoint", grad, map)
    _size("remap_adjoint", height, width)
    return layout.empty(grad, height, width)


def remap_grad_map(
    grad: Tensor, image: Tensor, map: Tensor, fill: Tensor | None, interpolation: str, padding_mode: str
) -> Tensor:
    check_warped("remap_grad_map", image, fill, interpolation, padding_mode)
    check.image("remap_grad_map", "grad", grad)
    check.batch("remap_grad_map", "grad", grad, "image", image)
    _map("remap_grad_map", map, "image", image)
    _same_size("remap_grad_map", grad, map)
    return map.new_empty(map.shape)


def check_warped(op: str, image: Tensor, fill: Tensor | None, interpolation: str, padding_mode: str) -> None:
    check.image(op, "image", image)
    _choices(op, interpolation, padding_mode)
    if interpolation != "nearest":
        check.levels_or_floats(op, image, takes_uint16=True)
    elif image.dtype.itemsize > 8:
        fail(TypeError, op, "image must have at most 8 bytes a value", image.dtype)
    check.not_empty(op, "image", image)
    check.pixels(op, "image", *image.shape[-2:])
    if fill is not None:
        check.fill(op, image, fill)


def _choices(op: str, interpolation: str, padding_mode: str) -> None:
    check.choice(op, "interpolation", interpolation, INTERPOLATIONS)
    check.border(op, padding_mode)


def _size(op: str, height: int, width: int) -> None:
    if violates(height >= 1, width >= 1):
        fail(ValueError, op, "size must be at least (1, 1)", check.numbers(height, width))
    check.pixels(op, "size", height, width)


def _map(op: str, map: Tensor, name: str, image: Tensor) -> None:
    check.image(op, "map", map)
    check.dtype(op, "map", map, torch.float32, torch.float64)
    check.same_device(op, "map", map, name, image)
    if map.shape[-3] != 2:
        check.fail_shape(op, "map must be (..., 2, H, W): x and y", map)
    check.batch(op, "map", map, name, image)


def _same_size(op: str, grad: Tensor, map: Tensor) -> None:
    if grad.shape[-2:] != map.shape[-2:]:
        height, width = check.numbers(*map.shape[-2:])
        fail(ValueError, op, f"grad must have the size of map ({height}, {width})", check.shape(grad)[-2:])
