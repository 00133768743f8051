"""Operators of packed images as loops over their images: the gradient, and every device but the CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops._common import packing
from imgops._operator.record import Operator, Packed


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
