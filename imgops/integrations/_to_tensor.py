"""The counterparts of the classes named ToTensor, in the arithmetic of torchvision's first version."""

from __future__ import annotations

from typing import Any

from torchvision.transforms import v2

from imgops.transforms import containers, conversion
from imgops.transforms._core.base import OperatorTransform


def to_tensor(given: Any = None, reader: Any = None) -> list[Any]:
    """Return the two steps of a conversion that takes no tensors, to which tensors of levels are added."""
    return [conversion._ImageToTensor(), conversion._LevelsToFloat()]


class MaybeToTensor(conversion.ToTensor):
    """A conversion of PIL images and arrays that returns tensors unchanged."""

    def __init__(self) -> None:
        v2.Transform.__init__(self)  # torchvision's constructor warns
        self._describe()

    def _get_name(self) -> str:
        return "ToTensor"


def maybe_to_tensor(given: Any, reader: Any) -> Any:
    return MaybeToTensor()


def before_normalize(steps: list[Any]) -> list[Any]:
    """Let tensors of levels become floats in each conversion that would hand them on to a Normalize.

    Normalize refuses levels, so that the given pipeline takes no tensors of them. Where it takes them, the
    conversion returns them unchanged.
    """
    found: list[Any] = []
    for i, step in enumerate(steps):
        is_before = type(step) is MaybeToTensor and _normalizes_first(steps[i + 1 :])
        found += [conversion._ImageToTensor(True), conversion._LevelsToFloat()] if is_before else [step]
    return found


def _normalizes_first(steps: list[Any]) -> bool:
    """Return whether a Normalize comes before all steps after which it may take a sample with levels."""
    for step in steps:
        if isinstance(step, conversion.Normalize):
            return True
        if isinstance(step, _OTHERWISE) or not isinstance(step, OperatorTransform):
            return False
    return False


_OTHERWISE = (
    conversion.ToDtype,
    conversion.ConvertImageDtype,
    conversion.Lambda,
    conversion.ToPureTensor,
    containers._Container,
)
