"""The calls that ``python -m benchmarks.cuda`` times: for each row, a call of imgops, torchvision and kornia.

``benchmarks/cuda_peers.py`` has those of CV-CUDA and DALI. Parameters are on the image's device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode, v2

import imgops
from benchmarks import cuda_peers
from benchmarks.pipelines import MEAN, STD
from imgops import transforms as ours

F = v2.functional
Calls = dict[str, Callable[[Tensor], Any]]


@dataclass(frozen=True)
class Row:
    """One operator: ``own(image)`` gives the calls of imgops, torchvision and kornia by column.

    A row that is also in ``tests/ptx/rows.py``, which lists the goals, has the same name there.
    """

    name: str
    own: Callable[[Tensor], Calls]
    #: The bytes that a kernel must read, as a function of the bytes of the image.
    part: float = 1.0
    differentiable: bool = True

    def calls(self, image: Tensor) -> Calls:
        """Return each column's call."""
        found = self.own(image)
        others = {
            "CV-CUDA": cuda_peers.cvcuda(self.name, image),
            "DALI": cuda_peers.dali(self.name, image, _each(image)),
        }
        return found | {name: call for name, call in others.items() if call is not None}

    def drawn_once(self) -> tuple[str, ...]:
        """Return the columns whose parameters are the same for all images, although imgops' differ."""
        return ("torchvision", "CV-CUDA") if "each" in self.name else ()


def _each(image: Tensor) -> dict[str, Tensor]:
    """Return the parameters of each image in DALI's form: float32, (y, x)."""
    boxes, ones = _boxes(image).flip(-1).float(), _per_sample(image, 1.2, 0.8).float()
    return {
        "corner": boxes[:, 2:],
        "end": boxes[:, :2],
        "extent": boxes[:, :2] - boxes[:, 2:],
        "matrix": _turns(image).float(),
        "sigma": _per_sample(image, 0.3, 2.0).float(),
        "brightness": _per_sample(image, 0.7, 1.3).float(),
        "contrast": ones,
        "saturation": ones,
        "hue": _per_sample(image, -36, 36).float(),
    }


def _per_sample(image: Tensor, low: float, high: float) -> Tensor:
    return torch.linspace(low, high, image.shape[0], dtype=torch.float64, device=image.device)


def _boxes(image: Tensor) -> Tensor:
    height, width = image.shape[-2:]
    shift = torch.arange(image.shape[0], device=image.device) % max(width // 8, 1)
    sides = (shift, shift, shift + width * 3 // 4, shift + height * 3 // 4)
    return torch.stack(torch.broadcast_tensors(*sides), -1)


def _turns(image: Tensor) -> Tensor:
    angle = _per_sample(image, -0.4, 0.4)
    middle = (image.shape[-1] - 1) / 2
    cos, sin = angle.cos(), angle.sin()
    rows = (cos, -sin, middle - cos * middle + sin * middle, sin, cos, middle - sin * middle - cos * middle)
    return torch.stack(rows, -1).unflatten(-1, (2, 3))


def _kornia(call: Callable[[Any, Tensor], Any]) -> Calls:
    """Return kornia's column, if it is installed; on uint8 it includes the conversion to float that kornia needs."""
    if find_spec("kornia") is None:
        return {}
    import kornia

    return {"kornia": lambda x: call(kornia, x if x.is_floating_point() else x.float() / 255)}


def _crop(x: Tensor) -> Calls:
    h, w = (side * 3 // 4 for side in x.shape[-2:])
    box = (5, 7, 5 + w, 7 + h)
    return {"imgops": lambda x: imgops.crop(x, box), "torchvision": lambda x: F.crop(x, 7, 5, h, w).clone()}


def _pad(x: Tensor) -> Calls:
    return {
        "imgops": lambda x: imgops.pad(x, 16, "reflect"),
        "torchvision": lambda x: F.pad(x, [16] * 4, padding_mode="reflect"),
    }


def _paste(x: Tensor) -> Calls:
    format = torch.channels_last if x.stride(1) == 1 else torch.contiguous_format
    patch = x[..., : x.shape[-2] // 2, : x.shape[-1] // 2].contiguous(memory_format=format)
    mask = torch.full_like(patch[..., :1, :, :], 100 if x.dtype == torch.uint8 else 0.4)
    return {"imgops": lambda x: imgops.paste(x, patch, (9, 11), mask)}


def _erase(x: Tensor) -> Calls:
    boxes, h = _boxes(x), x.shape[-1] // 2
    zero = torch.zeros((), dtype=x.dtype, device=x.device)
    return {
        "imgops": lambda x: imgops.erase(x, boxes),
        "torchvision": lambda x: F.erase(x, 9, 11, h, h, zero),
    }


def _resize(name: str, antialias: bool) -> Callable[[Tensor], Calls]:
    def calls(x: Tensor) -> Calls:
        size = [s * 7 // 16 for s in x.shape[-2:]]
        mode = InterpolationMode(name)
        found: Calls = {
            "imgops": lambda x: imgops.resize(x, size, name, antialias=antialias),
            "torchvision": lambda x: F.resize(x, size, mode, antialias=antialias),
        }
        found |= _kornia(lambda k, x: k.geometry.resize(x, tuple(size), name, antialias=antialias))
        return found

    return calls


def _resized_crop(x: Tensor) -> Calls:
    size, boxes = [s * 7 // 16 for s in x.shape[-2:]], _boxes(x)
    h, w = (s * 3 // 4 for s in x.shape[-2:])
    return {
        "imgops": lambda x: imgops.resized_crop(x, boxes, size),
        "torchvision": lambda x: F.resized_crop(x, 3, 5, h, w, size, antialias=True),
    }


def _jitter(x: Tensor) -> Calls:
    orders = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]], device=x.device)
    order = orders[torch.arange(x.shape[0], device=x.device) % 2]
    amounts = torch.stack(
        [_per_sample(x, 0.7, 1.3), *[_per_sample(x, 1.2, 0.8)] * 2, _per_sample(x, -0.1, 0.1)], -1
    )
    names = "brightness,contrast,saturation,hue"

    def torchvision(x: Tensor) -> Tensor:
        x = F.adjust_contrast(F.adjust_brightness(x, 1.2), 0.8)
        return F.adjust_hue(F.adjust_saturation(x, 1.1), 0.05)

    def kornia_jitter(k: Any, x: Tensor) -> Tensor:
        factor = amounts.to(x)
        x = k.enhance.adjust_contrast(k.enhance.adjust_brightness(x, factor[:, 0] - 1), factor[:, 1])
        return k.enhance.adjust_hue(k.enhance.adjust_saturation(x, factor[:, 2]), factor[:, 3])

    found: Calls = {
        "imgops": lambda x: imgops.color_sequence(x, order, amounts, names.split(",")),
        "torchvision": torchvision,
    }
    return found | _kornia(kornia_jitter)


def _normalize(x: Tensor) -> Calls:
    mine = ours.Compose([ours.ToDtype(torch.float32, scale=True), ours.Normalize(MEAN, STD)])
    theirs = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])
    return {"imgops": mine, "torchvision": theirs}


def _equalize(x: Tensor) -> Calls:
    return {"imgops": imgops.equalize, "torchvision": F.equalize}


def _solarize(x: Tensor) -> Calls:
    limit = _per_sample(x, 100, 200) if x.dtype == torch.uint8 else _per_sample(x, 0.4, 0.8)
    threshold = 128 if x.dtype == torch.uint8 else 0.5
    return {
        "imgops": lambda x: imgops.solarize(x, limit),
        "torchvision": lambda x: F.solarize(x, threshold),
    }


def _affine(name: str) -> Callable[[Tensor], Calls]:
    def calls(x: Tensor) -> Calls:
        matrix = _turns(x)
        found: Calls = {
            "imgops": lambda x: imgops.warp_affine(x, matrix, None, name),
            "torchvision": lambda x: F.rotate(x, 15.0, InterpolationMode(name)),
        }
        return found | _kornia(
            lambda k, x: k.geometry.warp_affine(
                x, matrix.to(x), tuple(x.shape[-2:]), mode=name, align_corners=True
            )
        )

    return calls


def _blur(x: Tensor) -> Calls:
    sigma = _per_sample(x, 0.3, 2.0)[:, None].expand(-1, 2)
    found: Calls = {
        "imgops": lambda x: imgops.gaussian_blur(x, 23, sigma),
        "torchvision": lambda x: F.gaussian_blur(x, [23, 23], [1.1, 1.1]),
    }
    return found | _kornia(lambda k, x: k.filters.gaussian_blur2d(x, (23, 23), sigma.to(x)))


def _beside_kornia(
    ours: Callable[[Tensor], Any], theirs: Callable[[Any, Tensor], Any]
) -> Callable[[Tensor], Calls]:
    return lambda x: {"imgops": ours} | _kornia(theirs)


def _levels(x: Tensor) -> Tensor:
    return x if x.dtype == torch.uint8 else (x * 255).to(torch.uint8)


_ERODE = _beside_kornia(
    lambda x: imgops.erode(x, 5),
    lambda k, x: k.morphology.erosion(x, torch.ones(5, 5, device=x.device), engine="convolution"),
)
_HSV = _beside_kornia(lambda x: imgops.cvt_color(x, "rgb2hsv"), lambda k, x: k.color.rgb_to_hsv(x))
_CLAHE = _beside_kornia(lambda x: imgops.clahe(x, 2.0), lambda k, x: k.enhance.equalize_clahe(x, 2.0))
_CANNY = _beside_kornia(lambda x: imgops.canny(_levels(x), 60, 120), lambda k, x: k.filters.canny(x)[1])

ROWS = (
    Row("crop", _crop, 9 / 16),
    Row("pad reflect", _pad),
    Row("paste with a mask", _paste, 4 / 3),
    Row("erase, a box each", _erase, 7 / 16),
    Row("color jitter, each", _jitter),
    Row("solarize, each", _solarize),
    Row("ToDtype and Normalize", _normalize, differentiable=False),
    Row("equalize", _equalize, differentiable=False),
    Row("resize bilinear", _resize("bilinear", True)),
    Row("resize bicubic", _resize("bicubic", True)),
    Row("resize plain bilinear", _resize("bilinear", False)),
    Row("resized crop, a box each", _resized_crop, 9 / 16),
    Row("affine nearest, each", _affine("nearest")),
    Row("affine bilinear, each", _affine("bilinear")),
    Row("gaussian blur, each", _blur),
    Row("erode 5 x 5", _ERODE, differentiable=False),
    Row("rgb2hsv", _HSV, differentiable=False),
    Row("clahe", _CLAHE, differentiable=False),
    Row("canny", _CANNY, differentiable=False),
)
