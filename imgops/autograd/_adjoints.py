"""Transposes of linear filters: the turned kernel over a border of zeros, which is then folded back."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn.functional import pad as constant_pad

from imgops._operator.record import calls as ops
from imgops.decomposition._borders import margins
from imgops.decomposition._precision import working_dtype


def folded(
    grad: Tensor, rows: int, columns: int, padding_mode: str, transpose: Callable[[Tensor], Tensor]
) -> Tensor:
    """Apply the transpose of a filter of a size; half precision is computed in float32 and rounded once."""
    top, bottom, left, right = margins(rows, columns)
    around = left, top, right, bottom
    wide = ops.pad(grad.to(working_dtype(grad)), None, *around, "constant")
    return ops.pad_adjoint(transpose(wide), *around, padding_mode).to(grad.dtype)


def adjoint(grad: Tensor, kernel: Tensor, padding_mode: str) -> Tensor:
    rows, columns = kernel.shape[-2:]
    # The anchor of a turned kernel of an even size lies on the other side.
    turned = constant_pad(kernel.flip(-1, -2), ((columns + 1) % 2, 0, (rows + 1) % 2, 0))
    return folded(grad, rows, columns, padding_mode, lambda wide: ops.filter2d(wide, turned, "constant"))
