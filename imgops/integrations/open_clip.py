"""The counterparts of open_clip's transforms, which draw by Python's generator.

Its resizes and crops are copies of timm's; tried with open_clip 3.3.0 and timm 1.0.31.
"""

from __future__ import annotations

from typing import Any

from imgops import transforms
from imgops.integrations._counterparts import RandomApply
from imgops.integrations._reader import Reader, Unmapped, add_makers
from imgops.integrations._to_tensor import maybe_to_tensor
from imgops.integrations.timm.transforms import center_crop_or_pad, resize_keep_ratio
from imgops.integrations.torchvision.rules import resampling


def _resize_keep_ratio(given: Any, reader: Reader) -> Any:
    if given.random_scale_prob or given.random_aspect_prob:
        raise Unmapped("a random scale or aspect ratio")
    return resize_keep_ratio(given.size, given.longest, [resampling(given.interpolation).value])


def _apply(given: Any, reader: Reader) -> Any:
    return RandomApply(reader.read(given.transf), given.p, "open_clip")


def _rgb(given: Any, reader: Reader) -> Any:
    if getattr(given, "mode", "RGB") != "RGB":
        raise Unmapped(f"mode={given.mode!r}")
    return transforms.RGB()


_TRANSFORMS: dict[str, Any] = {
    "ResizeKeepRatio": _resize_keep_ratio,
    "CenterCropOrPad": center_crop_or_pad,
    "MaybeConvertMode": _rgb,
    "_convert_to_rgb": _rgb,
    "MaybeToTensor": maybe_to_tensor,
    "color_jitter": _apply,
    "gray_scale": _apply,
}
add_makers("open_clip.transform", _TRANSFORMS)
