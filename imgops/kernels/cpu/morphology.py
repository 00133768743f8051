"""CPU kernels of the morphological operators: OpenCV's, plane by plane or frame by frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops.decomposition._borders import margins
from imgops.kernels.cpu import _opencv


def erode(out: Tensor, image: Tensor, kernel: Tensor, border: str) -> None:
    _morph(out, image, kernel, border, cv2.erode)


def dilate(out: Tensor, image: Tensor, kernel: Tensor, border: str) -> None:
    _morph(out, image, kernel, border, cv2.dilate)


def hit_or_miss(out: Tensor, image: Tensor, kernel: Tensor, border: str) -> None:

    pattern, around = kernel.sign().to(torch.int32), margins(*kernel.shape[-2:])

    def work(source: np.ndarray, target: np.ndarray, element: np.ndarray) -> None:
        def call(a: np.ndarray, b: np.ndarray | None, flag: int) -> np.ndarray:
            return cv2.morphologyEx(a, cv2.MORPH_HITMISS, element, b, borderType=flag)

        _opencv.filtered(call, source, target, border, around)

    _opencv.on_planes_with(out, image, (torch.uint8,), _opencv.each_channel(work), (pattern, 2))


def _morph(out: Tensor, image: Tensor, kernel: Tensor, border: str, call: Callable[..., Any]) -> None:
    around = margins(*kernel.shape[-2:])

    def work(source: np.ndarray, target: np.ndarray, values: np.ndarray) -> None:
        element = values if values.dtype == np.uint8 else np.not_equal(values, 0).view(np.uint8)
        _opencv.filtered(
            lambda a, b, flag: call(a, element, dst=b, borderType=flag), source, target, border, around
        )

    types = (torch.uint8, torch.float32, torch.float64)
    _opencv.on_planes_with(out, image, types, work, (kernel, 2))
