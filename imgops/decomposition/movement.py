"""Decompositions of crop, pad, paste and erase, which move values; bit-exact."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad as constant_pad

from imgops._common.torch_private import sym_max, sym_min
from imgops.decomposition._borders import fold_positions
from imgops.decomposition._precision import divide, finish
from imgops.decomposition._saturate import saturate


def crop(image: Tensor, left: int, top: int, right: int, bottom: int) -> Tensor:
    height, width = image.shape[-2:]
    x0, x1 = _clip(left, right, width)
    y0, y1 = _clip(top, bottom, height)
    before_x, before_y = _clamp(x0 - left, right - left), _clamp(y0 - top, bottom - top)
    after_x, after_y = right - left - before_x - (x1 - x0), bottom - top - before_y - (y1 - y0)
    part = image[..., y0:y1, x0:x1]
    return finish(constant_pad(part, (before_x, after_x, before_y, after_y)), image)


def crop_each(image: Tensor, box: Tensor, height: int, width: int) -> Tensor:
    return finish(_window(image, box[..., :2], height, width), image)


def _window(image: Tensor, position: Tensor, height: int, width: int) -> Tensor:
    """Return the pixels of each image from its position (left, top) on, with zeros outside of the image.

    A row and a column of zeros after the last ones are read where there is no pixel; an empty image has no
    other.
    """
    rows, columns = _places(position, height, width, image)
    for dim, at in ((-2, rows), (-1, columns)):
        last = image.shape[dim]
        at = torch.where((at >= 0) & (at < last), at, last)
        image = _take(constant_pad(image, (0, 1) if dim == -1 else (0, 0, 0, 1)), dim, at)
    return image


def _places(position: Tensor, height: int, width: int, image: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows and the columns, from each position (left, top) on, that results of a size show."""
    left, top = position.to(image.device).unbind(-1)
    y = torch.arange(height, device=image.device, dtype=torch.int64)
    x = torch.arange(width, device=image.device, dtype=torch.int64)
    return top[..., None] + y, left[..., None] + x


def _take(image: Tensor, dim: int, at: Tensor) -> Tensor:
    """Return rows or columns of each image, by their numbers ``(..., count)``."""
    shape = list(image.shape)
    shape[dim] = at.shape[-1]
    at = at[..., None, :, None] if dim == -2 else at[..., None, None, :]
    return image.gather(dim, at.expand(shape))


def _clamp(value: Any, high: Any) -> Any:
    return sym_min(sym_max(value, 0), high)


def _clip(low: Any, high: Any, size: Any) -> tuple[Any, Any]:
    """Return the part ``[a, b)`` of ``[low, high)`` that lies in ``[0, size)``, with ``a <= b``."""
    a = _clamp(low, size)
    return a, sym_max(a, sym_min(high, size))


def paste(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> Tensor:
    height, width = image.shape[-2:]
    x0, x1 = _clip(left, left + source.shape[-1], width)
    y0, y1 = _clip(top, top + source.shape[-2], height)
    below = image[..., y0:y1, x0:x1]
    window = (..., slice(y0 - top, y1 - top), slice(x0 - left, x1 - left))
    part = source[window] if mask is None else _blend(below, source[window], mask[window])
    rows = torch.slice_scatter(image[..., y0:y1, :], part, -1, x0, x1)
    return finish(torch.slice_scatter(image, rows, -2, y0, y1), image)


def paste_each(image: Tensor, source: Tensor, mask: Tensor | None, position: Tensor) -> Tensor:
    height, width = image.shape[-2:]
    above = _window(source, -position, height, width)
    if mask is not None:
        above = _blend(image, above, _window(mask, -position, height, width))
    inside = _covered(source, position, height, width)
    return finish(torch.where(inside, above, image), image)


def _covered(source: Tensor, position: Tensor, height: int, width: int) -> Tensor:
    """Return which pixels of results of a size an image at each position covers."""
    rows, columns = _places(-position, height, width, source)
    down, across = ((at >= 0) & (at < n) for at, n in zip((rows, columns), source.shape[-2:], strict=True))
    return down[..., None, :, None] & across[..., None, None, :]


def _blend(below: Tensor, above: Tensor, mask: Tensor) -> Tensor:
    if mask.dtype == torch.bool:
        return torch.where(mask, above, below)
    if below.dtype == torch.uint8:
        # As PIL does: by the exact quotient by 255, in integers.
        if mask.dtype != torch.uint8:
            mask = mask.float().nan_to_num(0.0).clamp(0, 1).mul(255).round()
        level = mask.to(torch.int32)
        total = below.to(torch.int32) * (255 - level) + above.to(torch.int32) * level + 128
        quotient = torch.div(total, 256, rounding_mode="floor") + total
        return torch.div(quotient, 256, rounding_mode="floor").to(torch.uint8)
    working = torch.float64 if below.dtype == torch.float64 else torch.float32
    weight = mask.to(working)
    if mask.dtype == torch.uint8:
        weight = divide(weight, 255)
    return (below.to(working) * (1 - weight) + above.to(working) * weight).to(below.dtype)


def pad(
    image: Tensor, fill: Tensor | None, left: int, top: int, right: int, bottom: int, padding_mode: str
) -> Tensor:
    if padding_mode != "constant":
        rows = _border(padding_mode, image.shape[-2], top, bottom, image.device)
        columns = _border(padding_mode, image.shape[-1], left, right, image.device)
        return finish(image.index_select(-2, rows).index_select(-1, columns), image)
    around = (left, right, top, bottom)
    out = constant_pad(image, around)
    if fill is not None:
        outside = constant_pad(torch.zeros_like(image[..., :1, :, :], dtype=torch.bool), around, value=True)
        value = saturate(fill.to(image.device), image.dtype)
        out = torch.where(outside, value[..., None, None], out)
    return finish(out, image)


def pad_each(
    image: Tensor, fill: Tensor | None, padding: Tensor, height: int, width: int, padding_mode: str
) -> Tensor:
    before = padding[..., :2]
    if padding_mode != "constant":
        rows, columns = _places(-before, height, width, image)
        rows = fold_positions(padding_mode, rows, image.shape[-2])
        columns = fold_positions(padding_mode, columns, image.shape[-1])
        return finish(_take(_take(image, -2, rows), -1, columns), image)
    out = _window(image, -before, height, width)
    if fill is not None:
        value = saturate(fill.to(image.device), image.dtype)
        out = torch.where(_covered(image, before, height, width), out, value[..., None, None])
    return finish(out, image)


def _border(padding_mode: str, size: int, before: int, after: int, device: torch.device) -> Tensor:
    """Return the index of the pixel that each pixel of the padded image repeats, along one axis."""
    return fold_positions(
        padding_mode, torch.arange(-before, size + after, device=device, dtype=torch.int64), size
    )


def pad_adjoint(grad: Tensor, left: int, top: int, right: int, bottom: int, padding_mode: str) -> Tensor:
    height, width = grad.shape[-2] - top - bottom, grad.shape[-1] - left - right
    if padding_mode == "constant":
        return crop(grad, left, top, left + width, top + height)
    working = torch.float64 if grad.dtype == torch.float64 else torch.float32
    rows = _border(padding_mode, height, top, bottom, grad.device)
    columns = _border(padding_mode, width, left, right, grad.device)
    sums = fold(fold(grad.to(working), -2, rows, height), -1, columns, width)
    return finish(sums, grad)


def fold(values: Tensor, dim: int, index: Tensor, size: int) -> Tensor:
    """Add every value to the element that it was taken from: the transpose of ``index_select``."""
    shape = list(values.shape)
    shape[dim] = size
    return values.new_zeros(shape).index_add(dim, index, values)


def erase(image: Tensor, fill: Tensor, box: Tensor) -> Tensor:
    left, top, right, bottom = (side[..., None, None, None] for side in box.to(image.device).unbind(-1))
    x = torch.arange(image.shape[-1], device=image.device, dtype=torch.int64)
    y = torch.arange(image.shape[-2], device=image.device, dtype=torch.int64)[:, None]
    inside = (x >= left) & (x < right) & (y >= top) & (y < bottom)
    return finish(torch.where(inside, fill, image), image)
