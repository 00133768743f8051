"""CPU kernel of the gradient of downscale: the adjoints of both resizes."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from imgops.kernels.backward._arguments import Grads, in_real
from imgops.kernels.cpu import _threads
from imgops.kernels.cpu._arguments import number_per_image
from imgops.kernels.cpu.resize import resize_adjoint


def downscale(grads: Grads, grad: Tensor, image: Tensor, factor: Tensor, down: str, up: str) -> Any:
    if image.numel() == 0:
        return NotImplemented
    height, width = image.shape[-2:]
    if grads[1] is not None:  # the smaller size is a whole number
        grads[1].zero_()
    if grads[0] is None:
        return None
    shares = number_per_image(factor, image) if factor.numel() > 1 else [float(factor)]
    with in_real(grads[0], grad) as (out, given):
        images = cast("Tensor", out), given
        targets, sources = (x.reshape(len(shares), -1, *x.shape[-3:]) for x in images)

        def work(start: int, stop: int) -> None:
            for i in range(start, stop):
                high, wide = (max(round(side * float(shares[i])), 1) for side in (height, width))
                small = torch.empty(*sources[i].shape[:-2], high, wide, dtype=given.dtype, device="cpu")
                resize_adjoint(small, sources[i], None, high, wide, up, False)
                resize_adjoint(targets[i], small, None, height, width, down, False)

        _threads.split(len(shares), image.numel(), work)
    return None
