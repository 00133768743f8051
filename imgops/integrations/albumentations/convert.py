"""Conversion of albumentations' pipelines to imgops' transforms."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any

from imgops.integrations.albumentations import arrays, draws, host
from imgops.integrations.albumentations.annotations import _Filter, _Removal
from imgops.integrations.albumentations.calls import Call
from imgops.integrations.albumentations.conversions import CONVERSIONS
from imgops.integrations.albumentations.moves import MOVES, VALUES, Drawn
from imgops.integrations.albumentations.pipeline import Reading, _Pipeline
from imgops.integrations.albumentations.rules import (
    MIRRORS,
    Rule,
    Unmapped,
    bases_of,
    changed_names,
    is_container,
    name_of,
    parts_of,
    report,
    require_version_2,
)
from imgops.transforms import containers, conversion
from imgops.transforms._core.base import RandomTransform
from imgops.transforms._core.parameters import IS_APPLIED, Shape

__all__ = ["from_albumentations"]


class _Some(containers._Chance):
    """The sampling of SomeOf: the index of a transform for each turn, -1 for none."""

    n: int

    def _neutral_numbers(self, shape: Shape) -> list[float]:
        return [-1.0] * self.n

    def _count_numbers(self, shape: Shape) -> int:
        return self.n


class _SomeOf(_Some, containers.RandomOrder):
    """Apply some transforms of a list, in an order that a source draws."""

    _config = ("n",)
    _described = _Some  # type: ignore[assignment]

    def __init__(self, transforms: list[Any], n: int) -> None:
        self.__dict__["n"] = n
        super().__init__(transforms)

    @property
    def _turns(self) -> int:
        return self.n


def _drawn_by(source: draws.Source, made: Any) -> Any:
    """Let a source draw the parameters of a transform."""
    made._source = source
    made._describe()
    return made


def _as_one(steps: list[Any]) -> Any:
    return steps[0] if len(steps) == 1 else containers.Compose(steps or [conversion.Identity()])


# -- single transforms ---------------------------------------------------------------------------------------


SEQUENCES = ("Compose", "ReplayCompose", "Sequential")
CONTAINERS = (*SEQUENCES, "OneOf", "OneOrOther", "RandomOrder", "SomeOf")

#: The transforms without a counterpart, and why they have none.
WITHOUT = {
    **dict.fromkeys(
        ("CenterCrop3D", "CoarseDropout3D", "CubicSymmetry", "Pad3D", "PadIfNeeded3D", "RandomCrop3D"),
        "it takes volumes",
    ),
    "ToTensor3D": "it takes volumes",
    **dict.fromkeys(
        ("Mosaic", "OverlayElements", "TextImage"), "it takes other images or texts from the call"
    ),
    "RandomCropNearBBox": "it takes a box from the call",
    "SelectiveChannelTransform": "its transforms see a part of the channels",
}

#: The transforms that change the size of an image, some only with certain arguments.
_RESIZING = frozenset(MOVES) - {"HorizontalFlip", "VerticalFlip"} | {
    "BBoxSafeRandomCrop",
    "Crop",
    "RandomCropFromBorders",
    "RandomScale",
}


def _changes_size(given: Any) -> bool:
    bases = set(bases_of(given))
    if "CropAndPad" in bases:
        return not given.keep_size
    if "Perspective" in bases:
        return not given.keep_size or given.fit_output
    if "SafeRotate" in bases:  # it shrinks the image until that fits into its own size
        return False
    return bool(
        bases & _RESIZING or getattr(given, "crop_border", False) or getattr(given, "fit_output", False)
    )


#: The methods that only albumentations' own call runs: a subclass that has its own cannot be converted.
_UNSEEN = {"__call__", "apply_with_params"}


class _Reader:
    """A reader of a pipeline, which notes the transforms without a counterpart or with a different one."""

    def __init__(self, outermost: Any) -> None:
        self.unmapped: list[str] = []
        self.differences: dict[str, str] = {}
        processors = getattr(outermost, "processors", None) or {}
        self.boxes, self.points = (
            processors[n].params if n in processors else None for n in ("bboxes", "keypoints")
        )
        points = self.points
        drops_points = points is not None and points.remove_invisible
        self.rule = Rule(self.boxes is not None, points is not None, drops_points)
        #: The ToTensorV2 of the pipeline, if it has one.
        self.last: Any = None
        #: The transforms whose counterparts draw nothing but their chance.
        self.silent: set[int] = set()
        if points is not None and len(points.format) > 2:
            self.unmapped.append(f"KeypointParams(format={points.format})")

    def read(self, given: Any, forced: bool = False) -> list[Any]:
        """Return the counterparts of a transform; ``forced`` says that it was chosen already."""
        try:
            without = next((WITHOUT[n] for n in bases_of(given) if n in WITHOUT), None)
            if without is not None:
                raise Unmapped(without)
            changed = changed_names(given)
            if getattr(given, "replay_mode", False):
                raise Unmapped("it replays a call")
            if changed & _UNSEEN:
                raise Unmapped(f"it has its own {' and '.join(sorted(changed & _UNSEEN))}")
            if is_container(given):
                return self._read_container(given, forced)
            return self._read_one(given, name_of(given), forced)
        except Unmapped as why:
            self.unmapped.append(f"{type(given).__name__} ({why})")
        return []

    def _read_container(self, given: Any, forced: bool) -> list[Any]:
        name = name_of(given)
        if name not in CONTAINERS:
            changed = ", ".join(sorted(changed_names(given)))
            raise Unmapped(f"it has its own {changed}" if changed else "it is another container")
        if name in SEQUENCES:
            steps: list[Any] = []
            for inner in given.transforms:
                steps += self.add_filter(self.read(inner), is_first=not steps)
            return self._by_chance(steps, given, forced)
        makes = [_as_one(self.read(t, name in ("OneOf", "OneOrOther"))) for t in given.transforms]
        if name == "OneOf":
            if not makes:
                return []
            source = draws.Choice(given, forced)
            p = 1.0 if forced else float(given.p)
            weights = [*(p * float(w) for w in given.transforms_ps), 1 - p]
            return [_drawn_by(source, containers.RandomChoice([*makes, conversion.Identity()], weights))]
        if name == "OneOrOther":
            return [
                _drawn_by(draws.Choice(given, forced), containers.RandomChoice(makes, [given.p, 1 - given.p]))
            ]
        makes = [_as_one(self.add_filter([m], is_first=True)) for m in makes]
        return [_drawn_by(draws.Order(given), _SomeOf(makes, given.n))]

    def _by_chance(self, steps: list[Any], given: Any, forced: bool) -> list[Any]:
        """Return steps under the probability of a transform."""
        if not steps or forced or given.p >= 1:
            return steps
        return [_drawn_by(draws.Chance(given), containers.RandomApply(steps, float(given.p)))]

    def _read_one(self, given: Any, name: str, forced: bool) -> list[Any]:
        if name in CONVERSIONS:
            if name == "ToTensorV2":
                if given.p < 1:
                    raise Unmapped(f"p={given.p}")
                self.last = given
            self.silent.add(id(given))
            return self._by_chance(CONVERSIONS[name](given), given, forced)
        if name in MOVES:
            try:
                made = MOVES[name]({**given.get_transform_init_args(), "p": given.p, "rule": self.rule})
                steps = made if isinstance(made, list) else [made]
                if name not in VALUES:
                    self.silent.add(id(given))
                # Whether the counterpart samples whether it is applied.
                alone = IS_APPLIED in getattr(steps[-1], "_random_parameters", ())
                for step in steps:
                    if isinstance(step, RandomTransform):
                        _drawn_by(Drawn(given, forced or not alone), step)
                return steps if alone else self._by_chance(steps, given, forced)
            except Unmapped:  # by one of its arguments
                pass
        # These read data that only a call of albumentations has.
        if hasattr(given, "metadata_key") and not getattr(given, "reference_images", None):
            raise Unmapped(f"metadata_key={given.metadata_key}")
        if getattr(given, "num_output_channels", 3) != 3:
            raise Unmapped(f"num_output_channels={given.num_output_channels}")
        if getattr(given, "bbox_labels", None):
            raise Unmapped("it reads the labels of boxes")
        if "RandomGridShuffle" in bases_of(given) and self.rule.has_boxes:
            raise Unmapped("it cuts boxes into several")
        if getattr(given, "border_mode", 0) in MIRRORS and self.rule.follows:
            difference = "boxes and keypoints are not repeated in a mirrored border"
            self.differences[type(given).__name__] = difference
        if not _changes_size(given):
            return [host._ByAlbumentations.of(host.Host(given, forced))]
        made = host._ResizedByAlbumentations.of(host.Host(given, True))
        return self._by_chance([made], given, forced)

    # -- boxes and keypoints -------------------------------------------------------------------------

    def filter(self, boxes: bool = True, points: bool = True) -> list[Any]:
        """Return a list with the step that drops boxes and keypoints, or an empty list without one."""
        params, how = self.boxes, {}
        if boxes and params is not None:
            sides = {"width": params.min_width, "height": params.min_height, "ratio": params.max_accept_ratio}
            how = {"area": params.min_area, "visibility": params.min_visibility, **sides}
        points = points and self.rule.drops_points
        return [_Filter(boxes=bool(how), points=points, **how)] if how or points else []

    def add_filter(self, steps: list[Any], is_first: bool) -> list[Any]:
        """Add to the steps of a transform the step that drops boxes and keypoints as albumentations does.

        A transform that moves nothing needs none, unless it is the first: what was given may be too small.
        """
        if not (is_first or any(_moves(step) for step in steps)) or (
            steps and isinstance(steps[-1], _Filter)
        ):
            return steps
        each = [p is not None and p.check_each_transform for p in (self.boxes, self.points)]
        return steps + self.filter(*each)

    def read_outermost(self, given: Any, forced: bool) -> tuple[list[Any], bool]:
        """Return the counterparts of the outermost transform, and whether its chance decides on them."""
        whole = copy(given)
        whole.p = 1.0 if name_of(given) in SEQUENCES else given.p
        steps = self.read(whole, forced)
        if self.boxes is not None or self.rule.drops_points:
            last = self.filter()
            if steps and isinstance(steps[-1], _Filter):
                last = [f for f in last if (f.boxes, f.points) != (steps[-1].boxes, steps[-1].points)]
            box_labels = None if self.boxes is None else list(self.boxes.label_fields or ())
            points = self.points if self.rule.drops_points else None
            point_labels = None if points is None else list(points.label_fields or ())
            first = [] if self.boxes is None else [_Filter()]
            steps = [*first, *steps, *last, _Removal(box_labels, point_labels)]
        if whole.p != given.p:
            steps = self._by_chance(steps, given, False)
        is_by_chance = whole.p != given.p and bool(steps)
        return steps or [conversion.Identity()], is_by_chance

    def with_call(self, given: Any, steps: list[Any], is_by_chance: bool) -> Reading:
        """Return what a pipeline was read as, with its calls by keywords."""
        on_arrays = arrays.step_of(given, False, lambda t: id(t) in self.silent)
        return Reading(steps, Call(given, self.last, on_arrays), is_by_chance)


def _moves(step: Any) -> bool:
    return getattr(step, "_moves", False) or any(_moves(t) for t in getattr(step, "transforms", ()))


def is_of_albumentations(given: Any) -> bool:
    """Return whether something is a transform of albumentations, or of a class that follows one."""
    return not {"BasicTransform", "BaseCompose"}.isdisjoint(bases_of(given))


def from_albumentations(compose: Any) -> Any:
    """Convert a pipeline of albumentations to a pipeline of imgops' transforms.

    Parameters
    ----------
    compose : albumentations.Compose
        A pipeline, or any transform, of albumentations 2; also of classes that follow them. It is copied.

    Returns
    -------
    Compose
        The pipeline is called as the given one is: by keywords, with NumPy arrays ``(H, W, C)`` or tensors
        ``(C, H, W)``, masks, boxes, keypoints and label fields, which come back in the same kind. It also
        takes what imgops' transforms do, in a graph too: a tensor, or a structure of ``tv_tensors``. Then
        each label field must be in the dict under its name: a tensor, or, outside of a graph, a list. A
        batch has a list of boxes and a list of labels.

    Raises
    ------
    TypeError
        If ``compose`` is not a transform of albumentations, or one of AlbumentationsX, whose transforms are
        drawn otherwise; or, when the result is called, if an array has no target.
    ValueError
        If transforms or arguments have no counterpart: the message names all of them, and why.

    Warns
    -----
    UserWarning
        If boxes or keypoints would be repeated in a mirrored border, which only those of arrays are.

    Notes
    -----
    Reference: albumentations 2.0.8. Its own code draws: by its seed, or, without one, by seeds that PyTorch's
    generator draws. It also computes NumPy arrays, so that they give its results. Images, masks and labels
    that are tensors are equal to the bit; their boxes and keypoints are computed in float64 and come
    within a thousandth of a pixel. Where no operator has albumentations' pixels, it computes the image on
    the CPU, without a gradient. Boxes that are not valid are clipped to the image in a structure of
    ``tv_tensors``, where albumentations raises.

    A class that follows one of albumentations' is computed by its own methods. In a graph and with
    ``per_sample=True`` it must keep the size and the dtype of the image.

    Examples
    --------
    >>> import albumentations as A
    >>> import numpy as np
    >>> from imgops import transforms
    >>> pipeline = transforms.from_albumentations(A.Compose([A.CLAHE(p=1.0), A.HorizontalFlip()], seed=0))
    >>> pipeline
    Compose(
          CLAHE(p=1.0)
          RandomHorizontalFlip(p=0.5)
    )
    >>> pipeline(image=np.zeros((4, 6, 3), np.uint8))["image"].shape
    (4, 6, 3)
    """
    if not is_of_albumentations(compose):
        must = "from_albumentations: compose must be a pipeline of albumentations"
        raise TypeError(f"{must}, got {type(compose).__name__}")
    require_version_2(compose)
    own = deepcopy(compose)  # so that its generators are separate
    for part in parts_of(own):
        if is_container(part):  # converted pipelines inside are read as their originals
            part.transforms = [t.given if isinstance(t, _Pipeline) else t for t in part.transforms]
    reader = _Reader(own)
    read = reader.read_outermost(own, False)
    report("from_albumentations", reader.unmapped, reader.differences)
    return _Pipeline(own, reader.with_call(own, *read), _read)


def _read(given: Any, forced: bool = False) -> Reading:
    """Return what a pipeline that is known to have a counterpart is read as."""
    reader = _Reader(given)
    return reader.with_call(given, *reader.read_outermost(given, forced))
