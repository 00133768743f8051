"""CPU kernels of the morphological operators: OpenCV's, plane by plane or frame by frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops.decomposition._borders import margins
from imgops.kernels import _values
from imgops.kernels.cpu import _opencv


def erode(out: Tensor, image: Tensor, kernel: Tensor, border: str) -> None:
    _values.element("erode", kernel)
    _morph(out, image, kernel != 0, border, cv2.erode)


def dilate(out: Tensor, image: Tensor, kernel: Tensor, border: str) -> None:
    _values.element("dilate", kernel)
    _morph(out, image, kernel != 0, border, cv2.dilate)


def hit_or_miss(out: Tensor, image: Tensor, kernel: Tensor, border: str) -> None:
    _values.element("morphology", kernel)

    def call(source: np.ndarray, element: np.ndarray, **how: Any) -> np.ndarray:
        """It works in place on what it is given, and takes one channel."""
        planes = cv2.split(source)
        made = [cv2.morphologyEx(p, cv2.MORPH_HITMISS, element, **{**how, "dst": None}) for p in planes]
        return cv2.merge(made) if len(made) > 1 else made[0]

    def copied(source: np.ndarray, element: np.ndarray, dst: np.ndarray | None, borderType: int) -> Any:
        made = call(source, element, borderType=borderType)
        if dst is not None:
            np.copyto(dst, made.reshape(dst.shape))
        return made

    _morph(out, image, kernel.sign().to(torch.int8), border, copied)


def _morph(out: Tensor, image: Tensor, kernel: Tensor, border: str, call: Callable[..., Any]) -> None:
    around = margins(*kernel.shape[-2:])
    signed = kernel.dtype == torch.int8

    def work(source: np.ndarray, target: np.ndarray, element: np.ndarray) -> None:
        element = element.astype(np.int32 if signed else np.uint8)
        _opencv.filtered(
            lambda a, b, flag: call(a, element, dst=b, borderType=flag), source, target, border, around
        )

    types = (torch.uint8, torch.float32, torch.float64)
    _opencv.on_planes_with(out, image, types, work, (kernel, 2))
