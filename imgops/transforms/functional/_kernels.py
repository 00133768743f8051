"""torchvision's functionals on tensors ``(..., C, H, W)``, made of imgops' operators.

Names, arguments and defaults are torchvision's. Where torchvision takes a number, a tensor of one number a
sample is taken too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode

import imgops
from imgops.transforms import _torchvision
from imgops.transforms.functional import _matrices

Interpolation = Any  # an InterpolationMode, its name, or PIL's number
Fill = int | float | Sequence[int] | Sequence[float] | Tensor | None

_PLAIN = ("nearest", "bilinear", "bicubic")


def _name(interpolation: Interpolation) -> str:
    return str(_torchvision.interpolation_mode(interpolation).value)


def _how(interpolation: Interpolation, antialias: bool | None) -> tuple[str, bool]:
    """ "nearest" is OpenCV's, "nearest-exact" PIL's; the last three filters are PIL's alone."""
    name = _name(interpolation)
    if name == "nearest":
        return "nearest", False
    if name == "nearest-exact":
        return "nearest", True
    return name, bool(antialias) or name not in _PLAIN


def _sampling(op: str, interpolation: Interpolation) -> str:
    name = _name(interpolation)
    if name not in _PLAIN:
        raise ValueError(f"{op}: interpolation must be nearest, bilinear or bicubic, got {name}")
    return name


def _color(fill: Fill) -> Any:
    if fill is None:
        return 0
    if isinstance(fill, (list, tuple)) and len(fill) == 1:
        return fill[0]
    return fill


def resize(
    image: Tensor,
    size: Sequence[int] | int | None,
    interpolation: Interpolation = InterpolationMode.BILINEAR,
    max_size: int | None = None,
    antialias: bool | None = True,
) -> Tensor:
    height, width = image.shape[-2:]
    size = _torchvision.resized_size((height, width), size, max_size)
    if (height, width) == tuple(size):
        return image
    name, smooth = _how(interpolation, antialias)
    return imgops.resize(_numbers(image, name), tuple(size), name, antialias=smooth).to(image.dtype)


def _numbers(image: Tensor, name: str) -> Tensor:
    """What cannot be interpolated is resized in float32, as torchvision does."""
    if name == "nearest" or image.dtype == torch.uint8 or image.dtype.is_floating_point:
        return image
    return image.float()


def crop(image: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    return imgops.crop(image, (left, top, left + width, top + height))


def center_crop(image: Tensor, output_size: Sequence[int] | int) -> Tensor:
    height, width = (
        (output_size, output_size) if isinstance(output_size, int) else (*output_size, *output_size)[:2]
    )
    left, top = _centered(image.shape[-1], width), _centered(image.shape[-2], height)
    return imgops.crop(image, (left, top, left + width, top + height))


def _centered(size: int, wanted: int) -> int:
    """torchvision pads what is too small, the odd pixel last, and crops what is too large, rounding."""
    if wanted > size:
        return -((wanted - size) // 2)
    return round((size - wanted) / 2.0)


def resized_crop(
    image: Tensor,
    top: int,
    left: int,
    height: int,
    width: int,
    size: Sequence[int],
    interpolation: Interpolation = InterpolationMode.BILINEAR,
    antialias: bool | None = True,
) -> Tensor:
    box = left, top, left + width, top + height
    if left < 0 or top < 0 or box[2] > image.shape[-1] or box[3] > image.shape[-2]:
        return resize(imgops.crop(image, box), size, interpolation, antialias=antialias)
    wanted = _torchvision.resized_size((height, width), size, None)
    return crop_boxes(image, torch.tensor(box), wanted, interpolation, antialias)


def crop_boxes(
    image: Tensor, boxes: Tensor, size: Sequence[int], interpolation: Interpolation, antialias: bool | None
) -> Tensor:
    """``resized_crop`` with boxes ``(..., 4)``: left, top, right, bottom."""
    name, smooth = _how(interpolation, antialias)
    out = imgops.resized_crop(_numbers(image, name), boxes, tuple(size), name, antialias=smooth)
    return out.to(image.dtype)


def pad(
    image: Tensor, padding: Sequence[int] | int, fill: Fill = None, padding_mode: str = "constant"
) -> Tensor:
    sides = padding[0] if isinstance(padding, (list, tuple)) and len(padding) == 1 else padding
    return imgops.pad(image, sides, padding_mode, _color(fill))


def horizontal_flip(image: Tensor) -> Tensor:
    return image.flip(-1)


def vertical_flip(image: Tensor) -> Tensor:
    return image.flip(-2)


def affine(
    image: Tensor,
    angle: float | Tensor,
    translate: Sequence[float | Tensor],
    scale: float | Tensor,
    shear: Sequence[float | Tensor] | float,
    interpolation: Interpolation = InterpolationMode.NEAREST,
    fill: Fill = None,
    center: Sequence[float] | None = None,
) -> Tensor:
    shear = _torchvision.two_shears(shear)
    matrix = _matrices.affine(angle, translate, scale, shear, center, *image.shape[-2:])
    return warp(image, matrix, interpolation, fill)


def warp(image: Tensor, matrix: Tensor, interpolation: Interpolation, fill: Fill, size: Any = None) -> Tensor:
    name = _sampling("affine", interpolation)
    return imgops.warp_affine(_numbers(image, name), matrix, size, name, "constant", _color(fill)).to(
        image.dtype
    )


def rotate(
    image: Tensor,
    angle: float | Tensor,
    interpolation: Interpolation = InterpolationMode.NEAREST,
    expand: bool = False,
    center: Sequence[float] | None = None,
    fill: Fill = None,
) -> Tensor:
    height, width = image.shape[-2:]
    if center is not None and expand:
        center = None  # torchvision ignores it, with a warning
    matrix = _matrices.affine(-angle, (0.0, 0.0), 1.0, (0.0, 0.0), center, height, width)
    size = None
    if expand:
        wide, high = _torchvision.rotated_size(float(angle), height, width)
        moved = torch.tensor([(wide - width) / 2, (high - height) / 2], dtype=torch.float64)
        matrix, size = torch.cat([matrix[:, :2], matrix[:, 2:] + moved[:, None]], 1), (high, wide)
    return warp(image, matrix, interpolation, fill, size)


def perspective(
    image: Tensor,
    startpoints: Sequence[Sequence[int]] | None,
    endpoints: Sequence[Sequence[int]] | Tensor | None,
    interpolation: Interpolation = InterpolationMode.BILINEAR,
    fill: Fill = None,
    coefficients: Sequence[float] | None = None,
) -> Tensor:
    return warp_corners(
        image, _matrices.perspective(startpoints, endpoints, coefficients), interpolation, fill
    )


def warp_corners(image: Tensor, matrix: Tensor, interpolation: Interpolation, fill: Fill) -> Tensor:
    name = _sampling("perspective", interpolation)
    numbers = _numbers(image, name)
    return imgops.warp_perspective(numbers, matrix, None, name, "constant", _color(fill)).to(image.dtype)


def adjust_brightness(image: Tensor, brightness_factor: float | Tensor) -> Tensor:
    return imgops.adjust_brightness(image, _not_negative("brightness_factor", brightness_factor))


def adjust_contrast(image: Tensor, contrast_factor: float | Tensor) -> Tensor:
    return imgops.adjust_contrast(image, _not_negative("contrast_factor", contrast_factor))


def adjust_saturation(image: Tensor, saturation_factor: float | Tensor) -> Tensor:
    return imgops.adjust_saturation(image, _not_negative("saturation_factor", saturation_factor))


def adjust_sharpness(image: Tensor, sharpness_factor: float | Tensor) -> Tensor:
    return imgops.adjust_sharpness(image, _not_negative("sharpness_factor", sharpness_factor))


def _not_negative(name: str, value: float | Tensor) -> float | Tensor:
    if not isinstance(value, Tensor) and value < 0:
        raise ValueError(f"{name} ({value}) is not non-negative.")
    return value


def adjust_hue(image: Tensor, hue_factor: float | Tensor) -> Tensor:
    if not isinstance(hue_factor, Tensor) and not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    return imgops.adjust_hue(image, hue_factor)


def adjust_gamma(image: Tensor, gamma: float | Tensor, gain: float | Tensor = 1) -> Tensor:
    return imgops.adjust_gamma(image, _not_negative("gamma", gamma), gain)


def rgb_to_grayscale(image: Tensor, num_output_channels: int = 1) -> Tensor:
    return imgops.grayscale(image, num_output_channels)


to_grayscale = rgb_to_grayscale


def invert(image: Tensor) -> Tensor:
    return imgops.invert(image)


def posterize(image: Tensor, bits: int | Tensor) -> Tensor:
    return imgops.posterize(image, bits)


def solarize(image: Tensor, threshold: float | Tensor) -> Tensor:
    return imgops.solarize(image, threshold)


def autocontrast(image: Tensor) -> Tensor:
    return imgops.autocontrast(image)


def equalize(image: Tensor) -> Tensor:
    return imgops.equalize(image)


def gaussian_blur(image: Tensor, kernel_size: Sequence[int] | int, sigma: Any = None) -> Tensor:
    sizes = (kernel_size, kernel_size) if isinstance(kernel_size, int) else tuple(kernel_size)
    if isinstance(sigma, (list, tuple)) and len(sigma) == 1:
        sigma = sigma[0]
    values = (
        []
        if sigma is None or isinstance(sigma, Tensor)
        else [sigma]
        if isinstance(sigma, (int, float))
        else sigma
    )
    for value in values:
        if value <= 0.0:
            raise ValueError(f"sigma should have positive values. Got {sigma}")
    return imgops.gaussian_blur(image, sizes, sigma)


def erase(image: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Tensor:
    if v.shape[-2:] == (h, w) and v.shape[-2:] != (1, 1):
        source = v.to(image.dtype).expand(*image.shape[:-2], h, w)
        return imgops.paste_(image, source, (j, i)) if inplace else imgops.paste(image, source, (j, i))
    color = v.to(image.dtype).expand(*image.shape[:-2], h, w)
    return imgops.paste_(image, color, (j, i)) if inplace else imgops.paste(image, color, (j, i))
