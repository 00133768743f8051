"""Decompositions of the blurs: convolutions, and sums of shifted images that are padded by their border."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops.decomposition._borders import correlate_along, fold_positions, widen
from imgops.decomposition._precision import divide, finish, finish_rounded, parameter, working_dtype
from imgops.decomposition.filter import correlate


def box_blur(image: Tensor, kernel_width: int, kernel_height: int, padding_mode: str) -> Tensor:
    across = correlate_along(image.to(working_dtype(image)), (1.0,) * kernel_width, -1, padding_mode)
    total, area = (
        correlate_along(across, (1.0,) * kernel_height, -2, padding_mode),
        kernel_width * kernel_height,
    )
    if image.dtype == torch.uint8:
        return finish((divide(total.double(), area) + 0.5).floor(), image)
    return finish(divide(total, area), image)


def reach(kernel_size: int) -> int:
    """Return the radius of OpenCV's window for a diameter."""
    return max(kernel_size // 2, 1)


def bilateral_filter(
    image: Tensor, sigma_color: Tensor, sigma_space: Tensor, kernel_size: int, padding_mode: str
) -> Tensor:
    x, radius = image.to(working_dtype(image)), reach(kernel_size)
    color, space = (_exponent(parameter(sigma, image)) for sigma in (sigma_color, sigma_space))
    wide, (height, width) = widen(x, (radius,) * 4, padding_mode), x.shape[-2:]
    total, weights = torch.zeros_like(x), torch.zeros_like(x[..., :1, :, :])
    for down in range(-radius, radius + 1):
        for right in range(-radius, radius + 1):
            distance = down * down + right * right
            if distance > radius * radius:
                continue
            top, left = radius + down, radius + right
            other = wide[..., top : top + height, left : left + width]
            apart = (other - x).abs().sum(-3, keepdim=True)
            weight = torch.exp(apart * apart * color + distance * space)
            total, weights = total + weight * other, weights + weight
    return finish_rounded(total / weights, image)


def _exponent(sigma: Tensor) -> Tensor:
    """Return ``-0.5 / sigma ** 2``.

    Clamp sigma away from zero, because a sigma on an accelerator is not read to validate it.
    """
    sigma = sigma.clamp(min=1e-6)
    return -0.5 / (sigma * sigma)


#: Up to this standard deviation, the weight of a neighbor is 0 in double precision, and so is its derivative.
NO_BLUR = 0.02


def gaussian_blur(image: Tensor, sigma: Tensor, kernel_width: int, kernel_height: int) -> Tensor:
    across = gaussian(sigma[..., 0], kernel_width, image)[..., None, :]
    down = gaussian(sigma[..., 1], kernel_height, image)[..., :, None]
    out = correlate(image.to(working_dtype(image)), across, "reflect")
    return finish_rounded(correlate(out, down, "reflect"), image)


def gaussian(sigma: Tensor, size: int, image: Tensor) -> Tensor:
    """Compute ``cv2.getGaussianKernel``, one per sample; for a sigma of 0, or nearly 0, the identity."""
    sigma = sigma.to(image.device, torch.float64)[..., None]
    x = torch.arange(size, dtype=torch.float64, device=image.device) - (size - 1) / 2
    blurs = sigma > NO_BLUR
    safe = torch.where(blurs, sigma, 1)
    weight = torch.where(blurs, torch.exp(-0.5 * (x / safe) ** 2), (x == 0).double())
    return (weight / weight.sum(-1, keepdim=True)).to(working_dtype(image))


def median_blur(image: Tensor, kernel_size: int) -> Tensor:
    height, width = image.shape[-2:]
    window = torch.arange(kernel_size, device=image.device) - kernel_size // 2
    y, x = (torch.arange(size, device=image.device)[:, None] + window for size in (height, width))
    rows = image.index_select(-2, fold_positions("edge", y.flatten(), height))
    each = rows.index_select(-1, fold_positions("edge", x.flatten(), width))
    windows = each.unflatten(-1, (width, kernel_size)).unflatten(-3, (height, kernel_size))
    values = windows.transpose(-3, -2).flatten(-2).sort(-1).values
    return finish(values[..., kernel_size * kernel_size // 2], image)
