"""Filters: Gaussian blur, median, correlation with a kernel, sharpness."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from imgops import _check, sharding, vmap
from imgops._registry import operator
from imgops.decomposition import filter as decomposition
from imgops.fake import filter as fake
from imgops.kernels import _values, cuda
from imgops.kernels.cpu import filter as cpu

__all__ = ["adjust_sharpness", "filter2d", "gaussian_blur", "median_blur"]


@operator(
    "imgops::gaussian_blur",
    kernel=cpu.gaussian_blur,
    cuda=cuda.kernel("filter.gaussian_blur"),
    fake=fake.gaussian_blur,
    vmap=vmap.leading(3, 1),
    sharding=sharding.leading(3, 1),
    decomposition=decomposition.gaussian_blur,
    values=_values.sigma,
)
def _gaussian_blur(image: Tensor, sigma: Tensor, kernel_width: int, kernel_height: int) -> Tensor: ...


@operator(
    "imgops::median_blur",
    kernel=cpu.median_blur,
    fake=fake.median_blur,
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.median_blur,
)
def _median_blur(image: Tensor, kernel_size: int) -> Tensor: ...


@operator(
    "imgops::filter2d",
    kernel=cpu.filter2d,
    cuda=cuda.kernel("filter.filter2d"),
    fake=fake.filter2d,
    vmap=vmap.leading(3, 2),
    sharding=sharding.leading(3, 2),
    decomposition=decomposition.filter2d,
)
def _filter2d(image: Tensor, kernel: Tensor, border: str) -> Tensor: ...


@operator(
    "imgops::adjust_sharpness",
    kernel=cpu.adjust_sharpness,
    cuda=cuda.kernel("filter.adjust_sharpness"),
    fake=fake.adjust_sharpness,
    vmap=vmap.leading(3, 0),
    sharding=sharding.leading(3, 0),
    decomposition=decomposition.adjust_sharpness,
)
def _adjust_sharpness(image: Tensor, factor: Tensor) -> Tensor: ...


def gaussian_blur(
    image: Tensor,
    kernel_size: int | Sequence[int],
    sigma: float | Sequence[float] | Tensor | None = None,
) -> Tensor:
    """Blur an image with a Gaussian.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, or floating point of any range. Any device.
    kernel_size : int, or sequence of 2 int
        The width, or ``(width, height)``, of the kernel in pixels, odd.
    sigma : float, sequence of 2 float, or Tensor, optional
        The standard deviation in pixels, or those along x and y, not negative; 0 leaves the image as is.
        By default ``0.15 * kernel_size + 0.35``. A CPU tensor of shape ``()``, ``(2,)`` or ``(..., 2)``
        (one per sample) can change between calls without a recompile, and can require a gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is neither uint8 nor floating point, or ``sigma`` is not made of numbers.
    ValueError
        If ``kernel_size`` is not odd and positive, or ``sigma`` is negative, NaN or does not fit.

    Notes
    -----
    Reference: ``cv2.GaussianBlur`` with BORDER_REFLECT_101, bit-exact on uint8 (whose weights have
    8 bits: within 1 level of the true value) and float32. float64 is computed in double precision, half
    precision in float32 and rounded once. The gradient, for ``image`` and ``sigma``, is derived from the
    formula. Under autocast the dtype stays.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.gaussian_blur(torch.tensor([[[0.0, 0.0, 1.0, 0.0, 0.0]]]), (3, 1), 0.8)
    tensor([[[0.0000, 0.2390, 0.5220, 0.2390, 0.0000]]])
    """
    _check.tensor("gaussian_blur", "image", image)
    width, height = _check.pair("gaussian_blur", "kernel_size", kernel_size, ("width", "height"))
    if sigma is None:
        sigma = (0.15 * width + 0.35, 0.15 * height + 0.35)
    deviation = _check.real("gaussian_blur", "sigma", sigma)
    if deviation.ndim == 0 or deviation.shape == (1,):
        deviation = deviation.reshape(1).expand(2)
    return _gaussian_blur(image, deviation, width, height)


def median_blur(image: Tensor, kernel_size: int) -> Tensor:
    """Replace each value by the median of the window around it.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, or floating point of any range. Any device.
    kernel_size : int
        The width and height of the window in pixels, odd.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is neither uint8 nor floating point, or ``kernel_size`` is not an integer.
    ValueError
        If ``kernel_size`` is not odd and positive.

    Notes
    -----
    Reference: ``cv2.medianBlur``, bit-exact on uint8, and on float32 for the sizes 3 and 5 that it takes.
    Larger windows of floats, and float64, are the medians of the same windows. The border is replicated. A
    window that contains a NaN has an unspecified result. The gradient goes to the pixel that is the median.
    Under autocast the dtype stays.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.median_blur(torch.tensor([[[1.0, 1.0, 9.0, 2.0, 3.0]]]), 3)
    tensor([[[1., 1., 2., 3., 3.]]])
    """
    _check.tensor("median_blur", "image", image)
    size = _check.integer("median_blur", "kernel_size must be an integer", kernel_size)
    return _median_blur(image, size)


def filter2d(image: Tensor, kernel: Tensor, border: str = "reflect") -> Tensor:
    """Correlate an image with a kernel.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, or floating point of any range. Any device.
    kernel : Tensor
        ``(h, w)``, or ``(..., h, w)`` for one per sample, CPU. Its anchor is ``(h // 2, w // 2)``. It can
        change between calls without a recompile, and can require a gradient.
    border : {"constant", "edge", "reflect", "symmetric", "wrap"}
        The border rule, as for :func:`pad`; "constant" is 0.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is neither uint8 nor floating point, or ``kernel`` is not made of numbers.
    ValueError
        If ``kernel`` is empty or does not fit, or ``border`` is unknown.

    Notes
    -----
    Reference: ``cv2.filter2D``, bit-exact on uint8 and float32; for "wrap", which it does not support, the
    image is padded first. float64 is summed in double precision, where OpenCV takes a Fourier transform for
    large kernels, which mixes all pixels; half precision is computed in float32 and rounded once. The
    gradient, for ``image`` and ``kernel``, is derived from the formula. Under autocast the dtype stays.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.filter2d(torch.tensor([[[1.0, 4.0, 9.0]]]), torch.tensor([[-1.0, 0.0, 1.0]]))
    tensor([[[0., 8., 0.]]])
    """
    _check.tensor("filter2d", "image", image)
    _check.tensor("filter2d", "kernel", kernel)
    return _filter2d(image, kernel, border)


def adjust_sharpness(image: Tensor, factor: float | Tensor) -> Tensor:
    """Adjust the sharpness of an image.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, or floating point in [0, 1]. Any device.
    factor : float or Tensor
        0 is smoothed, 1 the image itself, 2 sharper. Any real number. A tensor of shape ``()`` or
        ``(...)`` (one per sample) can change between calls without a recompile, and can require a gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is neither uint8 nor floating point, or ``factor`` is not made of numbers.
    ValueError
        If ``factor`` is not one value or one per sample.

    Notes
    -----
    Reference: :class:`PIL.ImageEnhance.Sharpness`, bit-exact on uint8; the outermost pixels are
    unchanged, and so is an image less than 3 pixels wide or high. Floats: the same in real numbers,
    clamped to [0, 1], within 1e-5; half precision is computed in float32 and rounded once. The gradient, for
    ``image`` and ``factor``, is derived from the formula and is exact to second order; it is 0 where a
    value is clamped. Under autocast the dtype stays.

    Examples
    --------
    >>> import torch, imgops
    >>> image = torch.zeros(1, 3, 3)
    >>> image[0, 1, 1] = 0.5
    >>> imgops.adjust_sharpness(image, 2.0)[0, 1]
    tensor([0.0000, 0.8077, 0.0000])
    """
    _check.tensor("adjust_sharpness", "image", image)
    return _adjust_sharpness(image, _check.real("adjust_sharpness", "factor", factor))


#: What each shows of a photograph (C, H, W), uint8.
PICTURES: dict[str, Callable[[Tensor], Tensor]] = {
    "adjust_sharpness": lambda x: adjust_sharpness(x, 8.0),
    "filter2d": lambda x: filter2d(x, torch.tensor([[-2.0, -1, 0], [-1, 1, 1], [0, 1, 2]])),
    "gaussian_blur": lambda x: gaussian_blur(x, 25, 6.0),
    "median_blur": lambda x: median_blur(x, 13),
}
