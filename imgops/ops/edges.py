"""Derivatives of an image, and edge detection."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check, values
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.autograd import edges as autograd
from imgops.decomposition import edges as decomposition
from imgops.fake import edges as fake
from imgops.kernels import cuda
from imgops.kernels.cpu import edges as cpu
from imgops.rules import packed, sharding, vmap

__all__ = ["canny", "laplacian", "scharr", "sobel"]


@operator(
    "imgops::sobel",
    kernel=cpu.sobel,
    cuda=cuda.Kernel("edges.sobel", takes_packed=True),
    fake=fake.sobel,
    autograd=Gradient(autograd.sobel_setup_context, autograd.sobel_backward),
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.sobel,
    packed=packed.keeps_size,
)
def _sobel(image: Tensor, dx: int, dy: int, kernel_size: int, padding_mode: str) -> Tensor: ...


@operator(
    "imgops::scharr",
    kernel=cpu.scharr,
    cuda=cuda.Kernel("edges.scharr", takes_packed=True),
    fake=fake.scharr,
    autograd=Gradient(autograd.scharr_setup_context, autograd.scharr_backward),
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.scharr,
    packed=packed.keeps_size,
)
def _scharr(image: Tensor, dx: int, dy: int, padding_mode: str) -> Tensor: ...


@operator(
    "imgops::laplacian",
    kernel=cpu.laplacian,
    cuda=cuda.Kernel("edges.laplacian", takes_packed=True),
    fake=fake.laplacian,
    autograd=Gradient(autograd.laplacian_setup_context, autograd.laplacian_backward),
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.laplacian,
    packed=packed.keeps_size,
)
def _laplacian(image: Tensor, kernel_size: int, padding_mode: str) -> Tensor: ...


@operator(
    "imgops::canny",
    kernel=cpu.canny,
    cuda=cuda.Kernel("edges.canny"),
    fake=fake.canny,
    vmap=vmap.leading(3, 0, 0),
    sharding=sharding.leading(3, 0, 0),
    decomposition=decomposition.canny,
    values={"low": values.no_nan, "high": values.no_nan},
    no_gradient="a pixel is 255 on an edge, else 0",
    packed=packed.Packed(channels=lambda channels, *rest: 1),
)
def _canny(image: Tensor, low: Tensor, high: Tensor, kernel_size: int, l2_gradient: bool) -> Tensor: ...


def sobel(image: Tensor, dx: int, dy: int, kernel_size: int = 3, padding_mode: str = "reflect") -> Tensor:
    """Differentiate an image along x or y with a Sobel kernel.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range. Any device.
    dx, dy : int
        The order of the derivative along x and along y, not negative; at least one of them is positive, and
        both are less than ``kernel_size`` (less than 3 if ``kernel_size`` is 1).
    kernel_size : {3, 1, 5, 7}
        The side of the kernel in pixels; 1 does not smooth across the derivative.
    padding_mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border rule, as for :func:`pad`; "constant" is 0.

    Returns
    -------
    Tensor
        The shape and memory format of ``image``; int16 for uint8, float32 for uint16, else its dtype.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or an order is not an integer.
    ValueError
        If ``dx``, ``dy`` or ``kernel_size`` is out of range, or ``padding_mode`` is unknown.

    Notes
    -----
    Reference: ``cv2.Sobel`` (to CV_16S from uint8, where a kernel of 7 saturates, and to CV_32F
    from uint16), bit-exact on uint8, uint16, float32 and float64; for "wrap", which OpenCV does not support,
    the image is padded first. Half precision is computed in float32 and rounded once. The operator is linear;
    its gradient is that of the formula. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.sobel(torch.tensor([[[0.0, 1.0, 4.0, 9.0]]]), 1, 0)
    tensor([[[ 0., 16., 32.,  0.]]])
    """
    check.tensor_or_batch("sobel", image)
    orders = _orders("sobel", dx, dy)
    size = check.integer("sobel", "kernel_size must be an integer", kernel_size)
    return _sobel(image, *orders, size, check.padding_mode(padding_mode))


def scharr(image: Tensor, dx: int, dy: int, padding_mode: str = "reflect") -> Tensor:
    """Differentiate an image along x or y with the Scharr kernel of 3 x 3.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range. Any device.
    dx, dy : int
        1 and 0 for the derivative along x, 0 and 1 for that along y.
    padding_mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border rule, as for :func:`pad`; "constant" is 0.

    Returns
    -------
    Tensor
        The shape and memory format of ``image``; int16 for uint8, float32 for uint16, else its dtype.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or an order is not an integer.
    ValueError
        If ``dx`` and ``dy`` are not 1 and 0 or 0 and 1, or ``padding_mode`` is unknown.

    Notes
    -----
    Reference: ``cv2.Scharr``, otherwise the same as :func:`sobel`: closer to a rotation-invariant gradient
    than the Sobel kernel of the same size. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.scharr(torch.tensor([[[0.0, 1.0, 4.0, 9.0]]]), 1, 0)
    tensor([[[  0.,  64., 128.,   0.]]])
    """
    check.tensor_or_batch("scharr", image)
    return _scharr(image, *_orders("scharr", dx, dy), check.padding_mode(padding_mode))


def _orders(op: str, dx: int, dy: int) -> tuple[int, int]:
    return check.integer(op, "dx must be an integer", dx), check.integer(op, "dy must be an integer", dy)


def laplacian(image: Tensor, kernel_size: int = 1, padding_mode: str = "reflect") -> Tensor:
    """Add the second derivatives of an image along x and y.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range. Any device.
    kernel_size : {1, 3, 5, 7}
        1 is the cross of 3 x 3 with -4 in its middle; larger sizes are the sum of two Sobel kernels.
    padding_mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border rule, as for :func:`pad`; "constant" is 0.

    Returns
    -------
    Tensor
        The shape and memory format of ``image``; int16 for uint8, float32 for uint16, else its dtype.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``kernel_size`` is not an integer.
    ValueError
        If ``kernel_size`` is none of 1, 3, 5 and 7, or ``padding_mode`` is unknown.

    Notes
    -----
    Reference: ``cv2.Laplacian``, otherwise the same as :func:`sobel`. Autocast does not change the dtype. On
    some processors OpenCV rounds float32 with a size of 5 by the address of its result; here a plane has the
    same bits alone and in any batch, those of an address that is a multiple of 64. Interleaved images have
    OpenCV's bits for them, which may differ in the last one from those of planes.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.laplacian(torch.tensor([[[0.0, 1.0, 4.0, 9.0]]]))
    tensor([[[  2.,   2.,   2., -10.]]])
    """
    check.tensor_or_batch("laplacian", image)
    size = check.integer("laplacian", "kernel_size must be an integer", kernel_size)
    return _laplacian(image, size, check.padding_mode(padding_mode))


def canny(
    image: Tensor,
    low: float | Tensor,
    high: float | Tensor,
    kernel_size: int = 3,
    l2_gradient: bool = False,
) -> Tensor:
    """Find the edges of an image with Canny's method.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8; at each pixel the channel with the largest gradient is used. Any device.
    low, high : float or Tensor
        The thresholds of the gradient's magnitude. A pixel above ``high`` is on an edge, and so is one above
        ``low`` that is connected to it; the larger of the two thresholds is taken as ``high``. Tensors of
        shape ``()`` or ``(...)`` (one per sample) can change between calls without a recompile.
    kernel_size : {3, 5, 7}
        The side of the Sobel kernel.
    l2_gradient : bool
        Whether the magnitude of the gradient is the root of the sum of squares; otherwise it is the sum of
        the absolute values.

    Returns
    -------
    Tensor
        ``(..., 1, H, W)`` uint8: 255 on an edge, else 0.

    Raises
    ------
    TypeError
        If the dtype is not uint8, or a threshold is not made of numbers.
    ValueError
        If there are no channels, a threshold is NaN, or an argument is out of its range.
    NotImplementedError
        If a threshold requires a gradient, because there is none.

    Notes
    -----
    Reference: ``cv2.Canny``, bit-exact. The border is replicated. The operator is not differentiable. On an
    accelerator edges are followed in a fixed number of steps, and the host reads nothing back. Autocast does
    not touch uint8.

    Examples
    --------
    >>> import torch, imgops
    >>> image = torch.zeros(1, 3, 6, dtype=torch.uint8)
    >>> image[..., 3:] = 200
    >>> imgops.canny(image, 50, 100)[0, 1]
    tensor([  0,   0, 255,   0,   0,   0], dtype=torch.uint8)
    """
    check.tensor_or_batch("canny", image)
    thresholds = check.reals("canny", low=low, high=high)
    size = check.integer("canny", "kernel_size must be an integer", kernel_size)
    return _canny(image, *thresholds, size, check.switch("canny", "l2_gradient", l2_gradient))
