"""CPU kernels of the warps: by OpenCV, whose samples are exact from version 5 on.

In double precision OpenCV rounds positions to 1/32 pixel, and it supports no border beyond four channels and
no sides beyond 16 bits. In these cases, and for the adjoint, which no library has, ATen gathers and adds
pixels. OpenCV decides for every dtype which pixel is the nearest. Where positions lie so far outside that
OpenCV would take long to fold them into the image, ATen computes the sample (``_far_positions``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops._common import layout
from imgops.decomposition import geometry as formula
from imgops.decomposition._precision import working_dtype
from imgops.decomposition._saturate import saturate
from imgops.kernels.cpu import _far_positions, _opencv, _threads, native
from imgops.kernels.cpu._arguments import HALF, array_per_image, real, room
from imgops.kernels.decompositions import run_decomposition

#: OpenCV holds positions in 16 bits with a sign.
_LONGEST = 32766
#: Single precision represents every whole number below this one.
_MOST_INDICES = 1 << 24
_SMALL = 1 << 18
_OPENCV_TYPES = (torch.uint8, torch.uint16, torch.float32)
#: The channels of the frames that OpenCV warps. It warps frames of two channels by older code, which rounds
#: positions to 1/32 pixel (docs/reports/opencv-two-channels.md).
_OPENCV_CHANNELS = (3, 4)

#: ``warp(source, matrix or map, (width, height), dst, flags, border mode, border value)`` of OpenCV.
Warp = Callable[..., Any]


def warp_affine(
    out: Tensor,
    image: Tensor,
    matrix: Tensor,
    fill: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    padding_mode: str,
) -> None:
    _warp("warp_affine", out, image, matrix, fill, height, width, interpolation, padding_mode)


def warp_perspective(
    out: Tensor,
    image: Tensor,
    matrix: Tensor,
    fill: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    padding_mode: str,
) -> None:
    _warp("warp_perspective", out, image, matrix, fill, height, width, interpolation, padding_mode)


#: The decomposition and OpenCV's function of each warp by a matrix.
_WARPS: dict[str, tuple[Callable[..., Tensor], Warp]] = {
    "warp_affine": (formula.warp_affine, cv2.warpAffine),
    "warp_perspective": (formula.warp_perspective, cv2.warpPerspective),
}


def _warp(op: str, out: Tensor, image: Tensor, matrix: Tensor, fill: Tensor | None, *how: Any) -> None:
    decomposition, warp = _WARPS[op]
    if _copy_if_identity(out, image, matrix):
        return
    if op == "warp_affine" and _by_weights(out, image, matrix, fill, *how[2:]):
        return
    if _directly(op, out, image, matrix, fill, warp, *how):
        return
    height, width, interpolation, padding_mode = how
    reaches_far = _far_positions.reaches(matrix, image, (height, width), interpolation, padding_mode)
    if any(reaches_far) and len(reaches_far) > 1 and out.numel():
        batch = image.shape[:-3]
        each = matrix.expand(*batch, *matrix.shape[-2:])
        for i in np.ndindex(*batch):
            own = fill
            if fill is not None and fill.ndim > 1:
                own = fill.expand(*batch, fill.shape[-1])[i]
            _warp(op, out[i], image[i], each[i], own, *how)
    elif any(reaches_far) or not _by_opencv(op, out, image, matrix, fill, interpolation, padding_mode, warp):
        run_decomposition(out, decomposition, image, matrix, fill, *how)


def _by_weights(
    out: Tensor, image: Tensor, matrix: Tensor, fill: Tensor | None, interpolation: str, padding_mode: str
) -> bool:
    """Warp uint8 images by bilinear weights in the native module, with one color outside of all of them.

    Return False if nothing was done. A large image alone is left to OpenCV, which divides it among threads.
    """
    if image.dtype != torch.uint8 or interpolation != "bilinear" or padding_mode != "constant":
        return False
    channels, sides = image.shape[-3], (*image.shape[-2:], *out.shape[-2:])
    if image.ndim == 3 and not _threads.is_small(image):
        return False
    if max(sides) > _LONGEST or 0 in sides or (fill is not None and fill.numel() not in (1, channels)):
        return False
    if not blends_alike():
        return False
    color = [0] if fill is None else saturate(fill.detach(), torch.uint8).flatten().tolist()
    each = matrix.detach().double()
    if matrix.ndim > 2 and matrix.shape[:-2].numel() > 1:
        each = each.expand(*image.shape[:-3], 2, 3)
    levels = color * (channels // len(color))
    return native.blend(out, image.detach(), each.reshape(-1, 6).contiguous().numpy(), levels)


def _directly(
    op: str,
    out: Tensor,
    image: Tensor,
    matrix: Tensor,
    fill: Tensor | None,
    warp: Warp,
    height: int,
    width: int,
    interpolation: str,
    padding_mode: str,
) -> bool:
    """Warp one uint8 image with a constant border of one number, without the preparations for other calls.

    With "nearest" a planar RGB image goes to the native warp; other images go to OpenCV, plane by plane or as
    a frame. Return False if nothing was done.
    """
    if image.ndim != 3 or matrix.ndim != 2 or padding_mode != "constant" or image.dtype != torch.uint8:
        return False
    if fill is not None and (fill.numel() != 1 or fill.is_floating_point()):
        return False
    channels = image.shape[0]
    sides = (*image.shape[1:], height, width)
    if max(sides) > _LONGEST or 0 in sides:
        return False
    color = 0.0 if fill is None else float(saturate(fill.detach(), torch.uint8).item())
    numbers = matrix.detach().double().numpy()
    planar = out.is_contiguous()
    if planar and interpolation == "nearest" and channels > 1:
        if op != "warp_affine" or channels != 3 or not native_agrees():
            return False
        inverse = _far_positions.inverse_of(numbers)[None]
        return native.warp(out.numpy()[None], image.detach().numpy()[None], inverse, [(color,) * 3])
    if planar != image.is_contiguous() or (not planar and channels not in _OPENCV_CHANNELS):
        return False
    how = {"flags": _opencv.INTERPOLATIONS[interpolation], "borderMode": _opencv.BORDERS[padding_mode]}
    source, target = image.detach().numpy(), out.numpy()
    if not planar:
        source, target = source.transpose(1, 2, 0)[None], target.transpose(1, 2, 0)[None]
    with _threads.opencv:
        for part, moved in zip(source, target, strict=True):
            warp(part, numbers, (width, height), dst=moved, borderValue=[color] * 4, **how)
    return True


#: The rows of the identity matrix; an affine matrix has the first two.
_IDENTITY = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]


def _copy_if_identity(out: Tensor, image: Tensor, matrix: Tensor) -> bool:
    """Copy an image of any dtype if its only matrix is the identity; return whether this is so."""
    if out.shape != image.shape or (matrix.ndim > 2 and matrix.shape[:-2].numel() != 1):
        return False
    rows = (matrix if matrix.ndim == 2 else matrix.reshape(matrix.shape[-2:])).tolist()
    if rows != _IDENTITY[: len(rows)]:
        return False
    out.copy_(image.detach())
    return True


def remap(
    out: Tensor, image: Tensor, map: Tensor, fill: Tensor | None, interpolation: str, padding_mode: str
) -> None:
    # A double-precision map would lose its last bits.
    if map.dtype == torch.float32 and not _far_positions.hangs(image.shape[-2:], interpolation, padding_mode):
        folded = _far_positions.fold_map(map.detach(), image.shape[-2:], interpolation, padding_mode)
        if _by_opencv("remap", out, image, folded, fill, interpolation, padding_mode, _remap):
            return
    run_decomposition(out, formula.remap, image, map, fill, interpolation, padding_mode)


def _remap(source: np.ndarray, map: np.ndarray, size: Any, **how: Any) -> None:
    how["interpolation"] = how.pop("flags")
    cv2.remap(source, map[0], map[1], **how)


def _by_opencv(
    op: str,
    out: Tensor,
    image: Tensor,
    where: Tensor,
    fill: Tensor | None,
    interpolation: str,
    padding_mode: str,
    warp: Warp,
) -> bool:
    """Warp each plane of a planar image or frame of an interleaved one; return False if OpenCV cannot."""
    if out.numel() and max(*image.shape[-2:], *out.shape[-2:]) > _LONGEST:
        return False
    known = image.dtype in (*_OPENCV_TYPES, *HALF, torch.bool)
    if interpolation == "nearest" and not known and out.numel():
        return _by_index(op, out, image, where, fill, padding_mode, warp)
    return _of_a_known_dtype(op, out, image, where, fill, interpolation, padding_mode, warp)


def _of_a_known_dtype(
    op: str,
    out: Tensor,
    image: Tensor,
    where: Tensor,
    fill: Tensor | None,
    interpolation: str,
    padding_mode: str,
    warp: Warp,
) -> bool:
    if image.dtype == torch.bool and interpolation == "nearest":
        fill = None if fill is None else (fill != 0).to(torch.uint8)
        out, image = out.view(torch.uint8), image.view(torch.uint8)
    where = where if where.dtype in (torch.float32, torch.float64) else where.double()
    size = (out.shape[-1], out.shape[-2])
    how = {"flags": _opencv.INTERPOLATIONS[interpolation], "borderMode": _opencv.BORDERS[padding_mode]}

    def in_turn(sources: np.ndarray, targets: np.ndarray, image: Tensor, repeat: int) -> None:
        samples = array_per_image(where, image, 3 if op == "remap" else 2)
        colors = _colors(fill, image, repeat == 1 and sources.ndim == 4)
        together = interpolation == "nearest" and image.dtype == torch.uint8 and repeat in (3, 4)
        together = together and repeat * max(sources[0].size, targets[0].size) <= _SMALL
        by_native = (
            together
            and repeat == 3
            and op == "warp_affine"
            and padding_mode == "constant"
            and native_agrees()
        )
        several = op != "remap" and len(samples) > 1  # a single matrix was compared with the identity before
        still: Sequence[bool] = [False]
        if several and out.shape == image.shape:
            still = (samples == np.eye(*samples.shape[1:])).all((1, 2)).tolist()
        count = len(sources) // repeat
        if by_native:
            inverses = [_far_positions.inverse_of(sample) for sample in samples]
            fills = [
                None if still[i % len(still)] else [colors[(3 * i + c) % len(colors)][0] for c in range(3)]
                for i in range(count)
            ]
            of_each = np.stack([inverses[i % len(inverses)] for i in range(count)])
            to, of = (x.reshape(count, 3, *x.shape[1:]) for x in (targets, sources))
            if native.warp(to, of, of_each, fills):
                return
        for i in range(count):
            planes, sample = slice(i * repeat, (i + 1) * repeat), samples[i % len(samples)]
            first = i * repeat
            if still[i % len(still)]:  # a sample that a transform did not choose
                np.copyto(targets[planes], sources[planes])
                continue
            if together:
                # Positions cost more than pixels, and a frame needs its positions only once. (Large buffers
                # cost more.)
                frame = cv2.merge(list(sources[planes]))
                moved = np.empty((size[1], size[0], repeat), np.uint8)
                color = [colors[j % len(colors)][0] for j in range(first, first + repeat)]
                warp(frame, sample, size, dst=moved, borderValue=(*color, 0.0)[:4], **how)
                cv2.split(moved, list(targets[planes]))
                continue
            for j in range(first, first + repeat):
                warp(sources[j], sample, size, dst=targets[j], borderValue=colors[j % len(colors)], **how)

    return _opencv.on_planes(out, image, _OPENCV_TYPES, in_turn, _OPENCV_CHANNELS)


@native.comparison("warp_affine", "OpenCV")
def native_agrees() -> bool:
    """Compare the native warp with the installed OpenCV, once; return whether both take the same pixels."""
    rng = np.random.default_rng(0)
    planes = rng.integers(0, 256, (3, 213, 240), dtype=np.uint8)
    probes = [[[1, 0, 0.5], [0, 1, -1.5]], [[2, 0, 0.5], [0, 0.5, 0.25]], [[0, 1, 0], [0, 0, 3]]]
    around = np.array([[1, 0, 0], [0, 1, 0]])
    probes += (around + rng.normal(0, [0.5, 0.5, 20], (40, 2, 3))).tolist()
    calls: list[tuple[Any, int, int]] = [(np.array(matrix, np.float64), 224, 250) for matrix in probes]
    # Half a quarter turn takes many positions to the middle between two pixels, also at the end of a row.
    calls += [(cv2.getRotationMatrix2D((13.5, 11.5), angle, 1), 24, 28) for angle in (-135, -45)]
    for exact, height, width in calls:  # enough matrices to reveal a sum that is rounded in another way
        sources = planes if width == 250 else np.ascontiguousarray(planes[:, :height, :width])
        ours = np.empty((1, 3, height, width), np.uint8)
        if not native.warp(ours, sources[None], _far_positions.inverse_of(exact)[None], [(3.0, 5.0, 7.0)]):
            return False
        for plane, found, fill in zip(sources, ours[0], (3.0, 5.0, 7.0), strict=True):
            wanted = cv2.warpAffine(plane, exact, (width, height), flags=cv2.INTER_NEAREST, borderValue=fill)
            if not np.array_equal(found, wanted):
                return False
    return True


@native.comparison("bilinear warp_affine", "OpenCV")
def blends_alike() -> bool:
    """Compare bilinear weights with the installed OpenCV, once; return whether both give the same pixels.

    OpenCV sums the positions of the last pixels of a row in another order than the others, which can be seen
    in a very wide image that is seen from far to the right.
    """
    rng = np.random.default_rng(0)
    frames = [rng.integers(0, 256, shape, dtype=np.uint8) for shape in ((213, 240, 3), (40, 30000, 3))]
    around = np.array([[1, 0, 0], [0, 1, 0]])
    probes: list[Any] = [
        (frames[0], around + rng.normal(0, [0.5, 0.5, 20], (2, 3)), (224, 250)) for _ in range(20)
    ]
    for _ in range(6):
        (a, b, x), y = rng.uniform([0.3, 500, 25000], [3, 740, 29000]), rng.uniform(0.3, 0.9)
        probes.append((frames[1], cv2.invertAffineTransform(np.array([[a, -b, x], [0.1, y, 3.3]])), (40, 31)))
    fill, how = [3, 5, 7], cv2.INTER_LINEAR
    for frame, matrix, (height, width) in probes:
        size = width, height
        wanted = cv2.warpAffine(frame, matrix, size, flags=how, borderValue=[*fill, 0])
        plane = cv2.warpAffine(frame[..., 0].copy(), matrix, size, flags=how, borderValue=fill[0])
        ours, image = torch.empty((*size[::-1], 3), dtype=torch.uint8, device="cpu"), torch.from_numpy(frame)
        if not native.blend(ours.movedim(-1, 0), image.movedim(-1, 0), matrix.reshape(1, 6), fill):
            return False
        found = ours.numpy()
        if not np.array_equal(found, wanted) or not np.array_equal(found[..., 0], plane):
            return False
    return True


def _by_index(
    op: str, out: Tensor, image: Tensor, where: Tensor, fill: Tensor | None, padding_mode: str, warp: Warp
) -> bool:
    """Warp an image of any dtype by index, with "nearest"; return False if it has too many pixels.

    The nearest pixel does not depend on the dtype, so OpenCV warps an image of the pixels' indices.
    """
    height, width = image.shape[-2:]
    if height * width >= _MOST_INDICES:
        return False
    core = 3 if op == "remap" else 2
    shared = where.shape[: where.ndim - core].numel() == 1
    batch = () if shared else tuple(image.shape[:-3])
    numbers = torch.arange(1, height * width + 1, dtype=torch.float32, device="cpu").reshape(1, height, width)
    taken = torch.empty((*batch, 1, *out.shape[-2:]), dtype=torch.float32, device="cpu")
    own = where.detach().reshape(where.shape[where.ndim - core :]) if shared else where
    numbers = numbers.expand(*batch, 1, height, width).contiguous()
    _of_a_known_dtype(op, taken, numbers, own, None, "nearest", padding_mode, warp)
    index = layout.array(taken).reshape(-1, out.shape[-2] * out.shape[-1]).astype(np.int64) - 1
    source = layout.planes(image.detach().contiguous()).reshape(-1, image.shape[-3], height * width)
    moved = np.empty((*source.shape[:2], index.shape[1]), source.dtype)
    fills = None
    if fill is not None:  # for each channel in the image's dtype; for each image too where the images differ
        values = saturate(fill.detach(), image.dtype)
        lead = image.shape[:-3] if values.ndim > 1 else torch.Size()
        fills = layout.array(values.expand(*lead, image.shape[-3]).contiguous()).reshape(-1, image.shape[-3])
    for i in range(len(source)):
        at = index[i % len(index)]
        np.take(source[i], at.clip(0), axis=1, out=moved[i])
        if padding_mode == "constant":
            moved[i][:, at < 0] = 0 if fills is None else fills[i % len(fills)][:, None]
    layout.array(out)[...] = moved.reshape(out.shape)
    return True


def _colors(fill: Tensor | None, image: Tensor, interleaved: bool) -> list[tuple[float, ...]]:
    """Return the fill of each plane or frame as four numbers; the list is shorter where they repeat."""
    if fill is None:
        return [(0.0,) * 4]
    values = saturate(fill.detach(), image.dtype).double()
    if values.ndim == 0:
        return [(values.item(),) * 4]
    channels = image.shape[-3]
    lead = values.shape[:-1] if values.ndim == 1 else image.shape[:-3]
    rows = values.expand(*lead, channels).reshape(-1, channels).tolist()
    if interleaved:
        return [(*row, *(0.0,) * (4 - channels)) for row in rows]
    return [(value,) * 4 for row in rows for value in row]


@native.divides()
def remap_adjoint(
    out: Tensor, grad: Tensor, map: Tensor, height: int, width: int, interpolation: str, padding_mode: str
) -> None:
    given, made = real(grad), room(out, working_dtype(grad))
    if not native.remap_back(
        made, None, given, None, map, None, (height, width), (interpolation, padding_mode)
    ):
        run_decomposition(out, formula.remap_adjoint, grad, map, height, width, interpolation, padding_mode)
    elif made is not out:
        out.copy_(made)


@native.divides()
def remap_grad_map(
    out: Tensor,
    grad: Tensor,
    image: Tensor,
    map: Tensor,
    fill: Tensor | None,
    interpolation: str,
    padding_mode: str,
) -> None:
    how = interpolation, padding_mode
    slope = room(out, map.dtype)
    color = None if fill is None else saturate(fill.detach(), image.dtype)
    given, source = real(grad), real(image)
    batched = source.expand(*given.shape[:-3], *source.shape[-3:]).contiguous()
    alike = slope.shape[:-3] == given.shape[:-3]
    size = image.shape[-2], image.shape[-1]
    if not alike or not native.remap_back(None, slope, given, batched, map, color, size, how):
        run_decomposition(out, formula.remap_grad_map, grad, image, map, color, *how)
    elif slope is not out:
        out.copy_(slope)
