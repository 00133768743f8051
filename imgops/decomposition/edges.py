"""Decompositions of the derivatives and of canny: each derivative is a sum of a few shifted images."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops.decomposition._borders import correlate_along
from imgops.decomposition._components import reaches
from imgops.decomposition._precision import finish, working_dtype

#: The kernels of Scharr along one axis: that which smooths, and that which differentiates.
SCHARR = ((3.0, 10.0, 3.0), (-1.0, 0.0, 1.0))


def sobel(image: Tensor, dx: int, dy: int, kernel_size: int, padding_mode: str) -> Tensor:
    return _finish(_sobel(image.to(working_dtype(image)), dx, dy, kernel_size, padding_mode), image)


def _sobel(image: Tensor, dx: int, dy: int, size: int, padding_mode: str) -> Tensor:
    across = correlate_along(image, taps(dx, size), -1, padding_mode)
    return correlate_along(across, taps(dy, size), -2, padding_mode)


def taps(order: int, size: int) -> tuple[float, ...]:
    """Return the kernel along one axis: a binomial kernel, differentiated ``order`` times."""
    size = 3 if size == 1 and order > 0 else size
    values = [1.0]
    for i in range(size - 1):
        sign = -1.0 if i < order else 1.0
        values = [sign * a + b for a, b in zip([*values, 0.0], [0.0, *values], strict=True)]
    return tuple(values)


def scharr(image: Tensor, dx: int, dy: int, padding_mode: str) -> Tensor:
    across = correlate_along(image.to(working_dtype(image)), SCHARR[dx], -1, padding_mode)
    return _finish(correlate_along(across, SCHARR[dy], -2, padding_mode), image)


def laplacian(image: Tensor, kernel_size: int, padding_mode: str) -> Tensor:
    x = image.to(working_dtype(image))
    if kernel_size == 1:
        second = (1.0, -2.0, 1.0)
        return _finish(
            correlate_along(x, second, -1, padding_mode) + correlate_along(x, second, -2, padding_mode), image
        )
    return _finish(
        _sobel(x, 2, 0, kernel_size, padding_mode) + _sobel(x, 0, 2, kernel_size, padding_mode), image
    )


def _finish(out: Tensor, image: Tensor) -> Tensor:
    if image.dtype != torch.uint8:
        return finish(out, image, torch.float32 if image.dtype == torch.uint16 else None)
    return finish(out.clamp(-(2**15), 2**15 - 1), image, torch.int16)


#: The tangent of 22.5 degrees, with 15 fraction bits.
_TANGENT = round((2**0.5 - 1) * 2**15)


def canny(image: Tensor, low: Tensor, high: Tensor, kernel_size: int, l2_gradient: bool) -> Tensor:
    derivatives = (_sobel(image.float(), *order, kernel_size, "edge") for order in ((1, 0), (0, 1)))
    dx, dy = ((d / 16 if kernel_size == 7 else d).round().to(torch.int32) for d in derivatives)
    size = dx * dx + dy * dy if l2_gradient else dx.abs() + dy.abs()
    best = [x[..., :1, :, :] for x in (size, dx, dy)]
    for channel in range(1, image.shape[-3]):
        other = [x[..., channel : channel + 1, :, :] for x in (size, dx, dy)]
        larger = other[0] > best[0]
        best = [torch.where(larger, a, b) for a, b in zip(other, best, strict=True)]
    size, dx, dy = best
    thin = _is_largest_across(size, dx, dy)
    low, high = (_limit(v.to(image.device), kernel_size, l2_gradient) for v in (low, high))
    low, high = torch.minimum(low, high), torch.maximum(low, high)
    shape = size.shape
    weak, strong = ((thin & (size > limit)).flatten(0, -3) for limit in (low, high))
    edges = reaches(weak, strong).reshape(shape)
    return finish(torch.where(edges, 255, 0), image[..., :1, :, :], torch.uint8)


def _limit(value: Tensor, kernel_size: int, l2_gradient: bool) -> Tensor:
    value = value.double()
    if kernel_size == 7:
        value = value / 16
    if l2_gradient:
        value = value.clamp(max=32767)
        value = torch.where(value > 0, value * value, value)
    return value.floor()[..., None, None, None]


def _is_largest_across(size: Tensor, dx: Tensor, dy: Tensor) -> Tensor:
    """Return where the gradient is larger than at the neighbors that it points to and away from."""
    wide = torch.nn.functional.pad(size, (1, 1, 1, 1))
    height, width = size.shape[-2:]

    def at(down: int, right: int) -> Tensor:
        return wide[..., 1 + down : 1 + down + height, 1 + right : 1 + right + width]

    x, y = dx.abs(), dy.abs() * 2**15
    flat = x * _TANGENT
    steep = flat + x * 2**16
    falling = (dx < 0) ^ (dy < 0)
    before = torch.where(falling, at(-1, 1), at(-1, -1))
    after = torch.where(falling, at(1, -1), at(1, 1))
    diagonal = (size > before) & (size > after)
    across = (size > at(0, -1)) & (size >= at(0, 1))
    down = (size > at(-1, 0)) & (size >= at(1, 0))
    return torch.where(y < flat, across, torch.where(y > steep, down, diagonal))
