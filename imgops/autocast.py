"""What an autocast region does to the arguments of an operator: the policies that an operator can name.

An operator without a policy computes in the dtype that it is given, which is right where pixels only
move. The operator itself runs outside of the region.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor

#: The devices whose autocast regions change what an operator is given.
DEVICES = ("cpu", "cuda", "xpu", "mps")
_HALF = (torch.float16, torch.bfloat16)


def float32(device: str, args: Sequence[Any]) -> list[Any]:
    """Half precision goes in as float32, so the result is float32: for operators that do arithmetic."""
    return [a.float() if _takes_part(a, device) and a.dtype in _HALF else a for a in args]


def promote(device: str, args: Sequence[Any]) -> list[Any]:
    """The widest floating dtype of all: for operators that bring several images together."""
    dtypes = [a.dtype for a in args if _takes_part(a, device)]
    if len(dtypes) < 2:
        return list(args)
    widest = reduce(torch.promote_types, dtypes)
    return [a.to(widest) if _takes_part(a, device) else a for a in args]


def _takes_part(value: Any, device: str) -> bool:
    return isinstance(value, Tensor) and value.device.type == device and value.is_floating_point()
