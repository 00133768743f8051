"""Gradient of equalize, which is piecewise constant."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from imgops.autograd._sums import zeros


def equalize_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return zeros(ctx, grad)
