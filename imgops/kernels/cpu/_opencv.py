"""OpenCV's names, and images as it takes them: planes, or HWC frames of at most 4 channels."""

from __future__ import annotations

from collections.abc import Callable, Collection

import cv2
import numpy as np
import torch
from torch import Tensor

from imgops import _layout
from imgops.kernels.cpu import _threads
from imgops.kernels.cpu._common import HALF

#: torchvision's names of OpenCV's borders.
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

_MOST_CHANNELS = 4

#: ``work(sources, targets, image, repeat)``: the planes or frames, and how many in turn belong to one image
Work = Callable[[np.ndarray, np.ndarray, Tensor, int], None]


def on_planes(out: Tensor, image: Tensor, types: Collection[torch.dtype], work: Work) -> bool:
    """Do ``work`` on the planes or frames of an image; False where its type is none of ``types``.

    Half precision is computed in float32 and rounded once; more channels than OpenCV takes go as planes.
    """
    if out.numel() == 0:
        return True
    if image.dtype in HALF and torch.float32 in types:
        single = torch.empty_like(out, dtype=torch.float32)
        on_planes(single, image.detach().float(), types, work)
        out.copy_(single)
        return True
    if image.dtype not in types:
        return False
    interleaved = _layout.writes_interleaved(out)
    if interleaved and out.shape[-3] > _MOST_CHANNELS:
        planar = torch.empty(out.shape, dtype=out.dtype)
        on_planes(planar, image, types, work)
        out.copy_(planar)
        return True
    view = _layout.frames if interleaved else _layout.planes
    source = _layout.in_format(image.detach(), interleaved)
    with _threads.opencv:
        work(view(source), view(out), source, 1 if interleaved else image.shape[-3])
    return True
