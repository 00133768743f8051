"""Sharpening and embossing."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops.transforms._core.arguments import WIDEST, in_range, one_number
from imgops.transforms._core.parameters import IS_APPLIED, Parameter
from imgops.transforms._core.probabilistic import ProbabilisticTransform
from imgops.transforms.color.sequence import ColorStep

__all__ = ["RandomAdjustSharpness", "RandomEmboss", "RandomSharpen", "RandomUnsharpMask"]

Range = float | Sequence[float]


class RandomAdjustSharpness(ColorStep, v2.RandomAdjustSharpness):
    """Change the sharpness of the image with a probability, as torchvision's RandomAdjustSharpness does.

    The pixels are PIL's. The factor is fixed, and a factor below 1 blurs the image; use
    :class:`RandomSharpen` for a random strength, or :class:`RandomUnsharpMask` to also set a radius.

    Parameters
    ----------
    sharpness_factor : float
        The factor, from 0 on: 0 gives a blurred image, 1 changes nothing, 2 doubles the sharpness.
    """

    _names = "sharpness"
    _config = ("sharpness_factor", "p")
    _outweighs_pil = True

    def _amount(self) -> float:
        return float(self.sharpness_factor)

    def _supports(self, image: Tensor) -> bool:
        return self.sharpness_factor >= 0 and super()._supports(image)


class RandomUnsharpMask(ProbabilisticTransform):
    """Sharpen an image by its difference from a blurred copy, with a probability.

    Use this transform to set a radius and a threshold, as photographers do, :class:`RandomSharpen` for a
    fixed kernel of 3 x 3, and :class:`RandomAdjustSharpness` for torchvision's fixed factor.

    Parameters
    ----------
    radius : float or (float, float)
        The range of the blur's standard deviation in pixels.
    percent : float or (float, float)
        The range of the percentage of the difference that is added.
    threshold : float
        The difference, in levels of 255, up to which a value is not changed.

    Notes
    -----
    Reference: :class:`PIL.ImageFilter.UnsharpMask`, bit-exact on uint8: :func:`imgops.unsharp_mask`.
    (albumentations' UnsharpMask uses another blur and mask.)
    """

    _random_parameters = (IS_APPLIED, Parameter("radius"), Parameter("percent"))

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

    def _change_image(self, image: Tensor, radius: Tensor, percent: Tensor) -> Tensor:
        return imgops.unsharp_mask(image, radius, percent, self.threshold)


def _blend_kernels(alpha: Tensor, effect: Tensor) -> Tensor:
    """Return the weighted mean of the identity kernel and another kernel."""
    same = torch.zeros(3, 3, dtype=torch.float64, device="cpu")
    same[1, 1] = 1
    share = alpha[..., None, None]
    return ((1 - share) * same + share * effect).to(torch.float32)


class RandomSharpen(ProbabilisticTransform):
    """Sharpen an image with a kernel of 3 x 3, with a probability.

    Use :class:`RandomUnsharpMask` for a wider radius, :class:`RandomAdjustSharpness` for torchvision's fixed
    factor.

    Parameters
    ----------
    alpha : float or (float, float)
        The range of the weight of the sharpened image, in [0, 1].
    lightness : float or (float, float)
        The range of the lightness of the sharpened image; 1 does not change it.

    Notes
    -----
    Reference: ``cv2.filter2D``, as in albumentations' Sharpen with ``method="kernel"``, within one level:
    :func:`imgops.filter2d`. Floats are not clamped.
    """

    _random_parameters = (IS_APPLIED, Parameter("alpha"), Parameter("lightness"))

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

    def _change_image(self, image: Tensor, alpha: Tensor, lightness: Tensor) -> Tensor:
        effect = -torch.ones(*lightness.shape, 3, 3, dtype=torch.float64, device="cpu")
        effect[..., 1, 1] = 8 + lightness
        return imgops.filter2d(image, _blend_kernels(alpha, effect), "reflect")


class RandomEmboss(ProbabilisticTransform):
    """Raise an image's edges as in a relief, with a probability.

    Parameters
    ----------
    alpha : float or (float, float)
        The range of the weight of the relief, in [0, 1].
    strength : float or (float, float)
        The range of the depth of the relief.

    Notes
    -----
    Reference: ``cv2.filter2D``, as in albumentations' Emboss, within one level: :func:`imgops.filter2d`.
    Floats are not clamped.
    """

    _random_parameters = (IS_APPLIED, Parameter("alpha"), Parameter("strength"))

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

    def _change_image(self, image: Tensor, alpha: Tensor, strength: Tensor) -> Tensor:
        s = strength
        rows = [[-1 - s, -s, 0 * s], [-s, 1 + 0 * s, s], [0 * s, s, 1 + s]]
        effect = torch.stack([torch.stack(row, -1) for row in rows], -2)
        return imgops.filter2d(image, _blend_kernels(alpha, effect), "reflect")
