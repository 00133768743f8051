"""Filters: each pixel from its neighbors."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from imgops import _check, sharding, vmap
from imgops._registry import operator
from imgops.decomposition import filter as decomposition
from imgops.fake import filter as fake
from imgops.kernels.cpu import filter as cpu

__all__ = ["adjust_sharpness", "filter2d", "gaussian_blur"]


@operator(
    "imgops::gaussian_blur",
    kernel=cpu.gaussian_blur,
    fake=fake.gaussian_blur,
    vmap=vmap.leading(3, 1),
    sharding=sharding.leading(3, 1),
    decomposition=decomposition.gaussian_blur,
)
def _gaussian_blur(image: Tensor, sigma: Tensor, kernel_width: int, kernel_height: int) -> Tensor: ...


@operator(
    "imgops::filter2d",
    kernel=cpu.filter2d,
    fake=fake.filter2d,
    vmap=vmap.leading(3, 2),
    sharding=sharding.leading(3, 2),
    decomposition=decomposition.filter2d,
)
def _filter2d(image: Tensor, kernel: Tensor, border: str) -> Tensor: ...


@operator(
    "imgops::adjust_sharpness",
    kernel=cpu.adjust_sharpness,
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
        The width, or ``(width, height)``, of the window in pixels, odd.
    sigma : float, sequence of 2 float, or Tensor, optional
        The standard deviation in pixels, or those along x and y, not negative; 0 leaves the image as is.
        By default ``0.15 * kernel_size + 0.35``. A CPU tensor of shape ``()``, ``(2,)`` or ``(..., 2)``
        (one a sample) can change between calls without a recompile, and can require a gradient.

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
    Reference: ``cv2.GaussianBlur`` with BORDER_REFLECT_101, equal to the bit on uint8 (whose weights have
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
    sizes = (kernel_size, kernel_size) if isinstance(kernel_size, int) else kernel_size
    width, height = _check.integers("gaussian_blur", "kernel_size", sizes, ("width", "height"))
    if sigma is None:
        sigma = (0.15 * width + 0.35, 0.15 * height + 0.35)
    deviation = _check.real("gaussian_blur", "sigma", sigma)
    if deviation.ndim == 0 or deviation.shape == (1,):
        deviation = deviation.reshape(1).expand(2)
    return _gaussian_blur(image, deviation, width, height)


def filter2d(image: Tensor, kernel: Tensor, border: str = "reflect") -> Tensor:
    """Weigh the pixels around each pixel: a correlation.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, or floating point of any range. Any device.
    kernel : Tensor
        ``(h, w)``, or ``(..., h, w)`` for one a sample, CPU. Its middle is at ``(h // 2, w // 2)``. It can
        change between calls without a recompile, and can require a gradient.
    border : {"constant", "edge", "reflect", "symmetric", "wrap"}
        What lies outside of the image, as for :func:`pad`; constant is 0.

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
    Reference: ``cv2.filter2D``, equal to the bit on uint8 and float32; "wrap", which it does not know, is
    padded first. float64 is computed in double precision, half precision in float32 and rounded once. The
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
    """Blur or sharpen an image a little.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, or floating point in [0, 1]. Any device.
    factor : float or Tensor
        0 is smoothed, 1 the image itself, 2 sharper. Any real number.
        A tensor on the CPU of shape ``()`` or ``(...)`` (one a sample) can change between calls without a
        recompile, and can require a gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is neither uint8 nor floating point, or ``factor`` is not made of numbers.
    ValueError
        If ``factor`` is not one value or one a sample.

    Notes
    -----
    Reference: :class:`PIL.ImageEnhance.Sharpness`, equal to the bit on uint8; the outermost pixels stay,
    and all of an image that is fewer than 3 pixels wide or high. Floats: the same in real numbers, held
    in [0, 1], within 1e-5; half precision is computed in float32 and rounded once. The gradient, for
    ``image`` and ``factor``, is derived from the formula and is exact to second order; where a value is
    held at an end of its range it is 0. Under autocast the dtype stays.

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
