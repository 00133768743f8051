"""Thresholds: one for an image, one per sample, or one per pixel."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check, values
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.autograd import thresholds as autograd
from imgops.decomposition import thresholds as decomposition
from imgops.decomposition._precision import white_of
from imgops.fake import thresholds as fake
from imgops.kernels import cuda
from imgops.kernels.cpu import thresholds as cpu
from imgops.rules import packed, sharding, vmap

__all__ = ["adaptive_threshold", "threshold"]


@operator(
    "imgops::threshold",
    kernel=cpu.threshold,
    cuda=cuda.Kernel("thresholds.threshold"),
    fake=fake.threshold,
    autograd=Gradient(autograd.threshold_setup_context, autograd.threshold_backward),
    vmap=vmap.leading(3, 0, 0),
    sharding=sharding.leading(3, 0, 0),
    decomposition=decomposition.threshold,
    values={"threshold": values.no_nan, "max_value": values.no_nan},
    packed=packed.keeps_size,
)
def _threshold(image: Tensor, threshold: Tensor, max_value: Tensor, operation: str) -> Tensor: ...


@operator(
    "imgops::adaptive_threshold",
    kernel=cpu.adaptive_threshold,
    fake=fake.adaptive_threshold,
    vmap=vmap.leading(3, 0, 0),
    sharding=sharding.leading(3, 0, 0),
    decomposition=decomposition.adaptive_threshold,
    values={"max_value": values.no_nan, "c": values.no_nan},
    no_gradient="a pixel is the maximum or 0",
    packed=packed.keeps_size,
)
def _adaptive_threshold(
    image: Tensor, max_value: Tensor, c: Tensor, kernel_size: int, method: str, operation: str
) -> Tensor: ...


def threshold(
    image: Tensor,
    threshold: float | Tensor = 0.0,
    max_value: float | Tensor | None = None,
    operation: str = "binary",
) -> Tensor:
    """Compare an image with a threshold.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range; uint8 or uint16 for "otsu", uint8
        for "triangle". Any device.
    threshold : float or Tensor
        The threshold, in units of the image; rounded down for levels. "otsu" and "triangle" do not use it.
    max_value : float or Tensor, optional
        The nonzero value of the result of "binary", "binary_inv", "otsu" and "triangle"; for levels rounded,
        and clamped to their range. The default is 255 for uint8, 65535 for uint16, and 1 for floats. Tensors
        of shape ``()`` or ``(...)`` (one per sample) can change between calls without a recompile, and can
        require a gradient.
    operation : {"binary", "binary_inv", "trunc", "tozero", "tozero_inv", "otsu", "triangle"}
        The results for a value above the threshold, and for any other value: "binary" ``max_value`` and 0,
        "binary_inv" 0 and ``max_value``, "trunc" the threshold and the value, "tozero" the value and 0,
        "tozero_inv" 0 and the value. "otsu" and "triangle" are "binary" with a threshold that is found in the
        histogram of each channel.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of those, or a parameter is not made of numbers.
    ValueError
        If ``operation`` is unknown, or a parameter is NaN or does not fit.

    Notes
    -----
    Reference: ``cv2.threshold``, bit-exact on uint8, uint16, float32 and float64; half precision
    is compared in float32. On an accelerator, "otsu" may take another one of levels that split a histogram
    equally well. The gradient, that of the formula, goes to the source of each pixel: the image,
    ``threshold`` ("trunc") or ``max_value``; that of the comparison is 0. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.threshold(torch.tensor([[[0.1, 0.5, 0.9]]]), 0.4, operation="tozero")
    tensor([[[0.0000, 0.5000, 0.9000]]])
    """
    check.tensor_or_batch("threshold", image)
    if max_value is None:
        max_value = float(white_of(image))
    return _threshold(image, *check.reals("threshold", threshold=threshold, max_value=max_value), operation)


def adaptive_threshold(
    image: Tensor,
    max_value: float | Tensor | None = None,
    method: str = "mean",
    operation: str = "binary",
    kernel_size: int = 11,
    c: float | Tensor = 2.0,
) -> Tensor:
    """Compare each pixel with the mean of the window around it.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8. Any device.
    max_value : float or Tensor, optional
        The nonzero value of the result; rounded, and clamped to [0, 255]. The default is 255.
    method : {"mean", "gaussian"}
        A mean with equal weights for all pixels of the window, or with the weights of a Gaussian.
    operation : {"binary", "binary_inv"}
        ``max_value`` where a pixel is above the mean minus ``c`` and 0 elsewhere, or the other way round.
    kernel_size : int
        The width and height of the window in pixels, odd, at least 3.
    c : float or Tensor
        The number that is subtracted from the mean, in levels. Tensors of shape ``()`` or ``(...)`` (one per
        sample) can change between calls without a recompile.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is not uint8, or a parameter is not made of numbers.
    ValueError
        If ``method`` or ``operation`` is unknown, ``kernel_size`` is even or less than 3, or a parameter is
        NaN or does not fit.
    NotImplementedError
        If a parameter requires a gradient, because there is none.

    Notes
    -----
    Reference: ``cv2.adaptiveThreshold``, bit-exact. The border is replicated. On an accelerator a "gaussian"
    mean may round to another level at a half. The operator is not differentiable. Autocast does not touch
    uint8.

    Examples
    --------
    >>> import torch, imgops
    >>> x = torch.tensor([[[10, 12, 60, 200, 90, 70]]], dtype=torch.uint8)
    >>> imgops.adaptive_threshold(x, kernel_size=3)
    tensor([[[255,   0,   0, 255,   0,   0]]], dtype=torch.uint8)
    """
    check.tensor_or_batch("adaptive_threshold", image)
    max_value = 255.0 if max_value is None else max_value
    numbers = check.reals("adaptive_threshold", max_value=max_value, c=c)
    size = check.integer("adaptive_threshold", "kernel_size must be an integer", kernel_size)
    return _adaptive_threshold(image, *numbers, size, method, operation)
