"""Decompositions of the distance transform and of connected components, in a fixed number of steps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops.decomposition._components import components
from imgops.decomposition._precision import finish

#: OpenCV's costs of a step along an axis, of a step along a diagonal, and of a chess knight's move.
_STEPS = {
    ("l1", 3): (1.0, 2.0, 0.0),
    ("c", 3): (1.0, 1.0, 0.0),
    ("l2", 3): (0.955, 1.3693, 0.0),
    ("l2", 5): (1.0, 1.4, 2.1969),
}
_WAYS = ((0, 1), (1, 0), (1, 1), (1, -1)), ((1, 2), (1, -2), (2, 1), (2, -1))
#: Larger than any distance and any squared distance.
_FAR = 2**40


def distance_transform(image: Tensor, kernel_size: int, distance: str) -> Tensor:
    zero = image == 0
    some = zero.flatten(-2).any(-1)[..., None, None]
    if distance == "l2" and kernel_size == 0:
        out = torch.where(some, _euclidean(zero), torch.finfo(torch.float32).max ** 0.5)
    else:
        steps = _STEPS[distance, kernel_size if distance == "l2" else 3]
        out = torch.where(some, _by_steps(zero, steps), torch.finfo(torch.float32).max)
    return finish(out, image, torch.float32)


def _by_steps(zero: Tensor, steps: tuple[float, float, float]) -> Tensor:
    """Compute the cheapest sums of steps to a zero, one direction after the other.

    This order suffices, because a shortest path has at most two kinds of steps, in any order. In each
    direction the sums are extended by 1, 2, 4, ... steps, so that they cover any number of steps.
    """
    found = torch.where(zero, 0.0, _FAR).double()
    for i, (down, right) in enumerate(_WAYS[0] + (_WAYS[1] if steps[2] else ())):
        cost = steps[0 if i < 2 else 1 if i < 4 else 2]
        for sign in (1, -1):
            times = 1
            while times * down < zero.shape[-2] and times * abs(right) < zero.shape[-1]:
                moved = _move(found, sign * down * times, sign * right * times)
                found = torch.minimum(found, moved + cost * times)
                times *= 2
    return found


def _move(x: Tensor, down: int, right: int) -> Tensor:
    """Return the value that lies ``down`` and ``right`` of each pixel; outside of the image, ``_FAR``."""
    height, width = x.shape[-2:]
    wide = torch.nn.functional.pad(
        x, (max(-right, 0), max(right, 0), max(-down, 0), max(down, 0)), value=_FAR
    )
    top, left = max(down, 0), max(right, 0)
    return wide[..., top : top + height, left : left + width]


def _euclidean(zero: Tensor) -> Tensor:
    """Compute the distances along each column first, then combine their squares along each row."""
    height, width = zero.shape[-2:]
    at = torch.arange(height, device=zero.device, dtype=torch.int64)[:, None]
    above = torch.where(zero, at, -_FAR).cummax(-2).values
    below = -torch.where(zero, -at, -_FAR).flip(-2).cummax(-2).values.flip(-2)
    apart = torch.minimum(at - above, below - at).clamp(max=2**20)
    squares = apart * apart
    found = squares
    for right in range(1, width):
        for sign in (1, -1):
            found = torch.minimum(found, _move(squares, 0, sign * right) + right * right)
    return found.double().sqrt()


def component_labels(image: Tensor, connectivity: int) -> Tensor:
    """Label components by the position of their first pixel; for 8 neighbors, of its block of 2 x 2.

    This is OpenCV's order.
    """
    height, width = image.shape[-2:]
    count: Any = height * width
    mask = (image != 0).flatten(0, -3)
    root, inside = components(mask, connectivity).flatten(1), mask.flatten(1)
    y = torch.arange(height, device=image.device, dtype=torch.int64)[:, None]
    x = torch.arange(width, device=image.device, dtype=torch.int64)
    place = (y // 2) * ((width + 1) // 2) + x // 2 if connectivity == 8 else y * width + x
    place = torch.where(inside, place.flatten(), count)
    first = torch.full_like(root, count).scatter_reduce(1, root, place, "amin")
    begins = torch.zeros((mask.shape[0], count + 1), dtype=torch.int64, device=image.device)
    begins = begins.scatter(1, first, 1)
    number = begins.cumsum(1).gather(1, first.gather(1, root))
    return finish(torch.where(inside, number, 0).reshape(image.shape), image, torch.int32)
