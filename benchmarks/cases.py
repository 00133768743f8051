"""The work that is timed: each operator by imgops, by the raw library, by torchvision v2 and by kornia.

Every column ends with its output in memory of its own: a crop that is a view is cloned. Peers get the same
tensor; a raw call gets what its users hold: an HWC array or RGB image for an interleaved image, mapped
planes for a planar one, prepared outside the timing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cv2
import kornia.geometry.transform as kornia
import numpy as np
import torch
import torchvision.transforms.v2.functional as v2
from PIL import Image
from torch import Tensor
from torchvision.transforms import InterpolationMode

import imgops
from benchmarks import cases_color

COLUMNS = ("imgops", "raw", "torchvision", "kornia")
OPERATORS = (
    "crop",
    "paste",
    "paste mask",
    "pad constant",
    "pad reflect",
    "resize bilinear",
    "resize bicubic",
    "resize plain bilinear",
    "resize plain area",
)
#: Timed on 512 x 512 only.
MORE = cases_color.OPERATORS
#: What the raw call is; "cv2" and "PIL" have budgets.
RAW = {
    "crop": "PIL.Image.crop (uint8), NumPy slice (float32)",
    "paste": "PIL.Image.paste (uint8), NumPy slice (float32)",
    "paste mask": "PIL.Image.paste (uint8), NumPy formula (float32)",
    "pad constant": "cv2.copyMakeBorder",
    "pad reflect": "cv2.copyMakeBorder",
    "resize bilinear": "PIL.Image.resize, mode RGB, L or F",
    "resize bicubic": "PIL.Image.resize, mode RGB, L or F",
    "resize plain bilinear": "cv2.resize",
    "resize plain area": "cv2.resize",
    **cases_color.RAW,
}


@dataclass(frozen=True)
class Case:
    operator: str
    dtype: torch.dtype
    layout: str  # "planar" or "interleaved"
    size: int
    batch: int

    def image(self, size: int, seed: int = 0) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        shape = (self.batch, 3, size, size) if self.batch > 1 else (3, size, size)
        image = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
        if self.dtype != torch.uint8:
            image = image.to(self.dtype).div_(255)
        if self.layout == "interleaved":
            image = image.movedim(-3, -1).contiguous().movedim(-1, -3)
        return image

    def columns(self) -> dict[str, Callable[[], Any] | None]:
        """A call without arguments for each column; None where the peer has no such operator."""
        if self.operator in MORE:
            return dict(zip(COLUMNS, _more(self), strict=True))
        make = _CALLS[self.operator.split()[0]]
        return dict(zip(COLUMNS, make(self), strict=True))


def _arrays(image: Tensor, layout: str) -> list[np.ndarray]:
    """What OpenCV users hold: planes, or HWC frames."""
    if layout == "planar":
        return list(image.numpy().reshape(-1, *image.shape[-2:]))
    frames = image.movedim(-3, -1)
    return list(frames.numpy().reshape(-1, *frames.shape[-3:]))


def _pictures(image: Tensor, layout: str) -> list[Image.Image]:
    """What PIL users hold: an RGB image, or mapped planes; floats are planes of mode F."""
    if layout == "interleaved" and image.dtype == torch.uint8:
        return [Image.fromarray(a) for a in _arrays(image, layout)]
    planes = _arrays(image.contiguous(), "planar")
    if image.dtype != torch.uint8:
        return [Image.fromarray(p) for p in planes]
    return [Image.frombuffer("L", p.shape[::-1], p, "raw", "L", 0, 1) for p in planes]


def _crop(case: Case) -> tuple[Any, ...]:
    x, n = case.image(case.size), case.size
    left, top, right, bottom = box = (n // 4, n // 4, n // 4 + n // 2, n // 4 + n // 2)
    size = (bottom - top, right - left)
    if case.dtype == torch.uint8:
        pictures = _pictures(x, case.layout)
        raw: Any = lambda: [p.crop(box) for p in pictures]
    else:
        arrays = _arrays(x, case.layout)
        raw = lambda: [a[top:bottom, left:right].copy() for a in arrays]
    four = x if x.ndim == 4 else x[None]
    corners = torch.tensor([[[left, top], [right - 1, top], [right - 1, bottom - 1], [left, bottom - 1]]])
    corners = corners.expand(len(four), 4, 2)
    return (
        lambda: imgops.crop(x, box),
        raw,
        lambda: v2.crop(x, top, left, *size).clone(),
        lambda: kornia.crop_by_indices(four, corners).clone(),
    )


def _paste(case: Case) -> tuple[Any, ...]:
    n, half = case.size, case.size // 2
    x, source = case.image(n), case.image(half, 1)
    at = (n // 4, n // 4)
    window = (slice(at[1], at[1] + half), slice(at[0], at[0] + half))
    mask = case.image(half, 2)[..., :1, :, :].contiguous() if "mask" in case.operator else None
    if case.dtype == torch.uint8:
        images, sources = _pictures(x, case.layout), _pictures(source, case.layout)
        levels = [None] * len(images)
        if mask is not None:
            masks = _pictures(mask, "planar")
            levels = [masks[i * len(masks) // len(images)] for i in range(len(images))]

        def raw() -> Any:
            out = [i.copy() for i in images]
            for canvas, patch, level in zip(out, sources, levels, strict=True):
                canvas.paste(patch, at, level)
            return out

    else:
        arrays, patches = _arrays(x, case.layout), _arrays(source, case.layout)
        weights = None if mask is None else mask.movedim(-3, -1).numpy().reshape(-1, half, half, 1)

        def raw() -> Any:
            out = [a.copy() for a in arrays]
            for i, (canvas, patch) in enumerate(zip(out, patches, strict=True)):
                if weights is None:
                    canvas[window] = patch
                else:
                    w = weights[i * len(weights) // len(out)]
                    w = w if canvas.ndim == 3 else w[..., 0]
                    canvas[window] = canvas[window] * (1 - w) + patch * w
            return out

    return lambda: imgops.paste(x, source, at, mask), raw, None, None


def _pad(case: Case) -> tuple[Any, ...]:
    x, border = case.image(case.size), max(case.size // 16, 2)
    mode = case.operator.split()[1]
    flag = {"constant": cv2.BORDER_CONSTANT, "reflect": cv2.BORDER_REFLECT_101}[mode]
    arrays = _arrays(x, case.layout)
    return (
        lambda: imgops.pad(x, border, mode),
        lambda: [cv2.copyMakeBorder(a, border, border, border, border, flag) for a in arrays],
        lambda: v2.pad(x, [border] * 4, padding_mode=mode),
        None,
    )


def _resize(case: Case) -> tuple[Any, ...]:
    x, out = case.image(case.size), max(case.size * 7 // 16, 1)
    name, plain = case.operator.split()[-1], "plain" in case.operator
    if plain:
        flag = {"bilinear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA}[name]
        arrays = _arrays(x, case.layout)
        raw: Any = lambda: [cv2.resize(a, (out, out), interpolation=flag) for a in arrays]
    else:
        filter = getattr(Image.Resampling, name.upper())
        pictures = _pictures(x, case.layout)
        raw = lambda: [p.resize((out, out), filter) for p in pictures]
    torchvision = None
    if name != "area":
        mode = InterpolationMode(name)
        torchvision = lambda: v2.resize(x, [out, out], interpolation=mode, antialias=not plain)
    return (
        lambda: imgops.resize(x, (out, out), name, antialias=not plain),
        raw,
        torchvision,
        lambda: _kornia_resize(x, out, name, not plain),
    )


def _kornia_resize(x: Tensor, out: int, name: str, antialias: bool) -> Tensor:
    """kornia resizes floats: uint8 goes there and back."""
    if x.dtype != torch.uint8:
        return kornia.resize(x, (out, out), name, antialias=antialias)
    return kornia.resize(x.float(), (out, out), name, antialias=antialias).round().clamp(0, 255).to(x.dtype)


def _more(case: Case) -> tuple[Any, ...]:
    x = case.image(case.size)
    picture = Image.fromarray(x.permute(1, 2, 0).contiguous().numpy()) if case.dtype == torch.uint8 else None
    return cases_color.columns(case.operator, x, _arrays(x, case.layout), picture)


_CALLS = {"crop": _crop, "paste": _paste, "pad": _pad, "resize": _resize}
