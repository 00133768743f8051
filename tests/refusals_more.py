"""Refusals of color, levels, warps, filters and mixes; the image of every call is (2, 3, 5, 6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from refusals import Refusal
from torch import Tensor

import imgops

ones = torch.ones
ops = torch.ops.imgops
ROWS: tuple[tuple[type[Exception], str, Callable[[Tensor], Any]], ...] = (
    (
        TypeError,
        "adjust_brightness: image must be a Tensor, got list",
        lambda x: imgops.adjust_brightness([1], 1),
    ),
    (
        TypeError,
        "adjust_brightness: factor must be a number, a sequence of numbers or a Tensor, got str",
        lambda x: imgops.adjust_brightness(x, "a"),
    ),
    (
        ValueError,
        "adjust_brightness: factor must have one value, or that for each image of (2,), got shape (3,)",
        lambda x: imgops.adjust_brightness(x, ones(3)),
    ),
    (
        TypeError,
        "adjust_gamma: gamma must be real numbers, got torch.bool",
        lambda x: imgops.adjust_gamma(x, torch.tensor(True)),
    ),
    (
        ValueError,
        "adjust_contrast: image must have 1 or 3 channels, got 2",
        lambda x: imgops.adjust_contrast(x[:, :2], 1),
    ),
    (
        TypeError,
        "adjust_hue: image must be uint8 or floating point, got torch.int64",
        lambda x: imgops.adjust_hue(x.long(), 1),
    ),
    (ValueError, "grayscale: channels must be 1 or 3, got 2", lambda x: imgops.grayscale(x, 2)),
    (
        TypeError,
        "invert: image must be uint8 or floating point, got torch.int64",
        lambda x: imgops.invert(x.long()),
    ),
    (
        ValueError,
        "color_matrix: matrix must have 3 or 4 columns, got shape (3, 2)",
        lambda x: imgops.color_matrix(x, ones(3, 2)),
    ),
    (
        TypeError,
        "color_sequence: order must be int64, got torch.float32",
        lambda x: imgops.color_sequence(x, ones(1), ones(1), "hue"),
    ),
    (
        ValueError,
        "color_sequence: amounts must have shape (2,), or that for each image of (2,), got shape (1,)",
        lambda x: imgops.color_sequence(x, torch.tensor([0]), ones(1), "hue,invert"),
    ),
    (TypeError, "lut: image must be uint8, got torch.float32", lambda x: imgops.lut(x, ones(256))),
    (
        ValueError,
        "warp_affine: matrix must have shape (2, 3), or that for each image of (2,), got shape (3, 3)",
        lambda x: imgops.warp_affine(x, ones(3, 3)),
    ),
    (
        ValueError,
        "warp_affine: interpolation must be one of 'nearest', 'bilinear', 'bicubic', got 'area'",
        lambda x: imgops.warp_affine(x, ones(2, 3), interpolation="area"),
    ),
    (
        ValueError,
        "warp_perspective: border must be one of 'constant', 'edge', 'reflect', 'symmetric', 'wrap', got 'zero'",
        lambda x: imgops.warp_perspective(x, ones(3, 3), border="zero"),
    ),
    (
        ValueError,
        "warp_perspective: size must be at least (1, 1), got (0, 3)",
        lambda x: imgops.warp_perspective(x, ones(3, 3), (0, 3)),
    ),
    (
        ValueError,
        "warp_affine: fill must be one value or one for each of 3 channels, got shape (2,)",
        lambda x: imgops.warp_affine(x, ones(2, 3), fill=(1, 2)),
    ),
    (
        ValueError,
        "warp_affine: image must have at least one pixel, got shape (2, 3, 0, 6)",
        lambda x: imgops.warp_affine(x[..., :0, :], ones(2, 3)),
    ),
    (
        ValueError,
        "remap: map must be (..., 2, H, W): x and y, got shape (2, 3, 5, 6)",
        lambda x: imgops.remap(x, x.float()),
    ),
    (
        TypeError,
        "remap: map must be float32 or float64, got torch.int64",
        lambda x: imgops.remap(x, x[:, :2].long()),
    ),
    (
        ValueError,
        "remap_adjoint: grad must have the size of map (4, 6), got (5, 6)",
        lambda x: ops.remap_adjoint(x, x[:, :2, :4], 4, 4, "nearest", "edge"),
    ),
    (
        ValueError,
        "flip: direction must be one of 'horizontal', 'vertical', 'both', got 'up'",
        lambda x: imgops.flip(x, "up"),
    ),
    (TypeError, "rotate90: turns must be an integer, got float 1.5", lambda x: imgops.rotate90(x, 1.5)),
    (
        ValueError,
        "resized_crop: boxes must satisfy 0 <= left < right <= 6 and 0 <= top < bottom <= 5, got (0, 0, 0, 2)",
        lambda x: imgops.resized_crop(x, (0, 0, 0, 2), (2, 2)),
    ),
    (
        TypeError,
        "resized_crop: boxes must be int64, got torch.float32",
        lambda x: imgops.resized_crop(x, ones(4), (2, 2)),
    ),
    (
        ValueError,
        "resized_crop: interpolation must not be 'area', which knows no boxes, got 'area'",
        lambda x: imgops.resized_crop(x, (0, 0, 2, 2), (2, 2), "area", antialias=False),
    ),
    (
        ValueError,
        "gaussian_blur: kernel_size must be odd and positive, got (4, 3)",
        lambda x: imgops.gaussian_blur(x, (4, 3), 1.0),
    ),
    (
        ValueError,
        "gaussian_blur: sigma must not be negative, got (-1.0, -1.0)",
        lambda x: imgops.gaussian_blur(x, 3, -1.0),
    ),
    (
        ValueError,
        "filter2d: kernel must be (h, w) or (..., h, w), got shape (3,)",
        lambda x: imgops.filter2d(x, ones(3)),
    ),
    (
        ValueError,
        "erase: value must have one number, or one for each of 3 channels, got 2",
        lambda x: imgops.erase(x, (0, 0, 1, 1), (1, 2)),
    ),
    (TypeError, "erase: boxes must be int64, got torch.float32", lambda x: imgops.erase(x, ones(4))),
    (
        ValueError,
        "blend: other must have the shape of image (2, 3, 5, 6), got (2, 3, 5, 5)",
        lambda x: imgops.blend(x, x[..., :5], 0.5),
    ),
)

MORE = tuple(
    Refusal(f"{message.partition(':')[0]}-{i}", error, message, call)
    for i, (error, message, call) in enumerate(ROWS)
)
