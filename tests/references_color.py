"""What PIL and OpenCV make of one image ``(C, H, W)``, for the operators of color and levels."""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor


def to_pil(image: Tensor) -> Image.Image:
    if image.shape[0] == 1:
        return Image.fromarray(image[0].numpy())
    return Image.fromarray(image.permute(1, 2, 0).contiguous().numpy())


def of_pil(image: Image.Image) -> Tensor:
    array = torch.from_numpy(np.array(image))
    return array[None] if array.ndim == 2 else array.permute(2, 0, 1)


def by_plane(image: Tensor, function: Callable[[Image.Image], Image.Image]) -> Tensor:
    return torch.cat([of_pil(function(to_pil(plane[None]))) for plane in image])


def _enhanced(name: str) -> Callable[[Tensor, float], Tensor]:
    def reference(image: Tensor, factor: float) -> Tensor:
        return of_pil(getattr(ImageEnhance, name)(to_pil(image)).enhance(factor))

    return reference


adjust_brightness, adjust_contrast, adjust_saturation = map(_enhanced, ("Brightness", "Contrast", "Color"))


def grayscale(image: Tensor, channels: int = 1) -> Tensor:
    return of_pil(to_pil(image).convert("L")).expand(channels, -1, -1)


def posterize(image: Tensor, bits: int) -> Tensor:
    return by_plane(image, lambda p: ImageOps.posterize(p, int(bits)))


def solarize(image: Tensor, threshold: float) -> Tensor:
    return by_plane(image, lambda p: ImageOps.solarize(p, threshold))


def invert(image: Tensor) -> Tensor:
    return by_plane(image, ImageOps.invert)


def autocontrast(image: Tensor) -> Tensor:
    return by_plane(image, ImageOps.autocontrast)


def equalize(image: Tensor) -> Tensor:
    return by_plane(image, ImageOps.equalize)


def adjust_gamma(image: Tensor, gamma: float, gain: float = 1) -> Tensor:
    table = [int((255 + 1 - 1e-3) * gain * pow(level / 255.0, gamma)) for level in range(256)]
    return by_plane(image, lambda p: p.point(table))


def lut(image: Tensor, table: Tensor) -> Tensor:
    rows = table.detach().reshape(-1, 256).expand(image.shape[0], 256)
    if table.dtype == torch.int64:  # OpenCV has no such table
        return torch.stack([row[plane.long()] for row, plane in zip(rows, image)])
    return torch.stack([torch.from_numpy(cv2.LUT(p.numpy(), r.numpy())) for p, r in zip(image, rows)])


def color_matrix(image: Tensor, matrix: Tensor) -> Tensor:
    frame = image.permute(1, 2, 0).contiguous().numpy()
    out = cv2.transform(frame, matrix.detach().numpy())
    return torch.from_numpy(out.reshape(*out.shape[:2], -1)).permute(2, 0, 1)


def color_sequence(image: Tensor, order: Tensor, amounts: Tensor, names: str) -> Tensor:
    steps = names.split(",")
    for which in order.tolist():
        if which >= 0:
            name = steps[which]
            amount = () if name in ("invert", "autocontrast", "equalize") else (float(amounts[which]),)
            prefix = "adjust_" if name in ("brightness", "contrast", "saturation", "hue") else ""
            image = globals()[prefix + name](image, *amount)
    return image


def adjust_hue(image: Tensor, factor: float) -> Tensor:
    """Python's own HSV, pixel by pixel; a float image is rounded to uint8 as torchvision rounds it."""
    if image.shape[0] == 1:
        return image
    unit = image.double() / (255 if image.dtype == torch.uint8 else 1)
    out = torch.empty_like(unit)
    for y in range(image.shape[1]):
        for x in range(image.shape[2]):
            h, s, v = colorsys.rgb_to_hsv(*unit[:, y, x].tolist())
            out[:, y, x] = torch.tensor(colorsys.hsv_to_rgb((h + factor) % 1.0, s, v), dtype=torch.float64)
    return (out * 255.999).to(torch.uint8) if image.dtype == torch.uint8 else out.to(image.dtype)


# -- floats, in real numbers, by NumPy -----------------------------------------------------------


def _luma(x: np.ndarray) -> np.ndarray:
    return x if len(x) == 1 else np.tensordot([0.299, 0.587, 0.114], x, 1)[None]


def _mixed(start: Any, end: np.ndarray, factor: float) -> np.ndarray:
    return np.clip(start + factor * (end - start), 0, 1)


def _equal_levels(x: np.ndarray) -> np.ndarray:
    return equalize(torch.from_numpy((x * 255.999).astype(np.uint8))).numpy() / 255.0


def _stretched(x: np.ndarray) -> np.ndarray:
    low, high = x.min((1, 2), keepdims=True), x.max((1, 2), keepdims=True)
    return np.where(high > low, (x - low) / np.where(high > low, high - low, 1), x)


REAL: dict[str, Callable[..., Any]] = {
    "adjust_brightness": lambda x, f: _mixed(0, x, f),
    "adjust_contrast": lambda x, f: _mixed(_luma(x).mean(), x, f),
    "adjust_saturation": lambda x, f: _mixed(_luma(x), x, f),
    "adjust_hue": lambda x, f: adjust_hue(torch.from_numpy(x), f).numpy(),
    "grayscale": lambda x, channels=1: np.repeat(_luma(x), channels, 0),
    "color_matrix": lambda x, m: np.tensordot(m[:, : len(x)], x, 1) + m[:, len(x) :].sum(1)[:, None, None],
    "posterize": lambda x, bits: (
        np.clip(np.floor(x * 2 ** int(bits)), 0, 2 ** int(bits) - 1) / 2 ** int(bits)
    ),
    "solarize": lambda x, threshold: np.where(x >= threshold, 1 - x, x),
    "invert": lambda x: 1 - x,
    "autocontrast": _stretched,
    "equalize": _equal_levels,
    "adjust_gamma": lambda x, gamma, gain=1: np.clip(gain * x**gamma, 0, 1),
}


def real(op: str, image: Tensor, *args: Any) -> Tensor:
    x = image.double().numpy()
    if op == "color_sequence":
        order, amounts, names = args
        steps = names.split(",")
        for which in order.tolist():
            if which >= 0:
                name = steps[which]
                amount = () if name in ("invert", "autocontrast", "equalize") else (float(amounts[which]),)
                prefix = "adjust_" if name in ("brightness", "contrast", "saturation", "hue") else ""
                x = REAL[prefix + name](x, *amount)
        return torch.from_numpy(np.ascontiguousarray(x))
    plain = [a.detach().double().numpy() if isinstance(a, Tensor) else a for a in args]
    return torch.from_numpy(np.ascontiguousarray(REAL[op](x, *plain)))
