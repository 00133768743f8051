"""Positions far outside of an image, which OpenCV folds back one period at a time.

With "reflect" and "symmetric" OpenCV's time grows with the distance, without a bound: a warp that diverges
would freeze a training run. The positions of a map are folded beforehand, exactly, so that the result keeps
every bit. OpenCV computes the positions of a matrix itself, so ATen computes a sample whose matrix reaches
too far.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from imgops.decomposition.geometry import FAR

Size = Sequence[int]

#: The most periods that OpenCV may fold, which takes at most some microseconds a pixel.
_MOST_PERIODS = 256
#: Beyond this distance single precision has no fractions, and soon OpenCV's integers overflow.
_FARTHEST = 2.0**24


def hangs(size: Size, interpolation: str, padding_mode: str) -> bool:
    """Return whether OpenCV would never return: for a bicubic "reflect" along a side of one pixel."""
    return padding_mode == "reflect" and interpolation == "bicubic" and min(size) == 1


def _period(size: int, padding_mode: str) -> int:
    return {"wrap": size, "symmetric": 2 * size, "reflect": max(2 * size - 2, 1)}[padding_mode]


def _limit(size: int, interpolation: str, padding_mode: str) -> float:
    """Return how far outside OpenCV may sample along an axis.

    Its bicubic filter folds at most twice, at any distance.
    """
    if padding_mode in ("edge", "wrap") or interpolation == "bicubic":
        return _FARTHEST
    return min(float(_MOST_PERIODS * _period(size, padding_mode)), _FARTHEST)


def reaches(
    matrix: Tensor, image: Tensor, out_size: Size, interpolation: str, padding_mode: str
) -> list[bool]:
    """Return for each matrix whether it samples farther outside than OpenCV should.

    The list has one element if all samples share a matrix.
    """
    size = image.shape[-2:]
    matrices = matrix.detach().double().reshape(-1, *matrix.shape[-2:]).numpy()
    if hangs(size, interpolation, padding_mode):
        return [True] * len(matrices)
    if padding_mode == "constant":
        floats = image.is_floating_point() and interpolation != "nearest"
        return [floats and _meets_the_horizon(m, out_size) for m in matrices]
    limits = _limit(size[1], interpolation, padding_mode), _limit(size[0], interpolation, padding_mode)
    with np.errstate(all="ignore"):
        return [not _stays_within(m, out_size, limits) for m in matrices]


def _stays_within(matrix: np.ndarray, out_size: Size, limits: tuple[float, float]) -> bool:
    """Return whether all positions of a matrix are within ``limits``; a NaN is not."""
    (u, v, *w), _ = _seen(matrix, out_size)
    if w:
        u, v = u / w[0], v / w[0]
    return bool(np.abs(u).max() <= limits[0] and np.abs(v).max() <= limits[1])


def _meets_the_horizon(matrix: np.ndarray, out_size: Size) -> bool:
    """Return whether a pixel shows a place that is infinitely far, where OpenCV interpolates NaN."""
    (u, v, *w), crosses = _seen(matrix, out_size)
    return crosses and not bool(np.all(np.maximum(np.abs(u), np.abs(v)) < np.abs(w[0]) * FAR))


def _seen(matrix: np.ndarray, out_size: Size) -> tuple[np.ndarray, bool]:
    """Return the homogeneous positions of the corners, and whether the horizon may cross the image.

    If it may, the positions are those of all pixels.
    """
    inverse = inverse_of(matrix)
    height, width = out_size
    right, bottom = width - 1.0, height - 1.0
    corners = inverse @ np.array([[0, right, 0, right], [0, 0, bottom, bottom], [1, 1, 1, 1]])
    if len(inverse) == 2 or (corners[2] > 0).all() or (corners[2] < 0).all():
        return corners, False
    y, x = np.mgrid[0:height, 0:width]
    return inverse @ np.stack([x.ravel(), y.ravel(), np.ones(x.size)]), True


def inverse_of(matrix: np.ndarray) -> np.ndarray:
    """Return the inverse as OpenCV computes it; a singular matrix becomes 0."""
    if len(matrix) == 2:
        (a, b, x), (c, d, y) = matrix.tolist()
        determinant = a * d - b * c
        scale = 1 / determinant if determinant else 0.0
        a, b, c, d = d * scale, -b * scale, -c * scale, a * scale
        return np.array([[a, b, -a * x - b * y], [c, d, -c * x - d * y]])
    cross = np.stack([np.cross(matrix[i], matrix[j]) for i, j in ((1, 2), (2, 0), (0, 1))], 1)
    determinant = float(matrix[0] @ cross[:, 0])
    return cross * (1 / determinant if determinant else 0.0)


def fold_map(map: Tensor, size: Size, interpolation: str, padding_mode: str) -> Tensor:
    """Return a float32 map that shows the same pixels, with positions that OpenCV folds at once.

    Remainders of floats are exact. Positions outside of the image stay outside, because OpenCV samples there
    by other code.
    """
    if padding_mode == "constant":
        return map  # all positions outside show the fill
    folded = None
    for axis, length in ((0, size[1]), (1, size[0])):
        position = map.select(-3, axis)
        limit = _limit(length, interpolation, padding_mode)
        if position.numel() == 0 or bool((position.abs() <= limit).all()):
            continue
        near = torch.nan_to_num(position, nan=-FAR, posinf=FAR, neginf=-FAR)
        if padding_mode == "edge":
            near = near.clamp(-FAR, FAR)
        else:
            period = float(_period(length, padding_mode))
            turns = torch.fmod(near, period) + torch.sign(near) * period
            near = torch.where(near.abs() > limit, turns, near)
        folded = map.clone() if folded is None else folded
        folded.select(-3, axis).copy_(near)
    return map if folded is None else folded
