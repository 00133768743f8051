"""Helpers that convert the arguments of albumentations' transforms to those of their counterparts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode

from imgops.transforms import containers

#: The arguments of a transform, with "p", and the :class:`Rule` of the pipeline as "rule".
Arguments = Mapping[str, Any]
Maker = Callable[[Arguments], Any]

#: The coordinate of a keypoint that is no longer visible: no transform brings it back into an image.
OUTSIDE = -(2.0**20)


class Unmapped(Exception):
    """The reason why a transform, or one of its arguments, has no counterpart."""


def report(op: str, unmapped: Sequence[str], near: Mapping[str, str]) -> None:
    """Raise for transforms without a counterpart, and warn the caller's caller of those that come near."""
    if unmapped:
        raise ValueError(f"{op}: transforms must have a counterpart, got {', '.join(unmapped)}")
    if near:
        listed = "; ".join(f"{name}: {differs}" for name, differs in near.items())
        warnings.warn(f"{op}: these come near, but differ: {listed}", stacklevel=3)


class Near(NamedTuple):
    """A counterpart that differs for these arguments, and a text that says how."""

    transform: Any
    differs: str


class Rule(NamedTuple):
    """The conditions under which a pipeline keeps its boxes and keypoints."""

    boxes: tuple[float, float] | None = None  # the least visible area, and the least visible share
    drops_points: bool = False
    has_points: bool = False

    @property
    def follows(self) -> bool:
        """Whether there may be boxes or keypoints that must follow."""
        return self.boxes is not None or self.has_points


#: By OpenCV's numbers: torchvision's interpolations, and the names of interpolations and borders.
MODES = {
    0: InterpolationMode.NEAREST,
    1: InterpolationMode.BILINEAR,
    2: InterpolationMode.BICUBIC,
    6: InterpolationMode.NEAREST_EXACT,
}
NAMES = {0: "nearest", 1: "bilinear", 2: "bicubic", 3: "area"}
BORDERS = {0: "constant", 1: "edge", 2: "symmetric", 3: "wrap", 4: "reflect"}


def of(table: Mapping[Any, Any], a: Arguments, name: str) -> Any:
    if a[name] not in table:
        raise Unmapped(f"{name}={a[name]}")
    return table[a[name]]


def only(a: Arguments, **wanted: Any) -> None:
    """Raise if an argument that has a counterpart only at its usual value has another value."""
    for name, value in wanted.items():
        if name in a and a[name] != value:
            raise Unmapped(f"{name}={a[name]}")


def chance(transform: Any, p: float) -> Any:
    return transform if p >= 1 else containers.RandomApply([transform], p)


def choice(transforms: list[Any], p: float) -> Any:
    return chance(transforms[0] if len(transforms) == 1 else containers.RandomChoice(transforms), p)


def fill_of(a: Arguments) -> Any:
    fill = a["fill"]
    if isinstance(fill, str) and fill != "random":
        raise Unmapped(f"fill={fill!r}")
    return tuple(fill) if isinstance(fill, (list, tuple)) else fill


def fills_of(a: Arguments) -> dict[Any, Any]:
    """Return the values of borders: one for masks, one for all others."""
    return {tv_tensors.Mask: a["fill_mask"], "others": fill_of(a)}


def near_if(condition: bool, transform: Any, differs: str) -> Any:
    return Near(transform, differs) if condition else transform


def add_arguments(transform: Any, **more: Any) -> None:
    """Add arguments to a transform under construction, with which a graph makes it again."""
    for name, value in more.items():
        setattr(transform, name, value)
    transform._config = (*transform._config, *more)
    transform._start(False, None)


def one(bounds: Any, name: str) -> Any:
    if bounds[0] != bounds[1]:
        raise Unmapped(f"{name}={bounds}")
    return bounds[0]
