"""Blending of two images: by alpha, by a mask, by weights."""

from __future__ import annotations

from torch import Tensor

from imgops._common import check, values
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.autograd import blending as autograd
from imgops.autograd._sums import save_inputs
from imgops.decomposition import blending as decomposition
from imgops.fake import blending as fake
from imgops.fake.movement import check_mask
from imgops.kernels import cuda
from imgops.kernels.cpu import blending as cpu
from imgops.ops.movement import broadcast, paste
from imgops.rules import autocast, sharding, vmap

__all__ = ["add_weighted", "alpha_composite", "blend", "composite"]


@operator(
    "imgops::alpha_composite",
    kernel=cpu.alpha_composite,
    cuda=cuda.Kernel("blending.alpha_composite"),
    fake=fake.alpha_composite,
    autograd=Gradient(save_inputs, autograd.alpha_composite_backward),
    vmap=vmap.leading(3, 3),
    sharding=sharding.leading(3, 3),
    decomposition=decomposition.alpha_composite,
)
def _alpha_composite(image: Tensor, other: Tensor) -> Tensor: ...


@operator(
    "imgops::add_weighted",
    kernel=cpu.add_weighted,
    cuda=cuda.Kernel("blending.add_weighted"),
    fake=fake.add_weighted,
    autograd=Gradient(autograd.add_weighted_setup_context, autograd.add_weighted_backward),
    vmap=vmap.leading(3, 3, 0, 0, 0),
    sharding=sharding.leading(3, 3, 0, 0, 0),
    decomposition=decomposition.add_weighted,
    values={"alpha": values.no_nan, "beta": values.no_nan, "gamma": values.no_nan},
)
def _add_weighted(image: Tensor, other: Tensor, alpha: Tensor, beta: Tensor, gamma: Tensor) -> Tensor: ...


def alpha_composite(image: Tensor, other: Tensor) -> Tensor:
    """Composite one image over another, both with alpha.

    Parameters
    ----------
    image : Tensor
        The lower image: ``(..., 4, H, W)``, RGBA, uint8, uint16, or floating point in [0, 1]. Any device.
    other : Tensor
        The upper image, with the shape, dtype and device of ``image``.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``other`` has a different one.
    ValueError
        If the channels are not 4, or the shapes differ.

    Notes
    -----
    Reference: :func:`PIL.Image.alpha_composite`, bit-exact on uint8. uint16: the formula in
    double precision, rounded. Floats: the same formula in real numbers, within 1e-6; half precision is
    computed in float32 and rounded once. Alpha is not premultiplied. The gradient, for both images, is
    that of the formula. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> red = torch.tensor([1.0, 0.0, 0.0, 1.0]).reshape(4, 1, 1)
    >>> half_blue = torch.tensor([0.0, 0.0, 1.0, 0.5]).reshape(4, 1, 1)
    >>> imgops.alpha_composite(red, half_blue).flatten()
    tensor([0.5000, 0.0000, 0.5000, 1.0000])
    """
    check.tensors("alpha_composite", image=image, other=other)
    return _alpha_composite(image, other)


def add_weighted(
    image: Tensor,
    alpha: float | Tensor,
    other: Tensor,
    beta: float | Tensor,
    gamma: float | Tensor = 0.0,
) -> Tensor:
    """Add two images with weights, and a constant.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range. Any device.
    alpha : float or Tensor
        The weight of ``image``.
    other : Tensor
        The second image, with the shape, dtype and device of ``image``.
    beta : float or Tensor
        The weight of ``other``.
    gamma : float or Tensor
        The constant that is added to each value. Tensors of shape ``()`` or ``(...)`` (one per sample) can
        change between calls without a recompile, and can require a gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or a parameter is not made of numbers.
    ValueError
        If the shapes differ, or a parameter does not fit or is NaN.

    Notes
    -----
    Reference: ``cv2.addWeighted``, bit-exact on uint8, uint16 (both clamped) and float32, float64
    within 1e-12. Half precision is computed in float32 and rounded once. On an accelerator the result is
    within 1 level. The gradient, for both images and every weight, is that of the formula. Autocast does
    not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.add_weighted(torch.tensor([[[1.0, 2.0]]]), 0.5, torch.tensor([[[10.0, 20.0]]]), 0.1, 1.0)
    tensor([[[2.5000, 4.0000]]])
    """
    check.tensors("add_weighted", image=image, other=other)
    return _add_weighted(image, other, *check.reals("add_weighted", alpha=alpha, beta=beta, gamma=gamma))


def composite(image: Tensor, other: Tensor, mask: Tensor) -> Tensor:
    """Show one image where a mask is set, and another image elsewhere.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``: the image that is shown where the mask is 1 (255 for uint8). Any dtype, any
        device.
    other : Tensor
        The image that is shown where the mask is 0, with the shape, dtype and device of ``image``.
    mask : Tensor
        ``(..., 1, H, W)``: bool, uint8, or the floating dtype of the images; values in between blend.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``other``.

    Raises
    ------
    TypeError
        If the dtypes do not fit.
    ValueError
        If the shapes do not fit.

    Notes
    -----
    Reference: :func:`PIL.Image.composite`, bit-exact on uint8. This is :func:`paste` of the whole image, with
    the gradients of :func:`paste`, for both images and the mask.

    Examples
    --------
    >>> import torch, imgops
    >>> mask = torch.tensor([[[1.0, 0.5, 0.0]]])
    >>> imgops.composite(torch.full((1, 1, 3), 8.0), torch.zeros(1, 1, 3), mask)
    tensor([[[8., 4., 0.]]])
    """
    check.tensors("composite", image=image, other=other, mask=mask)
    if image.shape != other.shape:
        check.fail(ValueError, "composite", "image and other must have one shape", "two")
    # These are the checks of paste, which has other names for the images. Under autocast, paste casts floats.
    check.image("composite", "image", image)
    check.same_device("composite", "other", other, "image", image)
    if not (image.is_floating_point() and other.is_floating_point() and autocast.is_on(image)):
        check.same_dtype_and_device("composite", "other", other, "image", image)
    under, over, weights = broadcast(other, image, mask)
    check_mask("composite", under, weights, "image", over)  # type: ignore[arg-type]
    return paste(under, over, (0, 0), weights)


@operator(
    "imgops::blend",
    kernel=cpu.blend,
    cuda=cuda.Kernel("blending.blend"),
    fake=fake.blend,
    autograd=Gradient(autograd.blend_setup_context, autograd.blend_backward),
    vmap=vmap.leading(3, 3, 0),
    sharding=sharding.leading(3, 3, 0),
    decomposition=decomposition.blend,
)
def _blend(image: Tensor, other: Tensor, alpha: Tensor) -> Tensor: ...


def blend(image: Tensor, other: Tensor, alpha: float | Tensor) -> Tensor:
    """Blend two images linearly, as MixUp does.

    Parameters
    ----------
    image, other : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range, of one shape, dtype and device.
    alpha : float or Tensor
        The weight of ``other``: 0 gives ``image``, 1 gives ``other``. Any real number. A tensor of
        shape ``()`` or ``(...)`` (one per sample) can change between calls without a recompile, and can
        require a gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``alpha`` is not made of numbers.
    ValueError
        If a shape does not fit.

    Notes
    -----
    Reference: :func:`PIL.Image.blend`, bit-exact on uint8 (truncated, clamped to the range);
    uint16: the same formula in float32. Floats:
    ``image * (1 - alpha) + other * alpha``, within 1e-6; half precision is computed in float32 and
    rounded once. The gradient, for both images and ``alpha``, is that of the formula. Autocast does not
    change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.blend(torch.zeros(1, 1, 2), torch.tensor([[[1.0, 2.0]]]), 0.25)
    tensor([[[0.2500, 0.5000]]])
    """
    check.tensors("blend", image=image, other=other)
    return _blend(image, other, check.real("blend", "alpha", alpha))
