"""Noise: deterministic operators on an image and on random numbers, which PyTorch draws before the call."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check, values
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.autograd import noise as autograd
from imgops.autograd._sums import save_inputs
from imgops.decomposition import noise as decomposition
from imgops.fake import noise as fake
from imgops.kernels import cuda
from imgops.kernels.cpu import noise as cpu
from imgops.rules import sharding, vmap

__all__ = ["iso_noise", "salt_and_pepper", "shot_noise", "speckle_noise"]


@operator(
    "imgops::salt_and_pepper",
    kernel=cpu.salt_and_pepper,
    cuda=cuda.Kernel("noise.salt_and_pepper"),
    fake=fake.salt_and_pepper,
    autograd=Gradient(save_inputs, autograd.salt_and_pepper_backward),
    vmap=vmap.leading(3, 3, 0, 0),
    sharding=sharding.leading(3, 3, 0, 0),
    decomposition=decomposition.salt_and_pepper,
    values={"amount": values.unit, "salt": values.unit},
)
def _salt_and_pepper(image: Tensor, noise: Tensor, amount: Tensor, salt: Tensor) -> Tensor: ...


@operator(
    "imgops::shot_noise",
    kernel=cpu.shot_noise,
    cuda=cuda.Kernel("noise.shot_noise"),
    fake=fake.shot_noise,
    autograd=Gradient(save_inputs, autograd.shot_noise_backward),
    vmap=vmap.leading(3, 3, 0),
    sharding=sharding.leading(3, 3, 0),
    decomposition=decomposition.shot_noise,
    values={"scale": values.finite_not_negative},
)
def _shot_noise(image: Tensor, noise: Tensor, scale: Tensor) -> Tensor: ...


@operator(
    "imgops::iso_noise",
    kernel=cpu.iso_noise,
    cuda=cuda.Kernel("noise.iso_noise"),
    fake=fake.iso_noise,
    vmap=vmap.leading(3, 3, 0, 0),
    sharding=sharding.leading(3, 3, 0, 0),
    decomposition=decomposition.iso_noise,
    values={"color_shift": values.finite, "intensity": values.finite},
)
def _iso_noise(image: Tensor, noise: Tensor, color_shift: Tensor, intensity: Tensor) -> Tensor: ...


@operator(
    "imgops::speckle_noise",
    kernel=cpu.speckle_noise,
    cuda=cuda.Kernel("noise.speckle_noise"),
    fake=fake.speckle_noise,
    autograd=Gradient(save_inputs, autograd.speckle_noise_backward),
    vmap=vmap.leading(3, 3, 0),
    sharding=sharding.leading(3, 3, 0),
    decomposition=decomposition.speckle_noise,
    values={"sigma": values.finite},
)
def _speckle_noise(image: Tensor, noise: Tensor, sigma: Tensor) -> Tensor: ...


def salt_and_pepper(
    image: Tensor, noise: Tensor, amount: float | Tensor, salt: float | Tensor = 0.5
) -> Tensor:
    """Replace some values by the largest one (salt) and some by 0 (pepper).

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.
    noise : Tensor
        ``(..., C, H, W)``, or with 1 channel for all channels, floating point, uniformly distributed in [0,
        1): ``torch.rand(...)``. On the device of ``image``.
    amount : float or Tensor
        The share of values that are replaced, in [0, 1].
    salt : float or Tensor
        The share of salt among them, in [0, 1]. Tensors of shape ``()`` or ``(...)`` (one per sample) can
        change between calls without a recompile.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If a dtype is none of these.
    ValueError
        If ``noise`` or a parameter does not fit, or a parameter is out of range.

    Notes
    -----
    Reference: NumPy's ``where(noise < amount * (1 - salt), 0, where(noise >= 1 - amount * salt,
    1, image))``, with 255 or 65535 for levels, bit-exact in every dtype; comparisons are made in float32
    (float64 for uint16 and float64). The gradient goes to the values that stay. Autocast does not change the
    dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> image, noise = torch.full((1, 1, 4), 0.5), torch.tensor([[[0.01, 0.3, 0.6, 0.98]]])
    >>> imgops.salt_and_pepper(image, noise, 0.1)
    tensor([[[0.0000, 0.5000, 0.5000, 1.0000]]])
    """
    check.tensors("salt_and_pepper", image=image, noise=noise)
    return _salt_and_pepper(image, noise, *check.reals("salt_and_pepper", amount=amount, salt=salt))


def shot_noise(image: Tensor, noise: Tensor, scale: float | Tensor) -> Tensor:
    """Add the noise of counted photons, whose variance grows with brightness.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.
    noise : Tensor
        ``(..., C, H, W)``, or with 1 channel for all channels, floating point, normally distributed:
        ``torch.randn(...)``. On the device of ``image``.
    scale : float or Tensor
        The variance of the noise at a value of 1: the inverse of the number of photons that white stands for.
        Not negative. A tensor of shape ``()`` or ``(...)`` (one per sample) can change between calls without
        a recompile, and can require a gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If a dtype is none of these.
    ValueError
        If ``noise`` or ``scale`` does not fit, or ``scale`` is negative or not finite.

    Notes
    -----
    Reference: NumPy's ``clip(x + sqrt(scale * x) * noise, 0, 1)``, the normal approximation of
    Poisson's distribution; uint8 is computed in float32 and rounded once, half precision likewise, uint16 in
    float64. Exact on uint8 and uint16, within 1e-6 on floats. The gradient, for ``image``, ``noise`` and
    ``scale``, is that of the formula; it is 0 where a value is clamped. Autocast does not change the
    dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.shot_noise(torch.tensor([[[0.0, 0.25, 0.25]]]), torch.tensor([[[1.0, 1.0, -1.0]]]), 0.01)
    tensor([[[0.0000, 0.3000, 0.2000]]])
    """
    check.tensors("shot_noise", image=image, noise=noise)
    return _shot_noise(image, noise, check.real("shot_noise", "scale", scale))


def iso_noise(
    image: Tensor,
    noise: Tensor,
    color_shift: float | Tensor = 18.0,
    intensity: float | Tensor = 0.5,
) -> Tensor:
    """Add the noise of a camera at high sensitivity to hue and to lightness.

    Parameters
    ----------
    image : Tensor
        ``(..., 3, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.
    noise : Tensor
        ``(..., 2, H, W)``, floating point: one channel for hue (normally distributed, for example) and one
        for lightness. On the device of ``image``.
    color_shift : float or Tensor
        The shift of hue for a noise of 1 at full intensity, in degrees.
    intensity : float or Tensor
        The strength of the noise of hue and of lightness. Tensors of shape ``()`` or ``(...)`` (one per
        sample) can change between calls without a recompile, and can require a gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If a dtype is none of these.
    ValueError
        If the channels are not 3, ``noise`` or a parameter does not fit, or a parameter is not finite.

    Notes
    -----
    Reference: ``cv2.cvtColor`` to HLS, ``h + color_shift * intensity * noise[0]`` and ``l + intensity *
    noise[1] * (1 - l)``, and back, clamped; uint8 and uint16 are scaled to [0, 1] and rounded once. Within 1
    level on both, 1e-5 on floats. (albumentations' ISONoise is this formula with a normal and a Poisson
    distribution.) The gradient is derived from the formula; the hue of a gray pixel has none. Autocast does
    not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> red, noise = torch.tensor([1.0, 0.0, 0.0]).reshape(3, 1, 1), torch.tensor([1.0, 0.0]).reshape(2, 1, 1)
    >>> imgops.iso_noise(red, noise, 60.0, 1.0).flatten()
    tensor([1., 1., 0.])
    """
    check.tensors("iso_noise", image=image, noise=noise)
    numbers = check.reals("iso_noise", color_shift=color_shift, intensity=intensity)
    return _iso_noise(image, noise, *numbers)


def speckle_noise(image: Tensor, noise: Tensor, sigma: float | Tensor) -> Tensor:
    """Multiply each value by a number around 1 (speckle).

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.
    noise : Tensor
        ``(..., C, H, W)``, or with 1 channel for all channels, floating point: ``torch.randn(...)``, or
        uniformly distributed in [-1, 1]. On the device of ``image``.
    sigma : float or Tensor
        The factor is ``1 + sigma * noise``. A tensor of shape ``()`` or ``(...)`` (one per sample) can
        change between calls without a recompile, and can require a gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If a dtype is none of these.
    ValueError
        If ``noise`` or ``sigma`` does not fit, or ``sigma`` is not finite.

    Notes
    -----
    Reference: NumPy's ``clip(x * (1 + sigma * noise), 0, 1)``; uint8 is computed in float32 and
    rounded once, half precision likewise, uint16 in float64. Exact on uint8 and uint16, within 1e-6 on
    floats. The gradient, for ``image``, ``noise`` and ``sigma``, is that of the formula; it is 0 where a
    value is clamped. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.speckle_noise(torch.full((1, 1, 2), 0.5), torch.tensor([[[1.0, -1.0]]]), 0.2)
    tensor([[[0.6000, 0.4000]]])
    """
    check.tensors("speckle_noise", image=image, noise=noise)
    return _speckle_noise(image, noise, check.real("speckle_noise", "sigma", sigma))
