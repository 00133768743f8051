"""Decompositions of the warps: weighted sums of gathered pixels, whose centers have integer coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from imgops._common.torch_private import sym_max
from imgops.decomposition._borders import fold_positions
from imgops.decomposition._precision import SIGNED, finish, finish_rounded, working_dtype
from imgops.decomposition._saturate import saturate

#: Coordinates are clamped to [-FAR, FAR]: an infinite one becomes FAR or -FAR, a NaN becomes -FAR. If the
#: border repeats the image, coordinates beyond FAR are folded by its period instead.
FAR = 2.0**30


def pixel_grid(height: int, width: int, device: torch.device) -> Tensor:
    """Return the x, y and 1 of every pixel: ``(3, height * width)``."""
    y = torch.arange(height, dtype=torch.float64, device=device)[:, None].expand(height, width)
    x = torch.arange(width, dtype=torch.float64, device=device)[None, :].expand(height, width)
    return torch.stack([x, y, torch.ones_like(x)]).reshape(3, height * width)


def inverse_affine(matrix: Tensor) -> Tensor:
    """Invert matrices ``(..., 2, 3)`` as OpenCV does: a matrix without an inverse becomes 0."""
    a, b, c, d = (matrix[..., i, j] for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)))
    determinant = a * d - b * c
    scale = torch.where(determinant == 0, 0, 1 / torch.where(determinant == 0, 1, determinant))
    linear = torch.stack([torch.stack([d, -b], -1), torch.stack([-c, a], -1)], -2) * scale[..., None, None]
    moved = -(linear * matrix[..., None, :, 2]).sum(-1, keepdim=True)
    return torch.cat([linear, moved], -1)


def inverse_perspective(matrix: Tensor) -> Tensor:
    """Invert matrices ``(..., 3, 3)``: the adjugate divided by the determinant."""
    rows = matrix.unbind(-2)
    cross = [torch.linalg.cross(rows[i], rows[j]) for i, j in ((1, 2), (2, 0), (0, 1))]
    determinant = (rows[0] * cross[0]).sum(-1)
    scale = torch.where(determinant == 0, 0, 1 / torch.where(determinant == 0, 1, determinant))
    return torch.stack(cross, -1) * scale[..., None, None]


def affine_map(
    matrix: Tensor, height: int, width: int, device: torch.device, interpolation: str = "bilinear"
) -> Tensor:
    """Return the source coordinates of each pixel of the result: ``(..., 2, height, width)``.

    They are in double precision; for "nearest", in single precision.
    """
    inverse = inverse_affine(matrix.to(device, torch.float64, non_blocking=True))
    return _products(inverse, height, width, interpolation)


def perspective_map(
    matrix: Tensor, height: int, width: int, device: torch.device, interpolation: str = "bilinear"
) -> Tensor:
    inverse = inverse_perspective(matrix.to(device, torch.float64, non_blocking=True))
    u, v, w = _products(inverse, height, width, interpolation).unbind(-3)
    is_finite = w != 0
    divisor = torch.where(is_finite, w, 1)
    return torch.stack([torch.where(is_finite, n / divisor, -FAR) for n in (u, v)], -3)


def _products(matrix: Tensor, height: int, width: int, interpolation: str) -> Tensor:
    """Multiply the rows of a matrix by x, y and 1 of every pixel.

    For "nearest" this is in single precision, as in OpenCV, so that ties are broken as there.
    """
    dtype = torch.float32 if interpolation == "nearest" else torch.float64
    x = torch.arange(width, dtype=dtype, device=matrix.device)
    y = torch.arange(height, dtype=dtype, device=matrix.device)[:, None]
    a, b, c = matrix.to(dtype)[..., None, None].unbind(-3)
    return a * x + (b * y + c)


def warp_affine(
    image: Tensor,
    matrix: Tensor,
    fill: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    padding_mode: str,
) -> Tensor:
    map = affine_map(matrix, height, width, image.device, interpolation)
    return remap(image, map, fill, interpolation, padding_mode)


def warp_perspective(
    image: Tensor,
    matrix: Tensor,
    fill: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    padding_mode: str,
) -> Tensor:
    map = perspective_map(matrix, height, width, image.device, interpolation)
    return remap(image, map, fill, interpolation, padding_mode)


def remap(image: Tensor, map: Tensor, fill: Tensor | None, interpolation: str, padding_mode: str) -> Tensor:
    height, width = map.shape[-2:]
    # ATen's gather takes no unsigned dtype but uint8: use the bits.
    if image.dtype in SIGNED and interpolation == "nearest":
        bits = None if fill is None else saturate(fill, image.dtype).view(SIGNED[image.dtype])
        moved = remap(image.view(SIGNED[image.dtype]), map, bits, interpolation, padding_mode)
        return moved.view(image.dtype)
    source = image if interpolation == "nearest" else image.to(working_dtype(image))
    pixels = source.reshape(*image.shape[:-2], image.shape[-2] * image.shape[-1])
    outside = _outside(fill, image, source.dtype)
    out: Any = None
    for at, inside, weight, _ in _taps(map, image.shape[-2:], interpolation, padding_mode):
        value = pixels.gather(-1, at.expand(*pixels.shape[:-1], at.shape[-1]))
        if inside is not None:
            value = torch.where(inside, value, outside)
        if weight is not None:
            value = value * weight.to(source.dtype)
        out = value if out is None else out + value
    out = out.reshape(*image.shape[:-2], height, width)
    return finish(out, image) if interpolation == "nearest" else finish_rounded(out, image)


def remap_adjoint(
    grad: Tensor, map: Tensor, height: int, width: int, interpolation: str, padding_mode: str
) -> Tensor:
    work = working_dtype(grad)
    values = grad.to(work).reshape(*grad.shape[:-2], grad.shape[-2] * grad.shape[-1])
    total = values.new_zeros((*grad.shape[:-2], height * width))
    for at, inside, weight, _ in _taps(map, (height, width), interpolation, padding_mode):
        part = values if weight is None else values * weight.to(work)
        if inside is not None:
            part = torch.where(inside, part, 0)
        total = total.scatter_add(-1, at.expand(values.shape), part)
    return finish(total.reshape(*grad.shape[:-2], height, width), grad)


def remap_grad_map(
    grad: Tensor, image: Tensor, map: Tensor, fill: Tensor | None, interpolation: str, padding_mode: str
) -> Tensor:
    height, width = map.shape[-2:]
    if interpolation == "nearest":
        return torch.zeros_like(map, memory_format=torch.contiguous_format)
    work = working_dtype(image)
    pixels = image.to(work).reshape(*image.shape[:-2], image.shape[-2] * image.shape[-1])
    outside = _outside(fill, image, work)
    towards_x = towards_y = torch.zeros((), dtype=work, device=image.device)
    for at, inside, _, slopes in _taps(map, image.shape[-2:], interpolation, padding_mode):
        value = pixels.gather(-1, at.expand(*pixels.shape[:-1], at.shape[-1]))
        if inside is not None:
            value = torch.where(inside, value, outside)
        towards_x = towards_x + value * slopes[0].to(work)
        towards_y = towards_y + value * slopes[1].to(work)
    flat = grad.to(work).reshape(*grad.shape[:-2], height * width)
    slope = torch.stack([(flat * towards_x).sum(-2), (flat * towards_y).sum(-2)], -2)
    return slope.reshape(*slope.shape[:-1], height, width).to(map.dtype)


def _outside(fill: Tensor | None, image: Tensor, dtype: torch.dtype) -> Tensor:
    if fill is None:
        return torch.zeros((), dtype=dtype, device=image.device)
    return saturate(fill.to(image.device), image.dtype).to(dtype)[..., None]


def _taps(
    map: Tensor, size: Any, interpolation: str, padding_mode: str
) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Yield the index, validity, weight and slopes of each tap of the interpolation.

    The index is that of the tap's pixel in the flattened image. The validity is whether it lies inside of the
    image (None: always). A weight of None is 1. The slopes are the derivatives of the weight along x and y.
    All are ``(..., 1, pixels)``.
    """
    x, y = map.reshape(*map.shape[:-2], map.shape[-2] * map.shape[-1]).unsqueeze(-3).unbind(-2)
    left, across = _axis(x, size[1], interpolation, padding_mode)
    top, down = _axis(y, size[0], interpolation, padding_mode)
    for j, (wy, sy) in enumerate(down):
        row, row_inside = _index(top + j, size[0], padding_mode)
        for i, (wx, sx) in enumerate(across):
            column, column_inside = _index(left + i, size[1], padding_mode)
            inside = None
            if row_inside is not None and column_inside is not None:
                inside = row_inside & column_inside
            at = row * size[1] + column
            if wx is None:
                yield at, inside, None, None
            else:
                yield at, inside, wx * wy, (sx * wy, wx * sy)


def _index(i: Tensor, size: int, padding_mode: str) -> tuple[Tensor, Tensor | None]:
    if padding_mode != "constant":
        return fold_positions(padding_mode, i, size), None
    return i.clamp(0, size - 1), (i >= 0) & (i < size)


def _bound_positions(position: Tensor, size: Any, padding_mode: str) -> Tensor:
    """Return coordinates of the same pixels that fit into integers."""
    position = torch.nan_to_num(position, nan=-FAR, posinf=FAR, neginf=-FAR)
    if padding_mode in ("constant", "edge"):
        return position.clamp(-FAR, FAR)
    period = {"wrap": size, "symmetric": 2 * size, "reflect": sym_max(2 * size - 2, 1)}[padding_mode]
    return torch.where(position.abs() > FAR, torch.fmod(position, period), position)


def _axis(
    position: Tensor, size: Any, interpolation: str, padding_mode: str
) -> tuple[Tensor, list[tuple[Any, Any]]]:
    """Return the first pixel along an axis, and the weight of each pixel with its derivative."""
    position = _bound_positions(position, size, padding_mode)
    if interpolation == "nearest":
        return position.detach().round().long(), [(None, None)]
    start = position.detach().floor()
    f = position - start
    one = torch.ones_like(f)
    if interpolation == "bilinear":
        return start.long(), [(1 - f, -one), (f, one)]
    a = -0.75
    g, slope = 1 - f, 3 * a
    weights = (
        ((a * (f + 1) - 5 * a) * (f + 1) + 8 * a) * (f + 1) - 4 * a,
        ((a + 2) * f - (a + 3)) * f * f + 1,
        ((a + 2) * g - (a + 3)) * g * g + 1,
    )
    slopes = (
        (slope * (f + 1) - 10 * a) * (f + 1) + 8 * a,
        (3 * (a + 2) * f - 2 * (a + 3)) * f,
        -(3 * (a + 2) * g - 2 * (a + 3)) * g,
    )
    last = 1 - weights[0] - weights[1] - weights[2], -slopes[0] - slopes[1] - slopes[2]
    return start.long() - 1, [*zip(weights, slopes, strict=True), last]
