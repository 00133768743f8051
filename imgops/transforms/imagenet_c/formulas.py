"""The formulas of the corruptions of ImageNet-C: their random draws, and their effects on images.

A formula takes float images ``(..., 3, H, W)`` in [0, 1] and the numbers that were drawn for them, and
returns floats that may be outside of this range. The numbers are tensors with the leading dimensions of the
images, or Python numbers that all images share. The settings of the severities are those of Hendrycks and
Dietterich (2019), as in imagecorruptions 1.1.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

import imgops
from imgops.transforms._core.arguments import one_number
from imgops.transforms._core.probabilistic import as_reals

Numbers = tuple[Any, ...]


class Formula(NamedTuple):
    """A corruption: ``apply`` takes images, the settings of a severity, and the result of ``draw``."""

    settings: tuple[tuple[Any, ...], ...]
    apply: Callable[..., Tensor]
    draw: Callable[..., Numbers] | None = None
    #: Whether ``apply`` takes and returns levels instead of floats.
    on_levels: bool = False


# -- what is drawn -----------------------------------------------------------------------------------


def _like(image: Tensor, values: Tensor) -> Tensor:
    return values.to(image.device, image.dtype, non_blocking=True)


def _uniform(generator: torch.Generator, low: float, high: float) -> float:
    return float(torch.empty((), dtype=torch.float64, device="cpu").uniform_(low, high, generator=generator))


def _draw_normal(image: Tensor, generator: torch.Generator, *settings: Any) -> Numbers:
    return (_like(image, torch.randn(image.shape, generator=generator, dtype=torch.float32, device="cpu")),)


def _draw_counts(image: Tensor, generator: torch.Generator, photons: float) -> Numbers:
    """Count photons with a table of Poisson's distribution for each of 256 levels, also for floats."""
    share = torch.rand(image.shape, generator=generator, dtype=torch.float64, device="cpu")
    share = share.to(image.device, non_blocking=True)
    table = _poisson(photons).to(image.device, non_blocking=True)
    level = (image.detach() * 255).round().clamp(0, 255).to(torch.float64).nan_to_num()
    place = (level + share * (1 - 2**-39)).contiguous()
    return ((torch.searchsorted(table, place) - level.long() * (len(table) // 256)).to(image.dtype),)


@cache
def _poisson(photons: float) -> Tensor:
    """Return for each level the probabilities that there are at most 0, 1, ... photons, plus the level."""
    rate = torch.arange(256, dtype=torch.float64, device="cpu") * (photons / 255)
    most = math.ceil(photons + 12 * math.sqrt(photons) + 12)
    table = torch.special.gammaincc(
        torch.arange(1, most + 1, dtype=torch.float64, device="cpu"), rate[:, None]
    )
    rows = torch.arange(256, dtype=torch.float64, device="cpu")[:, None]
    return (table.clamp(max=1 - 2**-40) + rows).flatten()


def _draw_flips(image: Tensor, generator: torch.Generator, amount: float) -> Numbers:
    flipped, salt = (
        torch.rand(image.shape, generator=generator, dtype=torch.float64, device="cpu") for _ in range(2)
    )
    return tuple(x.to(image.device, non_blocking=True) for x in (flipped <= amount, salt <= 0.5))


def _draw_glass(image: Tensor, generator: torch.Generator, sigma: float, reach: int, times: int) -> Numbers:
    height, width = image.shape[-2:]
    rows, columns = max(height - 2 * reach, 0), max(width - 2 * reach, 0)
    moves = torch.randint(
        -reach, reach, (*image.shape[:-3], times, rows, columns, 2), generator=generator, device="cpu"
    )
    return (moves.to(image.device, non_blocking=True),)


def _draw_flakes(image: Tensor, generator: torch.Generator, *settings: Any) -> Numbers:
    return _draw_plane(image, generator)[0], _uniform(generator, -135, -45)


def _draw_plane(image: Tensor, generator: torch.Generator, *settings: Any) -> Numbers:
    shape = *image.shape[:-3], 1, *image.shape[-2:]
    return (_like(image, torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu")),)


def _draw_fog(image: Tensor, generator: torch.Generator, *settings: Any) -> Numbers:
    shape = *image.shape[:-3], _fog_side(image) ** 2 - 1
    return (_like(image, torch.rand(shape, generator=generator, dtype=torch.float32, device="cpu") * 2 - 1),)


def _draw_frost(image: Tensor, generator: torch.Generator, *settings: Any) -> Numbers:
    """Draw a picture, and the position in it as fractions of the largest offsets down and to the right."""
    return _uniform(generator, 0, 1), _uniform(generator, 0, 1), _uniform(generator, 0, 1)


def _draw_shifts(image: Tensor, generator: torch.Generator, *settings: Any) -> Numbers:
    shape = *image.shape[:-3], 2, *image.shape[-2:]
    return (_like(image, torch.rand(shape, generator=generator, dtype=torch.float32, device="cpu") * 2 - 1),)


# -- noise -------------------------------------------------------------------------------------------


def _shot_noise(x: Tensor, photons: float, counts: Tensor) -> Tensor:
    """Return the counted photons; the gradient is that of their mean, the image."""
    return counts / photons + (x - x.detach())  # in this order no digit of the counts is lost


# -- blurs -------------------------------------------------------------------------------------------


def _gaussian(
    x: Tensor, sigma: float | Sequence[float], padding_mode: str = "edge", reach: float = 4
) -> Tensor:
    """Blur with scipy's Gaussian, truncated at ``reach`` times sigma; there may be a sigma for each axis."""
    for axis, each in enumerate(sigma if isinstance(sigma, Sequence) else (sigma, sigma)):
        radius = int(reach * each + 0.5)
        weights = torch.exp(
            torch.arange(-radius, radius + 1, dtype=torch.float64, device="cpu") ** 2 * (-0.5 / each**2)
        )
        weights = weights / weights.sum()
        x = imgops.filter2d(x, weights[:, None] if axis == 0 else weights[None], padding_mode)
    return x


def _glass_blur(x: Tensor, sigma: float, reach: int, times: int, moves: Tensor) -> Tensor:
    x = _to_levels(_gaussian(x, sigma))
    lead, (channels, height, width) = x.shape[:-3], x.shape[-3:]
    place = torch.arange(height * width, device=x.device, dtype=torch.int64).expand(*lead, -1)
    for i in range(times):
        place = place.gather(-1, _moved(moves.select(-4, i), height, width, reach))
    pixels = x.flatten(-2).gather(-1, place.unsqueeze(-2).expand(*lead, channels, -1))
    return _gaussian(pixels.reshape(x.shape), sigma)


def _moved(moves: Tensor, height: int, width: int, reach: int) -> Tensor:
    """Return the source of each pixel after each pixel, from the last to the first, takes a neighbor's value.

    A neighbor that was changed earlier passes on its new value. So pixels point to other pixels; each step of
    pointer doubling follows the pointers twice as far, until they point to sources.
    """
    count, device = height * width, moves.device
    lead = moves.shape[:-3]
    pointer = torch.arange(2 * count, device=device, dtype=torch.int64).expand(*lead, -1).clone()
    # The new value of a pixel is at its index; its old value is ``count`` indices later, where pointers end.
    pointer[..., :count] += count
    rows = height - reach - torch.arange(moves.shape[-3], device=device, dtype=torch.int64)[:, None]
    columns = width - reach - torch.arange(moves.shape[-2], device=device, dtype=torch.int64)[None]
    dx, dy = moves.unbind(-1)
    y, x = rows + dy, columns + dx
    earlier = (dy > 0) | ((dy == 0) & (dx > 0))
    visited = (y > reach) & (y <= height - reach) & (x > reach) & (x <= width - reach)
    target = y * width + x + torch.where(earlier & visited, 0, count)
    own = (rows * width + columns).flatten()
    pointer = pointer.index_copy(-1, own, target.flatten(-2))
    for _ in range(max(own.numel(), 2).bit_length()):
        pointer = pointer.gather(-1, pointer)
    return pointer[..., :count] - count


def _defocus_blur(x: Tensor, radius: int, sigma: float) -> Tensor:
    # A disk with a blurred edge.
    reach = max(radius, 8)
    at = torch.arange(-reach, reach + 1, dtype=torch.int64, device="cpu") ** 2
    disk = (at[:, None] + at <= radius**2).float()
    disk = disk / disk.sum()
    return imgops.filter2d(x, imgops.gaussian_blur(disk[None], 3 if radius <= 8 else 5, sigma)[0], "reflect")


def _motion_blur(x: Tensor, radius: int, sigma: float, angle: float) -> Tensor:
    """Sum shifted images; pixels beyond the border repeat the border."""
    height, width = x.shape[-2:]
    count = 2 * radius + 1
    weights = torch.exp(torch.arange(count, dtype=torch.float64, device="cpu") ** 2 * (-0.5 / sigma**2))
    shares = (weights / weights.sum()).tolist()
    down, right = math.sin(math.radians(angle)), math.cos(math.radians(angle))
    shifts = []
    for i in range(count):
        dy, dx = (-math.ceil(i * part - 0.5) for part in (down, right))
        if abs(dy) >= height or abs(dx) >= width:
            break
        shifts.append((dy, dx))
    top, left = (max(s[axis] for s in shifts) for axis in (0, 1))
    bottom, end = (max(-s[axis] for s in shifts) for axis in (0, 1))
    top, left, bottom, end = (max(n, 0) for n in (top, left, bottom, end))
    wide = imgops.pad(x, [left, top, end, bottom], padding_mode="edge")
    total = torch.zeros_like(x)
    for share, (dy, dx) in zip(shares, shifts, strict=False):
        total = total + wide[..., top - dy : top - dy + height, left - dx : left - dx + width] * share
    return total


def _zoom_blur(x: Tensor, step: float, count: int) -> Tensor:
    total, exact = x, (1 + step) - 1  # NumPy's arange, whose last digits decide how sizes are rounded
    for i in range(count):
        total = total + _zoomed(x, 1 + i * exact)[..., : x.shape[-2], : x.shape[-1]]
    return total / (count + 1)


def _zoomed(x: Tensor, factor: float) -> Tensor:
    """Enlarge the center of images linearly; the result is as large as the images, or slightly larger."""
    height, width = x.shape[-2:]
    tall, wide = math.ceil(height / factor), math.ceil(width / factor)
    top, left = (height - tall) // 2, (width - wide) // 2
    middle = x[..., top : top + tall, left : left + wide]
    size = round(tall * factor), round(wide * factor)
    planes = middle.reshape(-1, 1, tall, wide)
    large = torch.nn.functional.interpolate(planes, size, mode="bilinear", align_corners=True)
    large = large.reshape(*x.shape[:-2], *size)
    # As in scipy, the last row and column are 0 if a rounded product places them outside.
    if size[0] > 1 and (tall - 1) / (size[0] - 1) * (size[0] - 1) > tall - 1:
        large = torch.cat([large[..., :-1, :], torch.zeros_like(large[..., -1:, :])], -2)
    if size[1] > 1 and (wide - 1) / (size[1] - 1) * (size[1] - 1) > wide - 1:
        large = torch.cat([large[..., :-1], torch.zeros_like(large[..., -1:])], -1)
    return large


# -- weather -----------------------------------------------------------------------------------------


def _snow(
    x: Tensor,
    mean: float,
    scale: float,
    zoom: float,
    least: float,
    radius: int,
    sigma: float,
    share: float,
    noise: Tensor,
    angle: float,
) -> Tensor:
    layer = _zoomed(noise * scale + mean, zoom)
    layer = torch.where(layer < least, 0, layer).clamp(0, 1)
    layer = (_motion_blur(layer, radius, sigma, angle) * 255).round() / 255
    layer = layer[..., : x.shape[-2], : x.shape[-1]]
    gray = imgops.cvt_color(x, "rgb2gray")
    x = x * share + torch.maximum(x, gray * 1.5 + 0.5) * (1 - share)
    return x + layer + layer.flip(-2, -1)


def _fog_side(image: Tensor) -> int:
    return 1 << (max(*image.shape[-2:], 3) - 1).bit_length()


def _fog(x: Tensor, density: float, decay: float, noise: Tensor) -> Tensor:
    height, width = x.shape[-2:]
    most = x.amax((-3, -2, -1), keepdim=True)
    clouds = plasma(noise, _fog_side(x), decay)[..., None, :height, :width]
    return (x + clouds * density) * most / (most + density)


def plasma(noise: Tensor, side: int, decay: float) -> Tensor:
    """Return a fractal ``(..., side, side)`` from 0 to 1, by the diamond-square algorithm.

    ``noise`` is ``(..., side * side - 1)``, in [-1, 1]: for each step the numbers of the squares, then those
    of the diamonds in rows, and those of the diamonds in columns.
    """
    lead, used, strength = noise.shape[:-1], 0, 100.0
    array = noise.new_zeros(*lead, 1, 1)

    def mean(total: Tensor) -> Tensor:
        nonlocal used
        own = noise[..., used : used + total.shape[-2] * total.shape[-1]]
        used += own.shape[-1]
        return total / 4 + own.reshape(total.shape) * (strength * strength)

    for _ in range(side.bit_length() - 1):
        rows = array + array.roll(-1, -2)
        squares = mean(rows + rows.roll(-1, -1))
        left = mean(squares + squares.roll(1, -2) + array + array.roll(-1, -1))
        top = mean(squares + squares.roll(1, -1) + array + array.roll(-1, -2))
        # The corners and the points to their right; then the points below them and the centers of the
        # squares.
        upper = torch.stack([array, left], -1).flatten(-2)
        lower = torch.stack([top, squares], -1).flatten(-2)
        array = torch.stack([upper, lower], -2).flatten(-3, -2)
        strength /= decay
    array = array - array.amin((-2, -1), keepdim=True)
    return array / array.amax((-2, -1), keepdim=True)


def _frost(
    x: Tensor,
    share: float,
    frost_share: float,
    which: float,
    down: float,
    right: float,
    pictures: Sequence[Tensor],
) -> Tensor:
    """Add a part of a picture ``(3, H, W)``, uint8; enlarge a picture that is smaller than the images."""
    height, width = x.shape[-2:]
    picture = pictures[min(int(which * len(pictures)), len(pictures) - 1)].to(x.device, non_blocking=True)
    own_height, own_width = picture.shape[-2:]
    factor = max(height / own_height, width / own_width, 1.0) * 1.1
    size = math.ceil(own_height * factor), math.ceil(own_width * factor)
    large = imgops.resize(picture, size, "bicubic", antialias=False)
    top, left = int(down * (size[0] - height)), int(right * (size[1] - width))
    part = large[..., top : top + height, left : left + width]
    return x * share + part.to(x.dtype) / 255 * frost_share


def _spatter(
    x: Tensor,
    mean: float,
    scale: float,
    sigma: float,
    least: float,
    strength: float,
    is_mud: int,
    noise: Tensor,
) -> Tensor:
    layer = _gaussian(noise * scale + mean, sigma)
    layer = torch.where(layer < least, 0, layer)
    if is_mud:
        mud = _gaussian((layer > least).to(x.dtype), strength)
        mud = torch.where(mud < 0.8, 0, mud)
        return x * (1 - mud) + _color((63, 42, 20), x) * mud
    drops = (layer * 255).to(torch.uint8)
    distance = imgops.distance_transform(255 - imgops.canny(drops, 50, 150))
    near = imgops.box_blur(distance.clamp(max=20), 3).to(torch.uint8)
    kernel = torch.tensor([[-2.0, -1, 0], [-1, 1, 1], [0, 1, 2]], dtype=torch.float32, device="cpu")
    shine = imgops.box_blur(imgops.filter2d(_equalized(near), kernel), 3)
    water = drops.to(x.dtype) * shine.to(x.dtype)
    most = water.amax((-2, -1), keepdim=True)
    water = water / torch.where(most > 0, most, 1) * strength
    return x + _color((175, 238, 238), x) * water


def _color(levels: tuple[int, int, int], x: Tensor) -> Tensor:
    return (torch.tensor(levels, dtype=x.dtype, device="cpu") / 255)[:, None, None].to(
        x.device, non_blocking=True
    )


def _equalized(image: Tensor) -> Tensor:
    """Equalize the histogram of levels as OpenCV does, without the pixels of the lowest level."""
    flat = image.flatten(-2).long()
    counts = torch.zeros(*flat.shape[:-1], 256, dtype=torch.int64, device=image.device)
    counts = counts.scatter_add(-1, flat, torch.ones_like(flat))
    lowest = flat.amin(-1, keepdim=True)
    rest = flat.shape[-1] - counts.gather(-1, lowest)
    total = counts.cumsum(-1) - counts.gather(-1, lowest)
    scale = 255 / torch.where(rest > 0, rest, 1).float()
    table = (total.float() * scale).round().clamp(0, 255)
    levels = torch.where(rest > 0, table.gather(-1, flat), flat.float())
    return levels.to(torch.uint8).reshape(image.shape)


# -- digital -----------------------------------------------------------------------------------------


def _brightness(x: Tensor, more: float) -> Tensor:
    hue, share, value = imgops.cvt_color(x, "rgb2hsv").unbind(-3)
    return imgops.cvt_color(torch.stack([hue, share, (value + more).clamp(0, 1)], -3), "hsv2rgb")


def _saturate(x: Tensor, factor: float, more: float) -> Tensor:
    hue, share, value = imgops.cvt_color(x, "rgb2hsv").unbind(-3)
    return imgops.cvt_color(torch.stack([hue, (share * factor + more).clamp(0, 1), value], -3), "hsv2rgb")


def _contrast(x: Tensor, factor: float) -> Tensor:
    means = x.mean((-2, -1), keepdim=True, dtype=torch.float64).to(x.dtype)  # the same in every memory format
    return (x - means) * factor + means


def _elastic_transform(x: Tensor, alpha: float, shifts: Tensor) -> Tensor:
    height, width = x.shape[-2:]
    shifts = _gaussian(shifts * (height * 0.005), (height * 0.01, width * 0.01), "symmetric", 3) * alpha
    columns = torch.arange(width, dtype=x.dtype, device=x.device).expand(height, width)
    rows = torch.arange(height, dtype=x.dtype, device=x.device)[:, None].expand(height, width)
    return imgops.remap(x, shifts + torch.stack([columns, rows]), "bilinear", "symmetric")


def _pixelate(x: Tensor, share: float) -> Tensor:
    height, width = x.shape[-2:]
    small = imgops.resize(x, (max(int(height * share), 1), max(int(width * share), 1)), "box")
    return imgops.resize(small, (height, width), "nearest")


def _to_levels(x: Tensor) -> Tensor:
    """Truncate to the 256 levels; the gradient is that of the identity."""
    return x + ((x.detach() * 255).trunc() / 255 - x.detach())


#: name -> formula, in the order of imagecorruptions; the last four are those for validation.
FORMULAS: dict[str, Formula] = {
    "gaussian_noise": Formula(
        tuple((s,) for s in (0.08, 0.12, 0.18, 0.26, 0.38)),
        lambda x, scale, noise: x + noise * scale,
        _draw_normal,
    ),
    "shot_noise": Formula(tuple((n,) for n in (60, 25, 12, 5, 3)), _shot_noise, _draw_counts),
    "impulse_noise": Formula(
        tuple((s,) for s in (0.03, 0.06, 0.09, 0.17, 0.27)),
        lambda x, _, flipped, salt: torch.where(flipped, salt.to(x.dtype), x),
        _draw_flips,
    ),
    "defocus_blur": Formula(((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)), _defocus_blur),
    "glass_blur": Formula(
        ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)), _glass_blur, _draw_glass
    ),
    "motion_blur": Formula(
        ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
        _motion_blur,
        lambda image, generator, *_: (_uniform(generator, -45, 45),),
    ),
    "zoom_blur": Formula(((0.01, 12), (0.01, 16), (0.02, 11), (0.02, 13), (0.03, 11)), _zoom_blur),
    "snow": Formula(
        (
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
        _snow,
        _draw_flakes,
    ),
    "frost": Formula(((1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75)), _frost, _draw_frost),
    "fog": Formula(((1.5, 2), (2.0, 2), (2.5, 1.7), (2.5, 1.5), (3.0, 1.4)), _fog, _draw_fog),
    "brightness": Formula(tuple((s,) for s in (0.1, 0.2, 0.3, 0.4, 0.5)), _brightness),
    "contrast": Formula(tuple((s,) for s in (0.4, 0.3, 0.2, 0.1, 0.05)), _contrast),
    "elastic_transform": Formula(
        tuple((250 * s,) for s in (0.05, 0.065, 0.085, 0.1, 0.12)), _elastic_transform, _draw_shifts
    ),
    "pixelate": Formula(tuple((s,) for s in (0.6, 0.5, 0.4, 0.3, 0.25)), _pixelate, on_levels=True),
    "jpeg_compression": Formula(tuple((q,) for q in (25, 18, 15, 10, 7)), imgops.jpeg, on_levels=True),
    "speckle_noise": Formula(
        tuple((s,) for s in (0.15, 0.2, 0.35, 0.45, 0.6)),
        lambda x, scale, noise: x + x * noise * scale,
        _draw_normal,
    ),
    "gaussian_blur": Formula(tuple((s,) for s in (1, 2, 3, 4, 6)), _gaussian),
    "spatter": Formula(
        (
            (0.65, 0.3, 4, 0.69, 0.6, 0),
            (0.65, 0.3, 3, 0.68, 0.6, 0),
            (0.65, 0.3, 2, 0.68, 0.5, 0),
            (0.65, 0.3, 1, 0.65, 1.5, 1),
            (0.67, 0.4, 1, 0.65, 1.5, 1),
        ),
        _spatter,
        _draw_plane,
    ),
    "saturate": Formula(((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)), _saturate),
}


def settings_of(name: str, severity: int) -> tuple[Any, ...]:
    """Return the settings of a severity, which a user may have changed after the constructor."""
    return FORMULAS[name].settings[one_number("Corruption", "severity", severity, 1, 5, whole=True) - 1]


def corrupted(name: str, severity: int, image: Tensor, numbers: Numbers) -> Tensor:
    """Return images, uint8 or floats in [0, 1], after a corruption with the numbers that were drawn for them.

    Results are clamped; as in imagecorruptions, levels are truncated.
    """
    formula, settings = FORMULAS[name], settings_of(name, severity)
    if formula.on_levels:  # computed by PIL, with levels as results
        out = formula.apply(image, *settings)
        return out if image.dtype == torch.uint8 else out.clamp(0, 1)
    out = formula.apply(as_reals(image), *settings, *numbers)
    if image.dtype == torch.uint8:
        return (out.clamp(0, 1) * 255).to(torch.uint8)
    return out.clamp(0, 1).to(image.dtype)
