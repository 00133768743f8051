"""Boxes and the masks of their objects: ``(n, 4)`` and ``(n, H, W)``, one mask for each box."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops._common import check
from imgops._common.torch_private import raise_error
from imgops._operator import subclass
from imgops.transforms._core import rotated_boxes
from imgops.transforms.functional import _dispatch


def corners_of(boxes: Tensor, format: Any) -> Tensor:
    """Return the upper left and the lower right corner of boxes, or all four if they have an angle."""
    if tv_tensors.is_rotated_bounding_format(format):
        return rotated_boxes.polygons_of(boxes, format)
    real = boxes if boxes.dtype.is_floating_point else boxes.to(torch.float32)
    if format is tv_tensors.BoundingBoxFormat.XYXY:
        return real
    return v2.functional.convert_bounding_box_format(real, format, tv_tensors.BoundingBoxFormat.XYXY)


def boxes_like(corners: Tensor, like: Any, canvas: tuple[int, int]) -> Any:
    """Convert corners to boxes in the format and dtype of others."""
    out = corners
    if tv_tensors.is_rotated_bounding_format(like.format):
        out = rotated_boxes.from_polygons(corners, like.format)
    elif like.format is not tv_tensors.BoundingBoxFormat.XYXY:
        how = (tv_tensors.BoundingBoxFormat.XYXY, like.format)
        out = v2.functional.convert_bounding_box_format(corners, *how)
    dtype = subclass.plain(like).dtype
    return _dispatch.wrap_like((out if dtype.is_floating_point else out.round()).to(dtype), like, canvas)


def is_object(mask: Tensor) -> Tensor:
    """Return the pixels of an object in its instance mask; PyTorch cannot compare uint16 by order."""
    return mask > 0 if mask.dtype.is_signed else mask != 0


def cut_to_masks(boxes: Tensor, masks: Tensor, is_cut: Tensor) -> Tensor:
    """Shrink the corners of cut boxes to the remaining parts of their masks ``(n, H, W)``, bool."""
    if boxes.ndim == 2:
        return torch.where(is_cut[:, None], _shrink(boxes, around(masks).to(boxes.dtype)), boxes)
    tight = around_along(masks, rotated_boxes.axes(boxes))
    return torch.where(is_cut[:, None, None], rotated_boxes.shrink(boxes, tight), boxes)


def _shrink(before: Tensor, tight: Tensor) -> Tensor:
    """Shrink boxes to the tight boxes around their masks, and never enlarge them.

    Boxes may have been wider than their masks.
    """
    low = torch.maximum(before[:, :2], tight[:, :2])
    high = torch.minimum(before[:, 2:], tight[:, 2:])
    is_seen = (tight[:, 2:] > tight[:, :2]).all(-1, keepdim=True)
    return torch.where(is_seen, torch.cat([low, high], -1), 0.0)


def around(masks: Tensor) -> Tensor:
    """Return the smallest box around each mask ``(n, H, W)``, or (0, 0, 0, 0) for an empty one."""
    edges = []
    for dim in (-2, -1):
        some = masks.any(dim).to(torch.int32)
        none = some.new_zeros((some.shape[0], 1))  # argmax takes no masks without pixels
        first = torch.cat([some, none], -1).argmax(-1)
        last = some.shape[-1] - torch.cat([some.flip(-1), none], -1).argmax(-1)
        edges.append((first, last))
    (left, right), (top, bottom) = edges
    found = torch.stack([left, top, right, bottom], -1)
    return torch.where(masks.flatten(1).any(-1, keepdim=True), found, 0)


def around_along(masks: Tensor, along: Tensor) -> Tensor:
    """Return the smallest boxes with these axes around masks ``(n, H, W)``, or zeros for an empty one."""
    height, width = masks.shape[-2:]
    some = masks.to(torch.int32)
    first, last = some.argmax(-1), width - some.flip(-1).argmax(-1)
    rows = torch.arange(height, dtype=torch.int64, device=masks.device).expand(first.shape)
    corners = [torch.stack([x, y], -1) for x in (first, last) for y in (rows, rows + 1)]
    counts = masks.any(-1).repeat(1, 4)
    return rotated_boxes.around(torch.cat(corners, 1).to(along.dtype), counts, along)


#: The greatest numbers of the dtypes that do not hold the size of every image.
_LONGEST = {dtype: torch.iinfo(dtype).max for dtype in (torch.uint8, torch.int8, torch.uint16, torch.int16)}


def tight_boxes(owner: str, masks: Tensor, like: Any) -> Any:
    """Return the smallest boxes around masks ``(n, H, W)``, in the format and dtype of other boxes."""
    if tv_tensors.is_rotated_bounding_format(like.format):
        must = f"{owner}: bounding boxes must have the format XYXY, XYWH or CXCYWH (no angle)"
        raise_error(NotImplementedError, f"{must} to be made from masks, got {like.format.value}")
    found, dtype = around(is_object(masks)), subclass.plain(like).dtype
    longest = _LONGEST.get(dtype)
    if longest is not None and check.violates(*[n <= longest for n in masks.shape[-2:]]):
        must = f"{owner}: bounding boxes must have a dtype that holds the size of their masks"
        raise_error(ValueError, f"{must}, got {dtype} and {check.written(masks.shape[-2:])}")
    if dtype.is_floating_point:  # integers stay integers, whose centers torchvision rounds down
        found = found.to(torch.promote_types(dtype, torch.float32))
    if like.format is not tv_tensors.BoundingBoxFormat.XYXY:
        how = (tv_tensors.BoundingBoxFormat.XYXY, like.format)
        found = v2.functional.convert_bounding_box_format(found, *how)
    return _dispatch.wrap_like(found.to(dtype), like)


def masks_by_boxes(owner: str, flat: list[Any]) -> list[tuple[int, Tensor]]:
    """Return where boxes are among flat inputs, each with its masks ``(n, H, W)``.

    The boxes of a single sample have the first masks that are as many as they are. Those of several samples
    have the masks of the same rank, or one part each of masks ``(N, n, H, W)``.
    """
    places = [i for i, x in enumerate(flat) if isinstance(x, tv_tensors.BoundingBoxes)]
    if not places:
        return []
    masks: list[Tensor] = []
    for x in flat:
        if isinstance(x, tv_tensors.Mask):
            plain = subclass.plain(x)
            masks += list(plain.unbind()) if plain.ndim == 4 else [plain] if plain.ndim == 3 else []
    must = f"{owner}: bounding boxes must be (n, 4), with a Mask (n, H, W) of their canvas"
    if any(flat[i].is_nested or subclass.plain(flat[i]).ndim != 2 for i in places):
        raise_error(ValueError, f"{must}, got boxes that are nested or of another shape")
    boxes = [subclass.plain(flat[i]) for i in places]
    if any(m.dtype.is_complex for m in masks):
        raise_error(TypeError, f"{owner}: masks must have real numbers, got complex ones")
    if len(boxes) == 1:
        masks = [m for m in masks if not check.violates(m.shape[0] == boxes[0].shape[0])][:1]
    if len(boxes) != len(masks):
        got = ", ".join(
            check.written(subclass.plain(x).shape) for x in flat if isinstance(x, tv_tensors.Mask)
        )
        counts = ", ".join(str(check.number(b.shape[0])) for b in boxes)
        raise_error(ValueError, f"{must}, got [{counts}] boxes, and masks of shape [{got}]")
    for place, values, mask in zip(places, boxes, masks, strict=True):
        canvas = flat[place].canvas_size
        height, width = mask.shape[-2:]
        if check.violates(mask.shape[0] == values.shape[0], height == canvas[0], width == canvas[1]):
            got = f"{check.number(values.shape[0])} boxes of the canvas {check.written(canvas)}"
            raise_error(ValueError, f"{must}, got {got} and a Mask of shape {check.written(mask.shape)}")
    return list(zip(places, masks, strict=True))


def replace_boxes(owner: str, flat: list[Any]) -> list[Any]:
    """Return flat inputs whose boxes are the smallest boxes around their masks."""
    out = list(flat)
    for place, masks in masks_by_boxes(owner, flat):
        out[place] = tight_boxes(owner, masks, flat[place])
    return out
