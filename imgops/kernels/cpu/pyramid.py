"""CPU kernels of the pyramids, by OpenCV; the adjoints are by ATen."""

from __future__ import annotations

import cv2
from torch import Tensor

from imgops.decomposition import pyramid as formula
from imgops.kernels.cpu import _opencv
from imgops.kernels.decompositions import run_decomposition


def pyr_down(out: Tensor, image: Tensor) -> None:
    _opencv.on_planes_with(out, image, _opencv.TYPES, cv2.pyrDown)


def pyr_down_adjoint(out: Tensor, image: Tensor, height: int, width: int) -> None:
    run_decomposition(out, formula.pyr_down_adjoint, image, height, width)


def pyr_up(out: Tensor, image: Tensor) -> None:
    _opencv.on_planes_with(out, image, _opencv.TYPES, cv2.pyrUp)


def pyr_up_adjoint(out: Tensor, image: Tensor) -> None:
    run_decomposition(out, formula.pyr_up_adjoint, image)
