"""The gradient of box_blur, which is its own transpose inside of an image."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops._operator.record import calls as ops
from imgops.autograd._adjoints import adjoint, folded


def box_blur_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, ctx.columns, ctx.rows, ctx.padding_mode = inputs


def box_blur_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    size = rows, columns = ctx.rows, ctx.columns
    if rows % 2 and columns % 2:
        of_image = folded(
            grad, *size, ctx.padding_mode, lambda wide: ops.box_blur(wide, columns, rows, "constant")
        )
        return of_image, None, None, None
    kernel = torch.full(size, 1 / (rows * columns), dtype=torch.float64, device="cpu")
    return adjoint(grad, kernel, ctx.padding_mode), None, None, None
