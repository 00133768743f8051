"""Models whose backend on arrays resamples by other means than PIL."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from imgops.integrations.transformers import _pixels as pixels


@lru_cache(maxsize=32)
def _smooth_and_zoom(size: int, new: int, device: torch.device) -> Tensor:
    """Return scipy.ndimage's Gaussian filter and linear zoom along an axis, as a matrix ``(new, size)``.

    Both mirror at the borders without repeating the outermost pixel.
    """

    def mirrored(index: Tensor) -> Tensor:
        period = max(2 * size - 2, 1)
        index = index % period
        return torch.minimum(index, period - index)

    weights = torch.eye(size, dtype=torch.float64, device="cpu")
    sigma = max(0.0, (size / new - 1) / 2)
    if sigma > 1e-15:
        reach = math.floor(4 * sigma + 0.5)
        taps = torch.exp(
            -0.5 / sigma**2 * torch.arange(-reach, reach + 1, dtype=torch.float64, device="cpu") ** 2
        )
        rows = torch.arange(size, dtype=torch.int64, device="cpu")[:, None].expand(-1, len(taps))
        at = mirrored(rows + torch.arange(-reach, reach + 1, dtype=torch.int64, device="cpu"))
        share = (taps / taps.sum()).expand(size, -1)
        weights = torch.zeros(size, size, dtype=torch.float64, device="cpu").index_put(
            (rows, at), share, accumulate=True
        )
    position = (torch.arange(new, dtype=torch.float64, device="cpu") + 0.5) * (size / new) - 0.5
    left = position.floor()
    far = (position - left)[:, None]
    first, second = (mirrored(left.long() + i) for i in (0, 1))
    return ((1 - far) * weights[first] + far * weights[second]).to(device)


def _resize_as_scipy(
    self: Any,
    image: Tensor,
    size: Any,
    anti_aliasing: bool = True,
    anti_aliasing_sigma: Any = None,
    **kwargs: Any,
) -> Tensor:
    if not anti_aliasing or anti_aliasing_sigma is not None:
        return super(type(self), self).resize(image, size, anti_aliasing, anti_aliasing_sigma, **kwargs)
    height, width = image.shape[-2:]
    down = _smooth_and_zoom(height, int(size.height), image.device)
    across = _smooth_and_zoom(width, int(size.width), image.device)
    out = (down @ image.double()) @ across.T
    low, high = (f(image.flatten(-3), -1)[..., None, None, None] for f in (torch.amin, torch.amax))
    return out.clamp(low, high).to(image.dtype)


def _reverse_channels(self: Any, images: Tensor) -> Tensor:
    """Reverse all channels, however many there are."""
    return images.flip(-3)


def _crop_margin_of_levels(self: Any, image: Tensor, gray_threshold: int = 200) -> Tensor:
    """Crop the margin of the levels of a float image, which stays levels."""
    if image.is_floating_point():
        found = pixels.as_levels(image)
        image = image if found is None else found[0]
    return super(type(self), self).crop_margin(image, gray_threshold)


#: The methods that replace those of a class.
METHODS: dict[str, dict[str, Callable[..., Any]]] = {
    "MobileViTImageProcessor": {"flip_channel_order": _reverse_channels},
    "NougatImageProcessor": {"crop_margin": _crop_margin_of_levels},
    "Owlv2ImageProcessor": {"resize": _resize_as_scipy},
}
