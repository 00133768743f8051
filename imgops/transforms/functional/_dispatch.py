"""Which kernel an input gets: ours for images, videos and masks, torchvision's for everything else."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode
from torchvision.transforms.v2 import functional as reference

from imgops import _subclass
from imgops.transforms import _torchvision
from imgops.transforms.functional import _kernels

Function = Callable[..., Any]

_GEOMETRY = (
    "resize",
    "crop",
    "center_crop",
    "resized_crop",
    "pad",
    "horizontal_flip",
    "vertical_flip",
    "affine",
    "rotate",
    "perspective",
)
_ALIASES = {"hflip": "horizontal_flip", "vflip": "vertical_flip"}

#: name -> the function of a tensor (..., C, H, W)
KERNELS: dict[str, Function] = {
    name: value
    for name, value in vars(_kernels).items()
    if inspect.isfunction(value)
    and value.__module__ == _kernels.__name__
    and not name.startswith("_")
    and hasattr(reference, name)
}
#: Arithmetic that ATen does as well as anybody: torchvision's own functions of a tensor.
KERNELS |= {"to_dtype": reference.to_dtype_image, "normalize": reference.normalize_image}

_IMAGES = (tv_tensors.Image, tv_tensors.Video)


def is_image(value: Any) -> bool:
    """Whether ``value`` is a tensor that shows an image: a plain one, an Image or a Video."""
    if type(value) is Tensor:
        return True
    return isinstance(value, Tensor) and (
        isinstance(value, _IMAGES) or not isinstance(value, tv_tensors.TVTensor)
    )


def kernel(name: str, kind: type) -> Function | None:
    """Our kernel for an input of a class; None where torchvision's serves it."""
    if name not in KERNELS:
        return None
    if kind is Tensor or issubclass(kind, _IMAGES):
        return _OF_IMAGES[name]
    if issubclass(kind, tv_tensors.Mask) and name in _GEOMETRY:
        return _OF_MASKS[name]
    if issubclass(kind, Tensor) and not issubclass(kind, tv_tensors.TVTensor):
        return _OF_IMAGES[name]  # parameters, DTensors
    return None


def _images(name: str) -> Function:
    work = KERNELS[name]

    def call(inpt: Tensor, *args: Any, **keywords: Any) -> Tensor:
        if type(inpt) is Tensor:
            return work(inpt, *args, **keywords)
        return wrapped(work(_subclass.plain(inpt), *args, **keywords), inpt)

    return call


def _masks(name: str) -> Function:
    """A mask is sampled at the nearest pixel, and may have no channels."""
    work, signature = KERNELS[name], inspect.signature(KERNELS[name])

    def call(inpt: Tensor, *args: Any, **keywords: Any) -> Tensor:
        mask = _subclass.plain(inpt)
        bound = signature.bind(mask[None] if mask.ndim == 2 else mask, *args, **keywords)
        if "interpolation" in signature.parameters:
            bound.arguments["interpolation"] = InterpolationMode.NEAREST
        out = work(*bound.args, **bound.kwargs)
        return wrapped(out[0] if mask.ndim == 2 else out, inpt)

    return call


_OF_IMAGES = {name: _images(name) for name in KERNELS}
_OF_MASKS = {name: _masks(name) for name in _GEOMETRY}


def wrapped(out: Tensor, like: Any, canvas: tuple[int, int] | None = None) -> Any:
    """``out`` in the class of ``like``; dynamo knows a class only by a name that it can find again."""
    if not torch.compiler.is_compiling():
        return _subclass.like(out, like, **({} if canvas is None else {"canvas_size": canvas}))
    if isinstance(like, tv_tensors.Image):
        return out.as_subclass(tv_tensors.Image)
    if isinstance(like, tv_tensors.Video):
        return out.as_subclass(tv_tensors.Video)
    if isinstance(like, tv_tensors.Mask):
        return out.as_subclass(tv_tensors.Mask)
    if isinstance(like, tv_tensors.BoundingBoxes):
        boxes = out.as_subclass(tv_tensors.BoundingBoxes)
        boxes.format, boxes.canvas_size = like.format, like.canvas_size if canvas is None else canvas
        boxes.clamping_mode = getattr(like, "clamping_mode", "soft")
        return boxes
    if isinstance(like, tv_tensors.KeyPoints):
        points = out.as_subclass(tv_tensors.KeyPoints)
        points.canvas_size = like.canvas_size if canvas is None else canvas
        return points
    return out


def _functional(name: str) -> Function:
    theirs = getattr(reference, name)

    @wraps(theirs)
    def call(inpt: Any, *args: Any, **keywords: Any) -> Any:
        ours = kernel(_ALIASES.get(name, name), type(inpt))
        return (ours or theirs)(inpt, *args, **keywords)

    return call


def call_kernel(functional: Function, inpt: Any, *args: Any, **keywords: Any) -> Any:
    """What a transform calls: an input that a functional does not know passes through."""
    kind = type(inpt)
    ours = kernel(functional.__name__, kind)
    return (ours or _torchvision.kernel_of(functional, kind))(inpt, *args, **keywords)


FUNCTIONALS: dict[str, Function] = {
    name: _functional(name) for name in (*KERNELS, *_ALIASES) if hasattr(reference, name)
}
