"""torchvision's ``transforms.v2.functional``, with imgops' operators for images, videos and masks.

Every name of torchvision's module is here. The functionals in ``OURS`` give PIL's and OpenCV's pixels, and
take their parameters as numbers or as tensors of one number per sample; bounding boxes, keypoints and PIL
images go to torchvision's own kernels, as do images of a dtype that no operator supports. Every other name is
torchvision's function itself. ``torch.jit.script`` of a functional scripts torchvision's: TorchScript cannot
call Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchvision.transforms.v2 import functional as _reference

from imgops.transforms.functional import _dispatch
from imgops.transforms.functional._dispatch import register_kernel as register_kernel

#: The functionals that call imgops' operators.
OURS: tuple[str, ...] = tuple(_dispatch.KERNELS)


def __getattr__(name: str) -> Callable[..., Any]:
    return getattr(_reference, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *(n for n in dir(_reference) if not n.startswith("_"))})


for _name, _function in _dispatch.FUNCTIONALS.items():
    globals()[_name] = _function

__all__ = sorted(n for n in dir(_reference) if not n.startswith("_"))
