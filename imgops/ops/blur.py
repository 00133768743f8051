"""Smoothing and what is made of it: box and bilateral filters, motion blur, unsharp masks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from imgops import _check, sharding, vmap
from imgops._registry import operator
from imgops.decomposition import blur as decomposition
from imgops.fake import blur as fake
from imgops.kernels import _values
from imgops.kernels.cpu import blur as cpu
from imgops.ops.filter import filter2d
from imgops.ops.geometry import warp_affine

__all__ = ["bilateral_filter", "box_blur", "motion_blur", "unsharp_mask"]


@operator(
    "imgops::box_blur",
    kernel=cpu.box_blur,
    fake=fake.box_blur,
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.box_blur,
)
def _box_blur(image: Tensor, kernel_width: int, kernel_height: int, border: str) -> Tensor: ...


@operator(
    "imgops::bilateral_filter",
    kernel=cpu.bilateral_filter,
    fake=fake.bilateral_filter,
    vmap=vmap.leading(3, 0, 0),
    sharding=sharding.leading(3, 0, 0),
    decomposition=decomposition.bilateral_filter,
    values=_values.numbers("bilateral_filter", sigma_color=_values.positive, sigma_space=_values.positive),
)
def _bilateral_filter(
    image: Tensor, sigma_color: Tensor, sigma_space: Tensor, diameter: int, border: str
) -> Tensor: ...


@operator(
    "imgops::unsharp_mask",
    kernel=cpu.unsharp_mask,
    fake=fake.unsharp_mask,
    vmap=vmap.leading(3, 0, 0, 0),
    sharding=sharding.leading(3, 0, 0, 0),
    decomposition=decomposition.unsharp_mask,
    values=_values.numbers(
        "unsharp_mask", radius=_values.radius, percent=_values.levels, threshold=_values.levels
    ),
)
def _unsharp_mask(image: Tensor, radius: Tensor, percent: Tensor, threshold: Tensor) -> Tensor: ...


def box_blur(image: Tensor, kernel_size: int | Sequence[int], border: str = "reflect") -> Tensor:
    """Replace each value by the mean of the window around it.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, or floating point of any range. Any device.
    kernel_size : int, or sequence of 2 int
        The width, or ``(width, height)``, of the window in pixels, positive. Its anchor is
        ``(width // 2, height // 2)``.
    border : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border rule, as for :func:`pad`; "constant" is 0.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is neither uint8 nor floating point, or ``kernel_size`` is not made of integers.
    ValueError
        If ``kernel_size`` is not positive, or ``border`` is unknown.

    Notes
    -----
    Reference: ``cv2.blur``, bit-exact on uint8, float32 and float64; for "wrap", which it does not support,
    the image is padded first. On a device a window of even area is within 1 level (OpenCV's rounding of
    halves depends on the area). Half precision is computed in float32 and rounded once. Linear; the gradient
    is derived from the formula. Under autocast the dtype stays.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.box_blur(torch.tensor([[[0.0, 3.0, 6.0, 0.0]]]), (3, 1))
    tensor([[[2., 3., 3., 4.]]])
    """
    _check.tensor("box_blur", "image", image)
    width, height = _check.pair("box_blur", "kernel_size", kernel_size, ("width", "height"))
    return _box_blur(image, width, height, border)


def bilateral_filter(
    image: Tensor,
    diameter: int,
    sigma_color: float | Tensor,
    sigma_space: float | Tensor,
    border: str = "reflect",
) -> Tensor:
    """Smooth an image, but not across edges: near pixels of similar color count.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, or floating point of any range, 1 or 3 channels, which are compared
        together. Any device.
    diameter : int
        The diameter of the round window in pixels, positive; the next odd number is used.
    sigma_color, sigma_space : float or Tensor
        The standard deviations of the weights: of the sum of absolute differences of the channels, in units
        of the image (levels for uint8), and of the distance in pixels. Positive.
        Tensors of shape ``()`` or ``(...)`` (one per sample) can change between calls without a
        recompile, and can require a gradient.
    border : {"constant", "edge", "reflect", "symmetric", "wrap"}
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
        If the channels are not 1 or 3, ``diameter`` is not positive, ``border`` is unknown, or a deviation is
        NaN or does not fit.

    Notes
    -----
    Reference: ``cv2.bilateralFilter``, bit-exact on uint8 and float32 (whose weights OpenCV interpolates from
    a table: within 1e-4 of the formula); for "wrap" the image is padded first. An image with a pixel that is
    not finite, or from 1e37 on, which can end OpenCV's process, is the formula. float64 is the formula in
    double precision, half precision is computed in float32 and rounded once. On a device within 1 level. The
    gradient, for ``image`` and both deviations, is derived from the formula. Under autocast the dtype stays.

    Examples
    --------
    >>> import torch, imgops
    >>> x = torch.tensor([[[0, 10, 0, 200, 210, 200]]], dtype=torch.uint8)
    >>> imgops.bilateral_filter(x, 3, 30.0, 2.0)
    tensor([[[  4,   6,   2, 202, 206, 204]]], dtype=torch.uint8)
    """
    _check.tensor("bilateral_filter", "image", image)
    size = _check.integer("bilateral_filter", "diameter must be an integer", diameter)
    color = _check.real("bilateral_filter", "sigma_color", sigma_color)
    space = _check.real("bilateral_filter", "sigma_space", sigma_space)
    return _bilateral_filter(image, color, space, size, border)


def unsharp_mask(
    image: Tensor,
    radius: float | Tensor = 2.0,
    percent: float | Tensor = 150.0,
    threshold: float | Tensor = 3.0,
) -> Tensor:
    """Sharpen an image by what a blurred copy lacks.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, or floating point in [0, 1]. Any device.
    radius : float or Tensor
        The standard deviation of the blur in pixels, not negative.
    percent : float or Tensor
        How much of the difference is added, in percent; for uint8 its whole part.
    threshold : float or Tensor
        The difference, in levels of 255, up to which a value stays as it is; for uint8 its whole part.
        Tensors of shape ``()`` or ``(...)`` (one per sample) can change between calls without a recompile,
        and can require a gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is neither uint8 nor floating point, or a parameter is not made of numbers.
    ValueError
        If ``radius`` is negative, or a parameter is NaN or does not fit.

    Notes
    -----
    Reference: :class:`PIL.ImageFilter.UnsharpMask`, bit-exact on uint8; its blur is made of three box blurs.
    Floats: the same in real numbers, clamped to [0, 1], within 1e-5; half precision is computed in float32
    and rounded once. The border is replicated. The gradient, for ``image``, ``radius`` and ``percent``, is
    derived from the formula; it is 0 where a value is clamped. Under autocast the dtype stays.

    Examples
    --------
    >>> import torch, imgops
    >>> x = torch.tensor([[[10, 10, 10, 90, 90, 90]]], dtype=torch.uint8)
    >>> imgops.unsharp_mask(x, 1.0)
    tensor([[[ 10,   3,   0, 126,  97,  90]]], dtype=torch.uint8)
    """
    _check.tensor("unsharp_mask", "image", image)
    numbers = (
        _check.real("unsharp_mask", name, value)
        for name, value in (("radius", radius), ("percent", percent), ("threshold", threshold))
    )
    return _unsharp_mask(image, *numbers)


def motion_blur(
    image: Tensor,
    kernel_size: int,
    angle: float | Tensor = 0.0,
    direction: float | Tensor = 0.0,
    border: str = "edge",
) -> Tensor:
    """Blur an image along a line.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, or floating point of any range. Any device.
    kernel_size : int
        The length of the line in pixels, odd, from 3 on.
    angle : float or Tensor
        The direction of the line in degrees, counterclockwise from the x axis.
    direction : float or Tensor
        How the weight is distributed along the line, clamped to [-1, 1]: 0 evenly, 1 falling from its start
        to its end, -1 the other way round. Tensors of shape ``()`` or ``(...)`` (one per sample) can change
        between calls without a recompile, and can require a gradient.
    border : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border rule, as for :func:`pad`; "constant" is 0.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is neither uint8 nor floating point, or a parameter is not made of numbers.
    ValueError
        If ``kernel_size`` is even or less than 3, a parameter does not fit, or ``border`` is unknown.

    Notes
    -----
    Reference: ``cv2.filter2D`` with a kernel whose middle row holds the line, turned by ``cv2.warpAffine``
    with bilinear interpolation and divided by its sum. Made of :func:`warp_affine` and :func:`filter2d`, so
    it has the gradients of both, for ``image``, ``angle`` and ``direction``. Under autocast the dtype stays.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.motion_blur(torch.tensor([[[0.0, 3.0, 6.0, 0.0]]]), 3)
    tensor([[[1., 3., 3., 2.]]])
    """
    _check.tensor("motion_blur", "image", image)
    size = _check.integer("motion_blur", "kernel_size must be an integer", kernel_size)
    if _check.violates(size >= 3) or _check.violates(size % 2 == 1):
        got = _check.number(size)
        _check.fail(ValueError, "motion_blur", "kernel_size must be odd and at least 3", got)
    _check.side("motion_blur", "kernel_size", size, most=2047)
    turn, lean = (
        _check.real("motion_blur", "angle", angle),
        _check.real("motion_blur", "direction", direction),
    )
    for name, value in (("angle", turn), ("direction", lean)):
        _check.per_sample_parameter("motion_blur", name, value, image)
    return filter2d(image, _line(size, turn.double(), lean.double()), border)


def _line(size: int, angle: Tensor, direction: Tensor) -> Tensor:
    """The kernel of a line through its middle, one for each angle and direction."""
    angle, direction = torch.broadcast_tensors(angle, direction)
    along = torch.linspace(-1, 1, size, dtype=torch.float64, device=angle.device)
    weights = 0.5 - 0.5 * direction.clamp(-1, 1)[..., None] * along
    across = torch.arange(size, device=angle.device)[:, None] == size // 2
    rows = torch.where(across, weights[..., None, :], 0.0)[..., None, :, :]
    radians, middle = angle * (math.pi / 180), size // 2
    cos, sin = radians.cos(), radians.sin()
    shift_x, shift_y = middle * (1 - cos - sin), middle * (1 - cos + sin)
    matrix = torch.stack([cos, sin, shift_x, -sin, cos, shift_y], -1).unflatten(-1, (2, 3))
    turned = warp_affine(rows, matrix, (size, size))[..., 0, :, :]
    return turned / turned.sum((-2, -1), keepdim=True)


#: What each shows of a photograph (C, H, W), uint8.
PICTURES: dict[str, Callable[[Tensor], Tensor]] = {
    "bilateral_filter": lambda x: bilateral_filter(x, 11, 90.0, 6.0),
    "box_blur": lambda x: box_blur(x, 17),
    "motion_blur": lambda x: motion_blur(x, 31, 25.0),
    "unsharp_mask": lambda x: unsharp_mask(x, 4.0, 400.0),
}
