"""Decompositions of the blurs: convolutions, and sums of shifted images that are padded by their border."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops.decomposition._borders import correlate_along, fold_positions, widen
from imgops.decomposition._precision import divide, finish, finish_rounded, parameter, working_dtype
from imgops.decomposition.filter import correlate


def box_blur(image: Tensor, kernel_width: int, kernel_height: int, padding_mode: str) -> Tensor:
    across = correlate_along(image.to(working_dtype(image)), (1.0,) * kernel_width, -1, padding_mode)
    total = correlate_along(across, (1.0,) * kernel_height, -2, padding_mode)
    area = kernel_width * kernel_height
    if image.dtype == torch.uint8:
        return finish((divide(total.double(), area) + 0.5).floor(), image)
    return finish_rounded(divide(total, area), image)


def reach(kernel_size: int) -> int:
    """Return the radius of OpenCV's window for a diameter."""
    return max(kernel_size // 2, 1)


def bilateral_filter(
    image: Tensor, sigma_color: Tensor, sigma_space: Tensor, kernel_size: int, padding_mode: str
) -> Tensor:
    x, radius = image.to(working_dtype(image)), reach(kernel_size)
    # Clamp sigma away from zero, because a sigma on an accelerator is not read to validate it.
    sigmas = (parameter(sigma, image).clamp(min=1e-6) for sigma in (sigma_color, sigma_space))
    color, space = (-0.5 / (sigma * sigma) for sigma in sigmas)
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


#: Up to this standard deviation, the weight of a neighbor is 0 in double precision, and so is its derivative.
NO_BLUR = 0.02


def gaussian_blur(image: Tensor, sigma: Tensor, kernel_width: int, kernel_height: int) -> Tensor:
    sigma_x, sigma_y = sigma.unbind(-1)
    across = gaussian(sigma_x, kernel_width, image)[..., None, :]
    down = gaussian(torch.where(sigma_y > 0, sigma_y, sigma_x), kernel_height, image)[..., :, None]
    out = correlate(image.to(working_dtype(image)), across, "reflect")
    return finish_rounded(correlate(out, down, "reflect"), image)


def gaussian(sigma: Tensor, size: int, image: Tensor) -> Tensor:
    """Compute ``cv2.getGaussianKernel``, one per sample; for a sigma of nearly 0, the identity."""
    sigma = sigma.to(image.device, torch.float64)[..., None]
    x = torch.arange(size, dtype=torch.float64, device=image.device) - (size - 1) / 2
    follows = sigma <= 0
    sigma = torch.where(follows, sigma_of(size), sigma)
    blurs = sigma > NO_BLUR
    safe = torch.where(blurs, sigma, 1)
    weight = torch.where(blurs, torch.exp(-0.5 * (x / safe) ** 2), (x == 0).double())
    weight = weight / weight.sum(-1, keepdim=True)
    if size in SHORT_KERNELS:
        short = torch.cat([x.new_full((1,), value / 256) for value in SHORT_KERNELS[size]])
        weight = torch.where(follows, short, weight)
    return weight.to(working_dtype(image))


#: The kernels that OpenCV has as integers, in 256ths, where sigma follows from the size.
SHORT_KERNELS = {
    3: (64, 128, 64),
    5: (16, 64, 96, 64, 16),
    7: (8, 28, 56, 72, 56, 28, 8),
    9: (4, 13, 30, 51, 60, 51, 30, 13, 4),
}


def sigma_of(size: int) -> float:
    """Return OpenCV's standard deviation for the size of a kernel."""
    return 0.3 * ((size - 1) * 0.5 - 1) + 0.8


def median_blur(image: Tensor, kernel_size: int) -> Tensor:
    height, width = image.shape[-2:]
    pixels = image.to(torch.int32) if image.dtype == torch.uint16 else image  # ATen does not sort uint16
    window = torch.arange(kernel_size, device=image.device, dtype=torch.int64) - kernel_size // 2
    y, x = (
        torch.arange(size, device=image.device, dtype=torch.int64)[:, None] + window
        for size in (height, width)
    )
    rows = pixels.index_select(-2, fold_positions("edge", y.flatten(), height))
    each = rows.index_select(-1, fold_positions("edge", x.flatten(), width))
    windows = each.unflatten(-1, (width, kernel_size)).unflatten(-3, (height, kernel_size))
    values = windows.transpose(-3, -2).flatten(-2).sort(-1).values
    return finish(values[..., kernel_size * kernel_size // 2], image)
