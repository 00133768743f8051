"""What the values of a parameter must be.

The CPU kernels read parameters and refuse wrong ones. A parameter on the CPU of an image on another device is
refused in the same words, before anything is copied; one on the device is never read: kernels clamp it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from imgops import _check
from imgops._rows import Function, Operator


def of(row: Operator) -> Function | None:
    """``check(*args)`` of an operator whose parameters' values are limited, else None."""
    return _CHECKS.get(row.qualified)


def finite_fill(op: str, fill: Tensor, dtype: torch.dtype) -> None:
    """OpenCV knows no integer for what is not finite."""
    if fill.dtype.is_floating_point and not (
        dtype.is_floating_point or dtype.is_complex or dtype == torch.bool
    ):
        for value in fill.detach().flatten().tolist():
            if not math.isfinite(value):
                _check.fail(ValueError, op, f"fill must be finite for {dtype}", value)


def sigma(value: Tensor) -> None:
    for pair in value.detach().reshape(-1, 2).tolist():
        if not (pair[0] >= 0 and pair[1] >= 0):
            _check.fail(ValueError, "gaussian_blur", "sigma must not be negative", tuple(pair))


def finite_bits(bits: Tensor) -> None:
    if bits.dtype.is_floating_point:
        for value in bits.flatten().tolist():
            if not math.isfinite(value):
                _check.fail(ValueError, "posterize", "bits must be finite", value)


def _numbers_of(value: Tensor) -> Sequence[float]:
    return (value.item(),) if value.ndim == 0 else value.detach().flatten().tolist()


def no_nan(op: str, name: str, value: Tensor) -> None:
    for number in _numbers_of(value):
        if math.isnan(number):
            _check.fail(ValueError, op, f"{name} must be a number", number)


def not_negative(op: str, name: str, value: Tensor) -> None:
    for number in _numbers_of(value):
        if not number >= 0:
            _check.fail(ValueError, op, f"{name} must not be negative", number)


def positive(op: str, name: str, value: Tensor) -> None:
    for number in _numbers_of(value):
        if not number > 0:
            _check.fail(ValueError, op, f"{name} must be positive", number)


def share(op: str, name: str, value: Tensor) -> None:
    for number in _numbers_of(value):
        if not 0 < number <= 1:
            _check.fail(ValueError, op, f"{name} must be in (0, 1]", number)


def element(op: str, kernel: Tensor) -> None:
    """A structuring element has pixels."""
    array = kernel.detach().numpy()
    if array.ndim == 2:
        empty = not array.any()
    else:
        empty = not array.any((-2, -1)).all()
    if empty:
        _check.fail(ValueError, op, "kernel must have a value that is not 0", "zeros")


def regions(op: str, box: Tensor, height: int, width: int) -> list[Any]:
    found = box.detach().reshape(-1, 4).tolist()
    for region in found:
        _check.region(op, region, height, width)
    return found


def _on_host(value: Tensor | None) -> bool:
    return value is not None and value.device.type == "cpu"


def _resize(op: str) -> Function:
    def check(image: Tensor, box: Tensor | None, height: int, width: int, *rest: Any) -> None:
        if _on_host(box):
            size = (height, width) if op == "resize_adjoint" else image.shape[-2:]
            regions(op, box, *size)  # type: ignore[arg-type]

    return check


def _resized_crop(op: str) -> Function:
    def check(image: Tensor, boxes: Tensor, height: int, width: int, *rest: Any) -> None:
        if _on_host(boxes):
            size = (height, width) if op == "resized_crop_adjoint" else image.shape[-2:]
            _check.boxes(op, boxes.reshape(-1, 4).tolist(), *size)

    return check


def _fill(op: str, at: int) -> Function:
    def check(image: Tensor, *args: Any) -> None:
        fill, mode = args[at], args[-1]
        if _on_host(fill) and (mode == "constant" or op != "pad"):
            finite_fill(op, fill, image.dtype)

    return check


def _gaussian_blur(image: Tensor, value: Tensor, *rest: Any) -> None:
    if _on_host(value):
        sigma(value)


def _posterize(image: Tensor, bits: Tensor) -> None:
    if _on_host(bits):
        finite_bits(bits)


def _numbers(op: str, **checks: Callable[[str, str, Tensor], None]) -> Function:
    """``checks``: what each parameter, in the order of the signature behind the image, must be."""

    def check(image: Tensor, *args: Any) -> None:
        for (name, one), value in zip(checks.items(), args, strict=False):
            if _on_host(value):
                one(op, name, value)

    return check


def _element(op: str) -> Function:
    def check(image: Tensor, kernel: Tensor, border: str) -> None:
        if _on_host(kernel):
            element(op, kernel)

    return check


_CHECKS: dict[str, Function] = {
    **{f"imgops::{op}": _resize(op) for op in ("resize", "resize_adjoint", "resize_out")},
    **{f"imgops::{op}": _resized_crop(op) for op in ("resized_crop", "resized_crop_adjoint")},
    **{
        f"imgops::{op}": _fill(op, at) for op, at in (("pad", 0), ("warp_affine", 1), ("warp_perspective", 1))
    },
    "imgops::remap": _fill("remap", 1),
    "imgops::gaussian_blur": _gaussian_blur,
    "imgops::posterize": _posterize,
    "imgops::bilateral_filter": _numbers("bilateral_filter", sigma_color=positive, sigma_space=positive),
    "imgops::unsharp_mask": _numbers("unsharp_mask", radius=not_negative, percent=no_nan, threshold=no_nan),
    "imgops::threshold": _numbers("threshold", value=no_nan, maximum=no_nan),
    "imgops::adaptive_threshold": _numbers("adaptive_threshold", maximum=no_nan, c=no_nan),
    "imgops::clahe": _numbers("clahe", clip_limit=no_nan),
    "imgops::downscale": _numbers("downscale", factor=share),
    "imgops::erode": _element("erode"),
    "imgops::dilate": _element("dilate"),
    "imgops::hit_or_miss": _element("morphology"),
}
