"""OpenCV's tables for LAB and LUV on uint8, computed on the host in single precision, as OpenCV does.

Values are rounded to single precision before they are rounded to integers; a few entries depend on this.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from imgops.kernels import transfer

#: Tables on devices. They are never freed, because a captured graph may read them at any time.
_kept: dict[tuple[str, int | None], Tensor] = {}

_f = np.float32
_TO_XYZ = np.array(
    [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]], _f
)
#: The white point D65, and its u' and v' times 13, as in LUV.
_WHITE = np.array([0.950456, 1.0, 1.088754])
_DENSITY = _f(1) / _f(_WHITE @ [1, 15, 3])
U_WHITE, V_WHITE = float(_DENSITY * _f(52) * _f(_WHITE[0])), float(_DENSITY * _f(117))


def table(name: str, device: torch.device) -> Tensor:
    """Return the table ``"lab"``, ``"luv"`` or ``"back"`` on a device."""
    key = name, device.index
    found = _kept.get(key)
    if found is None:
        (found,), is_filled = transfer.move_constant(device, [torch.from_numpy(_MAKERS[name]())])
        if is_filled:
            _kept[key] = found
    return found


def _rounded(value: np.ndarray) -> np.ndarray:
    return np.rint(value.astype(_f)).astype(np.int64)


def _linear(value: np.ndarray) -> np.ndarray:
    """Remove sRGB's gamma."""
    x = value.astype(np.float64)
    return np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4).astype(_f)


def _to_lab() -> np.ndarray:
    """Return the linear light of the 256 levels with 11 bits, then the roots of its 2041 values with 15 bits."""
    light = _rounded(_f(2040) * _linear(np.arange(256, dtype=_f) / _f(255)))
    x = np.arange(2041) / 2040
    root = _rounded(2**15 * np.where(x < 0.008856, x * 7.787 + 16 / 116, np.cbrt(x)))
    return np.concatenate([light, root]).astype(np.int32)


def _to_luv() -> np.ndarray:
    """Return L, u and v, with 14 bits, for 33 shades each of red, green and blue, packed in 16 bits each."""
    shade = _linear(np.arange(33, dtype=_f) / _f(32))
    r, g, b = shade[:, None, None], shade[:, None], shade
    x, y, z = (b * row[2] + g * row[1] + r * row[0] for row in _TO_XYZ)
    line = (y.astype(np.float64) * (_f(841) / _f(108)) + _f(16) / _f(116)).astype(_f)
    root = np.where(y < _f(216) / _f(24389), line, np.cbrt(y.astype(np.float64)).astype(_f))
    light = root * _f(116) - _f(16)
    share = _f(52) / np.maximum(x + _f(15) * y + _f(3) * z, np.finfo(_f).eps)
    u, v = light * (x * share - _f(U_WHITE)), light * (_f(2.25) * y * share - _f(V_WHITE))
    scaled = (
        _f(16384) * light / _f(100),
        _f(16384) * (u + _f(134)) / _f(354),
        _f(16384) * (v + _f(140)) / _f(262),
    )
    parts = [_rounded(part) << (16 * i) for i, part in enumerate(scaled)]
    return (parts[0] | parts[1] | parts[2]).reshape(-1)


def _to_rgb() -> np.ndarray:
    """Return Y and, in the upper bits, its root for the 256 levels of L, then the levels of linear light with 12 bits."""
    i = np.arange(256)
    low = i * 2949120 / _f(414613)
    low_root = _f(16384) * (_f(16) / _f(116) + (i * 5).astype(_f) / _f(1479))
    root = (i * 1638400).astype(_f) / _f(29580) + _f(262144) / _f(116)
    y = np.where(i <= 20, _rounded(low), _rounded(root * root * root / _f(2**28)))
    y |= np.where(i <= 20, _rounded(low_root), _rounded(root)) << 16
    x = np.arange(4096) / 4096
    light = np.where(x <= 0.0031308, x * 12.92, x ** (1 / 2.4) * 1.055 - 0.055).astype(_f)
    return np.concatenate([y, _rounded(_f(255) * light)]).astype(np.int32)


_MAKERS: dict[str, Callable[[], np.ndarray]] = {"lab": _to_lab, "luv": _to_luv, "back": _to_rgb}
