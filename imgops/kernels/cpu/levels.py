"""CPU kernels of the elementwise operators: on uint8 a lookup table of 256 entries.

A native pass applies tables of levels, ``cv2.LUT`` applies other tables. float32 has separate native passes.
ATen runs the decomposition for other dtypes, and for float32 if the native module was not built.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import cv2
import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from imgops._common import layout, torch_private
from imgops.decomposition import levels as formula
from imgops.decomposition._precision import LEVELS, bits_of, parameter
from imgops.kernels.cpu import _pil, _threads, native
from imgops.kernels.cpu._arguments import HALF, in_format_of, number_per_image
from imgops.kernels.decompositions import run_decomposition

GRAY_LEVELS = np.arange(256, dtype=np.float64)
_UNIT_LEVELS = GRAY_LEVELS / 255
_ONE = torch.ones((), dtype=torch.float32, device="cpu")


def invert(out: Tensor, image: Tensor) -> None:
    """Invert an image as a step of color_sequence; the public function is a composition."""
    if image.is_floating_point():
        torch.sub(_ONE, image.detach(), out=out)
    else:
        run_decomposition(out, formula.invert, image)


def adjust_gamma(out: Tensor, image: Tensor, gamma: Tensor, gain: Tensor) -> None:
    single = gamma.numel() == gain.numel() == 1
    if single and image.dtype == torch.uint8:
        with np.errstate(all="ignore"):  # with a negative gamma black becomes infinite, which becomes white
            table = 255.999 * gain.item() * _UNIT_LEVELS ** gamma.item()
        lut(out, image, torch.from_numpy(np.nan_to_num(table).clip(0, 255).astype(np.uint8))[None])
    elif single and image.dtype == torch.uint16:
        levels = torch.arange(65536, dtype=torch.int32, device="cpu").to(torch.uint16).reshape(1, 1, -1)
        made = torch.empty_like(levels)
        run_decomposition(made, formula.adjust_gamma, levels, gamma.reshape(()), gain.reshape(()))
        _look_up_16_bits(out, image, made[0])
    elif image.dtype in (torch.float32, torch.float64):
        exponent, factor = (p.item() if single else parameter(p, image) for p in (gamma, gain))
        torch.pow(in_format_of(image, out), exponent, out=out)  # other strides would change its last bit
        out.mul_(factor).clamp_(0, 1)
    else:
        _by_formula(out, formula.adjust_gamma, image, gamma, gain)


def _posterize_by_pil(image: Image.Image, bits: float) -> Image.Image:
    """Posterize by PIL, also to 0 bits, which PIL itself does not accept."""
    kept = min(max(int(bits), 0), 8)
    return ImageOps.posterize(image, kept) if kept else image.point(lambda _: 0)


@_threads.waits_for_memory
@_pil.compared(_posterize_by_pil, (3.0,), (7.0,), is_native=False)
def posterize(out: Tensor, image: Tensor, bits: Tensor) -> None:
    if bits.numel() != 1 or image.dtype in HALF:
        _by_formula(out, formula.posterize, image, bits)
        return
    most = bits_of(image)
    levels = 1 << min(max(int(bits.item()), 0), most)
    if (
        image.dtype == torch.uint8
        and _threads.is_small(image)
        and native.levels(out, image, _posterize_table(levels))
    ):
        return
    if image.dtype in LEVELS:
        source, whole = layout.array(image), 1 << most
        np.bitwise_and(source, source.dtype.type(whole - whole // levels), out=layout.array(out))
    elif native.has_passes(image):
        native.point("floor_to_steps", out, in_format_of(image, out), [levels], [1 / levels])
    else:
        torch.mul(image.detach(), levels, out=out).floor_().clamp_(0, levels - 1).mul_(1 / levels)


@_threads.waits_for_memory
@_pil.compared(ImageOps.solarize, (77.0,), is_native=False)
def solarize(out: Tensor, image: Tensor, threshold: Tensor) -> None:
    if image.dtype == torch.uint8 and threshold.numel() == 1:
        if _threads.is_small(image) and native.levels(out, image, _solarize_table(threshold.item())):
            return
        table = np.where(threshold.item() <= GRAY_LEVELS, 255 - GRAY_LEVELS, GRAY_LEVELS).astype(np.uint8)
        lut(out, image, torch.from_numpy(table)[None])
    elif native.has_passes(image) and image.dtype != torch.uint8 and image.numel():
        thresholds = number_per_image(threshold, image)
        native.point("invert_above", out, in_format_of(image, out), thresholds)
    else:
        _by_formula(out, formula.solarize, image, threshold)


@lru_cache(maxsize=16)
def _posterize_table(levels: int) -> bytes:
    return bytes(level & (256 - 256 // levels) for level in range(256))


@lru_cache(maxsize=512)
def _solarize_table(threshold: float) -> bytes:
    return bytes(255 - level if threshold <= level else level for level in range(256))


def _by_formula(out: Tensor, function: Callable[..., Tensor], image: Tensor, *parameters: Tensor) -> None:
    """Apply an elementwise function; on uint8 it is evaluated for each of the 256 levels only."""
    if image.dtype != torch.uint8:
        run_decomposition(out, function, image, *parameters)
        return
    batch = torch.broadcast_shapes(*[p.shape for p in parameters])
    levels = torch.arange(256, dtype=torch.uint8, device="cpu").expand(*batch, 1, 1, 256)
    with torch_private.default_dispatch_state(), torch.no_grad():
        lut(out, image, function(levels, *parameters).squeeze(-2))


@_threads.waits_for_memory
def lut(out: Tensor, image: Tensor, table: Tensor) -> None:
    """Look up the levels of an image in tables.

    If the native pass cannot look them up, ``cv2.LUT`` does if one call can do a frame or a plane, and ATen's
    gather does for dtypes that OpenCV lacks.
    """
    if out.numel() == 0:
        return
    if table.dtype not in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.float32, torch.float64):
        run_decomposition(out, formula.lut, image, table)
        return
    if image.dtype == torch.uint16:
        _look_up_16_bits(out, image, table)
        return
    image = in_format_of(image, out)
    channels = image.shape[-3]
    whole = table.shape[-2] == 1 or not layout.writes_interleaved(out)
    each = table.detach()
    if whole or table.numel() > channels * 256:
        each = each.expand(*image.shape[:-3], table.shape[-2], 256)
    rows = each.contiguous().numpy().reshape(-1, table.shape[-2], 256)
    is_known = table.dtype == torch.uint8 or (table.dtype == torch.float32 and whole)
    if is_known and native.has_passes(image):
        native.lut(out, image, rows.reshape(-1, 1, 256) if whole else rows)
        return
    if whole:  # one table for a whole frame, whatever its layout, or one for each plane
        tables = rows.reshape(-1, 256)
        sources, targets = _rows(image, len(tables)), _rows(out, len(tables))
    else:
        sources, targets = layout.frames(image), layout.frames(out)
        if table.numel() == channels * 256:  # one table for all frames, which are joined into a tall one
            rows = rows[:1]
            sources, targets = (x.reshape(1, -1, *x.shape[2:]) for x in (sources, targets))
        tables = np.ascontiguousarray(rows.transpose(0, 2, 1))[:, None]
    with _threads.opencv:
        for source, target, values in zip(sources, targets, tables, strict=True):
            if whole or channels <= 4:
                cv2.LUT(source, values, dst=target)
            else:
                target[...] = values[0][source, np.arange(channels)]


def _look_up_16_bits(out: Tensor, image: Tensor, table: Tensor) -> None:
    target, source = layout.array(out), layout.array(image.detach())
    rows = table.detach().expand(*image.shape[:-2], table.shape[-1]).numpy()
    for i in np.ndindex(*image.shape[:-2]):
        np.take(rows[i], source[i], out=target[i], mode="clip")


def _rows(image: Tensor, count: int) -> np.ndarray:
    """Return the values of an image in memory order, as ``count`` equal matrices."""
    memory = image.movedim(-3, -1) if layout.writes_interleaved(image) else image
    return layout.array(memory).reshape(count, memory.shape[-2], -1) if count else layout.array(memory)
