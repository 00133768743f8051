"""PIL's and OpenCV's image operations as PyTorch operators.

An image is a tensor ``(..., C, H, W)``: uint8 from 0 to 255, or floating point, from 0 to 1 where an
operation assumes a range. Sizes are ``(height, width)``, positions ``(x, y)`` and boxes
``(left, top, right, bottom)``, in pixels from the top left corner. The leading dimensions are a batch, and
most parameters may be a tensor with one value for each sample.

``imgops.crop``, ``imgops.resize`` and the other functions run eagerly, under ``torch.compile``, autograd and
``torch.func``, on the CPU and on CUDA. ``from imgops import transforms as v2`` replaces
``torchvision.transforms.v2``; there ``per_sample=True`` gives each image of a batch a draw of its own.
``imgops.extend`` has what authors of operators need. ``imgops.show_config()`` prints what is
installed.
"""

try:
    import cv2 as _cv2  # noqa: F401
except ImportError as error:
    if "libGL" in str(error) or "libgthread" in str(error):
        raise ImportError(
            f"cv2 cannot be loaded ({error}): "
            "pip uninstall --yes opencv-python && "
            "pip install --force-reinstall --no-deps opencv-python-headless"
        ) from error
    raise

from importlib import import_module as _import_module
from typing import Any as _Any

from imgops import ops
from imgops._common import check as _check
from imgops._common.categories import NothingChangesWarning
from imgops._common.compare import SlowPathWarning
from imgops._operator.record import decompositions

# isort: split  (the operators come first in the tables)
from imgops.batches.encoded import EncodedImage, EncodedImages
from imgops.kernels.configuration import show_config
from imgops.ops.blending import *
from imgops.ops.blur import *
from imgops.ops.codec import *
from imgops.ops.color import *
from imgops.ops.color_space import *
from imgops.ops.edges import *
from imgops.ops.filter import *
from imgops.ops.fitting import *
from imgops.ops.geometry import *
from imgops.ops.histograms import *
from imgops.ops.inverse import adjoint, inverse
from imgops.ops.levels import *
from imgops.ops.maps import *
from imgops.ops.morphology import *
from imgops.ops.movement import *
from imgops.ops.mutation import *
from imgops.ops.noise import *
from imgops.ops.pyramid import *
from imgops.ops.regions import *
from imgops.ops.resize import *
from imgops.ops.thresholds import *

__version__ = "0.1.0"

__all__ = [
    "EncodedImage",
    "EncodedImages",
    "NothingChangesWarning",
    "PackedImages",  # noqa: F405, found by __getattr__
    "SlowPathWarning",
    "adjoint",
    "decompositions",
    "inverse",
    "show_config",
]
# The public functions of the operators, as the ``__all__`` of each family lists them.
for _family in vars(ops).values():
    for _name in getattr(_family, "__all__", ()):
        if not isinstance(globals()[_name], type):
            globals()[_name] = _check.names_keywords(globals()[_name])
            setattr(_family, _name, globals()[_name])  # where pickle looks for it
        __all__.append(_name)
__all__.sort()

#: Submodules that are loaded on first use: ``transforms`` imports torchvision, and few users write operators.
_LAZY = ("extend", "transforms")


def __getattr__(name: str) -> _Any:
    if name == "PackedImages":  # the first use registers its operators, which takes a while
        from imgops.batches import operators, packed

        operators.register()
        return packed.PackedImages
    if name in _LAZY:
        return _import_module(f"imgops.{name}")
    raise AttributeError(f"module 'imgops' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the names that users call, without the folders of the implementation."""
    return sorted([*__all__, *_LAZY, "__all__", "__doc__", "__file__", "__name__", "__path__", "__version__"])
