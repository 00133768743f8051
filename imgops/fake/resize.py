"""Fakes of resize and its adjoint."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from imgops._common import check, layout
from imgops._common.check import fail, violates

PIL_FILTERS = ("nearest", "box", "bilinear", "hamming", "bicubic", "lanczos")
OPENCV_FILTERS = ("nearest", "bilinear", "bicubic", "area", "lanczos", "torch_nearest")


def resize(
    image: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None = None,
) -> Tensor:
    check_resize("resize", image, box, height, width, interpolation, antialias)
    _scale("resize", scale, image.shape[-2:], (height, width), interpolation, antialias)
    return layout.empty(image, height, width)


def resize_out(
    image: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    out: Tensor,
) -> None:
    check_resize("resize_out", image, box, height, width, interpolation, antialias)
    check.out("resize_out", out, "image", image, height, width)


def check_resize(
    op: str,
    image: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
) -> None:
    check.image(op, "image", image)
    _filter(op, interpolation, antialias)
    if interpolation.endswith("nearest"):
        if image.dtype.itemsize > 8:
            fail(TypeError, op, "image must have at most 8 bytes a value", image.dtype)
    elif image.dtype not in (torch.uint8, torch.uint16, *check.FLOATS):
        must = f"image must be uint8, uint16 or floating point for interpolation {interpolation!r}"
        fail(TypeError, op, must, image.dtype)
    _sizes(op, "image", image, height, width)
    _box(op, "image", image, box, antialias)


def resize_adjoint(
    grad: Tensor,
    box: Tensor | None,
    height: int,
    width: int,
    interpolation: str,
    antialias: bool,
    scale: Sequence[float] | None = None,
) -> Tensor:
    _adjoint("resize_adjoint", grad, height, width, interpolation, antialias)
    _scale("resize_adjoint", scale, (height, width), grad.shape[-2:], interpolation, antialias)
    _box("resize_adjoint", "grad", grad, box, antialias)
    return layout.empty(grad, height, width)


def _adjoint(op: str, grad: Tensor, height: int, width: int, interpolation: str, antialias: bool) -> None:
    check.image(op, "grad", grad)
    _filter(op, interpolation, antialias)
    check.floating(op, "grad", grad)
    _sizes(op, "grad", grad, height, width)


def resized_crop(
    image: Tensor, box: Tensor, height: int, width: int, interpolation: str, antialias: bool
) -> Tensor:
    check_resize("resized_crop", image, None, height, width, interpolation, antialias)
    _crop_boxes("resized_crop", "image", image, box, interpolation)
    return layout.empty(image, height, width)


def resized_crop_adjoint(
    grad: Tensor, box: Tensor, height: int, width: int, interpolation: str, antialias: bool
) -> Tensor:
    _adjoint("resized_crop_adjoint", grad, height, width, interpolation, antialias)
    _crop_boxes("resized_crop_adjoint", "grad", grad, box, interpolation)
    return layout.empty(grad, height, width)


def _crop_boxes(op: str, name: str, image: Tensor, box: Tensor, interpolation: str) -> None:
    if interpolation == "area":
        fail(ValueError, op, "interpolation must not be 'area', which takes no box", repr(interpolation))
    check.dtype(op, "box", box, torch.int64)
    check.per_sample_parameter(op, "box", box, image, 4)


def _filter(op: str, interpolation: str, antialias: bool) -> None:
    choices = PIL_FILTERS if antialias else OPENCV_FILTERS
    check.choice(op, "interpolation", interpolation, choices, f" with antialias={antialias}")


def _sizes(op: str, name: str, image: Tensor, height: int, width: int) -> None:
    if violates(height >= 1, width >= 1):
        fail(ValueError, op, "size must be at least (1, 1)", check.numbers(height, width))
    check.pixels(op, "size", height, width)
    check.pixels(op, name, *image.shape[-2:])
    check.not_empty(op, name, image)


def _scale(
    op: str,
    scale: Sequence[float] | None,
    source: Sequence[int],
    size: Sequence[int],
    interpolation: str,
    antialias: bool,
) -> None:
    """Check factors ``(x, y)``, which are those of OpenCV, and that they give the size of the result."""
    if scale is None:
        return
    if antialias or interpolation == "torch_nearest":
        fail(ValueError, op, "scale must be None if the pixels are not OpenCV's", repr(interpolation))
    x, y = scale
    wanted = check.round_half_even(source[0] * y), check.round_half_even(source[1] * x)
    if violates(size[0] == wanted[0], size[1] == wanted[1]):
        fail(ValueError, op, f"size must be {check.written(wanted)} with scale", check.numbers(*size))


def _box(op: str, name: str, image: Tensor, box: Tensor | None, antialias: bool) -> None:
    """Check that ``box`` is ``(4,)``, or one box per sample; its values are checked where they are read."""
    if box is None:
        return
    if not antialias:
        fail(ValueError, op, "box must be None with antialias=False", "a box")
    check.parameter(op, "box", box, image)
    check.dtype(op, "box", box, torch.float64)
    right_size = box.ndim >= 1 and box.shape[-1] == 4
    if not (right_size and check.broadcasts(box.shape, (*image.shape[:-3], 4))):
        must = f"box must have 4 numbers (left, top, right, bottom), one box or one for each {name}"
        check.fail_shape(op, must, box)
