"""Fakes of the distance transform and of connected components."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from imgops._common import check, layout
from imgops._common.check import fail

DISTANCES = ("l2", "l1", "c")


def distance_transform(image: Tensor, kernel_size: int, distance: str) -> Tensor:
    op = "distance_transform"
    _mask(op, image)
    check.choice(op, "distance", distance, DISTANCES)
    if kernel_size not in (0, 3, 5):
        fail(ValueError, op, "kernel_size must be one of 5, 3, 0", check.number(kernel_size))
    return layout.empty(image, *image.shape[-2:], dtype=torch.float32)


def component_labels(image: Tensor, connectivity: int) -> Tensor:
    op = "connected_components"
    _mask(op, image)
    if connectivity not in (4, 8):
        fail(ValueError, op, "connectivity must be 4 or 8", check.number(connectivity))
    return layout.empty(image, *image.shape[-2:], dtype=torch.int32)


def _mask(op: str, image: Tensor) -> None:
    check.image(op, "image", image)
    if image.dtype not in (torch.uint8, torch.bool):
        fail(TypeError, op, "image must be uint8 or bool", image.dtype)
    check.pixels(op, "image", *image.shape[-2:])


def component_statistics(new_size: Callable[..., int], labels: Tensor) -> Tensor:
    op = "component_statistics"
    check.image(op, "labels", labels)
    if labels.dtype != torch.int32:
        fail(TypeError, op, "labels must be int32", labels.dtype)
    size = (*labels.shape[:-2], new_size(min=1, max=check.INT32_MAX), 7)
    return labels.new_empty(size, dtype=torch.float64)
