"""Mutating operators written with functional ones, for gradients and for exported programs."""

from __future__ import annotations

import torch
from torch import Tensor

from imgops.autograd.movement import zeros

ops = torch.ops.imgops


def paste_(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int) -> None:
    """Paste with a differentiable operator; ``copy_`` keeps PyTorch's rules for leaves and views."""
    # The gradient of a float mask needs the previous pixels of the image.
    kept = image.clone() if mask is not None and mask.is_floating_point() else image
    image.copy_(ops.paste(kept, source, mask, left, top))


def paste_out(image: Tensor, source: Tensor, mask: Tensor | None, left: int, top: int, out: Tensor) -> None:
    out.copy_(ops.paste(image, source, mask, left, top))


def accumulate(
    total: Tensor, count: Tensor, source: Tensor, weight: Tensor | None, left: int, top: int
) -> None:
    share = torch.ones_like(source[..., :1, :, :]) if weight is None else weight
    added = source if weight is None else source * weight
    total.add_(ops.paste(zeros(total, total.shape), added, None, left, top))
    count.add_(ops.paste(zeros(count, count.shape), share, None, left, top))
