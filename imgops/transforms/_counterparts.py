"""What the counterparts of albumentations' transforms share: their arguments, read as ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torchvision.transforms import InterpolationMode

from imgops.transforms import _container

Arguments = Mapping[str, Any]
Made = Callable[[Arguments], Any]


class Unmapped(Exception):
    """Why a transform, or an argument of it, has no counterpart."""


#: OpenCV's numbers.
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
    """Refuse what has no counterpart but at its usual value."""
    for name, value in wanted.items():
        if name in a and a[name] != value:
            raise Unmapped(f"{name}={a[name]}")


def chance(transform: Any, p: float) -> Any:
    return transform if p >= 1 else _container.RandomApply([transform], p)


def choice(transforms: list[Any], p: float) -> Any:
    return chance(transforms[0] if len(transforms) == 1 else _container.RandomChoice(transforms), p)


def fill_of(a: Arguments) -> Any:
    fill = a["fill"]
    if isinstance(fill, str) and fill != "random":
        raise Unmapped(f"fill={fill!r}")
    return tuple(fill) if isinstance(fill, (list, tuple)) else fill


def one(bounds: Any, name: str) -> Any:
    if bounds[0] != bounds[1]:
        raise Unmapped(f"{name}={bounds}")
    return bounds[0]
