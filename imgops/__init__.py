"""imgops: PIL and OpenCV as first-class PyTorch operators."""

try:
    import cv2 as _cv2  # noqa: F401
except ImportError as error:
    if "libGL" in str(error) or "libgthread" in str(error):
        raise ImportError(
            f"cv2 cannot be loaded ({error}): "
            "pip uninstall opencv-python && pip install opencv-python-headless"
        ) from error
    raise

from imgops import autocast, config, sharding, testing, vmap
from imgops._registry import operator
from imgops._rows import Gradient, decompositions
from imgops.inverse import adjoint, inverse
from imgops.ops.codec import decode_image, encode_image
from imgops.ops.compose import crop, pad, paste
from imgops.ops.mutation import accumulate, paste_, paste_out
from imgops.ops.resize import resize, resize_out

__version__ = "0.1.0.dev0"
__all__ = [
    "Gradient",
    "accumulate",
    "adjoint",
    "autocast",
    "config",
    "crop",
    "decode_image",
    "decompositions",
    "encode_image",
    "inverse",
    "operator",
    "pad",
    "paste",
    "paste_",
    "paste_out",
    "resize",
    "resize_out",
    "sharding",
    "testing",
    "vmap",
]
