"""PIL itself: planes as its images, and its own color and levels where ours would differ.

Kernels repeat PIL's integer arithmetic, and Pillow changes that now and then. Before its first use on uint8
each kernel is compared with the installed PIL; where they differ, PIL does the work.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from imgops.kernels.cpu._common import number_per_image

Kernel = Callable[..., None]


def view(plane: np.ndarray) -> Image.Image:
    """A contiguous plane as a PIL image: uint8 over the same memory, float32 copied by PIL."""
    if plane.dtype != np.uint8:
        return Image.fromarray(plane)
    height, width = plane.shape
    return Image.frombuffer("L", (width, height), plane, "raw", "L", 0, 1)


#: name -> PIL's call of an image and the operator's parameters
_CALLS: dict[str, Callable[..., Image.Image]] = {
    "adjust_brightness": lambda image, factor: ImageEnhance.Brightness(image).enhance(factor),
    "adjust_contrast": lambda image, factor: ImageEnhance.Contrast(image).enhance(factor),
    "adjust_saturation": lambda image, factor: ImageEnhance.Color(image).enhance(factor),
    "adjust_sharpness": lambda image, factor: ImageEnhance.Sharpness(image).enhance(factor),
    "grayscale": lambda image, channels: image.convert("L"),
    "posterize": lambda image, bits: ImageOps.posterize(image, min(max(int(bits), 1), 8)),
    "solarize": ImageOps.solarize,
    "autocontrast": ImageOps.autocontrast,
    "equalize": ImageOps.equalize,
    "blend": Image.blend,
}
_PROBES: dict[str, tuple[tuple[Any, ...], ...]] = {
    "grayscale": ((1,),),
    "posterize": ((3,), (7,)),
    "solarize": ((77,),),
    "autocontrast": ((),),
    "equalize": ((),),
}
_FACTORS = ((0.37,), (1.6,))

_kernels: dict[str, Kernel] = {}
_agree: dict[str, bool] = {}


def compared(kernel: Kernel) -> Kernel:
    """A kernel of ``(out, image, *parameters)`` that gives way to PIL on uint8 where the two differ."""
    name = kernel.__name__
    _kernels[name] = kernel

    @wraps(kernel)
    def run(out: Tensor, image: Tensor, *parameters: Any) -> None:
        if image.dtype == torch.uint8 and image.numel() and not agrees(name):
            by_pil(name, out, image, *parameters)
        else:
            kernel(out, image, *parameters)

    return run


def agrees(name: str) -> bool:
    """Whether our kernel and the installed PIL give the same pixels for noise; asked once."""
    found = _agree.get(name)
    if found is None:
        found = _agree[name] = _compare(name)
    return found


def _compare(name: str) -> bool:
    noise = np.random.default_rng(0).integers(0, 256, (2, 3, 19, 41), dtype=np.uint8)
    image, other = torch.from_numpy(noise)
    for numbers in _PROBES.get(name, _FACTORS):
        parameters = [n if name == "grayscale" else torch.tensor(n) for n in numbers]
        if name == "blend":
            parameters.insert(0, other)
        size = (1, *image.shape[1:]) if name == "grayscale" else image.shape
        ours, theirs = torch.empty((2, *size), dtype=torch.uint8)
        _kernels[name](ours, image, *parameters)
        by_pil(name, theirs, image, *parameters)
        if not torch.equal(ours, theirs):
            return False
    return True


def by_pil(name: str, out: Tensor, image: Tensor, *parameters: Any) -> None:
    """PIL's own call, of RGB images as they are and of other channels one by one."""
    batch = image.shape[:-3]
    each: list[list[Any]] = []
    for value in parameters:
        if not isinstance(value, Tensor):
            each.append([value] * batch.numel())
        elif value.shape == image.shape:
            each.append([value[i] for i in np.ndindex(*batch)])
        else:
            each.append(number_per_image(value, image))
    for k, i in enumerate(np.ndindex(*batch)):
        own = [parameter[k] for parameter in each]
        if image.shape[-3] == 3:
            result = _CALLS[name](_rgb(image[i]), *(_rgb(v) if isinstance(v, Tensor) else v for v in own))
            array = np.array(result)
            out[i].copy_(torch.from_numpy(array if array.ndim == 3 else array[..., None]).permute(2, 0, 1))
            continue
        for c, plane in enumerate(image[i]):
            inputs = [_gray(v[c]) if isinstance(v, Tensor) else v for v in own]
            values = torch.from_numpy(np.array(_CALLS[name](_gray(plane), *inputs)))
            if name == "grayscale":
                out[i].copy_(values.expand_as(out[i]))
            else:
                out[i][c].copy_(values)


def _rgb(image: Tensor) -> Image.Image:
    return Image.fromarray(image.detach().permute(1, 2, 0).contiguous().numpy())


def _gray(plane: Tensor) -> Image.Image:
    return Image.fromarray(plane.detach().contiguous().numpy())
