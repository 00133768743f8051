"""The steps that drop boxes and keypoints where albumentations drops them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops._common.torch_private import tree_flatten, tree_unflatten
from imgops._operator import subclass
from imgops.integrations.albumentations.rules import OUTSIDE
from imgops.transforms._core import annotation_kinds, operators
from imgops.transforms._core.base import OperatorTransform, RandomTransform
from imgops.transforms._core.parameters import Shape
from imgops.transforms._core.probabilistic import _with_corners
from imgops.transforms._core.sampling import ParameterSampler, SamplingProgram
from imgops.transforms.functional import _dispatch

_TINY = 1e-7

#: The names under which a call by keywords hides the rows that boxes and keypoints come from.
ROWS = {"bboxes": "rows of bboxes", "keypoints": "rows of keypoints"}


class _Filter(RandomTransform, v2.Transform):
    """A step that marks the boxes and keypoints that a pipeline drops.

    The number of boxes and keypoints stays the same, as batches and graphs need. A marked box is empty, a
    marked keypoint lies far outside, and no later transform changes that; :class:`_Removal` removes them at
    the end. Boxes are clipped to the image.
    """

    _moves = True

    def __init__(
        self,
        area: float = 0.0,
        visibility: float = 0.0,
        width: float = 0.0,
        height: float = 0.0,
        ratio: float | None = None,
        boxes: bool = True,
        points: bool = False,
    ) -> None:
        v2.Transform.__init__(self)
        self.area, self.visibility, self.width, self.height = area, visibility, width, height
        self.ratio, self.boxes, self.points = ratio, boxes, points
        self._config = ("area", "visibility", "width", "height", "ratio", "boxes", "points")
        self._start(False, None)

    def _plan(self, shape: Shape, program: SamplingProgram) -> Shape | None:
        return self._out_shape(shape)

    def _run(self, inputs: tuple[Any, ...], sampler: ParameterSampler) -> Any:
        """Mark boxes and keypoints without sampling; after a skipped step there is nothing to mark."""
        flat, structure = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        return tree_unflatten([self.transform(x, {}) for x in flat], structure)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if isinstance(inpt, tv_tensors.BoundingBoxes) and self.boxes:
            in_operator = annotation_kinds.need_operator(inpt)
            out = self._annotations(inpt) if in_operator else self._by_torchvision(inpt, params)
            out.clamping_mode = None  # the visible share of a box is found before it is clipped
            return out
        if isinstance(inpt, tv_tensors.KeyPoints) and self.points:
            plain = subclass.plain(inpt)
            is_inside = _inside(plain, inpt.canvas_size)[..., None]
            return _dispatch.wrap_like(torch.where(is_inside, plain, OUTSIDE).to(plain.dtype), inpt)
        return inpt

    def _by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        return _with_corners("from_albumentations", inpt, lambda b: self._visible(b, inpt.canvas_size))

    def _visible(self, boxes: Tensor, canvas: tuple[int, int]) -> Tensor:
        """Return the visible parts of boxes ``(n, 4)``; those that are dropped become 0."""
        limit = torch.tensor([canvas[1], canvas[0]] * 2, dtype=boxes.dtype, device="cpu")
        clipped = torch.minimum(boxes.clamp(min=0), limit)
        wide, high = (clipped[:, 2:] - clipped[:, :2]).unbind(-1)
        whole = (boxes[:, 2:] - boxes[:, :2]).prod(-1)
        is_visible = (whole >= _TINY) & (wide * high >= max(self.area - _TINY, _TINY))
        is_visible &= wide * high / (whole + _TINY) >= self.visibility
        is_visible &= (wide >= self.width - _TINY) & (high >= self.height - _TINY)
        if self.ratio is not None:
            is_visible &= torch.maximum(wide / (high + _TINY), high / (wide + _TINY)) <= self.ratio
        return torch.where(is_visible[:, None], clipped, 0.0)


def _inside(points: Tensor, canvas: tuple[int, int]) -> Tensor:
    x, y = points.unbind(-1)
    return (x >= 0) & (x < canvas[1]) & (y >= 0) & (y < canvas[0])


class _Removal(OperatorTransform, v2.Transform):
    """A step that removes the boxes and keypoints that a :class:`_Filter` marked, with their labels."""

    def __init__(self, boxes: Sequence[str] | None, points: Sequence[str] | None) -> None:
        v2.Transform.__init__(self)
        #: The names of the label fields of boxes and of keypoints; None if nothing is removed.
        self.boxes, self.points = boxes, points

    def _plan(self, shape: Any, program: Any) -> None:
        return None

    def forward(self, *inputs: Any) -> Any:
        out = inputs if len(inputs) > 1 else inputs[0]
        for kind, name, fields in (
            (tv_tensors.BoundingBoxes, "bboxes", self.boxes),
            (tv_tensors.KeyPoints, "keypoints", self.points),
        ):
            if fields is not None:
                hidden = [ROWS[name]] if isinstance(out, dict) and ROWS[name] in out else []
                out = self._without(out, kind, [*fields, *hidden])
        return out

    def _without(self, inputs: Any, kind: type, fields: Sequence[str]) -> Any:
        flat, structure = tree_flatten(inputs)
        places = [operators.indices_of_true(self._valid(x)) for x in flat if isinstance(x, kind)]
        if not places:
            return inputs
        missing = [n for n in fields if not isinstance(inputs, dict) or n not in inputs]
        if missing:
            got = (
                f"a dict of {', '.join(map(str, inputs))}"
                if isinstance(inputs, dict)
                else type(inputs).__name__
            )
            must = f"inputs must be a dict with the label fields {', '.join(fields)}"
            raise ValueError(f"from_albumentations: {must}, got {got}")
        following = iter(places)
        valid = [_select_valid(x, next(following)) if isinstance(x, kind) else x for x in flat]
        out = tree_unflatten(valid, structure)
        counts = [subclass.plain(x).shape[0] for x in flat if isinstance(x, kind)]
        for name in fields:
            several = len(places) > 1  # a batch has a list of boxes and a list of labels
            labels = inputs[name] if several else [inputs[name]]
            if len(labels) != len(places):
                must = f"{name} must be a list of labels for each of {len(places)} samples"
                raise ValueError(f"from_albumentations: {must}, got {len(labels)}")
            left = [_labels(name, x, p, n) for x, p, n in zip(labels, places, counts, strict=True)]
            out[name] = left if several else left[0]
        return out

    def _valid(self, inpt: Any) -> Tensor:
        plain = subclass.plain(inpt)
        if isinstance(inpt, tv_tensors.KeyPoints):
            return _inside(plain, inpt.canvas_size)
        corners = v2.functional.convert_bounding_box_format(plain, inpt.format, "XYXY")
        return (corners[:, 2:] > corners[:, :2]).all(-1)


def _select_valid(inpt: Any, places: Tensor) -> Any:
    out = _dispatch.wrap_like(subclass.plain(inpt).index_select(0, places), inpt)
    if isinstance(inpt, tv_tensors.BoundingBoxes):
        out.clamping_mode = "soft"
    return out


def _labels(name: str, labels: Any, places: Tensor, count: int) -> Any:
    known = isinstance(labels, (Tensor, list, tuple))
    found = len(labels) if known else None
    if found != count:
        got = f"{found} labels" if known else type(labels).__name__
        raise ValueError(
            f"from_albumentations: {name} must be a tensor or a list of {count} labels, got {got}"
        )
    if isinstance(labels, Tensor):
        return _dispatch.wrap_like(subclass.plain(labels).index_select(0, places), labels)
    return type(labels)([labels[i] for i in places.tolist()])
