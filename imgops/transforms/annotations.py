"""Transforms that change only boxes and keypoints."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops._common.torch_private import raise_error, raise_in_graph, tree_flatten, tree_unflatten
from imgops._operator import subclass
from imgops.transforms._core import annotation_kinds, operators, torchvision_private
from imgops.transforms._core.base import OperatorTransform
from imgops.transforms._core.inputs import decode_all, refuse_nested
from imgops.transforms.functional import _dispatch

__all__ = [
    "ClampBoundingBoxes",
    "ClampKeyPoints",
    "ConvertBoundingBoxFormat",
    "SanitizeBoundingBoxes",
    "SanitizeKeyPoints",
    "SetClampingMode",
]


class _OfAnnotations(OperatorTransform):
    """A transform of boxes or keypoints only, with torchvision's code; a graph runs it inside an operator."""

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
    """Clamp keypoints to their canvas, as torchvision's ClampKeyPoints does."""


class SetClampingMode(
    OperatorTransform, v2.SetClampingMode if hasattr(v2, "SetClampingMode") else v2.Transform
):
    """Set the clamping mode of bounding boxes, as torchvision's SetClampingMode does.

    Parameters
    ----------
    clamping_mode : {"soft", "hard"} or None
        The mode that later transforms use to clamp the boxes: see :class:`ClampBoundingBoxes`.
    """

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        out = _dispatch.wrap_like(subclass.plain(inpt).clone(), inpt)
        out.clamping_mode = self.clamping_mode
        return out


def _fit(labels: Any, count: int) -> bool:
    """Return whether labels are None, or tensors with ``count`` entries each."""
    if not isinstance(labels, (tuple, list)):
        return labels is None
    return all(isinstance(label, Tensor) and label.shape[0] == count for label in labels)


class _Sanitize(OperatorTransform):
    """A transform that drops invalid entries; in a graph, an operator with a data-dependent output size."""

    _of: type = Tensor
    _subject = ""

    def forward(self, *inputs: Any) -> Any:
        inputs = decode_all(inputs)
        whole = inputs if len(inputs) > 1 else inputs[0]
        labels = torchvision_private.labels_of(self, whole)
        if isinstance(labels, Tensor):
            labels = (labels,)
        flat, structure = tree_flatten(whole)
        found = [x for x in flat if isinstance(x, self._of)]
        if len(found) > 1:  # torchvision drops from all inputs the entries that are invalid in the first
            must = f"{type(self).__name__}: {self._subject} must be one tensor, those of one sample"
            raise_error(ValueError, f"{must}, got {len(found)} tensors")
        for inpt in found:
            refuse_nested(self, inpt)
        first = found[0] if found else None
        values = None if first is None else subclass.plain(first)
        if values is None or not _fit(labels, values.shape[0]):
            must = f"inputs must have {self._subject}, and as many labels, which are tensors or None"
            raise_in_graph(ValueError, f"{type(self).__name__}: {must}")
            return super().forward(*inputs)  # type: ignore[misc]  # torchvision raises its own error
        places = operators.indices_of_true(self._valid(first, values))
        return tree_unflatten([self._select_valid(x, labels or (), places, values) for x in flat], structure)

    def _valid(self, first: Any, values: Tensor) -> Tensor:
        raise NotImplementedError

    def _follows(self, inpt: Any, values: Tensor) -> bool:
        return isinstance(inpt, self._of)

    def _select_valid(self, inpt: Any, labels: Any, places: Tensor, values: Tensor) -> Any:
        if any(inpt is label for label in labels):
            return _dispatch.wrap_like(subclass.plain(inpt)[places], inpt)
        if self._follows(inpt, values):
            return _dispatch.wrap_like(subclass.plain(inpt).index_select(0, places), inpt)
        return inpt


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
        How to find the labels in the inputs: a function that returns them, or "default", which takes the
        tensor under a key like "labels" of a dict; with None only boxes and masks are dropped.
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
        How to find the labels in the inputs: a function that returns them, or "default", which takes the
        tensor under a key like "labels" of a dict; with None, the default, only keypoints are dropped.
    """

    _of = tv_tensors.KeyPoints
    _subject = "keypoints"

    def _valid(self, first: Any, values: Tensor) -> Tensor:
        return torchvision_private.valid_keypoints(values, first.canvas_size)
