"""Erosion, dilation and the operations that consist of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import torch
from torch import Tensor

import imgops
from imgops.transforms._core.arguments import WIDEST, in_range, one_of
from imgops.transforms._core.parameters import IS_APPLIED, Parameter
from imgops.transforms._core.probabilistic import ProbabilisticTransform, integer

__all__ = ["RandomMorphology"]

#: The shapes of ``cv2.getStructuringElement``.
SHAPES = {"rectangle": cv2.MORPH_RECT, "cross": cv2.MORPH_CROSS, "ellipse": cv2.MORPH_ELLIPSE}


class RandomMorphology(ProbabilisticTransform):
    """Erode or dilate an image, or apply a combination of these operations, with a probability.

    Parameters
    ----------
    operation : {"erode", "dilate", "open", "close", "gradient", "tophat", "blackhat"}
        The operation: see :func:`imgops.morphology`.
    kernel_size : int or (int, int)
        The range of the structuring element's side in pixels.
    shape : {"ellipse", "rectangle", "cross"}
        The shape of the element, as in ``cv2.getStructuringElement``.

    Notes
    -----
    Reference: ``cv2.morphologyEx``, as in albumentations' Morphological, bit-exact. The transform is a
    filter: masks, boxes and keypoints are unchanged.
    """

    _random_parameters = (IS_APPLIED, Parameter("kernel_size"))
    _known = ("kernel_size",)

    def __init__(
        self,
        operation: str = "dilate",
        kernel_size: int | Sequence[int] = (2, 3),
        shape: str = "ellipse",
        p: float = 0.5,
        *,
        per_sample: bool = False,
        generator: torch.Generator | None = None,
    ) -> None:
        operations = ("erode", "dilate", "open", "close", "gradient", "tophat", "blackhat")
        arguments = {
            "operation": one_of(self, "operation", operation, operations),
            "kernel_size": in_range(self, "kernel_size", kernel_size, 1, WIDEST, whole=True),
            "shape": one_of(self, "shape", shape, tuple(SHAPES)),
        }
        super().__init__(p, per_sample, generator, **arguments)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"kernel_size": integer(self.kernel_size)}

    def _change_image(self, image: Tensor, kernel_size: float) -> Tensor:
        side = int(kernel_size)
        element = torch.from_numpy(cv2.getStructuringElement(SHAPES[self.shape], (side, side)))
        return imgops.morphology(image, self.operation, element)
