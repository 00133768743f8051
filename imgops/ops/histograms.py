"""Operators that map the values of an image by its histogram."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from imgops._common import check, values
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.autograd import histograms as autograd
from imgops.autograd._sums import save_nothing
from imgops.decomposition import histograms as decomposition
from imgops.fake import histograms as fake
from imgops.kernels import cuda
from imgops.kernels.backward import histograms as backward
from imgops.kernels.cpu import histograms as cpu
from imgops.rules import packed, sharding, vmap

__all__ = ["autocontrast", "clahe", "equalize", "match_histograms"]


@operator(
    "imgops::clahe",
    kernel=cpu.clahe,
    cuda=cuda.Kernel("histograms.clahe"),
    fake=fake.clahe,
    vmap=vmap.leading(3, 0),
    sharding=sharding.leading(3, 0),
    decomposition=decomposition.clahe,
    values={"clip_limit": values.no_nan},
    packed=packed.keeps_size,
)
def _clahe(image: Tensor, clip_limit: Tensor, tiles_x: int, tiles_y: int) -> Tensor: ...


@operator(
    "imgops::match_histograms",
    kernel=cpu.match_histograms,
    fake=fake.match_histograms,
    backward=backward.match_histograms,
    vmap=vmap.leading(3, 3),
    sharding=sharding.leading(3, 3),
    decomposition=decomposition.match_histograms,
)
def _match_histograms(image: Tensor, reference: Tensor) -> Tensor: ...


def clahe(image: Tensor, clip_limit: float | Tensor = 40.0, tiles: int | Sequence[int] = (8, 8)) -> Tensor:
    """Equalize the histogram of each tile of an image, with limited contrast.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)`` with 1 channel, or 3 channels (RGB, whose L in LAB is equalized). uint8, or
        floating point in [0, 1]; uint16 with 1 channel. Any device.
    clip_limit : float or Tensor
        How often a level may occur, as a multiple of the mean; the excess is spread over all levels. 0 or
        less: no limit. A tensor of shape ``()`` or ``(...)`` (one per sample) can change between calls
        without a recompile.
    tiles : int, or sequence of 2 int
        The number of tiles along x and y, positive.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of these, or ``clip_limit`` is not made of numbers.
    ValueError
        If the channels are not 1 or 3, ``tiles`` is not positive, the image is empty, or ``clip_limit`` is
        NaN or does not fit.

    Notes
    -----
    Reference: ``cv2.createCLAHE(clip_limit, tiles).apply``, bit-exact on uint8 and uint16. Floats have
    histograms of 256 levels, whose lookup tables are interpolated between levels as they are between tiles,
    and nothing is rounded: within 1e-5. The gradient for ``image`` is that of the interpolation; the tables
    and ``clip_limit`` have no gradient. A color image of uint8 is converted to LAB and back
    as by :func:`cvt_color`, one of floats by the formula in double precision, because OpenCV's approximate
    lightness may fall into another level. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> x = torch.tensor([[[100, 101, 102, 103], [100, 101, 102, 103]]], dtype=torch.uint8)
    >>> imgops.clahe(x, 0.0, (1, 1))
    tensor([[[ 64, 128, 191, 255],
             [ 64, 128, 191, 255]]], dtype=torch.uint8)
    """
    check.tensor_or_batch("clahe", image)
    limit = check.real("clahe", "clip_limit", clip_limit)
    across, down = check.pair("clahe", "tiles", tiles, ("x", "y"))
    return _clahe(image, limit, across, down)


def match_histograms(image: Tensor, reference: Tensor) -> Tensor:
    """Map each channel of an image to the histogram of the same channel of another image.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range. Any device.
    reference : Tensor
        ``(..., C, H', W')`` with the dtype, device, leading dimensions and channels of ``image``.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``reference`` has a different one.
    ValueError
        If ``reference`` has other leading dimensions or channels, or one of the images is empty.

    Notes
    -----
    Reference: :func:`skimage.exposure.match_histograms` with ``channel_axis``, bit-exact on
    uint8, uint16, float32 and float64; half precision is computed in float32 and rounded once. An image with
    NaN has an unspecified result. The gradient, derived from the formula, goes to ``reference``; for
    ``image`` it is 0, because only the order of its values counts. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.match_histograms(torch.tensor([[[1.0, 3.0, 2.0]]]), torch.tensor([[[10.0, 30.0, 20.0]]]))
    tensor([[[10., 30., 20.]]])
    """
    check.tensors("match_histograms", image=image, reference=reference)
    return _match_histograms(image, reference)


@operator(
    "imgops::autocontrast",
    kernel=cpu.autocontrast,
    cuda=cuda.Kernel("histograms.autocontrast", takes_packed=True),
    fake=fake.autocontrast,
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.autocontrast,
    backward=backward.autocontrast,
    packed=packed.keeps_size,
)
def _autocontrast(image: Tensor) -> Tensor: ...


@operator(
    "imgops::equalize",
    kernel=cpu.equalize,
    cuda=cuda.Kernel("histograms.equalize", takes_packed=True),
    fake=fake.equalize,
    autograd=Gradient(save_nothing, autograd.equalize_backward),
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.equalize,
    packed=packed.keeps_size,
)
def _equalize(image: Tensor) -> Tensor: ...


def autocontrast(image: Tensor) -> Tensor:
    """Maximize the contrast of each channel: stretch its values over the whole range.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point.
    ValueError
        If ``image`` has fewer than 3 dimensions.

    Notes
    -----
    Reference: :func:`PIL.ImageOps.autocontrast` without a cutoff, bit-exact on uint8; a channel
    of one level is unchanged. uint16: the whole part of ``(image - min) * 65535 / (max - min)``, within 1
    level of torchvision's, which rounds it in float32. Floats: the same formula in real numbers, within 1e-5.
    The gradient is derived from the formula, also through the darkest and the brightest value. Autocast does
    not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.autocontrast(torch.tensor([[[0.25, 0.5, 0.75]]]))
    tensor([[[0.0000, 0.5000, 1.0000]]])
    """
    check.tensor_or_batch("autocontrast", image)
    return _autocontrast(image)


def equalize(image: Tensor) -> Tensor:
    """Equalize the histogram of each channel.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point.
    ValueError
        If ``image`` has fewer than 3 dimensions.

    Notes
    -----
    Reference: :func:`PIL.ImageOps.equalize`, bit-exact on uint8. uint16: the formula of
    ``cv2.equalizeHist`` with 65,536 levels, rounded half up (PIL's step would be 0 for most images, and
    torchvision keeps 8 bits). Floats are quantized to 256 levels, as in
    torchvision; values outside of [0, 1] are clamped first. The result is piecewise constant, so the gradient
    is 0. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> levels = torch.arange(100, 104, dtype=torch.uint8)
    >>> imgops.equalize(levels.repeat_interleave(256).reshape(1, 32, 32)).unique()
    tensor([  0,  85, 171, 255], dtype=torch.uint8)
    """
    check.tensor_or_batch("equalize", image)
    return _equalize(image)
