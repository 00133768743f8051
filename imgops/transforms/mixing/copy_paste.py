"""CopyPaste, which pastes the objects of one sample into the image of another."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import imgops
from imgops._common import check
from imgops._common.torch_private import raise_error
from imgops._operator import subclass
from imgops.transforms._core import rotated_boxes
from imgops.transforms._core.arguments import WIDEST, one_number
from imgops.transforms._core.dtypes import restore_dtype
from imgops.transforms._core.instance_masks import (
    around,
    around_along,
    boxes_like,
    corners_of,
    cut_to_masks,
    is_object,
)
from imgops.transforms._core.parameters import IS_APPLIED, Params
from imgops.transforms._core.sampling import ParameterSampler
from imgops.transforms.functional import _dispatch, _geometry
from imgops.transforms.mixing.mosaic import (
    BOXES,
    MASKS,
    POINTS,
    Sample,
    _Join,
    join_values,
)

__all__ = ["CopyPaste"]


class CopyPaste(_Join):
    """Paste objects of one sample into the image of another, along their instance masks.

    Use :class:`Mosaic` to join whole images.

    Parameters
    ----------
    amount : float
        The probability that an object is pasted, in [0, 1].
    feather : float
        The standard deviation in pixels of a Gaussian that softens the edges; 0 keeps them sharp.

    Notes
    -----
    The transform is called with two samples of the same structure, each with an image, ``BoundingBoxes`` and
    a ``Mask`` with one mask for each box. It returns the first sample with objects of the second: the boxes,
    the masks, and every other tensor or array with a row for each box (labels) are those of both samples. The
    second image is resized to the size of the first, together with its keypoints and masks. Pixels behind the
    new objects are removed from the instance masks of the first sample. Its boxes become the smallest boxes
    around the remaining pixels; a box with an angle becomes the smallest box of the same angle. Masks of
    other kinds (such as class masks) take the values of the second sample's mask there. Objects that are
    hidden or were not pasted (all objects of the second sample if the transform is not applied) have an empty
    box, (0, 0, 0, 0), so that :class:`SanitizeBoundingBoxes` drops them with their labels and masks.
    Reference: :func:`imgops.paste` with a mask, as in the simple copy-paste of Ghiasi et al. The gradient
    flows to both images. For graphs see :class:`Mosaic`.
    """

    _random_parameters = (IS_APPLIED,)

    def __init__(
        self,
        amount: float = 0.5,
        feather: float = 0.0,
        p: float = 0.5,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        arguments = {"amount": one_number(self, "amount", amount, 0.0, 1.0)}
        arguments["feather"] = one_number(self, "feather", feather, 0.0, WIDEST // 8)
        super().__init__(p, False, generator, **arguments)

    def _join(self, samples: list[Sample], sampler: ParameterSampler) -> list[Any]:
        first, second = samples
        places = _instance_masks(first), _instance_masks(second)
        params = self._sample_params([first.flat[first.image]], sampler)
        height, width = first.pixels.shape[-2:]
        size = height, width
        left = ~self._choose_objects(second, params, sampler)[:, None, None]
        over = _zero_where(left, _resize_labels(subclass.plain(second.flat[places[1]]), size))
        hidden = is_object(over).any(0, keepdim=True)
        before = subclass.plain(first.flat[places[0]])
        under = _zero_where(hidden, before)
        out = []
        for at, value in enumerate(first.flat):
            if at == first.image:
                other = second.pixels
                if tuple(other.shape[-2:]) != size:
                    other = _geometry.resize_to(other, size, "bilinear", True)
                shown = hidden
                if self.feather:
                    side = int(8 * self.feather + 1) | 1
                    shown = imgops.gaussian_blur(hidden.to(torch.float32), side, self.feather).clamp(0, 1)
                image = imgops.paste(first.pixels, other, (0, 0), shown)
                out.append(_dispatch.wrap_like(image, value))
            elif at == places[0]:
                out.append(_dispatch.wrap_like(torch.cat([under, over]), value))
            elif isinstance(value, BOXES):
                is_cut = (is_object(under) != is_object(before)).flatten(1).any(-1)
                both = _boxes_of(value, second.flat[at], is_object(under), is_object(over), is_cut, size)
                out.append(boxes_like(both, value, size))
            elif isinstance(value, MASKS):
                out.append(
                    _dispatch.wrap_like(self._mask_of(at, first, second, hidden[0], left, size), value)
                )
            elif first.is_per_box(at) and second.is_per_box(at):
                out.append(join_values("CopyPaste", [value, _on_size(second.flat[at], size)]))
            else:
                out.append(value)
        return out

    def _choose_objects(self, source: Sample, params: Params | None, sampler: ParameterSampler) -> Tensor:
        """Sample the objects to paste into the other image, as a boolean tensor."""
        boxes: Any = source.boxes
        count, device = boxes.shape[0], boxes.device
        if params is not None and params.noise:
            noise = params.noise.pop(0)
        elif sampler.replays is not None:
            return torch.zeros(count, dtype=torch.bool, device=device)
        else:  # draw numbers even if nothing is pasted, because a graph cannot know that
            noise = sampler.noise(self, torch.empty(count, 1, 1, device="cpu", dtype=torch.float32))
        if params is None:
            return torch.zeros(count, dtype=torch.bool, device=device)
        if sampler.record is not None:
            sampler.record[sampler.path].noise.append(noise)
        is_taken = 0.5 * (1 + torch.erf(noise.flatten() / 2**0.5)) < self.amount
        return (is_taken if params.is_one_draw else is_taken & (params.numbers[0] > 0)).to(device)

    def _mask_of(
        self, at: int, first: Sample, second: Sample, hidden: Tensor, left: Tensor, size: tuple[int, int]
    ) -> Tensor:
        """Join instance masks, or paste the pixels of the objects into any other mask."""
        mine = subclass.plain(first.flat[at])
        other = _resize_labels(subclass.plain(second.flat[at]), size)
        if first.is_per_box(at) and second.is_per_box(at):
            return torch.cat([_zero_where(hidden, mine), _zero_where(left, other)])
        if mine.shape[:-2] != other.shape[:-2]:
            must = "CopyPaste: masks that are not of instances must have as many planes in both samples"
            raise_error(
                ValueError,
                f"{must}, got {check.written(mine.shape[:-2])} and {check.written(other.shape[:-2])}",
            )
        return torch.where(hidden, other.to(mine.dtype), mine)


def _zero_where(flags: Tensor, mask: Tensor) -> Tensor:
    return torch.where(flags, mask.new_zeros(()), mask)  # masked_fill does not support uint16


def _resize_labels(mask: Tensor, size: tuple[int, int]) -> Tensor:
    planes = mask.unsqueeze(0) if mask.ndim == 2 else mask
    out = _geometry.resize_labels_to(planes, size)
    return out.squeeze(0) if mask.ndim == 2 else out


def _on_size(value: Any, size: tuple[int, int]) -> Any:
    """Return a value with a row for each box; scale keypoints like the resized image."""
    if not isinstance(value, POINTS):
        return value
    plain = subclass.plain(value)
    return restore_dtype(_scale(plain, value.canvas_size, size), plain)


def _scale(points: Tensor, before: tuple[int, int], size: tuple[int, int]) -> Tensor:
    """Scale points ``(..., 2)`` of a canvas like the resized image."""
    factors = [new / old for new, old in zip(reversed(size), reversed(before), strict=True)]
    return torch.stack([points[..., i] * factors[i] for i in (0, 1)], -1)


def _boxes_of(
    value: Any, other: Any, under: Tensor, over: Tensor, is_cut: Tensor, size: tuple[int, int]
) -> Tensor:
    """Return the corners of both samples' boxes: cut boxes shrink, those of the second sample are tight."""
    boxes = corners_of(subclass.plain(value), value.format)
    left = cut_to_masks(boxes, under, is_cut)
    if boxes.ndim == 2:
        return torch.cat([left, around(over).to(boxes.dtype)])
    others = _scale(corners_of(subclass.plain(other), other.format), other.canvas_size, size)
    return torch.cat([left, around_along(over, rotated_boxes.axes(others))])


def _instance_masks(sample: Sample) -> int:
    for at, value in enumerate(sample.flat):
        if isinstance(value, MASKS) and sample.is_per_box(at):
            return at
    must = "CopyPaste: samples must have BoundingBoxes and a Mask (n, H, W) with one mask for each"
    return raise_error(ValueError, f"{must}, got {[type(x).__name__ for x in sample.flat]}")
