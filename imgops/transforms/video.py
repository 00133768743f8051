"""Transforms of the frames of videos."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import v2

from imgops._operator import subclass
from imgops.transforms._core.arguments import one_number
from imgops.transforms._core.base import OperatorTransform
from imgops.transforms._core.parameters import Params
from imgops.transforms.functional import _dispatch, _geometry

__all__ = ["UniformTemporalSubsample"]


class UniformTemporalSubsample(OperatorTransform, v2.UniformTemporalSubsample):
    """Keep evenly spaced frames of a video, as torchvision's UniformTemporalSubsample does.

    The transform changes videos ``(..., T, C, H, W)``; images are not changed. The i-th of the n frames that
    are kept is the frame ``i * (T - 1) // (n - 1)``. torchvision computes this index in single precision, and
    in some cases, such as 15 of 3 frames, takes the previous frame.

    Parameters
    ----------
    num_samples : int
        The number of frames that are kept, from 0 on; frames repeat if the video has fewer.

    Raises
    ------
    TypeError, ValueError
        If ``num_samples`` is not an integer from 0 on, or a video has no frame.
    """

    _goes_back = False

    def __init__(self, num_samples: int) -> None:
        super().__init__(one_number(self, "num_samples", num_samples, 0, whole=True))  # type: ignore[call-arg]
        self._describe()

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        if isinstance(inpt, Tensor) and (type(inpt) is Tensor or isinstance(inpt, tv_tensors.Video)):
            _geometry.require_frames(self, subclass.plain(inpt), self.num_samples)
        return super().transform(inpt, params)  # type: ignore[misc]

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        _geometry.require_frames(self, image, self.num_samples)
        return _dispatch.KERNELS["uniform_temporal_subsample"](image, self.num_samples)

    def _plan(self, shape: Any, program: Any) -> None:
        return None
