"""Transforms of channels: conversion to gray, permutation and removal of channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import v2

import imgops
from imgops._common import check
from imgops.batches.packed import PackedImages
from imgops.kernels.cpu.program import ImageProgram
from imgops.transforms._core import draws, steps
from imgops.transforms._core.arguments import fill_tensor, in_range, one_number
from imgops.transforms._core.base import OperatorTransform, RandomTransform
from imgops.transforms._core.batches import PendingBatch
from imgops.transforms._core.parameters import IS_APPLIED, Parameter, Params, Shape
from imgops.transforms._core.probabilistic import ProbabilisticTransform, integer
from imgops.transforms.functional import _color as functional_color
from imgops.transforms.functional import _dispatch

__all__ = ["RGB", "Grayscale", "RandomChannelDropout", "RandomChannelPermutation", "RandomGrayscale"]


class Grayscale(OperatorTransform, v2.Grayscale):
    """Convert the image to gray, as torchvision's Grayscale does.

    The pixels are PIL's.

    Parameters
    ----------
    num_output_channels : {1, 3}
        The number of channels of the output; all of them are equal.
    """

    _dtypes = _dispatch.COMPUTED

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return functional_color.rgb_to_grayscale(image, self.num_output_channels)

    def _plan(self, shape: Any, program: Any) -> Any:
        samples, _, height, width = shape
        return samples, self.num_output_channels, height, width


class RGB(OperatorTransform, v2.RGB):
    """Convert gray images to three equal channels, as torchvision's RGB does."""

    _dtypes = _dispatch.COMPUTED
    _takes_batches = True

    def _image(self, image: Any, params: Params, kind: type) -> Any:
        if isinstance(image, PackedImages):
            gray: Any = image
            return image if image.num_channels >= 3 else imgops.grayscale(gray, 3)
        return functional_color.grayscale_to_rgb(image)

    def _image_of_batch(self, images: Any, params: Params) -> Any:
        if type(images) is PendingBatch and images.num_channels >= 3:
            return images  # a later crop still decodes only what it keeps
        return super()._image_of_batch(images, params)

    def _plan(self, shape: Any, program: Any) -> Any:
        samples, channels, height, width = shape
        return samples, max(channels, 3), height, width


#: The channels in their new order.
PERMUTATION = Parameter("permutation", lambda _, shape: shape[1], lambda shape: range(shape[1]), int)


class RandomChannelPermutation(RandomTransform, v2.RandomChannelPermutation):
    """Permute the channels of the image at random, as torchvision's RandomChannelPermutation does."""

    _random_parameters = (PERMUTATION,)

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        return [draws.permutation(0, range(shape[1]))]

    def _values_from(self, numbers: list[float], height: int, width: int) -> dict[str, Any]:
        return {"permutation": torch.tensor([int(n) for n in numbers], dtype=torch.int64, device="cpu")}

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        return [steps.PermuteChannels(params.numbers)]


class RandomGrayscale(RandomTransform, v2.RandomGrayscale):
    """Convert the image to gray with a probability, as torchvision's RandomGrayscale does.

    The pixels are PIL's. The number of channels, 1 or 3, does not change.
    """

    _config = ("p",)
    _dtypes = _dispatch.COMPUTED
    _channels = check.GRAY
    _random_parameters = (IS_APPLIED, Parameter("num_input_channels", kind=int))

    def _draw_rule(self, shape: Shape) -> draws.Rule:
        return [draws.applied(self.p, draws.put(1, shape[1]))]

    _has_pils_pixels = True

    _takes_batches = True

    def _steps(self, params: Params, size: tuple[int, int], kind: type) -> list[steps.Step]:
        return [steps.Gray(params.numbers)]

    def _count_channels(self, inpt: Any) -> int | None:
        return None if isinstance(inpt, _dispatch.Video) else super()._count_channels(inpt)

    def _add_to(self, program: ImageProgram, params: Params, kind: type) -> bool:
        return program.channels == 1 or super()._add_to(program, params, kind)  # one channel is gray

    def _image(self, image: Any, params: Params, kind: type) -> Any:
        if issubclass(kind, _dispatch.Video):
            return image  # as torchvision does
        is_gray = functional_color.channels_of(image) == 1
        return image if is_gray else super()._image(image, params, kind)


class RandomChannelDropout(ProbabilisticTransform):
    """Set some channels to one value, with a probability.

    Parameters
    ----------
    num_channels : int or (int, int)
        The range of the number of channels, at least 1 and fewer than the image has.
    fill : float
        The value.

    Notes
    -----
    Reference: albumentations' ChannelDropout, bit-exact, for every dtype. The gradient flows to the remaining
    channels.
    """

    _random_parameters = (IS_APPLIED, Parameter("dropped", lambda t, shape: t._rest(shape[1])))

    def __init__(
        self,
        num_channels: int | Sequence[int] = (1, 1),
        fill: float = 0.0,
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        counts = in_range(self, "num_channels", num_channels, 1, whole=True)
        value = one_number(self, "fill", fill)
        super().__init__(p, per_sample, generator, num_channels=counts, fill=value)

    def _rest(self, channels: int) -> int:
        return channels

    def _supports(self, image: Tensor) -> bool:
        return image.ndim > 2 and image.shape[-3] > self.num_channels[1] and super()._supports(image)

    def _require_channels(self, inputs: list[Any]) -> None:
        for inpt in inputs:
            count = self._count_channels(inpt)
            if count is not None and check.violates(count > self.num_channels[1]):
                must = f"image must have more than {self.num_channels[1]} channels"
                check.fail(ValueError, type(self).__name__, must, check.number(count))

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        count = self._shape_of(flat_inputs)[1]
        chosen = torch.randperm(count, device="cpu")[: integer(self.num_channels)]
        return {
            "dropped": torch.zeros(count, dtype=torch.float32, device="cpu")
            .index_fill(0, chosen, 1.0)
            .tolist()
        }

    def _change_image(self, image: Tensor, dropped: Tensor) -> Tensor:
        is_dropped = (dropped > 0)[..., None, None].to(image.device, non_blocking=True)
        return torch.where(is_dropped, fill_tensor(self, "fill", self.fill, image), image)
