"""MixUp and CutMix, which mix the images and labels of a batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torchvision.transforms import v2

import imgops
from imgops._common import check
from imgops._common.torch_private import raise_error
from imgops._operator import subclass
from imgops.transforms._core import torchvision_private
from imgops.transforms._core.base import OperatorTransform, RandomTransform
from imgops.transforms._core.inputs import batch_of
from imgops.transforms._core.parameters import Numbers, Parameter, as_integers
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms.functional import _dispatch

__all__ = ["CutMix", "MixUp"]


class _Mix(RandomTransform):
    """The base class of MixUp and CutMix, which sample once per batch or, with ``per_sample``, per image."""

    _config = ("alpha",)
    #: Whether samples are joined, so that outputs depend on several samples and labels change their form.
    _joins_samples = True

    def forward(self, *inputs: Any) -> Any:
        return super(OperatorTransform, self).forward(*inputs)  # type: ignore[misc]

    _own_sampler: ParameterSampler | None = None

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        if is_compiling():  # a compiler cannot construct the object below
            self._own_sampler = sampler
            out = self.forward(*inputs)
            self._own_sampler = None
            return out
        again = object.__new__(type(self))
        again.__dict__ = {**self.__dict__, "_own_sampler": sampler}
        return type(self).forward(again, *inputs)

    def _record(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> None:
        self._run(inputs, sampler)

    def _plan(self, shape: Any, program: Any) -> None:
        return None

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Sample torchvision's parameters, as tensors in a graph and if each image has its own."""
        sampler = self._own_sampler or ParameterSampler()
        before = sampler.count
        if self.per_sample and before is None:
            sampler.count = batch_of(flat_inputs)
        params: Any = sampler.params(self, flat_inputs)
        sampler.count = before
        names = [parameter.name for parameter in self._random_parameters]
        return dict(zip(names, self._split(params.numbers), strict=True))

    def _draw(self, inputs: Any) -> Numbers:
        _, _, height, width = self._shape_of(inputs)
        return self._numbers_from(super(RandomTransform, self).make_params(inputs), height, width)  # type: ignore[misc]

    def _shares(self, indices: Tensor, num_classes: int) -> Tensor:
        """Return 1 for the class of each label and 0 for the others, ``(N, num_classes)``."""
        name = type(self).__name__
        if indices.dtype != torch.int64:
            must = f"{name}: labels must be int64 (N,), the indices of classes, or shares (N, num_classes)"
            raise_error(TypeError, f"{must}, got {indices.dtype} of shape {check.written(indices.shape)}")
        try:
            return torch.nn.functional.one_hot(indices, num_classes)
        except RuntimeError:
            low, high = int(indices.min()), int(indices.max())
            must = f"{name}: labels must be from 0 to {num_classes - 1}"
            raise ValueError(f"{must}, got labels from {low} to {high}") from None

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if inpt is params["labels"]:
            label, weight = inpt, params[self._random_parameters[-1].name]
            if label.ndim == 1:
                label = self._shares(label, self.num_classes)  # type: ignore[attr-defined]
            if not label.dtype.is_floating_point:
                label = label.float()
            if isinstance(weight, Tensor):
                weight = weight.to(label.device, label.dtype)[..., None]
            return label.roll(1, 0) * (1.0 - weight) + label * weight
        if not _dispatch.is_image(inpt):
            return inpt
        torchvision_private.check_batch(self, inpt, params["batch_size"])
        return _dispatch.wrap_like(self._mix_images(subclass.plain(inpt), params), inpt)

    def _mix_images(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        raise NotImplementedError


class MixUp(_Mix, v2.MixUp):
    """Blend each image of a batch and its label with the previous one, as torchvision's MixUp does.

    The transform also works on uint8, and blends whole images; :class:`CutMix` pastes a box of one image into
    another. Masks, boxes and keypoints raise.

    Parameters
    ----------
    alpha : float
        The parameter of the Beta distribution of the weights, above 0; 1 is the uniform distribution.
    num_classes : int, optional
        The number of classes, for labels that are indices; soft labels, with one weight for each class, do
        not need it.
    labels_getter : callable or "default"
        How to find the labels in the inputs: a function that returns them, or "default", which takes the
        second of two inputs, or the tensor under a key like "labels".
    """

    _random_parameters = (Parameter("lam", neutral=1.0),)

    def _mix_images(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        weight = params["lam"]
        if isinstance(weight, Tensor) and weight.ndim:
            weight = weight.reshape(-1, *(1,) * (images.ndim - 4))
        return imgops.blend(images.roll(1, 0), images, weight)


class CutMix(_Mix, v2.CutMix):
    """Paste a box of the previous image into each image of a batch, as torchvision's CutMix does.

    Labels are mixed in proportion. Each pixel comes from one image; :class:`MixUp` blends whole images.
    Masks, boxes and keypoints raise.

    Parameters
    ----------
    alpha : float
        The parameter of the Beta distribution of the weights, above 0; 1 is the uniform distribution.
    num_classes : int, optional
        The number of classes, for labels that are indices; soft labels, with one weight for each class, do
        not need it.
    labels_getter : callable or "default"
        How to find the labels in the inputs: a function that returns them, or "default", which takes the
        second of two inputs, or the tensor under a key like "labels".
    """

    _random_parameters = (Parameter("box", 4), Parameter("lam_adjusted", neutral=1.0))

    def _mix_images(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        box = torch.as_tensor(as_integers(params["box"]), dtype=torch.int64, device="cpu")
        if box.ndim > 1:
            box = box.reshape(-1, *(1,) * (images.ndim - 4), 4)
        return imgops.erase(images, box, images.roll(1, 0))
