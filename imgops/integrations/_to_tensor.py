"""The counterparts of the classes named ToTensor, in the arithmetic of torchvision's first version."""

from __future__ import annotations

from typing import Any

from torchvision.transforms import v2

from imgops.transforms import containers, conversion
from imgops.transforms._core.base import OperatorTransform


def to_tensor(given: Any = None, reader: Any = None) -> list[Any]:
    """Return the two steps of ``ToTensor``; torchvision's takes no tensors, this one takes uint8 ones too."""
    return [conversion._ImageToTensor(), conversion._LevelsToFloat()]


class ToTensor(conversion.ToTensor):
    """A conversion of PIL images and arrays that returns tensors unchanged."""

    def __init__(self) -> None:
        v2.Transform.__init__(self)  # torchvision's constructor warns
        self._describe()


def maybe_to_tensor(given: Any, reader: Any) -> Any:
    return ToTensor()


def before_normalize(steps: list[Any]) -> list[Any]:
    """Let a ``MaybeToTensor`` before a Normalize divide uint8 tensors by 255.

    timm's returns tensors unchanged, so that a uint8 tensor would reach Normalize, which raises. Where the
    pipeline takes uint8 tensors to its end, they stay as they are.
    """
    found: list[Any] = []
    for i, step in enumerate(steps):
        # The first step of another kind, after which a Normalize may take a sample with levels, decides.
        later = (
            s for s in steps[i + 1 :] if isinstance(s, _DECIDING) or not isinstance(s, OperatorTransform)
        )
        if type(step) is ToTensor and isinstance(next(later, None), conversion.Normalize):
            first = conversion._ImageToTensor(True)
            first._only_images, first.training = step._only_images, step.training
            found += [first, conversion._LevelsToFloat()]
        else:
            found.append(step)
    return found


_DECIDING = (
    *(conversion.Normalize, conversion.ToDtype, conversion.ConvertImageDtype, conversion.Lambda),
    *(conversion.ToPureTensor, containers._Container),
)
