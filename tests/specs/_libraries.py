"""PIL and OpenCV on the arrays ``(C, H, W)`` of one image: the common parts of the specs' references."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image
from torch import Tensor

Array = np.ndarray

FILTERS = {
    name: getattr(Image.Resampling, name.upper())
    for name in ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
}
FLAGS = {
    "nearest": cv2.INTER_NEAREST,
    "bilinear": cv2.INTER_LINEAR,
    "bicubic": cv2.INTER_CUBIC,
    "area": cv2.INTER_AREA,
    "lanczos": cv2.INTER_LANCZOS4,
}
BORDERS = {
    "constant": cv2.BORDER_CONSTANT,
    "edge": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT_101,
    "symmetric": cv2.BORDER_REFLECT,
    "wrap": cv2.BORDER_WRAP,
}


def is_interleaved(image: Array) -> bool:
    """Return whether the channels of an image, or of the image that it is a slice of, lie next to each other."""
    return not image.flags.c_contiguous and 0 < image.strides[0] < image.strides[2]


def to_pil(image: Array) -> Image.Image:
    """Return a PIL image of mode L, F or RGB."""
    if len(image) == 1:
        return Image.fromarray(np.ascontiguousarray(image[0]))
    return Image.fromarray(np.ascontiguousarray(image.transpose(1, 2, 0)))


def of_pil(image: Image.Image) -> Array:
    array = np.array(image)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def by_pil_planes(image: Array, function: Callable[[Image.Image], Image.Image]) -> Array:
    return np.concatenate([of_pil(function(to_pil(plane[None]))) for plane in image])


def by_opencv(image: Array, function: Callable[[Array], Array], counts: Collection[int] = (2, 3, 4)) -> Array:
    """Apply OpenCV plane by plane, or to the HWC frame of an interleaved image, which OpenCV may round differently.

    ``counts`` are the numbers of channels of a frame.
    """
    if is_interleaved(image) and len(image) in counts:
        frame = function(np.ascontiguousarray(image.transpose(1, 2, 0)))
        return frame.reshape(*frame.shape[:2], -1).transpose(2, 0, 1)
    return np.stack([function(plane) for plane in np.ascontiguousarray(image)])


def mixed(start: Any, end: Array, factor: float) -> Array:
    """Blend levels of 16 bits in float32, truncated, as Pillow blends those of 8 bits."""
    first, last = np.float32(start), end.astype(np.float32)
    return np.clip(first + np.float32(factor) * (last - first), 0, 65535).astype(np.uint16)


def with_border(
    array: Array, padding_mode: str, around: tuple[int, int, int, int], call: Callable[..., Array]
) -> Array:
    """Run an OpenCV filter with one of imgops' borders; "wrap", which the filters do not support, is padded first."""
    if padding_mode != "wrap":
        return call(array, borderType=BORDERS[padding_mode])
    wide = call(cv2.copyMakeBorder(array, *around, cv2.BORDER_WRAP), borderType=cv2.BORDER_REPLICATE)
    return wide[around[0] : around[0] + array.shape[0], around[2] : around[2] + array.shape[1]]


# -- photographs, for the pages --------------------------------------------------------------------


def photo_frame(x: Tensor) -> Array:
    """Return a photograph as OpenCV users have it."""
    return x.permute(1, 2, 0).contiguous().numpy()


def photo_pil(x: Tensor) -> Image.Image:
    return Image.fromarray(photo_frame(x))


def chw(image: Any) -> Tensor:
    """Return a library's result, an HWC array or a PIL image, as a tensor."""
    array = np.array(image)
    return torch.from_numpy(array if array.ndim == 3 else array[..., None]).permute(2, 0, 1)
