"""Drawn pictures of frost, which replace missing photographs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops.transforms.imagenet_c.formulas import plasma

#: The number of pictures, and their sides.
_COUNT, _SIDE = 5, 512


class DrawnFrost(Sequence[Tensor]):
    """Pictures ``(3, 512, 512)``, uint8, of feathers of ice, denser near the border; drawn at first use."""

    def __len__(self) -> int:
        return _COUNT

    def __getitem__(self, number: Any) -> Any:
        return _draw(range(_COUNT)[number])


@cache
def _draw(number: int) -> Tensor:
    random = np.random.RandomState(number)
    ice = np.zeros((_SIDE, _SIDE), np.float32)
    for i in range(420):  # feathers of ice
        at = random.uniform(-1, 1, 2)
        at = np.sign(at) * np.abs(at) ** (0.35 if i % 3 else 0.8)  # most lie near the border
        length = random.uniform(30, 120)
        angle = random.uniform(0, 2 * math.pi)
        light = random.uniform(0.35, 1)
        reach = int(length) + 2
        feather = np.zeros((2 * reach, 2 * reach), np.float32)
        _grow(feather, random, reach, reach, angle, length, light)
        left, top = ((at + 1) * _SIDE / 2).astype(int) - reach
        x = max(left, 0)
        y = max(top, 0)
        right = min(left + 2 * reach, _SIDE)
        bottom = min(top + 2 * reach, _SIDE)
        area = ice[y:bottom, x:right]
        np.maximum(area, feather[y - top : bottom - top, x - left : right - left], out=area)
    noise = torch.from_numpy(random.uniform(-1, 1, (2, _SIDE**2 - 1)).astype(np.float32))
    haze, grain = (plasma(n, _SIDE, decay).numpy() for n, decay in zip(noise, (2.2, 1.3), strict=True))
    glow = cv2.GaussianBlur(ice, (0, 0), 6)
    lights = 0.18 + 0.4 * haze + 0.5 * ice * (0.5 + 0.5 * grain) + 0.35 * glow
    color = np.array([0.86, 0.95, 1.0], np.float32)[:, None, None]
    return torch.from_numpy((np.clip(lights * color, 0, 1) * 255).astype(np.uint8))


def _grow(
    layer: np.ndarray,
    random: np.random.RandomState,
    x: float,
    y: float,
    angle: float,
    length: float,
    light: float,
) -> None:
    """Draw a needle with smaller ones on both sides, as ice grows at 60 degrees."""
    dx, dy = math.cos(angle), math.sin(angle)
    start, end = (int(16 * x), int(16 * y)), (int(16 * (x + dx * length)), int(16 * (y + dy * length)))
    cv2.line(layer, start, end, light, 1, cv2.LINE_AA, 4)  # in sixteenths of a pixel
    if length < 12:
        return
    for share in np.arange(0.12, 0.95, max(0.08, 4 / length)):
        for side in (-1, 1):
            part = length * (1 - share) * random.uniform(0.25, 0.5)
            at = x + dx * length * share, y + dy * length * share
            _grow(layer, random, *at, angle + side * math.pi / 3, part, light * 0.85)
