"""MixUp and CutMix, which mix the images of a batch with their labels or semantic masks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import PIL.Image
import torch
from torch import Tensor
from torch.compiler import is_compiling
from torchvision import tv_tensors
from torchvision.transforms import v2

import imgops
from imgops._common import check
from imgops._common.torch_private import raise_error, raise_in_graph, tree_flatten, tree_unflatten
from imgops._operator import subclass
from imgops.transforms._core import projections, torchvision_private
from imgops.transforms._core.base import OperatorTransform, RandomTransform
from imgops.transforms._core.inputs import batch_of
from imgops.transforms._core.parameters import Numbers, Parameter, as_integers
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms.functional import _dispatch

__all__ = ["CutMix", "MixUp"]


class _Mix(RandomTransform):
    """The base class of MixUp and CutMix, which sample once per batch or, with ``per_sample``, per image."""

    _goes_back = False
    _config = ("alpha",)
    #: Whether samples are joined, so that outputs depend on several samples and labels change their form.
    _joins_samples = True
    _kind_of_map = projections.OTHER

    def forward(self, *inputs: Any) -> Any:
        whole = inputs if len(inputs) > 1 else inputs[0]
        flat, structure = tree_flatten(whole)
        projections.require(self, flat, self._kind_of_map)
        if any(isinstance(x, tv_tensors.Mask) for x in flat):
            return tree_unflatten(self._with_masks(whole, flat), structure)
        return super(OperatorTransform, self).forward(*inputs)  # type: ignore[misc]

    def _with_masks(self, whole: Any, flat: list[Any]) -> list[Any]:
        """Mix flat inputs with masks, which torchvision's ``forward`` refuses; there may be no labels."""
        name = type(self).__name__
        others = (PIL.Image.Image, tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)
        needs = torchvision_private.needs_transform(self, flat)
        images = [x for x, n in zip(flat, needs, strict=True) if n and _dispatch.is_image(x)]
        if not images or any(isinstance(x, others) for x in flat):
            must = f"{name}: inputs must be images, masks and labels, without PIL images, boxes and keypoints"
            raise_error(ValueError, f"{must}, got {', '.join(type(x).__name__ for x in flat)}")
        labels = _labels_with_masks(self, whole)
        if labels is not None:
            self._check_labels(labels)
        first = subclass.plain(images[0])
        params = {
            "labels": labels,
            "batch_size": first.shape[0] if labels is None else labels.shape[0],
            "size": first.shape[-2:],
            # With labels, the number of classes is theirs.
            "classes": self.num_classes if labels is None else None,  # type: ignore[attr-defined]
            **self.make_params(images),
        }
        return [
            self.transform(x, params) if n or (x is labels and x is not None) else x
            for x, n in zip(flat, needs, strict=True)
        ]

    def _check_labels(self, labels: Any) -> None:
        must = f"{type(self).__name__}: labels must be indices (N,) with num_classes, or (N, num_classes)"
        classes = self.num_classes  # type: ignore[attr-defined]
        if not isinstance(labels, Tensor):
            raise_error(ValueError, f"{must}, got {type(labels).__name__}")
        is_right = labels.ndim == 1 and classes is not None
        if labels.ndim == 2:
            is_right = classes is None or not check.violates(labels.shape[1] == classes)
        if not is_right:
            got = f"shape {check.written(labels.shape)} with num_classes={classes}"
            raise_error(ValueError, f"{must}, got {got}")

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
            label = inpt
            if label.ndim == 1:
                label = self._shares(label, self.num_classes)  # type: ignore[attr-defined]
            return self._mix_shares(label, params[self._random_parameters[-1].name])
        if isinstance(inpt, tv_tensors.Mask):
            masks = subclass.plain(inpt)
            self._check_masks(masks, params)
            return _dispatch.wrap_like(self._mix_masks(masks, params), inpt)
        if not _dispatch.is_image(inpt):
            return inpt
        images, batch = subclass.plain(inpt), params["batch_size"]
        ndim = 5 if isinstance(inpt, tv_tensors.Video) else 4
        if images.ndim != ndim or check.violates(images.shape[0] == batch):
            must = f"{type(self).__name__}: images must be {check.number(batch)} with {ndim} dimensions"
            raise_in_graph(ValueError, f"{must}, got shape {check.written(images.shape)}")
            torchvision_private.check_batch(self, inpt, batch)  # raises torchvision's error
        return _dispatch.wrap_like(self._mix_images(images, params), inpt)

    def _mix_images(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        raise NotImplementedError

    def _mix_shares(self, shares: Tensor, weight: Any) -> Tensor:
        """Mix shares of classes, ``(N, K)`` or ``(N, K, H, W)``, by torchvision's arithmetic."""
        if not shares.dtype.is_floating_point:
            shares = shares.float()
        if isinstance(weight, Tensor):
            weight = weight.to(shares.device, shares.dtype)
            weight = weight.reshape(*weight.shape, *(1,) * (shares.ndim - 1))
        return shares.roll(1, 0) * (1.0 - weight) + shares * weight

    # -- masks ---------------------------------------------------------------------------------------

    def _mix_masks(self, masks: Tensor, params: dict[str, Any]) -> Tensor:
        raise NotImplementedError

    def _check_masks(self, masks: Tensor, params: dict[str, Any]) -> None:
        """Raise if masks are not as many and as large as the images, or of other classes."""
        (height, width), classes = params["size"], params["classes"]
        is_right = masks.ndim in (3, 4) and not check.violates(
            masks.shape[0] == params["batch_size"], masks.shape[-2] == height, masks.shape[-1] == width
        )
        if is_right and masks.ndim == 4 and classes is not None:
            is_right = not check.violates(masks.shape[1] == classes)
        if not is_right:
            kinds = f"indices (N, H, W) or shares of {'K' if classes is None else classes} classes"
            sizes = check.written((params["batch_size"], height, width))
            must = f"{type(self).__name__}: masks must be {kinds} (N, K, H, W) with (N, H, W) = {sizes}"
            raise_error(ValueError, f"{must}, got shape {check.written(masks.shape)}")

    def _mask_shares(self, masks: Tensor, classes: int) -> Tensor:
        """Return masks of indices as shares ``(N, K, H, W)``; indices of no class have no share."""
        if masks.dtype.is_floating_point or masks.dtype.is_complex:
            must = f"{type(self).__name__}: masks (N, H, W) must be indices of classes, in integers"
            raise_error(TypeError, f"{must}, got {masks.dtype}")
        each = torch.arange(classes, device=masks.device, dtype=torch.int64)[:, None, None]
        return (masks.long().unsqueeze(1) == each).float()


def _labels_with_masks(transform: Any, inputs: Any) -> Any:
    """Return the labels in inputs with masks; None if there are none, which torchvision's default refuses."""
    if torchvision_private.finds_labels_by_default(transform):
        second = inputs[1] if isinstance(inputs, (tuple, list)) and len(inputs) > 1 else inputs
        has_key = isinstance(second, Mapping) and any("label" in str(key).lower() for key in second)
        if not has_key and not isinstance(second, Tensor):
            return None
        if isinstance(second, tv_tensors.TVTensor):
            return None
    labels = torchvision_private.labels_of(transform, inputs)
    return None if isinstance(labels, tv_tensors.Mask) else labels


class MixUp(_Mix, v2.MixUp):
    """Blend each image of a batch and its label with the previous one, as torchvision's MixUp does.

    The transform also works on uint8, and blends whole images; :class:`CutMix` pastes a box of one image into
    another. Semantic masks are blended, too.

    Parameters
    ----------
    alpha : float
        The parameter of the Beta distribution of the weights, above 0; 1 is the uniform distribution.
    num_classes : int, optional
        The number of classes, for labels that are indices, or for masks of indices if there are no labels.
        Soft labels and soft masks, with one weight for each class, do not need it.
    labels_getter : callable or "default"
        How to find the labels in the inputs: a function that returns them, or "default", which takes the
        second of two inputs, or the tensor under a key like "labels". Inputs with masks may have no labels.

    Notes
    -----
    Masks are semantic: ``tv_tensors.Mask`` of shares ``(N, K, H, W)``, which are blended like labels, or of
    indices ``(N, H, W)`` in integers, which become such shares, float32, and need ``num_classes``. An index
    of no class, such as 255 for pixels that a loss ignores, has a share of 0 of each class, with which
    ``torch.nn.functional.cross_entropy`` has no loss. Boxes and keypoints raise.
    """

    _random_parameters = (Parameter("lam", neutral=1.0),)

    def _mix_images(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        weight = params["lam"]
        if isinstance(weight, Tensor) and weight.ndim:
            weight = weight.reshape(-1, *(1,) * (images.ndim - 4))
        return imgops.blend(images.roll(1, 0), images, weight)

    def _mix_masks(self, masks: Tensor, params: dict[str, Any]) -> Tensor:
        if masks.ndim == 3:
            if params["classes"] is None:
                must = "MixUp: masks must be shares (N, K, H, W), or indices (N, H, W) with num_classes and"
                raise_error(ValueError, f"{must} without labels, got shape {check.written(masks.shape)}")
            masks = self._mask_shares(masks, params["classes"])
        return self._mix_shares(masks, params["lam"])


class CutMix(_Mix, v2.CutMix):
    """Paste a box of the previous image into each image of a batch, as torchvision's CutMix does.

    Labels are mixed in proportion. Each pixel comes from one image; :class:`MixUp` blends whole images.
    Semantic masks follow.

    Parameters
    ----------
    alpha : float
        The parameter of the Beta distribution of the weights, above 0; 1 is the uniform distribution.
    num_classes : int, optional
        The number of classes, for labels that are indices, or for masks of indices if there are no labels.
        Soft labels and soft masks, with one weight for each class, do not need it.
    labels_getter : callable or "default"
        How to find the labels in the inputs: a function that returns them, or "default", which takes the
        second of two inputs, or the tensor under a key like "labels". Inputs with masks may have no labels.

    Notes
    -----
    Masks are semantic: ``tv_tensors.Mask`` of indices ``(N, H, W)`` or of shares ``(N, K, H, W)``, into which
    the same box is pasted. They keep their form and their dtype; with ``num_classes`` and without labels,
    indices become shares, as those of :class:`MixUp` do, so that
    ``RandomChoice([MixUp(num_classes=K), CutMix(num_classes=K)])`` gives one kind of masks. Boxes and
    keypoints raise.
    """

    _random_parameters = (Parameter("box", 4), Parameter("lam_adjusted", neutral=1.0))

    def _mix_images(self, images: Tensor, params: dict[str, Any]) -> Tensor:
        box = torch.as_tensor(as_integers(params["box"]), dtype=torch.int64, device="cpu")
        if box.ndim > 1:
            box = box.reshape(-1, *(1,) * (images.ndim - 4), 4)
        return imgops.erase(images, box, images.roll(1, 0))

    def _mix_masks(self, masks: Tensor, params: dict[str, Any]) -> Tensor:
        if masks.ndim == 4:
            return self._mix_images(masks, params)
        if params["classes"] is not None:
            return self._mix_images(self._mask_shares(masks, params["classes"]), params)
        return self._mix_images(masks.unsqueeze(1), params).squeeze(1)
