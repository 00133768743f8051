"""The calls whose instructions are counted, on a batch of one size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

import imgops.transforms  # registers its operators
from imgops._operator import record

DTYPES = {"uint8": torch.uint8, "float32": torch.float32}
LAYOUTS = ("planar", "interleaved")
JITTER = "brightness,contrast,saturation,hue"


class Call(NamedTuple):
    """One call of an operator's kernel."""

    name: str
    operator: str
    arguments: tuple[Any, ...]
    #: The bytes that the result needs to be read, by those of the image.
    part: float = 1.0

    @property
    def qualified(self) -> str:
        return self.operator if "::" in self.operator else f"imgops::{self.operator}"


#: The rows of which only the last kernel counts: the first one of equalize is a histogram.
OF_LAST_KERNEL = ("equalize",)
#: How the name of a row of packed images begins.
PACKED = "packed: "


def noise(dtype: str, layout: str, side: int, batch: int) -> Tensor:
    """Return a batch of noise in a memory format."""
    generator = torch.Generator().manual_seed(side)
    image = torch.randint(0, 256, (batch, 3, side, side), dtype=torch.uint8, generator=generator)
    image = image if dtype == "uint8" else image / 255
    return image.contiguous(memory_format=_format(layout))


def _format(layout: str) -> torch.memory_format:
    return torch.channels_last if layout == "interleaved" else torch.contiguous_format


def _rotations(each: Tensor, side: int) -> Tensor:
    """Return a matrix for each image that turns it about its middle by up to 0.3 radians."""
    cos, sin, middle = (each - 1).cos(), (each - 1).sin(), (side - 1) / 2
    rows = (cos, -sin, middle - cos * middle + sin * middle, sin, cos, middle - sin * middle - cos * middle)
    return torch.stack(rows, -1).unflatten(-1, (2, 3))


def calls(dtype: str, layout: str, side: int = 512, batch: int = 2) -> Iterator[Call]:
    """Yield the rows of a dtype and layout: parameters differ from image to image where the operator takes them."""
    x = noise(dtype, layout, side, batch)
    whole = dtype == "uint8"
    each = torch.linspace(0.7, 1.3, batch, dtype=torch.float64)
    most, small, half = side * 3 // 4, side * 7 // 16, side // 2
    shift = torch.arange(batch) * (side // 8) % (side - most) + torch.tensor(3)
    boxes = torch.stack([shift, shift - 1, shift - 2 + most, shift - 3 + most], -1)
    order = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]])[torch.arange(batch) % 2]
    amounts = torch.stack([each, 2 - each, 2 - each, each - 1], -1)
    turn = _rotations(each, side)
    last = torch.tensor([[1e-4, 2e-4, 1.0]], dtype=torch.float64).expand(batch, 1, 3)
    tilt = torch.cat([turn, last], -2).contiguous()
    patch = x[..., :half, :half].contiguous(memory_format=_format(layout))
    mask = torch.full((batch, 1, half, half), 90 if whole else 0.4, dtype=x.dtype)
    chosen = torch.arange(batch) % 2 == 0
    levels = torch.arange(256).flip(0)
    table = levels.to(torch.uint8).expand(3, 256).contiguous()
    limit = each * (100 if whole else 0.4)
    matrix = torch.tensor([[0.5, 0.4, 0.1, 3], [0.2, 0.9, 0.1, 1], [0.1, 0.3, 0.7, 2]], dtype=torch.float32)
    sigma = each[:, None].expand(batch, 2).contiguous()
    grid = torch.linspace(3, side - 4, side)
    map = torch.stack([grid.expand(side, side), grid[:, None].expand(side, side)])[None] + 0.3
    map = map.expand(batch, 2, side, side).contiguous()

    yield Call("crop", "crop", (x, 5, 7, 5 + most, 7 + most), 9 / 16)
    yield Call("pad reflect", "pad", (x, None, 16, 16, 16, 16, "reflect"))
    yield Call("flip, chosen", "imgops_transforms::flip_chosen", (x, chosen, -1))
    yield Call("erase, a box each", "erase", (x, x[..., :1, :1].contiguous(), boxes), 7 / 16)
    if whole:
        yield Call("lut", "lut", (x, table))
        yield Call("ToDtype and Normalize", "lut", (x, table / 255.0))
        yield Call("posterize, each", "posterize", (x, torch.arange(batch) % 4 + 3))
    yield Call("solarize, each", "solarize", (x, limit))
    yield Call("gamma, each", "adjust_gamma", (x, each, each))
    yield Call("equalize", "equalize", (x,))
    yield Call("autocontrast", "autocontrast", (x,))
    yield Call("paste with a mask", "paste", (x, patch, mask, 9, 11), 4 / 3)
    yield Call("blend, each", "blend", (x, x.flip(0), each.float()), 2)
    yield Call("color matrix", "color_matrix", (x, matrix))
    yield Call("color jitter, each", "color_sequence", (x, order, amounts, JITTER))
    yield Call("grayscale", "grayscale", (x, 3))
    yield Call("grayscale, chosen", "imgops_transforms::gray_chosen", (x, chosen))
    for kind, matrices in (("affine", turn), ("perspective", tilt)):
        for name in ("nearest", "bilinear", "bicubic"):
            arguments = (x, matrices, None, side, side, name, "constant")
            yield Call(f"{kind} {name}, each", f"warp_{kind}", arguments)
    yield Call("remap bilinear", "remap", (x, map, None, "bilinear", "constant"))
    for name in ("bilinear", "area", "lanczos"):
        yield Call(f"resize plain {name}", "resize", (x, None, small, small, name, False, None))
    for name in ("bilinear", "bicubic"):
        yield Call(f"resize {name}", "resize", (x, None, small, small, name, True, None))
    yield Call("resized crop, a box each", "resized_crop", (x, boxes, small, small, "bilinear", True), 9 / 16)
    yield Call("gaussian blur 23 x 23, each", "gaussian_blur", (x, sigma, 23, 23))
    yield Call("sharpness, each", "adjust_sharpness", (x, each))
    yield Call("filter 5 x 5", "filter2d", (x, torch.full((5, 5), 0.04), "reflect"))
    yield Call("erode 5 x 5", "erode", (x, torch.ones(5, 5, dtype=torch.uint8), "constant"))
    yield from _colors_and_levels(x, limit, each)
    if not whole:
        yield from _adjoints(x, map, boxes, patch, mask, small)


def _colors_and_levels(x: Tensor, limit: Tensor, each: Tensor) -> Iterator[Call]:
    """Yield operators on colors and levels."""
    for code in ("rgb2hsv", "hsv2rgb", "rgb2lab", "lab2rgb", "rgb2yuv"):
        yield Call(code, "cvt_color", (x, code))
    most = torch.full_like(limit, 255 if x.dtype == torch.uint8 else 1)
    for operation in ("binary", "otsu") if x.dtype == torch.uint8 else ("binary",):
        image = x[:, :1].contiguous(memory_format=_format("planar"))
        yield Call(f"threshold, {operation}", "threshold", (image, limit, most, operation))
    yield Call("add_weighted, each", "add_weighted", (x, x.flip(0), each, 1 - each, 3 * each), 2)
    alpha = torch.cat([x, x[:, :1]], 1).contiguous(memory_format=_format("interleaved"))
    alpha = alpha if x.stride(1) == 1 else alpha.contiguous(memory_format=_format("planar"))
    yield Call("alpha_composite", "alpha_composite", (alpha, alpha.flip(0)), 2)
    yield Call("jpeg, quality 75", "jpeg", (x, torch.full((len(x),), 75)))
    yield Call("box blur 5 x 5", "box_blur", (x, 5, 5, "reflect"))
    yield Call("pyr_down", "pyr_down", (x,))
    yield Call("pyr_up", "pyr_up", (x,))
    normal = x.flip(0).float() / 128 - 1
    yield Call("shot_noise, each", "shot_noise", (x, normal, each - 0.5), 5 if x.dtype == torch.uint8 else 2)
    yield Call("salt_and_pepper, each", "salt_and_pepper", (x, normal, each - 0.6, each - 0.5), 2)
    yield Call("iso_noise, each", "iso_noise", (x, normal[:, :2].contiguous(), each - 0.9, each - 0.6), 2)
    yield Call("clahe", "clahe", (x, torch.full((len(x),), 2.0, dtype=torch.float64), 8, 8))


def _adjoints(
    x: Tensor, map: Tensor, boxes: Tensor, patch: Tensor, mask: Tensor, small: int
) -> Iterator[Call]:
    """Yield what backward passes and tiled inference call."""
    side, batch = x.shape[-1], x.shape[0]
    yield Call("pad, adjoint", "pad_adjoint", (x, 16, 16, 16, 16, "constant"))
    yield Call("remap bilinear, adjoint", "remap_adjoint", (x, map, side, side, "bilinear", "edge"))
    yield Call("remap bilinear, adjoint of the map", "remap_grad_map", (x, x, map, None, "bilinear", "edge"))
    grad = x[..., :small, :small].clone(memory_format=torch.preserve_format)
    yield Call("resize bilinear, adjoint", "resize_adjoint", (grad, None, side, side, "bilinear", True, None))
    arguments = (grad, boxes, side, side, "bilinear", True)
    yield Call("resized crop, a box each, adjoint", "resized_crop_adjoint", arguments)
    total, count = torch.zeros_like(x), torch.zeros(batch, 1, side, side)
    yield Call("accumulate", "accumulate", (total, count, patch, mask, 9, 11))


def packed_calls(dtype: str, layout: str, side: int = 512) -> Iterator[Call]:
    """Yield the rows whose kernels take packed images, with two images of different sizes."""
    first, second = noise(dtype, layout, side, 2).unbind(0)
    images = [first, second[:, : side * 15 // 16, : side - 6]]
    interleaved = layout == "interleaved"
    packed = imgops.PackedImages.of(images, interleaved)
    where = packed.data, packed.sizes, packed.offsets
    for call in (*calls(dtype, layout, side), Call("flip", "flip", (first, [-1]))):
        operator = record.table.get(f"imgops_packed::{call.operator}")
        if operator is not None:
            count, given = operator.tensors - len(where), call.arguments[1:]
            arguments = (*where, *given[:count], 3, *given[count:], interleaved)
            yield Call(PACKED + call.name, operator.qualified, arguments, call.part)
