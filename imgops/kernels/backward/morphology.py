"""CPU kernels of the gradients of erode and dilate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from imgops.kernels.backward._arguments import Grads
from imgops.kernels.backward._windows import choice
from imgops.kernels.cpu import morphology
from imgops.kernels.cpu._arguments import array_per_image


def erode(grads: Grads, grad: Tensor, image: Tensor, kernel: Tensor, padding_mode: str) -> Any:
    return _of(morphology.erode, grads, grad, image, kernel, padding_mode)


def dilate(grads: Grads, grad: Tensor, image: Tensor, kernel: Tensor, padding_mode: str) -> Any:
    return _of(morphology.dilate, grads, grad, image, kernel, padding_mode)


def _of(
    forward: Callable[..., None], grads: Grads, grad: Tensor, image: Tensor, kernel: Tensor, padding_mode: str
) -> Any:
    members = array_per_image(kernel, image, 2) != 0
    return choice(grads, grad, image, members, padding_mode, lambda *of: forward(*of, kernel, padding_mode))
