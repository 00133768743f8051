"""The positions of points and boxes after a ``remap``, whose map says where each pixel comes from."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops.transforms._core import rotated_boxes

#: The number of points that are moved on each edge of a box, including its corners.
POINTS = 33
_STEPS = 20
#: A point counts as found if the map is within this distance of it, in pixels.
_NEAR = 0.05


def points(map: Tensor, targets: Tensor) -> Tensor:
    """Find the positions q with map(q) = p, for each target p.

    Parameters
    ----------
    map : Tensor
        ``(2, H, W)``, float64: the x and y of the position that each pixel comes from.
    targets : Tensor
        ``(n, 2)``, float64: positions of pixels.

    Returns
    -------
    Tensor
        ``(n, 2)``. Between pixels the map is interpolated linearly; beyond them its displacement is constant.
        A point without such a position, or with one outside of the image, is put at the position whose map is
        nearest, on the border of the image. A point that is not finite becomes NaN.
    """
    if not targets.numel():
        return targets
    is_finite = targets.isfinite().all(-1, keepdim=True)
    if not bool(is_finite.all()):
        return torch.where(is_finite, points(map, targets.nan_to_num(0, 0, 0)), float("nan"))
    height, width = map.shape[-2:]
    y, x = (torch.arange(n, dtype=torch.float64, device="cpu") for n in (height, width))
    shift = map - torch.stack([x.expand(height, width), y[:, None].expand(height, width)])
    places = targets.clone()
    best = targets.clone()
    best_miss = torch.full((len(targets),), float("inf"), dtype=targets.dtype, device="cpu")
    for step in range(_STEPS + 1):
        a, b, c, d, x, y = _cell(shift, places)
        miss = places + (a * (1 - x) + b * x) * (1 - y) + (c * (1 - x) + d * x) * y - targets
        far = miss.norm(dim=-1)
        better = far < best_miss
        best = torch.where(better[:, None], places, best)
        best_miss = torch.where(better, far, best_miss)
        if step == _STEPS or bool((best_miss < _NEAR * 1e-6).all()):
            break
        # The Newton step that would reduce the error to 0 if the map were linear.
        by_x, by_y = (b - a) * (1 - y) + (d - c) * y, (c - a) * (1 - x) + (d - b) * x
        one = torch.eye(2, dtype=shift.dtype, device="cpu")
        slope = torch.stack([by_x, by_y], -1) + one
        size = slope[:, 0, 0] * slope[:, 1, 1] - slope[:, 0, 1] * slope[:, 1, 0]
        safe = torch.where(size.abs() > 0.1, size, 1.0)
        newton = torch.stack(
            [
                slope[:, 1, 1] * miss[:, 0] - slope[:, 0, 1] * miss[:, 1],
                slope[:, 0, 0] * miss[:, 1] - slope[:, 1, 0] * miss[:, 0],
            ],
            -1,
        )
        places = places - torch.where((size.abs() > 0.1)[:, None], newton / safe[:, None], miss)
    is_lost = best_miss > _NEAR
    if bool(is_lost.any()):  # in a fold or outside, use the nearest pixel
        best[is_lost] = _nearest(map, targets[is_lost])
    limit = torch.tensor([width, height], dtype=targets.dtype, device="cpu") - 0.5
    return torch.minimum(best.clamp(min=-0.5), limit)


def boxes(map: Tensor, targets: Tensor) -> Tensor:
    """Return the smallest boxes around the moved corners and edges of boxes ``(n, 4)``.

    The numbers are left, top, right and bottom. Coordinates of boxes refer to the edges of pixels, those of
    maps to their centers, half a pixel apart.
    """
    if not targets.numel():
        return targets
    corners = targets[:, [[0, 1], [2, 1], [2, 3], [0, 3]]]
    low, high = _outlines(map, corners).aminmax(dim=1)
    return torch.cat([low, high], -1)


def polygons(map: Tensor, targets: Tensor) -> Tensor:
    """Return the smallest boxes of any angle around the moved outlines of polygons ``(n, 4, 2)``."""
    if not targets.numel():
        return targets
    outlines = _outlines(map, targets)
    return rotated_boxes.smallest(outlines, outlines[:, :: POINTS - 1])


def _outlines(map: Tensor, corners: Tensor) -> Tensor:
    """Return points on the moved outlines of polygons, ``(n, 4 * (POINTS - 1), 2)``, from the corner on."""
    share = torch.linspace(0, 1, POINTS, dtype=corners.dtype, device="cpu")[:-1, None]
    start, end = corners[:, :, None], corners.roll(-1, 1)[:, :, None]
    outline = (start + (end - start) * share).reshape(-1, 2)
    return (points(map, outline - 0.5) + 0.5).reshape(len(corners), -1, 2)


def _cell(shift: Tensor, at: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the four values around each position, ``(n, 2)`` each, and the fractions between them."""
    height, width = shift.shape[-2:]
    x, y = at[:, 0].clamp(0, width - 1), at[:, 1].clamp(0, height - 1)
    left, top = (v.floor().clamp(max=max(n - 2, 0)) for v, n in ((x, width), (y, height)))
    i, j = left.long(), top.long()
    right, bottom = (i + 1).clamp(max=width - 1), (j + 1).clamp(max=height - 1)
    corners = (shift[:, b, a].mT for b in (j, bottom) for a in (i, right))
    return *corners, (x - left)[:, None], (y - top)[:, None]  # type: ignore[return-value]


def _interpolate(shift: Tensor, at: Tensor) -> Tensor:
    a, b, c, d, x, y = _cell(shift, at)
    return (a * (1 - x) + b * x) * (1 - y) + (c * (1 - x) + d * x) * y


def _nearest(map: Tensor, targets: Tensor) -> Tensor:
    """Return the pixels whose map is nearest to the points."""
    width = map.shape[-1]
    flat = map.reshape(2, -1)
    places = [((flat - p[:, None]).square().sum(0)).argmin() for p in targets]
    at = torch.stack(places)
    return torch.stack([at % width, at // width], -1).to(targets.dtype)
