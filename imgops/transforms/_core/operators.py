"""Operators that only the transforms use: torchvision's own code, which no compiler traces, and labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.compiler import is_compiling
from torchvision.transforms.v2 import functional

from imgops._common import compare, layout, torch_private
from imgops._operator import subclass
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.autograd.color import from_gray
from imgops.decomposition import color as decomposition
from imgops.decomposition._precision import divide
from imgops.kernels import cuda
from imgops.kernels.cpu import color, native
from imgops.rules import packed, sharding, vmap
from imgops.transforms._core import annotation_kinds, programs

# -- boxes, keypoints, and images that imgops' operators do not compute -----------------------------


def _planar_like(values: Tensor, *_: Any) -> Tensor:
    return torch.empty(values.shape, dtype=values.dtype, device=values.device)


def _like(image: Tensor, *_: Any) -> Tensor:
    return layout.empty(image, *image.shape[-2:])


def _by_torchvision_kernel(
    out: Tensor,
    values: Tensor,
    numbers: Tensor,
    height: int,
    width: int,
    own_height: int,
    own_width: int,
    description: str,
    kind: str,
) -> None:
    transform = programs.from_description(description)
    whole = numbers.ndim == 1
    rows = [numbers] if whole else list(numbers)
    for target, source, row in zip([out] if whole else out, [values] if whole else values, rows, strict=True):
        inpt = annotation_kinds.tv_tensor(source.detach(), kind, (own_height, own_width))
        params = transform._values_from(row.tolist(), height, width)
        target.copy_(inpt if params is None else transform._by_torchvision(inpt, params))


@operator("imgops_transforms::by_torchvision", kernel=_by_torchvision_kernel, fake=_planar_like)
def by_torchvision(
    values: Tensor,
    numbers: Tensor,
    height: int,
    width: int,
    own_height: int,
    own_width: int,
    description: str,
    kind: str,
) -> Tensor:
    """Transform boxes, keypoints or an image by torchvision's code.

    The parameters are for images of ``height`` and ``width``; boxes may have a canvas of another size.
    """


def _map_formula(values: Tensor, numbers: Tensor, height: int, width: int, name: str, kind: str) -> Tensor:
    inpt = annotation_kinds.tv_tensor(values, kind, (height, width))
    given = numbers.tolist()
    if name == "affine":
        angle, x, y, scale, shear_x, shear_y, *center = given
        arguments: dict[str, Any] = {"angle": angle, "translate": [x, y], "scale": scale}
        arguments |= {"shear": [shear_x, shear_y], "center": center or None}
    elif len(given) == 8:
        arguments = {"startpoints": None, "endpoints": None, "coefficients": given}
    else:
        start, end = numbers.reshape(2, 4, 2).tolist()
        arguments = {"startpoints": start, "endpoints": end}
    return subclass.plain(getattr(functional, name)(inpt, **arguments))


_map_formula.reads_parameters = True  # type: ignore[attr-defined]


def _map_kernel(
    out: Tensor, values: Tensor, numbers: Tensor, height: int, width: int, name: str, kind: str
) -> None:
    out.copy_(_map_formula(values.detach(), numbers, height, width, name, kind))


@operator(
    "imgops_transforms::map_annotations", kernel=_map_kernel, fake=_planar_like, decomposition=_map_formula
)
def map_annotations(values: Tensor, numbers: Tensor, height: int, width: int, name: str, kind: str) -> Tensor:
    """Map boxes or keypoints by torchvision's "affine" or "perspective", which dynamo cannot trace.

    The numbers are the arguments in their order: 6 or, with a center, 8 for "affine"; 8 coefficients or the
    16 coordinates of two times four points for "perspective".
    """


# -- sizes that depend on parameters ----------------------------------------------------------------


def _sizes_fake(new_size: Any, numbers: Tensor, height: int, width: int, least: Any, *_: Any) -> Tensor:
    return torch.empty((*(new_size(min=low) for low in least), 0), device=numbers.device, dtype=torch.float32)


def _sizes_kernel(numbers: Tensor, height: int, width: int, least: Sequence[int], description: str) -> Tensor:
    found = programs.from_description(description)._sampled_sizes(numbers.tolist(), height, width)
    return torch.empty((*found, 0), dtype=torch.float32, device="cpu")


@operator("imgops_transforms::sizes", kernel=_sizes_kernel, fake=_sizes_fake, dynamic=True)
def sizes(numbers: Tensor, height: int, width: int, least: Sequence[int], description: str) -> Tensor:
    """Return an empty tensor whose shape is the sizes that the parameters imply, followed by 0.

    Each size is at least the one in ``least``.
    """


def sizes_of(
    transform: Any, numbers: Tensor, canvas: tuple[int, int], least: Sequence[int]
) -> tuple[int, ...]:
    """Return the sizes that the parameters of a transform imply; a graph cannot read these."""
    if is_compiling():
        return tuple(sizes(numbers, *canvas, least, transform._description).shape[: len(least)])
    return transform._sampled_sizes(numbers.tolist(), *canvas)  # type: ignore[no-any-return]


@operator(
    "imgops_transforms::indices_of_true",
    kernel=lambda flags: flags.nonzero()[:, 0],
    fake=lambda new_size, flags: torch.empty((new_size(min=0),), dtype=torch.int64, device=flags.device),
    dynamic=True,
)
def indices_of_true(flags: Tensor) -> Tensor:
    """Return the indices of the True values."""


# -- the samples that were chosen ------------------------------------------------------------------


def where(chosen: Tensor, result: Tensor, image: Tensor) -> Tensor:
    """Select ``result`` for the samples that were chosen, else ``image``."""
    chosen = chosen.to(image.device, non_blocking=True)
    return torch.where(chosen[..., None, None, None], result, image)


def _change_chosen(
    out: Tensor, image: Tensor, chosen: Tensor, change: Callable[[Tensor, Tensor], None]
) -> None:
    """Call ``change(out, image)`` for the chosen samples, at once or one by one; copy the other samples."""
    if chosen.numel() == 1:
        if chosen.item():
            change(out, image)
        else:
            out.copy_(image)
        return
    each = chosen.expand(image.shape[:-3])
    for i in np.ndindex(*each.shape):
        _change_chosen(out[i], image[i], each[i], change)


# -- flips ---------------------------------------------------------------------------------------


def _flip_kernel(out: Tensor, image: Tensor, chosen: Tensor, dim: int) -> None:
    is_batch = dim == -1 and image.ndim > 3 and chosen.numel() == image.shape[0] > 0
    if is_batch and native.mirror_chosen(out, image.detach(), bytes(chosen.flatten().tolist())):
        return

    def mirror(out: Tensor, image: Tensor) -> None:
        if dim != -1 or not native.mirror(out, image):
            out.copy_(image.flip(dim))

    _change_chosen(out, image.detach(), chosen, mirror)


def flip(image: Tensor, dim: int) -> Tensor:
    """Mirror an image, or all samples of a batch."""
    if image.numel() < SMALL or dim != -1:
        return image.flip(dim) if layout.is_dense(image) else image.contiguous().flip(dim)
    return flip_chosen(image, _ALL, dim)


#: The number of values below which PyTorch's own flip and copy are faster than a call of the native ones.
SMALL = 1 << 12
_ALL = torch.ones((), dtype=torch.bool, device="cpu")


def _flip_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, chosen, ctx.dim = inputs
    ctx.save_for_backward(chosen)


def _flip_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return torch.ops.imgops_transforms.flip_chosen(grad, *ctx.saved_tensors, ctx.dim), None, None


@operator(
    "imgops_transforms::flip_chosen",
    kernel=_flip_kernel,
    autograd=Gradient(_flip_setup_context, _flip_backward),
    cuda=cuda.Kernel("chosen_samples.flip"),
    fake=_like,
    vmap=vmap.leading(3, 0),
    sharding=sharding.leading(3, 0),
    decomposition=lambda image, chosen, dim: where(chosen, image.flip(dim), image),
    packed=packed.keeps_size,
)
def flip_chosen(image: Tensor, chosen: Tensor, dim: int) -> Tensor:
    """Mirror only the samples that were chosen; a compiler would mirror all of them and then choose."""


# -- gray ----------------------------------------------------------------------------------------


def _gray_kernel(out: Tensor, image: Tensor, chosen: Tensor) -> None:
    agrees = image.dtype == torch.uint8 and image.numel() > 0 and compare.agrees("grayscale")
    which = bytes(chosen.expand(image.shape[:-3]).flatten().tolist())
    if agrees and native.gray_rgb(out, image.detach(), which):
        return

    _change_chosen(
        out, image.detach(), chosen, lambda out, image: color.grayscale(out, image, image.shape[-3])
    )


def _gray_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[1])


def _gray_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    (chosen,) = ctx.saved_tensors
    return where(chosen, from_gray(grad, grad.shape[-3]), grad), None


@operator(
    "imgops_transforms::gray_chosen",
    kernel=_gray_kernel,
    autograd=Gradient(_gray_setup_context, _gray_backward),
    cuda=cuda.Kernel("chosen_samples.grayscale"),
    fake=_like,
    vmap=vmap.leading(3, 0),
    sharding=sharding.leading(3, 0),
    decomposition=lambda image, chosen: where(chosen, decomposition.grayscale(image, image.shape[-3]), image),
    packed=packed.keeps_size,
)
def gray_chosen(image: Tensor, chosen: Tensor) -> Tensor:
    """Convert the samples that were chosen to PIL's gray, with as many channels as before."""


# -- memory ---------------------------------------------------------------------------------------


def _planar_kernel(out: Tensor, image: Tensor) -> None:
    if not native.split(out, image.detach()):
        out.copy_(image.detach())


@operator(
    "imgops_transforms::planar",
    kernel=_planar_kernel,
    fake=_planar_like,
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=lambda image: image.clone(memory_format=torch.contiguous_format),
)
def planar(image: Tensor) -> Tensor:
    """Copy an interleaved image into the planar memory format."""


def as_planar(image: Tensor) -> Tensor:
    """Return the image in the planar memory format: itself if it is planar."""
    if image.is_contiguous():
        return image
    is_small = torch_private.is_eager() and image.numel() < SMALL
    return image.contiguous() if is_small else planar(image)


# -- labels --------------------------------------------------------------------------------------


def _positions(start: Tensor, stop: Tensor, size: int, how: str) -> Tensor:
    """Return the index in ``[start, stop)`` of each of ``size`` pixels.

    The arithmetic is PyTorch's in float32; with "opencv" it is OpenCV's in float64.
    """
    length = (stop - start)[..., None]
    dtype = torch.float64 if how == "opencv" else torch.float32
    if how == "opencv":  # a number divided by a tensor would be multiplied by its reciprocal
        scale = 1 / (torch.full_like(length, size, dtype=dtype) / length)
    else:
        scale = divide(length.to(dtype), size)
    places = (torch.arange(size, dtype=dtype, device=start.device) * scale).floor().long()
    return start[..., None] + torch.minimum(places, length - 1)


def _nearest_formula(mask: Tensor, boxes: Tensor, size: Sequence[int], how: str) -> Tensor:
    left, top, right, bottom = boxes.to(mask.device).unbind(-1)
    rows = _positions(top, bottom, size[0], how)
    columns = _positions(left, right, size[1], how)
    if boxes.ndim == 1:
        return mask.index_select(-2, rows).index_select(-1, columns)
    shape = (*mask.shape[:-2], size[0], mask.shape[-1])
    mask = mask.gather(-2, rows[..., None, :, None].expand(shape))
    shape = (*mask.shape[:-1], size[1])
    return mask.gather(-1, columns[..., None, None, :].expand(shape))


@operator(
    "imgops_transforms::nearest",
    kernel=lambda out, mask, *how: out.copy_(_nearest_formula(mask.detach(), *how)),
    fake=lambda mask, boxes, size, how: torch.empty(
        (*mask.shape[:-2], *size), dtype=mask.dtype, device=mask.device
    ),
    vmap=vmap.leading(3, 1),
    decomposition=_nearest_formula,
)
def nearest(mask: Tensor, boxes: Tensor, size: Sequence[int], how: str) -> Tensor:
    """Crop labels ``(..., C, H, W)`` to boxes ``(..., 4)`` and resize them by the nearest pixel.

    ``how`` is "nearest" for PyTorch's pixels, which are torchvision's, or "opencv".
    """


# -- the transforms that torchvision does not have ---------------------------------------------------


def _apply_formula(
    image: Tensor, numbers: Tensor, extra: Tensor | None, description: str, kind: str
) -> Tensor:
    return programs.from_description(description)._change_samples(image, numbers, extra, kind, None)


#: The host decides which samples change, so that the derived gradient leaves the parameters on the CPU.
_apply_formula.reads_parameters = True  # type: ignore[attr-defined]


def _apply_kernel(
    out: Tensor, image: Tensor, numbers: Tensor, extra: Tensor | None, description: str, kind: str
) -> None:
    with torch_private.default_dispatch_state(), torch.no_grad():
        plain = None if extra is None else extra.detach()
        programs.from_description(description)._change_samples(
            image.detach(), numbers.detach(), plain, kind, out
        )


@operator(
    "imgops_transforms::apply_transform",
    kernel=_apply_kernel,
    cuda=_apply_kernel,
    fake=_like,
    vmap=vmap.leading(3, 1, 1),
    decomposition=_apply_formula,
)
def apply_transform(
    image: Tensor, numbers: Tensor, extra: Tensor | None, description: str, kind: str
) -> Tensor:
    """Change the samples that were chosen by the transform of a description, with these parameters."""


def _apply_to_size_kernel(
    out: Tensor, image: Tensor, numbers: Tensor, height: int, width: int, description: str, kind: str
) -> None:
    with torch_private.default_dispatch_state(), torch.no_grad():
        transform, source = programs.from_description(description), image.detach()
        values = transform._values_from(numbers.tolist(), height, width)
        out.copy_(source if values is None else transform._change_checked(source, values, None, kind))


@operator(
    "imgops_transforms::apply_to_size",
    kernel=_apply_to_size_kernel,
    cuda=_apply_to_size_kernel,
    fake=lambda image, numbers, height, width, *_: layout.empty(image, height, width),
)
def apply_to_size(
    image: Tensor, numbers: Tensor, height: int, width: int, description: str, kind: str
) -> Tensor:
    """Change an image by the transform of a description to one of another size."""
