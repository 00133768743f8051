"""torchvision's ``transforms.v2.functional``, with imgops' operators for images, videos and masks.

It has every name of torchvision's module. The functionals in ``OURS`` give PIL's and OpenCV's pixels, and
take their parameters as numbers or as tensors of one number per sample; torchvision's own kernels process
bounding boxes, keypoints, PIL images, and images of a dtype that no operator supports. Every other name is
torchvision's function itself. ``torch.jit.script`` of a functional compiles torchvision's, with a warning:
TorchScript cannot call Python.
"""

from torchvision.transforms.v2 import functional as _reference

from imgops.transforms.functional import _dispatch
from imgops.transforms.functional._dispatch import register_kernel as register_kernel

#: The functionals that call imgops' operators.
OURS: tuple[str, ...] = tuple(_dispatch.KERNELS)

__all__ = sorted(n for n in dir(_reference) if not n.startswith("_"))

globals().update({n: getattr(_reference, n) for n in __all__ if n not in globals()})
globals().update(_dispatch.FUNCTIONALS)


def __dir__() -> list[str]:
    return __all__
