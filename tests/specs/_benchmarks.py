"""The calls of the benchmark for movement and resizing; torchvision and kornia are imported where they are called.

A ``case`` (``benchmarks.cases.Case``) makes images of a size, dtype and memory format, and gives them as OpenCV's and
PIL's users have them. Every call writes its output to its own memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import cv2
import torch
from PIL import Image
from torch import Tensor

import imgops

Call = Callable[[], Any]
Calls = Sequence[Call | None]


def functional() -> Any:
    from torchvision.transforms.v2 import functional

    return functional


def of_floats(x: Tensor, call: Callable[[Tensor], Tensor]) -> Call:
    """Return a call on a batch of floats, as kornia needs it; for uint8 it includes the conversion there and back."""
    four = x if x.ndim == 4 else x[None]
    if x.dtype != torch.uint8:
        return lambda: call(four)
    return lambda: call(four.float() / 255).mul(255).clamp(0, 255).to(torch.uint8)


def crop(case: Any) -> Calls:
    import kornia.geometry.transform as kornia

    x, n, v2 = case.image(), case.size, functional()
    left, top, right, bottom = box = (n // 4, n // 4, n // 4 + n // 2, n // 4 + n // 2)
    size = (bottom - top, right - left)
    raw: Any
    if case.dtype == torch.uint8:
        pictures = case.pictures(x)
        raw = lambda: [p.crop(box) for p in pictures]
    else:
        arrays = case.arrays(x)
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


def paste(case: Any) -> Calls:
    return _paste(case, masked=False)


def paste_mask(case: Any) -> Calls:
    return _paste(case, masked=True)


def _paste(case: Any, masked: bool) -> Calls:
    n, half = case.size, case.size // 2
    x, source = case.image(), case.image(half, 1)
    at = (n // 4, n // 4)
    window = (slice(at[1], at[1] + half), slice(at[0], at[0] + half))
    mask = case.image(half, 2)[..., :1, :, :].contiguous() if masked else None
    if case.dtype == torch.uint8:
        images, sources = case.pictures(x), case.pictures(source)
        levels = [None] * len(images)
        if mask is not None:
            masks = case.pictures(mask, planar=True)
            levels = [masks[i * len(masks) // len(images)] for i in range(len(images))]

        def raw() -> Any:
            out = [i.copy() for i in images]
            for canvas, patch, level in zip(out, sources, levels, strict=True):
                canvas.paste(patch, at, level)
            return out

    else:
        arrays, patches = case.arrays(x), case.arrays(source)
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


def pad(mode: str) -> Callable[[Any], Calls]:
    def calls(case: Any) -> Calls:
        x, width, v2 = case.image(), max(case.size // 16, 2), functional()
        flag = {"constant": cv2.BORDER_CONSTANT, "reflect": cv2.BORDER_REFLECT_101}[mode]
        arrays = case.arrays(x)
        return (
            lambda: imgops.pad(x, width, mode),
            lambda: [cv2.copyMakeBorder(a, width, width, width, width, flag) for a in arrays],
            lambda: v2.pad(x, [width] * 4, padding_mode=mode),
            None,
        )

    return calls


def resize(name: str, antialias: bool) -> Callable[[Any], Calls]:
    def calls(case: Any) -> Calls:
        from torchvision.transforms import InterpolationMode

        x, out, v2 = case.image(), max(case.size * 7 // 16, 1), functional()
        raw: Any
        if antialias:
            filter = getattr(Image.Resampling, name.upper())
            pictures = case.pictures(x)
            raw = lambda: [p.resize((out, out), filter) for p in pictures]
        else:
            flag = {"bilinear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA}[name]
            arrays = case.arrays(x)
            raw = lambda: [cv2.resize(a, (out, out), interpolation=flag) for a in arrays]
        torchvision = None
        if name != "area":
            mode = InterpolationMode(name)
            torchvision = lambda: v2.resize(x, [out, out], interpolation=mode, antialias=antialias)
        return (
            lambda: imgops.resize(x, (out, out), name, antialias=antialias),
            raw,
            torchvision,
            lambda: _kornia_resize(x, out, name, antialias),
        )

    return calls


def _kornia_resize(x: Tensor, out: int, name: str, antialias: bool) -> Tensor:
    import kornia.geometry.transform as kornia

    if x.dtype != torch.uint8:
        return kornia.resize(x, (out, out), name, antialias=antialias)
    return kornia.resize(x.float(), (out, out), name, antialias=antialias).round().clamp(0, 255).to(x.dtype)


def filters(
    ours: Callable[[Tensor], Tensor],
    raw: Callable[[Any], Any],
    kornia: Callable[[Any, Tensor], Any] | None = None,
    skimage: Callable[[Any], Any] | None = None,
    *,
    frames: bool = False,
    levels: bool = False,
) -> Callable[[Any], Calls]:
    """Return imgops' call and OpenCV's of each array; ``kornia(module, image)`` gets the package, ``skimage(array)`` an array.

    ``frames``: OpenCV needs all channels together, so planes are merged, outside of the timed region. ``levels``: only uint8.
    """

    def calls(case: Any) -> Calls:
        x = case.image()
        if levels and x.dtype != torch.uint8:
            x = (x * 255).to(torch.uint8)
        arrays = case.arrays(x)
        if frames and arrays[0].ndim == 2:
            arrays = [cv2.merge(arrays[i : i + 3]) for i in range(0, len(arrays), 3)]
        theirs = None
        if kornia is not None:
            import kornia as package

            theirs = of_floats(x, lambda y: kornia(package, y))
        scikit = None if skimage is None else lambda: [skimage(a) for a in arrays]
        return lambda: ours(x), lambda: [raw(a) for a in arrays], None, theirs, scikit

    return calls


def gray(
    ours: Callable[[Tensor], Any],
    raw: Callable[[Any], Any],
    skimage: Callable[[Any], Any] | None = None,
) -> Callable[[Any], Calls]:
    """Return calls on one channel of uint8."""

    def calls(case: Any) -> Calls:
        x = case.image()
        x = x if x.dtype == torch.uint8 else (x * 255).to(torch.uint8)
        plane = x[..., :1, :, :].contiguous()
        arrays = list(plane.reshape(-1, *plane.shape[-2:]).numpy())
        scikit = None if skimage is None else lambda: [skimage(a) for a in arrays]
        return lambda: ours(plane), lambda: [raw(a) for a in arrays], None, None, scikit

    return calls


def planes(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Apply a function of scikit-image for gray images channel by channel."""
    return lambda a: [function(p) for p in (a[None] if a.ndim == 2 else a.transpose(2, 0, 1))]


def scikit(name: str, *args: Any, **options: Any) -> Callable[[Any], Any]:
    """Return scikit-image's ``module.function`` as a function of an array; it is imported when it is called."""

    def call(array: Any) -> Any:
        module, _, function = name.rpartition(".")
        return getattr(import_module(f"skimage.{module}"), function)(array, *args, **options)

    return call
