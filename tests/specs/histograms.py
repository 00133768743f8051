"""autocontrast, equalize, clahe and match_histograms."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from PIL import ImageOps
from torch import Tensor

import imgops
from tests.specs import _benchmarks as bench
from tests.specs._libraries import Array, by_pil_planes, chw, photo_frame, photo_pil
from tests.specs._maker import LEVELS_AND_FLOATS, Maker
from tests.specs._spec import CLOSE, ROUNDED, Benchmark, ErrorInput, OpSpec, Sample, Tolerance
from tests.specs.levels import benchmark_calls, spec_of_imageops

# -- clahe -------------------------------------------------------------------------------------------


def clahe_reference(image: Array, limit: float, across: int, down: int) -> Array:
    """Run OpenCV; for floats, its algorithm on 256 levels, with tables interpolated between levels."""
    if image.dtype.kind in "ui":
        planes = image.view(np.uint16) if image.dtype == np.int16 else image
        apply = cv2.createCLAHE(limit, (across, down)).apply
        return np.stack([apply(np.ascontiguousarray(p)) for p in planes])
    return np.stack([_clahe(plane.astype(np.float64), limit, across, down) for plane in image])


def _clahe(x: Array, limit: float, across: int, down: int) -> Array:
    height, width = x.shape
    more = (0, 0)
    if height % down or width % across:
        more = down - height % down, across - width % across
    wide = np.clip(x, 0, 1) * 255
    wide = cv2.copyMakeBorder(wide, 0, more[0], 0, more[1], cv2.BORDER_REFLECT_101)
    th, tw = wide.shape[0] // down, wide.shape[1] // across
    tables = np.empty((down, across, 256))
    for i, j in np.ndindex(down, across):
        tile = np.rint(wide[i * th : (i + 1) * th, j * tw : (j + 1) * tw]).astype(int)
        counts = np.bincount(tile.ravel(), minlength=256)
        if limit > 0:
            most = max(int(limit * th * tw / 256), 1)
            clipped = np.maximum(counts - most, 0).sum()
            counts = np.minimum(counts, most) + clipped // 256
            rest = clipped % 256
            if rest:
                counts[:: max(256 // rest, 1)][:rest] += 1
        tables[i, j] = np.cumsum(counts) * 255 / (th * tw)
    out = np.empty_like(x)
    for i, j in np.ndindex(height, width):
        y, z = i / th - 0.5, j / tw - 0.5
        value = 0.0
        for row, of_row in _neighbors(y, down):
            for column, of_column in _neighbors(z, across):
                table = tables[row, column]
                value += of_row * of_column * np.interp(wide[i, j], np.arange(256), table)
        out[i, j] = value / 255
    return out


def _neighbors(position: float, count: int) -> tuple[tuple[int, float], tuple[int, float]]:
    before = int(np.floor(position))
    part = position - before
    return (max(before, 0), 1 - part), (min(before + 1, count - 1), part)


def _unit(m: Maker, height: int, width: int) -> Tensor:
    """Make values inside of levels, far away from the step to the next one."""
    return m.image(1, height, width, 0.05, 0.95, snap=True)


CLAHE = OpSpec(
    "clahe",
    samples=(
        Sample("tiles", lambda m: (_unit(m, 12, 16), 3.0, (4, 3))),
        Sample("uneven", lambda m: (_unit(m, 13, 11), 40.0, (2, 3))),
        Sample("one-fits", lambda m: (_unit(m, 12, 11), 1.0, 4)),
        Sample("unlimited", lambda m: (_unit(m, 6, 5), 0.0, 1)),
        Sample("each", lambda m: (_unit(m, 8, 8), m.per_sample(2.0, 9.0).detach(), 2)),
        Sample(
            "deep",
            lambda m: (replace(m, dtype=torch.uint16).image(1, 9, 8), 2.5, (2, 3)),
            dtypes=(torch.uint16,),
            differentiable=False,
        ),
        Sample("one-pixel", lambda m: (_unit(m, 1, 1), 40.0), edge=True),
    ),
    refused={
        ValueError: {
            "image must have 1 or 3 channels, because it equalizes gray, or the L of RGB colors in LAB, got 2": lambda x: (
                imgops.clahe(x[:, :2])
            ),
            "tiles must be positive, got (8, 0)": lambda x: imgops.clahe(x[:, :1], tiles=(8, 0)),
            "clip_limit must be a number, got nan": ErrorInput(
                lambda x: imgops.clahe(x[:, :1], float("nan")), reads_values=True
            ),
            "image must have at least one pixel, got shape (2, 1, 0, 6)": lambda x: imgops.clahe(
                x[:, :1, :0]
            ),
        },
        TypeError: {
            "tiles must have 2 integers (x, y), got float": lambda x: imgops.clahe(x[:, :1], tiles=2.0),  # type: ignore[arg-type]
        },
    },
    draw=lambda d: (d.image(1), d.number(0, 10), d.whole(1, 9), d.whole(1, 9)),
    comparable=lambda args, changed: args[0].shape[-3] == 1,
    colors=(),
    reference=clahe_reference,
    tolerance={**ROUNDED, torch.float32: Tolerance(1e-5), torch.float64: Tolerance(1e-9)},
    decomposed={**ROUNDED, torch.float32: Tolerance(1e-5)},
    reference_name="`cv2.createCLAHE`",
    difference="uint8, uint16 0; floats 1e-5",
    dtype_names="uint8, uint16, floats",
    decomposed_difference="0",
    section="Histograms",
    words="``clip_limit``, ``tiles`` (OpenCV)",
    formula=r"y_p = \sum_t w_{pt}\, T_t[x_p],\quad T_t\ \text{the clipped cumulative histogram of tile}\ t",
    border="reflect without the border pixel, where a side is no multiple of its tiles",
    transforms=("RandomCLAHE",),
    photo=(
        lambda x: imgops.clahe(x, 3.0),
        lambda x: chw(clahe_of_color(photo_frame(x), 3.0)),
    ),
    picture=lambda x: imgops.clahe(x, 8.0),
    benchmarks=(
        Benchmark(
            "clahe",
            "cv2.createCLAHE, 8 x 8 (gray uint8)",
            bench.gray(
                lambda x: imgops.clahe(x, 2.0),
                lambda a: cv2.createCLAHE(2.0, (8, 8)).apply(a),
                bench.scikit("exposure.equalize_adapthist"),
            ),
        ),
        Benchmark(
            "clahe of RGB",
            "cv2.createCLAHE of L (uint8)",
            bench.filters(
                lambda x: imgops.clahe(x, 2.0),
                lambda a: clahe_of_color(a, 2.0),
                lambda kornia, y: kornia.enhance.equalize_clahe(y, 2.0, (8, 8)),
                bench.scikit("exposure.equalize_adapthist"),
                frames=True,
                levels=True,
            ),
        ),
    ),
)


# -- match_histograms --------------------------------------------------------------------------------


def clahe_of_color(frame: Array, limit: float, tiles: tuple[int, int] = (8, 8)) -> Array:
    """Run CLAHE on a color image as OpenCV's users write it."""
    lab = cv2.cvtColor(frame, cv2.COLOR_RGB2Lab)
    light, a, b = cv2.split(lab)
    light = cv2.createCLAHE(limit, tiles).apply(light)
    return cv2.cvtColor(cv2.merge([light, a, b]), cv2.COLOR_Lab2RGB)


def match_reference(image: Array, reference: Array) -> Array:
    match_histograms = pytest.importorskip("skimage.exposure").match_histograms
    return match_histograms(np.ascontiguousarray(image), np.ascontiguousarray(reference), channel_axis=0)


def _match_calls(case: Any) -> bench.Calls:
    from skimage.exposure import match_histograms

    x, y = case.image(), case.image(case.size, 1)
    arrays, others = case.arrays(x), case.arrays(y)
    axis = None if arrays[0].ndim == 2 else -1
    return (
        lambda: imgops.match_histograms(x, y),
        lambda: [match_histograms(a, b, channel_axis=axis) for a, b in zip(arrays, others, strict=True)],
        None,
        None,
    )


MATCH_HISTOGRAMS = OpSpec(
    "match_histograms",
    samples=(
        Sample("rgb", lambda m: (m.image(3, 6, 7), m.image(3, 6, 7))),
        Sample("other-size", lambda m: (m.image(2, 5, 4), m.image(2, 7, 6))),
        Sample("one-pixel", lambda m: (m.image(1, 4, 5), m.image(1, 1, 1))),
    ),
    refused={
        TypeError: {
            "reference must have the dtype of image (torch.float32), got torch.uint8": lambda x: (
                imgops.match_histograms(x, x.byte())
            ),
        },
        ValueError: {
            "reference must have the channels of image (3), got 1": lambda x: imgops.match_histograms(
                x, x[:, :1]
            ),
            "reference must have at least one pixel, got shape (2, 3, 5, 0)": lambda x: (
                imgops.match_histograms(x, x[..., :0])
            ),
        },
    },
    draw=lambda d: (d.image(), d.image(size=(d.whole(1, 30), d.whole(1, 30)))),
    reference=match_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    decomposed={**CLOSE, torch.float64: Tolerance(1e-12)},
    reference_name="`skimage.exposure.match_histograms`",
    decomposed_difference="0",
    section="Histograms",
    formula=r"y = F_{ref}^{-1}(F_x(x))\ \text{for each channel}",
    border="none",
    transforms=("HistogramMatching",),
    photo=(
        lambda x: imgops.match_histograms(x, x.flip(-3)),
        lambda x: torch.from_numpy(match_reference(x.numpy(), x.flip(-3).numpy())),
    ),
    picture=lambda x: imgops.match_histograms(x, (x.flip(0).float() ** 2 / 255).byte()),
    benchmarks=(Benchmark("match", "skimage.exposure.match_histograms", _match_calls),),
)


# -- autocontrast ------------------------------------------------------------------------------------


def _channels(snap: bool) -> tuple[Sample, ...]:
    """Return the samples; ``snap`` makes values inside of their levels, far away from the step to the next one."""

    def make(id: str, shape: tuple[int, ...], **options: Any) -> Sample:
        return Sample(id, lambda m: (m.image(*shape, 0.05, 0.95, snap=snap),), **options)

    return (
        make("rgb", (3, 20, 30)),
        make("five", (5, 4, 5)),
        make("one-pixel", (3, 1, 1), edge=True),
        make("no-rows", (3, 0, 4), edge=True, differentiable=False),
    )


def autocontrast_reference(image: Array) -> Array:
    if image.dtype == np.uint8:
        return by_pil_planes(image, ImageOps.autocontrast)
    if image.dtype == np.uint16:
        return np.stack([_stretched_to_white(plane) for plane in image]) if image.size else image
    x = image.astype(np.float64)
    if x.size == 0:
        return x
    low, high = x.min((1, 2), keepdims=True), x.max((1, 2), keepdims=True)
    return np.where(high > low, (x - low) / np.where(high > low, high - low, 1), x)


def _stretched_to_white(plane: Array) -> Array:
    """Return the whole part of the true value, in Python's whole numbers."""
    low, high = int(plane.min()), int(plane.max())
    if high == low:
        return plane
    table = {level: (int(level) - low) * 65535 // (high - low) for level in np.unique(plane)}
    return np.array([table[level] for level in plane.ravel()], np.uint16).reshape(plane.shape)


AUTOCONTRAST = spec_of_imageops(
    "autocontrast",
    section="Histograms",
    samples=_channels(snap=False),
    reference=autocontrast_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    formula=r"y = \frac{x - \min x}{\max x - \min x}\ \text{for each channel}",
    transforms=("RandomAutocontrast", "PixMix"),
    photo=(imgops.autocontrast, lambda x: chw(ImageOps.autocontrast(photo_pil(x)))),
    picture=lambda x: imgops.autocontrast(x // 2 + 64),
    benchmarks=(
        Benchmark("autocontrast", "PIL.ImageOps.autocontrast (uint8)", benchmark_calls("autocontrast")),
    ),
)


# -- equalize ----------------------------------------------------------------------------------------


def equalize_reference(image: Array) -> Array:
    if image.dtype == np.uint8:
        return by_pil_planes(image, ImageOps.equalize)
    if image.dtype == np.uint16:
        return np.stack([_equalized_by_opencv(plane) for plane in image]) if image.size else image
    return equalize_reference((image.astype(np.float64) * 255.999).astype(np.uint8)) / 255.0


def _equalized_by_opencv(plane: Array) -> Array:
    """Return what ``cv2.equalizeHist`` does, for 65,536 levels: the share of the pixels, without the darkest ones."""
    _, place, counts = np.unique(plane, return_inverse=True, return_counts=True)
    rest = plane.size - int(counts[0])
    if rest == 0:
        return plane
    shares = [Fraction(int(n) - int(counts[0]), rest) for n in np.cumsum(counts)]
    levels = np.array([int(share * 65535 + Fraction(1, 2)) for share in shares], np.uint16)
    return levels[place].reshape(plane.shape)


EQUALIZE = spec_of_imageops(
    "equalize",
    section="Histograms",
    samples=_channels(snap=True),
    reference=equalize_reference,
    dtypes=LEVELS_AND_FLOATS,
    dtype_names="uint8, uint16, floats",
    decomposed={},
    # So few pixels that the result is just a rounding to levels.
    reference_name="`PIL.ImageOps.equalize`; `cv2.equalizeHist`'s formula for uint16",
    difference="uint8, uint16 0; floats 1e-5",
    decomposed_difference="0",
    formula=r"y = T[x],\quad T = \text{PIL's whole-number cumulative histogram}",
    transforms=("RandomEqualize", "PixMix"),
    photo=(imgops.equalize, lambda x: chw(ImageOps.equalize(photo_pil(x)))),
    benchmarks=(
        Benchmark(
            "equalize", "PIL.ImageOps.equalize (uint8)", benchmark_calls("equalize", kornia="equalize")
        ),
    ),
)


SPECS = (AUTOCONTRAST, EQUALIZE, CLAHE, MATCH_HISTOGRAMS)
