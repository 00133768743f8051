"""Color, filters and warps: the columns of each operator, as in cases.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import kornia.enhance as enhance
import kornia.filters as filters
import kornia.geometry.transform as geometry
import numpy as np
import torch
import torchvision.transforms.v2.functional as v2
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor
from torchvision.transforms import InterpolationMode

import imgops

#: What the raw call is.
RAW = {
    "brightness": "PIL.ImageEnhance.Brightness (uint8), NumPy (float32)",
    "contrast": "PIL.ImageEnhance.Contrast (uint8)",
    "saturation": "PIL.ImageEnhance.Color (uint8)",
    "hue": "none",
    "gamma": "cv2.LUT (uint8)",
    "posterize": "PIL.ImageOps.posterize (uint8)",
    "solarize": "PIL.ImageOps.solarize (uint8)",
    "autocontrast": "PIL.ImageOps.autocontrast (uint8)",
    "equalize": "PIL.ImageOps.equalize (uint8)",
    "invert": "cv2.bitwise_not (uint8), cv2.subtract (float32)",
    "grayscale": "PIL.Image.convert (uint8)",
    "matrix": "cv2.transform of HWC",
    "blur": "cv2.GaussianBlur, 9 x 9",
    "filter2d": "cv2.filter2D, 5 x 5",
    "sharpness": "PIL.ImageEnhance.Sharpness (uint8)",
    "affine nearest": "cv2.warpAffine",
    "affine bilinear": "cv2.warpAffine",
    "perspective": "cv2.warpPerspective",
    "remap": "cv2.remap",
    "crop-resize": "PIL crop and resize (uint8)",
    "erase": "NumPy slice",
    "blend": "cv2.addWeighted",
    "flip": "cv2.flip",
}
OPERATORS = tuple(RAW)

_MATRIX = np.array([[0.9, -0.2, 40.0], [0.15, 0.95, -20.0]])
_TILT = np.array([[0.9, -0.2, 40.0], [0.15, 0.95, -20.0], [1e-4, 5e-5, 1.0]])


def columns(
    operator: str, x: Tensor, arrays: list[np.ndarray], picture: Image.Image | None
) -> tuple[Any, ...]:
    """``arrays``: planes, or HWC frames; ``picture``: the same for PIL, where it is uint8."""
    return _make(operator.split()[0], operator, x, arrays, picture)


def _float(x: Tensor, call: Callable[[Tensor], Tensor]) -> Callable[[], Any]:
    """kornia works on batches of floats: uint8 goes there and back."""
    four = x if x.ndim == 4 else x[None]
    if x.dtype != torch.uint8:
        return lambda: call(four)
    return lambda: call(four.float() / 255).mul(255).clamp(0, 255).to(torch.uint8)


def _make(
    name: str, operator: str, x: Tensor, arrays: list[np.ndarray], picture: Image.Image | None
) -> tuple[Any, ...]:
    size = x.shape[-1]
    pil = lambda f: None if picture is None else lambda: f(picture)
    matrix, tilt = torch.from_numpy(_MATRIX), torch.from_numpy(_TILT)
    if name in ("brightness", "contrast", "saturation", "sharpness"):
        ours, theirs = getattr(imgops, f"adjust_{name}"), getattr(v2, f"adjust_{name}")
        pils = {"saturation": "Color"}.get(name, name.title())
        raw = pil(lambda p: getattr(ImageEnhance, pils)(p).enhance(1.3))
        k = {
            "brightness": lambda y: enhance.adjust_brightness(y, 1.3),
            "contrast": lambda y: enhance.adjust_contrast(y, 1.3),
            "saturation": lambda y: enhance.adjust_saturation(y, 1.3),
            "sharpness": lambda y: enhance.sharpness(y, 1.3),
        }[name]
        return lambda: ours(x, 1.3), raw, lambda: theirs(x, 1.3), _float(x, k)
    if name == "hue":
        return (
            lambda: imgops.adjust_hue(x, 0.1),
            None,
            lambda: v2.adjust_hue(x, 0.1),
            _float(x, lambda y: enhance.adjust_hue(y, 0.6)),
        )
    if name == "gamma":
        table = (255 * (np.arange(256) / 255) ** 1.7).astype(np.uint8)
        raw = (lambda: [cv2.LUT(a, table) for a in arrays]) if x.dtype == torch.uint8 else None
        return (
            lambda: imgops.adjust_gamma(x, 1.7),
            raw,
            lambda: v2.adjust_gamma(x, 1.7),
            _float(x, lambda y: enhance.adjust_gamma(y, 1.7)),
        )
    if name == "posterize":
        return (
            lambda: imgops.posterize(x, 4),
            pil(lambda p: ImageOps.posterize(p, 4)),
            lambda: v2.posterize(x, 4),
            _float(x, lambda y: enhance.posterize(y, 4)),
        )
    if name == "solarize":
        at = 128 if x.dtype == torch.uint8 else 0.5
        return (
            lambda: imgops.solarize(x, at),
            pil(lambda p: ImageOps.solarize(p, 128)),
            lambda: v2.solarize(x, at),
            _float(x, lambda y: enhance.solarize(y, 0.5)),
        )
    if name in ("autocontrast", "equalize"):
        k = {"equalize": lambda y: enhance.equalize(y)}.get(name)
        return (
            lambda: getattr(imgops, name)(x),
            pil(getattr(ImageOps, name)),
            lambda: getattr(v2, name)(x),
            _float(x, k) if k else None,
        )
    if name == "invert":
        one = np.float32(1)
        raw = (
            (lambda: [cv2.bitwise_not(a) for a in arrays])
            if x.dtype == torch.uint8
            else (lambda: [one - a for a in arrays])
        )
        return lambda: imgops.invert(x), raw, lambda: v2.invert(x), _float(x, lambda y: enhance.invert(y))
    if name == "grayscale":
        import kornia.color as color

        return (
            lambda: imgops.grayscale(x),
            pil(lambda p: p.convert("L")),
            lambda: v2.rgb_to_grayscale(x),
            _float(x, color.rgb_to_grayscale),
        )
    if name == "matrix":
        mix = np.array([[0.4, 0.3, 0.2], [0.1, 0.8, 0.1], [0.0, 0.3, 0.6]])
        m = torch.from_numpy(mix)
        frame = np.ascontiguousarray(x.permute(1, 2, 0).numpy())
        return lambda: imgops.color_matrix(x, m), lambda: cv2.transform(frame, mix), None, None
    if name == "blur":
        raw = lambda: [cv2.GaussianBlur(a, (9, 9), 1.5, borderType=cv2.BORDER_REFLECT_101) for a in arrays]
        return (
            lambda: imgops.gaussian_blur(x, 9, 1.5),
            raw,
            lambda: v2.gaussian_blur(x, [9, 9], [1.5, 1.5]),
            _float(x, lambda y: filters.gaussian_blur2d(y, (9, 9), (1.5, 1.5))),
        )
    if name == "filter2d":
        weights = np.random.default_rng(0).normal(0, 0.2, (5, 5)).astype(np.float32)
        w = torch.from_numpy(weights)
        return (
            lambda: imgops.filter2d(x, w),
            lambda: [cv2.filter2D(a, -1, weights) for a in arrays],
            None,
            _float(x, lambda y: filters.filter2d(y, w[None])),
        )
    if name == "affine":
        flag = cv2.INTER_NEAREST if "nearest" in operator else cv2.INTER_LINEAR
        how = operator.split()[1]
        mode = InterpolationMode(how)
        theirs = lambda: v2.affine(x, 12.0, [10, -5], 0.95, [0.0, 0.0], interpolation=mode)
        k = _float(x, lambda y: geometry.warp_affine(y, matrix[None].float(), (size, size), mode=how))
        return (
            lambda: imgops.warp_affine(x, matrix, interpolation=how),
            lambda: [cv2.warpAffine(a, _MATRIX, (size, size), flags=flag) for a in arrays],
            theirs,
            k,
        )
    if name == "perspective":
        start, end = (
            [[0, 0], [size, 0], [size, size], [0, size]],
            [[20, 10], [size - 9, 5], [size - 20, size - 3], [4, size - 30]],
        )
        k = _float(x, lambda y: geometry.warp_perspective(y, tilt[None].float(), (size, size)))
        return (
            lambda: imgops.warp_perspective(x, tilt),
            lambda: [cv2.warpPerspective(a, _TILT, (size, size)) for a in arrays],
            lambda: v2.perspective(x, start, end),
            k,
        )
    if name == "remap":
        grid = np.stack(np.meshgrid(np.arange(size), np.arange(size))).astype(np.float32)
        at = grid + np.float32(2) * np.sin(grid[::-1] / 20)
        m = torch.from_numpy(at)
        k = _float(x, lambda y: geometry.remap(y, m[:1], m[1:], align_corners=True))
        return (
            lambda: imgops.remap(x, m),
            lambda: [cv2.remap(a, at[0], at[1], cv2.INTER_LINEAR) for a in arrays],
            None,
            k,
        )
    if name == "crop-resize":
        box, out = (50, 30, size - 60, size - 20), (224, 224)
        left, top, right, bottom = box
        return (
            lambda: imgops.resized_crop(x, box, out),
            pil(lambda p: p.crop(box).resize(out, Image.Resampling.BILINEAR)),
            lambda: v2.resized_crop(x, top, left, bottom - top, right - left, list(out)),
            None,
        )
    if name == "erase":
        half = size // 2
        value = torch.zeros(3, 1, 1, dtype=x.dtype)

        def raw() -> Any:
            out = [a.copy() for a in arrays]
            for a in out:
                a[20:half, 20:half] = 0
            return out

        return (
            lambda: imgops.erase(x, (20, 20, half, half)),
            raw,
            lambda: v2.erase(x, 20, 20, half - 20, half - 20, value),
            None,
        )
    if name == "blend":
        other, others = x.flip(-1).clone(), [a[:, ::-1].copy() for a in arrays]
        return (
            lambda: imgops.blend(x, other, 0.3),
            lambda: [cv2.addWeighted(a, 0.7, b, 0.3, 0) for a, b in zip(arrays, others, strict=True)],
            None,
            None,
        )
    return (
        lambda: imgops.flip(x),
        lambda: [cv2.flip(a, 1) for a in arrays],
        lambda: v2.horizontal_flip(x),
        _float(x, geometry.hflip),
    )
