"""imgops' operators in the place of albumentations' own code, where they have its pixels.

A function takes an image, the transform and its parameters, and returns None if albumentations must compute
the image. Those in ``OPERATORS`` give its bits. Those in ``INEXACT`` differ in the last bits of floats: they
are for images on a device and for gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

import imgops
from imgops.integrations.albumentations.rules import BORDERS
from imgops.transforms.color.adjust import hsv_shifted

Params = dict[str, Any]
#: The change of an image by a transform of albumentations and its parameters; None if there is none.
Change = Callable[[Tensor, Any, Params], Tensor | None]
_LEVELS = np.arange(256, dtype=np.uint8)[:, None, None]


def _on_levels(change: Change, channels: tuple[int, ...] = ()) -> Change:
    """Return a change of uint8 images alone, perhaps only of some numbers of channels."""

    def checked(image: Tensor, given: Any, params: Params) -> Tensor | None:
        is_known = image.dtype == torch.uint8 and (not channels or image.shape[-3] in channels)
        return change(image, given, params) if is_known else None

    return checked


def _on_floats(change: Change) -> Change:
    """Return a change of floating-point images alone."""
    return lambda image, given, params: change(image, given, params) if image.is_floating_point() else None


def _by_levels(image: Tensor, given: Any, params: Params) -> Tensor:
    """Look the levels up in the transform's result for all 256."""
    return imgops.lut(image, torch.from_numpy(given.apply(_LEVELS, **params)).reshape(256))


def _by_levels_of_channels(image: Tensor, given: Any, params: Params) -> Tensor | None:
    """Change the levels of each channel, unless there is a separate number for each pixel."""
    if any(np.size(params.get(name, 0)) > image.shape[-3] for name in ("multiplier", "noise_map")):
        return None
    levels = np.repeat(_LEVELS, image.shape[-3], 2)
    table = torch.from_numpy(np.ascontiguousarray(given.apply(levels, **params))).reshape(256, -1)
    return imgops.lut(image, table.mT.contiguous())


def _hue(image: Tensor, given: Any, params: Params) -> Tensor | None:
    shifts = [params[name] for name in ("hue_shift", "sat_shift", "val_shift")]
    if not any(shifts):
        return None
    amounts = torch.tensor([2 * shifts[0], *shifts[1:]], dtype=torch.float64, device="cpu")
    return hsv_shifted(image, amounts)


def _box_blur(image: Tensor, given: Any, params: Params) -> Tensor:
    return imgops.box_blur(image, int(params["kernel"]))


def _filter(name: str, floats: bool) -> Change:
    def change(image: Tensor, given: Any, params: Params) -> Tensor | None:
        kernel = params[name]
        if kernel is None or image.is_floating_point() != floats:
            return None
        square = np.outer(kernel, kernel) if kernel.ndim == 1 else kernel
        if max(square.shape) > 2 * min(image.shape[-2:]):
            return None
        out = imgops.filter2d(image, torch.from_numpy(np.ascontiguousarray(square)).double(), "reflect")
        return out.clamp(0, 1) if floats else out

    return change


def _swapped(image: Tensor, given: Any, params: Params) -> Tensor:
    order = params["channels_shuffled"]
    return image.clone() if order is None else image[..., list(order), :, :]


def _without_channels(image: Tensor, given: Any, params: Params) -> Tensor:
    out = image.clone()
    for channel in params["channels_to_drop"]:
        out[..., int(channel), :, :] = given.fill
    return out


def _with_holes(image: Tensor, given: Any, params: Params) -> Tensor | None:
    fill = given.fill
    if isinstance(fill, str):
        return None
    out = image.clone()
    values: Any = torch.tensor(np.asarray(fill, dtype=np.float64), dtype=torch.float64, device="cpu")
    values = values.to(out).reshape(-1, 1, 1)
    for left, top, right, bottom in np.asarray(params["holes"]).astype(int).tolist():
        out[..., top:bottom, left:right] = values
    return out


_NAMES = {0: "nearest", 1: "bilinear", 2: "bicubic"}


def _how(given: Any) -> tuple[str, str, Any] | None:
    """Return the interpolation, border and fill of a warp, or None if no operator has them."""
    if given.interpolation not in _NAMES or isinstance(given.fill, str):
        return None
    border = BORDERS[getattr(given, "border_mode", 0)]
    fill = tuple(given.fill) if isinstance(given.fill, Iterable) else given.fill
    return _NAMES[given.interpolation], border, fill if border == "constant" else 0


def _affine(image: Tensor, given: Any, params: Params) -> Tensor | None:
    how = _how(given)
    if how is None or getattr(given, "crop_border", False):
        return None
    matrix = torch.from_numpy(np.asarray(params["matrix"], dtype=float)[:2])
    height, width = params.get("output_shape") or image.shape[-2:]
    return imgops.warp_affine(image, matrix, (int(height), int(width)), *how)


def _perspective(image: Tensor, given: Any, params: Params) -> Tensor | None:
    how = _how(given)
    if how is None or not given.keep_size:
        return None
    height, width = image.shape[-2:]
    scale = np.diag([width / params["max_width"], height / params["max_height"], 1.0])
    matrix = torch.from_numpy(scale @ np.asarray(params["matrix"], dtype=float))
    return imgops.warp_perspective(image, matrix, None, *how)


def _mapped(image: Tensor, given: Any, params: Params) -> Tensor | None:
    how = _how(given)
    if how is None or "map_x" not in params:
        return None
    both = torch.from_numpy(np.stack([params["map_x"], params["map_y"]]))
    return imgops.remap(image, both.to(image.device, torch.float32), *how)


#: Class -> the change of an image, with albumentations' bits.
OPERATORS: dict[str, Change] = {
    **dict.fromkeys(
        ("InvertImg", "Posterize", "RandomBrightnessContrast", "RandomGamma", "Solarize"),
        _on_levels(_by_levels),
    ),
    **dict.fromkeys(
        ("MultiplicativeNoise", "PlanckianJitter", "RGBShift", "RandomToneCurve"),
        _on_levels(_by_levels_of_channels),
    ),
    **dict.fromkeys(("CoarseDropout", "Erasing", "GridDropout"), _with_holes),
    **dict.fromkeys(("Affine", "Rotate", "SafeRotate", "ShiftScaleRotate"), _affine),
    **dict.fromkeys(
        ("ElasticTransform", "GridDistortion", "OpticalDistortion", "PiecewiseAffine", "ThinPlateSpline"),
        _mapped,
    ),
    **dict.fromkeys(("AdvancedBlur", "MotionBlur"), _filter("kernel", False)),
    "Blur": _on_levels(_box_blur),
    "CLAHE": _on_levels(
        lambda image, given, params: imgops.clahe(image, params["clip_limit"], tuple(given.tile_grid_size)),
        (1, 3),
    ),
    "ChannelDropout": _without_channels,
    "ChannelShuffle": _swapped,
    "Emboss": _filter("emboss_matrix", False),
    "HueSaturationValue": _on_levels(_hue, (3,)),
    "MedianBlur": _on_levels(lambda image, given, params: imgops.median_blur(image, int(params["kernel"]))),
    "Perspective": _perspective,
    "Sharpen": _filter("sharpening_matrix", False),
}
#: Class -> the change of an image of floats on a device, or with a gradient.
INEXACT: dict[str, Change] = {
    **dict.fromkeys(("AdvancedBlur", "MotionBlur"), _filter("kernel", True)),
    "Blur": _box_blur,
    "Emboss": _filter("emboss_matrix", True),
    "InvertImg": _on_floats(lambda image, given, params: 1 - image),
    "RandomBrightnessContrast": _on_floats(
        lambda image, given, params: (image * float(params["alpha"]) + float(params["beta"])).clamp(0, 1)
    ),
    "RandomGamma": _on_floats(
        lambda image, given, params: imgops.adjust_gamma(image, float(params["gamma"]))
    ),
    "Sharpen": _filter("sharpening_matrix", True),
}
