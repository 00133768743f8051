"""Register the packed variant of each operator that accepts ``PackedImages``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import torch
from torch import Tensor

from imgops import _check, _layout, _packed, _torch_private, vmap
from imgops._operators import Contract, Operator, table
from imgops._packed import PackedImages as PackedImages
from imgops._registry import operator
from imgops.decomposition import packed as decomposition
from imgops.fake import packed as fake
from imgops.fake.color_space import CHANNELS
from imgops.kernels import cuda, transfer
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
        if row.name in ("resize", "resized_crop") and args[0] is not None and args[0].requires_grad:
            must = f"{row.name}: box must not require a gradient, which is not implemented"
            raise NotImplementedError(f"{must}, got a box with requires_grad=True")
        where = images.data, images.sizes, images.offsets
        channels, interleaved = images.num_channels, images.interleaved
        no_images = _torch_private.is_eager() and len(images) == 0 and images.requires_grad
        if no_images:  # there is no loop over them, but gradients flow through their values, which are none
            where = images.data.detach(), *where[1:]
        out = function(*where, *args[:parameters], channels, *args[parameters:], interleaved)
        if no_images:
            out = images.data.reshape(out.shape).to(out.dtype)
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


#: The operators whose kernels for CUDA take packed images.
ONE_LAUNCH = frozenset(
    (
        *DENSE,
        *("adjust_brightness", "adjust_contrast", "adjust_saturation", "adjust_hue", "adjust_sharpness"),
        *("adjust_gamma", "posterize", "solarize", "autocontrast", "equalize", "lut", "grayscale"),
        *("color_matrix", "color_sequence", "gaussian_blur", "box_blur", "filter2d", "erode", "dilate"),
        *("flip", "hit_or_miss", "sobel", "scharr", "laplacian"),
    )
)


def _on_device(row: Operator, keeps_size: bool, out: Tensor, *args: Any) -> None:
    """Run the kernel for all images at once; where there is none, the operator itself for each image."""
    plain = [x.detach() if isinstance(x, Tensor) else x for x in args]
    with torch.no_grad():
        if out.numel() and _launch(row, keeps_size, out, *plain) is NotImplemented:
            out.copy_(decomposition.loop(row, keeps_size, *plain))


def _launch(row: Operator, keeps_size: bool, out: Tensor, *args: Any) -> Any:
    if row.cuda is None or row.name not in ONE_LAUNCH or not cuda.runs_on(out.device):
        return NotImplemented
    from imgops.kernels.cuda._packed import Packed

    count = row.tensors - 1
    data, sizes, offsets, *parameters = args[: 3 + count]
    channels, *rest, interleaved = args[3 + count :]
    _require_values(row, data, sizes, channels, parameters, rest)
    shape = len(sizes), channels, *sizes.amax(0).tolist()
    sizes, offsets, *parameters = transfer.move_arguments(out.device, [sizes, offsets, *parameters])
    target: Any = out
    if keeps_size:
        of_out = out.shape[0] // (data.shape[0] // channels)
        target = Packed(out, sizes, offsets, (shape[0], of_out, *shape[2:]), interleaved)
    return row.cuda(target, Packed(data, sizes, offsets, shape, interleaved), *parameters, *rest)


def _require_values(
    row: Operator, data: Tensor, sizes: Tensor, channels: int, parameters: list[Any], rest: list[Any]
) -> None:
    """Check the parameters on the CPU as the operator does: a box must lie inside of its own image."""
    if row.values is None or all(x is None or not x.is_cpu for x in parameters):
        return
    if row.name not in ("resize", "resized_crop"):
        row.values(data.new_empty(()).expand(len(sizes), channels, 1, 1), *parameters, *rest)
        return
    for i, (height, width) in enumerate(sizes.tolist()):
        stand_in = torch.empty((channels, height, width), device="meta", dtype=torch.float32)
        row.values(stand_in, *decomposition.of_image(row, parameters, i), *rest)


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
    cuda=cuda.Kernel("movement.flip"),
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
