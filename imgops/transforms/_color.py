"""The transforms of color, and blur and noise."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

import imgops
from imgops import _subclass
from imgops.transforms._base import Drawn, Ours, where
from imgops.transforms.functional import _dispatch


class Grayscale(Ours, v2.Grayscale):
    """As torchvision's, with PIL's pixels."""

    def _after(self, channels: int, height: int, width: int) -> tuple[int, int, int]:
        return self.num_output_channels, height, width


class ToDtype(Ours, v2.ToDtype):
    """torchvision's own arithmetic; in a graph with tv_tensors too."""


class Normalize(Ours, v2.Normalize):
    """torchvision's own arithmetic; in a graph with tv_tensors too."""


class ToImage(Ours, v2.ToImage):
    """As torchvision's; in a graph with tensors too."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if torch.compiler.is_compiling() and isinstance(inpt, Tensor):
            return _subclass.plain(inpt).as_subclass(tv_tensors.Image)
        return super().transform(inpt, params)


class _Steps(Drawn):
    """A draw is an order and an amount for each of ``_names``: see :func:`imgops.color_sequence`."""

    _names = ""
    _drawing: tuple[str, ...] = ("p",)

    def _count(self, channels: int, height: int, width: int) -> int:
        return 2 * len(self._names.split(","))

    def _unchosen(self, channels: int, height: int, width: int) -> list[float]:
        steps = len(self._names.split(","))
        return [-1.0] * steps + [0.0] * steps

    def _flat(self, params: dict[str, Any]) -> list[float]:
        return [0.0, self._amount()]

    def _amount(self) -> float:
        return 0.0

    def _image(self, image: Tensor, numbers: Tensor, kind: type) -> Tensor:
        steps = len(self._names.split(","))
        order, amounts = numbers[..., :steps].long(), numbers[..., steps:]
        return imgops.color_sequence(image, order, amounts, self._names)


class ColorJitter(_Steps, v2.ColorJitter):
    """As torchvision's, in one operator, with PIL's pixels, and per sample."""

    _names = "brightness,contrast,saturation,hue"
    _drawing = ("brightness", "contrast", "saturation", "hue")

    def _flat(self, params: dict[str, Any]) -> list[float]:
        factors = [params[f"{name}_factor"] for name in self._names.split(",")]
        order = [float(i) if factors[i] is not None else -1.0 for i in params["fn_idx"].tolist()]
        return [*order, *(0.0 if f is None else f for f in factors)]

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if _dispatch.is_image(inpt):
            numbers = torch.tensor(self._flat(params), dtype=torch.float64, device="cpu")
            return self._one(inpt, numbers, (0, 0))
        return super().transform(inpt, params)


class RandomGrayscale(_Steps, v2.RandomGrayscale):
    """As torchvision's, with PIL's pixels, and per sample."""

    _names = "saturation"


class RandomInvert(_Steps, v2.RandomInvert):
    """As torchvision's, and per sample."""

    _names = "invert"


class RandomPosterize(_Steps, v2.RandomPosterize):
    """As torchvision's, and per sample."""

    _names = "posterize"
    _drawing = ("bits", "p")

    def _amount(self) -> float:
        return float(self.bits)


class RandomSolarize(_Steps, v2.RandomSolarize):
    """As torchvision's, and per sample."""

    _names = "solarize"
    _drawing = ("threshold", "p")

    def _amount(self) -> float:
        return float(self.threshold)


class RandomAdjustSharpness(_Steps, v2.RandomAdjustSharpness):
    """As torchvision's, with PIL's pixels, and per sample."""

    _names = "sharpness"
    _drawing = ("sharpness_factor", "p")

    def _amount(self) -> float:
        return float(self.sharpness_factor)


class RandomAutocontrast(_Steps, v2.RandomAutocontrast):
    """As torchvision's, with PIL's pixels, and per sample."""

    _names = "autocontrast"


class RandomEqualize(_Steps, v2.RandomEqualize):
    """As torchvision's, and per sample."""

    _names = "equalize"


class GaussianBlur(Drawn, v2.GaussianBlur):
    """As torchvision's, with OpenCV's pixels, and per sample."""

    _drawing = ("kernel_size", "sigma")

    def _flat(self, params: dict[str, Any]) -> list[float]:
        return [params["sigma"][0]]

    def _unchosen(self, channels: int, height: int, width: int) -> list[float]:
        return [0.0]

    def _image(self, image: Tensor, numbers: Tensor, kind: type) -> Tensor:
        return imgops.gaussian_blur(image, tuple(self.kernel_size), numbers.expand(*numbers.shape[:-1], 2))


class GaussianNoise(Drawn, v2.GaussianNoise):
    """As torchvision's. In a graph, and per sample, a draw says only whether there is any noise.

    The noise itself is drawn there by PyTorch, and inductor's generator gives other noise than the eager one.
    """

    _drawing = ("mean", "sigma", "clip")

    def _draw(self, channels: int, height: int, width: int) -> list[float]:
        return [1.0]

    def _unchosen(self, channels: int, height: int, width: int) -> list[float]:
        return [0.0]

    def _image(self, image: Tensor, numbers: Tensor, kind: type) -> Tensor:
        noisy = v2.functional.gaussian_noise(image, self.mean, self.sigma, self.clip)
        return where(numbers[..., 0] > 0, noisy, image)
