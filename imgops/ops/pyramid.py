"""Image pyramids: halve and double the size, with OpenCV's kernel of 5 x 5."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.autograd import pyramid as autograd
from imgops.decomposition import pyramid as decomposition
from imgops.fake import pyramid as fake
from imgops.kernels import cuda
from imgops.kernels.cpu import pyramid as cpu
from imgops.rules import sharding, vmap

__all__ = ["pyr_down", "pyr_up"]


@operator(
    "imgops::pyr_down",
    kernel=cpu.pyr_down,
    cuda=cuda.Kernel("pyramid.pyr_down"),
    fake=fake.pyr_down,
    autograd=Gradient(autograd.pyr_down_setup_context, autograd.pyr_down_backward, autograd.pyr_down_jvp),
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.pyr_down,
    adjoint="pyr_down_adjoint",
)
def _pyr_down(image: Tensor) -> Tensor: ...


@operator(
    "imgops::pyr_down_adjoint",
    kernel=cpu.pyr_down_adjoint,
    fake=fake.pyr_down_adjoint,
    autograd=Gradient(
        autograd.pyr_down_adjoint_setup_context,
        autograd.pyr_down_adjoint_backward,
        autograd.pyr_down_adjoint_jvp,
    ),
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.pyr_down_adjoint,
    adjoint="pyr_down",
)
def _pyr_down_adjoint(image: Tensor, height: int, width: int) -> Tensor: ...


@operator(
    "imgops::pyr_up",
    kernel=cpu.pyr_up,
    cuda=cuda.Kernel("pyramid.pyr_up"),
    fake=fake.pyr_up,
    autograd=Gradient(autograd.pyr_up_setup_context, autograd.pyr_up_backward, autograd.pyr_up_jvp),
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.pyr_up,
    adjoint="pyr_up_adjoint",
)
def _pyr_up(image: Tensor) -> Tensor: ...


@operator(
    "imgops::pyr_up_adjoint",
    kernel=cpu.pyr_up_adjoint,
    fake=fake.pyr_up_adjoint,
    autograd=Gradient(
        autograd.pyr_up_adjoint_setup_context, autograd.pyr_up_adjoint_backward, autograd.pyr_up_adjoint_jvp
    ),
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.pyr_up_adjoint,
    adjoint="pyr_up",
)
def _pyr_up_adjoint(image: Tensor) -> Tensor: ...


def pyr_down(image: Tensor) -> Tensor:
    """Smooth an image and keep every second row and column.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range. Any device.

    Returns
    -------
    Tensor
        ``(..., C, (H + 1) // 2, (W + 1) // 2)`` in the dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point.

    Notes
    -----
    Reference: ``cv2.pyrDown``, bit-exact on uint8, uint16, float32 and float64. Half precision is
    computed in float32 and rounded once. The border is reflected without the border pixel. The operator is
    linear; its backward is the registered adjoint. Autocast does not change the dtype.

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
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range. Any device.

    Returns
    -------
    Tensor
        ``(..., C, 2 * H, 2 * W)`` in the dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point.
    ValueError
        If the result has too many pixels.

    Notes
    -----
    Reference: ``cv2.pyrUp``, bit-exact on uint8, uint16, float32 and float64. Half precision is
    computed in float32 and rounded once. As in OpenCV, the border is reflected without the border pixel at
    the top and on the left, replicated at the bottom and on the right. The operator is linear; its backward
    is the registered adjoint. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.pyr_up(torch.tensor([[[0.0, 8.0]]]))[0, :1]
    tensor([[2., 4., 7., 8.]])
    """
    check.tensor("pyr_up", "image", image)
    return _pyr_up(image)
