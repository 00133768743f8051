"""torchvision's functionals of color, blur, erasing and JPEG, by imgops' operators.

Names, arguments and defaults are torchvision's. Where torchvision takes a number, these functions also accept
a tensor of one number per sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

import imgops
from imgops._packed import PackedImages
from imgops._torch_private import raise_error


def adjust_brightness(image: Tensor, brightness_factor: float | Tensor) -> Tensor:
    require_one_or_three("adjust_brightness", image)
    return imgops.adjust_brightness(image, require_not_negative("brightness_factor", brightness_factor))


def adjust_contrast(image: Tensor, contrast_factor: float | Tensor) -> Tensor:
    require_one_or_three("adjust_contrast", image)
    return imgops.adjust_contrast(image, require_not_negative("contrast_factor", contrast_factor))


def adjust_saturation(image: Tensor, saturation_factor: float | Tensor) -> Tensor:
    require_one_or_three("adjust_saturation", image)
    return imgops.adjust_saturation(image, require_not_negative("saturation_factor", saturation_factor))


def adjust_sharpness(image: Tensor, sharpness_factor: float | Tensor) -> Tensor:
    require_one_or_three("adjust_sharpness", image)
    return imgops.adjust_sharpness(image, require_not_negative("sharpness_factor", sharpness_factor))


def require_not_negative(name: str, value: float | Tensor) -> float | Tensor:
    if not isinstance(value, Tensor) and value < 0:
        raise_error(ValueError, f"{name} ({value}) is not non-negative.")
    return value


def require_one_or_three(op: str, image: Tensor | PackedImages) -> None:
    channels = image.num_channels if isinstance(image, PackedImages) else image.shape[-3]
    if channels not in (1, 3):
        raise_error(TypeError, f"{op}: image must have 1 or 3 channels, got {channels}")


def adjust_hue(image: Tensor, hue_factor: float | Tensor) -> Tensor:
    if not isinstance(hue_factor, Tensor) and not -0.5 <= hue_factor <= 0.5:
        raise_error(ValueError, f"hue_factor ({hue_factor}) is not in [-0.5, 0.5].")
    require_one_or_three("adjust_hue", image)
    return imgops.adjust_hue(image, hue_factor)


def adjust_gamma(image: Tensor, gamma: float | Tensor, gain: float | Tensor = 1) -> Tensor:
    return imgops.adjust_gamma(image, require_not_negative("gamma", gamma), gain)


def rgb_to_grayscale(image: Tensor, num_output_channels: int = 1) -> Tensor:
    if num_output_channels not in (1, 3):
        must = "rgb_to_grayscale: num_output_channels must be 1 or 3"
        raise_error(ValueError, f"{must}, got {num_output_channels}")
    return imgops.grayscale(image, num_output_channels)


def grayscale_to_rgb(image: Tensor) -> Tensor:
    return image if image.shape[-3] >= 3 else imgops.grayscale(image, 3)


def permute_channels(image: Tensor, permutation: Sequence[int] | Tensor) -> Tensor:
    if len(permutation) != image.shape[-3]:
        must = f"permutation must have {image.shape[-3]} numbers, one for each channel"
        raise_error(ValueError, f"permute_channels: {must}, got {len(permutation)}")
    place = None if isinstance(permutation, Tensor) else "cpu"
    order = torch.as_tensor(permutation, dtype=torch.int64, device=place)
    return image.index_select(-3, order.to(image.device, non_blocking=True))


def invert(image: Tensor) -> Tensor:
    return imgops.invert(image)


def posterize(image: Tensor, bits: int | Tensor) -> Tensor:
    require_bits(bits)
    return imgops.posterize(image, bits)


def require_bits(bits: int | Tensor) -> None:
    if not isinstance(bits, Tensor) and not (isinstance(bits, int) and 0 <= bits <= 8):
        raise_error(TypeError, f"posterize: bits must be an integer in [0, 8], got {bits}")


def solarize(image: Tensor, threshold: float | Tensor) -> Tensor:
    require_threshold(image, threshold)
    return imgops.solarize(image, threshold)


def white_of(image: Tensor | PackedImages) -> int:
    return 255 if image.dtype == torch.uint8 else 1


def require_threshold(image: Tensor | PackedImages, threshold: float | Tensor) -> None:
    most = white_of(image)
    if not isinstance(threshold, Tensor) and threshold > most:
        must = f"solarize: threshold must be at most {most} for {image.dtype}"
        raise_error(TypeError, f"{must}, got {threshold}")


def autocontrast(image: Tensor) -> Tensor:
    require_one_or_three("autocontrast", image)
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
            raise_error(ValueError, f"sigma should have positive values. Got {sigma}")
    if sigma is None:  # OpenCV has tables of its own for small kernels
        sigma = [0.15 * size + 0.35 for size in sizes]
    return imgops.gaussian_blur(image, sizes, sigma)


def erase(image: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Tensor:
    value = v if isinstance(v, Tensor) else torch.as_tensor(v, dtype=image.dtype, device=image.device)
    source = value.to(image.dtype).expand(*image.shape[:-2], h, w)
    return imgops.paste_(image, source, (j, i)) if inplace else imgops.paste(image, source, (j, i))


def jpeg(image: Tensor, quality: int | Tensor) -> Tensor:
    return imgops.jpeg(image, quality)


#: The functionals that only copy pixels, and so accept any dtype.
OF_ANY_DTYPE = ("permute_channels", "erase")
