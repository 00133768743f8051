"""Helpers that convert the arguments of albumentations' transforms to those of their counterparts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode

#: The arguments of a transform, with "p", and the :class:`Rule` of the pipeline as "rule".
Arguments = Mapping[str, Any]
Maker = Callable[[Arguments], Any]

#: The coordinate of a keypoint that is no longer visible: no transform brings it back into an image.
OUTSIDE = -(2.0**20)


class Unmapped(Exception):
    """The reason why a transform, or one of its arguments, has no counterpart."""


def report(op: str, unmapped: Sequence[str], near: Mapping[str, str], way_out: str = "") -> None:
    """Raise for transforms without a counterpart, and warn the caller's caller of those that come near."""
    if unmapped:
        raise ValueError(f"{op}: transforms must have a counterpart, got {', '.join(unmapped)}{way_out}")
    if near:
        listed = "; ".join(f"{name}: {differs}" for name, differs in near.items())
        warnings.warn(f"{op}: these come near, but differ: {listed}", stacklevel=3)


class Rule(NamedTuple):
    """What follows the images of a pipeline."""

    has_boxes: bool = False
    has_points: bool = False
    drops_points: bool = False

    @property
    def follows(self) -> bool:
        return self.has_boxes or self.has_points


#: By OpenCV's numbers: torchvision's interpolations with the same pixels, mirrored borders, all borders.
MODES = {
    1: InterpolationMode.BILINEAR,
    2: InterpolationMode.BICUBIC,
}
MIRRORS = (2, 4)
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


def fills_of(a: Arguments) -> dict[Any, Any]:
    """Return the values of borders: one for masks, one for all others."""
    fill = a["fill"]
    if isinstance(fill, str):
        raise Unmapped(f"fill={fill!r}")
    return {
        tv_tensors.Mask: a["fill_mask"],
        "others": tuple(fill) if isinstance(fill, (list, tuple)) else fill,
    }
