"""The counterparts of the classes named ToTensor, in the arithmetic of torchvision's first version."""

from __future__ import annotations

from typing import Any

from torchvision.transforms import v2

from imgops.transforms import containers, conversion
from imgops.transforms._core.base import OperatorTransform


def to_tensor(given: Any = None, reader: Any = None) -> list[Any]:
    """Return the two steps of a conversion that takes no tensors, to which tensors of levels are added."""
    return [conversion._ImageToTensor(), conversion._LevelsToFloat()]


class ToTensor(conversion.ToTensor):
    """A conversion of PIL images and arrays that returns tensors unchanged."""

    def __init__(self) -> None:
        v2.Transform.__init__(self)  # torchvision's constructor warns
        self._describe()


def maybe_to_tensor(given: Any, reader: Any) -> Any:
    return ToTensor()


def before_normalize(steps: list[Any]) -> list[Any]:
    """Let tensors of levels become floats in each conversion that would hand them on to a Normalize.

    Normalize refuses levels, so that the given pipeline takes no tensors of them. Where it takes them, the
    conversion returns them unchanged.
    """
    found: list[Any] = []
    for i, step in enumerate(steps):
        # The first step of another kind, after which a Normalize may take a sample with levels, decides.
        later = (
            s for s in steps[i + 1 :] if isinstance(s, _DECIDING) or not isinstance(s, OperatorTransform)
        )
        if type(step) is ToTensor and isinstance(next(later, None), conversion.Normalize):
            found += [conversion._ImageToTensor(True), conversion._LevelsToFloat()]
        else:
            found.append(step)
    return found


_DECIDING = (
    *(conversion.Normalize, conversion.ToDtype, conversion.ConvertImageDtype, conversion.Lambda),
    *(conversion.ToPureTensor, containers._Container),
)
