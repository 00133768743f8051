"""torchvision's functionals of color, blur, erasing and JPEG, with imgops' operators.

Names, arguments and defaults are torchvision's. Where torchvision takes a number, these functions also accept
a tensor of one number per sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling
from torch.fx.experimental.symbolic_shapes import has_static_value
from torchvision.transforms.v2 import functional as reference

import imgops
from imgops._common import check, layout
from imgops._common.torch_private import is_eager, raise_error
from imgops.batches.packed import PackedImages
from imgops.decomposition._precision import white_of
from imgops.transforms._core.arguments import check_held, integer, integers, is_integral, scalar


def adjust_brightness(image: Tensor, brightness_factor: float | Tensor) -> Tensor:
    """Multiply the values by a factor.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, uint8, uint16 or floating point in [0, 1].
    brightness_factor : float or Tensor
        Factor of at least 0; 0 gives black, 1 the same image; a tensor has one number, or one per sample.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    factor = scalar("adjust_brightness", "brightness_factor", brightness_factor, 0)
    return imgops.adjust_brightness(image, factor)


def adjust_contrast(image: Tensor, contrast_factor: float | Tensor) -> Tensor:
    """Blend the image with the mean of its gray, or, unless it has 3 channels, of all its values.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, uint8, uint16 or floating point in [0, 1].
    contrast_factor : float or Tensor
        Factor of at least 0; 0 gives the gray mean, 1 the same image; a tensor has one number, or one
        per sample.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    factor = scalar("adjust_contrast", "contrast_factor", contrast_factor, 0)
    return imgops.adjust_contrast(image, factor)


def adjust_saturation(image: Tensor, saturation_factor: float | Tensor) -> Tensor:
    """Blend the image with its gray.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)`` of 1 or 3 channels, uint8, uint16 or floating point in [0, 1].
    saturation_factor : float or Tensor
        Factor of at least 0; 0 gives gray, 1 the same image; a tensor has one number, or one per sample.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    factor = scalar("adjust_saturation", "saturation_factor", saturation_factor, 0)
    return imgops.adjust_saturation(image, factor)


def adjust_sharpness(image: Tensor, sharpness_factor: float | Tensor) -> Tensor:
    """Blend the image with a smoothed copy.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, uint8, uint16 or floating point in [0, 1].
    sharpness_factor : float or Tensor
        Factor of at least 0; 0 gives the smoothed image, 1 the same, 2 a sharper one; a tensor has one
        number, or one per sample.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    factor = scalar("adjust_sharpness", "sharpness_factor", sharpness_factor, 0)
    return imgops.adjust_sharpness(image, factor)


def adjust_hue(image: Tensor, hue_factor: float | Tensor) -> Tensor:
    """Shift the hue.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)`` of 1 or 3 channels, uint8, uint16 or floating point in [0, 1].
    hue_factor : float or Tensor
        Shift in turns of the color circle, in [-0.5, 0.5]; a tensor has one number, or one per sample.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    return imgops.adjust_hue(image, scalar("adjust_hue", "hue_factor", hue_factor, -0.5, 0.5))


def adjust_gamma(image: Tensor, gamma: float | Tensor, gain: float | Tensor = 1) -> Tensor:
    """Raise the values to a power, and multiply them by a factor.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, uint8, uint16 or floating point in [0, 1].
    gamma : float or Tensor
        Exponent of at least 0; a tensor has one number, or one per sample.
    gain : float or Tensor
        Factor; a tensor has one number, or one per sample.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    return imgops.adjust_gamma(image, scalar("adjust_gamma", "gamma", gamma, 0), gain)


def rgb_to_grayscale(image: Tensor, num_output_channels: int = 1) -> Tensor:
    """Convert an image to gray.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)`` of 1 or 3 channels, uint8, uint16 or floating point in [0, 1].
    num_output_channels : int
        Number of channels of the output, 1 or 3, all equal.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Gray image ``(..., num_output_channels, H, W)``.
    """
    count = integer("rgb_to_grayscale", "num_output_channels", num_output_channels)
    must = "rgb_to_grayscale: num_output_channels must be 1 or 3"
    if not has_static_value(count):
        raise_error(TypeError, f"{must}, which a graph knows, got a Tensor")
    if count not in (1, 3):
        raise_error(ValueError, f"{must}, got {check.number(count)}")
    check.GRAY.check("rgb_to_grayscale", channels_of(image))
    return imgops.grayscale(image, count)


def channels_of(image: Any) -> int:
    """Return the number of channels of a tensor, or of images of different sizes."""
    return image.shape[-3] if isinstance(image, Tensor) else image.num_channels


def grayscale_to_rgb(image: Tensor) -> Tensor:
    """Convert a gray image to three equal channels; do not change other images.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, uint8, uint16 or floating point in [0, 1].

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of at least 3 channels.
    """
    if image.shape[-3] >= 3:
        return image
    check.channels("grayscale_to_rgb", image, (1,), " or at least 3")
    return imgops.grayscale(image, 3)


def permute_channels(image: Tensor, permutation: Sequence[int] | Tensor) -> Tensor:
    """Reorder the channels.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, of any dtype.
    permutation : sequence of int or Tensor
        Index of the channel that each channel of the output takes.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    op, channels = "permute_channels", image.shape[-3]
    if isinstance(permutation, (list, tuple)) and any(isinstance(p, Tensor) for p in permutation):
        permutation = torch.stack([torch.as_tensor(p, dtype=torch.int64, device="cpu") for p in permutation])
    if len(permutation) != channels or (isinstance(permutation, Tensor) and not is_integral(permutation)):
        must = f"{op}: permutation must have {check.number(channels)} integers, one for each channel"
        got = (
            f"{len(permutation)} of {permutation.dtype}"
            if isinstance(permutation, Tensor)
            else len(permutation)
        )
        raise_error(ValueError, f"{must}, got {got}")
    if isinstance(permutation, Tensor):
        order = torch.where(permutation < 0, permutation + channels, permutation)
    else:
        places = [integer(op, "permutation", place) for place in permutation]
        for place in places:
            if check.violates(-channels <= place) or check.violates(place < channels):
                must = f"permutation must be from {check.number(-channels)} to {check.number(channels - 1)}"
                raise_error(IndexError, f"{op}: {must}, got {check.number(place)}")
        order = check.integers_tensor(op, "permutation", [p + channels if p < 0 else p for p in places])
    return image.index_select(-3, order.to(image.device, torch.int64, non_blocking=True))


def invert(image: Tensor) -> Tensor:
    """Subtract each value from white.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, uint8, uint16 or floating point in [0, 1].

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    return imgops.invert(image)


def posterize(image: Tensor, bits: int | Tensor) -> Tensor:
    """Keep the highest bits of each value.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, uint8, uint16 or floating point in [0, 1].
    bits : int or Tensor
        Number of bits, in [0, 8], for uint16 in [0, 16]; a tensor has one number, or one per sample.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    if not isinstance(bits, Tensor) and not is_bits(bits, image):
        must = f"posterize: bits must be an integer in [0, {most_bits(image)}]"
        raise_error(TypeError, f"{must}, got {check.shown(bits)}")
    return imgops.posterize(image, bits)


def most_bits(image: Tensor | PackedImages) -> int:
    return 16 if image.dtype == torch.uint16 else 8


def is_bits(bits: object, image: Tensor | PackedImages) -> bool:
    return isinstance(bits, (int, torch.SymInt)) and bool(0 <= bits <= most_bits(image))


def solarize(image: Tensor, threshold: float | Tensor) -> Tensor:
    """Invert the values at and above a threshold.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, uint8, uint16 or floating point in [0, 1].
    threshold : float or Tensor
        Threshold, at most white (255, 65535 or 1.0); a tensor has one number, or one per sample.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    scalar("solarize", "threshold", threshold)
    require_threshold(image, threshold)
    return imgops.solarize(image, threshold)


def require_threshold(image: Tensor | PackedImages, threshold: float | Tensor) -> None:
    most = white_of(image)
    if not isinstance(threshold, Tensor) and threshold > most:
        must = f"solarize: threshold must be at most {most} for {image.dtype}"
        raise_error(TypeError, f"{must}, got {threshold}")


def autocontrast(image: Tensor) -> Tensor:
    """Stretch each channel to the whole range of values.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, uint8, uint16 or floating point in [0, 1].

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    return imgops.autocontrast(image)


def equalize(image: Tensor) -> Tensor:
    """Equalize the histogram of each channel.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, uint8, uint16 or floating point in [0, 1].

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    return imgops.equalize(image)


def gaussian_blur(image: Tensor, kernel_size: Sequence[int] | int, sigma: Any = None) -> Tensor:
    """Blur an image with a Gaussian kernel and reflected borders.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, uint8, uint16 or floating point in [0, 1].
    kernel_size : int or sequence of int
        Odd width and height of the kernel; one number is both.
    sigma : float, sequence of float or Tensor, optional
        Standard deviations along x and y, above 0; by default 0.3 ((size - 1) / 2 - 1) + 0.8. A tensor has
        one number, a pair ``(2,)`` for x and y, or one pair per sample ``(..., 2)``; in a sequence of two, a
        tensor has one number, or one per sample.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    sizes = (integers("gaussian_blur", "kernel_size", kernel_size, (1, 2)) * 2)[:2]
    if isinstance(sigma, (list, tuple)) and len(sigma) == 1:
        sigma = sigma[0]
    for value in sigma if isinstance(sigma, (list, tuple)) else [sigma]:
        number = 1.0 if value is None else scalar("gaussian_blur", "sigma", value)
        if not isinstance(number, Tensor) and number <= 0:
            raise_error(ValueError, f"gaussian_blur: sigma must be above 0, got {float(number)}")
    if sigma is None:  # OpenCV has separate tables for small kernels
        sigma = [0.15 * size + 0.35 for size in sizes]
    elif isinstance(sigma, (list, tuple)) and any(isinstance(value, Tensor) for value in sigma):
        each = [check.real("gaussian_blur", "sigma", value).to(torch.float64) for value in sigma]
        sigma = torch.stack(torch.broadcast_tensors(*each), -1)
    return imgops.gaussian_blur(image, sizes, sigma)


def erase(image: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Tensor:
    """Replace a rectangle with values.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, of any dtype.
    i, j : int
        Row and column of the upper left corner, from 0 on.
    h, w : int
        Height and width of the rectangle; the part outside the image is ignored.
    v : Tensor
        Values that broadcast to ``(..., C, h, w)``.
    inplace : bool
        Whether to overwrite the input.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    if not check.all_int((i, j, h, w)):
        i, j, h, w = (integer("erase", name, value) for name, value in zip("ijhw", (i, j, h, w), strict=True))
    for name, value in (("i", i), ("j", j), ("h", h), ("w", w)):
        if check.violates(value >= 0):
            raise_error(ValueError, f"erase: {name} must be from 0 on, got {check.number(value)}")
    if not isinstance(v, Tensor):
        check_held("erase", "v", v, image.dtype)
        v = check.real("erase", "v", v).to(image.device)
    size = (*image.shape[:-2], h, w)
    if not check.broadcasts(v.shape, size):
        must = f"erase: v must have a shape that broadcasts to {check.written(size)}"
        raise_error(ValueError, f"{must}, got {check.written(v.shape)}")
    source = v.to(image.dtype).expand(size)
    return imgops.paste_(image, source, (j, i)) if inplace else imgops.paste(image, source, (j, i))


def jpeg(image: Tensor, quality: int | Tensor) -> Tensor:
    """Encode an image as JPEG, and decode it.

    Parameters
    ----------
    image : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)`` of 1 or 3 channels, uint8.
    quality : int or Tensor
        Quality of the encoder, in [1, 100]; a tensor has one number, or one per sample.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    if not isinstance(quality, Tensor):
        scalar("jpeg", "quality", integer("jpeg", "quality", quality), 1, 100)
    return imgops.jpeg(image, quality)


def normalize(image: Tensor, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> Tensor:
    """Subtract a mean from each channel, and divide it by a standard deviation, in torchvision's arithmetic.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, floating point.
    mean : sequence of float
        Mean of each channel.
    std : sequence of float
        Standard deviation of each channel, not 0.
    inplace : bool
        Whether to overwrite the input.

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Image of the same shape and dtype.
    """
    numbers: list[Any] = [mean, std]
    for name, values in zip(("mean", "std"), numbers, strict=True):
        channels = image.shape[-3] if image.ndim > 2 else 1
        if isinstance(values, (tuple, list)) and len(values) != 1 and channels not in (1, len(values)):
            must = f"normalize: {name} must have 1 number or {check.number(channels)}, one for each channel"
            raise_error(ValueError, f"{must}, got {len(values)}")
    if is_compiling():  # torchvision's conversion to tensors would turn the numbers into constants
        each = std if isinstance(std, (tuple, list)) else [std]
        if any(not isinstance(value, Tensor) and value == 0 for value in each):
            raise_error(ValueError, "normalize: std must not be 0, got 0")
        numbers = [check.real("normalize", "mean and std", values) for values in numbers]
    return reference.normalize_image(image, *numbers, inplace)


def to_dtype(image: Tensor, dtype: torch.dtype = torch.float32, scale: bool = False) -> Tensor:
    """Convert the input to a dtype, and with ``scale`` also scale its values to the range of the dtype.

    0 stays 0, the greatest value becomes the greatest value, and no value wraps around. If torchvision's
    kernel has these properties, the result is bit-exact with torchvision's. From uint8 to uint16 it has not:
    255 becomes 65280 in torchvision, and 65535 here.

    Parameters
    ----------
    inpt : Tensor, tv_tensor or PIL image
        Image or batch ``(..., C, H, W)``, or any other tensor.
    dtype : torch.dtype
        Dtype of the output.
    scale : bool
        Whether the values of images and videos are scaled to the range of the new dtype, as from [0, 255] to
        [0, 1].

    Returns
    -------
    Tensor, tv_tensor or PIL image
        Input of the new dtype.
    """
    before = image.dtype
    if before == dtype or not scale or (before.is_floating_point and dtype.is_floating_point):
        return image.to(dtype)
    if (before, dtype) in _UNSAFE:
        return reference.to_dtype_image(image, dtype, scale=True)  # torchvision raises its own error
    if dtype == torch.bool:
        return image != 0
    if dtype.is_floating_point:
        if (before, dtype) == (torch.uint8, torch.float32) and _is_shared(image):
            return imgops.lut(image, LEVELS_AS_FLOATS)
        white = _greatest(before)
        if white <= torch.finfo(dtype).max:
            return image.to(dtype).mul_(1.0 / white)
        return image.to(torch.float32).mul_(1.0 / white).to(dtype)
    return _to_levels(image, dtype) if before.is_floating_point else _to_integers(image, dtype)


#: torchvision refuses to scale floats to integers with many more bits.
_UNSAFE = (
    (torch.float32, torch.int32),
    (torch.float32, torch.int64),
    (torch.float64, torch.int64),
)


def _greatest(dtype: torch.dtype) -> int:
    return 1 if dtype == torch.bool else torch.iinfo(dtype).max


def _is_shared(image: Tensor) -> bool:
    """Return whether ATen would take new memory for an image and divide the work among threads, which wait.

    A lookup table gives the same bits, in memory that is used again.
    """
    is_plain = is_eager() and type(image) is Tensor and image.is_cpu  # first: a graph must not ask for a size
    return is_plain and image.numel() >= 1 << 18 and image.ndim > 2 and layout.is_dense(image)


with torch.inference_mode(False):
    #: The result of ``to_dtype`` for each level, ``(256,)``.
    LEVELS_AS_FLOATS = torch.arange(256, dtype=torch.float32, device="cpu").mul_(1.0 / 255)


def _to_levels(image: Tensor, dtype: torch.dtype) -> Tensor:
    """Scale floats to integers with torchvision's truncated product, but without an overflow."""
    bounds = torch.iinfo(dtype)
    if image.dtype == torch.float16 and bounds.bits > 16:
        image = image.to(torch.float64)
    product = image.mul(bounds.max + 1.0 - 1e-3)
    if bounds.bits > 16:
        product = product.to(torch.float64)
    elif product.dtype != torch.float64:
        product = product.to(torch.float32)  # 16-bit floats cannot represent every greatest value
    out = product.clamp_(bounds.min, bounds.max).to(dtype)
    return out if bounds.bits < 64 else torch.where(product >= bounds.max, bounds.max, out)


def _to_integers(image: Tensor, dtype: torch.dtype) -> Tensor:
    """Shift the bits as torchvision does; the bits below repeat those above, so that white stays white."""
    if image.dtype == torch.bool:
        return image.to(dtype) * _greatest(dtype)
    old, new = (_greatest(t).bit_length() for t in (image.dtype, dtype))
    if old >= new:
        wide = image.to(_SHIFTED.get(image.dtype, image.dtype))
        return wide.bitwise_right_shift(old - new).to(dtype)
    wide = image.to(_SHIFTED.get(dtype, dtype))
    seen, out = wide.clamp(min=0) if image.dtype.is_signed else wide, wide.bitwise_left_shift(new - old)
    for shift in range(new - 2 * old, -old, -old):
        out |= seen << shift if shift >= 0 else seen >> -shift
    return out.to(dtype)


#: PyTorch shifts the bits of these dtypes in wider dtypes.
_SHIFTED = {torch.uint16: torch.int32, torch.uint32: torch.int64}


#: The functionals that only copy pixels and therefore accept any dtype.
OF_ANY_DTYPE = ("permute_channels", "erase")
