"""Pipelines of albumentations as pipelines of these transforms. albumentations itself is not needed."""

from __future__ import annotations

import warnings
from typing import Any

from torchvision.transforms import v2

from imgops.transforms import _container, _counterparts_moves, _counterparts_values, _misc
from imgops.transforms._counterparts import Arguments, Made, Unmapped, chance

__all__ = ["from_albumentations"]

SAME: dict[str, Made] = _counterparts_moves.SAME | _counterparts_values.SAME
NEAR: dict[str, tuple[Made, str]] = _counterparts_moves.NEAR | _counterparts_values.NEAR


class _Reading:
    """A pipeline that is being read: what was not mapped, and what comes only near."""

    def __init__(self) -> None:
        self.unmapped: list[str] = []
        self.near: dict[str, str] = {}

    def read(self, given: Any, p: float | None = None) -> Any:
        """The counterpart of a transform; ``p`` stands for its own probability."""
        name, p = type(given).__name__, given.p if p is None else p
        if name in ("Compose", "ReplayCompose", "Sequential"):
            steps = [s for t in given.transforms for s in _opened(self.read(t))] + self.cleanup(given)
            return chance(_container.Compose(steps or [_misc.Identity()]), p)
        if name in ("OneOf", "OneOrOther"):  # what is chosen is applied
            made = [self.read(t, 1.0) for t in given.transforms]
            if name == "OneOrOther":
                return _container.RandomChoice(made, [p, 1 - p])
            return chance(_container.RandomChoice(made, [t.p for t in given.transforms]), p)
        try:
            if name not in SAME and name not in NEAR:
                raise Unmapped
            return self.made(name, {**given.get_transform_init_args(), "p": p})
        except Unmapped as why:
            self.unmapped.append(f"{name}({why})" if str(why) else name)
        return _misc.Identity()

    def made(self, name: str, arguments: Arguments) -> Any:
        if name in SAME:
            return SAME[name](arguments)
        make, differs = NEAR[name]
        made = make(arguments)
        self.near[name] = differs
        return made

    def cleanup(self, given: Any) -> list[Any]:
        """What albumentations does with boxes and keypoints in the end."""
        last: list[Any] = []
        processors = getattr(given, "processors", None) or {}
        if "bboxes" in processors:
            params = processors["bboxes"].params
            if params.min_visibility:
                self.near["BboxParams"] = "boxes are dropped by their size, whatever part of them is visible"
            labels = "default" if params.label_fields else None
            size = max(params.min_width, params.min_height, 1.0)
            how = {"min_size": size, "min_area": max(params.min_area, 1.0), "labels_getter": labels}
            last += [_misc.ClampBoundingBoxes(), _misc.SanitizeBoundingBoxes(**how)]
        if "keypoints" in processors:
            params = processors["keypoints"].params
            if params.remove_invisible and hasattr(v2, "SanitizeKeyPoints"):
                labels = "default" if params.label_fields else None
                last.append(_misc.SanitizeKeyPoints(labels_getter=labels))
        return last


def _opened(made: Any) -> list[Any]:
    """The steps of a pipeline inside of another; nothing for what does nothing."""
    if type(made) is _misc.Identity:
        return []
    return list(made.transforms) if type(made) is _container.Compose else [made]


def from_albumentations(compose: Any) -> Any:
    """A pipeline of albumentations, as a pipeline of these transforms.

    Parameters
    ----------
    compose : albumentations.Compose
        A pipeline, or any transform, of albumentations 2. Its images are taken to be uint8.

    Returns
    -------
    Compose
        It takes and returns what these transforms do: a tensor ``(C, H, W)``, or a dict of ``tv_tensors``
        instead of arrays by keyword. ``ToTensorV2`` becomes nothing, for it is a tensor already;
        ``bbox_params`` become :class:`ClampBoundingBoxes` and :class:`SanitizeBoundingBoxes`. Draws come from
        PyTorch's generator.

    Raises
    ------
    TypeError
        If ``compose`` is no transform of albumentations.
    ValueError
        If it has transforms, or arguments, without a counterpart: all of them are named, and
        :doc:`the migration page </migrating>` says why.

    Warns
    -----
    UserWarning
        If counterparts come near, but differ in pixels or in distribution: it says how.

    Notes
    -----
    Reference: albumentations 2.0.8. A counterpart has the same pixels for the same parameters, and samples
    these with the same distribution, unless the warning names it.

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
    reading = _Reading()
    made = reading.read(compose)
    if reading.unmapped:
        must = "from_albumentations: transforms must have a counterpart"
        raise ValueError(f"{must}, got {', '.join(reading.unmapped)}")
    if reading.near:
        listed = "; ".join(f"{name}: {differs}" for name, differs in reading.near.items())
        warnings.warn(f"from_albumentations: these come near, but differ: {listed}", stacklevel=2)
    return made if isinstance(made, _container.Compose) else _container.Compose([made])
