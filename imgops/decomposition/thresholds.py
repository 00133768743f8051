"""Decompositions of the thresholds; Otsu's and the triangle's are found in a histogram of 256 levels."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops.decomposition._borders import correlate_along
from imgops.decomposition._histograms import counts_of, histogram
from imgops.decomposition._precision import LEVELS, divide, finish, parameter, working_dtype
from imgops.decomposition.blur import SHORT_KERNELS, sigma_of

#: The least share of an image that may lie on one side of Otsu's threshold.
_LEAST = 2.0**-23


def threshold(image: Tensor, threshold: Tensor, max_value: Tensor, operation: str) -> Tensor:
    x = image.to(working_dtype(image))
    limit, top = parameter(threshold, image), parameter(max_value, image)
    if image.dtype in LEVELS:
        limit = parameter(threshold.double().floor(), image)
        top = top.round().clamp(0, LEVELS[image.dtype])
    if operation == "otsu":
        counts = counts_of(image.flatten(-2).long(), LEVELS[image.dtype] + 1)
        limit, operation = _otsu(counts).to(x.dtype)[..., None, None], "binary"
    elif operation == "triangle":
        limit, operation = _triangle(histogram(image)).to(x.dtype)[..., None, None], "binary"
    above, zero = x > limit, torch.zeros_like(x)
    if operation in ("binary", "binary_inv"):
        out = torch.where(above == (operation == "binary"), top, zero)
    elif operation == "trunc":
        bound = limit.clamp(0, LEVELS[image.dtype]) if image.dtype in LEVELS else limit
        out = torch.where(above, bound, x)
    else:
        out = torch.where(above == (operation == "tozero"), x, zero)
    return finish(out, image)


def _otsu(counts: Tensor) -> Tensor:
    """Return the level that splits a histogram ``(..., n)`` with the largest variance between the parts."""
    share = counts.double() / counts.sum(-1, keepdim=True)
    level = torch.arange(counts.shape[-1], dtype=torch.float64, device=counts.device)
    below = share.cumsum(-1)
    above = 1 - below
    moment = (share * level).cumsum(-1)
    apart = moment / below - (moment[..., -1:] - moment) / above
    inside = (torch.minimum(below, above) >= _LEAST) & (torch.maximum(below, above) <= 1 - _LEAST)
    variance = torch.where(inside, below * above * apart * apart, 0.0)
    return variance.argmax(-1)


def _triangle(counts: Tensor) -> Tensor:
    """Return the level farthest from the line between a histogram's peak and the end of its longer side."""
    level = torch.arange(256, device=counts.device, dtype=torch.int64)
    there = counts > 0
    left = (torch.where(there, level, 255).amin(-1) - 1).clamp(min=0)
    right = (torch.where(there, level, 0).amax(-1) + 1).clamp(max=255)
    peak = 255 - (counts * 256 + (255 - level)).amax(-1) % 256
    turned = peak - left < right - peak
    counts = torch.where(turned[..., None], counts.flip(-1), counts)
    left, peak = torch.where(turned, 255 - right, left), torch.where(turned, 255 - peak, peak)
    left, peak = left[..., None], peak[..., None]
    distance = counts.amax(-1, keepdim=True) * level + (left - peak) * counts
    on_the_way = (level > left) & (level <= peak)
    distance = torch.where(on_the_way, distance, 0).clamp(min=0)
    best = (distance * 256 + (255 - level)).amax(-1)
    found = torch.where(best >= 256, 255 - best % 256, left[..., 0]) - 1
    return torch.where(turned, 255 - found, found)


def adaptive_threshold(
    image: Tensor, max_value: Tensor, c: Tensor, kernel_size: int, method: str, operation: str
) -> Tensor:
    x = image.float()
    if method == "mean":
        taps = (1.0,) * kernel_size
        total = correlate_along(correlate_along(x, taps, -1, "edge"), taps, -2, "edge")
        mean = divide(total.double(), kernel_size * kernel_size).round().float()
    else:
        weights = _gaussian_taps(kernel_size)
        mean = correlate_along(correlate_along(x, weights, -1, "edge"), weights, -2, "edge").round()
    top = parameter(max_value, image).round().clamp(0, 255)
    less = parameter(c.double().ceil() if operation == "binary" else c.double().floor(), image)
    above = x - mean > -less
    return finish(torch.where(above == (operation == "binary"), top, 0.0), image)


def _gaussian_taps(size: int) -> tuple[float, ...]:
    """Return ``cv2.getGaussianKernel`` for a size and the default sigma."""
    if size in SHORT_KERNELS:
        return tuple(v / 256 for v in SHORT_KERNELS[size])
    sigma = sigma_of(size)
    values = [2.718281828459045 ** (-0.5 * ((i - size // 2) / sigma) ** 2) for i in range(size)]
    return tuple(v / sum(values) for v in values)
