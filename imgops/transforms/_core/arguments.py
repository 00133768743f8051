"""Checks of the arguments and inputs of the transforms that torchvision does not have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode

from imgops._common import check
from imgops._common.torch_private import raise_error
from imgops.transforms._core import torchvision_private

#: The largest side of a window that the operators accept.
WIDEST = check.WIDEST
#: The limit of integers that have no other limit, because OpenCV and PIL count pixels with int32.
_MOST = 2**31 - 1


def name_of(owner: Any) -> str:
    """Return the name with which an error begins: the class of a transform, or the name of a function."""
    return owner if isinstance(owner, str) else type(owner).__name__


def _is_number(value: Any, whole: bool) -> bool:
    return isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)


def _describe_bounds(low: float, high: float, whole: bool, odd: bool, given: Sequence[Any]) -> str:
    """Describe for an error message the number that an argument must be, where these numbers were given."""
    real = "a number" if all(abs(v) <= _LARGEST for v in given) else "a finite number"
    kind = "an odd integer" if odd else "an integer" if whole else real
    bounds = f" from {low:.15g}" if low > float("-inf") else ""
    # The limit of all integers is of interest to whoever exceeds it.
    is_limit = high == (_MOST if whole else float("inf")) and not any(v > high for v in given)
    bounds += (" on" if bounds else "") if is_limit else f" to {high:.15g}"
    return kind + bounds


def in_range(
    owner: Any,
    name: str,
    value: Any,
    low: float = float("-inf"),
    high: float = float("inf"),
    *,
    whole: bool = False,
    odd: bool = False,
) -> tuple[Any, Any]:
    """Check an argument that is a number or a range ``(lowest, highest)``, and return it as a range."""
    whole = whole or odd
    high = min(high, _MOST) if whole else high
    pair = tuple(map(check.plain, value if isinstance(value, (tuple, list)) else (value, value)))
    numbers = all(_is_number(v, whole) for v in pair)
    if (
        len(pair) == 2
        and numbers
        and max(low, -_LARGEST) <= pair[0] <= pair[1] <= min(high, _LARGEST)
        and not (odd and (pair[0] & pair[1] & 1) == 0)
    ):
        return pair if whole else (_real_number(pair[0]), _real_number(pair[1]))
    bounds = _describe_bounds(low, high, whole, odd, pair if numbers else ())
    must = f"{name} must be {bounds} or a range (lowest, highest) of such"
    raise (ValueError if numbers else TypeError)(f"{name_of(owner)}: {must}, got {check.shown(value)}")


#: The limit of real numbers: float32, in which images are computed, can hold it.
_LARGEST = 3e38


def _real_number(value: Any) -> Any:
    """Convert an integer that does not fit into 64 bits to a float, because libraries accept that."""
    return value if abs(value) < 2**63 else float(value)


def one_number(
    owner: Any,
    name: str,
    value: Any,
    low: float = float("-inf"),
    high: float = float("inf"),
    *,
    whole: bool = False,
) -> Any:
    """Check an argument that must be one number, not a range, and return it."""
    high = min(high, _MOST) if whole else high
    value = check.plain(value)
    known = _is_number(value, whole)
    if known and max(low, -_LARGEST) <= value <= min(high, _LARGEST):
        return value if whole else _real_number(value)
    must = f"{name} must be {_describe_bounds(low, high, whole, False, [value] if known else [])}"
    raise (ValueError if known else TypeError)(f"{name_of(owner)}: {must}, got {check.shown(value)}")


def scalar(
    op: str, name: str, value: Any, low: float | None = None, high: float | None = None
) -> float | Tensor:
    """Check an argument of a functional that is a number or a tensor, in a graph too, and return it."""
    if isinstance(value, Tensor):
        return value
    must = f"{name} must be a number or a Tensor"
    if not isinstance(value, (int, float, torch.SymInt, torch.SymFloat)):
        check.fail(TypeError, op, must, check.shown(value))
    if (low is not None and value < low) or (high is not None and not value <= high):
        bounds = f"from {low} on" if high is None else f"from {low} to {high}"
        got = int(value) if isinstance(value, (int, torch.SymInt)) else float(value)
        check.fail(ValueError, op, f"{name} must be {bounds}", got)
    return value  # type: ignore[return-value]


def integer(op: str, name: str, value: Any) -> int:
    """Return an argument of a functional that is an integer; a tensor of one is read, in a graph too."""
    if type(value) is int:
        return value
    if isinstance(value, Tensor) and value.numel() == 1 and is_integral(value):
        return value.item()  # type: ignore[return-value]
    return check.integer(op, f"{name} must be an integer", value)


def integers(op: str, name: str, value: Any, counts: Sequence[int]) -> list[int]:
    """Return an argument of a functional that is an integer, a sequence of integers, or a tensor of them."""
    if type(value) in (tuple, list) and len(value) in counts and check.all_int(value):
        return list(value)
    if isinstance(value, Tensor) and value.ndim == 1:
        value = value.unbind()
    each = value if isinstance(value, (tuple, list)) else (value,)
    if len(each) not in counts:
        listed = " or ".join(map(str, counts))
        check.fail(ValueError, op, f"{name} must be an integer, or a sequence of {listed}", len(each))
    return [integer(op, name, v) for v in each]


def is_integral(value: Tensor) -> bool:
    return not (value.dtype.is_floating_point or value.dtype.is_complex or value.dtype == torch.bool)


def switch(owner: Any, name: str, value: Any) -> bool:
    return check.switch(name_of(owner), name, value)


def one_of(owner: Any, name: str, value: Any, choices: Sequence[str]) -> Any:
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(c) for c in choices)
        raise_error(
            ValueError,
            f"{name_of(owner)}: {name} must be one of {listed}, got {check.shown(value)}",
        )
    return value


def interpolation_of(owner: Any, value: Any) -> InterpolationMode:
    """Return torchvision's interpolation for a mode, a name or PIL's number."""
    try:
        return torchvision_private.interpolation_mode(value)
    except (KeyError, TypeError, ValueError):
        names = ", ".join(repr(mode.value) for mode in InterpolationMode)
        must = f"interpolation must be an InterpolationMode, or one of {names}"
        error = ValueError if isinstance(value, (str, int)) else TypeError
        raise error(f"{name_of(owner)}: {must}, got {check.shown(value)}") from None


def size_of(
    owner: Any, name: str, value: Any, most: int = _MOST, pair_of: str = "a height and a width"
) -> tuple[int, int]:
    """Check a height and a width, or another pair, at least 1, and return it; one number is both."""
    pair = tuple(map(check.plain, value if isinstance(value, (tuple, list)) else (value, value)))
    numbers = all(_is_number(v, True) for v in pair)
    if len(pair) == 2 and numbers and min(pair) > 0 and max(pair) <= most and pair[0] * pair[1] <= _MOST:
        return pair
    limit = "from 1 on" if most == _MOST else f"from 1 to {most}"
    must = f"{name} must be an integer {limit}, or {pair_of}"
    if most == _MOST and numbers and len(pair) == 2 and min(pair) > 0:
        must = f"{name} must have a product of at most {_MOST}"
    raise (ValueError if numbers else TypeError)(f"{name_of(owner)}: {must}, got {check.shown(value)}")


def fill_values(owner: Any, name: str, value: Any) -> Any:
    """Check an argument that is a number, or a sequence with one for each channel, and return it."""
    plain = value.tolist() if isinstance(value, (Tensor, np.ndarray, np.generic)) else value
    if isinstance(plain, (tuple, list)):
        plain = (tuple if isinstance(plain, tuple) else list)(map(check.plain, plain))
    numbers = list(plain) if isinstance(plain, (tuple, list)) else [plain]
    known = all(isinstance(v, (int, float)) for v in numbers)
    if known and numbers and all(abs(v) <= (2**63 - 1 if isinstance(v, int) else _LARGEST) for v in numbers):
        return value if isinstance(value, Tensor) else plain
    must = f"{name} must be a finite number, or one for each channel"
    raise (ValueError if known else TypeError)(f"{name_of(owner)}: {must}, got {check.shown(value)}")


def fill_tensor(owner: Any, name: str, value: Any, image: Tensor) -> Tensor:
    """Return a value for all channels of an image, or one for each, as a tensor ``(1 or C, 1, 1)``."""
    values = torch.as_tensor(value, dtype=torch.float64, device="cpu").reshape(-1)
    if len(values) not in (1, image.shape[-3]):
        channels = check.number(image.shape[-3])
        must = f"{name_of(owner)}: {name} must have 1 value or {channels}, one for each channel"
        raise_error(ValueError, f"{must}, got {len(values)}")
    check_held(owner, name, value, image.dtype)
    return values.to(image.dtype)[:, None, None].to(image.device, non_blocking=True)


def check_held(owner: Any, name: str, value: Any, dtype: torch.dtype) -> None:
    """Raise if a dtype cannot hold the values, because a conversion would change them."""
    if dtype == torch.bool or dtype.is_complex:
        return
    limits: Any = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    values = value.flatten().tolist() if isinstance(value, Tensor) else value
    each = values if isinstance(values, (tuple, list)) else (values,)
    if any(not limits.min <= v <= limits.max for v in each):
        must = f"{name} must be from {limits.min:.15g} to {limits.max:.15g} for {dtype}"
        raise_error(ValueError, f"{name_of(owner)}: {must}, got {check.shown(value)}")


def require_planes(owner: Any, inpt: Any) -> None:
    """Raise if a plain tensor has fewer than 3 dimensions; tv_tensors add the dimensions that they need."""
    if type(inpt) is Tensor and inpt.ndim < 3:
        must = f"{name_of(owner)}: image must have at least 3 dimensions (..., C, H, W)"
        raise_error(ValueError, f"{must}, got shape {check.written(inpt.shape)}")


def region_of(owner: Any, name: str, value: Any) -> tuple[float, float, float, float]:
    if isinstance(value, (tuple, list)):
        value = [check.plain(v) for v in value]
    must = f"{name_of(owner)}: {name} must be left, top, right and bottom as shares from 0 to 1"
    if not isinstance(value, (tuple, list)) or not all(isinstance(v, (int, float)) for v in value):
        raise_error(TypeError, f"{must}, got {check.shown(value)}")
    if len(value) != 4 or not (0 <= value[0] < value[2] <= 1 and 0 <= value[1] < value[3] <= 1):
        raise_error(ValueError, f"{must}, got {check.shown(tuple(value))}")
    left, top, right, bottom = value
    return left, top, right, bottom


def color_of(owner: Any, name: str, value: Any) -> tuple[int, int, int]:
    if isinstance(value, (tuple, list)):
        value = [check.plain(v) for v in value]
    must = f"{name_of(owner)}: {name} must be 3 integers from 0 to 255 (red, green, blue)"
    if not isinstance(value, (tuple, list)) or not all(_is_number(v, True) for v in value):
        raise_error(TypeError, f"{must}, got {check.shown(value)}")
    if len(value) != 3 or not all(0 <= v <= 255 for v in value):
        raise_error(ValueError, f"{must}, got {check.shown(tuple(value))}")
    red, green, blue = value
    return red, green, blue
