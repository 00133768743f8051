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

from imgops.ops.compose import crop, pad, paste
from imgops.ops.resize import resize

__version__ = "0.1.0.dev0"
__all__ = ["crop", "pad", "paste", "resize"]
