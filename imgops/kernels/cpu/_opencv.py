"""OpenCV's constants, and images as OpenCV takes them: planes, or HWC frames."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops._common import layout
from imgops.kernels.cpu import _threads
from imgops.kernels.cpu._arguments import HALF, array_per_image, in_single, number_per_image

#: OpenCV's borders by torchvision's names.
BORDERS = {
    "constant": cv2.BORDER_CONSTANT,
    "edge": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT_101,
    "symmetric": cv2.BORDER_REFLECT,
    "wrap": cv2.BORDER_WRAP,
}
INTERPOLATIONS = {
    "nearest": cv2.INTER_NEAREST,
    "bilinear": cv2.INTER_LINEAR,
    "bicubic": cv2.INTER_CUBIC,
    "area": cv2.INTER_AREA,
    "lanczos": cv2.INTER_LANCZOS4,
}

#: The dtypes that most of OpenCV's filters take.
TYPES = (torch.uint8, torch.uint16, torch.float32, torch.float64)

#: ``work(frame, i, target)`` processes the i-th image, into ``target``, or into a new array if ``target`` is
#: None.
FrameWork = Callable[[np.ndarray, int, "np.ndarray | None"], np.ndarray]
#: ``work(sources, targets, image, repeat)`` processes planes or frames, ``repeat`` in a row for each image.
Work = Callable[[np.ndarray, np.ndarray, Tensor, int], None]


def on_planes(
    out: Tensor,
    image: Tensor,
    types: Collection[torch.dtype],
    work: Work,
    channels: Collection[int] = (2, 3, 4),
) -> bool:
    """Run ``work`` on the planes or frames of an image; return False if its dtype is not in ``types``.

    Half precision is computed in float32 and rounded once. ``channels`` are the numbers of channels of a
    frame; an interleaved image with another number is processed as planes.
    """
    if out.numel() == 0:
        return True
    if image.dtype in HALF and torch.float32 in types:
        in_single(on_planes, out, image, types, work, channels)
        return True
    if image.dtype not in types:
        return False
    interleaved = layout.writes_interleaved(out)
    if interleaved and out.shape[-3] not in channels:
        planar = torch.empty(out.shape, dtype=out.dtype, device="cpu")
        on_planes(planar, image, types, work)
        out.copy_(planar)
        return True
    view = layout.frames if interleaved else layout.planes
    source = layout.in_format(image.detach(), interleaved)
    with _threads.opencv:
        work(view(source), view(out), source, 1 if interleaved else image.shape[-3])
    return True


#: ``call(source, target, padding_mode, ...)`` filters into ``target``, or into a new array if ``target`` is
#: None.
Filter = Callable[..., np.ndarray]
#: How far a filter reaches up, down, left and right.
Around = tuple[int, int, int, int]


def with_border(call: Filter, padding_mode: str, around: Around) -> Callable[..., None]:
    """Return ``work(source, target, *parameters)``, which runs a filter with one of our borders."""
    return lambda source, target, *parameters: filter_with_border(
        call, source, target, padding_mode, around, *parameters
    )


def filter_with_border(
    call: Filter,
    source: np.ndarray,
    target: np.ndarray,
    padding_mode: str,
    around: Around,
    *parameters: Any,
    written: bool = False,
    wraps: bool = False,
) -> None:
    """Run a filter with one of our borders.

    ``wraps`` is whether the filter supports "wrap", which most of OpenCV's filters do not. An unsupported
    border, or any border with ``written``, is written around the image before the call.
    """
    if not written and (wraps or padding_mode != "wrap"):
        call(source, target, BORDERS[padding_mode], *parameters)
        return
    top, bottom, left, right = around
    wide = cv2.copyMakeBorder(source, top, bottom, left, right, BORDERS[padding_mode])
    whole = call(wide, None, cv2.BORDER_REPLICATE, *parameters)
    height, width = source.shape[:2]
    np.copyto(target, whole[top : top + height, left : left + width])


def on_frames(out: Tensor, image: Tensor, types: Collection[torch.dtype], work: FrameWork) -> bool:
    """Run ``work(frame, i, target)`` on each image's HWC frame; return False for a dtype not in ``types``.

    This is for functions that need whole pixels. A planar image is merged, and the result split.
    """
    if out.numel() == 0:
        return True
    if image.dtype in HALF and torch.float32 in types:
        in_single(on_frames, out, image, types, work)
        return True
    if image.dtype not in types:
        return False
    interleaved = layout.is_interleaved(image)
    source = layout.in_format(image.detach(), interleaved)
    with _threads.opencv:
        if interleaved:
            frames = list(layout.frames(source))
        else:
            grouped = layout.array(source).reshape(-1, *source.shape[-3:])
            frames = [cv2.merge(list(planes)) for planes in grouped]
        if layout.writes_interleaved(out):
            for i, (frame, target) in enumerate(zip(frames, layout.frames(out), strict=True)):
                work(frame, i, target)
        else:
            targets = layout.array(out).reshape(-1, *out.shape[-3:])
            for i, (frame, planes) in enumerate(zip(frames, targets, strict=True)):
                if len(planes) == 1:
                    work(frame, i, planes[0])
                else:
                    cv2.split(work(frame, i, None), list(planes))
    return True


def on_planes_with(
    out: Tensor,
    image: Tensor,
    types: Collection[torch.dtype],
    work: Callable[..., Any],
    *parameters: tuple[Tensor, int],
) -> bool:
    """Run ``work(source, target, *parameters)`` on every plane or frame, with the parameters of its image.

    Each parameter comes with its number of core dimensions. A parameter without core dimensions becomes a
    Python number, so that its dtype does not set the precision of the arithmetic. Return False if the dtype
    is not in ``types``.
    """

    def in_turn(sources: np.ndarray, targets: np.ndarray, image: Tensor, repeat: int) -> None:
        numbers = [
            array_per_image(value, image, core) if core else number_per_image(value, image)
            for value, core in parameters
        ]
        for i, (source, target) in enumerate(zip(sources, targets, strict=True)):
            work(source, target, *(each[i // repeat % len(each)] for each in numbers))

    return on_planes(out, image, types, in_turn)


def each_channel(work: Callable[..., None]) -> Callable[..., None]:
    """Return a function for images of several channels, which calls ``work`` on one channel at a time."""

    def apart(source: np.ndarray, target: np.ndarray, *parameters: Any) -> None:
        if source.ndim == 2:
            work(source, target, *parameters)
            return
        for channel, plane in enumerate(cv2.split(source)):
            made = np.empty(plane.shape, target.dtype)
            work(plane, made, *parameters)
            target[..., channel] = made

    return apart
