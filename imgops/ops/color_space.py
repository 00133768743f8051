"""Conversions between color spaces."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check
from imgops._operator.declare import operator
from imgops.decomposition import color_space as decomposition
from imgops.fake import color_space as fake
from imgops.kernels import cuda
from imgops.kernels.backward import color_space as backward
from imgops.kernels.cpu import color_space as cpu
from imgops.rules import packed, sharding, vmap

__all__ = ["cvt_color"]


@operator(
    "imgops::cvt_color",
    kernel=cpu.cvt_color,
    cuda=cuda.Kernel("color_space.cvt_color"),
    fake=fake.cvt_color,
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.cvt_color,
    backward=backward.cvt_color,
    packed=packed.Packed(channels=lambda channels, code: fake.CHANNELS[code.rpartition("2")[2]]),
)
def _cvt_color(image: Tensor, code: str) -> Tensor: ...


def cvt_color(image: Tensor, code: str) -> Tensor:
    """Convert an image to another color space.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point, with the channels of the color space that
        ``code`` begins with; uint16 for gray, RGB, YCrCb, YUV and XYZ only, as in OpenCV, from 0 to 65535.
        Floats: RGB, gray, XYZ and the chroma of YCrCb and YUV (around 0.5) are in [0, 1]; hue is in degrees
        from 0 to 360; saturation, value and lightness of HSV and HLS are in [0, 1]; L of LAB and LUV is from
        0 to 100. uint8: 0 to 255, except for hue, which is halved (0 to 179), or scaled to 255 in "hsv_full".
        Any device.
    code : str
        ``"<from>2<to>"``: "rgb" or "bgr" to or from "hsv", "hsv_full", "hls", "lab", "luv", "ycrcb", "yuv"
        and "xyz"; any two of "rgb", "bgr", "rgba", "bgra" and "gray".

    Returns
    -------
    Tensor
        ``(..., C', H, W)`` in the dtype and memory format of ``image``, with the channels of the new space.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or is uint16 for another color space.
    ValueError
        If ``code`` is unknown (the message names similar ones), or the channels do not fit.

    Notes
    -----
    Reference: ``cv2.cvtColor``, bit-exact on uint8, uint16 and float32. float64 is computed by
    the formula in double precision; half precision is computed in float32 and rounded once. On CUDA, uint8
    has the bits of OpenCV on processors with AVX2, except that 4 values in a million are off by 1 in
    "rgb2luv" and "hsv_full2rgb". Other accelerators use ATen: there uint8 gray, YCrCb, YUV, XYZ and the
    conversion to HSV have OpenCV's integer arithmetic; HLS, and the conversions from HSV and to LAB and LUV,
    are within 1 level; those from LAB and LUV are within 3 for colors that RGB can represent. float32 is
    within 1e-5 on accelerators, but within 0.5 for "rgb2lab" and 0.02 for "rgb2luv", which OpenCV
    interpolates from coarse tables. The gradient is derived from the formula; the hue of a gray pixel has
    none. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> orange = torch.tensor([1.0, 0.5, 0.0]).reshape(3, 1, 1)
    >>> imgops.cvt_color(orange, "rgb2hsv").flatten()
    tensor([30.0000,  1.0000,  1.0000])
    """
    check.tensor_or_batch("cvt_color", image)
    return _cvt_color(image, code.lower() if isinstance(code, str) else code)  # OpenCV writes "RGB2HSV"
