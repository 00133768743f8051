"""Transforms that change only boxes and keypoints, and classes of annotations that torchvision lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.compiler import is_compiling
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops._common import check
from imgops._common.torch_private import raise_error, raise_in_graph, tree_flatten, tree_unflatten
from imgops._operator import subclass
from imgops.transforms._core import (
    annotation_kinds,
    instance_masks,
    left_right,
    operators,
    torchvision_private,
)
from imgops.transforms._core.base import OperatorTransform
from imgops.transforms._core.inputs import decode_all, refuse_nested, values_of
from imgops.transforms._core.probabilistic import ADDED
from imgops.transforms._core.projections import Camera as Camera
from imgops.transforms._core.projections import Disparity as Disparity
from imgops.transforms._core.projections import Flow as Flow
from imgops.transforms._core.projections import Normals as Normals
from imgops.transforms._core.signatures import is_own
from imgops.transforms.functional import _dispatch

#: The transforms: ``imgops.transforms`` has no Camera and no Flow, as torchvision's ``v2`` has no tv_tensors.
__all__ = [
    "BoxesFromMasks",
    "ClampBoundingBoxes",
    "ClampKeyPoints",
    "ConvertBoundingBoxFormat",
    "SanitizeBoundingBoxes",
    "SanitizeKeyPoints",
    "SetClampingMode",
]


class _OfAnnotations(OperatorTransform):
    """A transform of boxes or keypoints only, with torchvision's code; a graph runs it inside an operator."""

    _needs_image = False
    _config: tuple[str, ...] = ()

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        refuse_nested(self, inpt)
        if annotation_kinds.need_operator(inpt):
            return self._set_metadata(self._annotations(inpt))
        return super().transform(inpt, params)  # type: ignore[misc]

    def _set_metadata(self, out: Any) -> Any:
        return out


class ConvertBoundingBoxFormat(_OfAnnotations, v2.ConvertBoundingBoxFormat):
    """Convert bounding boxes to a format, as torchvision's ConvertBoundingBoxFormat does.

    Parameters
    ----------
    format : BoundingBoxFormat or str
        The format of the output, such as "XYXY", "XYWH" or "CXCYWH".
    """

    _config = ("format",)

    def _set_metadata(self, out: Any) -> Any:
        format = self.format
        out.format = tv_tensors.BoundingBoxFormat[format.upper()] if isinstance(format, str) else format
        return out


class ClampBoundingBoxes(_OfAnnotations, v2.ClampBoundingBoxes):
    """Clamp bounding boxes to their canvas, as torchvision's ClampBoundingBoxes does.

    Use :class:`SanitizeBoundingBoxes` to drop boxes instead.

    Parameters
    ----------
    clamping_mode : {"auto", "soft", "hard"} or None
        How boxes are clamped: "hard" keeps them inside, "soft" leaves larger parts of rotated boxes outside,
        None does not clamp. "auto" uses the mode of the boxes.
    """

    _config = ("clamping_mode",) if hasattr(v2, "SetClampingMode") else ()


class ClampKeyPoints(_OfAnnotations, v2.ClampKeyPoints):
    """Clamp keypoints to their canvas, as torchvision's ClampKeyPoints does.

    With ``visible_getter`` the flags of keypoints outside of their canvas become 0, as COCO marks keypoints
    that are not labeled: these are the points that :class:`SanitizeKeyPoints` would drop. A crop or a warp
    moves such points, but does not change their flags. (A distortion itself moves points that leave the image
    to its border, where they count as inside.)

    Parameters
    ----------
    visible_getter : callable, "default" or None
        The function that finds the flags, one tensor ``(..., K)`` or ``(..., K, 1)`` for each ``KeyPoints``
        ``(..., K, 2)``, in their order. "default" takes the tensors under keys like "visible" of all dicts;
        with None, the default, no flag changes.
    """

    _added_arguments = ("visible_getter",)

    def __init__(self, *, visible_getter: Any = None) -> None:
        super().__init__()
        self._find_flags = left_right.getter_of(self, "visible_getter", visible_getter)
        self._clears_flags = visible_getter is not None
        if is_own(type(self), "transform"):
            self._describe()

    def forward(self, *inputs: Any) -> Any:
        out = super().forward(*inputs)
        if not self._clears_flags:
            return out
        whole = inputs if len(inputs) > 1 else inputs[0]
        before, structure = tree_flatten(whole)
        flat, _ = tree_flatten(out)
        for places, points in self._flags_and_points(whole, before):
            plain = subclass.plain(points)
            is_inside = torchvision_private.valid_keypoints(plain.reshape(-1, 2), points.canvas_size)
            for at in places:
                flags = subclass.plain(before[at])
                wide = flags.long() if flags.dtype in left_right.UNSIGNED else flags
                kept = torch.where(is_inside.reshape(flags.shape).to(flags.device), wide, 0).to(flags.dtype)
                flat[at] = _dispatch.wrap_like(kept, before[at])
        return tree_unflatten(flat, structure)

    def _flags_and_points(self, whole: Any, flat: list[Any]) -> list[tuple[list[int], Any]]:
        """Return where flags are among flat inputs, each with its keypoints."""
        points = [x for x in flat if isinstance(x, tv_tensors.KeyPoints)]
        places = left_right.places_of(self, "visible", self._find_flags, left_right.FLAGS, whole, flat)
        pairs = []
        for i, at in enumerate(places):
            flags = subclass.plain(flat[at[0]])
            given = points[i : i + 1] if len(points) == len(places) else points
            pairs.append((at, next((x for x in given if _are_flags(flags, subclass.plain(x))), None)))
        if points and not (pairs and all(x is not None for _, x in pairs)):
            shapes = [tuple(subclass.plain(x).shape[:-1]) for x in points]
            left_right.refuse_flags(self, shapes, [tuple(flat[at[0]].shape) for at in places])
        return pairs if points else []


def _are_flags(flags: Tensor, points: Tensor) -> bool:
    """Return whether flags ``(..., K)`` or ``(..., K, 1)`` have the shape of keypoints ``(..., K, 2)``."""
    wanted = [*points.shape[:-1], 1][: flags.ndim]
    if points.ndim - flags.ndim not in (0, 1):
        return False
    return not check.violates(*[a == b for a, b in zip(flags.shape, wanted, strict=True)])


class BoxesFromMasks(OperatorTransform, v2.Transform):
    """Replace each bounding box by the smallest box around the mask of its object.

    After a crop or a rotation, a box encloses the old box, which can be larger than the object, or can remain
    where no pixel of the object does. The inputs must have ``BoundingBoxes`` ``(n, 4)`` and a ``Mask``
    ``(n, H, W)`` with one mask for each box, whose pixels above 0 are the object; the first ``Mask`` of this
    shape counts. If there are boxes of several samples, there must be as many masks, in the same order, or
    one ``Mask`` ``(N, n, H, W)``.

    Notes
    -----
    The format and the dtype of the boxes stay. Boxes have edges, as in all transforms: the right edge is
    behind the last column, so that the box of a single pixel has an area of 1, and flips and crops of the box
    and of the mask agree. ``torchvision.ops.masks_to_boxes`` returns the last column itself: its right and
    bottom edges are smaller by 1. An object without pixels gets an empty box, (0, 0, 0, 0), which
    :class:`SanitizeBoundingBoxes` drops with its label and its mask. Crops and :class:`Mosaic` do the same
    with ``boxes_from_masks=True``. Boxes with an angle raise ``NotImplementedError``: the mask does not tell
    the angle. There is no gradient to the mask.

    Reference: the least and the greatest index of the pixels of each mask, exact.

    Examples
    --------
    >>> import torch
    >>> from torchvision import tv_tensors
    >>> from imgops import transforms as v2
    >>> masks = torch.zeros(1, 6, 8, dtype=torch.uint8)
    >>> masks[0, 2:4, 3:7] = 1
    >>> boxes = tv_tensors.BoundingBoxes([[0, 0, 8, 6]], format="XYXY", canvas_size=(6, 8))
    >>> v2.BoxesFromMasks()(boxes, tv_tensors.Mask(masks))[0].tolist()
    [[3, 2, 7, 4]]
    """

    _needs_image = False

    def forward(self, *inputs: Any) -> Any:
        inputs = decode_all(inputs)
        flat, structure = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        if not any(isinstance(x, tv_tensors.BoundingBoxes) for x in flat):
            must = "BoxesFromMasks: inputs must have bounding boxes (n, 4) and a Mask (n, H, W)"
            raise_error(ValueError, f"{must}, got no boxes")
        return tree_unflatten(instance_masks.replace_boxes(type(self).__name__, flat), structure)


ADDED["BoxesFromMasks"] = BoxesFromMasks


class SetClampingMode(
    OperatorTransform, v2.SetClampingMode if hasattr(v2, "SetClampingMode") else v2.Transform
):
    """Set the clamping mode of bounding boxes, as torchvision's SetClampingMode does.

    Parameters
    ----------
    clamping_mode : {"soft", "hard"} or None
        The mode that later transforms use to clamp the boxes: see :class:`ClampBoundingBoxes`.
    """

    _needs_image = False

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        out = _dispatch.wrap_like(subclass.plain(inpt).clone(), inpt)
        out.clamping_mode = self.clamping_mode
        return out


def _label_objects(labels: Any, inputs: Any) -> list[Any]:
    """Return labels as a list of tensors, arrays, lists and tuples, each with an entry for each box or point.

    A list or tuple is one such object, or contains several: several tensors, or other objects that are values
    in the inputs, as a getter returns them.
    """
    if labels is None:
        return []
    if not isinstance(labels, (list, tuple)) or not labels or not all(map(_has_entries, labels)):
        return [labels]
    if all(isinstance(x, Tensor) for x in labels) or not _contains(inputs, labels):
        return list(labels)
    return [labels]


def _has_entries(value: Any) -> bool:
    """Return whether a value is a sequence or has rows."""
    if isinstance(value, (Tensor, np.ndarray)):
        return value.ndim > 0
    return isinstance(value, (list, tuple))


def _contains(structure: Any, value: Any) -> bool:
    """Return whether a structure of inputs contains this object."""
    return any(x is value or _contains(x, value) for x in values_of(structure))


def _count_entries(labels: Any) -> Any:
    """Return the number of entries of labels, or None if they have none."""
    if isinstance(labels, Tensor):
        return labels.shape[0]
    return len(labels) if _has_entries(labels) and not hasattr(labels, "_fields") else None


class _Sanitize(OperatorTransform):
    """A transform that drops invalid entries; in a graph, an operator with a data-dependent output size."""

    _needs_image = False
    _of: type = Tensor
    _subject = ""

    def forward(self, *inputs: Any) -> Any:
        inputs = decode_all(inputs)
        whole = inputs if len(inputs) > 1 else inputs[0]
        labels = _label_objects(torchvision_private.labels_of(self, whole), whole)
        sequences = [x for x in labels if isinstance(x, (list, tuple))]
        flat, structure = tree_flatten(whole, sequences)
        found = [x for x in flat if isinstance(x, self._of)]
        if len(found) > 1:  # torchvision drops from all inputs the entries that are invalid in the first
            must = f"{type(self).__name__}: {self._subject} must be one tensor, those of one sample"
            raise_error(ValueError, f"{must}, got {len(found)} tensors")
        for inpt in found:
            refuse_nested(self, inpt)
        first = found[0] if found else None
        values = None if first is None else subclass.plain(first)
        if values is None or any(_count_entries(x) != values.shape[0] for x in labels):
            self._refuse(labels, values)
            return super().forward(*inputs)  # type: ignore[misc]  # torchvision raises its own error
        self._check_places(flat, [x for x in labels if not isinstance(x, Tensor)])
        places = operators.indices_of_true(self._valid(first, values))
        return tree_unflatten([self._select_valid(x, labels, places, values) for x in flat], structure)

    def _refuse(self, labels: list[Any], values: Tensor | None) -> None:
        """Raise in a graph, or for sequences, of which torchvision's error says that they must be tensors."""
        must = f"{type(self).__name__}: inputs must have {self._subject}, and as many labels"
        counts = [_count_entries(x) for x in labels]
        if values is not None and None not in counts and not all(isinstance(x, Tensor) for x in labels):
            got = ", ".join(str(check.number(n)) for n in counts)
            raise_error(ValueError, f"{must}, got {check.number(values.shape[0])} and {got} labels")
        raise_in_graph(ValueError, f"{must}, which are tensors or None")

    def _check_places(self, flat: list[Any], labels: list[Any]) -> None:
        """Raise for sequences in a graph, or if it is not known which inputs arrays and sequences are."""
        for label in labels:
            name, got = f"{type(self).__name__}: labels must be", type(label).__name__
            if not isinstance(label, np.ndarray):
                raise_in_graph(NotImplementedError, f"{name} tensors or arrays in a graph, got a {got}")
            times = sum(x is label for x in flat)
            if times != 1 and len(label):  # Python may use one object for all equal tuples
                raise_error(ValueError, f"{name} in the inputs once, got {got} that is in {times} places")

    def _valid(self, first: Any, values: Tensor) -> Tensor:
        raise NotImplementedError

    def _follows(self, inpt: Any, values: Tensor) -> bool:
        return isinstance(inpt, self._of)

    def _select_valid(self, inpt: Any, labels: list[Any], places: Tensor, values: Tensor) -> Any:
        if any(inpt is label for label in labels):
            return self._select_labels(inpt, places)
        if self._follows(inpt, values):
            return _dispatch.wrap_like(subclass.plain(inpt).index_select(0, places), inpt)
        return inpt

    def _select_labels(self, labels: Any, places: Tensor) -> Any:
        """Return the valid entries of labels in an object of their class."""
        if isinstance(labels, Tensor):
            return _dispatch.wrap_like(subclass.plain(labels)[places], labels)
        if isinstance(labels, np.ndarray):
            if is_compiling():  # in which arrays are tensors
                return torch.from_numpy(labels)[places.cpu()].numpy()
            return labels[places.cpu().numpy()]
        return type(labels)([labels[i] for i in places.tolist()])


class SanitizeBoundingBoxes(_Sanitize, v2.SanitizeBoundingBoxes):
    """Drop bounding boxes that are not valid, as torchvision's SanitizeBoundingBoxes does.

    Boxes that are too small or extend beyond their canvas are dropped, together with their labels, and with
    their masks if there is one mask for each box. In a graph the number of remaining boxes is a new dynamic
    size.

    Parameters
    ----------
    min_size : float
        The least width and height in pixels.
    min_area : float
        The least area in square pixels.
    labels_getter : callable, "default" or None
        How to find the labels in the inputs: a function that returns them or a tuple of several, or
        "default", which takes the value under a key like "labels" of a dict; with None only boxes and masks
        are dropped. Labels have an entry for each box; they are tensors, arrays or, in eager mode, lists or
        tuples.
    """

    _of = tv_tensors.BoundingBoxes
    _subject = "bounding boxes"

    def _valid(self, first: Any, values: Tensor) -> Tensor:
        how = (first.format, first.canvas_size, self.min_size, self.min_area)
        return torchvision_private.valid_boxes(values, *how)

    def _follows(self, inpt: Any, values: Tensor) -> bool:
        if isinstance(inpt, tv_tensors.Mask):  # a semantic mask is not one mask for each box
            return subclass.plain(inpt).shape[0] == values.shape[0]
        return isinstance(inpt, self._of)


class SanitizeKeyPoints(_Sanitize, v2.SanitizeKeyPoints):
    """Drop keypoints that are not valid, as torchvision's SanitizeKeyPoints does.

    Keypoints outside of their canvas are dropped, with the whole group to which they belong. In a graph the
    number of remaining keypoints is a new dynamic size.

    Parameters
    ----------
    labels_getter : callable, "default" or None
        How to find the labels in the inputs: a function that returns them or a tuple of several, or
        "default", which takes the value under a key like "labels" of a dict; with None, the default, only
        keypoints are dropped. Labels have an entry for each point or group of points; they are tensors,
        arrays or, in eager mode, lists or tuples.
    """

    _of = tv_tensors.KeyPoints
    _subject = "keypoints"

    def _valid(self, first: Any, values: Tensor) -> Tensor:
        return torchvision_private.valid_keypoints(values, first.canvas_size)
