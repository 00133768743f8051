"""Gradients of crop, pad and paste: each one calls the other operators, and none depends on a kernel."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

ops = torch.ops.imgops


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


def paste_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    image, source, mask, *ctx.position = inputs
    ctx.sizes = image.shape, source.shape
    if mask is None:
        ctx.mask_dtype = None
        return
    ctx.mask_dtype = mask.dtype
    # The mask's own gradient needs the pixels too.
    kept = (mask, image, source) if mask.dtype.is_floating_point else (mask, None, None)
    ctx.save_for_backward(*kept)
    ctx.save_for_forward(*kept)


def _load(ctx: Any) -> tuple[Any, Any, Any]:
    """Return the mask and, if it is floating point, the two images."""
    return ctx.saved_tensors if ctx.mask_dtype is not None else (None, None, None)


def paste_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    left, top = ctx.position
    mask, image, source = _load(ctx)
    needs_image, needs_source, needs_mask = ctx.needs_input_grad[:3]
    grad_image = grad_source = grad_mask = None
    if needs_image:
        grad_image = ops.paste(grad, zeros(grad, ctx.sizes[1]), mask, left, top)
    if needs_source or needs_mask:
        height, width = ctx.sizes[1][-2:]
        patch = ops.crop(grad, left, top, left + width, top + height)
        if needs_source:
            # Pasting into zeros with the mask multiplies by the mask, with one rounding.
            nothing = zeros(patch, patch.shape)
            grad_source = patch if mask is None else ops.paste(nothing, patch, mask, 0, 0)
        if needs_mask:
            below = ops.crop(image, left, top, left + width, top + height)
            working = torch.float64 if grad.dtype == torch.float64 else torch.float32
            change = patch.to(working) * (source.to(working) - below.to(working))
            grad_mask = change.sum(-3, keepdim=True).to(ctx.mask_dtype)
    return grad_image, grad_source, grad_mask, None, None


def paste_jvp(ctx: Any, image: Tensor | None, source: Tensor | None, mask: Tensor | None, *_: None) -> Tensor:
    left, top = ctx.position
    weight, below, above = _load(ctx)
    like = next(t for t in (image, source, mask) if t is not None)
    image_size, source_size = ctx.sizes
    dtype = like.dtype if below is None else below.dtype
    base = zeros(like.to(dtype), image_size) if image is None else image
    patch = zeros(like.to(dtype), source_size) if source is None else source
    out = ops.paste(base, patch, weight, left, top)
    if mask is not None:
        height, width = source_size[-2:]
        under = ops.crop(below, left, top, left + width, top + height)
        moved = mask.to(dtype) * (above - under)
        out = out + ops.paste(zeros(moved, image_size), moved, None, left, top)
    return out


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
