"""CPU kernels of the gradients of the color operators.

A kernel ``(grads, grad, *args)`` fills the tensors of ``grads``, None for an argument whose gradient is not
wanted, and returns ``NotImplemented`` where the decomposition is differentiated instead.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np
from torch import Tensor

from imgops.kernels.backward._arguments import Grads, add_per_image, in_real
from imgops.kernels.cpu import native
from imgops.kernels.cpu._arguments import array_per_image, real
from imgops.kernels.cpu.color import chosen_first


def _steps(
    grads: Grads, grad: Tensor, image: Tensor, kinds: np.ndarray, amounts: np.ndarray
) -> np.ndarray | None:
    """Fill the gradient of the image; return those of the steps' amounts, ``(images, steps)``."""
    if image.shape[-3] != 3 or image.numel() == 0 or not native.is_built():
        return None
    with in_real(grads[0], grad) as (out, given):
        return native.sequence_back(out, real(image), given, kinds, amounts)


def _one_step(name: str, grads: Grads, grad: Tensor, image: Tensor, factor: Tensor) -> Any:
    amounts = array_per_image(factor.double(), image, 0).reshape(-1, 1)
    found = _steps(grads, grad, image, np.full(amounts.shape, native.STEPS.index(name), np.int32), amounts)
    if found is None:
        return NotImplemented
    add_per_image(grads[1], found[:, 0], image)
    return None


adjust_contrast, adjust_saturation, adjust_hue = (
    partial(_one_step, name) for name in ("contrast", "saturation", "hue")
)


def color_sequence(
    grads: Grads, grad: Tensor, image: Tensor, order: Tensor, parameters: Tensor, names: str
) -> Any:
    each, batch = names.split(","), image.shape[:-3]
    orders = order.detach().expand(*batch, order.shape[-1]).reshape(-1, order.shape[-1]).numpy()
    numbers = parameters.detach().double().expand(*batch, len(each)).reshape(-1, len(each)).numpy()
    chosen, is_step = chosen_first(orders, len(each))
    count = int(is_step.sum(1).max(initial=0))
    chosen, is_step = chosen[:, :count], is_step[:, :count]
    known = np.array([native.STEPS.index(n) if n in native.STEPS else -1 for n in each], np.int32)
    kinds = np.where(is_step, known[chosen], -1).astype(np.int32)
    if count <= 1 and {each[k] for k in chosen[is_step]} <= {"invert", "autocontrast"}:
        rows = zip(chosen, is_step, strict=True)
        steps = [each[row[0]] if is_one.any() else "" for row, is_one in rows]
        return _one_or_none(grads, grad, image, steps)
    if not 0 < count <= native.LONGEST_SEQUENCE_BACK or (known[chosen][is_step] < 0).any():
        return NotImplemented
    found = _steps(grads, grad, image, kinds, np.take_along_axis(numbers, chosen, 1))
    if found is None:
        return NotImplemented
    if grads[2] is not None:
        total = np.zeros(numbers.shape)
        np.add.at(total, (np.arange(len(total))[:, None], chosen), np.where(is_step, found, 0))
        add_per_image(grads[2], total, image)
    return None


def _one_or_none(grads: Grads, grad: Tensor, image: Tensor, steps: list[str]) -> Any:
    """Fill the gradients if each image was inverted, stretched or left alone."""
    if image.numel() == 0 or not native.is_built():
        return NotImplemented
    if grads[2] is not None:  # these steps take no amount
        grads[2].zero_()
    if grads[0] is None:
        return None
    with in_real(grads[0], grad) as (out, given):
        made, x = cast("Tensor", out), real(image)
        made.copy_(given)
        for i, step in zip(np.ndindex(*image.shape[:-3]), steps, strict=True):
            if step == "autocontrast":
                native.stretch_back(made[i], x[i], given[i])
            elif step:
                made[i].neg_()
    return None
