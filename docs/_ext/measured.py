"""The difference of each operator from its reference on one photograph, measured when the pages are built."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps
from skimage import data
from torch import Tensor
from torchvision.transforms.v2 import functional as tv

import imgops

_M = np.array([[0.9, -0.3, 60.0], [0.2, 1.1, -40.0]])
_P = np.array([[0.9, -0.3, 60.0], [0.2, 1.1, -40.0], [2e-4, -1e-4, 1.0]])
_K = np.array([[0.1, -0.2, 0.1], [0.3, 0.9, -0.4], [0.0, 0.1, 0.1]], np.float32)
_A = np.array([[0.5, 0.3, 0.2], [-0.1, 1.0, 0.1], [0.2, 0.2, 0.6]], np.float32)
_TABLE = (np.arange(256) * 7 % 251).astype(np.uint8)


def _chw(a: Any) -> Tensor:
    a = np.asarray(a)
    return torch.from_numpy(np.array(a if a.ndim == 3 else a[..., None])).permute(2, 0, 1)


def _pil(x: Tensor) -> Image.Image:
    return Image.fromarray(x.permute(1, 2, 0).numpy())


def _hwc(x: Tensor) -> np.ndarray:
    return x.permute(1, 2, 0).contiguous().numpy()


def _map() -> tuple[np.ndarray, np.ndarray]:
    y, x = np.mgrid[0:300, 0:400].astype(np.float32)
    return x * 1.1 + 8 * np.sin(y / 20), y * 1.05 + 8 * np.cos(x / 25)


def _pasted(x: Tensor) -> Image.Image:
    canvas = _pil(x)
    canvas.paste(_pil(x[:, :90, :120]), (-20, 250))
    return canvas


def _erased(x: Tensor) -> Image.Image:
    canvas = _pil(x)
    canvas.paste((0, 0, 0), (30, 40, 200, 220))
    return canvas


def _warped(name: str, matrix: np.ndarray) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Any]]:
    ours = getattr(imgops, name)
    theirs = {"warp_affine": cv2.warpAffine, "warp_perspective": cv2.warpPerspective}[name]
    size = (300, 400)
    return (
        lambda x: ours(x, torch.from_numpy(matrix), size, "bilinear"),
        lambda x: _chw(theirs(_hwc(x), matrix, size[::-1], flags=cv2.INTER_LINEAR)),
    )


def _enhanced(name: str, kind: str) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Any]]:
    ours = getattr(imgops, f"adjust_{name}")
    return lambda x: ours(x, 1.4), lambda x: _chw(getattr(ImageEnhance, kind)(_pil(x)).enhance(1.4))


#: name -> imgops' call and the library's, on an interleaved uint8 photograph
CALLS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Any]]] = {
    "crop": (
        lambda x: imgops.crop(x, (-9, 20, 300, 500)),
        lambda x: _chw(_pil(x).crop((-9, 20, 300, 500))),
    ),
    "paste": (lambda x: imgops.paste(x, x[:, :90, :120], (-20, 250)), lambda x: _chw(_pasted(x))),
    "paste_": (
        lambda x: imgops.paste_(x.clone(), x[:, :90, :120], (-20, 250)),
        lambda x: _chw(_pasted(x)),
    ),
    "paste_out": (
        lambda x: imgops.paste_out(x, x[:, :90, :120], (-20, 250), out=torch.empty_like(x)),
        lambda x: _chw(_pasted(x)),
    ),
    "pad": (
        lambda x: imgops.pad(x, (5, 9, 30, 2), "reflect"),
        lambda x: _chw(cv2.copyMakeBorder(_hwc(x), 9, 2, 5, 30, cv2.BORDER_REFLECT_101)),
    ),
    "resize": (
        lambda x: imgops.resize(x, (224, 180), "bicubic"),
        lambda x: _chw(_pil(x).resize((180, 224), Image.Resampling.BICUBIC)),
    ),
    "resize_out": (
        lambda x: imgops.resize_out(x, (224, 180), "bicubic", out=torch.empty(3, 224, 180, dtype=x.dtype)),
        lambda x: _chw(_pil(x).resize((180, 224), Image.Resampling.BICUBIC)),
    ),
    "resized_crop": (
        lambda x: imgops.resized_crop(x, (30, 40, 400, 380), (224, 224)),
        lambda x: _chw(_pil(x).crop((30, 40, 400, 380)).resize((224, 224), Image.Resampling.BILINEAR)),
    ),
    "warp_affine": _warped("warp_affine", _M),
    "warp_perspective": _warped("warp_perspective", _P),
    "remap": (
        lambda x: imgops.remap(x, torch.from_numpy(np.stack(_map())), "bilinear"),
        lambda x: _chw(cv2.remap(_hwc(x), *_map(), cv2.INTER_LINEAR)),
    ),
    "flip": (imgops.flip, lambda x: _chw(cv2.flip(_hwc(x), 1))),
    "rotate90": (imgops.rotate90, lambda x: _chw(_pil(x).transpose(Image.Transpose.ROTATE_90))),
    "adjust_brightness": _enhanced("brightness", "Brightness"),
    "adjust_contrast": _enhanced("contrast", "Contrast"),
    "adjust_saturation": _enhanced("saturation", "Color"),
    "adjust_sharpness": _enhanced("sharpness", "Sharpness"),
    "adjust_hue": (lambda x: imgops.adjust_hue(x, 0.2), lambda x: tv.adjust_hue(x, 0.2)),
    "adjust_gamma": (lambda x: imgops.adjust_gamma(x, 2.2), lambda x: tv.adjust_gamma(_pil(x), 2.2)),
    "grayscale": (imgops.grayscale, lambda x: _chw(_pil(x).convert("L"))),
    "color_matrix": (
        lambda x: imgops.color_matrix(x, torch.from_numpy(_A)),
        lambda x: _chw(cv2.transform(_hwc(x), _A)),
    ),
    "color_sequence": (
        lambda x: imgops.color_sequence(
            x, torch.tensor([1, 0]), torch.tensor([0.7, 1.3]), "brightness,contrast"
        ),
        lambda x: _chw(ImageEnhance.Brightness(ImageEnhance.Contrast(_pil(x)).enhance(1.3)).enhance(0.7)),
    ),
    "invert": (imgops.invert, lambda x: _chw(ImageOps.invert(_pil(x)))),
    "posterize": (lambda x: imgops.posterize(x, 3), lambda x: _chw(ImageOps.posterize(_pil(x), 3))),
    "solarize": (lambda x: imgops.solarize(x, 128), lambda x: _chw(ImageOps.solarize(_pil(x), 128))),
    "autocontrast": (imgops.autocontrast, lambda x: _chw(ImageOps.autocontrast(_pil(x)))),
    "equalize": (imgops.equalize, lambda x: _chw(ImageOps.equalize(_pil(x)))),
    "lut": (lambda x: imgops.lut(x, torch.from_numpy(_TABLE)), lambda x: _chw(cv2.LUT(_hwc(x), _TABLE))),
    "gaussian_blur": (
        lambda x: imgops.gaussian_blur(x, 9, 1.5),
        lambda x: _chw(cv2.GaussianBlur(_hwc(x), (9, 9), 1.5)),
    ),
    "filter2d": (
        lambda x: imgops.filter2d(x, torch.from_numpy(_K)),
        lambda x: _chw(cv2.filter2D(_hwc(x), -1, _K)),
    ),
    "erase": (lambda x: imgops.erase(x, (30, 40, 200, 220)), lambda x: _chw(_erased(x))),
    "blend": (
        lambda x: imgops.blend(x, imgops.flip(x), 0.3),
        lambda x: _chw(Image.blend(_pil(x), ImageOps.mirror(_pil(x)), 0.3)),
    ),
    "encode_image": (
        lambda x: imgops.encode_image(x, "jpeg", 90),
        lambda x: torch.tensor(list(_file(x)), dtype=torch.uint8),
    ),
    "decode_image": (
        lambda x: imgops.decode_image(torch.tensor(list(_file(x)), dtype=torch.uint8)),
        lambda x: _chw(Image.open(io.BytesIO(_file(x)))),
    ),
}


@cache
def _file_of(pixels: bytes, size: tuple[int, int]) -> bytes:
    buffer = io.BytesIO()
    Image.frombytes("RGB", size, pixels).save(buffer, "JPEG", quality=90)
    return buffer.getvalue()


def _file(x: Tensor) -> bytes:
    return _file_of(_hwc(x).tobytes(), (x.shape[-1], x.shape[-2]))


@cache
def difference(name: str) -> str:
    """In words: the greatest difference in levels, and how many values have any."""
    if name not in CALLS:
        return "in the tests"
    ours, theirs = CALLS[name]
    photo = torch.from_numpy(data.astronaut()).permute(2, 0, 1)
    found, wanted = ours(photo), theirs(photo)
    wanted = wanted if isinstance(wanted, Tensor) else _chw(wanted)
    if found.shape != wanted.shape:
        raise AssertionError(f"{name}: {tuple(found.shape)} is not {tuple(wanted.shape)}")
    apart = (found.int() - wanted.int()).abs()
    most, share = int(apart.max()), float((apart > 0).double().mean())
    return "0" if most == 0 else f"{most} level{'s' * (most > 1)} in {100 * share:.2f} % of the values"
