"""CPU kernels of the distance transform and of connected components, by OpenCV, channel by channel."""

from __future__ import annotations

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops.kernels.cpu import _opencv


def distance_transform(out: Tensor, image: Tensor, kernel_size: int, distance: str) -> None:
    flag = {"l1": cv2.DIST_L1, "l2": cv2.DIST_L2, "c": cv2.DIST_C}[distance]

    def work(source: np.ndarray, target: np.ndarray) -> None:
        cv2.distanceTransform(source, flag, kernel_size, dst=target)
        if distance == "l2" and kernel_size == 0:
            # The last bit of OpenCV's distances depends on where their memory lies: take the correctly
            # rounded root of a whole number instead.
            sure = target < _SURE
            squares = np.rint(np.square(target, dtype=np.float64, where=sure, out=np.zeros(target.shape)))
            np.copyto(target, np.sqrt(squares), casting="same_kind", where=sure)

    _opencv.on_planes_with(out, _bytes(image), (torch.uint8,), _opencv.each_channel(work))


#: Below this distance, single precision still tells its square, a whole number, from the next whole number.
_SURE = 1000


def component_labels(out: Tensor, image: Tensor, connectivity: int) -> None:
    def work(source: np.ndarray, target: np.ndarray) -> None:
        cv2.connectedComponents(source, target, connectivity, cv2.CV_32S)

    _opencv.on_planes_with(out, _bytes(image), (torch.uint8,), _opencv.each_channel(work))


def _bytes(image: Tensor) -> Tensor:
    return image.view(torch.uint8) if image.dtype == torch.bool else image


def component_statistics(labels: Tensor) -> Tensor:
    """Return left, top, width, height, area, and the mean of x and y, of each label.

    For a label without pixels the means are NaN and the other numbers 0.
    """
    planes = labels.detach().flatten(0, -3).contiguous().numpy()
    height, width = labels.shape[-2:]
    count = int(planes.max(initial=0)) + 1
    out = np.zeros((len(planes), count, 7))
    y, x = (axis.ravel() for axis in np.mgrid[:height, :width])
    for plane, rows in zip(planes, out, strict=True):
        flat = plane.ravel()
        low = np.full((2, count), max(height, width))
        high = np.full((2, count), -1)
        for axis, values in enumerate((x, y)):
            np.minimum.at(low[axis], flat, values)
            np.maximum.at(high[axis], flat, values)
        area = np.bincount(flat, minlength=count)
        there = area > 0
        rows[:, :2], rows[:, 2:4], rows[:, 4] = low.T, (high - low).T + 1, area
        rows[~there, :4] = 0
        for axis, values in enumerate((x, y)):
            total = np.bincount(flat, values, count)
            rows[:, 5 + axis] = np.divide(total, area, out=np.full(count, np.nan), where=there)
    return torch.from_numpy(out).reshape(*labels.shape[:-2], count, 7)
