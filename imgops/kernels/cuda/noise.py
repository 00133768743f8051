"""CUDA kernels of the noise operators, each in one pass over the image and its random numbers."""

from __future__ import annotations

from typing import Any

import triton.language as tl
from torch import Tensor

from imgops._common import layout
from imgops.kernels.cuda._arithmetic import convert, nearest_level, unit
from imgops.kernels.cuda._color_formulas import from_hls, to_hls
from imgops.kernels.cuda._launch import blocks, inline, kernel, launch
from imgops.kernels.cuda._pixels import parameter
from imgops.kernels.cuda._tiles import PIXELS, batch, is_interleaved
from imgops.kernels.cuda._values import values_in, values_of

#: The number of values of a program, if each thread reads several of them at once, and if not; and of pixels in
#: "iso_noise".
_BLOCK, _SINGLE, _LANES = 4096, 1024, 256


def salt_and_pepper(out: Tensor, image: Tensor, noise: Tensor, amount: Tensor, salt: Tensor) -> Any:
    return _add("salt", out, image, noise, amount, salt)


def shot_noise(out: Tensor, image: Tensor, noise: Tensor, scale: Tensor) -> Any:
    return _add("shot", out, image, noise, scale, scale)


def speckle_noise(out: Tensor, image: Tensor, noise: Tensor, sigma: Tensor) -> Any:
    return _add("speckle", out, image, noise, sigma, sigma)


def _add(kind: str, out: Tensor, image: Tensor, noise: Tensor, first: Tensor, second: Tensor) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    if out.numel() == 0:
        return None
    channels, height, width = image.shape[-3:]
    if noise.shape[-3] == channels:
        target, (source, numbers), vector = values_of(out, image, noise)
        shared = ""
    else:
        target, (source,), vector = values_of(out, image)
        numbers, shared = batch(noise).contiguous(), "pixels" if is_interleaved(out) else "planes"
    size = channels * height * width
    block = _BLOCK if vector > 1 else _SINGLE
    parts = blocks((size, block))
    (amounts, amount_n), (others, other_n) = parameter(first, image, 0), parameter(second, image, 0)
    launch(
        _noise_kernel,
        target.shape[0] * parts,
        *(target, source, numbers, amounts, others),
        *(size, parts, height * width, channels, amount_n, other_n),
        KIND=kind,
        SHARED=shared,
        VECTOR=vector,
        BLOCK=block,
    )
    return None


@kernel(tensors=5)
def _noise_kernel(
    out, image, noise, amounts, others, size, parts, pixels, channels, amount_n, other_n,
    KIND: tl.constexpr, SHARED: tl.constexpr, VECTOR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Add noise to each value; the values of a pixel may share a number of the noise (``SHARED``)."""
    LEVELS: tl.constexpr = out.dtype.element_ty == tl.uint8
    TOP: tl.constexpr = 255 if LEVELS else 1
    n, start, inside = values_in(tl.program_id(0), size, parts, VECTOR, BLOCK)
    i = tl.arange(0, BLOCK)
    x = tl.load(image + start + i, mask=inside, other=0)
    if SHARED == "":
        z = tl.load(noise + start + i, mask=inside, other=0).to(tl.float32)
    else:
        value = (tl.program_id(0) % parts).to(size.dtype) * BLOCK + i
        at = value // channels if SHARED == "pixels" else value % pixels
        z = tl.load(noise + n * pixels + at, mask=inside, other=0).to(tl.float32)
    amount = tl.load(amounts + n * amount_n).to(tl.float32)
    if KIND == "salt":
        salt = tl.load(others + n * other_n).to(tl.float32)
        x = x.to(tl.int32 if LEVELS else tl.float32)
        x = tl.where(z < amount * (1 - salt), 0, tl.where(z >= 1 - amount * salt, TOP, x))
        made = x.to(tl.uint8) if LEVELS else convert(x, out.dtype.element_ty)
    else:
        x = x.to(tl.float32)
        if KIND == "shot":
            variance = amount * x * TOP
            # NaN gets no noise, so that it is unchanged.
            x += tl.where(variance > 0, tl.sqrt_rn(tl.where(variance > 0, variance, 1.0)), 0.0) * z
        else:
            x = x * (1 + amount * z)
        made = nearest_level(x) if LEVELS else convert(unit(x), out.dtype.element_ty)
    tl.store(out + start + i, made, mask=inside)


def iso_noise(out: Tensor, image: Tensor, noise: Tensor, color_shift: Tensor, intensity: Tensor) -> Any:
    if image.dtype not in PIXELS:
        return NotImplemented
    if out.numel() == 0:
        return None
    target, (source,), _ = values_of(out, image)
    (shifts, shift_n), (strengths, strength_n) = (parameter(x, image, 0) for x in (color_shift, intensity))
    pixels = image.shape[-2] * image.shape[-1]
    parts = blocks((pixels, _LANES))
    launch(
        _iso_kernel,
        target.shape[0] * parts,
        *(target, source, layout.in_format(batch(noise), False), shifts, strengths),
        *(pixels, parts, shift_n, strength_n),
        INTERLEAVED=is_interleaved(out),
        LANES=_LANES,
    )
    return None


@kernel(tensors=5)
def _iso_kernel(
    out, image, noise, shifts, strengths, pixels, parts, shift_n, strength_n,
    INTERLEAVED: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Add noise to the hue and lightness of pixels; a thread converts them one by one."""
    LEVELS: tl.constexpr = out.dtype.element_ty == tl.uint8
    n, part = (tl.program_id(0) // parts).to(tl.int64), tl.program_id(0) % parts
    lane = part * LANES + tl.arange(0, LANES)
    inside = lane < pixels
    step = tl.full((), 1, tl.int64) if INTERLEAVED else pixels.to(tl.int64)
    at = n * 3 * pixels + (lane.to(tl.int64) * 3 if INTERLEAVED else lane.to(tl.int64))
    r = tl.load(image + at, mask=inside, other=0).to(tl.float32)
    g = tl.load(image + at + step, mask=inside, other=0).to(tl.float32)
    b = tl.load(image + at + 2 * step, mask=inside, other=0).to(tl.float32)
    if LEVELS:
        r, g, b = tl.div_rn(r, 255.0), tl.div_rn(g, 255.0), tl.div_rn(b, 255.0)
    of_hue = tl.load(noise + n * 2 * pixels + lane, mask=inside, other=0).to(tl.float32)
    of_light = tl.load(noise + (n * 2 + 1) * pixels + lane, mask=inside, other=0).to(tl.float32)
    strength = tl.load(strengths + n * strength_n).to(tl.float32)
    hue, light, share = to_hls(r, g, b)
    hue += tl.load(shifts + n * shift_n).to(tl.float32) * strength * of_hue
    light += strength * of_light * (1 - light)
    r, g, b = from_hls(hue, light, share)
    _store(out + at, r, inside)
    _store(out + at + step, g, inside)
    _store(out + at + 2 * step, b, inside)


@inline
def _store(to, x, inside):
    if to.dtype.element_ty == tl.uint8:
        made = nearest_level(x * 255)
    else:
        made = convert(unit(x), to.dtype.element_ty)
    tl.store(to, made, mask=inside)
