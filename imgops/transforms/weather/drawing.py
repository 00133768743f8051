"""Drawing of weather with OpenCV's discs and lines, at positions that depend on a seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
import torch

from imgops.transforms._core.probabilistic import from_seed

#: The number of drops for each row of the image.
DROPS = {"drizzle": 1 / 4, "rain": 1 / 3, "heavy": 1.0, "torrential": 2.0}


def _shares(generator: torch.Generator, *shape: int) -> np.ndarray:
    """Draw numbers in [0, 1)."""
    return torch.rand(*shape, generator=generator, dtype=torch.float64, device="cpu").numpy()


# -- fog -----------------------------------------------------------------------------------------------


def fog_patches(height: int, width: int, intensity: float, seed: float) -> tuple[np.ndarray, np.ndarray]:
    """Return centers ``(n, 2)`` and radii ``(n,)`` of patches, drawn in ten shrinking central parts."""
    generator = from_seed(seed)
    side = max(1, int(width // 3 * intensity))
    wide, high, centers = width, height, []
    for _ in range(10):
        if wide <= side or high <= side:
            break
        count = int(wide * high / side**2 * intensity * 10)
        spread = np.array([wide // 2, high // 2])
        middle = np.array([(width - 1) // 2, (height - 1) // 2])
        centers.append(middle - spread + (_shares(generator, count, 2) * (2 * spread + 1)).astype(np.int64))
        wide, high = int(wide * 0.9), int(high * 0.9)
    places = np.concatenate(centers) if centers else np.zeros((0, 2), np.int64)
    largest = max(2, int(min(height, width) * 0.1 * intensity))
    smallest = max(1, largest // 2)
    return places, smallest + (_shares(generator, len(places)) * (largest - smallest)).astype(np.int64)


def count_discs(height: int, width: int, centers: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Count the discs that cover each pixel, as int32."""
    counts = np.zeros((height, width), np.int32)
    discs: dict[int, np.ndarray] = {
        r: cv2.circle(np.zeros((2 * r + 1, 2 * r + 1), np.uint8), (r, r), r, 1, -1)
        for r in set(radii.tolist())
    }
    for (x, y), radius in zip(centers.tolist(), radii.tolist(), strict=True):
        left, top = x - radius, y - radius
        a, b = max(left, 0), max(top, 0)
        c, d = min(x + radius + 1, width), min(y + radius + 1, height)
        if a < c and b < d:
            counts[b:d, a:c] += discs[radius][b - top : d - top, a - left : c - left]
    return counts


def fog_levels(layers: int, alpha: float) -> np.ndarray:
    """Return each level under 0, 1, ... patches, ``(layers + 1, 256)``, with OpenCV's rounding."""
    white = np.full((1, 256), 255, np.uint8)
    levels: list[Any] = [np.arange(256, dtype=np.uint8)[None]]
    for _ in range(layers):
        levels.append(cv2.addWeighted(white, alpha, levels[-1], 1 - alpha, 0))
    return np.concatenate(levels)


# -- rain ----------------------------------------------------------------------------------------------


def drops(height: int, width: int, method: str, length: int, seed: float) -> np.ndarray:
    count = int(height * DROPS[method])
    limits = [width, max(height - length, 1)]
    return (_shares(from_seed(seed), count, 2) * limits).astype(np.int32)


# -- sun -----------------------------------------------------------------------------------------------


def flare(
    height: int,
    width: int,
    region: Sequence[float],
    angle: Sequence[float],
    num_circles: Sequence[int],
    color: Sequence[int],
    seed: float,
) -> tuple[tuple[int, int], list[Any]]:
    """Return the sun and its mirror images on a line through it: (opacity, (x, y), size, color)."""
    generator = from_seed(seed)
    turn, x, y, many = _shares(generator, 4)
    low, high = (bound / 360 for bound in angle)
    direction = 2 * math.pi * (low + turn * (high - low))
    left, top, right, bottom = region
    center = int(width * (left + x * (right - left))), int(height * (top + y * (bottom - top)))
    count = num_circles[0] + int(many * (num_circles[1] - num_circles[0] + 1))
    step, largest = max(1, int(math.hypot(height, width) * 0.01)), max(2, int(height * 0.01))
    along = np.arange(-center[0], width - center[0], step)
    paler = int(max(color) * 0.2)
    reflections = []
    for opacity, where, size, *shades in _shares(generator, count, 3 + len(color)).tolist():
        t = along[int(where * len(along))]
        place = int(center[0] + t * math.cos(direction)), int(center[1] + t * math.sin(direction))
        shade = tuple(
            int(max(c - paler, 0) + s * (min(c, paler) + 1)) for c, s in zip(color, shades, strict=True)
        )
        reflections.append((0.05 + 0.15 * opacity, place, (1 + int(size * largest)) ** 3, shade))
    return center, reflections


def overlay_light(
    height: int, width: int, center: tuple[int, int], radius: int, color: Any, circles: list[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weight of the image ``(H, W)`` and the light over it ``(H, W, 3)``, in levels.

    After each circle, all circles drawn so far are blended over the image.
    """
    newest = np.zeros((height, width), np.int32)  # the last circle on each pixel
    keep, light = np.ones((height, width)), np.zeros((height, width, 3))
    shades = np.array([(0, 0, 0), *(shade for *_, shade in circles)], np.float64)
    for i, (opacity, place, size, _) in enumerate(circles, 1):
        cv2.circle(newest, place, size, i, -1)
        on = newest > 0
        keep[on] *= 1 - opacity
        light[on] = (1 - opacity) * light[on] + opacity * shades[newest[on]]
    sizes = sum(size for _, _, size, _ in circles)
    brightness = sum(opacity * size for opacity, _, size, _ in circles) / sizes * 5
    rings = radius // 10
    alphas = np.linspace(0.0, min(brightness, 1.0), rings)[::-1] ** 3
    ring = np.full((height, width), rings, np.int32)  # the smallest disc around the sun on each pixel
    for i, wide in reversed(list(enumerate(np.linspace(1, radius, rings)))):
        cv2.circle(ring, center, int(wide), i, -1)
    through = np.append(np.cumprod((1 - alphas)[::-1])[::-1], 1.0)[ring]
    sun = np.asarray(color, np.float64)
    return keep * through, light * through[..., None] + (1 - through)[..., None] * sun


def screen_light(
    height: int, width: int, center: tuple[int, int], radius: int, color: Any, circles: list[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the same as :func:`overlay_light`, for light in the blend mode "screen".

    The formula of the mode is ``255 - (255 - image) * (255 - light) / 255``.
    """
    layer: Any = np.zeros((height, width, 3), np.float32)
    cv2.circle(layer, center, radius, color, -1)
    far = max(width, height)
    for degrees in (0, 45, 90, 135):
        turn = np.radians(degrees)
        end = int(center[0] + np.cos(turn) * far), int(center[1] + np.sin(turn) * far)
        cv2.line(layer, center, end, color, 2)
    for _, place, size, shade in circles:
        cv2.circle(layer, place, int(size**0.33), shade, -1)
    layer = cv2.GaussianBlur(layer, (0, 0), sigmaX=15, sigmaY=15)
    y, x = np.ogrid[:height, :width]
    distance = np.sqrt((x - center[0]) ** 2 + (y - center[1]) ** 2)
    layer *= (1 - np.clip(distance / (far * 0.7), 0, 1))[..., None].astype(np.float32)
    for channel, sigma in ((0, 3), (2, 5)):
        plane = np.ascontiguousarray(layer[..., channel])
        layer[..., channel] = cv2.GaussianBlur(plane, (0, 0), sigmaX=sigma, sigmaY=sigma)
    keep = 1 - layer.astype(np.float64) / 255
    return keep, 255 - 255 * keep
