"""Fakes of the operators that use a histogram."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops._common import check, layout
from imgops._common.check import fail, violates
from imgops.fake._output import output

#: The most tiles along a side: OpenCV makes a table of 256 levels for each tile, and pads an image to a
#: multiple of the tiles.
MOST_TILES = 4096


def clahe(image: Tensor, clip_limit: Tensor, tiles_x: int, tiles_y: int) -> Tensor:
    op = "clahe"
    check.image(op, "image", image)
    check.levels_or_floats(op, image, takes_uint16=True)
    check.pixels(op, "image", *image.shape[-2:])
    if image.dtype == torch.uint16:
        check.channels(op, image, (1,))
    else:
        check.CLAHE.check(op, image.shape[-3])
    check.not_empty(op, "image", image)
    check.per_sample_parameter(op, "clip_limit", clip_limit, image)
    if violates(tiles_x >= 1, tiles_y >= 1):
        fail(ValueError, op, "tiles must be positive", check.numbers(tiles_x, tiles_y))
    if violates(tiles_x <= MOST_TILES, tiles_y <= MOST_TILES):
        must = f"tiles must be at most {MOST_TILES} along each side"
        fail(ValueError, op, must, check.numbers(tiles_x, tiles_y))
    return layout.empty(image, *image.shape[-2:])


def match_histograms(image: Tensor, reference: Tensor) -> Tensor:
    op = "match_histograms"
    out = output(op, image, takes_uint16=True)
    check.image(op, "reference", reference)
    check.same_dtype_and_device(op, "reference", reference, "image", image)
    check.batch(op, "reference", reference, "image", image)
    check.same_channels(op, "reference", reference, "image", image)
    check.not_empty(op, "image", image)
    check.not_empty(op, "reference", reference)
    return out


def autocontrast(image: Tensor) -> Tensor:
    return output("autocontrast", image, takes_uint16=True)


def equalize(image: Tensor) -> Tensor:
    return output("equalize", image, takes_uint16=True)
