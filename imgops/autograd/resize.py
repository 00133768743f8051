"""Gradients of resize and its adjoint: each one is the gradient of the other."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from imgops._operator.record import calls as ops


def resize_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Save what the backwards of resize and of its adjoint need; both have the same arguments."""
    image, box, _, _, ctx.interpolation, ctx.antialias, ctx.scale = inputs
    if box is not None and box.requires_grad:
        # A gradient of None would mean "no influence", but the box has a gradient that is not implemented
        # yet.
        must = "resize: box must not require a gradient, which is not implemented"
        raise NotImplementedError(f"{must}, got a box with requires_grad=True")
    ctx.source, ctx.size = image.shape[-2:], output.shape[-2:]
    ctx.has_box = box is not None
    if ctx.has_box:
        ctx.save_for_backward(box)
        ctx.save_for_forward(box)


resize_adjoint_setup_context = resize_setup_context


def _box(ctx: Any) -> Tensor | None:
    return ctx.saved_tensors[0] if ctx.has_box else None


def resize_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    back = ops.resize_adjoint(grad, _box(ctx), *ctx.source, ctx.interpolation, ctx.antialias, ctx.scale)
    return back, None, None, None, None, None, None


def resize_jvp(ctx: Any, image: Tensor, *_: None) -> Tensor:
    return ops.resize(image, _box(ctx), *ctx.size, ctx.interpolation, ctx.antialias, ctx.scale)


def resize_adjoint_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    back = ops.resize(grad, _box(ctx), *ctx.source, ctx.interpolation, ctx.antialias, ctx.scale)
    return back, None, None, None, None, None, None


def resize_adjoint_jvp(ctx: Any, grad: Tensor, *_: None) -> Tensor:
    return ops.resize_adjoint(grad, _box(ctx), *ctx.size, ctx.interpolation, ctx.antialias, ctx.scale)


def resized_crop_setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Save what the backwards of resized_crop and of its adjoint need."""
    image, boxes, _, _, ctx.interpolation, ctx.antialias = inputs
    ctx.source, ctx.size = image.shape[-2:], output.shape[-2:]
    ctx.save_for_backward(boxes)
    ctx.save_for_forward(boxes)


resized_crop_adjoint_setup_context = resized_crop_setup_context


def resized_crop_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    back = ops.resized_crop_adjoint(grad, *ctx.saved_tensors, *ctx.source, ctx.interpolation, ctx.antialias)
    return back, None, None, None, None, None


def resized_crop_jvp(ctx: Any, image: Tensor, *_: None) -> Tensor:
    return ops.resized_crop(image, *ctx.saved_tensors, *ctx.size, ctx.interpolation, ctx.antialias)


def resized_crop_adjoint_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    back = ops.resized_crop(grad, *ctx.saved_tensors, *ctx.source, ctx.interpolation, ctx.antialias)
    return back, None, None, None, None, None


def resized_crop_adjoint_jvp(ctx: Any, grad: Tensor, *_: None) -> Tensor:
    return ops.resized_crop_adjoint(grad, *ctx.saved_tensors, *ctx.size, ctx.interpolation, ctx.antialias)


def resize_out(
    image: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    out: Tensor,
) -> None:
    """Resize into ``out`` with a functional operator, for exported programs."""
    out.copy_(ops.resize(image, box, height, width, interpolation, antialias, None))
