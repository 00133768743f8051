"""Mixing images: erase and blend."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from imgops import _check, sharding, vmap
from imgops._registry import operator
from imgops.decomposition import mix as decomposition
from imgops.decomposition._saturate import saturated
from imgops.fake import mix as fake
from imgops.kernels import cuda
from imgops.kernels.cpu import mix as cpu
from imgops.ops.movement import values_tensor

__all__ = ["blend", "erase"]


@operator(
    "imgops::erase",
    kernel=cpu.erase,
    cuda=cuda.kernel("mix.erase"),
    fake=fake.erase,
    vmap=vmap.leading(3, 3, 1),
    sharding=sharding.leading(3, 3, 1),
    decomposition=decomposition.erase,
)
def _erase(image: Tensor, value: Tensor, boxes: Tensor) -> Tensor: ...


@operator(
    "imgops::blend",
    kernel=cpu.blend,
    cuda=cuda.kernel("mix.blend"),
    fake=fake.blend,
    vmap=vmap.leading(3, 3, 0),
    sharding=sharding.leading(3, 3, 0),
    decomposition=decomposition.blend,
)
def _blend(image: Tensor, other: Tensor, weight: Tensor) -> Tensor: ...


def erase(
    image: Tensor, boxes: Sequence[int] | Tensor, value: float | Sequence[float] | Tensor = 0
) -> Tensor:
    """Overwrite a box with a color or with other pixels: one box for a batch, or one per sample.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, any dtype, any device.
    boxes : sequence of 4 int, or Tensor
        ``(left, top, right, bottom)`` in pixels, ``right`` and ``bottom`` exclusive; what lies outside the
        image is clipped, and an empty box changes nothing. An int64 tensor of shape ``(4,)`` or
        ``(..., 4)`` (one per sample) can change between calls without a recompile.
    value : number, sequence of numbers or Tensor
        One number, one per channel, or the pixels of a whole image ``(..., C, H, W)``, of which the box is
        taken. A tensor has the dtype and device of ``image``, and can require a gradient; numbers are rounded
        and clamped to the range of an integer image, as :func:`pad` does it.

    Returns
    -------
    Tensor
        The shape and memory format of ``image``, a copy.

    Raises
    ------
    TypeError
        If ``boxes`` is not made of integers, or ``value`` has another dtype.
    ValueError
        If a shape does not fit.

    Notes
    -----
    Reference: ``Image.paste`` of a color or of the other image's box; bit-exact for every dtype.
    The gradient goes to ``image`` outside of the box and to ``value`` inside, exact. Under autocast the
    dtype stays.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.erase(torch.ones(1, 2, 3), (1, 0, 3, 1), 5)
    tensor([[[1., 5., 5.],
             [1., 1., 1.]]])
    """
    _check.tensor("erase", "image", image)
    _check.image("erase", "image", image)
    if not isinstance(boxes, Tensor):
        box = _check.integers("erase", "boxes", boxes, ("left", "top", "right", "bottom"))
        boxes = _check.integers_tensor("erase", "boxes", box)
    if not isinstance(value, Tensor):
        values = values_tensor("erase", "value", value, image.dtype)
        value = saturated(values, image.dtype).to(image.device, non_blocking=True)
    if value.ndim <= 1:
        channels = image.shape[-3]
        if value.ndim == 1 and value.shape[0] != channels:
            must = f"value must have one number, or one for each of {_check.number(channels)} channels"
            _check.fail(ValueError, "erase", must, _check.number(value.shape[0]))
        value = value.reshape(-1, 1, 1).expand(*image.shape[:-2], 1, 1)
    elif value.ndim >= 3 and value.shape[:-3] != image.shape[:-3]:
        if not _check.broadcasts(value.shape[:-3], image.shape[:-3]):
            must = f"value must have leading dimensions that broadcast to {_check.shape(image)[:-3]}"
            _check.fail(ValueError, "erase", must, _check.shape(value)[:-3])
        value = value.expand(*image.shape[:-3], *value.shape[-3:])
    return _erase(image, value, boxes)


def blend(image: Tensor, other: Tensor, weight: float | Tensor) -> Tensor:
    """Blend two images: what MixUp runs.

    Parameters
    ----------
    image, other : Tensor
        ``(..., C, H, W)``, uint8 or floating point of any range, of one shape, dtype and device.
    weight : float or Tensor
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
        If the dtype is neither uint8 nor floating point, or ``weight`` is not made of numbers.
    ValueError
        If a shape does not fit.

    Notes
    -----
    Reference: :func:`PIL.Image.blend`, bit-exact on uint8 (truncated, clamped to the range). Floats:
    ``image * (1 - weight) + other * weight``, within 1e-6; half precision is computed in float32 and
    rounded once. The gradient, for all three, is derived from the formula. Under autocast the dtype
    stays.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.blend(torch.zeros(1, 1, 2), torch.tensor([[[1.0, 2.0]]]), 0.25)
    tensor([[[0.2500, 0.5000]]])
    """
    _check.tensor("blend", "image", image)
    _check.tensor("blend", "other", other)
    return _blend(image, other, _check.real("blend", "weight", weight))


#: What each shows of a photograph (C, H, W), uint8.
PICTURES: dict[str, Callable[[Tensor], Tensor]] = {
    "blend": lambda x: blend(x, x.flip(-2), 0.5),
    "erase": lambda x: erase(
        x, (x.shape[-1] // 3, x.shape[-2] // 3, x.shape[-1] * 2 // 3, x.shape[-2] * 2 // 3), 0
    ),
}
