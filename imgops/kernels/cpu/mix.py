"""CPU kernels of erase and blend."""

from __future__ import annotations

import numpy as np
from PIL import Image
from torch import Tensor

from imgops import _layout
from imgops.decomposition import mix as formula
from imgops.kernels.cpu import _pil, native
from imgops.kernels.cpu._common import in_format_of, number_per_image, run_decomposition
from imgops.kernels.cpu.movement import clip


def erase(out: Tensor, image: Tensor, value: Tensor, boxes: Tensor) -> None:
    """By NumPy, whose slices cost a tenth of a tensor's."""
    target, pixels = _layout.array(out), _layout.array(value)
    np.copyto(target, _layout.array(image))
    if boxes.numel() == 4:
        _put(target, pixels, boxes.flatten().tolist())
        return
    batch = image.shape[:-3]
    pixels = np.broadcast_to(pixels, (*batch, *pixels.shape[-3:]))
    for place, box in zip(np.ndindex(*batch), boxes.expand(*batch, 4).reshape(-1, 4).tolist(), strict=True):
        _put(target[place], pixels[place], box)


def _put(target: np.ndarray, pixels: np.ndarray, box: list[int]) -> None:
    """``pixels`` may have one pixel, for all of the box."""
    x0, x1 = clip(box[0], box[2], target.shape[-1])
    y0, y1 = clip(box[1], box[3], target.shape[-2])
    if x0 >= x1 or y0 >= y1:
        return
    columns = slice(x0, x1) if pixels.shape[-1] == target.shape[-1] else slice(None)
    rows = slice(y0, y1) if pixels.shape[-2] == target.shape[-2] else slice(None)
    target[..., y0:y1, x0:x1] = pixels[..., rows, columns]


@_pil.like(Image.blend, (_pil.OTHER, 0.37), (_pil.OTHER, 1.6))
def blend(out: Tensor, image: Tensor, other: Tensor, weight: Tensor) -> None:
    if not native.has_passes(image) or image.numel() == 0:
        run_decomposition(out, formula.blend, image, other, weight)
        return
    start, end = in_format_of(image, out), in_format_of(other, out)
    native.point("images", out, end, number_per_image(weight, image), other=start)
