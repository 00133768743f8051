"""Transforms of the frames of videos."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torchvision.transforms import v2

from imgops.transforms._core.base import OperatorTransform
from imgops.transforms._core.parameters import Params
from imgops.transforms.functional import _dispatch

__all__ = ["UniformTemporalSubsample"]


class UniformTemporalSubsample(OperatorTransform, v2.UniformTemporalSubsample):
    """Keep evenly spaced frames of a video, as torchvision's UniformTemporalSubsample does.

    The transform changes videos ``(..., T, C, H, W)``; images stay as they are. The i-th of n frames that are
    kept is the frame ``i * (T - 1) // (n - 1)``. torchvision computes this in single precision, and takes the
    frame before it in some cases, such as 15 of 3 frames.

    Parameters
    ----------
    num_samples : int
        The number of frames that are kept; frames repeat if the video has fewer.
    """

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return _dispatch.KERNELS["uniform_temporal_subsample"](image, self.num_samples)

    def _plan(self, shape: Any, program: Any) -> None:
        return None
