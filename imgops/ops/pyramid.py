"""Image pyramids: halve and double the size, with OpenCV's kernel of 5 x 5."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check
from imgops._operator.family import Family
from imgops.autograd import pyramid as autograd
from imgops.decomposition import pyramid as decomposition
from imgops.fake import pyramid as fake
from imgops.kernels.cpu import pyramid as cpu

__all__ = ["pyr_down", "pyr_up"]

operator = Family(cpu, fake, decomposition, autograd).operator


@operator(3, cuda=True, adjoint="pyr_down_adjoint")
def _pyr_down(image: Tensor) -> Tensor: ...


@operator(3, adjoint="pyr_down")
def _pyr_down_adjoint(image: Tensor, height: int, width: int) -> Tensor: ...


@operator(3, cuda=True, adjoint="pyr_up_adjoint")
def _pyr_up(image: Tensor) -> Tensor: ...


@operator(3, adjoint="pyr_up")
def _pyr_up_adjoint(image: Tensor) -> Tensor: ...


def pyr_down(image: Tensor) -> Tensor:
    """Smooth an image and keep every second row and column.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, or floating point of any range. Any device.

    Returns
    -------
    Tensor
        ``(..., C, (H + 1) // 2, (W + 1) // 2)`` in the dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is neither uint8 nor floating point.

    Notes
    -----
    Reference: ``cv2.pyrDown``, bit-exact on uint8, float32 and float64. Half precision is computed in float32
    and rounded once. The border is reflected without the border pixel. The operator is linear; its backward
    is the registered adjoint. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.pyr_down(torch.tensor([[[0.0, 0.0, 16.0, 0.0, 0.0]]]))
    tensor([[[2., 6., 2.]]])
    """
    check.tensor("pyr_down", "image", image)
    return _pyr_down(image)


def pyr_up(image: Tensor) -> Tensor:
    """Double the height and the width of an image, smoothly.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, or floating point of any range. Any device.

    Returns
    -------
    Tensor
        ``(..., C, 2 * H, 2 * W)`` in the dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is neither uint8 nor floating point.
    ValueError
        If the result has too many pixels.

    Notes
    -----
    Reference: ``cv2.pyrUp``, bit-exact on uint8, float32 and float64. Half precision is computed in float32
    and rounded once. As in OpenCV, the border is reflected without the border pixel at the top and on the
    left, replicated at the bottom and on the right. The operator is linear; its backward is the registered
    adjoint. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.pyr_up(torch.tensor([[[0.0, 8.0]]]))[0, :1]
    tensor([[2., 4., 7., 8.]])
    """
    check.tensor("pyr_up", "image", image)
    return _pyr_up(image)
