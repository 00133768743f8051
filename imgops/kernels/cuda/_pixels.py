"""Images as pixels in memory order, for kernels that look at one pixel in all its channels.

In a planar or interleaved image, consecutive pixels are a constant step apart, and so are consecutive
channels. An image with any other strides is copied into one of these formats once.
"""

from __future__ import annotations

from typing import Any

import triton.language as tl
from torch import Tensor

from imgops import _layout
from imgops.kernels.cuda._launch import inline
from imgops.kernels.cuda._packed import Packed
from imgops.kernels.cuda._tiles import batch, is_interleaved

#: The most pixels of a program.
BLOCK = 1024


def dense(image: Tensor, out: Tensor) -> Tensor:
    """Return an image as ``(N, C, H, W)`` in the memory format of ``out``; packed images as they are."""
    if isinstance(image, Packed):
        return image
    return batch(_layout.in_format(image.detach(), is_interleaved(out)))


def steps(image: Tensor) -> tuple[int, int, int]:
    """Return the steps from image to image, from channel to channel and from pixel to pixel."""
    if isinstance(image, Packed):
        return 0, 0, 0
    _, channels, height, width = image.shape
    size = channels * height * width
    if is_interleaved(image):
        return size, 1, channels
    return size, height * width, 1


def block_of(pixels: int) -> int:
    """Return the number of pixels of a program for images that may have few pixels."""
    size = 64
    while size < min(pixels, BLOCK):
        size *= 2
    return size


def cover(image: Tensor) -> tuple[int, dict[str, Any]]:
    """Return how many programs cover all pixels, and the constant with the size of their blocks."""
    pixels = image.shape[-2] * image.shape[-1]
    block = block_of(pixels)
    return image.shape[0] * -(-pixels // block), {"BLOCK": block}


@inline
def pixels_of(program, pixels, BLOCK: tl.constexpr):
    """Return the image of a program, its pixels, and which of them exist."""
    across = (pixels + BLOCK - 1) // BLOCK
    p = (program % across) * BLOCK + tl.arange(0, BLOCK)
    return (program // across).to(tl.int64), p, p < pixels
