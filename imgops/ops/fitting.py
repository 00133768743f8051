"""Fitting of an image to a size, as PIL does it, and downscaling to a smaller size and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from imgops._common import check, values
from imgops._operator.declare import operator
from imgops.decomposition import fitting as decomposition
from imgops.fake import fitting as fake
from imgops.fake.resize import check_resize
from imgops.kernels.backward import fitting as backward
from imgops.kernels.cpu import fitting as cpu
from imgops.ops.resize import resize
from imgops.rules import packed, sharding, vmap

__all__ = ["contain", "cover", "downscale", "fit"]

_NUMBER = (int, float, torch.SymInt, torch.SymFloat)


@operator(
    "imgops::downscale",
    kernel=cpu.downscale,
    fake=fake.downscale,
    vmap=vmap.leading(3, 0),
    sharding=sharding.leading(3, 0),
    decomposition=decomposition.downscale,
    backward=backward.downscale,
    linear=True,
    values={"factor": values.share},
    packed=packed.keeps_size,
)
def _downscale(image: Tensor, factor: Tensor, down: str, up: str) -> Tensor: ...


def downscale(image: Tensor, factor: float | Tensor, down: str = "area", up: str = "bilinear") -> Tensor:
    """Resize an image to a smaller size and back.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range. Any device.
    factor : float or Tensor
        In (0, 1]: the smaller size is ``max(round(factor * H), 1)`` by ``max(round(factor * W), 1)``. A
        tensor of shape ``()`` or ``(...)`` (one per sample) can change between calls without a recompile.
    down : {"area", "nearest", "bilinear"}
        The interpolation to the smaller size.
    up : {"bilinear", "nearest", "bicubic"}
        The interpolation back.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``factor`` is not made of numbers.
    ValueError
        If an interpolation is unknown, or ``factor`` is out of range or does not fit.

    Notes
    -----
    Reference: ``cv2.resize`` twice, bit-exact on uint8, uint16, float32 and float64; half
    precision is computed in float32 and rounded once. On an accelerator the result is within 2 levels. The
    operator is linear in floats; its gradient for ``image`` is derived from the formula; the gradient for
    ``factor`` is 0, because sizes are integers. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.downscale(torch.tensor([[[0.0, 4.0, 8.0, 8.0]]]), 0.5, up="nearest")
    tensor([[[2., 2., 8., 8.]]])
    """
    check.tensor_or_batch("downscale", image)
    names = check.interpolation(down), check.interpolation(up)
    return _downscale(image, check.real("downscale", "factor", factor), *names)


def contain(image: Tensor, size: Sequence[int], interpolation: str = "bilinear") -> Tensor:
    """Resize an image to the largest size that fits inside ``size``, and keep its aspect ratio.

    Parameters
    ----------
    image : Tensor
        As for :func:`resize`.
    size : sequence of 2 int
        ``(height, width)`` in pixels, positive.
    interpolation : {"bilinear", "nearest", "box", "bicubic", "hamming", "lanczos"}
        As for :func:`resize`.

    Returns
    -------
    Tensor
        ``(..., C, height, width)`` with one of the sides of ``size``.

    Raises
    ------
    TypeError
        If ``size`` is not made of integers.
    ValueError
        If ``size`` is not positive, or the image is empty.

    Notes
    -----
    Reference: :func:`PIL.ImageOps.contain`, bit-exact on uint8. This is :func:`resize` of the image, with the
    gradients of :func:`resize`.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.contain(torch.zeros(3, 40, 20), (10, 10)).shape
    torch.Size([3, 10, 5])
    """
    wanted = _within("contain", image, size, larger=False)
    return _resize("contain", image, wanted, interpolation)


def cover(image: Tensor, size: Sequence[int], interpolation: str = "bilinear") -> Tensor:
    """Resize an image to the smallest size that covers ``size``, and keep its aspect ratio.

    Parameters
    ----------
    image, size, interpolation
        As for :func:`contain`.

    Returns
    -------
    Tensor
        ``(..., C, height, width)`` with one of the sides of ``size``.

    Raises
    ------
    TypeError
        If ``size`` is not made of integers.
    ValueError
        If ``size`` is not positive, or the image is empty.

    Notes
    -----
    Reference: :func:`PIL.ImageOps.cover`, bit-exact on uint8. This is :func:`resize` of the image, with the
    gradients of :func:`resize`.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.cover(torch.zeros(3, 40, 20), (10, 10)).shape
    torch.Size([3, 20, 10])
    """
    wanted = _within("cover", image, size, larger=True)
    return _resize("cover", image, wanted, interpolation)


def fit(
    image: Tensor,
    size: Sequence[int],
    interpolation: str = "bilinear",
    bleed: float = 0.0,
    centering: Sequence[float] = (0.5, 0.5),
) -> Tensor:
    """Crop an image to the aspect ratio of a size, and resize it to that size.

    Parameters
    ----------
    image, size, interpolation
        As for :func:`contain`.
    bleed : float
        In [0, 0.5): the share of each side that is cut off first.
    centering : sequence of 2 float
        In [0, 1]: where the crop lies along x and y; 0 at the left (top), 1 at the right (bottom).

    Returns
    -------
    Tensor
        ``(..., C, height, width)`` in the dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If ``size`` is not made of integers.
    ValueError
        If ``size`` is not positive, ``bleed`` or ``centering`` is out of range, or the image is empty.

    Notes
    -----
    Reference: :func:`PIL.ImageOps.fit`, bit-exact on uint8 (Pillow replaces a ``bleed`` or ``centering`` out
    of range silently). This is :func:`resize` of a box, with the gradients of :func:`resize`.

    Examples
    --------
    >>> import torch, imgops
    >>> image = torch.tensor([[[0.0, 2.0, 4.0, 6.0]]])
    >>> imgops.fit(image, (1, 2), "box")
    tensor([[[2., 4.]]])
    """
    height, width, rows, columns = _sizes("fit", image, size)
    is_packed = check.is_batch(image)  # then the height and width are tensors
    bleed = check.plain(bleed)
    if not isinstance(bleed, _NUMBER):
        check.fail(TypeError, "fit", "bleed must be a number", type(bleed).__name__)
    if not 0 <= bleed < 0.5:
        check.fail(ValueError, "fit", "bleed must be in [0, 0.5)", bleed)
    if check.is_sequence(centering):
        centering = [check.plain(c) for c in centering]
    if not isinstance(centering, list) or not all(isinstance(c, _NUMBER) for c in centering):
        check.fail(TypeError, "fit", "centering must be 2 numbers in [0, 1]", check.shown(centering))
    if len(centering) != 2 or not all(0 <= c <= 1 for c in centering):
        check.fail(ValueError, "fit", "centering must be 2 numbers in [0, 1]", tuple(centering))
    cut_x, cut_y = bleed * width, bleed * height
    live_x, live_y = width - 2 * cut_x, height - 2 * cut_y
    have, want = live_x / live_y, columns / rows
    wide, high = live_x, live_y
    if is_packed:
        wide = torch.where(have > want, want * live_y, wide)
        high = torch.where(have < want, live_x / want, high)
    elif have > want:
        wide = want * live_y
    elif have < want:
        high = live_x / want
    left, top = cut_x + (live_x - wide) * centering[0], cut_y + (live_y - high) * centering[1]
    box: Any = (left, top, left + wide, top + high)
    if is_packed:
        box = torch.stack(box, -1)
    return _resize("fit", image, (rows, columns), interpolation, box)


def _resize(
    op: str, image: Tensor, size: tuple[int, int], interpolation: str, box: Sequence[float] | None = None
) -> Tensor:
    """Resize an image after the checks of ``resize``, so that an error has the name of the caller."""
    interpolation = check.interpolation(interpolation)
    if isinstance(image, Tensor):
        check_resize(op, image, None, *size, interpolation, True)
    return resize(image, size, interpolation, box=box)


def _within(op: str, image: Tensor, size: Sequence[int], larger: bool) -> Any:
    """Return the size with the image's aspect ratio, rounded as in PIL; of packed images those of each.

    It is the largest size within ``size`` or, with ``larger``, the smallest size that covers it.
    """
    height, width, rows, columns = _sizes(op, image, size)
    if check.is_batch(image):
        sides = torch.stack([height / width * columns, width / height * rows], -1).round().long()
        bound = sides.new_tensor([rows, columns])
        return sides.maximum(bound) if larger else sides.minimum(bound)
    # Without a branch, because a graph that is exported may serve images of either aspect ratio.
    choose: Any = torch.sym_max if larger else torch.sym_min
    high = check.round_half_even(height / width * columns)
    wide = check.round_half_even(width / height * rows)
    return choose(rows, high), choose(columns, wide)


def _sizes(op: str, image: Any, size: Sequence[int]) -> tuple[Any, ...]:
    check.tensor_or_batch(op, image)
    if isinstance(image, Tensor):
        check.image(op, "image", image)
    rows, columns = check.positive_size(op, size)
    if isinstance(image, Tensor):
        check.not_empty(op, "image", image)
    if not (check.is_int32(rows) and check.is_int32(columns)):
        check.fail(ValueError, op, "size must be 32-bit", check.numbers(rows, columns))
    if check.is_batch(image):
        return *image.sizes.double().unbind(-1), rows, columns
    return *image.shape[-2:], rows, columns
