"""Checks and outputs that the fakes of several families share."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check, layout
from imgops._common.check import fail

#: torchvision's names for OpenCV's border modes.
BORDERS = ("constant", "edge", "reflect", "symmetric", "wrap")


def image_like(op: str, image: Tensor, *, gray_or_rgb: bool = False) -> Tensor:
    """Validate a uint8 or floating point image and allocate an output of its shape and dtype."""
    check_image(op, image, gray_or_rgb=gray_or_rgb)
    return layout.empty(image, *image.shape[-2:])


def check_image(op: str, image: Tensor, *, gray_or_rgb: bool = False) -> None:
    """Check that an image is uint8 or floating point, with few enough pixels."""
    check.image(op, "image", image)
    check.levels_or_floats(op, image)
    check.pixels(op, "image", *image.shape[-2:])
    if gray_or_rgb and image.shape[-3] not in (1, 3):
        fail(ValueError, op, "image must have 1 or 3 channels", check.number(image.shape[-3]))


def same_channels(op: str, name: str, value: Tensor, other_name: str, other: Tensor) -> None:
    if value.shape[-3] != other.shape[-3]:
        must = f"{name} must have the channels of {other_name} ({check.number(other.shape[-3])})"
        fail(ValueError, op, must, check.number(value.shape[-3]))


def check_fill(op: str, image: Tensor, fill: Tensor) -> None:
    """Check that ``fill`` broadcasts to ``(..., C)``.

    The fill has one value, one per channel, or one per sample and channel.
    """
    check.parameter(op, "fill", fill, image)
    if fill.dtype.is_complex and not image.dtype.is_complex:
        fail(TypeError, op, "fill must be real", fill.dtype)
    if not check.broadcasts(fill.shape, image.shape[:-2]):
        must = f"fill must be one value or one for each of {check.number(image.shape[-3])} channels"
        fail(ValueError, op, must, f"shape {check.shape(fill)}")


def check_twin(op: str, name: str, other: Tensor, image: Tensor) -> None:
    """Check that another image has the dtype, device and shape of the first one."""
    check.image(op, name, other)
    check.like(op, name, other, "image", image)
    if other.shape != image.shape:
        must = f"{name} must have the shape of image {check.shape(image)}"
        fail(ValueError, op, must, check.shape(other))


def check_window(op: str, kernel: Tensor, image: Tensor) -> None:
    """Check that ``kernel`` is ``(h, w)``, or one such kernel per sample, and not empty."""
    if kernel.ndim < 2 or check.violates(kernel.shape[-1] * kernel.shape[-2] > 0):
        fail(ValueError, op, "kernel must be (h, w) or (..., h, w)", f"shape {check.shape(kernel)}")
    check.per_sample_parameter(op, "kernel", kernel, image, *kernel.shape[-2:])
