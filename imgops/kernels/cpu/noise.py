"""CPU kernels of the noise operators: by NumPy, whose steps share memory; half precision by ATen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops._common import layout
from imgops.decomposition import noise as formula
from imgops.decomposition._precision import LEVELS, white_of, working_dtype
from imgops.kernels.cpu import _opencv, _threads
from imgops.kernels.cpu._arguments import HALF, array_per_image, in_format_of
from imgops.kernels.decompositions import run_decomposition


def salt_and_pepper(out: Tensor, image: Tensor, noise: Tensor, amount: Tensor, salt: Tensor) -> None:
    if image.dtype in HALF or noise.dtype in HALF:
        run_decomposition(out, formula.salt_and_pepper, image, noise, amount, salt)
        return
    target, source, numbers = (layout.array(x.detach()) for x in (out, image, noise))
    exact = _exact(image)
    numbers = numbers.astype(exact, copy=False)
    share, white = _each(amount, image, exact), _each(salt, image, exact)
    np.copyto(target, source)
    np.copyto(target, white_of(image), where=numbers >= 1 - share * white)
    np.copyto(target, 0, where=numbers < share * (1 - white))


def shot_noise(out: Tensor, image: Tensor, noise: Tensor, scale: Tensor) -> None:
    def work(x: np.ndarray, numbers: np.ndarray, made: np.ndarray, share: Any, top: Any) -> None:
        np.multiply(share, x, out=made)
        if top != 1:
            made *= top
        np.maximum(made, 0, out=made)
        np.sqrt(made, out=made)
        made *= numbers
        made += x

    if not _compute(out, image, noise, scale, work):
        run_decomposition(out, formula.shot_noise, image, noise, scale)


def speckle_noise(out: Tensor, image: Tensor, noise: Tensor, sigma: Tensor) -> None:
    def work(x: np.ndarray, numbers: np.ndarray, made: np.ndarray, share: Any, top: Any) -> None:
        np.multiply(share, numbers, out=made)
        made += 1
        made *= x

    if not _compute(out, image, noise, sigma, work):
        run_decomposition(out, formula.speckle_noise, image, noise, sigma)


def _compute(out: Tensor, image: Tensor, noise: Tensor, amount: Tensor, work: Callable[..., None]) -> bool:
    """Run ``work(image, noise, made, amount, top)`` on each image in its precision, then clamp.

    Return False in half precision.
    """
    if image.dtype in HALF or noise.dtype in HALF:
        return False
    source, target = layout.array(in_format_of(image, out)), layout.array(out)
    numbers, exact = layout.array(noise.detach()), _exact(image)
    shares = np.broadcast_to(_each(amount, image, exact), (*image.shape[:-3], 1, 1, 1))
    levels = image.dtype in LEVELS
    top = exact(white_of(image))
    places = list(np.ndindex(*image.shape[:-3]))

    @np.errstate(invalid="ignore", over="ignore")  # noise may not be finite, as in the formula
    def some(start: int, stop: int) -> None:
        for i in places[start:stop]:
            own = np.broadcast_to(numbers[i], source[i].shape)
            for block in _blocks(out):
                x, values = (a[block].astype(exact, copy=False) for a in (source[i], own))
                made = np.empty_like(x) if levels else target[i][block]
                work(x, values, made, shares[i], top)
                if levels:
                    np.rint(made, out=made)
                np.clip(made, 0, top, out=made)
                if levels:
                    np.copyto(target[i][block], made, casting="unsafe")

    if places:
        _threads.split(len(places), image.numel(), some)
    return True


#: How many values are computed at a time: few enough to stay in a cache.
_BLOCK = 1 << 15


def _blocks(image: Tensor) -> Iterator[tuple[slice, slice]]:
    """Yield the slices of some rows at a time, of one channel or, where they are interleaved, of all."""
    channels, height, width = image.shape[-3:]
    each = channels if layout.writes_interleaved(image) else 1
    rows = max(_BLOCK // max(width * each, 1), 1)
    for channel in range(0, channels, each):
        for row in range(0, height, rows):
            yield slice(channel, channel + each), slice(row, row + rows)


def _exact(image: Tensor) -> Any:
    return np.float64 if working_dtype(image) == torch.float64 else np.float32


def _each(value: Tensor, image: Tensor, exact: Any) -> np.ndarray:
    """Return a parameter in a shape that broadcasts over images."""
    return value.detach().double().numpy().astype(exact)[..., None, None, None]


def iso_noise(out: Tensor, image: Tensor, noise: Tensor, color_shift: Tensor, intensity: Tensor) -> None:
    if not out.numel():
        return
    shifts, strengths = (array_per_image(v.float(), image, 0) for v in (color_shift, intensity))
    numbers = noise.detach().float().numpy().reshape(-1, *noise.shape[-3:])
    levels, white = image.dtype in LEVELS, white_of(image)

    @np.errstate(invalid="ignore", over="ignore")
    def work(frame: np.ndarray, i: int, target: np.ndarray | None) -> np.ndarray:
        of_hue, of_light = numbers[i]
        strength = strengths[i % len(strengths)]
        real = frame.astype(np.float32) / np.float32(white) if levels else frame
        hue, light, share = cv2.split(cv2.cvtColor(real, cv2.COLOR_RGB2HLS))
        hue += shifts[i % len(shifts)] * strength * of_hue
        # OpenCV's vectorized conversion takes a negative hue for another color.
        np.mod(hue, np.float32(360), out=hue)
        light += strength * of_light * (1 - light)
        made = cv2.cvtColor(cv2.merge([hue, light, share]), cv2.COLOR_HLS2RGB)
        if levels:
            made *= white
            np.rint(made, out=made)
        made = np.clip(made, 0, white).astype(frame.dtype, copy=False)
        if target is not None:
            np.copyto(target, made)
        return made

    if not _opencv.on_frames(out, image, (torch.uint8, torch.uint16, torch.float32), work):
        run_decomposition(out, formula.iso_noise, image, noise, color_shift, intensity)
