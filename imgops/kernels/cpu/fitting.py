"""CPU kernel of downscale: OpenCV's resize, run twice."""

from __future__ import annotations

import cv2
import numpy as np
from torch import Tensor

from imgops.kernels.cpu import _opencv
from imgops.kernels.cpu._opencv import INTERPOLATIONS


def downscale(out: Tensor, image: Tensor, factor: Tensor, down: str, up: str) -> None:
    first, second = INTERPOLATIONS[down], INTERPOLATIONS[up]

    def work(source: np.ndarray, target: np.ndarray, share: float) -> None:
        height, width = source.shape[:2]
        small = max(round(width * float(share)), 1), max(round(height * float(share)), 1)
        cv2.resize(cv2.resize(source, small, interpolation=first), (width, height), target, 0, 0, second)

    _opencv.on_planes_with(out, image, _opencv.TYPES, work, (factor, 0))
