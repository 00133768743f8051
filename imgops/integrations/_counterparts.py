"""The bases of the counterparts that have no class in imgops."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from torchvision.transforms import v2

from imgops.transforms import containers
from imgops.transforms._core import seeding
from imgops.transforms._core.base import OperatorTransform, RandomTransform
from imgops.transforms._core.parameters import Shape


class Counterpart(OperatorTransform, v2.Transform):
    """A transform whose settings, those of the given transform that it depends on, are attributes."""

    def __init__(self, **settings: Any) -> None:
        v2.Transform.__init__(self)
        self.__dict__.update(settings)
        self._config = tuple(settings)
        self._describe()


class RandomCounterpart(RandomTransform, v2.Transform):
    """A :class:`Counterpart` that samples parameters, by the code of the library that it stands for."""

    def __init__(self, **settings: Any) -> None:
        v2.Transform.__init__(self)
        self.__dict__.update(settings)
        self._config = tuple(settings)
        self._start(False, None)


#: Library -> how it draws whether something with a probability is applied. torchvision's first version
#: applies it where the draw equals the probability.
_CHANCES: dict[str, Callable[[float], Any]] = {
    "torchvision": lambda p: not p < seeding.share(),
    "open_clip": lambda p: random.random() < p,
    "lightly": lambda p: np.random.random_sample() < p,
}


class _Chance(containers._Chance):
    """The sampling of RandomApply as a library draws it."""

    library: str

    def _draw_row(self, shape: Shape) -> list[float]:
        if self.library == "torchvision":
            return [float(_CHANCES[self.library](self.p))]
        with seeding.own_generators():
            return [float(_CHANCES[self.library](self.p))]


class RandomApply(_Chance, containers.RandomApply):
    """Apply transforms with a probability that a library draws."""

    _config: Any = ("library", "p")
    _described = _Chance

    def __init__(self, transforms: Any, p: float, library: str) -> None:
        self.__dict__["library"] = library
        super().__init__(transforms, p)
