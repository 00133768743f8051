"""Decompositions of the filters: convolutions over a border that is written out."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from imgops.decomposition._borders import folded, margins, widened
from imgops.decomposition._real import finished, mixed, of_sums, parameter, working

#: Up to this deviation the weight of a neighbor is 0 in double precision, and so is its derivative.
NO_BLUR = 0.02


def gaussian_blur(image: Tensor, sigma: Tensor, kernel_width: int, kernel_height: int) -> Tensor:
    across = gaussian(sigma[..., 0], kernel_width, image)[..., None, :]
    down = gaussian(sigma[..., 1], kernel_height, image)[..., :, None]
    out = _correlated(image.to(working(image)), across, "reflect")
    return rounded(_correlated(out, down, "reflect"), image)


def gaussian(sigma: Tensor, size: int, image: Tensor) -> Tensor:
    """``cv2.getGaussianKernel``, one per sample; for a sigma of 0, or nearly 0, the identity."""
    sigma = sigma.to(image.device, torch.float64)[..., None]
    x = torch.arange(size, dtype=torch.float64, device=image.device) - (size - 1) / 2
    blurs = sigma > NO_BLUR
    safe = torch.where(blurs, sigma, 1)
    weight = torch.where(blurs, torch.exp(-0.5 * (x / safe) ** 2), (x == 0).double())
    return (weight / weight.sum(-1, keepdim=True)).to(working(image))


def median_blur(image: Tensor, kernel_size: int) -> Tensor:
    height, width = image.shape[-2:]
    window = torch.arange(kernel_size, device=image.device) - kernel_size // 2
    y, x = (torch.arange(size, device=image.device)[:, None] + window for size in (height, width))
    rows = image.index_select(-2, folded("edge", y.flatten(), height))
    each = rows.index_select(-1, folded("edge", x.flatten(), width))
    windows = each.unflatten(-1, (width, kernel_size)).unflatten(-3, (height, kernel_size))
    values = windows.transpose(-3, -2).flatten(-2).sort(-1).values
    return finished(values[..., kernel_size * kernel_size // 2], image)


def filter2d(image: Tensor, kernel: Tensor, border: str) -> Tensor:
    x = image.to(working(image))
    return rounded(_correlated(x, kernel.to(image.device, x.dtype), border), image)


def _correlated(image: Tensor, kernel: Tensor, border: str) -> Tensor:
    """Every channel of an image with its kernel ``(..., h, w)``, whose middle is at ``h // 2, w // 2``."""
    dtype = of_sums(image.dtype, image.device)
    if dtype != image.dtype:
        return _correlated(image.to(dtype), kernel.to(dtype), border).to(image.dtype)
    rows, columns = kernel.shape[-2:]
    wide = widened(image, margins(rows, columns), border)
    planes = image.shape[:-2].numel()
    if kernel.ndim == 2:
        flat = wide.reshape(planes, 1, wide.shape[-2], wide.shape[-1])
        return conv2d(flat, kernel[None, None]).reshape(image.shape)
    each = kernel[..., None, :, :].expand(*image.shape[:-2], rows, columns).reshape(planes, 1, rows, columns)
    flat = wide.reshape(1, planes, wide.shape[-2], wide.shape[-1])
    return conv2d(flat, each, groups=planes).reshape(image.shape)


def rounded(out: Tensor, image: Tensor) -> Tensor:
    if image.dtype == torch.uint8:
        out = out.round().clamp(0, 255)
    return finished(out, image)


def adjust_sharpness(image: Tensor, factor: Tensor) -> Tensor:
    height, width = image.shape[-2:]
    x = image.to(working(image))
    if height < 3 or width < 3:
        return finished(x, image)
    total = x[..., 1:-1, 1:-1] * 4
    for i in range(3):
        for j in range(3):
            total = total + x[..., i : i + height - 2, j : j + width - 2]
    smooth = total / 13
    if image.dtype == torch.uint8:
        smooth = (smooth + 0.5).floor()
    inner = mixed(smooth, x[..., 1:-1, 1:-1], parameter(factor, image), image)
    if image.dtype != torch.uint8:
        x = x.clamp(0, 1)
    rows = torch.slice_scatter(x[..., 1:-1, :], inner, -1, 1, width - 1)
    return finished(torch.slice_scatter(x, rows, -2, 1, height - 1), image)
