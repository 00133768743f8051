"""Boxes with an angle, as torchvision has them: XYWHR, CXCYWHR and XYXYXYXY.

Angles are degrees, counterclockwise on the screen. A polygon is the corners of a box, ``(n, 4, 2)``: of a box
without an angle the upper left, upper right, lower right and lower left one. The first edge is the width.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor
from torchvision.transforms import v2

#: The corners of a mirrored box in torchvision's order: the width stays the width.
MIRRORED = (1, 0, 3, 2)


def polygons_of(boxes: Tensor, format: Any) -> Tensor:
    """Return the corners of boxes with an angle, float64."""
    flat = boxes.reshape(-1, boxes.shape[-1]).double()
    return v2.functional.convert_bounding_box_format(flat, format, "XYXYXYXY").reshape(-1, 4, 2)


def from_polygons(polygons: Tensor, format: Any) -> Tensor:
    """Return rectangles as boxes ``(n, 5)`` or ``(n, 8)``."""
    return v2.functional.convert_bounding_box_format(polygons.reshape(-1, 8), "XYXYXYXY", format)


def upright(polygons: Tensor) -> Tensor:
    """Return the smallest boxes without an angle around polygons: left, top, right and bottom."""
    return torch.cat(polygons.aminmax(dim=1), -1)


def axes(polygons: Tensor) -> Tensor:
    """Return the directions of the width and of the height, ``(n, 2, 2)``, perpendicular and of length 1.

    The longer side decides, because the sides of a box on a stretched image are no longer perpendicular.
    """
    wide, high = polygons[:, 1] - polygons[:, 0], polygons[:, 3] - polygons[:, 0]
    normal = torch.stack([high[:, 1], -high[:, 0]], -1)
    normal = torch.where((normal * wide).sum(-1, keepdim=True) < 0, -normal, normal)
    is_wide = wide.norm(dim=-1, keepdim=True) >= high.norm(dim=-1, keepdim=True)
    edge = torch.where(is_wide, wide, normal)
    length = edge.norm(dim=-1, keepdim=True)
    level = torch.zeros_like(edge)
    level[:, 0] = 1
    along = torch.where(length > 0, edge / length.clamp(min=1e-300), level)
    return torch.stack([along, torch.stack([-along[:, 1], along[:, 0]], -1)], 1)


def around(points: Tensor, counts: Tensor, along: Tensor) -> Tensor:
    """Return the smallest boxes with given axes around those points that count; around none, zeros.

    Parameters
    ----------
    points : Tensor
        ``(n, m, 2)``.
    counts : Tensor
        ``(n, m)``, bool.
    along : Tensor
        ``(n, 2, 2)``, as :func:`axes` returns them.

    Returns
    -------
    Tensor
        Polygons.
    """
    places = points @ along.mT
    low = places.masked_fill(~counts[..., None], float("inf")).amin(1)
    high = places.masked_fill(~counts[..., None], -float("inf")).amax(1)
    return _from_extents(low, high, along, counts.any(-1))


def _from_extents(low: Tensor, high: Tensor, along: Tensor, exists: Tensor) -> Tensor:
    left, top = low.unbind(-1)
    right, bottom = high.unbind(-1)
    x, y = torch.stack([left, right, right, left], -1), torch.stack([top, top, bottom, bottom], -1)
    corners = torch.stack([x, y], -1) @ along
    return torch.where(exists[:, None, None], corners, 0.0)


def shrink(polygons: Tensor, tight: Tensor) -> Tensor:
    """Shrink boxes to others of the same axes, and never enlarge them; empty ones make them zeros."""
    along = axes(polygons)
    before, after = (corners @ along.mT for corners in (polygons, tight))
    low = torch.maximum(before.amin(1), after.amin(1))
    high = torch.minimum(before.amax(1), after.amax(1))
    exists = (tight != 0).flatten(1).any(-1) & (high > low).all(-1)
    return _from_extents(low, high, along, exists)


def clip(polygons: Tensor, height: Any, width: Any, top: Any = 0, left: Any = 0) -> Tensor:
    """Clip convex polygons to an image, and return the smallest boxes of their own angle around what is left.

    Such a box lies inside of the one before. Polygons inside of the image stay as they are, as those that are
    not numbers do; those outside become zeros. ``top`` and ``left`` are where the image begins.
    """
    zero = torch.zeros_like(polygons[:, 0, 0])
    x0, y0 = zero + left, zero + top
    x1, y1 = x0 + width, y0 + height
    low, high = torch.stack([x0, y0], -1)[:, None], torch.stack([x1, y1], -1)[:, None]
    frame = torch.stack([torch.stack([x0, x1, x1, x0], -1), torch.stack([y0, y0, y1, y1], -1)], -1)
    edges = polygons.roll(-1, 1) - polygons
    # The rest has its corners where an edge enters and leaves the image, and at the image's own corners
    # inside of the polygon. The shares of an edge between which it is inside are those of Liang and Barsky.
    is_parallel = edges == 0
    steps = torch.where(is_parallel, 1.0, edges)
    first, second = (low - polygons) / steps, (high - polygons) / steps
    enters = torch.where(is_parallel, 0.0, torch.minimum(first, second)).amax(-1).clamp(min=0)
    leaves = torch.where(is_parallel, 1.0, torch.maximum(first, second)).amin(-1).clamp(max=1)
    is_between = (polygons >= low) & (polygons <= high)
    crosses = (enters <= leaves) & (is_between | ~is_parallel).all(-1)
    reach = frame[:, :, None] - polygons[:, None]  # from each corner of the polygons to each of the image
    sides = edges[:, None, :, 0] * reach[..., 1] - edges[:, None, :, 1] * reach[..., 0]
    has_area = (edges[:, 0, 0] * edges[:, 1, 1] != edges[:, 0, 1] * edges[:, 1, 0])[:, None]
    holds = ((sides >= 0).all(-1) | (sides <= 0).all(-1)) & has_area
    ends = [polygons + edges * share[..., None] for share in (enters, leaves)]
    counts = torch.cat([crosses, crosses, holds], 1) & (high > low).all(-1)
    rest = around(torch.cat([*ends, frame], 1), counts, axes(polygons))
    stays = is_between.flatten(1).all(-1) | polygons.isnan().flatten(1).any(-1)
    return torch.where(stays[:, None, None], polygons, rest)


def crop(boxes: Tensor, format: Any, top: int, left: int, height: int, width: int) -> Tensor:
    """Return boxes of a format in a crop, clipped to it; those inside keep their sides and angle."""
    flat = boxes.reshape(-1, boxes.shape[-1]).double()
    offset = flat.new_tensor([left, top])
    polygons = polygons_of(boxes, format) - offset
    clipped = clip(polygons, height, width)
    stays = (clipped == polygons).flatten(1).all(-1, keepdim=True)
    corners = format.value == "XYXYXYXY"
    moved = polygons.flatten(1) if corners else torch.cat([flat[:, :2] - offset, flat[:, 2:]], 1)
    return torch.where(stays, moved, from_polygons(clipped, format))


def smallest(points: Tensor, corners: Tensor) -> Tensor:
    """Return the smallest boxes of any angle around points ``(n, m, 2)`` on the CPU.

    ``corners`` ``(n, 4, 2)`` are where the corners of a polygon went. The first corner of a result is the one
    that lies nearest to the first of them, and so on, so that a box does not turn on its own.
    """
    found = [_smallest(p, c) for p, c in zip(points.numpy(), corners.numpy(), strict=True)]
    return torch.from_numpy(np.stack(found)) if found else corners


def _smallest(points: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Return the smallest box of any angle around points ``(m, 2)``; one side lies on their hull."""
    if not np.isfinite(points).all():
        return np.full_like(corners, np.nan)
    places = cv2.convexHull((points - points[0]).astype(np.float32), returnPoints=False)[:, 0]
    hull = points[places]
    edges = np.roll(hull, -1, 0) - hull
    lengths = np.linalg.norm(edges, axis=1, keepdims=True)
    across = np.where(lengths > 0, edges / np.maximum(lengths, 1e-300), (1.0, 0.0))
    along = np.stack([across, np.stack([-across[:, 1], across[:, 0]], 1)], 1)
    places = points @ along.transpose(0, 2, 1)
    low, high = places.min(1), places.max(1)
    best = (high - low).prod(1).argmin()
    (left, top), (right, bottom) = low[best], high[best]
    box = np.array([[left, top], [right, top], [right, bottom], [left, bottom]]) @ along[best]
    following = np.roll(corners, -1, 0)
    area = (corners[:, 0] * following[:, 1] - corners[:, 1] * following[:, 0]).sum()
    orders = [np.roll(box if area >= 0 else box[::-1], i, 0) for i in range(4)]
    return min(orders, key=lambda order: ((order - corners) ** 2).sum())


def share_inside(flags: np.ndarray, polygon: np.ndarray) -> float:
    """Return the share of the pixels inside of a polygon ``(m, 2)`` for which flags ``(H, W)`` are True.

    A pixel belongs to the polygon if its center does; of no pixels the share is 0.
    """
    if not np.isfinite(polygon).all():
        return 0.0
    shape = np.array(flags.shape[::-1])
    left, top = np.clip(np.floor(polygon.min(0)), 0, shape).astype(int)
    right, bottom = np.clip(np.ceil(polygon.max(0)), 0, shape).astype(int)
    x, y = np.arange(left, right) + 0.5, np.arange(top, bottom)[:, None] + 0.5
    inside = np.zeros((bottom - top, right - left), bool)
    for (x0, y0), (x1, y1) in zip(polygon, np.roll(polygon, -1, 0), strict=True):
        if y0 != y1:  # a ray to the right crosses the outline an odd number of times
            inside ^= ((y0 > y) != (y1 > y)) & (x < x0 + (y - y0) * ((x1 - x0) / (y1 - y0)))
    count = inside.sum()
    return float((flags[top:bottom, left:right] & inside).sum() / count) if count else 0.0
