"""The losses of compression or of a smaller size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops._common import check
from imgops.transforms._core import draws, steps
from imgops.transforms._core.arguments import in_range, one_of
from imgops.transforms._core.base import RandomTransform
from imgops.transforms._core.parameters import IS_APPLIED, Parameter, Params, Shape
from imgops.transforms._core.probabilistic import ProbabilisticTransform, integer

__all__ = ["JPEG", "RandomCompression", "RandomDownscale"]

Range = float | Sequence[float]


class JPEG(RandomTransform, v2.JPEG):
    """Compress the image as JPEG of a random quality and decode it, as torchvision's JPEG does.

    The pixels are Pillow's, and the transform also works on floats. Use :class:`RandomCompression` for WebP,
    or for a probability.

    Parameters
    ----------
    quality : int or (int, int)
        The range of the encoder's quality, from 1 to 100.
    """

    _makes_planar = True
    _config = ("quality",)
    _channels = check.JPEG

    _random_parameters = (Parameter("quality", kind=int),)

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        low, high = self.quality
        return [draws.integer(0, low, high - low + 1)]

    def _values_from(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        return super()._values_from(numbers, height, width) if numbers[0] else None

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        return [steps.JPEG(params.numbers)]


class RandomDownscale(ProbabilisticTransform):
    """Resize an image to a smaller size and back, with a probability.

    Parameters
    ----------
    factor : float or (float, float)
        The range of the smaller size, as a share of the image's, in (0, 1].
    down : {"area", "nearest", "bilinear"}
        The interpolation to the smaller size.
    up : {"bilinear", "nearest", "bicubic"}
        The interpolation back.

    Notes
    -----
    Reference: ``cv2.resize`` twice, called with sizes: :func:`imgops.downscale`. (albumentations' Downscale
    passes OpenCV the factor, which differs from the ratio of the rounded sizes.)
    """

    _random_parameters = (IS_APPLIED, Parameter("factor"))

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

    def _change_image(self, image: Tensor, factor: Tensor) -> Tensor:
        return imgops.downscale(image, factor, self.down, self.up)


class RandomCompression(ProbabilisticTransform):
    """Store an image as JPEG or WebP and read it again, with a probability.

    Use :class:`JPEG` for torchvision's draws, and to compress every image.

    Parameters
    ----------
    format : {"jpeg", "webp"}
        The file format.
    quality : int or (int, int)
        The range of the encoder's quality, from 1 to 100.

    Notes
    -----
    Reference: Pillow's files and pixels, bit-exact: :func:`imgops.jpeg`, :func:`imgops.webp`. The gradient is
    that of the identity. (albumentations' ImageCompression stores the channels in the opposite order.)
    """

    @property
    def _channels(self) -> check.Channels:  # type: ignore[override]
        return check.JPEG if self.format == "jpeg" else check.WEBP

    _random_parameters = (IS_APPLIED, Parameter("quality"))

    def __init__(
        self,
        format: str = "jpeg",
        quality: int | Sequence[int] = (40, 95),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        format = one_of(self, "format", format, ("jpeg", "webp"))
        qualities = in_range(self, "quality", quality, 1, 100, whole=True)
        super().__init__(p, per_sample, generator, format=format, quality=qualities)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"quality": integer(self.quality)}

    def _change_image(self, image: Tensor, quality: Tensor) -> Tensor:
        store = imgops.jpeg if self.format == "jpeg" else imgops.webp
        return store(image, quality)
