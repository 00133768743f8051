"""Connected components in a fixed number of steps, without reading anything back from a device.

Each round joins every component to its smallest neighbor (Borůvka's algorithm), so that no components are
left to join after log2(n) rounds. Pointer jumping halves the paths in as many rounds.
"""

from __future__ import annotations

import torch
from torch import Tensor

#: The offsets (down, right) to the neighbors of a pixel, with each pair of neighbors only once.
_NEIGHBORS = {4: ((0, 1), (1, 0)), 8: ((0, 1), (1, 0), (1, 1), (1, -1))}


def components(mask: Tensor, connectivity: int) -> Tensor:
    """Return, for each pixel of masks ``(P, H, W)``, the index of one pixel of its component.

    The index refers to the flattened plane. Each pixel outside of the mask is a separate component.
    """
    planes, height, width = mask.shape
    count = height * width
    own = torch.arange(count, device=mask.device, dtype=torch.int64).expand(planes, count)
    flat = mask.reshape(planes, count)
    pairs = []
    for down, right in _NEIGHBORS[connectivity]:
        left = max(-right, 0)
        first = own.reshape(planes, height, width)[:, : height - down, left : width - max(right, 0)]
        one = first.flatten(1)
        other = one + down * width + right
        joined = flat.gather(1, one) & flat.gather(1, other)
        pairs.append((one, other, joined))
    root = own
    # The number of components can be halved this many times; for a symbolic size, assume the largest image.
    rounds = max(count - 1, 1).bit_length() if type(count) is int else 31
    for _ in range(rounds):
        nearest = torch.full_like(own, count)
        for one, other, joined in pairs:
            a, b = root.gather(1, one), root.gather(1, other)
            apart = joined & (a != b)
            nearest = nearest.scatter_reduce(1, a, torch.where(apart, b, count), "amin")
            nearest = nearest.scatter_reduce(1, b, torch.where(apart, a, count), "amin")
        parent = torch.where(nearest == count, own, nearest)
        mutual = (parent.gather(1, parent) == own) & (own < parent)
        parent = torch.where(mutual, own, parent)
        for _ in range(rounds):
            parent = parent.gather(1, parent)
        root = parent.gather(1, root)
    return root.reshape(mask.shape)


def reaches(mask: Tensor, seed: Tensor) -> Tensor:
    """Return the mask of the pixels that are connected to a seed within ``mask``, by 8 neighbors."""
    root = components(mask, 8).flatten(1)
    found = torch.zeros_like(root).scatter_reduce(1, root, (seed & mask).flatten(1).long(), "amax")
    return found.gather(1, root).bool().reshape(mask.shape) & mask
