"""CPU kernels of alpha_composite and blend, by PIL, and of add_weighted, by OpenCV."""

from __future__ import annotations

import cv2
import numpy as np
import torch
from PIL import Image
from torch import Tensor

from imgops._common import layout
from imgops.decomposition import blending as formula
from imgops.kernels.cpu import _pil, _threads, native
from imgops.kernels.cpu._arguments import HALF, in_format_of, in_single, number_per_image
from imgops.kernels.decompositions import run_decomposition


def alpha_composite(out: Tensor, image: Tensor, other: Tensor) -> None:
    if image.dtype != torch.uint8:
        run_decomposition(out, formula.alpha_composite, image, other)
        return
    if image.numel() == 0:
        return
    image, other = in_format_of(image, out), in_format_of(other, out)
    interleaved = layout.writes_interleaved(out)
    below, above, target = (layout.array(x) for x in (image, other, out))
    for i in np.ndindex(*image.shape[:-3]):
        pair = [_rgba(x[i], interleaved) for x in (below, above)]
        made = np.asarray(Image.alpha_composite(*pair))
        if interleaved:
            np.copyto(target[i], made.transpose(2, 0, 1))
        else:
            cv2.split(made, list(target[i]))


def _rgba(image: np.ndarray, interleaved: bool) -> Image.Image:
    """Return an RGBA image as PIL's, which shares the memory of an interleaved one."""
    _, height, width = image.shape
    frame = image.transpose(1, 2, 0) if interleaved else cv2.merge(list(image))
    return Image.frombuffer("RGBA", (width, height), frame, "raw", "RGBA", 0, 1)


def add_weighted(
    out: Tensor, image: Tensor, other: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor
) -> None:
    if image.numel() == 0:
        return
    if image.dtype in HALF:
        in_single(add_weighted, out, image, other, alpha, beta, gamma)
        return
    interleaved = layout.writes_interleaved(out)
    weights = zip(*(number_per_image(v, image) for v in (alpha, beta, gamma)), strict=True)
    # The sum is elementwise, so each image is one row of values, whatever its memory format.
    rows = []
    for x in (in_format_of(image, out), in_format_of(other, out), out):
        x = x.movedim(-3, -1) if interleaved else x
        rows.append(x.reshape(image.shape[:-3].numel(), 1, -1).numpy())
    with _threads.opencv:
        for a, b, target, (of_a, of_b, more) in zip(*rows, weights, strict=True):
            cv2.addWeighted(a, of_a, b, of_b, more, target)


@native.divides(native.has_passes)
@_pil.compared(Image.blend, (_pil.OTHER, 0.37), (_pil.OTHER, 1.6))
def blend(out: Tensor, image: Tensor, other: Tensor, alpha: Tensor) -> None:
    if not native.has_passes(image) or image.numel() == 0:
        run_decomposition(out, formula.blend, image, other, alpha)
        return
    start, end = in_format_of(image, out), in_format_of(other, out)
    native.point("images", out, end, number_per_image(alpha, image), other=start)
