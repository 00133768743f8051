"""Blurs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops._common import check
from imgops.transforms._core import draws, steps
from imgops.transforms._core.arguments import WIDEST, in_range, switch
from imgops.transforms._core.base import RandomTransform
from imgops.transforms._core.parameters import IS_APPLIED, Parameter, Params, Shape
from imgops.transforms._core.probabilistic import ProbabilisticTransform, odd, uniform
from imgops.transforms.functional import _dispatch

__all__ = ["GaussianBlur", "RandomBilateral", "RandomBoxBlur", "RandomMedianBlur", "RandomMotionBlur"]

Range = float | Sequence[float]
#: A standard deviation that is so small that only the pixel itself has a weight.
_NO_BLUR = 2.0**-7


class GaussianBlur(RandomTransform, v2.GaussianBlur):
    """Blur the image with a Gaussian of random standard deviation, as torchvision's GaussianBlur does.

    The pixels are OpenCV's. Use :class:`RandomBoxBlur` for a window of random size, and for a probability.

    Parameters
    ----------
    kernel_size : int or (int, int)
        The sides of the window along x and y in pixels, odd; one number is both.
    sigma : float or (float, float)
        The range of the standard deviation in pixels, above 0.
    """

    _makes_planar = True
    _config = ("kernel_size", "sigma")
    _dtypes = _dispatch.COMPUTED
    _random_parameters = (Parameter("sigma", 2, neutral=_NO_BLUR),)

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        return [draws.uniform(0, *self.sigma), draws.copy(1, 0)]

    def _values_from(self, numbers: list[float], height: int, width: int) -> dict[str, Any] | None:
        return {"sigma": list(numbers)} if numbers[0] != _NO_BLUR else None

    _takes_batches = True

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        return [steps.GaussianBlur(params.numbers, self.kernel_size)]


class _OddWindow(ProbabilisticTransform):
    """A filter whose window has a random odd size."""

    _random_parameters = (IS_APPLIED, Parameter("kernel_size"))
    _known = ("kernel_size",)

    def __init__(
        self,
        kernel_size: int | Sequence[int] = (3, 7),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        sizes = in_range(self, "kernel_size", kernel_size, 1, WIDEST, odd=True)
        super().__init__(p, per_sample, generator, kernel_size=sizes)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"kernel_size": odd(self.kernel_size)}

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        low, high = self.kernel_size
        return [draws.applied(self.p, draws.integer(1, low, (high - low) // 2 + 1, 2))]


class RandomMedianBlur(_OddWindow):
    """Replace each value by the median of the window around it, with a probability.

    The transform removes single pixels that stand out; use :class:`RandomBilateral` to smooth between edges.

    Parameters
    ----------
    kernel_size : int or (int, int)
        The range of the window's side in pixels, odd.

    Notes
    -----
    Reference: ``cv2.medianBlur``, as in albumentations' MedianBlur, bit-exact on uint8:
    :func:`imgops.median_blur`.
    """

    def _change_image(self, image: Tensor, kernel_size: float) -> Tensor:
        return imgops.median_blur(image, int(kernel_size))


class RandomBoxBlur(_OddWindow):
    """Replace each value by the mean of the window around it, with a probability.

    The window has a random size; use :class:`GaussianBlur` for a smoother blur with a window of fixed size.

    Parameters
    ----------
    kernel_size : int or (int, int)
        The range of the window's side in pixels, odd.

    Notes
    -----
    Reference: ``cv2.blur``, as in albumentations' Blur, bit-exact: :func:`imgops.box_blur`.
    """

    def _change_image(self, image: Tensor, kernel_size: float) -> Tensor:
        return imgops.box_blur(image, int(kernel_size))


class RandomMotionBlur(ProbabilisticTransform):
    """Blur an image along a line, with a probability.

    Parameters
    ----------
    kernel_size : int or (int, int)
        The range of the line's length in pixels, odd, at least 3.
    angle : float or (float, float)
        The range of the direction of the line in degrees, clockwise from the x axis (as in albumentations,
        and unlike in :func:`imgops.motion_blur`).
    balance : float or (float, float)
        The range of the position of the line relative to the pixel, in [-1, 1]: at 0 the pixel is the middle
        of the line, at 1 (-1) the line begins (ends) at the pixel.
    shift : bool
        Whether the line is also moved, by up to a quarter of its length along x and y.

    Notes
    -----
    Reference: ``cv2.filter2D`` with equal weights for the pixels of the line, as in albumentations'
    MotionBlur, bit-exact on uint8. (:func:`imgops.motion_blur` weights parts of pixels, and has a gradient
    with respect to the angle.)
    """

    _random_parameters = (
        IS_APPLIED,
        Parameter("kernel_size"),
        Parameter("angle"),
        Parameter("balance"),
        Parameter("shift_x"),
        Parameter("shift_y"),
    )
    _known = tuple(p.name for p in _random_parameters[1:])

    def __init__(
        self,
        kernel_size: int | Sequence[int] = (3, 7),
        angle: Range = (0.0, 360.0),
        balance: Range = (-1.0, 1.0),
        shift: bool = True,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        arguments = {
            "angle": in_range(self, "angle", angle),
            "balance": in_range(self, "balance", balance, -1.0, 1.0),
            "kernel_size": in_range(self, "kernel_size", kernel_size, 3, WIDEST, odd=True),
            "shift": switch(self, "shift", shift),
        }
        super().__init__(p, per_sample, generator, **arguments)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        size = odd(self.kernel_size)
        numbers = {"angle": uniform(self.angle), "balance": uniform(self.balance)}
        quarter = size // 2 / 2 if self.shift else 0.0
        shifts = {name: uniform((-quarter, quarter)) for name in ("shift_x", "shift_y")}
        return {"kernel_size": size, **numbers, **shifts}

    def _change_image(
        self,
        image: Tensor,
        kernel_size: float,
        angle: float,
        balance: float,
        shift_x: float,
        shift_y: float,
    ) -> Tensor:
        # The pixels of a line as a kernel whose sum is 1.
        size = int(kernel_size)
        middle = size // 2
        start, end = -middle * (1 - max(balance, 0.0)), middle * (1 + min(balance, 0.0))
        along = torch.linspace(start, end, size, dtype=torch.float64, device="cpu")
        turn = math.radians(angle)
        x = (middle + math.cos(turn) * along + shift_x).round().clamp(0, size - 1).long()
        y = (middle + math.sin(turn) * along + shift_y).round().clamp(0, size - 1).long()
        kernel = torch.zeros(size, size, dtype=torch.float32, device="cpu")
        kernel[y, x] = 1
        line = kernel / kernel.sum()
        return imgops.filter2d(image, line, "reflect")


class RandomBilateral(ProbabilisticTransform):
    """Smooth an image, but not across edges, with a probability.

    Use :class:`RandomMedianBlur` to remove single pixels that stand out, which a bilateral filter keeps.

    Parameters
    ----------
    kernel_size : int or (int, int)
        The range of the window's side in pixels, odd.
    sigma_color : float or (float, float)
        The range of the filter's sigma for differences in color, in levels of 255.
    sigma_space : float or (float, float)
        The range of the filter's sigma for distances, in pixels.

    Notes
    -----
    Reference: ``cv2.bilateralFilter``, bit-exact on uint8: :func:`imgops.bilateral_filter`. The differences
    of floats in [0, 1] are also measured in levels of 255.
    """

    _channels = check.BILATERAL
    _random_parameters = (
        IS_APPLIED,
        Parameter("kernel_size"),
        Parameter("sigma_color"),
        Parameter("sigma_space"),
    )
    _known = ("kernel_size",)

    def __init__(
        self,
        kernel_size: int | Sequence[int] = (5, 9),
        sigma_color: Range = (25.0, 75.0),
        sigma_space: Range = (2.0, 5.0),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        arguments = {
            "kernel_size": in_range(self, "kernel_size", kernel_size, 1, WIDEST, odd=True),
            "sigma_color": in_range(self, "sigma_color", sigma_color, 1e-6),
            "sigma_space": in_range(self, "sigma_space", sigma_space, 1e-6, WIDEST),
        }
        super().__init__(p, per_sample, generator, **arguments)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        color, space = uniform(self.sigma_color), uniform(self.sigma_space)
        return {"kernel_size": odd(self.kernel_size), "sigma_color": color, "sigma_space": space}

    def _change_image(
        self, image: Tensor, kernel_size: float, sigma_color: Tensor, sigma_space: Tensor
    ) -> Tensor:
        if image.dtype.is_floating_point:
            sigma_color = sigma_color / 255
        return imgops.bilateral_filter(image, int(kernel_size), sigma_color, sigma_space)
