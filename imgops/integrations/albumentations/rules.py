"""Helpers that convert the arguments of albumentations' transforms to those of their counterparts.

This module has all uses of albumentations' private names; tried with albumentations 2.0.8.
``tests/test_integrations_private.py`` fails if one of them moves, or if another module uses one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode

from imgops.integrations._report import Unmapped as Unmapped
from imgops.integrations._report import report as report
from imgops.transforms._core.origin import code_of, is_code_of

#: The arguments of a transform, with "p", and the :class:`Rule` of the pipeline as "rule".
Arguments = Mapping[str, Any]
Maker = Callable[[Arguments], Any]

#: The coordinate of a keypoint that is no longer visible: no transform brings it back into an image.
OUTSIDE = -(2.0**20)


# -- classes -----------------------------------------------------------------------------------------------

#: The names that a subclass may define without being another transform: its arguments and its storage.
_HARMLESS = {"InitSchema", "_abc_impl", "get_class_fullname", "get_transform_init_args_names"}


def is_own_class(cls: type) -> bool:
    """Return whether a class is one that albumentations exports, and not one of the same name."""
    return getattr(sys.modules.get("albumentations"), cls.__name__, None) is cls


def bases_of(given: Any) -> Iterator[str]:
    """Yield the names of albumentations' own classes that something is an instance of, the closest first."""
    return (cls.__name__ for cls in type(given).__mro__ if is_own_class(cls))


def is_container(given: Any) -> bool:
    """Return whether something holds transforms; ColorJitter holds functions under the same name."""
    return "BaseCompose" in bases_of(given)


def parts_of(given: Any) -> Iterator[Any]:
    """Yield a transform, and all that is inside of it."""
    yield given
    for part in given.transforms if is_container(given) else ():
        yield from parts_of(part)


#: The methods of a transform of albumentations 2 that draw its parameters.
_DRAWS = ("get_params", "update_transform_params", "get_params_dependent_on_data")


def require_version_2(given: Any) -> None:
    """Raise for the transforms of AlbumentationsX, whose draws and arguments are not those of its origin."""
    library: Any = sys.modules["albumentations"]
    if all(hasattr(library.BasicTransform, name) for name in _DRAWS):
        return
    is_x = hasattr(library.BasicTransform, "sample_parameters")
    found = f"{'AlbumentationsX' if is_x else 'albumentations'} {library.__version__}"
    names = dict.fromkeys(next(bases_of(p)) for p in parts_of(given) if not is_container(p))
    must = "from_albumentations: compose must be a pipeline of albumentations 2, up to 2.0.8"
    raise TypeError(
        f"{must}, got {', '.join(names) or 'one'} of {found}, whose draws and arguments are others; install "
        "albumentations==2.0.8, or build the pipeline of `from imgops import transforms`"
    )


def take_for_a_compose(cls: type) -> None:
    """Make albumentations accept the instances of a class as pipelines."""
    sys.modules["albumentations"].Compose.register(cls)


def changed_names(given: Any) -> set[str]:
    """Return the names of albumentations' code that a subclass, or the instance itself, replaces."""
    mro = type(given).__mro__
    closest = next((i for i, cls in enumerate(mro) if is_own_class(cls)), len(mro) - 1)
    base = mro[closest]
    found = {n for cls in mro[:closest] for n in vars(cls) if hasattr(base, n)} - _HARMLESS
    found = {n for n in found if not n.startswith("__") or n == "__call__"}  # such as __init__ and __doc__
    for name in vars(given):
        value = getattr(type(given), name, None)
        if isinstance(value, property) or (callable(value) and not isinstance(value, type)):
            found.add(name)
    for cls in mro[closest:-1]:  # whose methods may have been replaced
        found |= {n for n, v in vars(cls).items() if not all(is_code_of(_PACKAGES, c) for c in code_of(v))}
    return found


#: albumentations' packages, and those that its classes are made with.
_PACKAGES = frozenset(("abc", "albucore", "albumentations", "functools", "pydantic", "typing"))


def name_of(given: Any) -> str:
    """Return the name of albumentations' class whose code runs, or "" if any of that code is another."""
    return "" if changed_names(given) else next(bases_of(given), "")


def drawn_indices(given: Any) -> Any:
    """Draw the transforms that SomeOf or RandomOrder applies, in their order."""
    return given._get_idx()


class Rule(NamedTuple):
    """Whether boxes and keypoints follow the images of a pipeline, and whether keypoints may be dropped."""

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
