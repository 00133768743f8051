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
from imgops.ops.color import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
    color_matrix,
    color_sequence,
    grayscale,
)
from imgops.ops.compose import crop, pad, paste
from imgops.ops.filter import adjust_sharpness, filter2d, gaussian_blur
from imgops.ops.geometry import flip, remap, rotate90, warp_affine, warp_perspective
from imgops.ops.levels import adjust_gamma, autocontrast, equalize, invert, lut, posterize, solarize
from imgops.ops.mix import blend, erase
from imgops.ops.mutation import accumulate, paste_, paste_out
from imgops.ops.resize import resize, resize_out, resized_crop

__version__ = "0.1.0.dev0"
__all__ = [
    "Gradient",
    "accumulate",
    "adjoint",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "adjust_sharpness",
    "autocast",
    "autocontrast",
    "blend",
    "color_matrix",
    "color_sequence",
    "config",
    "crop",
    "decode_image",
    "decompositions",
    "encode_image",
    "equalize",
    "erase",
    "filter2d",
    "flip",
    "gaussian_blur",
    "grayscale",
    "inverse",
    "invert",
    "lut",
    "operator",
    "pad",
    "paste",
    "paste_",
    "paste_out",
    "posterize",
    "remap",
    "resize",
    "resize_out",
    "resized_crop",
    "rotate90",
    "sharding",
    "solarize",
    "testing",
    "vmap",
    "warp_affine",
    "warp_perspective",
]
