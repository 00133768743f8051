"""The rules of conversion of torchvision's transforms: of both versions, and those of its weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torchvision import transforms as v1
from torchvision.transforms import InterpolationMode, v2

from imgops import transforms
from imgops._operator import subclass
from imgops.integrations._counterparts import Counterpart, RandomApply
from imgops.integrations._reader import DIFFERENCES, MAKERS, Reader, UsersCode, add_makers
from imgops.integrations._to_tensor import maybe_to_tensor, to_tensor
from imgops.integrations.torchvision import first_version as first
from imgops.transforms import conversion
from imgops.transforms._core.base import OperatorTransform, RandomTransform
from imgops.transforms._core.parameters import Params
from imgops.transforms.functional import _dispatch

WARPS = (
    "on tensors the pixels are OpenCV's, which differ from PIL's where an edge moves by a part of a pixel; "
    "on PIL images they are PIL's"
)
_A_LEVEL = "a level in a few values"


def _is_quarter(degrees: Any) -> bool:
    return degrees[0] == degrees[1] and degrees[0] % 90 == 0


def _is_shift(given: Any) -> bool:
    """Return whether an affine map moves whole pixels."""
    return (
        _is_quarter(given.degrees)
        and not any(given.shear or ())
        and (given.scale is None or set(given.scale) == {1})
    )


#: How the counterparts of both versions differ for their arguments; None or False if they do not.
_DIFFERENCES: dict[str, Callable[[Any], Any]] = {
    "RandomRotation": lambda t: not _is_quarter(t.degrees) and WARPS,
    "RandomAffine": lambda t: not _is_shift(t) and WARPS,
    "RandomPerspective": lambda t: t.p > 0 and WARPS,
    "ElasticTransform": lambda t: any(t.alpha) and _A_LEVEL,
    "GaussianBlur": lambda t: set(t.kernel_size) != {1} and _A_LEVEL,
    "AutoAugment": lambda t: WARPS,
    "RandAugment": lambda t: t.num_ops and t.magnitude and WARPS,
    "TrivialAugmentWide": lambda t: t.num_magnitude_bins > 1 and WARPS,
    "AugMix": lambda t: (
        t.mixture_width
        and t.severity
        and "steps that move pixels are OpenCV's, and torchvision interpolates tensors"
    ),
}


def _copied(cls: Any, given: Any, reader: Reader) -> Any:
    """Return a transform of imgops' class of the same name, with the same attributes."""
    made = cls.__new__(cls)
    nn.Module.__init__(made)
    for name, value in vars(given).items():
        if name not in vars(made):  # a module has some, and ``__setattr__`` derives others
            setattr(made, name, value)
    # The pixels of these are PIL's, which always smooths.
    if cls.__name__ in ("RandomResize", "RandomResizedCrop", "RandomShortestSize", "Resize", "ScaleJitter"):
        made.interpolation, made.antialias = resampling(made.interpolation), True
    if isinstance(made, RandomTransform):
        made._start(False, None)
    elif isinstance(made, OperatorTransform):
        made._describe()
    return made


def _apply(cls: Any, given: Any, reader: Reader) -> Any:
    before = dict(reader.differences)
    steps: Any = reader.read_all(given.transforms)
    if isinstance(given.transforms, nn.ModuleList):
        steps = nn.ModuleList(steps)
    if given.p <= 0:
        reader.differences = before  # transforms that are never applied change no pixels
    return cls(steps, given.p)


def _fill(given: Any) -> Any:
    if getattr(given, "padding_mode", "constant") != "constant":
        return 0
    return tuple(given.fill) if isinstance(given.fill, list) else given.fill


def _levels_to_floats() -> list[Any]:
    """Return the conversions of torchvision's weights, which come before they normalize."""
    return [first.PILToTensor(), conversion._DivideBy255(torch.float32, scale=True)]


def resampling(interpolation: Any) -> InterpolationMode:
    """Return the interpolation with PIL's pixels, whose nearest pixel is torchvision's exact one."""
    mode = InterpolationMode(interpolation)
    return InterpolationMode.NEAREST_EXACT if mode == InterpolationMode.NEAREST else mode


def _resize(size: Any, interpolation: Any, max_size: int | None = None) -> Any:
    made = transforms.Resize(size, resampling(interpolation), max_size, True)
    made._makes_planar = True  # the second version's result has the memory format of the image
    return made


def _random_crop(given: Any, reader: Reader) -> list[Any]:
    """Return a crop; one that pads for two reasons pads twice, which matters where a border is mirrored."""
    fill, mode = _fill(given), given.padding_mode
    if given.padding is None or not given.pad_if_needed or mode in ("constant", "edge"):
        return [first.RandomCrop(given.size, given.padding, given.pad_if_needed, fill, mode)]
    return [first.Pad(given.padding, fill, mode), first.RandomCrop(given.size, None, True, fill, mode)]


def normalize(mean: Any, std: Any, inplace: bool = False) -> Any:
    if any(isinstance(x, Tensor) and x.requires_grad for x in (mean, std)):
        raise UsersCode  # learned numbers
    mean, std = (np.atleast_1d(np.asarray(x, np.float64)).tolist() for x in (mean, std))
    return conversion._NormalizeByChannel(mean, std, inplace)


def _same(cls: Any, given: Any, reader: Reader) -> Any:
    """Return a transform of a class with the arguments of torchvision's class of the same name."""
    names = signature(getattr(v1, cls.__name__)).parameters
    known = {name: getattr(given, name) for name in names}
    return cls(**(known | {"fill": _fill(given)} if "fill" in known else known))


#: The first version's classes that draw and compute as those of the second one.
_SAME = (
    *("CenterCrop", "ElasticTransform", "FiveCrop", "GaussianBlur", "LinearTransformation"),
    *("RandomAdjustSharpness", "RandomAffine", "RandomAutocontrast", "RandomEqualize", "RandomGrayscale"),
    *("RandomHorizontalFlip", "RandomInvert", "RandomPerspective", "RandomPosterize", "RandomRotation"),
    *("RandomSolarize", "RandomVerticalFlip", "TenCrop"),
)
_V1: dict[str, Any] = {
    **{name: partial(_same, getattr(transforms, name)) for name in _SAME},
    **{c.__name__: partial(_same, c) for c in (first.Grayscale, first.Lambda, first.Pad)},
    **{c.__name__: partial(_same, c) for c in (first.RandomErasing, first.ToPILImage)},
    "ColorJitter": lambda t, _: _jitter(t),
    "Compose": lambda t, r: r.read_all(t.transforms),
    "ConvertImageDtype": lambda t, _: first.ConvertImageDtype(t.dtype, scale=True),
    "Normalize": lambda t, _: normalize(t.mean, t.std, t.inplace),
    "PILToTensor": lambda t, _: first.PILToTensor(),
    "RandomApply": partial(_apply, partial(RandomApply, library="torchvision")),
    "RandomChoice": lambda t, r: first.RandomChoice([r.read_one(x) for x in t.transforms], t.p),
    "RandomCrop": _random_crop,
    "RandomOrder": lambda t, r: first.RandomOrder([r.read_one(x) for x in t.transforms]),
    "RandomResizedCrop": lambda t, _: transforms.RandomResizedCrop(
        t.size, t.scale, t.ratio, resampling(t.interpolation), True
    ),
    "Resize": lambda t, _: _resize(t.size, t.interpolation, t.max_size),
    "ToTensor": to_tensor,
}
_POLICIES: dict[str, Any] = {
    "AutoAugment": lambda t, _: _auto_augment(t),
    **{c.__name__: partial(_same, c) for c in (first.AugMix, first.RandAugment, first.TrivialAugmentWide)},
}


def _auto_augment(given: Any) -> Any:
    if given.policies != v1.AutoAugment(given.policy).policies:
        raise UsersCode
    return first.AutoAugment(given.policy, given.interpolation, _fill(given))


def _jitter(given: Any) -> Any:
    """Return a ColorJitter with the same ranges, which the constructor made of factors."""
    made = first.ColorJitter()
    for name in ("brightness", "contrast", "saturation", "hue"):
        setattr(made, name, getattr(given, name))
    return made


# -- transforms of weights --------------------------------------------------------------------------------


class ChannelsBeforeFrames(Counterpart):
    """Move the channels of a video before its frames, ``(..., T, C, H, W)`` to ``(..., C, T, H, W)``."""

    def _image(self, image: Tensor, params: Params, kind: type) -> Tensor:
        return image.movedim(-3, -4)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return subclass.plain(inpt).movedim(-3, -4) if _dispatch.is_image(inpt) else inpt


_PRESETS: dict[str, Any] = {
    "ObjectDetection": lambda t, _: _levels_to_floats(),
    "ImageClassification": lambda t, _: [
        _resize(t.resize_size, t.interpolation),
        transforms.CenterCrop(t.crop_size),
        *_levels_to_floats(),
        normalize(t.mean, t.std),
    ],
    "SemanticSegmentation": lambda t, _: [
        *([] if t.resize_size is None else [_resize(t.resize_size, t.interpolation)]),
        *_levels_to_floats(),
        normalize(t.mean, t.std),
    ],
    "VideoClassification": lambda t, _: [
        transforms.Resize(t.resize_size, t.interpolation, antialias=False),
        transforms.CenterCrop(t.crop_size),
        conversion._DivideBy255(torch.float32, scale=True),
        normalize(t.mean, t.std),
        ChannelsBeforeFrames(),
    ],
    "OpticalFlow": lambda t, _: [
        transforms.ToImage(),  # so that both tensors are images, and not only the first one
        conversion._DivideBy255(torch.float32, scale=True),
        transforms.Normalize([0.5] * 3, [0.5] * 3),
        transforms.ToPureTensor(),
    ],
}

add_makers("torchvision.transforms.transforms", _V1)
add_makers("torchvision.transforms.autoaugment", _POLICIES)
add_makers("torchvision.transforms._presets", _PRESETS)
DIFFERENCES["torchvision.transforms._presets.VideoClassification"] = lambda given: _A_LEVEL
#: Makers of the second version's transforms: those that imgops has too are copied, but for the containers.
_V2: dict[str, Any] = {
    **{name: partial(_copied, getattr(transforms, name)) for name in transforms.OURS if hasattr(v2, name)},
    "Compose": lambda t, r: r.read_all(t.transforms),
    "ToTensor": maybe_to_tensor,
    "RandomApply": partial(_apply, transforms.RandomApply),
    "RandomChoice": lambda t, r: transforms.RandomChoice([r.read_one(x) for x in t.transforms], t.p),
    "RandomOrder": lambda t, r: transforms.RandomOrder([r.read_one(x) for x in t.transforms]),
}
for _name, _maker in _V2.items():
    MAKERS[f"{getattr(v2, _name).__module__}.{_name}"] = _maker
for _known in [n for n in MAKERS if n.startswith("torchvision.")]:
    if _known.rpartition(".")[2] in _DIFFERENCES:
        DIFFERENCES[_known] = _DIFFERENCES[_known.rpartition(".")[2]]
