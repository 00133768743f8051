"""Transforms that give an image the colors, or the coarse structure, of another one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

import imgops
from imgops._common import check
from imgops._operator import subclass
from imgops.transforms._core.arguments import in_range
from imgops.transforms._core.parameters import IS_APPLIED, Parameter
from imgops.transforms._core.probabilistic import ProbabilisticTransform, integer, real_of, uniform
from imgops.transforms.functional import _color

__all__ = [
    "FDA",
    "HistogramMatching",
]

Range = float | Sequence[float]


class _ReferenceTransform(ProbabilisticTransform):
    """A transform that draws one of several reference images, whose pixels are kept in one flat tensor."""

    _levels = True
    _hidden = ("shapes",)

    def __init__(
        self,
        references: Sequence[Tensor] | Tensor,
        p: float,
        per_sample: bool,
        generator: torch.Generator | None,
        shapes: Sequence[Sequence[int]] | None = None,
        **arguments: Any,
    ) -> None:
        name = type(self).__name__
        images = [] if shapes else _images(name, references)
        self._pixels = (
            torch.cat([x.reshape(-1) for x in images])
            if images
            else torch.empty(0, dtype=torch.float32, device="cpu")
        )
        arguments["shapes"] = tuple(tuple(x) for x in shapes or (x.shape for x in images))
        super().__init__(p, per_sample, generator, **arguments)

    @classmethod
    def _from_config(cls, **config: Any) -> Any:
        transform = cls.__new__(cls)
        _ReferenceTransform.__init__(transform, (), config.pop("p"), False, None, **config)
        return transform

    @property
    def _channels(self) -> check.Channels:  # type: ignore[override]
        return check.Channels((self.shapes[0][0],), "the references have as many")

    def _extra(self, image: Tensor) -> Tensor:
        return self._pixels.to(image.device, non_blocking=True)

    def _reference(self, index: float, image: Tensor, extra: Tensor) -> Tensor:
        """Return one of the references, in the dtype and size of the image."""
        sizes = [prod(x) for x in self.shapes]
        at = int(index)
        shape = self.shapes[at]
        pixels = extra.narrow(0, sum(sizes[:at]), sizes[at]).reshape(shape)
        reference = _color.to_dtype(pixels, image.dtype, scale=True)
        if reference.shape[-2:] == image.shape[-2:]:
            return reference
        return imgops.resize(reference, tuple(image.shape[-2:]), antialias=False)


def _images(owner: str, references: Any) -> list[Tensor]:
    must = f"{owner}: references must be images (C, H, W) of one C and one dtype, uint8 or floating point"
    if not isinstance(references, (list, tuple, Tensor)):
        raise TypeError(f"{must}, got {type(references).__name__}")
    if isinstance(references, Tensor) and references.ndim != 4:
        raise ValueError(f"{must}, got shape {tuple(references.shape)}")
    images = list(references)
    if not all(isinstance(x, Tensor) for x in images):
        raise TypeError(f"{must}, got {[type(x).__name__ for x in images]}")
    first = images[0] if images else None
    if first is None or not all(x.ndim == 3 and x.numel() and x.dtype == first.dtype for x in images):
        raise ValueError(f"{must}, got {[(tuple(x.shape), x.dtype) for x in images]}")
    if first.dtype != torch.uint8 and not first.dtype.is_floating_point:
        raise TypeError(f"{must}, got {first.dtype}")
    if len({len(x) for x in images}) > 1:
        raise ValueError(f"{must}, got {[len(x) for x in images]} channels")
    return [subclass.plain(x).detach().cpu() for x in images]


class HistogramMatching(_ReferenceTransform):
    """Match the histograms of an image to those of another one, with a probability.

    The image takes the colors of the other image; use :class:`FDA` for its coarse structure.

    Parameters
    ----------
    references : sequence of Tensor
        Images ``(C, H, W)`` of one C and one dtype. One of them is drawn, and resized to the image's size.
    alpha : float or (float, float)
        The range of the weight of the result in its blend with the image, in [0, 1].

    Notes
    -----
    Reference: ``skimage.exposure.match_histograms`` and ``cv2.addWeighted``, as in albumentations'
    HistogramMatching: :func:`imgops.match_histograms`, :func:`imgops.add_weighted`.
    """

    _random_parameters = (IS_APPLIED, Parameter("index"), Parameter("alpha"))
    _known = ("index",)

    def __init__(
        self,
        references: Sequence[Tensor] | Tensor,
        alpha: Range = (0.5, 1.0),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        weights = in_range(self, "alpha", alpha, 0.0, 1.0)
        super().__init__(references, p, per_sample, generator, alpha=weights)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"index": integer((0, len(self.shapes) - 1)), "alpha": uniform(self.alpha)}

    def _change_image(self, image: Tensor, index: float, alpha: Tensor, extra: Tensor) -> Tensor:
        reference = self._reference(index, image, extra)
        result = imgops.match_histograms(image, reference.expand(image.shape))
        return imgops.add_weighted(result, alpha, image, 1 - alpha)


class FDA(_ReferenceTransform):
    """Give an image the low frequencies of another one (Fourier domain adaptation), with a probability.

    Use :class:`HistogramMatching` to take only the colors of the other image.

    Parameters
    ----------
    references : sequence of Tensor
        Images ``(C, H, W)`` of one C and one dtype. One of them is drawn, and resized to the image's size.
    beta : float or (float, float)
        The range of the number of lowest frequencies that are replaced: half the side of their square in the
        spectrum, as a share of the image's shortest side, in [0, 0.5].

    Notes
    -----
    Reference: NumPy's ``fft``, as in albumentations' FDA, within one level: the amplitudes of the lowest
    frequencies come from the other image, and all phases from the image itself. The gradient is that of the
    formula.
    """

    _random_parameters = (IS_APPLIED, Parameter("index"), Parameter("beta"))
    _known = ("index", "beta")

    def __init__(
        self,
        references: Sequence[Tensor] | Tensor,
        beta: Range = (0.0, 0.1),
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__(references, p, per_sample, generator, beta=in_range(self, "beta", beta, 0.0, 0.5))

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"index": integer((0, len(self.shapes) - 1)), "beta": uniform(self.beta)}

    def _change_image(self, image: Tensor, index: float, beta: float, extra: Tensor) -> Tensor:
        if not image.numel():  # a Fourier transform of no images raises
            return image.clone()
        reference = self._reference(index, image, extra)
        real = real_of(image)
        # The last bits, which decide where a level is truncated, depend on the strides.
        own, other = (torch.fft.fft2(x.to(real).contiguous()) for x in (image, reference))
        height, width = image.shape[-2:]
        half = int(min(height, width) * beta)
        rows, columns = (_lowest(n, half, image.device) for n in (height, width))
        inside = rows[:, None] & columns
        size = own.abs()
        factor = torch.where(inside & (size > 0), other.abs() / size.clamp(min=1e-30), 1.0)
        result = torch.fft.ifft2(own * factor).real
        if image.dtype == torch.uint8:
            return result.clamp(0, 255).to(torch.uint8)
        return result.clamp(0, 1).to(image.dtype)


def _lowest(extent: int, half: int, device: torch.device) -> Tensor:
    """Return a mask of the frequencies in the center of a shifted spectrum."""
    middle = int((extent - 1) / 2)
    start, end = max(middle - half, 0), min(middle + half, extent)
    at = torch.arange(extent, dtype=torch.int64, device="cpu")
    return torch.fft.ifftshift((at >= start) & (at < end)).to(device, non_blocking=True)
