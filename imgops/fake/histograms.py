"""Fakes of the operators that use a histogram."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops._common import check, layout
from imgops._common.check import fail, violates
from imgops.fake._images import image_like, same_channels

#: The most tiles along a side: OpenCV makes a table of 256 levels for each tile, and pads an image to a
#: multiple of the tiles.
MOST_TILES = 4096


def clahe(image: Tensor, clip_limit: Tensor, tiles_x: int, tiles_y: int) -> Tensor:
    op = "clahe"
    if image.dtype == torch.uint16:
        check.image(op, "image", image)
        check.pixels(op, "image", *image.shape[-2:])
        out = layout.empty(image, *image.shape[-2:])
    else:
        out = image_like(op, image)
    if image.shape[-3] not in ((1,) if image.dtype == torch.uint16 else (1, 3)):
        wanted = "1 channel" if image.dtype == torch.uint16 else "1 or 3 channels"
        fail(ValueError, op, f"image must have {wanted}", check.number(image.shape[-3]))
    check.not_empty(op, "image", image)
    check.per_sample_parameter(op, "clip_limit", clip_limit, image)
    if violates(tiles_x >= 1) or violates(tiles_y >= 1):
        fail(ValueError, op, "tiles must be positive", check.numbers(tiles_x, tiles_y))
    if violates(tiles_x <= MOST_TILES) or violates(tiles_y <= MOST_TILES):
        must = f"tiles must be at most {MOST_TILES} along each side"
        fail(ValueError, op, must, check.numbers(tiles_x, tiles_y))
    return out


def match_histograms(image: Tensor, reference: Tensor) -> Tensor:
    op = "match_histograms"
    out = image_like(op, image)
    check.image(op, "reference", reference)
    check.like(op, "reference", reference, "image", image)
    check.batch(op, "reference", reference, "image", image)
    same_channels(op, "reference", reference, "image", image)
    check.not_empty(op, "image", image)
    check.not_empty(op, "reference", reference)
    return out


def autocontrast(image: Tensor) -> Tensor:
    return image_like("autocontrast", image)


def equalize(image: Tensor) -> Tensor:
    return image_like("equalize", image)
