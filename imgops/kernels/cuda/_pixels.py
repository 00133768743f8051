"""Images as pixels in the order of memory: for kernels that look at one pixel, in all its channels.

Planar or interleaved, a pixel is a step from the one before, and a channel from the one before; any other strides
are made one of these once.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl
from torch import Tensor

from imgops import _layout
from imgops.kernels.cuda._launch import inline
from imgops.kernels.cuda._tiles import batch

#: Pixels of a program.
BLOCK = 1024


def dense(image: Tensor, out: Tensor) -> Tensor:
    """``(N, C, H, W)`` in the memory format of ``out``."""
    return batch(_layout.in_format(image.detach(), _layout.is_interleaved(out)))


def steps(image: Tensor) -> tuple[int, int, int]:
    """From image to image, from channel to channel and from pixel to pixel."""
    _, channels, height, width = image.shape
    size = channels * height * width
    if _layout.is_interleaved(image):
        return size, 1, channels
    return size, height * width, 1


def block_of(pixels: int) -> int:
    """Pixels of a program for images that may have few."""
    size = 64
    while size < min(pixels, BLOCK):
        size *= 2
    return size


def cover(image: Tensor) -> tuple[int, dict[str, Any]]:
    """How many programs cover all pixels, and the constant that says so."""
    pixels = image.shape[-2] * image.shape[-1]
    block = block_of(pixels)
    return image.shape[0] * -(-pixels // block), {"BLOCK": block}


@inline
def pixels_of(program, pixels, BLOCK: tl.constexpr):
    """The image of a program, its pixels, and which of them exist."""
    across = (pixels + BLOCK - 1) // BLOCK
    p = (program % across) * BLOCK + tl.arange(0, BLOCK)
    return (program // across).to(tl.int64), p, p < pixels
