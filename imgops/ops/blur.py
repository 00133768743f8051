"""Blurs: Gaussian, box, median, bilateral and motion."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from imgops._common import check, values
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.autograd import blur as autograd
from imgops.decomposition import blur as decomposition
from imgops.fake import blur as fake
from imgops.kernels import cuda
from imgops.kernels.backward import blur as backward
from imgops.kernels.cpu import blur as cpu
from imgops.ops.filter import filter2d
from imgops.ops.geometry import warp_affine
from imgops.rules import packed, sharding, vmap

__all__ = ["bilateral_filter", "box_blur", "gaussian_blur", "median_blur", "motion_blur"]


@operator(
    "imgops::box_blur",
    kernel=cpu.box_blur,
    cuda=cuda.Kernel("blur.box_blur", takes_packed=True),
    fake=fake.box_blur,
    autograd=Gradient(autograd.box_blur_setup_context, autograd.box_blur_backward),
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.box_blur,
    packed=packed.keeps_size,
)
def _box_blur(image: Tensor, kernel_width: int, kernel_height: int, padding_mode: str) -> Tensor: ...


@operator(
    "imgops::bilateral_filter",
    kernel=cpu.bilateral_filter,
    fake=fake.bilateral_filter,
    vmap=vmap.leading(3, 0, 0),
    sharding=sharding.leading(3, 0, 0),
    decomposition=decomposition.bilateral_filter,
    values={"sigma_color": values.positive, "sigma_space": values.positive},
    packed=packed.keeps_size,
)
def _bilateral_filter(
    image: Tensor, sigma_color: Tensor, sigma_space: Tensor, kernel_size: int, padding_mode: str
) -> Tensor: ...


def box_blur(image: Tensor, kernel_size: int | Sequence[int], padding_mode: str = "reflect") -> Tensor:
    """Replace each value by the mean of the window around it.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range. Any device.
    kernel_size : int, or sequence of 2 int
        The width, or ``(width, height)``, of the window in pixels, positive. Its anchor is
        ``(width // 2, height // 2)``.
    padding_mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border rule, as for :func:`pad`; "constant" is 0.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``kernel_size`` is not made of integers.
    ValueError
        If ``kernel_size`` is not positive, or ``padding_mode`` is unknown.

    Notes
    -----
    Reference: ``cv2.blur``, bit-exact on uint8, uint16, float32 and float64; for "wrap", which OpenCV does
    not support, the image is padded first. The exception is a window of 2 pixels on uint8: OpenCV 5 makes the
    result 1 level too light, and turns 255 into 0; imgops returns the mean, with halves rounded up. On an
    accelerator the result of a window of even area is within 1 level (OpenCV's rounding of halves depends on
    the area); so is one of uint16. Half precision is computed in float32 and rounded once. The operator is
    linear; its gradient is that of the formula. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.box_blur(torch.tensor([[[0.0, 3.0, 6.0, 0.0]]]), (3, 1))
    tensor([[[2., 3., 3., 4.]]])
    """
    check.tensor_or_batch("box_blur", image)
    width, height = check.pair("box_blur", "kernel_size", kernel_size, ("width", "height"))
    return _box_blur(image, width, height, check.padding_mode(padding_mode))


def bilateral_filter(
    image: Tensor,
    kernel_size: int,
    sigma_color: float | Tensor,
    sigma_space: float | Tensor,
    padding_mode: str = "reflect",
) -> Tensor:
    """Smooth an image, but not across edges: average only near pixels of similar color.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, or floating point of any range. The image must have 1 or 3 channels, which
        are compared together. Any device.
    kernel_size : int
        The diameter of the round window in pixels, positive; the next odd number is used.
    sigma_color, sigma_space : float or Tensor
        The standard deviations of the weights, positive: ``sigma_color`` is for the sum of the absolute
        differences of the channels, in units of the image (levels for uint8), ``sigma_space`` for the
        distance in pixels. Tensors of shape ``()`` or ``(...)`` (one per sample) can change between calls
        without a recompile, and can require a gradient.
    padding_mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border rule, as for :func:`pad`; "constant" is 0.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is neither uint8 nor floating point, or a deviation is not made of numbers.
    ValueError
        If the channels are not 1 or 3, ``kernel_size`` is not positive, ``padding_mode`` is unknown, or a
        deviation is NaN or does not fit.

    Notes
    -----
    Reference: ``cv2.bilateralFilter``, bit-exact on uint8 and float32 (OpenCV interpolates the weights of
    float32 from a table: within 1e-4 of the formula); for "wrap" the image is padded first. An image with a
    pixel that is not finite, or whose magnitude is 1e37 or more, is computed by the formula, because OpenCV
    can crash the process on it. float64 is computed by the formula in double precision; half precision is
    computed in float32 and rounded once. On an accelerator the result is within 1 level. The gradient, for
    ``image`` and both deviations, is derived from the formula. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> x = torch.tensor([[[0, 10, 0, 200, 210, 200]]], dtype=torch.uint8)
    >>> imgops.bilateral_filter(x, 3, 30.0, 2.0)
    tensor([[[  4,   6,   2, 202, 206, 204]]], dtype=torch.uint8)
    """
    check.tensor_or_batch("bilateral_filter", image)
    size = check.integer("bilateral_filter", "kernel_size must be an integer", kernel_size)
    sigmas = check.reals("bilateral_filter", sigma_color=sigma_color, sigma_space=sigma_space)
    return _bilateral_filter(image, *sigmas, size, check.padding_mode(padding_mode))


def motion_blur(
    image: Tensor,
    kernel_size: int,
    angle: float | Tensor = 0.0,
    balance: float | Tensor = 0.0,
    padding_mode: str = "reflect",
) -> Tensor:
    """Blur an image along a line.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range. Any device.
    kernel_size : int
        The length of the line in pixels, odd, at least 3.
    angle : float or Tensor
        The direction of the line in degrees, counterclockwise from the x axis (unlike
        :class:`~imgops.transforms.RandomMotionBlur`'s).
    balance : float or Tensor
        How the weight is distributed along the line, clamped to [-1, 1]: 0 is even, 1 falls from the start of
        the line to its end, -1 is the other way round. Tensors of shape ``()`` or ``(...)`` (one per sample)
        can change between calls without a recompile, and can require a gradient.
    padding_mode : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border rule, as for :func:`pad`; "constant" is 0.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or a parameter is not made of numbers.
    ValueError
        If ``kernel_size`` is even or less than 3, a parameter does not fit, or ``padding_mode`` is unknown.

    Notes
    -----
    Reference: ``cv2.filter2D`` with a kernel whose middle row holds the line, turned by ``cv2.warpAffine``
    with bilinear interpolation and divided by its sum: within 1 level on uint8 and uint16 and 2e-5 on floats,
    because OpenCV draws the line in float32. Before OpenCV 5, which rounds positions of a warp to 1/32 pixel,
    the difference is larger. The function is made of :func:`warp_affine` and :func:`filter2d`, so it has the
    gradients of both, for ``image``, ``angle`` and ``balance``. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.motion_blur(torch.tensor([[[0.0, 3.0, 6.0, 0.0]]]), 3)
    tensor([[[2., 3., 3., 4.]]])
    """
    check.tensor("motion_blur", "image", image)
    size = check.integer("motion_blur", "kernel_size must be an integer", kernel_size)
    if check.violates(size >= 3, size % 2 == 1):
        got = check.number(size)
        check.fail(ValueError, "motion_blur", "kernel_size must be odd and at least 3", got)
    check.side("motion_blur", "kernel_size", size, most=2047)
    check.computed_image("motion_blur", image, takes_uint16=True)
    padding_mode = check.padding_mode(padding_mode)
    check.border("motion_blur", padding_mode)
    turn = values.per_sample("motion_blur", "angle", angle, image)
    lean = values.per_sample("motion_blur", "balance", balance, image, values.no_nan)
    # Kernels with a line through their middle, one for each angle and balance.
    device = lean.device if turn.is_cpu else turn.device  # one of them may be a number
    turn, lean = torch.broadcast_tensors(turn.to(device, torch.float64), lean.to(device, torch.float64))
    along = torch.linspace(-1, 1, size, dtype=torch.float64, device=turn.device)
    weights = 0.5 - 0.5 * lean.clamp(-1, 1)[..., None] * along
    across = torch.arange(size, device=turn.device, dtype=torch.int64)[:, None] == size // 2
    rows = torch.where(across, weights[..., None, :], 0.0)[..., None, :, :]
    radians, middle = turn * (math.pi / 180), size // 2
    cos, sin = radians.cos(), radians.sin()
    shift_x, shift_y = middle * (1 - cos - sin), middle * (1 - cos + sin)
    matrix = torch.stack([cos, sin, shift_x, -sin, cos, shift_y], -1).unflatten(-1, (2, 3))
    turned = warp_affine(rows, matrix, (size, size))[..., 0, :, :]
    return filter2d(image, turned / turned.sum((-2, -1), keepdim=True), padding_mode)


@operator(
    "imgops::gaussian_blur",
    kernel=cpu.gaussian_blur,
    cuda=cuda.Kernel("blur.gaussian_blur", takes_packed=True),
    fake=fake.gaussian_blur,
    vmap=vmap.leading(3, 1),
    sharding=sharding.leading(3, 1),
    decomposition=decomposition.gaussian_blur,
    backward=backward.gaussian_blur,
    linear=True,
    values={"sigma": values.sigmas},
    packed=packed.keeps_size,
)
def _gaussian_blur(image: Tensor, sigma: Tensor, kernel_width: int, kernel_height: int) -> Tensor: ...


@operator(
    "imgops::median_blur",
    kernel=cpu.median_blur,
    fake=fake.median_blur,
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.median_blur,
    backward=backward.median_blur,
    packed=packed.keeps_size,
)
def _median_blur(image: Tensor, kernel_size: int) -> Tensor: ...


def gaussian_blur(
    image: Tensor,
    kernel_size: int | Sequence[int],
    sigma: float | Sequence[float] | Tensor | None = None,
) -> Tensor:
    """Blur an image with a Gaussian.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range. Any device.
    kernel_size : int, or sequence of 2 int
        The width, or ``(width, height)``, of the kernel in pixels, odd.
    sigma : float, sequence of 2 float, or Tensor, optional
        The standard deviation in pixels, or those along x and y. As in OpenCV, 0 (the default) or a negative
        number is computed from the size, ``0.3 * ((kernel_size - 1) * 0.5 - 1) + 0.8``, and for y it is that
        along x if this is positive; kernels of 3, 5, 7 and 9 pixels then have weights of their own. A tensor
        of shape ``()``, ``(2,)`` or ``(..., 2)`` (one per sample) can change between calls without a
        recompile, and can require a gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``sigma`` is not made of numbers.
    ValueError
        If ``kernel_size`` is not odd and positive, or ``sigma`` is NaN or does not fit.

    Notes
    -----
    Reference: ``cv2.GaussianBlur`` with BORDER_REFLECT_101, bit-exact on uint8 (where OpenCV's weights have 8
    bits: within 1 level of the true value), uint16 and float32. float64 is computed in double precision, half
    precision in float32 and rounded once. The gradient, for ``image`` and ``sigma``, is derived from the
    formula. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.gaussian_blur(torch.tensor([[[0.0, 0.0, 1.0, 0.0, 0.0]]]), (3, 1), 0.8)
    tensor([[[0.0000, 0.2390, 0.5220, 0.2390, 0.0000]]])
    """
    check.tensor_or_batch("gaussian_blur", image)
    width, height = check.pair("gaussian_blur", "kernel_size", kernel_size, ("width", "height"))
    deviation = check.real("gaussian_blur", "sigma", 0.0 if sigma is None else sigma)
    if deviation.ndim == 0 or deviation.shape == (1,):
        both = deviation.reshape(1).expand(2)
        deviation = check.constant(both) if check.is_constant(deviation) else both
    return _gaussian_blur(image, deviation, width, height)


def median_blur(image: Tensor, kernel_size: int) -> Tensor:
    """Replace each value by the median of the window around it.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range. Any device.
    kernel_size : int
        The width and height of the window in pixels, odd.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``kernel_size`` is not an integer.
    ValueError
        If ``kernel_size`` is not odd and positive.

    Notes
    -----
    Reference: ``cv2.medianBlur``, bit-exact on uint8, and on uint16 and float32 for the sizes 3 and 5, which
    OpenCV supports. For larger windows of uint16 and floats, and for float64, the result is the median of the
    same window. The border is replicated. A window that contains a NaN has an unspecified result. The
    gradient goes to the pixel that is the median. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.median_blur(torch.tensor([[[1.0, 1.0, 9.0, 2.0, 3.0]]]), 3)
    tensor([[[1., 1., 2., 3., 3.]]])
    """
    check.tensor_or_batch("median_blur", image)
    size = check.integer("median_blur", "kernel_size must be an integer", kernel_size)
    return _median_blur(image, size)
