"""Morphology: erode, dilate, hit-or-miss, and the operations that are made of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from imgops._common import check, torch_private, values
from imgops._operator.declare import operator
from imgops.decomposition import morphology as decomposition
from imgops.fake import morphology as fake
from imgops.kernels import cuda
from imgops.kernels.backward import morphology as backward
from imgops.kernels.cpu import morphology as cpu
from imgops.rules import packed, sharding, vmap

__all__ = ["dilate", "erode", "morphology"]


@operator(
    "imgops::erode",
    kernel=cpu.erode,
    cuda=cuda.Kernel("morphology.erode", takes_packed=True),
    fake=fake.erode,
    vmap=vmap.leading(3, 2),
    sharding=sharding.leading(3, 2),
    decomposition=decomposition.erode,
    backward=backward.erode,
    values={"kernel": values.element},
    packed=packed.keeps_size,
)
def _erode(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor: ...


@operator(
    "imgops::dilate",
    kernel=cpu.dilate,
    cuda=cuda.Kernel("morphology.dilate", takes_packed=True),
    fake=fake.dilate,
    vmap=vmap.leading(3, 2),
    sharding=sharding.leading(3, 2),
    decomposition=decomposition.dilate,
    backward=backward.dilate,
    values={"kernel": values.element},
    packed=packed.keeps_size,
)
def _dilate(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor: ...


@operator(
    "imgops::hit_or_miss",
    kernel=cpu.hit_or_miss,
    cuda=cuda.Kernel("morphology.hit_or_miss", takes_packed=True),
    fake=fake.hit_or_miss,
    vmap=vmap.leading(3, 2),
    sharding=sharding.leading(3, 2),
    decomposition=decomposition.hit_or_miss,
    values=values.by_name("morphology", ("image", "kernel"), {"kernel": values.element}),
    no_gradient="a pixel is 255 where the pattern fits, else 0",
    packed=packed.keeps_size,
)
def _hit_or_miss(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor: ...


def erode(image: Tensor, kernel: int | Sequence[int] | Tensor, padding_mode: str = "constant") -> Tensor:
    """Replace each value by the smallest one under a structuring element.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range. Any device.
    kernel : int, sequence of 2 int, or Tensor
        The structuring element: the side of a square, or ``(width, height)`` of a rectangle, in pixels, odd;
        or a tensor ``(h, w)``, or ``(..., h, w)`` for one per sample, on the CPU, whose nonzero values belong
        to the element. Its anchor is ``(h // 2, w // 2)``. A tensor can change between calls without a
        recompile.
    padding_mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border rule, as for :func:`pad`; with "constant", positions outside of the image do not count.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``kernel`` is complex.
    ValueError
        If ``kernel`` is even, does not fit or has no pixels, or ``padding_mode`` is unknown.

    Notes
    -----
    Reference: ``cv2.erode``, bit-exact on uint8, uint16, float32 and float64; for "wrap", which OpenCV does
    not support, the image is padded first. Half precision is exact. A window that contains a NaN has an
    unspecified result. The gradient goes to the smallest pixel, and in equal parts to two that are equal.
    ``kernel`` has no gradient. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.erode(torch.tensor([[[5.0, 1.0, 4.0, 3.0, 9.0]]]), (3, 1))
    tensor([[[1., 1., 1., 3., 3.]]])
    """
    check.tensor_or_batch("erode", image)
    return _erode(image, _element("erode", kernel), check.padding_mode(padding_mode))


def dilate(image: Tensor, kernel: int | Sequence[int] | Tensor, padding_mode: str = "constant") -> Tensor:
    """Replace each value by the largest one under a structuring element.

    Parameters
    ----------
    image, kernel, padding_mode
        As for :func:`erode`.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``kernel`` is complex.
    ValueError
        If ``kernel`` is even, does not fit or has no pixels, or ``padding_mode`` is unknown.

    Notes
    -----
    Reference: ``cv2.dilate``, bit-exact on uint8, uint16, float32 and float64, otherwise the same as
    :func:`erode`. As in OpenCV the structuring element is not reflected. The gradient goes to the largest
    pixel, and in equal parts to two that are equal. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.dilate(torch.tensor([[[5.0, 1.0, 4.0, 3.0, 9.0]]]), (3, 1))
    tensor([[[5., 5., 4., 9., 9.]]])
    """
    check.tensor_or_batch("dilate", image)
    return _dilate(image, _element("dilate", kernel), check.padding_mode(padding_mode))


def _element(op: str, kernel: int | Sequence[int] | Tensor) -> Tensor:
    """Return a structuring element as a tensor."""
    if isinstance(kernel, Tensor):
        return kernel.to(torch.uint8) if kernel.dtype == torch.bool else kernel
    width, height = check.pair(op, "kernel", kernel, ("width", "height"))
    for side in (height, width):
        if check.violates(side >= 1, side % 2 == 1):
            got = check.numbers(width, height)
            check.fail(ValueError, op, "kernel must be odd and positive, or a Tensor", got)
    check.side(op, "kernel", width, height)
    return check.constant(torch.ones(height, width, dtype=torch.uint8, device="cpu"))


#: The operations of ``cv2.morphologyEx``.
OPERATIONS = ("erode", "dilate", "open", "close", "gradient", "tophat", "blackhat", "hitmiss")


def morphology(
    image: Tensor, operation: str, kernel: int | Sequence[int] | Tensor, padding_mode: str = "constant"
) -> Tensor:
    """Apply one of OpenCV's morphological operations.

    Parameters
    ----------
    image : Tensor
        As for :func:`erode`; uint8 for "hitmiss".
    operation : {"erode", "dilate", "open", "close", "gradient", "tophat", "blackhat", "hitmiss"}
        "open": eroded, then dilated. "close": dilated, then eroded. "gradient": the dilated minus the eroded
        image. "tophat": the image minus the opened one. "blackhat": the closed image minus the image.
        "hitmiss": 255 where every pixel under a positive value of ``kernel`` is 255 and every pixel under a
        negative value is 0; for other images, the minimum over the pixels under positive values and over 255
        minus the pixels under negative values.
    kernel, padding_mode
        As for :func:`erode`; for "hitmiss" a tensor of -1, 0 and 1.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or not uint8 for "hitmiss".
    ValueError
        If ``operation`` is unknown, or an argument is out of its range.

    Notes
    -----
    Reference: ``cv2.morphologyEx``, bit-exact on uint8, uint16, float32 and float64. All but "hitmiss" are
    made of :func:`erode` and :func:`dilate`, so their gradients are those of :func:`erode` and
    :func:`dilate`. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> x = torch.tensor([[[0.0, 9.0, 0.0, 9.0, 9.0, 9.0, 0.0]]])
    >>> imgops.morphology(x, "open", (3, 1))
    tensor([[[0., 0., 0., 9., 9., 9., 0.]]])
    """
    check.tensor("morphology", "image", image)
    check.choice("morphology", "operation", operation, OPERATIONS)
    element, padding_mode = _element("morphology", kernel), check.padding_mode(padding_mode)
    # Errors of the operators below would have their names.
    check.computed_image("morphology", image, takes_uint16=True)
    check.border("morphology", padding_mode)
    if isinstance(kernel, Tensor):
        element = check.of_one_image(element, image, 2)
        check.window("morphology", element, image)
        if torch_private.is_readable(element):
            values.element("morphology", "kernel", element)
    if operation == "hitmiss":
        return _hit_or_miss(image, element, padding_mode)
    if operation in ("open", "tophat"):
        opened = _dilate(_erode(image, element, padding_mode), element, padding_mode)
        return opened if operation == "open" else _less(image, opened, opened)
    if operation in ("close", "blackhat"):
        closed = _erode(_dilate(image, element, padding_mode), element, padding_mode)
        return closed if operation == "close" else _less(closed, image, closed)
    if operation == "erode":
        return _erode(image, element, padding_mode)
    dilated = _dilate(image, element, padding_mode)
    return dilated if operation == "dilate" else _less(dilated, _erode(image, element, padding_mode), dilated)


def _less(a: Tensor, b: Tensor, like: Tensor) -> Tensor:
    """Return ``a - b`` with the strides of ``like``, which is ``a`` or ``b``; clamp integers at 0.

    OpenCV clamps too. The difference can be negative if an element has an even side or leaves out its anchor.
    """
    if a.dtype.is_floating_point:
        return a - b if like is a else b.neg() + a
    other = b if like is a else a
    if a.dtype == torch.uint16:  # ATen does not compare it
        return (torch.maximum(like.int(), other.int()) - b.int()).to(torch.uint16)
    return torch.maximum(like, other) - b
