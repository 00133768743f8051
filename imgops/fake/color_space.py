"""The fake of cvt_color."""

from __future__ import annotations

from difflib import get_close_matches

import torch
from torch import Tensor

from imgops._common import check, layout

#: The number of channels of each color space.
CHANNELS = {"gray": 1, "rgb": 3, "bgr": 3, "rgba": 4, "bgra": 4} | dict.fromkeys(
    ("hsv", "hsv_full", "hls", "lab", "luv", "ycrcb", "yuv", "xyz"), 3
)
#: The color spaces that OpenCV does not compute for uint16.
_CURVED = ("hsv", "hsv_full", "hls", "lab", "luv")
_ORDERS, _PLAIN = ("rgb", "bgr"), ("gray", "rgb", "bgr", "rgba", "bgra")
#: OpenCV's spelling of the color spaces that it does not write in capitals.
_OPENCV_SPELLINGS = {"lab": "Lab", "luv": "Luv", "ycrcb": "YCrCb"}


def _opencv_name(source: str, target: str) -> str:
    full = "_FULL" if "hsv_full" in (source, target) else ""
    one, other = (_OPENCV_SPELLINGS.get(n, n.removesuffix("_full").upper()) for n in (source, target))
    return f"COLOR_{one}2{other}{full}"


CODES = {
    f"{source}2{target}": _opencv_name(source, target)
    for source in CHANNELS
    for target in CHANNELS
    if source != target
    and (
        (source in _PLAIN and target in _PLAIN)
        or (source in _ORDERS and target not in _PLAIN)
        or (target in _ORDERS and source not in _PLAIN)
    )
}


def cvt_color(image: Tensor, code: str) -> Tensor:
    check.computed_image("cvt_color", image, takes_uint16=True)
    if not isinstance(code, str) or code not in CODES:
        near = get_close_matches(str(code).lower(), CODES, 3, 0.4) or ["rgb2hsv", "hsv2rgb"]
        must = f"code must be a conversion such as {', '.join(map(repr, near))}"
        check.fail(ValueError, "cvt_color", must, repr(code))
    source, _, target = code.partition("2")
    if image.dtype == torch.uint16 and (source in _CURVED or target in _CURVED):
        check.fail(TypeError, "cvt_color", f"image must be uint8 or floating point for {code!r}", image.dtype)
    check.channels("cvt_color", image, (CHANNELS[source],), f" for {code!r}")
    return layout.empty(image, *image.shape[-2:], channels=CHANNELS[target])
