"""Color operators: brightness, contrast, saturation, hue, grayscale and color matrices."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from imgops._common import check, values
from imgops._operator.declare import operator
from imgops._operator.record import Gradient
from imgops.autograd import color as autograd
from imgops.autograd._sums import save_inputs
from imgops.decomposition import color as decomposition
from imgops.fake import color as fake
from imgops.kernels import cuda
from imgops.kernels.backward import color as backward
from imgops.kernels.cpu import color as cpu
from imgops.rules import packed, sharding, vmap

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_hue",
    "adjust_saturation",
    "color_matrix",
    "color_sequence",
    "grayscale",
]


@operator(
    "imgops::adjust_brightness",
    kernel=cpu.adjust_brightness,
    cuda=cuda.Kernel("color.adjust_brightness", takes_packed=True),
    fake=fake.adjust_brightness,
    autograd=Gradient(save_inputs, autograd.adjust_brightness_backward),
    vmap=vmap.leading(3, 0),
    sharding=sharding.leading(3, 0),
    decomposition=decomposition.adjust_brightness,
    packed=packed.keeps_size,
)
def _adjust_brightness(image: Tensor, factor: Tensor) -> Tensor: ...


@operator(
    "imgops::adjust_contrast",
    kernel=cpu.adjust_contrast,
    cuda=cuda.Kernel("color.adjust_contrast", takes_packed=True),
    fake=fake.adjust_contrast,
    vmap=vmap.leading(3, 0),
    sharding=sharding.leading(3, 0),
    decomposition=decomposition.adjust_contrast,
    backward=backward.adjust_contrast,
    packed=packed.keeps_size,
)
def _adjust_contrast(image: Tensor, factor: Tensor) -> Tensor: ...


@operator(
    "imgops::adjust_saturation",
    kernel=cpu.adjust_saturation,
    cuda=cuda.Kernel("color.adjust_saturation", takes_packed=True),
    fake=fake.adjust_saturation,
    vmap=vmap.leading(3, 0),
    sharding=sharding.leading(3, 0),
    decomposition=decomposition.adjust_saturation,
    backward=backward.adjust_saturation,
    packed=packed.keeps_size,
)
def _adjust_saturation(image: Tensor, factor: Tensor) -> Tensor: ...


@operator(
    "imgops::adjust_hue",
    kernel=cpu.adjust_hue,
    cuda=cuda.Kernel("color.adjust_hue", takes_packed=True),
    fake=fake.adjust_hue,
    vmap=vmap.leading(3, 0),
    sharding=sharding.leading(3, 0),
    decomposition=decomposition.adjust_hue,
    backward=backward.adjust_hue,
    packed=packed.keeps_size,
)
def _adjust_hue(image: Tensor, factor: Tensor) -> Tensor: ...


@operator(
    "imgops::grayscale",
    kernel=cpu.grayscale,
    cuda=cuda.Kernel("color.grayscale", takes_packed=True),
    fake=fake.grayscale,
    autograd=Gradient(autograd.grayscale_setup_context, autograd.grayscale_backward),
    vmap=vmap.leading(3),
    sharding=sharding.leading(3),
    decomposition=decomposition.grayscale,
    packed=packed.Packed(channels=lambda channels, count: count),
)
def _grayscale(image: Tensor, num_output_channels: int) -> Tensor: ...


@operator(
    "imgops::color_matrix",
    kernel=cpu.color_matrix,
    cuda=cuda.Kernel("color.color_matrix", takes_packed=True),
    fake=fake.color_matrix,
    autograd=Gradient(autograd.color_matrix_setup_context, autograd.color_matrix_backward),
    vmap=vmap.leading(3, 2),
    sharding=sharding.leading(3, 2),
    decomposition=decomposition.color_matrix,
    packed=packed.Packed(channels=lambda channels, matrix: matrix.shape[-2]),
)
def _color_matrix(image: Tensor, matrix: Tensor) -> Tensor: ...


@operator(
    "imgops::color_sequence",
    kernel=cpu.color_sequence,
    cuda=cuda.Kernel("color.color_sequence", takes_packed=True),
    fake=fake.color_sequence,
    vmap=vmap.leading(3, 1, 1),
    sharding=sharding.leading(3, 1, 1),
    decomposition=decomposition.color_sequence,
    backward=backward.color_sequence,
    values={"parameters": values.finite},
    packed=packed.keeps_size,
)
def _color_sequence(image: Tensor, order: Tensor, parameters: Tensor, names: str) -> Tensor: ...


def adjust_brightness(image: Tensor, factor: float | Tensor) -> Tensor:
    """Adjust the brightness of an image.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.
    factor : float or Tensor
        0 gives black, 1 the image itself, 2 an image twice as bright. Any real number. A tensor of shape
        ``()`` or ``(...)`` (one per sample) can change between calls without a recompile, and can require a
        gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``factor`` is not made of numbers.
    ValueError
        If ``factor`` is not one value or one per sample.

    Notes
    -----
    Reference: :class:`PIL.ImageEnhance.Brightness`, bit-exact on uint8 (results are truncated). uint16:
    torchvision's ``adjust_brightness``, which is the same formula in float32 up to 65535, bit-exact.
    Floats: the same formula in real numbers, clamped to [0, 1], within 1e-5; half precision is computed in
    float32 and rounded once. The gradient, for ``image`` and ``factor``, is that of the formula and is
    exact to second order; it is 0 where a value is clamped. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.adjust_brightness(torch.tensor([[[10, 100, 200]]], dtype=torch.uint8), 1.5)
    tensor([[[ 15, 150, 255]]], dtype=torch.uint8)
    """
    check.tensor_or_batch("adjust_brightness", image)
    return _adjust_brightness(image, check.real("adjust_brightness", "factor", factor))


def adjust_contrast(image: Tensor, factor: float | Tensor) -> Tensor:
    """Adjust the contrast of an image.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device. An image of 3 channels is
        RGB.
    factor : float or Tensor
        0 gives uniform gray, 1 the image itself, 2 twice the contrast. Any real number. A tensor of shape
        ``()`` or ``(...)`` (one per sample) can change between calls without a recompile, and can require a
        gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``factor`` is not made of numbers.
    ValueError
        If ``factor`` is not one value or one per sample.

    Notes
    -----
    Reference: :class:`PIL.ImageEnhance.Contrast`, bit-exact on uint8: the mean of mode L is rounded to a
    level. For another number of channels than 3 the gray is the mean of all values, of all channels, as in
    kornia; on uint8 it is rounded, too, which is PIL's contrast of one gray image that has these values.
    uint16: torchvision's formula in float32, truncated, with OpenCV's gray and its mean in double precision.
    Floats: the same formula in real numbers, clamped to [0, 1], within 1e-5; half precision is computed in
    float32 and rounded once. The gradient, for ``image`` and ``factor``, is derived from the
    formula and is exact to second order; it is 0 where a value is clamped. Autocast does not change the
    dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.adjust_contrast(torch.tensor([[[0.25, 0.75]]]), 0.5)
    tensor([[[0.3750, 0.6250]]])
    """
    check.tensor_or_batch("adjust_contrast", image)
    return _adjust_contrast(image, check.real("adjust_contrast", "factor", factor))


def adjust_saturation(image: Tensor, factor: float | Tensor) -> Tensor:
    """Adjust the color saturation of an image.

    Parameters
    ----------
    image : Tensor
        ``(..., 1 or 3, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.
    factor : float or Tensor
        0 gives gray, 1 the image itself, 2 an image twice as colorful. Any real number. A tensor of shape
        ``()`` or ``(...)`` (one per sample) can change between calls without a recompile, and can require a
        gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``factor`` is not made of numbers.
    ValueError
        If ``factor`` is not one value or one per sample, or ``image`` has neither 1 nor 3 channels,
        because only RGB colors have a saturation.

    Notes
    -----
    Reference: :class:`PIL.ImageEnhance.Color`, bit-exact on uint8. uint16: torchvision's formula in
    float32, truncated, with OpenCV's gray, as in :func:`grayscale`. An image of 1 channel is returned
    unchanged. Floats: the same formula in real numbers, clamped to [0, 1], within 1e-5; half precision is
    computed in float32 and rounded once. The gradient, for ``image`` and ``factor``, is derived from the
    formula and is exact to second order; it is 0 where a value is clamped. Autocast does not change the
    dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> pixel = torch.tensor([200, 100, 50], dtype=torch.uint8).reshape(3, 1, 1)
    >>> imgops.adjust_saturation(pixel, 0.5).flatten()
    tensor([162, 112,  87], dtype=torch.uint8)
    """
    check.tensor_or_batch("adjust_saturation", image)
    return _adjust_saturation(image, check.real("adjust_saturation", "factor", factor))


def adjust_hue(image: Tensor, factor: float | Tensor) -> Tensor:
    """Adjust the hue of an image.

    Parameters
    ----------
    image : Tensor
        ``(..., 1 or 3, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.
    factor : float or Tensor
        The shift, as a fraction of the color circle: 1/3 turns red into green, and so does -2/3. Any real
        number. A tensor of shape ``()`` or ``(...)`` (one per sample) can change between calls without a
        recompile, and can require a gradient.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``factor`` is not made of numbers.
    ValueError
        If ``factor`` is not one value or one per sample, or ``image`` has neither 1 nor 3 channels,
        because only RGB colors have a hue.

    Notes
    -----
    Reference: torchvision's ``adjust_hue``. On uint8 it is that of a PIL image, bit-exact: the image is
    converted to PIL's mode HSV and back, and the whole part of ``255 * factor`` is added to hues of 8 bits.
    The conversions alone round colors by some levels, with a factor of 0 too. On floats it is that of a
    tensor: the same in real numbers, clamped to [0, 1], within 1e-5; 0 changes nothing. On uint16 it
    is that of floats in double precision, from and to levels by ``ToDtype(scale=True)``. Half precision is
    computed in float32 and rounded once. An image of 1 channel is returned unchanged. The gradient, for
    ``image`` and ``factor``, is derived from the formula and is exact to second order; it is 0 where a value
    is clamped. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> red = torch.tensor([1.0, 0.0, 0.0]).reshape(3, 1, 1)
    >>> imgops.adjust_hue(red, 1 / 3).flatten()
    tensor([0., 1., 0.])
    """
    check.tensor_or_batch("adjust_hue", image)
    return _adjust_hue(image, check.real("adjust_hue", "factor", factor))


def grayscale(image: Tensor, num_output_channels: int = 1) -> Tensor:
    """Convert an image to grayscale.

    Parameters
    ----------
    image : Tensor
        ``(..., 1 or 3, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.
    num_output_channels : {1, 3}
        The number of output channels, all equal.

    Returns
    -------
    Tensor
        ``(..., num_output_channels, H, W)`` in the dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point.
    ValueError
        If the result has neither 1 nor 3 channels, or ``image`` has other channels, because gray is a sum of
        red, green and blue.

    Notes
    -----
    Reference: ``Image.convert("L")``, bit-exact on uint8. uint16: ``cv2.cvtColor``, bit-exact,
    which keeps white; torchvision's weights are 0.0001 smaller, and its white becomes 65528. Floats: 0.299 R
    + 0.587 G + 0.114 B, within 1e-6. The operator is linear; its gradient is that of the formula.
    Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> imgops.grayscale(torch.tensor([200, 100, 50], dtype=torch.uint8).reshape(3, 1, 1))
    tensor([[[124]]], dtype=torch.uint8)
    """
    check.tensor_or_batch("grayscale", image)
    return _grayscale(
        image, check.integer("grayscale", "num_output_channels must be 1 or 3", num_output_channels)
    )


def color_matrix(image: Tensor, matrix: Tensor) -> Tensor:
    """Multiply the channels of every pixel by a matrix.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point of any range. Any device.
    matrix : Tensor
        ``(D, C)``, or ``(D, C + 1)`` whose last column is added; ``(..., D, C)`` for one per sample. On the
        CPU. The matrix can change between calls without a recompile, and can require a gradient.

    Returns
    -------
    Tensor
        ``(..., D, H, W)`` in the dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, or ``matrix`` is not made of numbers.
    ValueError
        If ``matrix`` has neither C nor C + 1 columns, or is neither one matrix nor one per sample.

    Notes
    -----
    Reference: ``cv2.transform``: within 1 level on uint8 and uint16 (rounded half to even,
    clamped to the range) and 1e-5 on floats. float64 is computed in double precision; half precision in
    float32 and rounded once. The gradient is derived from the product. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> swap = torch.tensor([[0.0, 0, 1], [0, 1, 0], [1, 0, 0]])
    >>> imgops.color_matrix(torch.tensor([1.0, 2.0, 3.0]).reshape(3, 1, 1), swap).flatten()
    tensor([3., 2., 1.])
    """
    check.tensor_or_batch("color_matrix", image)
    check.tensor("color_matrix", "matrix", matrix)
    return _color_matrix(image, matrix)


def color_sequence(image: Tensor, order: Tensor, parameters: Tensor, names: Sequence[str]) -> Tensor:
    """Apply several color operators in an order given by a tensor, as ColorJitter does.

    Parameters
    ----------
    image : Tensor
        ``(..., C, H, W)``, uint8, uint16, or floating point in [0, 1]. Any device.
    order : Tensor
        int64, ``(K,)`` or ``(..., K)`` (one order per sample), on the CPU: which step comes first, second and
        so on, as an index into ``names``. -1, and any other value that is not an index, skips the step.
    parameters : Tensor
        ``(n,)`` or ``(..., n)``, on the CPU: the parameter of each of the n steps. The tensor can require a
        gradient.
    names : sequence of str
        The steps: "brightness", "contrast", "saturation", "hue", "sharpness",
        "posterize", "solarize", "invert", "autocontrast", "equalize". The last three ignore their parameter.

    Returns
    -------
    Tensor
        The shape, dtype and memory format of ``image``.

    Raises
    ------
    TypeError
        If the dtype is none of uint8, uint16 and floating point, ``order`` is not int64, ``parameters`` is
        not made of numbers, or ``names`` is one str.
    ValueError
        If a name is unknown, a shape does not fit, a parameter is not finite, or a step is "saturation" or
        "hue" and ``image`` has neither 1 nor 3 channels.

    Notes
    -----
    Reference: the operators with these names (:func:`adjust_brightness` and so on), one after the
    other, bit-exact on uint8 and uint16. Changing the order never recompiles, and a step that is not chosen
    is not computed. The gradient is that of the operators in this order. Autocast does not change the dtype.

    Examples
    --------
    >>> import torch, imgops
    >>> image = torch.full((1, 1, 1), 0.5)
    >>> parameters = torch.tensor([0.5, 0.0])
    >>> imgops.color_sequence(image, torch.tensor([0, 1]), parameters, ["brightness", "invert"])
    tensor([[[0.7500]]])
    >>> imgops.color_sequence(image, torch.tensor([1, -1]), parameters, ["brightness", "invert"])
    tensor([[[0.5000]]])
    """
    check.tensor_or_batch("color_sequence", image)
    check.tensors("color_sequence", order=order, parameters=parameters)
    if not check.is_sequence(names) or not all(isinstance(name, str) for name in names):
        check.fail(TypeError, "color_sequence", "names must be a sequence of str", type(names).__name__)
    return _color_sequence(image, order, parameters, ",".join(names))
