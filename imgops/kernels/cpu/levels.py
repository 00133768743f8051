"""CPU kernels of the operators that map single values: on uint8 a table of 256, applied by ``cv2.LUT``.

Floats have no table: there the kernel is the decomposition, run by ATen.
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops import _layout, _torch_private
from imgops.decomposition import levels as formula
from imgops.kernels.cpu import _color, _threads


def adjust_gamma(out: Tensor, image: Tensor, gamma: Tensor, gain: Tensor) -> None:
    _by_table(out, formula.adjust_gamma, image, gamma, gain)


def posterize(out: Tensor, image: Tensor, bits: Tensor) -> None:
    if bits.numel() != 1 or image.dtype not in (torch.uint8, torch.float32, torch.float64):
        _by_table(out, formula.posterize, image, bits)
        return
    levels = 1 << min(max(int(bits), 1), 8)
    if image.dtype == torch.uint8:
        torch.bitwise_and(image.detach(), 256 - 256 // levels, out=out)
    else:
        torch.mul(image.detach(), levels, out=out).floor_().clamp_(0, levels - 1).mul_(1 / levels)


def solarize(out: Tensor, image: Tensor, threshold: Tensor) -> None:
    if image.dtype == torch.uint8 and threshold.numel() == 1:
        level = np.arange(256)
        table = np.where(level >= threshold.item(), 255 - level, level).astype(np.uint8)
        lut(out, image, torch.from_numpy(table)[None])
        return
    _by_table(out, formula.solarize, image, threshold)


def _by_table(out: Tensor, function: Callable[..., Tensor], image: Tensor, *parameters: Tensor) -> None:
    """A function of single values: on uint8 it is asked about each of the 256 only."""
    if image.dtype != torch.uint8:
        _color.computed(out, function, image, *parameters)
        return
    batch = torch.broadcast_shapes(*[p.shape for p in parameters])
    levels = torch.arange(256, dtype=torch.uint8).expand(*batch, 1, 1, 256)
    with _torch_private.afresh(), torch.no_grad():
        lut(out, image, function(levels, *parameters).squeeze(-2))


def autocontrast(out: Tensor, image: Tensor) -> None:
    if image.dtype != torch.uint8 or image.numel() == 0 or _layout.writes_interleaved(out):
        _by_planes(
            out, formula.autocontrast, image, lambda counts: _stretched(*np.nonzero(counts)[0][[0, -1]])
        )
        return
    image = _color.readable(image, out)
    flat = _layout.planes(image).reshape(image.shape[:-2].numel(), -1)
    tables = [_stretched(low, high) for low, high in zip(flat.min(1), flat.max(1), strict=True)]
    lut(out, image, torch.from_numpy(np.stack(tables)).reshape(*image.shape[:-2], 256))


def equalize(out: Tensor, image: Tensor) -> None:
    _by_planes(out, formula.equalize, image, _equalized)


def _by_planes(
    out: Tensor,
    function: Callable[..., Tensor],
    image: Tensor,
    table_of: Callable[[np.ndarray], np.ndarray],
) -> None:
    """A function of the levels that each plane has."""
    if image.dtype != torch.uint8 or image.numel() == 0:
        _color.computed(out, function, image)
        return
    image = _color.readable(image, out)
    tables = np.stack([table_of(counts) for counts in _histograms(image)])
    lut(out, image, torch.from_numpy(tables).reshape(*image.shape[:-2], 256))


def _histograms(image: Tensor) -> list[np.ndarray]:
    """How often each level occurs in each plane."""
    _threads.follow_torch()
    if _layout.is_interleaved(image):
        frames, channels = _layout.frames(image), range(image.shape[-3])
        pairs = [(frame, channel) for frame in frames for channel in channels]
    else:
        pairs = [(plane, 0) for plane in _layout.planes(image)]
    return [cv2.calcHist([a], [c], None, [256], [0, 256]).ravel().astype(np.int64) for a, c in pairs]


def _stretched(darkest: int, brightest: int) -> np.ndarray:
    """``ImageOps.autocontrast`` of one channel."""
    low, high = int(darkest), int(brightest)
    level = np.arange(256, dtype=np.float64)
    if high <= low:
        return level.astype(np.uint8)
    scale = 255.0 / (high - low)
    return np.clip(level * scale + -low * scale, 0, 255).astype(np.uint8)


def _equalized(counts: np.ndarray) -> np.ndarray:
    """``ImageOps.equalize`` of one channel."""
    (found,) = np.nonzero(counts)
    step = (int(counts.sum()) - int(counts[found[-1]])) // 255
    if step == 0:
        return np.arange(256, dtype=np.uint8)
    before = np.cumsum(counts) - counts
    return np.clip((before + step // 2) // step, 0, 255).astype(np.uint8)


def lut(out: Tensor, image: Tensor, table: Tensor) -> None:
    """``cv2.LUT`` where one call serves a frame or a plane; ATen's gather for types that OpenCV has not."""
    if out.numel() == 0:
        return
    if table.dtype not in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.float32, torch.float64):
        _color.computed(out, formula.lut, image, table)
        return
    _threads.follow_torch()
    image = _color.readable(image, out)
    channels = image.shape[-3]
    rows = table.detach().expand(*image.shape[:-3], table.shape[-2], 256).contiguous().numpy()
    rows = rows.reshape(-1, table.shape[-2], 256)
    if table.shape[-2] == 1 or not _layout.writes_interleaved(out):
        # One table for a whole frame, whatever lies where in it; else one for each plane.
        rows = rows.reshape(-1, 256)
        flat, target = _rows(image, len(rows)), _rows(out, len(rows))
        for source, result, values in zip(flat, target, rows, strict=True):
            cv2.LUT(source, values, dst=result)
        return
    for source, result, values in zip(_layout.frames(image), _layout.frames(out), rows, strict=True):
        if channels <= 4:
            cv2.LUT(source, np.ascontiguousarray(values.T)[None], dst=result)
        else:
            result[...] = values[np.arange(channels), source]


def _rows(image: Tensor, count: int) -> np.ndarray:
    """The values of an image in the order of memory, in ``count`` equal matrices."""
    memory = image.movedim(-3, -1) if _layout.writes_interleaved(image) else image
    return _layout.array(memory).reshape(count, memory.shape[-2], -1) if count else _layout.array(memory)
