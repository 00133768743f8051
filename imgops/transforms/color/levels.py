"""Transforms of single levels and of histograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops._common import check
from imgops.transforms._core.arguments import WIDEST, in_range, size_of
from imgops.transforms._core.parameters import IS_APPLIED, Parameter
from imgops.transforms._core.probabilistic import ProbabilisticTransform
from imgops.transforms.color.sequence import ColorStep
from imgops.transforms.functional import _color as functional_color

__all__ = [
    "RandomAutocontrast",
    "RandomCLAHE",
    "RandomEqualize",
    "RandomInvert",
    "RandomPosterize",
    "RandomSolarize",
]

Range = float | Sequence[float]


class RandomInvert(ColorStep, v2.RandomInvert):
    """Invert the colors of the image with a probability, as torchvision's RandomInvert does."""

    _names = "invert"


class RandomPosterize(ColorStep, v2.RandomPosterize):
    """Keep only the highest bits of each value with a probability, as torchvision's RandomPosterize does.

    Parameters
    ----------
    bits : int
        The number of bits to keep, from 0 to 8, for uint16 to 16.
    """

    _names = "posterize"
    _config = ("bits", "p")

    def _amount(self) -> float:
        return float(self.bits)

    def _supports(self, image: Tensor) -> bool:
        return functional_color.is_bits(self.bits, image) and super()._supports(image)


class RandomSolarize(ColorStep, v2.RandomSolarize):
    """Invert the values from a threshold on with a probability, as torchvision's RandomSolarize does.

    Parameters
    ----------
    threshold : float
        The least value that is inverted, in the range of the image: up to 255 for uint8, up to 65535
        for uint16, up to 1 for floats.
    """

    _names = "solarize"
    _config = ("threshold", "p")

    def _amount(self) -> float:
        return float(self.threshold)

    def _require_batch(self, image: Any) -> None:
        functional_color.require_threshold(image, self.threshold)

    def _supports(self, image: Tensor) -> bool:
        return self.threshold <= functional_color.white_of(image) and super()._supports(image)


class RandomAutocontrast(ColorStep, v2.RandomAutocontrast):
    """Stretch the contrast of the image with a probability, as torchvision's RandomAutocontrast does.

    The pixels are PIL's. The transform makes the least value of each channel black and the greatest white;
    :class:`RandomEqualize` also spreads the values in between.
    """

    _names = "autocontrast"
    _outweighs_pil = True


class RandomEqualize(ColorStep, v2.RandomEqualize):
    """Equalize the histogram of the image with a probability, as torchvision's RandomEqualize does.

    The histogram is that of the whole image; use :class:`RandomCLAHE` to equalize each part of it, under a
    limit on contrast.
    """

    _names = "equalize"


class RandomCLAHE(ProbabilisticTransform):
    """Equalize the histogram of each part of an image under a limit on contrast, with a probability.

    Use :class:`RandomEqualize` for one histogram of the whole image.

    Parameters
    ----------
    clip_limit : float or (float, float)
        The range of the limit, as a multiple of the mean count of a level; at least 1.
    tiles : int or (int, int)
        The numbers of parts along x and y.

    Notes
    -----
    Reference: ``cv2.createCLAHE``, on the L of LAB for 3 channels, as in albumentations' CLAHE, bit-exact on
    uint8: :func:`imgops.clahe`.
    """

    _channels = check.CLAHE
    _random_parameters = (IS_APPLIED, Parameter("clip_limit"))

    def __init__(
        self,
        clip_limit: Range = (1.0, 4.0),
        tiles: int | Sequence[int] = (8, 8),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        limits = in_range(self, "clip_limit", clip_limit, 1.0)
        counts = size_of(self, "tiles", tiles, WIDEST, "two, along x and y")
        super().__init__(p, per_sample, generator, clip_limit=limits, tiles=counts)

    def _change_image(self, image: Tensor, clip_limit: Tensor) -> Tensor:
        return imgops.clahe(image, clip_limit, self.tiles)
