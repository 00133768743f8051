"""Color, levels, warps, filters and mixes beside the same thing in plain PyTorch: dense, slow, and obvious."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plain_torch
import torch
import torch.nn.functional as F
from torch import Tensor

import imgops

generator = torch.Generator().manual_seed(11)
ops = torch.ops.imgops


def rand(*shape: int, low: float = 0.1, high: float = 0.9) -> Tensor:
    return torch.rand(*shape, generator=generator, dtype=torch.float64) * (high - low) + low


def number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def luma(x: Tensor) -> Tensor:
    return torch.einsum("c,...chw->...hw", torch.tensor([0.299, 0.587, 0.114], dtype=x.dtype), x)[
        ..., None, :, :
    ]


def mixed(start: Any, end: Tensor, f: Tensor) -> Tensor:
    return (start + f * (end - start)).clamp(0, 1)


def brightness(x: Tensor, f: Tensor) -> Tensor:
    return mixed(0, x, f)


def contrast(x: Tensor, f: Tensor) -> Tensor:
    return mixed(luma(x).mean((-3, -2, -1), keepdim=True), x, f)


def saturation(x: Tensor, f: Tensor) -> Tensor:
    return mixed(luma(x), x, f)


def hue(x: Tensor, f: Tensor) -> Tensor:
    """By the six parts of the circle."""
    r, g, b = x.unbind(-3)
    high, low = x.max(-3).values, x.min(-3).values
    span = high - low
    at = torch.where(
        high == r, ((g - b) / span) % 6, torch.where(high == g, (b - r) / span + 2, (r - g) / span + 4)
    )
    at = (at + 6 * f) % 6
    rising, falling = low + span * (at % 1), high - span * (at % 1)
    parts = [
        (high, rising, low),
        (falling, high, low),
        (low, high, rising),
        (low, falling, high),
        (rising, low, high),
        (high, low, falling),
    ]
    out = torch.zeros_like(x)
    for i, colors in enumerate(parts):
        out = torch.where((at.floor() == i)[..., None, :, :], torch.stack(colors, -3), out)
    return out


def stretched(x: Tensor) -> Tensor:
    low, high = x.amin((-2, -1), keepdim=True), x.amax((-2, -1), keepdim=True)
    return (x - low) / (high - low)


def hats(position: Tensor, size: int) -> Tensor:
    """The bilinear weights of every pixel of an axis."""
    return (1 - (position[..., None] - torch.arange(size, dtype=position.dtype)).abs()).clamp(min=0)


def remap(x: Tensor, map: Tensor) -> Tensor:
    across, down = hats(map[..., 0, :, :], x.shape[-1]), hats(map[..., 1, :, :], x.shape[-2])
    return torch.einsum("...cij,...hwi,...hwj->...chw", x, down, across)


def warp(x: Tensor, matrix: Tensor) -> Tensor:
    if matrix.shape[-2] == 2:
        last = torch.tensor([[0.0, 0, 1]], dtype=matrix.dtype).expand(*matrix.shape[:-2], 1, 3)
        matrix = torch.cat([matrix, last], -2)
    height, width = x.shape[-2:]
    y, z = torch.meshgrid(torch.arange(height).double(), torch.arange(width).double(), indexing="ij")
    grid = torch.stack([z, y, torch.ones_like(y)])
    u, v, w = torch.einsum("...ij,jhw->...ihw", torch.linalg.inv(matrix), grid).unbind(-3)
    return remap(x, torch.stack([u / w, v / w], -3))


def pulled(function: Callable[..., Tensor], at: Tensor, grad: Tensor) -> Tensor:
    return torch.func.vjp(function, at)[1](grad)[0]


def correlated(x: Tensor, kernel: Tensor) -> Tensor:
    rows, columns = kernel.shape
    wide = F.pad(
        x.reshape(-1, 1, *x.shape[-2:]), (columns // 2, columns // 2, rows // 2, rows // 2), mode="reflect"
    )
    return F.conv2d(wide, kernel[None, None]).reshape(x.shape)


def gaussian(x: Tensor, sigma: Tensor) -> Tensor:
    at = torch.arange(-1, 2, dtype=x.dtype)
    weight = torch.exp(-((at / sigma) ** 2) / 2)
    weight = weight / weight.sum()
    return correlated(x, weight[:, None] * weight)


def sharpened(x: Tensor, f: Tensor) -> Tensor:
    kernel = torch.tensor([[1.0, 1, 1], [1, 5, 1], [1, 1, 1]], dtype=x.dtype) / 13
    smooth = F.conv2d(x.reshape(-1, 1, *x.shape[-2:]), kernel[None, None]).reshape(
        *x.shape[:-2], x.shape[-2] - 2, -1
    )
    inner = mixed(smooth, x[..., 1:-1, 1:-1], f)
    border = torch.ones(x.shape[-2:], dtype=torch.bool)
    border[1:-1, 1:-1] = False
    return torch.where(border, x, F.pad(inner, (1, 1, 1, 1)))


IMAGE, OTHER, SMALL = rand(3, 5, 6), rand(3, 5, 6), rand(3, 4, 4)
MAP = torch.stack([rand(4, 4, low=-1.7, high=6.2), rand(4, 4, low=-1.6, high=5.3)])
TURN = torch.tensor([[0.9, -0.35, 1.3], [0.31, 0.8, -0.4]], dtype=torch.float64)
TILT = torch.cat([TURN, torch.tensor([[0.02, -0.03, 1.1]], dtype=torch.float64)])
KERNEL = rand(3, 3, low=-1, high=1)
LEVELS = torch.randint(0, 256, (3, 5, 6), generator=generator, dtype=torch.uint8)
BOX = torch.tensor([1, 1, 5, 4])
INSIDE = torch.zeros(5, 6, dtype=torch.bool)
INSIDE[1:4, 1:5] = True

#: name -> (ours, the same in plain torch, its tensors)
CALLS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Tensor, ...]]] = {
    "adjust_brightness": (imgops.adjust_brightness, brightness, (IMAGE, number(0.7))),
    "adjust_contrast": (imgops.adjust_contrast, contrast, (IMAGE, number(1.3))),
    "adjust_saturation": (imgops.adjust_saturation, saturation, (IMAGE, number(0.6))),
    "adjust_hue": (imgops.adjust_hue, hue, (IMAGE, number(0.13))),
    "adjust_gamma": (
        imgops.adjust_gamma,
        lambda x, g, k: (k * x**g).clamp(0, 1),
        (IMAGE, number(1.7), number(0.9)),
    ),
    "grayscale": (imgops.grayscale, luma, (IMAGE,)),
    "color_matrix": (
        imgops.color_matrix,
        lambda x, m: torch.einsum("ij,...jhw->...ihw", m[:, :3], x) + m[:, 3:, None],
        (IMAGE, rand(2, 4, low=-1, high=1)),
    ),
    "color_sequence": (
        lambda x, a: imgops.color_sequence(x, torch.tensor([1, 0]), a, "brightness,saturation"),
        lambda x, a: brightness(saturation(x, a[1]), a[0]),
        (IMAGE, torch.tensor([0.8, 1.2], dtype=torch.float64)),
    ),
    "posterize": (lambda x: imgops.posterize(x, 3), lambda x: (x * 8).floor().clamp(0, 7) / 8, (IMAGE,)),
    "solarize": (lambda x: imgops.solarize(x, 0.5), lambda x: torch.where(x >= 0.5, 1 - x, x), (IMAGE,)),
    "autocontrast": (imgops.autocontrast, stretched, (IMAGE,)),
    "equalize": (
        imgops.equalize,
        lambda x: (x * 255.999).floor() / 255,
        (IMAGE,),
    ),  # too few pixels to do more
    "lut": (lambda t: imgops.lut(LEVELS, t), lambda t: t[LEVELS.long()], (rand(256),)),
    "warp_affine": (imgops.warp_affine, warp, (IMAGE, TURN)),
    "warp_perspective": (imgops.warp_perspective, warp, (IMAGE, TILT)),
    "remap": (imgops.remap, remap, (IMAGE, MAP)),
    "remap_adjoint": (
        lambda g, m: ops.remap_adjoint(g, m, 5, 6, "bilinear", "constant"),
        lambda g, m: torch.einsum(
            "...chw,...hwi,...hwj->...cij", g, hats(m[..., 1, :, :], 5), hats(m[..., 0, :, :], 6)
        ),
        (SMALL, MAP),
    ),
    "remap_grad_map": (
        lambda g, x, m: ops.remap_grad_map(g, x, m, None, "bilinear", "constant"),
        lambda g, x, m: pulled(lambda at: remap(x, at), m, g),
        (SMALL, IMAGE, MAP),
    ),
    "resized_crop": (
        lambda x: imgops.resized_crop(x, BOX, (4, 7)),
        lambda x: plain_torch.resize(x[..., 1:4, 1:5], (4, 7)),
        (IMAGE,),
    ),
    "resized_crop_adjoint": (
        lambda g: ops.resized_crop_adjoint(g, BOX, 5, 6, "bilinear", True),
        lambda g: F.pad(plain_torch.resize_adjoint(g, None, 3, 4, "bilinear", True), (1, 1, 1, 1)),
        (SMALL,),
    ),
    "gaussian_blur": (lambda x, s: imgops.gaussian_blur(x, 3, s), gaussian, (IMAGE, number(0.8))),
    "filter2d": (imgops.filter2d, correlated, (IMAGE, KERNEL)),
    "adjust_sharpness": (imgops.adjust_sharpness, sharpened, (IMAGE, number(1.4))),
    "erase": (lambda x, o: imgops.erase(x, BOX, o), lambda x, o: torch.where(INSIDE, o, x), (IMAGE, OTHER)),
    "blend": (imgops.blend, lambda a, b, w: a + w * (b - a), (IMAGE, OTHER, number(0.3))),
}

#: Calls whose gradient is derived: beyond the first order it knows reverse mode alone.
DERIVED = {n for n in CALLS if not n.startswith(("warp", "remap_adjoint", "resized_crop"))} - {"remap"}
