"""Fakes of the distance transform and of connected components."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from imgops._common import check, layout
from imgops._common.check import fail


def distance_transform(image: Tensor, kernel_size: int, distance: str) -> Tensor:
    op = "distance_transform"
    _mask(op, image)
    check.choice(op, "distance", distance, ("l2", "l1", "c"))
    if kernel_size not in (0, 3, 5):
        fail(ValueError, op, "kernel_size must be one of 5, 3, 0", check.number(kernel_size))
    return layout.empty(image, *image.shape[-2:], dtype=torch.float32)


def component_labels(image: Tensor, connectivity: int) -> Tensor:
    _mask("connected_components", image)
    if connectivity not in (4, 8):
        must = "connectivity must be 4 or 8"
        fail(ValueError, "connected_components", must, check.number(connectivity))
    return layout.empty(image, *image.shape[-2:], dtype=torch.int32)


def _mask(op: str, image: Tensor) -> None:
    check.image(op, "image", image)
    check.dtype(op, "image", image, torch.uint8, torch.bool)
    check.pixels(op, "image", *image.shape[-2:])


def component_statistics(new_size: Callable[..., int], labels: Tensor) -> Tensor:
    check.image("component_statistics", "labels", labels)
    check.dtype("component_statistics", "labels", labels, torch.int32)
    size = (*labels.shape[:-2], new_size(min=1, max=check.INT32_MAX), 7)
    return labels.new_empty(size, dtype=torch.float64)
