"""Contrast, sharpness and morphology with random parameters, and what storing an image costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import torch
from torch import Tensor

import imgops
from imgops.transforms._added import AddedTransform, integer, uniform
from imgops.transforms._arguments import (
    WIDEST,
    in_range,
    one_number,
    one_of,
    size_of,
)
from imgops.transforms._parameters import IS_APPLIED, Parameter

__all__ = [
    "RandomCLAHE",
    "RandomCompression",
    "RandomDownscale",
    "RandomEmboss",
    "RandomMorphology",
    "RandomSharpen",
    "RandomUnsharpMask",
]

Range = float | Sequence[float]


class RandomCLAHE(AddedTransform):
    """Equalize the histogram of each part of an image, with a limit on contrast, with a probability.

    Parameters
    ----------
    clip_limit : float or (float, float)
        The range of the limit, as a multiple of the mean count of a level; from 1 on.
    tiles : int or (int, int)
        How many parts there are along x and y.
    p : float
        The probability with which it is applied.
    per_sample, generator
        :doc:`As for every transform </transforms>`.

    Notes
    -----
    Reference: ``cv2.createCLAHE``, on the L of LAB for 3 channels, as albumentations' CLAHE has it, bit-exact
    on uint8: :func:`imgops.clahe`.
    """

    random_parameters = (IS_APPLIED, Parameter("clip_limit"))
    _made_of = ("clahe",)
    _example = {"clip_limit": (8.0, 8.0)}

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
        super().__init__(
            p, per_sample, generator, clip_limit=limits, tiles=size_of(self, "tiles", tiles, WIDEST)
        )

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"clip_limit": uniform(self.clip_limit)}

    def changed(self, image: Tensor, clip_limit: Tensor) -> Tensor:
        return imgops.clahe(image, clip_limit, self.tiles)


class RandomUnsharpMask(AddedTransform):
    """Sharpen an image by what a blurred copy lacks, with a probability.

    Parameters
    ----------
    radius : float or (float, float)
        The range of the blur's standard deviation in pixels.
    percent : float or (float, float)
        The range of how much of the difference is added, in percent.
    threshold : float
        The difference, in levels of 255, up to which a value stays.
    p : float
        The probability with which it is applied.
    per_sample, generator
        :doc:`As for every transform </transforms>`.

    Notes
    -----
    Reference: :class:`PIL.ImageFilter.UnsharpMask`, bit-exact on uint8: :func:`imgops.unsharp_mask`.
    (albumentations' UnsharpMask has another blur and mask.)
    """

    random_parameters = (IS_APPLIED, Parameter("radius"), Parameter("percent"))
    _made_of = ("unsharp_mask",)
    _example = {"radius": 4.0, "percent": 400.0}

    def __init__(
        self,
        radius: Range = (0.5, 3.0),
        percent: Range = (50.0, 150.0),
        threshold: float = 3.0,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        arguments = {
            "radius": in_range(self, "radius", radius, 0.0, WIDEST // 8),
            "percent": in_range(self, "percent", percent, 0.0, 1e6),
            "threshold": one_number(self, "threshold", threshold, 0.0, 1e6),
        }
        super().__init__(p, per_sample, generator, **arguments)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"radius": uniform(self.radius), "percent": uniform(self.percent)}

    def changed(self, image: Tensor, radius: Tensor, percent: Tensor) -> Tensor:
        return imgops.unsharp_mask(image, radius, percent, self.threshold)


def _blended(alpha: Tensor, effect: Tensor) -> Tensor:
    """A kernel that leaves an image as it is and another one, as a mean."""
    same = torch.zeros(3, 3, dtype=torch.float64)
    same[1, 1] = 1
    share = alpha[..., None, None]
    return ((1 - share) * same + share * effect).to(torch.float32)


class RandomSharpen(AddedTransform):
    """Sharpen an image by a kernel of 3 x 3, with a probability.

    Parameters
    ----------
    alpha : float or (float, float)
        The range of the share of the sharpened image, in [0, 1].
    lightness : float or (float, float)
        The range of how much lighter that one is; 1 leaves the lightness.
    p : float
        The probability with which it is applied.
    per_sample, generator
        :doc:`As for every transform </transforms>`.

    Notes
    -----
    Reference: ``cv2.filter2D``, as in albumentations' Sharpen with ``method="kernel"``, within one level:
    :func:`imgops.filter2d`. Floats are not clamped.
    """

    random_parameters = (IS_APPLIED, Parameter("alpha"), Parameter("lightness"))
    _made_of = ("filter2d",)
    _example = {"alpha": 0.6, "lightness": 1.2}

    def __init__(
        self,
        alpha: Range = (0.2, 0.5),
        lightness: Range = (0.5, 1.0),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        shares, lights = in_range(self, "alpha", alpha, 0.0, 1.0), in_range(self, "lightness", lightness, 0.0)
        super().__init__(p, per_sample, generator, alpha=shares, lightness=lights)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"alpha": uniform(self.alpha), "lightness": uniform(self.lightness)}

    def changed(self, image: Tensor, alpha: Tensor, lightness: Tensor) -> Tensor:
        effect = -torch.ones(*lightness.shape, 3, 3, dtype=torch.float64)
        effect[..., 1, 1] = 8 + lightness
        return imgops.filter2d(image, _blended(alpha, effect), "reflect")


class RandomEmboss(AddedTransform):
    """Raise an image's edges as in a relief, with a probability.

    Parameters
    ----------
    alpha : float or (float, float)
        The range of the share of the relief, in [0, 1].
    strength : float or (float, float)
        The range of its depth.
    p : float
        The probability with which it is applied.
    per_sample, generator
        :doc:`As for every transform </transforms>`.

    Notes
    -----
    Reference: ``cv2.filter2D``, as in albumentations' Emboss, within one level: :func:`imgops.filter2d`.
    Floats are not clamped.
    """

    random_parameters = (IS_APPLIED, Parameter("alpha"), Parameter("strength"))
    _made_of = ("filter2d",)
    _example = {"alpha": 0.9, "strength": 1.0}

    def __init__(
        self,
        alpha: Range = (0.2, 0.5),
        strength: Range = (0.2, 0.7),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        shares, depths = in_range(self, "alpha", alpha, 0.0, 1.0), in_range(self, "strength", strength, 0.0)
        super().__init__(p, per_sample, generator, alpha=shares, strength=depths)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"alpha": uniform(self.alpha), "strength": uniform(self.strength)}

    def changed(self, image: Tensor, alpha: Tensor, strength: Tensor) -> Tensor:
        s = strength
        rows = [[-1 - s, -s, 0 * s], [-s, 1 + 0 * s, s], [0 * s, s, 1 + s]]
        effect = torch.stack([torch.stack(row, -1) for row in rows], -2)
        return imgops.filter2d(image, _blended(alpha, effect), "reflect")


#: The forms of ``cv2.getStructuringElement``.
SHAPES = {"rectangle": cv2.MORPH_RECT, "cross": cv2.MORPH_CROSS, "ellipse": cv2.MORPH_ELLIPSE}


class RandomMorphology(AddedTransform):
    """Erode or dilate an image, or one of the operations made of these, with a probability.

    Parameters
    ----------
    operation : {"erode", "dilate", "open", "close", "gradient", "tophat", "blackhat"}
        What is done: see :func:`imgops.morphology`.
    kernel_size : int or (int, int)
        The range of the structuring element's side in pixels.
    shape : {"ellipse", "rectangle", "cross"}
        Its form, ``cv2.getStructuringElement``'s.
    p : float
        The probability with which it is applied.
    per_sample, generator
        :doc:`As for every transform </transforms>`.

    Notes
    -----
    Reference: ``cv2.morphologyEx``, as in albumentations' Morphological, bit-exact. It is a filter: masks,
    boxes and keypoints stay as they are.
    """

    random_parameters = (IS_APPLIED, Parameter("kernel_size"))
    _known = ("kernel_size",)
    _made_of = ("morphology",)
    _example = {"operation": "erode", "kernel_size": 9}

    def __init__(
        self,
        operation: str = "dilate",
        kernel_size: int | Sequence[int] = (2, 3),
        shape: str = "ellipse",
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        operations = ("erode", "dilate", "open", "close", "gradient", "tophat", "blackhat")
        arguments = {
            "operation": one_of(self, "operation", operation, operations),
            "kernel_size": in_range(self, "kernel_size", kernel_size, 1, WIDEST, whole=True),
            "shape": one_of(self, "shape", shape, tuple(SHAPES)),
        }
        super().__init__(p, per_sample, generator, **arguments)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"kernel_size": integer(self.kernel_size)}

    def changed(self, image: Tensor, kernel_size: float) -> Tensor:
        side = int(kernel_size)
        element = torch.from_numpy(cv2.getStructuringElement(SHAPES[self.shape], (side, side)))
        return imgops.morphology(image, self.operation, element)


class RandomDownscale(AddedTransform):
    """Resize an image to a smaller size and back, with a probability.

    Parameters
    ----------
    factor : float or (float, float)
        The range of the smaller size, as a share of the image's, in (0, 1].
    down : {"area", "nearest", "bilinear"}
        The interpolation to the smaller size.
    up : {"bilinear", "nearest", "bicubic"}
        The interpolation back.
    p : float
        The probability with which it is applied.
    per_sample, generator
        :doc:`As for every transform </transforms>`.

    Notes
    -----
    Reference: ``cv2.resize`` twice, to sizes: :func:`imgops.downscale`. (albumentations' Downscale gives
    OpenCV the factor, which is that of the sizes but for their rounding.)
    """

    random_parameters = (IS_APPLIED, Parameter("factor"))
    _made_of = ("downscale",)
    _example = {"factor": 0.1, "up": "nearest"}

    def __init__(
        self,
        factor: Range = (0.25, 0.5),
        down: str = "area",
        up: str = "bilinear",
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        arguments = {
            "factor": in_range(self, "factor", factor, 1e-6, 1.0),
            "down": one_of(self, "down", down, ("area", "nearest", "bilinear")),
            "up": one_of(self, "up", up, ("bilinear", "nearest", "bicubic")),
        }
        super().__init__(p, per_sample, generator, **arguments)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"factor": uniform(self.factor)}

    def changed(self, image: Tensor, factor: Tensor) -> Tensor:
        return imgops.downscale(image, factor, self.down, self.up)


class RandomCompression(AddedTransform):
    """Store an image as JPEG or WebP and read it again, with a probability.

    Parameters
    ----------
    quality : int or (int, int)
        The range of the encoder's quality, from 1 to 100.
    format : {"jpeg", "webp"}
        The file format.
    p : float
        The probability with which it is applied.
    per_sample, generator
        :doc:`As for every transform </transforms>`.

    Notes
    -----
    Reference: Pillow's files and pixels, bit-exact: :func:`imgops.jpeg`, :func:`imgops.webp`. The gradient is
    that of the identity. (albumentations' ImageCompression stores the channels in the opposite order.)
    """

    random_parameters = (IS_APPLIED, Parameter("quality"))
    _made_of = ("jpeg", "webp")
    _example = {"quality": 6}

    def __init__(
        self,
        quality: int | Sequence[int] = (40, 95),
        format: str = "jpeg",
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        qualities = in_range(self, "quality", quality, 1, 100, whole=True)
        format = one_of(self, "format", format, ("jpeg", "webp"))
        super().__init__(p, per_sample, generator, quality=qualities, format=format)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"quality": integer(self.quality)}

    def changed(self, image: Tensor, quality: Tensor) -> Tensor:
        store = imgops.jpeg if self.format == "jpeg" else imgops.webp
        return store(image, quality)
