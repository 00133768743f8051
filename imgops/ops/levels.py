"""Pointwise operators: functions of each value, on uint8 by a lookup table of 256 entries."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check, values
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.autograd import levels as autograd
from imgops.autograd._sums import save_inputs, save_nothing
from imgops.decomposition import levels as decomposition
from imgops.fake import levels as fake
from imgops.kernels import cuda
from imgops.kernels.cpu import _threads
from imgops.kernels.cpu import levels as cpu
from imgops.rules import packed, sharding, vmap

__all__ = ["adjust_gamma", "invert", "lut", "posterize", "solarize"]


@operator(
    "imgops::adjust_gamma",
    kernel=cpu.adjust_gamma,
    cuda=cuda.Kernel("levels.adjust_gamma", takes_packed=True),
    fake=fake.adjust_gamma,
    autograd=Gradient(save_inputs, autograd.adjust_gamma_backward),
    vmap=vmap.leading(3, 0, 0),
    sharding=sharding.leading(3, 0, 0),
    decomposition=decomposition.adjust_gamma,
    packed=packed.keeps_size,
)
def _adjust_gamma(image: Tensor, gamma: Tensor, gain: Tensor) -> Tensor: ...


@operator(
    "imgops::posterize",
    kernel=cpu.posterize,
    cuda=cuda.Kernel("levels.posterize", takes_packed=True),
    fake=fake.posterize,
    autograd=Gradient(save_nothing, autograd.posterize_backward),
    vmap=vmap.leading(3, 0),
    sharding=sharding.leading(3, 0),
    decomposition=decomposition.posterize,
    values={"bits": values.finite},
    packed=packed.keeps_size,
)
def _posterize(image: Tensor, bits: Tensor) -> Tensor: ...


@operator(
    "imgops::solarize",
    kernel=cpu.solarize,
    cuda=cuda.Kernel("levels.solarize", takes_packed=True),
    fake=fake.solarize,
    autograd=Gradient(save_inputs, autograd.solarize_backward),
    vmap=vmap.leading(3, 0),
    sharding=sharding.leading(3, 0),
    decomposition=decomposition.solarize,
    packed=packed.keeps_size,
)
def _solarize(image: Tensor, threshold: Tensor) -> Tensor: ...


@operator(
    "imgops::lut",
    kernel=cpu.lut,
    cuda=cuda.Kernel("levels.lut", takes_packed=True),
    fake=fake.lut,
    vmap=vmap.leading(3, 2),
    sharding=sharding.leading(3, 2),
    decomposition=decomposition.lut,
    packed=packed.keeps_size,
)
def _lut(image: Tensor, table: Tensor) -> Tensor: ...


def adjust_gamma(image: Tensor, gamma: float | Tensor, gain: float | Tensor = 1) -> Tensor:
    """Apply gamma correction: ``gain * image ** gamma``.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.
    gamma : float or Tensor
        The exponent: a value below 1 brightens the shadows, a value above 1 darkens them. A tensor of shape
        ``()`` or ``(...)`` (one per sample) can change between calls without a recompile, and can require a
        gradient.
    gain : float or Tensor
        The factor of the result, in the same forms as ``gamma``.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or a parameter is not made of numbers.
    ValueError
        If a parameter is not one value or one per sample.

    Notes
    -----
    Reference: ``Image.point`` with torchvision's table, ``255.999 * gain * (level / 255) ** gamma`` in double
    precision, bit-exact on uint8; on uint16 ``65535.999 * gain * (level / 65535) ** gamma``. Floats:
    ``gain * image ** gamma``, clamped to [0, 1], within 1e-5. The gradient, for ``image``, ``gamma`` and
    ``gain``, is that of the formula. Pixels of value 0 have a gradient of 0, also where the
    derivative is infinite, as for a ``gamma`` below 1. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.adjust_gamma(torch.tensor([[[0, 64, 255]]], dtype=torch.uint8), 0.5)
    tensor([[[  0, 128, 255]]], dtype=torch.uint8)
    """
    check.tensor_or_batch("adjust_gamma", image)
    return _adjust_gamma(image, *check.reals("adjust_gamma", gamma=gamma, gain=gain))


def posterize(image: Tensor, bits: int | Tensor) -> Tensor:
    """Reduce the number of bits of every value.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.
    bits : int or Tensor
        The number of bits to keep, clamped to [0, 8], for uint16 to [0, 16]. A tensor of shape ``()`` or
        ``(...)`` (one per sample) can change between calls without a recompile.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``bits`` is not made of numbers.
    ValueError
        If ``bits`` is not one value or one per sample.

    Notes
    -----
    Reference: :func:`PIL.ImageOps.posterize`, bit-exact on uint8; uint16 keeps the highest of its
    16 bits. Floats: rounded down to one of 2 ** bits levels of [0, 1), as in torchvision. The result is
    piecewise constant, so the gradient is 0. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.posterize(torch.tensor([[[0, 100, 255]]], dtype=torch.uint8), 2)
    tensor([[[  0,  64, 192]]], dtype=torch.uint8)
    """
    check.tensor_or_batch("posterize", image)
    return _posterize(image, check.real("posterize", "bits", bits))


def solarize(image: Tensor, threshold: float | Tensor) -> Tensor:
    """Invert all values at or above a threshold.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.
    threshold : float or Tensor
        Values equal to the threshold or above it are inverted. A tensor of shape ``()`` or ``(...)`` (one per
        sample) can change between calls without a recompile.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``threshold`` is not made of numbers.
    ValueError
        If ``threshold`` is not one value or one per sample.

    Notes
    -----
    Reference: :func:`PIL.ImageOps.solarize`, bit-exact on uint8. uint16: ``65535 - image``,
    floats: ``1 - image`` where a value is inverted. The gradient is 1 or -1 for ``image`` and 0 for
    ``threshold``, which is the true derivative almost everywhere. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.solarize(torch.tensor([[[0, 100, 255]]], dtype=torch.uint8), 128)
    tensor([[[  0, 100,   0]]], dtype=torch.uint8)
    """
    check.tensor_or_batch("solarize", image)
    return _solarize(image, check.real("solarize", "threshold", threshold))


def invert(image: Tensor) -> Tensor:
    """Invert the values of an image.

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
    Reference: :func:`PIL.ImageOps.invert`, bit-exact on uint8; uint16: ``65535 - image``; floats:
    ``1 - image``. The function uses PyTorch's own subtraction. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.invert(torch.tensor([[[0, 100, 255]]], dtype=torch.uint8))
    tensor([[[255, 155,   0]]], dtype=torch.uint8)
    """
    check.tensor_or_batch("invert", image)
    check.levels_or_floats("invert", image, takes_uint16=True)
    if not isinstance(image, Tensor):
        return image.like(decomposition.invert(image.data))
    check.image("invert", "image", image)
    return _threads.run_without_waiting(decomposition.invert, image)  # type: ignore[no-any-return]


def lut(image: Tensor, table: Tensor) -> Tensor:
    """Apply a lookup table to every value.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8 or uint16. Any device.
    table : Tensor
        ``(256,)``, one for each channel ``(C, 256)``, or one per sample ``(..., 1 or C, 256)``; for uint16
        with 65536 values in place of 256; any dtype; on the CPU. The table can change between calls without a
        recompile, and can require a gradient.

    Returns
    -------
    Tensor
        The shape and memory format of ``image`` and the dtype of ``table``.

    Raises
    ------
    TypeError
        If ``image`` is neither uint8 nor uint16.
    ValueError
        If ``table`` does not fit.

    Notes
    -----
    Reference: ``cv2.LUT``, bit-exact; uint16: ``table[image]`` of NumPy. The gradient of a
    floating point ``table`` is the sum over the pixels that use an entry. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.lut(torch.tensor([[[0, 1, 255]]], dtype=torch.uint8), torch.arange(256) / 255)
    tensor([[[0.0000, 0.0039, 1.0000]]])
    """
    check.tensor_or_batch("lut", image)
    check.tensor("lut", "table", table)
    return _lut(image, table.unsqueeze(0) if table.ndim == 1 else table)
