"""CPU kernels of the gradient of cvt_color: a transposed matrix for linear spaces, slopes for the others."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from imgops.decomposition import color_space as formula
from imgops.kernels.backward._arguments import Grads, in_real
from imgops.kernels.cpu import native
from imgops.kernels.cpu._arguments import real
from imgops.kernels.cpu.color import color_matrix

_CURVED = ("hsv", "hls", "lab", "luv")
#: The kinds of ``native.sequence_back`` that convert from RGB.
_KINDS = {"hsv": len(native.STEPS), "hsv_full": len(native.STEPS), "hls": len(native.STEPS) + 1}


def cvt_color(grads: Grads, grad: Tensor, image: Tensor, code: str) -> Any:
    source, _, target = code.partition("2")
    if image.numel() == 0:
        return NotImplemented
    if not any(space in code for space in _CURVED):
        return _linear(grads, grad, image, code)
    if source not in ("rgb", "bgr") or (target in _KINDS and not native.is_built()):
        return NotImplemented
    with in_real(grads[0], grad) as (out, given):
        x, made = real(image), cast("Tensor", out)
        x = x.flip(-3).contiguous() if source == "bgr" else x
        if target in _KINDS:
            kinds = np.full((1, 1), _KINDS[target], np.int32)
            native.sequence_back(made, x, given, kinds, np.zeros((1, 1)))
        else:
            made.copy_(_from_light(given, x, target))
        if source == "bgr":
            made.copy_(made.flip(-3))
    return None


def _linear(grads: Grads, grad: Tensor, image: Tensor, code: str) -> None:
    matrix = _matrix(code, image.shape[-3]).mT
    with in_real(grads[0], grad) as (out, given):
        if matrix.shape[1] == 1:  # ATen reads the one plane for each of the channels
            torch.mul(given, matrix[..., None].to(given.dtype), out=out)
        else:
            color_matrix(cast("Tensor", out), given, matrix)


@cache
def _matrix(code: str, channels: int) -> Tensor:
    """Return the matrix of a conversion, from the colors that it gives one channel alone and none."""
    unit = torch.eye(channels, channels + 1, dtype=torch.float64, device="cpu")
    colors = formula.cvt_color(unit[:, None, :], code)[:, 0]
    return colors[:, :-1] - colors[:, -1:]


# -- LAB and LUV -----------------------------------------------------------------------------------------
# The slopes reuse the powers that the conversion computes. A curve with two parts is their sum, each times 0
# or 1: ATen multiplies ten times as fast as torch.where selects.


def _from_light(grad: Tensor, image: Tensor, target: str) -> Tensor:
    """Return the gradient of RGB from that of LAB or LUV."""
    inside = image.clamp(0, 1)
    bright = (inside > 0.04045).to(image.dtype)
    base = (inside + 0.055) / 1.055
    power = base**2.4
    light = bright * power + (1 - bright) * (inside / 12.92)
    slope = bright * (2.4 / 1.055) * power / base + (1 - bright) / 12.92
    to_xyz = torch.tensor(formula._TO_XYZ, dtype=image.dtype, device="cpu")
    xyz = torch.tensordot(to_xyz, light.movedim(-3, 0), 1)
    of_xyz = (_from_lab if target == "lab" else _from_luv)(grad.movedim(-3, 0), xyz)
    back = torch.tensordot(to_xyz.mT, of_xyz, 1).movedim(0, -3) * slope
    return torch.ops.aten.hardtanh_backward(back, image, 0, 1)  # nothing passes where a color was clamped


def _from_lab(grad: Tensor, xyz: Tensor) -> Tensor:
    of_light, of_a, of_b = grad
    white = torch.tensor(formula._WHITE, dtype=xyz.dtype, device="cpu").reshape(3, *(1,) * (xyz.ndim - 1))
    ratio = xyz / white
    curved = (ratio > 0.008856).to(xyz.dtype)
    safe = ratio.clamp(min=0.008)
    steep = curved * safe ** (1 / 3) / (3 * safe)
    slopes = (steep + (1 - curved) * 7.787) / white
    towards = torch.stack([500 * of_a, 200 * of_b - 500 * of_a, -200 * of_b]) * slopes
    towards[1] += of_light * (116 * steep[1] + (1 - curved[1]) * 903.3)
    return towards


def _from_luv(grad: Tensor, xyz: Tensor) -> Tensor:
    of_light, of_u, of_v = grad
    x, y, z = xyz
    least = 2.0**-23
    total = x + 15 * y + 3 * z
    over = 1 / total.clamp(min=least)
    u, v = 4 * x * over, 9 * y * over
    curved = (y > 0.008856).to(xyz.dtype)
    safe = y.clamp(min=0.008)
    root = safe ** (1 / 3)
    light = curved * (116 * root - 16) + (1 - curved) * (903.3 * y)
    steep = curved * (116 / 3) * root / safe + (1 - curved) * 903.3
    of_light = of_light + 13 * (of_u * (u - formula._U_WHITE) + of_v * (v - formula._V_WHITE))
    of_u, of_v = 13 * light * of_u, 13 * light * of_v
    of_total = -(of_u * u + of_v * v) * over * (total > least)
    return torch.stack(
        [4 * over * of_u + of_total, of_light * steep + 9 * over * of_v + 15 * of_total, 3 * of_total]
    )
