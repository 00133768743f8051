"""CPU kernels of clahe (OpenCV's) and match_histograms (NumPy, as scikit-image does it)."""

from __future__ import annotations

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops import _layout
from imgops.decomposition import histograms as formula
from imgops.kernels.cpu import _opencv, _threads
from imgops.kernels.cpu._common import HALF, in_single, number_per_image, run_decomposition
from imgops.kernels.cpu.color_space import cvt_color


def clahe(out: Tensor, image: Tensor, clip_limit: Tensor, tiles_x: int, tiles_y: int) -> None:
    if image.shape[-3] == 3:
        _clahe_of_color(out, image, clip_limit, tiles_x, tiles_y)
        return

    def work(source: np.ndarray, target: np.ndarray, limit: float) -> None:
        if source.dtype != np.uint8:  # 16 bits, whose arrays are of bits
            source, target = source.view(np.uint16), target.view(np.uint16)
        cv2.createCLAHE(float(limit), (tiles_x, tiles_y)).apply(source, target)

    whole = (torch.uint8, torch.uint16)
    if not _opencv.on_planes_with(out, image, whole, _opencv.each_channel(work), (clip_limit, 0)):
        run_decomposition(out, formula.clahe, image, clip_limit, tiles_x, tiles_y)


def _clahe_of_color(out: Tensor, image: Tensor, clip_limit: Tensor, tiles_x: int, tiles_y: int) -> None:
    """The L of LAB alone."""
    limits = number_per_image(clip_limit, image)

    def work(frame: np.ndarray, i: int, target: np.ndarray | None) -> np.ndarray:
        lab = cv2.cvtColor(frame, cv2.COLOR_RGB2LAB)
        light = cv2.createCLAHE(float(limits[i]), (tiles_x, tiles_y)).apply(cv2.extractChannel(lab, 0))
        cv2.insertChannel(light, lab, 0)
        return cv2.cvtColor(lab, cv2.COLOR_LAB2RGB, target)

    if image.dtype in HALF:
        in_single(_clahe_of_color, out, image, clip_limit, tiles_x, tiles_y)
    elif not _opencv.on_frames(out, image, (torch.uint8,), work):
        lab = torch.empty_like(out)  # whose memory format OpenCV can write
        cvt_color(lab, image, "rgb2lab")
        light = lab[..., :1, :, :] / 100
        clahe(light, light.clone(), clip_limit, tiles_x, tiles_y)
        lab[..., :1, :, :] = light * 100
        cvt_color(out, lab, "lab2rgb")


def match_histograms(out: Tensor, image: Tensor, reference: Tensor) -> None:
    if image.dtype in HALF:
        in_single(match_histograms, out, image, reference)
        return
    match = _match_levels if image.dtype == torch.uint8 else _match_values
    source, wanted, target = (_layout.array(x.detach()) for x in (image, reference, out))
    places = list(np.ndindex(*image.shape[:-2]))

    def some(start: int, stop: int) -> None:
        for i in places[start:stop]:
            target[i] = match(source[i], wanted[i])

    if places:
        _threads.split(len(places), image.numel(), some)


def _match_levels(source: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    flat = source.ravel()
    shares = np.cumsum(np.bincount(flat, minlength=256)) / flat.size
    counts = np.bincount(wanted.ravel(), minlength=256)
    (values,) = np.nonzero(counts)
    table = np.interp(shares, np.cumsum(counts[values]) / wanted.size, values)
    return table.astype(np.uint8)[source]


def _match_values(source: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    _, place, counts = np.unique(source, return_inverse=True, return_counts=True)
    values, other = np.unique(wanted, return_counts=True)
    matched = np.interp(np.cumsum(counts) / source.size, np.cumsum(other) / wanted.size, values)
    return matched[place].reshape(source.shape)
