"""Fakes of the operators of packed images: the fake of each operator runs on a batch of one size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from imgops._common import check, packing
from imgops._common.check import violates
from imgops._operator.record import Operator, Packed
from imgops.fake.resize import check_resize

#: The side of the images on which an operator's fake runs; no output has it by chance.
_SIDE = 4093


def allocate(operator: Operator, facet: Packed, *args: Any) -> Tensor:
    """Check the arguments as far as shapes and dtypes go, and return an uninitialized output."""
    count = operator.tensors - 1
    data, sizes, offsets, *parameters = args[: 3 + count]
    channels, *rest, interleaved = args[3 + count :]
    op = operator.name
    packing.require_sizes(op, sizes)
    if data.ndim != 1:
        check.fail_shape(op, "data must have one dimension", data)
    if offsets.dtype != torch.int64 or offsets.ndim != 1:
        must = "offsets must be int64 of one dimension"
        check.fail(ValueError, op, must, f"{offsets.dtype} of {offsets.ndim}")
    if type(channels) is int and channels < 1:
        check.fail(ValueError, op, "channels must be at least 1", channels)
    images = sizes.shape[0]
    shape = (images, channels, _SIDE, _SIDE)
    stand_in = torch.empty(shape, dtype=data.dtype, device="meta")
    if interleaved:
        stand_in = stand_in.movedim(1, -1).contiguous().movedim(-1, 1)
    names = list(operator.signature.parameters)[1 : operator.tensors]
    others = []  # the parameters without their data, for images without data
    for p, name in zip(parameters, names, strict=True):
        if p is not None:
            check.parameter(op, name, p, data)
        others.append(None if p is None else torch.empty(p.shape, dtype=p.dtype, device="meta"))
    out = operator.fake(stand_in, *others, *rest)
    if facet.keeps_size:
        return data.new_empty((data.shape[0] // channels * out.shape[1],), dtype=out.dtype)
    height, width = out.shape[-2:]
    size = (images, out.shape[1], height, width)
    made = data.new_empty((images, height, width, out.shape[1]) if interleaved else size, dtype=out.dtype)
    return made.permute(0, 3, 1, 2) if interleaved else made


def _check_sizes(
    op: str,
    data: Tensor,
    sizes: Tensor,
    targets: Tensor,
    channels: int,
    interpolation: str,
    antialias: bool,
) -> None:
    packing.require_sizes(op, sizes)
    check.dtype(op, "size", targets, torch.int64)
    if targets.ndim != 2 or violates(targets.shape[0] == sizes.shape[0], targets.shape[1] == 2):
        check.fail_shape(op, "size must have shape (N, 2), a height and width for each image", targets)
    if data.ndim != 1:
        check.fail_shape(op, "data must have one dimension", data)
    stand_in = torch.empty((channels, _SIDE, _SIDE), dtype=data.dtype, device="meta")
    check_resize(op, stand_in, None, 1, 1, interpolation, antialias)


def resize_packed(
    new_size: Callable[..., int],
    data: Tensor,
    sizes: Tensor,
    offsets: Tensor,
    targets: Tensor,
    channels: int,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None,
    interleaved: bool,
) -> Tensor:
    _check_sizes("resize", data, sizes, targets, channels, interpolation, antialias)
    return data.new_empty((new_size(min=0, max=2**62),))


def resize_windows(
    data: Tensor,
    sizes: Tensor,
    offsets: Tensor,
    targets: Tensor,
    corners: Tensor,
    channels: int,
    height: int,
    width: int,
    fill: Sequence[float],
    interpolation: str,
    antialias: bool,
    interleaved: bool,
) -> Tensor:
    op = "resize"  # errors name the operators of a single image
    _check_sizes(op, data, sizes, targets, channels, interpolation, antialias)
    check.dtype(op, "corners", corners, torch.int64)
    if corners.shape != targets.shape:
        check.fail_shape(op, "corners must have shape (N, 2), a left and top for each image", corners)
    if violates(height > 0, width > 0):
        check.fail(ValueError, op, "height and width must be at least 1", check.numbers(height, width))
    if len(fill) not in (1, channels):
        must = f"fill must be one value or one for each of {check.number(channels)} channels"
        check.fail(ValueError, "pad", must, f"shape ({len(fill)},)")
    count = sizes.shape[0]
    if interleaved:
        return data.new_empty((count, height, width, channels)).permute(0, 3, 1, 2)
    return data.new_empty((count, channels, height, width))
