"""CPU kernel of cvt_color: by OpenCV or, for float64, which OpenCV does not take, by ATen."""

from __future__ import annotations

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops.decomposition import color_space as formula
from imgops.fake.color_space import CODES
from imgops.kernels.cpu import _opencv
from imgops.kernels.decompositions import run_decomposition


def cvt_color(out: Tensor, image: Tensor, code: str) -> None:
    flag = getattr(cv2, CODES[code])

    def convert(frame: np.ndarray, i: int, target: np.ndarray | None) -> np.ndarray:
        return cv2.cvtColor(frame, flag, target)

    if _opencv.on_frames(out, image, (torch.uint8, torch.uint16, torch.float32), convert):
        return
    for i in np.ndindex(*image.shape[:-3]):  # SIMD vectors end elsewhere in a batch, which changes powers
        run_decomposition(out[i], formula.cvt_color, image[i], code)
