"""CPU kernels of the morphological operators: by OpenCV, plane by plane or frame by frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops.decomposition._borders import margins
from imgops.kernels.cpu import _opencv


def erode(out: Tensor, image: Tensor, kernel: Tensor, padding_mode: str) -> None:
    _morph(out, image, kernel, padding_mode, cv2.erode)


def dilate(out: Tensor, image: Tensor, kernel: Tensor, padding_mode: str) -> None:
    _morph(out, image, kernel, padding_mode, cv2.dilate)


def hit_or_miss(out: Tensor, image: Tensor, kernel: Tensor, padding_mode: str) -> None:
    def hit_or_miss_of(a: np.ndarray, b: np.ndarray | None, flag: int, pattern: np.ndarray) -> np.ndarray:
        return cv2.morphologyEx(a, cv2.MORPH_HITMISS, pattern, b, borderType=flag)

    work = _opencv.each_channel(
        _opencv.with_border(hit_or_miss_of, padding_mode, margins(*kernel.shape[-2:]))
    )
    _opencv.on_planes_with(out, image, (torch.uint8,), work, (kernel.sign().to(torch.int32), 2))


def _morph(out: Tensor, image: Tensor, kernel: Tensor, padding_mode: str, call: Callable[..., Any]) -> None:
    def with_element(a: np.ndarray, b: np.ndarray | None, flag: int, values: np.ndarray) -> np.ndarray:
        element = values if values.dtype == np.uint8 else np.not_equal(values, 0).view(np.uint8)
        return call(a, element, dst=b, borderType=flag)

    work = _opencv.with_border(with_element, padding_mode, margins(*kernel.shape[-2:]))
    _opencv.on_planes_with(out, image, _opencv.TYPES, work, (kernel, 2))
