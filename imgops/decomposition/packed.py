"""Operators of packed images as loops over their images: the gradient, and every device but the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from imgops._common import packing
from imgops._operator.record import Operator, Packed, table


def loop(operator: Operator, facet: Packed, *args: Any) -> Tensor:
    """Call the operator for each image; stack the results, or put them one after the other."""
    count = operator.tensors - 1
    data, sizes, offsets, *parameters = args[: 3 + count]
    channels, *rest, interleaved = args[3 + count :]
    images = packing.images_of(data, sizes, offsets, channels, interleaved)
    made = []
    for i, image in enumerate(images):
        made.append(operator.overload(image, *of_image(operator, parameters, i), *rest))
    if not facet.keeps_size:
        return torch.stack(made)
    return torch.cat([(x.permute(1, 2, 0) if interleaved else x).reshape(-1) for x in made])


def of_image(operator: Operator, parameters: list[Tensor | None], i: int) -> list[Tensor | None]:
    """Return the parameters of the i-th image; those without a leading dimension are shared."""
    cores = operator.vmap.core[1:]  # type: ignore[union-attr]
    return [
        x if x is None or x.ndim <= core else x[i if x.shape[0] > 1 else 0]
        for x, core in zip(parameters, cores, strict=True)
    ]


def resize_each(
    data: Tensor,
    sizes: Tensor,
    offsets: Tensor,
    targets: Tensor,
    channels: int,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None,
    interleaved: bool,
) -> list[Tensor]:
    """Return each of the packed images, resized to its own size."""
    images, resize = packing.images_of(data, sizes, offsets, channels, interleaved), table["imgops::resize"]
    return [
        resize.overload(image, None, *target, interpolation, antialias, scale)
        for image, target in zip(images, targets.tolist(), strict=True)
    ]


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
    how = channels, interpolation, antialias, None, interleaved
    each = resize_each(data, sizes, offsets, targets, *how)
    made = [
        window(image, left, top, height, width, fill)
        for image, (left, top) in zip(each, corners.tolist(), strict=True)
    ]
    if made:
        return torch.stack(made)
    return data.reshape(0, channels, height, width)


def window(image: Tensor, left: int, top: int, height: int, width: int, fill: Sequence[float]) -> Tensor:
    """Return a part of an image, with a color for each channel outside of the image."""
    crop, pad = table["imgops::crop"].overload, table["imgops::pad"].overload
    high, wide = image.shape[-2:]
    box = max(left, 0), max(top, 0), min(left + width, wide), min(top + height, high)
    if not any(fill) or box == (left, top, left + width, top + height):
        return crop(image, left, top, left + width, top + height)  # type: ignore[no-any-return]
    color = torch.tensor(fill, dtype=torch.float64, device="cpu").expand(image.shape[-3])
    if box[0] >= box[2] or box[1] >= box[3]:  # nothing of the image is seen
        seen = image[..., :1, :1] * 0
        sides = (0, 0, width, height)
        return crop(pad(seen, color, *sides, "constant"), 1, 1, 1 + width, 1 + height)  # type: ignore[no-any-return]
    sides = (box[0] - left, box[1] - top, left + width - box[2], top + height - box[3])
    return pad(crop(image, *box), color, *sides, "constant")  # type: ignore[no-any-return]
