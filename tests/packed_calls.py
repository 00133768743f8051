"""Calls of the functions whose CUDA kernels take packed images: what a test runs and a program compiles."""

from __future__ import annotations

from typing import Any

import torch

import imgops
from imgops._operator.record import Operator, operators

SIZES = [(31, 44), (7, 9), (60, 5), (1, 1)]
#: For Triton's interpreter, which takes seconds for a few thousand pixels.
SMALL = [(13, 18), (7, 9), (20, 5), (1, 1)]
COUNT = len(SIZES)
#: The operators that take no floats.
ONLY_UINT8 = ("hit_or_miss", "lut")


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


def calls(sizes: list[tuple[int, int]] = SIZES) -> list[tuple[str, tuple[Any, ...]]]:
    """Return operators and their arguments after the image, with parameters for each image and for all."""
    own = torch.linspace(0.3, 1.7, COUNT, dtype=torch.float64)
    (h0, w0), (h1, w1), (h2, w2), _ = sizes
    boxes = torch.tensor([[3, 1, w0 - 4, h0], [0, 0, w1, h1], [1, h2 // 2, w2 - 2, h2 - 1], [0, 0, 1, 1]])
    regions = boxes - torch.tensor([0.0, 0.0, 0.5, 0.25], dtype=torch.float64)
    affine = torch.tensor([[0.9, -0.2, 3.0], [0.15, 1.1, -2.0]], dtype=torch.float64).repeat(COUNT, 1, 1)
    affine[:, 0, 2] += torch.arange(COUNT)
    tilt = torch.tensor([[1e-3, -2e-3, 1.0]], dtype=torch.float64).repeat(COUNT, 1, 1)
    levels = torch.arange(255, -1, -1, dtype=torch.uint8).expand(1, 256)
    weights = torch.linspace(-0.5, 0.7, COUNT * 8).reshape(COUNT, 2, 4)
    amounts = torch.stack([own, own + 0.1, own + 0.2], -1)
    order, fill = torch.tensor([2, 0, 1]), torch.tensor(7.0)
    filters = "nearest", "bilinear", "bicubic", "lanczos"
    resizes = [(name, antialias) for name in filters for antialias in (True, False)]
    borders = ("constant", fill), ("reflect", None), ("wrap", None)
    return [
        *(("resize", (None, 11, 17, *how)) for how in resizes),
        ("resize", (regions, 11, 17, "bilinear", True)),
        ("resize", (regions[2:3].clamp(max=1), 5, 4, "bicubic", True)),
        *(("resized_crop", (boxes, 11, 17, *how)) for how in resizes),
        ("crop", (-2, 1, 20, 22)),
        *(("warp_affine", (affine, f, 20, 30, name, b)) for name in filters[:3] for b, f in borders),
        ("warp_perspective", (torch.cat([affine, tilt], 1), None, 20, 30, "bilinear", "constant")),
        *((f"adjust_{name}", (own,)) for name in ("brightness", "contrast", "saturation", "sharpness")),
        ("adjust_hue", (own - 1,)),
        ("adjust_gamma", (own, own)),
        ("posterize", (torch.tensor(3),)),
        ("solarize", (own * 0.5,)),
        ("autocontrast", ()),
        ("equalize", ()),
        ("lut", (levels,)),
        ("lut", (noise(COUNT, 3, 256, seed=9),)),
        ("grayscale", (1,)),
        ("grayscale", (3,)),
        ("color_matrix", (weights[0, :, :3],)),
        ("color_matrix", (weights,)),
        ("color_sequence", (order, amounts, "brightness,contrast,saturation")),
        ("color_sequence", (order, amounts, "equalize,sharpness,autocontrast")),
        ("color_sequence", (order[:0], amounts, "hue,brightness,contrast")),
        ("gaussian_blur", (torch.stack([own, own + 1], -1), 7, 9)),
        ("filter2d", (weights[0, :, :3], "reflect")),
        ("box_blur", (5, 4, "wrap")),
        ("sobel", (1, 0, 5, "constant")),
        ("scharr", (0, 1, "reflect")),
        ("laplacian", (1, "edge")),
        ("erode", (torch.ones(3, 3), "constant")),
        ("dilate", (torch.ones(COUNT, 3, 2), "edge")),
        ("hit_or_miss", (torch.tensor([[0, 1, 0], [1, -1, 1], [0, 1, 0]]), "constant")),
        *(("flip", (list(dims),)) for dims in ((-1,), (-2,), (-1, -2))),
    ]


def packed_arguments(
    name: str,
    given: tuple[Any, ...],
    interleaved: bool,
    dtype: torch.dtype,
    sizes: list[tuple[int, int]] = SIZES,
) -> tuple[Operator, imgops.PackedImages, tuple[Any, ...]]:
    """Return the operator of packed images, the images, and the arguments of a call."""
    images = [noise(3, *size, seed=i) for i, size in enumerate(sizes)]
    packed = imgops.PackedImages.of(images, interleaved)
    if dtype != torch.uint8:
        packed = packed.like((packed.data / 255).to(dtype))
    elif name == "solarize":
        given = (given[0] * 255,)
    operator = operators("imgops_packed")[name]
    tensors = operator.tensors - 3
    where = packed.data, packed.sizes, packed.offsets
    return operator, packed, (*where, *given[:tensors], 3, *given[tensors:], interleaved)
