"""Decompositions of the operators that map single values: ``ImageOps`` on uint8, the same on floats."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops import _layout
from imgops.decomposition._histograms import counts_of
from imgops.decomposition._real import finished, parameter, working


def lut(image: Tensor, table: Tensor) -> Tensor:
    rows = table.to(image.device).expand(*image.shape[:-2], 256).reshape(-1, 256)
    planes = image.reshape(rows.shape[0], image.shape[-2] * image.shape[-1])
    out = rows.gather(1, planes.to(torch.int64)).reshape(image.shape)
    return _layout.in_format(out, _layout.is_interleaved(image))


def adjust_gamma(image: Tensor, gamma: Tensor, gain: Tensor) -> Tensor:
    if image.dtype == torch.uint8:
        level = torch.arange(256, dtype=torch.float64, device=image.device) / 255
        gamma, gain = (p.to(image.device, torch.float64).unsqueeze(-1) for p in (gamma, gain))
        table = (255.999 * gain * level.pow(gamma)).clamp(0, 255)
        return lut(image, table.to(torch.uint8).unsqueeze(-2))
    x = image.to(working(image))
    return finished((parameter(gain, image) * x.pow(parameter(gamma, image))).clamp(0, 1), image)


def posterize(image: Tensor, bits: Tensor) -> Tensor:
    levels = torch.pow(2, bits.to(image.device).clamp(0, 8).to(torch.int64))[..., None, None, None]
    if image.dtype == torch.uint8:
        step = torch.div(256, levels, rounding_mode="floor")
        return finished(image.to(torch.int64) - torch.remainder(image.to(torch.int64), step), image)
    x = image.to(working(image))
    levels = levels.to(x.dtype)
    return finished((x * levels).floor().clamp(min=0).minimum(levels - 1) / levels, image)


def solarize(image: Tensor, threshold: Tensor) -> Tensor:
    x = image.to(working(image))
    bright = x >= parameter(threshold, image)
    return finished(torch.where(bright, (255 if image.dtype == torch.uint8 else 1) - x, x), image)


def autocontrast(image: Tensor) -> Tensor:
    if image.numel() == 0:
        return finished(image, image)
    exact = torch.float64 if image.dtype == torch.uint8 else working(image)
    x = image.to(exact)
    low, high = x.amin((-2, -1), keepdim=True), x.amax((-2, -1), keepdim=True)
    flat = high <= low
    most = 255.0 if image.dtype == torch.uint8 else 1.0
    # (PyTorch divides a number by a tensor in two roundings.)
    scale = torch.full_like(low, most) / torch.where(flat, 1, high - low)
    if image.dtype == torch.uint8:
        stretched = (x * scale + -low * scale).clamp(0, most).trunc()
    else:
        stretched = ((x - low) * scale).clamp(0, most)
    return finished(torch.where(flat, x, stretched), image)


def equalize(image: Tensor) -> Tensor:
    levels = image
    if image.dtype != torch.uint8:
        levels = (image.detach().to(working(image)) * 255.999).nan_to_num().clamp(0, 255).to(torch.uint8)
    size = image.shape[-2] * image.shape[-1]
    planes = levels.reshape(image.shape[:-2].numel(), size).to(torch.int64)
    counts = counts_of(planes, 256)
    # PIL: the last level that occurs does not count, and one level is left alone.
    last = planes.amax(1, keepdim=True) if planes.shape[1] else planes.new_zeros((planes.shape[0], 1))
    step = torch.div(counts.sum(1, keepdim=True) - counts.gather(1, last), 255, rounding_mode="floor")
    safe = step.clamp(min=1)
    before = counts.cumsum(1) - counts
    table = torch.div(before + torch.div(safe, 2, rounding_mode="floor"), safe, rounding_mode="floor")
    table = torch.where(step == 0, torch.arange(256, device=image.device), table.clamp(0, 255))
    out = table.gather(1, planes).reshape(image.shape)
    if image.dtype == torch.uint8:
        return finished(out, image)
    return finished(out.to(working(image)) / 255, image)


def invert(image: Tensor) -> Tensor:
    return image.bitwise_not() if image.dtype == torch.uint8 else 1 - image
