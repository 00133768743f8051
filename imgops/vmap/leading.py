"""The rule for operators over ``(..., C, H, W)``: a batch is one more leading dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def leading(name: str, core: Sequence[int]) -> Callable[..., tuple[Tensor, int]]:
    """The batching rule of ``imgops::name``.

    ``core`` has the number of trailing dimensions of each tensor argument: 3 for an image, whose
    leading dimensions must all be there, 1 for a parameter, which broadcasts against them.
    """

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Tensor, int]:
        tensors = list(args[: len(core)])
        # The leading dimensions of one sample, read off the first image.
        ndim = tensors[0].ndim - core[0] - (in_dims[0] is not None)
        for i, (x, dim) in enumerate(zip(tensors, in_dims, strict=False)):
            if x is None:
                continue
            if dim is not None:
                x = x.movedim(dim, 0)
                if core[i] < 3:  # a parameter of one sample may have fewer dimensions than a batch of them
                    missing = ndim + core[i] - (x.ndim - 1)
                    x = x.reshape(x.shape[0], *(1,) * missing, *x.shape[1:])
            elif core[i] == 3:
                x = x.expand(info.batch_size, *x.shape)
            tensors[i] = x
        overload = getattr(torch.ops.imgops, name).default
        return overload(*tensors, *args[len(core) :]), 0

    return rule
