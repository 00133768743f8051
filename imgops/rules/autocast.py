"""Autocast policies: how an autocast region casts the arguments of an operator.

An operator without a policy computes in the dtype of its arguments, which is right if it only moves pixels.
The operator itself runs outside of the region.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor

__all__ = ["float32", "promote"]

#: The devices whose autocast regions change the arguments of an operator.
DEVICES = ("cpu", "cuda", "xpu", "mps")
_HALF = (torch.float16, torch.bfloat16)


def float32(device: str, args: Sequence[Any]) -> list[Any]:
    """Cast half precision to float32, so that the result is float32: for operators that do arithmetic."""
    return [a.float() if _takes_part(a, device) and a.dtype in _HALF else a for a in args]


def promote(device: str, args: Sequence[Any]) -> list[Any]:
    """Cast all floating point arguments to their widest dtype: for operators that combine several images."""
    dtypes = [a.dtype for a in args if _takes_part(a, device)]
    if len(dtypes) < 2:
        return list(args)
    widest = reduce(torch.promote_types, dtypes)
    return [a.to(widest) if _takes_part(a, device) else a for a in args]


def is_on(image: Tensor) -> bool:
    """Return whether an autocast region casts the images of this device."""
    return image.device.type in DEVICES and torch.is_autocast_enabled(image.device.type)


def _takes_part(value: Any, device: str) -> bool:
    return isinstance(value, Tensor) and value.device.type == device and value.is_floating_point()
