"""CPU kernels of the warps: OpenCV's, whose samples are exact from version 5 on.

OpenCV rounds positions to 1/32 pixel in double precision, and knows no border beyond four channels or sides
beyond 16 bits; there, for other integers, and for the adjoint, which no library has, ATen gathers and adds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops import _layout
from imgops.decomposition import geometry as formula
from imgops.kernels.cpu import _border, _color, _threads
from imgops.kernels.cpu.compose import saturate

_FLAGS = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC}
_LONGEST = 32766
_SMALL = 1 << 18
_HALF = (torch.float16, torch.bfloat16)
_OPENCV_TYPES = (torch.uint8, torch.float32)

#: ``warp(source, sample, size, target, flags, border, fill)`` of one plane or frame.
Warp = Callable[..., Any]


def warp_affine(
    out: Tensor,
    image: Tensor,
    matrix: Tensor,
    fill: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    border: str,
) -> None:
    if matrix.numel() == 6 and _is_identity(matrix, out, image):
        out.copy_(image.detach())
    elif not _by_opencv("warp_affine", out, image, matrix, fill, interpolation, border, _affine):
        _color.computed(out, formula.warp_affine, image, matrix, fill, height, width, interpolation, border)


def warp_perspective(
    out: Tensor,
    image: Tensor,
    matrix: Tensor,
    fill: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    border: str,
) -> None:
    if matrix.numel() == 9 and _is_identity(matrix, out, image):
        out.copy_(image.detach())
    elif not _by_opencv("warp_perspective", out, image, matrix, fill, interpolation, border, _perspective):
        _color.computed(
            out, formula.warp_perspective, image, matrix, fill, height, width, interpolation, border
        )


def _is_identity(matrix: Tensor, out: Tensor, image: Tensor) -> bool:
    return (
        out.shape == image.shape
        and matrix.flatten().tolist() == torch.eye(*matrix.shape[-2:]).flatten().tolist()
    )


def remap(
    out: Tensor, image: Tensor, map: Tensor, fill: Tensor | None, interpolation: str, border: str
) -> None:
    # A double-precision map would lose its last bits.
    known = map.dtype == torch.float32
    if not known or not _by_opencv("remap", out, image, map, fill, interpolation, border, _mapped):
        _color.computed(out, formula.remap, image, map, fill, interpolation, border)


def _affine(source: np.ndarray, matrix: np.ndarray, size: Any, **how: Any) -> None:
    cv2.warpAffine(source, matrix, size, **how)


def _perspective(source: np.ndarray, matrix: np.ndarray, size: Any, **how: Any) -> None:
    cv2.warpPerspective(source, matrix, size, **how)


def _mapped(source: np.ndarray, map: np.ndarray, size: Any, **how: Any) -> None:
    how["interpolation"] = how.pop("flags")
    cv2.remap(source, map[0], map[1], **how)


def _by_opencv(
    op: str,
    out: Tensor,
    image: Tensor,
    where: Tensor,
    fill: Tensor | None,
    interpolation: str,
    border: str,
    warp: Warp,
) -> bool:
    """Each plane of a planar image, each frame of an interleaved one; False where OpenCV cannot."""
    if out.numel() == 0:
        return True
    if max(*image.shape[-2:], *out.shape[-2:]) > _LONGEST:
        return False
    if image.dtype in _HALF:
        single = torch.empty_like(out, dtype=torch.float32)
        _by_opencv(op, single, image.detach().float(), where, fill, interpolation, border, warp)
        out.copy_(single)
        return True
    if image.dtype == torch.bool and interpolation == "nearest":
        fill = None if fill is None else (fill != 0).to(torch.uint8)
        return _by_opencv(
            op, out.view(torch.uint8), image.view(torch.uint8), where, fill, interpolation, border, warp
        )
    if image.dtype not in _OPENCV_TYPES:
        return False
    _threads.follow_torch()
    interleaved = _layout.writes_interleaved(out) and out.shape[-3] <= 4
    if _layout.writes_interleaved(out) and not interleaved:
        planar = torch.empty(out.shape, dtype=out.dtype)
        _by_opencv(op, planar, image, where, fill, interpolation, border, warp)
        out.copy_(planar)
        return True
    source = _layout.in_format(image.detach(), interleaved)
    view = _layout.frames if interleaved else _layout.planes
    sources, targets = view(source), view(out)
    repeat = 1 if interleaved else image.shape[-3]
    where = where if where.is_floating_point() else where.double()
    samples = _color.samples(where, image, 3 if op == "remap" else 2)
    colours = _colours(op, fill, image, interleaved)
    size = (out.shape[-1], out.shape[-2])
    how = {"flags": _FLAGS[interpolation], "borderMode": _border.OPENCV[border]}
    size_of_frame = max(source.shape[-3:].numel(), out.shape[-3:].numel())
    together = not interleaved and repeat in (3, 4) and size_of_frame <= _SMALL
    if together and interpolation == "nearest" and image.dtype == torch.uint8:
        # Positions cost more than pixels here: one frame's are found once. (Large buffers cost more still.)
        for i in range(len(sources) // repeat):
            frame = cv2.merge(list(sources[i * repeat : (i + 1) * repeat]))
            fills = [colours[(i * repeat + c) % len(colours)][0] for c in range(repeat)]
            moved = np.empty((size[1], size[0], repeat), np.uint8)
            warp(frame, samples[i % len(samples)], size, dst=moved, borderValue=(*fills, 0.0)[:4], **how)
            cv2.split(moved, list(targets[i * repeat : (i + 1) * repeat]))
        return True
    for i, (plane, target) in enumerate(zip(sources, targets, strict=True)):
        warp(
            plane,
            samples[i // repeat % len(samples)],
            size,
            dst=target,
            borderValue=colours[i % len(colours)],
            **how,
        )
    return True


def _colours(op: str, fill: Tensor | None, image: Tensor, interleaved: bool) -> list[tuple[float, ...]]:
    """The fill of each plane or frame; fewer where they repeat."""
    if fill is None:
        return [(0.0,) * 4]
    values = saturate(op, fill, image.dtype).double()
    if values.ndim == 0:
        return [(values.item(),) * 4]
    channels = image.shape[-3]
    lead = values.shape[:-1] if values.ndim == 1 else image.shape[:-3]
    rows = values.expand(*lead, channels).reshape(-1, channels).tolist()
    if interleaved:
        return [(*row, *(0.0,) * (4 - channels)) for row in rows]
    return [(value,) * 4 for row in rows for value in row]


def remap_adjoint(
    out: Tensor, grad: Tensor, map: Tensor, height: int, width: int, interpolation: str, border: str
) -> None:
    _color.computed(out, formula.remap_adjoint, grad, map.detach(), height, width, interpolation, border)


def remap_slope(
    out: Tensor,
    grad: Tensor,
    image: Tensor,
    map: Tensor,
    fill: Tensor | None,
    interpolation: str,
    border: str,
) -> None:
    how = None if fill is None else fill.detach(), interpolation, border
    _color.computed(out, formula.remap_slope, grad, image.detach(), map.detach(), *how)
