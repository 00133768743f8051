"""The parameters of subclasses that override ``get_params``, by which torchvision's first version draws.

torchvision's second version gives each class a ``get_params``, but calls ``make_params``. imgops calls a
``get_params`` that a user has overridden, with the arguments that the first version gives it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import PIL.Image
import torch

from imgops.transforms._core import torchvision_private
from imgops.transforms._core.inputs import meta_image
from imgops.transforms._core.signatures import is_own
from imgops.transforms.functional import _dispatch


def _crop(t: Any, image: Any, height: int, width: int) -> dict[str, Any]:
    left, top, right, bottom = t._padding(height, width)
    if left or top or right or bottom:
        image = meta_image(1, 1, height + top + bottom, width + left + right)
    top, left, *size = t.get_params(image, t.size)
    if list(size) != list(t.size):
        must = "get_params must return a crop of the size of the transform"
        raise ValueError(f"RandomCrop: {must}, got {size[0]} x {size[1]}")
    return {"top": top, "left": left}


def _jitter(t: Any, *_: Any) -> dict[str, Any]:
    order, *factors = t.get_params(t.brightness, t.contrast, t.saturation, t.hue)
    return dict(
        zip(_JITTER, (torch.as_tensor(order, dtype=torch.int64, device="cpu"), *factors), strict=True)
    )


def _affine(t: Any, _: Any, height: int, width: int) -> dict[str, Any]:
    *others, shear = t.get_params(t.degrees, t.translate, t.scale, t.shear, [width, height])
    shear = (
        shear if isinstance(shear, (list, tuple)) else (shear, 0.0)
    )  # the first version takes a number, too
    return dict(zip(_AFFINE, (*others, shear), strict=True))


def _erasing(t: Any, image: Any, height: int, width: int) -> dict[str, Any]:
    *box, value = t.get_params(image, scale=t.scale, ratio=t.ratio, value=t.value)
    # The first version returns the image itself if no box fits.
    return dict(zip("ijhwv", (*box, None if value is image else value), strict=True))


def _blur(t: Any, image: Any, height: int, width: int) -> dict[str, Any]:
    sigma = t.get_params(*t.sigma)
    return {"sigma": [sigma, sigma]}


_JITTER = ("fn_idx", "brightness_factor", "contrast_factor", "saturation_factor", "hue_factor")
_AFFINE = ("angle", "translate", "scale", "shear")

#: The class of torchvision -> the parameters for an image of a height and width.
_PARAMETERS: dict[str, Callable[[Any, Any, int, int], dict[str, Any]]] = {
    "ColorJitter": _jitter,
    "ElasticTransform": lambda t, _, h, w: {"displacement": t.get_params(t.alpha, t.sigma, [h, w])},
    "GaussianBlur": _blur,
    "RandomAffine": _affine,
    "RandomCrop": _crop,
    "RandomErasing": _erasing,
    "RandomPerspective": lambda t, _, h, w: {
        "coefficients": torchvision_private.perspective_coefficients(*t.get_params(w, h, t.distortion_scale))
    },
    "RandomResizedCrop": lambda t, image, *_: dict(
        zip(("top", "left", "height", "width"), t.get_params(image, t.scale, t.ratio), strict=True)
    ),
    "RandomRotation": lambda t, *_: {"angle": t.get_params(t.degrees)},
}


def overrides(transform: Any) -> bool:
    """Return whether a user overrides ``get_params``, in a subclass or on the object."""
    return transform._draws_itself and not (
        is_own(type(transform), "get_params") and "get_params" not in vars(transform)
    )


def parameters(transform: Any, inputs: list[Any]) -> dict[str, Any]:
    """Return what ``make_params`` returns, from the ``get_params`` of a subclass."""
    images = [x for x in inputs if isinstance(x, PIL.Image.Image) or _dispatch.is_image(x)] or inputs
    name = next(c.__name__ for c in type(transform).__mro__ if c.__module__.startswith("torchvision."))
    _, _, height, width = transform._shape_of(inputs)
    return _PARAMETERS[name](transform, images[0], height, width)
