"""Maps for remap: where each pixel of the result comes from. Made of PyTorch's own operators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from imgops import _check
from imgops.kernels import _values
from imgops.ops._grids import displacement, fitting, map_dtype, meshed, pixel_grid, real
from imgops.ops.filter import gaussian_blur
from imgops.ops.geometry import remap

__all__ = ["elastic_map", "flow_map", "polar_map"]


def flow_map(flow: Tensor) -> Tensor:
    """The map of a displacement of each pixel.

    Parameters
    ----------
    flow : Tensor
        ``(..., 2, H, W)``, float32 or float64: how far from each pixel, along x and y, in pixels, the
        position lies that it shows. Any device.

    Returns
    -------
    Tensor
        ``(..., 2, H, W)`` like ``flow``, for :func:`remap`.

    Raises
    ------
    TypeError
        If ``flow`` is neither float32 nor float64.
    ValueError
        If it does not have 2 channels.

    Notes
    -----
    Reference: NumPy's ``mgrid`` plus the flow. Differentiable.

    Examples
    --------
    >>> import torch, imgops
    >>> one_to_the_right = torch.tensor([1.0, 0.0]).reshape(2, 1, 1).expand(2, 1, 3)
    >>> imgops.flow_map(one_to_the_right)[0]
    tensor([[1., 2., 3.]])
    """
    displacement("flow_map", "flow", flow)
    return flow + pixel_grid(flow.shape[-2], flow.shape[-1], flow)


def elastic_map(
    noise: Tensor, alpha: float | Tensor, sigma: float | Tensor, kernel_size: int | None = None
) -> Tensor:
    """The map of an elastic distortion: random displacements, smoothed.

    Parameters
    ----------
    noise : Tensor
        ``(..., 2, H, W)``, float32 or float64: ``torch.rand(...) * 2 - 1``, say. Any device.
    alpha : float or Tensor
        What the smoothed noise is multiplied with, in pixels.
    sigma : float or Tensor
        The standard deviation of the Gaussian in pixels. Tensors of shape ``()`` or ``(...)`` (one per
        sample) can change between calls without a recompile, and can require a gradient.
    kernel_size : int, optional
        The side of the Gaussian's kernel, odd. By default the next odd number from ``8 * sigma + 1`` on, as
        in torchvision; a ``sigma`` that is a tensor needs one.

    Returns
    -------
    Tensor
        ``(..., 2, H, W)`` like ``noise``, for :func:`remap`.

    Raises
    ------
    TypeError
        If ``noise`` is neither float32 nor float64, or a parameter is not made of numbers.
    ValueError
        If ``noise`` does not have 2 channels, ``kernel_size`` is missing or not odd, ``sigma`` is negative,
        or a parameter is not finite or does not fit.

    Notes
    -----
    Reference: ``cv2.GaussianBlur(noise, ...) * alpha`` plus the position of each pixel, with the border
    reflected without the border pixel, as torchvision's ElasticTransform has it. (albumentations'
    ElasticTransform replicates the border, and smooths both displacements as one image.) Differentiable, by
    :func:`gaussian_blur`.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.elastic_map(torch.zeros(2, 1, 3), 30.0, 2.0)[0]
    tensor([[0., 1., 2.]])
    """
    displacement("elastic_map", "noise", noise)
    strength = real("elastic_map", "alpha", alpha)
    deviation = real("elastic_map", "sigma", sigma, _values.finite_not_negative)
    for name, value in (("alpha", strength), ("sigma", deviation)):
        _check.per_sample_parameter("elastic_map", name, value, noise)
    if kernel_size is None:
        if isinstance(sigma, Tensor) or deviation.ndim:
            _check.fail(ValueError, "elastic_map", "kernel_size must be given for a tensor sigma", None)
        kernel_size = int(8 * sigma + 1) | 1
    both = deviation[..., None].expand(*deviation.shape, 2)
    smooth = gaussian_blur(noise, kernel_size, both)
    return smooth * _like(strength, noise) + pixel_grid(noise.shape[-2], noise.shape[-1], noise)


def _like(value: Tensor, image: Tensor) -> Tensor:
    return value.to(image.device, image.dtype)[..., None, None, None]


def polar_map(
    size: Sequence[int],
    center: Sequence[float] | Tensor,
    max_radius: float | Tensor,
    *,
    log: bool = False,
    inverse: bool = False,
    source_size: Sequence[int] | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """The map to polar coordinates, or back.

    Parameters
    ----------
    size : sequence of 2 int
        ``(height, width)`` of the result in pixels. To polar coordinates: angles from 0 to 2 pi down, radii
        from 0 to ``max_radius`` to the right.
    center : sequence of 2 float, or Tensor
        ``(2,)``, or ``(..., 2)`` for one per sample: (x, y) in pixels. It can require a gradient.
    max_radius : float or Tensor
        The largest radius in pixels, ``()`` or ``(...)``; positive, and with ``log`` more than 1. It can
        require a gradient.
    log : bool
        Whether radii are spaced by their logarithm.
    inverse : bool
        From polar coordinates back; then :func:`remap` wants ``border="wrap"``, for angles go around.
    source_size : sequence of 2 int, optional
        ``(height, width)`` of the polar image, for ``inverse``; by default ``size``.
    dtype : {torch.float32, torch.float64}
        Of the map.
    device : device, optional
        Of the map; by default that of ``center``.

    Returns
    -------
    Tensor
        ``(..., 2, height, width)``, for :func:`remap`.

    Raises
    ------
    TypeError
        If a size is not made of integers, a parameter is not made of numbers, or ``dtype`` is another one.
    ValueError
        If ``center`` does not have 2 values, the leading dimensions do not broadcast, a parameter is not
        finite, or ``max_radius`` is too small.

    Notes
    -----
    Reference: ``cv2.warpPolar``, whose map this is, within 1e-4 pixels. Differentiable in ``center`` and
    ``max_radius``.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.polar_map((4, 2), (5.0, 5.0), 4.0)[:, 1]
    tensor([[5., 5.],
            [5., 7.]])
    """
    op = "polar_map"
    height, width = _check.positive_size(op, size)
    map_dtype(op, dtype)
    middle = real(op, "center", center).to(device).double()
    if middle.ndim < 1 or _check.violates(middle.shape[-1] == 2):
        _check.fail(ValueError, op, "center must have 2 values (x, y)", f"shape {_check.shape(middle)}")
    radii = real(op, "max_radius", max_radius, _above_1 if log else _values.finite_positive)
    _check.parameter(op, "max_radius", radii, middle)
    fitting(op, "max_radius", radii.shape, "center", middle.shape[:-1])
    most = radii.to(middle.device).double()[..., None, None]
    cx, cy = (v[..., None, None] for v in middle.unbind(-1))
    x, y = pixel_grid(height, width, middle).unbind(-3)
    turn = 2 * math.pi
    if not inverse:
        radius = torch.exp(x * (most.log() / width)) - 1 if log else x * (most / width)
        angle = y * (turn / height)
        return meshed(radius * angle.cos() + cx, radius * angle.sin() + cy, height, width, dtype)
    rows, columns = (height, width) if source_size is None else _check.positive_size(op, source_size)
    x, y = x - cx, y - cy
    square = x * x + y * y
    there = square > 0
    radius = torch.where(there, torch.where(there, square, 1).sqrt(), 0)
    across = (radius + 1).log() * (columns / most.log()) if log else radius * (columns / most)
    angle = torch.atan2(torch.where(there, y, 0), torch.where(there, x, 1))
    angle = torch.where(angle < 0, angle + turn, angle)
    return meshed(across, angle * (rows / turn), height, width, dtype)


def _above_1(op: str, name: str, value: Tensor) -> None:
    """The logarithm of a largest radius is a distance."""
    _values.finite(op, name, value)
    least = value.detach().min().item() if value.numel() else 2
    if not least > 1:
        _check.fail(ValueError, op, f"{name} must be more than 1 with log=True", least)


#: What each shows of a photograph (C, H, W), uint8.
PICTURES: dict[str, Callable[[Tensor], Tensor]] = {
    "elastic_map": lambda x: remap(
        x,
        elastic_map(
            torch.rand(2, *x.shape[-2:], generator=torch.Generator().manual_seed(1)) * 2 - 1, 220.0, 7.0
        ),
    ),
    "flow_map": lambda x: remap(x, flow_map(torch.full((2, *x.shape[-2:]), 45.0))),
    "polar_map": lambda x: remap(x, polar_map(x.shape[-2:], (x.shape[-1] / 2, x.shape[-2] / 2), x.shape[-2])),
}
