"""Packed images: the operators that take them, and the functions that nothing else has."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import torch
from torch import Tensor

from imgops import _check, _layout, _packed, vmap
from imgops._operators import Contract, Operator, table
from imgops._packed import PackedImages as PackedImages
from imgops._registry import operator
from imgops.decomposition import packed as decomposition
from imgops.fake import packed as fake
from imgops.fake.color_space import CHANNELS
from imgops.kernels import cuda
from imgops.kernels.cpu import packed as cpu

__all__ = ["PackedImages"]

#: The operators that give all images one size.
DENSE = ("resize", "resized_crop", "crop", "warp_affine", "warp_perspective")
#: The operators that keep the size of each image.
KEEPING = (
    *("adjust_brightness", "adjust_contrast", "adjust_saturation", "adjust_hue", "adjust_sharpness"),
    *("adjust_gamma", "posterize", "solarize", "autocontrast", "equalize", "lut", "grayscale"),
    *("color_matrix", "color_sequence", "cvt_color", "clahe", "threshold", "adaptive_threshold"),
    *("gaussian_blur", "box_blur", "median_blur", "bilateral_filter", "unsharp_mask", "filter2d"),
    *("erode", "dilate", "hit_or_miss", "sobel", "scharr", "laplacian", "canny"),
    *("jpeg", "webp", "downscale", "distance_transform", "component_labels"),
)


def take(row: Operator, keeps_size: bool) -> None:
    """Let an operator take packed images: as one operator ``imgops_packed::name`` of their tensors."""
    name = row.qualified.replace("::", "_packed::")
    function = operator(
        name,
        kernel=partial(cpu.run, row, keeps_size),
        cuda=partial(_on_device, row, keeps_size),
        fake=partial(fake.allocate, row, keeps_size),
        decomposition=partial(decomposition.loop, row, keeps_size),
        values=partial(_require_fit, row),
        vmap=partial(_refuse_vmap, row.name),
        autocast=row.autocast,
        no_gradient=row.no_gradient,
    )(_declared(row))
    parameters, keeps_channels = row.tensors - 1, row.name not in _OTHER_CHANNELS

    def call(images: PackedImages, *args: Any) -> Any:
        where = images.data, images.sizes, images.offsets
        channels, interleaved = images.num_channels, images.interleaved
        out = function(*where, *args[:parameters], channels, *args[parameters:], interleaved)
        if not keeps_size:
            return out
        if keeps_channels:
            return images.like(out)
        count = _OTHER_CHANNELS[row.name](channels, *args)
        made = images.like(out, images.sizes, images.offsets // channels * count)
        made.num_channels = count
        return made

    _packed.functions[row.qualified] = call


#: The operators that change the number of channels, and how.
_OTHER_CHANNELS: dict[str, Callable[..., int]] = {
    "grayscale": lambda channels, count: count,
    "color_matrix": lambda channels, matrix: matrix.shape[-2],
    "cvt_color": lambda channels, code: CHANNELS[code.rpartition("2")[2]],
    "canny": lambda channels, *rest: 1,
}


def _declared(row: Operator) -> Callable[..., Any]:
    """Return a signature: the three tensors, the operator's own parameters, and the form of the images."""
    own = list(row.signature.parameters.values())[1:]
    tensors, rest = own[: row.tensors - 1], own[row.tensors - 1 :]
    names = ["data", "sizes", "offsets", *(p.name for p in tensors), "channels", *(p.name for p in rest)]
    names.append("interleaved")
    scope = {"Tensor": Tensor, "Sequence": Sequence}
    # A schema is read from the code of a function, so there must be one.
    exec(f"def {row.name}({', '.join(names)}): ...", scope)
    declared: Any = scope[row.name]
    declared.__annotations__ = {
        **dict.fromkeys(("data", "sizes", "offsets"), "Tensor"),
        **{p.name: p.annotation for p in own},
        "channels": "int",
        "interleaved": "bool",
        "return": "Tensor",
    }
    return declared


def _require_fit(row: Operator, data: Tensor, sizes: Tensor, offsets: Tensor, *args: Any) -> None:
    _packed.require_fit(row.name, data, sizes, offsets, args[row.tensors - 1])


def _on_device(row: Operator, keeps_size: bool, out: Tensor, *args: Any) -> None:
    """Resize in one launch; else run the operator's own kernel for each image, with the sizes on the host."""
    plain = [x.detach() if isinstance(x, Tensor) else x for x in args]
    if row.name in ("resize", "resized_crop") and out.numel():
        data, sizes, offsets, box, _, _, _, interpolation, antialias, _ = plain
        if antialias and interpolation != "nearest":
            greatest = tuple(sizes.amax(0).tolist())
            if _RESIZE(out, data, sizes, offsets, box, greatest, interpolation) is not NotImplemented:
                return
    with torch.no_grad():
        if out.numel():
            out.copy_(decomposition.loop(row, keeps_size, *plain))


_RESIZE = cuda.Kernel("resize.resize_packed")


def _refuse_vmap(op: str, *args: Any) -> NoReturn:
    must = f"{op}: image must be a Tensor under vmap, whose samples have one size"
    raise NotImplementedError(f"{must}, got PackedImages")


def _flip_kernel(out: Tensor, image: Tensor, dims: Sequence[int]) -> None:
    out.copy_(image.detach().flip(list(dims)))


def _flip_fake(image: Tensor, dims: Sequence[int]) -> Tensor:
    return _layout.empty(image, *image.shape[-2:])


def _flip(image: Tensor, dims: Sequence[int]) -> Tensor: ...


#: PyTorch's own flip, in the form of an operator.
_FLIP = Operator(
    "flip",
    "imgops",
    Contract.FUNCTIONAL,
    inspect.signature(_flip),
    _flip_kernel,
    _flip_fake,
    vmap=vmap.leading(3),
    overload=lambda image, dims: image.flip(dims),
)


_check.TAKES_PACKED.update((*DENSE, *KEEPING, "contain", "cover", "fit", "flip", "invert"))


def take_named(name: str) -> None:
    """Let the operator of a name take packed images; it keeps their sizes."""
    take(table[name], keeps_size=True)


for _name in DENSE:
    take(table[f"imgops::{_name}"], keeps_size=False)
for _name in (*(f"imgops::{name}" for name in KEEPING), *_packed.also):
    take_named(_name)
take(_FLIP, keeps_size=True)
