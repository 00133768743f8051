"""Conversion of albumentations' pipelines to imgops' transforms; albumentations itself is not needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops import _subclass
from imgops._torch_private import tree_flatten, tree_unflatten
from imgops.transforms import containers, conversion
from imgops.transforms._core import operators
from imgops.transforms._core.base import OperatorTransform, RandomTransform
from imgops.transforms._core.parameters import Shape
from imgops.transforms._core.probabilistic import _with_corners
from imgops.transforms._core.sampling import ParameterSampler, SamplingProgram
from imgops.transforms.albumentations import moves, values
from imgops.transforms.albumentations.rules import (
    OUTSIDE,
    Arguments,
    Maker,
    Near,
    Rule,
    Unmapped,
    chance,
    report,
)
from imgops.transforms.functional import _dispatch

__all__ = ["from_albumentations"]

SAME: dict[str, Maker] = moves.SAME | values.SAME
NEAR: dict[str, tuple[Maker, str]] = values.NEAR


# -- boxes and keypoints ---------------------------------------------------------------------------------

_TINY = 1e-7


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
            out = self._annotations(inpt) if _subclass.in_graph() else self.by_torchvision(inpt, params)
            out.clamping_mode = None  # the visible share of a box is found before it is clipped
            return out
        if isinstance(inpt, tv_tensors.KeyPoints) and self.points:
            plain = _subclass.plain(inpt)
            is_inside = _inside(plain, inpt.canvas_size)[..., None]
            return _dispatch.wrap_like(torch.where(is_inside, plain, OUTSIDE).to(plain.dtype), inpt)
        return inpt

    def by_torchvision(self, inpt: Any, values: dict[str, Any]) -> Any:
        return _with_corners("from_albumentations", inpt, lambda b: self._visible(b, inpt.canvas_size))

    def _visible(self, boxes: Tensor, canvas: tuple[int, int]) -> Tensor:
        """Return the visible parts of boxes ``(n, 4)``; those that are dropped become 0."""
        limit = torch.tensor([canvas[1], canvas[0]] * 2, dtype=boxes.dtype)
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
        for kind, fields in ((tv_tensors.BoundingBoxes, self.boxes), (tv_tensors.KeyPoints, self.points)):
            if fields is not None:
                out = self._without(out, kind, fields)
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
        counts = [_subclass.plain(x).shape[0] for x in flat if isinstance(x, kind)]
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
        plain = _subclass.plain(inpt)
        if isinstance(inpt, tv_tensors.KeyPoints):
            return _inside(plain, inpt.canvas_size)
        corners = v2.functional.convert_bounding_box_format(plain, inpt.format, "XYXY")
        return (corners[:, 2:] > corners[:, :2]).all(-1)


def _select_valid(inpt: Any, places: Tensor) -> Any:
    out = _dispatch.wrap_like(_subclass.plain(inpt).index_select(0, places), inpt)
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
        return _dispatch.wrap_like(_subclass.plain(labels).index_select(0, places), labels)
    return type(labels)([labels[i] for i in places.tolist()])


# -- pipelines -------------------------------------------------------------------------------------------


class _Pipeline(containers.Compose):
    """A converted pipeline, which refuses inputs that albumentations takes and these transforms ignore."""

    def _get_name(self) -> str:
        return "Compose"

    def forward(self, *inputs: Any, **targets: Any) -> Any:
        if targets:
            must = "inputs must be a tensor or one dict of tensors"
            raise TypeError(f"from_albumentations: {must}, got the keywords {', '.join(targets)}")
        flat, _ = tree_flatten(inputs)
        if any(isinstance(x, np.ndarray) for x in flat):
            must = "images, masks, boxes and labels must be tensors or tv_tensors"
            how = "torch.from_numpy(image).permute(2, 0, 1) makes one"
            raise TypeError(f"from_albumentations: {must} ({how}), got a NumPy array")
        return super().forward(*inputs)


class _Reader:
    """A reader of a pipeline, which notes what has no counterpart, or one that only comes near."""

    def __init__(self, outermost: Any) -> None:
        self.unmapped: list[str] = []
        self.near: dict[str, str] = {}
        processors = getattr(outermost, "processors", None) or {}
        self.boxes, self.points = (
            processors[n].params if n in processors else None for n in ("bboxes", "keypoints")
        )
        boxes, points = self.boxes, self.points
        self.rule = Rule(
            None if boxes is None else (boxes.min_area, boxes.min_visibility),
            points is not None and points.remove_invisible,
            points is not None,
        )
        if points is not None and len(points.format) > 2:
            self.unmapped.append(f"KeypointParams(format={points.format})")

    def read(self, transform: Any, p: float | None = None) -> Any:
        """Return the counterpart of a transform; ``p`` replaces its own probability."""
        name, p = type(transform).__name__, transform.p if p is None else p
        if name in ("Compose", "ReplayCompose", "Sequential"):
            steps = [s for t in transform.transforms for s in self.add_filter(_steps_of(self.read(t)))]
            return chance(containers.Compose(steps or [conversion.Identity()]), p)
        if name in ("OneOf", "OneOrOther"):  # the chosen transform is always applied
            made = [self.read(t, 1.0) for t in transform.transforms]
            if name == "OneOrOther":
                return containers.RandomChoice(made, [p, 1 - p])
            return chance(containers.RandomChoice(made, [t.p for t in transform.transforms]), p)
        try:
            if name not in SAME and name not in NEAR:
                raise Unmapped
            return self.made(name, {**transform.get_transform_init_args(), "p": p, "rule": self.rule})
        except Unmapped as why:
            self.unmapped.append(f"{name}({why})" if str(why) else name)
        return conversion.Identity()

    def made(self, name: str, arguments: Arguments) -> Any:
        if name in NEAR:
            make, self.near[name] = NEAR[name]
            return make(arguments)
        made = SAME[name](arguments)
        if isinstance(made, Near):
            made, self.near[name] = made
        return made

    def filter(self, boxes: bool = True, points: bool = True) -> list[Any]:
        """Return a list with the step that drops boxes and keypoints, or an empty list without one."""
        params, how = self.boxes, {}
        if boxes and params is not None:
            sides = {"width": params.min_width, "height": params.min_height, "ratio": params.max_accept_ratio}
            how = {"area": params.min_area, "visibility": params.min_visibility, **sides}
        points = points and self.rule.drops_points
        return [_Filter(boxes=bool(how), points=points, **how)] if how or points else []

    def add_filter(self, steps: list[Any]) -> list[Any]:
        """Add to the steps of a transform the step that drops what albumentations drops after it."""
        if not any(_moves(step) for step in steps) or isinstance(steps[-1], _Filter):
            return steps
        each = [p is not None and p.check_each_transform for p in (self.boxes, self.points)]
        return steps + self.filter(*each)

    def read_outermost(self, transform: Any) -> Any:
        """Return the counterpart of the outermost transform."""
        made = self.read(transform)
        if self.boxes is None and not self.rule.drops_points:
            return _Pipeline(_steps_of(made) or [conversion.Identity()])
        steps, p = (
            (list(made.transforms[0].transforms), made.p) if transform.p < 1 else (_steps_of(made), 1.0)
        )
        last = self.filter()
        if steps and isinstance(steps[-1], _Filter):
            last = [f for f in last if (f.boxes, f.points) != (steps[-1].boxes, steps[-1].points)]
        box_labels = None if self.boxes is None else list(self.boxes.label_fields or ())
        points = self.points if self.rule.drops_points else None
        point_labels = None if points is None else list(points.label_fields or ())
        last.append(_Removal(box_labels, point_labels))
        first = [] if self.boxes is None else [_Filter()]
        return _Pipeline(
            [chance(containers.Compose([*first, *steps, *last]), p)] if p < 1 else [*first, *steps, *last]
        )


def _moves(step: Any) -> bool:
    return getattr(step, "_moves", False) or any(_moves(t) for t in getattr(step, "transforms", ()))


def _steps_of(made: Any) -> list[Any]:
    """Return the steps of a pipeline inside of another; no steps for an Identity."""
    if type(made) is conversion.Identity:
        return []
    return list(made.transforms) if type(made) is containers.Compose else [made]


def from_albumentations(compose: Any) -> Any:
    """Convert a pipeline of albumentations to a pipeline of imgops' transforms.

    Parameters
    ----------
    compose : albumentations.Compose
        A pipeline, or any transform, of albumentations 2. Its images are taken to be uint8.

    Returns
    -------
    Compose
        The pipeline takes and returns what imgops' transforms do: a tensor ``(C, H, W)``, or a dict of
        ``tv_tensors`` instead of arrays by keyword; it raises a TypeError for NumPy arrays and keywords.
        ``ToTensorV2`` does nothing, because the image is a tensor already. Draws come from PyTorch's
        generator.

        With ``bbox_params`` and ``keypoint_params``, boxes and keypoints are dropped where albumentations
        drops them, after each step or at the end. Each label field must then be in the dict under its name: a
        tensor, or, outside of a graph, a list. A batch has a list of boxes and a list of labels.

    Raises
    ------
    TypeError
        If ``compose`` is not a transform of albumentations.
    ValueError
        If it has transforms or arguments without a counterpart: the message names all of them, and
        :doc:`the migration page </migrating>` says why.

    Warns
    -----
    UserWarning
        If some counterparts only come near, and differ in pixels or in distribution; the warning says how.

    Notes
    -----
    Reference: albumentations 2.0.8. A counterpart has the same pixels, masks, boxes and keypoints for the
    same parameters, bit-exact for integer arithmetic and otherwise within one level, and samples parameters
    from the same distribution, unless the warning names it. Boxes that are not valid are clipped to the
    image, where albumentations raises; boxes are computed in their own dtype, not as shares of the image in
    float32.

    Examples
    --------
    >>> import albumentations as A
    >>> from imgops import transforms
    >>> transforms.from_albumentations(A.Compose([A.CLAHE(p=1.0)]))
    Compose(
          RandomCLAHE(clip_limit=(1.0, 4.0), tiles=(8, 8), p=1.0, per_sample=False)
    )
    """
    if not type(compose).__module__.startswith("albumentations"):
        must = "from_albumentations: compose must be a pipeline of albumentations"
        raise TypeError(f"{must}, got {type(compose).__name__}")
    reader = _Reader(compose)
    made = reader.read_outermost(compose)
    report("from_albumentations", reader.unmapped, reader.near)
    return made
