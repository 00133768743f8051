"""CPU kernels: PIL's autocontrast and equalize, OpenCV's clahe, and match_histograms as in scikit-image."""

from __future__ import annotations

import cv2
import numpy as np
import torch
from PIL import ImageOps
from torch import Tensor

from imgops._common import layout
from imgops.decomposition import histograms as formula
from imgops.decomposition._precision import LEVELS
from imgops.kernels.cpu import _opencv, _pil, _threads, native
from imgops.kernels.cpu._arguments import HALF, in_format_of, in_single, number_per_image
from imgops.kernels.cpu.levels import GRAY_LEVELS, lut
from imgops.kernels.decompositions import run_decomposition


def clahe(out: Tensor, image: Tensor, clip_limit: Tensor, tiles_x: int, tiles_y: int) -> None:
    if image.shape[-3] == 3:
        limits = number_per_image(clip_limit, image)

        def on_lightness(frame: np.ndarray, i: int, target: np.ndarray | None) -> np.ndarray:
            lab = cv2.cvtColor(frame, cv2.COLOR_RGB2LAB)
            light = cv2.createCLAHE(float(limits[i]), (tiles_x, tiles_y)).apply(cv2.extractChannel(lab, 0))
            cv2.insertChannel(light, lab, 0)
            return cv2.cvtColor(lab, cv2.COLOR_LAB2RGB, target)

        if not _opencv.on_frames(out, image, (torch.uint8,), on_lightness):
            run_decomposition(out, formula.clahe, image, clip_limit, tiles_x, tiles_y)
        return

    def work(source: np.ndarray, target: np.ndarray, limit: float) -> None:
        cv2.createCLAHE(float(limit), (tiles_x, tiles_y)).apply(source, target)

    whole = (torch.uint8, torch.uint16)
    if not _opencv.on_planes_with(out, image, whole, _opencv.each_channel(work), (clip_limit, 0)):
        run_decomposition(out, formula.clahe, image, clip_limit, tiles_x, tiles_y)


def match_histograms(out: Tensor, image: Tensor, reference: Tensor) -> None:
    if image.dtype in HALF:
        in_single(match_histograms, out, image, reference)
        return
    match = _match_levels if image.dtype in LEVELS else _match_values
    source, wanted, target = (layout.array(x.detach()) for x in (image, reference, out))
    places = list(np.ndindex(*image.shape[:-2]))

    def some(start: int, stop: int) -> None:
        for i in places[start:stop]:
            target[i] = match(source[i], wanted[i])

    if places:
        _threads.split(len(places), image.numel(), some)


def _match_levels(source: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    flat = source.ravel()
    shares = np.cumsum(np.bincount(flat)) / flat.size
    counts = np.bincount(wanted.ravel())
    (values,) = np.nonzero(counts)
    table = np.interp(shares, np.cumsum(counts[values]) / wanted.size, values)
    return table.astype(source.dtype)[source]


def _match_values(source: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    _, place, counts = np.unique(source, return_inverse=True, return_counts=True)
    values, other = np.unique(wanted, return_counts=True)
    matched = np.interp(np.cumsum(counts) / source.size, np.cumsum(other) / wanted.size, values)
    return matched[place].reshape(source.shape)


@native.divides(native.has_passes)
@_pil.compared(ImageOps.autocontrast, (), is_native=False)
def autocontrast(out: Tensor, image: Tensor) -> None:
    """Apply ``ImageOps.autocontrast`` to each plane."""
    if image.dtype == torch.uint8 and _threads.is_small(image) and native.stretch_levels(out, image, False):
        return
    if image.numel() == 0 or (image.dtype != torch.uint8 and not native.has_passes(image)):
        run_decomposition(out, formula.autocontrast, image)
        return
    image = in_format_of(image, out)
    if image.dtype == torch.uint8:
        low, high = _extremes(image).astype(np.float64).T[..., None]
        flat = high <= low
        scale = 255.0 / np.where(flat, 1, high - low)
        tables = np.where(flat, GRAY_LEVELS, (GRAY_LEVELS * scale + -low * scale).clip(0, 255))
        lut(out, image, torch.from_numpy(tables.astype(np.uint8)).reshape(*image.shape[:-2], 256))
        return
    low, high = native.statistics("extremes", image).T
    flat = high <= low  # planes of one value are not changed
    low, scale = np.where(flat, 0, low), np.float32(1) / np.where(flat, 1, high - low)
    shape = (*image.shape[:-2], 1, 1)
    torch.sub(image, torch.from_numpy(low).reshape(shape), out=out)
    out.mul_(torch.from_numpy(scale).reshape(shape))
    if flat.any():  # flat planes also keep values outside of [0, 1]
        stretched = out.clamp(0, 1)
        torch.where(torch.from_numpy(flat).reshape(shape), image, stretched, out=out)
    else:
        out.clamp_(0, 1)


@native.divides(native.has_passes)
@_pil.compared(ImageOps.equalize, (), is_native=False)
def equalize(out: Tensor, image: Tensor) -> None:
    """Apply ``ImageOps.equalize`` to each plane; a float image is quantized to 256 levels."""
    if image.dtype == torch.uint8 and _threads.is_small(image) and native.stretch_levels(out, image, True):
        return
    if image.dtype not in (torch.uint8, torch.float32) or image.numel() == 0:
        run_decomposition(out, formula.equalize, image)
        return
    image = in_format_of(image, out)
    if image.dtype == torch.float32:
        image = (image * 255.999).nan_to_num_().clamp_(0, 255).to(torch.uint8)
    tables = torch.from_numpy(np.stack([_equalization_table(counts) for counts in _histograms(image)]))
    tables = tables.reshape(*image.shape[:-2], 256)
    lut(out, image, tables if out.dtype == torch.uint8 else tables.float() / 255)


def _histograms(image: Tensor) -> np.ndarray:
    """Return how often each level occurs in each plane."""
    if native.has_passes(image):
        return native.statistics("histogram", image)
    return np.stack([np.bincount(plane, minlength=256) for plane in _planes(image)])


def _extremes(image: Tensor) -> np.ndarray:
    """Return the lowest and the highest level of each plane."""
    if native.has_passes(image):
        return native.statistics("extremes", image)
    return np.stack([(plane.min(), plane.max()) for plane in _planes(image)])


def _planes(image: Tensor) -> np.ndarray:
    return layout.array(image).reshape(-1, image.shape[-2] * image.shape[-1])


def _equalization_table(counts: np.ndarray) -> np.ndarray:
    """Return the table of ``ImageOps.equalize`` for the histogram of one channel."""
    (found,) = np.nonzero(counts)
    step = (int(counts.sum()) - int(counts[found[-1]])) // 255
    if step == 0:
        return np.arange(256, dtype=np.uint8)
    before = np.cumsum(counts) - counts
    return ((before + step // 2) // step).clip(0, 255).astype(np.uint8)
