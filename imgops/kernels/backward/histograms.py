"""CPU kernels of the gradients of autocontrast and match_histograms."""

from __future__ import annotations

from typing import Any, cast

from torch import Tensor

from imgops.kernels.backward._arguments import Grads, in_real
from imgops.kernels.cpu import native
from imgops.kernels.cpu._arguments import real


def autocontrast(grads: Grads, grad: Tensor, image: Tensor) -> Any:
    if image.numel() == 0 or not native.is_built():
        return NotImplemented
    with in_real(grads[0], grad) as (out, given):
        native.stretch_back(cast("Tensor", out), real(image), given)
    return None


def match_histograms(grads: Grads, grad: Tensor, image: Tensor, reference: Tensor) -> Any:
    of_image, of_reference = grads
    if of_reference is not None or of_image is None:
        return NotImplemented
    of_image.zero_()  # the image decides which values of the reference are shown, in steps
    return None
