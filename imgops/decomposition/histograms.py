"""Decompositions of autocontrast, equalize, clahe (with OpenCV's arithmetic) and match_histograms."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.decomposition._borders import widen
from imgops.decomposition._histograms import counts_of
from imgops.decomposition._precision import LEVELS, divide, finish, working_dtype
from imgops.decomposition.color_space import cvt_color


def clahe(image: Tensor, clip_limit: Tensor, tiles_x: int, tiles_y: int) -> Tensor:
    if image.shape[-3] == 3:
        # CLAHE of the L channel of LAB alone. Floats are computed in double precision: a lightness that is
        # rounded to another level in one of the implementations would change the lookup table of a whole
        # tile.
        lab, scale = image, 1
        if image.dtype != torch.uint8:
            lab, scale = image.double(), 100
        lab = cvt_color(lab, "rgb2lab")
        light = lab[..., :1, :, :]
        light = light if scale == 1 else divide(light, scale)
        light = clahe(light, clip_limit, tiles_x, tiles_y)
        light = light if scale == 1 else light * scale
        return finish(cvt_color(torch.slice_scatter(lab, light, -3, 0, 1), "lab2rgb"), image)
    levels, whole = 65536 if image.dtype == torch.uint16 else 256, not image.dtype.is_floating_point
    x = image.long() if whole else image.to(working_dtype(image)).nan_to_num().clamp(0, 1) * (levels - 1)
    height, width = image.shape[-2:]
    wide, high = _extend_size(width, height, tiles_x, tiles_y)
    at_level = x if whole else x.detach().round().long()
    table = _tables(_tiles(at_level, wide, high, tiles_x, tiles_y), clip_limit, levels, image.dtype)
    left, right, across = _between(width, wide, tiles_x, table)
    above, below, down = (v[:, None] for v in _between(height, high, tiles_y, table))
    lower = x if whole else x.detach().floor().long().clamp(max=levels - 2)

    def look_up(row: Tensor, column: Tensor) -> Tensor:
        """Return each pixel's new level by the lookup table of one tile."""
        at = ((row * tiles_x + column) * levels + lower).flatten(-2)
        value = table.gather(-1, at)
        if not whole:
            value = value + (table.gather(-1, at + 1) - value) * (x - lower).flatten(-2)
        return value.reshape(x.shape)

    upper = look_up(above, left) * (1 - across) + look_up(above, right) * across
    under = look_up(below, left) * (1 - across) + look_up(below, right) * across
    out = upper * (1 - down) + under * down
    if not whole:
        return finish(divide(out, levels - 1), image)
    return finish(out.round().clamp(0, levels - 1).long(), image)


def _extend_size(width: Any, height: Any, tiles_x: int, tiles_y: int) -> tuple[Any, Any]:
    """Return the width and height, both extended if one is no multiple of its tiles, as in OpenCV."""
    if width % tiles_x == 0 and height % tiles_y == 0:
        return width, height
    return width + tiles_x - width % tiles_x, height + tiles_y - height % tiles_y


def _tiles(x: Tensor, width: Any, height: Any, tiles_x: int, tiles_y: int) -> Tensor:
    """Split an image into tiles ``(..., tiles, pixels)``; reflect it where it is too small."""
    x = widen(x, (0, height - x.shape[-2], 0, width - x.shape[-1]), "reflect")
    x = x.unflatten(-1, (tiles_x, width // tiles_x)).unflatten(-3, (tiles_y, height // tiles_y))
    return x.transpose(-3, -2).flatten(-2).flatten(-3, -2)


def _tables(tiles: Tensor, clip_limit: Tensor, levels: int, dtype: torch.dtype) -> Tensor:
    """Return the lookup tables of all tiles, one after another; integer dtypes are rounded."""
    area = tiles.shape[-1]
    counts = counts_of(tiles, levels)
    limit = clip_limit.to(tiles.device, torch.float64)[..., None, None, None]
    most = torch.where(limit > 0, (limit * area / levels).trunc().clamp(min=1), area).long()
    kept = torch.minimum(counts, most)
    clipped = (counts - kept).sum(-1, keepdim=True)
    each = torch.div(clipped, levels, rounding_mode="floor")
    rest = clipped - each * levels
    step = torch.div(levels, rest.clamp(min=1), rounding_mode="floor").clamp(min=1)
    level = torch.arange(levels, device=tiles.device, dtype=torch.int64)
    one_more = (level % step == 0) & (torch.div(level, step, rounding_mode="floor") < rest)
    below = (kept + each + one_more).cumsum(-1)
    if dtype.is_floating_point:
        exact = torch.float64 if dtype == torch.float64 else torch.float32
        return divide(below.double() * (levels - 1), area).to(exact).flatten(-2)
    scale = divide(torch.full((), levels - 1, dtype=torch.float32, device=tiles.device), area)
    return (below.float() * scale).round().clamp(0, levels - 1).flatten(-2)


def _between(size: Any, extended: Any, tiles: int, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the tiles before and after each pixel, and the fraction of the way between their centers."""
    inverse = divide(torch.ones((), dtype=like.dtype, device=like.device), extended // tiles)
    at = torch.arange(size, dtype=like.dtype, device=like.device) * inverse - 0.5
    before = at.floor()
    first = before.long()
    return first.clamp(min=0), (first + 1).clamp(max=tiles - 1), at - before


def match_histograms(image: Tensor, reference: Tensor) -> Tensor:
    wide = torch.float64
    source, wanted = image.flatten(-2).to(wide), reference.flatten(-2).to(wide).sort(-1).values.contiguous()
    values = source.detach().contiguous()
    place = torch.searchsorted(values.sort(-1).values, values, right=True)
    share = divide(place.to(wide), source.shape[-1])
    known = wanted.detach()
    shares = divide(torch.searchsorted(known, known, right=True).to(wide), wanted.shape[-1])
    after = torch.searchsorted(shares, share).clamp(max=wanted.shape[-1] - 1)
    before = (after - 1).clamp(min=0)
    x0, x1, y0, y1 = (v.gather(-1, i) for v in (shares, wanted) for i in (before, after))
    slope = (y1 - y0) / torch.where(x1 > x0, x1 - x0, 1)
    out = torch.where((after == 0) | (share == x1), y1, slope * (share - x0) + y0)
    return finish(out.reshape(image.shape), image)


def autocontrast(image: Tensor) -> Tensor:
    if image.numel() == 0:
        return finish(image, image)
    if image.dtype == torch.uint16:
        return _autocontrast_of_16_bits(image)
    exact = torch.float64 if image.dtype == torch.uint8 else working_dtype(image)
    x = image.to(exact)
    low, high = x.amin((-2, -1), keepdim=True), x.amax((-2, -1), keepdim=True)
    flat = high <= low
    most = 255.0 if image.dtype == torch.uint8 else 1.0
    # A tensor of the number, because PyTorch rounds twice when it divides a number by a tensor.
    scale = torch.full_like(low, most) / torch.where(flat, 1, high - low)
    if image.dtype == torch.uint8:
        stretched = (x * scale + -low * scale).clamp(0, most).trunc()
    else:
        stretched = ((x - low) * scale).clamp(0, most)
    return finish(torch.where(flat, x, stretched), image)


def _autocontrast_of_16_bits(image: Tensor) -> Tensor:
    """Stretch levels in whole numbers, so that white is reached; torchvision rounds."""
    x, white = image.to(torch.int64), LEVELS[image.dtype]
    low, high = x.amin((-2, -1), keepdim=True), x.amax((-2, -1), keepdim=True)
    stretched = torch.div((x - low) * white, (high - low).clamp(min=1), rounding_mode="floor")
    return finish(torch.where(high <= low, x, stretched), image)


def equalize(image: Tensor) -> Tensor:
    if image.dtype == torch.uint16:
        return _equalize_16_bits(image)
    levels = image
    if image.dtype != torch.uint8:
        levels = (
            (image.detach().to(working_dtype(image)) * 255.999).nan_to_num().clamp(0, 255).to(torch.uint8)
        )
    size = image.shape[-2] * image.shape[-1]
    planes = levels.reshape(image.shape[:-2].numel(), size).to(torch.int64)
    counts = counts_of(planes, 256)
    # As in PIL, the highest level that occurs does not count, and a plane of a single level is not changed.
    last = planes.amax(1, keepdim=True) if planes.shape[1] else planes.new_zeros((planes.shape[0], 1))
    step = torch.div(counts.sum(1, keepdim=True) - counts.gather(1, last), 255, rounding_mode="floor")
    safe = step.clamp(min=1)
    before = counts.cumsum(1) - counts
    table = torch.div(before + torch.div(safe, 2, rounding_mode="floor"), safe, rounding_mode="floor")
    table = torch.where(
        step == 0, torch.arange(256, device=image.device, dtype=torch.int64), table.clamp(0, 255)
    )
    out = table.gather(1, planes).reshape(image.shape)
    if image.dtype == torch.uint8:
        return finish(out, image)
    return finish(divide(out.to(working_dtype(image)), 255), image)


def _equalize_16_bits(image: Tensor) -> Tensor:
    """Run ``cv2.equalizeHist`` with 65,536 levels, in whole numbers; PIL's step would often be 0."""
    white, size = LEVELS[image.dtype], image.shape[-2] * image.shape[-1]
    planes = image.reshape(image.shape[:-2].numel(), size).to(torch.int64)
    counts = counts_of(planes, white + 1)
    first = planes.amin(1, keepdim=True) if planes.shape[1] else planes.new_zeros((planes.shape[0], 1))
    darkest = counts.gather(1, first)
    rest = size - darkest
    above = counts.cumsum(1) - darkest
    table = torch.div(2 * white * above + rest, (2 * rest).clamp(min=1), rounding_mode="floor")
    out = torch.where(rest == 0, planes, table.clamp(0, white).gather(1, planes))
    return finish(out.reshape(image.shape), image)
