"""Filters: correlation with a kernel, and sharpening."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check, values
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.autograd import filter as autograd
from imgops.autograd._sums import save_inputs
from imgops.decomposition import filter as decomposition
from imgops.fake import filter as fake
from imgops.kernels import cuda
from imgops.kernels.backward import filter as backward
from imgops.kernels.cpu import filter as cpu
from imgops.rules import packed, sharding, vmap

__all__ = ["adjust_sharpness", "filter2d", "unsharp_mask"]


@operator(
    "imgops::filter2d",
    kernel=cpu.filter2d,
    cuda=cuda.Kernel("filter.filter2d", takes_packed=True),
    fake=fake.filter2d,
    autograd=Gradient(autograd.filter2d_setup_context, autograd.filter2d_backward),
    vmap=vmap.leading(3, 2),
    sharding=sharding.leading(3, 2),
    decomposition=decomposition.filter2d,
    packed=packed.keeps_size,
)
def _filter2d(image: Tensor, kernel: Tensor, padding_mode: str) -> Tensor: ...


@operator(
    "imgops::adjust_sharpness",
    kernel=cpu.adjust_sharpness,
    cuda=cuda.Kernel("filter.adjust_sharpness", takes_packed=True),
    fake=fake.adjust_sharpness,
    autograd=Gradient(save_inputs, autograd.adjust_sharpness_backward),
    vmap=vmap.leading(3, 0),
    sharding=sharding.leading(3, 0),
    decomposition=decomposition.adjust_sharpness,
    packed=packed.keeps_size,
)
def _adjust_sharpness(image: Tensor, factor: Tensor) -> Tensor: ...


def filter2d(image: Tensor, kernel: Tensor, padding_mode: str = "reflect") -> Tensor:
    """Correlate an image with a kernel.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range. Any device.
    kernel : Tensor
        ``(h, w)``, or ``(..., h, w)`` for one per sample, on the CPU. Its anchor is ``(h // 2, w // 2)``. The
        kernel can change between calls without a recompile, and can require a gradient.
    padding_mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border rule, as for :func:`pad`; "constant" is 0.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``kernel`` is not made of numbers.
    ValueError
        If ``kernel`` is empty or does not fit, or ``padding_mode`` is unknown.

    Notes
    -----
    Reference: ``cv2.filter2D``, bit-exact on uint8, uint16 and float32; for "wrap", which OpenCV does not
    support, the image is padded first. float64 is summed in double precision, whereas OpenCV uses a Fourier
    transform for large kernels, which mixes all pixels; half precision is computed in float32 and rounded
    once. The gradient, for ``image`` and ``kernel``, is that of the formula. Autocast does not change
    the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.filter2d(torch.tensor([[[1.0, 4.0, 9.0]]]), torch.tensor([[-1.0, 0.0, 1.0]]))
    tensor([[[0., 8., 0.]]])
    """
    check.tensor_or_batch("filter2d", image)
    check.tensor("filter2d", "kernel", kernel)
    return _filter2d(image, kernel, check.padding_mode(padding_mode))


def adjust_sharpness(image: Tensor, factor: float | Tensor) -> Tensor:
    """Adjust the sharpness of an image.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.
    factor : float or Tensor
        0 gives the smoothed image, 1 the image itself, 2 a sharper one. Any real number. A tensor of shape
        ``()`` or ``(...)`` (one per sample) can change between calls without a recompile, and can require a
        gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``factor`` is not made of numbers.
    ValueError
        If ``factor`` is not one value or one per sample.

    Notes
    -----
    Reference: :class:`PIL.ImageEnhance.Sharpness`, bit-exact on uint8; the outermost pixels are
    unchanged, and so is an image less than 3 pixels wide or high. uint16: the blur is rounded to a level, and
    the blend is computed in float32 and truncated, as on uint8. Floats: the same formula in real numbers,
    clamped to [0, 1], within 1e-5; half precision is computed in float32 and rounded once. The gradient, for
    ``image`` and ``factor``, is that of the formula and is exact to second order; it is 0 where a value
    is clamped. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> image = torch.zeros(1, 3, 3)
    >>> image[0, 1, 1] = 0.5
    >>> imgops.adjust_sharpness(image, 2.0)[0, 1]
    tensor([0.0000, 0.8077, 0.0000])
    """
    check.tensor_or_batch("adjust_sharpness", image)
    return _adjust_sharpness(image, check.real("adjust_sharpness", "factor", factor))


@operator(
    "imgops::unsharp_mask",
    kernel=cpu.unsharp_mask,
    fake=fake.unsharp_mask,
    vmap=vmap.leading(3, 0, 0, 0),
    sharding=sharding.leading(3, 0, 0, 0),
    decomposition=decomposition.unsharp_mask,
    backward=backward.unsharp_mask,
    values={"radius": values.radius, "percent": values.levels, "threshold": values.levels},
    packed=packed.keeps_size,
)
def _unsharp_mask(image: Tensor, radius: Tensor, percent: Tensor, threshold: Tensor) -> Tensor: ...


def unsharp_mask(
    image: Tensor,
    radius: float | Tensor = 2.0,
    percent: float | Tensor = 150.0,
    threshold: float | Tensor = 3.0,
) -> Tensor:
    """Sharpen an image by adding its difference from a blurred copy.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.
    radius : float or Tensor
        The standard deviation of the blur in pixels, not negative.
    percent : float or Tensor
        How much of the difference is added, in percent; truncated to an integer for uint8.
    threshold : float or Tensor
        The difference, in levels of 255, up to which a value stays as it is; truncated to an integer for
        uint8. Tensors of shape ``()`` or ``(...)`` (one per sample) can change between calls without a
        recompile, and can require a gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or a parameter is not made of numbers.
    ValueError
        If ``radius`` is negative, or a parameter is NaN or does not fit.

    Notes
    -----
    Reference: :class:`PIL.ImageFilter.UnsharpMask`, bit-exact on uint8; its blur is made of three
    box blurs. uint16: the formula of floats in double precision, rounded. Floats: the same formula in real
    numbers, clamped to [0, 1], within 1e-5; half precision is computed in float32 and rounded once. The
    border is replicated. The gradient, for ``image``, ``radius`` and ``percent``, is derived from the
    formula; it is 0 where a value is clamped. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> x = torch.tensor([[[10, 10, 10, 90, 90, 90]]], dtype=torch.uint8)
    >>> imgops.unsharp_mask(x, 1.0)
    tensor([[[ 10,   3,   0, 126,  97,  90]]], dtype=torch.uint8)
    """
    check.tensor_or_batch("unsharp_mask", image)
    numbers = check.reals("unsharp_mask", radius=radius, percent=percent, threshold=threshold)
    return _unsharp_mask(image, *numbers)
