"""Fakes of the operators that write to their arguments; these fakes only validate.

One place checks for all operators that the tensors they write to share no memory: ``_operator.call``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from imgops._common import check
from imgops.fake.movement import check_paste, check_plane, check_position


def paste_(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> None:
    check_paste("paste_", image, source, mask, left, top)


def paste_out(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int, out: Tensor) -> None:
    check_paste("paste_out", image, source, mask, left, top)
    check.out("paste_out", out, "image", image, *image.shape[-2:])


def accumulate(
    total: Tensor, count: Tensor, source: Tensor, weight: Tensor | None, left: int, top: int
) -> None:
    op = "accumulate"
    check.image(op, "total", total)
    check.dtype(op, "total", total, torch.float32, torch.float64)
    tensors = {"count": count, "source": source} | ({} if weight is None else {"weight": weight})
    for name, value in tensors.items():
        check.image(op, name, value)
        check.same_dtype_and_device(op, name, value, "total", total)
        check.batch(op, name, value, "total", total)
    check_plane(op, "count", count, total, "total")
    check.same_channels(op, "source", source, "total", total)
    if weight is not None:
        check_plane(op, "weight", weight, source)
    check_position(op, left, top)
