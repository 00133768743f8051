"""Gradients of crop, pad and paste: each one calls the other operators, and none depends on a kernel."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from imgops._common import check
from imgops._operator.record import calls as ops
from imgops.decomposition._precision import working_dtype


def zeros(like: Any, size: torch.Size) -> Tensor:
    """Return zeros that take no memory: one number, expanded to ``size``."""
    return like.new_zeros(()).expand(size)


def crop_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    image, *ctx.box = inputs
    ctx.size = image.shape


def crop_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    left, top, _, _ = ctx.box
    return ops.paste(zeros(grad, ctx.size), grad, None, left, top), None, None, None, None


def crop_jvp(ctx: Any, image: Tensor, *_: None) -> Tensor:
    return ops.crop(image, *ctx.box)


def crop_each_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    image, box, *ctx.crop_size = inputs
    ctx.size = image.shape
    ctx.save_for_backward(box)
    ctx.save_for_forward(box)


def crop_each_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    (box,) = ctx.saved_tensors
    return ops.paste_each(zeros(grad, ctx.size), grad, None, box[..., :2]), None, None, None


def crop_each_jvp(ctx: Any, image: Tensor, *_: None) -> Tensor:
    return ops.crop_each(image, *ctx.saved_tensors, *ctx.crop_size)


class _Place:
    """The position of a paste, and crop and paste at it."""

    def __init__(self, *position: Any) -> None:
        self.position = position

    def paste(self, image: Tensor, source: Tensor, mask: Tensor | None = None) -> Any:
        return ops.paste(image, source, mask, *self.position)

    def crop(self, image: Tensor, height: int, width: int) -> Any:
        left, top = self.position
        return ops.crop(image, left, top, left + width, top + height)

    def is_all(self, size: torch.Size, of_source: torch.Size) -> bool:
        """Return whether the source is known to cover the whole image, and nothing else."""
        known = ((*self.position, *size[-2:]), (0, 0, *of_source[-2:]))
        return all(check.is_known(a == b) for a, b in zip(*known, strict=True))


class _EachPlace(_Place):
    """The same with a tensor: a position for each image."""

    def paste(self, image: Tensor, source: Tensor, mask: Tensor | None = None) -> Any:
        return ops.paste_each(image, source, mask, *self.position)

    def crop(self, image: Tensor, height: int, width: int) -> Any:
        left, top = self.position[0].unbind(-1)
        box = torch.stack([left, top, left + width, top + height], -1)
        return ops.crop_each(image, box, height, width)

    def is_all(self, size: torch.Size, of_source: torch.Size) -> bool:
        return False


def _save_paste(ctx: Any, image: Tensor, source: Tensor, mask: Tensor | None, *position: Tensor) -> None:
    ctx.sizes = image.shape, source.shape
    ctx.mask_dtype = None if mask is None else mask.dtype
    kept: tuple[Tensor | None, ...] = ()
    if mask is not None:
        # The mask's own gradient, or tangent, needs the pixels too.
        kept = (mask, image, source) if mask.dtype.is_floating_point else (mask, None, None)
    ctx.has_saved = bool(kept or position)
    if ctx.has_saved:
        ctx.save_for_forward(*kept, *position)
        if kept and not ctx.needs_input_grad[2]:
            kept = (mask, None, None)
        ctx.save_for_backward(*kept, *position)


def _load_paste(ctx: Any) -> tuple[Any, Any, Any, _Place]:
    """Return the mask, the two images if the mask is floating point, and the position."""
    saved = list(ctx.saved_tensors) if ctx.has_saved else []
    place = ctx.place or _EachPlace(saved.pop())
    mask, image, source = saved or (None, None, None)
    return mask, image, source, place


def paste_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    image, source, mask, *position = inputs
    ctx.place = _Place(*position)
    _save_paste(ctx, image, source, mask)


def paste_each_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.place = None  # it is a saved tensor
    _save_paste(ctx, *inputs)


def paste_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return *_paste_gradients(ctx, grad), None, None


def paste_each_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return *_paste_gradients(ctx, grad), None


def _paste_gradients(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """Return the gradients of the image, the source and the mask."""
    mask, image, source, place = _load_paste(ctx)
    needs_image, needs_source, needs_mask = ctx.needs_input_grad[:3]
    grad_image = grad_source = grad_mask = None
    is_all = mask is not None and mask.dtype.is_floating_point and place.is_all(*ctx.sizes)
    working = working_dtype(grad)
    if needs_image and is_all:
        grad_image = (grad.to(working) * (1 - mask.to(working))).to(grad.dtype)
    elif needs_image:
        grad_image = place.paste(grad, zeros(grad, ctx.sizes[1]), mask)
    if needs_source or needs_mask:
        size = ctx.sizes[1][-2:]
        patch = grad if is_all else place.crop(grad, *size)
        if needs_source:
            # Pasting into zeros with the mask multiplies by the mask, with one rounding.
            nothing = zeros(patch, patch.shape)
            if is_all:
                grad_source = (patch.to(working) * mask.to(working)).to(patch.dtype)
            else:
                grad_source = patch if mask is None else ops.paste(nothing, patch, mask, 0, 0)
        if needs_mask:
            below = image if is_all else place.crop(image, *size)
            change = patch.to(working) * (source.to(working) - below.to(working))
            grad_mask = change.sum(-3, keepdim=True).to(ctx.mask_dtype)
    return grad_image, grad_source, grad_mask


def paste_jvp(ctx: Any, image: Tensor | None, source: Tensor | None, mask: Tensor | None, *_: None) -> Tensor:
    weight, below, above, place = _load_paste(ctx)
    like = next(t for t in (image, source, mask) if t is not None)
    image_size, source_size = ctx.sizes
    dtype = like.dtype if below is None else below.dtype
    base = zeros(like.to(dtype), image_size) if image is None else image
    patch = zeros(like.to(dtype), source_size) if source is None else source
    out = place.paste(base, patch, weight)
    if mask is not None:
        moved = mask.to(dtype) * (above - place.crop(below, *source_size[-2:]))
        out = out + place.paste(zeros(moved, image_size), moved)
    return out  # type: ignore[no-any-return]


def paste_each_jvp(ctx: Any, *tangents: Any) -> Tensor:
    return paste_jvp(ctx, *tangents)


def pad_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    image, fill, *ctx.padding, ctx.padding_mode = inputs
    ctx.size = image.shape
    ctx.fill_size = None if fill is None else fill.shape
    ctx.fill_place = {} if fill is None else {"device": fill.device, "dtype": fill.dtype}


def pad_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    left, top, right, bottom = ctx.padding
    grad_image = grad_fill = None
    if ctx.needs_input_grad[0]:
        grad_image = ops.pad_adjoint(grad, left, top, right, bottom, ctx.padding_mode)
    if ctx.needs_input_grad[1]:
        # Only a constant border contains the fill.
        border = grad if ctx.padding_mode == "constant" else zeros(grad, grad.shape)
        border = ops.paste(border, zeros(grad, ctx.size), None, left, top)
        size = (1,) * (grad.ndim - 2 - len(ctx.fill_size)) + tuple(ctx.fill_size)
        total = border.sum((-2, -1)).sum_to_size(size)
        grad_fill = total.reshape(ctx.fill_size).to(**ctx.fill_place)
    return grad_image, grad_fill, None, None, None, None, None


def pad_jvp(ctx: Any, image: Any, fill: Tensor | None, *_: None) -> Tensor:
    if image is None:  # only the fill has a tangent
        image = zeros(fill, ctx.size)
    return ops.pad(image, fill, *ctx.padding, ctx.padding_mode)


def pad_adjoint_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, *ctx.padding, ctx.padding_mode = inputs


def pad_adjoint_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return ops.pad(grad, None, *ctx.padding, ctx.padding_mode), None, None, None, None, None


def pad_adjoint_jvp(ctx: Any, grad: Tensor, *_: None) -> Tensor:
    return ops.pad_adjoint(grad, *ctx.padding, ctx.padding_mode)


def erase_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, fill, box = inputs
    ctx.fill_size = fill.shape
    ctx.save_for_backward(box)


def erase_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    (box,) = ctx.saved_tensors
    outside = ops.erase(grad, zeros(grad, torch.Size((*grad.shape[:-2], 1, 1))), box)
    of_fill = None
    if ctx.needs_input_grad[1]:
        lead = (1,) * (grad.ndim - len(ctx.fill_size))
        of_fill = (grad - outside).sum_to_size((*lead, *ctx.fill_size)).reshape(ctx.fill_size)
    return outside, of_fill, None
