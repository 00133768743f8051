"""The base of the counterparts that have no class in torchvision, and draw by another library's code."""

from __future__ import annotations

from typing import Any

from torchvision.transforms import v2

from imgops.transforms._core.base import RandomTransform


class RandomWithSettings(RandomTransform, v2.Transform):
    """A random transform whose settings are attributes: those of the given transform that it depends on."""

    def __init__(self, **settings: Any) -> None:
        v2.Transform.__init__(self)
        self.__dict__.update(settings)
        self._start(False, None)
