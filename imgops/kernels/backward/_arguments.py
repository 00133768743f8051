"""Arguments of the gradients' kernels: images in one memory format and dtype, and sums over images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from imgops.decomposition._precision import working_dtype

Grads = Sequence[Tensor | None]


@contextmanager
def in_real(out: Tensor | None, *images: Tensor) -> Iterator[tuple[Tensor | None, Tensor, Tensor]]:
    """Yield planar images in float32 or float64, and where a kernel writes; then round to half precision."""
    dtype = working_dtype(images[-1])
    grad, image = (x.detach().to(dtype).contiguous() for x in images)
    made = out
    if out is not None and (out.dtype != dtype or not out.is_contiguous()):
        made = torch.empty(out.shape, dtype=dtype, device="cpu")
    yield made, grad, image
    if made is not out and out is not None and made is not None:
        out.copy_(made)


def add_per_image(grad: Tensor | None, sums: np.ndarray, image: Tensor) -> None:
    """Write sums ``(images, ...)`` to the gradient of a parameter, which images may share."""
    if grad is None:
        return
    total = torch.from_numpy(np.ascontiguousarray(sums)).reshape((*image.shape[:-3], *sums.shape[1:]))
    size = (1,) * (total.ndim - grad.ndim) + tuple(grad.shape)
    grad.copy_(total.sum_to_size(size).reshape(grad.shape))
