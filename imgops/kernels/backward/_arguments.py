"""Arguments of the gradients' kernels: where they write and what they read, and sums over images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from imgops.decomposition._precision import summed, working_dtype
from imgops.kernels.cpu._arguments import real, room

Grads = Sequence[Tensor | None]


@contextmanager
def in_real(out: Tensor | None, grad: Tensor) -> Iterator[tuple[Tensor | None, Tensor]]:
    """Yield where a kernel writes and the gradient, in float32 or float64; then round to half precision."""
    made = None if out is None else room(out, working_dtype(out))
    yield made, real(grad)
    if out is not None and made is not None and made is not out:
        out.copy_(made)


def sum_of_products(one: np.ndarray, other: np.ndarray) -> float:
    """Return the sum of the products of two planes; the sums of the rows are added in double precision."""
    return float(np.einsum("yx,yx->y", one, other).sum(dtype=np.float64))


def add_per_image(grad: Tensor | None, sums: np.ndarray, image: Tensor) -> None:
    """Write sums ``(images, ...)`` to the gradient of a parameter, which images may share."""
    if grad is None:
        return
    total = torch.from_numpy(np.ascontiguousarray(sums)).reshape((*image.shape[:-3], *sums.shape[1:]))
    grad.copy_(summed(total, grad))
